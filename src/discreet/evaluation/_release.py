"""From noisy sums to private values: post-processing. No exact number comes here.

All that enters is what was released, the law of its noise, and what is public. In y = -1 ... 1 the
reward and w the clipped weight, the four noisy means estimate E wy, E w, E w^2 y and E w^2.
Derivations: docs/evaluation.md.
"""

import math
from typing import NamedTuple

from discreet.evaluation import _intervals as intervals
from discreet.evaluation._calibration import Law
from discreet.evaluation._results import PrivateValue
from discreet.privacy import Guarantee

_CAUTION = 2.0  # standard deviations of noise that are added to a noisy variance
_METHODS = {
    "ips": "asymptotic, with privacy noise and a bound on the variance",
    "snips": "asymptotic, Fieller's, with privacy noise and a bound on the variance",
}


class Terms(NamedTuple):
    """What is public about a release, besides the law of its noise.

    Attributes:
        low: no reward is below this.
        high: no reward is above this.
        clip: no weight counts more than this.
        rows: how many rounds there were.
        contributions: how many of them one person may have.
        guarantee: what is promised.
    """

    low: float
    high: float
    clip: float
    rows: int
    contributions: int
    guarantee: Guarantee

    def reward(self, scaled: float) -> float:
        """From -1 ... 1 to the caller's units."""
        scaled = min(max(scaled, -1.0), 1.0)
        return (self.low * (1 - scaled) + self.high * (1 + scaled)) / 2


class _Means(NamedTuple):
    """Noisy means E wy, E w, E w^2 y, E w^2, and the deviations of their noise."""

    value: float
    weight: float
    square_value: float
    square_weight: float
    noise: tuple[float, float, float, float]

    @classmethod
    def of(cls, released: tuple[int, int, int, int], law: Law, terms: Terms) -> "_Means":
        unit = terms.clip / law.steps / terms.rows
        units = (unit, unit, unit * terms.clip, unit * terms.clip)
        value, weight, square_value, square_weight = (
            unit * count for unit, count in zip(units, released, strict=True)
        )
        square_weight = max(square_weight, 0.0)
        square_value = min(max(square_value, -square_weight), square_weight)
        noise = tuple(unit * std for unit, std in zip(units, law.stds, strict=True))
        return cls(value, weight, square_value, square_weight, noise)  # type: ignore[arg-type]  # four of them


def values(
    policy: str, released: tuple[int, int, int, int], law: Law, terms: Terms, level: float
) -> list[PrivateValue]:
    """A policy's value by importance weights, and by self-normalised ones.

    Args:
        policy: its name.
        released: the four noisy sums, in steps.
        law: the law of their noise.
        terms: what is public besides.
        level: of the intervals.

    Returns:
        Both values.
    """
    means = _Means.of(released, law, terms)
    reach = intervals.normal_quantile(level)
    bounds = _bounds(means, terms, reach)
    ratio, deviation = _ratio(means)
    half = (terms.high - terms.low) / 2
    found = []
    for estimator, centre, ends, noise in (
        ("ips", means.value, _plain(means, terms, reach), means.noise[0]),
        ("snips", ratio, _self_normalised(means, terms, reach), deviation),
    ):
        rounding = 2 * terms.clip / law.steps  # of rows, to the grid
        centre_inside = min(max(centre, -1.0), 1.0)
        low = min(ends[0] - rounding, centre_inside)
        high = max(ends[1] + rounding, centre_inside)
        found.append(
            PrivateValue(
                policy=policy,
                estimator=estimator,
                estimate=terms.reward(centre),
                low=terms.reward(low),
                high=terms.reward(high),
                level=level,
                method=_METHODS[estimator],
                bounds=(terms.reward(bounds[0] - rounding), terms.reward(bounds[1] + rounding)),
                noise_std=half * noise,
                mean_weight=means.weight,
                rows=terms.rows,
                clip=terms.clip,
                released=released,
                steps=law.steps,
                guarantee=terms.guarantee,
            )
        )
    return found


def _plain(means: _Means, terms: Terms, reach: float) -> intervals.Interval:
    """E wy. Its variance over rows is at most E w^2, and at most the clip, because E w <= 1."""
    square = min(terms.clip, means.square_weight + _CAUTION * means.noise[3])
    width = reach * math.sqrt(_sampled(square, terms) + means.noise[0] ** 2)
    return means.value - width, means.value + width


def _ratio(means: _Means) -> tuple[float, float]:
    """E wy / E w, 0 where noise leaves no weight, and the deviation of its noise."""
    weight = max(means.weight, means.noise[1])
    ratio = means.value / means.weight if means.weight > 0.0 else 0.0
    ratio = min(max(ratio, -1.0), 1.0)
    return ratio, math.hypot(means.noise[0], ratio * means.noise[1]) / weight


def _self_normalised(means: _Means, terms: Terms, reach: float) -> intervals.Interval:
    """All ratios r that fit, with two bounds on E w^2 (y - r)^2, both true if r is.

    From squares: E w^2 (1 + r^2) - 2 r E w^2 y, since y^2 <= 1. Without: clip (1 - r^2), since
    w <= clip, E w <= 1 and the weighted mean of y is r. A ratio has to fit both.
    """
    value, weight, square_value, square_weight = means[:4]
    caution = 2 * _CAUTION * math.hypot(means.noise[2], means.noise[3])
    noise = (means.noise[0] ** 2, 0.0, means.noise[1] ** 2)
    clip = terms.clip
    ends = []
    for bound in (
        (square_weight + caution, -2 * square_value, square_weight),
        (clip, 0.0, -clip),
    ):
        total = [_sampled(one, terms) + two for one, two in zip(bound, noise, strict=True)]
        ends.append(
            intervals.ratio_set(
                top=value, bottom=weight, variance=(total[0], total[1], total[2]), reach=reach
            )
        )
    return max(end[0] for end in ends), min(end[1] for end in ends)


def _bounds(means: _Means, terms: Terms, reach: float) -> intervals.Interval:
    """Bounds on the policy's own value, whatever clipping hides.

    With s = (1 + y)/2: E ws <= value <= 1 - E w(1 - s), and E w^2 s^2 <= E w^2 s.
    """
    value, weight, square_value, square_weight = means[:4]
    caution = _CAUTION * math.hypot(means.noise[2], means.noise[3]) / 2
    noise = (means.noise[0] ** 2 + means.noise[1] ** 2) / 4
    sides = []
    for sign in (1.0, -1.0):
        square = min(terms.clip, (square_weight + sign * square_value) / 2 + caution)
        width = reach * math.sqrt(_sampled(square, terms) + noise)
        sides.append((weight + sign * value) / 2 - width)
    low, high = sides[0], 1.0 - sides[1]
    if low > high:  # possible by bad luck only, or if propensities are wrong
        low = high = (low + high) / 2
    return intervals.within((2 * low - 1, 2 * high - 1), low=-1.0, high=1.0)


def _sampled(square: float, terms: Terms) -> float:
    """The variance of a mean over rows: m E x^2 / n, if people have up to m rows each."""
    return terms.contributions * square / terms.rows
