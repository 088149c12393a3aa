"""What a row costs over all releases: strategies of correlated noise, trees, and several rounds.

Rows fall into batches j = 1..J by a public rule. With X_j the sum of batch j and C the encoder,
one noisy value of (C X)_i is released, or can be computed, for each row i of C; whitened, the
noise is standard normal. One row costs ``row_cost`` in a single noisy sum (`rows.row_cost`), and
a person takes part in at most ``contributions`` rounds. Releases may be adaptive if C is lower
triangular, or if its rows can be ordered so that each needs only batches that are over.
Derivations: docs/accounting.md.
"""

import math
import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.accounting._gdp import gaussian_mu
from discreet.accounting._rows import Neighbours, row_cost
from discreet.accounting._search import upwards
from discreet.errors import ShapeError
from discreet.privacy import Privacy


def strategy_cost(encoder: ArrayLike, *, row_cost: float, contributions: int = 1) -> float:
    """The mu of all releases: contributions * row_cost * the longest column of C, rounded up.

    Exact if the batch of the longest column can hold all rounds of one person; an upper bound
    otherwise, for which see `group_cost`.

    Args:
        encoder: C, finite numbers, shape (noisy sums, J): a column for each batch.
        row_cost: what one row costs in a single noisy sum, as `row_cost` says.
        contributions: in how many rounds one person takes part, at most.

    Returns:
        The mu of all releases together.

    Raises:
        ShapeError: ``encoder`` is no matrix of finite numbers.
        ParameterError: another number is out of range.
    """
    matrix = _matrix(encoder)
    longest = float(np.linalg.norm(matrix, axis=0).max()) * (1 + _sum_rounding(matrix))
    return _times(row_cost, checks.count("contributions", contributions) * longest)


def group_cost(
    encoder: ArrayLike, *, row_cost: float, contributions: int, batch_sizes: ArrayLike
) -> float:
    """The mu of all releases where batch j has only ``batch_sizes[j]`` rows, rounded up.

    With n_j of a person's rounds in batch j, the distance is at most row_cost sqrt(n^T |C^T C| n).
    What is returned bounds this for all n with n_j <= size of batch j and at most
    ``contributions`` in all. It is never above `strategy_cost`.

    Args:
        encoder: C, finite numbers, shape (noisy sums, J): a column for each batch.
        row_cost: what one row costs in a single noisy sum, as `row_cost` says.
        contributions: in how many rounds one person takes part, at most.
        batch_sizes: how many rows each batch has, at least 1 and public, shape (J,).

    Returns:
        The mu of all releases together.

    Raises:
        ShapeError: ``encoder`` is no matrix of finite numbers, or there is not one batch size of at
            least 1 for each of its columns.
        ParameterError: another number is out of range.
    """
    matrix = _matrix(encoder)
    sizes = np.asarray(batch_sizes, dtype=np.float64)
    if sizes.shape != matrix.shape[1:] or not (sizes >= 1).all():
        raise ShapeError("batch_sizes", "must have one size of at least 1 for each column")
    rounds = checks.count("contributions", contributions)
    rounding = _sum_rounding(matrix)
    products = np.abs(matrix.T @ matrix) + rounding * (np.abs(matrix).T @ np.abs(matrix))
    # n^T P n is the sum over j of n_j (P n)_j, and each factor is bounded on its own.
    reach = np.array([_fullest(row, sizes, rounds) for row in products])
    length = math.sqrt(_fullest(reach, sizes, rounds)) * (1 + rounding)
    return min(
        _times(row_cost, length),
        strategy_cost(matrix, row_cost=row_cost, contributions=rounds),
    )


def _fullest(values: NDArray[np.float64], sizes: NDArray[np.float64], rounds: int) -> float:
    """The largest sum of ``rounds`` values, of which value j may be taken ``sizes[j]`` times."""
    order = np.argsort(values)[::-1]
    before = np.cumsum(sizes[order]) - sizes[order]
    taken = np.clip(rounds - before, 0, sizes[order])
    return float(taken @ values[order])


def tree_cost(*, row_cost: float, depth: int, contributions: int = 1) -> float:
    """The mu of all nodes of a binary tree over single rounds, rounded up.

    A round is in one node of each of the m levels, so one round costs sqrt(m) row_cost. A node
    at level l holds c = 2^l rounds, so k rounds cost at most row_cost times the root of the sum
    over levels of floor(k/c) c^2 + (k mod c)^2, with equality for the first k rounds if all nodes
    are released. This is below k sqrt(m) row_cost for k > 1.

    Args:
        row_cost: what one row costs in a single noisy sum.
        depth: m, the levels of the tree.
        contributions: k, in how many rounds one person takes part.

    Returns:
        The cost of all nodes together.

    Raises:
        ParameterError: a number is out of range.
    """
    return _times(row_cost, tree_length(depth=depth, contributions=contributions))


def tree_length(*, depth: int, contributions: int) -> float:
    """What `tree_cost` multiplies the cost of a row by, not rounded up.

    Args:
        depth: m, the levels of the tree.
        contributions: k, in how many rounds one person takes part.

    Returns:
        The length, sqrt(m) for a single round.

    Raises:
        ParameterError: a number is out of range.
    """
    rounds = checks.count("contributions", contributions)
    squares = 0
    for level in range(checks.count("depth", depth)):
        full, rest = divmod(rounds, 2**level)
        squares += full * 4**level + rest**2
    return math.sqrt(squares)


def gaussian_node_std_gdp(
    *,
    privacy: Privacy,
    depth: int,
    action_norm: float,
    reward_bound: float,
    neighbours: str = Neighbours.REPLACEMENT,
    contributions: int = 1,
) -> float:
    """The smallest scale of Gaussian tree nodes that meets the target, rounded up.

    For the paper's noise, one scale for the Gram matrix and the moment vector: the cost of all
    nodes at scale 1 over `gaussian_mu`. Compare `gaussian_node_std`, the paper's formula.

    Args:
        privacy: the target (epsilon, delta).
        depth: m, the levels of the tree, as `tree_depth` says.
        action_norm: L, the bound on the norm of an action.
        reward_bound: B, the bound on a reward's distance from the centre.
        neighbours: the neighbour relation, 'replacement' or 'add-remove'.
        contributions: in how many rounds one person takes part, at most.

    Returns:
        The standard deviation of a node's noise: of the moment, and of the Gram matrix off its
        diagonal. On the diagonal it is sqrt(2) times that.

    Raises:
        ParameterError: a number is out of range, or the relation is unknown.
    """
    one = row_cost(
        action_norm=action_norm,
        reward_bound=reward_bound,
        gram_std=1.0,
        moment_std=1.0,
        neighbours=neighbours,
    )
    total = tree_cost(row_cost=one, depth=depth, contributions=contributions)
    return upwards(total / gaussian_mu(privacy))


def _matrix(encoder: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(encoder, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0 or not np.isfinite(matrix).all():
        raise ShapeError("encoder", "must be a matrix of finite numbers, one column for each batch")
    return matrix


def _sum_rounding(matrix: NDArray[np.float64]) -> float:
    """A bound on the relative error of a sum of as many positive numbers as a side is long."""
    return 2.0 * max(len(matrix), len(matrix.T)) * sys.float_info.epsilon


def _times(cost: float, length: float) -> float:
    return upwards(checks.positive("row_cost", cost) * length)
