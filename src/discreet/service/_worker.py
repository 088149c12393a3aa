"""A thread that does what an event loop asks for, in order. Nobody waits for it for ever.

A database may be there and say nothing: then the thread waits inside a call that cannot be taken
back. Whoever asked is told so after a while, what they asked for is left out if it was not begun,
and the process can still end, because the thread is a daemon.
"""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from discreet.errors import StoreError

_PATIENCE = 10.0  # seconds after which an answer is given up
_SWEEP = 0.5  # seconds between two looks for what waits too long
_FULL = 20_000  # jobs that may wait; more are refused at once
Job = tuple[Any, "asyncio.Future[Any]"]


class Worker:
    """A daemon thread with a queue.

    Args:
        name: of the thread.
        handle: does several jobs at a time; one answer for each, an exception if it failed. It is
            called with None when nothing will follow.
        size: how much a job counts.
        most: how much is handled at a time.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[list[Any] | None], list[Any]],
        *,
        size: Callable[[Any], int] = lambda _: 1,
        most: int = 1,
    ) -> None:
        """Start the thread. Call it inside of the event loop."""
        self._handle, self._size, self._most = handle, size, most
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._sweeping = self._loop.call_later(_SWEEP, self._sweep)

    def ask(self, job: Any) -> "asyncio.Future[Any]":  # noqa: ANN401  # whatever `handle` takes
        """Have something done; await the answer. `StoreError` if it does not come in time."""
        if self._jobs.qsize() > _FULL:
            raise StoreError("database", "has too much to do; try again later")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((self._loop.time() + _PATIENCE, future))
        self._jobs.put((job, future))
        return future

    async def close(self) -> None:
        """Finish what was asked for, and end; but wait for a limited time only."""
        self._jobs.put(None)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _PATIENCE)
        self._sweeping.cancel()

    def _sweep(self) -> None:
        now = self._loop.time()
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] < now):
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_exception(StoreError("database", "does not answer; try again later"))
        self._sweeping = self._loop.call_later(_SWEEP, self._sweep)

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._batch()
            if not batch:
                continue
            try:
                answers = self._handle([job for job, _ in batch])
            except Exception as error:  # noqa: BLE001  # whoever asked gets it
                answers = [error] * len(batch)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_deliver, batch, answers)
        with contextlib.suppress(Exception):
            self._handle(None)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set)

    def _batch(self) -> tuple[list[Job], bool]:
        """What waits and somebody still wants."""
        batch: list[Job] = []
        held = 0
        while held < self._most:
            try:
                found = self._jobs.get(block=not batch)
            except queue.Empty:
                break
            if found is None:
                return batch, False
            if not found[1].done():
                batch.append(found)
                held += self._size(found[0])
        return batch, True


def _deliver(batch: list[Job], answers: list[Any]) -> None:
    for (_, future), answer in zip(batch, answers, strict=True):
        if future.done():  # the client went away, or gave up
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
