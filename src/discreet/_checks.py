"""Small checks of single settings, shared by everything that takes one."""

import math
from collections.abc import Sequence
from numbers import Integral, Real

from discreet.errors import ParameterError

SMALLEST, LARGEST = 1e-50, 1e50


def positive(parameter: str, value: object) -> float:
    """A finite number above zero."""
    number = _real(parameter, value)
    if not number > 0.0:
        raise ParameterError(parameter, f"is {number:g}; give a number above 0")
    return number


def magnitude(parameter: str, value: object) -> float:
    """A positive number whose square and fourth power stay well inside floating point."""
    return within(parameter, positive(parameter, value), SMALLEST, LARGEST)


def within(parameter: str, number: float, least: float, most: float) -> float:
    """A number in a range: the only one that makes sense, or in which formulas can be computed."""
    if not least <= number <= most:
        raise ParameterError(
            parameter, f"is {shown(number)}; give a number from {least:g} to {most:g}"
        )
    return number


def shown(number: float) -> str:
    """A number for a message, also a whole number beyond floating point."""
    try:
        return f"{number:g}"
    except OverflowError:
        return "beyond floating point"


def at_least(parameter: str, value: object, least: float) -> float:
    """A finite number no smaller than ``least``."""
    number = _real(parameter, value)
    if not number >= least:
        raise ParameterError(parameter, f"is {number:g}; give a number of at least {least:g}")
    return number


def probability(parameter: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = _real(parameter, value)
    if not 0.0 < number < 1.0:
        raise ParameterError(
            parameter, f"is {number:g}; give a probability strictly between 0 and 1"
        )
    return number


def finite(parameter: str, value: object) -> float:
    """Any finite number."""
    return _real(parameter, value)


def count(parameter: str, value: object, least: int = 1) -> int:
    """A whole number of at least ``least``; 5e7 is fine, 2.5 and True are not."""
    whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, bool) or not whole:
        raise ParameterError(parameter, f"is {value!r}; give a whole number")
    number = int(value)  # type: ignore[call-overload]  # whole is checked above
    if number < least:
        raise ParameterError(parameter, f"is {number}; give a whole number of at least {least}")
    return int(number)


def _real(parameter: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(parameter, f"is {value!r}; give a number")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond floating point
        number = math.inf
    if not math.isfinite(number):
        raise ParameterError(parameter, f"is {number}; give a finite number")
    return number


def one_of(parameter: str, value: str, choices: Sequence[str]) -> str:
    """One of a few names."""
    if value not in choices:
        raise ParameterError(parameter, f"is {value!r}; give one of {', '.join(choices)}")
    return value
