"""What releases say of rewards and choices, with noise bands. It sees releases, and never a row.

A release holds gram = sum of c x x^T + Z and moment = sum of c x (y - centre) + h, with public
weights c of rows and noise whose law is public. Noise is independent from entry to entry, and
normal up to the steps of its grid. With ``law`` the mechanism's law of one draw:

    deviation of Z off the diagonal   spread * law.scale
    deviation of Z on the diagonal    spread * law.scale * sqrt(2)
    deviation of h                    spread * law.moment_scale

An intercept is the coordinate that is s (the scale of its part of the map) in every row, and an
action's own coordinate is s in its rows and 0 elsewhere. So, without noise,

    gram[i, i] / s^2             = sum of c over the rows that have coordinate i: their number,
    s * moment[i] / gram[i, i]   = their mean reward less the centre.

Both shares and means are ratios N / T of a noisy N and a noisy T. For the true ratio r, N - r T is
noise alone: that of N less r times that of T, with variance var(N) - 2 r cov(N, T) + r^2 var(T). So

    { r : (N - r T)^2 <= z^2 (var(N) - 2 r cov(N, T) + r^2 var(T)) }

is a band for r (Fieller 1954, *Some problems in interval estimation*). It is an interval if T is
more than z of its deviations above 0; otherwise the band is all of the possible range, and there is
no estimate.

How often it holds. If all rows were fixed beforehand, r would be too, N - r T would be normal, and
z = 1.96 would do for 95%. But rows are chosen in view of earlier releases, which share draws with
later ones, so r may depend on the noise of N and T in any way. Draws are fresh and their weights
are public, so the two noises together are normal with the covariance above, whatever the rows
depend on. By Cauchy's inequality the condition holds for *every* r as soon as the two noises are
within z of 0 in the metric of their covariance, which has the probability 1 - exp(-z^2 / 2). So
with z = sqrt(-2 ln(1 - level)), 2.45 for 95%, a band holds the truth with at least this probability
under every policy, and with 98.6% if rows do not depend on the noise.

What the truth is: the share and the mean reward among the rows that were really learned from, with
the weights c. The bands are about the privacy noise alone, not about which people happened to come,
or how an action would do with others. Each holds by itself, not all at once, and those that say
something are a selection: of bands that are not all of the range a few more may miss. Rows of zeros
(not activated, erased, or beyond a person's cap) are in neither N nor T.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtri

from discreet import _checks as checks
from discreet.features import FeatureMap
from discreet.release import Release
from discreet.service.dashboard._layout import Layout, layout

__all__ = ["ActionBand", "Band", "Coordinate", "Layout", "Point", "coordinates", "layout", "read"]

_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Band:
    """An estimate and the ends of its noise band.

    Attributes:
        estimate: None where noise hides everything.
        low: the lower end.
        high: the upper end.
    """

    estimate: float | None
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ActionBand:
    """What is known of one action, or of one value of a category.

    Attributes:
        name: the action's id, or the value.
        share: the share of rows that have it.
        mean: their mean reward; None if it cannot be known.
    """

    name: str
    share: Band
    mean: Band | None


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one release says.

    Attributes:
        number: of the release.
        rows: how many rows are in it.
        mean: the mean reward; None if the map has no coordinate that tells it.
        actions: one for each action of the layout.
    """

    number: int
    rows: int
    mean: Band | None
    actions: tuple[ActionBand, ...]


@dataclass(frozen=True, kw_only=True)
class Coordinate:
    """What a release says of one entry of the parameter, by the model of docs/estimate.md.

    Attributes:
        name: of the coordinate.
        estimate: the posterior's mean.
        deviation: the posterior's standard deviation.
        low: the lower end of the Bayesian interval.
        high: its upper end.
        known: how much of the variance before any release is gone, from 0 to 1.
    """

    name: str
    estimate: float
    deviation: float
    low: float
    high: float
    known: float


def read(release: Release, where: Layout, *, level: float = _LEVEL) -> Point:
    """The mean reward, and each action's share and mean reward, with noise bands.

    Args:
        release: any release but the empty one before the first.
        where: the coordinates that tell, of the learner's own map.
        level: the probability with which a band holds the truth, at least.

    Returns:
        What it says.

    Raises:
        ParameterError: the law of the noise is another one, or nobody knows it.
    """
    sums = _Sums(release, math.sqrt(-2.0 * math.log1p(-checks.probability("level", level))))
    mean = sums.mean(where.everybody, where.everybody_scale) if where.everybody else None
    actions = tuple(
        ActionBand(
            name=name,
            share=sums.share(place, where),
            mean=sums.mean((place,), where.places_scale) if where.means else None,
        )
        for name, place in zip(where.names, where.places, strict=True)
    )
    return Point(number=release.number, rows=release.rows, mean=mean, actions=actions)


def coordinates(
    release: Release, features: FeatureMap, *, level: float = _LEVEL
) -> list[Coordinate]:
    """Each entry of the parameter with a Bayesian interval, with the prior as it is stated.

    Args:
        release: any release.
        features: the learner's own map, which names the coordinates.
        level: the probability that the posterior gives an interval.
    """
    reach = float(-ndtri((1 - checks.probability("level", level)) / 2))
    posterior = release.cautious
    variances = posterior.covariance.diagonal()
    found = []
    for name, centre, variance in zip(features.names, posterior.centre, variances, strict=True):
        deviation = math.sqrt(variance)
        found.append(
            Coordinate(
                name=name,
                estimate=float(centre),
                deviation=deviation,
                low=float(centre) - reach * deviation,
                high=float(centre) + reach * deviation,
                known=min(1.0, max(0.0, 1.0 - float(variance) / posterior.prior)),
            )
        )
    return found


class _Sums:
    """A release's sums, with the variances of their noise."""

    def __init__(self, release: Release, reach: float) -> None:
        """Look up the law of the noise; ParameterError if it is not normal."""
        mechanism = release.mechanism
        _ = mechanism.posterior_terms  # refuses noise of another law
        self._counts = release.gram.diagonal() - mechanism.shift
        self._moment = release.moment
        self._counts_variance = 2.0 * (release.spread * mechanism.law.scale) ** 2
        self._moment_variance = (release.spread * mechanism.law.moment_scale) ** 2
        self._reach = reach
        problem = mechanism.setting.problem
        self._centre, self._bound = problem.reward_centre, problem.reward_bound

    def mean(self, places: tuple[int, ...], scale: float) -> Band:
        """The mean reward of rows that have one of these coordinates."""
        found = ratio(
            scale * float(self._moment[list(places)].sum()),
            float(self._counts[list(places)].sum()),
            variances=(
                scale**2 * len(places) * self._moment_variance,
                len(places) * self._counts_variance,
            ),
            covariance=0.0,
            reach=self._reach,
            within=(-self._bound, self._bound),
        )
        middle = None if found.estimate is None else self._centre + found.estimate
        return Band(estimate=middle, low=self._centre + found.low, high=self._centre + found.high)

    def share(self, place: int, where: Layout) -> Band:
        """The share of rows that have this coordinate.

        A count is gram[i, i] / scale^2. All rows are counted by the intercept, whose noise is then
        another one, or else as the sum of all names' counts, which has this one's noise in it.
        """
        totals, scale = where.everybody, where.everybody_scale
        if not totals:
            totals, scale = where.places, where.places_scale
        one = self._counts_variance / where.places_scale**4
        return ratio(
            float(self._counts[place]) / where.places_scale**2,
            float(self._counts[list(totals)].sum()) / scale**2,
            variances=(one, len(totals) * self._counts_variance / scale**4),
            covariance=one if place in totals else 0.0,
            reach=self._reach,
            within=(0.0, 1.0),
        )


def ratio(
    top: float,
    bottom: float,
    *,
    variances: tuple[float, float],
    covariance: float,
    reach: float,
    within: tuple[float, float],
) -> Band:
    """The ratio of two means of normal variables, with Fieller's interval inside a known range.

    Args:
        top: the first variable.
        bottom: the second.
        variances: of both.
        covariance: of both.
        reach: how many deviations N - r T may be off.
        within: the range that the ratio is known to be in.
    """
    low, high = within
    square = reach**2
    lead = bottom**2 - square * variances[1]
    if bottom <= 0.0 or lead <= 0.0:
        return Band(estimate=None, low=low, high=high)
    half = top * bottom - square * covariance
    rest = top**2 - square * variances[0]
    root = math.sqrt(max(0.0, half**2 - lead * rest))

    def clipped(value: float) -> float:
        return min(high, max(low, value))

    return Band(
        estimate=clipped(top / bottom),
        low=clipped((half - root) / lead),
        high=clipped((half + root) / lead),
    )
