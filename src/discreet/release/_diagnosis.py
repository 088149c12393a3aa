"""How much a release says, in words: is there one yet, and what can be expected of choices?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet import _tables
from discreet.errors import ParameterError
from discreet.features import FeatureMap
from discreet.features._made_up import made_up_sets
from discreet.kernels import _posterior as kernel
from discreet.mechanism._prospects import ACTIONS, HALF
from discreet.problem import Problem
from discreet.release._release import Release
from discreet.release.posterior import Posterior

_F64 = NDArray[np.float64]

_PATIENCE = 4  # times the rows of the first release, before its saying nothing is a bad sign
_SHORT = 1 / 64  # of the stated variance of the prior
_LITTLE = 0.5  # of the best-known direction: below it most of what is played is a guess
_PRIOR_STILL = 0.02  # of the prior's variance: with less gone, the posterior is about the prior
_SETS = 200  # decision sets that are made up where none are given
_SURE = 1.96  # deviations, for 95%
_DRAWS = 32  # parameters and tilts for each decision set

CANNOT = "cannot have learned yet"
BEGUN = "has begun to learn"
LEARNED = "has learned"

_CHANGES = "use fewer features, ask for more epsilon, or play more rounds; if each action has "
_CHANGES += "features of its own, state them as blocks"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a release says about the parameter, in numbers.

    Attributes:
        signal: the length of the released moment beside what it would be, on the average, if no
            action made any difference: about 1 for noise alone.
        removed: the share of the prior's variance that is gone, on the average of directions.
        width: how wide a 95% interval for the mean reward of an action is, on the average of
            directions, as a share of the range of rewards.
        separated: the share of decision sets in which the action with the highest estimate is
            better than a uniform choice with a probability of 97.5%, or more.
        gain: about which share of what the best choices gain over chance is gained by choices from
            this release, if the posterior is right: the mean over parameters that it allows.
        anywhere: whether ``separated`` and ``gain`` are about made-up actions that point anywhere,
            and not about decision sets that were given. Real actions may have much in common, such
            as an intercept: then those of a feature map tell more.
    """

    signal: float
    removed: float
    width: float
    separated: float
    gain: float
    anywhere: bool = True

    def sentences(self) -> list[str]:
        """A sentence for each number."""
        return [
            f"The released moment is {self.signal:.3g} times as long as noise alone would make it.",
            f"{100 * self.removed:.3g}% of all directions' prior variance is gone.",
            f"95% intervals of mean rewards are {self.width:.2g} times as wide as rewards' range.",
            (
                f"In {100 * self.separated:.3g}% of decision sets the action with the highest "
                "estimate is better than a uniform choice, with a probability of 97.5% or more."
            ),
            (
                f"Choices from it gain about {100 * max(0.0, self.gain):.0f}% of what the best "
                "choices gain over chance."
                + (" (These two are about made-up actions that point anywhere.)" * self.anywhere)
            ),
        ]


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
        half_gain_rows: after about how many rows choices gain half of what the best choices gain
            over chance, as could be said before there was any data; see
            `discreet.mechanism.planning`. None as above, or if that is beyond 10^12.
        evidence: what the release says in numbers; None before the first, and as above.
    """

    release: int
    rows: int
    first_release: int
    horizon: int
    known: float | None
    prior_share: float | None
    distinguishes: bool | None
    half_gain_rows: int | None = None
    evidence: Evidence | None = None

    @property
    def never(self) -> bool:
        """Whether there will be no release at all, so that nothing is ever learned."""
        return self.first_release > self.horizon

    @property
    def too_short(self) -> bool:
        """Whether the horizon ends before choices are expected to be much better than chance."""
        if self.known is None:
            return self.never
        return self.half_gain_rows is None or self.half_gain_rows > self.horizon

    @property
    def in_vain(self) -> bool:
        """Whether there have been rows enough and the release still cannot tell actions apart."""
        enough = min(_PATIENCE * self.first_release, self.horizon // 2)
        return self.release > 0 and self.distinguishes is False and self.rows >= enough

    @property
    def verdict(self) -> str | None:
        """In three words or so: 'cannot have learned yet', 'has begun to learn', 'has learned'.

        It cannot have learned while its posterior is about the prior: there is no release, or less
        than 2% of the prior's variance is gone. It has learned once choices from the release gain
        half of what the best choices gain over chance. None if the law of the noise does not allow
        to say.
        """
        if self.release == 0 or self.distinguishes is False:
            return CANNOT
        if self.evidence is None:
            return None
        if self.evidence.removed < _PRIOR_STILL:
            return CANNOT
        return LEARNED if self.evidence.gain >= HALF else BEGUN

    def __str__(self) -> str:
        if self.never:
            return (
                f"There will be no release: the first would have {self.first_release:,} rows and "
                f"the horizon is {self.horizon:,}. Choices will be no better than chance. Ask for "
                "more epsilon, state tighter bounds, use fewer features, or play more rounds."
            )
        return " ".join([*self._now(), *self._outlook()])

    def _now(self) -> list[str]:
        """What the release says."""
        if self.release == 0:
            said = f"No release yet: the first has {self.first_release:,} rows. Until then choices "
            return [said + "are no better than chance."]
        head = f"Release {self.release:,} holds {self.rows:,} rows. "
        if self.known is None:
            return [head + "How much it says is in its confidence set."]
        if not self.distinguishes:
            head += "It cannot tell actions apart: noise hides what there is, so all actions are "
            head += "equally probable. More rows, more epsilon or fewer features would help."
            return [head, f"This learner {CANNOT}."]
        much = "much" if self.known >= _LITTLE else "little"
        said = f"It says {much}: of the best-known direction {100 * self.known:.0f}% of the prior "
        said += "variance is gone."
        if self.prior_share is not None and self.prior_share <= _SHORT:
            said += (
                " The parameter seems to be far shorter than theta_norm was stated; a smaller "
                "theta_norm, if you can vouch for it, gives narrower intervals."
            )
        if self.evidence is None:
            return [head + said]
        return [head + said, *self.evidence.sentences(), f"This learner {self.verdict}."]

    def _outlook(self) -> list[str]:
        """What is to come, unless it has come already."""
        if self.known is None or self.verdict == LEARNED:
            return []
        if self.half_gain_rows is None:
            needed = "more than 10^12 rows"
        else:
            needed = f"about {self.half_gain_rows:,} rows"
        if self.too_short:
            said = f"Within {self.horizon:,} rounds this learner will hardly choose better than "
            said += f"chance: to gain half of what the best choices gain takes {needed}. To change "
            return [f"{said}that, {_CHANGES}."]
        return [f"To gain half of what the best choices gain over chance takes {needed}."]

    def _repr_html_(self) -> str:
        rows = [
            ("release", f"{self.release:,}"),
            ("rows", f"{self.rows:,}"),
            ("rows of the first release", f"{self.first_release:,}"),
            ("most rounds", f"{self.horizon:,}"),
        ]
        if self.known is not None and self.prior_share is not None:
            needed = self.half_gain_rows
            rows += [
                ("known of the best-known direction", f"{100 * self.known:.0f}%"),
                ("prior's variance, of the stated one", f"{self.prior_share:.3g}"),
                ("tells actions apart", "yes" if self.distinguishes else "no"),
                (
                    "rows until half of the gain",
                    "beyond 10^12" if needed is None else f"{needed:,}",
                ),
            ]
        if self.evidence is not None:
            found = self.evidence
            rows += [
                ("moment, beside noise alone", f"{found.signal:.3g}"),
                ("prior's variance that is gone", f"{100 * found.removed:.3g}%"),
                ("width of intervals, of the rewards' range", f"{found.width:.2g}"),
                ("decision sets with a clear best action", f"{100 * found.separated:.3g}%"),
                ("gain over chance, of the best choices'", f"{100 * max(0.0, found.gain):.0f}%"),
                ("verdict", str(self.verdict)),
            ]
        return _tables.as_html((), rows, notes=[str(self)])


def diagnosis(
    release: Release,
    sets: Sequence[_F64] | None = None,
    *,
    brief: bool = False,
) -> Diagnosis:
    """How much a release says: a function of the release, and of decision sets if any are given.

    Args:
        release: of any learner.
        sets: decision sets to look at, shape (K, d) each; made-up ones if left out.
        brief: leave the evidence out, which takes a moment to work out.

    Returns:
        The diagnosis.
    """
    mechanism = release.mechanism
    known = share = distinguishes = rows = evidence = None
    try:
        posterior = release.posterior
    except ParameterError:  # the law of the noise is another
        pass
    else:
        known, share = posterior.known, posterior.prior / posterior.stated
        distinguishes, rows = posterior.distinguishes, mechanism.half_gain_rows
        if release.number > 0 and not brief:
            offered = _made_up(mechanism.setting.problem) if sets is None else sets
            evidence = replace(_evidence(release, offered), anywhere=sets is None)
    return Diagnosis(
        release=release.number,
        rows=release.rows,
        first_release=mechanism.schedule.after(0),
        horizon=mechanism.setting.horizon,
        known=known,
        prior_share=share,
        distinguishes=distinguishes,
        half_gain_rows=rows,
        evidence=evidence,
    )


def diagnosed(release: Release, features: FeatureMap | None) -> Diagnosis:
    """The diagnosis, for decision sets that the learner's feature map makes of made-up people.

    Args:
        release: of any learner.
        features: its map; None if there is none: then made-up actions point anywhere.

    Returns:
        The diagnosis.
    """
    if features is None:
        return diagnosis(release)
    return diagnosis(release, made_up_sets(features, count=_SETS, n_actions=ACTIONS))


def _evidence(release: Release, sets: Sequence[_F64] | _F64) -> Evidence:
    """The numbers, from the posterior that is played; intervals are those of `estimate`."""
    mechanism, posterior, cautious = release.mechanism, release.posterior, release.cautious
    problem, dim = mechanism.setting.problem, release.moment.size
    covariance = posterior.covariance
    left = float(np.trace(covariance))
    most = release.weight * problem.action_norm**2
    trace = float(np.trace(release.gram)) - dim * mechanism.shift
    noise = problem.reward_subgaussian**2 * min(max(trace, 0.0), most)
    noise += dim * (release.spread * mechanism.law.moment_scale) ** 2
    deviation = problem.action_norm * math.sqrt(float(np.trace(cautious.covariance)) / dim)
    clear = [_is_clear(one, posterior.centre, covariance) for one in sets]
    return Evidence(
        signal=math.sqrt(float(release.moment @ release.moment) / noise) if noise > 0.0 else 0.0,
        removed=max(0.0, 1.0 - left / (dim * posterior.prior)),
        width=2 * _SURE * deviation / (2 * problem.reward_bound),
        separated=sum(clear) / len(clear) if clear else 0.0,
        gain=_gain(posterior, sets) if posterior.distinguishes else 0.0,
    )


def _gain(posterior: Posterior, sets: Sequence[_F64] | _F64) -> float:
    """What choices gain over chance, over what the best gain, for parameters of the posterior.

    A choice is the best action for the posterior's mean with one of the tilts that the default
    policy gives it; whatever it turns out to be, its mean reward is expected to be the mean's.
    """
    rng = np.random.default_rng(0)  # always the same: a diagnosis is a function of the release
    values, vectors = np.linalg.eigh(posterior.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    tilt = kernel.DITHER / math.sqrt(posterior.prior) * posterior.covariance
    own = best = 0.0
    for actions in sets:
        ahead = actions - actions.mean(axis=0)
        draws = rng.standard_normal((2, _DRAWS, posterior.centre.size))
        tilted = ahead @ (posterior.centre + draws[0] @ tilt).T
        own += float((ahead @ posterior.centre)[tilted.argmax(axis=0)].mean())
        best += float((ahead @ (posterior.centre + draws[1] @ root.T).T).max(axis=0).mean())
    return max(0.0, own / best) if best > 0.0 else 0.0


def _is_clear(actions: _F64, centre: _F64, covariance: _F64) -> bool:
    """Whether the action with the highest estimate is surely better than the average one."""
    ahead = actions[int(np.argmax(actions @ centre))] - actions.mean(axis=0)
    return bool(ahead @ centre > _SURE * math.sqrt(max(0.0, float(ahead @ covariance @ ahead))))


def _made_up(problem: Problem) -> _F64:
    """Decision sets of actions that point anywhere, each within one of the problem's blocks."""
    rng = np.random.default_rng(0)  # always the same ones
    sets = rng.standard_normal((_SETS, ACTIONS, problem.dim))
    if len(problem.blocks) > 1:
        owner = np.repeat(np.arange(len(problem.blocks)), problem.blocks)
        drawn = rng.integers(0, len(problem.blocks), (_SETS, ACTIONS))
        sets *= owner == drawn[:, :, None]
    return np.asarray(
        problem.action_norm * sets / np.linalg.norm(sets, axis=2, keepdims=True), dtype=np.float64
    )
