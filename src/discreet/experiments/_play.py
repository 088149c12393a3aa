"""The cell that most experiments use: a variant in an environment, one seed, from start to end.

With it comes the setting of the paper's second experiment, which most of them start from. Source:
Roshan Shariff and Or Sheffet, "Differentially Private Contextual Linear Bandits", NeurIPS 2018,
arXiv:1810.00068, section "Experiments".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.experiments._experiment import F64, REGRET, Reading
from discreet.mechanism import Mechanism
from discreet.mechanism.variants import VARIANTS, Named, calibrate, named
from discreet.privacy import Privacy
from discreet.problem import Problem
from discreet.release import policies
from discreet.release.policies import UCB, PosteriorUCB, Thompson
from discreet.simulation import Simulation, run_seed
from discreet.simulation.environments import REWARDS, Basis, Clusters, Environment, Fixed, Sphere

I64 = NDArray[np.int64]

EPSILON, DELTA = 1.0, 0.1
DIM, N_ACTIONS = 5, 25
HORIZON = 50_000_000  # sec:expt-regret-time
SHOWN = 20_000_000  # where the paper cuts its curves off


@dataclass(frozen=True, kw_only=True)
class Play:
    """Plain settings of one simulated run; ``run`` gives the pseudo-regret over time.

    Attributes:
        variant: a row of the table of variants.
        policy: posterior, ucb or thompson; None for the variant's own.
        environment: sphere, fixed, basis or clusters.
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
        points: how densely; None for the checkpoints of `Simulation`.
        seed: which world, and which noise.
    """

    variant: str
    policy: str | None = None
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
    points: int | None = 40
    seed: int

    def checkpoints(self) -> I64:
        """Evenly spaced and log-spaced rounds up to ``shown``, then six more."""
        if self.points is None:
            return self.simulation().checkpoints()
        even = np.linspace(0, self.shown, self.points + 1)[1:]
        growing = np.geomspace(1, self.shown, self.points // 2)
        later = np.linspace(self.shown, self.rounds, 7)
        every = np.concatenate([even, growing, later])
        return np.unique(np.rint(every).astype(np.int64).clip(min=1))

    def simulation(self) -> Simulation:
        """What these settings mean."""
        mechanism = self.mechanism()
        return Simulation(
            environment=self._environment(),
            mechanism=mechanism,
            rounds=self.rounds,
            policy=POLICIES[self.policy] if self.policy else policies.usual(mechanism),
        )

    def mechanism(self) -> Mechanism:
        """The variant, calibrated for the horizon and the privacy target."""
        row = named(self.variant)
        if self.rho_min is not None:
            row = row.with_rho_min(self.rho_min)
        return calibrated(row, self._environment().problem, self.horizon, self.epsilon, self.delta)

    def prepare(self) -> None:
        """Play one round of this, and of a contender for each of the compiled loops."""
        loops = (contender(label, rounds=1, seed=0) for label in ("windows", "tight", LINUCB))
        for play in (self, *loops):
            run_seed(play.simulation(), play.seed, np.array([1]))

    def run(self) -> list[Reading]:
        """Play all rounds and read off the regret at the checkpoints."""
        checkpoints = self.checkpoints()
        return regret_readings(checkpoints, run_seed(self.simulation(), self.seed, checkpoints))

    def _environment(self) -> Environment:
        return ENVIRONMENTS[self.environment](self)


ENVIRONMENTS: dict[str, Callable[[Play], Environment]] = {
    "sphere": lambda play: Sphere(
        dim=play.dim, n_actions=play.n_actions, gap=play.gap, rewards=REWARDS[play.rewards]
    ),
    "fixed": lambda play: Fixed(
        dim=play.dim, n_actions=play.n_actions, rewards=REWARDS[play.rewards]
    ),
    "basis": lambda play: Basis(dim=play.dim, rewards=REWARDS[play.rewards]),
    "clusters": lambda play: Clusters(
        dim=play.dim, n_actions=play.n_actions, rewards=REWARDS[play.rewards]
    ),
}

# The policies that a cell can name. A named one has the same numbers whatever the noise is, so that
# variants that share it differ in nothing but their noise.
POLICIES: dict[str, PosteriorUCB | UCB | Thompson] = {
    "posterior": PosteriorUCB(deviations=0.75, growth=0.8),
    "ucb": UCB(),
    "thompson": Thompson(),
}

LINUCB = "LinUCB (paper)"  # as in the paper, without privacy


class Contender(NamedTuple):
    """Who plays: a variant, and the policy that it plays by."""

    variant: str
    policy: str


# Under the names that figures and tables have. All play by upper confidence bounds, as in the
# paper, but for the default and the same without noise.
CONTENDERS = {
    "windows": Contender("windows", "posterior"),
    "nonprivate": Contender("nonprivate", "posterior"),
    LINUCB: Contender("nonprivate", "ucb"),
    **{name: Contender(name, "ucb") for name in VARIANTS if name not in {"windows", "nonprivate"}},
}


def contender(label: str, *, rounds: int, seed: int, **changed: Any) -> Play:  # noqa: ANN401  # fields of Play
    """A cell of the paper's second experiment for a row of `CONTENDERS`."""
    who = CONTENDERS[label]
    return paper_play(who.variant, policy=who.policy, rounds=rounds, seed=seed, **changed)


def paper_play(variant: str, *, rounds: int, seed: int, **changed: Any) -> Play:  # noqa: ANN401  # fields of Play
    """A cell of the paper's second experiment, but for the fields that are changed.

    The policy is the paper's: upper confidence bounds.
    """
    private = named(variant).private
    paper = {
        "policy": "ucb",
        "dim": DIM,
        "n_actions": N_ACTIONS,
        "epsilon": EPSILON if private else None,
        "delta": DELTA if private else None,
        "horizon": HORIZON,
        "shown": rounds,
    }
    return Play(variant=variant, rounds=rounds, seed=seed, **{**paper, **changed})


def calibrated(
    row: Named, problem: Problem, horizon: int, epsilon: float | None, delta: float | None
) -> Mechanism:
    """A variant, calibrated; one that promises nothing ignores the privacy target."""
    target = None
    if row.private:
        target = Privacy(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]  # it checks
    return calibrate(row, problem, horizon=horizon, privacy=target)


def regret_readings(checkpoints: I64, regrets: F64) -> list[Reading]:
    """The pseudo-regret at each checkpoint."""
    return [
        Reading(REGRET, int(at), float(regret))
        for at, regret in zip(checkpoints, regrets, strict=True)
    ]
