"""A private learner's noise as data: what is drawn, how it is shared, what it is bounded by.

Nothing here holds or sees a row. A `Mechanism` is public and travels with every release.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.kernels import _posterior as posterior
from discreet.kernels import _sums as sums
from discreet.kernels import _width as width
from discreet.kernels._noise import Noise
from discreet.mechanism._confidence import Confidence, no_table, some_numbers
from discreet.mechanism._cost import HasSteps, HasTwoScales, total_cost, total_trace
from discreet.mechanism._grid import Grid
from discreet.mechanism._prospects import Choices, half_gain_rows
from discreet.mechanism._read_only import read_only
from discreet.mechanism.noise.sources import NoiseSource
from discreet.mechanism.schedules import Schedule, every_round
from discreet.mechanism.strategies import Strategy, Tree, Windows
from discreet.privacy import Guarantee
from discreet.problem import Setting
from discreet.theory import NoiseBounds, RadiusTerms, radius_terms

F64 = NDArray[np.float64]

_PRIOR = 2.0  # the parameter's variance in one direction, in multiples of theta_norm^2 / d

_POLICIES = ("posterior", "ucb")  # names of rules, of those in `release.policies`


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
        """This noise as arguments of the compiled kernels."""

    def eigenvalues(self, setting: Setting) -> tuple[float, float]:
        """The range of the eigenvalues of m draws together, before any shift.

        Args:
            setting: problem, horizon and failure probability; m is its ``tree_depth``.

        Returns:
            The least and the largest; see `NoiseBounds` for how sure they must be.
        """

    def bounds(self, setting: Setting, shift: float) -> NoiseBounds:
        """Accurate bounds for m draws plus ``shift`` times the identity.

        Args:
            setting: problem, horizon and failure probability; m is its ``tree_depth``.
            shift: the multiple of the identity that is added to every released Gram matrix; may be
                below 0.

        Returns:
            The bounds, shift included.

        Raises:
            ParameterError: the shift would leave an eigenvalue of 0 or below.
        """

    def draw(self, source: NoiseSource, firsts: NDArray[np.int64], count: int) -> NDArray[Any]:
        """Independent noise for some nodes, secret if its source is.

        One packed node a row: of each row i of the Gram matrix the columns from ``firsts[i]`` to i,
        then the d entries of the moment. Its size is `Mechanism.packed_size`.

        Args:
            source: standard random numbers; draw from nothing else.
            firsts: the first feature of the block that each feature is in, shape (d,); all 0 for
                one block.
            count: how many nodes.

        Returns:
            An array of the caller's own, shape (count, packed size); whole numbers of steps if the
            noise is discrete.
        """

    def describe(self, setting: Setting) -> dict[str, float]:
        """The scale, under the names that plans use.

        Args:
            setting: problem, horizon and failure probability.

        Returns:
            Numbers by name; all public.
        """


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
        policy: the rule that a learner plays by unless another is given: 'posterior' or 'ucb'.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=0.1)
        >>> mechanism = discreet.variants.calibrate(
        ...     "windows", problem, horizon=50_000_000, privacy=privacy
        ... )
        >>> mechanism.releases
        14152
        >>> round(mechanism.noise.std, 2)
        1.63
    """

    variant: str
    setting: Setting
    schedule: Schedule = field(default_factory=every_round)
    strategy: Strategy | None = None
    noise: NodeNoise | None = None
    confidence: Confidence
    guarantee: Guarantee
    policy: str = "ucb"

    def __post_init__(self) -> None:
        """Refuse choices that do not go together."""
        checks.one_of("policy", self.policy, _POLICIES)
        if isinstance(self.confidence, type) or not isinstance(self.confidence, Confidence):
            raise ParameterError("confidence", "must be a PaperConfidence or a JointWidth")
        if (self.noise is None) != (self.strategy is None):
            raise ParameterError("strategy", "goes with noise: give both, or neither")
        if self.noise is not None and self.noise.needs_all_draws and self.strategy != Tree():
            raise ParameterError(
                "tree",
                f"must be 'pan-private' for {self.noise.family} noise: its bounds hold only if "
                "every release holds all m draws (erratum E2)",
            )
        self._require_protecting_noise()
        if self.strategy is not None:
            self.strategy.require_schedule(self.schedule)
        self.confidence.require_fitting(self)

    def _require_protecting_noise(self) -> None:
        """Refuse an exact Gram matrix where actions are protected."""
        noise: object = self.noise
        exact = isinstance(noise, HasTwoScales) and noise.std == 0.0
        if exact and self.guarantee.protects != "rewards":
            raise ParameterError(
                "noise", "leaves the Gram matrix exact, so the guarantee must be of rewards alone"
            )

    @property
    def protects(self) -> str:
        """What is protected, 'rows' or 'rewards'."""
        return self.guarantee.protects

    @property
    def shift(self) -> float:
        """The multiple of the identity in every released Gram matrix."""
        return self.confidence.shift

    @property
    def bounds(self) -> NoiseBounds | None:
        """Accurate bounds on the perturbations, if the paper's confidence set is used."""
        return self.confidence.bounds

    @property
    def memory(self) -> int | None:
        """How many rows the sums remember; None if they forget nothing."""
        return self.strategy.memory if isinstance(self.strategy, Windows) else None

    @cached_property
    def radius_terms(self) -> RadiusTerms:
        """What the paper's confidence radius is made of besides the release."""
        if self.bounds is None:
            raise ParameterError("variant", f"{self.variant!r} has no confidence radius")
        return radius_terms(self.setting, self.bounds)

    @cached_property
    def releases(self) -> int:
        """How many releases there can be; at least one, to be able to speak of them."""
        if self.memory is not None:  # noise settles, so that they need not be few
            return max(1, self.schedule.count(self.setting.horizon))
        return max(1, self.confidence.most_releases(self.schedule, self.setting.horizon))

    @cached_property
    def grid(self) -> Grid | None:
        """What rows and noise are whole multiples of; None if they are floating-point numbers."""
        return self.noise.grid if isinstance(self.noise, HasSteps) else None

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
            protects=self.guarantee.protects,
        )

    @cached_property
    def trace(self) -> float:
        """K: how far all draws together are from rounded Gaussian ones; 0 for continuous noise.

        See `accounting.discrete_gaussian_trace`: what exact noise costs beyond `cost`.
        """
        noise: object = self.noise
        if self.strategy is None or not isinstance(noise, HasTwoScales):
            return 0.0
        return total_trace(
            noise,
            self.setting.problem,
            strategy=self.strategy,
            releases=self.releases,
            protects=self.guarantee.protects,
        )

    @cached_property
    def width_terms(self) -> width.Terms:
        """What the joint-noise width is made of besides the release and its noise."""
        if self.confidence.prior is None:
            raise ParameterError("variant", f"{self.variant!r} has no joint-noise width")
        return width.Terms(
            variance=self.setting.problem.reward_subgaussian**2,
            theta_norm=float(self.setting.problem.theta_norm),
            prior=float(self.confidence.prior),
        )

    @cached_property
    def posterior_terms(self) -> posterior.Known:
        """What the posterior is made of besides the release and its noise."""
        bounds, problem = self.bounds, self.setting.problem
        exact = bounds is not None and bounds.rho_min == bounds.rho_max == self.shift
        if not (isinstance(self.noise, HasTwoScales) or (self.noise is None and exact)):
            raise ParameterError(
                "variant",
                f"{self.variant!r} has noise of another law than the posterior is made for; use "
                "the confidence set and policy=UCB()",
            )
        return posterior.Known(
            variance=problem.reward_subgaussian**2,
            theta_norm=problem.theta_norm,
            square=problem.action_norm**2,
            prior=_PRIOR * problem.theta_norm**2 / problem.dim,
            firsts=self.firsts,
            halvings=posterior.HALVINGS,
        )

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """The first feature of the block that each feature is in, shape (d,).

        Nothing outside the blocks is summed or given noise: it is zero, whatever the data are.
        """
        return read_only(linalg.firsts_of(self.setting.problem.blocks))

    @property
    def packed_size(self) -> int:
        """How many numbers a release's sums are: the blocks' lower triangles, and the moment."""
        return int(linalg.packed_size(self.firsts))

    @cached_property
    def half_gain_rows(self) -> int | None:
        """About how many rows a learner that plays the posterior needs to do better than chance.

        See `planning.half_gain_rows`, of which this is the usual case. None if it would be beyond
        10^12 rows.
        """
        return _half_gain_rows(self)

    @cached_property
    def sharing(self) -> sums.Sharing:
        """How noise is shared, for the compiled loop."""
        return sums.no_noise() if self.strategy is None else self.strategy.sharing(self.releases)

    @cached_property
    def spreads(self) -> tuple[NDArray[np.int64], F64]:
        """How much noise releases hold, in multiples of one draw: at many numbers, ascending."""
        numbers = some_numbers(self.releases)
        if self.strategy is None:
            return numbers, np.zeros(len(numbers))
        return numbers, self.strategy.row_norms(self.releases, numbers)

    def amounts(self, held: sums.Arrays, number: int, rows: int) -> tuple[float, float]:
        """How much noise a release holds and what its rows weigh: both public.

        Args:
            held: what is held since that release.
            number: the release's number.
            rows: how many rows are in it.

        Returns:
            The noise's deviation in multiples of one draw, and the rows' total weight.
        """
        if self.strategy is None or number == 0:
            return 0.0, float(rows)
        known = self.strategy.amounts(held)
        if known is not None:
            return known
        numbers, spreads = self.spreads
        at = min(int(np.searchsorted(numbers, number)), len(numbers) - 1)
        return float(spreads[at]), float(rows)

    @cached_property
    def noise_table(self) -> width.NoiseTable:
        """How much noise each release holds, and how sure we are of it."""
        if self.strategy is None:
            return no_table()
        return self.confidence.noise_table(self.setting, *self.spreads)

    @cached_property
    def law(self) -> Noise:
        """What a node draws, for compiled code."""
        return Noise(0.0, 0.0, 0.0) if self.noise is None else self.noise.law()

    @property
    def nodes_hold_sums(self) -> bool:
        """Whether rows are added up in the nodes of a tree."""
        return self.strategy is not None and self.strategy.nodes_hold_sums

    def float_sums(self) -> sums.Sums:
        """Sums in floating point before any row: zeros."""
        size = self.packed_size
        arrays = sums.Arrays(*(np.zeros((rows, size)) for rows in (0, 0, 1)))
        if self.strategy is not None:
            arrays = self.strategy.float_arrays(self.releases, size)
        return sums.empty(arrays, np.zeros(size))

    def integer_sums(self, number: int = 0) -> sums.Sums:
        """Sums in whole numbers: zeros, with room for what is held after ``number`` releases.

        Args:
            number: of the release after which there must be room.

        Returns:
            The arrays.

        Raises:
            ParameterError: there is no noise.
        """
        if self.strategy is None:
            raise ParameterError("noise", "is not drawn at all, so nothing is held in steps of it")
        size = self.packed_size
        arrays = self.strategy.integer_arrays(self.releases, size, number)
        return sums.empty(arrays, np.zeros(size, np.int64))

    def require_playable(self) -> None:
        """Refuse a horizon that theory can speak of but no counter can count to."""
        checks.within("horizon", self.setting.horizon, 1, 2**62)

    @property
    def levels(self) -> int:
        """How many levels the tree has; 0 without one."""
        return self.sharing.levels


@lru_cache(maxsize=64)
def _half_gain_rows(mechanism: Mechanism) -> int | None:
    """For mechanisms that are equal, such as those of many learners, it is worked out once."""
    return half_gain_rows(mechanism, Choices(mechanism.setting.problem.dim))
