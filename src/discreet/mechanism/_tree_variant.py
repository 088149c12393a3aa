"""The paper's variants: node noise on a binary tree, and a rule for the shift. Paper: section 4."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet import _checks as checks
from discreet import theory
from discreet.errors import ParameterError
from discreet.mechanism import strategies
from discreet.mechanism._confidence import PaperConfidence
from discreet.mechanism._mechanism import Mechanism, NodeNoise
from discreet.mechanism._variant import NoMemory
from discreet.mechanism.noise import _discrete_gaussian
from discreet.mechanism.noise import _gaussian as gaussian
from discreet.mechanism.noise import _wishart as wishart
from discreet.mechanism.schedules import every_round
from discreet.privacy import Guarantee, Privacy, required
from discreet.problem import Setting
from discreet.theory import NoiseBounds

_ShiftRule = Callable[[Any, Setting], tuple[float, NoiseBounds]]
_LeadingTerm = Callable[[Setting, Privacy], float]


@dataclass(frozen=True, kw_only=True)
class NoiseFamily:
    """A family of node noise, how to calibrate it, and what the paper says of its regret.

    Attributes:
        calibrated: the noise for a privacy target.
        argument: why that meets it.
        leading_term: the corollary that speaks of this noise, if one does.
        gdp: the same noise with the least scale that Gaussian accounting allows, if it is Gaussian.
    """

    calibrated: Callable[[Setting, Privacy], NodeNoise]
    argument: str
    leading_term: _LeadingTerm | None = None
    gdp: "NoiseFamily | None" = None


GAUSSIAN = NoiseFamily(
    calibrated=gaussian.GaussianNoise.calibrated,
    argument=gaussian.ARGUMENT,
    leading_term=theory.gaussian_leading_term,
    gdp=NoiseFamily(
        calibrated=gaussian.GaussianNoise.calibrated_by_gdp, argument=gaussian.GDP_ARGUMENT
    ),
)
WISHART = NoiseFamily(
    calibrated=wishart.WishartNoise.calibrated,
    argument=wishart.ARGUMENT,
    leading_term=theory.wishart_leading_term,
)


def bound_optimal(paper_shift: _ShiftRule) -> _ShiftRule:
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
        from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to import

        found = minimize_scalar(bound, bounds=around, method="bounded", options={"xatol": 1e-9})
        shift = math.exp(float(found.x)) - low
        return shift, noise.bounds(setting, shift)

    return rule


@dataclass(frozen=True, kw_only=True)
class TreeVariant(NoMemory):
    """Node noise on a binary tree, released after every row. Paper: section 4."""

    name: str
    summary: str
    family: NoiseFamily
    shift_rule: _ShiftRule
    tree: str = "pan-private"
    calibration: str = "paper"
    private = True
    open_ended = False
    perturbations = None

    def __post_init__(self) -> None:
        """Check that there is such a tree and such a calibration."""
        strategies.tree(self.tree)
        checks.one_of("calibration", self.calibration, ("paper", "gdp"))
        self._calibrated_family()

    @property
    def leading_term(self) -> _LeadingTerm | None:
        """The corollary that speaks of this noise, if one does."""
        return self._calibrated_family().leading_term

    def with_calibration(self, calibration: str) -> "TreeVariant":
        """The same with another amount of noise: 'paper', or 'gdp' (Gaussian noise only)."""
        return replace(self, calibration=calibration)

    def _calibrated_family(self) -> NoiseFamily:
        if self.calibration == "paper":
            return self.family
        if self.family.gdp is None:
            raise ParameterError(
                "calibration", f"is 'gdp', but the noise of variant {self.name!r} is not Gaussian"
            )
        return self.family.gdp

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
        """Calibrate to a privacy target.

        Args:
            setting: problem, horizon and failure probability.
            privacy: the target (epsilon, delta), and whom and what it protects; not None.
            noise: 'exact', discrete Gaussian noise in whole numbers, or 'float', as in simulations.

        Returns:
            The mechanism.

        Raises:
            ParameterError: there is no target, it cannot be met in this setting, or the variant is
                not made for what it protects.
        """
        privacy, family = required(self.name, privacy), self._calibrated_family()
        _require_rows(self.name, privacy)
        if self.calibration == "paper":
            _require_plain(self.name, privacy)
        schedule, strategy = every_round(), strategies.tree(self.tree)
        use = _discrete_gaussian.Use(setting, schedule, strategy, privacy)
        law = _discrete_gaussian.drawn(family.calibrated(setting, privacy), noise, use)
        shift, bounds = self.shift_rule(law, setting)
        return Mechanism(
            variant=self.name,
            setting=setting,
            schedule=schedule,
            strategy=strategy,
            noise=law,
            confidence=PaperConfidence(shift=shift, bounds=bounds),
            guarantee=Guarantee.meeting(
                privacy, _discrete_gaussian.argument(family.argument, noise)
            ),
        )


def _require_plain(name: str, privacy: Privacy) -> None:
    """The paper's constants speak of replacement of one round."""
    if privacy.contributions_per_user != 1 or privacy.neighbours != "replacement":
        raise ParameterError(
            "privacy",
            f"asks for more than replacement of one round, which variant {name!r} is not "
            "calibrated for; use 'windows', or calibration 'gdp'",
        )


def _require_rows(name: str, privacy: Privacy) -> None:
    """The paper's shift is for a noisy Gram matrix: there is none if rewards alone count."""
    if privacy.protects != "rows":
        raise ParameterError(
            "protects",
            f"is {privacy.protects!r}, but the noise of variant {name!r} is for whole rows; use "
            "'windows' or 'tight'",
        )
