"""Confidence intervals from means, variances and noise of known size. No data comes here.

Derivations: docs/evaluation.md.
"""

import math

from scipy.special import ndtri, stdtrit

Interval = tuple[float, float]


def normal_quantile(level: float) -> float:
    """How many standard deviations a two-sided normal interval reaches."""
    return float(-ndtri((1 - level) / 2))


def student_quantile(level: float, freedom: int) -> float:
    """The same with Student's distribution; ``freedom`` is one less than the number of units."""
    return float(-stdtrit(freedom, (1 - level) / 2))


def bernstein_lower(*, mean: float, variance: float, width: float, rows: int, risk: float) -> float:
    """A number below the mean of a law on 0 ... ``width``, but for a chance of ``risk``.

    mean - sqrt(2 V ln(2/risk)/n) - 7 width ln(2/risk)/(3 (n - 1)), with the empirical mean and
    the empirical variance V (Maurer & Pontil 2009, theorem 4). For any number n of independent
    rows from 2 on.
    """
    tail = math.log(2 / risk)
    return mean - math.sqrt(2 * variance * tail / rows) - 7 * width * tail / (3 * (rows - 1))


def ratio_set(
    *, top: float, bottom: float, variance: tuple[float, float, float], reach: float
) -> Interval:
    """The ratios y in -1 ... 1 that fit a noisy numerator and denominator (Fieller 1954).

    All y with (top - y bottom)^2 <= reach^2 (a + b y + c y^2), for ``variance`` (a, b, c), the
    variance of top - y bottom if y is the true ratio. Where this is not an interval, because the
    denominator could be zero, the smallest interval that holds it is returned; (1, -1) if nothing
    fits.
    """
    constant, slope, square = variance
    two = bottom * bottom - reach * reach * square
    one = -2 * top * bottom - reach * reach * slope
    none = top * top - reach * reach * constant

    def fits(ratio: float) -> bool:
        return two * ratio * ratio + one * ratio + none <= 0.0

    ends = [end for end in (-1.0, 1.0) if fits(end)]
    inside = one * one - 4 * two * none
    if inside >= 0.0:
        # The larger root in absolute value first; the other from the product of both.
        half = -(one + math.copysign(math.sqrt(inside), one)) / 2
        roots = [half / two] if two else []
        roots += [none / half] if half else []
        ends += [root for root in roots if -1.0 < root < 1.0]
    return (min(ends), max(ends)) if ends else (1.0, -1.0)


def within(interval: Interval, *, low: float, high: float) -> Interval:
    """The nearest interval inside the range: what is known to lie there stays covered."""
    return min(max(interval[0], low), high), min(max(interval[1], low), high)
