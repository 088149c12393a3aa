"""A campaign: visitors use a service while its processes are killed at random instants.

Afterwards the service is left alone until it has closed every event, and is held to what it
acknowledged: see truth.py.
"""

import contextlib
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

from crash.database import Server
from service.chaos import truth
from service.chaos.living import INSIDE, Line, Service, Unreachable, until
from service.chaos.visits import HERE, SPECIFICATION, Notes, Visitor

VISITORS = 4
Kill = Callable[[random.Random], bool]  # whether somebody was killed


class Campaign:
    """One bandit, the processes that serve it, its visitors and what they know.

    Args:
        folder: for data and logs.
        server: a PostgreSQL server; None for SQLite.
        rankers: how many processes answer, beside a writer that the test starts; None for one that
            has its writer below it. More than one needs a PostgreSQL server.
        mutant: what the writer does wrong, if anything.

    Attributes:
        notes: what the visitors know.
        kills: how many processes were killed, by kind.
    """

    def __init__(
        self,
        folder: Path,
        *,
        server: Server | None = None,
        rankers: int | None = None,
        mutant: str | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.notes = Notes()
        self.kills: dict[str, int] = {}
        self.record = folder / "record"
        self._server = server
        self._data = folder / "data"
        inside = os.pathsep.join([str(INSIDE), os.environ.get("PYTHONPATH", "")])
        environment = {"DISCREET_CHAOS_RECORD": str(self.record), "PYTHONPATH": inside}
        environment |= {"DISCREET_CHAOS_MUTANT": mutant} if mutant else {}
        roles = ["all"] if rankers is None else ["writer", *["ranker"] * rankers]
        address = server.address if server else None
        self.services = [
            Service(self._data, role=role, database=address, environment=environment)
            for role in roles
        ]
        self._visitors: list[Visitor] = []

    @property
    def front(self) -> Service:
        """One that answers."""
        return self.services[-1]

    @property
    def writer(self) -> Service:
        """The process that is the writer, or has it below it."""
        return self.services[0]

    @property
    def strikes(self) -> int:
        """How often the mutant did the wrong thing."""
        noted = self.record.with_name(f"{self.record.name}.strikes")
        return noted.stat().st_size if noted.exists() else 0

    def begin(self) -> None:
        for one in self.services:
            one.start(wait=False)
        answering = [one for one in self.services if one.answers]
        for one in answering:
            one.wait()
        self._make_bandit()
        self._visitors = [
            Visitor(f"v{number}", answering[number % len(answering)].line(), self.notes)
            for number in range(VISITORS)
        ]
        for visitor in self._visitors:
            visitor.start()

    def _make_bandit(self) -> None:
        with contextlib.closing(self.front.line()) as line:
            status, body = line.ask("POST", "/v1/bandits", SPECIFICATION)
            assert status == 201, body
        for one in self.services:
            if one.answers:  # the others see it a moment later
                with contextlib.closing(one.line()) as line:
                    until(partial(_served, line), "a bandit that was made does not run", one.said)

    def rage(self, kills: dict[str, Kill], count: int, rng: random.Random, pause: float) -> None:
        """Kill so many times, at random instants."""
        names = list(kills)
        while sum(self.kills.values()) < count:
            time.sleep(rng.random() * pause)
            name = rng.choice(names)
            if kills[name](rng):
                self.kills[name] = self.kills.get(name, 0) + 1
            for visitor in self._visitors:
                if visitor.failure is not None:
                    raise visitor.failure
            assert not self.notes.faults, self.notes.faults[:5]

    def kill_service(self, rng: random.Random) -> bool:
        """The process that listens dies; its writer has to end, or be fenced, by itself."""
        self._again(rng.choice([one for one in self.services if one.answers]), rng)
        return True

    def kill_writer(self, rng: random.Random) -> bool:
        """The writer dies, and somebody has to start it again: its supervisor, or the test."""
        if self.writer.answers:
            return self.writer.kill_writer()
        self._again(self.writer, rng)
        return True

    def kill_server(self, rng: random.Random) -> bool:
        """The database's server dies, with all its processes."""
        assert self._server is not None
        self._server.kill()
        time.sleep(rng.random() * 0.3)
        self._server.start()
        return True

    @staticmethod
    def _again(service: Service, rng: random.Random) -> None:
        service.kill()
        service.start(wait=service.answers and rng.random() < 0.75)

    def finish(self) -> dict[str, Any]:
        """Let everything come to rest, and check it; what was found, for the record."""
        for one in self.services:
            if one.answers:
                one.wait()
        for visitor in self._visitors:
            visitor.stop()
        for visitor in self._visitors:
            visitor.join(120)
            assert not visitor.is_alive(), f"a visitor has no answer\n{self.front.said()}"
            if visitor.failure is not None:
                raise visitor.failure
        bandit = truth.at_rest(self.front, self.notes)
        with contextlib.closing(self.front.line()) as line:
            shown = truth.releases(line, self.notes)
        until(lambda: not any(one.orphans() for one in self.services), "a writer outlives all")
        assert [one.stop() for one in self.services] == [0] * len(self.services)
        with truth.stored(self._data, self._server and self._server.address) as learner:
            assert learner.rows == bandit["events"], f"{learner.rows} rows of {bandit['events']}"
            found = truth.rows(self.notes, self.record, learner.rows)
        return {
            **self.kills,
            **found,
            "releases": shown,
            "answered": self.notes.answered,
            "troubled": self.notes.troubled,
        }

    def end(self) -> None:
        """Whatever still runs is ended."""
        for visitor in self._visitors:
            visitor.abandon()
        for one in self.services:
            one.end()

    def __enter__(self) -> Self:
        try:
            self.begin()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _served(line: Line) -> bool:
    try:
        status, body = line.ask("GET", HERE)
    except Unreachable:
        return False
    return bool(status == 200 and body["state"] == "running")
