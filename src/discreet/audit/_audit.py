"""`run`: attacks on a learner, and what they found beside what is claimed, as plain data."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from discreet import _checks as checks
from discreet import learner as learners
from discreet.audit._attacks import ATTACKS, EpsilonBound, Target
from discreet.audit._trials import AuditedLearner, Effort, Load, Make, Makers
from discreet.errors import ParameterError
from discreet.learner import LinUCB
from discreet.mechanism import Mechanism
from discreet.mechanism.variants import Variant
from discreet.privacy import Privacy
from discreet.problem import Problem, Setting
from discreet.release.policies import UCB

_CONSISTENT, _VIOLATED, _NO_CLAIM = "consistent", "VIOLATED", "no claim"
_DEFAULT_DELTA = 1e-6  # where nothing is claimed
_RELEASES = 8  # of a learner with several, unless a horizon is given


@dataclass(frozen=True, kw_only=True)
class Config:
    """A configuration of `LinUCB` to be attacked.

    Attributes:
        problem: the stated bounds.
        privacy: the target; None for variants that promise nothing.
        variant: how it is met.
        horizon: rounds of the learners with several releases; enough for eight releases if left
            out. Attacks on one release have learners of their own, with a horizon that ends there.
        noise: 'exact' or 'float'.
    """

    problem: Problem
    privacy: Privacy | None
    variant: Variant
    horizon: int | None = None
    noise: str = "exact"

    def mechanism(self, horizon: int) -> Mechanism:
        """The noise of a learner with this horizon."""
        setting = Setting(problem=self.problem, horizon=horizon)
        return self.variant.mechanism(setting, self.privacy, noise=self.noise)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one attack found.

    Attributes:
        attack: its name.
        epsilon_lower: epsilon is at least this, with the stated confidence.
        claimed: the epsilon that is promised; None if nothing is.
        delta: the delta that both are about.
        confidence: the probability that ``epsilon_lower`` is true, whatever is attacked.
        trials: learners that were made for each world, or in all where there is one kind.
        seconds: how long it took. Trials that two attacks share count for the first.
        verdict: 'consistent' with the claim; 'VIOLATED'; 'refused' where the learner did not play
            along; 'inapplicable'; 'no claim'.
        note: a remark.
    """

    attack: str
    epsilon_lower: float
    claimed: float | None
    delta: float
    confidence: float
    trials: int
    seconds: float
    verdict: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What all attacks found.

    Attributes:
        variant: the name of what was attacked.
        guarantee: its promise, as a sentence.
        findings: one for each attack.
    """

    variant: str
    guarantee: str
    findings: tuple[Finding, ...]

    @property
    def violated(self) -> bool:
        """Whether some attack shows more than is claimed."""
        return any(found.verdict == _VIOLATED for found in self.findings)

    @property
    def epsilon_lower(self) -> float:
        """The largest bound. With several attacks it is a little less sure than each."""
        return max((found.epsilon_lower for found in self.findings), default=0.0)

    def finding(self, attack: str) -> Finding:
        """What this attack found; KeyError if it was not run."""
        return {found.attack: found for found in self.findings}[attack]

    def to_json(self) -> dict[str, Any]:
        """All fields, and the verdict of all together."""
        return {**asdict(self), "violated": self.violated, "epsilon_lower": self.epsilon_lower}

    def table(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows for people."""
        columns = ["attack", "epsilon at least", "claimed", "trials", "seconds", "verdict"]
        rows = [
            (
                found.attack,
                f"{found.epsilon_lower:.3f}",
                "nothing" if found.claimed is None else f"{found.claimed:g}",
                f"{found.trials:,}",
                f"{found.seconds:.1f}",
                found.verdict,
            )
            for found in self.findings
        ]
        return columns, rows


def run(
    subject: Config | Callable[[], AuditedLearner],
    *,
    attacks: Sequence[str] = tuple(ATTACKS),
    trials: int = 100_000,
    confidence: float = 0.999,
    jobs: int = 1,
    delta: float | None = None,
    load: Callable[[Path], AuditedLearner] = learners.load,
    on_attack: Callable[[int], None] | None = None,
) -> Audit:
    """Attack, and set what is found beside what is claimed.

    Args:
        subject: a `Config`, or a function that makes a learner whenever it is called, such as
            ``functools.partial(LinUCB.from_mechanism, mechanism)``. With more than one job it has
            to be picklable.
        attacks: names from `ATTACKS`; all of them if left out.
        trials: learners that are made for each of two worlds, at least 100. A fifth of them serves
            to tune an attack, the others to judge it.
        confidence: the probability that a bound is true, for each attack by itself.
        jobs: worker processes.
        delta: what epsilon is bounded at where no delta is claimed; 1e-6 if left out.
        load: how a stored learner is loaded, for the attack that rewinds.
        on_attack: called with the number of attacks done so far.

    Returns:
        What each attack found.

    Raises:
        ParameterError: a setting is out of range, an attack is unknown, or a learner ends before
            its first release.
    """
    effort = Effort(trials=trials, confidence=confidence, jobs=jobs)
    names = [checks.one_of("attack", name, tuple(ATTACKS)) for name in attacks]
    makers = _makers(subject, load)
    mechanism = makers.short().mechanism
    claim = mechanism.guarantee
    unclaimed = _DEFAULT_DELTA if delta is None else checks.probability("delta", delta)
    target = Target(makers, effort, delta=unclaimed if claim.delta is None else claim.delta)
    findings = []
    for done, name in enumerate(names, start=1):
        findings.append(_attacked(target, name, claim.epsilon))
        if on_attack is not None:
            on_attack(done)
    return Audit(variant=mechanism.variant, guarantee=str(claim), findings=tuple(findings))


def _makers(subject: Config | Make, load: Load) -> Makers:
    """How to make the learners; a function makes the same ones for all attacks."""
    if not isinstance(subject, Config):
        return Makers(short=subject, long=subject, clipping=subject, load=load)
    schedule = subject.mechanism(1).schedule
    rows = [0]
    for _ in range(_RELEASES):
        rows.append(schedule.after(rows[-1]))
    several = rows[-1] if subject.horizon is None else subject.horizon
    if several < rows[1]:
        raise ParameterError(
            "horizon", f"is {several}, before the first release; give at least {rows[1]}"
        )
    # Every decision set has one action, so the policy is of no account: one that never warns.
    make = partial(LinUCB.from_mechanism, policy=UCB())
    short = partial(make, subject.mechanism(rows[1]))
    return Makers(
        short=short,
        long=partial(make, subject.mechanism(several)),
        clipping=partial(short, on_violation="clip"),
        load=load,
    )


def _attacked(target: Target, name: str, claimed: float | None) -> Finding:
    start = time.perf_counter()
    found = ATTACKS[name](target)
    return Finding(
        attack=name,
        epsilon_lower=found.epsilon,
        claimed=claimed,
        delta=target.delta,
        confidence=target.effort.confidence,
        trials=found.trials,
        seconds=time.perf_counter() - start,
        verdict=verdict(found, claimed),
        note=found.note,
    )


def verdict(found: EpsilonBound, claimed: float | None) -> str:
    """What a bound says of a claim."""
    if found.outcome:
        return found.outcome
    if claimed is None:
        return _NO_CLAIM
    return _VIOLATED if found.epsilon > claimed else _CONSISTENT
