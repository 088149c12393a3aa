"""A private learner's noise as data: what is drawn, how it is shared, what it is bounded by.

Nothing here holds or sees a row. A `Mechanism` is public and travels with every release.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, checks
from discreet.errors import ParameterError
from discreet.noise.source import NoiseSource
from discreet.privacy import Guarantee
from discreet.problem import Problem

F64 = NDArray[np.float64]


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
        return accounting.tree_depth(self.horizon)


@dataclass(frozen=True, kw_only=True)
class NoiseBounds:
    """Accurate bounds on the perturbations (H_t, h_t). Paper: def:accurate-params.

    In each round, with probability at least 1 - alpha/2n (docs/errata.md says how far the paper's
    proof of that goes): the eigenvalues of H_t lie within
    [rho_min, rho_max], and the norm of h_t with respect to the inverse of H_t is at most gamma.
    """

    rho_min: float
    rho_max: float
    gamma: float

    def __post_init__(self) -> None:
        """Check that the bounds can be met at all."""
        checks.positive("rho_min", self.rho_min)
        checks.at_least("rho_max", self.rho_max, self.rho_min)
        checks.at_least("gamma", self.gamma, 0.0)


class RadiusTerms(NamedTuple):
    """beta_t = noise_scale * sqrt(log det V_t + log_offset) + bias."""

    noise_scale: float
    log_offset: float
    bias: float


def radius_terms(setting: Setting, bounds: NoiseBounds) -> RadiusTerms:
    """The parts of beta_t that do not change from round to round.

    Paper: prop:calc-beta, beta_t = sigma sqrt(2 ln(2/alpha) + ln det V_t - d ln rho_min)
    + S sqrt(rho_max) + gamma.
    """
    problem = setting.problem
    return RadiusTerms(
        noise_scale=problem.reward_subgaussian,
        log_offset=2 * math.log(2 / setting.failure_prob) - problem.dim * math.log(bounds.rho_min),
        bias=problem.theta_norm * math.sqrt(bounds.rho_max) + bounds.gamma,
    )


def lowest_eigenvalue(shift: float, low: float) -> float:
    """What is left of the lowest eigenvalue after a shift, if anything is."""
    if not checks.finite("shift", shift) + low > 0:
        raise ParameterError(
            "shift", f"is {shift:g}; give one above {-low:g} to keep the matrix positive"
        )
    return shift + low


class NodeNoise(Protocol):
    """One family of node noise, with its scale fixed."""

    @property
    def family(self) -> str:
        """The name under which the family is saved and shown."""

    @property
    def needs_all_draws(self) -> bool:
        """Whether the bounds hold only with exactly m draws in every release."""

    def law(self) -> tuple[float, float]:
        """(scale, degrees of freedom) as the compiled round loop takes them."""

    def eigenvalues(self, setting: Setting) -> tuple[float, float]:
        """The range of the eigenvalues of m draws together, before any shift."""

    def bounds(self, setting: Setting, shift: float) -> NoiseBounds:
        """Accurate bounds for m draws plus ``shift`` times the identity."""

    def draw(self, source: NoiseSource, dim: int, count: int) -> F64:
        """Fresh noise for ``count`` nodes, packed, shape (count, d(d+3)/2)."""

    def parameters(self) -> dict[str, float]:
        """What the constructor takes, for save files."""

    def describe(self, setting: Setting) -> dict[str, float]:
        """The scale, under the names that plans use."""


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """Everything about a learner's perturbations that is not a random draw or a row.

    Attributes:
        variant: the name of the row in the table of variants.
        setting: problem, horizon and failure probability.
        noise: what each node of the tree draws; None if there is no tree.
        idle_draws: whether a level without a finished node shows an independent draw instead
            (the pan-private tree, exactly m draws in every release) or nothing (covering).
        shift: the signed multiple of the identity added to every released Gram matrix.
        bounds: accurate bounds on the perturbations, shift included.
        guarantee: what this promises, and why.
    """

    variant: str
    setting: Setting
    noise: NodeNoise | None
    idle_draws: bool
    shift: float
    bounds: NoiseBounds
    guarantee: Guarantee

    def __post_init__(self) -> None:
        """Refuse a covering tree where the bounds need all m draws (E2)."""
        if self.noise is not None and self.noise.needs_all_draws and not self.idle_draws:
            raise ParameterError(
                "tree",
                f"must be 'pan-private' for {self.noise.family} noise: its bounds hold only if "
                "all m draws stand in every release (erratum E2)",
            )

    @cached_property
    def radius_terms(self) -> RadiusTerms:
        """What the confidence radius is made of besides the release."""
        return radius_terms(self.setting, self.bounds)

    def require_playable(self) -> None:
        """Refuse a horizon that theory can speak of but no counter can count to."""
        checks.within("horizon", self.setting.horizon, 1, 2**62)

    @property
    def levels(self) -> int:
        """How many levels the tree has; 0 without one."""
        return 0 if self.noise is None else self.setting.tree_depth
