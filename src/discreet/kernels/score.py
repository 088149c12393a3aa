"""Choosing: the radius of the confidence set and the best optimistic score.

Paper: prop:calc-beta (determinant form) and the argmax of alg:linucb.
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import linalg
from discreet.kernels.compiling import kernel

F64 = NDArray[np.float64]


@kernel
def radius(log_det: float, noise_scale: float, log_offset: float, bias: float) -> float:
    """beta_t = noise_scale * sqrt(log det V_t + log_offset) + bias.

    With log_offset = 2 ln(2/alpha) - d ln(rho_min) and bias = S sqrt(rho_max) + gamma. The root's
    argument can be negative only where the noise has left its promised range.
    """
    return noise_scale * math.sqrt(max(0.0, log_det + log_offset)) + bias


@kernel
def sample_theta(theta: F64, lower: F64, scale: float, normals: F64) -> None:
    """Move theta in place to a draw from N(theta, scale^2 V^-1); the normals are used up."""
    linalg.back_substitute(lower, normals)
    for i in range(theta.size):
        theta[i] += scale * normals[i]


@kernel
def _squared_norms(actions: F64, lower: F64, solved: F64, squares: F64) -> None:
    """Squared V^-1 norms of all actions, by forward substitution on all of them at once.

    Row i of ``solved`` becomes row i of L^-1 X.
    """
    dim, count = actions.shape
    for k in range(count):
        squares[k] = 0.0
    for i in range(dim):
        for k in range(count):
            solved[i, k] = actions[i, k]
        for j in range(i):
            weight = lower[i, j]
            for k in range(count):
                solved[i, k] -= weight * solved[j, k]
        scale = 1.0 / lower[i, i]
        for k in range(count):
            solved[i, k] *= scale
            squares[k] += solved[i, k] * solved[i, k]


@kernel
def best(actions: F64, theta: F64, lower: F64, bonus: float, work: F64) -> int:
    """The first index that maximises theta.x + bonus * ||x||_{V^-1}, with V = lower lower^T.

    Shapes: actions (d, K) feature-major, work (d + 2, K) scratch.
    """
    dim, count = actions.shape
    scores, squares = work[dim], work[dim + 1]
    for k in range(count):
        scores[k] = theta[0] * actions[0, k]
    for i in range(1, dim):
        weight = theta[i]
        for k in range(count):
            scores[k] += weight * actions[i, k]
    if bonus != 0.0:
        _squared_norms(actions, lower, work[:dim], squares)
        for k in range(count):
            scores[k] += bonus * math.sqrt(squares[k])
    winner = 0
    for k in range(1, count):
        if scores[k] > scores[winner]:
            winner = k
    return winner
