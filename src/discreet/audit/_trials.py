"""Making learners and playing streams to them, many times, through what a user calls.

Noise is the system's: there is no seed, and no two audits give the same numbers.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, cast, runtime_checkable

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.audit._statistics import Samples
from discreet.audit._streams import (
    PlayedRow,
    RowPair,
    Stream,
    TwoWorlds,
    coin_stream,
    release_times,
    view,
    zeros,
)
from discreet.errors import ForkedStateError, RewoundStateError
from discreet.learner import Decision
from discreet.mechanism import Mechanism
from discreet.release import Release

F64 = NDArray[np.float64]
Flags = NDArray[np.bool_]

_FEWEST_TRIALS = 100  # of each world
_CHUNK = 2000  # trials that a worker does in one go
_COIN_CHUNK = 500
_TURNS = 320  # continuations of one state; one in eight is without the row
_FEWEST_REWOUND, _MOST_REWOUND = 40, 100  # trials of each world; each has many files
_LEDGER = ".ledger"


class AuditedLearner(Protocol):
    """What an attack calls: a `LinUCB`, or something of your own that behaves like one."""

    @property
    def mechanism(self) -> Mechanism:
        """The noise, its setting and its guarantee."""

    @property
    def release(self) -> Release:
        """What everybody may see."""

    def choose(self, actions: ArrayLike) -> Decision:
        """Pick one action.

        Args:
            actions: the decision set, shape (K, d), an action a row.

        Returns:
            The decision, which waits for its reward.
        """

    def learn(self, decision: Decision, reward: float) -> None:
        """Take in a reward.

        Args:
            decision: what `choose` gave.
            reward: what came of it, as `LinUCB.learn` takes it.
        """


@runtime_checkable
class StoredLearner(AuditedLearner, Protocol):
    """A learner that can be stored in files, for the attack that rewinds."""

    def save(self, path: Path) -> None:
        """Store it there from now on."""

    def close(self) -> None:
        """Close the files, so that they can be opened again."""


@runtime_checkable
class ObservingLearner(AuditedLearner, Protocol):
    """A learner that takes rows decided elsewhere, and knows people by an id."""

    def observe(
        self, actions: ArrayLike, rewards: ArrayLike, *, subjects: Sequence[str | None] | None
    ) -> None:
        """Take in rows, with the id of each person; None for those who come once."""

    def forget_subject(self, subject: str) -> object:
        """Erase what can be erased of a person."""


Make = Callable[[], AuditedLearner]
Load = Callable[[Path], AuditedLearner]


@dataclass(frozen=True, kw_only=True)
class Makers:
    """How to make the learners that are attacked, each with noise of its own.

    Attributes:
        short: for attacks on one release.
        long: for attacks on several.
        clipping: for rows out of bounds; a learner that refuses these is fine as well.
        load: how a stored learner is loaded.
    """

    short: Make
    long: Make
    clipping: Make
    load: Load


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work an audit is.

    Attributes:
        trials: learners made for each of the two worlds; a fifth of them serves to tune the attack.
        confidence: the probability that a bound is true, for each attack by itself.
        jobs: worker processes.
    """

    trials: int
    confidence: float
    jobs: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        trials = checks.count("trials", self.trials, least=_FEWEST_TRIALS)
        object.__setattr__(self, "trials", trials)
        object.__setattr__(self, "jobs", checks.count("jobs", self.jobs))
        confidence = checks.probability("confidence", self.confidence)
        object.__setattr__(self, "confidence", confidence)

    @property
    def risk(self) -> float:
        """The probability that a bound is wrong."""
        return 1 - self.confidence


Part = Sequence[tuple[F64, float]]
"""Rows up to a release: decision sets of one action, and rewards."""

Feed = Callable[[AuditedLearner, Part], None]
"""How rows are given to a learner."""

_SOMEBODY = "somebody"  # the person whose rows differ


def by_choosing(learner: AuditedLearner, part: Part) -> None:
    """One by one, a decision and its reward."""
    centre = learner.mechanism.setting.problem.reward_centre
    for actions, reward in part:
        learner.learn(learner.choose(actions), centre + reward)


def by_observing(learner: AuditedLearner, part: Part) -> None:
    """All at once, as from a log."""
    _observe(learner, part, None)


def as_one_person(learner: AuditedLearner, part: Part) -> None:
    """As from a log in which every row that is not zeros is from the same person."""
    _observe(learner, part, [_SOMEBODY if actions.any() else None for actions, _ in part])


def forgotten_each_time(learner: AuditedLearner, part: Part) -> None:
    """As `as_one_person`, row by row: the person asks to be forgotten after each of theirs."""
    for row in part:
        as_one_person(learner, [row])
        if row[0].any():
            cast("ObservingLearner", learner).forget_subject(_SOMEBODY)


def _observe(learner: AuditedLearner, part: Part, subjects: Sequence[str | None] | None) -> None:
    centre = learner.mechanism.setting.problem.reward_centre
    actions = np.concatenate([actions for actions, _ in part])
    rewards = centre + np.array([reward for _, reward in part])
    cast("ObservingLearner", learner).observe(actions, rewards, subjects=subjects)


class Evidence(NamedTuple):
    """Trials to tune an attack on, trials to judge it by, and how far apart the worlds are.

    Shapes: (trials, 1 + J, p) for each world, with the release before any row first; (1 + J, p).
    """

    tuning: Samples
    testing: Samples
    shift: F64


def played(make: Make, worlds: TwoWorlds, effort: Effort, feed: Feed = by_choosing) -> Evidence:
    """Trials of both worlds."""
    entries = worlds.shift.shape[1]
    one, other = (
        recorded(make, stream, entries=entries, count=effort.trials, jobs=effort.jobs, feed=feed)
        for stream in worlds.streams
    )
    return split(one, other, worlds.shift)


def recorded(
    make: Make,
    stream: Stream,
    *,
    entries: int,
    count: int,
    jobs: int = 1,
    feed: Feed = by_choosing,
) -> F64:
    """The releases of ``count`` learners, shape (count, 1 + J, entries)."""
    shape = (1 + len(stream.parts), entries)
    return many(partial(_many, make, stream, shape, feed), count=count, jobs=jobs)


def many(some: Callable[[int], F64], *, count: int, jobs: int) -> F64:
    """``count`` trials, made by several workers, each some at a time."""
    size = max(1, min(_CHUNK, -(-count // jobs)))
    sizes = [min(size, count - done) for done in range(0, count, size)]
    pool = joblib.Parallel(n_jobs=min(jobs, len(sizes)))
    return np.concatenate(pool(joblib.delayed(some)(size) for size in sizes))


def _many(make: Make, stream: Stream, shape: tuple[int, int], feed: Feed, trials: int) -> F64:
    shown = np.empty((trials, *shape))
    for trial in range(trials):
        _play(make(), stream, shown[trial], feed)
    return shown


def _play(learner: AuditedLearner, stream: Stream, shown: F64, feed: Feed = by_choosing) -> None:
    """Feed a stream to a learner and write down the release before any row and after each part."""
    shown[0] = _seen(learner)
    for number, part in enumerate(stream.parts, start=1):
        feed(learner, part)
        shown[number] = _seen(learner)


def _seen(learner: AuditedLearner) -> F64:
    release = learner.release
    return view(release.gram, release.moment)


def split(one: F64, other: F64, shift: F64) -> Evidence:
    """Set a fifth of the trials apart."""
    tuned = max(1, min(len(one), len(other)) // 5)
    return Evidence(Samples(one[:tuned], other[:tuned]), Samples(one[tuned:], other[tuned:]), shift)


class CoinTrials(NamedTuple):
    """What was released, shape (runs, 1 + J, p), and the secret coins, shape (runs, J)."""

    shown: F64
    coins: Flags


def played_coins(make: Make, pair: RowPair, times: tuple[int, ...], effort: Effort) -> CoinTrials:
    """As many learners as it takes for one coin a trial.

    Each batch has one row that a fair coin decides. Learners are independent and a coin is in one
    of them, so all of them together are as private as one, and guesses can be counted together.
    """
    runs = -(-effort.trials // len(times))
    sizes = [min(_COIN_CHUNK, runs - done) for done in range(0, runs, _COIN_CHUNK)]
    pool = joblib.Parallel(n_jobs=min(effort.jobs, len(sizes)))
    parts = pool(joblib.delayed(_many_coins)(make, pair, times, size) for size in sizes)
    return CoinTrials(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _many_coins(make: Make, pair: RowPair, times: tuple[int, ...], runs: int) -> CoinTrials:
    coins = np.random.default_rng().random((runs, len(times))) < 0.5
    shown = np.empty((runs, 1 + len(times), pair.difference.size))
    for run in range(runs):
        _play(make(), coin_stream(pair.one.action.size, pair, times, coins[run]), shown[run])
    return CoinTrials(shown, coins)


def rewound(makers: Makers, pair: RowPair, *, trials: int) -> Evidence | None:
    """Old states put back, as a backup or a snapshot would, and continued once more.

    What a learner writes is put back as it was, all but its ledger: that is where no backup
    reaches. A learner that looks into its ledger refuses to go on. One that does not shows the
    same row under other noise each time, or other rows under the same noise.

    Returns:
        Trials of both worlds, shape (trials, 2, p): the mean release with the row, and without it.
        None if a state that was put back is refused.
    """
    count = min(_MOST_REWOUND, max(_FEWEST_REWOUND, trials // 1000))
    shown: list[list[F64]] = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        for trial in range(count):
            for world, row in enumerate(pair):
                place = Path(folder) / f"{trial}-{world}"
                place.mkdir()
                found = _continued(makers, row, place)
                if found is None:
                    return None
                shown[world].append(found)
    shift = np.array([pair.difference, 0 * pair.difference])
    return split(np.array(shown[0]), np.array(shown[1]), shift)


def _continued(makers: Makers, row: PlayedRow, folder: Path) -> F64 | None:
    learner = cast("StoredLearner", makers.short())
    mechanism = learner.mechanism
    last = release_times(mechanism, 1)[0] - 1
    plain = zeros(mechanism.setting.problem.dim)
    for _ in range(last):
        _add(learner, plain)
    path = folder / "learner"
    learner.save(path)
    backup = {file.name: file.read_bytes() for file in folder.iterdir() if not _is_ledger(file)}
    seen: tuple[list[F64], list[F64]] = ([], [])
    for turn in range(_TURNS):
        if turn:
            learner.close()
            _put_back(folder, backup)
            try:
                learner = cast("StoredLearner", makers.load(path))
            except (RewoundStateError, ForkedStateError):
                return None
        without = turn % 8 == 0
        _add(learner, plain if without else row)
        seen[without].append(_seen(learner))
    learner.close()
    return np.array([np.mean(group, axis=0) for group in seen])


def _add(learner: AuditedLearner, row: PlayedRow) -> None:
    by_choosing(learner, [(row.action[np.newaxis], row.reward)])


def _is_ledger(file: Path) -> bool:
    return file.name.endswith(_LEDGER)


def _put_back(folder: Path, backup: dict[str, bytes]) -> None:
    for file in folder.iterdir():
        if not _is_ledger(file):
            file.unlink()
    for name, content in backup.items():
        (folder / name).write_bytes(content)
