"""The service's own tables, in SQLite or PostgreSQL. Secret: what waits for a deadline is raw.

One text of SQL for both: question marks stand for values, times are seconds since 1970, truth is 0
or 1. A transaction is all or nothing, and on the disk when it ends. Of two transactions that write
about one bandit the second waits for the first: in SQLite because there is one writer at a time,
in PostgreSQL because both take the bandit's row (`lock`).
"""

import contextlib
import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet import _pipelined as pipelined
from discreet.errors import StoreError
from discreet.service._address import driver, parts_of, reason_of, refusal_of

_SCHEMA = """
CREATE TABLE IF NOT EXISTS service_setting (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS service_key (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, bandit TEXT,
    digest BLOB NOT NULL, created DOUBLE PRECISION NOT NULL
);
CREATE TABLE IF NOT EXISTS service_audit (
    at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, about TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS service_bandit (
    id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, spec BLOB NOT NULL,
    created DOUBLE PRECISION NOT NULL, room BIGINT NOT NULL, events BIGINT NOT NULL,
    closed BIGINT NOT NULL, learner TEXT, state TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS service_event (
    bandit BIGINT NOT NULL, event_id TEXT NOT NULL, number BIGINT NOT NULL,
    deadline DOUBLE PRECISION NOT NULL, PRIMARY KEY (bandit, event_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS service_event_number ON service_event (bandit, number);
CREATE TABLE IF NOT EXISTS service_pending (
    bandit BIGINT NOT NULL, number BIGINT NOT NULL, deadline DOUBLE PRECISION NOT NULL,
    active SMALLINT NOT NULL, features BLOB, reward DOUBLE PRECISION,
    otherwise DOUBLE PRECISION NOT NULL, subject BLOB, request BLOB NOT NULL,
    choice INTEGER NOT NULL, release BIGINT NOT NULL, PRIMARY KEY (bandit, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS service_pending_subject ON service_pending (bandit, subject)
    WHERE subject IS NOT NULL;
CREATE TABLE IF NOT EXISTS service_release (
    bandit BIGINT NOT NULL, number BIGINT NOT NULL, held BIGINT NOT NULL, digest TEXT NOT NULL,
    made DOUBLE PRECISION NOT NULL, document BLOB NOT NULL, PRIMARY KEY (bandit, number)
);
CREATE TABLE IF NOT EXISTS service_ledger (
    bandit BIGINT NOT NULL, number BIGINT NOT NULL, line BLOB NOT NULL,
    PRIMARY KEY (bandit, number)
);
CREATE TABLE IF NOT EXISTS service_erasure (
    id TEXT PRIMARY KEY, bandit BIGINT NOT NULL, subject BLOB NOT NULL,
    asked DOUBLE PRECISION NOT NULL, done SMALLINT NOT NULL, waiting BIGINT, in_batch BIGINT,
    released BIGINT
);
"""
_SCHEMA_LOCK = 0x6469736372656574  # one process at a time makes the tables
_BUSY_SECONDS = 20.0  # for which SQLite waits for another process's transaction
_WIPE_SECONDS = 0.5  # for which emptying the log waits for readers
_PAUSE = 0.001
# PostgreSQL: a network that is gone is found out, a statement that hangs ends, and a ranker that
# died in a transaction loses its locks.
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_TIMEOUTS = (
    "SET statement_timeout = '15s'; SET lock_timeout = '10s'; "
    "SET idle_in_transaction_session_timeout = '20s'"
)
_MOST_TOGETHER = 64  # rows that one statement inserts; a power of two


class Connection(ABC):
    """One connection, for one thread. Broken ones are made again with the next transaction."""

    @abstractmethod
    def execute(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; the rows that it gives."""

    @abstractmethod
    def many(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of these values."""

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, many with one statement: each statement may wait for the interpreter."""
        start = 0
        while start < len(rows):
            size = min(_MOST_TOGETHER, 1 << (len(rows) - start).bit_length() - 1)
            values = [value for row in rows[start : start + size] for value in row]
            self.execute(_inserting(table, tuple(columns), size), values)
            start += size

    @abstractmethod
    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """All or nothing. `StoreError` if the database does not answer or cannot write."""

    @abstractmethod
    def lock(self, bandits: Iterable[int]) -> None:
        """Keep other transactions that write about these bandits waiting until this one ends."""

    @abstractmethod
    def lock_all(self) -> None:
        """Keep other transactions that ask for this waiting until this one ends."""

    @abstractmethod
    def wipe(self) -> bool:
        """Leave no trace of what was removed, as far as the database can; False: try again."""

    @abstractmethod
    def analyze(self) -> None:
        """Tell the database how large its tables are, so that it plans its queries well."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


class Database:
    """Where the tables are; `connect` makes connections.

    Args:
        place: a path, or ``postgresql://user@host/database``.

    Raises:
        ParameterError: the URL is none.
        StoreError: there is no database to be had now; a `RefusedError` if it does not let this
            client in.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        """Make the tables, unless they are there."""
        self._server = str(place) if str(place).startswith(("postgresql:", "postgres:")) else None
        if self._server is not None:
            parts_of(self._server)
        self._file = None if self._server else Path(place).absolute()
        connection = self.connect()
        try:
            connection.make_tables()
        finally:
            connection.close()

    @property
    def server(self) -> str | None:
        """The URL of a PostgreSQL database; None if this is a file."""
        return self._server

    @property
    def file(self) -> Path | None:
        """The SQLite file; None if this is a server."""
        return self._file

    def connect(self) -> "_SQLite | _PostgreSQL":
        """A new connection. `StoreError` if there is none to be had now."""
        if self._file is not None:
            return _SQLite(self._file)
        return _PostgreSQL(str(self._server))

    def __repr__(self) -> str:
        return f"Database({'postgresql' if self._server else str(self._file)!r})"


class _SQLite(Connection):
    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        with _sqlite_errors():
            self._open()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            # Whoever makes a connection may close it in another thread; one uses it at a time.
            made = sqlite3.connect(
                self._file, isolation_level=None, timeout=0, check_same_thread=False
            )
            try:
                _patiently(made, "PRAGMA journal_mode = WAL")
                for pragma in ("synchronous = FULL", "secure_delete = ON", "cache_size = -32000"):
                    made.execute(f"PRAGMA {pragma}")
                self._file.chmod(0o600)
            except BaseException:
                made.close()
                raise
            self._connection = made
        return self._connection

    def make_tables(self) -> None:
        """Make the tables that are missing."""
        with _sqlite_errors():
            _patiently(self._open(), "BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";\n"):
                self._open().execute(statement)
            self._open().execute("COMMIT")

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _sqlite_errors():
            return self._open().execute(query, values).fetchall()

    def many(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        with _sqlite_errors():
            self._open().executemany(query, values)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with _sqlite_errors():
            connection = self._open()
            _patiently(connection, "BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    def lock(self, bandits: Iterable[int]) -> None:
        """Nothing to do: one transaction at a time writes."""

    def lock_all(self) -> None:
        """Nothing to do: one transaction at a time writes."""

    def wipe(self) -> bool:
        # `secure_delete` overwrites what is removed; emptying the log removes its copies, once no
        # other connection reads from it.
        deadline = time.monotonic() + _WIPE_SECONDS
        with _sqlite_errors():
            while True:
                found = self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                if not found[0][0] or time.monotonic() > deadline:
                    return not found[0][0]
                time.sleep(_PAUSE)

    def analyze(self) -> None:
        """Nothing to do: every query has one index that fits."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement that needs the lock, looking again every millisecond until it is free."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


@contextlib.contextmanager
def _sqlite_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", type(error).__name__)
        raise StoreError(
            "database", f"cannot be read or written now ({code}); see to its disk and try again"
        ) from None


class _PostgreSQL(Connection):
    def __init__(self, address: str) -> None:
        self._address = address
        self._driver: Any = driver()
        self._connection: Any = None
        self._inside = False  # a transaction, which ends with its connection
        with self._errors():
            self._open()

    def _open(self) -> Any:  # noqa: ANN401  # an optional library's type
        found = self._connection
        if not self._inside and (found is None or found.closed or found.broken):
            made = self._driver.connect(
                self._address, autocommit=True, application_name="discreet", **_PATIENCE
            )
            try:
                made.execute(_TIMEOUTS)
            except BaseException:
                made.close()
                raise
            self._connection = made
        return self._connection

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            raise refusal_of(error) or StoreError(
                "database", f"does not answer as it should ({reason_of(error)}); try again"
            ) from None

    def make_tables(self) -> None:
        """Make the tables that are missing."""
        text = _SCHEMA.replace("BLOB", "BYTEA").replace(" WITHOUT ROWID", "")
        with self._errors(), self._open().transaction():
            self._open().execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
            for statement in text.split(";\n"):
                if statement.strip():
                    self._open().execute(statement)

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            cursor = self._open().execute(_percent(query), values)
            # In a transaction only what is read is waited for, and its commit.
            return cursor.fetchall() if query.startswith("SELECT") else []

    def many(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        with self._errors(), self._open().cursor() as cursor:
            cursor.executemany(_percent(query), values)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with self._errors(), pipelined.transaction(self._open()):
            self._inside = True
            try:
                yield
            finally:
                self._inside = False

    def lock(self, bandits: Iterable[int]) -> None:
        for one in sorted(set(bandits)):
            self.execute("SELECT 1 FROM service_bandit WHERE id = ? FOR UPDATE", (one,))

    def lock_all(self) -> None:
        self.execute("SELECT pg_advisory_xact_lock(?)", (_SCHEMA_LOCK,))

    def wipe(self) -> bool:
        """What was removed stays in the server's files until its vacuum comes."""
        return True

    def analyze(self) -> None:
        for table in ("service_event", "service_pending"):
            self.execute(f"ANALYZE {table}")

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(self._driver.Error):
                self._connection.close()


@lru_cache(maxsize=256)
def _inserting(table: str, columns: tuple[str, ...], rows: int) -> str:
    """A statement that inserts so many rows."""
    one = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([one] * rows)}"  # noqa: S608  # our own names


@lru_cache(maxsize=256)
def _percent(query: str) -> str:
    """The statement as PostgreSQL's driver wants it."""
    return query.replace("?", "%s")
