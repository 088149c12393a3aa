"""What a curator holds, and what it will hold when all that is staged has been applied. Secret.

Both are data, with what can be asked of them. Changes (`_changes`, `_observed`, `_forgetting`) move
them: `StagedState` when a change is made, `Held` when it has been committed.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.curator._releases import Releases
from discreet.curator._subjects import ERASED, Book, Count, arrival_of
from discreet.curator.bounds import OnViolation
from discreet.curator.sums import PrefixSums
from discreet.errors import HorizonReachedError, ParameterError
from discreet.mechanism import Mechanism

_F64 = NDArray[np.float64]


class Held:
    """The data of a learner: applied changes only.

    Formal guarantee: every action and reward in it is within the bounds that its mechanism was
    made for, and of all of it only what `releases` shows leaves the curator.

    Attributes:
        mechanism: the noise, its bounds and its setting.
        sums: of all rows, with noise.
        releases: what was made of the sums.
        book: what is known of people.
        waiting: the actions of decisions that wait for their reward, by number.
        rounds: decisions made.
        given_up: decisions given up.
        sessions: the first decision and the name of each earlier session, in order.
        name: of this session; the ids of its decisions start with it.
        first: its first decision.
        on_violation: what to do with data outside the bounds.
        max_pending: how many decisions may wait.
        zeros: an action of nobody.
    """

    __slots__ = (
        "book",
        "first",
        "given_up",
        "max_pending",
        "mechanism",
        "name",
        "on_violation",
        "releases",
        "rounds",
        "sessions",
        "sums",
        "waiting",
        "zeros",
    )

    def __init__(
        self,
        mechanism: Mechanism,
        sums: PrefixSums,
        book: Book,
        *,
        max_pending: int,
        on_violation: OnViolation,
        waiting: Mapping[int, _F64],
        rounds: int,
        given_up: int,
        sessions: Sequence[tuple[int, str]],
        releases: Releases,
    ) -> None:
        """Take what was restored, or what a learner starts from; see the attributes."""
        self.mechanism, self.sums, self.releases, self.book = mechanism, sums, releases, book
        self.max_pending, self.on_violation = max_pending, on_violation
        self.waiting = dict(waiting)
        self.rounds, self.given_up = rounds, given_up
        self.sessions = list(sessions)
        self.name = secrets.token_hex(4)  # no id of another session is taken for this one's
        self.first = rounds
        self.zeros = np.zeros(mechanism.setting.problem.dim)
        self.zeros.setflags(write=False)

    def all_sessions(self) -> list[tuple[int, str]]:
        """The first decision and the name of each session that made one, this one included."""
        now = [(self.first, self.name)] if self.rounds > self.first else []
        return [*self.sessions, *now]

    def require_rounds(self, wanted: int, played: int) -> None:
        """Refuse to play more rounds than the guarantee covers."""
        horizon = self.mechanism.setting.horizon
        if played + wanted > horizon:
            raise HorizonReachedError(
                "horizon",
                f"all {horizon} rounds have been played; the guarantee covers no more, so start a "
                "new learner with a longer horizon"
                if played >= horizon
                else f"leaves {horizon - played} rounds; the guarantee covers no more",
            )


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
        "_oldest",
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

    def __init__(self, held: Held) -> None:
        """Start from what is applied."""
        self.position = held.sums.position
        self.rounds = held.rounds
        self.given_up = held.given_up
        self.opening: dict[int, _F64] = {}
        self.closing: set[int] = set()
        self.counts: dict[bytes, int] = {}
        self.people = len(held.book.counts)
        self.over = held.book.over
        self.erased: set[int] = set()
        self._oldest = min(held.waiting, default=held.rounds)  # none before this one waits

    def waits(self, held: Held, number: int) -> bool:
        """Whether a decision waits, or will when it is applied."""
        return number in held.waiting or number in self.opening

    def oldest_waiting(self, held: Held) -> int:
        """The first decision that will still wait."""
        while self._oldest in self.closing or not self.waits(held, self._oldest):
            self._oldest += 1
        return self._oldest

    def owner(self, held: Held, number: int, said: bytes | None) -> bytes | None:
        """Whom a decision that waits is for, of what was said at first and what is said now."""
        owner = held.book.owners.get(number, said)
        if owner == ERASED or number in self.erased:
            return ERASED
        if said is not None and said != owner:
            raise ParameterError(
                "subject", "is not the one that this decision was made for; leave it out"
            )
        return owner

    def count(self, count: Count | None, over: int) -> None:
        """Take in a person's count, if there is one, and rows beyond the cap. Twice is no harm."""
        if count is not None:
            self.counts[count.digest] = count.record
            self.people = max(self.people, arrival_of(count.record) + 1)
        self.over = max(self.over, over)

    def counted(self, counts: Iterable[tuple[bytes, int]]) -> None:
        """Drop counts that are applied now, unless a change staged later has newer ones."""
        for digest, record in counts:
            if self.counts.get(digest) == record:
                del self.counts[digest]
