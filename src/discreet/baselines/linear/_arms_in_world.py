"""A multi-armed rule in a world of the simulator: its actions are the arms."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.baselines.arms._learner import ArmRule
from discreet.baselines.arms._table import RULES
from discreet.errors import ParameterError
from discreet.kernels import _arms as arms
from discreet.privacy import Guarantee
from discreet.problem import Problem
from discreet.simulation.environments import World

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class ArmsInWorld:
    """What `simulate_linear` needs of a multi-armed rule. It never looks at features.

    Attributes:
        name: a row of `RULES`.
        problem: of the world; it has as many arms as features.
        horizon: the most rounds there will be.
        epsilon: the target; None for rules that promise nothing.
    """

    name: str
    problem: Problem
    horizon: int
    epsilon: float | None

    def __post_init__(self) -> None:
        """Check the settings."""
        _ = self.rule

    @property
    def rule(self) -> ArmRule:
        """The rule itself."""
        return RULES[self.name].rule(
            n_arms=self.problem.dim, horizon=self.horizon, epsilon=self.epsilon
        )

    @property
    def protects(self) -> str:
        """Rewards, or nothing."""
        return RULES[self.name].protects

    @property
    def trust(self) -> str:
        """Who sees rewards as they are."""
        return RULES[self.name].trust

    @property
    def guarantee(self) -> Guarantee:
        """What holds if the noise is secret."""
        return self.rule.guarantee

    def play(
        self,
        world: World,
        noise_state: U64,
        policy_state: U64,  # noqa: ARG002  # rules draw everything from the noise
        checkpoints: I64,
        regrets: F64,
    ) -> None:
        """Play to the last checkpoint with a new learner.

        Args:
            world: where, with actions that stay and rewards of plus or minus one; moved on.
            noise_state: state of the generator of the noise; moved on.
            policy_state: not used.
            checkpoints: rounds at which the regret is recorded, growing, shape (C,).
            regrets: filled with the pseudo-regret so far, shape (C,).

        Raises:
            ParameterError: if the world is no multi-armed bandit.
        """
        arrays = world.arrays
        known = arrays.kind == arms.SAME and arrays.drift.kind == arms.STILL
        if not known or arrays.n_actions != self.problem.dim or arrays.reward_std != 0.0:
            raise ParameterError(
                "environment",
                "is no multi-armed bandit with rewards of plus or minus one; play this baseline in "
                "basis, with signs as rewards",
            )
        pulls = np.zeros((len(checkpoints), self.problem.dim), np.int64)
        self.rule.play(arrays.means, world.state, noise_state, checkpoints, pulls)
        regrets[:] = pulls @ (arrays.means.max() - arrays.means)
