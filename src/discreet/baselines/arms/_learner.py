"""What all multi-armed learners share: the order of calls, the checks, and the honest guarantee."""

import os
import threading
from dataclasses import dataclass
from typing import ClassVar, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.baselines._whole import copied
from discreet.errors import (
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    UnknownDecisionError,
    WrongProcessError,
)
from discreet.kernels._pulls import GRID
from discreet.mechanism.noise.sources import NoiseSource, SystemNoise
from discreet.privacy import Guarantee

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


class ArmRule(Protocol):
    """An algorithm with its settings, as data: what a learner follows and a simulation plays."""

    @property
    def n_arms(self) -> int:
        """How many arms there are."""

    @property
    def horizon(self) -> int:
        """The most pulls there will be."""

    @property
    def guarantee(self) -> Guarantee:
        """What holds if the noise is secret."""

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


def _checked_sizes(n_arms: object, horizon: object) -> tuple[int, int]:
    """At least two arms, and a pull for each of them."""
    arms = checks.count("n_arms", n_arms, least=2)
    rounds = checks.count("horizon", horizon, least=arms)
    checks.within("horizon", rounds, 1, 2**62)
    return arms, rounds


def checked_epsilon(epsilon: object) -> float:
    """A positive number that can be computed with."""
    return checks.within("epsilon", checks.positive("epsilon", epsilon), 1e-6, 1e12)


@dataclass(frozen=True, kw_only=True)
class ArmSettings:
    """What every multi-armed rule is told, checked. A subclass adds the algorithm.

    Attributes:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
        epsilon: the privacy target; None for none, where the subclass allows that.
    """

    n_arms: int
    horizon: int
    epsilon: float | None

    no_noise: ClassVar[str] = "this rule adds no noise"

    def __post_init__(self) -> None:
        """Check the sizes and the target."""
        n_arms, horizon = _checked_sizes(self.n_arms, self.horizon)
        object.__setattr__(self, "n_arms", n_arms)
        object.__setattr__(self, "horizon", horizon)
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """Pure differential privacy of all arms ever named, for one person's reward, or nothing."""
        if self.epsilon is None:
            return Guarantee.nothing(self.no_noise)
        return Guarantee(
            epsilon=self.epsilon, delta=0.0, argument=self._why(), record="reward", joint=False
        )

    def _why(self) -> str:
        """Why the guarantee holds."""
        raise NotImplementedError


class ArmLearner:
    """Choose an arm, see its reward, learn it; one pull after the other.

    Calls from several threads are safe. Copies are refused, and so is use in a forked process:
    either would show the same noise on other data. After any error or interrupt the learner is as
    before: a call changes a copy, which then takes its place.
    """

    def __init__(self, rule: ArmRule, noise_source: NoiseSource | None) -> None:
        """Take noise from the operating system unless a test says otherwise."""
        self._rule = rule
        self._source: NoiseSource = SystemNoise() if noise_source is None else noise_source
        self._rounds = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self._rule.n_arms

    @property
    def horizon(self) -> int:
        """The most pulls there will be."""
        return self._rule.horizon

    @property
    def rounds(self) -> int:
        """How many rewards have been learned."""
        return self._rounds

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about all the arms that this learner names; prints as a sentence."""
        promise = self._rule.guarantee
        if promise.private and not self._source.secret:
            return promise.voided("its noise comes from a seed and can be repeated")
        return promise

    @property
    def released_means(self) -> F64:
        """The means that arms are named from, shape (n_arms,); NaN where there is none yet.

        They are as safe to show as the arms are: the guarantee covers all of them together.
        """
        raise NotImplementedError

    def choose(self) -> int:
        """The arm to pull now. Asking again before the reward is learned gives the same arm.

        Returns:
            The number of the arm, from 0.

        Raises:
            HorizonReachedError: if all rounds have been played.
            WrongProcessError: in a process other than the one that made the learner.
        """
        with self._lock:
            trial = copied(self)
            chosen = trial._admitted()  # noqa: SLF001  # a copy of this learner
            self.__dict__ = trial.__dict__
            return chosen

    def learn(self, arm: int, reward: float) -> None:
        """Take in the reward of the arm that `choose` names.

        Args:
            arm: that arm.
            reward: a number from -1 to 1. It is rounded to a multiple of 2^-20, as the noise is.

        Raises:
            UnknownDecisionError: if it is another arm.
            NotFiniteError: if the reward is no finite number.
            OutOfBoundsError: if it is outside [-1, 1].
            HorizonReachedError: if all rounds have been played.
            WrongProcessError: in a process other than the one that made the learner.
        """
        with self._lock:
            trial = copied(self)
            chosen = trial._admitted()  # noqa: SLF001  # a copy of this learner
            if isinstance(arm, bool) or arm != chosen:
                raise UnknownDecisionError("arm", "is not the one that `choose` names; pass that")
            trial._take(chosen, _checked_reward(reward))  # noqa: SLF001  # the same
            trial._rounds += 1  # noqa: SLF001  # the same
            self.__dict__ = trial.__dict__  # at once: an interrupt comes before it, or after it

    def _admitted(self) -> int:
        if os.getpid() != self._process:
            raise WrongProcessError(
                "process",
                "is not the one this learner was made in; a fork would show the same noise on "
                "other data, so keep the learner in one process",
            )
        if self._rounds >= self.horizon:
            raise HorizonReachedError(
                "horizon",
                f"all {self.horizon} rounds have been played; the guarantee covers no more, so "
                "start a new learner with a longer horizon",
            )
        return self._chosen()

    def _chosen(self) -> int:
        raise NotImplementedError

    def _take(self, arm: int, reward: float) -> None:
        raise NotImplementedError

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError("a learner cannot be copied or pickled: both would show the same noise")


def _checked_reward(reward: object) -> float:
    """A number in [-1, 1], rounded to the grid of the noise. The message never holds the reward."""
    try:
        number = float(reward)  # type: ignore[arg-type]  # that is what is tried
    except (TypeError, ValueError):
        raise NotFiniteError("reward", "is not a number; give one from -1 to 1") from None
    if not np.isfinite(number):
        raise NotFiniteError("reward", "is not finite; give a number from -1 to 1")
    if not -1.0 <= number <= 1.0:
        raise OutOfBoundsError("reward", "is outside [-1, 1]; scale rewards before learning them")
    return round(number / GRID) * GRID
