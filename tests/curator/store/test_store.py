"""What every store promises: one set of tests over memory, SQLite and PostgreSQL."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.curator import store as stores
from discreet.curator.store import UNFINISHED, Commit, Item, Place, Store
from discreet.curator.store.memory import MemoryStore
from discreet.errors import (
    DiscreetError,
    MissingFileError,
    ReloadNeededError,
    SecondWriterError,
    StateExistsError,
    StateFileError,
    StateInUseError,
    StoreError,
)

ITEMS: list[Item] = [(0, 0, b"zero"), (3, 1, b"one"), (3, 2, b"two"), (5, 2**40, b"")]
LINES = [b'{"line":0}\n', b'{"line":1}\n']


def line(number: int) -> bytes:
    return b'{"line":%d}\n' % number


def begun(place: Place, items: list[Item] = ITEMS) -> Store:
    """A store whose sequence number is 0."""
    store = stores.create(place, items, LINES)
    store.commit(Commit(UNFINISHED, 0))
    return store


def held(place: Place) -> tuple[int, list[Item], bytes]:
    """What somebody who opens a store finds in it."""
    found = stores.open(place)
    found.store.close()
    return found.sequence, sorted(found.items), found.ledger


def nothing_is_there(place: Place) -> bool:
    with pytest.raises(MissingFileError):
        stores.open(place)
    return not isinstance(place, Path) or not any(place.parent.iterdir())


# What is stored


def test_what_is_stored_is_found_again(place: Place) -> None:
    begun(place).close()
    assert held(place) == (0, ITEMS, b"".join(LINES))
    assert held(place) == (0, ITEMS, b"".join(LINES))
    assert stores.ledger_of(place) == b"".join(LINES)


def test_a_commit_puts_replaces_and_drops(place: Place) -> None:
    store = begun(place)
    store.commit(Commit(0, 7, puts=[(3, 1, b"new"), (4, 9, b"\0" * 5000)], drops=[(3, 2), (3, 77)]))
    assert store.sequence() == 7
    store.commit(Commit(7, 8, puts=[(3, 2, b"again")], drops=[(4, 9)], wipe=True))
    store.close()
    expected = [(0, 0, b"zero"), (3, 1, b"new"), (3, 2, b"again"), (5, 2**40, b"")]
    assert held(place) == (8, expected, b"".join(LINES))


def test_what_is_put_and_dropped_in_one_commit_is_gone(place: Place) -> None:
    store = begun(place, [])
    store.commit(Commit(0, 1, puts=[(1, 1, b"x"), (1, 2, b"y")], drops=[(1, 1)]))
    store.close()
    assert held(place)[1] == [(1, 2, b"y")]


def test_a_store_can_be_opened_and_continued_any_number_of_times(place: Place) -> None:
    begun(place, []).close()
    for number in range(3):
        found = stores.open(place)
        assert found.sequence == number
        found.store.commit(Commit(number, number + 1, puts=[(1, number, b"x")]))
        found.store.append(2 + number, [line(2 + number)])
        found.store.close()
    items = [(1, number, b"x") for number in range(3)]
    assert held(place) == (3, items, b"".join(line(number) for number in range(5)))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "memory"])
def test_a_store_says_what_it_is(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if kind == "memory":
        store: Store = MemoryStore()
        assert (store.place, store.durable) == (None, False)
        return
    place: Place = tmp_path / "bandit"
    if kind == "postgresql":
        place = request.getfixturevalue("postgres") + "#says what it is"
    store = begun(place)
    assert store.durable
    assert store.place is not None
    store.close()
    assert held(store.place)[0] == 0  # the place opens it again


def test_a_store_knows_its_place_however_it_is_written(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = begun(place)
    same: list[Place] = [place, store.place, str(place)]  # type: ignore[list-item]
    others: list[Place] = [f"{place}2", "elsewhere", Path("elsewhere"), "", "postgresql://[#a", 3]  # type: ignore[list-item]
    if isinstance(place, Path):
        monkeypatch.chdir(place.parent)
        same += ["bandit", Path("../stored/./bandit")]
    else:
        same += [place.replace("postgres:@", "postgres:secret@"), place.replace(" ", "%20")]
        others += [place.replace("postgres:@", "other@"), place.replace("/postgres?", "/other?")]
    assert [store.is_at(each) for each in same] == [True] * len(same)
    assert [store.is_at(each) for each in others] == [False] * len(others)
    store.close()
    assert not MemoryStore().is_at(place)


def test_memory_counts_and_can_be_closed() -> None:
    store = MemoryStore()
    assert store.sequence() == 0
    store.commit(Commit(0, 4, puts=ITEMS))
    store.append(1, LINES)
    for end in (store.abandon, store.discard, store.close, store.close):
        end()
    assert store.sequence() == 4


# All or nothing, and one writer


@pytest.mark.parametrize("before", [-1, 1, 7, 2**40])
def test_a_commit_from_another_sequence_number_is_refused(place: Place, before: int) -> None:
    store = begun(place)
    with pytest.raises(SecondWriterError, match="continued by another writer"):
        store.commit(Commit(before, 9, puts=[(3, 1, b"new")], drops=[(3, 2)]))
    assert store.sequence() == 0
    store.commit(Commit(0, 1))  # and the right one is still welcome
    store.close()
    assert held(place) == (1, ITEMS, b"".join(LINES))


def test_a_commit_that_fails_in_the_middle_changes_nothing(place: Place) -> None:
    store = begun(place)
    bad = [(3, 1, b"new"), (object(), object(), b"not a number")]
    with pytest.raises(Exception):  # noqa: B017, PT011  # what it is depends on the driver
        store.commit(Commit(0, 1, puts=bad, drops=[(3, 2)]))  # type: ignore[arg-type]
    assert store.sequence() == 0
    store.commit(Commit(0, 1))
    store.close()
    assert held(place) == (1, ITEMS, b"".join(LINES))


@pytest.mark.parametrize("wipe", [True, False])
def test_an_interrupted_commit_changes_nothing_and_the_next_one_succeeds(
    place: Place, *, wipe: bool
) -> None:
    store = begun(place)

    class Interrupting(list):  # type: ignore[type-arg]
        def __iter__(self) -> object:
            yield (3, 1, b"new")
            raise KeyboardInterrupt

        def __bool__(self) -> bool:
            return True

    with pytest.raises(KeyboardInterrupt):
        store.commit(Commit(0, 1, puts=Interrupting(), drops=[(3, 2)], wipe=wipe))
    assert store.sequence() == 0
    store.commit(Commit(0, 1, puts=[(3, 1, b"later")], wipe=wipe))
    store.close()
    assert held(place)[:2] == (1, [ITEMS[0], (3, 1, b"later"), *ITEMS[2:]])


def test_of_two_writers_only_one_continues(place: Place) -> None:
    # No lock is relied on: the second writer gets past it here, as on a file system without locks.
    first = begun(place)
    release_lock(first)
    second = stores.open(place).store
    second.commit(Commit(0, 1, puts=[(3, 1, b"second")]))
    for _ in range(2):
        with pytest.raises(SecondWriterError):
            first.commit(Commit(0, 1, puts=[(3, 1, b"first")]))
    second.commit(Commit(1, 2))
    second.close()
    first.close()
    assert held(place)[:2] == (2, [ITEMS[0], (3, 1, b"second"), *ITEMS[2:]])


def release_lock(store: Store) -> None:
    """Give up what keeps others out, and nothing else."""
    if isinstance(store.place, Path):
        fcntl = pytest.importorskip("fcntl")
        fcntl.flock(store._ledger._file, fcntl.LOCK_UN)  # type: ignore[attr-defined]
    else:
        store._connection.execute("SELECT pg_advisory_unlock_all()")  # type: ignore[attr-defined]


# The ledger


def test_the_ledger_grows_by_whole_lines_and_not_twice(place: Place) -> None:
    store = begun(place)
    store.append(2, [line(2), line(3)])
    store.append(2, [line(2), line(3)])  # all there
    store.append(3, [line(3), line(4)])  # some there
    store.append(5, [])
    store.append(5, [line(5)])
    store.close()
    assert held(place)[2] == b"".join(line(number) for number in range(6))


@pytest.mark.parametrize(("first", "count"), [(3, 1), (9, 2), (0, 1), (1, 0)])
def test_lines_that_do_not_follow_on_the_last_are_refused(
    place: Place, first: int, count: int
) -> None:
    store = begun(place)
    with pytest.raises(DiscreetError, match="path: "):
        store.append(first, [line(first + number) for number in range(count)])
    store.append(2, [line(2)])
    store.close()
    assert held(place)[2] == b"".join(line(number) for number in range(3))


def test_the_ledger_of_a_learner_can_be_read_while_it_is_open(place: Place) -> None:
    store = begun(place)
    store.append(2, [line(2)])
    assert stores.ledger_of(place) == b"".join(line(number) for number in range(3))
    store.close()


# Who may open it


def test_a_second_opener_is_refused(place: Place) -> None:
    store = begun(place)
    with pytest.raises(StateInUseError, match="open already, here or in another process"):
        stores.open(place)
    store.commit(Commit(0, 1))
    store.close()
    found = stores.open(place)
    with pytest.raises(StateInUseError):
        stores.open(place)
    found.store.close()
    assert held(place)[0] == 1


def test_a_closed_store_does_nothing_more(place: Place) -> None:
    store = begun(place)
    store.close()
    store.close()
    for call in (
        lambda: store.commit(Commit(0, 1)),
        store.sequence,
        lambda: store.append(2, [line(2)]),
    ):
        with pytest.raises(ReloadNeededError, match="was closed; load the learner again"):
            call()
    store.close()
    assert held(place) == (0, ITEMS, b"".join(LINES))


def test_a_store_that_is_dropped_frees_its_lock(place: Place) -> None:
    store = begun(place)
    del store
    gc.collect()
    assert held(place)[0] == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(place: Place, copied: Callable[[object], object]) -> None:
    store = begun(place)
    with pytest.raises(TypeError, match="cannot be copied or pickled; open it again"):
        copied(store)
    store.close()


# Starts


def test_a_store_that_never_counted_does_not_open_and_gives_way(place: Place) -> None:
    stores.create(place, ITEMS, LINES).close()
    for _ in range(2):
        with pytest.raises(StateFileError, match="holds an interrupted creation"):
            stores.open(place)
    begun(place, [(1, 1, b"other")]).close()
    assert held(place) == (0, [(1, 1, b"other")], b"".join(LINES))


def test_a_store_that_never_counted_is_removed_without_a_trace(place: Place) -> None:
    store = stores.create(place, ITEMS, LINES)
    store.discard()
    store.discard()
    assert nothing_is_there(place)
    begun(place).close()


def test_a_store_that_counts_is_not_discarded(place: Place) -> None:
    store = begun(place)
    store.discard()
    assert held(place) == (0, ITEMS, b"".join(LINES))


def test_nothing_that_exists_is_overwritten(place: Place) -> None:
    store = begun(place)
    with pytest.raises((StateExistsError, StateInUseError), match=r"already"):
        stores.create(place, [], [])
    store.commit(Commit(0, 1))
    store.close()
    for _ in range(2):
        with pytest.raises(StateExistsError, match=r"already"):
            stores.create(place, [], [])
    assert held(place) == (1, ITEMS, b"".join(LINES))


def test_a_start_in_progress_is_not_disturbed(place: Place) -> None:
    store = stores.create(place, ITEMS, LINES)
    with pytest.raises(StateFileError):
        stores.create(place, [], [])
    store.commit(Commit(UNFINISHED, 0))
    store.close()
    assert held(place)[0] == 0


def test_of_many_starts_at_one_place_one_succeeds(place: Place) -> None:
    made: list[Store] = []
    refused: list[DiscreetError] = []
    ready = threading.Barrier(6)

    def start() -> None:
        ready.wait()
        try:
            store = stores.create(place, ITEMS, LINES)
            store.commit(Commit(UNFINISHED, 0))
            made.append(store)
        except DiscreetError as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 5)
    assert all(isinstance(error, StateFileError) for error in refused), refused
    made[0].commit(Commit(0, 1))
    made[0].close()
    assert held(place)[0] == 1


def test_items_that_cannot_be_made_leave_nothing_behind(place: Place) -> None:
    def failing() -> object:
        yield (1, 1, b"one")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stores.create(place, failing(), LINES)  # type: ignore[arg-type]
    assert nothing_is_there(place)
    begun(place).close()
    assert held(place)[0] == 0


def test_a_place_where_nothing_is_stored_is_missing(place: Place) -> None:
    with pytest.raises(MissingFileError) as caught:
        stores.open(place)
    with pytest.raises(MissingFileError):
        stores.ledger_of(place)
    assert len(str(caught.value).splitlines()) == 1


# Children

FORKING = """
import os, sys, threading
from pathlib import Path
from discreet.curator import store as stores
from discreet.curator.store import Commit

place = sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1])
store = stores.open(place).store
going, stop = threading.Event(), threading.Event()
count = 0

def commits():
    global count
    while not stop.is_set():
        store.commit(Commit(count, count + 1, puts=[(1, count, b"x" * 3000)]))
        count += 1
        going.set()

thread = threading.Thread(target=commits)
if sys.argv[2] == "busy":
    thread.start()
    going.wait()
children = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        store.abandon()
        if sys.argv[3] == "closes":
            store.close()
        sys.exit(0)  # with all that Python does at the end of a process
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
stop.set()
if sys.argv[2] == "busy":
    thread.join()
for _ in range(3):
    store.commit(Commit(count, count + 1, puts=[(1, count, b"x" * 3000)]))
    count += 1
store.append(2, [b"{}\\n"])
try:
    stores.open(place)
except stores.StateFileError:
    print("locked", store.sequence() == count, count)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("busy", ["busy", "idle"])
@pytest.mark.parametrize("closes", ["closes", "leaves"])
def test_children_that_end_do_not_disturb_their_parent(
    place: Place, busy: str, closes: str
) -> None:
    begun(place, []).close()
    found = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", FORKING, str(place), busy, closes],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    locked, agrees, count = found.stdout.split()
    assert (locked, agrees) == ("locked", "True")
    sequence, items, ledger = held(place)
    assert sequence == len(items) == int(count)
    assert ledger.endswith(b"{}\n")


def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(place: Place) -> None:
    script = """
import os, sys
from pathlib import Path
from discreet.curator import store as stores
store = stores.open(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1])).store
if os.fork() == 0:
    store.abandon()
    os.write(1, b"up\\n")
    sys.stdin.read()
os._exit(0)
"""
    begun(place).close()
    with subprocess.Popen(  # noqa: S603  # our own script
        [sys.executable, "-c", script, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        parent.wait()
        wait_until_free(place)
        parent.stdin.close()  # type: ignore[union-attr]


def wait_until_free(place: Place) -> None:
    """A server takes a moment to see that a connection is gone."""
    for _ in range(100):
        try:
            stores.open(place).store.close()
        except StateInUseError:
            threading.Event().wait(0.05)
        else:
            return
    pytest.fail("the lock is still held")


def test_errors_say_what_to_do_in_one_line(place: Place) -> None:
    store = begun(place)
    with pytest.raises(StateInUseError) as caught:
        stores.open(place)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.parameter == "path"
    store.close()
    assert not isinstance(caught.value, StoreError)
