"""The cell that most experiments use: a variant in an environment, one seed, from start to end."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.experiments._cell import Reading
from discreet.experiments._results import REGRET
from discreet.mechanism import Mechanism
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.simulation import Simulation, run_seed
from discreet.simulation.environments import REWARDS, Basis, Environment, Fixed, Sphere

I64 = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Play:
    """Plain settings of one simulated run; ``run`` gives the pseudo-regret over time.

    Attributes:
        variant: a row of the table of variants.
        environment: sphere, fixed or basis.
        dim: features of an action.
        n_actions: actions in a decision set (basis: as many as features).
        gap: the suboptimality gap (sphere only).
        rewards: signs or gaussian.
        epsilon: the privacy target; None where the variant promises nothing.
        delta: the same.
        rho_min: a lower bound on the regularizer of your own; None for the variant's own shift.
        horizon: the rounds that everything is calibrated for; alpha is one over it.
        rounds: the rounds that are played.
        shown: up to where the regret is recorded densely; after that, sparsely.
        points: how densely.
        seed: which world, and which noise.
    """

    variant: str
    environment: str = "sphere"
    dim: int
    n_actions: int
    gap: float = 0.0
    rewards: str = "signs"
    epsilon: float | None = None
    delta: float | None = None
    rho_min: float | None = None
    horizon: int
    rounds: int
    shown: int
    points: int = 40
    seed: int

    def checkpoints(self) -> I64:
        """Evenly spaced and log-spaced rounds up to ``shown``, then six more."""
        even = np.linspace(0, self.shown, self.points + 1)[1:]
        growing = np.geomspace(1, self.shown, self.points // 2)
        later = np.linspace(self.shown, self.rounds, 7)
        every = np.concatenate([even, growing, later])
        return np.unique(np.rint(every).astype(np.int64).clip(min=1))

    def simulation(self) -> Simulation:
        """What these settings mean."""
        environment = self._environment()
        return Simulation(environment=environment, mechanism=self.mechanism(), rounds=self.rounds)

    def mechanism(self) -> Mechanism:
        """The variant, calibrated."""
        row = named(self.variant)
        if self.rho_min is not None:
            row = row.with_rho_min(self.rho_min)
        target = self._privacy() if row.private else None
        return calibrate(row, self._environment().problem, horizon=self.horizon, privacy=target)

    def prepare(self) -> None:
        """Play one round."""
        run_seed(self.simulation(), self.seed, np.array([1]))

    def run(self) -> list[Reading]:
        """Play all rounds."""
        checkpoints = self.checkpoints()
        regrets = run_seed(self.simulation(), self.seed, checkpoints)
        return [
            Reading(REGRET, int(at), float(regret))
            for at, regret in zip(checkpoints, regrets, strict=True)
        ]

    def _environment(self) -> Environment:
        return ENVIRONMENTS[self.environment](self)

    def _privacy(self) -> Privacy:
        return Privacy(epsilon=self.epsilon, delta=self.delta)  # type: ignore[arg-type]  # it checks


ENVIRONMENTS: dict[str, Callable[[Play], Environment]] = {
    "sphere": lambda play: Sphere(
        dim=play.dim, n_actions=play.n_actions, gap=play.gap, rewards=REWARDS[play.rewards]
    ),
    "fixed": lambda play: Fixed(
        dim=play.dim, n_actions=play.n_actions, rewards=REWARDS[play.rewards]
    ),
    "basis": lambda play: Basis(dim=play.dim, rewards=REWARDS[play.rewards]),
}
