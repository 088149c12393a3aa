"""Files that one process holds open: closed in children, and one holder at a time."""

import os
import weakref
from pathlib import Path

from discreet.errors import ParameterError, StateInUseError


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
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        hold(file)
    except BaseException:
        os.close(file)
        raise
    return file


def hold(file: int) -> None:
    """Lock an open file, or refuse at once if somebody else has it."""
    try:
        import fcntl  # noqa: PLC0415  # not everywhere
    except ImportError:  # pragma: no cover
        raise ParameterError(
            "path", "cannot be locked on this system; use save and load instead"
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StateInUseError(
            "path",
            "holds a learner that is open already, here or in another process; a state continues "
            "in one place only, so close that one first",
        ) from None
