"""The cell of the comparison: any learner in any environment, and the table of who takes part."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.baselines import LINEAR_BASELINES, RULES, linear_rule
from discreet.baselines.linear._arms_in_world import ArmsInWorld
from discreet.baselines.linear._learner import PlayableRule
from discreet.baselines.linear._simulate import run_linear_seed
from discreet.experiments import _patients
from discreet.experiments._experiment import F64, Reading
from discreet.experiments._play import regret_readings
from discreet.experiments._posterior_draws import PosteriorDraws
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.problem import Problem
from discreet.release import policies
from discreet.simulation import Simulation, run_seed
from discreet.simulation.environments import Basis, Clusters, Environment, Fixed, Sphere

I64 = NDArray[np.int64]

DIM, N_ACTIONS = 5, 25
# Who made it, and how it is played; draws are `PosteriorDraws`.
OURS, LINEAR, ARMS, DRAWS = "ours", "linear", "arms", "draws"
ROWS, REWARDS, NOTHING = "rows", "rewards", "nothing"
NOBODY = "-"
PLACES = ("sphere", "fixed", "basis", "clusters", "patients")
STAYING = ("fixed", "basis")  # decision sets that stay
BASIS = "basis"
_UNUSED_DELTA = 1e-6  # for those who are pure


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """Who takes part.

    Attributes:
        name: in tables and figures.
        maker: ours, linear, arms or draws.
        key: its variant, or its row in the table of baselines.
        policy: of a variant, where it is not its own.
        protects: rows, rewards or nothing.
        trust: who sees raw rows: central, shuffle or local.
        pure: whether delta is 0 whatever the target says.
        places: where it can play.
    """

    name: str
    maker: str
    key: str
    policy: str | None = None
    protects: str = ROWS
    trust: str = "central"
    pure: bool = False
    places: tuple[str, ...] = PLACES

    @property
    def private(self) -> bool:
        """Whether it promises anything."""
        return self.protects != NOTHING


def _free(name: str, policy: str | None) -> Contestant:
    return Contestant(
        name=name, maker=OURS, key="nonprivate", policy=policy, protects=NOTHING, trust=NOBODY
    )


_FREE = (
    _free("nonprivate", None),
    _free("LinUCB", "ucb"),
    Contestant(name="LinTS", maker=DRAWS, key="LinTS", protects=NOTHING, trust=NOBODY),
    _free("LinTS (as in its proof)", "thompson"),
    _free("greedy", "greedy"),
)
_OURS = (
    *(Contestant(name=key, maker=OURS, key=key) for key in ("windows", "tight", "gaussian")),
    *(
        Contestant(name=f"{key} (rewards)", maker=OURS, key=key, protects=REWARDS)
        for key in ("windows", "tight")
    ),
)
_LINEAR = tuple(
    Contestant(
        name=row.name,
        maker=LINEAR,
        key=row.name,
        protects=row.protects,
        trust=row.trust,
        pure=row.pure,
        places=STAYING if row.fixed_sets else PLACES,
    )
    for row in LINEAR_BASELINES.values()
)
_ARMS = tuple(
    Contestant(
        name=row.name,
        maker=ARMS,
        key=row.name,
        protects=row.protects,
        trust=row.trust if row.private else NOBODY,
        pure=row.private,
        places=(BASIS,),
    )
    for row in RULES.values()
)
CONTESTANTS = {row.name: row for row in (*_FREE, *_OURS, *_LINEAR, *_ARMS)}


_MAKERS: dict[str, Callable[[], Environment]] = {
    "sphere": lambda: Sphere(dim=DIM, n_actions=N_ACTIONS),
    "fixed": lambda: Fixed(dim=DIM, n_actions=N_ACTIONS),
    "basis": lambda: Basis(dim=DIM),
    "clusters": lambda: Clusters(dim=DIM, n_actions=N_ACTIONS),
    "patients": _patients.patients,
}


@cache
def place(name: str) -> Environment:
    """The environment of this name."""
    return _MAKERS[name]()


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Plain settings of one simulated run; ``run`` gives the pseudo-regret over time.

    Attributes:
        learner: a name in `CONTESTANTS`.
        environment: sphere, fixed, basis, clusters or patients.
        epsilon: the privacy target; None where nothing is promised.
        delta: the same; None for those who have a delta of 0 as well.
        rounds: the rounds that are played, and that all are calibrated for.
        points: at how many of them the regret is recorded.
        seed: which world, and which noise.
    """

    learner: str
    environment: str
    epsilon: float | None
    delta: float | None
    rounds: int
    points: int
    seed: int

    def checkpoints(self) -> I64:
        """Log-spaced rounds, from 100 on."""
        first = min(100, self.rounds)
        spaced = np.geomspace(first, self.rounds, self.points)
        return np.unique(np.rint(spaced).astype(np.int64))

    def prepare(self) -> None:
        """Compile what this and every other contest needs: a round of everybody on basis."""
        first = np.array([1], np.int64)
        for one in (*(self._by(who) for who in CONTESTANTS.values()), self):
            one.regrets(first)

    def run(self) -> list[Reading]:
        """Play all rounds and read off the regret at the checkpoints."""
        checkpoints = self.checkpoints()
        return regret_readings(checkpoints, self.regrets(checkpoints))

    def _by(self, who: Contestant) -> "Contest":
        """The same by somebody else on basis, where everybody can play."""
        epsilon, delta = (1.0, 0.1) if who.private else (None, None)
        return replace(self, learner=who.name, environment=BASIS, epsilon=epsilon, delta=delta)

    def regrets(self, checkpoints: I64) -> F64:
        """Play to the last of these rounds; the pseudo-regret so far at each, shape (C,)."""
        who, where = CONTESTANTS[self.learner], place(self.environment)
        if who.maker == OURS:
            return run_seed(self._simulation(who, where), self.seed, checkpoints)
        return run_linear_seed(self._rule(who, where.problem), where, self.seed, checkpoints)

    def _simulation(self, who: Contestant, where: Environment) -> Simulation:
        return Simulation(
            environment=where,
            mechanism=calibrate(
                named(who.key), where.problem, horizon=self.rounds, privacy=self._target(who)
            ),
            rounds=self.rounds,
            policy=_policy(who.policy),
        )

    def _rule(self, who: Contestant, problem: Problem) -> PlayableRule:
        if who.maker == DRAWS:
            return PosteriorDraws(problem=problem, horizon=self.rounds)
        if who.maker == ARMS:
            return ArmsInWorld(
                name=who.key, problem=problem, horizon=self.rounds, epsilon=self.epsilon
            )
        target = self._target(who)
        assert target is not None  # noqa: S101  # all of them are private
        return linear_rule(who.key, problem=problem, horizon=self.rounds, privacy=target)

    def _target(self, who: Contestant) -> Privacy | None:
        """The target in full. Those who are pure do not look at delta."""
        if self.epsilon is None:
            return None
        delta = _UNUSED_DELTA if self.delta is None else self.delta
        return Privacy(epsilon=self.epsilon, delta=delta, protects=who.protects)


def _policy(name: str | None) -> Any:  # noqa: ANN401  # any of the policies
    if name is None:
        return None
    return policies.greedy() if name == "greedy" else policies.RULES[name]()
