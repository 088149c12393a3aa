"""The cell of the lower bounds: a learner against arms, or against two contexts; and its tally."""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import theory
from discreet.baselines import Arms, Elimination, UpperConfidence
from discreet.baselines.arms._learner import ArmRule
from discreet.baselines.arms._simulate import run_seed
from discreet.baselines.standard import TwoContexts, play_response
from discreet.experiments._experiment import F64, REGRET, Reading, Results
from discreet.experiments._play import calibrated, regret_readings
from discreet.mechanism.variants import VARIANTS, named
from discreet.release import policies
from discreet.simulation import Simulation
from discreet.simulation import run_seed as run_contextual

I64 = NDArray[np.int64]

ARMS, CONTEXTS = "arms", "contexts"
RESPONSE = "randomised-response"
JOINT = tuple(name for name in ("gaussian", "tight") if name in VARIANTS)  # against contexts
PRIVATE = ("dpucb", "dpse", "dpse-joint")
# Each private learner without its noise.
NOISELESS = {"dpucb": "ucb1", "dpse": "se", "dpse-joint": "se-joint"}
BEST_MEAN = 0.0  # the claim's proof needs room for a gap above it


@dataclass(frozen=True, kw_only=True)
class Pulling:
    """Plain settings of one run.

    Attributes:
        game: arms (a multi-armed bandit) or contexts (the adversary of two contexts).
        learner: ucb1, dpucb, se, dpse, se-joint or dpse-joint against arms; the best reply under
            standard privacy, or a variant of LinUCB, against contexts.
        n_arms: how many.
        gap: of all arms but the best.
        epsilon: the privacy target; None where nothing is promised.
        delta: the same; None for pure privacy.
        horizon: how many rounds are played.
        points: at how many of them the regret is recorded.
        seed: which rewards, and which noise.
    """

    game: str
    learner: str
    n_arms: int
    gap: float
    epsilon: float | None
    delta: float | None
    horizon: int
    points: int
    seed: int

    def checkpoints(self) -> I64:
        """Log-spaced over the last three powers of ten, with the middle."""
        spaced = np.geomspace(max(1, self.horizon // 1000), self.horizon, self.points)
        rounded = np.rint(np.append(spaced, self.horizon / 2)).astype(np.int64)
        return np.unique(rounded.clip(min=1))

    def prepare(self) -> None:
        """Play a little of each kind, so that all kernels are compiled."""
        for learner in (*NOISELESS, *NOISELESS.values()):
            epsilon = 1.0 if learner in NOISELESS else None
            rule = _rule(learner, n_arms=2, horizon=10, epsilon=epsilon)
            run_seed(rule, Arms((0.0, 0.5)), 0, np.array([10]))
        play_response(epsilon=0.5, delta=0.1, seed=0, checkpoints=np.array([1]))
        for variant in JOINT:
            run_contextual(_contextual(variant, 0.5, 0.1, 10), 0, np.array([1]))

    def run(self) -> list[Reading]:
        """Play to the horizon and read off the regret, and the pulls of each arm."""
        return self._run_contexts() if self.game == CONTEXTS else self._run_arms()

    def _run_contexts(self) -> list[Reading]:
        epsilon, delta = float(self.epsilon or 0.0), float(self.delta or 0.0)
        checkpoints = self.checkpoints()
        if self.learner == RESPONSE:
            regrets = play_response(
                epsilon=epsilon, delta=delta, seed=self.seed, checkpoints=checkpoints
            )
        else:
            simulation = _contextual(self.learner, epsilon, delta, self.horizon)
            regrets = run_contextual(simulation, self.seed, checkpoints)
        return regret_readings(checkpoints, regrets)

    def _run_arms(self) -> list[Reading]:
        arms = Arms.with_gaps([self.gap] * (self.n_arms - 1), best_mean=BEST_MEAN)
        rule = _rule(self.learner, n_arms=self.n_arms, horizon=self.horizon, epsilon=self.epsilon)
        checkpoints = self.checkpoints()
        pulls = run_seed(rule, arms, self.seed, checkpoints)
        last = [
            Reading(f"pulls_{arm}", self.horizon, float(count))
            for arm, count in enumerate(pulls[-1])
            if arm > 0
        ]
        return [*regret_readings(checkpoints, pulls @ arms.gaps), *last]


def _contextual(variant: str, epsilon: float, delta: float, horizon: int) -> Simulation:
    environment = TwoContexts()
    mechanism = calibrated(named(variant), environment.problem, horizon, epsilon, delta)
    return Simulation(
        environment=environment, mechanism=mechanism, rounds=horizon, policy=policies.UCB()
    )


def _rule(learner: str, *, n_arms: int, horizon: int, epsilon: float | None) -> ArmRule:
    if learner in {"ucb1", "dpucb"}:
        return UpperConfidence(n_arms=n_arms, horizon=horizon, epsilon=epsilon)
    joint = learner.endswith("-joint")
    return Elimination(n_arms=n_arms, horizon=horizon, epsilon=epsilon, joint=joint)


class Key(NamedTuple):
    """What seeds have in common."""

    learner: str
    n_arms: int
    gap: float
    horizon: int
    epsilon: float | None


@dataclass(frozen=True, kw_only=True)
class Tally:
    """All seeds of one setting against arms, at the horizon.

    Attributes:
        key: the setting.
        regrets: shape (S,).
        pulls: of the arms that are not best, shape (S, n_arms - 1).
    """

    key: Key
    regrets: F64
    pulls: F64

    @property
    def epsilon(self) -> float:
        """The target of a private learner."""
        return float(self.key.epsilon or 0.0)

    @property
    def size(self) -> float:
        """What privacy should cost up to a constant: k ln(n) / epsilon."""
        return self.key.n_arms * float(np.log(self.key.horizon)) / self.epsilon

    @property
    def premise(self) -> bool:
        """Whether the claim speaks of it: regret at most n^(3/4), n as large as its proof needs."""
        least = theory.pulls_bound_horizon(epsilon=self.epsilon, gap=self.key.gap)
        return self.learns and self.key.horizon >= least

    @property
    def learns(self) -> bool:
        """Whether the mean regret is at most n^(3/4)."""
        return bool(self.regrets.mean() <= self.key.horizon**0.75)

    @property
    def pulls_bound(self) -> float:
        """What the claim says of each arm."""
        key = self.key
        return theory.pulls_lower_bound(horizon=key.horizon, epsilon=self.epsilon, gap=key.gap)

    @property
    def regret_bound(self) -> float:
        """What the corollary says of the regret."""
        key = self.key
        return theory.private_regret_lower_bound(
            horizon=key.horizon, epsilon=self.epsilon, n_arms=key.n_arms
        )


def tallies(results: Results) -> dict[Key, Tally]:
    """Everything that was played against arms, in one pass."""
    regrets: dict[Key, list[float]] = defaultdict(list)
    pulls: dict[Key, list[list[float]]] = defaultdict(list)
    for cell in results.cells:
        if cell.settings["game"] != ARMS:
            continue
        key = Key(*(cell.settings[name] for name in Key._fields))  # type: ignore[arg-type]  # its fields
        last = [(name, value) for name, at, value in cell.readings if at == key.horizon]
        regrets[key].append(next(value for name, value in last if name == REGRET))
        pulls[key].append([value for name, value in last if name != REGRET])
    return {
        key: Tally(key=key, regrets=np.array(regrets[key]), pulls=np.array(pulls[key]))
        for key in sorted(regrets, key=lambda key: (*key[:4], key.epsilon or 0.0))
    }
