"""The table of variants: each a named row of choices, and the only list of them.

A variant turns a setting and a privacy target into a `Mechanism`; `calibrate` does so from a
variant's name. The paper's variants share one shape, `TreeVariant`, and differ in noise family and
shift; ours are `Windowed`, the default, and `Tight`.
"""

from dataclasses import dataclass, replace

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.mechanism._confidence import PaperConfidence
from discreet.mechanism._mechanism import Mechanism
from discreet.mechanism._perturbations import Perturbations
from discreet.mechanism._tight_variant import Tight
from discreet.mechanism._tree_variant import (
    GAUSSIAN,
    WISHART,
    NoiseFamily,
    TreeVariant,
    bound_optimal,
)
from discreet.mechanism._variant import NoMemory, NoTree, Variant
from discreet.mechanism._window_variant import Windowed
from discreet.mechanism.noise import _discrete_gaussian
from discreet.mechanism.noise import _gaussian as gaussian
from discreet.mechanism.noise import _wishart as wishart
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem, Setting
from discreet.theory import NoiseBounds

__all__ = [
    "VARIANTS",
    "Named",
    "NoiseFamily",
    "Supplied",
    "Tight",
    "TreeVariant",
    "Unperturbed",
    "Variant",
    "Windowed",
    "bound_optimal",
    "calibrate",
    "named",
]


@dataclass(frozen=True, kw_only=True)
class Unperturbed(NoTree, NoMemory):
    """Sums without noise: the baseline.

    The posterior is played unless another policy is given; with `UCB` it is LinUCB with a constant
    regularizer. The posterior has a prior instead, and no regularizer.
    """

    name: str
    summary: str
    regularizer: float = 1.0
    policy: str = "posterior"
    private = False
    open_ended = False
    perturbations = None
    leading_term = None

    def with_calibration(self, calibration: str) -> "Unperturbed":
        """Refuse: there is no noise.

        Args:
            calibration: any calibration.

        Raises:
            ParameterError: always.
        """
        raise ParameterError(
            "calibration", f"is {calibration!r}, but variant {self.name!r} has no noise"
        )

    def with_shift(self, shift: float) -> "Unperturbed":
        """LinUCB with a regularizer of your own: the posterior has none."""
        return replace(self, regularizer=shift, policy="ucb")

    def with_rho_min(self, rho_min: float) -> "Unperturbed":
        """The same thing: the regularizer is its own lower bound.

        Args:
            rho_min: the regularizer, above 0.

        Returns:
            The variant.

        Raises:
            ParameterError: it is not above 0.
        """
        return self.with_shift(checks.positive("rho_min", rho_min))

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """No noise, and no promise.

        Args:
            setting: problem, horizon and failure probability.
            privacy: must be None: nothing is promised.
            noise: 'exact' or 'float', which makes no difference.

        Returns:
            The mechanism.

        Raises:
            ParameterError: there is a privacy target, or the regularizer is not above 0.
        """
        _discrete_gaussian.checked(noise)
        if privacy is not None:
            raise ParameterError("privacy", f"has no effect on variant {self.name!r}; leave it out")
        rho = checks.positive("shift", self.regularizer)
        return Mechanism(
            variant=self.name,
            setting=setting,
            confidence=PaperConfidence(
                shift=rho, bounds=NoiseBounds(rho_min=rho, rho_max=rho, gamma=0.0)
            ),
            guarantee=Guarantee.nothing("the statistics are used without noise"),
            policy=self.policy,
        )


_UNPROVEN = Guarantee.nothing("the perturbations are supplied by the caller")


@dataclass(frozen=True, kw_only=True)
class Supplied(NoMemory):
    """Algorithm 1 over perturbations (H_t, h_t) of your own, with bounds of your own.

    discreet adds them to the sums of rows and proves nothing about them: the guarantee is
    yours to state, and None unless you do.

    Attributes:
        perturbations: (H_t, h_t) after each number of rows.
        bounds: what you prove about them.
        guarantee: what you promise.
        name: for messages and cards.
        summary: for tables.

    Examples:
        >>> import numpy as np
        >>> import discreet
        >>> bounds = discreet.NoiseBounds(rho_min=1.0, rho_max=1.0, gamma=1.0)
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> bandit = discreet.LinUCB(
        ...     problem,
        ...     horizon=10,
        ...     variant=discreet.Supplied(
        ...         perturbations=lambda rows: (np.eye(2), np.zeros(2)), bounds=bounds
        ...     ),
        ... )
        >>> bandit.guarantee.epsilon is None  # nothing was stated
        True
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
        """Take the bounds as stated.

        Args:
            setting: problem, horizon and failure probability.
            privacy: must be None: what is promised is yours to state.
            noise: has no effect; nothing is drawn here.

        Returns:
            The mechanism.

        Raises:
            ParameterError: there is a privacy target.
        """
        _discrete_gaussian.checked(noise)
        if privacy is not None:
            raise ParameterError(
                "privacy", "is stated through `guarantee` when perturbations are supplied"
            )
        return Mechanism(
            variant=self.name,
            setting=setting,
            confidence=PaperConfidence(shift=0.0, bounds=self.bounds),
            guarantee=self.guarantee,
        )


Named = TreeVariant | Unperturbed | Tight | Windowed
"""A row of the table of variants."""

_ROWS: tuple[Named, ...] = (
    Windowed(
        name="windows",
        summary="exact accounting, sums that forget, fresh noise for each, and the posterior",
    ),
    Tight(
        name="tight",
        summary="exact accounting, correlated noise, few releases, and the joint-noise width",
    ),
    Unperturbed(name="nonprivate", summary="no noise: the posterior, or LinUCB as a policy"),
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
        summary="the paper's Wishart noise, shifted down by the paper's formula",
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
"""The table of variants: each row by its name."""


def named(name: str) -> Named:
    """The variant of that name."""
    return VARIANTS[checks.one_of("variant", name, tuple(VARIANTS))]


def calibrate(
    variant: str | Variant,
    problem: Problem,
    *,
    horizon: int | None,
    privacy: Privacy | None,
    failure_prob: float | None = None,
    noise: str = "float",
    memory: int | None = None,
) -> Mechanism:
    """The mechanism of a variant for a problem, a horizon and a privacy target.

    Args:
        variant: a name from the table of variants, or a variant of your own.
        problem: the stated bounds.
        horizon: the most rounds that will be played; None, for variants that allow it, if that is
            not known.
        privacy: the target; None for variants that promise nothing.
        failure_prob: alpha, for all confidence statements together; if left out 1/horizon, or
            1e-8 without a horizon.
        noise: 'exact', discrete Gaussian noise in whole numbers, or 'float', as in simulations.
        memory: how many rows are remembered, for worlds that change (`windows` only): after so
            many more a row counts e times less. None to forget nothing.

    Returns:
        The mechanism.

    Raises:
        ParameterError: if there is no such variant, or it cannot do what is asked for.
    """
    row = named(variant) if isinstance(variant, str) else variant
    if isinstance(row, type) or not callable(getattr(row, "mechanism", None)):
        raise ParameterError(
            "variant",
            f"is of type {type(row).__name__}; give a name, such as 'windows', or a variant, such "
            "as Supplied(...)",
        )
    if memory is not None:
        row = row.with_memory(memory)
    setting = Setting.over(problem, horizon, failure_prob, open_ended=row.open_ended)
    return row.mechanism(setting, privacy, noise=noise)
