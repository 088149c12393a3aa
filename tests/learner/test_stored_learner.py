"""Learners that are stored: what is there, who may open it, and how it continues."""

import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet import UCB, LinUCB, Problem, load
from discreet.curator import _storage
from discreet.curator.store import Place
from discreet.errors import (
    DecisionClosedError,
    GivenUpWarning,
    MissingFileError,
    ParameterError,
    ReloadNeededError,
    StateExistsError,
    StateInUseError,
    UnknownDecisionError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import Named, named
from discreet.release.ledger import Ledger
from helpers import (
    EARLY,
    TARGET,
    assert_same,
    crashed,
    died,
    learner_for,
    played,
    restarted,
    seeded,
    unit_rows,
    watched,
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
    "windows": (EARLY, "exact"),
    "windows, float": (EARLY, "float"),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def stored(kind: str, problem: Problem, place: Place, **more: object) -> LinUCB:
    """A learner that is stored from its start."""
    variant, noise = KINDS[kind]
    return learner_for(variant, problem, noise=noise, path=place, **more)


def other(place: Place) -> Place:
    """Another place beside it."""
    return place.with_name("other") if isinstance(place, Path) else f"{place}, the other"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file in a folder of its own."""
    (tmp_path / "stored").mkdir()
    return tmp_path / "stored" / "bandit"


@each_kind
def test_a_learner_that_was_never_closed_continues_where_it_was(
    kind: str, problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = played(stored(kind, problem, place), 10)
    waiting = [learner.choose(np.eye(3)) for _ in range(3)]
    learner.forget(waiting[0])
    found = crashed(learner, tmp_path / "crashed", noise_source=seeded(1))
    assert (found.rounds, found.rows, found.waiting) == (13, 10, 2)
    assert_same(found, learner)
    assert found.ledger.holds(learner.release)
    release = learner.release
    died(learner)
    found = load(place, noise_source=seeded(1))
    np.testing.assert_array_equal(found.release.gram, release.gram)
    np.testing.assert_array_equal(found.release.moment, release.moment)
    found.learn(waiting[1], 1)
    assert (found.rounds, found.rows, found.waiting) == (13, 11, 1)


@each_kind
def test_after_every_single_call_the_store_holds_what_memory_holds(
    kind: str, problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = stored(kind, problem, place, max_pending=2)
    made: list[str] = []

    def one_too_many() -> None:
        with pytest.warns(GivenUpWarning):
            made.append(learner.choose(np.eye(3)).id)

    calls = [
        *[lambda: made.append(learner.choose(np.eye(3)).id)] * 2,
        one_too_many,  # the first is given up
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
def test_where_it_is_stored_changes_nothing_about_what_is_learned(
    kind: str, problem: Problem, place: Place
) -> None:
    # In memory, stored, and stored, closed and opened: the same choices and releases.
    variant, noise = KINDS[kind]
    sources = [seeded(4) for _ in range(3)]
    learners = [
        learner_for(variant, problem, noise=noise, noise_source=source, policy=UCB())
        for source in sources
    ]
    learners[1].save(place)
    rng = np.random.default_rng(3)
    for turn in range(14):
        if turn % 4 == 2:
            learners[2] = restarted(learners[2], other(place), noise_source=sources[2])
        actions, reward = unit_rows(rng, 4, 3), float(rng.uniform(-1, 1))
        made = [learner.choose(actions) for learner in learners]
        assert len({decision.index for decision in made}) == 1
        for learner, decision in zip(learners, made, strict=True):
            learner.learn(decision, reward)
            np.testing.assert_array_equal(learner.release.gram, learners[0].release.gram)
            np.testing.assert_array_equal(learner.release.moment, learners[0].release.moment)


@pytest.mark.parametrize("end", [LinUCB.close, died])
def test_a_decision_takes_its_reward_after_any_number_of_restarts(
    end: Callable[[LinUCB], None], problem: Problem, place: Place
) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, path=place)
    old = learner.choose(np.eye(3))
    for _ in range(2):
        end(learner)
        learner = load(place)
        learner.learn(learner.choose(np.eye(3)), 1)
    learner.learn(old.id, 1)
    assert (learner.rows, learner.waiting) == (3, 0)
    for _ in range(2):
        with pytest.raises(DecisionClosedError):
            learner.learn(old, 1)
        end(learner)
        learner = load(place)


def test_a_decision_that_never_reached_the_disk_is_not_mistaken_for_a_later_one(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, path=place)
    known = learner.choose(np.eye(3))
    restored = crashed(learner, tmp_path / "crashed")
    lost = learner.choose(np.eye(3))
    later = restored.choose(np.eye(3))
    assert later.id != lost.id
    with pytest.raises(UnknownDecisionError):
        restored.learn(lost, 1)
    restored.learn(later, 1)
    restored.learn(known, 1)


@pytest.mark.parametrize("row", [EARLY, named("tight")], ids=lambda row: row.name)
def test_the_ledger_file_is_the_ledger(problem: Problem, path: Path, row: Named) -> None:
    learner = LinUCB(problem, horizon=40, privacy=TARGET, variant=row)
    played(learner, 25)  # the releases before `save` are in it too
    learner.save(path)
    played(learner, 15)
    found = Ledger.parse(path.with_name("bandit.ledger").read_bytes())
    assert found.head == learner.ledger.head
    assert len(found) == learner.release.number == learner.mechanism.releases > 1
    assert found.holds(learner.release)
    assert found.card["epsilon"] == TARGET.epsilon


# Who may open it, and where


def test_two_files_for_their_owner_are_all_there_is(problem: Problem, path: Path) -> None:
    with LinUCB(problem, horizon=9, privacy=TARGET, path=path) as learner:
        played(learner, 3)
        learner.save()
        assert learner.path == path
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert files == {"bandit": 0o600, "bandit.ledger": 0o600}


def test_a_learner_is_open_in_one_place_only(problem: Problem, place: Place) -> None:
    learner = played(LinUCB(problem, horizon=9, privacy=TARGET, path=place), 2)
    with pytest.raises(StateInUseError, match="close that one first"):
        load(place)
    learner.close()
    learner.close()  # more than once does no harm
    with load(place) as restored:
        with pytest.raises(StateInUseError):
            load(place)
        assert restored.rows == 2
    assert load(place).rows == 2


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


def test_a_learner_is_stored_in_one_place_only(problem: Problem, place: Place) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, path=place)
    with pytest.raises(ParameterError, match="path: is not where this learner is stored"):
        learner.save(other(place))
    with pytest.raises(MissingFileError):
        load(other(place))
    learner.save(place)
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


# Rows, and sums in their place


def rows_stored(learner: LinUCB) -> int:
    head = learner._curator._storage.head
    return head.rows - head.summed


def test_sums_take_the_place_of_rows_when_a_learner_is_saved_or_closed(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=30, privacy=TARGET, variant=EARLY, path=place)
    played(learner, 4)
    assert rows_stored(learner) == 4
    learner.save()
    assert rows_stored(learner) == 0
    assert_same(crashed(learner, tmp_path / "saved"), learner)
    played(learner, 4).close()
    again = load(place)
    assert (again.rows, rows_stored(again)) == (8, 0)


def test_many_rows_become_sums_by_themselves(
    problem: Problem, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_storage, "_COMPACT_AFTER", 3)
    learner = LinUCB(problem, horizon=40, privacy=TARGET, variant=EARLY, path=place)
    for number in range(1, 11):
        played(learner, 1)
        assert rows_stored(learner) == number % 3
        if number in {3, 5}:
            assert_same(crashed(learner, tmp_path / str(number)), learner)


def test_many_decisions_that_wait_cost_no_more_than_a_few(problem: Problem, path: Path) -> None:
    learner = LinUCB(problem, horizon=10**5, privacy=TARGET, path=path)
    store = watched(learner)
    for _ in range(11):
        learner.choose_many([np.eye(3)] * 1000)
    assert (learner.waiting, len(store.commits)) == (11_000, 11)
    learner.save()
    size, done = path.stat().st_size, len(store.commits)
    learner.learn(learner.choose(np.eye(3)), 1)
    learner.save()
    for change in store.commits[done:]:  # a decision, a row, the sums: none holds all that wait
        assert len(change.puts) + len(change.drops) <= 4
    assert abs(path.stat().st_size - size) < 10**5
    learner.close()
    assert load(path).waiting == 11_000


def test_threads_share_a_stored_learner(problem: Problem, place: Place, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=100, privacy=TARGET, variant=EARLY, path=place)

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
