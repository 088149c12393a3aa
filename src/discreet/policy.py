"""From a release and a decision set to an action. A policy has no memory.

Whatever a policy does is post-processing of the release as far as earlier people are concerned;
only the current person's own decision set enters besides.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet import checks
from discreet.confidence import Ellipsoid
from discreet.kernels import score

F64 = NDArray[np.float64]


@runtime_checkable
class Policy(Protocol):
    """A rule for choosing."""

    @property
    def optimism(self) -> float:
        """The multiple of the confidence radius that is used."""

    @property
    def sampling(self) -> bool:
        """Whether the rule draws a parameter instead of adding a bonus."""

    def choose(self, region: Ellipsoid, actions: F64) -> int:
        """The index of one of the K actions, given as rows, shape (K, d)."""


@dataclass(frozen=True, kw_only=True)
class UCB:
    """The action with the largest theta.x + optimism * beta_t * ||x||_{V^-1}. Paper: alg:linucb.

    With ``optimism`` 1 the regret theorems apply; 0 is the greedy rule.
    """

    optimism: float = 1.0
    sampling = False

    def __post_init__(self) -> None:
        """Check the factor."""
        checks.at_least("optimism", self.optimism, 0.0)

    def choose(self, region: Ellipsoid, actions: F64) -> int:
        """The first action with the largest upper confidence bound."""
        return _best(region, region.weights, self.optimism * region.radius, actions)


@dataclass(frozen=True, kw_only=True)
class Thompson:
    """The best action for one draw from N(theta~, (optimism * beta_t)^2 V^-1).

    The draw is public randomness: it needs no secrecy and protects nobody.
    """

    optimism: float = 1.0
    sampling = True

    def __post_init__(self) -> None:
        """Check the factor."""
        checks.at_least("optimism", self.optimism, 0.0)

    def choose(self, region: Ellipsoid, actions: F64) -> int:
        """The first best action for the drawn parameter."""
        # A draw of the parameter is a draw of its weights, with covariance D^-1 times a square.
        normals = np.random.default_rng().standard_normal(region.weights.size)
        scales = self.optimism * region.radius * np.sqrt(np.diag(region.factor))
        drawn = region.weights + scales * normals
        return _best(region, drawn, 0.0, actions)


RULES: dict[str, type[UCB] | type[Thompson]] = {"ucb": UCB, "thompson": Thompson}


def to_json(policy: Policy) -> dict[str, Any] | None:
    """A policy as plain data; None for one of your own."""
    for name, rule in RULES.items():
        if type(policy) is rule:
            return {"rule": name, "optimism": policy.optimism}
    return None


def from_json(entry: dict[str, Any] | None) -> Policy | None:
    """The policy again; KeyError, TypeError or ValueError if there is none such."""
    return None if entry is None else RULES[entry["rule"]](optimism=entry["optimism"])


def greedy() -> UCB:
    """The rule that trusts the estimate."""
    return UCB(optimism=0.0)


def _best(region: Ellipsoid, weights: F64, bonus: float, actions: F64) -> int:
    feature_major = np.array(actions.T, order="C")
    scores = np.empty(len(actions))
    return score.best(feature_major, 0, weights, region.factor, bonus, scores)
