"""What a learner should hold, in plain Python, and noise that is known beforehand."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet.curator.records import LEARNER
from discreet.mechanism import Mechanism
from discreet.mechanism.strategies import Windows
from discreet.release import Release
from helpers import whole_state

F64 = NDArray[np.float64]
Pair = tuple[float, float]


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
    rounds: int = 0
    waiting: dict[str, Pair] = field(default_factory=dict)
    rows: tuple[tuple[Pair, float], ...] = ()
    closed: tuple[str, ...] = ()
    given_up: int = 0

    def chosen(self, decision: str, action: Pair) -> Self:
        kept = list(self.waiting.items())
        dropped = [kept.pop(0)[0]] if len(kept) >= self.most else []
        return replace(
            self,
            rounds=self.rounds + 1,
            waiting={**dict(kept), decision: action},
            closed=(*self.closed, *dropped),
            given_up=self.given_up + len(dropped),
        )

    def learned(self, decision: str, reward: float) -> Self:
        row = (self.waiting[decision], reward)
        return replace(self.forgotten(decision), rows=(*self.rows, row))

    def observed(self, action: Pair, reward: float) -> Self:
        return replace(self, rounds=self.rounds + 1, rows=(*self.rows, (action, reward)))

    def forgotten(self, decision: str) -> Self:
        rest = {name: action for name, action in self.waiting.items() if name != decision}
        return replace(self, waiting=rest, closed=(*self.closed, decision))

    def signature(self) -> tuple[Any, ...]:
        return self.rounds, len(self.rows), self.given_up, list(self.waiting.items())

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
        (f"{curator._session(number)}-{number}", tuple(action.tolist()))
        for number, action in sorted(curator._waiting.items())
    ]
    return *counts, waiting


def next_id(learner: discreet.LinUCB, ahead: int = 0) -> str:
    """The id of the next decision, or of one after it."""
    return f"{learner._curator._name}-{learner.rounds + ahead}"


def digest(learner: discreet.LinUCB) -> str:
    """Of all data that is held: sums with their noise, what waits, the counts."""
    counts = signature(learner)
    parts = {key: value for key, value in whole_state(learner).items() if key[0] != LEARNER}
    return hashlib.sha256(repr((counts, sorted(parts.items()))).encode()).hexdigest()
