"""Tests that tell two worlds apart: a number for each trial, and a threshold.

Both are chosen on the part of the trials that is set apart for that; counts come from the rest.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.audit import _bounds as bounds
from discreet.audit._trials import Part

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_THRESHOLDS = 63  # quantiles that are tried
_STEADY = 1e-5  # noise below this share of the signal is taken to be as large as that
_WIDEST = 80  # powers of two that are told apart, on both sides of 1

Score = Callable[[F64, F64], F64]
"""From a lower and an upper bound on two rates to what is to be large."""


class Rates(NamedTuple):
    """Bounds on how often a test says yes: from below in one world, from above in the other."""

    low: float
    high: float


def matched(spread: F64, shift: F64) -> F64:
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


def linear(tuning: Part, testing: Part, shift: F64) -> tuple[Part, Part]:
    """The best linear statistic of what is shown, of shape (trials, k), for both parts."""
    weights = matched(covariance(*tuning), shift)
    first, second = (Part(*(group @ weights for group in part)) for part in (tuning, testing))
    return first, second


def middle(tuning: Part, testing: Part, *, risk: float) -> Rates:
    """Rates above the median of the first part, counted on the second. Shapes: (trials,) each."""
    median = np.median(np.concatenate(tuning))
    hits = [int(_above(group, median)) for group in testing]
    return counted(hits, [len(group) for group in testing], risk=risk)


def cut(tuning: Part, testing: Part, *, risk: float, score: Score) -> Rates:
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
    return counted([int(_above(group, best)) for group in testing], sizes, risk=risk)


def counted(hits: Sequence[int], trials: Sequence[int], *, risk: float) -> Rates:
    """Bounds on both rates; together they are wrong with probability ``risk`` at most."""
    return Rates(
        float(bounds.lower_rate(hits[0], trials[0], risk / 2)),
        float(bounds.upper_rate(hits[1], trials[1], risk / 2)),
    )


def _above(values: F64, thresholds: F64 | np.float64) -> F64:
    return np.asarray(
        len(values) - np.searchsorted(np.sort(values), thresholds, side="right"), float
    )


def _scored(hits: Sequence[F64], trials: Sequence[int], risk: float, score: Score) -> F64:
    """What is to be expected of tests with so many hits."""
    low = bounds.lower_rate(np.round(hits[0]), trials[0], risk / 2)
    high = bounds.upper_rate(np.round(hits[1]), trials[1], risk / 2)
    return score(low, high)


class Bits(NamedTuple):
    """The scale of floating-point numbers and of their lowest bit, as powers of two."""

    size: I64
    lowest: I64


def bits(values: F64) -> Bits:
    """How large numbers are, and the largest power of two that each is a whole multiple of.

    Zero is as small as can be, and a multiple of everything.
    """
    mantissa, exponent = np.frexp(values)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = exponent - 53 + np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)
    size = np.where(whole == 0, -_WIDEST, exponent.astype(np.int64))
    lowest = np.where(whole == 0, _WIDEST, lowest)
    return Bits(size.clip(-_WIDEST, _WIDEST), lowest.clip(-_WIDEST, _WIDEST))


def low_bits(tuning: Part, testing: Part, *, risk: float, score: Score) -> Rates:
    """Rates of "small, and with low bits" for the entry and the limits that do best.

    Shapes: (trials, k) each. All entries, all limits on the size and on the lowest bit, and both
    directions are tried on the first part; the counts come from the second.
    """
    sizes = [len(group) for group in testing]
    expected = [
        _table(first) * (size / len(first)) for first, size in zip(tuning, sizes, strict=True)
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
    hits = [int(_table(group)[tuple(place)]) for group in testing]
    return counted([hits[more], hits[1 - more]], [sizes[more], sizes[1 - more]], risk=risk)


def _table(values: F64) -> F64:
    """How many trials have at most this size and at most this lowest bit, for each entry."""
    side = 2 * _WIDEST + 1
    tables = np.zeros((values.shape[1], side, side), np.int64)
    for entry in range(values.shape[1]):
        found = bits(values[:, entry])
        np.add.at(tables[entry], (found.size + _WIDEST, found.lowest + _WIDEST), 1)
    return np.asarray(tables.cumsum(axis=1).cumsum(axis=2), float)
