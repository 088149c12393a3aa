"""Linear algebra on one thread.

The matrices here are small. The threads of a BLAS library, which wait for each other by spinning,
cost more than they bring, and on a busy machine a hundred times as much: an eigendecomposition of
size 100 takes 0.7 ms on one thread and was measured at 88 ms on two that shared their cores.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # it has no types


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of the process; scipy's is the one that compiled code calls."""
    import scipy.linalg  # noqa: F401, PLC0415  # loads its library, when needed

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS libraries to one thread while inside, and restore what was set before.

    OpenBLAS, which the wheels of numpy and scipy bring, has a setting for each thread that calls
    it. Where a library has one for the whole process, and several threads are inside at once, the
    last of them to leave may leave it at one.
    """
    with _libraries().limit(limits=1):
        yield
