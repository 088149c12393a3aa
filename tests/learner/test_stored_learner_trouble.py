"""Kept learners when something goes wrong: a full disk, an interrupt, files out of step."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet import Decision, LinUCB, Problem, load
from discreet.curator import curator
from discreet.curator.exact import ExactSums
from discreet.curator.keeping import Keeper
from discreet.curator.sums import NoisySums, PrefixSums
from discreet.errors import (
    DecisionClosedError,
    ForkedStateError,
    ReloadNeededError,
    RewoundStateError,
    StateFileError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import named
from discreet.release.ledger import Ledger
from helpers import TARGET, assert_same, crashed, died, failing, played, whole_state

BATCHED = named("tight").with_schedule(batches(3))
CALLS: dict[str, Callable[[LinUCB, Decision], object]] = {
    "choose": lambda learner, _: learner.choose(np.eye(3)),
    "learn": lambda learner, waiting: learner.learn(waiting, 1),
    "forget": lambda learner, waiting: learner.forget(waiting),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
each_noise = pytest.mark.parametrize("noise", ["exact", "float"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept" / "bandit"


def two_rows(problem: Problem, path: Path | None, noise: str = "exact") -> tuple[LinUCB, Decision]:
    """A learner after two rows, and a decision that waits: with its reward there is a release."""
    learner = LinUCB(problem, horizon=30, privacy=TARGET, variant=BATCHED, noise=noise, path=path)
    played(learner, 2)
    return learner, learner.choose(np.eye(3))


def all_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# A disk that does not write


@each_call
@pytest.mark.parametrize("name", ["write", "fsync"])
def test_a_call_that_cannot_be_written_changes_nothing(
    name: str,
    *,
    call: Callable[[LinUCB, Decision], object],
    problem: Problem,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, waiting = two_rows(problem, path)
    state, release, files = whole_state(learner), learner.release, all_files(path.parent)
    failing(monkeypatch, name)
    with pytest.raises(OSError, match="No space left"):
        call(learner, waiting)
    assert whole_state(learner) == state
    assert learner.release is release
    assert all_files(path.parent) == files
    call(learner, waiting)
    assert whole_state(learner) != state
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


@each_call
def test_a_disk_that_stays_away_needs_a_reload(
    call: Callable[[LinUCB, Decision], object],
    problem: Problem,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, waiting = two_rows(problem, path)
    failing(monkeypatch, "fsync", times=9)
    with pytest.raises(OSError, match="No space left"):
        call(learner, waiting)
    monkeypatch.undo()
    for again in (*CALLS.values(), lambda learner, _: learner.save()):
        with pytest.raises(ReloadNeededError, match="reload it from the file"):
            again(learner, waiting)
    with pytest.raises(ReloadNeededError):
        learner.close()  # which gives up the lock all the same
    restored = load(path)
    assert (restored.rounds, restored.rows, restored.waiting) == (3, 2, 1)
    restored.learn(waiting, 1)
    assert restored.release.number == 1


def test_a_release_is_not_shown_before_its_ledger_is_written(
    problem: Problem, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, waiting = two_rows(problem, path)
    other = learner.choose(np.eye(3))
    ledger = learner._curator._keeper._files["ledger"]
    failing(monkeypatch, "write", times=6, at=lambda file: file == ledger)
    learner.learn(waiting, 1)  # the row is in
    assert learner.rows == 3
    for look in (
        lambda: learner.choose(np.eye(3)),
        lambda: learner.learn(other, 1),
        lambda: learner.release,
        lambda: learner.confidence,
        lambda: learner.ledger,
    ):
        with pytest.raises(OSError, match="No space left"):
            look()
    assert (learner.rounds, learner.rows, learner.waiting) == (4, 3, 1)
    assert len(Ledger.parse(path.with_name("bandit.ledger").read_bytes())) == 0
    learner.choose(np.eye(3))  # now there is room
    assert learner.release.rows == 3
    assert Ledger.parse(path.with_name("bandit.ledger").read_bytes()).holds(learner.release)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


@pytest.mark.parametrize("end", [LinUCB.close, died])
def test_a_release_that_never_reached_the_ledger_is_in_it_after_a_restart(
    end: Callable[[LinUCB], None],
    problem: Problem,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, waiting = two_rows(problem, path)
    ledger = learner._curator._keeper._files["ledger"]
    failing(monkeypatch, "fsync", times=1, at=lambda file: file == ledger)
    learner.learn(waiting, 1)
    release = learner._curator._state.release()
    end(learner)
    restored = load(path)
    assert (restored.rows, len(restored.ledger)) == (3, 1)
    assert restored.ledger.holds(release)
    np.testing.assert_array_equal(restored.release.gram, release.gram)


def test_a_snapshot_that_cannot_be_written_costs_nothing(
    problem: Problem, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, waiting = two_rows(problem, path)
    files = all_files(path.parent)
    for name in ("write", "fsync"):
        failing(monkeypatch, name)
        with pytest.raises(OSError, match="No space left"):
            learner.save()
        monkeypatch.undo()
        assert all_files(path.parent) == files
    learner.learn(waiting, 1)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)
    learner.save()
    assert_same(crashed(learner, tmp_path / "saved"), learner)


def test_a_snapshot_that_fails_by_itself_is_tried_again_at_twice_the_length(
    problem: Problem, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curator, "_LONG", 6)
    learner, waiting = two_rows(problem, path)
    held = set(learner._curator._keeper._files._files.values())
    failing(monkeypatch, "fsync", at=lambda file: file not in held)
    learner.learn(waiting, 1)  # the sixth record: a snapshot is due, and fails
    journal = path.with_name("bandit.journal")
    assert len(journal.read_bytes().splitlines()) == 7
    assert_same(crashed(learner, tmp_path / "crashed"), learner)
    for more in range(1, 3):
        played(learner, 1)
        assert len(journal.read_bytes().splitlines()) == 7 + 2 * more
    played(learner, 1)
    assert len(journal.read_bytes().splitlines()) == 1
    assert_same(crashed(learner, tmp_path / "again"), learner)


def test_a_learner_that_could_not_be_kept_goes_on_in_memory(
    problem: Problem, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, waiting = two_rows(problem, None)
    failing(monkeypatch, "fsync")
    with pytest.raises(OSError, match="No space left"):
        learner.save(path)
    assert learner.path is None
    learner.learn(waiting, 1)
    learner.save(path)
    learner.close()
    assert load(path).rows == 3


# Interrupts


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def sums_of(noise: str) -> type[PrefixSums]:
    return ExactSums if noise == "exact" else NoisySums


@each_noise
@pytest.mark.parametrize("files", [True, False], ids=["kept", "memory"])
def test_an_interrupt_before_the_row_is_in_changes_nothing(
    noise: str, *, files: bool, problem: Problem, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, waiting = two_rows(problem, path if files else None, noise)
    state, before = whole_state(learner), all_files(path.parent)
    monkeypatch.setattr(sums_of(noise), "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(waiting, 1)
    monkeypatch.undo()
    assert whole_state(learner) == state
    assert all_files(path.parent) == before
    learner.learn(waiting, 1)
    assert (learner.rows, learner.release.number) == (3, 1)


@each_call
def test_an_interrupt_between_journal_and_memory_needs_a_reload_and_loses_nothing(
    call: Callable[[LinUCB, Decision], object],
    problem: Problem,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, waiting = two_rows(problem, path)
    same = crashed(learner, tmp_path / "uninterrupted")
    call(same, waiting)
    write_down = Keeper.record

    def record(keeper: Keeper, entry: dict) -> None:
        write_down(keeper, entry)
        raise KeyboardInterrupt

    monkeypatch.setattr(Keeper, "record", record)
    with pytest.raises(KeyboardInterrupt):
        call(learner, waiting)
    monkeypatch.undo()
    assert (learner.rounds, learner.rows, learner.waiting) == (3, 2, 1)
    for again in (*CALLS.values(), lambda learner, _: learner.save()):
        with pytest.raises(ReloadNeededError):
            again(learner, waiting)
    died(learner)
    restored = load(path)
    for name in ("rounds", "rows", "waiting"):
        assert getattr(restored, name) == getattr(same, name)
    assert restored.release.number == same.release.number
    assert restored.ledger.rows == restored.release.rows
    played(restored, 3)


@each_call
@each_noise
def test_an_interrupt_right_after_the_change_needs_a_reload_and_loses_nothing(
    call: Callable[[LinUCB, Decision], object],
    noise: str,
    *,
    problem: Problem,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, waiting = two_rows(problem, path, noise)
    other = learner.choose(np.eye(3))
    monkeypatch.setattr(Keeper, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(learner, waiting)
    monkeypatch.undo()
    for again in (*CALLS.values(), lambda learner, _: learner.save()):
        with pytest.raises(ReloadNeededError):
            again(learner, other)
    with pytest.raises(ReloadNeededError):
        learner.close()  # which gives up the lock all the same
    restored = load(path)
    for name in ("rounds", "rows", "waiting"):
        assert getattr(restored, name) == getattr(learner, name)
    np.testing.assert_array_equal(restored.release.gram, learner._curator._state.release().gram)
    assert len(restored.ledger) == restored.release.number
    assert_same(crashed(restored, tmp_path / "crashed"), restored)


def test_an_interrupt_does_not_change_whose_turn_it_is_to_be_given_up(
    problem: Problem, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, max_pending=2, path=path)
    oldest, other = (learner.choose(np.eye(3)) for _ in range(2))
    monkeypatch.setattr(ExactSums, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(oldest, 1)
    monkeypatch.undo()
    learner.choose(np.eye(3))
    with pytest.raises(DecisionClosedError):
        learner.learn(oldest, 1)
    learner.learn(other, 1)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


# Files out of step


def rewound(path: Path, early: Path, *names: str) -> None:
    """Put some of the files of a closed learner back to an earlier time."""
    for name in names:
        shutil.copy2(early / f"{path.name}{name}", path.with_name(f"{path.name}{name}"))


@pytest.mark.parametrize("tidily", [True, False], ids=["closed", "died"])
@pytest.mark.parametrize("names", [("", ".journal", ".lock"), ("", ".journal"), ("",)])
def test_a_state_older_than_its_ledger_is_refused(
    names: tuple[str, ...], *, tidily: bool, problem: Problem, path: Path, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, path)
    shutil.copytree(path.parent, tmp_path / "early")
    learner.learn(waiting, 1)  # a release that the early state does not know
    learner.save()
    played(learner, 1)
    (LinUCB.close if tidily else died)(learner)
    later = all_files(path.parent)
    rewound(path, tmp_path / "early", *names)
    for _ in range(2):
        with pytest.raises(RewoundStateError, match=r"older .* start a new learner"):
            load(path)
    for name, content in later.items():  # and the newest state is as good as ever
        path.with_name(name).write_bytes(content)
    assert load(path).rows == 4


def test_a_journal_cut_before_a_release_is_refused(problem: Problem, path: Path) -> None:
    learner, waiting = two_rows(problem, path)
    learner.learn(waiting, 1)
    died(learner)
    journal = path.with_name("bandit.journal")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(RewoundStateError, match="1 releases were made and this state knows 0"):
        load(path)


def test_a_ledger_of_another_continuation_is_refused(
    problem: Problem, path: Path, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, path)
    copied = crashed(learner, tmp_path / "copy")
    for one in (learner, copied):
        one.learn(waiting, 1)
        one.close()
    rewound(path, tmp_path / "copy", ".ledger")
    with pytest.raises(RewoundStateError, match="the state was continued twice"):
        load(path)


def test_a_ledger_that_lost_a_line_gets_it_again_and_more_is_refused(
    problem: Problem, path: Path
) -> None:
    learner = played(LinUCB(problem, horizon=30, privacy=TARGET, variant=BATCHED, path=path), 7)
    head = learner.ledger.head
    learner.close()
    file = path.with_name("bandit.ledger")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    restored = load(path)
    assert restored.ledger.head == head
    assert file.read_bytes() == b"".join(lines)
    restored.close()
    file.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(StateFileError, match="restore the newest ledger"):
        load(path)


def test_a_whole_copy_is_found_out_by_comparing_ledgers(
    problem: Problem, path: Path, tmp_path: Path
) -> None:
    # Nothing beside a copy of all files says that it is one. Its first release of its own does.
    learner = played(two_rows(problem, path)[0], 4)
    copied = crashed(learner, tmp_path / "copy")
    assert learner.ledger.agrees(copied.ledger) == 2
    for one in (learner, copied):
        one.learn(one.choose([[1.0, 0.0, 0.0]]), 1)
        one.learn(one.choose([[1.0, 0.0, 0.0]]), 1)
        one.learn(one.choose([[1.0, 0.0, 0.0]]), 1)
    with pytest.raises(ForkedStateError, match="has another release 3") as found:
        learner.ledger.agrees(copied.ledger)
    assert found.value.number == 3
