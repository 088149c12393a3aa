"""Changes: how each is made, staged, written as items for a store, and applied. Secret.

A call becomes changes: a decision is opened (`Opening`), it becomes a row (`Row`), or it is closed
without one (`Closing`). `Rows` in `_observed` and `Forget` in `_forgetting` are about several at
once. Each kind says for itself what it does to what is staged, stored and held; so what commits
changes (`curator`) need not know which there are. This module is as long as it is because it is one
family: the kinds about a single decision, from what was asked to the bytes that are stored.

Formal guarantee: a row is within the bounds; it is one of zeros where its person was forgotten or
has no more rows that count; and it goes into the sums once, with the noise that was drawn for its
number, however often it is applied.

What is written here, and of a whole learner in `_storage`, is read by `_stored`. Every value is
sealed: it starts with a digest of the learner's id, the item's kind and number, and its contents,
so that a flipped bit or an item in the wrong place is found out. The *head* counts what there
should be and combines the seals of the decisions, the rows and the people, so that an item too few
or too many is found out as well. There is no code in any of it and no pickle.

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
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator._arrays import DTYPES, F8
from discreet.curator._state import Held, StagedState
from discreet.curator._subjects import ERASED, Count, OpenRow, contents_of
from discreet.curator.store import Item, Key
from discreet.errors import DecisionClosedError, UnknownDecisionError

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

Owners = Sequence[bytes | None] | None
"""The digest of whom each of several rows is from, as far as that is known."""

_LONGEST_NUMBER = 20  # digits; no horizon is longer
_SEAL = 16  # bytes
_KEY = struct.Struct("<qq")
ROW_START = struct.Struct("<qd")  # decision and reward


class Change(ABC):
    """What one call changes. Each kind says what that does to what is staged, stored and held.

    Attributes:
        number: of the decision that it is about; of the first, if it is about several.
        done: whether it is on the disk, if anything is.
        error: why it will not be.
        erases: whether no trace of what it removes should be left.
    """

    erases = False
    __slots__ = ("done", "error", "number")

    def __init__(self, number: int) -> None:
        """Say which decision."""
        self.number = number
        self.done = False
        self.error: DiscreetError | None = None

    @abstractmethod
    def stage(self, held: Held, staged: StagedState) -> None:
        """Move the staged state past this change."""

    @abstractmethod
    def stage_again(self, held: Held, staged: StagedState) -> None:
        """Likewise, when nothing, a part or all of it may have been applied."""

    @abstractmethod
    def write(self, work: "Writing") -> None:
        """Write it as items."""

    @abstractmethod
    def apply(self, held: Held, staged: StagedState) -> None:
        """Bring what is held past it. Doing a part of it twice does no harm."""


class Opening(Change):
    """A new decision, which waits for its reward.

    Attributes:
        action: what was chosen.
        lost: the number of decisions given up so far, with this one.
        given_up: the number of another that is given up for it, if too many wait.
        owner: the digest of whom it is for, if that is known.
    """

    __slots__ = ("action", "given_up", "lost", "owner")

    def __init__(
        self,
        number: int,
        action: _F64,
        lost: int,
        *,
        given_up: int | None = None,
        owner: bytes | None = None,
    ) -> None:
        """Say which decision; see the attributes."""
        super().__init__(number)
        self.action = action
        self.lost = lost
        self.given_up = given_up
        self.owner = owner

    def stage(self, held: Held, staged: StagedState) -> None:
        """Its action waits from now on."""
        del held  # nothing of it decides
        staged.opening[self.number] = self.action
        if self.given_up is not None:
            staged.closing.add(self.given_up)
        staged.rounds, staged.given_up = self.number + 1, self.lost

    def stage_again(self, held: Held, staged: StagedState) -> None:
        """Likewise, unless it is held already."""
        if self.number >= held.rounds:
            self.stage(held, staged)
        if self.given_up is not None and staged.waits(held, self.given_up):
            staged.closing.add(self.given_up)

    def write(self, work: "Writing") -> None:
        """Write the decision, and remove the one that is given up."""
        work.enter_session()
        work.open(self.number, self.action, self.owner)
        work.rounds, work.given_up = self.number + 1, self.lost
        if self.given_up is not None:
            work.close(self.given_up)

    def apply(self, held: Held, staged: StagedState) -> None:
        """Hold its action and whom it is for."""
        number, owners = self.number, held.book.owners
        held.waiting[number] = self.action
        if self.owner is not None:
            owners[number] = self.owner
        if number >= held.rounds:
            held.rounds = number + 1
        if self.given_up is not None:
            held.waiting.pop(self.given_up, None)
            owners.pop(self.given_up, None)
            held.given_up = max(held.given_up, self.lost)
            staged.closing.discard(self.given_up)
        staged.opening.pop(number, None)


class Row(Change):
    """A decision that waited becomes a row, with the noise of its step.

    Attributes:
        action: what was chosen, or zeros.
        row: the row's number.
        reward: what came of it.
        noise: what was drawn for this row.
        count: of the person whose row it is, if that is known and the row counts.
        over: for a row of zeros beyond the cap, the number of such rows so far, with this one.
    """

    __slots__ = ("action", "count", "noise", "over", "reward", "row")

    def __init__(  # noqa: PLR0917  # one for each row, so it should be quick
        self,
        number: int,
        action: _F64,
        row: int,
        reward: float,
        noise: NDArray[Any],
        count: Count | None = None,
        over: int = 0,
    ) -> None:
        """Say which decision, and which row it becomes; see the attributes."""
        super().__init__(number)
        self.action = action
        self.row = row
        self.reward = reward
        self.noise = noise
        self.count = count
        self.over = over

    @property
    def open_row(self) -> OpenRow | None:
        """The row, if it is a person's: it is kept by itself while its batch is open."""
        if self.count is None:
            return None
        return OpenRow(self.count.digest, self.number, self.action, self.reward)

    def stage(self, held: Held, staged: StagedState) -> None:
        """The decision is closed, and the sums are one row further."""
        if self.over or self.count is not None:
            staged.count(self.count, self.over)
        staged.closing.add(self.number)
        staged.position = held.sums.next(staged.position)

    def stage_again(self, held: Held, staged: StagedState) -> None:
        """Likewise, as far as it is not so already."""
        staged.count(self.count, self.over)
        if self.row > held.sums.rows:
            staged.position = held.sums.next(staged.position)
        if staged.waits(held, self.number):
            staged.closing.add(self.number)

    def write(self, work: "Writing") -> None:
        """Write the row and its person's count, and remove the decision."""
        if self.count is not None:
            work.count(self.count)
        work.close(self.number)
        work.add_row(work.codec.row(self))
        work.rows = self.row
        work.over = max(work.over, self.over)

    def apply(self, held: Held, staged: StagedState) -> None:
        """Add the row to the sums; if that leads to a release, make it."""
        sums, book, open_row = held.sums, held.book, None
        if self.over:
            book.over = max(book.over, self.over)
        if self.count is not None:
            book.counts[self.count.digest] = self.count.record
            staged.counted([self.count])
            open_row = self.open_row
        sums.add(self.row, self.action, self.reward, self.noise, open_row)
        if sums.number != held.releases.shown.number:
            held.releases.make()
        held.waiting.pop(self.number, None)
        book.owners.pop(self.number, None)
        staged.closing.discard(self.number)


class Closing(Change):
    """A decision is given up, because its reward will not come."""

    erases = True
    __slots__ = ()

    def stage(self, held: Held, staged: StagedState) -> None:
        """It waits no more."""
        del held  # it is known to wait
        staged.closing.add(self.number)

    def stage_again(self, held: Held, staged: StagedState) -> None:
        """Likewise, if it waits."""
        if staged.waits(held, self.number):
            staged.closing.add(self.number)

    def write(self, work: "Writing") -> None:
        """Remove the decision."""
        work.close(self.number)

    def apply(self, held: Held, staged: StagedState) -> None:
        """Hold it no more."""
        held.waiting.pop(self.number, None)
        held.book.owners.pop(self.number, None)
        staged.closing.discard(self.number)


# From what is asked to changes


def staged_openings(
    held: Held, staged: StagedState, actions: Sequence[_F64], owners: Owners
) -> list[Change]:
    """Stage new decisions; the oldest are given up if too many wait.

    Args:
        held: the learner's data.
        staged: what it will be, which moves on.
        actions: one for each decision, within the bounds.
        owners: the digest of whom each is for, as far as that is known.

    Returns:
        The changes, in order.
    """
    held.require_rounds(len(actions), staged.rounds)
    changes: list[Change] = []
    for at, action in enumerate(actions):
        owner = None if owners is None else owners[at]
        if len(held.waiting) + len(staged.opening) - len(staged.closing) < held.max_pending:
            change = Opening(staged.rounds, action, staged.given_up, owner=owner)
        else:
            oldest, lost = staged.oldest_waiting(held), staged.given_up + 1
            change = Opening(staged.rounds, action, lost, given_up=oldest, owner=owner)
        change.stage(held, staged)
        changes.append(change)
    return changes


def staged_rows(
    held: Held, staged: StagedState, pairs: Sequence[tuple[object, object]], owners: Owners
) -> list[Change]:
    """Stage decisions that become rows, each with the noise of its step.

    Args:
        held: the learner's data.
        staged: what it will be, which moves on.
        pairs: ids of decisions that wait, and their rewards.
        owners: the digest of whose each is, if that was not said before.

    Returns:
        The changes, in order.
    """
    known = held.book.owners
    changes: list[Change] = []
    for at, (decision, reward) in enumerate(pairs):
        number = _number(held, staged, decision)
        value = held.sums.bounded_reward(reward, held.on_violation)
        owner = None
        if owners is not None or number in known:
            owner = staged.owner(held, number, None if owners is None else owners[at])
        changes.append(staged_row(held, staged, number, held.waiting[number], value, owner))
    return changes


def staged_row(  # noqa: PLR0917  # one for each row, so it should be quick
    held: Held,
    staged: StagedState,
    number: int,
    action: _F64,
    reward: float,
    owner: bytes | None,
) -> Row:
    """Stage a row; it is one of zeros if its person was forgotten or has no more that count."""
    position = staged.position
    row, noise = position.rows + 1, held.sums.draw(position)
    if owner is None:
        change = Row(number, action, row, reward, noise)
    elif owner == ERASED:
        change = Row(number, held.zeros, row, 0.0, noise)
    else:
        record = held.book.counted(owner, staged.counts, staged.people)
        if record is None:
            change = Row(number, held.zeros, row, 0.0, noise, over=staged.over + 1)
        else:
            change = Row(number, action, row, reward, noise, Count(owner, record))
    change.stage(held, staged)
    return change


def staged_closings(held: Held, staged: StagedState, decisions: Sequence[object]) -> list[Change]:
    """Stage decisions that are given up, by their ids."""
    changes: list[Change] = []
    for decision in decisions:
        change = Closing(_number(held, staged, decision))
        change.stage(held, staged)
        changes.append(change)
    return changes


def _number(held: Held, staged: StagedState, decision: object) -> int:
    """A decision's number, if it waits for its reward."""
    name, _, digits = decision.rpartition("-") if isinstance(decision, str) else ("", "", "")
    plain = digits.isdecimal() and digits.isascii() and len(digits) <= _LONGEST_NUMBER
    number = int(digits) if plain else held.rounds
    if number >= held.rounds or name != session_of(held, number) or digits != str(number):
        raise UnknownDecisionError(
            "decision", "was not made by this learner; pass what its `choose` returned"
        )
    if number not in held.waiting or number in staged.closing:
        raise DecisionClosedError(
            "decision",
            "has had its reward, was forgotten, or was given up because more than "
            f"max_pending={held.max_pending} decisions waited; each decision takes one reward",
        )
    return number


def session_of(held: Held, number: int) -> str:
    """The name that starts the id of a decision."""
    if number >= held.first:
        return held.name
    place = bisect_right(held.sessions, number, key=lambda session: session[0])
    return held.sessions[place - 1][1]


# From changes to items


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
    """Turns one learner's changes into items."""

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
        self, head: Head, batch: Sequence[Change], held: Held
    ) -> tuple[list[Item], list[Key], Head]:
        """Changes as items to write and to remove.

        Args:
            head: what is stored before them.
            batch: the changes, in order.
            held: the learner's data before them.

        Returns:
            What to write, what to remove, and the head after it.
        """
        work = Writing(self, head, held)
        for change in batch:
            change.write(work)
        after = work.after()
        return [*work.items(), self.head(after)], work.drops, after

    def head(self, head: Head) -> Item:
        """The item of the counts."""
        return self.seal(HEAD, 0, as_json(vars(head)))[0]

    def decision(self, number: int, action: _F64, owner: bytes | None) -> tuple[Item, int]:
        """The item of a decision that waits, and its seal."""
        contents = ERASED
        if owner != ERASED:
            contents = action.astype(F8, copy=False).tobytes() + (owner or b"")
        return self.seal(DECISION, number, contents)

    def row(self, change: Row) -> tuple[Item, int]:
        """A row. How long its noise is says how many draws there are."""
        number, digest, noise = change.number, b"", change.noise
        if change.count is not None:
            number, digest = ~number, change.count.digest
        contents = (
            ROW_START.pack(number, change.reward)
            + digest
            + change.action.astype(F8, copy=False).tobytes()
        )
        if noise.size:
            contents += noise.astype(DTYPES[noise.dtype.name], copy=False).tobytes()
        return self.seal(ROW, change.row, contents)

    def open_row(self, number: int, row: OpenRow) -> tuple[Item, int]:
        """The item of an open row, as `row` makes it, without noise; and its seal."""
        contents = ROW_START.pack(~row.decision, row.reward) + row.digest
        return self.seal(ROW, number, contents + row.action.astype(F8, copy=False).tobytes())

    def row_of_zeros(self, number: int, row: OpenRow) -> tuple[Item, int]:
        """What stands in the place of an open row that was withdrawn."""
        contents = ROW_START.pack(row.decision, 0.0) + bytes(8 * row.action.size)
        return self.seal(ROW, number, contents)

    def person(self, count: Count) -> tuple[Item, int]:
        """How many rows a person has given."""
        return self.seal(PERSON, *contents_of(count))

    def session(self, first: int, name: str) -> tuple[Item, int]:
        """The name that starts the ids of a session's decisions."""
        return self.seal(SESSION, first, name.encode("ascii"))


class Writing:
    """Collects the items of several changes, and what the head says after them.

    Attributes:
        codec: what seals them.
        held: the learner's data before the changes.
        drops: items to remove.
        rounds, given_up, rows, over: as in the head, after the changes so far.
    """

    def __init__(self, codec: Records, head: Head, held: Held) -> None:
        """Start from what is stored."""
        self.codec, self.held, self._head = codec, held, head
        self.drops = list[Key]()
        self.rounds, self.given_up, self.rows = head.rounds, head.given_up, head.rows
        self.over = head.over
        self._puts = list[Item]()  # rows and sessions
        self._new: dict[int, Item] = {}  # decisions that are opened and not closed again
        self._now: dict[int, tuple[_F64, bytes | None]] = {}  # those that are opened or erased
        self._erased: dict[int, Item] = {}
        self._people: dict[int, Item] = {}
        self._records: dict[bytes, int] = {}
        self._since, self._sessions = head.since, head.sessions
        self._many, self._decisions = head.waiting, head.decisions
        self._held, self._kept = head.held, head.kept
        self._counts = head.counts

    def enter_session(self) -> None:
        """Write the name of the running session, before its first decision."""
        if self.rounds == self.held.first:
            item, seal = self.codec.session(self.held.first, self.held.name)
            self._puts.append(item)
            self._sessions ^= seal

    def open(self, number: int, action: _F64, owner: bytes | None) -> None:
        """Write a new decision that waits for its reward."""
        self._now[number] = action, owner
        self._new[number], seal = self.codec.decision(number, action, owner)
        self._decisions ^= seal
        self._many += 1

    def close(self, number: int) -> None:
        """Remove a decision that no longer waits."""
        if number in self._now:
            action, owner = self._now[number]
        else:
            action, owner = self.held.waiting[number], self.held.book.owners.get(number)
        if self._new.pop(number, None) is None:
            self._erased.pop(number, None)
            self.drops.append((DECISION, number))
        self._decisions ^= self.codec.decision(number, action, owner)[1]
        self._many -= 1

    def erase(self, number: int) -> None:
        """Write a decision without its action."""
        action = self.held.waiting[number]
        before = self.codec.decision(number, action, self.held.book.owners[number])[1]
        self._erased[number], seal = self.codec.decision(number, action, ERASED)
        self._now[number] = action, ERASED
        self._decisions ^= before ^ seal

    def add_row(self, sealed: tuple[Item, int]) -> None:
        """Write a row's item, whose seal goes into the head."""
        self._puts.append(sealed[0])
        self._since ^= sealed[1]

    def withdraw(self, number: int, row: OpenRow) -> None:
        """Write a row of zeros in the place of an open row."""
        before = self.codec.open_row(number, row)[1]
        if number <= self._head.summed:  # zeros are in the stored sums already
            self._kept ^= before
            self._held -= 1
            self.drops.append((ROW, number))
        else:
            self.add_row(self.codec.row_of_zeros(number, row))
            self._since ^= before

    def count(self, count: Count) -> None:
        """Write a person's new count."""
        codec, digest = self.codec, count.digest
        before = self._records.get(digest, self.held.book.counts.get(digest))
        if before is not None:
            self._counts ^= codec.person(Count(digest, before))[1]
        item, seal = codec.person(count)
        self._counts ^= seal
        self._people[item[1]], self._records[digest] = item, count.record

    def items(self) -> list[Item]:
        """All that is to be written but the head."""
        return [
            *self._new.values(),
            *self._erased.values(),
            *self._puts,
            *self._people.values(),
        ]

    def after(self) -> Head:
        """The head, with what the changes have counted."""
        return replace(
            self._head,
            rounds=self.rounds,
            given_up=self.given_up,
            rows=self.rows,
            waiting=self._many,
            decisions=self._decisions,
            since=self._since,
            sessions=self._sessions,
            held=self._held,
            kept=self._kept,
            people=max(self._head.people, *(arrival + 1 for arrival in self._people), 0),
            counts=self._counts,
            over=self.over,
        )


def as_json(value: dict[str, Any]) -> bytes:
    """JSON as short as it can be."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
