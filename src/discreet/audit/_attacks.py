"""The attacks. Each tries to show that a learner tells more than it claims.

An attack makes learners, plays them streams that differ in what one person brings, looks at the
releases, and returns a lower bound on epsilon that is true with the stated confidence. It knows
how a learner is used and what it states in public, and never looks inside.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.audit import _statistics as statistics
from discreet.audit import _streams as streams
from discreet.audit import _trials as trials
from discreet.audit import _values as values
from discreet.audit._statistics import Samples
from discreet.audit._trials import Evidence
from discreet.errors import OutOfBoundsError
from discreet.learner import LinUCB
from discreet.mechanism import Mechanism
from discreet.mechanism._cost import HasTwoScales
from discreet.privacy import Privacy

F64 = NDArray[np.float64]

_MOST_RELEASES = 128  # of one learner that are looked at
_FEW_RELEASES = 16  # where every pair of them is looked at
_STRETCH = 10.0  # how far out of bounds rows are put
_MOST_JOINED = 20_000  # trials of each world through the joiner: each has tables of its own
_CROWD = 10  # how many times as many rows as stated one person brings
_CONFIRMED, _REFUSED, _INAPPLICABLE = "", "refused", "inapplicable"


class EpsilonBound(NamedTuple):
    """What an attack found."""

    epsilon: float
    trials: int
    note: str = ""
    outcome: str = _CONFIRMED  # or "refused": the learner did not play along; or "inapplicable"


class Target:
    """What is attacked, the effort, and the trials that attacks share."""

    def __init__(self, makers: trials.Makers, effort: trials.Effort, *, delta: float) -> None:
        """Store the settings; trials are run when first asked for."""
        self.makers = makers
        self.effort = effort
        self.delta = delta

    @property
    def score(self) -> Callable[[F64, F64], F64]:
        """What a threshold is chosen by: the epsilon that two rates prove."""
        return partial(statistics.rates_epsilon, delta=self.delta)

    @cached_property
    def single(self) -> Evidence:
        """The worst pair of rows, up to the first release."""
        return self.evidence(self.makers.short, streams.worst_pair, releases=1)

    @cached_property
    def several(self) -> Evidence:
        """The worst pair of rows right after the first release, and several releases."""
        return self.evidence(self.makers.long, streams.worst_pair, releases=_MOST_RELEASES)

    def evidence(
        self,
        make: trials.Make,
        pair: Callable[[Mechanism], streams.RowPair],
        *,
        releases: int,
        feed: trials.Feed = trials.by_choosing,
        times_too_many: int = 1,
    ) -> Evidence:
        """Trials of the two worlds that a pair of rows makes."""
        mechanism = make().mechanism
        times = streams.release_times(mechanism, releases)
        first = times[0] if len(times) > 1 else 0
        worlds = streams.worlds(
            mechanism, pair(mechanism), times, first=first, times_too_many=times_too_many
        )
        return trials.played(make, worlds, self.effort, feed)

    def proven(self, tuning: Samples, testing: Samples, shift: F64) -> EpsilonBound:
        """The epsilon that the best linear statistic proves, of shape (trials, k)."""
        rates = statistics.threshold_rates(
            *statistics.linear_statistic(tuning, testing, shift),
            risk=self.effort.risk,
            score=self.score,
        )
        return EpsilonBound(float(self.score(*map(np.asarray, rates))), self.effort.trials)


def threshold(target: Target) -> EpsilonBound:
    """The best linear statistic of one release, and a threshold."""
    return target.proven(*_flat(target.single))


def gaussian(target: Target) -> EpsilonBound:
    """The same with a threshold in the middle, and the epsilon that Gaussian noise has then."""
    return _by_gaussian(target, target.makers.short, lambda: target.single)


def matched_gaussian(target: Target) -> EpsilonBound:
    """The statistic of `matched`, judged as by `gaussian`."""
    return _by_gaussian(target, target.makers.long, lambda: _few(target.several))


def _by_gaussian(
    target: Target, make: trials.Make, evidence: Callable[[], Evidence]
) -> EpsilonBound:
    """The mu that the best linear statistic proves, and the epsilon of Gaussian noise with it."""
    if not isinstance(make().mechanism.noise, HasTwoScales):
        note = "it takes the noise to be Gaussian, which this learner does not say of its own"
        return EpsilonBound(0.0, 0, note, _INAPPLICABLE)
    tuning, testing, shift = _flat(evidence())
    rates = statistics.median_rates(
        *statistics.linear_statistic(tuning, testing, shift), risk=target.effort.risk
    )
    mu = float(statistics.rates_mu(*rates))
    found = statistics.mu_epsilon(mu, delta=target.delta)
    return EpsilonBound(
        found, target.effort.trials, f"mu is at least {mu:.4g}; takes noise to be Gaussian"
    )


def differences(target: Target) -> EpsilonBound:
    """What a release adds to the one before the row: noise that both share cancels."""
    tuning, testing, shift = target.several
    steps = np.diff(shift, axis=0)
    after = int(np.flatnonzero(steps.any(axis=1))[0]) + 1
    before = after - 1
    cuts = [
        Samples(*(group[:, after] - group[:, before] for group in part))
        for part in (tuning, testing)
    ]
    return target.proven(cuts[0], cuts[1], shift[after] - shift[before])


def averaging(target: Target) -> EpsilonBound:
    """The mean of all releases with the row, weighted as if their noise were independent."""
    tuning, testing, shift = target.several
    with_row = np.flatnonzero(shift.any(axis=1))
    counted = np.abs(shift[with_row]).max(axis=1, keepdims=True)
    spread = sum(group[:, with_row].var(axis=0) for group in tuning)
    weights = counted / (spread + 1e-12 * np.abs(shift).max() ** 2)
    weights /= weights.sum(axis=0)

    def mean(groups: F64) -> F64:
        return np.asarray(np.einsum("...jk,jk->...k", groups[..., with_row, :], weights))

    parts = [Samples(*map(mean, part)) for part in (tuning, testing)]
    return target.proven(parts[0], parts[1], mean(shift))


def matched(target: Target) -> EpsilonBound:
    """The best linear statistic of several releases, whatever their noise has in common."""
    return target.proven(*_flat(_few(target.several)))


def _few(evidence: Evidence) -> Evidence:
    """The first releases: as many as can be weighed against each other."""
    tuning, testing = (
        Samples(*(group[:, :_FEW_RELEASES] for group in part)) for part in evidence[:2]
    )
    return Evidence(tuning, testing, evidence.shift[:_FEW_RELEASES])


def out_of_bounds(target: Target) -> EpsilonBound:
    """The worst pair, ten times as long: rows that a curator must shorten or refuse."""

    def stretched(mechanism: Mechanism) -> streams.RowPair:
        return streams.worst_pair(mechanism).stretched(_STRETCH)

    try:
        found = target.evidence(target.makers.clipping, stretched, releases=1)
    except OutOfBoundsError:
        return EpsilonBound(0.0, 0, "rows out of bounds are refused", _REFUSED)
    return target.proven(*_flat(found))


def low_bits(target: Target) -> EpsilonBound:
    """The lowest bits of a release against its size: what floating-point sums give away."""

    def bit_pair(mechanism: Mechanism) -> streams.RowPair:
        problem = mechanism.setting.problem
        row = streams.longest(problem)
        if mechanism.protects == "rewards":
            return streams.RowPair(row, streams.PlayedRow(row.action, 0.0))
        return streams.RowPair(row, streams.zeros(problem.dim))

    tuning, testing, _ = _flat(target.evidence(target.makers.short, bit_pair, releases=1))
    rates = statistics.low_bits_rates(tuning, testing, risk=target.effort.risk, score=target.score)
    return EpsilonBound(float(target.score(*map(np.asarray, rates))), target.effort.trials)


def one_run(target: Target) -> EpsilonBound:
    """Many secret bits in each learner, guessed from its releases (Steinke et al. 2023).

    Each batch holds one row that a fair coin decides. Whoever looks at the releases guesses the
    coins and may pass.
    """
    make = target.makers.long
    mechanism = make().mechanism
    times = streams.release_times(mechanism, _FEW_RELEASES)
    pair = streams.worst_pair(mechanism)
    shown, coins = trials.played_coins(make, pair, times, target.effort)
    counts = streams.batch_weights(mechanism, len(times))
    guesses, correct = statistics.coin_guesses(shown, coins, pair.difference, counts)
    found = statistics.one_run_epsilon(
        delta=target.delta,
        canaries=coins.size,
        guesses=guesses,
        correct=correct,
        risk=target.effort.risk,
    )
    note = f"{correct:,} of {guesses:,} guesses right, {coins.size:,} bits"
    return EpsilonBound(found, len(coins), note)


def observed(target: Target) -> EpsilonBound:
    """The worst pair through `observe`, all rows up to a release in one call."""
    return _through(target, trials.by_observing)


def crowding(target: Target) -> EpsilonBound:
    """One person with ten times as many rows as stated: a curator must leave out the rest."""
    return _through(target, trials.as_one_person, times_too_many=_CROWD)


def forgetting(target: Target) -> EpsilonBound:
    """As `crowding`, but the person asks to be forgotten after each row: none may count again."""
    return _through(target, trials.forgotten_each_time, times_too_many=_CROWD)


def _through(target: Target, feed: trials.Feed, *, times_too_many: int = 1) -> EpsilonBound:
    """Several releases of learners that are fed in some way."""
    make = target.makers.long
    if not isinstance(make(), trials.ObservingLearner):
        note = "this learner takes no rows that were decided elsewhere"
        return EpsilonBound(0.0, 0, note, _INAPPLICABLE)
    found = target.evidence(
        make,
        streams.worst_pair,
        releases=_FEW_RELEASES,
        feed=feed,
        times_too_many=times_too_many,
    )
    if isinstance(make().mechanism.noise, HasTwoScales):
        return _by_gaussian(target, make, lambda: found)
    return target.proven(*_flat(found))


def private_values(target: Target) -> EpsilonBound:
    """The worst pair of logged rounds, in a value that is released with the same guarantee."""
    promised = target.makers.short().mechanism.guarantee
    if promised.epsilon is None or promised.delta is None:
        return EpsilonBound(0.0, 0, "nothing is promised", _INAPPLICABLE)
    privacy = Privacy(
        epsilon=promised.epsilon,
        delta=promised.delta,
        contributions_per_user=promised.contributions_per_user,
        neighbours=promised.neighbours,
    )
    found = values.played(privacy, target.effort)
    tuning, testing, shift = _flat(found)
    rates = statistics.median_rates(
        *statistics.linear_statistic(tuning, testing, shift), risk=target.effort.risk
    )
    mu = float(statistics.rates_mu(*rates))
    epsilon = statistics.mu_epsilon(mu, delta=target.delta)
    return EpsilonBound(epsilon, target.effort.trials, f"mu is at least {mu:.4g}")


def rewind(target: Target) -> EpsilonBound:
    """An old state put back and continued again and again: a row is released each time."""
    learner = target.makers.short()
    if not isinstance(learner, trials.StoredLearner):
        return EpsilonBound(0.0, 0, "this learner cannot be saved", _INAPPLICABLE)
    pair = streams.worst_pair(learner.mechanism)
    found = trials.rewound(target.makers, pair, trials=target.effort.trials)
    if found is None:
        return EpsilonBound(0.0, 0, "an old state is refused", _REFUSED)
    count = len(found.tuning.one) + len(found.testing.one)
    return target.proven(*_flat(found))._replace(trials=count)


def joiner(target: Target) -> EpsilonBound:
    """Whether and when a reward came, through the service's joiner and a clock of its own."""
    make = target.makers.long
    if not isinstance(make(), LinUCB):
        return EpsilonBound(0.0, 0, "the service's joiner takes a LinUCB", _INAPPLICABLE)
    try:
        from discreet.audit import _joiner as joined  # noqa: PLC0415  # an extra is needed
    except ModuleNotFoundError as missing:
        note = f"it needs {missing.name}; run pip install 'discreet[serve]'"
        return EpsilonBound(0.0, 0, note, _INAPPLICABLE)
    # Two bounds, from traces and from what releases hold: each may be wrong half as often.
    count = min(target.effort.trials, _MOST_JOINED)
    halved = replace(target.effort, trials=count, confidence=1 - target.effort.risk / 2)
    found = joined.played(make, halved, releases=_FEW_RELEASES)
    by_trace = float(target.score(*map(np.asarray, found.rates)))
    inner = Target(target.makers, halved, delta=target.delta)
    if isinstance(make().mechanism.noise, HasTwoScales):
        by_value = _by_gaussian(inner, make, lambda: found.evidence)
    else:
        by_value = inner.proven(*_flat(found.evidence))
    note = f"times and counts show {by_trace:.3g}, what releases hold {by_value.epsilon:.3g}"
    return EpsilonBound(max(by_trace, by_value.epsilon), count, note)


def _flat(evidence: Evidence) -> tuple[Samples, Samples, F64]:
    """All releases side by side: trials of shape (trials, k), the shift of shape (k,)."""
    tuning, testing = (
        Samples(*(group.reshape(len(group), -1) for group in part)) for part in evidence[:2]
    )
    return tuning, testing, evidence.shift.ravel()


ATTACKS: dict[str, Callable[[Target], EpsilonBound]] = {
    "threshold": threshold,
    "gaussian": gaussian,
    "differences": differences,
    "averaging": averaging,
    "matched": matched,
    "matched-gaussian": matched_gaussian,
    "one-run": one_run,
    "out-of-bounds": out_of_bounds,
    "low-bits": low_bits,
    "observed": observed,
    "crowding": crowding,
    "forgetting": forgetting,
    "values": private_values,
    "rewind": rewind,
    "joiner": joiner,
}
