"""Synthetic worlds to play in, behind one small protocol. They know nothing of privacy.

An `Environment` is a description; ``start`` makes a `World` of it, with a true parameter and a
random stream of its own. A world offers a decision set, takes a choice, and gives a reward.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _arms as arms
from discreet.kernels import _random as random
from discreet.kernels._arms import WorldArrays
from discreet.problem import Problem

__all__ = [
    "GAUSSIAN",
    "REWARDS",
    "SIGNS",
    "Basis",
    "Clusters",
    "Drifting",
    "Environment",
    "Fixed",
    "Recorded",
    "Rewards",
    "Sphere",
    "World",
    "play",
]

_F64 = NDArray[np.float64]

_BATCHED_ACTIONS = 1024  # fresh decision sets are drawn for this many actions at a time


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """How rewards scatter around their mean.

    Attributes:
        std: 0 for rewards of plus or minus one; otherwise normal with this standard deviation.
        bound: the largest absolute reward. Normal rewards are clipped to it, so rarely (once in
            1e15 rewards, by default) that their mean does not move.
        subgaussian: the scale of their sub-Gaussian tails.
    """

    std: float = 0.0
    bound: float = 1.0
    subgaussian: float = 1.0


SIGNS = Rewards()
GAUSSIAN = Rewards(std=1.0, bound=9.0)

REWARDS = {"signs": SIGNS, "gaussian": GAUSSIAN}


class World:
    """One instance of an environment: a true parameter, and rounds one after the other."""

    def __init__(self, arrays: WorldArrays, state: NDArray[np.uint64]) -> None:
        """Wrap the arrays that the compiled loop also uses."""
        self.arrays = arrays
        self.state = state
        self._start = 0

    @property
    def theta(self) -> _F64:
        """The true parameter of the current round, which a learner never sees."""
        return self.arrays.theta

    def decision_set(self) -> _F64:
        """The next round's actions, shape (K, d)."""
        self._start = arms.next_set(self.state, self.arrays)
        return self.arrays.actions[:, self._start : self._start + self.arrays.n_actions].T.copy()

    def pull(self, index: int) -> tuple[float, float]:
        """Choose an action of the current decision set.

        Args:
            index: its place in the set.

        Returns:
            Its reward, and its pseudo-regret: how far its mean lies below the best one's.

        Raises:
            ParameterError: if there is no such action.
        """
        world = self.arrays
        if not 0 <= index < world.n_actions:
            raise ParameterError("index", f"is {index}; give one from 0 to {world.n_actions - 1}")
        mean = float(world.means[self._start + index])
        reward = arms.reward(self.state, mean, world.reward_std, world.reward_bound)
        return reward, arms.best_mean(world, self._start) - mean


class Environment(Protocol):
    """A description of a world."""

    @property
    def problem(self) -> Problem:
        """The bounds that hold in it."""

    @property
    def n_actions(self) -> int:
        """K, the size of every decision set."""

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world with its own true parameter.

        Args:
            sequence: the seed of everything random in it.

        Returns:
            The world, before its first round.
        """


@dataclass(frozen=True, kw_only=True)
class Sphere:
    """The paper's setting: fresh unit vectors every round, one of them optimal.

    The optimal action has mean reward 0.75; the others are uniform on the part of the sphere
    where the mean lies within [-0.75, 0.75 - gap]. The true parameter is a random unit vector.

    Attributes:
        dim: features of an action, at least 2.
        n_actions: actions in a decision set.
        gap: how far every other mean lies below the best one, from 0 to below 1.5.
        rewards: how rewards scatter around their mean.
    """

    dim: int
    n_actions: int
    gap: float = 0.0
    rewards: Rewards = SIGNS
    best_mean = 0.75  # the band's other end is minus this

    def __post_init__(self) -> None:
        """Check the shape of the band."""
        checks.count("dim", self.dim, least=2)
        checks.count("actions", self.n_actions, least=1)
        if not 0.0 <= checks.finite("gap", self.gap) < 2 * self.best_mean:
            raise ParameterError(
                "gap", f"is {self.gap:g}; give one from 0 to below {2 * self.best_mean}"
            )

    @property
    def problem(self) -> Problem:
        """Unit actions and a unit parameter."""
        return _unit_problem(self.dim, self.rewards)

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world with a random unit vector as its parameter.

        Args:
            sequence: the seed of everything random in it.

        Returns:
            The world, before its first round.
        """
        state = random.seed_state(sequence)
        theta = _unit_rows(state, 1, self.dim)[0]
        band = arms.Band(self.best_mean, -self.best_mean, self.best_mean - self.gap)
        arrays = _redrawn(self.n_actions, theta, self.rewards)
        arrays.best[:] = self.best_mean
        return World(arrays._replace(kind=arms.BAND, band=band), state)


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """K random unit vectors, drawn once and offered in every round.

    Attributes:
        dim: features of an action.
        n_actions: actions in the decision set.
        rewards: how rewards scatter around their mean.
    """

    dim: int
    n_actions: int
    rewards: Rewards = SIGNS

    def __post_init__(self) -> None:
        """Check the sizes."""
        checks.count("dim", self.dim)
        checks.count("actions", self.n_actions)

    @property
    def problem(self) -> Problem:
        """Unit actions and a unit parameter."""
        return _unit_problem(self.dim, self.rewards)

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world with a random unit vector as its parameter.

        Args:
            sequence: the seed of everything random in it.

        Returns:
            The world, before its first round.
        """
        state = random.seed_state(sequence)
        theta = _unit_rows(state, 1, self.dim)[0]
        actions = _unit_rows(state, self.n_actions, self.dim)
        return World(_static(actions, theta, self.rewards), state)


@dataclass(frozen=True, kw_only=True)
class Basis:
    """A multi-armed bandit: the d basis vectors as arms, the best with mean 0.4.

    The other means are uniform in [-0.3, 0.3]. The best arm's place is random.

    Attributes:
        dim: how many arms there are.
        rewards: how rewards scatter around their mean.
    """

    dim: int
    rewards: Rewards = SIGNS
    best_mean = 0.4
    other_means = 0.3

    def __post_init__(self) -> None:
        """Check the size."""
        checks.count("dim", self.dim)

    @property
    def n_actions(self) -> int:
        """As many arms as dimensions."""
        return self.dim

    @property
    def problem(self) -> Problem:
        """Unit actions; the parameter's norm is 1, or more if there are many arms."""
        norm = math.sqrt(self.best_mean**2 + (self.dim - 1) * self.other_means**2)
        return _unit_problem(self.dim, self.rewards, theta_norm=max(1.0, norm))

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world with random means.

        Args:
            sequence: the seed of everything random in it.

        Returns:
            The world, before its first round.
        """
        state = random.seed_state(sequence)
        theta = np.array(
            [self.other_means * (2 * random.uniform(state) - 1) for _ in range(self.dim)]
        )
        theta[random.below(state, self.dim)] = self.best_mean
        return World(_static(np.eye(self.dim), theta, self.rewards), state)


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """People of a few groups, and actions that vary a lot in some features and little in others.

    In every round a person of a random group comes by. Each action is normal around a centre that
    belongs to the group and to the action's place in the set, and is shortened to length 1 if it
    comes out longer. Centres, and the scatter around them, are widest in the first feature and
    narrowest in the last: the second moment of actions has a condition number of about
    ``condition``. So rows bring plenty of information in some directions and hardly any in
    others, and the best mean reward differs from round to round. The true parameter is a random
    unit vector.

    Attributes:
        dim: features of an action, at least 2.
        n_actions: actions in a decision set.
        groups: how many groups there are, equally large.
        condition: the variance of the first feature over that of the last.
        rewards: how rewards scatter around their mean.
    """

    dim: int
    n_actions: int
    groups: int = 4
    condition: float = 1000.0
    rewards: Rewards = SIGNS
    length = 0.5  # the root of an action's mean squared length, before any is shortened
    between = 0.75  # the share of variance that is between centres

    def __post_init__(self) -> None:
        """Check the sizes."""
        checks.count("dim", self.dim, least=2)
        checks.count("actions", self.n_actions)
        checks.count("groups", self.groups)
        checks.within("condition", checks.finite("condition", self.condition), 1.0, 1e12)

    @property
    def problem(self) -> Problem:
        """Actions of length 1 at most, and a unit parameter."""
        return _unit_problem(self.dim, self.rewards)

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world with centres of its own and a random unit vector as its parameter.

        Args:
            sequence: the seed of everything random in it.

        Returns:
            The world, before its first round.
        """
        state = random.seed_state(sequence)
        theta = _unit_rows(state, 1, self.dim)[0]
        widths = np.geomspace(1.0, 1.0 / math.sqrt(self.condition), self.dim)
        widths *= self.length / np.linalg.norm(widths)
        centres = np.empty((self.dim, self.groups * self.n_actions))
        random.fill_normals(state, centres.reshape(-1))
        centres *= math.sqrt(self.between) * widths[:, None]
        groups = arms.Groups(self.groups, centres, math.sqrt(1 - self.between) * widths)
        arrays = _redrawn(self.n_actions, theta, self.rewards)
        return World(arrays._replace(kind=arms.CLUSTERS, groups=groups), state)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded:
    """People of a data set, who come by in a random order, over and over again.

    Mean rewards need not be linear in the features. Regret is counted against a choice for each
    person that is given, such as that of the best linear rule: it is negative where a learner does
    better.

    Attributes:
        problem: the bounds that hold.
        sets: the decision set of each person, shape (N, K, d).
        means: the mean reward of each action, shape (N, K), within [-1, 1]; rewards are plus or
            minus one.
        best: the mean reward that regret is counted against, shape (N,).
    """

    problem: Problem
    sets: _F64
    means: _F64
    best: _F64

    def __post_init__(self) -> None:
        """Check the shapes."""
        people, actions, dim = self.sets.shape
        if self.means.shape != (people, actions) or self.best.shape != (people,):
            raise ParameterError("means", "and best must have one entry for each action and person")
        if dim != self.problem.dim:
            raise ParameterError("sets", f"has {dim} features; the problem {self.problem.dim}")

    @property
    def n_actions(self) -> int:
        """K, the size of every decision set."""
        return int(self.means.shape[1])

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world in which people come in an order of its own.

        Args:
            sequence: the seed of the order and of the rewards.

        Returns:
            The world, before its first round.
        """
        state = random.seed_state(sequence)
        keys = np.array([random.uniform(state) for _ in range(len(self.sets))])
        order = np.argsort(keys, kind="stable")
        flat = self.sets[order].reshape(-1, self.problem.dim)
        arrays = _static(flat, np.zeros(self.problem.dim), SIGNS)
        return World(
            arrays._replace(
                kind=arms.RECORDED,
                n_actions=self.n_actions,
                means=self.means[order].reshape(-1),
                best=self.best[order].copy(),
                next_start=np.zeros(1, np.int64),
            ),
            state,
        )


@dataclass(frozen=True, kw_only=True)
class Drifting:
    """Another environment whose true parameter changes: at once, or slowly for ever.

    Regret is counted against what is best in each round. Until the first change the world is, with
    the same seed, what it is without one.

    Attributes:
        world: the environment that drifts.
        flip: the parameter changes its sign after so many rounds, once.
        turn: the parameter turns in a plane through it, a full turn in so many rounds. In worlds
            that draw their decision sets it moves on whenever some are drawn, every few rounds.
    """

    world: Environment
    flip: int | None = None
    turn: int | None = None

    def __post_init__(self) -> None:
        """Check that there is one change, and that it can be made."""
        if (self.flip is None) == (self.turn is None):
            raise ParameterError("flip", "or turn must be given, and not both")
        if self.flip is not None:
            object.__setattr__(self, "flip", checks.count("flip", self.flip, least=0))
            return
        object.__setattr__(self, "turn", checks.count("turn", self.turn))
        if self.problem.dim < 2:
            raise ParameterError("turn", "needs a world of at least 2 features to turn in")

    @property
    def problem(self) -> Problem:
        """The bounds of the environment that drifts: they hold all the time."""
        return self.world.problem

    @property
    def n_actions(self) -> int:
        """K, the size of every decision set."""
        return self.world.n_actions

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world of the environment, before its parameter has moved.

        Args:
            sequence: the seed of everything random in it.

        Returns:
            The world, before its first round.
        """
        world = self.world.start(sequence)
        theta, turn = world.arrays.theta, np.zeros(1, np.int64)
        if self.turn is None:
            drift = arms.Drift(arms.FLIP, self.flip or 0, 0.0, np.empty((0, 0)), turn)
            return World(world.arrays._replace(drift=drift), world.state)
        # A stream of its own, so that all else is as in the world that stands still.
        own = np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, 0))
        aside = _unit_rows(random.seed_state(own), 1, theta.size)[0]
        aside -= (aside @ theta) / (theta @ theta) * theta
        plane = np.array([theta, aside / np.linalg.norm(aside) * np.linalg.norm(theta)])
        drift = arms.Drift(arms.TURN, 0, 2 * math.pi / self.turn, plane, turn)
        return World(world.arrays._replace(drift=drift), world.state)


class _Learner(Protocol):
    """What the plain loop needs of a learner."""

    def choose(self, actions: ArrayLike) -> "_Chosen":
        """Pick an action."""

    def learn(self, decision: "_Chosen", reward: float) -> None:
        """Take in its reward."""


class _Chosen(Protocol):
    """A decision, as far as a world cares."""

    @property
    def index(self) -> int:
        """Its place in the decision set."""


def play(learner: _Learner, world: World, *, rounds: int) -> _F64:
    """The plain loop: choose, pull, learn.

    Args:
        learner: anything with ``choose(actions)`` and ``learn(decision, reward)``, as `LinUCB` has.
        world: where it plays; it goes on from its current round.
        rounds: how many.

    Returns:
        The pseudo-regret of each round, shape (rounds,).
    """
    regrets = np.empty(rounds)
    for turn in range(rounds):
        decision = learner.choose(world.decision_set())
        reward, regrets[turn] = world.pull(decision.index)
        learner.learn(decision, reward)
    return regrets


def _unit_problem(dim: int, rewards: Rewards, theta_norm: float = 1.0) -> Problem:
    return Problem(
        dim=dim,
        action_norm=1.0,
        reward_bound=rewards.bound,
        theta_norm=theta_norm,
        mean_reward_bound=1.0,
        reward_subgaussian=rewards.subgaussian,
    )


def _unit_rows(state: NDArray[np.uint64], count: int, dim: int) -> _F64:
    rows = np.empty((count, dim))
    random.fill_normals(state, rows.reshape(-1))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _static(actions: _F64, theta: _F64, rewards: Rewards) -> WorldArrays:
    means = actions @ theta
    return WorldArrays(
        kind=arms.SAME,
        n_actions=len(actions),
        theta=theta,
        band=arms.NO_BAND,
        groups=arms.NO_GROUPS,
        actions=np.ascontiguousarray(actions.T),
        means=means,
        best=means.max(keepdims=True),
        next_start=np.zeros(1, dtype=np.int64),
        reward_std=rewards.std,
        reward_bound=rewards.bound,
        drift=arms.NO_DRIFT,
    )


def _redrawn(n_actions: int, theta: _F64, rewards: Rewards) -> WorldArrays:
    """Room for batches of decision sets, none of which is drawn yet."""
    sets = max(1, _BATCHED_ACTIONS // n_actions)
    return _static(np.zeros((sets * n_actions, theta.size)), theta, rewards)._replace(
        n_actions=n_actions, best=np.zeros(sets), next_start=np.array([sets * n_actions])
    )
