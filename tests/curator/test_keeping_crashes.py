"""Kept learners that are interrupted or killed at any moment."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import disk, journal, keeping, places, storage
from discreet.curator.keeping import Keeper
from discreet.errors import ReloadNeededError
from kept import BODY, Interrupting, begun, contents, on_disk, sha

# Interrupts: at every instruction of the package's own code.


@pytest.fixture
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not sync: thousands of learners, and no disk fails here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


WRITING = [keeping, journal, disk, places, storage]


class Learner:
    """The least that a learner does with its keeper."""

    def __init__(self, path: Path) -> None:
        self.keeper, self.ledger = begun(path)
        self.memory: list[dict[str, Any]] = []
        self.shown = 0

    def learn(self, number: int) -> None:
        self.keeper.record({"n": number})
        self.memory.append({"n": number})
        self.keeper.settle()

    def release(self) -> None:
        number = self.keeper.noted + 1
        if number > len(self.ledger):
            self.ledger.append(number, number, sha(number))
        self.keeper.note(self.ledger.entries[number - 1])
        self.shown = number

    def give_up(self, number: int) -> None:
        self.keeper.record({"n": number})
        self.keeper.withdraw()

    def compact(self, _: int) -> None:
        self.keeper.compact({"rows": [entry["n"] for entry in self.memory]})


def state_on_disk(path: Path) -> tuple[list[int], int]:
    body, records, releases = on_disk(path)
    return [*body.get("rows", []), *(entry["n"] for entry in records)], releases


@pytest.mark.usefixtures("without_waiting")
@pytest.mark.parametrize("call", ["learn", "give_up", "compact"])
def test_an_interrupt_anywhere_never_parts_memory_and_file_in_silence(
    tmp_path: Path, call: str
) -> None:
    outcomes = set()
    for at in range(1, 10**5):
        path = tmp_path / f"{at}"
        learner = Learner(path)
        learner.learn(1)
        try:
            with Interrupting(at, WRITING):
                getattr(learner, call)(2)
        except KeyboardInterrupt:
            pass
        else:
            break
        known = [entry["n"] for entry in learner.memory]
        try:
            learner.learn(3)
        except ReloadNeededError:
            outcomes.add("refused")
            learner.keeper.close()
            # The interrupted call is in the file as a whole, or not at all.
            assert state_on_disk(path)[0] in (known, [*known, 2])
        else:
            outcomes.add("continued")
            learner.keeper.close()
            assert state_on_disk(path)[0] == [*known, 3]
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
    assert outcomes == {"refused", "continued"}
    assert at > 50


@pytest.mark.usefixtures("without_waiting")
def test_an_interrupt_anywhere_never_shows_what_is_not_in_the_ledger(tmp_path: Path) -> None:
    for at in range(1, 10**5):
        path = tmp_path / f"{at}"
        learner = Learner(path)
        try:
            with Interrupting(at, WRITING):
                learner.release()
        except KeyboardInterrupt:
            pass
        else:
            break
        try:
            learner.release()
        except ReloadNeededError:
            learner.keeper.close()
            assert state_on_disk(path)[1] in (learner.shown, learner.shown + 1)
        else:
            learner.keeper.close()
            assert state_on_disk(path)[1] == learner.shown
    assert at > 50


def test_a_crash_anywhere_in_compact_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "here" / "bandit"
    path.parent.mkdir()
    keeper, _ = begun(path, records=3)
    copies: list[Path] = []

    def crash() -> None:
        copies.append(tmp_path / f"copy{len(copies)}")
        shutil.copytree(path.parent, copies[-1])

    steps = _stepping(monkeypatch, crash)
    keeper.compact({"rows": 3})
    monkeypatch.undo()
    assert steps
    found = [on_disk(copied / "bandit") for copied in copies]
    before, after = (BODY, [{"n": 1}, {"n": 2}, {"n": 3}], 0), ({"rows": 3}, [], 0)
    assert set(map(str, found)) == {str(before), str(after)}
    assert found.index(after) == found.count(before)  # first all old, then all new
    for copied in copies:
        assert list(contents(copied)) == ["bandit", "bandit.journal", "bandit.ledger"]


def _stepping(monkeypatch: pytest.MonkeyPatch, crash: Callable[[], None]) -> list[str]:
    """Call ``crash`` before and after every step that changes a file."""
    steps: list[str] = []
    for owner, name in ((disk, "written"), (Path, "replace"), (Path, "unlink")):
        real = getattr(owner, name)

        def around(
            *arguments: object, real: Callable[..., Any] = real, name: str = name, **more: object
        ) -> object:
            crash()
            found = real(*arguments, **more)
            steps.append(name)
            crash()
            return found

        monkeypatch.setattr(owner, name, around)
    return steps


def test_a_file_that_may_not_grow_is_as_it_was(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "bandit"
    keeper, ledger = begun(path, records=3, releases=3)
    before = contents(tmp_path)
    entry = ledger.append(4, 4, sha(4))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    calls: list[tuple[str, Callable[[], None]]] = [
        ("bandit.journal", lambda: keeper.record({"n": 4})),
        ("bandit.ledger", lambda: keeper.note(entry)),
        ("bandit", lambda: keeper.compact({"rows": 3, "much": "a" * 5000})),
    ]
    for name, call in calls:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before[name]) + 20, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                call()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert contents(tmp_path) == before
    keeper.record({"n": 4})
    keeper.settle()
    keeper.note(entry)
    keeper.close()
    assert on_disk(path) == (BODY, [{"n": number} for number in (1, 2, 3, 4)], 4)


# Processes that are killed.

WRITER = """
import itertools, sys
from pathlib import Path
from kept import sha
from discreet.curator.keeping import Keeper

keeper, body, records, ledger = Keeper.open(sys.argv[1])
rows = body.get("rows", 0) + len(records)
entry = ledger.reconcile(rows // 3, rows // 3 * 3, sha(rows // 3))
if entry is not None:
    keeper.note(entry)
print(f"open {rows} {len(ledger)}", flush=True)
for rows in itertools.count(rows + 1):
    keeper.record({"n": rows, "noise": "a" * 5000})
    keeper.settle()
    print(f"row {rows}", flush=True)
    if rows % 3 == 0:
        keeper.note(ledger.append(rows // 3, rows, sha(rows // 3)))
        print(f"release {rows // 3}", flush=True)
    if rows % 7 == 0:
        keeper.compact({"rows": rows})
"""


def test_a_process_that_is_killed_loses_nothing_that_it_showed(tmp_path: Path) -> None:
    path = tmp_path / "bandit"
    begun(path)[0].close()
    chance = random.Random(20261115)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    rows = 0
    for _ in range(24):
        with subprocess.Popen(  # noqa: S603  # our own script
            [sys.executable, "-c", WRITER, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            assert process.stdout is not None
            opened = process.stdout.readline().split()
            assert opened[0] == "open"
            # All that was shown is there, and at most one call more.
            assert rows <= int(opened[1]) <= rows + 1
            assert int(opened[2]) == int(opened[1]) // 3
            time.sleep(chance.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().splitlines()
        whole = [line.split() for line in lines if len(line.split()) == 2]
        rows = max([int(opened[1]), *(int(number) for what, number in whole if what == "row")])
        shown = [int(number) for what, number in whole if what == "release"]
        keeper, _, _, ledger = Keeper.open(path)
        keeper.close()
        assert len(ledger) >= max(shown, default=0)
    assert rows > 24  # they got somewhere
