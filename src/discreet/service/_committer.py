"""One thread that writes: what several requests ask for at the same time shares a transaction.

A request is answered after its transaction is on the disk. If the transaction fails, all of its
requests are told so, and nothing of them is there.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from discreet.errors import StoreError
from discreet.service import _events as events
from discreet.service._bodies import Reward, ServiceError, Verdict
from discreet.service._database import Connection, Database
from discreet.service._events import Decided, Full, Repeated

T = TypeVar("T")
_MOST = 1024  # requests in one transaction
_FULL = 20_000  # requests that may wait; more are refused at once


class _Rank(NamedTuple):
    bandit: int
    decided: Decided


class _Rewards(NamedTuple):
    bandit: int
    rewards: Sequence[Reward]
    bounds: tuple[float, float]
    adding: bool


class _Work(NamedTuple):
    """Anything else, in a transaction of its own."""

    work: Callable[[Connection], Any]


_Job = tuple[_Rank | _Rewards | _Work, asyncio.Future[Any]]


class Committer:
    """Writes to the database, for an event loop.

    Args:
        database: where to.
        clock: the time, in seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """Start the thread."""
        self._database = database
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    async def rank(self, bandit: int, decided: Decided) -> Repeated | Full | None:
        """Write down a decision; see `events.record`."""
        answer: Repeated | Full | None = await self._put(_Rank(bandit, decided))
        return answer

    async def rewards(
        self, bandit: int, rewards: Sequence[Reward], bounds: tuple[float, float], *, adding: bool
    ) -> list[Verdict]:
        """Take in rewards; see `events.reward`."""
        answer: list[Verdict] = await self._put(_Rewards(bandit, rewards, bounds, adding))
        return answer

    async def work(self, work: Callable[[Connection], T]) -> T:
        """Do something else in one transaction."""
        answer: T = await self._put(_Work(work))
        return answer

    def _put(self, job: _Rank | _Rewards | _Work) -> asyncio.Future[Any]:
        if self._jobs.qsize() > _FULL:
            raise ServiceError(
                503, "StoreUnavailable", "Too many requests wait for the database; try again later."
            )
        future: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((job, future))
        return future

    async def close(self) -> None:
        """Finish what was asked for, and stop."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        connection: Connection | None = None
        going = True
        while going:
            batch, going = self._batch()
            if not batch:
                continue
            try:
                if connection is None:
                    connection = self._database.connect()
                answers = self._commit(connection, batch)
            except Exception as error:  # noqa: BLE001  # whoever asked gets it
                answers = [error] * len(batch)
            self._answer(batch, answers)
        if connection is not None:
            connection.close()

    def _batch(self) -> tuple[list[_Job], bool]:
        """What waits: anything else by itself, ranks and rewards together."""
        batch: list[_Job] = []
        while len(batch) < _MOST:
            try:
                job = self._jobs.get(block=not batch)
            except queue.Empty:
                break
            if job is None:
                return batch, False
            batch.append(job)
        return batch, True

    def _commit(self, connection: Connection, batch: list[_Job]) -> list[Any]:
        answers: list[Any] = [None] * len(batch)
        ranks: dict[int, list[int]] = defaultdict(list)
        rewards: list[int] = []
        others: list[int] = []
        for place, (job, _) in enumerate(batch):
            if isinstance(job, _Rank):
                ranks[job.bandit].append(place)
            else:
                (rewards if isinstance(job, _Rewards) else others).append(place)
        if ranks or rewards:
            self._commit_events(connection, batch, ranks, rewards, answers)
        for place in others:
            job = batch[place][0]
            try:
                with connection.transaction():
                    answers[place] = job.work(connection)  # type: ignore[union-attr]
            except Exception as error:  # noqa: BLE001  # of this one only
                answers[place] = error
        return answers

    def _commit_events(
        self,
        connection: Connection,
        batch: list[_Job],
        ranks: dict[int, list[int]],
        rewards: list[int],
        answers: list[Any],
    ) -> None:
        """One transaction for all of them; an error is everybody's."""
        places = [place for some in ranks.values() for place in some] + rewards
        try:
            with connection.transaction():
                connection.lock([batch[place][0].bandit for place in places])  # type: ignore[union-attr]
                now = self._clock()
                for bandit, some in ranks.items():
                    decided = [batch[place][0].decided for place in some]  # type: ignore[union-attr]
                    found = events.record(connection, bandit, decided, now)
                    for place, answer in zip(some, found, strict=True):
                        answers[place] = answer
                for place in rewards:
                    job: Any = batch[place][0]
                    answers[place] = events.reward(
                        connection,
                        job.bandit,
                        job.rewards,
                        bounds=job.bounds,
                        adding=job.adding,
                        now=now,
                    )
        except StoreError as error:
            for place in places:
                answers[place] = error

    def _answer(self, batch: list[_Job], answers: list[Any]) -> None:
        def deliver() -> None:
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():  # the client went away
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(deliver)
