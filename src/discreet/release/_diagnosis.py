"""How much a release says, in words: is there one yet, and can it tell actions apart?"""

from dataclasses import dataclass

from discreet import _tables
from discreet.errors import ParameterError
from discreet.release._release import Release

_PATIENCE = 4  # times the rows of the first release, before its saying nothing is a bad sign
_SHORT = 1 / 64  # of the stated variance of the prior
_LITTLE = 0.5  # of the best-known direction: below it most of what is played is a guess


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What can be expected of choices made from a release. It prints as a few sentences.

    Attributes:
        release: the release's number, 0 before the first.
        rows: how many rows are in it.
        first_release: how many rows the first release has.
        horizon: the most rounds that will be played.
        known: how much is known of the direction of which most is, from 0 to 1; None if the law of
            the noise does not allow to say.
        prior_share: the prior's variance that fits the release, over the stated one: far below 1
            if ``theta_norm`` was stated far too large. None as above.
        distinguishes: whether the release can tell actions apart at all. None as above.
    """

    release: int
    rows: int
    first_release: int
    horizon: int
    known: float | None
    prior_share: float | None
    distinguishes: bool | None

    @property
    def never(self) -> bool:
        """Whether there will be no release at all, so that nothing is ever learned."""
        return self.first_release > self.horizon

    @property
    def in_vain(self) -> bool:
        """Whether there have been rows enough and the release still cannot tell actions apart."""
        enough = min(_PATIENCE * self.first_release, self.horizon // 2)
        return self.release > 0 and self.distinguishes is False and self.rows >= enough

    def __str__(self) -> str:
        if self.never:
            return (
                f"There will be no release: the first would have {self.first_release:,} rows and "
                f"the horizon is {self.horizon:,}. Choices will be no better than chance. Ask for "
                "more epsilon, state tighter bounds, use fewer features, or play more rounds."
            )
        if self.release == 0:
            return (
                f"No release yet: the first has {self.first_release:,} rows. Until then choices "
                "are no better than chance."
            )
        head = f"Release {self.release:,} holds {self.rows:,} rows. "
        if self.known is None:
            return head + "How much it says is in its confidence set."
        if not self.distinguishes:
            return head + (
                "It cannot tell actions apart: noise hides what there is, so all actions are "
                "equally probable. More rows, more epsilon or fewer features would help."
            )
        much = "much" if self.known >= _LITTLE else "little"
        said = f"It says {much}: of the best-known direction {100 * self.known:.0f}% of the prior "
        said += "variance is gone."
        if self.prior_share is not None and self.prior_share <= _SHORT:
            said += (
                " The parameter seems to be far shorter than theta_norm was stated; a smaller "
                "theta_norm, if you can vouch for it, gives narrower intervals."
            )
        return head + said

    def _repr_html_(self) -> str:
        rows = [
            ("release", f"{self.release:,}"),
            ("rows", f"{self.rows:,}"),
            ("rows of the first release", f"{self.first_release:,}"),
            ("most rounds", f"{self.horizon:,}"),
        ]
        if self.known is not None and self.prior_share is not None:
            rows += [
                ("known of the best-known direction", f"{100 * self.known:.0f}%"),
                ("prior's variance, of the stated one", f"{self.prior_share:.3g}"),
                ("tells actions apart", "yes" if self.distinguishes else "no"),
            ]
        return _tables.as_html((), rows, notes=[str(self)])


def diagnosis(release: Release) -> Diagnosis:
    """How much a release says: a function of the release alone.

    Args:
        release: of any learner.

    Returns:
        The diagnosis.
    """
    mechanism = release.mechanism
    known = share = distinguishes = None
    try:
        posterior = release.posterior
    except ParameterError:  # the law of the noise is another
        pass
    else:
        known, share = posterior.known, posterior.prior / posterior.stated
        distinguishes = posterior.distinguishes
    return Diagnosis(
        release=release.number,
        rows=release.rows,
        first_release=mechanism.schedule.after(0),
        horizon=mechanism.setting.horizon,
        known=known,
        prior_share=share,
        distinguishes=distinguishes,
    )
