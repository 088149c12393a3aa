"""Where a learner is stored, how a whole one is written, and how it comes to a new store. Secret.

Formal guarantee: what is stored is all that the curator holds, sealed (`_changes`), at one place
that counts. A new store counts from its first commit on, which is asked for until it is known; and
then the old one, which is memory, is not used any more.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from discreet.curator import store as stores
from discreet.curator._arrays import encode
from discreet.curator._changes import (
    FORMAT,
    LEARNER,
    ROW,
    SUMS,
    VERSION,
    Head,
    Records,
    as_json,
)
from discreet.curator._state import Held
from discreet.curator._subjects import Count
from discreet.curator.store import UNFINISHED, Commit, Item, Key, Store
from discreet.curator.store.memory import MemoryStore
from discreet.curator.sums import PrefixSums
from discreet.errors import ParameterError

_COMPACT_AFTER = 1000  # rows stored one by one, after which the sums are stored instead


class Storage:
    """A learner's store, and what is known to be in it.

    Attributes:
        store: where the learner is stored; in memory, if nothing else was asked for.
        records: what seals its items.
        head: the counts of what is stored.
        moving: a new store and its head, while it is not known whether it counts already.
        compact_at: how many rows are stored one by one before the sums are stored instead.
    """

    __slots__ = ("compact_at", "head", "moving", "records", "store")

    def __init__(self, learner: str, head: Head, store: Store | None) -> None:
        """Start where the learner was restored from, or in memory.

        Args:
            learner: its id.
            head: what is stored.
            store: where; None if in memory only.
        """
        self.records = Records(learner)
        self.head = head
        self.store: Store = MemoryStore() if store is None else store
        self.moving: tuple[Store, Head] | None = None
        self.compact_at = _COMPACT_AFTER

    def require_here(self, place: stores.Place | None) -> None:
        """Refuse another place than that of the store."""
        if place is None or self.store.is_at(place):
            return
        raise ParameterError(
            "path",
            "is not where this learner is stored; a second copy could be continued as well, so "
            "leave it out, or close the learner and move its files",
        )

    def move(
        self, place: stores.Place, document: dict[str, Any], held: Held, sequence: int
    ) -> None:
        """Make a new store, which counts from its first commit on; until then this one does.

        Args:
            place: where.
            document: what is stored of the learner besides its data.
            held: its data.
            sequence: the number of the new store's first commit.
        """
        items, head = everything(self.records, document, held, held.all_sessions())
        ledger = list(held.releases.ledger.lines())
        self.moving = (stores.create(place, items, ledger), head)
        try:
            self.moving[0].commit(Commit(UNFINISHED, sequence, wipe=True))
        finally:
            self.finish_move()

    def finish_move(self) -> None:
        """Ask a new store whether its first commit happened; if not, remove it."""
        if self.moving is None:
            return
        store, head = self.moving
        if store.sequence() == UNFINISHED:
            self.moving = None
            store.discard()
        else:
            self.head = head
            self.store = store
            self.moving = None

    def compaction(
        self, sequence: int, document: dict[str, Any], sums: PrefixSums
    ) -> tuple[Commit, Head]:
        """The commit that stores the sums instead of the rows that are in them.

        Open rows stay as they are, while their batch is open.

        Args:
            sequence: of the last commit.
            document: what is stored of the learner besides its data.
            sums: with all rows in them.

        Returns:
            The commit, and the head after it.
        """
        head = self.head
        if sums.rows != head.rows:
            raise ValueError("not all rows are in the sums")
        item, seal = _sums(self.records, sums)
        released, open_rows = sums.position.released, sums.open_rows
        drops: list[Key] = []
        many, kept = head.held, head.kept
        if many and released > head.summed:  # their batch has been released
            drops += [(ROW, number) for number in range(head.released + 1, head.summed + 1)]
            many = kept = 0
        for number in range(head.summed + 1, head.rows + 1):
            if number in open_rows:
                many += 1
                kept ^= self.records.open_row(number, open_rows[number])[1]
            else:
                drops.append((ROW, number))
        after = replace(
            head, summed=head.rows, since=0, sums=seal, released=released, held=many, kept=kept
        )
        puts = [_learner(document), item, self.records.head(after)]
        return Commit(sequence, sequence + 1, puts, drops, wipe=True), after

    def compacted(self) -> None:
        """The sums are stored: count from there."""
        self.compact_at = _COMPACT_AFTER

    def abandon(self) -> None:
        """Let go of it in a forked child, touching nothing that the parent still uses."""
        self.store.abandon()
        if self.moving is not None:
            self.moving[0].abandon()


def everything(
    records: Records, document: dict[str, Any], held: Held, sessions: Iterable[tuple[int, str]]
) -> tuple[list[Item], Head]:
    """All items of a learner.

    Args:
        records: what seals them.
        document: what is stored of the learner besides its data.
        held: its data.
        sessions: the first decision and the name of each session.

    Returns:
        The items, and the head among them.
    """
    sums, book = held.sums, held.book
    item, seal = _sums(records, sums)
    items = [_learner(document), item]

    def combined(sealed: Iterable[tuple[Item, int]]) -> int:
        together = 0
        for item, one in sealed:
            items.append(item)
            together ^= one
        return together

    open_rows, owners = sums.open_rows, book.owners
    head = Head(
        rounds=held.rounds,
        given_up=held.given_up,
        rows=sums.rows,
        summed=sums.rows,
        waiting=len(held.waiting),
        decisions=combined(
            records.decision(number, action, owners.get(number))
            for number, action in held.waiting.items()
        ),
        sessions=combined(records.session(first, name) for first, name in sessions),
        sums=seal,
        released=sums.position.released,
        held=len(open_rows),
        kept=combined(records.open_row(number, row) for number, row in open_rows.items()),
        people=len(book.counts),
        counts=combined(records.person(Count(*one)) for one in book.counts.items()),
        over=book.over,
    )
    return [*items, records.head(head)], head


def _sums(records: Records, sums: PrefixSums) -> tuple[Item, int]:
    """The item of the sums with their noise, and its seal."""
    position = sums.position
    body = {
        "rows": position.rows,
        "released": position.released,
        "number": position.number,
        "arrays": {name: encode(part) for name, part in sums.arrays().items()},
    }
    return records.seal(SUMS, 0, as_json(body))


def _learner(document: dict[str, Any]) -> Item:
    """The item that says which learner this is.

    Its seal has no key, because the learner's id is read from it.
    """
    body = {"format": FORMAT, "version": VERSION, **document}
    return Records("").seal(LEARNER, 0, as_json(body))[0]
