"""The bandit libraries one would otherwise pick, each behind the same two calls.

Libraries are looked up by name when they are measured: none of them is a dependency.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.latency import learner
from benchmarks.speed.plain import PlainLinUCB, sphere_set, unit_rows
from benchmarks.speed.workload import DIM, HORIZON, N_ACTIONS

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Game:
    """Rounds drawn beforehand. What a player may see in round t is ``features[t]``.

    Attributes:
        features: decision sets, (T, K, d), or one person's context a round, (T, d).
        means: of every action in every round, (T, K).
    """

    features: F64
    means: F64


def shared_game(rounds: int) -> Game:
    """Actions with features and one parameter: what discreet is for."""
    rng = np.random.default_rng(0)
    theta = unit_rows(rng, 1, DIM)[0]
    drawn = [sphere_set(rng, theta, N_ACTIONS) for _ in range(rounds)]
    return Game(np.array([one[0] for one in drawn]), np.array([one[1] for one in drawn]))


def disjoint_game(rounds: int) -> Game:
    """A context for the round and a parameter for each of the actions, which have no features."""
    rng = np.random.default_rng(0)
    thetas = unit_rows(rng, N_ACTIONS, DIM)
    contexts = unit_rows(rng, rounds, DIM)
    return Game(contexts, contexts @ thetas.T)


class Player(Protocol):
    """A library in a game."""

    def choose(self, turn: int) -> int:
        """The action for a round."""

    def learn(self, turn: int, action: int, reward: float) -> None:
        """Its reward."""


class Discreet:
    """`discreet.LinUCB`, through the calls a user makes."""

    variant = "nonprivate"

    def __init__(self, _: ModuleType, game: Game) -> None:
        """Calibrate."""
        self.game = game
        self.bandit = learner(self.variant, dim=DIM, n_actions=N_ACTIONS)

    def choose(self, turn: int) -> int:
        """Keep the decision for its reward."""
        self.decision = self.bandit.choose(self.game.features[turn])
        return self.decision.index

    def learn(self, turn: int, action: int, reward: float) -> None:  # noqa: ARG002  # in the decision
        """Give the decision back."""
        self.bandit.learn(self.decision, reward)


class PrivateDiscreet(Discreet):
    """The same with the paper's Gaussian noise."""

    variant = "gaussian"


class Plain:
    """The NumPy baseline."""

    def __init__(self, _: ModuleType, game: Game) -> None:
        """Start afresh."""
        self.game, self.bandit = game, PlainLinUCB(DIM, HORIZON)

    def choose(self, turn: int) -> int:
        """The index of a row."""
        return self.bandit.choose(self.game.features[turn])

    def learn(self, turn: int, action: int, reward: float) -> None:
        """Add the row."""
        self.bandit.learn(self.game.features[turn, action], reward)


class MABWiser:
    """LinUCB of MABWiser: a ridge regression for each arm."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """It wants to be fitted once before it predicts."""
        self.contexts = game.features
        policy = module.LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0)
        self.bandit: Any = module.MAB(arms=list(range(N_ACTIONS)), learning_policy=policy)
        self.bandit.fit(decisions=[0], rewards=[0.0], contexts=self.contexts[:1])

    def choose(self, turn: int) -> int:
        """The name of an arm."""
        return int(self.bandit.predict(self.contexts[turn : turn + 1]))

    def learn(self, turn: int, action: int, reward: float) -> None:
        """A batch of one."""
        self.bandit.partial_fit([action], [reward], self.contexts[turn : turn + 1])


class River:
    """LinUCBDisjoint of river: a Bayesian regression for each arm, features by name."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """Contexts become dictionaries beforehand."""
        self.contexts = [dict(enumerate(context.tolist())) for context in game.features]
        self.bandit: Any = module.LinUCBDisjoint(seed=0)
        self.arms = list(range(N_ACTIONS))

    def choose(self, turn: int) -> int:
        """The name of an arm."""
        return int(self.bandit.pull(self.arms, context=self.contexts[turn]))

    def learn(self, turn: int, action: int, reward: float) -> None:
        """One observation."""
        self.bandit.update(action, self.contexts[turn], reward)


class ContextualBandits:
    """LinUCB of contextualbandits: a ridge regression for each arm, rewards of 0 or 1."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """One thread, no intercept."""
        self.contexts = game.features
        self.bandit: Any = module.LinUCB(
            N_ACTIONS, alpha=1.0, fit_intercept=False, random_state=1, njobs=1
        )

    def choose(self, turn: int) -> int:
        """A batch of one."""
        return int(self.bandit.predict(self.contexts[turn : turn + 1])[0])

    def learn(self, turn: int, action: int, reward: float) -> None:
        """A batch of one."""
        row, won = self.contexts[turn : turn + 1], np.array([float(reward > 0)])
        self.bandit.partial_fit(row, np.array([action]), won)


class VowpalWabbit:
    """--cb_explore_adf --regcbopt of Vowpal Wabbit: actions with features, one model, optimism."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """Examples are text, written on the way as a user would."""
        self.sets = game.features
        self.bandit: Any = module.Workspace(
            "--cb_explore_adf --regcbopt --mellowness 0.01 --noconstant --quiet"
        )

    def choose(self, turn: int) -> int:
        """The likeliest action: the optimistic rule puts all weight on its candidates."""
        self.lines = [
            "|a " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(row))
            for row in self.sets[turn].tolist()
        ]
        self.weights = self.bandit.predict(self.lines)
        return int(np.argmax(self.weights))

    def learn(self, turn: int, action: int, reward: float) -> None:  # noqa: ARG002  # in the lines
        """The chosen line, labelled with its cost and its probability."""
        self.lines[action] = f"0:{-reward}:{self.weights[action]:.6g} {self.lines[action]}"
        self.bandit.learn(self.lines)
