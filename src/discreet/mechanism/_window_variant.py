"""The default variant: sums that forget, each with noise of its own."""

import math
from dataclasses import dataclass, field, replace

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.mechanism._confidence import JointWidth
from discreet.mechanism._mechanism import Mechanism
from discreet.mechanism._variant import NoTree, OwnShift, gaussian_mechanism, least_noise
from discreet.mechanism.noise import _discrete_gaussian
from discreet.mechanism.schedules import Schedule, hybrid
from discreet.mechanism.strategies import Windows
from discreet.privacy import Privacy, required
from discreet.problem import Problem, Setting

_LATEST = 2**61  # no first release is later
_ARGUMENT = (
    "Gaussian noise{where}, drawn afresh for each of a series of sums in which older rows count "
    "less, with the least standard {deviations} that exact Gaussian accounting allows for one "
    "{record}'s sensitivity over all of them; release times do not depend on data; a policy sees "
    "releases only"
)


@dataclass(frozen=True, kw_only=True)
class Windowed(OwnShift, NoTree):
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

    def schedule(self, problem: Problem, *, gram_std: float, moment_std: float) -> Schedule:
        """When there is a release, with noise of these deviations: a function of public numbers.

        Args:
            problem: the stated bounds.
            gram_std: of one draw, off the diagonal.
            moment_std: of one draw.

        Returns:
            The schedule.

        Raises:
            ParameterError: the memory is shorter than the first release.
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
        """Calibrate to a privacy target.

        Args:
            setting: problem, horizon and failure probability.
            privacy: the target (epsilon, delta), and whom and what it protects; not None.
            noise: 'exact', discrete Gaussian noise in whole numbers, or 'float', as in simulations.

        Returns:
            The mechanism.

        Raises:
            ParameterError: there is no target, it cannot be met in this setting, or the memory is
                too short.
        """
        privacy, problem = required(self.name, privacy), setting.problem
        law = least_noise(
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
        return gaussian_mechanism(
            self, law, use, noise=noise, argument=_ARGUMENT, policy="posterior"
        )
