"""The attacks. Each tries to show that a learner tells more than it claims.

An attack makes learners, plays them streams that differ in what one person brings, looks at the
releases, and returns a lower bound on epsilon that is true with the stated confidence. It knows
how a learner is used and what it states in public, and never looks inside.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import learner as learners
from discreet.audit import _bounds as bounds
from discreet.audit import _canaries as canaries
from discreet.audit import _rewinding as rewinding
from discreet.audit import _scores as scores
from discreet.audit import _streams as streams
from discreet.audit._trials import Effort, Evidence, Learner, Make, Part, gather, require_a_release
from discreet.errors import OutOfBoundsError
from discreet.mechanism import Mechanism
from discreet.mechanism._cost import HasTwoScales

F64 = NDArray[np.float64]

MOST_RELEASES = 128  # of one learner that are looked at
FEW_RELEASES = 16  # where every pair of them is looked at
STRETCH = 10.0  # how far out of bounds rows are put
_CONFIRMED, _REFUSED, _INAPPLICABLE = "", "refused", "inapplicable"


class Bound(NamedTuple):
    """What an attack found."""

    epsilon: float
    trials: int
    note: str = ""
    outcome: str = _CONFIRMED  # or "refused": the learner did not play along; or "inapplicable"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """How to make the learners that are attacked, each afresh.

    Attributes:
        short: for attacks that look at one release.
        long: for attacks that look at several.
        clipping: for rows out of bounds; one that refuses these is fine as well.
        load: how a saved learner is loaded.
    """

    short: Make
    long: Make
    clipping: Make
    load: Callable[[Path], Learner] = learners.load


class Bench:
    """A subject, the effort, and the trials that attacks share."""

    def __init__(self, subject: Subject, effort: Effort, *, delta: float) -> None:
        """Nothing is played yet."""
        self.subject = subject
        self.effort = effort
        self.delta = delta

    @property
    def score(self) -> Callable[[F64, F64], F64]:
        """What a threshold is chosen by: the epsilon that two rates prove."""
        return partial(bounds.rates_epsilon, delta=self.delta)

    @cached_property
    def single(self) -> Evidence:
        """The worst pair of rows, up to the first release."""
        return self.evidence(self.subject.short, streams.worst_pair, releases=1)

    @cached_property
    def several(self) -> Evidence:
        """The worst pair of rows right after the first release, and several releases."""
        return self.evidence(self.subject.long, streams.worst_pair, releases=MOST_RELEASES)

    def evidence(
        self, make: Make, pair: Callable[[Mechanism], streams.Pair], *, releases: int
    ) -> Evidence:
        """Trials of the two worlds that a pair of rows makes."""
        mechanism = make().mechanism
        times = require_a_release(streams.release_times(mechanism, releases))
        first = times[0] if len(times) > 1 else 0
        return gather(
            make, streams.worlds(mechanism, pair(mechanism), times, first=first), self.effort
        )

    def proven(self, tuning: Part, testing: Part, shift: F64) -> Bound:
        """The epsilon that the best linear statistic proves, of shape (trials, k)."""
        rates = scores.cut(
            *scores.linear(tuning, testing, shift), risk=self.effort.risk, score=self.score
        )
        return Bound(float(self.score(*map(np.asarray, rates))), self.effort.trials)


def threshold(bench: Bench) -> Bound:
    """The best linear statistic of one release, and a threshold."""
    return bench.proven(*_flat(bench.single))


def gaussian(bench: Bench) -> Bound:
    """The same with a threshold in the middle, and the epsilon that Gaussian noise has then."""
    if not isinstance(bench.subject.short().mechanism.noise, HasTwoScales):
        note = "it takes the noise to be Gaussian, which this learner does not say of its own"
        return Bound(0.0, 0, note, _INAPPLICABLE)
    tuning, testing, shift = _flat(bench.single)
    rates = scores.middle(*scores.linear(tuning, testing, shift), risk=bench.effort.risk)
    mu = float(bounds.rates_mu(*rates))
    found = bounds.mu_epsilon(mu, delta=bench.delta)
    return Bound(found, bench.effort.trials, f"mu is at least {mu:.4g}; takes noise to be Gaussian")


def differences(bench: Bench) -> Bound:
    """What a release adds to the one before the row: noise that both share cancels."""
    tuning, testing, shift = bench.several
    steps = np.diff(shift, axis=0)
    after = int(np.flatnonzero(steps.any(axis=1))[0]) + 1
    before = after - 1
    cuts = [
        Part(*(group[:, after] - group[:, before] for group in part)) for part in (tuning, testing)
    ]
    return bench.proven(cuts[0], cuts[1], shift[after] - shift[before])


def averaging(bench: Bench) -> Bound:
    """The mean of all releases with the row, weighted as if their noise were independent."""
    tuning, testing, shift = bench.several
    with_row = np.flatnonzero(shift.any(axis=1))
    spread = sum(group[:, with_row].var(axis=0) for group in tuning)
    weights = 1 / (spread + 1e-12 * np.abs(shift).max() ** 2)
    weights /= weights.sum(axis=0)

    def mean(groups: F64) -> F64:
        return np.asarray(np.einsum("...jk,jk->...k", groups[..., with_row, :], weights))

    parts = [Part(*map(mean, part)) for part in (tuning, testing)]
    return bench.proven(parts[0], parts[1], mean(shift))


def matched(bench: Bench) -> Bound:
    """The best linear statistic of several releases, whatever their noise has in common."""
    tuning, testing, shift = bench.several
    parts = [Part(*(group[:, :FEW_RELEASES] for group in part)) for part in (tuning, testing)]
    return bench.proven(*_flat(Evidence(parts[0], parts[1], shift[:FEW_RELEASES])))


def out_of_bounds(bench: Bench) -> Bound:
    """The worst pair, ten times as long: rows that a curator must shorten or refuse."""

    def stretched(mechanism: Mechanism) -> streams.Pair:
        return streams.worst_pair(mechanism).stretched(STRETCH)

    try:
        found = bench.evidence(bench.subject.clipping, stretched, releases=1)
    except OutOfBoundsError:
        return Bound(0.0, 0, "rows out of bounds are refused", _REFUSED)
    return bench.proven(*_flat(found))


def low_bits(bench: Bench) -> Bound:
    """The lowest bits of a release against its size: what floating-point sums give away."""

    def bit_pair(mechanism: Mechanism) -> streams.Pair:
        problem = mechanism.setting.problem
        return streams.Pair(streams.longest(problem), streams.zeros(problem.dim))

    tuning, testing, _ = _flat(bench.evidence(bench.subject.short, bit_pair, releases=1))
    rates = scores.low_bits(tuning, testing, risk=bench.effort.risk, score=bench.score)
    return Bound(float(bench.score(*map(np.asarray, rates))), bench.effort.trials)


def one_run(bench: Bench) -> Bound:
    """Many secret bits in each learner, guessed from its releases."""
    make = bench.subject.long
    mechanism = make().mechanism
    times = require_a_release(streams.release_times(mechanism, FEW_RELEASES))
    pair = streams.worst_pair(mechanism)
    played = canaries.play(make, mechanism, pair, times, bench.effort)
    guesses, correct = canaries.guess(played, pair)
    found = bounds.one_run_epsilon(
        delta=bench.delta,
        canaries=played.secrets.size,
        guesses=guesses,
        correct=correct,
        risk=bench.effort.risk,
    )
    return Bound(
        found,
        len(played.secrets),
        f"{correct:,} of {guesses:,} guesses right, {played.secrets.size:,} bits",
    )


def rewind(bench: Bench) -> Bound:
    """An old state put back and continued again and again: a row is released each time."""
    make, load = bench.subject.short, bench.subject.load
    learner = make()
    if not isinstance(learner, rewinding.Kept):
        return Bound(0.0, 0, "this learner cannot be saved", _INAPPLICABLE)
    pair = streams.worst_pair(learner.mechanism)
    found = rewinding.gather(make, load, pair, trials=bench.effort.trials)
    if found is None:
        return Bound(0.0, 0, "an old state is refused", _REFUSED)
    trials = len(found.tuning.one) + len(found.testing.one)
    return bench.proven(*_flat(found))._replace(trials=trials)


def _flat(evidence: Evidence) -> tuple[Part, Part, F64]:
    """All releases side by side: trials of shape (trials, k), the shift of shape (k,)."""
    tuning, testing = (
        Part(*(group.reshape(len(group), -1) for group in part)) for part in evidence[:2]
    )
    return tuning, testing, evidence.shift.ravel()


ATTACKS: dict[str, Callable[[Bench], Bound]] = {
    "threshold": threshold,
    "gaussian": gaussian,
    "differences": differences,
    "averaging": averaging,
    "matched": matched,
    "one-run": one_run,
    "out-of-bounds": out_of_bounds,
    "low-bits": low_bits,
    "rewind": rewind,
}
