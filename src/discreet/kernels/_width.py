"""The joint-noise confidence set: reward noise and privacy noise added in quadrature.

With the release M = G + Z, u = (sum of x y) + h, the eigenvectors of M as a basis and eigenvalues
m_i, everything is diagonal but the direction of an action. Proof: docs/width.md.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _score as score
from discreet.kernels._compiling import kernel
from discreet.kernels._noise import Noise

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_SHIFTS = 16  # candidates for the shift besides 0, evenly spaced in the logarithm
SPAN = 4.0  # the largest of them over the smallest


class Terms(NamedTuple):
    """What the width is made of besides the release and the deviations of its noise."""

    variance: float  # sigma^2, the variance proxy of a reward
    theta_norm: float
    prior: float  # the prior's share, lambda_0 over the other noise at no data


class NoiseTable(NamedTuple):
    """How much noise each release holds: release i by the first entry whose number is not below i.

    Releases beyond the last number have the last entry.
    """

    numbers: I64  # of releases, ascending
    norms: F64  # the noise's standard deviation, in multiples of one draw
    reaches: F64  # a bound on its largest eigenvalue, in multiples of its standard deviation
    log_tails: F64  # ln(1/p), with p the probability that the bound is passed


class ReleaseNoise(NamedTuple):
    """The noise in one release, or an upper bound on it."""

    gram_std: float  # off the diagonal
    moment_std: float
    reach: float  # upsilon: an eigenvalue of -Z is above it with probability p
    log_tail: float  # ln(1/p)


@kernel
def _noise_at(table: NoiseTable, law: Noise, number: int, heaviest: float) -> ReleaseNoise:
    """What the table says about one release. For compiled callers only: it returns a NamedTuple."""
    at = min(int(np.searchsorted(table.numbers, number)), table.numbers.size - 1)
    gram_std = table.norms[at] / heaviest * law.scale
    moment_std = table.norms[at] / heaviest * law.moment_scale
    return ReleaseNoise(gram_std, moment_std, gram_std * table.reaches[at], table.log_tails[at])


@kernel
def region(
    gram: F64,
    moment: F64,
    number: int,
    heaviest: float,
    table: NoiseTable,
    law: Noise,
    terms: Terms,
    basis: F64,
    weights: F64,
    noise: F64,
    bias: F64,
) -> float:
    """Fill the set's four arrays from release ``number``; the shift that was chosen.

    For an action with coordinates w in the eigenbasis, the estimate of its mean reward is
    weights.w, and its width sqrt(sum noise_i w_i^2) + sqrt(sum bias_i w_i^2). The shift c is 0 if
    all directions are known; else it is, of some candidates, the one with the least width for an
    action that is equally long in all directions. It is post-processing.
    ``heaviest`` is the largest weight of any row in the release: everything is divided by it, so
    that no row counts more than one.

    Shapes: gram (d, d); basis (d, d), eigenvectors as columns; moment, weights, noise, bias (d,).
    """
    dim = moment.size
    values, vectors = np.linalg.eigh(gram / heaviest)
    basis[:, :] = vectors
    held = _noise_at(table, law, number, heaviest)
    floor, prior = without_data(held, terms)
    square = 2.0 * held.log_tail
    for i in range(dim):
        noise[i] = terms.variance * max(values[i] + held.reach, 0.0) + floor
        square += math.log(noise[i] / prior)
    shift = 0.0
    if not _known(values, noise, square, terms.theta_norm):
        smallest = smallest_shift(held, terms, dim)
        smallest += max(0.0, -values[0] - held.reach)  # positive definite, whatever the noise
        shift = _best_shift(values, noise, square, terms.theta_norm, smallest)
    for i in range(dim):
        inverse = 1.0 / (values[i] + shift)
        along = 0.0
        for j in range(dim):
            along += vectors[j, i] * moment[j]
        weights[i] = inverse * along / heaviest
        noise[i] *= square * inverse * inverse
        bias[i] = (shift * terms.theta_norm * inverse) ** 2
    return shift


@kernel
def nothing(theta_norm: float, basis: F64, weights: F64, noise: F64, bias: F64) -> None:
    """The set before any release: all parameters up to the stated norm."""
    for i in range(weights.size):
        basis[i, :] = 0.0
        basis[i, i] = 1.0
        weights[i] = noise[i] = 0.0
        bias[i] = theta_norm * theta_norm


@kernel
def without_data(held: ReleaseNoise, terms: Terms) -> tuple[float, float]:
    """(omega, lambda_0): privacy noise and prior in one direction, and the prior alone."""
    floor = held.moment_std**2 + 2.0 * (terms.theta_norm * held.gram_std) ** 2
    prior = terms.prior * (terms.variance * held.reach + floor)
    return floor + prior, prior


@kernel
def smallest_shift(held: ReleaseNoise, terms: Terms, dim: int) -> float:
    """c_0, the least shift other than 0: a public number, fixed before any data.

    It is upsilon plus the larger of upsilon and the eigenvalue m from which on a direction is
    known, S m = beta sqrt(sigma^2 (m + upsilon) + omega), with beta as it is without data. The
    regret theorem needs shifts between c_0 and `SPAN` times that (docs/regret.md).
    """
    floor, prior = without_data(held, terms)
    empty = terms.variance * held.reach + floor
    square = 2.0 * held.log_tail + dim * math.log(empty / prior)
    half = 0.5 * square * terms.variance / terms.theta_norm
    enough = (half + math.sqrt(half * half + square * empty)) / terms.theta_norm
    return held.reach + max(held.reach, enough)


@kernel
def _known(values: F64, noise: F64, square: float, theta_norm: float) -> bool:
    """Whether in all directions the width without a shift is within the bound on the parameter."""
    known = True
    for i in range(values.size):
        known &= theta_norm * values[i] >= math.sqrt(square * noise[i])
    return known


@kernel
def _best_shift(
    values: F64, noise: F64, square: float, theta_norm: float, smallest: float
) -> float:
    """The candidate from ``smallest`` on with the least width for the action (1, ..., 1)."""
    factor = math.exp(math.log(SPAN) / (_SHIFTS - 1))
    shift = smallest
    best = math.inf
    chosen = smallest
    for _ in range(_SHIFTS):
        variance = 0.0
        lean = 0.0
        for i in range(values.size):
            inverse = 1.0 / (values[i] + shift)
            variance += noise[i] * inverse * inverse
            lean += inverse * inverse
        width = math.sqrt(square * variance) + shift * theta_norm * math.sqrt(lean)
        if width < best:
            best = width
            chosen = shift
        shift *= factor
    return chosen


_FEATURES = 6  # the most features that are rotated in one go


@kernel
def best(
    actions: F64,
    start: int,
    basis: F64,
    weights: F64,
    noise: F64,
    bias: F64,
    optimism: float,
    scores: F64,
) -> int:
    """Which action has the largest estimate plus ``optimism`` widths; the first if several do.

    The K actions are columns ``start`` and following of ``actions``; K is the length of
    ``scores``, which is filled.
    """
    dim, count = weights.size, scores.size
    rotated, variances, leans = np.empty(count), np.zeros(count), np.zeros(count)
    scores[:] = 0.0
    for i in range(dim):
        _rotate(actions, start, basis, i, rotated)
        weight, spread, lean = weights[i], noise[i], bias[i]
        for k in range(count):
            square = rotated[k] * rotated[k]
            scores[k] += weight * rotated[k]
            variances[k] += spread * square
            leans[k] += lean * square
    if optimism > 0.0:
        for k in range(count):
            scores[k] += optimism * (math.sqrt(variances[k]) + math.sqrt(leans[k]))
    return score.first_largest(scores)


@kernel
def _rotate(actions: F64, start: int, basis: F64, i: int, rotated: F64) -> None:
    """Coordinate i of all actions, six features at a time: short loops are mostly overhead."""
    dim, count = basis.shape[0], rotated.size
    stop = start + count
    rotated[:] = 0.0
    for j in range(0, dim, _FEATURES):
        last = dim - 1
        x0, x1 = actions[j][start:stop], actions[min(j + 1, last)][start:stop]
        x2, x3 = actions[min(j + 2, last)][start:stop], actions[min(j + 3, last)][start:stop]
        x4, x5 = actions[min(j + 4, last)][start:stop], actions[min(j + 5, last)][start:stop]
        b0, b1, b2 = basis[j, i], score.entry(basis, j + 1, i), score.entry(basis, j + 2, i)
        b3, b4, b5 = (
            score.entry(basis, j + 3, i),
            score.entry(basis, j + 4, i),
            score.entry(basis, j + 5, i),
        )
        for k in range(count):
            first = b0 * x0[k] + b1 * x1[k] + b2 * x2[k]
            rotated[k] += first + b3 * x3[k] + b4 * x4[k] + b5 * x5[k]
