"""Learners in a PostgreSQL database, many in one: ``postgresql://user@host/database#name``.

Three tables, made on first use. ``discreet_learner`` has a row for each learner: its name, its
sequence number and its *owner*, a random token that whoever opens the learner writes there.
A commit names both, so a writer that was cut off and replaced is refused, however late its last
words arrive. ``discreet_item`` has the items and ``discreet_ledger`` the ledger's lines, which are
only ever added. An advisory lock refuses a second opener while the first one's connection lives.

A restored backup of the whole database brings back the ledger too, and nothing in the database can
tell. Keep the ledger's head elsewhere and give it to `discreet.load` to have that found out.
"""

import contextlib
import ctypes
import hashlib
import os
import secrets
import time
import weakref
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from discreet import _pipelined as pipelined
from discreet.curator.store import (
    UNFINISHED,
    Commit,
    Item,
    Opened,
    Place,
    in_use,
    overtaken,
    runs,
    unfinished,
)
from discreet.errors import (
    BackendError,
    DiscreetError,
    MissingFileError,
    ParameterError,
    ReloadNeededError,
    SecondWriterError,
    StateExistsError,
    StateInUseError,
    StoreError,
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS discreet_learner (
    name text PRIMARY KEY, sequence bigint NOT NULL, owner text NOT NULL
);
CREATE TABLE IF NOT EXISTS discreet_item (
    name text NOT NULL REFERENCES discreet_learner ON DELETE CASCADE,
    kind smallint NOT NULL, number bigint NOT NULL, value bytea NOT NULL,
    PRIMARY KEY (name, kind, number)
);
CREATE TABLE IF NOT EXISTS discreet_ledger (
    name text NOT NULL, number bigint NOT NULL, line bytea NOT NULL,
    PRIMARY KEY (name, number)
);
"""
_SCHEMA_LOCK = 0x64697363726565  # "discree": one process at a time makes the tables
_STEP = (
    "UPDATE discreet_learner SET sequence = %s WHERE name = %s AND sequence = %s AND owner = %s "
    "RETURNING sequence"
)
_PUT = (  # all items with one statement: one each would take several times as long
    "INSERT INTO discreet_item (name, kind, number, value) SELECT %s, put.* "
    "FROM unnest(%s::smallint[], %s::bigint[], %s::bytea[]) AS put (kind, number, value) "
    "ON CONFLICT (name, kind, number) DO UPDATE SET value = excluded.value"
)
_DROP = "DELETE FROM discreet_item WHERE name = %s AND kind = %s AND number BETWEEN %s AND %s"
_APPEND = "INSERT INTO discreet_ledger VALUES (%s, %s, %s)"
_OWNER = "SELECT owner FROM discreet_learner WHERE name = %s"
_HELD_OWNER = f"{_OWNER} FOR SHARE"  # who stays the owner until the commit
_LONGEST_NAME = 200
_SECRETS = ("password", "sslpassword")  # of a URL's options, besides the password before the host
_PATIENCE, _PAUSE = 10.0, 0.05  # seconds for which a lost connection's lock is waited for


class PostgresStore:
    """One learner in a database, over one connection that is made anew if it breaks."""

    durable = True

    def __init__(self, address: str, name: str, connection: Any, owner: str) -> None:  # noqa: ANN401  # psycopg's
        """Use `create` or `open`."""
        self._address = address
        self._name = name
        self._connection = connection
        self._owner = owner
        self._open = True
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _release, self._process, connection)

    @property
    def place(self) -> str:
        """The database's URL, without a password, and the learner's name."""
        return _without_password(self._address, self._name)

    def is_at(self, place: Place) -> bool:
        """Whether this is the learner's URL, with a password or without."""
        with contextlib.suppress(ParameterError):
            return _without_password(*_parts(place)) == self.place
        return False

    def commit(self, change: Commit) -> None:
        """Make a change, all of it or nothing; ``wipe`` is up to the server's vacuum."""
        connection = self._connected()
        with _translated(connection), pipelined.transaction(connection):
            step = (change.after, self._name, change.before, self._owner)
            stepped = connection.execute(_STEP, step)
            _put(connection, self._name, change.puts)
            for run in runs(change.drops):
                connection.execute(_DROP, (self._name, *run))
            if stepped.fetchone() is None:
                raise overtaken()

    def sequence(self) -> int:
        """The sequence number after the last commit, if this is still the learner's owner."""
        connection = self._connected()
        with _translated(connection), connection.transaction():
            found = connection.execute(
                "SELECT sequence, owner FROM discreet_learner WHERE name = %s", (self._name,)
            ).fetchone()
        if found is None or found[1] != self._owner:
            raise overtaken()
        return int(found[0])

    def append(self, first: int, lines: Sequence[bytes]) -> None:
        """Add lines at the end of the ledger."""
        connection = self._connected()
        with _translated(connection), pipelined.transaction(connection):
            owner = connection.execute(_HELD_OWNER, (self._name,))
            lines_held = connection.execute(
                "SELECT number, line FROM discreet_ledger WHERE name = %s AND number >= %s",
                (self._name, first - 1),
            )
            if owner.fetchone() != (self._owner,):
                raise overtaken()
            held = dict(lines_held.fetchall())
            if first and held.pop(first - 1, None) is None:
                raise StoreError("path", "has a ledger with other lines than it should; load again")
            coming = dict(enumerate(lines, first))
            if any(coming.pop(number, None) != bytes(line) for number, line in held.items()):
                raise overtaken()
            for number, line in coming.items():
                connection.execute(_APPEND, (self._name, number, line))

    def close(self) -> None:
        """Give up the lock and the connection."""
        if self._process == os.getpid():
            self._open = False
            self._finalizer()

    def discard(self) -> None:
        """Remove a learner that never counted."""
        if self._open:
            with contextlib.suppress(StoreError, SecondWriterError):
                connection = self._connected()
                with _translated(connection), connection.transaction():
                    _remove_unfinished(connection, self._name, self._owner)
        self.close()

    def abandon(self) -> None:
        """Leave the session to the parent: the child's socket is exchanged for the null device."""
        self._finalizer.detach()
        self._open = False
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))  # never closed here
        with contextlib.suppress(Exception):
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, self._connection.fileno())
            os.close(null)

    def _connected(self) -> Any:  # noqa: ANN401  # psycopg's
        """The connection, made again if it broke, with the lock that goes with it."""
        if not self._open:
            raise ReloadNeededError("path", "was closed; load the learner again")
        if self._connection.closed or self._connection.broken:
            connection = _connect(self._address)
            try:
                with _translated(connection):
                    self._require_owner(connection)
                    _take(connection, self._name, patience=_PATIENCE)
            except BaseException as error:
                _release(os.getpid(), connection)
                if isinstance(error, StateInUseError):
                    raise StoreError(
                        "path", "is still held by the connection that broke; try again in a while"
                    ) from None
                raise
            self._finalizer.detach()
            self._finalizer = weakref.finalize(self, _release, self._process, connection)
            self._connection = connection
        return self._connection

    def _require_owner(self, connection: Any) -> None:  # noqa: ANN401  # psycopg's
        """Refuse if somebody else has opened the learner since."""
        if connection.execute(_OWNER, (self._name,)).fetchone() != (self._owner,):
            raise overtaken()

    def __repr__(self) -> str:
        return f"PostgresStore({self.place!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: a state continues in one place."""
        raise TypeError("a stored learner cannot be copied or pickled; open it again")


def create(place: Place, items: Iterable[Item], ledger: Sequence[bytes]) -> PostgresStore:
    """A new learner that does not count yet; see `discreet.curator.store.create`."""
    address, name = _parts(place)
    connection, owner = _connect(address), secrets.token_hex(16)
    try:
        with _translated(connection):
            _take(connection, name)
            with connection.transaction():
                _remove_unfinished(connection, name, None)
                try:
                    with connection.transaction():
                        connection.execute(
                            "INSERT INTO discreet_learner VALUES (%s, %s, %s)",
                            (name, UNFINISHED, owner),
                        )
                        with connection.cursor() as many:
                            many.executemany(
                                _APPEND, [(name, place, line) for place, line in enumerate(ledger)]
                            )
                except _psycopg().errors.UniqueViolation:
                    raise StateExistsError(
                        "path",
                        f"the database has a learner {name!r} already; open it, or give another "
                        "name",
                    ) from None
                _put(connection, name, items)
    except BaseException:
        _release(os.getpid(), connection)
        raise
    return PostgresStore(address, name, connection, owner)


def open(place: Place) -> Opened:  # noqa: A001  # as in `discreet.curator.store`
    """Open a learner, as its new owner; see `discreet.curator.store.open`."""
    address, name = _parts(place)
    connection, owner = _connect(address), secrets.token_hex(16)
    try:
        with _translated(connection):
            _take(connection, name)
            with connection.transaction():
                found = connection.execute(
                    "UPDATE discreet_learner SET owner = %s WHERE name = %s AND sequence >= 0 "
                    "RETURNING sequence",
                    (owner, name),
                ).fetchone()
                if found is None:
                    raise _not_there(connection, name)
                items = connection.execute(
                    "SELECT kind, number, value FROM discreet_item WHERE name = %s", (name,)
                ).fetchall()
                ledger = _ledger(connection, name)
    except BaseException:
        _release(os.getpid(), connection)
        raise
    store = PostgresStore(address, name, connection, owner)
    return Opened(
        store,
        int(found[0]),
        [(kind, number, bytes(value)) for kind, number, value in items],
        ledger,
    )


def ledger_of(place: Place) -> bytes:
    """The ledger's lines, without opening the learner."""
    address, name = _parts(place)
    connection = _connect(address)
    try:
        with _translated(connection), connection.transaction():
            ledger = _ledger(connection, name)
            if not ledger:
                raise _not_there(connection, name)
    finally:
        _dismiss(connection)
    return ledger


def _ledger(connection: Any, name: str) -> bytes:  # noqa: ANN401  # psycopg's
    rows = connection.execute(
        "SELECT line FROM discreet_ledger WHERE name = %s ORDER BY number", (name,)
    ).fetchall()
    return b"".join(bytes(row[0]) for row in rows)


def _not_there(connection: Any, name: str, *, tables: bool = True) -> Exception:  # noqa: ANN401  # psycopg's
    query = "SELECT 1 FROM discreet_learner WHERE name = %s"
    if tables and connection.execute(query, (name,)).fetchone() is not None:
        return unfinished()
    return MissingFileError(
        "path", f"the database has no learner {name!r}; give the name that it is stored under"
    )


def _remove_unfinished(connection: Any, name: str, owner: str | None) -> None:  # noqa: ANN401  # psycopg's
    removed = connection.execute(
        "DELETE FROM discreet_learner WHERE name = %s AND sequence = %s "
        "AND (%s::text IS NULL OR owner = %s) RETURNING name",
        (name, UNFINISHED, owner, owner),
    ).fetchone()
    if removed is not None:
        connection.execute("DELETE FROM discreet_ledger WHERE name = %s", (name,))


def _take(connection: Any, name: str, patience: float = 0.0) -> None:  # noqa: ANN401  # psycopg's
    """Take the learner's advisory lock, for as long as the connection lives.

    The server may need a moment to notice that an earlier connection is gone.
    """
    digest = hashlib.sha256(b"discreet\0" + name.encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    until = time.monotonic() + patience
    while not connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()[0]:
        if time.monotonic() < until:
            time.sleep(_PAUSE)
            continue
        raise in_use()


def _put(connection: Any, name: str, items: Iterable[Item]) -> None:  # noqa: ANN401  # psycopg's
    """Write items of a learner, in place of any with the same kind and number."""
    puts = {(kind, number): value for kind, number, value in items}
    if puts:
        kinds, numbers = (_array(map(str, part)) for part in zip(*puts, strict=True))
        values = _array(f'"\\\\x{bytes(value).hex()}"' for value in puts.values())
        connection.execute(_PUT, (name, kinds, numbers, values))


def _array(texts: Iterable[str]) -> str:
    """An array as the server reads it: the driver takes much longer over a list."""
    return f"{{{','.join(texts)}}}"


def _connect(address: str, *, tables: bool = True) -> Any:  # noqa: ANN401  # psycopg's
    """A connection whose commits wait for the disk, to a database that has the tables.

    Without ``tables`` nothing is made or set: it is for reading only.
    """
    psycopg = _psycopg()
    try:
        connection = psycopg.connect(
            address, connect_timeout=10, application_name="discreet", autocommit=True
        )
    except psycopg.ProgrammingError:  # whose message quotes the URL, password and all
        raise _not_a_url() from None
    except psycopg.Error as error:
        raise StoreError("path", f"the database does not answer ({_first_line(error)})") from None
    try:
        if not tables:
            return connection
        with _translated(connection):
            connection.execute("SET synchronous_commit = on")
            durable = connection.execute("SHOW fsync").fetchone()
            if durable != ("on",):
                raise ParameterError(
                    "path",
                    "is a database with fsync off, which loses commits in a crash; turn it on",
                )
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
                connection.execute(_SCHEMA)
    except BaseException:
        _dismiss(connection)
        raise
    return connection


@contextlib.contextmanager
def _translated(connection: Any) -> Any:  # noqa: ANN401  # psycopg's
    """The database's errors as ours. None of them quotes a value."""
    try:
        yield
    except _psycopg().Error as error:
        broken = connection.closed or connection.broken
        what = "the connection broke" if broken else _first_line(error)
        raise StoreError(
            "path", f"the database could not be used ({what}); try again when it answers"
        ) from None
    except DiscreetError:
        raise
    except BaseException:  # an interrupt may leave a connection in the middle of a message
        _dismiss(connection)
        raise


def _dismiss(connection: Any) -> None:  # noqa: ANN401  # psycopg's
    """Close a connection. The server gives up its lock as soon as it sees that."""
    with contextlib.suppress(Exception):
        connection.close()


def _release(process: int, connection: Any) -> None:  # noqa: ANN401  # psycopg's
    """Close a connection, in the process that made it.

    The server sees only later that it is closed, so the lock is given up before.
    """
    if os.getpid() != process:
        return
    try:
        with contextlib.suppress(Exception):
            connection.execute("SELECT pg_advisory_unlock_all()")
    finally:  # also after an interrupt
        _dismiss(connection)


def _first_line(error: Exception) -> str:
    """The server's message; never its detail, which may quote a row."""
    diagnostic = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(diagnostic or str(error).strip().split("\n")[0])


def _parts(place: Place) -> tuple[str, str]:
    """The address for the server, and the learner's name."""
    address, _, fragment = str(place).partition("#")
    try:
        urlsplit(address)
    except ValueError:
        raise _not_a_url() from None
    name = unquote(fragment)
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ParameterError(
            "path", "names no learner; end the database's URL with # and the learner's name"
        )
    return address, name


def _without_password(address: str, name: str) -> str:
    """A URL that may be shown, and that leads to the learner if no password is needed."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")
    user = host[0].partition(":")[0]
    netloc = f"{user}@{host[2]}" if user else host[2]
    options = parse_qsl(parts.query, keep_blank_values=True)
    shown = urlencode([each for each in options if each[0] not in _SECRETS], safe="/")
    query = f"?{shown}" if shown else ""
    return f"{parts.scheme}://{netloc}{parts.path}{query}#{quote(name, safe=' /:')}"


def _psycopg() -> Any:  # noqa: ANN401  # psycopg's
    try:
        return import_module("psycopg")
    except ImportError:
        raise BackendError(
            "path", "is a PostgreSQL database, which needs `pip install 'discreet[postgresql]'`"
        ) from None


def _not_a_url() -> ParameterError:
    return ParameterError(
        "path", "is not a database's URL; give postgresql://user@host/database#name"
    )
