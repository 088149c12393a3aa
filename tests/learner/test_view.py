"""A stored learner can be looked at while somebody learns; nothing changes by that."""

import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import LinUCB, Problem, Thompson, View, load, open_read_only, read_ledger
from discreet.curator.store import Place
from discreet.errors import (
    CorruptFileError,
    MissingFileError,
    OutOfBoundsError,
    ParameterError,
    ReadOnlyError,
    RewoundStateError,
    StateFileError,
    StoreError,
)
from discreet.mechanism.noise.sources import SystemNoise
from discreet.mechanism.variants import Variant
from discreet.release.ledger import fingerprint
from helpers import EARLY, died, full_disk, learner_for, played, unit_rows, watched

WRITER = """
import sys
import numpy as np
import discreet

bandit = discreet.load(sys.argv[1])
actions = np.eye(3)
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        decisions = bandit.choose_many([actions] * 4)
        bandit.forget(decisions.pop())
        bandit.learn_many([(one, 0.5) for one in decisions])
    print(bandit.release.number, flush=True)
bandit.close()
print("closed", flush=True)
"""


def stored(place: Place, problem: Problem, variant: Variant = EARLY, rows: int = 30) -> LinUCB:
    learner = learner_for(
        variant, problem, horizon=10_000, noise_source=SystemNoise(), noise="float", path=place
    )
    return played(learner, rows)


def on_disk(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything about the files of a folder that somebody could have changed."""
    found = {}
    for path in [folder, *folder.iterdir()]:
        seen = path.stat()
        contents = path.read_bytes() if path.is_file() else b""
        found[path.name] = (seen.st_mode, seen.st_mtime_ns, contents)
    return found


def same(view: View, learner: LinUCB) -> None:
    """All that a view shows is what the learner shows."""
    assert fingerprint(view.release) == fingerprint(learner.release)
    assert (view.release.spread, view.release.weight) == (
        learner.release.spread,
        learner.release.weight,
    )
    assert view.ledger.head == learner.ledger.head
    assert view.guarantee == learner.guarantee
    assert view.policy == learner.policy
    assert view.problem == learner.problem


def test_a_view_shows_what_the_learner_shows_while_it_is_open_and_after(
    place: Place, problem: Problem, variant: Variant
) -> None:
    learner = stored(place, problem, variant)
    same(open_read_only(place), learner)
    rng = np.random.default_rng(1)
    learner.observe(unit_rows(rng, 1_100, 3), rng.uniform(-1, 1, 1_100))  # sums are stored anew
    played(learner, 3)
    view = open_read_only(place)
    same(view, learner)
    learner.close()
    again = open_read_only(place)
    assert fingerprint(again.release) == fingerprint(view.release)
    assert again.ledger.head == view.ledger.head
    assert again.card["releases"] == view.release.number == len(view.ledger)
    assert again.card["learner"] == view.ledger.learner
    load(place).close()  # nobody is in the way


def test_choices_are_those_of_the_learner(place: Place, problem: Problem) -> None:
    learner = stored(place, problem, rows=300)
    view = open_read_only(place)
    actions = np.eye(3)
    wanted = learner.policy.probabilities(learner.release, actions)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(view.probabilities(actions), wanted)
    for _ in range(5):
        choice = view.choose(actions)
        assert choice.probability == wanted[choice.index]
    ranked = view.rank(actions)
    assert sorted(one.index for one in ranked) == [0, 1, 2]
    assert [one.probability for one in ranked] == sorted(wanted, reverse=True)
    found, own = view.estimate(actions, level=0.8), learner.estimate(actions, level=0.8)
    np.testing.assert_array_equal(found.low, own.low)
    assert str(view.diagnosis) == str(learner.diagnosis)
    assert "View(variant='windows'" in repr(view)
    rounds = learner.rounds
    learner.close()
    with load(place) as loaded:
        assert loaded.rounds == rounds


def test_a_view_offers_some_of_the_actions(tmp_path: Path, problem: Problem) -> None:
    stored(tmp_path / "one", problem, rows=300).close()
    view = open_read_only(tmp_path / "one")
    actions = np.eye(3)
    only = view.choose(actions, exclude=[0, 1])
    assert (only.index, only.probability) == (2, pytest.approx(1.0))
    left = view.probabilities(actions, among=[0, 2])
    np.testing.assert_array_equal(
        left[[0, 2]],
        view.policy.probabilities(view.release, actions[[0, 2]]),  # type: ignore[attr-defined]
    )
    assert left[1] == 0.0
    assert {one.index for one in view.rank(actions, among=[0, 2])} == {0, 2}


def test_a_policy_that_does_not_say_has_no_probabilities(tmp_path: Path, problem: Problem) -> None:
    stored(tmp_path / "one", problem).close()
    view = open_read_only(tmp_path / "one", policy=Thompson())
    assert view.choose(np.eye(3)).probability is None
    with pytest.raises(ParameterError, match="does not say"):
        view.rank(np.eye(3))
    with pytest.raises(ParameterError, match="policy"):
        open_read_only(tmp_path / "one", policy="greedy")  # type: ignore[arg-type]
    with pytest.raises(OutOfBoundsError):
        view.choose(2 * np.eye(3))


def test_nothing_can_be_learned_from_a_view(tmp_path: Path, problem: Problem) -> None:
    learner = stored(tmp_path / "one", problem)
    view = open_read_only(tmp_path / "one")
    decision = learner.choose(np.eye(3))
    for refused in (
        lambda: view.learn(decision, 0.5),
        lambda: view.learn_many([(decision, 0.5)]),
        lambda: view.observe(np.eye(3), [0, 0, 0]),
        lambda: view.forget(decision),
        lambda: view.forget_subject("somebody"),
        view.save,
        lambda: view.choose_many([np.eye(3)]),
    ):
        with pytest.raises(ReadOnlyError, match="reading only"):
            refused()
    learner.learn(decision, 0.5)


def test_refresh_takes_a_later_release_and_says_so(place: Place, problem: Problem) -> None:
    learner = stored(place, problem)
    view = open_read_only(place)
    first = view.release
    assert view.refresh() is False
    assert view.release is first
    played(learner, 200, seed=2)
    assert view.release is first
    assert view.refresh() is True
    assert view.release.number > first.number
    same(view, learner)


def test_nothing_is_made_or_written_beside_a_learner(tmp_path: Path, problem: Problem) -> None:
    """Open, after a crash with its log, after a crash without the file for locks, and closed."""
    (tmp_path / "open").mkdir()
    learner = stored(tmp_path / "open" / "one", problem)
    assert (tmp_path / "open" / "one-wal").stat().st_size > 0
    shutil.copytree(tmp_path / "open", tmp_path / "crashed")
    shutil.copytree(tmp_path / "open", tmp_path / "copied")
    (tmp_path / "copied" / "one-shm").unlink()
    wanted = fingerprint(learner.release)
    learner.close()
    (tmp_path / "open").rename(tmp_path / "closed")
    for name in ("crashed", "copied", "closed"):
        folder = tmp_path / name
        for path in folder.iterdir():
            path.chmod(0o400)
        folder.chmod(0o500)  # nobody but root could write
        before = on_disk(folder)
        view = open_read_only(folder / "one")
        view.refresh()
        assert fingerprint(view.release) == wanted
        assert on_disk(folder) == before
        folder.chmod(0o700)


def test_a_learner_that_is_open_here_keeps_its_locks(tmp_path: Path, problem: Problem) -> None:
    """To close a file gives up a process's POSIX locks on it, and SQLite needs them."""
    learner = stored(tmp_path / "one", problem)
    for _ in range(3):
        open_read_only(tmp_path / "one").refresh()
    script = (
        "import sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "print(database.execute('PRAGMA journal_mode=DELETE').fetchone()[0])\n"
    )
    found = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", script, str(tmp_path / "one")],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert "database is locked" in found.stderr  # or else it would be taken for closed
    played(learner, 3)


def test_a_view_follows_a_writer_in_another_process(tmp_path: Path, problem: Problem) -> None:
    place = tmp_path / "one"
    stored(place, problem, discreet.VARIANTS["nonprivate"], rows=3).close()
    with subprocess.Popen(  # noqa: S603  # our own script
        [sys.executable, "-c", WRITER, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        bufsize=1,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(StateFileError, match="open already"):
            load(place)
        view = open_read_only(place)
        numbers = [view.release.number]
        child.stdin.write("150\n")
        child.stdin.flush()
        while numbers[-1] < 3 + 3 * 150:
            view.refresh()
            assert read_ledger(place).holds(view.release)  # it was there before
            numbers.append(view.release.number)
        assert numbers == sorted(numbers)
        written = int(child.stdout.readline())
        assert view.release.number == written == 3 + 3 * 150
        child.stdin.close()
        assert child.stdout.readline() == "closed\n"
        assert child.wait() == 0
    assert open_read_only(place).release.number == written


def test_a_release_that_is_not_in_the_ledger_is_not_shown(place: Place, problem: Problem) -> None:
    learner = stored(place, problem, discreet.VARIANTS["nonprivate"], rows=5)
    view = open_read_only(place)
    watched(learner).before = full_disk("append", times=3)
    learner.learn(learner.choose(np.eye(3)), 0.25)  # committed; the ledger could not be written
    assert view.refresh() is False
    assert open_read_only(place).release.number == 5
    assert fingerprint(open_read_only(place).release) == fingerprint(view.release)
    assert len(open_read_only(place).ledger) == 5
    learner.learn_many([(one, 0.5) for one in learner.choose_many([np.eye(3)] * 3)])
    assert open_read_only(place).release.number == 5  # by now four are missing
    assert learner.release.number == 9  # the ledger has them
    assert view.refresh() is True
    same(view, learner)


def test_a_crash_between_state_and_ledger_shows_the_release_before(
    place: Place, problem: Problem
) -> None:
    learner = stored(place, problem, discreet.VARIANTS["nonprivate"], rows=5)
    watched(learner).before = full_disk("append")
    learner.learn(learner.choose(np.eye(3)), 0.25)
    learner._curator._storage.store = learner._curator._storage.store._store  # what is watched
    died(learner)
    view = open_read_only(place)
    assert view.release.number == 5
    with load(place) as again:  # enters it in the ledger
        assert again.release.number == 6
        assert view.refresh() is True
        same(view, again)


def test_an_older_state_with_its_ledger_is_refused_by_refresh(
    tmp_path: Path, problem: Problem
) -> None:
    place = tmp_path / "now" / "one"
    place.parent.mkdir()
    stored(place, problem).close()
    shutil.copytree(place.parent, tmp_path / "old")
    with load(place) as learner:
        played(learner, 100, seed=3)
    view = open_read_only(place)
    head, shown = view.ledger.head, view.release
    shutil.rmtree(place.parent)
    shutil.copytree(tmp_path / "old", place.parent)
    with pytest.raises(RewoundStateError, match="restored from an older state"):
        view.refresh()
    assert view.release is shown
    with pytest.raises(RewoundStateError, match="ledger_head"):
        open_read_only(place, ledger_head=head)
    with load(place) as learner:  # continued a second time, and further
        played(learner, 200, seed=4)
    with pytest.raises(RewoundStateError, match="another continuation"):
        view.refresh()
    shutil.rmtree(place.parent)
    place.parent.mkdir()
    stored(place, problem, rows=200).close()
    with pytest.raises(RewoundStateError, match="another learner"):
        view.refresh()
    assert view.release is shown


def test_an_older_state_beside_a_newer_ledger_is_refused(tmp_path: Path, problem: Problem) -> None:
    place = tmp_path / "one"
    stored(place, problem).close()
    old = place.read_bytes()
    with load(place) as learner:
        played(learner, 100, seed=3)
    ledger = tmp_path / "one.ledger"
    newest = place.read_bytes()
    place.write_bytes(old)
    with pytest.raises(RewoundStateError, match="older state"):
        open_read_only(place)
    place.write_bytes(newest)
    ledger.write_bytes(ledger.read_bytes().split(b"\n")[0] + b"\n")
    with pytest.raises(StateFileError, match="do not belong together"):
        open_read_only(place)


def test_what_is_no_learner_is_refused(tmp_path: Path, problem: Problem) -> None:
    with pytest.raises(MissingFileError, match="does not exist"):
        open_read_only(tmp_path / "none")
    with pytest.raises(ParameterError, match="not a path"):
        open_read_only(3)  # type: ignore[arg-type]
    place = tmp_path / "one"
    stored(place, problem).close()
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptFileError, match="truncated or altered"):
        open_read_only(place)
    place.write_bytes(b"something else entirely, and long enough to be looked at" * 99)
    with pytest.raises(CorruptFileError, match="not a learner's database"):
        open_read_only(place)
    place.write_bytes(whole)
    (tmp_path / "one.ledger").unlink()
    with pytest.raises(MissingFileError, match="ledger is missing"):
        open_read_only(place)


def test_a_learner_without_its_log_is_refused(tmp_path: Path, problem: Problem) -> None:
    learner = stored(tmp_path / "one", problem)
    for name in ("one", "one.ledger"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("one", "copy"))
    with pytest.raises(MissingFileError, match="copy-wal is missing"):
        open_read_only(tmp_path / "copy")
    learner.close()


def test_a_database_without_learners_is_not_changed(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as database:
        database.execute("DROP DATABASE IF EXISTS empty")
        database.execute("CREATE DATABASE empty")
    address = re.sub(r"/[^/?]*(?=\?|$)", "/empty", postgres, count=1)
    with pytest.raises(MissingFileError, match="no learner"):
        open_read_only(f"{address}#nobody")
    with psycopg.connect(address) as database:
        query = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'discreet%'"
        assert database.execute(query).fetchone() == (0,)


def test_an_sqlite_that_cannot_deserialize_is_said(
    tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path / "one", problem).close()

    class Old:
        def close(self) -> None:
            pass

    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: Old())
    with pytest.raises(StoreError, match="deserialize"):
        open_read_only(tmp_path / "one")


def test_descriptors_of_deleted_files_are_closed(tmp_path: Path, problem: Problem) -> None:
    from discreet.curator.store import _read_only  # noqa: PLC0415

    for name in ("one", "two"):
        stored(tmp_path / name, problem).close()
    open_read_only(tmp_path / "one")
    found = (tmp_path / "one").stat()
    assert (found.st_dev, found.st_ino) in _read_only._DESCRIPTORS
    (tmp_path / "one").unlink()
    open_read_only(tmp_path / "two")
    assert (found.st_dev, found.st_ino) not in _read_only._DESCRIPTORS
