"""Learners in a PostgreSQL database: addresses, broken connections, and who owns a learner."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pytest

from discreet import LinUCB, Problem, load
from discreet.curator import store as stores
from discreet.curator.store import UNFINISHED, Commit, postgresql
from discreet.curator.store.postgresql import PostgresStore
from discreet.errors import (
    BackendError,
    DiscreetError,
    MissingFileError,
    ParameterError,
    SecondWriterError,
    StateExistsError,
    StateInUseError,
    StoreError,
)
from discreet.learner import read_ledger
from helpers import EARLY, TARGET, died, played, whole_state

QUOTED = "correct%20horse"  # a password


@pytest.fixture
def place(postgres: str, request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return f"{postgres}#{request.node.name}"[:250]


@contextmanager
def database(place: str) -> Iterator[Any]:
    with psycopg.connect(place.partition("#")[0], autocommit=True) as connection:
        yield connection


def begun(place: str) -> PostgresStore:
    store = stores.create(place, [(1, 1, b"one")], [b"{}\n"])
    store.commit(Commit(UNFINISHED, 0))
    assert isinstance(store, PostgresStore)
    return store


def cut_off(place: str, store: PostgresStore) -> None:
    """Let the server end a store's connection."""
    with database(place) as connection:
        backend = store._connection.info.backend_pid
        assert connection.execute("SELECT pg_terminate_backend(%s)", [backend]).fetchone() == (
            True,
        )
        while connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid = %s", [backend]
        ).fetchone():
            time.sleep(0.01)


# Addresses


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://",
        "postgresql://user@host/database",
        "postgresql://user@host/database#",
        f"postgresql://user@host/database#{'a' * 201}",
        "postgresql://user@host/database#a%00b",
        "postgresql://user@host/database#a%0Ab",
        "postgres://user@host/database",
    ],
)
@pytest.mark.parametrize("make", [begun, stores.open, stores.ledger_of])
def test_an_address_without_a_learners_name_is_refused(
    address: str, make: Callable[[str], object]
) -> None:
    with pytest.raises(ParameterError, match="path: names no learner; end the database's URL with"):
        make(address)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://user:{QUOTED}%zz@host/database#name",
        f"postgresql://user:{QUOTED}@[::1/database#name",
        f"postgresql://user:{QUOTED}@host/database?nonsense={QUOTED}#name",
        f"postgresql://user:{QUOTED}@127.0.0.1:1/database#name",
        f"postgresql://user:{QUOTED}@127.0.0.1:99999/database#name",
        f"postgresql://user:{QUOTED}@nowhere.invalid/database#name",
        f"postgresql://user@127.0.0.1:1/database?password={QUOTED}#name",
        f"postgresql:///database?host=/nowhere&password={QUOTED}#name",
    ],
)
@pytest.mark.parametrize("make", [begun, stores.open, stores.ledger_of])
def test_a_server_that_does_not_answer_is_told_in_one_line_without_the_password(
    address: str, make: Callable[[str], object]
) -> None:
    with pytest.raises((StoreError, ParameterError)) as caught:
        make(address)
    message = str(caught.value)
    assert message.startswith("path: ")
    assert len(message.splitlines()) == 1
    assert "horse" not in message
    assert caught.value.__cause__ is None


def test_a_learner_that_cannot_be_stored_goes_on_in_memory(problem: Problem) -> None:
    learner = played(LinUCB(problem, horizon=9, privacy=TARGET), 2)
    with pytest.raises(StoreError, match="path: the database does not answer"):
        learner.save("postgresql://user@127.0.0.1:1/database#name")
    assert learner.path is None
    assert played(learner, 1).rows == 3


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://me:secret@host:7/db#name", "postgresql://me@host:7/db#name"),
        ("postgresql://me@host/db#a name", "postgresql://me@host/db#a name"),
        ("postgres://:secret@host/db#name", "postgres://host/db#name"),
        ("postgresql://me:a@b:secret@host/db#name", "postgresql://me@host/db#name"),
        (
            "postgresql:///db?host=/tmp&password=secret&sslpassword=secret&port=7#name",
            "postgresql:///db?host=/tmp&port=7#name",
        ),
    ],
)
def test_a_place_shows_no_password(given: str, shown: str) -> None:
    address, _, name = given.partition("#")
    store = PostgresStore(address, name, None, "owner")
    assert store.place == shown
    assert repr(store) == f"PostgresStore({shown!r})"


@pytest.mark.parametrize(
    "name", ["a%20b", "50%25", "é漢字", "a/b", "a'b\"c;--", "%s", "{}", "a%23b"]
)
def test_a_name_may_hold_any_printable_character(postgres: str, name: str) -> None:
    store = begun(f"{postgres}#{name}")
    shown = store.place
    store.close()
    found = stores.open(shown)
    assert found.sequence == 0
    with pytest.raises(StateInUseError):
        stores.open(f"{postgres}#{name}")
    found.store.close()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for make in (begun, stores.open, stores.ledger_of):
        with pytest.raises(BackendError, match=r"needs `pip install 'discreet\[postgresql\]'`"):
            make("postgresql://user@host/database#name")


def test_a_database_that_may_lose_commits_is_refused(place: str) -> None:
    begun(place).close()
    with database(place) as connection:
        try:
            set_fsync(connection, "off")
            for make in (begun, stores.open):
                with pytest.raises(ParameterError, match="is a database with fsync off"):
                    make(place)
        finally:
            set_fsync(connection, "on")
    stores.open(place).store.close()


def set_fsync(connection: Any, value: str) -> None:  # noqa: ANN401
    connection.execute(f"ALTER SYSTEM SET fsync = {value}")
    connection.execute("SELECT pg_reload_conf()")
    while connection.execute("SHOW fsync").fetchone() != (value,):
        time.sleep(0.01)


def test_a_commit_waits_for_the_disk_whatever_the_server_prefers(place: str) -> None:
    store = begun(f"{place.partition('#')[0]}&options=-csynchronous_commit%3Doff#waits")
    assert store._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    store.close()


def test_many_learners_in_one_database_do_not_disturb_each_other(
    problem: Problem, postgres: str
) -> None:
    places = [f"{postgres}#one of {number}" for number in range(4)]
    learners = [
        LinUCB(problem, horizon=40, privacy=TARGET, variant=EARLY, path=place) for place in places
    ]

    def work(learner: LinUCB, seed: int) -> None:
        played(learner, 3 + 2 * seed, seed)
        learner.choose(np.eye(3))

    threads = [
        threading.Thread(target=work, args=(learner, seed)) for seed, learner in enumerate(learners)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    states = [whole_state(learner) for learner in learners]
    learners[0].close()
    for place, learner, state in zip(places, learners, states, strict=True):
        died(learner)
        again = load(place)
        assert whole_state(again) == state
        assert read_ledger(place).head == again.ledger.head
        again.close()


def test_several_starts_make_the_tables_once(place: str) -> None:
    with database(place) as connection:
        connection.execute("CREATE DATABASE brand_new")
    fresh = place.replace("/postgres?", "/brand_new?")
    failed: list[BaseException] = []

    def start(number: int) -> None:
        try:
            begun(f"{fresh} {number}").close()
        except BaseException as error:  # noqa: BLE001  # all of them are looked at
            failed.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# Connections that break


CALLS: dict[str, Callable[[LinUCB, str], object]] = {
    "choose": lambda learner, _: learner.choose(np.eye(3)),
    "learn": lambda learner, waiting: learner.learn(waiting, 1),
    "forget": lambda learner, waiting: learner.forget(waiting),
    "save": lambda learner, _: learner.save(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_connection_that_was_cut_is_made_again(
    call: Callable[[LinUCB, str], object], problem: Problem, place: str
) -> None:
    learner = played(LinUCB(problem, horizon=40, privacy=TARGET, variant=EARLY, path=place), 3)
    waiting = learner.choose(np.eye(3)).id
    state = whole_state(learner)
    cut_off(place, learner._curator._storage.store)  # type: ignore[arg-type]
    try:
        call(learner, waiting)
    except StoreError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        assert whole_state(learner) == state
        call(learner, waiting)
    played(learner, 2)
    with pytest.raises(StateInUseError):  # the lock came back with the connection
        load(place)
    state = whole_state(learner)
    died(learner)
    assert whole_state(load(place)) == state


def test_a_server_that_is_away_for_a_while_costs_nothing(
    problem: Problem, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = played(LinUCB(problem, horizon=40, privacy=TARGET, variant=EARLY, path=place), 3)
    waiting = learner.choose(np.eye(3))
    state = whole_state(learner)
    store = learner._curator._storage.store
    address = store._address  # type: ignore[attr-defined]
    monkeypatch.setattr(store, "_address", "postgresql://user@127.0.0.1:1/database")
    cut_off(place, store)  # type: ignore[arg-type]
    for _ in range(3):
        with pytest.raises(StoreError):
            learner.learn(waiting, 1)
    assert whole_state(learner) == state
    monkeypatch.setattr(store, "_address", address)
    learner.learn(waiting, 1)
    assert learner.rows == 4


def test_a_commit_whose_answer_was_lost_is_neither_lost_nor_made_twice(
    problem: Problem, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = played(LinUCB(problem, horizon=40, privacy=TARGET, variant=EARLY, path=place), 3)
    waiting = learner.choose(np.eye(3))
    store = learner._curator._storage.store
    commit, sequence = PostgresStore.commit, PostgresStore.sequence

    def lost(self: PostgresStore, change: Commit) -> None:
        commit(self, change)
        raise StoreError("path", "the connection broke")

    def unknown(self: PostgresStore) -> int:
        del self
        raise StoreError("path", "the database does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(PostgresStore, "commit", lost)
        broken.setattr(PostgresStore, "sequence", unknown)
        with pytest.raises(StoreError, match="the connection broke"):
            learner.learn(waiting, 1)
    assert PostgresStore.sequence is sequence
    assert learner.rows == 4  # it was asked again
    with pytest.raises(DiscreetError, match="decision: has had its reward"):
        learner.learn(waiting, 1)
    assert store.sequence() == learner._curator._progress.sequence
    state = whole_state(learner)
    died(learner)
    assert whole_state(load(place)) == state


def test_the_lock_goes_with_the_connection(place: str) -> None:
    store = begun(place)
    cut_off(place, store)
    found = stores.open(place)
    for error in (StoreError, SecondWriterError):  # first it finds out that the connection broke
        with pytest.raises(error):
            store.commit(Commit(0, 1))
    found.store.commit(Commit(0, 1))
    with pytest.raises(SecondWriterError):
        store.sequence()
    store.close()
    found.store.close()


# Owners


def taken_over(place: str) -> None:
    with database(place) as connection:
        connection.execute(
            "UPDATE discreet_learner SET owner = 'somebody' WHERE name = %s",
            [place.partition("#")[2]],
        )


def test_a_refused_start_gives_up_its_lock_before_the_server_sees_it_leave(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()
    left = []  # connections that the server takes to be there still
    monkeypatch.setattr(postgresql, "_dismiss", left.append)
    with pytest.raises(StateExistsError):
        stores.create(place, [], [])
    missing = place.replace("#", "#no ")
    with pytest.raises(MissingFileError):
        stores.open(missing)
    assert len(left) == 2
    stores.open(place).store.close()
    stores.create(missing, [], []).discard()
    for connection in left:
        connection.close()


def test_a_store_that_was_taken_over_refuses_everything(place: str) -> None:
    store = begun(place)
    taken_over(place)
    for call in (
        lambda: store.commit(Commit(0, 1, puts=[(1, 1, b"mine")])),
        lambda: store.append(1, [b"{}\n"]),
        store.sequence,
    ):
        with pytest.raises(SecondWriterError, match="continued by another writer"):
            call()
    store.close()
    found = stores.open(place)
    assert (found.sequence, found.items, found.ledger) == (0, [(1, 1, b"one")], b"{}\n")
    found.store.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_learner_that_was_taken_over_stops_for_good(
    call: Callable[[LinUCB, str], object], problem: Problem, place: str
) -> None:
    learner = played(LinUCB(problem, horizon=40, privacy=TARGET, variant=EARLY, path=place), 3)
    waiting = learner.choose(np.eye(3)).id
    taken_over(place)
    for again in (call, *CALLS.values()):
        with pytest.raises(SecondWriterError, match="close it and load it again"):
            again(learner, waiting)
    learner.close()
    assert load(place).rows == 3


def test_a_learner_that_was_removed_is_not_brought_back(problem: Problem, place: str) -> None:
    learner = played(LinUCB(problem, horizon=40, privacy=TARGET, variant=EARLY, path=place), 3)
    with database(place) as connection:
        connection.execute("DELETE FROM discreet_learner WHERE name = %s", [place.split("#")[1]])
    for _ in range(3):
        with pytest.raises((StoreError, SecondWriterError)):
            learner.choose(np.eye(3))
    learner.close()
    with pytest.raises(MissingFileError, match="the database has no learner"):
        load(place)


def test_two_continuations_of_one_learner_write_one_ledger(place: str) -> None:
    # A line of the same number and other contents is never put beside the first.
    store = begun(place)
    store.append(1, [b'{"a":1}\n'])
    with pytest.raises(SecondWriterError):
        store.append(1, [b'{"a":2}\n'])
    store.close()
    assert stores.ledger_of(place) == b'{}\n{"a":1}\n'
