"""A G-optimal design: how often to play each of a few actions to know all of them as well."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_ROUNDS = 5000  # of the iteration, at most
_CLOSE = 0.02  # how far from the optimum it may stop, as a share of it
_LEAST_SHARE = 1e-3  # weights below this share of an even one are dropped
_RANK = 1e-10  # singular values below this share of the largest count as zero


class Design(NamedTuple):
    """Weights of actions, and coordinates in which they span the space."""

    weights: F64  # (K,), they sum up to 1
    coordinates: F64  # (K, r), of the actions in a basis of their span


def g_optimal(actions: F64) -> Design:
    """Weights for which the largest ||x||^2 in the norm of V(w)^-1 is close to the least, r.

    Multiplicative updates w_x <- w_x ||x||^2 / r, which converge to the D-optimal design
    (Silvey, Titterington & Torsney 1978); by Kiefer and Wolfowitz (1960) that is G-optimal as well.
    Tiny weights are dropped at the end, which leaves a small *core set* of actions.

    Args:
        actions: shape (K, d), not all zero.

    Returns:
        The weights, and the actions in coordinates of their span.
    """
    _, lengths, basis = np.linalg.svd(actions, full_matrices=False)
    rank = max(1, int((lengths > _RANK * lengths[0]).sum()))
    points = actions @ basis[:rank].T
    weights = np.full(len(points), 1 / len(points))
    for _ in range(_ROUNDS):
        squares = _squares(points, weights)
        if squares.max() <= (1 + _CLOSE) * rank:
            break
        weights = weights * squares / rank
    kept = np.where(weights < _LEAST_SHARE / len(points), 0.0, weights)
    return Design(kept / kept.sum(), points)


def _squares(points: F64, weights: F64) -> F64:
    """||x||^2 in the norm of the inverse of the weighted Gram matrix, for each point."""
    gram = (points * weights[:, None]).T @ points
    return np.asarray((points * np.linalg.solve(gram, points.T).T).sum(axis=1))
