"""Save files: one JSON object, versioned, with a digest, written atomically and for the owner only.

The format is open: a ``body`` of plain JSON in which an array is its shape and its numbers as
little-endian 64-bit floats in base64, and the SHA-256 of that body written with sorted keys and
no spaces. There is no code in it and no pickle.
"""

import base64
import binascii
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.errors import CorruptFileError, FileVersionError

F64 = NDArray[np.float64]

FORMAT = "discreet-learner"
VERSION = 1


def write(path: str | os.PathLike[str], body: dict[str, Any]) -> None:
    """Write a body so that a reader sees either the old file or the whole new one."""
    target = Path(path)
    document = {"format": FORMAT, "version": VERSION, "sha256": _digest(body), "body": body}
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(document, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The body of a save file, checked for format, version and digest."""
    try:
        document = json.loads(Path(path).read_bytes(), parse_constant=_no_constants)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CorruptFileError("path", "is not a discreet save file; restore it from a backup")
    version = document.get("version")
    if not isinstance(version, int) or version < 1:
        raise CorruptFileError("path", "has no valid format version; restore it from a backup")
    if version > VERSION:
        raise FileVersionError(
            "path",
            f"has format version {version} and this release reads up to {VERSION}; "
            "update discreet to open it",
        )
    body = document.get("body")
    if not isinstance(body, dict) or document.get("sha256") != _digest(body):
        raise CorruptFileError("path", "was truncated or altered; restore it from a backup")
    return body


def encode(array: F64) -> dict[str, Any]:
    """An array as JSON."""
    data = base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return {"shape": list(array.shape), "float64": data.decode("ascii")}


def decode(entry: Any) -> F64:  # noqa: ANN401  # whatever a file may hold
    """The array again; ValueError or TypeError if it is not one, or not finite."""
    try:
        data = base64.b64decode(entry["float64"], validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    array = np.frombuffer(data, dtype="<f8").astype(np.float64).reshape(entry["shape"])
    if not np.isfinite(array).all():
        raise ValueError("not finite")
    return array


def _digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system allows it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # pragma: no cover  # not every system opens folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _no_constants(name: str) -> NoReturn:
    raise ValueError(name)
