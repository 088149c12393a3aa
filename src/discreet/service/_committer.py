"""One thread that writes: what several requests ask for at the same time shares a transaction.

A request is answered after its transaction is on the disk. If the transaction fails, all of its
requests are told so, and nothing of them is there; unless the database went away in the middle of
its commit, when nobody knows: a client that gave an event id asks again.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from discreet.service import _events as events
from discreet.service._bodies import Reward, Verdict
from discreet.service._database import Connection, Database
from discreet.service._events import Decided, Full, Repeated
from discreet.service._worker import Worker

T = TypeVar("T")
_MOST = 4096  # ranks, rewards and activations in one transaction


class _Rank(NamedTuple):
    bandit: int
    decided: Decided


class _Rewards(NamedTuple):
    bandit: int
    rewards: Sequence[Reward]
    bounds: tuple[float, float]
    adding: bool


class _Activation(NamedTuple):
    bandit: int
    event_id: str


class _Work(NamedTuple):
    """Anything else, in a transaction of its own."""

    work: Callable[[Connection], Any]


_Job = _Rank | _Rewards | _Activation | _Work


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
        self._connection: Connection | None = None
        self._worker = Worker("committer", self._handle, size=_size, most=_MOST)

    async def rank(self, bandit: int, decided: Decided) -> Repeated | Full | None:
        """Write down a decision; see `events.record`. ServiceError if its bandit is gone."""
        answer: Repeated | Full | None = await self._worker.ask(_Rank(bandit, decided))
        return answer

    async def rewards(
        self, bandit: int, rewards: Sequence[Reward], bounds: tuple[float, float], *, adding: bool
    ) -> list[Verdict]:
        """Take in rewards; see `events.reward`."""
        job = _Rewards(bandit, rewards, bounds, adding)
        answer: list[Verdict] = await self._worker.ask(job)
        return answer

    async def activate(self, bandit: int, event_id: str) -> bool:
        """Let a deferred event count; see `events.activate`."""
        answer: bool = await self._worker.ask(_Activation(bandit, event_id))
        return answer

    async def work(self, work: Callable[[Connection], T]) -> T:
        """Do something else in one transaction."""
        answer: T = await self._worker.ask(_Work(work))
        return answer

    async def close(self) -> None:
        """Finish what was asked for, and stop."""
        await self._worker.close()

    def _handle(self, batch: list[_Job] | None) -> list[Any]:
        if batch is None:
            if self._connection is not None:
                self._connection.close()
            return []
        if self._connection is None:
            self._connection = self._database.connect()
        connection = self._connection
        answers: list[Any] = [None] * len(batch)
        together = [place for place, job in enumerate(batch) if not isinstance(job, _Work)]
        if together:
            self._commit_events(connection, batch, together, answers)
        for place, job in enumerate(batch):
            if isinstance(job, _Work):
                try:
                    with connection.transaction():
                        answers[place] = job.work(connection)
                except Exception as error:  # noqa: BLE001  # of this one only
                    answers[place] = error
        return answers

    def _commit_events(
        self, connection: Connection, batch: list[Any], places: list[int], answers: list[Any]
    ) -> None:
        """One transaction for all of them; an error is theirs, and nothing of them is there."""
        ranks: dict[int, list[int]] = defaultdict(list)
        for place in places:
            if isinstance(batch[place], _Rank):
                ranks[batch[place].bandit].append(place)
        try:
            with connection.transaction():
                connection.lock([batch[place].bandit for place in places])
                now = self._clock()
                for bandit, some in ranks.items():
                    decided = [batch[place].decided for place in some]
                    found = events.record(connection, bandit, decided, now)
                    for place, answer in zip(some, found, strict=True):
                        answers[place] = answer
                for place in places:
                    if not isinstance(batch[place], _Rank):
                        answers[place] = _taken_in(connection, batch[place], now)
        except Exception as error:  # noqa: BLE001  # of these only
            for place in places:
                answers[place] = error


def _taken_in(
    connection: Connection, job: _Rewards | _Activation, now: float
) -> list[Verdict] | bool:
    """What became of rewards, or of an activation."""
    if isinstance(job, _Activation):
        return events.activate(connection, job.bandit, job.event_id, now)
    return events.reward(
        connection, job.bandit, job.rewards, bounds=job.bounds, adding=job.adding, now=now
    )


def _size(job: _Job) -> int:
    return len(job.rewards) if isinstance(job, _Rewards) else 1
