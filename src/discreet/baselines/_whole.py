"""Changes that happen as a whole or not at all, whatever interrupts them.

A signal may raise an exception at any instruction of Python code. So a change is made to a copy,
and the copy takes the place of the original in one assignment, which is the last step.
"""

from typing import TypeVar

import numpy as np

T = TypeVar("T")


def copied(thing: T) -> T:
    """A copy of an object with arrays of its own, also those in named tuples; all else is shared.

    Args:
        thing: an object whose state is arrays and values that do not change.

    Returns:
        The copy. What is done to its arrays and attributes does not show in ``thing``.
    """
    found = object.__new__(type(thing))
    found.__dict__.update({name: _own(value) for name, value in vars(thing).items()})
    return found


def _own(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(_own(part) for part in value)
    return value
