"""Reads a store that somebody else may have open: nothing is locked, made or written. Secret.

A learner in SQLite's files is read as bytes, and SQLite sees a copy in memory: its own ways of
reading lock the database, or make files beside it. In a PostgreSQL database it is one read-only
transaction.

The ledger is read before and after the items. Whoever has the learner writes a release to the items
first and to the ledger second, so items that know fewer releases than the ledger did before were
rewound; and every release that the items still hold and that is in the ledger now was shown.
"""

import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import NamedTuple

from discreet import _canonical as canonical
from discreet.curator.store import _SERVER, UNFINISHED, Item, Place, _wal, postgresql, unfinished
from discreet.curator.store import _sqlite_database as sql
from discreet.curator.store import _sqlite_files as files
from discreet.errors import MissingFileError, ParameterError, StoreError

_PATIENCE, _PAUSE = 10.0, 0.002  # seconds: for files that change while they are read
_PIECE = 2**24  # bytes that are read at a time


class Seen(NamedTuple):
    """What a look found.

    Attributes:
        sequence: of the store's last commit.
        items: all of them.
        before: the ledger's whole lines, before the items were read.
        ledger: the same after that.
    """

    sequence: int
    items: list[Item]
    before: bytes
    ledger: bytes


def look(place: Place) -> Seen:
    """Everything in a store, and its ledger.

    Args:
        place: where the learner is stored.

    Raises:
        MissingFileError: There is none, or one of its files is missing.
        StateFileError: It is damaged, or not a store, or was never finished.
        StoreError: It cannot be read now.
    """
    if not isinstance(place, str | os.PathLike):
        raise ParameterError("path", "is not a path; give the name of a file, or a database's URL")
    if isinstance(place, str) and place.startswith(_SERVER):
        return _of_database(place)
    return _of_files(place)


def _of_files(place: Place) -> Seen:
    target = files.path_of_stored(place)
    beside = files.ledger_beside(target)
    try:
        before = _lines(beside)
        database, log = _still(target)
        copy = _opened(_wal.image(database, log))
        try:
            sequence = sql.checked_sequence(copy, len(before))
            if sequence == UNFINISHED:
                raise unfinished()
            if log is None and sql.status_of(copy) == sql.OPEN:
                raise MissingFileError(
                    "path",
                    f"{target}{files.LOG} is missing, and the learner was not closed: its last "
                    "changes may be in that file, so restore it",
                )
            items = copy.execute("SELECT * FROM item WHERE kind >= 0").fetchall()
        finally:
            copy.close()
        return Seen(sequence, items, before, _lines(beside))
    except FileNotFoundError:
        raise files.ledger_missing(beside) from None
    except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
        raise sql.unreadable(target, error) from None


def _lines(path: Path) -> bytes:
    """The whole lines of a ledger's file."""
    data = path.read_bytes()
    return data[: canonical.whole(data)]


def _opened(image: bytes) -> sqlite3.Connection:
    """Open a database in memory, from the bytes of its file."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if not hasattr(copy, "deserialize"):  # left out of some builds
            raise StoreError(
                "path", "cannot be read here: this Python's SQLite cannot deserialize; use another"
            )
        if image:
            copy.deserialize(image)
        copy.execute("PRAGMA trusted_schema=OFF")
        copy.execute("PRAGMA cell_size_check=ON")
    except BaseException:
        copy.close()
        raise
    return copy


def _still(target: Path) -> tuple[bytes, bytes | None]:
    """A database's file and its log, as they are together.

    Commits only add to the log. Now and then its pages are copied into the database, and after that
    the log is emptied or begun anew. If the log after the database was read begins with what it was
    before, nothing but its own pages can have been copied meanwhile, and these are taken from it.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        before = _log(target)
        database = _contents(_descriptor(target))
        after = _log(target)
        if after == before or (before and after and after.startswith(before)):
            return database, after
        if time.monotonic() > until:
            raise StoreError("path", f"{target} changes faster than it can be read; try again")
        time.sleep(_PAUSE)


def _log(target: Path) -> bytes | None:
    try:
        return Path(f"{target}{files.LOG}").read_bytes()
    except FileNotFoundError:
        return None


_DESCRIPTORS: dict[tuple[int, int], int] = {}
_KEEPING = threading.Lock()


def _descriptor(path: Path) -> int:
    """An open file, which stays open for as long as the file is there.

    To close any descriptor of a file gives up all of the process's POSIX locks on it. Those of a
    learner that is open in this process would be among them.
    """
    with _KEEPING:
        for known, file in list(_DESCRIPTORS.items()):
            if os.fstat(file).st_nlink == 0:  # deleted
                os.close(_DESCRIPTORS.pop(known))
        found = path.stat()
        known = (found.st_dev, found.st_ino)
        if known not in _DESCRIPTORS:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            found = os.fstat(file)
            known = (found.st_dev, found.st_ino)
            _DESCRIPTORS[known] = file
        return _DESCRIPTORS[known]


def _contents(file: int) -> bytes:
    parts, at = [], 0
    while part := os.pread(file, _PIECE, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _of_database(place: str) -> Seen:
    address, name = postgresql._parts(place)  # noqa: SLF001  # the other half of that module
    connection = postgresql._connect(address, tables=False)  # noqa: SLF001  # shared
    try:
        with postgresql._translated(connection), connection.transaction():  # noqa: SLF001  # shared
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            there = connection.execute("SELECT to_regclass('discreet_learner')").fetchone()
            query = "SELECT sequence FROM discreet_learner WHERE name = %s AND sequence >= 0"
            found = None if there == (None,) else connection.execute(query, (name,)).fetchone()
            if found is None:
                raise postgresql._not_there(connection, name, tables=there != (None,))  # noqa: SLF001  # shared
            items = connection.execute(
                "SELECT kind, number, value FROM discreet_item WHERE name = %s", (name,)
            ).fetchall()
            ledger = postgresql._ledger(connection, name)  # noqa: SLF001  # shared
    finally:
        postgresql._dismiss(connection)  # noqa: SLF001  # shared
    found_items = [(kind, number, bytes(value)) for kind, number, value in items]
    return Seen(int(found[0]), found_items, ledger, ledger)
