"""Packed symmetric algebra: the row that is added, the matrix that is solved.

Features may come in blocks, such that no action has features in two of them. The Gram matrix is
then made of blocks on its diagonal, and what is outside is zero whatever the data are: it is not
packed, summed, given noise or solved for. ``firsts`` says where the blocks are: ``firsts[i]`` is
the first feature of the block that feature i is in. All zeros is one block, the usual case. A
packed matrix holds, row by row, the entries from column ``firsts[i]`` to the diagonal; a moment
follows.

A matrix V is factored as L D L^T, with L lower triangular and ones on its diagonal: no square
roots. Both are held in one array, the entries of L below the diagonal and the *reciprocals* of D
on it. So V^-1 u is the result of `forward`, `weigh` and `backward`, one after the other.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def firsts_of(sizes: Sequence[int]) -> I64:
    """Where the block of each feature starts, for blocks of these sizes, shape (d,)."""
    starts = np.cumsum((0, *sizes[:-1]))
    return np.repeat(starts, sizes).astype(np.int64)


@kernel
def packed_size(firsts: I64) -> int:
    """How many numbers describe a Gram matrix and a moment vector with these blocks."""
    size = 0
    for i in range(firsts.size):
        size += i - firsts[i] + 2
    return size


@kernel
def diagonal(firsts: I64) -> I64:
    """Where the diagonal of a packed Gram matrix is, shape (d,)."""
    found = np.empty(firsts.size, np.int64)
    at = -1
    for i in range(firsts.size):
        at += i - firsts[i] + 1
        found[i] = at
    return found


@kernel
def largest_square(rows: F64) -> float:
    """The largest squared norm of a row; NaN if any row has none."""
    largest = 0.0
    for k in range(rows.shape[0]):
        square = 0.0
        for i in range(rows.shape[1]):
            square += rows[k, i] * rows[k, i]
        if not square <= largest:
            largest = square
            if math.isnan(square):
                break
    return largest


@kernel
def pack_row(action: NDArray[Any], reward: float, firsts: I64, out: NDArray[Any]) -> None:
    """The packed outer product of (action, reward) with itself, of floating or of whole numbers.

    Shapes: action, firsts (d,), out (p,) with p of `packed_size`.
    """
    dim = action.size
    at = 0
    for i in range(dim):
        for j in range(firsts[i], i + 1):
            out[at] = action[i] * action[j]
            at += 1
    for j in range(dim):
        out[at] = reward * action[j]
        at += 1


@kernel
def unpack(packed: F64, shift: float, firsts: I64, gram: F64, moment: F64) -> None:
    """The full symmetric matrix, shifted by a multiple of the identity, and the vector."""
    dim = moment.size
    gram[:, :] = 0.0
    at = 0
    for i in range(dim):
        for j in range(firsts[i], i):
            gram[i, j] = packed[at]
            gram[j, i] = packed[at]
            at += 1
        gram[i, i] = packed[at] + shift
        at += 1
    for j in range(dim):
        moment[j] = packed[at]
        at += 1


@kernel
def pack(gram: F64, moment: F64, firsts: I64, out: F64) -> None:
    """The inverse of :func:`unpack` with no shift; only the lower triangle is read."""
    dim = moment.size
    at = 0
    for i in range(dim):
        for j in range(firsts[i], i + 1):
            out[at] = gram[i, j]
            at += 1
    for j in range(dim):
        out[at] = moment[j]
        at += 1


@kernel
def _factor(packed: F64, shift: float, firsts: I64, lower: F64) -> float:
    """Factor packed + shift*I; the log-determinant, or NaN if it is not positive definite."""
    dim = lower.shape[0]
    determinant = 1.0
    log_det = 0.0
    at = 0
    for i in range(dim):
        first = firsts[i]
        for j in range(first, i):
            rest = packed[at]
            at += 1
            for k in range(first, j):
                rest -= lower[i, k] * lower[j, k]
            lower[i, j] = rest
        rest = packed[at] + shift
        at += 1
        for j in range(first, i):
            entry = lower[i, j] * lower[j, j]
            rest -= lower[i, j] * entry
            lower[i, j] = entry
        if not rest > 0.0:
            return math.nan
        lower[i, i] = 1.0 / rest
        # Pivots (within 1e-200 ... 1e200) are multiplied up, with few logarithms on the way.
        determinant *= rest
        if not 1e-100 < determinant < 1e100:
            log_det += math.log(determinant)
            determinant = 1.0
    return log_det + math.log(determinant)


@kernel
def factor(packed: F64, shift: float, floor: float, firsts: I64, lower: F64) -> float:
    """Factor the packed matrix plus shift*I; the log-determinant of that matrix.

    Of ``lower``, entries outside the blocks are left as they are: they should be zeros.

    Outside an event of probability alpha the matrix is positive definite. Inside that event it
    is lifted by ``floor`` times powers of two until it is: a function of the release alone.
    """
    log_det = _factor(packed, shift, firsts, lower)
    if log_det == log_det:  # noqa: PLR0124  # not NaN, the usual case
        return log_det
    lift = floor
    while math.isnan(log_det) and lift < math.inf:
        log_det = _factor(packed, shift + lift, firsts, lower)
        lift *= 2.0
    return log_det


@kernel
def forward(lower: F64, firsts: I64, vector: F64) -> None:
    """Solve L w = vector in place."""
    for i in range(vector.size):
        rest = vector[i]
        for k in range(firsts[i], i):
            rest -= lower[i, k] * vector[k]
        vector[i] = rest


@kernel
def weigh(lower: F64, vector: F64) -> None:
    """Multiply by D^-1 in place."""
    for i in range(vector.size):
        vector[i] *= lower[i, i]


@kernel
def backward(lower: F64, firsts: I64, vector: F64) -> None:
    """Solve L^T v = vector in place."""
    for i in range(vector.size - 1, -1, -1):
        for k in range(firsts[i], i):
            vector[k] -= lower[i, k] * vector[i]
