"""Any calls in any order, with bad input, full disks, interrupts and restarts among them.

A model in plain Python says what has to come out. Noise is known (`bookkeeping.KnownNoise`), so
releases are compared with exact sums of rows. Nothing is synced here: `os.fsync` does nothing, or
fails on purpose; that syncing is in the right places is tested elsewhere.
"""

import contextlib
import gc
import os
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bookkeeping import KnownNoise, Model, Pair, digest, signature
from discreet.curator.exact import ExactSums
from discreet.curator.journal import Tail
from discreet.curator.keeping import Keeper
from discreet.curator.state import State
from discreet.curator.waiting import Waiting
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kept import Interrupting

import discreet
from discreet.curator import curator, exact, journal, keeping, state, sums, waiting
from discreet.curator.sums import NoisySums
from discreet.errors import (
    DecisionClosedError,
    DiscreetError,
    EmptyDecisionSetError,
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ReloadNeededError,
    ShapeError,
    StateInUseError,
    UnknownDecisionError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.strategies import SquareRoot

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
TIGHT = discreet.VARIANTS["tight"].with_schedule(batches(2))
LEARNERS: dict[str, tuple[Any, str]] = {
    "tight": (TIGHT, "exact"),
    "tight float": (TIGHT.with_schedule(batches(3)), "float"),
    "square-root": (TIGHT.with_strategy(SquareRoot()), "exact"),
    "gaussian": (discreet.VARIANTS["gaussian"], "exact"),
    "gaussian float": (discreet.VARIANTS["gaussian"], "float"),
    "wishart": (discreet.VARIANTS["wishart"], "float"),
    "nonprivate": (discreet.VARIANTS["nonprivate"], "exact"),
}
MARK = "1234567"  # in every number that goes in, and in no message that comes out

numbers = st.integers(-499, 499).map(lambda n: float(f"{'-' if n < 0 else ''}0.{abs(n):03}{MARK}"))
actions = st.tuples(numbers, numbers)
rewards = numbers
sets = st.lists(actions, min_size=1, max_size=4)
picks = st.integers(0, 10**6)
probes = st.sampled_from(["save", "choose", "drop", "close"])
calls = st.sampled_from(["choose", "learn", "learn", "forget", "save"])

BAD_SETS: list[tuple[Any, type[DiscreetError]]] = [
    ([], EmptyDecisionSetError),
    ([[]], EmptyDecisionSetError),
    (0.51234567, EmptyDecisionSetError),
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
    (State, "take_in"),
    (Waiting, "open"),
    (Waiting, "take"),
    (ExactSums, "add"),
    (NoisySums, "add"),
    (Keeper, "record"),
    (Keeper, "settle"),
    (Keeper, "note"),
    (Keeper, "compact"),
    (Tail, "append"),
    (Tail, "cut"),
]
MODULES = (curator, exact, journal, keeping, state, sums, waiting)


@contextlib.contextmanager
def failing(name: str, first: int, times: int) -> Iterator[None]:
    """A function of `os` raises OSError at its first-th call and a few after it."""
    real, seen = getattr(os, name), [0]

    def fails(*arguments: object, **options: object) -> object:
        seen[0] += 1
        if first <= seen[0] < first + times:
            raise OSError(28, "No space left on device")
        return real(*arguments, **options)

    setattr(os, name, fails)
    try:
        yield
    finally:
        setattr(os, name, real)


@contextlib.contextmanager
def interrupted(place: tuple[type, str], *, after: bool) -> Iterator[None]:
    """An interrupt right before or right after the first call of a method."""
    owner, name = place
    real, seen = getattr(owner, name), [0]

    def stopped(*arguments: object, **options: object) -> object:
        seen[0] += 1
        if seen[0] == 1 and not after:
            raise KeyboardInterrupt
        found = real(*arguments, **options)
        if seen[0] == 1:
            raise KeyboardInterrupt
        return found

    setattr(owner, name, stopped)
    try:
        yield
    finally:
        setattr(owner, name, real)


class AnyCalls(RuleBasedStateMachine):
    """A learner, and what it should hold."""

    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "state"

    def teardown(self) -> None:
        if hasattr(self, "learner"):
            with contextlib.suppress(ReloadNeededError):  # after a failure only
                self.learner.close()
        shutil.rmtree(self.folder)

    @initialize(
        name=st.sampled_from(sorted(LEARNERS)),
        kept=st.sampled_from([True, True, True, False]),
        clip=st.booleans(),
        horizon=st.integers(3, 30),
        most=st.integers(1, 6),
    )
    def start(self, *, name: str, kept: bool, clip: bool, horizon: int, most: int) -> None:
        variant, noise = LEARNERS[name]
        self.clip = clip
        self.model = Model(horizon, most)
        self.learner = discreet.LinUCB(
            PROBLEM,
            horizon=horizon,
            privacy=None if name == "nonprivate" else TARGET,
            variant=variant,
            noise=noise,
            on_violation="clip" if clip else "error",
            max_pending=most,
            noise_source=KnownNoise(),
            path=self.path if kept else None,
        )
        self.base = self.learner.release.gram.copy()
        if name != "wishart":
            shift = self.learner.mechanism.shift
            assert self.base.tolist() == [[shift, 0.0], [0.0, shift]]

    # Helpers.

    @property
    def kept(self) -> bool:
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
            with contextlib.suppress(ReloadNeededError):
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
        """After a fault the learner goes on, or asks to be loaded: then it is one of these."""
        if not self.kept:
            self.model = self.match(candidates)
            return
        if probe in {"drop", "close"}:
            self.reload(candidates, close=probe == "close")
            return
        action: Pair = (0.31234567, -0.41234567)
        with contextlib.suppress(ReloadNeededError):  # which holds on to no frames
            if probe == "save" or self.model.rounds + 1 >= self.model.horizon:
                self.learner.save()
                self.model = self.match(candidates)
            else:
                before = signature(self.learner)
                made = self.learner.choose([action]).id
                going = [one for one in candidates if one.signature() == before]
                assert going, "the learner went on from something else"
                self.model = going[0].chosen(made, action)
            return
        self.done["asked to be loaded"] += 1
        self.reload(candidates)

    def faulty(
        self, call: str, action: Pair, pick: int
    ) -> tuple[Callable[[], object], list[Model]]:
        """A call, and what the learner may hold after a fault in it; last, if all went well."""
        model, learner = self.model, self.learner
        if call == "choose" and not self.over:
            made = learner._curator._state.waiting.next_id()
            return lambda: learner.choose([action]), [model, model.chosen(made, action)]
        if call == "learn" and model.waiting:
            one = list(model.waiting)[pick % len(model.waiting)]
            reward = action[0]
            return lambda: learner.learn(one, reward), [model, model.learned(one, reward)]
        if call == "forget" and model.waiting:
            one = list(model.waiting)[pick % len(model.waiting)]
            return lambda: learner.forget(one), [model, model.forgotten(one)]
        if call == "save" and self.kept:
            return learner.save, [model]
        return lambda: learner.release, [model]

    # Calls that go well.

    @rule(offered=sets)
    def choose(self, offered: list[Pair]) -> None:
        self.done["choose"] += 1
        if self.over:
            self.refused(HorizonReachedError, lambda: self.learner.choose(offered))
            return
        made = self.learner.choose(offered)
        self.model = self.model.chosen(made.id, offered[made.index])

    @rule(pick=picks, reward=rewards)
    def learn(self, pick: int, reward: float) -> None:
        self.done["learn"] += 1
        known = [*self.model.waiting, *self.model.closed[-3:]]
        if not known:
            return
        one = known[pick % len(known)]
        if one in self.model.waiting:
            self.learner.learn(one, reward)
            self.model = self.model.learned(one, reward)
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

    @rule(long=st.sampled_from(LONG_SETS))
    def choose_too_long(self, long: tuple[list[Pair], Pair]) -> None:
        self.done["choose too long"] += 1
        offered, shortened = long
        if self.over:
            self.refused(HorizonReachedError, lambda: self.learner.choose(offered))
        elif self.clip:
            made = self.learner.choose(offered).id
            held = dict(signature(self.learner)[2])[made]
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
        one = self.learner._curator._state.waiting.next_id() if which == "next" else which
        reward = float(f"0.5{MARK}")
        self.refused(UnknownDecisionError, lambda: self.learner.learn(one, reward))
        self.refused(UnknownDecisionError, lambda: self.learner.forget(one))

    # Files.

    @rule()
    def save(self) -> None:
        self.done["save"] += 1
        if self.kept:
            self.learner.save()
            self.refused(ParameterError, lambda: self.learner.save(self.folder / "elsewhere"))
        else:
            self.refused(ParameterError, self.learner.save)

    @precondition(lambda self: not self.kept and self.model.rounds > 3)
    @rule(first=st.integers(1, 6), name=st.sampled_from(["write", "fsync", "replace", "open"]))
    def save_first(self, first: int, name: str) -> None:
        self.done["save for the first time"] += 1
        before = digest(self.learner)
        with failing(name, first, 1), contextlib.suppress(OSError):
            self.learner.save(self.path)
        assert digest(self.learner) == before
        if not self.kept:
            assert not [one for one in self.folder.iterdir() if one.suffix != ".lock"]

    @precondition(lambda self: self.kept)
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

    @precondition(lambda self: self.kept)
    @rule()
    def load_twice(self) -> None:
        self.done["load while open"] += 1
        self.refused(StateInUseError, lambda: discreet.load(self.path))

    # Faults.

    @precondition(lambda self: self.kept)
    @rule(
        call=calls,
        action=actions,
        pick=picks,
        name=st.sampled_from(["write", "write", "fsync", "fsync", "replace", "open"]),
        first=st.sampled_from([1, 1, 1, 2, 3, 5]),
        times=st.integers(1, 3),
        probe=probes,
    )
    def full_disk(
        self, *, call: str, action: Pair, pick: int, name: str, first: int, times: int, probe: str
    ) -> None:
        self.done["full disk"] += 1
        play, candidates = self.faulty(call, action, pick)
        before = digest(self.learner)
        try:
            with failing(name, first, times):
                play()
        except OSError:
            self.done["full disk, noticed"] += 1
            assert digest(self.learner) == before
        else:
            candidates = candidates[-1:]
        del play
        self.recover(probe, candidates)

    @precondition(lambda self: self.kept)
    @rule(name=st.sampled_from(["write", "fsync", "ftruncate", "open"]), first=st.integers(1, 4))
    def full_disk_at_a_load(self, name: str, first: int) -> None:
        self.done["full disk at a load"] += 1
        before = digest(self.learner)
        del self.learner
        gc.collect(0)
        with contextlib.suppress(OSError), failing(name, first, 1):
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
        if place == (Waiting, "take") and after and not self.kept:
            one = next(iter(set(self.model.waiting) - set(candidates[-1].waiting)), None)
            # In memory a row is lost then: it waits no longer, and is not in yet.
            candidates[:0] = [] if one is None else [self.model.forgotten(one)]
        try:
            with interrupted(place, after=after):
                play()
        except KeyboardInterrupt:
            self.done["interrupt, noticed"] += 1
        else:
            candidates = candidates[-1:]
        del play
        self.recover(probe, candidates)

    @precondition(lambda self: self.kept)
    @rule(call=calls, action=actions, pick=picks, at=st.integers(1, 500), probe=probes)
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


AFTER: dict[str, tuple[int, int, list[Pair]]] = {
    "choose": (3, 1, [(0.2, 0.3)]),
    "learn": (2, 2, []),
    "forget": (2, 1, []),
}


def play(learner: discreet.LinUCB, call: str, made: str) -> None:
    if call == "choose":
        learner.choose([(0.2, 0.3)])
    elif call == "learn":
        learner.learn(made, 0.25)
    else:
        learner.forget(made)


@pytest.mark.parametrize("call", AFTER)
@pytest.mark.parametrize("kept", [True, False])
def test_an_interrupt_at_any_instruction_is_found_out_or_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str, *, kept: bool
) -> None:
    """In memory a row or a decision may be lost, but what is saved can always be loaded."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for at in range(1, 1000):
        path = tmp_path / str(at)
        learner = discreet.LinUCB(
            PROBLEM, horizon=9, variant="nonprivate", max_pending=1, path=path if kept else None
        )
        learner.learn(learner.choose([(0.3, 0.1)]), 0.5)
        made = learner.choose([(0.1, 0.2)]).id
        through = False
        with contextlib.suppress(KeyboardInterrupt), Interrupting(at, (waiting, state)):
            play(learner, call, made)
            through = True
        rounds, rows, held = signature(learner)
        now = digest(learner)
        asked = True
        with contextlib.suppress(ReloadNeededError):
            learner.save(path)
            asked = False
        possible = [(2, 1, [(0.1, 0.2)]), AFTER[call]]
        assert asked or not kept or (rounds, rows, [one for _, one in held]) in possible
        del learner
        with discreet.load(path) as loaded:
            found = signature(loaded)
            assert not kept or (*found[:2], [one for _, one in found[2]]) in possible
            assert asked or digest(loaded) == now
        if through:
            break
    assert 20 < at < 999


def run(monkeypatch: pytest.MonkeyPatch, examples: int, **more: Any) -> Counter[str]:  # noqa: ANN401
    monkeypatch.setattr(os, "fsync", lambda _: None)
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
    done = run(monkeypatch, 15, derandomize=True)
    assert done["steps"] > 300


@pytest.mark.nightly
def test_many_calls_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, 400, print_blob=True)
    print(dict(done))  # noqa: T201  # for the record, with pytest -s
    assert done["steps"] >= 10_000
    assert done["asked to be loaded"] > 50
    assert min(done.values()) > 20
