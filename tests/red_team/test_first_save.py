"""A first save that goes wrong in the middle: the learner is in memory or in its files, never both.

If it went on in memory while its files could be loaded, two learners would continue one state, and
show the same noise on other data.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.curator.store import ledger_file, sqlite
from discreet.errors import DiscreetError, StateFileError, StoreError
from helpers import whole_state

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
CALLS = ("open", "write", "fsync", "close", "unlink", "fstat", "stat")


class Steps:
    """Counts everything that a first save does to files, and lets something happen at one step.

    Attributes:
        done: how many steps there were.
    """

    def __init__(self) -> None:
        self.done = 0
        self._at = 0
        self._times = 0
        self._before: Callable[[str], object] = lambda _: None
        self._after: Callable[[str], object] = lambda _: None

    def plan(
        self,
        at: int,
        *,
        times: int = 1,
        before: Callable[[str], object] = lambda _: None,
        after: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.done, self._at, self._times, self._before, self._after = 0, at, times, before, after

    def step(self, kind: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401
        self.done += 1
        now = self._at <= self.done < self._at + self._times
        if now:
            self._before(kind)
        found = work()
        if now:
            self._after(kind)
        return found


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Watches the system's calls and all that is asked of SQLite."""
    found = Steps()

    class Watched(sqlite3.Connection):
        def execute(self, *some: Any) -> Any:  # noqa: ANN401
            return found.step("sql", lambda: sqlite3.Connection.execute(self, *some))

        def executemany(self, *some: Any) -> Any:  # noqa: ANN401
            return found.step("sql", lambda: sqlite3.Connection.executemany(self, *some))

    def connect(*some: Any, **more: Any) -> Any:  # noqa: ANN401
        return found.step("sql", lambda: real_connect(*some, factory=Watched, **more))

    class System:
        """The module `os`, as the stores see it."""

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            real = getattr(os, name)
            if name not in CALLS:
                return real
            return lambda *some, **more: found.step("system", lambda: real(*some, **more))

    real_connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(sqlite, "os", System())
    monkeypatch.setattr(ledger_file, "os", System())
    return found


def begun() -> discreet.LinUCB:
    learner = discreet.LinUCB(
        PROBLEM, horizon=100, privacy=TARGET, variant=discreet.VARIANTS["gaussian"]
    )
    learner.learn(learner.choose([(0.3, 0.4)]), 0.5)
    learner.choose([(0.1, 0.2)])
    return learner


def loads(*places: Path) -> list[Path]:
    """Those places at which a learner can be loaded."""
    found = []
    for place in places:
        try:
            discreet.load(place).close()
        except (StateFileError, StoreError):
            continue
        found.append(place)
    return found


def goes_on(learner: discreet.LinUCB) -> bool:
    """Whether the learner takes in a row and shows the release that comes of it."""
    before = learner.rows
    try:
        learner.learn(learner.choose([(0.2, 0.1)]), 0.25)
        assert learner.release.number == learner.rows == before + 1
    except DiscreetError:
        return False
    return True


def one_of_them_goes_on(learner: discreet.LinUCB, *places: Path) -> str:
    """Check that the learner goes on in memory, or is in its files; which of them."""
    if learner.path is None and goes_on(learner):
        assert loads(*places) == []
        return "memory"
    alive = goes_on(learner)
    rows = learner.rows
    held = whole_state(learner)
    learner.close()
    found = loads(*places)
    if alive:
        assert len(found) == 1
        with discreet.load(found[0]) as again:
            assert again.rows == rows
            assert whole_state(again) == held
        return "files"
    assert len(found) <= 1
    return "given up"


def failing(kind: str) -> None:
    raise trouble() if kind == "sql" else OSError(errno.EROFS, "Read-only file system")


def trouble() -> sqlite3.OperationalError:
    """What SQLite raises when the disk fails. No frame that it passes holds on to it."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    error.sqlite_errorname = "SQLITE_IOERR"
    return error


def stopping(_: str) -> None:
    raise KeyboardInterrupt


def every_step(steps: Steps, folder: Path) -> Iterator[tuple[int, discreet.LinUCB, Path]]:
    """A learner to be saved for the first time, for each step of such a save."""
    steps.plan(0)
    begun().save(folder / "all")
    last = steps.done
    assert last > 20
    for at in range(1, last + 1):
        place = folder / str(at) / "state"
        place.parent.mkdir()
        yield at, begun(), place


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("times", [1, 10**6])
def test_an_error_at_any_step_leaves_one_learner(
    steps: Steps, tmp_path: Path, when: str, times: int
) -> None:
    ends = set()
    for at, learner, place in every_step(steps, tmp_path):
        held = whole_state(learner)
        steps.plan(at, times=times, **{when: failing})
        try:
            learner.save(place)
        except StoreError:
            pass
        finally:
            steps.plan(0)
        learner.release  # noqa: B018  # the store answers again, and what is in doubt is found out
        assert {key: held[key] for key in held if key[0]} == {
            key: value for key, value in whole_state(learner).items() if key[0]
        }
        ends.add(one_of_them_goes_on(learner, place))
        if learner.path is None:
            learner.save(place)  # without clearing up
            one_of_them_goes_on(learner, place)
    assert "memory" in ends
    assert "given up" not in ends


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_at_any_step_leaves_one_learner(
    steps: Steps, tmp_path: Path, when: str
) -> None:
    for at, learner, place in every_step(steps, tmp_path):
        steps.plan(at, **{when: stopping})
        try:
            learner.save(place)
        except KeyboardInterrupt:
            pass
        finally:
            steps.plan(0)
        assert one_of_them_goes_on(learner, place) in {"memory", "files"}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("new_folder", [True, False])
def test_a_folder_that_is_renamed_at_any_step_leaves_one_learner(
    steps: Steps, tmp_path: Path, when: str, *, new_folder: bool
) -> None:
    """Somebody renames the folder, and perhaps makes another one with its name."""
    ends = set()
    for at, learner, place in every_step(steps, tmp_path):
        moved = tmp_path / f"moved {at}"

        def rename(_: str, folder: Path = place.parent, target: Path = moved) -> None:
            folder.rename(target)
            if new_folder:
                folder.mkdir()

        steps.plan(at, **{when: rename})
        try:
            learner.save(place)
        except DiscreetError:
            pass
        finally:
            steps.plan(0)
        ends.add(one_of_them_goes_on(learner, place, moved / "state"))
    assert "memory" in ends


def test_a_ledger_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "state"
    beside = tmp_path / "state.ledger"
    beside.write_text("somebody else's\n")
    learner = begun()
    with pytest.raises(StateFileError):
        learner.save(place)
    assert beside.read_text() == "somebody else's\n"
    assert not place.exists()
    assert one_of_them_goes_on(learner, place) == "memory"
