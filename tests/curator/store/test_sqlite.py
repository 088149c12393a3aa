"""A learner in an SQLite file: names, modes, files that go away, damage, crashes."""

import errno
import os
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import LinUCB, Problem, load
from discreet.curator import store as stores
from discreet.curator.store import UNFINISHED, Commit, Item, Place, Store, sqlite
from discreet.errors import (
    CorruptFileError,
    DiscreetError,
    FileVersionError,
    MissingFileError,
    ParameterError,
    ReloadNeededError,
    StateExistsError,
    StateFileError,
    StateInUseError,
    StoreError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import named
from helpers import TARGET, died, played, whole_state

ITEMS: list[Item] = [(0, 0, b"zero"), (3, 1, b"one"), (3, 2, b"two")]
LINES = [b'{"line":0}\n', b'{"line":1}\n']
STORED = (0, ITEMS, b"".join(LINES))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place with a folder of its own."""
    (tmp_path / "stored").mkdir()
    return tmp_path / "stored" / "bandit"


def begun(path: Place) -> Store:
    store = stores.create(path, ITEMS, LINES)
    store.commit(Commit(UNFINISHED, 0))
    return store


def held(path: Place) -> tuple[int, list[Item], bytes]:
    found = stores.open(path)
    found.store.close()
    return found.sequence, sorted(found.items), found.ledger


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir())


def ledger(path: Path) -> Path:
    return path.with_name(f"{path.name}.ledger")


# Names


@pytest.mark.parametrize(
    "name", ["a.ledger", "A.LEDGER", ".ledger", "a-journal", "a.db-WAL", "a-shm", "a.ledger.ledger"]
)
@pytest.mark.parametrize("make", [begun, stores.open])
def test_a_name_that_belongs_to_a_file_beside_a_learner_is_refused(
    tmp_path: Path, name: str, make: Callable[[Place], object]
) -> None:
    with pytest.raises(ParameterError, match=r"path: ends in .* without such an ending"):
        make(tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("make", [begun, stores.open, stores.ledger_of])
@pytest.mark.parametrize("path", ["a\0b", "", None, 3, b"a", True, object()])
def test_what_is_no_path_is_refused(path: Any, make: Callable[[Any], object]) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match="path: is not a path; give the name of a file"):
        make(path)


@pytest.mark.parametrize("make", [begun, stores.open])
def test_a_folder_is_no_file(tmp_path: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ParameterError, match="folder is a folder; give the name of a file in it"):
        make(tmp_path / "folder")
    assert names(tmp_path) == ["folder"]


def test_what_is_missing_is_named_in_one_line(path: Path) -> None:
    refused = []
    with pytest.raises(ParameterError, match="nowhere is not a folder; make it first") as caught:
        begun(path.parent / "nowhere" / "bandit")
    refused.append(caught)
    with pytest.raises(MissingFileError, match="bandit does not exist; give the path") as caught:
        stores.open(path)
    refused.append(caught)
    with pytest.raises(MissingFileError, match="bandit does not exist; give a ledger") as caught:
        stores.ledger_of(path)
    refused.append(caught)
    assert all(len(str(caught.value).splitlines()) == 1 for caught in refused)
    assert names(path.parent) == []


def test_something_that_is_not_a_plain_file_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(ParameterError, match="is not a file"):
        stores.open(path)
    with pytest.raises(StateExistsError):
        begun(path)
    path.unlink()
    begun(path).close()
    ledger(path).unlink()
    os.mkfifo(ledger(path))
    with pytest.raises(StateFileError, match="is not a file"):
        stores.open(path)
    with pytest.raises(ParameterError, match="is not a ledger"):
        stores.ledger_of(path)


@pytest.mark.parametrize("length", [249, 255, 256, 5000])
@pytest.mark.parametrize("make", [begun, stores.open, stores.ledger_of])
def test_a_name_too_long_for_the_system_is_refused(
    path: Path, length: int, make: Callable[[Path], object]
) -> None:
    with pytest.raises(DiscreetError, match=r"path|file"):
        make(path.with_name("a" * length))
    assert names(path.parent) == []


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "a#b",
        "a?mode=memory",
        "a%20b",
        "%41",
        "é漢字🎲",
        "a'b\"c",
        ":memory:",
        "file:a",
        "-a",
        "~",
    ],
)
def test_a_name_may_hold_any_character(path: Path, name: str) -> None:
    target = path.with_name(name)
    store = begun(target)
    assert names(path.parent) == sorted([name, f"{name}-shm", f"{name}-wal", f"{name}.ledger"])
    assert repr(str(target)) in repr(store)
    store.close()
    assert held(target) == STORED
    assert names(path.parent) == sorted([name, f"{name}.ledger"])


def test_a_relative_path_stays_where_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    store = begun("bandit")
    assert store.place == path
    monkeypatch.chdir(path.parent.parent)
    store.commit(Commit(0, 1))
    store.close()
    assert held(path)[0] == 1


def test_a_link_leads_to_the_file_itself(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    store = begun(link)
    assert store.place == path
    with pytest.raises(StateInUseError):
        stores.open(path)
    store.close()
    assert held(link) == held(path) == STORED
    assert names(path.parent) == ["bandit", "bandit.ledger", "link"]


def test_links_that_lead_nowhere_are_refused(path: Path) -> None:
    path.symlink_to(path)
    with pytest.raises(DiscreetError, match="path: "):
        stores.open(path)
    path.unlink()
    begun(path).close()
    elsewhere = path.with_name("elsewhere")
    ledger(path).rename(elsewhere)
    ledger(path).symlink_to(elsewhere)  # a ledger is not followed
    with pytest.raises(DiscreetError, match="path: "):
        stores.open(path)
    with pytest.raises(StateExistsError):
        begun(path)
    assert elsewhere.read_bytes() == b"".join(LINES)


@pytest.mark.parametrize("name", ["bandit", "bandit.ledger"])
def test_a_file_in_the_way_is_left_as_it_was(path: Path, name: str) -> None:
    path.with_name(name).write_bytes(b"mine")
    with pytest.raises(StateExistsError, match=f"{name} exists already"):
        begun(path)
    assert names(path.parent) == [name]
    assert path.with_name(name).read_bytes() == b"mine"


# Modes and owners


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(place.stat().st_mode) for place in folder.iterdir()}


def test_all_files_are_for_their_owner(path: Path) -> None:
    before = os.umask(0)
    try:
        store = begun(path)
        store.append(2, [b"{}\n"])
        assert names(path.parent) == ["bandit", "bandit-shm", "bandit-wal", "bandit.ledger"]
        assert modes(path.parent) == {0o600}
        store.close()
    finally:
        os.umask(before)
    assert names(path.parent) == ["bandit", "bandit.ledger"]
    assert modes(path.parent) == {0o600}


def test_files_that_others_could_open_are_made_private_again(path: Path) -> None:
    begun(path).close()
    for place in path.parent.iterdir():
        place.chmod(0o666)
    store = stores.open(path).store
    store.commit(Commit(0, 1))
    assert modes(path.parent) == {0o600}
    store.close()


def test_an_open_that_is_refused_changes_no_mode(path: Path) -> None:
    path.write_bytes(b"something else")
    ledger(path).write_bytes(b"{}\n")
    for place in path.parent.iterdir():
        place.chmod(0o644)
    with pytest.raises(StateFileError):
        stores.open(path)
    assert modes(path.parent) == {0o644}


@pytest.mark.parametrize("mine", [True, False])
def test_files_that_cannot_be_made_private_are_refused_if_they_are_not_ours(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, mine: bool
) -> None:
    begun(path).close()
    path.chmod(0o640)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    if mine:  # a file system without modes
        assert held(path) == STORED
        return
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(StateFileError, match="can be opened by others and belongs to another user"):
        stores.open(path)
    monkeypatch.undo()
    assert held(path) == STORED


# Files that go away under an open store


def moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def replaced(path: Path) -> None:
    """By a copy, file by file."""
    for place in list(path.parent.iterdir()):
        content = place.read_bytes()
        place.unlink()
        (path.parent / "placeholder").touch()  # takes the number that was given up
        place.write_bytes(content)


AWAY: dict[str, Callable[[Path], object]] = {
    "moved": moved,
    "deleted": lambda path: shutil.rmtree(path.parent),
    "replaced": replaced,
    "without the database": Path.unlink,
    "without the ledger": lambda path: ledger(path).unlink(),
    "database moved": lambda path: path.rename(path.with_name("elsewhere")),
}


@pytest.mark.parametrize("away", AWAY.values(), ids=AWAY)
def test_nothing_is_acknowledged_when_the_files_are_gone(
    path: Path, away: Callable[[Path], object]
) -> None:
    store = begun(path)
    away(path)
    for call in (
        lambda: store.commit(Commit(0, 1)),
        lambda: store.commit(Commit(0, 1, wipe=True)),
        lambda: store.append(2, [b"{}\n"]),
    ):
        with pytest.raises(
            ReloadNeededError, match=r"bandit.* was moved, deleted or replaced under the open"
        ) as caught:
            call()
        assert len(str(caught.value).splitlines()) == 1
    store.close()


def test_files_that_are_put_back_go_on(path: Path) -> None:
    store = begun(path)
    moved(path)
    with pytest.raises(ReloadNeededError):
        store.commit(Commit(0, 1))
    path.parent.with_name("elsewhere").rename(path.parent)
    store.commit(Commit(0, 1))
    store.append(2, [b"{}\n"])
    store.close()
    assert held(path)[0] == 1


def test_a_file_system_that_does_not_answer_is_a_store_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = begun(path)
    with monkeypatch.context() as broken:

        def fails(_: object) -> None:
            raise OSError(errno.ESTALE, "Stale file handle")

        broken.setattr(sqlite, "_identity", fails)
        for call in (lambda: store.commit(Commit(0, 1)), lambda: store.append(2, [b"{}\n"])):
            with pytest.raises(StoreError, match="Stale file handle"):
                call()
    store.commit(Commit(0, 1))
    store.close()
    assert held(path)[0] == 1


def test_discarding_spares_a_file_that_took_the_place(path: Path) -> None:
    store = stores.create(path, ITEMS, LINES)
    path.unlink()
    (path.parent / "placeholder").touch()
    path.write_bytes(b"mine")
    store.discard()
    assert path.read_bytes() == b"mine"


# Ledgers


def test_a_torn_last_line_of_any_length_is_dropped_and_cut_by_the_next_append(path: Path) -> None:
    begun(path).close()
    whole = ledger(path).read_bytes()
    new = b'{"line":2}\n'
    for size in range(len(new)):
        ledger(path).write_bytes(whole + new[:size])
        found = stores.open(path)
        assert found.ledger == whole
        found.store.close()
        assert ledger(path).read_bytes() == whole + new[:size]  # nothing is written unasked
        store = stores.open(path).store
        store.append(2, [new])
        store.close()
        assert ledger(path).read_bytes() == whole + new


def test_zeros_that_a_crash_left_are_dropped_too(path: Path) -> None:
    begun(path).close()
    whole = ledger(path).read_bytes()
    ledger(path).write_bytes(whole + b'{"li\0\0\0\0\0\n')
    found = stores.open(path)
    assert found.ledger == whole
    found.store.append(2, [b"{}\n"])
    found.store.close()
    assert ledger(path).read_bytes() == whole + b"{}\n"


def test_a_missing_ledger_is_named(path: Path) -> None:
    begun(path).close()
    ledger(path).unlink()
    with pytest.raises(MissingFileError, match=r"bandit\.ledger is missing, and without it nobody"):
        stores.open(path)
    with pytest.raises(StateExistsError):
        begun(path)
    assert names(path.parent) == ["bandit"]


@pytest.mark.parametrize("name", ["write", "fsync", "ftruncate"])
def test_a_ledger_that_cannot_be_written_is_as_it_was(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = begun(path)
    whole = ledger(path).read_bytes()
    real = getattr(os, name)
    real_write = os.write
    with monkeypatch.context() as full:

        def half(file: int, data: memoryview) -> int:
            real_write(file, bytes(data)[:4])
            raise OSError(errno.ENOSPC, "No space left on device")

        def fails(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr(os, "write", half)
        if name != "write":
            full.setattr(os, name, fails)
        for _ in range(2):
            with pytest.raises(StoreError, match="No space left") as caught:
                store.append(2, [b'{"line":2}\n'])
            assert len(str(caught.value).splitlines()) == 1
    assert getattr(os, name) is real
    if name == "write":
        assert ledger(path).read_bytes() == whole
    store.append(2, [b'{"line":2}\n', b'{"line":3}\n'])
    store.close()
    assert ledger(path).read_bytes() == whole + b'{"line":2}\n{"line":3}\n'


# Damage: whole learners, so that every byte means something


def small(problem: Problem, path: Path) -> dict[tuple[int, int], bytes]:
    """A stored learner of two sessions with sums, rows, decisions that wait and releases."""
    learner = played(batched(problem, path), 5)
    learner.choose(np.eye(3))
    learner.save()
    died(learner)
    learner = played(load(path), 3)
    learner.choose(np.eye(3))
    learner.forget(learner.choose(np.eye(3)))
    state = whole_state(learner)
    died(learner)
    return state


def batched(problem: Problem, path: Path) -> LinUCB:
    variant = named("tight").with_schedule(batches(3))
    return LinUCB(problem, horizon=40, privacy=TARGET, variant=variant, path=path)


def refused_or_same(path: Path, whole: dict[str, bytes], state: object) -> bool:
    """Load altered files: they are refused, or are the same learner. Then put them back."""
    try:
        learner = load(path)
    except StateFileError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        same = False
    else:
        assert (learner.rounds, learner.waiting) == (11, 2)
        assert whole_state(learner) == state
        died(learner)
        same = True
    for name in names(path.parent):
        if name not in whole:
            path.with_name(name).unlink()
    for name, content in whole.items():
        path.with_name(name).write_bytes(content)
    return same


def files(folder: Path) -> dict[str, bytes]:
    return {place.name: place.read_bytes() for place in folder.iterdir()}


def test_a_file_truncated_at_any_length_is_refused(problem: Problem, path: Path) -> None:
    state = small(problem, path)
    whole = files(path.parent)
    size = len(whole["bandit"])
    for length in {0, 1, 15, 16, 99, 100, 101, 511, 512, *range(0, size, 997), size - 1}:
        path.write_bytes(whole["bandit"][:length])
        with pytest.raises(StateExistsError):
            begun(path)  # and nothing takes its place
        # Zeros at the end of the last page are the same as none.
        assert not refused_or_same(path, whole, state) or length > size - 4096
    assert refused_or_same(path, whole, state)


@pytest.mark.parametrize("count", [100, pytest.param(250, marks=pytest.mark.nightly)])
def test_a_flipped_byte_is_refused_or_changes_nothing(
    problem: Problem, path: Path, count: int
) -> None:
    state = small(problem, path)
    whole = files(path.parent)
    rng = np.random.default_rng(0)
    size = len(whole["bandit"])
    anywhere = rng.integers(0, size, count)
    places = [*range(112), *anywhere, *page_headers(size), *cells(whole, rng, count)]
    refused = 0
    for place in places:
        altered = bytearray(whole["bandit"])
        altered[place] ^= int(rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 255]))
        path.write_bytes(altered)
        refused += not refused_or_same(path, whole, state)
    assert 100 < refused < len(places)


def page_headers(size: int) -> Iterator[int]:
    for page in range(4096, size, 4096):
        yield from range(page, page + 24)


def cells(whole: dict[str, bytes], rng: np.random.Generator, count: int) -> Iterator[int]:
    """Positions in what is stored, and not in free space."""
    data = whole["bandit"]
    for _ in range(count):
        place = int(rng.integers(len(data)))
        while data[place] == 0:
            place = int(rng.integers(len(data)))
        yield place


def test_a_flipped_byte_of_the_ledger_is_refused_or_changes_nothing(
    problem: Problem, path: Path
) -> None:
    state = small(problem, path)
    whole = files(path.parent)
    rng = np.random.default_rng(0)
    size = len(whole["bandit.ledger"])
    for place in rng.integers(0, size, 60):
        altered = bytearray(whole["bandit.ledger"])
        altered[place] ^= int(rng.choice([1, 2, 128]))
        ledger(path).write_bytes(altered)
        same = refused_or_same(path, whole, state)
        assert not same or place > whole["bandit.ledger"].rindex(b"\n", 0, -1)


def test_an_item_that_is_missing_is_found_out(problem: Problem, path: Path) -> None:
    state = small(problem, path)
    whole = files(path.parent)
    with sqlite3.connect(path) as database:
        keys = database.execute("SELECT kind, number FROM item").fetchall()
    database.close()
    assert {kind for kind, _ in keys} == {-1, *range(6)}
    for key in keys:
        with sqlite3.connect(path) as database:
            database.execute("DELETE FROM item WHERE kind = ? AND number = ?", key)
        database.close()
        assert not refused_or_same(path, whole, state), key


def test_items_that_were_swapped_added_or_altered_are_found_out(
    problem: Problem, path: Path
) -> None:
    state = small(problem, path)
    whole = files(path.parent)
    for change in (
        "UPDATE item SET number = number + 1 WHERE kind = 4",
        "UPDATE item SET number = 10 - number WHERE kind = 4",
        "INSERT INTO item SELECT kind, number + 1, value FROM item WHERE kind = 3 AND number = 8",
        "INSERT INTO item SELECT 6, number, value FROM item WHERE kind = 2",
        "INSERT INTO item SELECT 5, 3, value FROM item WHERE kind = 5 AND number = 0",
        "UPDATE item SET value = CAST(value AS TEXT) WHERE kind = 3",
        "UPDATE item SET value = 7 WHERE kind = 1",
        "UPDATE item SET value = x'' WHERE kind = 4",
        "UPDATE item SET kind = 'four' WHERE kind = 4",
        "UPDATE item SET value = 'abc' WHERE kind = -1",
        "UPDATE item SET value = '-1' WHERE kind = -1",
        "UPDATE item SET value = x'2d32' WHERE kind = -1",  # -2
        "UPDATE item SET value = x'2030' WHERE kind = -1",
        "CREATE TABLE other (value)",
        "CREATE TRIGGER lies AFTER UPDATE ON item BEGIN DELETE FROM item; END",
        "ALTER TABLE item RENAME TO items",
    ):
        with sqlite3.connect(path) as database:
            database.execute(change)
        database.close()
        assert not refused_or_same(path, whole, state), change
    assert refused_or_same(path, whole, state)


def test_what_is_no_database_is_refused(path: Path) -> None:
    ledger(path).write_bytes(b"".join(LINES))
    for content in (b"", b"\0", b"something else" * 1000, b"SQLite format 3\0", b"{}\n"):
        path.write_bytes(content)
        with pytest.raises(CorruptFileError, match=r"not a learner's database|truncated"):
            stores.open(path)
        with pytest.raises(StateExistsError):
            begun(path)
        assert path.read_bytes() == content
        assert ledger(path).read_bytes() == b"".join(LINES)


@pytest.mark.parametrize("there", [True, False], ids=["ledger", "no ledger"])
@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE mine (value)",
        "PRAGMA user_version=3",
        "CREATE TABLE item (kind, number, value)",
        "PRAGMA application_id=7; CREATE TABLE item (kind, number, value)",
    ],
)
def test_the_database_of_another_program_is_refused_and_left_alone(
    path: Path, script: str, *, there: bool
) -> None:
    with sqlite3.connect(path) as database:
        database.executescript(script)
    database.close()
    if there:
        ledger(path).write_bytes(b"".join(LINES))
    before = files(path.parent)
    with pytest.raises(CorruptFileError, match="not a learner's database"):
        stores.open(path)
    with pytest.raises(StateExistsError):
        begun(path)
    assert files(path.parent) == before


def test_a_format_of_the_future_is_refused(path: Path) -> None:
    begun(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=2")
    database.close()
    with pytest.raises(FileVersionError, match="format version 2 and this release reads up to 1"):
        stores.open(path)
    with pytest.raises(StateExistsError):
        begun(path)


def test_a_ledger_of_another_learner_is_refused(problem: Problem, path: Path) -> None:
    other = path.with_name("other")
    for place in (path, other):
        played(LinUCB(problem, horizon=9, privacy=TARGET, path=place), 2).close()
    shutil.copy(ledger(other), ledger(path))
    with pytest.raises(CorruptFileError, match="has a ledger that does not belong to it"):
        load(path)


def test_learners_of_one_id_do_not_take_each_others_items(problem: Problem, path: Path) -> None:
    # A seal covers the learner's id, so that items cannot be moved between learners.
    other = path.with_name("other")
    for place in (path, other):
        played(LinUCB(problem, horizon=9, privacy=TARGET, path=place), 2).close()
    for kind in (1, 2):
        with sqlite3.connect(other) as database:
            (value,) = database.execute("SELECT value FROM item WHERE kind = ?", [kind]).fetchone()
        database.close()
        with sqlite3.connect(path) as database:
            database.execute("UPDATE item SET value = ? WHERE kind = ?", [value, kind])
        database.close()
        with pytest.raises(CorruptFileError):
            load(path)


# What a crash leaves

KILLED = """
import os, sys, signal, sqlite3
from discreet.curator import store as stores
from discreet.curator.store import Commit

def dies(*_):
    os.kill(os.getpid(), signal.SIGKILL)

store = stores.open(sys.argv[1]).store
store._database.execute("PRAGMA cache_size=1")  # pages go to the file before the commit
store._database.execute("PRAGMA cache_spill=1")
class Puts(list):
    def __iter__(self):
        yield (3, 1, b"new")
        for number in range(200):
            yield (7, number, b"x" * 3000)
        dies()
    def __bool__(self):
        return True
store.commit(Commit(0, 1, puts=Puts()))
"""


def killed(script: str, *arguments: str) -> None:
    found = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", script, *arguments], capture_output=True, check=False, timeout=60
    )
    assert found.returncode == -signal.SIGKILL, found.stderr


def test_a_commit_that_was_killed_half_way_never_happened(path: Path) -> None:
    begun(path).close()
    before = path.stat().st_size
    killed(KILLED, str(path))
    assert path.with_name("bandit-wal").stat().st_size > before  # a part of it was written
    assert held(path) == STORED
    assert names(path.parent) == ["bandit", "bandit.ledger"]


STARTING = """
import os, sys, signal
from discreet.curator import store as stores
from discreet.curator.store import _sqlite_database as sql
from discreet.curator.store import sqlite, ledger_file

left = int(sys.argv[2])
def dying(real):
    def call(*arguments, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **more)
    return call

def items():
    for number in range(400):
        yield (7, number, b"x" * 3000)
        if number % 100 == 0:
            dying(int)()

for module, name in [(os, "open"), (os, "write"), (os, "fsync"), (sql, "connect"),
                     (sql, "fill"), (ledger_file, "_lock"), (sqlite, "SqliteStore")]:
    setattr(module, name, dying(getattr(module, name)))
real = sql.SETTINGS
sql.SETTINGS = (*real, "PRAGMA cache_size=1")
stores.create(sys.argv[1], items(), [b"{}\\n", b"{}\\n"])
print("made")
dying(int)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_start_that_was_killed_anywhere_does_not_load_and_gives_way(path: Path) -> None:
    seen = set()
    for step in range(30):
        killed(STARTING, str(path), str(step))
        seen.add(tuple(sorted((name, len(data) > 0) for name, data in files(path.parent).items())))
        finished = path.exists() and path.stat().st_size > 10**6
        with pytest.raises(StateFileError, match=r"interrupted creation|does not exist"):
            stores.open(path)
        begun(path).close()
        assert held(path) == STORED
        for place in path.parent.iterdir():
            place.unlink()
        if finished:
            break
    assert len(seen) >= 5
    assert finished


# What must not stay in the files


def test_after_a_save_no_row_and_no_action_is_left_in_any_file(
    problem: Problem, path: Path
) -> None:
    learner = batched(problem, path)
    rng = np.random.default_rng(5)
    actions = rng.uniform(-0.5, 0.5, size=(36, 3))
    rewards = rng.uniform(-1, 1, 36)
    made = [learner.choose([action]) for action in actions]
    traces = [struct.pack("<d", value) for value in (*actions.ravel(), *rewards)]
    assert found_in(path.parent, traces[: actions.size]) == set(range(actions.size))
    for decision, reward in zip(made, rewards, strict=True):
        learner.learn(decision, float(reward))
    assert found_in(path.parent, traces) >= set(range(3, len(traces)))
    learner.save()
    assert found_in(path.parent, traces) == set()
    late = learner.choose([actions[0]])
    learner.forget(late)
    learner.close()
    assert found_in(path.parent, traces) == set()
    assert names(path.parent) == ["bandit", "bandit.ledger"]


def found_in(folder: Path, traces: list[bytes]) -> set[int]:
    everything = b"".join(place.read_bytes() for place in folder.iterdir())
    return {number for number, trace in enumerate(traces) if trace in everything}
