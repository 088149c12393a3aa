"""Single values as they are found in records: as numbers, as text, as bags of tokens.

What cannot be read becomes a flag, never an error and never a guess. Nothing here is remembered
between calls: values belong to people.
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

MISSING, UNKNOWN, CLIPPED = 1, 2, 4  # what can happen to a value, as bits of a flag

Flags = NDArray[np.uint8]
Values = NDArray[np.generic] | list[object]

_NUMBERS = "biuf"  # kinds of numpy's types: bool, whole and floating-point numbers
_EXACT = 2.0**53  # whole numbers below this are exact as floats
_DEEPEST = 16  # levels of dictionaries and lists that are looked into
_NUMERIC = {int, float, bool, type(None)}
_SINGLE = {str, *_NUMERIC}  # equal values of one of these types have equal texts


def plain(value: object) -> object:
    """What numpy holds as Python holds it: numbers, text and lists. Dates stay what they are."""
    if type(value) in _SINGLE:
        return value
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufOUT":
        if value.dtype.kind == "f":
            value = value.astype(np.float64)
        return value.tolist()
    return value


def is_missing(value: object) -> bool:
    """Whether this says that there is nothing: None, NaN, infinity, a frame's own mark for it."""
    if isinstance(value, float):
        return not math.isfinite(value)
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def number(value: object) -> tuple[float, int]:
    """A finite number and no flag, or 0 and the flag that says why not."""
    value = plain(value)
    if is_missing(value):
        return 0.0, MISSING
    if isinstance(value, np.generic) or not isinstance(value, Real):  # numpy's dates are Real
        return 0.0, UNKNOWN
    try:
        return float(value), 0
    except OverflowError:  # a whole number beyond floating point, as good as infinity
        return 0.0, MISSING


def numbers(values: Values) -> tuple[NDArray[np.float64], Flags]:
    """`number` of each of them, shape (m,)."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in _NUMBERS:
        found = values.astype(np.float64)
        flags = np.where(np.isfinite(found), 0, MISSING).astype(np.uint8)
        return np.where(flags == 0, found, 0.0), flags
    if set(map(type, values)) <= _NUMERIC:
        try:
            return numbers(np.array(values, dtype=np.float64))  # None becomes NaN
        except OverflowError:
            pass
    pairs = [number(value) for value in values]
    return (
        np.array([value for value, _ in pairs], dtype=np.float64),
        np.array([flag for _, flag in pairs], dtype=np.uint8),
    )


def vectors(values: Values, dim: int) -> tuple[NDArray[np.float64], Flags]:
    """Each as ``dim`` numbers, shape (m, dim); zeros with a flag where it is not that."""
    if isinstance(values, np.ndarray) and values.ndim > 1 and values.dtype.kind in _NUMBERS:
        if values.shape[1:] != (dim,):
            return np.zeros((len(values), dim)), np.full(len(values), UNKNOWN, np.uint8)
        found = values.astype(np.float64)
        flags = np.where(np.isfinite(found).all(axis=1), 0, MISSING).astype(np.uint8)
    else:
        found = np.zeros((len(values), dim))
        flags = np.zeros(len(values), np.uint8)
        for i, value in enumerate(values):
            flags[i] = _vector(value, found[i])
    found[flags != 0] = 0.0
    return found, flags


def _vector(value: object, out: NDArray[np.float64]) -> int:
    value = plain(value)
    if is_missing(value):
        return MISSING
    if not isinstance(value, list | tuple) or len(value) != out.size:
        return UNKNOWN
    found, flags = numbers(list(value))
    out[:] = found
    return UNKNOWN if (flags & UNKNOWN).any() else int(flags.max())


def text(value: object, digits: int | None = None) -> str | None:
    """How a single value is spelled; None if it is not one, or says that there is nothing.

    Equal numbers are spelled the same, 3 and 3.0 too. True is ``true``, as in JSON.

    Args:
        value: What was found.
        digits: How many significant binary digits of a number count; all if None.
    """
    if type(value) is float:  # the commonest first; what is below comes to the same
        return _spelled(value, digits) if math.isfinite(value) else None
    value = plain(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    found, flag = number(value)
    if flag:
        return None
    if isinstance(value, Integral):
        whole = int(value)
        if digits is None or whole.bit_length() <= digits:
            return str(whole)
    return _spelled(found, digits)


def _spelled(value: float, digits: int | None) -> str:
    if digits is not None:
        mantissa, exponent = math.frexp(value)
        value = math.ldexp(math.trunc(math.ldexp(mantissa, digits)), exponent - digits)
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def tokens(value: object, digits: int | None, name: str = "") -> tuple[list[str], int]:
    """The tokens of a value, and a flag.

    A single value is one token, its text. A list or a set has those of its values. A dictionary
    has a token ``name=text`` for each value in it, with dots between the names of nested ones.

    Args:
        value: What was found.
        digits: How many significant binary digits of a number count; all if None.
        name: The name in front of what is found.

    Returns:
        The tokens, and UNKNOWN if something was neither of these, MISSING if there is nothing.
    """
    found: list[str] = []
    strange = _collect(value, digits, name, found, _DEEPEST)
    return found, UNKNOWN if strange else 0 if found else MISSING


def _collect(value: object, digits: int | None, name: str, found: list[str], depth: int) -> bool:
    """Add the tokens of a value to ``found``; whether something in it could not be read."""
    spelled = value if type(value) is str else None
    if spelled is None and type(value) is not dict:
        value = plain(value)
        if is_missing(value):
            return False
        spelled = text(value, digits)
    if spelled is not None:
        found.append(f"{name}={spelled}" if name else spelled)
        return False
    if not depth:
        return True
    strange = False
    if isinstance(value, Mapping):
        for key, one in value.items():
            if isinstance(key, str):
                inner = f"{name}.{key}" if name else key
                strange |= _collect(one, digits, inner, found, depth - 1)
            else:
                strange = True
    elif isinstance(value, Sequence | AbstractSet) and not isinstance(value, bytes | bytearray):
        for one in value:
            strange |= _collect(one, digits, name, found, depth - 1)
    else:
        strange = True
    return strange


def find(record: object, path: str) -> object:
    """What is in nested dictionaries at a dotted path, or None.

    A key may have dots itself: the whole rest of a path is tried as a key first.
    """
    while isinstance(record, Mapping):
        if path in record:
            return record[path]
        head, dot, path = path.partition(".")
        if not dot or head not in record:
            break
        record = record[head]
    return None


def factor(values: Values, digits: int | None = None) -> tuple[list[object], NDArray[np.int64]]:
    """Values that stand for all of them, and for each which one stands for it, shape (m,).

    Values with the same stand-in have the same text. Where that is not easily known, each stands
    for itself.

    Args:
        values: What was found.
        digits: How many significant binary digits of a number count; all if None.
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in _NUMBERS:
        counted = values
        if digits is not None and values.dtype.kind != "b":
            mantissa, exponent = np.frexp(values.astype(np.float64))
            counted = np.ldexp(np.trunc(np.ldexp(mantissa, digits)), exponent - digits)
        distinct, codes = np.unique(counted, return_inverse=True)
        return distinct.tolist(), codes.astype(np.int64)
    listed = list(values)
    kinds = set(map(type, listed))
    if not kinds <= _SINGLE:
        return listed, np.arange(len(listed))
    keys = listed if len(kinds) == 1 else list(zip(map(type, listed), listed, strict=True))
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    codes = np.fromiter(map(place.__getitem__, keys), np.int64, len(keys))
    return [key if len(kinds) == 1 else key[1] for key in place], codes
