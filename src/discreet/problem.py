"""The bounds that a user states about a problem. No data, no privacy parameters."""

import math
from dataclasses import dataclass

from discreet import checks


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A contextual linear bandit problem, as far as it is known beforehand.

    The first four are promises that only the user can make. The last two follow from them and
    may be sharpened: a mean reward is never above the largest possible reward nor above
    ``action_norm * theta_norm`` (and the paper assumes its bound is at least 1); a reward within
    ``+-reward_bound`` is sub-Gaussian with that scale.

    Attributes:
        dim: number of features d.
        action_norm: L, a bound on the Euclidean norm of every action.
        reward_bound: B~, a bound on the absolute value of every reward.
        theta_norm: S, a bound on the norm of the unknown parameter.
        mean_reward_bound: B >= 1, a bound on the absolute value of every mean reward.
        reward_subgaussian: sigma, the sub-Gaussian scale of the reward around its mean.
    """

    dim: int
    action_norm: float
    reward_bound: float
    theta_norm: float
    mean_reward_bound: float = None  # type: ignore[assignment]  # derived below if left out
    reward_subgaussian: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Check every bound and derive the two that were left out."""
        fix = object.__setattr__
        fix(self, "dim", checks.count("dim", self.dim))
        for name in ("action_norm", "reward_bound", "theta_norm"):
            fix(self, name, checks.magnitude(name, getattr(self, name)))
        derived = {
            "mean_reward_bound": max(
                1.0, min(self.action_norm * self.theta_norm, self.reward_bound)
            ),
            "reward_subgaussian": self.reward_bound,
        }
        for name, value in derived.items():
            if getattr(self, name) is None:
                fix(self, name, value)
        mean_bound = checks.at_least("mean_reward_bound", self.mean_reward_bound, 1.0)
        fix(self, "mean_reward_bound", mean_bound)
        scale = checks.magnitude("reward_subgaussian", self.reward_subgaussian)
        fix(self, "reward_subgaussian", scale)

    @property
    def row_norm(self) -> float:
        """L~ = sqrt(L^2 + B~^2), the bound on the norm of a row (action, reward)."""
        return math.hypot(self.action_norm, self.reward_bound)
