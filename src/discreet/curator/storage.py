"""Snapshots: one JSON object, versioned, with a digest.

The format is open: a ``body`` of plain JSON, and the SHA-256 of that body written with sorted keys
and no spaces. An array is its shape and its numbers: as little-endian 64-bit floats or integers in
base64, or, where integers may be of any size, as a list of hexadecimal texts. There is no code in
it and no pickle.
"""

import base64
import binascii
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _canonical as canonical
from discreet.errors import CorruptFileError, FileVersionError

FORMAT = "discreet-learner"
VERSION = 1

FLOATS, WHOLE, INTEGERS = "float64", "int64", "integers"
_PACKED = {FLOATS: "<f8", WHOLE: "<i8"}
_KINDS = {"f": FLOATS, "i": WHOLE}
_INTEGER = re.compile(r"0|-?[1-9a-f][0-9a-f]*")
_MOST_AXES = 8
_LONGEST_AXIS = 2**31


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The body of a save file, checked for format, version and digest."""
    return parse(Path(path).read_bytes())


def render(body: dict[str, Any]) -> bytes:
    """A save file's contents."""
    document = {"format": FORMAT, "version": VERSION, "sha256": digest(body), "body": body}
    return json.dumps(document, indent=1).encode("ascii")


def parse(data: bytes) -> dict[str, Any]:
    """The body again; for bytes that are no save file a `StateFileError`, and no other error."""
    try:
        document = canonical.parse(data)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CorruptFileError("path", "is not a discreet save file; restore it from a backup")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise CorruptFileError("path", "has no valid format version; restore it from a backup")
    if version > VERSION:
        raise FileVersionError(
            "path",
            f"has format version {version} and this release reads up to {VERSION}; "
            "update discreet to open it",
        )
    body = document.get("body")
    if not isinstance(body, dict) or document.get("sha256") != _digest_if_any(body):
        raise CorruptFileError("path", "was truncated or altered; restore it from a backup")
    return body


def digest(body: dict[str, Any]) -> str:
    """The SHA-256 that a save file has for its body."""
    return canonical.digest(body)


def encode(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: floats, 64-bit integers, or Python integers of any size (dtype object)."""
    shape = list(array.shape)
    if array.dtype == object:
        return {"shape": shape, INTEGERS: [f"{int(number):x}" for number in array.ravel()]}
    kind = _KINDS[array.dtype.kind]
    data = base64.b64encode(np.ascontiguousarray(array, dtype=_PACKED[kind]).tobytes())
    return {"shape": shape, kind: data.decode("ascii")}


def decode(entry: Any, kind: str = FLOATS) -> NDArray[Any]:  # noqa: ANN401  # whatever a file holds
    """The array again; ValueError if it is not one of this kind, or not finite."""
    if not isinstance(entry, dict) or entry.keys() != {"shape", kind}:
        raise ValueError(f"not an array of {kind}")
    shape = _shape(entry["shape"])
    if kind == INTEGERS:
        return _integers(entry[kind], shape)
    data = _from_base64(entry[kind], 8 * math.prod(shape))
    native = np.dtype(_PACKED[kind]).newbyteorder("=")
    array = np.frombuffer(data, dtype=_PACKED[kind]).astype(native).reshape(shape)
    if not np.isfinite(array).all():
        raise ValueError("not finite")
    return array


def _digest_if_any(body: dict[str, Any]) -> str | None:
    try:
        return digest(body)
    except ValueError:
        return None


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
