"""Compiled loops that Ctrl-C can end.

Python acts on an interrupt between instructions of its own, in its main thread, and one call of a
compiled loop may take hours. So a long call is made by a thread, and the main one waits for it.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _blas

I64 = NDArray[np.int64]

_LONG = 200_000  # rounds; fewer take about a second at most
_GRACE = 5.0  # seconds for a loop to end; it takes some hundred rounds


def call(
    loop: Any,  # noqa: ANN401  # a compiled function
    *arguments: Any,  # noqa: ANN401  # the loop's
    rounds: int,
    checkpoints: I64,
    records: NDArray[Any],
) -> Any:  # noqa: ANN401  # the loop's
    """Call a compiled loop, and end it early if something is raised meanwhile in the main thread.

    The loop has to look at its checkpoints in every round, and to take one that lies behind it for
    reached: it is ended by moving them all to 0.

    Args:
        loop: what is called. Its last two arguments are the checkpoints and the records.
        arguments: those before.
        rounds: how many it plays at most. A short loop is simply called.
        checkpoints: rounds after which something is recorded, growing; not changed.
        records: what is recorded there; nonsense after an interrupt.

    Returns:
        What the loop returns.
    """
    if rounds <= _LONG or threading.current_thread() is not threading.main_thread():
        return loop(*arguments, checkpoints, records)
    until = checkpoints.copy()
    everything = (*arguments, until, records)
    # Compiled here: a process that ends while another thread compiles may crash.
    loop.compile(tuple(loop.typeof_pyval(one) for one in everything))
    played = _Played(loop, everything)
    threading.Thread(target=played.run, daemon=True).start()
    try:
        while not played.ended.wait(1.0):  # not on every system can a wait without end be broken
            pass
    except BaseException:
        until[:] = 0
        played.ended.wait(_GRACE)
        raise
    return played.outcome()


class _Played:
    """A call in another thread, and what came of it."""

    def __init__(self, loop: Any, arguments: tuple[Any, ...]) -> None:  # noqa: ANN401  # the loop's
        self.ended = threading.Event()
        self._loop, self._arguments = loop, arguments
        self._found: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            with _blas.one_thread():  # libraries may have a setting for each thread
                self._found = self._loop(*self._arguments)
        except BaseException as error:  # noqa: BLE001  # raised where the caller waits
            self._error = error
        finally:
            self.ended.set()

    def outcome(self) -> Any:  # noqa: ANN401  # the loop's
        if self._error is not None:
            raise self._error
        return self._found
