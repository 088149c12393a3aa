"""Attacks that try to show more than a guarantee allows: lower bounds on epsilon.

`run` attacks a configuration or any way to make learners, and sets what it finds beside the claim.
A bound above the claim refutes it, up to the stated confidence. One below proves nothing.
What each attack does: docs/audit.md.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from discreet import _checks as checks
from discreet import learner as learners
from discreet.audit._attacks import ATTACKS, Bench, Subject
from discreet.audit._report import Audit, Finding, verdict
from discreet.audit._subjects import Calibrated, Config, Fresh
from discreet.audit._trials import Effort, Learner, Make

__all__ = [
    "ATTACKS",
    "Audit",
    "Calibrated",
    "Config",
    "Effort",
    "Finding",
    "Fresh",
    "Learner",
    "Subject",
    "run",
]

DEFAULT_DELTA = 1e-6  # where nothing is claimed


def run(
    subject: Make | Config | Subject,
    *,
    attacks: Sequence[str] = tuple(ATTACKS),
    trials: int = 100_000,
    confidence: float = 0.999,
    jobs: int = 1,
    delta: float | None = None,
    load: Callable[[Path], Learner] = learners.load,
    on_attack: Callable[[int], None] | None = None,
) -> Audit:
    """Attack, and set what is found beside what is claimed.

    Args:
        subject: a `Config`, or a function that makes a learner whenever it is called. With more
            than one job it has to be picklable.
        attacks: names from `ATTACKS`.
        trials: learners for each of two worlds; see `Effort`.
        confidence: of each bound.
        jobs: worker processes.
        delta: what epsilon is bounded at where no delta is claimed; 1e-6 if left out.
        load: how a saved learner is loaded, for the attack that rewinds. A `Subject` has its own.
        on_attack: called with the number of attacks done so far.
    """
    effort = Effort(trials=trials, confidence=confidence, jobs=jobs)
    names = [checks.one_of("attack", name, tuple(ATTACKS)) for name in attacks]
    target = _subject(subject, load)
    mechanism = target.short().mechanism
    claim = mechanism.guarantee
    unclaimed = DEFAULT_DELTA if delta is None else checks.probability("delta", delta)
    bench = Bench(target, effort, delta=unclaimed if claim.delta is None else claim.delta)
    findings = []
    for done, name in enumerate(names, start=1):
        findings.append(_attacked(bench, name, claim.epsilon))
        if on_attack is not None:
            on_attack(done)
    return Audit(variant=mechanism.variant, guarantee=str(claim), findings=tuple(findings))


def _subject(subject: Make | Config | Subject, load: Callable[[Path], Learner]) -> Subject:
    if isinstance(subject, Subject):
        return subject
    if isinstance(subject, Config):
        return replace(subject.subject(), load=load)
    return Subject(short=subject, long=subject, clipping=subject, load=load)


def _attacked(bench: Bench, name: str, claimed: float | None) -> Finding:
    start = time.perf_counter()
    found = ATTACKS[name](bench)
    return Finding(
        attack=name,
        epsilon_lower=found.epsilon,
        claimed=claimed,
        delta=bench.delta,
        confidence=bench.effort.confidence,
        trials=found.trials,
        seconds=time.perf_counter() - start,
        verdict=verdict(found.outcome, found.epsilon, claimed),
        note=found.note,
    )
