"""The bounds that a user states about a problem and its horizon. No data, no privacy parameters."""

import math
import re
from dataclasses import dataclass
from typing import Self

import numpy as np

from discreet import _checks as checks
from discreet.errors import ParameterError

_DIGEST = re.compile(r"[0-9a-f]{64}")
OPEN_HORIZON = 10**12  # room for rounds where no horizon is stated
OPEN_FAILURE_PROB = 1e-8


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
        blocks: sizes of blocks of features, if no action has features in more than one of them
            (a model of its own for each action, say). The estimate then needs no account of how
            features of different blocks go together, and is better for it. One block if left out.
        features: digest of the public feature map that makes the actions, 64 hexadecimal digits;
            None if they are made in another way.
    """

    dim: int
    action_norm: float
    reward_bound: float
    theta_norm: float
    mean_reward_bound: float = None  # type: ignore[assignment]  # derived below if left out
    reward_subgaussian: float = None  # type: ignore[assignment]
    blocks: tuple[int, ...] = None  # type: ignore[assignment]
    features: str | None = None

    def __post_init__(self) -> None:
        """Check every bound and derive those that were left out."""
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
        given: object = self.blocks
        sizes = (self.dim,) if given is None else given
        sizes = sizes.tolist() if isinstance(sizes, np.ndarray) else sizes
        if not isinstance(sizes, tuple | list) or not sizes:
            raise ParameterError("blocks", "must be a list of sizes, such as [6, 6, 6]")
        fix(self, "blocks", tuple(checks.count("blocks", size) for size in sizes))
        if sum(self.blocks) != self.dim:
            raise ParameterError(
                "blocks", f"sum up to {sum(self.blocks)}; give sizes that sum up to dim={self.dim}"
            )
        if self.features is not None and not (
            isinstance(self.features, str) and _DIGEST.fullmatch(self.features)
        ):
            raise ParameterError(
                "features", "must be the digest of a feature map, 64 hexadecimal digits, or None"
            )

    @property
    def row_norm(self) -> float:
        """L~ = sqrt(L^2 + B~^2), the bound on the norm of a row (action, reward)."""
        return math.hypot(self.action_norm, self.reward_bound)


def tree_depth(horizon: int) -> int:
    """The nodes on a path from root to leaf, m = 1 + ceil(log2 n). Paper: sec:alg-dp."""
    return 1 + (horizon - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What every calibration and every bound depends on, besides the privacy target.

    Attributes:
        problem: the stated bounds.
        horizon: n, the most rounds that will be played.
        failure_prob: alpha, for all confidence statements together; 1/n unless given.
    """

    problem: Problem
    horizon: int
    failure_prob: float = None  # type: ignore[assignment]  # 1/n if left out

    def __post_init__(self) -> None:
        """Check the numbers and fill in the paper's choice of alpha."""
        fix = object.__setattr__
        fix(self, "horizon", checks.count("horizon", self.horizon))
        checks.within("horizon", self.horizon, 1, 10**150)
        given: float | None = self.failure_prob
        alpha = 1 / max(2, self.horizon) if given is None else given
        checks.within("failure_prob", checks.probability("failure_prob", alpha), 1e-200, 1.0)
        fix(self, "failure_prob", float(alpha))

    @classmethod
    def over(
        cls,
        problem: Problem,
        horizon: int | None,
        failure_prob: float | None = None,
        *,
        open_ended: bool = True,
    ) -> Self:
        """A setting, also without a horizon, where a variant allows that."""
        if horizon is not None:
            return cls(problem=problem, horizon=horizon, failure_prob=failure_prob)  # type: ignore[arg-type]
        if not open_ended:
            raise ParameterError(
                "horizon", "is None, but this variant is made for a known one; give a number"
            )
        alpha = OPEN_FAILURE_PROB if failure_prob is None else failure_prob
        return cls(problem=problem, horizon=OPEN_HORIZON, failure_prob=alpha)

    def log_tail(self, factor: float) -> float:
        """What a tail bound for one round costs, ln(factor n/alpha)."""
        return math.log(factor) + math.log(self.horizon) - math.log(self.failure_prob)

    @property
    def normal_length(self) -> float:
        """A bound on the length of d standard normals, sqrt d + sqrt(2 ln(2n/alpha))."""
        return math.sqrt(self.problem.dim) + math.sqrt(2 * self.log_tail(2))

    @property
    def tree_depth(self) -> int:
        """m, the levels of a tree over all rounds."""
        return tree_depth(self.horizon)
