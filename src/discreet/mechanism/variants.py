"""The table of variants: each a named row of choices, and the only list of them.

A variant turns a setting and a privacy target into a `Mechanism`; `calibrate` does so from a
variant's name. The paper's variants share one shape, `TreeVariant`, and differ in noise family and
shift; ours are `Windowed`, the default, and `Tight`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from scipy.optimize import minimize_scalar

from discreet import _checks as checks
from discreet import accounting, theory
from discreet.errors import ParameterError
from discreet.mechanism import strategies
from discreet.mechanism._confidence import JointWidth, PaperConfidence
from discreet.mechanism._mechanism import Mechanism, NodeNoise
from discreet.mechanism._perturbations import Perturbations
from discreet.mechanism.noise import _discrete_gaussian
from discreet.mechanism.noise import _gaussian as gaussian
from discreet.mechanism.noise import _wishart as wishart
from discreet.mechanism.schedules import Schedule, every_round, hybrid
from discreet.mechanism.strategies import Buffered, Strategy, Windows
from discreet.privacy import Guarantee, Privacy, required
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

_ShiftRule = Callable[[Any, Setting], tuple[float, NoiseBounds]]
_LeadingTerm = Callable[[Setting, Privacy], float]


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

        Args:
            setting: problem, horizon and failure probability.
            privacy: the target; None where nothing is promised.
            noise: 'exact', discrete Gaussian noise in whole numbers, or 'float', as in simulations.

        Returns:
            The mechanism.

        Raises:
            ParameterError: if the target cannot be met in this setting.
        """


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


_GAUSSIAN = NoiseFamily(
    calibrated=gaussian.GaussianNoise.calibrated,
    argument=gaussian.ARGUMENT,
    leading_term=theory.gaussian_leading_term,
    gdp=NoiseFamily(
        calibrated=gaussian.GaussianNoise.calibrated_by_gdp, argument=gaussian.GDP_ARGUMENT
    ),
)
_WISHART = NoiseFamily(
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
        """Calibrate to a privacy target."""
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


_TIGHT_ARGUMENT = (
    "Gaussian noise{where}, correlated between releases by a lower triangular matrix, with the "
    "least standard {deviations} that exact Gaussian accounting allows for one {record}'s "
    "sensitivity; release times do not depend on data; a policy sees releases only"
)


def _argument(text: str, privacy: Privacy) -> str:
    """An argument, in the words for what is protected."""
    if privacy.protects == "rewards":
        return text.format(
            where=" on the sums of action times reward",
            deviations="deviation",
            record="reward",
        )
    return text.format(where="", deviations="deviations", record="row")


class _OwnShift:
    """Variants of Gaussian noise by exact accounting that need no shift."""

    name: str

    def with_calibration(self, calibration: str) -> Self:
        """The same: it has no other calibration than 'gdp'."""
        if calibration != "gdp":
            raise ParameterError(
                "calibration", f"is {calibration!r}, but variant {self.name!r} is always 'gdp'"
            )
        return self

    def with_shift(self, shift: float) -> Self:
        """Refuse: the shift is chosen at each release."""
        raise ParameterError("shift", f"is {shift:g}, but variant {self.name!r} chooses its own")

    def with_rho_min(self, rho_min: float) -> Self:
        """Refuse: there is no such bound."""
        raise ParameterError("rho_min", f"is {rho_min:g}, but variant {self.name!r} has none")


_WINDOWS_ARGUMENT = (
    "Gaussian noise{where}, drawn afresh for each of a series of sums in which older rows count "
    "less, with the least standard {deviations} that exact Gaussian accounting allows for one "
    "{record}'s sensitivity over all of them; release times do not depend on data; a policy sees "
    "releases only"
)


@dataclass(frozen=True, kw_only=True)
class Windowed(_OwnShift):
    """The default: sums that forget, each with noise of its own, and a filter over all of them.

    What one row costs is what it costs in a single release, whatever the horizon. The first
    release waits for as many rows as the noise asks for: earlier ones would say nothing.

    Attributes:
        name: the name in tables and on the command line.
        summary: one line for tables and help.
        start: rows before the first release, in multiples of sqrt(d) times the noise of one draw
            (over the longest action and reward).
        growth: each later release has this share more rows ...
        root: ... or this many times the square root of them, whichever is less.
        ratio: the moment's noise over the Gram matrix's, in multiples of reward bound over action
            norm. Not used if rewards alone are protected: the Gram matrix then has no noise.
        confidence: the confidence set that is proven.
        memory: how many rows are remembered: after so many more a row counts e times less. None to
            forget nothing.
    """

    name: str = "windows"
    summary: str = "our own"
    start: float = 3.0
    growth: float = 0.1
    root: float = 1.0
    ratio: float = math.sqrt(2.0)
    confidence: JointWidth = field(default_factory=JointWidth)
    memory: int | None = None
    private = True
    open_ended = True
    perturbations = None
    leading_term = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("start", "growth", "root", "ratio"):
            checks.within(name, checks.positive(name, getattr(self, name)), 1e-3, 1e3)

    def with_memory(self, memory: int) -> "Windowed":
        """The same, but forgetting what is older than so many rows, for worlds that change."""
        return replace(self, memory=memory)

    def with_tree(self, tree: str) -> Self:
        """Refuse: there is no tree."""
        raise ParameterError("tree", f"is {tree!r}, but variant {self.name!r} has no tree")

    def schedule(self, problem: Problem, *, gram_std: float, moment_std: float) -> Schedule:
        """When there is a release, with noise of these deviations: a function of public numbers.

        Args:
            problem: the stated bounds.
            gram_std: of one draw, off the diagonal.
            moment_std: of one draw.

        Returns:
            The schedule.
        """
        noise = math.sqrt(Windows.draw_variance(problem, gram_std=gram_std, moment_std=moment_std))
        noise /= problem.action_norm * problem.reward_bound
        first = max(problem.dim, int(self.start * math.sqrt(problem.dim) * noise))
        found = hybrid(start=min(first, _LATEST), ratio=self.growth, root=self.root)
        if self.memory is None:
            return found
        memory = checks.count("memory", self.memory)
        if memory < first:
            raise ParameterError(
                "memory",
                f"is {checks.shown(memory)}, and the sum of fewer than {first:,} rows is mostly "
                f"noise; give at least {first:,}, or ask for more epsilon",
            )
        # Once the memory is full nothing grows any more, and so do steps.
        return replace(found, batch=max(1, found.after(memory) - memory))

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """Calibrate to a privacy target."""
        privacy, problem = required(self.name, privacy), setting.problem
        law = _least_noise(
            problem,
            privacy,
            person=Windows.cost_of(privacy.contributions_per_user),
            ratio=self.ratio * problem.reward_bound / problem.action_norm,
        )
        deviations = {"gram_std": law.std, "moment_std": law.moment_std}
        schedule = self.schedule(problem, **deviations)
        if self.memory is None:
            schedule.require_few(setting.horizon)
        strategy = Windows.fitted(schedule, problem, **deviations, memory=self.memory)
        use = _discrete_gaussian.Use(setting, schedule, strategy, privacy)
        return _mechanism(self, law, use, noise, _WINDOWS_ARGUMENT, policy="posterior")


_LATEST = 2**61  # no first release is later


@dataclass(frozen=True, kw_only=True)
class Tight(_OwnShift):
    """Sums of all rows, for a fraction of the paper's noise.

    Gaussian accounting, noise that is correlated between a few thousand releases instead of a tree
    over all rows, and the joint-noise width. Each can be exchanged by itself.

    Attributes:
        name: the name in tables and on the command line.
        summary: one line for tables and help.
        schedule: when there is a release. By default the first is after 20 rows: a shorter horizon
            has none, and nothing is learned.
        strategy: how noise is shared between releases.
        confidence: the confidence set.
        ratio: the moment's noise over the Gram matrix's; None for the best one. Not used if rewards
            alone are protected: the Gram matrix then has no noise.
    """

    name: str = "tight"
    summary: str = "our own"
    schedule: Schedule = field(default_factory=hybrid)
    strategy: Strategy = field(default_factory=Buffered)
    confidence: JointWidth = field(default_factory=JointWidth)
    ratio: float | None = None
    private = True
    open_ended = True
    perturbations = None
    leading_term = None

    def __post_init__(self) -> None:
        """Check that the pieces are what they should be."""
        if not isinstance(self.schedule, Schedule):
            raise ParameterError("schedule", "must be a Schedule, such as schedules.hybrid()")
        if isinstance(self.strategy, type) or not isinstance(self.strategy, Strategy):
            raise ParameterError("strategy", "must be a strategy, such as strategies.Buffered()")

    def with_schedule(self, schedule: Schedule) -> "Tight":
        """The same with other release times."""
        return replace(self, schedule=schedule)

    def with_strategy(self, strategy: Strategy) -> "Tight":
        """The same with noise shared in another way."""
        return replace(self, strategy=strategy)

    def with_tree(self, tree: str) -> "Tight":
        """The same with a tree over the releases, 'pan-private' or 'covering'."""
        return self.with_strategy(strategies.tree(tree))

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """Calibrate to a privacy target."""
        privacy = required(self.name, privacy)
        releases = max(1, self.schedule.require_few(setting.horizon))
        person = self.strategy.person_cost(
            releases, privacy.contributions_per_user, every_round=self.schedule.every_round
        )
        law = _least_noise(setting.problem, privacy, person=person, ratio=self.ratio)
        use = _discrete_gaussian.Use(setting, self.schedule, self.strategy, privacy)
        return _mechanism(self, law, use, noise, _TIGHT_ARGUMENT, policy="ucb")


def _least_noise(
    problem: Problem, privacy: Privacy, *, person: float, ratio: float | None
) -> gaussian.GaussianNoise:
    """The least Gaussian noise that exact accounting allows; on the moment alone for rewards.

    Args:
        problem: the stated bounds.
        privacy: the target.
        person: what one person's rounds cost over all releases, in rows in one sum.
        ratio: the moment's noise over the Gram matrix's; None for the best one.

    Returns:
        The law of one draw.
    """
    mu_one = math.nextafter(accounting.gaussian_mu(privacy) / person, 0.0)
    if privacy.protects == "rewards":
        std = accounting.reward_std(problem, mu_one=mu_one, neighbours=privacy.neighbours)
        return gaussian.GaussianNoise(std=0.0, moment_std=std)
    scales = accounting.row_scales(
        problem, mu_one=mu_one, neighbours=privacy.neighbours, ratio=ratio
    )
    return gaussian.GaussianNoise(std=scales.gram_std, moment_std=scales.moment_std)


def _mechanism(
    variant: Windowed | Tight,
    law: gaussian.GaussianNoise,
    use: _discrete_gaussian.Use,
    noise: str,
    argument: str,
    *,
    policy: str,
) -> Mechanism:
    """The mechanism that draws from a law, in floating point or in whole numbers."""
    reason = _argument(argument, use.privacy)
    return Mechanism(
        variant=variant.name,
        setting=use.setting,
        schedule=use.schedule,
        strategy=use.strategy,
        noise=_discrete_gaussian.drawn(law, noise, use),
        confidence=variant.confidence,
        guarantee=Guarantee.meeting(use.privacy, _discrete_gaussian.argument(reason, noise)),
        policy=policy,
    )


@dataclass(frozen=True, kw_only=True)
class Unperturbed:
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

    def with_tree(self, tree: str) -> "Unperturbed":
        """Refuse: there is no tree."""
        raise ParameterError("tree", f"is {tree!r}, but variant {self.name!r} has no tree")

    def with_calibration(self, calibration: str) -> "Unperturbed":
        """Refuse: there is no noise."""
        raise ParameterError(
            "calibration", f"is {calibration!r}, but variant {self.name!r} has no noise"
        )

    def with_shift(self, shift: float) -> "Unperturbed":
        """LinUCB with a regularizer of your own: the posterior has none."""
        return replace(self, regularizer=shift, policy="ucb")

    def with_rho_min(self, rho_min: float) -> "Unperturbed":
        """The same thing: the regularizer is its own lower bound."""
        return self.with_shift(checks.positive("rho_min", rho_min))

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """No noise, and no promise."""
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
class Supplied:
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
        family=_GAUSSIAN,
        shift_rule=gaussian.paper_shift,
    ),
    TreeVariant(
        name="gaussian-opt",
        summary="Gaussian noise with the shift at the minimum of the regret bound",
        family=_GAUSSIAN,
        shift_rule=bound_optimal(gaussian.paper_shift),
    ),
    TreeVariant(
        name="wishart",
        summary="the paper's Wishart noise, shifted down by eq:c",
        family=_WISHART,
        shift_rule=wishart.paper_shift,
    ),
    TreeVariant(
        name="wishart-opt",
        summary="Wishart noise with the shift at the minimum of the regret bound",
        family=_WISHART,
        shift_rule=bound_optimal(wishart.paper_shift),
    ),
    TreeVariant(
        name="wishart-unshifted",
        summary="the paper's Wishart noise as it is drawn",
        family=_WISHART,
        shift_rule=wishart.no_shift,
    ),
)

VARIANTS: dict[str, Named] = {row.name: row for row in _ROWS}


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
    if memory is not None:
        if not isinstance(row, Windowed):
            raise ParameterError(
                "memory", f"has no meaning for variant {row.name!r}, which forgets nothing"
            )
        row = row.with_memory(memory)
    setting = Setting.over(problem, horizon, failure_prob, open_ended=row.open_ended)
    return row.mechanism(setting, privacy, noise=noise)
