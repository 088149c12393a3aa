"""New files for their owner only, and what is in open ones."""

import os
from pathlib import Path


def fresh(path: Path) -> Path:
    """Where the next version of a file is written before it takes the file's place."""
    return path.with_name(f"{path.name}.new")


def written(path: Path, data: bytes) -> int:
    """A new file with these contents, synced, open for appending; no file may be there yet."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    except BaseException:
        os.close(file)
        path.unlink(missing_ok=True)
        raise
    return file


def prepared(path: Path, data: bytes) -> int:
    """The next version of a file, ready to take its place. Only the holder of a lock does this."""
    clear(path)
    return written(fresh(path), data)


def clear(path: Path) -> None:
    """Remove a next version that never took its place."""
    fresh(path).unlink(missing_ok=True)


def growing(path: Path) -> int:
    """A file, open for reading and appending."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)


def contents(file: int) -> bytes:
    """All of an open file."""
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        return reader.read()
