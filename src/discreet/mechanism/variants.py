"""The table of variants: each a named row of choices, and the only list of them.

A variant turns a setting and a privacy target into a `Mechanism`. The paper's variants share
one shape, `TreeVariant`, and differ in noise family and shift; ours is `Tight`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize_scalar

from discreet import _checks as checks
from discreet import theory
from discreet.errors import ParameterError
from discreet.mechanism import strategies
from discreet.mechanism._mechanism import Mechanism, NodeNoise, Radius
from discreet.mechanism._perturbations import Perturbations
from discreet.mechanism._tight import Tight
from discreet.mechanism.noise import _discrete as exact
from discreet.mechanism.noise import _gaussian as gaussian
from discreet.mechanism.noise import _wishart as wishart
from discreet.mechanism.schedules import every_round
from discreet.privacy import Guarantee, Privacy, required
from discreet.problem import Setting
from discreet.theory import NoiseBounds

ShiftRule = Callable[[Any, Setting], tuple[float, NoiseBounds]]
LeadingTerm = Callable[[Setting, Privacy], float]


class Variant(Protocol):
    """A way to perturb, ready to be calibrated."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    @property
    def summary(self) -> str:
        """One line for tables and help."""

    @property
    def private(self) -> bool:
        """Whether it takes a privacy target."""

    @property
    def open_ended(self) -> bool:
        """Whether it can do without a horizon."""

    @property
    def perturbations(self) -> Perturbations | None:
        """The user's own perturbations, if the variant uses any."""

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """Calibrate: choose the noise, the shift and the bounds.

        ``noise`` is 'exact', whole numbers on a grid, or 'float', as in simulations.
        """


@dataclass(frozen=True, kw_only=True)
class NoiseFamily:
    """A family of node noise, how to calibrate it, and what the paper says of its regret.

    Attributes:
        calibrated: the noise for a privacy target.
        argument: why that meets it.
        leading_term: the corollary that speaks of this noise, if one does.
        exact: the same noise with the least scale that exact accounting allows, if there is any.
    """

    calibrated: Callable[[Setting, Privacy], NodeNoise]
    argument: str
    leading_term: LeadingTerm | None = None
    exact: "NoiseFamily | None" = None


GAUSSIAN = NoiseFamily(
    calibrated=gaussian.GaussianNoise.calibrated,
    argument=gaussian.ARGUMENT,
    leading_term=theory.gaussian_leading_term,
    exact=NoiseFamily(calibrated=gaussian.GaussianNoise.exactly, argument=gaussian.EXACT_ARGUMENT),
)
WISHART = NoiseFamily(
    calibrated=wishart.WishartNoise.calibrated,
    argument=wishart.ARGUMENT,
    leading_term=theory.wishart_leading_term,
)


def bound_optimal(paper_shift: ShiftRule) -> ShiftRule:
    """The shift at the minimum of the bound of thm:linucb-regret, searched over ln(rho_min).

    At short horizons the bound has no minimum: it falls for ever as the regularizer grows, to a
    limit that is trivially true. The paper's shift is used then.
    """

    def rule(noise: NodeNoise, setting: Setting) -> tuple[float, NoiseBounds]:
        low, high = noise.eigenvalues(setting)

        def bound(log_rho_min: float) -> float:
            shift = math.exp(log_rho_min) - low
            return theory.regret_bound(setting, noise.bounds(setting, shift))

        grid = math.log(high - low) + np.linspace(-15, 15, 121)
        values = [bound(at) for at in grid]
        lowest = (i for i in range(1, len(grid) - 1) if values[i - 1] >= values[i] < values[i + 1])
        place = next(lowest, None)
        if place is None:
            return paper_shift(noise, setting)
        around = (grid[place - 1], grid[place + 1])
        found = minimize_scalar(bound, bounds=around, method="bounded", options={"xatol": 1e-9})
        shift = math.exp(float(found.x)) - low
        return shift, noise.bounds(setting, shift)

    return rule


@dataclass(frozen=True, kw_only=True)
class TreeVariant:
    """Node noise on a binary tree, released after every row. Paper: section 4."""

    name: str
    summary: str
    family: NoiseFamily
    shift_rule: ShiftRule
    tree: str = "pan-private"
    calibration: str = "paper"
    private = True
    open_ended = False
    perturbations = None

    def __post_init__(self) -> None:
        """Check that there is such a tree and such a calibration."""
        strategies.tree(self.tree)
        checks.one_of("calibration", self.calibration, ("paper", "exact"))
        self._calibrated_family()

    @property
    def leading_term(self) -> LeadingTerm | None:
        """The corollary that speaks of this noise, if one does."""
        return self._calibrated_family().leading_term

    def with_calibration(self, calibration: str) -> "TreeVariant":
        """The same with another amount of noise: 'paper', or 'exact' (Gaussian noise only)."""
        return replace(self, calibration=calibration)

    def _calibrated_family(self) -> NoiseFamily:
        if self.calibration == "paper":
            return self.family
        if self.family.exact is None:
            raise ParameterError(
                "calibration", f"is 'exact', but variant {self.name!r} has no exact accounting"
            )
        return self.family.exact

    def with_tree(self, tree: str) -> "TreeVariant":
        """The same with another form of the tree: 'pan-private' or 'covering'."""
        return replace(self, tree=tree)

    def with_shift(self, shift: float) -> "TreeVariant":
        """The same with a shift of your own."""
        checks.finite("shift", shift)

        def rule(noise: NodeNoise, setting: Setting) -> tuple[float, NoiseBounds]:
            return shift, noise.bounds(setting, shift)

        return replace(self, shift_rule=rule)

    def with_rho_min(self, rho_min: float) -> "TreeVariant":
        """The same with the shift that gives this lower bound on the regularizer."""
        checks.positive("rho_min", rho_min)

        def rule(noise: NodeNoise, setting: Setting) -> tuple[float, NoiseBounds]:
            shift = rho_min - noise.eigenvalues(setting)[0]
            return shift, noise.bounds(setting, shift)

        return replace(self, shift_rule=rule)

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """Calibrate to a privacy target."""
        privacy, family = required(self.name, privacy), self._calibrated_family()
        if self.calibration == "paper":
            _require_plain(self.name, privacy)
        schedule, strategy = every_round(), strategies.tree(self.tree)
        use = exact.Use(setting, schedule, strategy, privacy)
        law = exact.drawn(family.calibrated(setting, privacy), noise, use)
        shift, bounds = self.shift_rule(law, setting)
        return Mechanism(
            variant=self.name,
            setting=setting,
            schedule=schedule,
            strategy=strategy,
            noise=law,
            confidence=Radius(shift=shift, bounds=bounds),
            guarantee=Guarantee.meeting(privacy, exact.argument(family.argument, noise)),
        )


def _require_plain(name: str, privacy: Privacy) -> None:
    """The paper's constants speak of replacement of one round."""
    if privacy.contributions_per_user != 1 or privacy.neighbours != "replacement":
        raise ParameterError(
            "privacy",
            f"asks for more than replacement of one round, which variant {name!r} is not "
            "calibrated for; use 'tight', or exact calibration",
        )


@dataclass(frozen=True, kw_only=True)
class Unperturbed:
    """LinUCB with a constant regularizer and no noise: the baseline."""

    name: str
    summary: str
    regularizer: float = 1.0
    private = False
    open_ended = False
    perturbations = None
    leading_term = None

    def with_tree(self, tree: str) -> "Unperturbed":
        """Refuse: there is none."""
        raise ParameterError("tree", f"is {tree!r}, but variant {self.name!r} has no tree")

    def with_calibration(self, calibration: str) -> "Unperturbed":
        """Refuse: there is no noise."""
        raise ParameterError(
            "calibration", f"is {calibration!r}, but variant {self.name!r} has no noise"
        )

    def with_shift(self, shift: float) -> "Unperturbed":
        """The same with a regularizer of your own."""
        return replace(self, regularizer=shift)

    def with_rho_min(self, rho_min: float) -> "Unperturbed":
        """The same thing: the regularizer is its own lower bound."""
        return self.with_shift(checks.positive("rho_min", rho_min))

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """No noise, and no promise."""
        exact.checked(noise)
        if privacy is not None:
            raise ParameterError("privacy", f"has no effect on variant {self.name!r}; leave it out")
        rho = checks.positive("shift", self.regularizer)
        return Mechanism(
            variant=self.name,
            setting=setting,
            confidence=Radius(shift=rho, bounds=NoiseBounds(rho_min=rho, rho_max=rho, gamma=0.0)),
            guarantee=Guarantee.nothing("the statistics are used without noise"),
        )


_UNPROVEN = Guarantee.nothing("the perturbations are supplied by the caller")


@dataclass(frozen=True, kw_only=True)
class Supplied:
    """Algorithm 1 over perturbations (H_t, h_t) of your own, with bounds of your own.

    discreet adds them to the exact statistics and proves nothing about them: the guarantee is
    yours to state, and None unless you do.
    """

    perturbations: Perturbations
    bounds: NoiseBounds
    guarantee: Guarantee = _UNPROVEN
    name: str = "supplied"
    summary: str = "perturbations of your own"
    private = False
    open_ended = False

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """Take the bounds as stated."""
        exact.checked(noise)
        if privacy is not None:
            raise ParameterError(
                "privacy", "is stated through `guarantee` when perturbations are supplied"
            )
        return Mechanism(
            variant=self.name,
            setting=setting,
            confidence=Radius(shift=0.0, bounds=self.bounds),
            guarantee=self.guarantee,
        )


Named = TreeVariant | Unperturbed | Tight

_ROWS: tuple[Named, ...] = (
    Tight(
        name="tight",
        summary="exact accounting, correlated noise, few releases, and the joint-noise width",
    ),
    Unperturbed(name="nonprivate", summary="LinUCB with regularizer 1 and no noise"),
    TreeVariant(
        name="gaussian",
        summary="the paper's Gaussian noise, shifted by twice its norm bound",
        family=GAUSSIAN,
        shift_rule=gaussian.paper_shift,
    ),
    TreeVariant(
        name="gaussian-opt",
        summary="Gaussian noise with the shift at the minimum of the regret bound",
        family=GAUSSIAN,
        shift_rule=bound_optimal(gaussian.paper_shift),
    ),
    TreeVariant(
        name="wishart",
        summary="the paper's Wishart noise, shifted down by eq:c",
        family=WISHART,
        shift_rule=wishart.paper_shift,
    ),
    TreeVariant(
        name="wishart-opt",
        summary="Wishart noise with the shift at the minimum of the regret bound",
        family=WISHART,
        shift_rule=bound_optimal(wishart.paper_shift),
    ),
    TreeVariant(
        name="wishart-unshifted",
        summary="the paper's Wishart noise as it is drawn",
        family=WISHART,
        shift_rule=wishart.no_shift,
    ),
)

VARIANTS: dict[str, Named] = {row.name: row for row in _ROWS}


def named(name: str) -> Named:
    """The variant of that name."""
    return VARIANTS[checks.one_of("variant", name, tuple(VARIANTS))]
