"""New files for their owner only, what is in open ones, and when it is safe."""

import errno
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

_NOT_HERE = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY}


def _control() -> ModuleType | None:
    """The module `fcntl`, which not every system has."""
    with suppress(ImportError):
        return import_module("fcntl")
    return None


FCNTL = _control()


def sync(file: int) -> None:
    """Return when what was written to a file is on the disk.

    On macOS `os.fsync` leaves it in the drive's cache, and another call does not. File systems
    that do not know that call get `os.fsync`.
    """
    through = getattr(FCNTL, "F_FULLFSYNC", None)
    if FCNTL is not None and through is not None:
        try:
            FCNTL.fcntl(file, through)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
        else:
            return
    os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Make a rename itself durable, where the system allows it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # pragma: no cover  # not every system opens folders
        return
    try:
        sync(handle)
    finally:
        os.close(handle)


def written(path: Path, data: bytes) -> int:
    """A new file with these contents, synced, open for appending; no file may be there yet."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        sync(file)
    except BaseException:
        os.close(file)
        path.unlink(missing_ok=True)
        raise
    return file


def growing(path: Path) -> int:
    """A file, open for reading and appending."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)


def contents(file: int) -> bytes:
    """All of an open file."""
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        return reader.read()
