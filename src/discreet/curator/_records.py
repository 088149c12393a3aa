"""Turns a learner's state and its changes into items for a store; `_stored` reads them. Secret.

Every value is sealed: it starts with a digest of the learner's id, the item's kind and number, and
its contents, so that a flipped bit or an item in the wrong place is found out. The *head* counts
what there should be and combines the seals of the decisions, the rows and the people, so that an
item too few or too many is found out as well. There is no code in any of it and no pickle.

| kind | number | contents |
|---|---|---|
| `LEARNER` | 0 | JSON: mechanism, policy, settings, the key for people's ids |
| `HEAD` | 0 | JSON: a `Head` |
| `SUMS` | 0 | JSON: the sums with their noise, after the first rows |
| `ROW` | of the row | decision, reward, action and noise of a row that came after, or is open |
| `DECISION` | of the decision | the action of a decision that waits, and whom it is for |
| `SESSION` | of its first decision | the name that starts its decisions' ids |
| `PERSON` | of the person, in order | digest of the id, rows counted, rows withdrawn |

People are digests (`_subjects`). A row of a person has its digest before the action, and says so by
a decision with all bits turned over. A decision is the action, then the digest if there is one, or
nothing at all if its person was forgotten.
"""

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator._arrays import DTYPES, F8, encode
from discreet.curator._subjects import ERASED, Book, Count, OpenRow, contents_of
from discreet.curator.store import Item, Key
from discreet.curator.sums import PrefixSums

if TYPE_CHECKING:
    from discreet.errors import DiscreetError

_F64 = NDArray[np.float64]

LEARNER, HEAD, SUMS, ROW, DECISION, SESSION, PERSON = KINDS = range(7)
FORMAT = "discreet-learner"
VERSION = 1
MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)
"""What code that expects a good file raises at a bad one."""

_SEAL = 16  # bytes
_KEY = struct.Struct("<qq")
ROW_START = struct.Struct("<qd")  # decision and reward
_NOBODY = Book(1, key=b"")  # is only read
_NOTHING: Mapping[int, OpenRow] = {}


class Change:
    """What one call changes: it opens a decision, turns one into a row, or closes one.

    Attributes:
        several: whether it is about several of them at once.
    """

    several = False
    __slots__ = (
        "action",
        "count",
        "done",
        "error",
        "given_up",
        "lost",
        "noise",
        "number",
        "opens",
        "over",
        "owner",
        "reward",
        "row",
    )

    def __init__(  # noqa: PLR0917  # one for each decision and each row, so it should be quick
        self,
        number: int,
        action: _F64 | None = None,
        row: int = 0,
        reward: float = 0.0,
        noise: NDArray[Any] | None = None,
        given_up: int | None = None,
        lost: int = 0,
        owner: bytes | None = None,
        count: Count | None = None,
        over: int = 0,
    ) -> None:
        """Say which decision, and what becomes of it.

        Args:
            number: the decision's number.
            action: its action, if it is opened or becomes a row.
            row: the number of the row that it becomes; 0 if it becomes none.
            reward: the row's reward.
            noise: what was drawn for that row.
            given_up: for a new decision, the number of another that is given up for it.
            lost: the number of decisions given up so far, this one included.
            owner: the digest of whom a new decision is for, if that is known.
            count: of the person whose row it becomes, if that is known and the row counts.
            over: for a row of zeros beyond the cap, the number of such rows so far, this one
                included.
        """
        self.number = number
        self.action = action
        self.row = row
        self.reward = reward
        self.noise = noise
        self.given_up = given_up
        self.lost = lost
        self.owner = owner
        self.count = count
        self.over = over
        self.opens = action is not None and not row  # whether the decision is a new one
        self.done = False  # on the disk, if anything is
        self.error: DiscreetError | None = None  # why it will not be

    @property
    def open_row(self) -> OpenRow | None:
        """The row, if it is a person's: it is kept by itself while its batch is open."""
        if self.count is None:
            return None
        return OpenRow(self.count.digest, self.number, self.action, self.reward)  # type: ignore[arg-type]  # a row


class Forget(Change):
    """A person is forgotten, as far as possible. Nothing else is under way when this is staged.

    Attributes:
        decisions: those that wait and are this person's.
        rows: those of the open batch that are this person's.
    """

    several = True
    __slots__ = ("decisions", "rows")

    def __init__(self, decisions: Sequence[int], rows: Sequence[int], count: Count | None) -> None:
        """Say what is erased, and what the person's count is then."""
        super().__init__(-1, count=count)
        self.decisions = decisions
        self.rows = rows


class Rows(Change):
    """Rows that were decided elsewhere, one after the other, and make no release.

    The first is decision ``number`` and row ``row``; none of them has noise.

    Attributes:
        actions: shape (n, d); zeros for rows that are a person's.
        rewards: shape (n,); likewise.
        open_rows: the rows that are a person's, by number, as far as they count.
        counts: of people, after these rows.
        people: how many people have given a row, after these rows.
    """

    several = True
    __slots__ = ("actions", "counts", "open_rows", "people", "rewards")

    def __init__(self, number: int, row: int, actions: _F64, rewards: _F64) -> None:
        """Start with rows of nobody; those of people are entered afterwards."""
        super().__init__(number, row=row)
        self.actions = actions
        self.rewards = rewards
        self.open_rows: dict[int, OpenRow] = {}
        self.counts: dict[bytes, int] = {}
        self.people = 0


@dataclass(frozen=True, kw_only=True)
class Head:
    """The counts and combined seals of everything stored: a missing or extra item is noticed.

    It is stored under the names of its attributes.

    Attributes:
        rounds: decisions made.
        given_up: decisions that were given up because too many waited.
        rows: rewards taken in.
        summed: how many of the rows are in the stored sums; the others are stored one by one.
        waiting: decisions that wait.
        decisions: the seals of the waiting decisions, combined.
        since: the seals of the rows that are not in the stored sums, combined.
        sessions: the seals of the sessions, combined.
        sums: the seal of the stored sums.
        released: how many rows were in a release when the sums were stored.
        held: how many rows of the batch that was open then are stored one by one.
        kept: their seals, combined.
        people: how many people have given a row.
        counts: the seals of their counts, combined.
        over: rows beyond the cap.
    """

    rounds: int = 0
    given_up: int = 0
    rows: int = 0
    summed: int = 0
    waiting: int = 0
    decisions: int = 0
    since: int = 0
    sessions: int = 0
    sums: int = 0
    released: int = 0
    held: int = 0
    kept: int = 0
    people: int = 0
    counts: int = 0
    over: int = 0


class Records:
    """Turns one learner's state and its changes into items."""

    def __init__(self, learner: str) -> None:
        """Take the learner's id, which every seal covers."""
        self._keyed = hashlib.blake2b(digest_size=_SEAL, key=learner.encode("ascii"))

    def seal(self, kind: int, number: int, contents: bytes) -> tuple[Item, int]:
        """An item, and its seal as a number."""
        digest = self._keyed.copy()  # quicker than one made anew with the key
        digest.update(_KEY.pack(kind, number) + contents)
        seal = digest.digest()
        return (kind, number, seal + contents), int.from_bytes(seal, "big")

    def unseal(self, item: Item) -> tuple[bytes, int]:
        """An item's contents and its seal; ValueError if they do not go together."""
        kind, number, value = item
        if type(value) is not bytes or len(value) < _SEAL:
            raise ValueError("no seal")
        again, seal = self.seal(kind, number, value[_SEAL:])
        if again[2] != value:
            raise ValueError("a seal is broken")
        return value[_SEAL:], seal

    def encoded(
        self,
        head: Head,
        batch: Sequence[Change],
        waiting: Mapping[int, _F64],
        session: tuple[int, str],
        *,
        book: Book = _NOBODY,
        open_rows: Mapping[int, OpenRow] = _NOTHING,
    ) -> tuple[list[Item], list[Key], Head]:
        """Changes as items to write and to remove.

        Args:
            head: what is stored before them.
            batch: the changes, in order.
            waiting: the actions of decisions that wait before them.
            session: the first decision and the name of the running session.
            book: what is known of people before them.
            open_rows: people's rows of the open batch, by number, before them.

        Returns:
            What to write, what to remove, and the head after it.
        """
        work = _Encoding(self, head, waiting, book, open_rows)
        rounds, given_up, rows, sessions = head.rounds, head.given_up, head.rows, head.sessions
        puts, since = work.puts, 0
        for change in batch:
            if change.count is not None:
                work.count(change.count)
            if isinstance(change, Forget):
                work.forget(change)
                continue
            if (change.opens or isinstance(change, Rows)) and rounds == session[0]:
                item, seal = self._session(*session)
                puts.append(item)
                sessions ^= seal
            if isinstance(change, Rows):
                since ^= work.observe(change)
                rounds = change.number + len(change.rewards)
                rows = change.row + len(change.rewards) - 1
                continue
            closes: int | None = change.number
            if change.opens:
                closes = change.given_up
                work.open(change.number, change.action, change.owner)  # type: ignore[arg-type]  # it opens
                rounds, given_up = change.number + 1, change.lost
            if closes is not None:
                work.close(closes)
            if change.row:
                item, seal = self._row(change)
                puts.append(item)
                since ^= seal
                rows = change.row
        after = replace(
            work.after(max((head.over, *(change.over for change in batch)))),
            rounds=rounds,
            given_up=given_up,
            rows=rows,
            since=work.since ^ since,
            sessions=sessions,
        )
        return [*work.items(), self._head(after)], work.drops, after

    def compacted(
        self,
        head: Head,
        document: dict[str, Any],
        sums: PrefixSums,
    ) -> tuple[list[Item], list[Key], Head]:
        """Items to write and to remove, to store the sums instead of the rows that are in them.

        Open rows stay as they are, while their batch is open.

        Args:
            head: what is stored.
            document: what is stored of the learner besides its data.
            sums: with all rows in them.

        Returns:
            What to write, what to remove, and the head after it.
        """
        if sums.rows != head.rows:
            raise ValueError("not all rows are in the sums")
        item, seal = self._sums(sums)
        released, open_rows = sums.position.released, sums.open_rows
        drops: list[Key] = []
        many, kept = head.held, head.kept
        if many and released > head.summed:  # their batch has been released
            drops += [(ROW, number) for number in range(head.released + 1, head.summed + 1)]
            many = kept = 0
        for number in range(head.summed + 1, head.rows + 1):
            if number in open_rows:
                many += 1
                kept ^= self.open_row(number, open_rows[number])[1]
            else:
                drops.append((ROW, number))
        after = replace(
            head, summed=head.rows, since=0, sums=seal, released=released, held=many, kept=kept
        )
        return [_learner(document), item, self._head(after)], drops, after

    def everything(
        self,
        document: dict[str, Any],
        sums: PrefixSums,
        waiting: Mapping[int, _F64],
        sessions: Iterable[tuple[int, str]],
        counts: Head,
        *,
        book: Book = _NOBODY,
    ) -> tuple[list[Item], Head]:
        """All items of a learner.

        Args:
            document: what is stored of the learner besides its data.
            sums: the sums.
            waiting: the actions of decisions that wait.
            sessions: the first decision and the name of each session.
            counts: a head that has the rounds and what was given up.
            book: what is known of people.

        Returns:
            The items, and the head among them.
        """
        item, seal = self._sums(sums)
        items = [_learner(document), item]

        def combined(sealed: Iterable[tuple[Item, int]]) -> int:
            together = 0
            for item, one in sealed:
                items.append(item)
                together ^= one
            return together

        open_rows, owners = sums.open_rows, book.owners
        head = replace(
            counts,
            rows=sums.rows,
            summed=sums.rows,
            waiting=len(waiting),
            decisions=combined(
                self.decision(number, action, owners.get(number))
                for number, action in waiting.items()
            ),
            sessions=combined(self._session(first, name) for first, name in sessions),
            sums=seal,
            released=sums.position.released,
            held=len(open_rows),
            kept=combined(self.open_row(number, row) for number, row in open_rows.items()),
            people=len(book.counts),
            counts=combined(self.person(Count(*one)) for one in book.counts.items()),
            over=book.over,
        )
        return [*items, self._head(head)], head

    def _head(self, head: Head) -> Item:
        return self.seal(HEAD, 0, _dump(vars(head)))[0]

    def decision(self, number: int, action: _F64, owner: bytes | None) -> tuple[Item, int]:
        """The item of a decision that waits, and its seal."""
        contents = ERASED
        if owner != ERASED:
            contents = action.astype(F8, copy=False).tobytes() + (owner or b"")
        return self.seal(DECISION, number, contents)

    def _row(self, change: Change) -> tuple[Item, int]:
        """A row. How long its noise is says how many draws there are."""
        action: _F64 = change.action  # type: ignore[assignment]  # a row has one, and noise
        noise: NDArray[Any] = change.noise  # type: ignore[assignment]  # a row has some
        number, digest = change.number, b""
        if change.count is not None:
            number, digest = ~number, change.count.digest
        contents = (
            ROW_START.pack(number, change.reward) + digest + action.astype(F8, copy=False).tobytes()
        )
        if noise.size:
            contents += noise.astype(DTYPES[noise.dtype.name], copy=False).tobytes()
        return self.seal(ROW, change.row, contents)

    def open_row(self, number: int, row: OpenRow) -> tuple[Item, int]:
        """The item of an open row, as `_row` wrote it, without noise; and its seal."""
        contents = ROW_START.pack(~row.decision, row.reward) + row.digest
        return self.seal(ROW, number, contents + row.action.astype(F8, copy=False).tobytes())

    def row_of_zeros(self, number: int, row: OpenRow) -> tuple[Item, int]:
        """What stands in the place of an open row that was withdrawn."""
        contents = ROW_START.pack(row.decision, 0.0) + bytes(8 * row.action.size)
        return self.seal(ROW, number, contents)

    def person(self, count: Count) -> tuple[Item, int]:
        """How many rows a person has given."""
        return self.seal(PERSON, *contents_of(count))

    def _session(self, first: int, name: str) -> tuple[Item, int]:
        return self.seal(SESSION, first, name.encode("ascii"))

    def _sums(self, sums: PrefixSums) -> tuple[Item, int]:
        position = sums.position
        body = {
            "rows": position.rows,
            "released": position.released,
            "number": position.number,
            "arrays": {name: encode(part) for name, part in sums.arrays().items()},
        }
        return self.seal(SUMS, 0, _dump(body))


class _Encoding:
    """Collects the items of several changes, and what the head says after them."""

    def __init__(
        self,
        codec: Records,
        head: Head,
        waiting: Mapping[int, _F64],
        book: Book,
        open_rows: Mapping[int, OpenRow],
    ) -> None:
        self._codec, self._head, self._waiting, self._book = codec, head, waiting, book
        self._open_rows = open_rows
        self.puts, self.drops = list[Item](), list[Key]()
        self.since = head.since
        self._new: dict[int, Item] = {}  # decisions that are opened and not closed again
        self._now: dict[int, tuple[_F64, bytes | None]] = {}  # those that are opened or erased
        self._erased: dict[int, Item] = {}
        self._people: dict[int, Item] = {}
        self._records: dict[bytes, int] = {}
        self._many, self._decisions = head.waiting, head.decisions
        self._held, self._kept = head.held, head.kept
        self._counts = head.counts

    def open(self, number: int, action: _F64, owner: bytes | None) -> None:
        """Encode a new decision that waits for its reward."""
        self._now[number] = action, owner
        self._new[number], seal = self._codec.decision(number, action, owner)
        self._decisions ^= seal
        self._many += 1

    def close(self, number: int) -> None:
        """Remove a decision that no longer waits."""
        if number in self._now:
            action, owner = self._now[number]
        else:
            action, owner = self._waiting[number], self._book.owners.get(number)
        if self._new.pop(number, None) is None:
            self._erased.pop(number, None)
            self.drops.append((DECISION, number))
        self._decisions ^= self._codec.decision(number, action, owner)[1]
        self._many -= 1

    def observe(self, block: Rows) -> int:
        """Encode rows whose decisions never waited, as `Records._row` does; all seals combined."""
        codec, open_rows, combined = self._codec, block.open_rows, 0
        actions, rewards = block.actions.astype(F8, copy=False).tobytes(), block.rewards.tolist()
        width = len(actions) // max(1, len(rewards))
        for at, reward in enumerate(rewards):
            row = block.row + at
            if row in open_rows:
                item, seal = codec.open_row(row, open_rows[row])
            else:
                action = actions[at * width : (at + 1) * width]
                item, seal = codec.seal(
                    ROW, row, ROW_START.pack(block.number + at, reward) + action
                )
            self.puts.append(item)
            combined ^= seal
        for digest, record in block.counts.items():
            self.count(Count(digest, record))
        return combined

    def count(self, count: Count) -> None:
        """Encode a person's new count."""
        codec, digest = self._codec, count.digest
        before = self._records.get(digest, self._book.counts.get(digest))
        if before is not None:
            self._counts ^= codec.person(Count(digest, before))[1]
        item, seal = codec.person(count)
        self._counts ^= seal
        self._people[item[1]], self._records[digest] = item, count.record

    def forget(self, change: Forget) -> None:
        """Encode decisions without their actions, and rows of zeros in place of open rows."""
        codec = self._codec
        for number in change.decisions:
            action = self._waiting[number]
            before = codec.decision(number, action, self._book.owners[number])[1]
            self._erased[number], seal = codec.decision(number, action, ERASED)
            self._now[number] = action, ERASED
            self._decisions ^= before ^ seal
        for number in change.rows:
            row = self._open_rows[number]
            before = codec.open_row(number, row)[1]
            if number <= self._head.summed:  # zeros are in the stored sums already
                self._kept ^= before
                self._held -= 1
                self.drops.append((ROW, number))
            else:
                item, seal = codec.row_of_zeros(number, row)
                self.puts.append(item)
                self.since ^= before ^ seal

    def items(self) -> list[Item]:
        """All that is to be written but the head."""
        return [
            *self._new.values(),
            *self._erased.values(),
            *self.puts,
            *self._people.values(),
        ]

    def after(self, over: int) -> Head:
        """The head, with the numbers that this has counted."""
        return replace(
            self._head,
            waiting=self._many,
            decisions=self._decisions,
            held=self._held,
            kept=self._kept,
            people=max(self._head.people, *(arrival + 1 for arrival in self._people), 0),
            counts=self._counts,
            over=over,
        )


def _learner(document: dict[str, Any]) -> Item:
    """The item that says which learner this is.

    Its seal has no key, because the learner's id is read from it.
    """
    body = {"format": FORMAT, "version": VERSION, **document}
    return Records("").seal(LEARNER, 0, _dump(body))[0]


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
