"""Files and tables brought back from an earlier time: refused, if anything was shown since."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import nursery
import psycopg
import pytest
from database import Server, running

import discreet
from discreet.errors import RewoundStateError, SecondWriterError, StateFileError

LEARNER = ("gaussian", "exact")  # a release for each row


def used(learner: discreet.LinUCB) -> discreet.LinUCB:
    """With one more row, and so with one more release."""
    learner.learn(learner.choose([[0.3, 0.4]]), 0.5)
    return learner


class Files:
    """A learner in files."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "state"
        self._ledger = folder / "state.ledger"

    def keep(self) -> None:
        for name in (self.place, self._ledger):
            shutil.copy(name, f"{name}.kept")

    def restore(self, *, state: bool = True, ledger: bool = True) -> None:
        for name in [self.place] * state + [self._ledger] * ledger:
            shutil.copy(f"{name}.kept", name)


class Tables:
    """A learner in a database."""

    _STATE = ("discreet_learner", "discreet_item")
    _LEDGER = ("discreet_ledger",)

    def __init__(self, address: str, name: str) -> None:
        self.place = f"{address}#{name}"
        self._address = address
        self._kept: dict[str, list[tuple[object, ...]]] = {}

    def keep(self) -> None:
        with psycopg.connect(self._address) as connection:
            for table in self._STATE + self._LEDGER:
                self._kept[table] = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608

    def restore(self, *, state: bool = True, ledger: bool = True) -> None:
        tables = self._STATE * state + self._LEDGER * ledger
        with psycopg.connect(self._address) as connection, connection.cursor() as many:
            for table in reversed(tables):
                many.execute(f"DELETE FROM {table}")  # noqa: S608
            for table in tables:
                rows = self._kept[table]
                marks = ", ".join(["%s"] * len(rows[0]))
                many.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as one:
        yield one


@pytest.fixture(params=["files", "tables"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files | Tables]:
    if request.param == "files":
        yield Files(tmp_path)
        return
    server = request.getfixturevalue("server")
    yield Tables(server.address, request.node.name)
    with psycopg.connect(server.address) as connection:
        connection.execute("DELETE FROM discreet_learner")
        connection.execute("DELETE FROM discreet_ledger")


def test_an_older_state_under_a_newer_ledger_is_refused(kept: Files | Tables) -> None:
    used(nursery.make(kept.place, *LEARNER)).close()
    kept.keep()
    used(discreet.load(kept.place)).close()
    kept.restore(ledger=False)
    for _ in range(2):
        with pytest.raises(RewoundStateError):
            discreet.load(kept.place)


def test_an_older_state_is_accepted_if_nothing_was_shown_since(kept: Files | Tables) -> None:
    used(nursery.make(kept.place, *LEARNER)).close()
    kept.keep()
    with discreet.load(kept.place) as learner:
        learner.choose([[0.3, 0.4]])
    kept.restore(ledger=False)
    with discreet.load(kept.place) as learner:
        assert (learner.rounds, learner.rows, learner.release.number) == (1, 1, 1)


def test_a_state_continued_twice_is_refused(kept: Files | Tables) -> None:
    """Other rows since then, as many as before: release 2 would have two contents."""
    used(nursery.make(kept.place, *LEARNER)).close()
    kept.keep()
    used(discreet.load(kept.place)).close()
    newer = discreet.learner.read_ledger(kept.place)
    kept.restore()
    used(discreet.load(kept.place)).close()
    assert discreet.learner.read_ledger(kept.place).head != newer.head
    with pytest.raises(RewoundStateError):
        discreet.load(kept.place, ledger_head=newer.head)


def test_a_state_restored_with_its_ledger_is_refused_by_whoever_kept_the_head(
    kept: Files | Tables,
) -> None:
    with used(nursery.make(kept.place, *LEARNER)) as learner:
        early = learner.ledger.head
    kept.keep()
    with used(discreet.load(kept.place, ledger_head=early)) as learner:
        late = learner.ledger.head
    discreet.load(kept.place, ledger_head=early).close()
    discreet.load(kept.place, ledger_head=late).close()
    kept.restore()
    for head in (late, "f" * 64, ""):
        with pytest.raises(RewoundStateError):
            discreet.load(kept.place, ledger_head=head)
    discreet.load(kept.place, ledger_head=early).close()


def test_a_state_without_its_newest_ledger_is_refused(kept: Files | Tables) -> None:
    """Two releases are missing: a crash costs no more than one line."""
    used(nursery.make(kept.place, *LEARNER)).close()
    kept.keep()
    used(used(discreet.load(kept.place))).close()
    kept.restore(state=False)
    with pytest.raises(StateFileError):
        discreet.load(kept.place)


def test_tables_restored_under_an_open_learner_are_noticed(server: Server) -> None:
    kept = Tables(server.address, "open")
    learner = used(nursery.make(kept.place, *LEARNER))
    kept.keep()
    used(learner)
    kept.restore(ledger=False)
    with pytest.raises(SecondWriterError):
        learner.choose([[0.3, 0.4]])
    with pytest.raises(SecondWriterError):
        learner.choose([[0.3, 0.4]])
    learner.close()
    with pytest.raises(RewoundStateError):
        discreet.load(kept.place)
