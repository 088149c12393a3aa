"""Learners that are kept in files: what is there, who may open it, and how it continues."""

import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet import LinUCB, Problem, load
from discreet.curator import curator
from discreet.errors import (
    DecisionClosedError,
    ParameterError,
    ReloadNeededError,
    StateExistsError,
    StateInUseError,
    UnknownDecisionError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import named
from discreet.release.ledger import Ledger
from helpers import (
    TARGET,
    assert_same,
    crashed,
    died,
    learner_for,
    played,
    restarted,
    seeded,
    unit_rows,
)

BATCHED = named("tight").with_schedule(batches(3))
KINDS = {
    "tight": (BATCHED, "exact"),
    "tight, float": (BATCHED, "float"),
    "tight, a tree": (BATCHED.with_tree("pan-private"), "exact"),
    "gaussian": (named("gaussian"), "exact"),
    "gaussian, float": (named("gaussian"), "float"),
    "wishart, float": (named("wishart"), "float"),
    "nonprivate": (named("nonprivate"), "exact"),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
SUFFIXES = ("", ".journal", ".ledger", ".lock")


def kept(kind: str, problem: Problem, path: Path, **more: object) -> LinUCB:
    """A learner that is in files from its start."""
    variant, noise = KINDS[kind]
    return learner_for(variant, problem, noise=noise, path=path, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place with a folder of its own, so that all files can be copied together."""
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept" / "bandit"


@each_kind
def test_a_learner_that_was_never_closed_continues_where_it_was(
    kind: str, problem: Problem, path: Path, tmp_path: Path
) -> None:
    learner = played(kept(kind, problem, path), 10)
    waiting = [learner.choose(np.eye(3)) for _ in range(3)]
    learner.forget(waiting[0])
    found = crashed(learner, tmp_path / "crashed", noise_source=seeded(1))
    assert (found.rounds, found.rows, found.waiting) == (13, 10, 2)
    assert_same(found, learner)
    assert found.ledger.holds(learner.release)
    release = learner.release
    died(learner)
    found = load(path, noise_source=seeded(1))
    np.testing.assert_array_equal(found.release.gram, release.gram)
    np.testing.assert_array_equal(found.release.moment, release.moment)
    found.learn(waiting[1], 1)
    assert (found.rounds, found.rows, found.waiting) == (13, 11, 1)


@each_kind
def test_after_every_single_call_the_files_hold_what_memory_holds(
    kind: str, problem: Problem, path: Path, tmp_path: Path
) -> None:
    learner = kept(kind, problem, path, max_pending=2)
    made: list[str] = []
    calls = [
        *[lambda: made.append(learner.choose(np.eye(3)).id)] * 3,  # the first is given up
        lambda: learner.learn(made[2], 0.5),
        lambda: learner.forget(made[1]),
        *[lambda: played(learner, 1)] * 2,  # in batches: the first release
        learner.save,
        lambda: played(learner, 1),
    ]
    for number, call in enumerate(calls):
        call()
        assert_same(crashed(learner, tmp_path / str(number), noise_source=seeded(1)), learner)


@each_kind
def test_what_is_kept_changes_nothing_about_what_is_learned(
    kind: str, problem: Problem, path: Path
) -> None:
    # In memory, in files, and in files that are closed and opened: the same choices and releases.
    variant, noise = KINDS[kind]
    sources = [seeded(4) for _ in range(3)]
    learners = [
        learner_for(variant, problem, noise=noise, noise_source=source) for source in sources
    ]
    learners[1].save(path)
    rng = np.random.default_rng(3)
    for turn in range(14):
        if turn % 4 == 2:
            learners[2] = restarted(learners[2], path.with_name("other"), noise_source=sources[2])
        actions, reward = unit_rows(rng, 4, 3), float(rng.uniform(-1, 1))
        made = [learner.choose(actions) for learner in learners]
        assert len({decision.index for decision in made}) == 1
        for learner, decision in zip(learners, made, strict=True):
            learner.learn(decision, reward)
            np.testing.assert_array_equal(learner.release.gram, learners[0].release.gram)
            np.testing.assert_array_equal(learner.release.moment, learners[0].release.moment)


@pytest.mark.parametrize("end", [LinUCB.close, died])
def test_a_decision_takes_its_reward_after_any_number_of_restarts(
    end: Callable[[LinUCB], None], problem: Problem, path: Path
) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, path=path)
    old = learner.choose(np.eye(3))
    for _ in range(2):
        end(learner)
        learner = load(path)
        learner.learn(learner.choose(np.eye(3)), 1)
    learner.learn(old.id, 1)
    assert (learner.rows, learner.waiting) == (3, 0)
    for _ in range(2):
        with pytest.raises(DecisionClosedError):
            learner.learn(old, 1)
        end(learner)
        learner = load(path)


def test_a_decision_that_never_reached_the_disk_is_not_mistaken_for_a_later_one(
    problem: Problem, path: Path, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, path=path)
    known = learner.choose(np.eye(3))
    restored = crashed(learner, tmp_path / "crashed")
    lost = learner.choose(np.eye(3))
    later = restored.choose(np.eye(3))
    assert later.id != lost.id
    with pytest.raises(UnknownDecisionError):
        restored.learn(lost, 1)
    restored.learn(later, 1)
    restored.learn(known, 1)


def test_the_ledger_file_is_the_ledger(problem: Problem, path: Path) -> None:
    learner = LinUCB(problem, horizon=40, privacy=TARGET)
    played(learner, 25)  # the releases before `save` are in it too
    learner.save(path)
    played(learner, 15)
    found = Ledger.parse(path.with_name("bandit.ledger").read_bytes())
    assert found.head == learner.ledger.head
    assert len(found) == learner.release.number == learner.mechanism.releases > 1
    assert found.holds(learner.release)
    assert found.card["epsilon"] == TARGET.epsilon


# Who may open it, and where


def test_four_files_for_their_owner_are_all_there_is(problem: Problem, path: Path) -> None:
    with LinUCB(problem, horizon=9, privacy=TARGET, path=path) as learner:
        played(learner, 3)
        learner.save()
        assert learner.path == path
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert files == {f"bandit{suffix}": 0o600 for suffix in SUFFIXES}


def test_a_learner_is_open_in_one_place_only(problem: Problem, path: Path) -> None:
    learner = played(LinUCB(problem, horizon=9, privacy=TARGET, path=path), 2)
    with pytest.raises(StateInUseError, match="close that one first"):
        load(path)
    learner.close()
    learner.close()  # more than once does no harm
    with load(path) as restored:
        with pytest.raises(StateInUseError):
            load(path)
        assert restored.rows == 2
    assert load(path).rows == 2


def test_a_closed_learner_does_nothing_more(problem: Problem, path: Path) -> None:
    with LinUCB(problem, horizon=9, privacy=TARGET, path=path) as learner:
        decision = learner.choose(np.eye(3))
    before = path.read_bytes()
    for call in (
        lambda: learner.choose(np.eye(3)),
        lambda: learner.learn(decision, 1),
        lambda: learner.forget(decision),
        learner.save,
        lambda: learner.save(path.with_name("other")),
        lambda: learner.release,
        lambda: learner.confidence,
        lambda: learner.ledger,
    ):
        with pytest.raises(ReloadNeededError, match="learner: was closed; load it again"):
            call()
    assert path.read_bytes() == before
    assert (learner.rounds, learner.waiting, learner.path) == (1, 1, path)


def test_a_learner_in_memory_has_nothing_to_close(problem: Problem) -> None:
    with LinUCB(problem, horizon=9, privacy=TARGET) as learner:
        played(learner, 1)
    assert played(learner, 1).rows == 2
    assert learner.path is None
    with pytest.raises(ParameterError, match="path: is missing; say where"):
        learner.save()


def test_a_learner_is_kept_in_one_place_only(problem: Problem, path: Path) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, path=path)
    with pytest.raises(ParameterError, match="path: is not where this learner is kept"):
        learner.save(path.with_name("other"))
    assert not path.with_name("other").exists()
    learner.save(path)
    assert played(learner, 1).rows == 1


def test_no_learner_is_overwritten(problem: Problem, path: Path) -> None:
    played(LinUCB(problem, horizon=9, privacy=TARGET, path=path), 2).close()
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    other = played(LinUCB(problem, horizon=9, privacy=TARGET), 1)
    with pytest.raises(StateExistsError, match="exists already"):
        other.save(path)
    with pytest.raises(StateExistsError, match="exists already"):
        LinUCB(problem, horizon=9, privacy=TARGET, path=path)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    assert (played(other, 1).rows, other.path) == (2, None)  # and it goes on in memory
    other.save(path.with_name("other"))
    assert load(path).rows == 2


def test_closed_files_can_be_moved(problem: Problem, path: Path, tmp_path: Path) -> None:
    played(LinUCB(problem, horizon=9, privacy=TARGET, path=path), 2).close()
    shutil.move(path.parent, tmp_path / "moved")
    restored = load(tmp_path / "moved" / "bandit")
    assert (restored.rows, restored.path) == (2, tmp_path / "moved" / "bandit")


# Snapshots


def test_a_snapshot_empties_the_journal(problem: Problem, path: Path) -> None:
    journal = path.with_name("bandit.journal")
    learner = LinUCB(problem, horizon=30, privacy=TARGET, path=path)
    empty = len(journal.read_bytes().splitlines())
    played(learner, 4)
    assert len(journal.read_bytes().splitlines()) == empty + 8
    learner.save()
    assert len(journal.read_bytes().splitlines()) == empty
    played(learner, 4).close()
    assert len(journal.read_bytes().splitlines()) == empty
    assert load(path).rows == 8


def test_a_long_journal_becomes_a_snapshot_by_itself(
    problem: Problem, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curator, "_LONG", 6)
    learner = LinUCB(problem, horizon=40, privacy=TARGET, path=path)
    for number in range(1, 11):
        played(learner, 1)
        lines = path.with_name("bandit.journal").read_bytes().splitlines()
        assert len(lines) == 1 + 2 * (number % 3)
        if number in {3, 5}:
            assert_same(crashed(learner, tmp_path / str(number)), learner)


def test_threads_share_a_kept_learner(problem: Problem, path: Path, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=100, privacy=TARGET, path=path)

    def work() -> None:
        for turn in range(8):
            learner.learn(learner.choose(np.eye(3)), 1)
            if turn % 4 == 3:
                learner.save()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (learner.rounds, learner.rows, learner.waiting) == (32, 32, 0)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)
