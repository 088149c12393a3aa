"""Linear algebra on one thread.

The matrices here are small. The threads of a BLAS library, which wait for each other by spinning,
cost more than they bring, and on a busy machine a hundred times as much: an eigendecomposition of
size 100 takes 0.7 ms on one thread and was measured at 88 ms on two that shared their cores.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


class _Limit:
    """How many calls want one thread, and what is to be restored after the last of them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.inside = 0
        self.libraries: ThreadpoolController | None = None
        self.before: list[int] = []

    def enter(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside > 1:
                return
            if self.libraries is None:
                import scipy.linalg  # noqa: F401, PLC0415  # compiled code calls its library

                self.libraries = ThreadpoolController().select(user_api="blas")
            controllers = self.libraries.lib_controllers
            self.before = [library.num_threads for library in controllers]
            for library in controllers:
                library.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside or self.libraries is None:
                return
            for library, threads in zip(self.libraries.lib_controllers, self.before, strict=True):
                library.set_num_threads(threads)


_limit = _Limit()


def _in_child() -> None:
    """Another thread may have held the lock when the process forked."""
    _limit.lock = threading.RLock()
    _limit.inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep the process's BLAS libraries to one thread while inside, for all of its threads."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
