"""What all linear baselines share: a rule as data, and a learner that follows it."""

import os
import threading
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.baselines._whole import copied
from discreet.errors import (
    EmptyDecisionSetError,
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
    UnknownDecisionError,
    WrongProcessError,
)
from discreet.mechanism.noise.sources import NoiseSource, SystemNoise
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem
from discreet.simulation.environments import World

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

ROWS, REWARDS = "rows", "rewards"  # what is protected
CENTRAL, LOCAL, SHUFFLE = "central", "local", "shuffle"  # who is trusted
_ROOM = 1e-9  # by how much an action may be beyond its bound
MARGIN = 1 + 2e-5  # what noise is multiplied by to make up for that, and for rounding to a grid


class LinearSteps(Protocol):
    """A learner's memory and its compiled steps. Everything random is handed in."""

    @property
    def released(self) -> F64:
        """The noisy statistics that choices are made from: safe to show under the guarantee."""

    def normals_to_choose(self) -> int:
        """How many standard normals the next choice takes."""

    def choose(self, actions: F64, normals: F64) -> int:
        """The place of the action to take. Shapes: actions (K, d), normals as many as are needed.

        Raises:
            ParameterError: if the rule is for one decision set and this is another.
        """

    def stock(self) -> int:
        """How many standard normals have to be handed in before the next row; 0 for none."""

    def refill(self, normals: F64) -> None:
        """Take in the standard normals that `stock` asked for."""

    def learn(self, action: F64, reward: float) -> None:
        """Take in a row. Shape: action (d,)."""


class PlayableRule(Protocol):
    """What a simulation needs of a rule."""

    @property
    def problem(self) -> Problem:
        """The stated bounds."""

    @property
    def horizon(self) -> int:
        """The most rounds there will be."""

    @property
    def protects(self) -> str:
        """'rows': decision sets and rewards; 'rewards': decision sets and actions are public."""

    @property
    def trust(self) -> str:
        """Who sees raw rows: 'central', a curator; 'shuffle', nobody, but messages are mixed."""

    @property
    def guarantee(self) -> Guarantee:
        """What holds if the noise is secret."""

    def play(
        self,
        world: World,
        noise_state: U64,
        policy_state: U64,
        checkpoints: I64,
        regrets: F64,
    ) -> None:
        """Play to the last checkpoint with a new learner.

        Args:
            world: where; moved on.
            noise_state: state of the generator of the noise; moved on.
            policy_state: state of the generator of the policy's draws; moved on.
            checkpoints: rounds at which the regret is recorded, growing, shape (C,).
            regrets: filled with the pseudo-regret so far, shape (C,).

        Raises:
            ParameterError: if the rule cannot be played in this world.
        """


class LinearRule(PlayableRule, Protocol):
    """A linear bandit algorithm with its settings, as data."""

    @property
    def privacy(self) -> Privacy:
        """The target."""

    def steps(self) -> LinearSteps:
        """A learner's memory before its first row."""


@dataclass(frozen=True, kw_only=True)
class LinearDecision:
    """What to do in one round.

    Attributes:
        index: the action's place in the decision set.
        round: which round it is, from 0.
    """

    index: int
    round: int


def checked_target(privacy: object, protects: str) -> Privacy:
    """A target of the kind that a linear baseline is calibrated for.

    Args:
        privacy: the target.
        protects: what the baseline protects.

    Returns:
        The same.

    Raises:
        ParameterError: if it is none, asks for another kind of protection, or for more than
            replacement in one round.
    """
    if not isinstance(privacy, Privacy):
        raise ParameterError("privacy", "is missing; give Privacy(epsilon=..., delta=...)")
    if privacy.protects != protects:
        raise ParameterError(
            "privacy",
            f"asks to protect {privacy.protects}, and this baseline protects {protects}; give "
            f"Privacy(..., protects={protects!r}) or use another baseline",
        )
    if privacy.contributions_per_user != 1 or privacy.neighbours != "replacement":
        raise ParameterError(
            "privacy",
            "asks for more than replacement of one round, which baselines are not calibrated for; "
            "use LinUCB",
        )
    return privacy


class _Held(NamedTuple):
    """What a learner holds: replaced as a whole, so that an interrupt finds all of it or none."""

    steps: LinearSteps
    rounds: int = 0
    last: tuple[LinearDecision, F64] | None = None  # the decision that waits for its reward


class LinearLearner:
    """Choose an action, see its reward, learn it; one round after the other.

    It follows a rule of `LINEAR_BASELINES` with the compiled steps that simulations use. Noise and
    rows are rounded to a grid, so that no sum is ever rounded. Calls from several threads are safe.
    Copies are refused, and so is use in a forked process: either would show the same noise on other
    data. After any error or interrupt the learner is as before: a call changes a copy of what is
    held, which then takes its place.

    Args:
        rule: what to follow.
        noise_source: for tests only. Noise comes from the operating system otherwise; with a seeded
            source the guarantee is void and says so.
        policy_source: for tests only: where the draws of a randomised choice come from. They
            protect nobody.
    """

    def __init__(
        self,
        rule: LinearRule,
        *,
        noise_source: NoiseSource | None = None,
        policy_source: NoiseSource | None = None,
    ) -> None:
        """Start with nothing learned."""
        self._rule = rule
        self._source: NoiseSource = SystemNoise() if noise_source is None else noise_source
        self._draws: NoiseSource = SystemNoise() if policy_source is None else policy_source
        self._held = _Held(steps=self._refilled(rule.steps()))
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def rule(self) -> LinearRule:
        """What it follows."""
        return self._rule

    @property
    def rounds(self) -> int:
        """How many rewards have been learned."""
        return self._held.rounds

    @property
    def released(self) -> F64:
        """The noisy statistics that choices are made from: safe to show under the guarantee."""
        return self._held.steps.released.copy()

    @property
    def guarantee(self) -> Guarantee:
        """What is promised; prints as a sentence."""
        found = self._rule.guarantee
        if not self._source.secret:
            return found.voided("its noise comes from a seed and can be repeated")
        return found

    def choose(self, actions: ArrayLike) -> LinearDecision:
        """The action for this person. Asking again before the reward is learned asks anew.

        Args:
            actions: the decision set, one action a row, shape (K, d).

        Returns:
            The decision, to act on and to learn from.

        Raises:
            ShapeError: if it is no matrix with d columns.
            NotFiniteError: if an entry is no finite number.
            OutOfBoundsError: if an action is longer than the problem's ``action_norm``.
            ParameterError: if the rule is for one decision set and this is another.
            HorizonReachedError: if all rounds have been played.
            WrongProcessError: in a process other than the one that made the learner.
        """
        found = _checked_actions(actions, self._rule.problem)
        with self._lock:
            self._admit()
            steps, rounds = copied(self._held.steps), self._held.rounds
            count = steps.normals_to_choose()
            normals = self._draws.normals(count) if count else np.empty(0)
            index = steps.choose(found, normals)
            decision = LinearDecision(index=index, round=rounds)
            self._held = _Held(steps, rounds, (decision, found[index].copy()))
            return decision

    def learn(self, decision: LinearDecision, reward: float) -> None:
        """Take in the reward of the last decision.

        Args:
            decision: what `choose` returned last.
            reward: within ``reward_bound`` of the problem's centre.

        Raises:
            UnknownDecisionError: if it is not the last decision, or learned already.
            NotFiniteError: if the reward is no finite number.
            OutOfBoundsError: if it is out of bounds.
            WrongProcessError: in a process other than the one that made the learner.
        """
        with self._lock:
            self._admit()
            last = self._held.last
            if last is None or decision != last[0]:
                raise UnknownDecisionError(
                    "decision", "is not the one that `choose` returned last; pass that, once"
                )
            distance = _checked_reward(reward, self._rule.problem)
            steps = self._refilled(copied(self._held.steps))
            steps.learn(last[1], distance)
            self._held = _Held(steps, self._held.rounds + 1)

    def _refilled(self, steps: LinearSteps) -> LinearSteps:
        """The same, with as much noise in stock as the next row may need."""
        count = steps.stock()
        if count:
            steps.refill(np.ascontiguousarray(self._source.normals(count)))
        return steps

    def _admit(self) -> None:
        if os.getpid() != self._process:
            raise WrongProcessError(
                "process",
                "is not the one this learner was made in; a fork would show the same noise on "
                "other data, so keep the learner in one process",
            )
        if self._held.rounds >= self._rule.horizon:
            raise HorizonReachedError(
                "horizon",
                f"all {self._rule.horizon} rounds have been played; the guarantee covers no more, "
                "so start a new learner with a longer horizon",
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a learner cannot be copied or pickled: both would show the same noise")


def _checked_actions(actions: ArrayLike, problem: Problem) -> F64:
    """A decision set within the bounds. The message never holds an action."""
    try:
        found = np.array(actions, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError("actions", "is no matrix of numbers; give one action a row") from None
    if found.ndim != 2 or found.shape[1] != problem.dim:
        raise ShapeError("actions", f"must have one action a row, of {problem.dim} features each")
    if len(found) == 0:
        raise EmptyDecisionSetError("actions", "is empty; give at least one action")
    if not np.isfinite(found).all():
        raise NotFiniteError("actions", "has an entry that is not finite; give finite numbers")
    if np.linalg.norm(found, axis=1).max() > problem.action_norm * (1 + _ROOM):
        raise OutOfBoundsError(
            "actions", f"has one longer than action_norm={problem.action_norm:g}; scale actions"
        )
    return found


def _checked_reward(reward: object, problem: Problem) -> float:
    """How far a reward is from the centre. The message never holds the reward."""
    try:
        number = float(reward)  # type: ignore[arg-type]  # that is what is tried
    except (TypeError, ValueError):
        raise NotFiniteError("reward", "is not a number; give one") from None
    if not np.isfinite(number):
        raise NotFiniteError("reward", "is not finite; give a finite number")
    distance = number - problem.reward_centre
    if abs(distance) > problem.reward_bound:
        raise OutOfBoundsError(
            "reward", f"is more than reward_bound={problem.reward_bound:g} from the centre"
        )
    return distance
