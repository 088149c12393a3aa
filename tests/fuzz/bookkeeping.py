"""What a learner should hold, in plain Python, and noise that is known beforehand."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet.curator._changes import LEARNER, session_of
from discreet.curator._subjects import unpack
from discreet.mechanism import Mechanism
from discreet.mechanism.schedules import Schedule, every_round
from discreet.mechanism.strategies import Windows
from discreet.release import Release
from helpers import whole_state

F64 = NDArray[np.float64]
Pair = tuple[float, float]
ZEROS: tuple[Pair, float] = ((0.0, 0.0), 0.0)
ERASED = ""
PEOPLE = ("ann-1234567", "bob-1234567", "cem-1234567")


class KnownNoise:
    """Draws that anybody knows, so that releases can be worked out. Nothing is promised then.

    Gaussian draws are zero, on the grid too: a word of 2 makes the exact sampler return zero. A
    chi-square is its degrees of freedom, which keeps Wishart noise positive definite; the same
    number of equal draws stands in every release of such a learner.
    """

    secret = False

    def normals(self, count: int) -> F64:
        return np.zeros(count)

    def chi_squares(self, dofs: F64) -> F64:
        return np.array(dofs, dtype=np.float64)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, 2, dtype=np.uint64)


@dataclass(frozen=True)
class Model:
    """A learner's history. Every change makes a new one."""

    horizon: int
    most: int
    cap: int = 1
    schedule: Schedule = field(default_factory=every_round)
    rounds: int = 0
    waiting: dict[str, Pair] = field(default_factory=dict)
    rows: tuple[tuple[Pair, float], ...] = ()
    closed: tuple[str, ...] = ()
    given_up: int = 0
    owners: dict[str, str] = field(default_factory=dict)
    givers: tuple[str | None, ...] = ()  # whose the rows are, as far as they count
    used: dict[str, int] = field(default_factory=dict)
    over: int = 0

    def chosen(self, decision: str, action: Pair, subject: str | None = None) -> Self:
        kept = list(self.waiting.items())
        dropped = [kept.pop(0)[0]] if len(kept) >= self.most else []
        return replace(
            self,
            rounds=self.rounds + 1,
            waiting={**dict(kept), decision: action},
            closed=(*self.closed, *dropped),
            given_up=self.given_up + len(dropped),
            owners=self.owners if subject is None else {**self.owners, decision: subject},
        )

    def learned(self, decision: str, reward: float, subject: str | None = None) -> Self:
        owner = self.owners.get(decision, subject)
        return self.forgotten(decision)._taken(self.waiting[decision], reward, owner)

    def observed(self, action: Pair, reward: float, subject: str | None = None) -> Self:
        return replace(self, rounds=self.rounds + 1)._taken(action, reward, subject)

    def _taken(self, action: Pair, reward: float, subject: str | None) -> Self:
        if subject == ERASED:
            action, reward, subject = *ZEROS, None
        used, over = dict(self.used), self.over
        if subject is not None and used.get(subject, 0) == self.cap:
            action, reward, subject = *ZEROS, None
            over += 1
        elif subject is not None:
            used[subject] = used.get(subject, 0) + 1
        rows, givers = (*self.rows, (action, reward)), (*self.givers, subject)
        return replace(self, rows=rows, givers=givers, used=used, over=over)

    def without(self, subject: str) -> tuple[Self, tuple[int, int, int]]:
        """What is held after somebody was forgotten; decisions, rows withdrawn, rows released."""
        released = max(self.schedule.times(len(self.rows)), default=0)
        mine = [one for one in self.waiting if self.owners.get(one) == subject]
        gone = [at for at, one in enumerate(self.givers) if one == subject and at >= released]
        rows, givers = list(self.rows), list(self.givers)
        for at in gone:
            rows[at], givers[at] = ZEROS, None
        after = replace(
            self,
            waiting={**self.waiting, **dict.fromkeys(mine, ZEROS[0])},
            owners={**self.owners, **dict.fromkeys(mine, ERASED)},
            rows=tuple(rows),
            givers=tuple(givers),
        )
        return after, (len(mine), len(gone), givers.count(subject))

    def forgotten(self, decision: str) -> Self:
        rest = {name: action for name, action in self.waiting.items() if name != decision}
        return replace(self, waiting=rest, closed=(*self.closed, decision))

    def signature(self) -> tuple[Any, ...]:
        people = [(name, self.used.get(name, 0), self.givers.count(name)) for name in PEOPLE]
        counts = (self.rounds, len(self.rows), self.given_up)
        return *counts, list(self.waiting.items()), self.over, people

    def check(self, release: Release, base: F64) -> None:
        """Compare a release with the sum of the rows that should be in it."""
        mechanism = release.mechanism
        times = mechanism.schedule.times(len(self.rows))
        assert (release.number, release.rows) == (len(times), max(times, default=0))
        rows = self.rows[: release.rows]
        if isinstance(mechanism.strategy, Windows):
            self._check_windows(release, times)
            return
        if mechanism.grid is None:
            actions = np.array([action for action, _ in rows]).reshape(-1, 2)
            rewards = np.array([reward for _, reward in rows])
            gram, moment = actions.T @ actions + base, actions.T @ rewards
            # The noise that stands is taken off again, and it is large.
            np.testing.assert_allclose(
                release.gram, gram, rtol=0, atol=1e-12 * (1 + abs(base).max())
            )
            np.testing.assert_allclose(release.moment, moment, rtol=0, atol=1e-12)
            return
        gram, moment = whole_sums(mechanism, rows)
        np.testing.assert_array_equal(release.gram, gram + base)
        np.testing.assert_array_equal(release.moment, moment)

    def _check_windows(self, release: Release, times: list[int]) -> None:
        """The same where batches have weights; a window is rounded down to a whole step."""
        mechanism = release.mechanism
        gram, moment = np.zeros((2, 2)), np.zeros(2)
        shares = weights(mechanism.strategy, release.number) if times else ()
        for share, start, end in zip(shares, [0, *times], times, strict=False):
            for action, reward in self.rows[start:end]:
                gram += share * np.outer(action, action)
                moment += share * reward * np.array(action)
        steps = 0.0 if mechanism.grid is None else 2.0 * len(self.rows) * mechanism.grid.action_step
        np.testing.assert_allclose(release.gram, gram, rtol=0, atol=1e-9 + steps)
        np.testing.assert_allclose(release.moment, moment, rtol=0, atol=1e-9 + steps)


@lru_cache(maxsize=256)
def weights(strategy: Windows, number: int) -> tuple[float, ...]:
    """How much each batch counts in a release, by the strategy's matrices."""
    shares = strategy.decoder(number)[-1] @ strategy.encoder(number)
    return tuple(float(share) for share in shares)


def whole_sums(mechanism: Mechanism, rows: tuple[tuple[Pair, float], ...]) -> tuple[F64, F64]:
    """Gram matrix and moment of rows cut to whole steps, summed in Python's whole numbers."""
    grid = mechanism.grid
    assert grid is not None
    gram, moment = [[0, 0], [0, 0]], [0, 0]
    for action, reward in rows:
        steps = [int(entry / grid.action_step) for entry in action]
        assert sum(step * step for step in steps) <= grid.largest_square(mechanism.setting.problem)
        paid = int(reward / grid.reward_step)
        for i, one in enumerate(steps):
            moment[i] += one * paid
            for j, other in enumerate(steps):
                gram[i][j] += one * other
    return np.array(gram) * grid.gram_step, np.array(moment) * grid.moment_step


def signature(learner: discreet.LinUCB) -> tuple[Any, ...]:
    """What `Model.signature` should be equal to."""
    counts = (learner.rounds, learner.rows, learner.given_up)  # whatever was left is settled
    curator = learner._curator
    waiting = [
        (f"{session_of(curator._held, number)}-{number}", tuple(action.tolist()))
        for number, action in sorted(curator._held.waiting.items())
    ]
    book = curator._held.book
    people = []
    for name in PEOPLE:
        _, counted, withdrawn = unpack(book.counts.get(book.digest(name), 0))
        people.append((name, counted, counted - withdrawn))
    return *counts, waiting, book.over, people


def next_id(learner: discreet.LinUCB, ahead: int = 0) -> str:
    """The id of the next decision, or of one after it."""
    return f"{learner._curator._held.name}-{learner.rounds + ahead}"


def digest(learner: discreet.LinUCB) -> str:
    """Of all data that is held: sums with their noise, what waits, the counts."""
    counts = signature(learner)
    parts = {key: value for key, value in whole_state(learner).items() if key[0] != LEARNER}
    return hashlib.sha256(repr((counts, sorted(parts.items()))).encode()).hexdigest()
