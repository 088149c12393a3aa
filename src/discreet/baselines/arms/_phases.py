"""What batched multi-armed learners share: rules as data, and the learner that plays them.

The batches, the noise and the indices are those of `kernels/_phases.py`. A module beside this one
names an algorithm, its source, and what had to be changed.

Guarantee of all private ones. Neighbours: one person's reward is replaced by another in [-1, 1].
Assumption: the noise is secret. Argument: batch sizes are fixed in advance, and which arm is
pulled when is a function of the sums released so far and of draws that do not look at rewards. So,
given the same earlier releases, both neighbours have the same arms in the same places. They differ
in one reward, which is in one batch, hence in one sum, by at most 2. Laplace noise of scale
2/epsilon hides that up to e^epsilon. Everything else has the same distribution given what came
before, and all that is shown is a function of the released sums.

The papers have rewards in [0, 1], where one reward moves a sum by at most 1 and the noise has scale
1/epsilon. With rewards in [-1, 1] that noise would be half of what is needed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.baselines.arms._learner import ArmLearner, ArmSettings
from discreet.kernels import _phases as kernels
from discreet.kernels._pulls import PER_DRAW
from discreet.mechanism.noise.sources import NoiseSource
from discreet.simulation import _interruptible as interruptible

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

_SENSITIVITY = 2.0  # how far one reward in [-1, 1] can move a sum
_NOTHING = np.empty(0)


@dataclass(frozen=True, kw_only=True)
class PhasedRule(ArmSettings):
    """A rule that plays in batches; a subclass says which."""

    @property
    def noise_scale(self) -> float:
        """The Laplace scale of a batch's sum: the sensitivity over epsilon."""
        return 0.0 if self.epsilon is None else _SENSITIVITY / self.epsilon

    @property
    def compiled(self) -> kernels.Rule:
        """The rule as arguments of the compiled kernels."""
        raise NotImplementedError

    def _why(self) -> str:
        return (
            "a reward is in one batch of one arm, moves its sum by at most 2, and the sum has "
            "Laplace noise of scale 2/epsilon; arms are named from noisy sums alone"
        )

    def play(
        self, means: F64, reward_state: U64, noise_state: U64, checkpoints: I64, pulls: I64
    ) -> None:
        """Play to the last checkpoint, for rewards of plus or minus one.

        Args:
            means: mean reward of each arm, shape (n_arms,).
            reward_state: state of the generator of the rewards; moved on.
            noise_state: state of the generator of noise and draws; moved on.
            checkpoints: rounds at which pulls are recorded, growing, shape (C,).
            pulls: filled with the pulls of each arm so far, shape (C, n_arms).
        """
        interruptible.call(
            kernels.play,
            means,
            self.compiled,
            reward_state,
            noise_state,
            rounds=int(checkpoints[-1]),
            checkpoints=checkpoints,
            records=pulls,
        )

    def _epsilon(self) -> float:
        """Epsilon for the kernels: infinite if there is none."""
        return math.inf if self.epsilon is None else self.epsilon


class PhasedLearner(ArmLearner):
    """Batches of rewards, one for each arm, and what was released of them."""

    def __init__(self, rule: PhasedRule, noise_source: NoiseSource | None) -> None:
        """Start with nothing pulled."""
        super().__init__(rule, noise_source)
        self._compiled = rule.compiled
        self._board = kernels.empty_board(rule.n_arms, self._compiled.first)
        self._arm: int | None = None

    @property
    def pulls(self) -> I64:
        """How often each arm was pulled, shape (n_arms,)."""
        return self._board[:, kernels.PULLS].astype(np.int64)

    @property
    def released_means(self) -> F64:
        """The mean of each arm's released sum, shape (n_arms,); NaN where there is none yet.

        All sums ever released are covered by the guarantee, and arms are named from them alone.
        """
        with np.errstate(invalid="ignore"):
            return np.asarray(self._board[:, kernels.RELEASED] / self._board[:, kernels.WEIGHT])

    def _chosen(self) -> int:
        if self._arm is None:
            self._arm = self._choice()
        return self._arm

    def _choice(self) -> int:
        rule, turn, draws = self._compiled, self._rounds + 1, _NOTHING
        if rule.chooses == kernels.THOMPSON:
            dofs = np.empty(2 * self.n_arms)
            kernels.fill_dofs(self._board, rule, turn, dofs)
            draws = np.ascontiguousarray(self._source.chi_squares(dofs))
        return int(kernels.choose(self._board, rule, turn, draws))

    def _take(self, arm: int, reward: float) -> None:
        full = self._board[arm, kernels.HELD] + 1.0 == self._board[arm, kernels.SIZE]
        noisy = full and self._compiled.noise_scale > 0.0
        normals = np.ascontiguousarray(self._source.normals(PER_DRAW)) if noisy else _NOTHING
        kernels.learn(self._board, self._compiled, arm, reward, normals)
        if full or not self._compiled.staying:
            self._arm = None
