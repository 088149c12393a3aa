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

from discreet.curator.store import (
    UNFINISHED,
    Commit,
    Item,
    Opened,
    Place,
    overtaken,
    runs,
    unfinished,
)
from discreet.curator.store import _sqlite_database as sql
from discreet.curator.store import _sqlite_files as files
from discreet.curator.store.ledger_file import LedgerFile, sync_folder
from discreet.errors import (
    CorruptFileError,
    DiscreetError,
    MissingFileError,
    ParameterError,
    ReloadNeededError,
    StateFileError,
    StoreError,
)

_LARGEST_LEDGER = 2**36  # bytes; a file that is longer was never a ledger

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
        """Use `create` or `open`; ``untouched`` is for files that must not be changed."""
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
            if not sql.set_status(database, sql.OPEN, patience=sql.PATIENCE):
                raise StoreError("path", f"another program is reading {path}; try again after it")
            self._known[f"{path}{files.LOG}"] = _identity(f"{path}{files.LOG}")

    @property
    def place(self) -> Path:
        """The database's path."""
        return self._path

    def is_at(self, place: Place) -> bool:
        """Whether this is the database's path, however it is written."""
        with contextlib.suppress(ParameterError):
            return files.resolved(place) == self._path
        return False

    def commit(self, change: Commit) -> None:
        """Make a change, all of it or nothing."""
        database = self._ready()
        self._require_unmoved()
        try:
            database.execute("BEGIN IMMEDIATE")
            step = (sql.NUMBER % change.after, *sql.SEQUENCE, sql.NUMBER % change.before)
            if database.execute(sql.STEP, step).rowcount != 1:
                raise overtaken()
            if change.puts:
                database.executemany(sql.PUT, change.puts)
            if len(change.drops) == 1:  # nearly always: nothing to join to runs
                kind, number = change.drops[0]
                database.execute(sql.DROP, (kind, number, number))
            elif change.drops:
                database.executemany(sql.DROP, runs(change.drops))
            database.execute("COMMIT")
        except sql.ERRORS as error:
            self._roll_back()
            raise files.trouble(self._path, error) from None
        except BaseException:
            self._roll_back()
            raise
        if change.wipe or not self._folded:
            self._folded = sql.fold_in(database)

    def sequence(self) -> int:
        """The sequence number after the last commit."""
        database = self._ready()
        try:
            return sql.sequence_of(database)
        except sql.ERRORS as error:
            raise files.trouble(self._path, error) from None

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
        """Remove a store whose first commit never came, if its files were not moved."""
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
                raise files.trouble(self._path, error) from None
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
    target = files.path_for_new_store(place)
    beside = files.ledger_beside(target)
    made: dict[str, _Identity] = {}
    try:
        _clear_unfinished(target)
        lines = LedgerFile(beside, create=True)
        try:
            made[str(beside)] = lines.identity()
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            made[str(target)] = _identity(target)
            database = sql.connect(target)
            try:
                sql.fill(database, items)
                lines.append(0, ledger)
                sync_folder(target.parent)
                return SqliteStore(target, database, lines)
            except BaseException:
                sql.mark_closed_and_close(database, target)
                raise
        except BaseException:
            _remove(made)
            if not target.exists():
                files.remove_extras(target)
            lines.close()
            raise
    except FileExistsError:
        raise files.exists_already(target if made else beside) from None
    except (*sql.ERRORS, OSError) as error:
        raise files.trouble(target, error) from None


def open(place: Place) -> Opened:  # noqa: A001  # as in `discreet.curator.store`
    """Open the files; see `discreet.curator.store.open`."""
    target = files.path_of_stored(place)
    beside = files.ledger_beside(target)
    if not beside.exists():
        _require_a_store(target)
        raise files.ledger_missing(beside)
    if not beside.is_file():
        raise CorruptFileError("path", f"{beside} is not a file; restore it from a backup")
    try:
        lines = LedgerFile(beside, create=False)
        try:
            sql.require_writable_format(target)
            missing = sql.missing_log(target)
            database = sql.connect(target) if missing is None else sql.connect_read_only(target)
            try:
                sequence = sql.checked_sequence(database, beside.stat().st_size)
                if sequence == UNFINISHED:
                    raise unfinished()
                items = database.execute("SELECT * FROM item WHERE kind >= 0").fetchall()
                ledger = lines.read()
                extras = (Path(f"{target}{suffix}") for suffix in files.EXTRAS)
                files.make_private(target, beside, *(path for path in extras if path.exists()))
                store = SqliteStore(target, database, lines, untouched=missing is not None)
                return Opened(store, sequence, items, ledger, missing)
            except BaseException:
                if missing is None:
                    sql.mark_closed_and_close(database, target)
                else:
                    database.close()
                raise
        except BaseException:
            lines.close()
            raise
    except (*sql.ERRORS, OSError) as error:
        raise sql.unreadable(target, error) from None


def ledger_of(place: Place) -> bytes:
    """The ledger beside a database, or the file itself if it is a ledger."""
    path = files.resolved(place)
    target = files.ledger_beside(path)
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
        raise files.trouble(target, error) from None


def _clear_unfinished(target: Path) -> None:
    """Remove what an interrupted `create` left; refuse if anything else is there."""
    beside = files.ledger_beside(target)
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
            files.remove_extras(target)
            beside.unlink(missing_ok=True)
            return
    except (StateFileError, *sql.ERRORS, OSError):
        pass  # somebody has it open, or it is something else
    finally:
        if lines is not None:
            lines.close()
    raise files.exists_already(there[0])


def _never_finished(target: Path, lines: LedgerFile | None) -> bool:
    """Whether a crash left this of `create`, before the first commit."""
    if lines is not None and _identity(lines.path) != lines.identity():
        return False  # somebody was quicker
    ledger_size = 0 if lines is None else lines.path.stat().st_size
    if not target.exists():
        return not ledger_size
    if not target.is_file():
        return False
    database = sql.connect(target)
    try:
        return sql.checked_sequence(database, ledger_size) == UNFINISHED
    except StateFileError as error:
        return str(error) == str(unfinished())
    finally:
        sql.close_unchanged(database, target)


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
        database = sql.connect(target)
        try:
            if sql.checked_sequence(database, 0) == UNFINISHED:
                raise unfinished()
        finally:
            sql.close_unchanged(database, target)
    except sql.ERRORS as error:
        raise sql.unreadable(target, error) from None


def _identity(place: str | Path) -> _Identity:
    found = os.stat(place)  # noqa: PTH116  # called at every commit
    return found.st_dev, found.st_ino


def _release(
    process: int, database: sqlite3.Connection, ledger: LedgerFile, path: Path | None
) -> None:
    """Close both files, in the process that opened them; at ``path`` the database is told."""
    if os.getpid() != process or ledger.closed:
        return
    if sql.in_transaction(database):  # another thread is in a commit, and the process ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))  # left as a crash would leave it
    elif path is None:
        database.close()
    else:
        sql.mark_closed_and_close(database, path)
    ledger.close()
