"""Bisection to the last bit for conditions that turn once, and rounding up."""

import math
from collections.abc import Callable

ROUNDING = 1e-14
"""What covers a few rounded operations, each wrong by at most 1.2e-16 of its result."""


def upwards(number: float) -> float:
    """A little more than a positive result of a few rounded operations.

    Args:
        number: the result, at least 0.

    Returns:
        A number above the exact result, larger than ``number`` by about 1e-14 of it.
    """
    return math.nextafter(number * (1 + ROUNDING), math.inf)


def last_true(holds: Callable[[float], bool]) -> float:
    """The largest number that passes, for a condition that holds below some positive number.

    The number that is returned has been tried and has passed. Its successor has failed, unless
    rounding makes the condition flicker around its turning point.
    """
    low, high = 1.0, 2.0
    while holds(high):
        low, high = high, 2 * high
    while not holds(low):
        low, high = low / 2, low
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def first_true(holds: Callable[[float], bool]) -> float:
    """The smallest number that passes, for a condition that holds above some positive number.

    The number that is returned has been tried and has passed.
    """
    return math.nextafter(last_true(lambda number: not holds(number)), math.inf)
