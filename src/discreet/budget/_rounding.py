"""Sums, differences and digits, rounded so that a budget is never overspent."""

import math
from collections.abc import Callable
from fractions import Fraction

from discreet import _checks as checks
from discreet import accounting
from discreet.privacy import Privacy

LEAST_EPSILON, LEAST_DELTA = 1e-6, 1e-100  # of any target


def largest_epsilon(mu: float, delta: float) -> float | None:
    """The largest epsilon whose targets take at most this mu, rounded down; None without one."""
    if mu < checks.SMALLEST:
        return None
    epsilon = accounting.gaussian_epsilon(delta=delta, mu=mu)
    margin = 1e-14
    while epsilon >= LEAST_EPSILON:
        if accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta)) <= mu:
            return epsilon
        epsilon *= 1 - margin
        margin = min(0.5, 4 * margin)
    return None


def first_true(holds: Callable[[float], bool], most: float) -> float:
    """The smallest number up to ``most`` that passes, for a condition that holds from some on."""
    low, high = 0.0, most
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def less(total: float, part: float) -> float:
    """A difference, rounded down."""
    return downwards(Fraction(total) - Fraction(part))


def downwards(exact: Fraction) -> float:
    """The largest floating-point number that is not above."""
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def upwards(exact: Fraction) -> float:
    """The smallest floating-point number that is not below."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def floored(number: float) -> str:
    """Four digits, never more than the number."""
    return _digits(number, -1)


def ceiled(number: float) -> str:
    """Four digits, never less than the number."""
    return _digits(number, 1)


def _digits(number: float, direction: int) -> str:
    text = f"{number:.4g}"
    if number > 0 and (float(text) - number) * direction < 0:
        step = 10.0 ** (math.floor(math.log10(number)) - 3)
        text = f"{number + direction * step / 2:.4g}"
    return text
