"""Choosing: the radius of the confidence set and the best optimistic score.

Paper: prop:calc-beta (determinant form) and the argmax of alg:linucb.
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _linalg as linalg
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@kernel
def radius(log_det: float, noise_scale: float, log_offset: float, bias: float) -> float:
    """beta_t = noise_scale * sqrt(log det V_t + log_offset) + bias.

    With log_offset = 2 ln(2/alpha) - d ln(rho_min) and bias = S sqrt(rho_max) + gamma. The root's
    argument can be negative only where the noise has left its promised range.
    """
    return noise_scale * math.sqrt(max(0.0, log_det + log_offset)) + bias


@kernel
def region(
    gram: F64, moment: F64, floor: float, firsts: I64, lower: F64, weights: F64, centre: F64
) -> float:
    """Factor a released matrix and solve for the estimate, in one call.

    Fills the last three arrays; the log-determinant.
    """
    packed = np.empty(linalg.packed_size(firsts))
    linalg.pack(gram, moment, firsts, packed)
    log_det = linalg.factor(packed, 0.0, floor, firsts, lower)
    weights[:] = moment
    linalg.forward(lower, firsts, weights)
    linalg.weigh(lower, weights)
    centre[:] = weights
    linalg.backward(lower, firsts, centre)
    return log_det


_ONE_PASS = 6  # the most features that fit in one pass over the actions
_CHUNK = 256  # actions whitened at a time beyond that, so that they stay in the cache


@kernel
def best(
    actions: F64, start: int, weights: F64, lower: F64, firsts: I64, bonus: float, scores: F64
) -> int:
    """Which action maximises theta.x + bonus * ||x||_{V^-1}; the first if several do.

    With V = L D L^T and w = L^-1 x this is weights.w + bonus * sqrt(w^T D^-1 w), where ``weights``
    is D^-1 L^-1 u for the moment u. The K actions are columns ``start`` and following of
    ``actions``; K is the length of ``scores``, which is filled.
    """
    if actions.shape[0] <= _ONE_PASS:
        _score_in_one_pass(actions, start, weights, lower, bonus, scores)
    else:
        for chunk in range(0, scores.size, _CHUNK):
            part = scores[chunk : chunk + _CHUNK]
            _score_by_rows(actions, start + chunk, weights, lower, firsts, bonus, part)
    return first_largest(scores)


@kernel
def first_largest(scores: F64) -> int:
    """The index of the largest score; the first if there are several."""
    top = scores[0]
    winner = 0
    for k in range(1, scores.size):
        better = scores[k] > top  # chosen without a branch, which could not be predicted
        top = scores[k] if better else top
        winner = k if better else winner
    return winner


@kernel
def _score_by_rows(
    actions: F64, start: int, weights: F64, lower: F64, firsts: I64, bonus: float, scores: F64
) -> None:
    """Forward substitution on all actions at once."""
    solved = np.empty((actions.shape[0], scores.size))
    whiten(actions, start, weights, lower, firsts, bonus, scores, solved)


@kernel
def whiten(
    actions: F64,
    start: int,
    weights: F64,
    lower: F64,
    firsts: I64,
    bonus: float,
    scores: F64,
    solved: F64,
) -> None:
    """Scores, and the actions they are made of: row i of ``solved`` becomes row i of L^-1 X."""
    dim, count = actions.shape[0], scores.size
    squares = np.zeros(count)
    for k in range(count):
        scores[k] = 0.0
    for i in range(dim):
        features, row = actions[i][start : start + count], solved[i]
        for k in range(count):
            row[k] = features[k]
        for j in range(firsts[i], i):
            weight, earlier = lower[i, j], solved[j]
            for k in range(count):
                row[k] -= weight * earlier[k]
        weight, inverse_pivot = weights[i], lower[i, i]
        for k in range(count):
            scores[k] += weight * row[k]
            squares[k] += inverse_pivot * row[k] * row[k]
    for k in range(count):
        scores[k] += bonus * math.sqrt(squares[k])


@kernel
def entry(lower: F64, i: int, j: int) -> float:
    """An entry of a matrix, 0 where it has no such row: that row then counts for nothing."""
    return lower[i, j] if i < lower.shape[0] else 0.0


@kernel
def _weight(weights: F64, i: int) -> float:
    """A weight, 0 where there is none."""
    return weights[i] if i < weights.size else 0.0


@kernel
def _score_in_one_pass(
    actions: F64, start: int, weights: F64, lower: F64, bonus: float, scores: F64
) -> None:
    """Forward substitution written out for six features, so that w stays in registers.

    Short loops over K are dominated by their overhead; one pass instead of one for each entry of
    the factor is worth a factor of two at K = 25.
    """
    last, stop = actions.shape[0] - 1, start + scores.size
    x0, x1 = actions[0][start:stop], actions[min(1, last)][start:stop]
    x2, x3 = actions[min(2, last)][start:stop], actions[min(3, last)][start:stop]
    x4, x5 = actions[min(4, last)][start:stop], actions[min(5, last)][start:stop]
    c0, c1, c2 = weights[0], _weight(weights, 1), _weight(weights, 2)
    c3, c4, c5 = _weight(weights, 3), _weight(weights, 4), _weight(weights, 5)
    r0, r1, r2 = lower[0, 0], entry(lower, 1, 1), entry(lower, 2, 2)
    r3, r4, r5 = entry(lower, 3, 3), entry(lower, 4, 4), entry(lower, 5, 5)
    f10, f20, f21 = entry(lower, 1, 0), entry(lower, 2, 0), entry(lower, 2, 1)
    f30, f31, f32 = entry(lower, 3, 0), entry(lower, 3, 1), entry(lower, 3, 2)
    f40, f41, f42 = entry(lower, 4, 0), entry(lower, 4, 1), entry(lower, 4, 2)
    f50, f51, f52 = entry(lower, 5, 0), entry(lower, 5, 1), entry(lower, 5, 2)
    f43, f53, f54 = entry(lower, 4, 3), entry(lower, 5, 3), entry(lower, 5, 4)
    for k in range(scores.size):
        w0 = x0[k]
        w1 = x1[k] - f10 * w0
        w2 = x2[k] - f20 * w0 - f21 * w1
        w3 = x3[k] - f30 * w0 - f31 * w1 - f32 * w2
        w4 = x4[k] - f40 * w0 - f41 * w1 - f42 * w2 - f43 * w3
        w5 = x5[k] - f50 * w0 - f51 * w1 - f52 * w2 - f53 * w3 - f54 * w4
        mean = c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3 + c4 * w4 + c5 * w5
        square = r0 * w0 * w0 + r1 * w1 * w1 + r2 * w2 * w2
        square += r3 * w3 * w3 + r4 * w4 * w4 + r5 * w5 * w5
        scores[k] = mean + bonus * math.sqrt(square)
