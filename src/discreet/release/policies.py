"""From a release and a decision set to an action. A policy has no memory.

Whatever a policy does is post-processing of the release as far as earlier people are concerned;
only the current person's own decision set enters besides. What a policy draws is public
randomness: it needs no secrecy and protects nobody.
"""

import math
import os
import random
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.kernels import _posterior as kernel
from discreet.mechanism import Mechanism
from discreet.mechanism._cost import HasTwoScales
from discreet.mechanism._windows import Windows
from discreet.release._release import Release

__all__ = ["UCB", "Choice", "Policy", "PosteriorUCB", "Thompson", "greedy", "settled", "usual"]

_F64 = NDArray[np.float64]
_coin = random.SystemRandom().random  # public randomness, but nobody else's to seed
# Deviations and growth. The less noise moves estimates by itself, the more optimism is needed.
_WITHOUT_NOISE, _LITTLE_NOISE, _NOISE = (0.5, 1.6), (0.75, 1.2), (0.75, 0.8)
_LITTLE = 2.5  # noise of one release, in multiples of the largest reward times the longest action


class Choice(NamedTuple):
    """An action, and how probable it was.

    Attributes:
        index: its place in the decision set.
        probability: with which the rule chooses it, given the release and the set; None if the
            rule does not say.
    """

    index: int  # type: ignore[assignment]  # also the name of a method of tuples
    probability: float | None = None


@runtime_checkable
class Policy(Protocol):
    """A rule that turns a release and a decision set into a choice."""

    def choose(self, release: Release, actions: _F64) -> Choice | int:
        """Choose one action of a decision set.

        It may depend on nothing but its arguments and randomness of its own: keep neither argument,
        and remember nothing between calls. That is what makes choices post-processing of releases.

        Args:
            release: what has been learned so far; public. `Release` has the noisy sums, and what
                they say: ``release.posterior`` and ``release.confidence``.
            actions: the actions on offer, shape (K, d), an action a row; read-only. They are the
                current person's own: private to everybody else.

        Returns:
            A `Choice`, or the index of an action alone, from 0 to K - 1, if the policy cannot say
            how probable it was.
        """


@dataclass(frozen=True, kw_only=True)
class PosteriorUCB:
    """The default: the likeliest action with some optimism, and some variety.

    Each action is scored by its posterior mean plus ``deviations`` posterior deviations, after
    the mean was tilted a little in a direction drawn at random; the highest score wins. Tilts are
    as wide as what is not known yet, so people who are served from the same release do not all
    get the same action while that may be a mistake, and in the end they do. Before the first
    release, and if a release cannot tell actions apart, all actions are equally probable.

    Attributes:
        deviations: how many posterior deviations are added to an estimate; None for what suits the
            noise, which is 0.75, or 0.5 without any.
        growth: how many more for each unit of sqrt(ln(rows) / d), so that an action that was
            unlucky early on is tried again some day; None for what suits the noise, which is 0.8,
            or 1.2 if there is little of it, or 1.6 without any.
        dither: how wide tilts are, in multiples of the prior's deviation where nothing is known.
        uniform: a share of choices that is made uniformly, so that every action is chosen now and
            then and logs can be evaluated for other policies.

    Examples:
        >>> import numpy as np
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> policy = discreet.PosteriorUCB(uniform=0.05)  # one choice in twenty at random
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy, policy=policy)
        >>> policy.probabilities(bandit.release, np.eye(2)).tolist()
        [0.5, 0.5]
    """

    _settled: ClassVar[kernel.PosteriorRule | None]  # set below, if nothing is left to the noise
    deviations: float | None = None
    growth: float | None = None
    dither: float = kernel.DITHER
    uniform: float = 0.0

    def __post_init__(self) -> None:
        """Check the factors."""
        for name in ("deviations", "growth", "dither", "uniform"):
            if getattr(self, name) is not None or name in {"dither", "uniform"}:
                object.__setattr__(self, name, checks.at_least(name, getattr(self, name), 0.0))
        checks.within("uniform", self.uniform, 0.0, 1.0)
        known = None
        if self.deviations is not None and self.growth is not None:
            known = kernel.PosteriorRule(self.deviations, self.growth, self.dither, self.uniform)
        object.__setattr__(self, "_settled", known)

    def numbers(self, mechanism: Mechanism) -> kernel.PosteriorRule:
        """What is played with releases of this mechanism.

        Args:
            mechanism: the noise of releases.

        Returns:
            The four numbers, with those that suit the noise for those that are None.
        """
        if self._settled is not None:
            return self._settled
        deviations, growth = _suitable(mechanism)
        return kernel.PosteriorRule(
            deviations if self.deviations is None else self.deviations,
            growth if self.growth is None else self.growth,
            self.dither,
            self.uniform,
        )

    def probabilities(self, release: Release, actions: _F64) -> _F64:
        """How probable each action is, exactly: (K,) for a set, (n, K) for n sets (n, K, d).

        Args:
            release: what the choice is made from.
            actions: one decision set, shape (K, d), or several of one size, (n, K, d).

        Returns:
            Probabilities that add up to 1 in each set.
        """
        if actions.ndim == 3:
            return release.posterior.probabilities(actions, self.numbers(release.mechanism))
        found = np.empty(len(actions))
        offered = np.ascontiguousarray(actions, dtype=np.float64)
        release.posterior.drawn(offered, self.numbers(release.mechanism), 0.0, found)
        return found

    def choose(self, release: Release, actions: _F64) -> Choice:
        """Draw an action with these probabilities.

        Args:
            release: what the choice is made from.
            actions: the decision set, shape (K, d).

        Returns:
            Its place and its probability.
        """
        found = np.empty(len(actions))
        coin = _coin()
        numbers = self._settled or self.numbers(release.mechanism)
        index = release.posterior.drawn(actions, numbers, coin, found)
        return Choice(index, found.item(index))

    def choose_each(self, release: Release, sets: _F64) -> list[Choice]:
        """The same for decision sets of one size, shape (n, K, d), in a fraction of the time.

        Args:
            release: what the choice is made from.
            sets: the decision sets, shape (n, K, d).

        Returns:
            A choice for each set, in order.
        """
        found = self.probabilities(release, sets)
        bits = np.frombuffer(os.urandom(8 * len(sets)), dtype=np.uint64) >> np.uint64(11)
        coins = bits * 2.0**-53  # as `_coin` does it
        before = np.cumsum(found, axis=1)[:, :-1]  # how probable all actions before one are
        reached = found > 0.0
        reached[:, 1:] &= before <= coins[:, None]
        last = reached.shape[1] - 1 - reached[:, ::-1].argmax(axis=1)
        chances = np.take_along_axis(found, last[:, None], axis=1)[:, 0]
        return [*map(Choice, last.tolist(), chances.tolist())]


@dataclass(frozen=True, kw_only=True)
class UCB:
    """The action with the largest upper confidence bound. Paper: alg:linucb.

    That is theta.x + optimism * beta_t * ||x||_{V^-1} with the paper's ellipsoid. With
    ``optimism`` 1 the confidence statements, and with the paper's variants and `tight` the regret
    theorems, apply; 0 is the greedy rule.

    Attributes:
        optimism: the multiple of the confidence radius that is used.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> bandit = discreet.LinUCB(
        ...     problem, horizon=1_000, privacy=None, variant="nonprivate", policy=discreet.UCB()
        ... )
        >>> bandit.learn(bandit.choose([[1.0, 0.0]]), reward=0.0)
        >>> bandit.choose([[1.0, 0.0], [0.0, 1.0]]).index  # the action that was not tried yet
        1
    """

    optimism: float = 1.0

    def __post_init__(self) -> None:
        """Check the factor."""
        checks.at_least("optimism", self.optimism, 0.0)

    def probabilities(self, release: Release, actions: _F64) -> _F64:
        """One for the action that is chosen, shape (K,).

        Args:
            release: what the choice is made from.
            actions: the decision set, shape (K, d).

        Returns:
            1 for the action that is chosen and 0 for the others.
        """
        found = np.zeros(len(actions))
        found[release.confidence.best(actions, self.optimism)] = 1.0
        return found

    def choose(self, release: Release, actions: _F64) -> Choice:
        """The first action with the largest upper confidence bound.

        Args:
            release: what the choice is made from.
            actions: the decision set, shape (K, d).

        Returns:
            Its place, and the probability 1.
        """
        return Choice(release.confidence.best(actions, self.optimism), 1.0)


@dataclass(frozen=True, kw_only=True)
class Thompson:
    """The best action for one draw from a normal distribution as wide as the confidence set.

    With the paper's ellipsoid that is N(theta~, (optimism * beta_t)^2 V^-1). How probable a choice
    is, it does not say.

    Attributes:
        optimism: how much wider than the confidence set the draw is.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(
        ...     problem, horizon=1_000, privacy=privacy, policy=discreet.Thompson()
        ... )
        >>> bandit.choose([[1.0, 0.0], [0.0, 1.0]]).probability is None
        True
    """

    optimism: float = 1.0

    def __post_init__(self) -> None:
        """Check the factor."""
        checks.at_least("optimism", self.optimism, 0.0)

    def choose(self, release: Release, actions: _F64) -> Choice:
        """The first best action for the drawn parameter.

        Args:
            release: what the choice is made from.
            actions: the decision set, shape (K, d).

        Returns:
            Its place; its probability is not known.
        """
        region = release.confidence
        normals = np.random.default_rng().standard_normal(region.centre.size)
        return Choice(region.best_of_a_draw(actions, self.optimism, normals))


_Rule = PosteriorUCB | UCB | Thompson  # those that can be stored, and simulated
RULES: dict[str, type[_Rule]] = {
    "posterior": PosteriorUCB,
    "ucb": UCB,
    "thompson": Thompson,
}


def to_json(policy: Policy) -> dict[str, Any] | None:
    """A policy as plain data; None for one of your own."""
    for name, rule in RULES.items():
        if type(policy) is rule:
            return {"rule": name, **asdict(policy)}
    return None


def from_json(entry: dict[str, Any] | None) -> Policy | None:
    """The policy of an entry; KeyError, TypeError or ValueError if there is none such."""
    if entry is None:
        return None
    factors = dict(entry)
    return RULES[factors.pop("rule")](**factors)


def greedy() -> UCB:
    """The rule that trusts the centre of the confidence set.

    Examples:
        >>> import discreet
        >>> discreet.greedy() == discreet.UCB(optimism=0)
        True
    """
    return UCB(optimism=0.0)


@overload
def settled(policy: _Rule | None, mechanism: Mechanism) -> _Rule: ...


@overload
def settled(policy: Policy | None, mechanism: Mechanism) -> Policy: ...


def settled(policy: Policy | None, mechanism: Mechanism) -> Policy:
    """The policy that a learner with this mechanism plays by, with all its numbers.

    Args:
        policy: what was asked for; None for the mechanism's own.
        mechanism: the noise of releases.

    Returns:
        The policy. What a `PosteriorUCB` leaves to the noise is filled in, so that it stays as it
        is wherever it is stored.
    """
    asked = RULES[mechanism.policy]() if policy is None else policy
    if not isinstance(asked, PosteriorUCB):
        return asked
    return replace(asked, **asked.numbers(mechanism)._asdict())


def usual(mechanism: Mechanism) -> _Rule:
    """The policy that a learner with this mechanism plays by unless another is given."""
    return settled(None, mechanism)


def _suitable(mechanism: Mechanism) -> tuple[float, float]:
    """Deviations and growth for this noise.

    The noise of releases moves estimates, and so gives actions another chance that were unlucky.
    The less of it there is, the more optimism is needed instead (docs/estimate.md).
    """
    if mechanism.strategy is None:
        return _WITHOUT_NOISE
    return _LITTLE_NOISE if _noise_of(mechanism) < _LITTLE else _NOISE


def _noise_of(mechanism: Mechanism) -> float:
    """The deviation of one draw's noise, for parameters of the stated norm, in the rows' unit."""
    noise: object = mechanism.noise
    problem = mechanism.setting.problem
    if not isinstance(noise, HasTwoScales):
        return math.inf
    square = Windows.draw_variance(problem, gram_std=noise.std, moment_std=noise.moment_std)
    return math.sqrt(square) / (problem.action_norm * problem.reward_bound)
