"""What a release says about the parameter: a normal distribution, given the law of its noise.

The release is M = G + Z and u = (sum of x y) + h, with noise Z and h of known deviations. The
parameter is taken to be normal beforehand, around 0 in all directions alike, and G to be known at
its likely value: the eigenvectors of M, with eigenvalues that are drawn together as far as noise
spread them, positive, and sum up to no more than the rows can. In the direction of eigenvector i,
u - M theta then has the variance ``variance * g_i + floor`` with the rewards' noise in front and
the privacy noise behind it, and everything is diagonal. Derivation: docs/estimate.md.

How far apart actions really are is often overstated, so the prior's variance is not taken as it
is stated: of that, its half, its quarter and so on, the one under which the release is most
likely is used, where each halving counts e times less. That is for choices. It is judged by the
directions that are known best, and says little of others; so intervals are made without it
(``halvings`` 0).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _linalg as linalg
from discreet.kernels import _random as random
from discreet.kernels import _score as score
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

HALVINGS = 8  # of the prior's variance, at most, for choices
DITHER = 0.3  # how wide tilts are unless stated, in deviations of the prior
TILTS = 16  # that a release has; a power of two, so that shares of them are exact
PRIOR, KNOWN = range(2)  # figures: the prior's variance, and how much is known of some direction
_LEAST_KNOWN = 0.01  # of some direction's prior variance
_TOGETHER = 256  # actions of several sets that are scored at a time
_FAR = 8.0  # deviations below zero from which the mean above zero is worked out by its limit


class Known(NamedTuple):
    """What is known besides the release."""

    variance: float  # of a reward
    theta_norm: float
    square: float  # of the longest action
    prior: float  # the stated variance of the parameter in one direction
    firsts: I64  # where the block of each feature starts; see `linalg`
    halvings: int  # of that variance, at most


class Noise(NamedTuple):
    """The noise in a release, and how much it can hold."""

    gram_std: float  # off the diagonal; 0 if the matrix is exact
    moment_std: float
    weight: float  # the total weight of the rows


class PosteriorRule(NamedTuple):
    """The numbers by which a posterior becomes a choice."""

    deviations: float  # that are added to an estimate
    growth: float  # more of them, for each unit of sqrt(ln(rows) / d)
    dither: float  # how far tilts go where nothing is known, in deviations of the prior
    uniform: float  # the share of choices that are made uniformly


@kernel
def fill(
    gram: F64,
    moment: F64,
    noise: Noise,
    known: Known,
    lower: F64,
    weights: F64,
    centre: F64,
    figures: F64,
) -> None:
    """The posterior's centre, and its precision factored as `linalg` does.

    Shapes: gram, lower (d, d); moment, weights, centre (d,); figures (2,). The last four are
    filled.
    """
    dim = moment.size
    precision, pull = np.zeros((dim, dim)), np.zeros(dim)
    prior = known.prior
    if noise.gram_std == 0.0 and noise.moment_std == 0.0:
        precision[:, :] = gram / known.variance
        pull[:] = moment / known.variance
        figures[KNOWN] = share_known(prior * np.diag(precision).max())
    else:
        prior = _through_noise(gram, moment, noise, known, precision, pull, figures)
    for i in range(dim):
        precision[i, i] += 1.0 / prior
    score.region(precision, pull, 1.0 / prior, known.firsts, lower, weights, centre)
    figures[PRIOR] = prior


@kernel
def _through_noise(
    gram: F64,
    moment: F64,
    noise: Noise,
    known: Known,
    precision: F64,
    pull: F64,
    figures: F64,
) -> float:
    """Fill the information of a noisy release; the prior's variance that fits it best."""
    dim, firsts = moment.size, known.firsts
    values, along = np.empty(dim), np.empty(dim)
    basis = np.zeros((dim, dim))
    total = 0.0
    stop = 0
    while stop < dim:
        start, stop = stop, _block_end(firsts, stop)
        found, vectors = np.linalg.eigh(gram[start:stop, start:stop].copy())
        _gather(found, noise.gram_std)
        for i in range(stop - start):
            values[start + i] = above_zero(found[i], math.sqrt(2.0) * noise.gram_std)
            total += values[start + i]
            along[start + i] = 0.0
            for j in range(stop - start):
                basis[start + j, start + i] = vectors[j, i]
                along[start + i] += vectors[j, i] * moment[start + j]
    most = noise.weight * known.square
    if noise.gram_std > 0.0 and total > most:  # an exact matrix is what it is
        for i in range(dim):
            values[i] *= most / total
    prior = _likeliest(values, along, noise, known)
    figures[KNOWN] = 0.0
    stop = 0
    while stop < dim:
        start, stop = stop, _block_end(firsts, stop)
        floor = floor_of(noise, known, prior, stop - start)
        for i in range(start, stop):
            weight = values[i] / (known.variance * values[i] + floor)
            gain = prior * weight * values[i]  # precision, over what it was beforehand
            figures[KNOWN] = max(figures[KNOWN], share_known(gain))
            for j in range(start, stop):
                pull[j] += basis[j, i] * weight * along[i]
                for k in range(start, j + 1):
                    precision[j, k] += basis[j, i] * basis[k, i] * weight * values[i]
    return prior


@kernel
def _block_end(firsts: I64, start: int) -> int:
    """Where the block that starts at a feature ends."""
    stop = start + 1
    while stop < firsts.size and firsts[stop] == start:
        stop += 1
    return stop


@kernel
def share_known(gain: float) -> float:
    """How much of a prior variance is gone if precision grew by ``gain`` times what it was."""
    return gain / (1.0 + gain)


@kernel
def _gather(values: F64, std: float) -> None:
    """Draw eigenvalues together as far as their spread is no more than that of noise.

    After James & Stein: the squared distance of the matrix from its mean eigenvalue times the
    identity is on the average 2 std^2 (d(d+1)/2 - 1) larger than it is without noise.
    """
    size, mean, square = values.size, values.mean(), 0.0
    for i in range(size):
        square += (values[i] - mean) ** 2
    by_noise = 2.0 * std * std * (size * (size + 1) / 2 - 1)
    kept = 1.0 - by_noise / square if square > by_noise else 0.0
    for i in range(size):
        values[i] = mean + kept * (values[i] - mean)


@kernel
def floor_of(noise: Noise, known: Known, prior: float, size: int) -> float:
    """The variance of privacy noise in u - M theta, in one direction of a block of this size.

    With b the block's part of theta: moment_std^2 + gram_std^2 (b^2 + b_i^2), on the average of
    directions.
    """
    square = min(known.theta_norm**2, prior * size)
    return noise.moment_std**2 + (1.0 + 1.0 / size) * square * noise.gram_std**2


@kernel
def _likeliest(values: F64, along: F64, noise: Noise, known: Known) -> float:
    """The variance of the prior, of the stated one and its halvings, that fits the release."""
    best, chosen = -math.inf, known.prior
    prior = known.prior
    for halving in range(known.halvings + 1):
        likelihood = -float(halving)
        stop = 0
        while stop < values.size:
            start, stop = stop, _block_end(known.firsts, stop)
            floor = floor_of(noise, known, prior, stop - start)
            for i in range(start, stop):
                spread = known.variance * values[i] + floor + prior * values[i] * values[i]
                likelihood -= 0.5 * (math.log(spread) + along[i] * along[i] / spread)
        if likelihood > best:
            best, chosen = likelihood, prior
        prior *= 0.5
    return chosen


@kernel
def above_zero(value: float, std: float) -> float:
    """The mean of a normal variable around ``value``, given that it is positive.

    Without noise it is the value, or 0 where rounding made it negative.
    """
    if std == 0.0:
        return max(value, 0.0)
    at = value / std
    if at < -_FAR:
        return std / -at  # the limit of Mills' ratio
    density = math.exp(-0.5 * at * at) / math.sqrt(2.0 * math.pi)
    return value + std * density / (0.5 * math.erfc(-at / math.sqrt(2.0)))


@kernel
def bonus(deviations: float, growth: float, rows: int, dim: int) -> float:
    """How many deviations are added to an estimate after so many rows, of those remembered."""
    return deviations + growth * math.sqrt(math.log(max(1.0, float(rows))) / dim)


@kernel
def dither(wanted: float, figures: F64) -> float:
    """The scale of tilts: ``wanted`` deviations of the prior where nothing is known."""
    return wanted / math.sqrt(figures[PRIOR])


@kernel
def uniform_share(wanted: float, figures: F64) -> float:
    """The share of uniform choices: all of them if the release cannot tell actions apart.

    That is if no direction is known to `_LEAST_KNOWN` of it.
    """
    return 1.0 if figures[KNOWN] < _LEAST_KNOWN else wanted


@kernel
def tilt(number: int, at: int, lower: F64, firsts: I64, scale: float, out: F64) -> None:
    """A shift of the weights: ``scale`` times the posterior covariance times d standard normals.

    There are `TILTS` of them for a release, in pairs that cancel. Which normals they are made of
    depends on the release's number and on ``at`` alone, so whoever has the release has them.

    Shapes: lower (d, d); firsts (d,); out (d,), which is filled.
    """
    sign = scale if at % 2 == 0 else -scale
    _tilt_normals(number, at // 2, out)
    for i in range(out.size):
        out[i] *= sign
    linalg.forward(lower, firsts, out)
    linalg.weigh(lower, out)


@kernel
def _tilt_normals(number: int, pair: int, out: F64) -> None:
    """The normals of one pair of a release's tilts."""
    state = random.numbered(number * TILTS + pair)
    for i in range(out.size):
        out[i] = random.normal(state)


@kernel
def tilt_normals(releases: int, dim: int) -> F64:
    """What the tilts of releases 1, 2, ... are made of, shape (J, TILTS / 2, d)."""
    found = np.empty((releases, TILTS // 2, dim))
    for at in range(releases):
        for pair in range(TILTS // 2):
            _tilt_normals(at + 1, pair, found[at, pair])
    return found


@kernel
def tilts(number: int, lower: F64, firsts: I64, scale: float) -> F64:
    """All tilts of a release, one a row; a single one of zeros if ``scale`` is 0."""
    if scale == 0.0:
        return np.zeros((1, lower.shape[0]))
    found = np.empty((TILTS, lower.shape[0]))
    for at in range(TILTS):
        tilt(number, at, lower, firsts, scale, found[at])
    return found


@kernel
def drawn(
    actions: F64,
    weights: F64,
    lower: F64,
    firsts: I64,
    bonus: float,
    shifts: F64,
    share: float,
    coin: float,
    found: F64,
) -> int:
    """The action that a uniform number, ``coin``, stands for.

    How probable each is goes to ``found``: uniform for a share of all choices, and for the rest
    the action that is best after one of the shifts of the weights.

    Shapes: actions (K, d); shifts (m, d); found (K,), which is filled.
    """
    count = found.size
    found[:] = share / count
    if share < 1.0:
        scores, solved = np.empty(count), np.empty((weights.size, count))
        score.whiten(actions.T.copy(), 0, weights, lower, firsts, bonus, scores, solved)
        shifted = np.empty(count)
        for at in range(shifts.shape[0]):
            shifted[:] = scores
            for i in range(weights.size):
                shift, row = shifts[at, i], solved[i]
                for k in range(count):
                    shifted[k] += shift * row[k]
            found[score.first_largest(shifted)] += (1.0 - share) / shifts.shape[0]
    chosen, total = 0, 0.0
    for k in range(count):
        if found[k] > 0.0 and total <= coin:
            chosen = k
        total += found[k]
    return chosen


@kernel
def probabilities(
    sets: F64,
    weights: F64,
    lower: F64,
    firsts: I64,
    bonus: float,
    shifts: F64,
    share: float,
    found: F64,
) -> None:
    """How probable each action of many decision sets is; see `drawn`.

    Several sets are scored together, as one long one.

    Shapes: sets (n, K, d), an action a row; found (n, K), which is filled.
    """
    total, size, dim = sets.shape
    found[:] = share / size
    if share == 1.0:
        return
    group = max(1, _TOGETHER // size)
    features, solved = np.empty((dim, group * size)), np.empty((dim, group * size))
    scores, shifted = np.empty(group * size), np.empty(group * size)
    for first in range(0, total, group):
        here = min(group, total - first)
        count = here * size
        for at in range(here):
            for k in range(size):
                for i in range(dim):
                    features[i, at * size + k] = sets[first + at, k, i]
        score.whiten(features, 0, weights, lower, firsts, bonus, scores[:count], solved)
        for tilt in range(shifts.shape[0]):
            shifted[:count] = scores[:count]
            for i in range(dim):
                shift, row = shifts[tilt, i], solved[i]
                for k in range(count):
                    shifted[k] += shift * row[k]
            for at in range(here):
                best = score.first_largest(shifted[at * size : (at + 1) * size])
                found[first + at, best] += (1.0 - share) / shifts.shape[0]
