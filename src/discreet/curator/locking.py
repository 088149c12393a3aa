"""Files that one process holds open: closed in children, and one holder at a time."""

import errno
import os
import weakref
from pathlib import Path

from discreet.curator import disk
from discreet.errors import ParameterError, StateInUseError

_LOCKLESS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class Handles:
    """Open file descriptors by name, closed together and only once.

    A forked child closes its copies at once: it must not write, and it must not keep a lock alive
    that its parent has given up.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._files: dict[str, int] = {}
        _OPEN.add(self)

    def __getitem__(self, name: str) -> int:
        return self._files[name]

    def put(self, name: str, file: int) -> None:
        """Own a descriptor; another of that name is closed."""
        old = self._files.get(name)
        self._files[name] = file
        if old is not None:
            os.close(old)

    def drop(self, name: str) -> None:
        """Close one of them, if it is there."""
        file = self._files.pop(name, None)
        if file is not None:
            os.close(file)

    def rename(self, name: str, to: str) -> None:
        """Give one of them another's name; the other is closed."""
        self.put(to, self._files.pop(name))

    @property
    def closed(self) -> bool:
        """Whether none is open."""
        return not self._files

    def close(self) -> None:
        """Close all of them; more than once does no harm."""
        while self._files:
            os.close(self._files.popitem()[1])


_OPEN: weakref.WeakSet[Handles] = weakref.WeakSet()


def _close_in_child() -> None:
    for handles in list(_OPEN):
        handles.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def take(path: Path) -> int:
    """Open a file for its owner only and lock it; the lock goes when the descriptor is closed."""
    if disk.FCNTL is None:
        raise _no_locks()
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    file = os.open(path, flags, 0o600)
    try:
        hold(file)
    except BaseException:
        os.close(file)
        raise
    return file


def hold(file: int) -> None:
    """Lock an open file, or refuse at once if somebody else has it."""
    if disk.FCNTL is None:
        raise _no_locks()
    try:
        disk.FCNTL.flock(file, disk.FCNTL.LOCK_EX | disk.FCNTL.LOCK_NB)
    except BlockingIOError:
        raise StateInUseError(
            "path",
            "holds a learner that is open already, here or in another process; a state continues "
            "in one place only, so close that one first",
        ) from None
    except OSError as error:
        if error.errno in _LOCKLESS:
            raise _no_locks() from None
        raise


def _no_locks() -> ParameterError:
    return ParameterError(
        "path",
        "cannot be locked here, so two processes could continue one state; keep the learner in "
        "memory, or use a system and a disk with file locks",
    )
