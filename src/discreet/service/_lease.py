"""Who is the writer: one process at a time, of all that could be.

The lease says who *works*, for all bandits at once. What keeps data right, should two processes
ever believe that they have it, is each learner's own store: its lock, and the sequence number that
every commit names.

It belongs to a process and ends with it: a file that is locked, or a session of the server's.
"""

import contextlib
import fcntl
import os
import time
from abc import ABC, abstractmethod
from pathlib import Path

from discreet.errors import StoreError
from discreet.service._database import Connection, Database

_LOCK = 0x6469736377726974  # of the writer, among the advisory locks of a server's database
_LOOK = 1.0  # seconds between two looks whether the server still knows of it
# A server whose client's machine is gone finds that out, and gives the lease to the next.
_NOTICE = (
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 3",
    "SET tcp_keepalives_count = 3",
)


class Lease(ABC):
    """What one process of many can hold."""

    @abstractmethod
    def held(self) -> bool:
        """Whether this process holds it now; it is taken if it is free.

        Raises:
            StoreError: the database does not answer, so nobody knows.
        """

    @abstractmethod
    def close(self) -> None:
        """Give it up."""


def writer_lease(database: Database) -> Lease:
    """The lease of a database's writer.

    Args:
        database: the service's tables.
    """
    file = database.file
    if file is None:
        return _ServerLease(database)
    return _FileLease(file.with_name(f"{file.name}.writer"))


class Locked:
    """A file that is locked as long as this object, or this process, lives.

    Args:
        file: is made if it is not there, and stays.
    """

    def __init__(self, file: Path) -> None:
        """Nothing is locked yet."""
        self._file = file
        self._opened: int | None = None

    def lock(self, *, shared: bool = False) -> bool:
        """Lock it, if nobody else has it; whether it is locked now.

        Args:
            shared: whether others may share it.

        Raises:
            StoreError: the file cannot be made or locked.
        """
        if self._opened is not None:
            return True
        try:
            opened = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(opened, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except BaseException:
                os.close(opened)
                raise
        except BlockingIOError:
            return False
        except OSError as error:
            raise StoreError(
                "database", f"{self._file} cannot be locked ({error.strerror}); see to its disk"
            ) from None
        self._opened = opened
        return True

    def unlock(self) -> None:
        """Give it up, if it is locked."""
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None


class _FileLease(Lease):
    """A locked file beside an SQLite database."""

    def __init__(self, file: Path) -> None:
        self._file = Locked(file)

    def held(self) -> bool:
        return self._file.lock()

    def close(self) -> None:
        self._file.unlock()


class _ServerLease(Lease):
    """An advisory lock of a session: of a connection that does nothing else."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._held = False
        self._looked_at = 0.0

    def held(self) -> bool:
        now = time.monotonic()
        if self._held and now - self._looked_at < _LOOK:
            return True
        self._held = False
        try:
            # A session that has it gets it once more. A connection that was lost is made again:
            # then this is another session, and somebody else may have been quicker.
            found = self._session().execute("SELECT pg_try_advisory_lock(?)", (_LOCK,))
        except StoreError:
            self.close()
            raise
        self._held, self._looked_at = bool(found[0][0]), now
        return self._held

    def _session(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.connect()
            for setting in _NOTICE:
                self._connection.execute(setting)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            if self._held:  # now: the server may notice the end of a session a moment later
                with contextlib.suppress(StoreError):
                    self._connection.execute("SELECT pg_advisory_unlock_all()")
            self._connection.close()
            self._connection = None
            self._held = False
