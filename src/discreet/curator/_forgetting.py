"""`Forget`: a person is forgotten, as far as nothing of theirs is released. Secret.

Formal guarantee: what a release will be no longer depends on the rows that are withdrawn. Rows that
are in a release stay protected by the noise in it, and cannot be taken back.
"""

from collections.abc import Sequence

from discreet.curator._changes import Change, Writing
from discreet.curator._state import Held, StagedState
from discreet.curator._subjects import ERASED, Count, Forgotten


class Forget(Change):
    """A person is forgotten, as far as possible. Nothing else is under way when this is staged.

    Attributes:
        decisions: those that wait and are this person's.
        rows: those of the open batch that are this person's.
        count: of this person, if there are such rows.
    """

    erases = True
    __slots__ = ("count", "decisions", "rows")

    def __init__(self, decisions: Sequence[int], rows: Sequence[int], count: Count | None) -> None:
        """Say what is erased, and what the person's count is then."""
        super().__init__(-1)
        self.decisions = decisions
        self.rows = rows
        self.count = count

    def stage(self, held: Held, staged: StagedState) -> None:
        """Rewards of these decisions are rows of zeros from now on."""
        del held  # nothing of it decides
        staged.count(self.count, 0)
        staged.erased.update(self.decisions)

    stage_again = stage

    def write(self, work: Writing) -> None:
        """Write decisions without their actions, and rows of zeros."""
        if self.count is not None:
            work.count(self.count)
        for number in self.decisions:
            work.erase(number)
        if self.rows:
            open_rows = work.held.sums.open_rows
            for number in self.rows:
                work.withdraw(number, open_rows[number])

    def apply(self, held: Held, staged: StagedState) -> None:
        """Take the rows out of the sums, and the actions out of the decisions."""
        if self.count is not None:
            held.book.counts[self.count.digest] = self.count.record
            staged.counted([self.count])
        held.sums.withdraw(self.rows)
        for number in self.decisions:
            if number in held.waiting:  # not closed by what was staged after it
                held.waiting[number] = held.zeros
                held.book.owners[number] = ERASED
        staged.erased.difference_update(self.decisions)


def staged_forgetting(
    held: Held, staged: StagedState, digest: bytes
) -> tuple[list[Change], Forgotten]:
    """Stage the erasure of all that is a person's and not released. Everything is applied.

    Args:
        held: the learner's data.
        staged: what it will be, which moves on.
        digest: who.

    Returns:
        The change, if there is anything to erase, and what becomes of the person's rows.
    """
    decisions = [number for number, one in held.book.owners.items() if one == digest]
    open_rows = [number for number, row in held.sums.open_rows.items() if row.digest == digest]
    count, released = held.book.withdrawn(digest, len(open_rows))
    guarantee = held.mechanism.guarantee
    found = Forgotten(
        open=len(decisions),
        in_batch=len(open_rows),
        released=released,
        protects=guarantee.protects if guarantee.private else "nothing",
    )
    if not decisions and not open_rows:
        return [], found
    change = Forget(decisions, open_rows, count if open_rows else None)
    change.stage(held, staged)
    return [change], found
