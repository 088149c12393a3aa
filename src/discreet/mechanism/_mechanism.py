"""A private learner's noise as data: what is drawn, how it is shared, what it is bounded by.

Nothing here holds or sees a row. A `Mechanism` is public and travels with every release.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _sums as sums
from discreet.kernels import _width as width
from discreet.kernels._noise import Noise
from discreet.mechanism import _tails as tails
from discreet.mechanism._cost import HasTwoScales, OnGrid, total_cost
from discreet.mechanism._grid import Grid
from discreet.mechanism.noise.sources import NoiseSource
from discreet.mechanism.schedules import Schedule, every_round
from discreet.mechanism.strategies import Strategy, Tree
from discreet.privacy import Guarantee
from discreet.problem import Setting
from discreet.theory import NoiseBounds, RadiusTerms, radius_terms

F64 = NDArray[np.float64]


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

    def law(self) -> Noise:
        """The same for the compiled loop."""

    def eigenvalues(self, setting: Setting) -> tuple[float, float]:
        """The range of the eigenvalues of m draws together, before any shift."""

    def bounds(self, setting: Setting, shift: float) -> NoiseBounds:
        """Accurate bounds for m draws plus ``shift`` times the identity."""

    def draw(self, source: NoiseSource, dim: int, count: int) -> NDArray[Any]:
        """Fresh noise for ``count`` nodes, packed, shape (count, d(d+3)/2)."""

    def parameters(self) -> dict[str, Any]:
        """What the constructor takes, for save files."""

    def describe(self, setting: Setting) -> dict[str, float]:
        """The scale, under the names that plans use."""


@dataclass(frozen=True, kw_only=True)
class Radius:
    """The paper's confidence set: an ellipsoid around the estimate. Paper: prop:calc-beta.

    Attributes:
        shift: the signed multiple of the identity added to every released Gram matrix.
        bounds: accurate bounds on the perturbations, shift included.
    """

    shift: float
    bounds: NoiseBounds


@dataclass(frozen=True, kw_only=True)
class JointWidth:
    """The confidence set that adds reward noise and privacy noise in quadrature (docs/width.md).

    Attributes:
        prior: the share of the mixing prior, lambda_0 over the noise there is without data; the
            width is flat in it.
    """

    prior: float = 0.1

    def __post_init__(self) -> None:
        """Check the share."""
        checks.within("prior", checks.positive("prior", self.prior), 1e-6, 1e6)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """Everything about a learner's perturbations that is not a random draw or a row.

    Attributes:
        variant: the name of the row in the table of variants.
        setting: problem, horizon and failure probability.
        schedule: when there is a release.
        strategy: how noise is shared between releases; None without noise.
        noise: what is drawn; None without noise.
        confidence: how a release becomes a confidence set.
        guarantee: what this promises, and why.
    """

    variant: str
    setting: Setting
    schedule: Schedule = field(default_factory=every_round)
    strategy: Strategy | None = None
    noise: NodeNoise | None = None
    confidence: Radius | JointWidth
    guarantee: Guarantee

    def __post_init__(self) -> None:
        """Refuse choices that do not go together."""
        if not isinstance(self.confidence, Radius | JointWidth):
            raise ParameterError("confidence", "must be a Radius or a JointWidth")
        if (self.noise is None) != (self.strategy is None):
            raise ParameterError("strategy", "goes with noise: give both, or neither")
        if self.noise is not None and self.noise.needs_all_draws and self.strategy != Tree():
            raise ParameterError(
                "tree",
                f"must be 'pan-private' for {self.noise.family} noise: its bounds hold only if "
                "all m draws stand in every release (erratum E2)",
            )
        if isinstance(self.confidence, Radius) and not self.schedule.every_round:
            raise ParameterError("schedule", "must be every round for the paper's confidence set")
        if isinstance(self.confidence, Radius) and not isinstance(self.strategy, Tree | None):
            raise ParameterError("strategy", "must be a tree for the paper's confidence set")
        if isinstance(self.confidence, JointWidth) and not isinstance(self.noise, HasTwoScales):
            raise ParameterError("confidence", "of the joint-noise kind needs Gaussian noise")

    @property
    def shift(self) -> float:
        """The multiple of the identity in every released Gram matrix."""
        return self.confidence.shift if isinstance(self.confidence, Radius) else 0.0

    @property
    def bounds(self) -> NoiseBounds | None:
        """Accurate bounds on the perturbations, if the paper's confidence set is used."""
        return self.confidence.bounds if isinstance(self.confidence, Radius) else None

    @cached_property
    def radius_terms(self) -> RadiusTerms:
        """What the paper's confidence radius is made of besides the release."""
        if not isinstance(self.confidence, Radius):
            raise ParameterError("variant", f"{self.variant!r} has no confidence radius")
        return radius_terms(self.setting, self.confidence.bounds)

    @cached_property
    def releases(self) -> int:
        """How many releases there can be; at least one, to be able to speak of them."""
        if isinstance(self.confidence, Radius):
            return max(1, self.schedule.count(self.setting.horizon))
        return max(1, self.schedule.require_few(self.setting.horizon))

    @cached_property
    def grid(self) -> Grid | None:
        """What rows and noise are whole multiples of; None if they are floating-point numbers."""
        return self.noise.grid if isinstance(self.noise, OnGrid) else None

    @cached_property
    def cost(self) -> float | None:
        """mu: how far one person's rounds move all releases, in standard deviations, rounded up.

        None without Gaussian noise, and where nothing is promised.
        """
        noise: object = self.noise
        if self.strategy is None or not self.guarantee.private:
            return None
        if not isinstance(noise, HasTwoScales):
            return None
        return total_cost(
            noise,
            self.setting.problem,
            schedule=self.schedule,
            strategy=self.strategy,
            releases=self.releases,
            neighbours=self.guarantee.neighbours,
            contributions=self.guarantee.contributions_per_user,
        )

    @cached_property
    def width_terms(self) -> width.Terms:
        """What the joint-noise width is made of besides the release and its noise."""
        prior = self.confidence.prior if isinstance(self.confidence, JointWidth) else 1.0
        return width.Terms(
            variance=self.setting.problem.reward_subgaussian**2,
            theta_norm=float(self.setting.problem.theta_norm),
            prior=float(prior),
        )

    @cached_property
    def sharing(self) -> sums.Sharing:
        """How noise is shared, for the compiled loop."""
        return sums.no_noise() if self.strategy is None else self.strategy.sharing(self.releases)

    @cached_property
    def noise_table(self) -> width.NoiseTable:
        """How much noise each release holds, and how sure we are of it.

        Release i may fail in two ways, each with probability p_i = alpha / (2 i H_J), where H_J is
        the J-th harmonic number: together alpha. For many releases this is a table at some of
        them: nothing shrinks from release to release, so the next entry is an upper bound.
        """
        if self.strategy is None or isinstance(self.confidence, Radius):
            nothing = np.zeros(1)  # the paper's bounds are about all releases alike
            return width.NoiseTable(np.array([2**62]), nothing, nothing, nothing)
        numbers = _some_numbers(self.releases)
        norms = self.strategy.row_norms(self.releases, numbers)
        harmonic = math.log(self.releases) + 0.5772156649 + 1 / (2 * self.releases)
        log_tails = np.log(2 * harmonic * numbers) - math.log(self.setting.failure_prob)
        return width.NoiseTable(
            numbers,
            np.maximum.accumulate(norms) if self.releases > len(numbers) else norms,
            tails.largest_eigenvalue(self.setting.problem.dim, log_tails),
            log_tails,
        )

    def require_playable(self) -> None:
        """Refuse a horizon that theory can speak of but no counter can count to."""
        checks.within("horizon", self.setting.horizon, 1, 2**62)

    @property
    def levels(self) -> int:
        """How many levels the tree has; 0 without one."""
        return self.sharing.levels


def _some_numbers(releases: int) -> NDArray[np.int64]:
    """All numbers up to a few thousand, and then one in 500: ascending, the last included."""
    few = np.arange(1, min(releases, 4096) + 1)
    more = np.exp(np.arange(math.log(4096), math.log(max(4097, releases)), 1 / 500))
    later = more[more < releases].astype(np.int64)
    return np.unique(np.concatenate([few, later, [releases]])).astype(np.int64)
