"""Sums of all rows, with correlated noise and exact Gaussian accounting."""

from dataclasses import dataclass, field, replace

from discreet.errors import ParameterError
from discreet.mechanism import strategies
from discreet.mechanism._confidence import JointWidth
from discreet.mechanism._mechanism import Mechanism
from discreet.mechanism._variant import NoMemory, OwnShift, gaussian_mechanism, least_noise
from discreet.mechanism.noise import _discrete_gaussian
from discreet.mechanism.schedules import Schedule, hybrid
from discreet.mechanism.strategies import Buffered, Strategy
from discreet.privacy import Privacy, required
from discreet.problem import Setting

_ARGUMENT = (
    "Gaussian noise{where}, correlated between releases by a lower triangular matrix, with the "
    "least standard {deviations} that exact Gaussian accounting allows for one {record}'s "
    "sensitivity; release times do not depend on data; a policy sees releases only"
)


@dataclass(frozen=True, kw_only=True)
class Tight(OwnShift, NoMemory):
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
        """Calibrate to a privacy target.

        Args:
            setting: problem, horizon and failure probability.
            privacy: the target (epsilon, delta), and whom and what it protects; not None.
            noise: 'exact', discrete Gaussian noise in whole numbers, or 'float', as in simulations.

        Returns:
            The mechanism.

        Raises:
            ParameterError: there is no target, it cannot be met in this setting, or there are too
                many releases.
        """
        privacy = required(self.name, privacy)
        releases = max(1, self.schedule.require_few(setting.horizon))
        person = self.strategy.person_cost(
            releases, privacy.contributions_per_user, every_round=self.schedule.every_round
        )
        law = least_noise(setting.problem, privacy, person=person, ratio=self.ratio)
        use = _discrete_gaussian.Use(setting, self.schedule, self.strategy, privacy)
        return gaussian_mechanism(self, law, use, noise=noise, argument=_ARGUMENT, policy="ucb")
