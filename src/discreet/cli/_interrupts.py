"""Interrupts (Ctrl-C) that would be lost."""

import _thread
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

EXIT_CODE = 130  # as shells have it: 128 and the number of the signal

_PAUSE = 0.05  # seconds; a callback is over by then


@contextmanager
def kept() -> Iterator[None]:
    """Deliver an interrupt again if it came where Python can only print and forget it.

    Such places are finalizers, and the callbacks by which compiled code is loaded: an interrupt
    there would print a traceback and end nothing.
    """
    before = sys.unraisablehook

    def hook(found: Any) -> None:  # noqa: ANN401  # a type that Python does not export
        if found.exc_type is not None and issubclass(found.exc_type, KeyboardInterrupt):
            again = threading.Timer(_PAUSE, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            before(found)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
