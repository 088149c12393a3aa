"""What is attacked: a configuration of `LinUCB`, or anybody's way to make learners."""

from dataclasses import dataclass

from discreet.audit._attacks import Subject
from discreet.errors import ParameterError
from discreet.learner import LinUCB
from discreet.mechanism import Mechanism
from discreet.mechanism.variants import Variant, calibrate
from discreet.privacy import Privacy
from discreet.problem import Problem, Setting

_RELEASES = 8  # of a learner with several, unless a horizon is given


@dataclass(frozen=True)
class Calibrated:
    """A variant whose mechanism is worked out already: for many learners of one kind."""

    built: Mechanism
    summary = "worked out beforehand"
    open_ended = True
    perturbations = None

    @property
    def name(self) -> str:
        """That of the variant it was built by."""
        return self.built.variant

    @property
    def private(self) -> bool:
        """Whether it promises anything."""
        return self.built.guarantee.private

    def mechanism(
        self,
        setting: Setting,  # noqa: ARG002  # all settled
        privacy: Privacy | None,  # noqa: ARG002
        *,
        noise: str = "exact",  # noqa: ARG002
    ) -> Mechanism:
        """The one there is."""
        return self.built


@dataclass(frozen=True)
class Fresh:
    """Makes learners of one mechanism, each with noise of its own.

    Attributes:
        mechanism: what they share.
        on_violation: what they do with rows out of bounds.
    """

    mechanism: Mechanism
    on_violation: str = "error"

    def __call__(self) -> LinUCB:
        """A learner before its first row."""
        setting = self.mechanism.setting
        return LinUCB(
            setting.problem,
            horizon=setting.horizon,
            variant=Calibrated(self.mechanism),
            failure_prob=setting.failure_prob,
            on_violation=self.on_violation,
        )


@dataclass(frozen=True, kw_only=True)
class Config:
    """A `LinUCB` to be attacked.

    Attributes:
        problem: the stated bounds.
        privacy: the target; None for variants that promise nothing.
        variant: how it is met.
        horizon: rows of the learners with several releases; eight releases if left out. Attacks on
            one release have learners of their own, with a horizon that ends there.
        noise: 'exact' or 'float'.
    """

    problem: Problem
    privacy: Privacy | None
    variant: Variant
    horizon: int | None = None
    noise: str = "exact"

    def subject(self) -> Subject:
        """How to make the learners."""
        short = self._mechanism(self._rows(1))
        several = self._rows(_RELEASES) if self.horizon is None else self.horizon
        if several < short.setting.horizon:
            raise ParameterError(
                "horizon",
                f"is {several}, before the first release; give at least {short.setting.horizon}",
            )
        return Subject(
            short=Fresh(short),
            long=Fresh(self._mechanism(several)),
            clipping=Fresh(short, on_violation="clip"),
        )

    def _rows(self, releases: int) -> int:
        """How many rows it takes for so many releases."""
        schedule = self._mechanism(1).schedule
        rows = 0
        for _ in range(releases):
            rows = schedule.after(rows)
        return rows

    def _mechanism(self, horizon: int) -> Mechanism:
        return calibrate(
            self.variant, self.problem, horizon=horizon, privacy=self.privacy, noise=self.noise
        )
