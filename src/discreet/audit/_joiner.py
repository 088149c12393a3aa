"""Two worlds played through the service's joiner, and all that other people see of them.

It needs the extra ``discreet[serve]``: import it where it is used. Time is a number that this
module moves by itself, and the service's tables are in memory.
"""

import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import joblib
import msgspec
import numpy as np
from numpy.typing import NDArray

from discreet.audit import _streams as streams
from discreet.audit import _trials as trials
from discreet.audit._statistics import Rates, trace_rates
from discreet.audit._streams import PlayedRow, RowPair
from discreet.errors import DiscreetError
from discreet.learner import LinUCB
from discreet.mechanism import Mechanism
from discreet.service import _events as events
from discreet.service._bodies import Reward
from discreet.service._database import _SQLite
from discreet.service._events import Decided
from discreet.service._joiner import Joiner
from discreet.service._witness import Witness

F64 = NDArray[np.float64]

_BANDIT = 1
_WAIT = 2.5  # for a reward; the clock moves by 1
_BATCHES = ("before", "person", "after")  # who comes at times 0, 1 and 2
_LAST = 6  # by then all is closed
_SOMEBODY = b"somebody"  # the person whose events differ
_CROWD = 10  # how many times as many events as stated the person has
_CHUNK = 500  # trials that a worker does in one go


class Seen(NamedTuple):
    """What other people saw in one trial.

    Attributes:
        trace: at each look at the clock the public counts, and number, rows and time of each
            release, as text.
        shown: the releases, shape (1 + J, p); zeros in place of those that are missing.
    """

    trace: str
    shown: F64


class JoinerTrials(NamedTuple):
    """Trials of both worlds: what releases held, and rates at which traces spoke for the first."""

    evidence: trials.Evidence
    rates: Rates


class _Memory(_SQLite):
    """The service's tables, in memory and for one connection."""

    def __init__(self) -> None:
        super().__init__(Path(":memory:"))
        self.make_tables()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None)
        return self._connection


class _Plan(NamedTuple):
    """What happens in one world."""

    times: tuple[int, ...]  # rows of the releases that are looked at
    first: int  # how many events come before the person's
    own: int  # how many events the person has
    counted: int  # how many of them are stated to count
    row: PlayedRow  # what each of them leaves behind
    default: float  # the reward of an event for which none came, from the centre: the same for all
    prompt: bool  # the reward comes at once; otherwise never, or wrong, or late


class _World:
    """One trial: a bandit, its joiner, and a clock."""

    def __init__(self, learner: LinUCB, plan: _Plan) -> None:
        self.now = 0.0
        self.plan = plan
        self.learner = learner
        problem = learner.problem
        self.bounds = (
            problem.reward_centre - problem.reward_bound,
            problem.reward_centre + problem.reward_bound,
        )
        self.connection = _Memory()
        self.connection.execute(
            "INSERT INTO service_bandit "
            "(id, name, spec, created, room, events, closed, state, reason) "
            "VALUES (?, 'audited', x'', 0, ?, 0, 0, 'running', '')",
            (_BANDIT, plan.times[-1]),
        )
        self.joiner = Joiner(
            self.connection, _BANDIT, learner, witness=Witness(None), clock=lambda: self.now
        )

    def rank(self, who: str) -> None:
        """Events of one batch of people come."""
        plan, total = self.plan, self.plan.times[-1]
        counts = {"before": plan.first, "person": plan.own}
        count = counts.get(who, total - plan.first - plan.own)
        decided = [self._decided(who, place) for place in range(count)]
        events.record(self.connection, _BANDIT, decided, self.now)
        if who != "person":
            self._reward([one.event_id for one in decided], self.learner.problem.reward_centre)

    def _decided(self, who: str, place: int) -> Decided:
        plan, dim = self.plan, self.learner.problem.dim
        own = who == "person"
        row = plan.row if own else streams.zeros(dim)
        return Decided(
            event_id=f"{who}-{place}",
            fresh=False,
            wait=_WAIT,
            active=not own or self._active(place),
            features=row.action.astype("<f8").tobytes(),
            otherwise=self.learner.problem.reward_centre + plan.default,
            subject=_SOMEBODY if own else None,
            request=b"",
            choice=0,
            release=0,
        )

    def _active(self, place: int) -> bool:
        """Whether an event of the person counts without being activated."""
        plan = self.plan
        return not plan.prompt and place < plan.counted and bool(plan.row.action.any())

    def react(self) -> None:
        """What the person does about the reward: all at once, or nothing that counts."""
        ids = [f"person-{place}" for place in range(self.plan.own)]
        value = self.learner.problem.reward_centre + self.plan.row.reward
        if self.plan.prompt and self.now == 1:
            for one in ids:
                events.activate(self.connection, _BANDIT, one, self.now)
            self._reward(ids, value)
        elif not self.plan.prompt:
            self._reward(ids, self.bounds[1] + 1 if self.now < _WAIT + 1 else self.bounds[0])

    def _reward(self, ids: Sequence[str], value: float) -> None:
        events.reward(
            self.connection,
            _BANDIT,
            [Reward(one, value) for one in ids],
            bounds=self.bounds,
            adding=False,
            now=self.now,
        )

    def look(self) -> tuple[object, ...]:
        """The public counts, and which releases there are."""
        try:
            self.joiner.turn()
        except DiscreetError as error:
            return (type(error).__name__,)
        counts = self.connection.execute("SELECT events, closed FROM service_bandit")
        found = self.connection.execute(
            "SELECT number, held, made FROM service_release ORDER BY number"
        )
        return (*counts, *found)

    def shown(self, releases: int) -> F64:
        """What the releases hold, shape (1 + releases, p)."""
        documents = self.connection.execute("SELECT number, document FROM service_release")
        values = [msgspec.json.decode(document) for _, document in documents]
        entries = [
            streams.view(np.array(one["gram"][0]), np.array(one["moment"])) for one in values
        ]
        found = np.zeros((1 + releases, entries[0].size if entries else 1))
        for (number, _), entry in zip(documents, entries, strict=True):
            if number <= releases:
                found[number] = entry
        return found


def played(make: trials.Make, effort: trials.Effort, *, releases: int) -> JoinerTrials:
    """Trials of both worlds.

    The two worlds differ in the worst pair of rows, and in all that a person may do besides. In
    one the person's events are deferred, activated at once and rewarded at once. In the other they
    are not deferred, a reward out of bounds comes, and another one too late; or, where a person
    may only stay away, they are deferred and never activated. In both the person has ten times as
    many events as are stated to count; in the other world the rest are never activated. What
    others bring is the same.

    Args:
        make: makes a `LinUCB`.
        effort: how many trials, and how sure the rates have to be.
        releases: how many releases are looked at.
    """
    mechanism = make().mechanism
    times = streams.release_times(mechanism, releases)
    pair = streams.worst_pair(mechanism)
    first = times[0] if len(times) > 1 else 0
    worlds = streams.worlds(mechanism, pair, times, first=first)
    seen = [_recorded(make, plan, effort) for plan in _plans(pair, times, first, mechanism)]
    one, other = (np.array([trial.shown for trial in world]) for world in seen)
    traces = [[trial.trace for trial in world] for world in seen]
    return JoinerTrials(
        trials.split(one, other, worlds.shift),
        trace_rates(traces[0], traces[1], risk=effort.risk),
    )


def _plans(pair: RowPair, times: tuple[int, ...], first: int, mechanism: Mechanism) -> list[_Plan]:
    counted = mechanism.guarantee.contributions_per_user
    own = min(_CROWD * counted, times[-1] - first)
    return [
        _Plan(times, first, own, counted, pair.one, pair.other.reward, prompt=True),
        _Plan(times, first, own, counted, pair.other, pair.other.reward, prompt=False),
    ]


def _recorded(make: trials.Make, plan: _Plan, effort: trials.Effort) -> list[Seen]:
    sizes = [min(_CHUNK, effort.trials - done) for done in range(0, effort.trials, _CHUNK)]
    pool = joblib.Parallel(n_jobs=min(effort.jobs, len(sizes)))
    parts = pool(joblib.delayed(partial(_many, make, plan))(size) for size in sizes)
    return [trial for part in parts for trial in part]


def _many(make: trials.Make, plan: _Plan, count: int) -> list[Seen]:
    return [_play(make(), plan) for _ in range(count)]


def _play(learner: object, plan: _Plan) -> Seen:
    """One trial: people come, the person reacts, the clock moves, others look."""
    if not isinstance(learner, LinUCB):
        raise TypeError("the joiner takes a LinUCB")
    world = _World(learner, plan)
    looks = []
    for step in range(_LAST + 1):
        world.now = float(step)
        if step < len(_BATCHES):
            world.rank(_BATCHES[step])
        if step:
            world.react()
        looks.append(world.look())
    found = Seen(repr(looks), world.shown(len(plan.times)))
    world.connection.close()
    return found
