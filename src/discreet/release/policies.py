"""From a release and a decision set to an action. A policy has no memory.

Whatever a policy does is post-processing of the release as far as earlier people are concerned;
only the current person's own decision set enters besides.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.release.confidence import Region

__all__ = ["UCB", "Policy", "Thompson", "greedy"]

_F64 = NDArray[np.float64]


@runtime_checkable
class Policy(Protocol):
    """A rule that turns a confidence set and a decision set into a choice."""

    @property
    def optimism(self) -> float:
        """The multiple of the confidence radius that is used."""

    @property
    def sampling(self) -> bool:
        """Whether the rule draws a parameter instead of adding a bonus."""

    def choose(self, region: Region, actions: _F64) -> int:
        """The index of one of the K actions, given as rows, shape (K, d)."""


@dataclass(frozen=True, kw_only=True)
class UCB:
    """The action with the largest upper confidence bound. Paper: alg:linucb.

    That is theta.x + optimism * beta_t * ||x||_{V^-1} with the paper's ellipsoid. With
    ``optimism`` 1 the confidence statements, and with the paper's variants the regret theorems,
    apply; 0 is the greedy rule.
    """

    optimism: float = 1.0
    sampling = False

    def __post_init__(self) -> None:
        """Check the factor."""
        checks.at_least("optimism", self.optimism, 0.0)

    def choose(self, region: Region, actions: _F64) -> int:
        """The first action with the largest upper confidence bound."""
        return region.best(actions, self.optimism)


@dataclass(frozen=True, kw_only=True)
class Thompson:
    """The best action for one draw from a normal distribution as wide as the confidence set.

    With the paper's ellipsoid that is N(theta~, (optimism * beta_t)^2 V^-1).

    The draw is public randomness: it needs no secrecy and protects nobody.
    """

    optimism: float = 1.0
    sampling = True

    def __post_init__(self) -> None:
        """Check the factor."""
        checks.at_least("optimism", self.optimism, 0.0)

    def choose(self, region: Region, actions: _F64) -> int:
        """The first best action for the drawn parameter."""
        normals = np.random.default_rng().standard_normal(region.centre.size)
        return region.best_of_a_draw(actions, self.optimism, normals)


RULES: dict[str, type[UCB] | type[Thompson]] = {"ucb": UCB, "thompson": Thompson}


def to_json(policy: Policy) -> dict[str, Any] | None:
    """A policy as plain data; None for one of your own."""
    for name, rule in RULES.items():
        if type(policy) is rule:
            return {"rule": name, "optimism": policy.optimism}
    return None


def from_json(entry: dict[str, Any] | None) -> Policy | None:
    """The policy of an entry; KeyError, TypeError or ValueError if there is none such."""
    return None if entry is None else RULES[entry["rule"]](optimism=entry["optimism"])


def greedy() -> UCB:
    """The rule that trusts the estimate."""
    return UCB(optimism=0.0)
