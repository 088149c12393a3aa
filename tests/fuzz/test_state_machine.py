"""Any calls in any order, with bad input, stores that fail, interrupts and restarts among them.

A model in plain Python says what has to come out. Noise is known (`bookkeeping.KnownNoise`), so
releases are compared with exact sums of rows. Whatever happens, a learner goes on by itself: it is
loaded again only to see that the files hold the same. Nothing is synced here; that syncing is in
the right places is tested elsewhere.
"""

import contextlib
import gc
import os
import shutil
import sqlite3
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bookkeeping import PEOPLE, KnownNoise, Model, Pair, digest, next_id, signature
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import discreet
from discreet.curator import (
    _changes,
    _forgetting,
    _observed,
    _progress,
    _releases,
    _state,
    _storage,
    _stored,
    _subjects,
    curator,
    growing_ledger,
    opening,
    store,
    sums,
)
from discreet.curator._changes import Records
from discreet.curator._state import StagedState
from discreet.curator._storage import Storage
from discreet.curator.store import _sqlite_database, _sqlite_files, ledger_file, memory, sqlite
from discreet.curator.store.ledger_file import LedgerFile
from discreet.curator.store.sqlite import SqliteStore
from discreet.curator.sums import PrefixSums
from discreet.errors import (
    DecisionClosedError,
    DiscreetError,
    EmptyDecisionSetError,
    GivenUpWarning,
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ReloadNeededError,
    ShapeError,
    StateExistsError,
    StateFileError,
    StateInUseError,
    StoreError,
    UnknownDecisionError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.strategies import SquareRoot
from discreet.mechanism.variants import Tight, Windowed
from helpers import EARLY
from interrupting import Interrupting

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
TIGHT = discreet.VARIANTS["tight"].with_schedule(batches(2))
LEARNERS: dict[str, tuple[Any, str]] = {
    "tight": (TIGHT, "exact"),
    "tight in long batches": (TIGHT.with_schedule(batches(7)), "exact"),
    "tight float": (TIGHT.with_schedule(batches(3)), "float"),
    "square-root": (TIGHT.with_strategy(SquareRoot()), "exact"),
    "gaussian": (discreet.VARIANTS["gaussian"], "exact"),
    "gaussian float": (discreet.VARIANTS["gaussian"], "float"),
    "wishart": (discreet.VARIANTS["wishart"], "float"),
    "nonprivate": (discreet.VARIANTS["nonprivate"], "exact"),
    "windows": (EARLY, "exact"),
    "windows float": (replace(EARLY, growth=0.5), "float"),
}
MARK = "1234567"  # in every number that goes in, and in no message that comes out

numbers = st.integers(-499, 499).map(lambda n: float(f"{'-' if n < 0 else ''}0.{abs(n):03}{MARK}"))
actions = st.tuples(numbers, numbers)
rewards = numbers
sets = st.lists(actions, min_size=1, max_size=4)
picks = st.integers(0, 10**6)
people = st.sampled_from([None, None, *PEOPLE])
probes = st.sampled_from(["look", "save", "choose", "drop", "close"])
calls = st.sampled_from(
    [
        "choose",
        "choose_many",
        "learn",
        "learn",
        "learn_many",
        "observe",
        "forget",
        "forget_subject",
        "forget_subject",
        "save",
        "release",
    ]
)

BAD_SETS: list[tuple[Any, type[DiscreetError]]] = [
    ([], EmptyDecisionSetError),
    ([[]], EmptyDecisionSetError),
    (0.51234567, ShapeError),
    ([0.11234567, 0.21234567], ShapeError),
    ([[0.11234567] * 3], ShapeError),
    ([[[0.11234567] * 2]], ShapeError),
    ([[0.11234567], [0.11234567, 0.2]], ShapeError),
    ([["0.1234567", "x"]], ShapeError),
    ([[0.11234567, 1j]], ShapeError),
    ([[0.11234567, float("nan")]], NotFiniteError),
    ([[0.11234567, float("-inf")]], NotFiniteError),
    (None, ShapeError),
]
LONG_SETS: list[tuple[list[Pair], Pair]] = [
    ([(31234567.0, 0.0)], (1.0, 0.0)),
    ([(0.0, -1.1234567)], (0.0, -1.0)),
    ([(-3e300, 4e300)], (-0.6, 0.8)),
]
BAD_REWARDS: list[tuple[Any, type[DiscreetError]]] = [
    (float("nan"), NotFiniteError),
    (float("inf"), NotFiniteError),
    ("0.1234567", ShapeError),
    (None, ShapeError),
    ([0.1234567], ShapeError),
    (1j, ShapeError),
]
# Where an interrupt comes, before the call or after it.
PLACES: list[tuple[type, str]] = [
    (PrefixSums, "add"),
    (PrefixSums, "draw"),
    (PrefixSums, "withdraw"),
    (StagedState, "counted"),
    (Records, "encoded"),
    (Storage, "compaction"),
    (SqliteStore, "commit"),
    (SqliteStore, "sequence"),
    (SqliteStore, "append"),
    (LedgerFile, "append"),
]
# What a first save needs.
STARTS: list[tuple[Any, str]] = [
    (SqliteStore, "commit"),
    (SqliteStore, "sequence"),
    (LedgerFile, "append"),
    (os, "open"),
    (os, "fstat"),
    (_sqlite_database, "fill"),
]
MODULES = (
    _subjects,
    _progress,
    curator,
    growing_ledger,
    ledger_file,
    memory,
    _changes,
    _forgetting,
    _observed,
    _releases,
    _state,
    _storage,
    _sqlite_database,
    _sqlite_files,
    _stored,
    opening,
    sqlite,
    store,
    sums,
)


@contextlib.contextmanager
def wrong(
    place: tuple[Any, str], error: BaseException, first: int = 1, times: int = 1, *, after: bool
) -> Iterator[None]:
    """A function raises, before or after its work, at its first-th call and a few after it."""
    owner, name = place
    real, seen = getattr(owner, name), [0]

    def fails(*arguments: object, **options: object) -> object:
        seen[0] += 1
        bad = first <= seen[0] < first + times
        if bad and not after:
            raise error.with_traceback(None)
        found = real(*arguments, **options)
        if bad:
            raise error.with_traceback(None)
        return found

    setattr(owner, name, fails)
    try:
        yield
    finally:
        setattr(owner, name, real)


def trouble() -> StoreError:
    return StoreError("path", "has no room")


class AnyCalls(RuleBasedStateMachine):
    """A learner, and what it should hold."""

    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "state"

    def teardown(self) -> None:
        if hasattr(self, "learner"):
            self.learner.close()
        shutil.rmtree(self.folder)

    @initialize(
        name=st.sampled_from(sorted(LEARNERS)),
        stored=st.sampled_from([True, True, True, False]),
        clip=st.booleans(),
        horizon=st.integers(3, 30),
        most=st.integers(1, 6),
        rounds=st.integers(1, 3),
    )
    def start(
        self, *, name: str, stored: bool, clip: bool, horizon: int, most: int, rounds: int
    ) -> None:
        variant, noise = LEARNERS[name]
        self.clip = clip
        cap = rounds if isinstance(variant, Tight | Windowed) else 1
        self.learner = discreet.LinUCB(
            PROBLEM,
            horizon=horizon,
            privacy=None if name == "nonprivate" else replace(TARGET, contributions_per_user=cap),
            variant=variant,
            noise=noise,
            on_violation="clip" if clip else "error",
            max_pending=most,
            noise_source=KnownNoise(),
            path=self.path if stored else None,
        )
        schedule = self.learner.mechanism.schedule
        self.model = Model(horizon, most, 10**9 if name == "nonprivate" else cap, schedule)
        self.base = self.learner.release.gram.copy()
        if name != "wishart":
            shift = self.learner.mechanism.shift
            assert self.base.tolist() == [[shift, 0.0], [0.0, shift]]

    # Helpers.

    @property
    def stored(self) -> bool:
        return self.learner.path is not None

    @property
    def over(self) -> bool:
        return self.model.rounds >= self.model.horizon

    def refused(self, kind: type[DiscreetError], call: Callable[[], object]) -> None:
        """The call is refused in this way, says nothing about data, and changes nothing."""
        before = digest(self.learner)
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        assert type(error) is kind
        assert "\n" not in str(error)
        shown = [f"{part!r}{part}" for part in (error, error.__cause__, error.__context__)]
        text = "".join(traceback.TracebackException.from_exception(error).format())
        assert MARK not in "".join(shown) + text
        del caught, error
        assert digest(self.learner) == before

    def load(self) -> None:
        with contextlib.suppress(StateInUseError):
            self.learner = discreet.load(self.path, noise_source=KnownNoise())
            return
        gc.collect()  # some frame holds the one before
        self.learner = discreet.load(self.path, noise_source=KnownNoise())

    def reload(self, candidates: list[Model], *, close: bool = False) -> None:
        """Load the learner again; it is one of these."""
        if close:
            self.learner.close()
        del self.learner
        self.load()
        self.model = self.match(candidates)

    def match(self, candidates: list[Model]) -> Model:
        found = signature(self.learner)
        for candidate in candidates:
            if candidate.signature() == found:
                return candidate
        raise AssertionError("the learner holds something else")

    def recover(self, probe: str, candidates: list[Model]) -> None:
        """After a fault the learner goes on by itself, from one of these."""
        if probe in {"drop", "close"} and self.stored:
            self.reload(candidates, close=probe == "close")
            return
        if probe == "save" and self.stored:
            self.learner.save()
        elif probe == "choose" and self.model.rounds + 3 < self.model.horizon:
            action: Pair = (0.31234567, -0.41234567)
            made = self.learner.choose([action]).id
            candidates = [candidate.chosen(made, action) for candidate in candidates]
        self.model = self.match(candidates)

    def faulty(  # noqa: PLR0911  # one for each call
        self, call: str, action: Pair, pick: int
    ) -> tuple[Callable[[], object], list[Model]]:
        """A call, and what the learner may hold after a fault in it; last, if all went well."""
        model, learner = self.model, self.learner
        waiting = list(model.waiting)
        one = waiting[pick % len(waiting)] if waiting else ""
        who = [None, *PEOPLE][pick % 4]
        if call == "choose" and not self.over:
            made = next_id(learner)
            after = model.chosen(made, action, who)
            return lambda: learner.choose([action], subject=who), [model, after]
        if call == "choose_many" and model.rounds + 2 <= model.horizon:
            after = model
            for ahead in range(2):
                after = after.chosen(next_id(learner, ahead), action)
            return lambda: learner.choose_many([[action]] * 2), [model, after]
        if call == "learn" and waiting:
            return lambda: learner.learn(one, action[0]), [model, model.learned(one, action[0])]
        if call == "learn_many" and len(waiting) > 1:
            other = waiting[(pick + 1) % len(waiting)]
            pairs = [(one, action[0]), (other, action[1])]
            after = model.learned(*pairs[0]).learned(*pairs[1])
            return lambda: learner.learn_many(pairs), [model, after]
        if call == "observe" and model.rounds + 2 <= model.horizon:
            after = model.observed(action, action[0], who).observed(action, action[1], PEOPLE[0])
            subjects = [who, PEOPLE[0]]
            play = partial(learner.observe, [action] * 2, action, subjects=subjects)
            return play, [model, after]
        if call == "forget" and waiting:
            return lambda: learner.forget(one), [model, model.forgotten(one)]
        if call == "forget_subject":
            name = self.with_rows[0] if pick % 2 and self.with_rows else PEOPLE[pick % 3]
            return lambda: learner.forget_subject(name), [model, model.without(name)[0]]
        return learner.save if call == "save" and self.stored else lambda: learner.release, [model]

    # Calls that go well.

    @rule(offered=sets, who=people)
    def choose(self, offered: list[Pair], who: str | None) -> None:
        self.done["choose"] += 1
        if self.over:
            self.refused(HorizonReachedError, lambda: self.learner.choose(offered, subject=who))
            return
        made = self.learner.choose(offered, subject=who)
        self.model = self.model.chosen(made.id, offered[made.index], who)

    @rule(offered=st.lists(sets, max_size=4), data=st.data())
    def choose_many(self, offered: list[list[Pair]], data: st.DataObject) -> None:
        self.done["choose many"] += 1
        if self.model.rounds + len(offered) > self.model.horizon:
            self.refused(HorizonReachedError, lambda: self.learner.choose_many(offered))
            return
        whose = data.draw(st.lists(people, min_size=len(offered), max_size=len(offered)))
        made = self.learner.choose_many(offered, subjects=whose)
        assert len(made) == len(offered)
        for one, actions, who in zip(made, offered, whose, strict=True):
            self.model = self.model.chosen(one.id, actions[one.index], who)

    @rule(seen=st.lists(st.tuples(actions, rewards, people), max_size=4), bad=st.booleans())
    def observe(self, *, seen: list[tuple[Pair, float, str | None]], bad: bool) -> None:
        self.done["observe"] += 1
        chosen, values = [action for action, _, _ in seen], [reward for _, reward, _ in seen]
        if seen and self.model.rounds + len(seen) > self.model.horizon:
            self.refused(HorizonReachedError, lambda: self.learner.observe(chosen, values))
            return
        if seen and bad:
            wrong_one = [*values[:-1], float("nan")]
            self.refused(NotFiniteError, lambda: self.learner.observe(chosen, wrong_one))
            one_more = [*values, values[0]]
            self.refused(ShapeError, lambda: self.learner.observe(chosen, one_more))
            for nobody, kind in (([PEOPLE[0]], ShapeError), ([1.1234567], ParameterError)):
                whose = nobody * (len(seen) + (kind is ShapeError))
                self.refused(kind, lambda: self.learner.observe(chosen, values, subjects=whose))  # noqa: B023
            return
        self.learner.observe(chosen, values, subjects=[who for _, _, who in seen])
        for action, reward, who in seen:
            self.model = self.model.observed(action, reward, who)

    @precondition(lambda self: len(self.model.waiting) == self.model.most and not self.over)
    @rule(offered=sets)
    def choose_when_too_many_wait(self, offered: list[Pair]) -> None:
        self.done["choose when too many wait"] += 1
        before = digest(self.learner)
        with warnings.catch_warnings():
            warnings.simplefilter("error", GivenUpWarning)
            with pytest.raises(GivenUpWarning):
                self.learner.choose(offered)
        assert digest(self.learner) == before

    @rule(reward=rewards, more=st.sampled_from(["", "twice", "unknown", "nonsense"]))
    def learn_many(self, reward: float, more: str) -> None:
        self.done["learn many"] += 1
        pairs: list[tuple[Any, Any]] = [(one, reward) for one in list(self.model.waiting)[:3]]
        if more and pairs:
            bad, kind = {
                "twice": (pairs[0], DecisionClosedError),
                "unknown": (("x", reward), UnknownDecisionError),
                "nonsense": ((list(self.model.waiting)[-1], None), DiscreetError),
            }[more]
            if more == "nonsense":
                pairs, kind = pairs[:-1], ShapeError
                bad = (list(self.model.waiting)[len(pairs)], None)
            self.refused(kind, lambda: self.learner.learn_many([*pairs, bad]))
            return
        self.learner.learn_many(pairs)
        for pair in pairs:
            self.model = self.model.learned(*pair)

    @rule(pick=picks, reward=rewards, who=people)
    def learn(self, pick: int, reward: float, who: str | None) -> None:
        self.done["learn"] += 1
        known = [*self.model.waiting, *self.model.closed[-3:]]
        if not known:
            return
        one = known[pick % len(known)]
        if one in self.model.waiting:
            owner = self.model.owners.get(one)
            if who is not None and owner and who != owner:
                self.refused(ParameterError, lambda: self.learner.learn(one, reward, subject=who))
                return
            self.learner.learn(one, reward, subject=who)
            self.model = self.model.learned(one, reward, who)
        else:
            self.refused(DecisionClosedError, lambda: self.learner.learn(one, reward))

    @rule(pick=picks)
    def forget(self, pick: int) -> None:
        self.done["forget"] += 1
        known = [*self.model.waiting, *self.model.closed[-2:]]
        if not known:
            return
        one = known[pick % len(known)]
        if one in self.model.waiting:
            self.learner.forget(one)
            self.model = self.model.forgotten(one)
        else:
            self.refused(DecisionClosedError, lambda: self.learner.forget(one))

    @property
    def with_rows(self) -> list[str]:
        """People with rows in the open batch."""
        return [one for one in PEOPLE if self.model.without(one)[1][1]]

    @rule(name=st.sampled_from(PEOPLE))
    def forget_subject(self, name: str) -> None:
        self.done["forget somebody"] += 1
        self.model, counts = self.model.without(name)
        assert self.learner.forget_subject(name) == discreet.Forgotten(*counts)
        self.done["forget somebody's decisions"] += counts[0] > 0

    @precondition(lambda self: self.with_rows)
    @rule()
    def forget_rows(self) -> None:
        self.done["forget somebody's rows"] += 1
        self.forget_subject(self.with_rows[0])

    @rule(long=st.sampled_from(LONG_SETS))
    def choose_too_long(self, long: tuple[list[Pair], Pair]) -> None:
        self.done["choose too long"] += 1
        offered, shortened = long
        if self.over:
            self.refused(HorizonReachedError, lambda: self.learner.choose(offered))
        elif self.clip:
            made = self.learner.choose(offered).id
            held = dict(signature(self.learner)[3])[made]
            assert held == pytest.approx(shortened, abs=1e-15)
            self.model = self.model.chosen(made, held)
        else:
            self.refused(OutOfBoundsError, lambda: self.learner.choose(offered))

    @precondition(lambda self: self.model.waiting)
    @rule(pick=picks, reward=st.sampled_from([1.1234567, -71234567.0, 10**400]))
    def learn_out_of_bounds(self, pick: int, reward: float) -> None:
        self.done["learn out of bounds"] += 1
        one = list(self.model.waiting)[pick % len(self.model.waiting)]
        if self.clip and reward != 10**400:
            self.learner.learn(one, reward)
            self.model = self.model.learned(one, 1.0 if reward > 0 else -1.0)
        else:
            kind = NotFiniteError if reward == 10**400 else OutOfBoundsError
            self.refused(kind, lambda: self.learner.learn(one, reward))

    # Calls that are refused.

    @rule(bad=st.sampled_from(BAD_SETS))
    def choose_nonsense(self, bad: tuple[Any, type[DiscreetError]]) -> None:
        self.done["choose nonsense"] += 1
        offered, kind = bad
        kind = HorizonReachedError if self.over else kind
        self.refused(kind, lambda: self.learner.choose(offered))

    @precondition(lambda self: self.model.waiting)
    @rule(bad=st.sampled_from(BAD_REWARDS), pick=picks)
    def learn_nonsense(self, bad: tuple[Any, type[DiscreetError]], pick: int) -> None:
        self.done["learn nonsense"] += 1
        reward, kind = bad
        one = list(self.model.waiting)[pick % len(self.model.waiting)]
        self.refused(kind, lambda: self.learner.learn(one, reward))

    @rule(which=st.sampled_from(["", "x", "0-0", "zzzzzzzz-0", "-1", None, 5, "next", "1234567-0"]))
    def unknown(self, which: Any) -> None:  # noqa: ANN401
        self.done["unknown"] += 1
        one = next_id(self.learner) if which == "next" else which
        reward = float(f"0.5{MARK}")
        self.refused(UnknownDecisionError, lambda: self.learner.learn(one, reward))
        self.refused(UnknownDecisionError, lambda: self.learner.forget(one))

    # Files.

    @rule()
    def save(self) -> None:
        self.done["save"] += 1
        if self.stored:
            self.learner.save()
            self.refused(ParameterError, lambda: self.learner.save(self.folder / "elsewhere"))
        else:
            self.refused(ParameterError, self.learner.save)

    @precondition(lambda self: not self.stored and self.model.rounds > 3)
    @rule(
        place=st.sampled_from(STARTS),
        after=st.booleans(),
        stop=st.booleans(),
    )
    def save_first(self, place: tuple[Any, str], *, after: bool, stop: bool) -> None:
        """A first save that goes wrong: the learner is in memory or in its files, not in both."""
        self.done["save for the first time"] += 1
        before = digest(self.learner)
        other: BaseException = OSError(5, "Input/output error")
        error = KeyboardInterrupt() if stop else trouble() if place[0] is SqliteStore else other
        refusals = (KeyboardInterrupt, StoreError, StateExistsError)  # a start is left from before
        with contextlib.suppress(*refusals), wrong(place, error, after=after):
            self.learner.save(self.path)
        assert digest(self.learner) == before
        if not self.stored:
            with pytest.raises(StateFileError):
                discreet.load(self.path)

    @precondition(lambda self: self.stored)
    @rule(close=st.booleans())
    def restart(self, *, close: bool) -> None:
        self.done["close and load" if close else "drop and load"] += 1
        before = digest(self.learner)
        if close:
            self.learner.close()
            for call in (self.learner.save, lambda: self.learner.choose([(0.1, 0.2)])):
                self.refused(ReloadNeededError, call)
        self.reload([self.model])
        assert digest(self.learner) == before

    @precondition(lambda self: self.stored)
    @rule()
    def load_twice(self) -> None:
        self.done["load while open"] += 1
        self.refused(StateInUseError, lambda: discreet.load(self.path))

    # Faults.

    @precondition(lambda self: self.stored)
    @rule(
        call=calls,
        action=actions,
        pick=picks,
        name=st.sampled_from(["commit", "commit", "append", "sequence"]),
        after=st.booleans(),
        first=st.sampled_from([1, 1, 1, 2]),
        times=st.integers(1, 3),
        blind=st.booleans(),
        probe=probes,
    )
    def failing_store(
        self,
        *,
        call: str,
        action: Pair,
        pick: int,
        name: str,
        after: bool,
        first: int,
        times: int,
        blind: bool,
        probe: str,
    ) -> None:
        """The store fails, and perhaps cannot even be asked what became of a commit."""
        self.done["failing store"] += 1
        play, candidates = self.faulty(call, action, pick)
        asking = (SqliteStore, "sequence")
        with contextlib.ExitStack() as faults:
            faults.enter_context(wrong((SqliteStore, name), trouble(), first, times, after=after))
            if blind and name != "sequence":
                faults.enter_context(wrong(asking, trouble(), 1, 2, after=False))
            try:
                play()
            except StoreError:
                self.done["failing store, noticed"] += 1
                assert name != "append" or call in {"save", "release", "forget_subject"}
                if not after and not blind and name == "commit":
                    candidates = candidates[:1]
            else:
                candidates = candidates[-1:]
        del play
        self.recover(probe, candidates)

    @precondition(lambda self: self.stored)
    @rule(
        place=st.sampled_from([(os, "open"), (os, "fstat"), (sqlite3, "connect")]),
        stop=st.booleans(),
    )
    def failing_load(self, place: tuple[Any, str], *, stop: bool) -> None:
        self.done["failing load"] += 1
        before = digest(self.learner)
        del self.learner
        gc.collect()  # an error may hold it: it must not be closed under the fault
        fault: Any = OSError(5, "Input/output error")
        if place[0] is sqlite3:
            fault = sqlite3.OperationalError("disk I/O error")
            fault.sqlite_errorcode = sqlite3.SQLITE_IOERR
        error = KeyboardInterrupt() if stop else fault
        with contextlib.suppress(KeyboardInterrupt, StoreError), wrong(place, error, after=False):
            self.load()
        if not hasattr(self, "learner"):
            self.load()
        assert digest(self.learner) == before

    @rule(
        call=calls,
        action=actions,
        pick=picks,
        place=st.sampled_from(PLACES),
        after=st.booleans(),
        probe=probes,
    )
    def interrupt(
        self,
        *,
        call: str,
        action: Pair,
        pick: int,
        place: tuple[type, str],
        after: bool,
        probe: str,
    ) -> None:
        self.done["interrupt"] += 1
        play, candidates = self.faulty(call, action, pick)
        try:
            with wrong(place, KeyboardInterrupt(), after=after):
                play()
        except KeyboardInterrupt:
            self.done["interrupt, noticed"] += 1
        else:
            candidates = candidates[-1:]
        del play
        self.recover(probe, candidates)

    @rule(call=calls, action=actions, pick=picks, at=st.integers(1, 200), probe=probes)
    def interrupt_anywhere(self, call: str, action: Pair, pick: int, at: int, probe: str) -> None:
        self.done["interrupt anywhere"] += 1
        play, candidates = self.faulty(call, action, pick)
        try:
            with Interrupting(at, MODULES):
                play()
        except KeyboardInterrupt:
            self.done["interrupt anywhere, noticed"] += 1
        else:
            candidates = candidates[-1:]
        del play
        self.recover(probe, candidates)

    # What always holds.

    @invariant()
    def holds(self) -> None:
        learner, model = self.learner, self.model
        self.done["steps"] += 1
        assert signature(learner) == model.signature()
        assert learner.waiting == len(model.waiting)
        release = learner.release
        model.check(release, self.base)
        ledger = learner.ledger
        assert len(ledger) == release.number
        assert release.number == 0 or ledger.holds(release)
        assert learner.confidence.centre.shape == (2,)
        shown = [learner, learner._curator, release, ledger, learner.confidence]
        assert MARK not in "".join(f"{one!r}{one}" for one in shown)


Counts = tuple[int, int, list[int]]  # rounds, rows, numbers of decisions that wait
BEFORE: Counts = (4, 1, [1, 2, 3])
CALLS: dict[str, tuple[Callable[[discreet.LinUCB, list[str]], object], Counts]] = {
    "choose": (lambda one, _: one.choose([(0.2, 0.3)]), (5, 1, [1, 2, 3, 4])),
    "choose_many": (lambda one, _: one.choose_many([[(0.2, 0.3)]] * 2), (6, 1, [1, 2, 3, 4, 5])),
    "learn": (lambda one, ids: one.learn(ids[0], 0.25), (4, 2, [2, 3])),
    "learn_many": (lambda one, ids: one.learn_many([(ids[0], 0.5), (ids[2], 0.1)]), (4, 3, [2])),
    "forget": (lambda one, ids: one.forget(ids[1]), (4, 1, [1, 3])),
    "forget_subject": (lambda one, _: one.forget_subject("cem"), BEFORE),
    "save": (lambda one, _: one.save(one.path or SAVED[0]), BEFORE),
    "close": (lambda one, _: one.close(), BEFORE),
}
SAVED: list[Path] = []


def counts(learner: discreet.LinUCB) -> Counts:
    return learner.rounds, learner.rows, sorted(learner._curator._held.waiting)


def saved(learner: discreet.LinUCB, elsewhere: Path) -> tuple[Path, str]:
    """Store the learner and close it; where, and what it held."""
    learner.save(learner.path or elsewhere)
    found = (Path(str(learner.path)), digest(learner))
    learner.close()
    return found


# Several at once go through the store as one does: these two are long.
@pytest.mark.parametrize(
    ("call", "stored"),
    [
        pytest.param(
            call,
            stored,
            marks=[pytest.mark.nightly] * (stored and call in {"learn_many", "choose_many"}),
        )
        for call in CALLS
        for stored in (True, False)
    ],
)
def test_an_interrupt_at_any_instruction_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str, *, stored: bool
) -> None:
    """The call is done or not done, the learner goes on at once, and its files hold the same."""
    unsynced(monkeypatch)
    work, after = CALLS[call]
    happened, at = True, 0
    while happened:
        at += 1
        SAVED[:] = [tmp_path / f"saved {at}"]
        path = tmp_path / f"stored {at}" if stored else None
        learner = discreet.LinUCB(PROBLEM, horizon=9, variant="nonprivate", path=path)
        learner.learn(learner.choose([(0.3, 0.1)]), 0.5)
        ids = [learner.choose([(0.1, 0.2)], subject=who).id for who in (None, "cem", "cem")]
        through = False
        with contextlib.suppress(KeyboardInterrupt), Interrupting(at, MODULES) as interrupting:
            work(learner, ids)
            through = True
        happened = interrupting.happened
        if call == "close" and stored:
            learner.close()
            with discreet.load(learner.path) as again:
                assert counts(again) == BEFORE
            continue
        now = counts(learner)
        assert now == after if through else now in (BEFORE, after)
        learner.learn(learner.choose([(0.4, 0.4)]), 0.25)
        rounds, rows, waiting = now
        assert counts(learner) == (rounds + 1, rows + 1, waiting)
        assert learner.ledger.holds(learner.release)
        place, held = saved(learner, tmp_path / f"late {at}")
        with discreet.load(place) as again:
            assert digest(again).partition("-")[2] == held.partition("-")[2]
    assert at > (2 if call == "close" and not stored else 20)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # unclosed files
def test_an_interrupt_of_load_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unsynced(monkeypatch)
    path = tmp_path / "state"
    with discreet.LinUCB(PROBLEM, horizon=9, variant="nonprivate", path=path) as learner:
        learner.learn(learner.choose([(0.3, 0.1)]), 0.5)
    happened, at = True, 0
    while happened:
        at += 1
        with contextlib.suppress(KeyboardInterrupt), Interrupting(at, MODULES) as interrupting:
            discreet.load(path).close()
        happened = interrupting.happened
        with discreet.load(path) as learner:
            assert counts(learner) == (1, 1, [])
    assert at > 100


def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    quick = tuple(setting.replace("=FULL", "=OFF") for setting in _sqlite_database.SETTINGS)
    monkeypatch.setattr(_sqlite_database, "SETTINGS", quick)


def run(monkeypatch: pytest.MonkeyPatch, examples: int, **more: Any) -> Counter[str]:  # noqa: ANN401
    unsynced(monkeypatch)
    warnings.simplefilter("ignore", GivenUpWarning)
    AnyCalls.done = Counter()
    machine = AnyCalls.TestCase()
    machine.settings = settings(
        max_examples=examples,
        stateful_step_count=60,
        phases=[Phase.generate],  # to shrink a failure takes minutes; add Phase.shrink for that
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
    machine.runTest()
    return AnyCalls.done


def test_any_calls_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, 6, derandomize=True)
    assert done["steps"] > 300


@pytest.mark.nightly
def test_many_calls_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, 400, print_blob=True)
    print(dict(done))  # noqa: T201  # for the record, with pytest -s
    assert done["steps"] >= 10_000
    assert min(done.values()) > 20
