"""The two decorators that turn a Python function into a compiled kernel."""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile on first call, keep the machine code on disk, and release the interpreter lock.

    Contraction (fused multiply-add) is the only liberty the compiler may take with the order of
    floating-point operations. Where neither the package's folder nor the user's cache can be
    written, every process compiles for itself.
    """
    return _compiled(function, fastmath={"contract"})


def reproducible(function: _F) -> _F:
    """The same without that liberty: the same numbers, to the last bit, on every processor.

    For what a learner works out again when it is loaded, perhaps on another machine, and compares
    with what it released. Such a function must not call ``math.log`` and its like, which differ
    between machines; the square root does not.

    The empty set is said aloud: where a function says nothing, numba gives it the liberties of
    whichever caller happened to compile it first.
    """
    return _compiled(function, fastmath=set())


def _compiled(function: _F, *, fastmath: set[str]) -> _F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return cast("_F", numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder for machine code
        return cast("_F", numba.njit(**options)(function))


class _FirstCompileNotice(event.Listener):
    """Say once in a process, on standard error, why the first use of a kernel is slow."""

    said = False

    def on_start(self, event: Any) -> None:  # noqa: ANN401, ARG002  # numba ships no types
        if not self.said and sys.stderr is not None:
            self.said = True
            sys.stderr.write(
                "discreet: compiling kernels at their first use; later runs start faster ...\n"
            )
            sys.stderr.flush()

    def on_end(self, event: object) -> None:
        pass


def _drop_stale_code() -> None:
    """Forget machine code of older sources.

    Numba looks at the age of a function's own file only, not of the kernels it calls.
    """
    folder = Path(__file__).parent
    sources = b"".join(file.read_bytes() for file in sorted(folder.glob("*.py")))
    digest = hashlib.sha256(sources).hexdigest()
    cache = folder / "__pycache__"
    stamp = cache / "kernels.sha256"
    try:
        if stamp.exists() and stamp.read_text(encoding="ascii") == digest:
            return
        for file in cache.glob("*.nb[ci]"):
            file.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        stamp.write_text(digest, encoding="ascii")
    except OSError:
        return  # installed read-only: the sources do not change and numba caches elsewhere


_drop_stale_code()
event.register("numba:compile", _FirstCompileNotice())  # type: ignore[no-untyped-call]  # numba has no types
