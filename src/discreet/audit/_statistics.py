"""From numbers to lower bounds on epsilon. Knows nothing of learners or of noise.

Two worlds differ in what one person brings. A test looks at what was released and says yes in each
with some probability. Under (epsilon, delta)-privacy a yes in one world is at most e^epsilon times
as likely as in the other, plus delta, and so is a no. So counts bound the two probabilities, and
these bound epsilon. The test itself, a number for each trial and a threshold, is chosen on the part
of the trials that is set apart for that; counts come from the rest.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betainccinv, betaincinv, ndtri

from discreet.accounting import gaussian_epsilon

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

_STEP = 1 / 16  # of the search for the one-run bound
_LARGEST = 64.0  # no count can show more
_ROUNDING = 1e-9  # far more than an accounted delta is raised by
_THRESHOLDS = 63  # quantiles that are tried
_STEADY = 1e-5  # noise below this share of the signal is taken to be as large as that
_WIDEST = 80  # powers of two that are told apart, on both sides of 1
_SHARE = 0.05  # of the coins that are guessed: those one is surest of
_FEWEST_GUESSES = 64

Score = Callable[[F64, F64], F64]
"""From a lower and an upper bound on two rates to what is to be large."""


class Samples(NamedTuple):
    """What was released in trials of one world and of the other, a trial a row."""

    one: F64
    other: F64


def lower_rate(hits: ArrayLike, trials: int, risk: float) -> F64:
    """A probability that is below the true one but for a chance of ``risk`` (Clopper-Pearson)."""
    hits = np.asarray(hits, dtype=np.float64)
    found = betaincinv(np.maximum(hits, 1.0), trials - hits + 1, risk)
    return np.where(hits > 0, found, 0.0)


def upper_rate(hits: ArrayLike, trials: int, risk: float) -> F64:
    """A probability that is above the true one but for a chance of ``risk`` (Clopper-Pearson)."""
    hits = np.asarray(hits, dtype=np.float64)
    found = betainccinv(hits + 1, np.maximum(trials - hits, 1.0), risk)
    return np.where(hits < trials, found, 1.0)


def rates_epsilon(low: ArrayLike, high: ArrayLike, *, delta: float) -> F64:
    """The epsilon that two rates prove: at least ``low`` in one world, at most ``high`` in another.

    The larger of ln((low - delta)/high), for a yes, and ln((1 - high - delta)/(1 - low)), for a
    no; 0 if neither is positive. Both use the same two bounds, so both hold at once.
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.log(np.maximum(low - delta, 0.0) / high)
        no = np.log(np.maximum(1 - high - delta, 0.0) / (1 - low))
    return np.asarray(np.maximum(0.0, np.nan_to_num(np.maximum(yes, no), nan=0.0)))


def rates_mu(low: ArrayLike, high: ArrayLike) -> F64:
    """The mu that two rates prove: a mu-GDP mechanism has low <= Phi(Phi^-1(high) + mu)."""
    with np.errstate(invalid="ignore"):
        found = ndtri(np.asarray(low, dtype=np.float64)) - ndtri(np.asarray(high, dtype=np.float64))
    return np.maximum(0.0, np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0))


def mu_epsilon(mu: float, *, delta: float) -> float:
    """The epsilon of Gaussian noise with this mu at this delta, rounded down."""
    if mu <= _ROUNDING:
        return 0.0
    return gaussian_epsilon(delta=min(delta * (1 + _ROUNDING), 1 - _ROUNDING), mu=mu)


def one_run_p_value(
    *, epsilon: float, delta: float, canaries: int, guesses: int, correct: int
) -> float:
    """How likely so many correct guesses are, at most, if each secret bit is private.

    With W binomial, of ``guesses`` trials at e^eps/(1 + e^eps), and v ``correct`` ones:
    P(W >= v) + 2 m delta max_i P(v > W >= v - i)/i, for m ``canaries`` (Steinke, Nasr & Jagielski
    2023, theorem 5.2).
    """
    if correct == 0:
        return 1.0
    right = 1 / (1 + math.exp(-epsilon))
    least = np.arange(correct, -1, -1.0)  # P(W >= v), P(W >= v - 1), ..., P(W >= 0)
    tails = betainc(np.maximum(least, 1.0), guesses - least + 1, right)
    tails[-1] = 1.0
    extra = float(np.max((tails[1:] - tails[0]) / np.arange(1, correct + 1)))
    return min(1.0, float(tails[0]) + 2 * canaries * delta * extra)


def one_run_epsilon(
    *, delta: float, canaries: int, guesses: int, correct: int, risk: float
) -> float:
    """The epsilon that the guesses of a run prove, but for a chance of ``risk``.

    Every smaller epsilon is refuted as well: the search goes up from 0 and stops at the first that
    is not, so nothing hangs on the p-value growing with epsilon.
    """

    def refuted(epsilon: float) -> bool:
        p_value = one_run_p_value(
            epsilon=epsilon, delta=delta, canaries=canaries, guesses=guesses, correct=correct
        )
        return p_value <= risk

    low = 0.0
    if not refuted(low):
        return 0.0
    while low < _LARGEST and refuted(low + _STEP):
        low += _STEP
    high = low + _STEP
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


class Rates(NamedTuple):
    """Bounds on how often a test says yes: from below in one world, from above in the other."""

    low: float
    high: float


def matched_weights(spread: F64, shift: F64) -> F64:
    """The weights that tell two means ``shift`` apart the best: the covariance's inverse times it.

    Shapes: spread (k, k), shift (..., k). Directions without noise get a very large weight.
    """
    values, vectors = np.linalg.eigh(spread)
    floor = (_STEADY * max(float(np.abs(shift).max()), 1e-300)) ** 2
    return np.asarray((shift @ vectors / (values.clip(min=0.0) + floor)) @ vectors.T)


def covariance(*groups: F64) -> F64:
    """The covariance within groups, each of shape (n, k)."""
    centred = np.concatenate([group - group.mean(axis=0) for group in groups])
    return np.asarray(centred.T @ centred / len(centred))


def linear_statistic(tuning: Samples, testing: Samples, shift: F64) -> tuple[Samples, Samples]:
    """The best linear statistic of what is shown, of shape (trials, k), for both parts."""
    weights = matched_weights(covariance(*tuning), shift)
    first, second = (Samples(*(group @ weights for group in part)) for part in (tuning, testing))
    return first, second


def median_rates(tuning: Samples, testing: Samples, *, risk: float) -> Rates:
    """Rates above the median of the first part, counted on the second. Shapes: (trials,) each."""
    median = np.median(np.concatenate(tuning))
    hits = [int(_above(group, median)) for group in testing]
    return rate_bounds(hits, [len(group) for group in testing], risk=risk)


def threshold_rates(tuning: Samples, testing: Samples, *, risk: float, score: Score) -> Rates:
    """Rates above the threshold that does best on the first part, counted on the second.

    Shapes: (trials,) each. Larger numbers speak for the first world.
    """
    shares = np.arange(1, _THRESHOLDS + 1) / (_THRESHOLDS + 1)
    thresholds = np.unique(np.quantile(np.concatenate(tuning), shares))
    expected = [
        _above(first, thresholds) * (len(second) / len(first))
        for first, second in zip(tuning, testing, strict=True)
    ]
    sizes = (len(testing.one), len(testing.other))
    best = thresholds[np.argmax(_scored(expected, sizes, risk, score))]
    return rate_bounds([int(_above(group, best)) for group in testing], sizes, risk=risk)


def rate_bounds(hits: Sequence[int], trials: Sequence[int], *, risk: float) -> Rates:
    """Bounds on both rates; together they are wrong with probability ``risk`` at most."""
    return Rates(
        float(lower_rate(hits[0], trials[0], risk / 2)),
        float(upper_rate(hits[1], trials[1], risk / 2)),
    )


def trace_rates(one: Sequence[str], other: Sequence[str], *, risk: float) -> Rates:
    """How often a trace is one that speaks for the first world, in each.

    Which traces do is found out on the fifth of the trials that is set apart.
    """
    tuned = max(1, len(one) // 5)
    speaks = set(Counter(one[:tuned]) - Counter(other[:tuned]))
    hits = [sum(trace in speaks for trace in world[tuned:]) for world in (one, other)]
    return rate_bounds(hits, [len(one) - tuned, len(other) - tuned], risk=risk)


def _above(values: F64, thresholds: F64 | np.float64) -> F64:
    return np.asarray(
        len(values) - np.searchsorted(np.sort(values), thresholds, side="right"), float
    )


def _scored(hits: Sequence[F64], trials: Sequence[int], risk: float, score: Score) -> F64:
    """What is to be expected of tests with so many hits."""
    low = lower_rate(np.round(hits[0]), trials[0], risk / 2)
    high = upper_rate(np.round(hits[1]), trials[1], risk / 2)
    return score(low, high)


class BinaryScales(NamedTuple):
    """The scale of floating-point numbers and of their lowest bit, as powers of two."""

    size: I64
    lowest: I64


def binary_scales(values: F64) -> BinaryScales:
    """How large numbers are, and the largest power of two that each is a whole multiple of.

    Zero is as small as can be, and a multiple of everything.
    """
    mantissa, exponent = np.frexp(values)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = exponent - 53 + np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)
    size = np.where(whole == 0, -_WIDEST, exponent.astype(np.int64))
    lowest = np.where(whole == 0, _WIDEST, lowest)
    return BinaryScales(size.clip(-_WIDEST, _WIDEST), lowest.clip(-_WIDEST, _WIDEST))


def low_bits_rates(tuning: Samples, testing: Samples, *, risk: float, score: Score) -> Rates:
    """Rates of "small, and with low bits" for the entry and the limits that do best.

    Shapes: (trials, k) each. All entries, all limits on the size and on the lowest bit, and both
    directions are tried on the first part; the counts come from the second.
    """
    sizes = [len(group) for group in testing]
    expected = [
        _bit_counts(first) * (size / len(first)) for first, size in zip(tuning, sizes, strict=True)
    ]
    scored = np.array(
        [
            _scored(
                [expected[more], expected[1 - more]], [sizes[more], sizes[1 - more]], risk, score
            )
            for more in (0, 1)
        ]
    )
    more, *place = (int(at) for at in np.unravel_index(np.argmax(scored), scored.shape))
    hits = [int(_bit_counts(group)[tuple(place)]) for group in testing]
    return rate_bounds([hits[more], hits[1 - more]], [sizes[more], sizes[1 - more]], risk=risk)


def _bit_counts(values: F64) -> F64:
    """How many trials have at most this size and at most this lowest bit, for each entry."""
    side = 2 * _WIDEST + 1
    tables = np.zeros((values.shape[1], side, side), np.int64)
    for entry in range(values.shape[1]):
        found = binary_scales(values[:, entry])
        np.add.at(tables[entry], (found.size + _WIDEST, found.lowest + _WIDEST), 1)
    return np.asarray(tables.cumsum(axis=1).cumsum(axis=2), float)


def coin_guesses(shown: F64, coins: Flags, difference: F64, counts: F64) -> tuple[int, int]:
    """How many secret coins are guessed from what was released, and how many guesses are right.

    The weights come from all that was released and from nothing else, so the guesses are a
    function of it. Shapes: shown (runs, 1 + J, p), coins (runs, J), difference (p,), by which a
    coin moves a release in which it counts one, counts (1 + J, J), what it counts in each.
    """
    runs, count = coins.shape
    seen = shown.reshape(runs, -1)
    shifts = np.einsum("ij,k->jik", counts, difference).reshape(count, -1)
    weights = matched_weights(covariance(seen), shifts)
    leaning = ((seen - seen.mean(axis=0)) @ weights.T).ravel()
    guesses = min(leaning.size, max(_FEWEST_GUESSES, round(_SHARE * leaning.size)))
    surest = np.argsort(-np.abs(leaning), kind="stable")[:guesses]
    right = (leaning[surest] > 0) == coins.ravel()[surest]
    return guesses, int(right.sum())
