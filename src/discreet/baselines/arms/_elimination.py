"""`DPSE`: successive elimination that forgets, with one noisy sum for each arm and epoch."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.baselines.arms._learner import ArmLearner, ArmSettings, checked_epsilon
from discreet.errors import ParameterError
from discreet.kernels import _elimination as kernels
from discreet.kernels._pulls import PER_DRAW
from discreet.mechanism.noise.sources import NoiseSource

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Elimination(ArmSettings):
    """The rule of `DPSE`; without epsilon, the same elimination without noise.

    Attributes:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
        epsilon: the privacy target; None for none.
        failure_prob: beta, the chance that the best arm is dropped or a bad one stays too long;
            1/horizon if left out.
        joint: False for the batches of Sajed & Sheffet; True for smaller ones with the same proof.
    """

    epsilon: float | None = None
    failure_prob: float | None = None
    joint: bool = False

    no_noise = "this elimination adds no noise"

    def __post_init__(self) -> None:
        """Check the sizes and the targets."""
        super().__post_init__()
        beta = 1.0 / self.horizon if self.failure_prob is None else self.failure_prob
        object.__setattr__(self, "failure_prob", checks.probability("failure_prob", beta))
        if not isinstance(self.joint, bool):
            raise ParameterError("joint", "is neither True nor False; give one of them")

    @property
    def compiled(self) -> kernels.Rule:
        """The rule as arguments of the compiled kernels."""
        return kernels.Rule(
            epsilon=math.inf if self.epsilon is None else self.epsilon,
            failure_prob=float(self.failure_prob or 0.0),
            joint=self.joint,
            horizon=self.horizon,
        )

    def _why(self) -> str:
        return (
            "a reward is in one arm's sum of one epoch, moves it by at most 2, and the sum "
            "has Laplace noise of scale 2/epsilon; arms are named from noisy sums alone"
        )

    def play(
        self, means: F64, reward_state: U64, noise_state: U64, checkpoints: I64, pulls: I64
    ) -> None:
        """Play to the last checkpoint, for rewards of plus or minus one.

        Args:
            means: mean reward of each arm, shape (n_arms,).
            reward_state: state of the generator of the rewards; moved on.
            noise_state: state of the generator of the noise; moved on.
            checkpoints: rounds at which pulls are recorded, growing, shape (C,).
            pulls: filled with the pulls of each arm so far, shape (C, n_arms).
        """
        kernels.play(means, self.compiled, reward_state, noise_state, checkpoints, pulls)


class DPSE(ArmLearner):
    """Private successive elimination of Sajed & Sheffet (2019); epsilon-DP, with delta 0.

    In epoch e = 1, 2, ... with target gap D = 2^-e, each of the s remaining arms is pulled

        max(32 ln(8 s e^2/beta) / D^2, 8 ln(4 s e^2/beta) / (epsilon D)) + 1

    times (rounded up), in turns. Then every mean of the epoch gets Laplace noise, and an arm is
    dropped if its noisy mean is more than 2h + 2c below the best, where h bounds the sampling
    error and c the noise (`kernels/_elimination.py`). Earlier epochs are forgotten. The last arm
    left is pulled to the end. That is for rewards in [0, 1]; here rewards lie in [-1, 1], and
    widths, gaps and noise are twice as large: the same algorithm on (reward + 1) / 2.

    Why it is right: with probability at least 1 - beta (a union bound over arms and epochs, each
    of the two errors with beta / (4 s e^2)) all errors are within h and c in all epochs. Then the
    best arm never falls more than 2h + 2c behind, and an arm whose gap is more than 4h + 4c is
    dropped. The batch makes h and c at most D/8 each, so every arm with gap D or more goes.

    ``joint=True`` takes the smallest batch with h + c at most D/4 instead, and nothing else in the
    proof changes. An epoch is then up to 4 times shorter, never longer. An arm may need an epoch
    more, because widths below D/8 drop some arms early: what is saved depends on the gaps.

    Guarantee. Neighbours: one person's reward is replaced by another in [-1, 1]. Assumption: the
    noise is secret. Argument: given the same earlier noisy sums, both neighbours have the same
    arms in the same places, so they differ in one reward of one arm in one epoch, hence in one
    sum, by at most 2, which Laplace noise of scale 2/epsilon hides up to e^epsilon; everything
    else has the same distribution given what came before, and the arms are a function of the
    noisy sums.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
        epsilon: the privacy target.
        failure_prob: beta; 1/horizon if left out.
        joint: whether to use the smaller batches.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    def __init__(
        self,
        *,
        n_arms: int,
        horizon: int,
        epsilon: float,
        failure_prob: float | None = None,
        joint: bool = False,
        noise_source: NoiseSource | None = None,
    ) -> None:
        """Start with all arms remaining and nothing pulled."""
        rule = Elimination(
            n_arms=n_arms,
            horizon=horizon,
            epsilon=checked_epsilon(epsilon),
            failure_prob=failure_prob,
            joint=joint,
        )
        super().__init__(rule, noise_source)
        self._compiled = rule.compiled
        self._alive = np.arange(rule.n_arms)
        self._sums = np.zeros(rule.n_arms)
        self._left, self._epoch, self._done = rule.n_arms, 1, 0
        self._size = kernels.batch(self._compiled, 1, rule.n_arms)
        self._means = np.full(rule.n_arms, np.nan)

    @property
    def remaining(self) -> tuple[int, ...]:
        """The arms that have not been dropped: safe to show under the guarantee."""
        return tuple(int(arm) for arm in self._alive[: self._left])

    @property
    def released_means(self) -> F64:
        """Each arm's noisy mean of the last epoch it was in, shape (n_arms,); NaN before one ends.

        All noisy means together are covered by the guarantee, and arms are named from them alone.
        """
        return self._means.copy()

    def _chosen(self) -> int:
        return int(self._alive[self._done % self._left])

    def _take(self, arm: int, reward: float) -> None:
        if self._left == 1:
            return  # nothing is left to decide, so nothing is remembered
        last = self._done + 1 == self._size * self._left
        normals = self._source.normals(PER_DRAW * self._left) if last else None
        self._sums[arm] += reward
        self._done += 1
        if normals is not None:
            self._end_epoch(np.ascontiguousarray(normals))

    def _end_epoch(self, normals: F64) -> None:
        rule, epoch, left = self._compiled, self._epoch, self._left
        kernels.release(rule, self._size, left, self._alive, self._sums, normals)
        remaining = self._alive[:left]
        self._means[remaining] = self._sums[remaining]
        self._left = kernels.drop(rule, epoch, self._size, left, self._alive, self._sums)
        self._epoch, self._done = epoch + 1, 0
        self._size = kernels.batch(rule, self._epoch, self._left)
