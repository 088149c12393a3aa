"""Where a learner is stored: numbered items under a sequence number, and its ledger. Secret.

A store knows nothing of rows, rewards or noise: an item is a kind, a number and some bytes. What
it promises is the same for every implementation, and one set of tests runs over all of them:

- **A commit is all or nothing, and on the disk when it returns.**
- **Compare-and-set.** A commit names the sequence number that it starts from. If the store is not
  there any more, somebody else wrote to it, and the commit is refused (`SecondWriterError`): two
  writers can never both continue one state.
- **After any error the store can be asked.** `sequence` tells whether the commit happened.
- **The ledger is apart from the items.** It only grows, and bringing back older items does not
  bring back an older ledger; so a state that was rewound is found out when it is opened.

`create` makes a store that does not count yet (its sequence is `UNFINISHED`, and `open` refuses
it); the first commit makes it count. So a start that fails half-way leaves nothing that loads.
"""

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol

from discreet.errors import (
    CorruptFileError,
    ParameterError,
    SecondWriterError,
    StateFileError,
    StateInUseError,
)

UNFINISHED = -1  # the sequence number of a store whose first commit has not come yet

Item = tuple[int, int, bytes]
"""Kind, number, value."""

Key = tuple[int, int]
"""Kind, number."""

Place = str | os.PathLike[str]
"""A file, or postgresql://user@host/database#name."""

_SERVER = ("postgresql://", "postgres://")


class Commit(NamedTuple):
    """A change of a store: from one sequence number to a later one.

    Attributes:
        before: the sequence number that the store must have.
        after: the one that it gets.
        puts: items to write, in place of any with the same kind and number.
        drops: items to remove.
        wipe: whether to leave no trace of what is removed, and everything in its final place, at
            the price of a slower commit.
    """

    before: int
    after: int
    puts: Sequence[Item] = ()
    drops: Sequence[Key] = ()
    wipe: bool = False


class Store(Protocol):
    """One learner's items and ledger. One thread at a time may call it."""

    @property
    def place(self) -> Path | str | None:
        """Where it is, to be shown and opened again; None if nothing outlives the process."""

    def is_at(self, place: Place) -> bool:
        """Whether a path or URL refers to this store."""

    @property
    def durable(self) -> bool:
        """Whether anything outlives the process. If not, items need not be given."""

    def commit(self, change: Commit) -> None:
        """Make a change, all of it or nothing."""

    def sequence(self) -> int:
        """The sequence number after the last commit, as the store has it now."""

    def append(self, first: int, lines: Sequence[bytes]) -> None:
        """Add whole lines to the ledger; they are on the disk when this returns.

        Args:
            first: the number of the first of them; the ledger's very first line has number 0.
            lines: what to add. Lines that are there already, from a try that was cut short, are
                not added again.
        """

    def close(self) -> None:
        """Give it up, so that somebody else may open it. More than once does no harm."""

    def discard(self) -> None:
        """Remove a store that never counted, as far as possible, and close it."""

    def abandon(self) -> None:
        """Let go of it in a forked child, touching nothing that the parent still uses."""


class Opened(NamedTuple):
    """What `open` found.

    Attributes:
        store: the store, held by this process.
        sequence: of its last commit.
        items: all of them.
        ledger: the ledger's whole lines; an unfinished last line is left out.
        missing: a file without which the newest changes may be lost; it must be refused then, and
            nothing may be written.
    """

    store: Store
    sequence: int
    items: list[Item]
    ledger: bytes
    missing: Path | None = None


def create(place: Place, items: Iterable[Item], ledger: Sequence[bytes]) -> Store:
    """Make a store that does not count yet; nothing that exists is overwritten.

    Args:
        place: a file that is not there, or a name in a database.
        items: what it holds at first.
        ledger: the ledger's lines up to now.

    Raises:
        ParameterError: the place cannot be one.
        StateExistsError: something is there already.
        StoreError: it cannot be written.
    """
    return _backend(place).create(place, items, ledger)


def open(place: Place) -> Opened:  # noqa: A001  # as `create`
    """Open a store and hold it: everything in it, and its ledger.

    Raises:
        MissingFileError: there is none.
        StateInUseError: somebody has it open.
        StateFileError: it is damaged, or not a store, or was never finished.
    """
    return _backend(place).open(place)


def ledger_of(place: Place) -> bytes:
    """The ledger's lines at a place, without opening the store."""
    return _backend(place).ledger_of(place)


class _Backend(Protocol):
    def create(self, place: Place, items: Iterable[Item], ledger: Sequence[bytes]) -> Store: ...
    def open(self, place: Place) -> Opened: ...
    def ledger_of(self, place: Place) -> bytes: ...


def _backend(place: Place) -> _Backend:
    if not isinstance(place, str | os.PathLike):
        raise ParameterError("path", "is not a path; give the name of a file, or a database's URL")
    server = isinstance(place, str) and place.startswith(_SERVER)
    name = "postgresql" if server else "sqlite"
    module: _Backend = import_module(f"discreet.curator.store.{name}")
    return module


def runs(keys: Iterable[Key]) -> list[tuple[int, int, int]]:
    """Keys as kind, first and last number of runs without a gap: fewer to remove one by one."""
    found: list[tuple[int, int, int]] = []
    for kind, number in sorted(keys):
        if found and found[-1][0] == kind and number - found[-1][2] in {0, 1}:
            found[-1] = (kind, found[-1][1], number)
        else:
            found.append((kind, number, number))
    return found


def unfinished() -> StateFileError:
    """The first commit never came, so this is no learner."""
    return StateFileError(
        "path",
        "holds an interrupted creation and no learner; delete its files and create the learner "
        "again",
    )


def damaged() -> CorruptFileError:
    """What is stored is not what was written."""
    return CorruptFileError("path", "was truncated or altered; restore it from a backup")


def in_use() -> StateInUseError:
    """Somebody else has the store open."""
    return StateInUseError(
        "path",
        "holds a learner that is open already, here or in another process; a state continues "
        "in one place only, so close that one first",
    )


def overtaken() -> SecondWriterError:
    """Somebody else has committed since."""
    return SecondWriterError(
        "path",
        "was continued by another writer, so this learner's state is old; close it and load it "
        "again",
    )
