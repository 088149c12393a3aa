"""The default variant: the paper's guarantee for a fraction of its noise.

Exact accounting, noise that is correlated between a few thousand releases instead of a tree over
all rows, and a confidence set that adds reward noise and privacy noise in quadrature. Each can be
exchanged by itself.
"""

import math
from dataclasses import dataclass, field, replace

from discreet import accounting
from discreet.errors import ParameterError
from discreet.mechanism import strategies
from discreet.mechanism._mechanism import JointWidth, Mechanism
from discreet.mechanism.noise import _discrete as exact
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.schedules import Schedule, hybrid
from discreet.mechanism.strategies import Buffered, Strategy
from discreet.privacy import Guarantee, Privacy, required
from discreet.problem import Setting

ARGUMENT = (
    "Gaussian noise, correlated between releases by a lower triangular matrix, with the least "
    "standard deviations that exact Gaussian accounting allows for one row's sensitivity; "
    "release times do not depend on data; a policy sees releases only"
)


@dataclass(frozen=True, kw_only=True)
class Tight:
    """Correlated Gaussian noise on scheduled releases, with the joint-noise width.

    Attributes:
        name: in tables and on the command line.
        summary: one line about it.
        schedule: when there is a release. By default the first is after 20 rows: a shorter horizon
            has none, and nothing is learned.
        strategy: how noise is shared between releases.
        confidence: the confidence set.
        ratio: the moment's noise over the Gram matrix's; None for the best one.
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

    def with_calibration(self, calibration: str) -> "Tight":
        """Refuse all but the one there is."""
        if calibration != "exact":
            raise ParameterError(
                "calibration", f"is {calibration!r}, but variant {self.name!r} is always 'exact'"
            )
        return self

    def with_shift(self, shift: float) -> "Tight":
        """Refuse: it is chosen anew at each release."""
        raise ParameterError("shift", f"is {shift:g}, but variant {self.name!r} chooses its own")

    def with_rho_min(self, rho_min: float) -> "Tight":
        """Refuse: there is no such bound."""
        raise ParameterError("rho_min", f"is {rho_min:g}, but variant {self.name!r} has none")

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """Calibrate to a privacy target."""
        privacy = required(self.name, privacy)
        releases = max(1, self.schedule.require_few(setting.horizon))
        rows = privacy.contributions_per_user * self.strategy.column_norm(releases)
        scales = accounting.row_scales(
            setting.problem,
            mu_one=math.nextafter(accounting.gaussian_mu(privacy) / rows, 0.0),
            neighbours=privacy.neighbours,
            ratio=self.ratio,
        )
        law = GaussianNoise(std=scales.gram_std, moment_std=scales.moment_std)
        use = exact.Use(setting, self.schedule, self.strategy, privacy)
        return Mechanism(
            variant=self.name,
            setting=setting,
            schedule=self.schedule,
            strategy=self.strategy,
            noise=exact.drawn(law, noise, use),
            confidence=self.confidence,
            guarantee=Guarantee.meeting(privacy, exact.argument(ARGUMENT, noise)),
        )
