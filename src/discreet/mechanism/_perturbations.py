"""Perturbations of your own for algorithm 1, and the check that they are well formed."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import NotFiniteError, ShapeError

F64 = NDArray[np.float64]

Perturbations = Callable[[int], tuple[ArrayLike, ArrayLike]]
"""Round t = 1, 2, ... to (H_t, h_t). The same round must always give the same answer."""

_SYMMETRY = 1e-12


def checked(perturbations: Perturbations, turn: int, dim: int) -> tuple[F64, F64]:
    """(H_t, h_t) for one round, as arrays of the right shape."""
    pair = perturbations(turn)
    try:
        gram, moment = (np.asarray(part, dtype=np.float64) for part in pair)
    except (TypeError, ValueError):
        gram = moment = np.empty(0)
    if gram.shape != (dim, dim) or moment.shape != (dim,):
        raise ShapeError(
            "perturbations",
            f"gave something else than two arrays of shapes ({dim}, {dim}) and ({dim},) in round "
            f"{turn}; return H_t and h_t",
        )
    if not (np.isfinite(gram).all() and np.isfinite(moment).all()):
        raise NotFiniteError("perturbations", f"gave NaN or infinity in round {turn}")
    if np.abs(gram - gram.T).max() > _SYMMETRY * np.abs(gram).max():
        raise ShapeError("perturbations", f"gave a matrix in round {turn} that is not symmetric")
    return gram, moment
