"""Calls that break into a call of the same thread: from signal handlers and from finalizers.

Python runs both between any two instructions. Such a call is refused, or comes between two calls
and is a call like any other; what is half done is never built on.
"""

import contextlib
import gc
import itertools
import signal
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import ParameterError, ReentrantCallError
from helpers import whole_state

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
ACTIONS = [(0.3, 0.4), (-0.5, 0.1)]


@pytest.fixture(params=["in memory", "stored"])
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[discreet.LinUCB]:
    found = discreet.LinUCB(
        PROBLEM,
        horizon=10**6,
        privacy=TARGET,
        variant=discreet.VARIANTS["gaussian"],
        max_pending=10**6,
        path=tmp_path / "state" if request.param == "stored" else None,
    )
    yield found
    found.close()


def calls_for(learner: discreet.LinUCB) -> int:
    return 1500 if learner.path is None else 150


class Diary:
    """What was acknowledged, and what was refused."""

    def __init__(self, learner: discreet.LinUCB) -> None:
        self._learner = learner
        self.done: list[str] = []  # a handler may come in the middle of adding to a count
        self.refused: Counter[str] = Counter()
        self.waiting: list[str] = []

    def call(self, name: str) -> None:
        """Make a call, and write down what came of it. A handler makes them as well."""
        one = self.waiting.pop() if name in {"learn", "forget"} and self.waiting else None
        try:
            if name == "choose":
                one = self._learner.choose(ACTIONS).id
            elif name == "save" and self._learner.path is None:
                with contextlib.suppress(ParameterError):  # where to, it does not say
                    self._learner.save()
            elif name == "save":
                self._learner.save()
            elif one is None:
                return
            elif name == "learn":
                self._learner.learn(one, 0.5)
            else:
                self._learner.forget(one)
        except ReentrantCallError:
            self.refused[name] += 1
            if one is not None:
                self.waiting.append(one)
            return
        self.done.append(name)
        if name == "choose" and one is not None:
            self.waiting.append(one)

    def check(self, folder: Path) -> None:
        """Everything acknowledged is there, now and after a restart, and the ledger is whole."""
        learner = self._learner
        assert learner.rounds == self.done.count("choose")
        assert learner.rows == self.done.count("learn")
        assert learner.waiting == len(self.waiting)
        assert learner.release.number == learner.rows == len(learner.ledger)
        assert learner.ledger.holds(learner.release)
        learner.save(learner.path or folder / "saved")
        held, head, place = whole_state(learner), learner.ledger.head, learner.path
        learner.close()
        with discreet.load(place, ledger_head=head) as again:
            assert whole_state(again) == held
            for one in self.waiting:
                again.learn(one, -0.5)
            assert again.waiting == 0


@pytest.fixture
def alarm() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Calls something every now and then, from a signal handler."""
    before = signal.getsignal(signal.SIGALRM)

    def start(work: Callable[[], object]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: work())
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("breaks_in", ["choose", "learn", "forget", "save"])
def test_a_signal_handler_that_calls_the_learner_breaks_nothing(
    learner: discreet.LinUCB,
    breaks_in: str,
    alarm: Callable[[Callable[[], object]], None],
    tmp_path: Path,
) -> None:
    ours, theirs = Diary(learner), Diary(learner)
    theirs.waiting = [learner.choose(ACTIONS).id for _ in range(100)]
    theirs.done = ["choose"] * len(theirs.waiting)
    alarm(lambda: theirs.call(breaks_in))
    late = time.monotonic() + 60.0
    for turn in itertools.count():
        ours.call("choose" if turn % 2 else "learn")
        if turn % 100 == 0:
            ours.call("save")
        if turn > calls_for(learner) and (theirs.refused or time.monotonic() > late):
            break
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert not ours.refused
    assert theirs.refused[breaks_in] > 0
    theirs.done += ours.done
    theirs.waiting += ours.waiting
    theirs.check(tmp_path)


class Request:
    """Something that a program keeps with a decision, in a cycle as such things are."""

    def __init__(self) -> None:
        self.itself = self


def test_finalizers_that_forget_decisions_break_nothing(
    learner: discreet.LinUCB, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused: list[str] = []
    forgotten: list[str] = []
    diary = Diary(learner)

    def forget(one: str) -> None:
        try:
            learner.forget(one)
        except BaseException:
            refused.append(one)
            raise
        forgotten.append(one)

    wrong: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: wrong.append(found.exc_type))
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: wrong.append(kind))
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what other tests have left is not looked through at every turn
    gc.set_threshold(7, 2, 2)
    try:
        for _ in range(calls_for(learner)):
            request = Request()
            one = learner.choose(ACTIONS).id
            weakref.finalize(request, forget, one).atexit = False
            diary.done.append("choose")
            del request
            diary.waiting.append(learner.choose(ACTIONS).id)
            diary.done.append("choose")
            diary.call("learn")
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
    gc.collect()
    assert len(refused) > 0
    assert len(forgotten) + len(refused) == calls_for(learner)
    assert set(wrong) == {ReentrantCallError}
    diary.waiting += refused
    diary.check(tmp_path)
