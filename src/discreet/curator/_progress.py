"""What a curator has staged or committed and not yet applied, and what it goes on from. Secret."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.curator._records import Change, Head, Rows
from discreet.curator._subjects import Book, arrival_of
from discreet.curator.growing_ledger import GrowingLedger
from discreet.curator.store import Store
from discreet.curator.sums import Position

_F64 = NDArray[np.float64]


class UnconfirmedCommit(NamedTuple):
    """A commit that was begun, and of which it is not known whether it happened."""

    after: int
    changes: tuple[Change, ...]
    head: Head


class Progress(NamedTuple):
    """Everything between memory and store. It is replaced as a whole.

    Attributes:
        sequence: of the last commit that is known to have happened.
        unconfirmed: the commit that may have happened after it.
        applying: changes that are committed, and not all of them applied.
        queue: changes that are staged, in order.
    """

    sequence: int
    unconfirmed: UnconfirmedCommit | None = None
    applying: tuple[Change, ...] = ()
    queue: tuple[Change, ...] = ()


class StagedState:
    """Where the learner will be when everything staged has been applied.

    Attributes:
        position: of the sums.
        rounds: decisions made.
        given_up: decisions given up.
        opening: the actions of decisions that are staged, by number.
        closing: decisions that wait, and that something staged closes.
        counts: of people, as far as something staged changes them, by digest.
        people: how many have given a row.
        over: rows that came beyond the cap.
        erased: decisions that wait, and whose person is forgotten by something staged.
    """

    __slots__ = (
        "closing",
        "counts",
        "erased",
        "given_up",
        "opening",
        "over",
        "people",
        "position",
        "rounds",
    )

    def __init__(self, position: Position, rounds: int, given_up: int, book: Book) -> None:
        """Start from what is applied."""
        self.position = position
        self.rounds = rounds
        self.given_up = given_up
        self.opening: dict[int, _F64] = {}
        self.closing: set[int] = set()
        self.counts: dict[bytes, int] = {}
        self.people = len(book.counts)
        self.over = book.over
        self.erased: set[int] = set()

    def count(self, change: Change) -> None:
        """Take in a change's counts of people. To do it again does no harm."""
        if isinstance(change, Rows):
            self.counts.update(change.counts)
            self.people = max(self.people, change.people)
        elif change.count is not None:
            self.counts[change.count.digest] = change.count.record
            self.people = max(self.people, arrival_of(change.count.record) + 1)
        self.over = max(self.over, change.over)

    def counted(self, change: Change) -> None:
        """Drop counts that are applied now, unless a change staged later has newer ones."""
        counts = self.counts
        done = change.counts.items() if isinstance(change, Rows) else (change.count,)
        for digest, record in filter(None, done):
            if counts.get(digest) == record:
                del counts[digest]


class Restored(NamedTuple):
    """What a curator goes on from.

    Attributes:
        ledger: all releases so far.
        head: the counts.
        waiting: the actions of decisions that wait, by number.
        sessions: the first decision and the name of each earlier session, in order.
        store: where the learner is stored; None if in memory only.
        sequence: of the store's last commit.
    """

    ledger: GrowingLedger
    head: Head = Head()
    waiting: Mapping[int, _F64] = MappingProxyType({})
    sessions: Sequence[tuple[int, str]] = ()
    store: Store | None = None
    sequence: int = 0
