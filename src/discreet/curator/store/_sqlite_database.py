"""The database of a learner in SQLite: how it is opened, checked, marked as open, and closed."""

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from discreet.curator.store import UNFINISHED, Item, damaged, unfinished
from discreet.curator.store import _sqlite_files as files
from discreet.errors import CorruptFileError, FileVersionError, StoreError

VERSION = 1

_APPLICATION = 0x64697363  # "disc", in SQLite's field for what a file is
SEQUENCE = (-1, 0)  # the key of the sequence number; kinds of items are not negative
_STATUS = (-1, 1)  # the key under which the database says whether a learner is open
NUMBER = b"%d"  # how the sequence number is written there
OPEN, _CLOSED = b"open", b"closed"
PATIENCE = 10_000  # milliseconds to wait for somebody who reads the database

_SCHEMA = """
CREATE TABLE item (
    kind INTEGER NOT NULL, number INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, number)
) WITHOUT ROWID
""".strip()
ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the latter when a message quotes damaged bytes
_PASSING = {  # what is wrong with the disk or the system, and not with the file
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
SETTINGS = (
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: through the drive's cache
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA secure_delete=ON",  # what is dropped is overwritten
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    "PRAGMA mmap_size=0",
)
_FOLD_IN = "PRAGMA wal_checkpoint(TRUNCATE)"  # the log into the database
PUT = "INSERT OR REPLACE INTO item VALUES (?, ?, ?)"
DROP = "DELETE FROM item WHERE kind = ? AND number BETWEEN ? AND ?"
STEP = "UPDATE item SET value = ? WHERE kind = ? AND number = ? AND value = ?"
_READ = "SELECT value FROM item WHERE kind = ? AND number = ?"


def connect(path: Path) -> sqlite3.Connection:
    """Open a database that is there, with all the settings that a learner needs."""
    database = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=PATIENCE / 1000,
    )
    try:
        for setting in SETTINGS:
            database.execute(setting)
    except BaseException:
        database.close()
        raise
    return database


def fill(database: sqlite3.Connection, items: Iterable[Item]) -> None:
    """Make a database that does not count yet, in one transaction."""
    database.execute("BEGIN IMMEDIATE")
    database.execute(f"PRAGMA application_id={_APPLICATION}")
    database.execute(f"PRAGMA user_version={VERSION}")
    database.execute(_SCHEMA)
    database.execute(PUT, (*SEQUENCE, NUMBER % UNFINISHED))
    database.execute(PUT, (*_STATUS, _CLOSED))
    database.executemany(PUT, items)
    database.execute("COMMIT")


def fold_in(database: sqlite3.Connection, *, patience: int = 0) -> bool:
    """Move the log into the database's own file; whether all of it is there.

    Somebody who reads the database may keep it from happening, for longer than ``patience``
    milliseconds.
    """
    folded = False
    with contextlib.suppress(*ERRORS):  # committed either way
        database.execute(f"PRAGMA busy_timeout={patience}")
        folded = database.execute(_FOLD_IN).fetchone()[0] == 0
    with contextlib.suppress(*ERRORS):
        database.execute(f"PRAGMA busy_timeout={PATIENCE}")
    return folded


def status_of(database: sqlite3.Connection) -> bytes | None:
    """What the database says about whether a learner is open."""
    row = database.execute(_READ, _STATUS).fetchone()
    return None if row is None else row[0]


def set_status(database: sqlite3.Connection, status: bytes, *, patience: int = 0) -> bool:
    """Say whether a learner is open; whether that is in the database's own file already."""
    mode = database.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != ("wal",):
        raise StoreError("path", "is on a file system without shared memory; use a local disk")
    database.execute(PUT, (*_STATUS, status))
    return fold_in(database, patience=patience)


def require_writable_format(target: Path) -> None:
    """Refuse a damaged header for which SQLite would only say that the file is read-only."""
    with target.open("rb") as file:
        header = file.read(20)
    if header[:16] == b"SQLite format 3\0" and header[18:] not in {b"\1\1", b"\2\2"}:
        raise damaged()


def connect_read_only(target: Path) -> sqlite3.Connection:
    """A look at the database's own file, without its log, that changes nothing."""
    return sqlite3.connect(
        f"file:{quote(str(target))}?mode=ro&immutable=1", uri=True, check_same_thread=False
    )


def missing_log(target: Path) -> Path | None:
    """The log of a database that was never closed and has come without it."""
    log, left_open = Path(f"{target}{files.LOG}"), False
    if log.exists():
        return None
    with contextlib.suppress(*ERRORS):  # if it is no learner's, that is seen later
        database = connect_read_only(target)
        try:
            left_open = status_of(database) == OPEN
        finally:
            database.close()
    return log if left_open else None


def checked_sequence(database: sqlite3.Connection, ledger_size: int) -> int:
    """The sequence number of a database in good order."""
    if database.execute("PRAGMA page_count").fetchone() == (0,):
        raise damaged() if ledger_size else unfinished()
    _require_format(database)
    if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise damaged()
    if status_of(database) not in {OPEN, _CLOSED}:
        raise damaged()
    return sequence_of(database)


def _require_format(database: sqlite3.Connection) -> None:
    kind = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if kind != _APPLICATION:
        raise _foreign()
    if version > VERSION:
        raise FileVersionError(
            "path",
            f"has format version {version} and this release reads up to {VERSION}; update discreet "
            "to open it",
        )
    if database.execute("SELECT sql FROM sqlite_schema").fetchall() != [(_SCHEMA,)]:
        raise damaged()


def sequence_of(database: sqlite3.Connection) -> int:
    """The sequence number that the database holds."""
    row = database.execute(_READ, SEQUENCE).fetchone()
    try:
        sequence = int(row[0])
    except (TypeError, ValueError):
        raise damaged() from None
    if sequence < UNFINISHED or row[0] != NUMBER % sequence:
        raise damaged()
    return sequence


def in_transaction(database: sqlite3.Connection) -> bool:
    """Whether a transaction is open; one that was closed, before an interrupt, has none."""
    with contextlib.suppress(sqlite3.ProgrammingError):
        return database.in_transaction
    return False


def mark_closed_and_close(database: sqlite3.Connection, path: Path) -> None:
    """Close a database, and let it say so."""
    with contextlib.suppress(StoreError, *ERRORS):
        if database.in_transaction:
            database.execute("ROLLBACK")
        if status_of(database) == OPEN:
            set_status(database, _CLOSED)
    close_unchanged(database, path)


def close_unchanged(database: sqlite3.Connection, path: Path) -> None:
    """Close a database whatever it says.

    SQLite folds the log in and removes it. If the database still says that a learner is open, an
    empty log stands for it.
    """
    database.close()
    log = missing_log(path)
    if log is not None:
        with contextlib.suppress(OSError):
            log.touch(mode=0o600)


def unreadable(place: Path, error: Exception) -> StoreError | CorruptFileError:
    """What went wrong while a database was read: the disk, or the file itself."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if isinstance(error, OSError) or code in _PASSING:
        return files.trouble(place, error)
    return _foreign() if code == sqlite3.SQLITE_NOTADB else damaged()


def _foreign() -> CorruptFileError:
    return CorruptFileError("path", "is not a learner's database; restore it from a backup")
