"""`Rows`: rows that were decided elsewhere, many at once as one change. Secret.

Formal guarantee: each row is one that `_changes.Row` could be, and comes to the same sums: within
the bounds, or zeros where its person has no more rows that count.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.curator._arrays import F8
from discreet.curator._changes import ROW, ROW_START, Change, Opening, Owners, Writing, staged_row
from discreet.curator._state import Held, StagedState
from discreet.curator._subjects import Count, OpenRow, arrival_of

_F64 = NDArray[np.float64]


class Rows(Change):
    """Rows that were decided elsewhere, one after the other, and make no release.

    The first is decision ``number`` and row ``row``; none of them has noise.

    Attributes:
        row: the number of the first row.
        actions: shape (n, d); zeros for rows that are a person's.
        rewards: shape (n,); likewise.
        open_rows: the rows that are a person's, by number, as far as they count.
        counts: of people, after these rows.
        people: how many people have given a row, after these rows.
        over: if some are beyond the cap, the number of such rows so far, these included.
    """

    __slots__ = ("actions", "counts", "open_rows", "over", "people", "rewards", "row")

    def __init__(self, number: int, row: int, actions: _F64, rewards: _F64) -> None:
        """Start with rows of nobody; those of people are entered afterwards."""
        super().__init__(number)
        self.row = row
        self.actions = actions
        self.rewards = rewards
        self.open_rows: dict[int, OpenRow] = {}
        self.counts: dict[bytes, int] = {}
        self.people = self.over = 0

    def enter(self, held: Held, staged: StagedState, owners: Sequence[bytes | None]) -> None:
        """Take the rows of people out of the block: to be open rows, or zeros beyond the cap."""
        actions, rewards = self.actions, self.rewards
        known = [at for at, owner in enumerate(owners) if owner is not None]
        self.actions, self.rewards = actions.copy(), rewards.copy()
        self.actions[known], self.rewards[known] = 0.0, 0.0
        people, over = staged.people, staged.over
        for at in known:
            owner: bytes = owners[at]  # type: ignore[assignment]  # it is known
            record = held.book.counted(owner, staged.counts, people)
            if record is None:
                over += 1
                continue
            if arrival_of(record) == people:
                people += 1
            staged.counts[owner] = self.counts[owner] = record
            self.open_rows[self.row + at] = OpenRow(
                owner, self.number + at, actions[at], float(rewards[at])
            )
        self.people, self.over = people, over

    def stage(self, held: Held, staged: StagedState) -> None:
        """Count decisions, rows and people."""
        self._count(staged)
        staged.rounds = self.number + len(self.rewards)
        staged.position = held.sums.ahead(staged.position, len(self.rewards))

    def stage_again(self, held: Held, staged: StagedState) -> None:
        """Likewise, as far as the rows are not in the sums."""
        self._count(staged)
        count = len(self.rewards)
        staged.rounds = max(staged.rounds, self.number + count)
        missing = self.row + count - 1 - staged.position.rows
        staged.position = held.sums.ahead(staged.position, max(0, missing))

    def _count(self, staged: StagedState) -> None:
        staged.counts.update(self.counts)
        staged.people = max(staged.people, self.people)
        staged.over = max(staged.over, self.over)

    def write(self, work: Writing) -> None:
        """Write the rows, of decisions that never waited, and people's counts."""
        work.enter_session()
        codec, open_rows = work.codec, self.open_rows
        actions, rewards = self.actions.astype(F8, copy=False).tobytes(), self.rewards.tolist()
        width = len(actions) // max(1, len(rewards))
        for at, reward in enumerate(rewards):
            row = self.row + at
            if row in open_rows:
                work.add_row(codec.open_row(row, open_rows[row]))
            else:
                start = ROW_START.pack(self.number + at, reward)
                work.add_row(codec.seal(ROW, row, start + actions[at * width : (at + 1) * width]))
        for digest, record in self.counts.items():
            work.count(Count(digest, record))
        work.rounds = self.number + len(rewards)
        work.rows = self.row + len(rewards) - 1
        work.over = max(work.over, self.over)

    def apply(self, held: Held, staged: StagedState) -> None:
        """Add the rows to the sums, and people's counts to the book."""
        if self.over:
            held.book.over = max(held.book.over, self.over)
        held.sums.gather(self.row, self.actions, self.rewards, self.open_rows)
        held.rounds = max(held.rounds, self.number + len(self.rewards))
        if self.counts:
            held.book.counts.update(self.counts)
            staged.counted(self.counts.items())


def staged_observations(
    held: Held, staged: StagedState, actions: _F64, rewards: Sequence[object], owners: Owners
) -> list[Change]:
    """Stage rows that were decided elsewhere: new decisions that become rows at once.

    Where whole numbers are summed, rows up to the next release are one change together: it
    comes to the same sums, and one row at a time would take several times as long.

    Args:
        held: the learner's data.
        staged: what it will be, which moves on.
        actions: what was chosen, shape (n, d), within the bounds.
        rewards: one for each.
        owners: the digest of whom each is from, as far as that is known.

    Returns:
        The changes, in order.
    """
    held.require_rounds(len(actions), staged.rounds)
    values = [held.sums.bounded_reward(reward, held.on_violation) for reward in rewards]
    changes: list[Change] = []
    start = 0
    while start < len(values):
        position = staged.position
        count = position.due - position.rows - 1 if held.sums.gathers else 0
        if count > 0:
            part = slice(start, start + count)
            block = Rows(staged.rounds, position.rows + 1, actions[part], np.array(values[part]))
            if owners is not None:
                block.enter(held, staged, owners[part])
            block.stage(held, staged)
            changes.append(block)
            start += len(block.rewards)
            continue
        opening = Opening(staged.rounds, actions[start], staged.given_up)
        opening.stage(held, staged)
        owner = None if owners is None else owners[start]
        closing = staged_row(held, staged, opening.number, actions[start], values[start], owner)
        changes += [opening, closing]
        start += 1
    return changes
