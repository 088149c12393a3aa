"""Claims and verdicts: what was stated, what was measured, whether the one bears out the other.

An interval covers the truth with probability 95 %, as far as its assumptions go; a verdict needs
all of it on one side. It knows statistics and nothing of bandits.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from discreet.report._numbers import grouped

F64 = NDArray[np.float64]
CONFIDENCE = 0.95


class Verdict(StrEnum):
    """What the measurement says of a statement."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided at this scale"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate and a 95 % confidence interval; infinite where there is too little to go by."""

    estimate: float
    low: float
    high: float

    def verdict(self, *, least: float = -math.inf, most: float = math.inf) -> Verdict:
        """Whether the quantity lies within a range, judged by the whole interval."""
        if least <= self.low and self.high <= most:
            return Verdict.HOLDS
        if self.high < least or most < self.low:
            return Verdict.FAILS
        return Verdict.OPEN

    def exponential(self) -> "Interval":
        """Of the quantity whose logarithm this is."""
        return Interval(
            estimate=math.exp(self.estimate), low=math.exp(self.low), high=math.exp(self.high)
        )

    def text(self, *, digits: int = 3) -> str:
        """As in: 1.94 (1.85 to 2.03)."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{grouped(self.estimate, digits=digits)} (no interval: too few runs to tell)"
        ends = f"{grouped(self.low, digits=digits)} to {grouped(self.high, digits=digits)}"
        return f"{grouped(self.estimate, digits=digits)} ({ends})"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement and its fate.

    Attributes:
        name: short, for references.
        statement: what is claimed.
        source: where, by the paper's label.
        measured: our figure, with its uncertainty.
        published: the authors' figure; empty if they give none.
        verdict: whether it holds.
        rule: how that was decided.
    """

    name: str
    statement: str
    source: str
    measured: str
    published: str
    verdict: Verdict
    rule: str

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data."""
        return {**asdict(self), "verdict": self.verdict.value}


def all_of(*verdicts: Verdict) -> Verdict:
    """Holds if all hold, fails if one fails."""
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.OPEN if Verdict.OPEN in verdicts else Verdict.HOLDS


def only_if(enough: bool, verdict: Verdict) -> Verdict:  # noqa: FBT001  # reads as a sentence
    """The verdict, if what was run is enough to give one."""
    return verdict if enough else Verdict.OPEN


def _stderr(values: F64) -> float:
    """The standard error of a mean, by the values' own scatter."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def mean_interval(values: F64) -> Interval:
    """Student's t interval for a mean, one value per seed."""
    stderr = math.nan if len(values) == 1 else _stderr(values)
    return t_interval(float(values.mean()), stderr, len(values) - 1)


def ratio_interval(values: F64, baseline: F64) -> Interval:
    """For the ratio of two means over the same seeds: Fieller's, infinite where there is none.

    It holds the ratios r for which a paired Student's t test does not tell the mean of values - r
    baseline from 0. Where the baseline's mean is many standard errors from 0 that is the delta
    method's interval. Where it is not told from 0 itself, no large r can be excluded, and the
    interval is infinite. Fieller, "Some problems in interval estimation", 1954.
    """
    base = float(baseline.mean())
    ratio = float(values.mean()) / base if base else math.nan
    unbounded = Interval(estimate=ratio, low=-math.inf, high=math.inf)
    if len(values) == 1 or not base:
        return unbounded
    # With r = ratio + shift: (shift base)^2 <= the variance of mean(off) - shift mean(baseline).
    off = values - ratio * baseline
    square = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) ** 2
    spread = square * np.cov(off, baseline) / len(values)
    left = base**2 - float(spread[1, 1])
    if left <= 0.0:
        return unbounded
    middle = -float(spread[0, 1]) / left
    reach = math.hypot(middle, math.sqrt(float(spread[0, 0]) / left))
    return Interval(estimate=ratio, low=ratio + middle - reach, high=ratio + middle + reach)


def t_interval(estimate: float, stderr: float, freedom: float) -> Interval:
    """Student's t interval; infinite if the standard error is unknown."""
    if freedom < 1 or math.isnan(stderr):
        return Interval(estimate=estimate, low=-math.inf, high=math.inf)
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * stderr
    return Interval(estimate=estimate, low=estimate - reach, high=estimate + reach)


@dataclass(frozen=True, kw_only=True)
class LogMeans:
    """Logarithms of means over seeds, of which sums can be judged.

    Attributes:
        logs: shape (N,).
        variances: of the logs, by the delta method, shape (N,); NaN for a single seed.
        freedoms: degrees of freedom behind each variance, shape (N,).
    """

    logs: F64
    variances: F64
    freedoms: F64

    @classmethod
    def of(cls, samples: Sequence[F64]) -> "LogMeans":
        """From samples of positive values, one value per seed; samples are independent."""
        means = np.array([values.mean() for values in samples])
        errors = [math.nan if len(values) == 1 else _stderr(values) for values in samples]
        return cls(
            logs=np.log(means),
            variances=(np.array(errors) / means) ** 2,
            freedoms=np.array([len(values) - 1.0 for values in samples]),
        )

    def combined(self, weights: F64) -> Interval:
        """A weighted sum of the logs; Student's t with Satterthwaite's degrees of freedom."""
        estimate = float(weights @ self.logs)
        parts = weights**2 * self.variances
        if not np.isfinite(parts).all():
            return Interval(estimate=estimate, low=-math.inf, high=math.inf)
        variance = float(parts.sum())
        freedom = variance**2 / float((parts**2 / self.freedoms).sum()) if variance else math.inf
        return t_interval(estimate, math.sqrt(variance), freedom)


@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """The least-squares line through logarithms, y = factor * x ** exponent.

    Every x counts once. Intervals are about this line for these x: they count what other seeds
    would have given, and not that the truth may bend.
    """

    x: F64
    means: LogMeans

    @property
    def exponent(self) -> Interval:
        """The slope of the line through the logarithms."""
        return self.means.combined(self._slope_weights())

    def at(self, x: float) -> Interval:
        """The value that the fitted line has at ``x``."""
        offset = math.log(x) - float(np.log(self.x).mean())
        weights = 1 / len(self.x) + offset * self._slope_weights()
        return self.means.combined(weights).exponential()

    def _slope_weights(self) -> F64:
        around = np.log(self.x) - np.log(self.x).mean()
        return np.asarray(around / (around @ around))
