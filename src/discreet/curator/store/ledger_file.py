"""The ledger of a learner in a file: lines that are only ever added, one owner at a time.

The file's lock is what refuses a second opener early; what makes a second writer impossible is
the store's sequence number.
"""

import contextlib
import errno
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from discreet import _canonical as canonical
from discreet.curator.store import in_use
from discreet.errors import StoreError

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_NO_FULL_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY}


def _control() -> ModuleType | None:
    """The module `fcntl`, which not every system has."""
    with contextlib.suppress(ImportError):
        return import_module("fcntl")
    return None


FCNTL = _control()


class LedgerFile:
    """An open, locked file that grows by whole lines."""

    def __init__(self, path: Path, *, create: bool) -> None:
        """Open or create the file for its owner only, and lock it.

        Args:
            path: the file.
            create: whether it must not be there yet; otherwise it must be.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        self.path = path
        self._process = os.getpid()
        self._file: int | None = os.open(path, flags, 0o600)
        try:
            _lock(self._file)
            self._end = (os.fstat(self._file).st_size, 0)  # bytes and lines that surely count
            self._torn = False  # whether the file may be longer than that
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        # An interrupt may come before anybody holds the file to close it.
        if getattr(self, "_file", None) is not None and os.getpid() == self._process:
            self.close()

    def read(self) -> bytes:
        """All whole lines, synced. What a crash left of a last one is cut off by `append`."""
        file = self._descriptor()
        _sync(file)
        with os.fdopen(os.dup(file), "rb") as reader:
            reader.seek(0)
            data = reader.read()
        whole = canonical.whole(data)
        self._end = (whole, data[:whole].count(b"\n"))
        self._torn = whole < len(data)
        return data[:whole]

    def append(self, first: int, lines: Sequence[bytes]) -> None:
        """Add lines; they are on the disk when this returns, and gone again after an error.

        Args:
            first: the number of the first line, from 0; those that are there are not added again.
            lines: whole lines.
        """
        file = self._descriptor()
        size, count = self._end
        if not first <= count <= first + len(lines):
            raise StoreError("path", f"{self.path} has other lines than it should; load it again")
        missing = lines[count - first :]
        data = b"".join(missing)
        try:
            if self._torn:
                self._cut()
            self._torn = True
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            _sync(file)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._cut()
            raise StoreError(
                "path",
                f"{self.path} could not be written ({error.strerror}); nothing was shown, so make "
                "room and try again",
            ) from None
        self._end = (size + len(data), count + len(missing))
        self._torn = False

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._file is None

    def clear(self) -> None:
        """Remove all lines."""
        self._end = (0, 0)
        self._cut()

    def identity(self) -> tuple[int, int]:
        """Which file is open: device and number."""
        found = os.fstat(self._descriptor())
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Unlock and close; more than once does no harm.

        A lock belongs to everybody who inherited the open file. It is given up here as its owner,
        so that no child keeps it alive; and first of all, so that no interrupt does.
        """
        if self._file is None:
            return
        if FCNTL is not None:
            with contextlib.suppress(OSError):
                FCNTL.flock(self._file, FCNTL.LOCK_UN)
        file, self._file = self._file, None
        os.close(file)

    def abandon(self) -> None:
        """Close a forked child's copy, and leave the lock to the parent."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _cut(self) -> None:
        os.ftruncate(self._descriptor(), self._end[0])
        _sync(self._descriptor())
        self._torn = False

    def _descriptor(self) -> int:
        if self._file is None:
            raise StoreError("path", "was closed; load the learner again")
        return self._file


def _lock(file: int) -> None:
    """Lock an open file, or refuse at once. Where locks are unknown, do without."""
    if FCNTL is None:
        return
    try:
        FCNTL.flock(file, FCNTL.LOCK_EX | FCNTL.LOCK_NB)
    except BlockingIOError:
        raise in_use() from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def _sync(file: int) -> None:
    """Return when what was written is on the disk.

    On macOS `os.fsync` leaves it in the drive's cache, and another call does not. File systems
    that do not know that call get `os.fsync`.
    """
    through = getattr(FCNTL, "F_FULLFSYNC", None)
    if FCNTL is not None and through is not None:
        try:
            FCNTL.fcntl(file, through)
        except OSError as error:
            if error.errno not in _NO_FULL_SYNC:
                raise
        else:
            return
    os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable, where the system allows it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # pragma: no cover  # not every system opens folders
        return
    try:
        _sync(handle)
    finally:
        os.close(handle)
