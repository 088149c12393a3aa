"""Arrays as JSON: what stored sums are made of. Nothing is allocated before its size is checked."""

import base64
import binascii
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

F8 = np.dtype("<f8")
DTYPES = {"float64": F8, "int64": np.dtype("<i8")}
_INTEGERS = "integers"  # of any size, in hexadecimal
_INTEGER = re.compile(r"0|-?[1-9a-f][0-9a-f]*")
_MOST_AXES = 8
_LONGEST_AXIS = 2**31


def encode(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: 64-bit numbers in base64, or integers of any size (dtype object)."""
    shape = list(array.shape)
    if array.dtype == object:
        return {"shape": shape, _INTEGERS: [f"{int(number):x}" for number in array.ravel()]}
    kind = array.dtype.name
    data = base64.b64encode(np.ascontiguousarray(array, dtype=DTYPES[kind]).tobytes())
    return {"shape": shape, kind: data.decode("ascii")}


def decode(entry: Any) -> NDArray[Any]:  # noqa: ANN401  # whatever a file holds
    """The array again; ValueError if there is none such, or one that is not finite."""
    if not isinstance(entry, dict) or len(entry) != 2:  # shape and numbers
        raise ValueError("not an array")
    shape = _shape(entry["shape"])
    ((kind, numbers),) = ((name, part) for name, part in entry.items() if name != "shape")
    if kind == _INTEGERS:
        return _integers(numbers, shape)
    data = _from_base64(numbers, 8 * math.prod(shape))
    native = DTYPES[kind].newbyteorder("=")
    array = np.frombuffer(data, dtype=DTYPES[kind]).astype(native).reshape(shape)
    if not np.isfinite(array).all():
        raise ValueError("not finite")
    return array


def _shape(found: object) -> tuple[int, ...]:
    """A shape that an array may have. Sizes are compared before anything is allocated."""
    if not isinstance(found, list) or len(found) > _MOST_AXES:
        raise ValueError("not a shape")
    if not all(type(axis) is int and 0 <= axis < _LONGEST_AXIS for axis in found):
        raise ValueError("not a shape")
    return tuple(found)


def _from_base64(text: object, size: int) -> bytes:
    if not isinstance(text, str) or len(text) != 4 * math.ceil(size / 3):
        raise ValueError("not as many numbers as the shape says")
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if len(data) != size:
        raise ValueError("not as many numbers as the shape says")
    return data


def _integers(texts: object, shape: tuple[int, ...]) -> NDArray[Any]:
    if not isinstance(texts, list) or len(texts) != math.prod(shape):
        raise ValueError("not as many numbers as the shape says")
    if not all(isinstance(text, str) and _INTEGER.fullmatch(text) for text in texts):
        raise ValueError("not integers")
    array = np.empty(len(texts), dtype=object)
    array[:] = [int(text, 16) for text in texts]
    return array.reshape(shape)
