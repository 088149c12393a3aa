"""A learner in an SQLite file, with its ledger beside it.

``PATH`` is the database and ``PATH.ledger`` the ledger. While a learner is open, and after a crash,
SQLite's own ``PATH-wal`` and ``PATH-shm`` are there too: the first holds commits that are not in
the database's file yet, the second only helps to find them. All are for their owner only.

SQLite runs with a write-ahead log and ``synchronous=FULL``: one sync a commit. Two things that it
does not look after are looked after here. Before each commit the files are compared with those that
are open, because SQLite writes on into a file that was moved away. And the database says whether a
learner is open, so that a copy that was made without its log is refused. The ledger's lock refuses
a second opener, the sequence number a second writer.
"""

import contextlib
import ctypes
import os
import sqlite3
import stat
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from discreet.curator.store import UNFINISHED, Commit, Item, Opened, Place, runs, unfinished
from discreet.curator.store.ledger_file import LedgerFile, sync_folder
from discreet.errors import (
    CorruptFileError,
    DiscreetError,
    FileVersionError,
    MissingFileError,
    ParameterError,
    ReloadNeededError,
    SecondWriterError,
    StateExistsError,
    StateFileError,
    StoreError,
)

VERSION = 1
SUFFIX = ".ledger"

_APPLICATION = 0x64697363  # "disc", in SQLite's field for what a file is
_LOG = "-wal"  # SQLite's write-ahead log
_EXTRAS = (_LOG, "-shm", "-journal")
_OWN_SUFFIXES = (SUFFIX, *_EXTRAS)
_SEQUENCE = (-1, 0)  # the key of the sequence number; kinds of items are not negative
_STATUS = (-1, 1)  # the key under which the database says whether a learner is open
_OPEN, _CLOSED = b"open", b"closed"
_PATIENCE = 10_000  # milliseconds to wait for somebody who reads the database
_LARGEST_LEDGER = 2**36  # bytes; a file that is longer was never a ledger

_SCHEMA = """
CREATE TABLE item (
    kind INTEGER NOT NULL, number INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, number)
) WITHOUT ROWID
""".strip()
_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the latter when a message quotes damaged bytes
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
_SETTINGS = (
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",  # macOS: through the drive's cache
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA secure_delete=ON",  # what is dropped is overwritten
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    "PRAGMA mmap_size=0",
)
_FOLD_IN = "PRAGMA wal_checkpoint(TRUNCATE)"  # the log into the database
_PUT = "INSERT OR REPLACE INTO item VALUES (?, ?, ?)"
_DROP = "DELETE FROM item WHERE kind = ? AND number BETWEEN ? AND ?"
_STEP = "UPDATE item SET value = ? WHERE kind = ? AND number = ? AND value = ?"
_READ = "SELECT value FROM item WHERE kind = ? AND number = ?"

_Identity = tuple[int, int]  # device and number of a file


class SqliteStore:
    """The open files of one learner."""

    durable = True

    def __init__(
        self,
        path: Path,
        database: sqlite3.Connection,
        ledger: LedgerFile,
        *,
        untouched: bool = False,
    ) -> None:
        """Use `create` or `open`; ``untouched`` is for looking at what must not be changed."""
        self._path = path
        self._database = database
        self._ledger = ledger
        self._open = True
        self._folded = True  # whether all that must be in the database's own file is there
        self._process = os.getpid()
        self._known = {str(ledger.path): ledger.identity(), str(path): _identity(path)}
        self._held = (self._process, database, ledger, None if untouched else path)
        self._finalizer = weakref.finalize(self, _release, *self._held)
        if not untouched:
            if not _set_status(database, _OPEN, patience=_PATIENCE):
                raise StoreError("path", f"another program is reading {path}; try again after it")
            self._known[f"{path}{_LOG}"] = _identity(f"{path}{_LOG}")

    @property
    def place(self) -> Path:
        """The database's path."""
        return self._path

    def is_at(self, place: Place) -> bool:
        """Whether this is the database's path, however it is written."""
        with contextlib.suppress(ParameterError):
            return _path(place) == self._path
        return False

    def commit(self, change: Commit) -> None:
        """Make a change, all of it or nothing."""
        database = self._ready()
        self._require_unmoved()
        try:
            database.execute("BEGIN IMMEDIATE")
            step = (_number(change.after), *_SEQUENCE, _number(change.before))
            if database.execute(_STEP, step).rowcount != 1:
                raise _overtaken()
            if change.puts:
                database.executemany(_PUT, change.puts)
            if len(change.drops) == 1:  # nearly always: nothing to join to runs
                kind, number = change.drops[0]
                database.execute(_DROP, (kind, number, number))
            elif change.drops:
                database.executemany(_DROP, runs(change.drops))
            database.execute("COMMIT")
        except _ERRORS as error:
            self._roll_back()
            raise _trouble(self._path, error) from None
        except BaseException:
            self._roll_back()
            raise
        if change.wipe or not self._folded:
            self._folded = _fold_in(database)

    def sequence(self) -> int:
        """The sequence number after the last commit."""
        database = self._ready()
        try:
            return _sequence(database)
        except _ERRORS as error:
            raise _trouble(self._path, error) from None

    def append(self, first: int, lines: Sequence[bytes]) -> None:
        """Add lines at the end of the ledger."""
        self._ready()
        self._require_unmoved()
        self._ledger.append(first, lines)

    def close(self) -> None:
        """Fold SQLite's log into the database, close both files and unlock."""
        self._roll_back()
        self._open = False
        _release(*self._held)
        self._finalizer.detach()

    def discard(self) -> None:
        """Remove files that never counted, if they are still where they were made."""
        counts = True
        with contextlib.suppress(DiscreetError):
            counts = self.sequence() != UNFINISHED
        self.close()
        if not counts:
            _remove(self._known)

    def abandon(self) -> None:
        """Leave everything to the parent: a child that closed the database could undo a commit."""
        self._finalizer.detach()
        self._open, self._held = False, (-1, *self._held[1:])
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._database))  # never closed here
        self._ledger.abandon()

    def _ready(self) -> sqlite3.Connection:
        """The database, with no transaction open: an interrupt may have left one."""
        if not self._open:
            raise ReloadNeededError("path", "was closed; load the learner again from its file")
        if self._database.in_transaction:
            self._roll_back()
            if self._database.in_transaction:  # what it says would not be what is on the disk
                raise StoreError("path", f"{self._path} could not be used; try again")
        return self._database

    def _roll_back(self) -> None:
        """Undo what is not committed; in a forked child that is the parent's business."""
        with contextlib.suppress(sqlite3.Error):
            if self._open and self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def _require_unmoved(self) -> None:
        """Refuse if other files, or none, are where this learner has its own open."""
        for place, before in self._known.items():
            try:
                same = _identity(place) == before
            except (FileNotFoundError, NotADirectoryError):
                same = False
            except OSError as error:
                raise _trouble(self._path, error) from None
            if not same:
                raise ReloadNeededError(
                    "path",
                    f"{place} was moved, deleted or replaced under the open learner, which changes "
                    "nothing more; close it and load it from where its files are now, or start a "
                    "new one if they are gone",
                )

    def __repr__(self) -> str:
        return f"SqliteStore({str(self._path)!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: a state continues in one place."""
        raise TypeError("a stored learner cannot be copied or pickled; open it again")


def create(place: Place, items: Iterable[Item], ledger: Sequence[bytes]) -> SqliteStore:
    """New files that do not count yet; see `discreet.curator.store.create`.

    The ledger comes first, for its lock, and is empty until the database says that it does not
    count. So an empty database beside a ledger with lines is never taken for such a start.
    """
    target = _new(place)
    beside = _beside(target)
    made: dict[str, _Identity] = {}
    try:
        _clear_unfinished(target)
        lines = LedgerFile(beside, create=True)
        try:
            made[str(beside)] = lines.identity()
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            made[str(target)] = _identity(target)
            database = _connect(target)
            try:
                _fill(database, items)
                lines.append(0, ledger)
                sync_folder(target.parent)
                return SqliteStore(target, database, lines)
            except BaseException:
                _shut(database, target)
                raise
        except BaseException:
            _remove(made)
            if not target.exists():
                _remove_extras(target)
            lines.close()
            raise
    except FileExistsError:
        raise _exists(target if made else beside) from None
    except (*_ERRORS, OSError) as error:
        raise _trouble(target, error) from None


def open(place: Place) -> Opened:  # noqa: A001  # as in `discreet.curator.store`
    """Open the files; see `discreet.curator.store.open`."""
    target = _old(place)
    beside = _beside(target)
    if not beside.exists():
        _require_a_store(target)
        raise _missing(beside)
    if not beside.is_file():
        raise CorruptFileError("path", f"{beside} is not a file; restore it from a backup")
    try:
        lines = LedgerFile(beside, create=False)
        try:
            _require_writable_format(target)
            missing = _missing_log(target)
            database = _connect(target) if missing is None else _frozen(target)
            try:
                sequence = _checked(database, beside.stat().st_size)
                if sequence == UNFINISHED:
                    raise unfinished()
                items = database.execute("SELECT * FROM item WHERE kind >= 0").fetchall()
                ledger = lines.read()
                extras = (Path(f"{target}{suffix}") for suffix in _EXTRAS)
                _tighten(target, beside, *(path for path in extras if path.exists()))
                store = SqliteStore(target, database, lines, untouched=missing is not None)
                return Opened(store, sequence, items, ledger, missing)
            except BaseException:
                if missing is None:
                    _shut(database, target)
                else:
                    database.close()
                raise
        except BaseException:
            lines.close()
            raise
    except (*_ERRORS, OSError) as error:
        raise _unreadable(target, error) from None


def ledger_of(place: Place) -> bytes:
    """The ledger beside a database, or the file itself if it is a ledger."""
    path = _path(place)
    target = _beside(path)
    try:
        if not target.exists():
            target = path
        found = target.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_LEDGER:
            raise ParameterError("file", f"{target} is not a ledger; give the path of a file")
        return target.read_bytes()
    except FileNotFoundError:
        raise MissingFileError("file", f"{target} does not exist; give a ledger's path") from None
    except OSError as error:
        raise _trouble(target, error) from None


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_PATIENCE / 1000,
    )
    try:
        for setting in _SETTINGS:
            database.execute(setting)
    except BaseException:
        database.close()
        raise
    return database


def _fill(database: sqlite3.Connection, items: Iterable[Item]) -> None:
    """Make a database that does not count yet, in one transaction."""
    database.execute("BEGIN IMMEDIATE")
    database.execute(f"PRAGMA application_id={_APPLICATION}")
    database.execute(f"PRAGMA user_version={VERSION}")
    database.execute(_SCHEMA)
    database.execute(_PUT, (*_SEQUENCE, _number(UNFINISHED)))
    database.execute(_PUT, (*_STATUS, _CLOSED))
    database.executemany(_PUT, items)
    database.execute("COMMIT")


def _fold_in(database: sqlite3.Connection, *, patience: int = 0) -> bool:
    """Move the log into the database's own file; whether all of it is there.

    Somebody who reads the database may keep it from happening, for longer than ``patience``
    milliseconds.
    """
    folded = False
    with contextlib.suppress(*_ERRORS):  # committed either way
        database.execute(f"PRAGMA busy_timeout={patience}")
        folded = database.execute(_FOLD_IN).fetchone()[0] == 0
    with contextlib.suppress(*_ERRORS):
        database.execute(f"PRAGMA busy_timeout={_PATIENCE}")
    return folded


def _status(database: sqlite3.Connection) -> bytes | None:
    """What the database says about whether a learner is open."""
    row = database.execute(_READ, _STATUS).fetchone()
    return None if row is None else row[0]


def _set_status(database: sqlite3.Connection, status: bytes, *, patience: int = 0) -> bool:
    """Say whether a learner is open; whether that is in the database's own file already."""
    mode = database.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != ("wal",):
        raise StoreError("path", "is on a file system without shared memory; use a local disk")
    database.execute(_PUT, (*_STATUS, status))
    return _fold_in(database, patience=patience)


def _require_writable_format(target: Path) -> None:
    """Refuse a damaged header for which SQLite would only say that the file is read-only."""
    with target.open("rb") as file:
        header = file.read(20)
    if header[:16] == b"SQLite format 3\0" and header[18:] not in {b"\1\1", b"\2\2"}:
        raise _damaged()


def _frozen(target: Path) -> sqlite3.Connection:
    """A look at the database's own file, without its log, that changes nothing."""
    return sqlite3.connect(
        f"file:{quote(str(target))}?mode=ro&immutable=1", uri=True, check_same_thread=False
    )


def _missing_log(target: Path) -> Path | None:
    """The log of a database that was never closed and has come without it."""
    log, left_open = Path(f"{target}{_LOG}"), False
    if log.exists():
        return None
    with contextlib.suppress(*_ERRORS):  # if it is no learner's, that is seen later
        database = _frozen(target)
        try:
            left_open = _status(database) == _OPEN
        finally:
            database.close()
    return log if left_open else None


def _checked(database: sqlite3.Connection, ledger_size: int) -> int:
    """The sequence number of a database in good order."""
    if database.execute("PRAGMA page_count").fetchone() == (0,):
        raise _damaged() if ledger_size else unfinished()
    _require_format(database)
    if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise _damaged()
    if _status(database) not in {_OPEN, _CLOSED}:
        raise _damaged()
    return _sequence(database)


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
        raise _damaged()


def _sequence(database: sqlite3.Connection) -> int:
    row = database.execute(_READ, _SEQUENCE).fetchone()
    try:
        sequence = int(row[0])
    except (TypeError, ValueError):
        raise _damaged() from None
    if sequence < UNFINISHED or row[0] != _number(sequence):
        raise _damaged()
    return sequence


def _number(sequence: int) -> bytes:
    return b"%d" % sequence


def _clear_unfinished(target: Path) -> None:
    """Remove a start that never finished; refuse if anything else is there."""
    beside = _beside(target)
    there = [path for path in (target, beside) if os.path.lexists(path)]
    if not there:
        return
    lines = None
    try:
        if beside in there:
            lines = LedgerFile(beside, create=False)
        if _never_finished(target, lines):
            if lines is not None:
                lines.clear()  # first: a ledger with lines would be taken for a learner's
            target.unlink(missing_ok=True)
            _remove_extras(target)
            beside.unlink(missing_ok=True)
            return
    except (StateFileError, *_ERRORS, OSError):
        pass  # somebody has it open, or it is something else
    finally:
        if lines is not None:
            lines.close()
    raise _exists(there[0])


def _never_finished(target: Path, lines: LedgerFile | None) -> bool:
    """Whether a crash left this of `create`, before the first commit."""
    if lines is not None and _identity(lines.path) != lines.identity():
        return False  # somebody was quicker
    ledger_size = 0 if lines is None else lines.path.stat().st_size
    if not target.exists():
        return not ledger_size
    if not target.is_file():
        return False
    database = _connect(target)
    try:
        return _checked(database, ledger_size) == UNFINISHED
    except StateFileError as error:
        return str(error) == str(unfinished())
    finally:
        _close_unchanged(database, target)


def _remove(made: Mapping[str, _Identity]) -> None:
    """Remove a ledger and its database, unless others are in their place by now.

    A ledger that cannot be removed keeps its database, which says that it does not count.
    """
    with contextlib.suppress(OSError):
        for place, identity in made.items():
            with contextlib.suppress(FileNotFoundError):
                if _identity(place) == identity:
                    Path(place).unlink()


def _require_a_store(target: Path) -> None:
    """Say that a file is no learner's, rather than that its ledger is missing."""
    try:
        database = _connect(target)
        try:
            if _checked(database, 0) == UNFINISHED:
                raise unfinished()
        finally:
            _close_unchanged(database, target)
    except _ERRORS as error:
        raise _unreadable(target, error) from None


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}{SUFFIX}")


def _path(place: Place) -> Path:
    try:
        path = Path(place).resolve() if os.fspath(place) else None
    except (TypeError, ValueError, RuntimeError):
        path = None
    if path is None:
        raise ParameterError("path", "is not a path; give the name of a file")
    return path


def _plain(place: Place) -> Path:
    target = _path(place)
    try:
        folder = target.is_dir()
        _beside(target).exists()  # its name may be too long when the other is not
    except OSError as error:
        raise _trouble(target, error) from None
    for suffix in _OWN_SUFFIXES:
        if target.name.lower().endswith(suffix):
            raise ParameterError(
                "path",
                f"ends in {suffix}, which is the name of a file beside a learner; give the "
                "learner's own path, without such an ending",
            )
    if folder:
        raise ParameterError("path", f"{target} is a folder; give the name of a file in it")
    return target


def _new(place: Place) -> Path:
    target = _plain(place)
    if not target.parent.is_dir():
        raise ParameterError(
            "path", f"{target.parent} is not a folder; make it first, or give another path"
        )
    return target


def _old(place: Place) -> Path:
    target = _plain(place)
    if not target.exists():
        raise MissingFileError(
            "path", f"{target} does not exist; give the path that the learner is stored at"
        )
    if not target.is_file():
        raise ParameterError("path", f"{target} is not a file; give the path of a learner")
    return target


def _tighten(*places: Path) -> None:
    """Make files that others could open private again, or refuse those of another owner."""
    for place in places:
        found = place.stat()
        if not found.st_mode & 0o077:
            continue
        try:
            place.chmod(0o600)
        except OSError:
            if found.st_uid == os.geteuid():
                continue  # not every file system has modes
            raise StateFileError(
                "path",
                f"{place} can be opened by others and belongs to another user; make it yours and "
                "private first (chown, chmod 600)",
            ) from None


def _identity(place: str | Path) -> _Identity:
    found = os.stat(place)  # noqa: PTH116  # called at every commit
    return found.st_dev, found.st_ino


def _release(
    process: int, database: sqlite3.Connection, ledger: LedgerFile, path: Path | None
) -> None:
    """Close both files, in the process that opened them; at ``path`` the database is told."""
    if os.getpid() != process or ledger.closed:
        return
    if _in_transaction(database):  # another thread is in a commit, and the process ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))  # left as a crash would leave it
    elif path is None:
        database.close()
    else:
        _shut(database, path)
    ledger.close()


def _in_transaction(database: sqlite3.Connection) -> bool:
    """Whether a transaction is open; one that was closed, before an interrupt, has none."""
    with contextlib.suppress(sqlite3.ProgrammingError):
        return database.in_transaction
    return False


def _shut(database: sqlite3.Connection, path: Path) -> None:
    """Close a database, and let it say so."""
    with contextlib.suppress(StoreError, *_ERRORS):
        if database.in_transaction:
            database.execute("ROLLBACK")
        if _status(database) == _OPEN:
            _set_status(database, _CLOSED)
    _close_unchanged(database, path)


def _close_unchanged(database: sqlite3.Connection, path: Path) -> None:
    """Close a database whatever it says.

    SQLite folds the log in and removes it. If the database still says that a learner is open, an
    empty log stands for it.
    """
    database.close()
    log = _missing_log(path)
    if log is not None:
        with contextlib.suppress(OSError):
            log.touch(mode=0o600)


def _remove_extras(target: Path) -> None:
    """Remove what SQLite leaves beside a database that is gone."""
    for suffix in _EXTRAS:
        with contextlib.suppress(OSError):
            Path(f"{target}{suffix}").unlink(missing_ok=True)


def _exists(place: Path) -> StateExistsError:
    return StateExistsError(
        "path",
        f"{place} exists already; open the learner that is stored there, give another path, or "
        "remove that file",
    )


def _missing(place: Path) -> MissingFileError:
    return MissingFileError(
        "path",
        f"{place} is missing, and without it nobody can tell whether the state is the newest; "
        "restore that file, or start a new learner",
    )


def _damaged() -> CorruptFileError:
    return CorruptFileError("path", "was truncated or altered; restore it from a backup")


def _foreign() -> CorruptFileError:
    return CorruptFileError("path", "is not a learner's database; restore it from a backup")


def _overtaken() -> SecondWriterError:
    return SecondWriterError(
        "path",
        "was continued by another writer, so this learner's state is old; close it and load the "
        "file again",
    )


def _unreadable(place: Path, error: Exception) -> StoreError | CorruptFileError:
    """What went wrong while a database was read: the disk, or the file itself."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if isinstance(error, OSError) or code in _PASSING:
        return _trouble(place, error)
    return _foreign() if code == sqlite3.SQLITE_NOTADB else _damaged()


def _trouble(place: Path, error: Exception) -> StoreError:
    what = error.strerror if isinstance(error, OSError) else str(error)
    return StoreError("path", f"{place} could not be used ({what}); try again")
