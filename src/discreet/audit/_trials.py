"""Playing streams to fresh learners, many times, through what a user calls.

Noise is the system's: there is no seed, and no two audits give the same numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.audit._streams import Stream, Worlds, view
from discreet.errors import ParameterError
from discreet.learner import Decision
from discreet.mechanism import Mechanism
from discreet.release import Release

F64 = NDArray[np.float64]

FEWEST = 100  # trials of each world
_CHUNK = 2000  # trials that a worker does in one go


class Learner(Protocol):
    """What an attack calls: a `LinUCB`, or something of your own that behaves like one."""

    @property
    def mechanism(self) -> Mechanism:
        """The noise, its setting and its guarantee."""

    @property
    def release(self) -> Release:
        """What everybody may see."""

    def choose(self, actions: ArrayLike) -> Decision:
        """Pick one action."""

    def learn(self, decision: Decision, reward: float) -> None:
        """Take in a reward."""


Make = Callable[[], Learner]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work an audit is.

    Attributes:
        trials: learners made for each of the two worlds; a fifth of them serves to tune the attack.
        confidence: the probability that a bound is true, for each attack by itself.
        jobs: worker processes.
    """

    trials: int = 100_000
    confidence: float = 0.999
    jobs: int = 1

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "trials", checks.count("trials", self.trials, least=FEWEST))
        object.__setattr__(self, "jobs", checks.count("jobs", self.jobs))
        confidence = checks.probability("confidence", self.confidence)
        object.__setattr__(self, "confidence", confidence)

    @property
    def risk(self) -> float:
        """The probability that a bound is wrong."""
        return 1 - self.confidence


class Part(NamedTuple):
    """Trials of both worlds: what was released, shape (trials, 1 + J, p) each."""

    one: F64
    other: F64


class Evidence(NamedTuple):
    """Trials to tune an attack on, trials to judge it by, and how far apart the worlds are."""

    tuning: Part
    testing: Part
    shift: F64


def play(learner: Learner, stream: Stream, shown: F64) -> None:
    """Feed a stream to a learner and write down the release before any row and after each part."""
    shown[0] = _seen(learner)
    for number, part in enumerate(stream.parts, start=1):
        for actions, reward in part:
            learner.learn(learner.choose(actions), reward)
        shown[number] = _seen(learner)


def _seen(learner: Learner) -> F64:
    release = learner.release
    return view(release.gram, release.moment)


def _many(make: Make, stream: Stream, shape: tuple[int, ...]) -> F64:
    shown = np.empty(shape)
    for trial in range(shape[0]):
        play(make(), stream, shown[trial])
    return shown


def record(make: Make, stream: Stream, *, entries: int, count: int, jobs: int = 1) -> F64:
    """The releases of ``count`` learners, each made afresh, shape (count, 1 + J, entries)."""
    size = max(1, min(_CHUNK, -(-count // jobs)))
    sizes = [min(size, count - done) for done in range(0, count, size)]
    pool = joblib.Parallel(n_jobs=min(jobs, len(sizes)))
    releases = 1 + len(stream.parts)
    parts = pool(joblib.delayed(_many)(make, stream, (n, releases, entries)) for n in sizes)
    return np.concatenate(parts)


def gather(make: Make, worlds: Worlds, effort: Effort) -> Evidence:
    """Trials of both worlds."""
    entries = worlds.shift.shape[1]
    one, other = (
        record(make, stream, entries=entries, count=effort.trials, jobs=effort.jobs)
        for stream in worlds.streams
    )
    return split(one, other, worlds.shift)


def split(one: F64, other: F64, shift: F64) -> Evidence:
    """Set a fifth of the trials apart."""
    tuned = max(1, min(len(one), len(other)) // 5)
    return Evidence(Part(one[:tuned], other[:tuned]), Part(one[tuned:], other[tuned:]), shift)


def require_a_release(times: tuple[int, ...]) -> tuple[int, ...]:
    """The times, if there are any."""
    if not times:
        raise ParameterError("horizon", "ends before the first release; give a longer one")
    return times
