"""The bounds that a user states about a problem and its horizon. No data, no privacy parameters."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet import _checks as checks
from discreet.errors import ParameterError

_FARTHEST = 1e6  # of a centre from 0, in multiples of the bound
_DIGEST = re.compile(r"[0-9a-f]{64}")
OPEN_HORIZON = 10**12  # room for rounds where no horizon is stated
OPEN_FAILURE_PROB = 1e-8


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A contextual linear bandit problem, as far as it is known beforehand.

    The first four are promises that only the user can make. The last two follow from them and
    may be sharpened: a mean reward is never above the largest possible reward nor above
    ``action_norm * theta_norm`` (and the paper assumes its bound is at least 1); a reward within
    ``+-reward_bound`` of the centre is sub-Gaussian with that scale.

    Attributes:
        dim: number of features d.
        action_norm: L, a bound on the Euclidean norm of every action.
        reward_bound: B~, a bound on how far every reward is from ``reward_centre``.
        theta_norm: S, a bound on the norm of the unknown parameter: how far the mean reward of an
            action of length 1 can be from the centre. ``2 reward_bound / action_norm`` is a good
            first guess, or twice that if each action has features of its own. Too small, and
            intervals need not hold; far too large, and learning starts late (docs/prospects.md has
            measurements).
        mean_reward_bound: B >= 1, a bound on the absolute value of every mean reward.
        reward_subgaussian: sigma, the sub-Gaussian scale of the reward around its mean.
        blocks: sizes of blocks of features, if no action has features in more than one of them
            (a model of its own for each action, say). The estimate then needs no account of how
            features of different blocks go together, and is better for it. One block if left out.
        reward_centre: what is taken off every reward before it is learned from, and added to
            estimates again: 0, or the middle of what rewards can be. It is public, and must not be
            worked out from data. See `between`.
        features: digest of the public feature map that makes the actions, 64 hexadecimal digits;
            None if they are made in another way.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1)
        >>> clicks = discreet.Problem.between(0, 1, dim=5, action_norm=1, theta_norm=1)
        >>> clicks.reward_bound, clicks.reward_centre
        (0.5, 0.5)
    """

    dim: int
    action_norm: float
    reward_bound: float
    theta_norm: float
    mean_reward_bound: float = None  # type: ignore[assignment]  # derived below if left out
    reward_subgaussian: float = None  # type: ignore[assignment]  # as above
    blocks: tuple[int, ...] = None  # type: ignore[assignment]  # as above
    reward_centre: float = 0.0
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
        fix(self, "reward_centre", checks.finite("reward_centre", self.reward_centre))
        if abs(self.reward_centre) > _FARTHEST * self.reward_bound:
            raise ParameterError(
                "reward_centre",
                "is too far from 0 beside reward_bound to be computed with; shift your rewards",
            )
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

    @classmethod
    def between(cls, low: float, high: float, **bounds: Any) -> Self:  # noqa: ANN401  # whatever `Problem` takes
        """A problem with rewards from ``low`` to ``high``, such as 0 and 1 for clicks.

        Rewards are learned from as distances to the middle, which halves the noise that a bound
        from 0 would need. The mean reward minus the middle should then be linear in the features:
        give actions a constant feature, unless each has one of its own. A good first guess for
        ``theta_norm`` is (high - low) / action_norm, or twice that if each action has features of
        its own.

        Args:
            low: the lowest reward there can be.
            high: the highest.
            bounds: what `Problem` takes besides.

        Returns:
            The problem, with the sub-Gaussian scale of any such reward, (high - low) / 2.

        Raises:
            ParameterError: ``low`` is not below ``high``, or a bound is out of range.
        """
        first, last = checks.finite("low", low), checks.finite("high", high)
        if not first < last:
            raise ParameterError("high", f"is {last:g}, not above low={first:g}; swap them")
        centre = first / 2 + last / 2
        reach = max(Fraction(last) - Fraction(centre), Fraction(centre) - Fraction(first))
        half = float(reach)
        half = math.nextafter(half, math.inf) if Fraction(half) < reach else half  # rounded up
        return cls(reward_bound=half, reward_centre=centre, **bounds)

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

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1)
        >>> setting = discreet.Setting(problem=problem, horizon=1_000)
        >>> setting.failure_prob
        0.001
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
        """A setting, also without a horizon, where a variant allows that.

        Args:
            problem: the stated bounds.
            horizon: the most rounds that will be played; None if that is not known.
            failure_prob: for all confidence statements together; chosen by the horizon if left
                out.
            open_ended: whether the variant can do without a horizon.

        Returns:
            The setting.

        Raises:
            ParameterError: there is no horizon, and the variant needs one.
        """
        if horizon is not None:
            return cls(problem=problem, horizon=horizon, failure_prob=failure_prob)  # type: ignore[arg-type]  # None means: derive it
        if not open_ended:
            raise ParameterError(
                "horizon", "is None, but this variant is made for a known one; give a number"
            )
        alpha = OPEN_FAILURE_PROB if failure_prob is None else failure_prob
        return cls(problem=problem, horizon=OPEN_HORIZON, failure_prob=alpha)

    def log_tail(self, factor: float) -> float:
        """What a tail bound for one round costs, ln(factor n/alpha).

        Args:
            factor: what n/alpha is multiplied with.

        Returns:
            The logarithm.
        """
        return math.log(factor) + math.log(self.horizon) - math.log(self.failure_prob)

    @property
    def normal_length(self) -> float:
        """A bound on the length of d standard normals, sqrt d + sqrt(2 ln(2n/alpha))."""
        return math.sqrt(self.problem.dim) + math.sqrt(2 * self.log_tail(2))

    @property
    def tree_depth(self) -> int:
        """m, the levels of a tree over all rounds."""
        return tree_depth(self.horizon)
