"""`run_arms`: attacks on multi-armed learners, through what they show.

Two worlds differ in the reward of the first person, which is as high as can be in one and as low
in the other (for low bits, zero). Everybody else brings the same: 0 from the arm that the first
person got, and -1 from all others, so that this arm is pulled again. What a learner shows is the
arms that it names and the means that it names them from, all of which its guarantee covers.
"""

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.audit import _statistics as statistics
from discreet.audit._attacks import EpsilonBound
from discreet.audit._audit import Audit, Finding, verdict
from discreet.audit._statistics import Rates, Samples
from discreet.audit._trials import Effort
from discreet.baselines.arms._learner import ArmLearner

F64 = NDArray[np.float64]
Make = Callable[[], ArmLearner]

_RELEASES = 6  # of the first person's arm that are looked at
_MOST_ROUNDS = 2000  # of a learner whose releases do not come
_NAMED = 12  # arms that are looked at
_CHUNK = 500  # trials that a worker does in one go
_HIGHEST, _LOWEST, _NOTHING = 1.0, -1.0, 0.0


class _Shown(NamedTuple):
    """What learners showed: the first person's arm's means, shape (trials, J), and the arms."""

    means: F64
    arms: list[str]


class ArmTarget:
    """What is attacked, the effort, and the trials that attacks share."""

    def __init__(self, make: Make, effort: Effort, *, delta: float) -> None:
        """Store the settings; trials are run when first asked for."""
        self.make = make
        self.effort = effort
        self.delta = delta

    @cached_property
    def single(self) -> tuple[_Shown, _Shown]:
        """Trials up to the arm's first release: the highest reward, and the lowest."""
        return self._played(_HIGHEST, 1), self._played(_LOWEST, 1)

    @cached_property
    def several(self) -> tuple[_Shown, _Shown]:
        """Trials with several releases of the arm: the highest reward, and the lowest."""
        return self._played(_HIGHEST, _RELEASES), self._played(_LOWEST, _RELEASES)

    @cached_property
    def present(self) -> tuple[_Shown, _Shown]:
        """Trials up to the arm's first release: the highest reward, and zero."""
        return self.single[0], self._played(_NOTHING, 1)

    def bound(self, rates: Rates) -> EpsilonBound:
        """The epsilon that two rates prove."""
        return EpsilonBound(float(self.score(*map(np.asarray, rates))), self.effort.trials)

    @property
    def score(self) -> statistics.Score:
        """What a threshold is chosen by."""
        return partial(statistics.rates_epsilon, delta=self.delta)

    def _played(self, reward: float, releases: int) -> _Shown:
        count, jobs = self.effort.trials, self.effort.jobs
        sizes = [min(_CHUNK, count - done) for done in range(0, count, _CHUNK)]
        pool = joblib.Parallel(n_jobs=min(jobs, len(sizes)))
        parts = pool(joblib.delayed(_many)(self.make, reward, releases, size) for size in sizes)
        means = np.concatenate([part.means for part in parts])
        return _Shown(means, [trace for part in parts for trace in part.arms])


def first_mean(target: ArmTarget) -> EpsilonBound:
    """The first mean that is released of the arm, and a threshold."""
    tuning, testing = _split(*(shown.means[:, 0] for shown in target.single))
    rates = statistics.threshold_rates(tuning, testing, risk=target.effort.risk, score=target.score)
    return target.bound(rates)


def all_means(target: ArmTarget) -> EpsilonBound:
    """The best linear statistic of several means of the arm: data or noise that is used twice."""
    tuning, testing = _split(*(shown.means for shown in target.several))
    shift = tuning.one.mean(axis=0) - tuning.other.mean(axis=0)
    rates = statistics.threshold_rates(
        *statistics.linear_statistic(tuning, testing, shift),
        risk=target.effort.risk,
        score=target.score,
    )
    return target.bound(rates)


def arms_named(target: ArmTarget) -> EpsilonBound:
    """Which sequences of arms speak for which world."""
    one, other = target.several
    return target.bound(statistics.trace_rates(one.arms, other.arms, risk=target.effort.risk))


def low_bits(target: ArmTarget) -> EpsilonBound:
    """The lowest bits of the first mean against its size: what floating-point sums give away."""
    tuning, testing = _split(*(shown.means for shown in target.present))
    rates = statistics.low_bits_rates(tuning, testing, risk=target.effort.risk, score=target.score)
    return target.bound(rates)


ARM_ATTACKS: dict[str, Callable[[ArmTarget], EpsilonBound]] = {
    "first-mean": first_mean,
    "all-means": all_means,
    "arms": arms_named,
    "low-bits": low_bits,
}


def run_arms(
    make: Callable[[], ArmLearner],
    *,
    attacks: Sequence[str] = tuple(ARM_ATTACKS),
    trials: int = 20_000,
    confidence: float = 0.999,
    jobs: int = 1,
) -> Audit:
    """Attack a multi-armed learner, and set what is found beside what is claimed.

    Args:
        make: makes a learner whenever it is called, such as
            ``functools.partial(DPIMED, n_arms=2, horizon=64, epsilon=1.0)``. Two arms, and a
            horizon with a few releases of each, are enough. With more than one job it has to be
            picklable.
        attacks: names from `ARM_ATTACKS`; all of them if left out.
        trials: learners that are made for each of two worlds, at least 100. A fifth of them serves
            to tune an attack, the others to judge it.
        confidence: the probability that a bound is true, for each attack by itself.
        jobs: worker processes.

    Returns:
        What each attack found.

    Raises:
        ParameterError: a setting is out of range, or an attack is unknown.
    """
    effort = Effort(trials=trials, confidence=confidence, jobs=jobs)
    names = [checks.one_of("attack", name, tuple(ARM_ATTACKS)) for name in attacks]
    learner = make()
    claim = learner.guarantee
    target = ArmTarget(make, effort, delta=claim.delta or 0.0)
    return Audit(
        variant=type(learner).__name__,
        guarantee=str(claim),
        findings=tuple(_attacked(target, name, claim.epsilon) for name in names),
    )


def _attacked(target: ArmTarget, name: str, claimed: float | None) -> Finding:
    start = time.perf_counter()
    found = ARM_ATTACKS[name](target)
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


def _split(one: F64, other: F64) -> tuple[Samples, Samples]:
    """Set a fifth of the trials apart, to tune on."""
    tuned = max(1, len(one) // 5)
    return Samples(one[:tuned], other[:tuned]), Samples(one[tuned:], other[tuned:])


def _many(make: Make, reward: float, releases: int, count: int) -> _Shown:
    means = np.zeros((count, releases))
    return _Shown(means, [_play(make(), reward, means[trial]) for trial in range(count)])


def _play(learner: ArmLearner, reward: float, means: F64) -> str:
    """Play one learner and write down its arm's first means; the arms that it named, as text."""
    named, releases, last = [learner.choose()], 0, np.nan
    own = named[0]
    rounds = min(learner.horizon, _MOST_ROUNDS)
    learner.learn(own, reward)
    while True:
        shown = learner.released_means[own]
        if not np.isnan(shown) and shown != last:
            means[releases] = last = shown
            releases += 1
        if releases == means.size or learner.rounds >= rounds:
            return "".join(map(str, named[:_NAMED]))
        named.append(learner.choose())
        learner.learn(named[-1], 0.0 if named[-1] == own else _LOWEST)
