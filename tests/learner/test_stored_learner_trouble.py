"""Stored learners when something goes wrong: a full disk, an interrupt, files out of step."""

import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from discreet import Decision, LinUCB, Problem, load
from discreet.curator import _storage
from discreet.curator._changes import Records, Row
from discreet.curator._releases import Releases
from discreet.curator.curator import Curator
from discreet.curator.store import Commit, Place, sqlite
from discreet.curator.sums import PrefixSums
from discreet.errors import (
    DecisionClosedError,
    ForkedStateError,
    ReentrantCallError,
    ReloadNeededError,
    RewoundStateError,
    SecondWriterError,
    StateFileError,
    StoreError,
    WrongProcessError,
)
from discreet.learner import read_ledger
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import named
from helpers import (
    EARLY,
    TARGET,
    assert_same,
    crashed,
    died,
    full_disk,
    played,
    watched,
    whole_state,
)

BATCHED = named("tight").with_schedule(batches(3))
CALLS: dict[str, Callable[[LinUCB, Decision], object]] = {
    "choose": lambda learner, _: learner.choose(np.eye(3)),
    "choose_many": lambda learner, _: learner.choose_many([np.eye(3)] * 2),
    "learn": lambda learner, waiting: learner.learn(waiting, 1),
    "learn_many": lambda learner, waiting: learner.learn_many([(waiting, 1)]),
    "forget": lambda learner, waiting: learner.forget(waiting),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
LOOKS: dict[str, Callable[[LinUCB], object]] = {
    "release": lambda learner: learner.release,
    "confidence": lambda learner: learner.confidence,
    "ledger": lambda learner: learner.ledger,
    "save": LinUCB.save,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "stored").mkdir()
    return tmp_path / "stored" / "bandit"


def two_rows(
    problem: Problem, place: Place | None, noise: str = "exact"
) -> tuple[LinUCB, Decision]:
    """A learner after two rows, and a decision that waits: with its reward there is a release."""
    learner = LinUCB(problem, horizon=30, privacy=TARGET, variant=BATCHED, noise=noise, path=place)
    played(learner, 2)
    return learner, learner.choose(np.eye(3))


def all_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# A disk that does not write


@each_call
def test_a_call_that_cannot_be_stored_changes_nothing_and_may_be_tried_again(
    call: Callable[[LinUCB, Decision], object], problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, place)
    state, release = whole_state(learner), learner.release
    watched(learner).before = full_disk("commit", times=3)
    for _ in range(3):
        with pytest.raises(StoreError, match="No space left") as caught:
            call(learner, waiting)
        assert len(str(caught.value).splitlines()) == 1
        assert whole_state(learner) == state
        assert learner.release is release
    call(learner, waiting)
    assert whole_state(learner) != state
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


@each_call
def test_a_commit_whose_success_was_not_told_is_found_out(
    call: Callable[[LinUCB, Decision], object], problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, place)
    same = crashed(learner, tmp_path / "told")
    call(same, waiting)
    watched(learner).after = full_disk("commit", times=1)  # an answer that was lost
    call(learner, waiting)  # the store was asked, and has it
    for name in ("rounds", "rows", "waiting"):
        assert getattr(learner, name) == getattr(same, name)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


@each_call
@pytest.mark.parametrize("happened", [True, False])
def test_a_commit_in_doubt_is_asked_for_again(
    call: Callable[[LinUCB, Decision], object],
    *,
    happened: bool,
    problem: Problem,
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, waiting = two_rows(problem, place)
    state = whole_state(learner)
    store = watched(learner)
    setattr(store, "after" if happened else "before", full_disk("commit"))
    with monkeypatch.context() as away:

        def unknown() -> int:
            raise StoreError("path", "does not answer")

        away.setattr(store, "sequence", unknown, raising=False)
        for _ in range(2):
            with pytest.raises(StoreError):
                call(learner, waiting)
        assert whole_state(learner) == state
        for look in LOOKS.values():
            with pytest.raises(StoreError):
                look(learner)
    store.before = store.after = lambda _: None
    assert (learner.rounds > 3 or learner.waiting != 1 or learner.rows > 2) == happened
    played(learner, 1)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


def test_a_release_is_not_shown_before_its_ledger_is_written(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, place)
    other = learner.choose(np.eye(3))
    before = learner.release
    store = watched(learner)
    store.before = full_disk("append")
    learner.learn(waiting, 1)  # the row is in
    assert learner.rows == 3
    for look in LOOKS.values():
        with pytest.raises(StoreError, match="No space left"):
            look(learner)
    learner.choose(np.eye(3))  # goes on with what was shown
    learner.learn(other, 1)
    assert learner._curator.shown is before
    assert (learner.rounds, learner.rows, learner.waiting) == (5, 4, 1)
    assert len(read_ledger(place)) == 0
    store.before = lambda _: None  # there is room again
    assert learner.release.rows == 3
    assert read_ledger(place).holds(learner.release)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


def test_several_releases_that_had_to_wait_are_written_in_order(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner, _ = two_rows(problem, place)
    store = watched(learner)
    store.before = full_disk("append")
    played(learner, 8)
    assert len(read_ledger(place)) == 0
    store.before = lambda _: None
    assert len(learner.ledger) == len(read_ledger(place)) == 3
    assert read_ledger(place).head == learner.ledger.head
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


@pytest.mark.parametrize("end", [LinUCB.close, died])
def test_a_release_that_never_reached_the_ledger_is_in_it_after_a_restart(
    end: Callable[[LinUCB], None], problem: Problem, place: Place
) -> None:
    learner, waiting = two_rows(problem, place)
    watched(learner).before = full_disk("append")
    learner.learn(waiting, 1)
    release = learner._curator._held.releases.coming[-1]
    end(learner)
    restored = load(place)
    assert (restored.rows, len(restored.ledger)) == (3, 1)
    assert restored.ledger.holds(release)
    np.testing.assert_array_equal(restored.release.gram, release.gram)


def test_sums_that_cannot_be_stored_cost_nothing(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, place)
    watched(learner).before = full_disk("commit", times=1)
    with pytest.raises(StoreError, match="No space left"):
        learner.save()
    assert_same(crashed(learner, tmp_path / "failed"), learner)
    learner.learn(waiting, 1)
    assert_same(crashed(learner, tmp_path / "learned"), learner)
    learner.save()
    assert_same(crashed(learner, tmp_path / "saved"), learner)


def test_sums_that_cannot_be_stored_are_tried_again_after_twice_as_many_rows(
    problem: Problem, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_storage, "_COMPACT_AFTER", 3)
    learner = LinUCB(problem, horizon=60, privacy=TARGET, variant=EARLY, path=path)
    store = watched(learner)

    def fails(kind: str) -> None:
        if kind == "commit" and store.commits[-1].wipe:
            raise StoreError("path", "could not be used (No space left on device)")

    store.before = fails
    tries = []
    for number in range(1, 26):
        before = sum(change.wipe for change in store.commits)
        played(learner, 1)
        if sum(change.wipe for change in store.commits) > before:
            tries.append(number)
    assert tries == [3, 6, 12, 24]
    assert_same(crashed(learner, tmp_path / "crashed"), learner)
    store.before = lambda _: None
    learner.save()
    played(learner, 3)
    assert learner._curator._storage.head.summed == 28  # and then at the usual length again
    assert_same(crashed(learner, tmp_path / "again"), learner)


def test_a_learner_that_could_not_be_stored_goes_on_in_memory(
    problem: Problem, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, waiting = two_rows(problem, None)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("write", "fsync"):
        with monkeypatch.context() as broken:
            broken.setattr(os, name, full)
            with pytest.raises(StoreError, match="No space left"):
                learner.save(path)
        assert learner.path is None
        assert list(path.parent.iterdir()) == []
    with monkeypatch.context() as broken:
        broken.setattr(sqlite.SqliteStore, "commit", lambda *_: full_disk("commit")("commit"))
        with pytest.raises(StoreError, match="No space left"):
            learner.save(path)
    assert learner.path is None
    assert list(path.parent.iterdir()) == []
    learner.learn(waiting, 1)
    learner.save(path)
    learner.close()
    assert load(path).rows == 3


LIMITED = """
import resource, signal, sys
import numpy as np
from discreet import LinUCB, Privacy, Problem, load
from discreet.errors import StoreError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
problem = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
learner = LinUCB(problem, horizon=10**5, privacy=Privacy(epsilon=1, delta=1e-6), path=sys.argv[1])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
made, refused = [], 0
while refused < 5:
    try:
        made.append(learner.choose(np.eye(3)))
    except StoreError as error:
        assert len(str(error).splitlines()) == 1
        refused += 1
assert learner.rounds == len(made) == learner.waiting > 50
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
made.append(learner.choose(np.eye(3)))  # there is room again, and no reload was needed
learner.learn(made[0], 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
try:
    learner.save()
except StoreError:
    pass
learner._curator._storage.store._finalizer()
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
again = load(sys.argv[1])
print(again.rounds - len(made), again.waiting - len(made), again.rows, refused)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files")
def test_a_disk_that_is_really_full_costs_nothing(path: Path) -> None:
    found = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == ["0", "-1", "1", "5"]


# Interrupts


@each_call
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("kind", ["commit", "append"])
def test_an_interrupt_around_a_write_needs_no_reload_and_loses_nothing(
    call: Callable[[LinUCB, Decision], object],
    where: str,
    kind: str,
    *,
    problem: Problem,
    place: Place,
    tmp_path: Path,
) -> None:
    learner, waiting = two_rows(problem, place)
    done = crashed(learner, tmp_path / "uninterrupted")
    before = learner.rounds, learner.rows, learner.waiting
    call(done, waiting)
    store = watched(learner)

    def interrupts(found: str) -> None:
        if found == kind:
            store.before = store.after = lambda _: None
            raise KeyboardInterrupt

    setattr(store, where, interrupts)
    with suppress(KeyboardInterrupt):
        call(learner, waiting)
    store.before = store.after = lambda _: None
    counts = learner.rounds, learner.rows, learner.waiting
    after = done.rounds, done.rows, done.waiting
    assert counts == (before if (where, kind) == ("before", "commit") else after)
    assert len(learner.ledger) == learner.release.number == learner.rows // 3
    assert_same(crashed(learner, tmp_path / "crashed"), learner)
    played(learner, 3)
    assert_same(crashed(learner, tmp_path / "later"), learner)


STEPS = {
    "drawing noise": (PrefixSums, "draw"),
    "staging": (Row, "stage"),
    "making items": (Records, "encoded"),
    "leading": (Curator, "_lead"),
    "noting the commit": (Curator, "_note_commit"),
    "applying": (Curator, "_apply_all"),
    "adding the row": (PrefixSums, "add"),
    "making the release": (Releases, "make"),
    "showing": (Curator, "_show"),
}


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "memory"])
@pytest.mark.parametrize("late", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_an_interrupt_at_any_step_leaves_a_reward_taken_in_or_not(
    step: tuple[type, str],
    *,
    late: bool,
    stored: bool,
    problem: Problem,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, waiting = two_rows(problem, path if stored else None)
    real = getattr(*step)

    def interrupted(*arguments: object) -> None:
        monkeypatch.undo()
        if late:
            real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(*step, interrupted)
    with suppress(KeyboardInterrupt):
        learner.learn(waiting, 1)
    monkeypatch.undo()
    counts = learner.rounds, learner.rows, learner.waiting
    assert counts in {(3, 2, 1), (3, 3, 0)}
    assert len(learner.ledger) == learner.release.number == learner.rows // 3
    if learner.waiting:
        learner.learn(waiting, 1)
    assert (learner.rounds, learner.rows, learner.waiting) == (3, 3, 0)
    assert len(learner.ledger) == learner.release.number == 1
    played(learner, 3)
    if stored:
        assert_same(crashed(learner, tmp_path / "crashed"), learner)


def test_a_call_from_inside_a_call_is_refused(problem: Problem, place: Place) -> None:
    learner, waiting = two_rows(problem, place)
    refused: list[str] = []

    def calls_again(_: str) -> None:
        for again in (
            *CALLS.values(),
            *(lambda one, _, look=look: look(one) for look in LOOKS.values()),
        ):
            try:
                again(learner, waiting)
            except ReentrantCallError as error:
                refused.append(str(error))

    store = watched(learner)
    store.before = calls_again
    learner.learn(waiting, 1)
    assert len(refused) >= 9
    assert all("in the middle of another call" in message for message in refused)
    store.before = lambda _: None
    assert (learner.rounds, learner.rows, learner.waiting) == (3, 3, 0)


def test_an_interrupt_does_not_change_whose_turn_it_is_to_be_given_up(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET, max_pending=2, path=place)
    oldest, other = (learner.choose(np.eye(3)) for _ in range(2))
    store = watched(learner)

    def interrupts(_: str) -> None:
        raise KeyboardInterrupt

    store.before = interrupts
    with pytest.raises(KeyboardInterrupt):
        learner.learn(oldest, 1)
    store.before = lambda _: None
    with pytest.warns(UserWarning, match="the oldest are given up"):
        learner.choose(np.eye(3))
    with pytest.raises(DecisionClosedError):
        learner.learn(oldest, 1)
    learner.learn(other, 1)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


# Other processes and other writers


def test_another_writer_stops_a_learner_for_good(problem: Problem, place: Place) -> None:
    learner, waiting = two_rows(problem, place)
    store = learner._curator._storage.store
    sequence = store.sequence()
    store.commit(Commit(sequence, sequence + 5))  # as somebody without a lock would
    for call in (*CALLS.values(), lambda one, _: one.save()):
        with pytest.raises(SecondWriterError):
            call(learner, waiting)
    learner.close()
    restored = load(place)
    restored.learn(waiting, 1)
    assert restored.rows == 3


FORKED = """
import os, sys
import numpy as np
from discreet import LinUCB, Privacy, Problem, load
from discreet.errors import WrongProcessError

problem = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
learner = LinUCB(problem, horizon=500, privacy=Privacy(epsilon=1, delta=1e-6), path=sys.argv[1])
waiting = learner.choose(np.eye(3))
child = os.fork()
if child == 0:
    refused = 0
    for call in (lambda: learner.choose(np.eye(3)), lambda: learner.learn(waiting, 1),
                 lambda: learner.save(), lambda: learner.release, lambda: learner.ledger):
        try:
            call()
        except WrongProcessError:
            refused += 1
    learner.close()
    sys.exit(refused)
refused = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
learner.learn(waiting, 1)
learner.close()
print(refused, load(sys.argv[1]).rows)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_is_refused_everything_and_its_parent_goes_on(place: Place) -> None:
    found = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", FORKED, str(place)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.split() == ["5", "1"]
    assert issubclass(WrongProcessError, Exception)


def test_a_learner_that_is_dropped_gives_up_its_store(problem: Problem, place: Place) -> None:
    learner, waiting = two_rows(problem, place)
    del learner
    gc.collect()
    restored = load(place)
    restored.learn(waiting, 1)
    assert restored.rows == 3


def test_a_learner_whose_files_were_moved_goes_on_where_they_are(
    problem: Problem, path: Path
) -> None:
    learner, waiting = two_rows(problem, path)
    state = whole_state(learner)
    elsewhere = path.parent.with_name("elsewhere")
    path.parent.rename(elsewhere)
    for call in (*CALLS.values(), lambda one, _: one.save()):
        with pytest.raises(ReloadNeededError, match="load it from where its files are now"):
            call(learner, waiting)
    assert whole_state(learner) == state
    learner.close()
    restored = load(elsewhere / "bandit")
    restored.learn(waiting, 1)
    assert restored.rows == 3


def test_threads_that_call_during_the_first_save_get_no_error(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=10**4, privacy=TARGET)
    failed: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                learner.learn(learner.choose(np.eye(3)), 1)
        except BaseException as error:  # noqa: BLE001  # all of them are looked at
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    learner.save(place)
    stored = learner.rows
    while learner.rows < stored + 20 and not failed:
        stop.wait(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (learner.rounds, learner.waiting) == (learner.rows, 0)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


# Files out of step


def rewound(path: Path, early: Path, *names: str) -> None:
    """Put some of the files of a closed learner back to an earlier time."""
    for name in names:
        shutil.copy2(early / f"{path.name}{name}", path.with_name(f"{path.name}{name}"))


@pytest.mark.parametrize("tidily", [True, False], ids=["closed", "died"])
def test_a_state_older_than_its_ledger_is_refused(
    *, tidily: bool, problem: Problem, path: Path, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, path)
    shutil.copytree(path.parent, tmp_path / "early")
    learner.learn(waiting, 1)  # a release that the early state does not know
    learner.save()
    played(learner, 1)
    (LinUCB.close if tidily else died)(learner)
    later = all_files(path.parent)
    rewound(path, tmp_path / "early", "")
    for _ in range(2):
        with pytest.raises(RewoundStateError, match=r"older .* start a new learner"):
            load(path)
    for name, content in later.items():  # and the newest state is as good as ever
        path.with_name(name).write_bytes(content)
    assert load(path).rows == 4


def test_a_backup_of_everything_is_refused_by_whoever_kept_the_head(
    problem: Problem, path: Path, tmp_path: Path
) -> None:
    learner, waiting = two_rows(problem, path)
    early = learner.ledger.head
    learner.close()
    shutil.copytree(path.parent, tmp_path / "early")
    learner = load(path, ledger_head=early)
    learner.learn(waiting, 1)
    head = learner.ledger.head
    assert head != early
    learner.close()
    rewound(path, tmp_path / "early", "", ".ledger")
    with pytest.raises(RewoundStateError, match="ledger_head: is not in the ledger"):
        load(path, ledger_head=head)
    load(path, ledger_head=early).close()
    load(path).close()  # nobody else can tell


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
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    # Nothing beside a copy of everything says that it is one. Its first release of its own does.
    learner = played(two_rows(problem, place)[0], 4)
    copied = crashed(learner, tmp_path / "copy")
    assert learner.ledger.agrees(copied.ledger) == 2
    for one in (learner, copied):
        for _ in range(3):
            one.learn(one.choose([[1.0, 0.0, 0.0]]), 1)
    with pytest.raises(ForkedStateError, match="has another release 3") as found:
        learner.ledger.agrees(copied.ledger)
    assert found.value.number == 3
