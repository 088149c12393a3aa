"""Auditing with many secret bits in each learner (Steinke, Nasr & Jagielski 2023).

Each batch holds one canary: a fair coin decides which of two rows it is. Whoever looks at the
releases guesses the coins and may pass. Learners are independent and a coin is in one of them, so
all of them together are as private as one, and their guesses can be counted together.
"""

from typing import NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from discreet.audit import _scores as scores
from discreet.audit import _streams as streams
from discreet.audit._trials import Effort, Make
from discreet.audit._trials import play as play_stream
from discreet.mechanism import Mechanism

F64 = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SHARE = 0.05  # of the coins that are guessed: those one is surest of
_FEWEST = 64
_CHUNK = 500


class Played(NamedTuple):
    """What was released, shape (runs, 1 + J, p), and the coins, shape (runs, J)."""

    shown: F64
    secrets: Flags


def play(
    make: Make, mechanism: Mechanism, pair: streams.Pair, times: tuple[int, ...], effort: Effort
) -> Played:
    """As many learners as it takes for one coin a trial."""
    runs = -(-effort.trials // len(times))
    sizes = [min(_CHUNK, runs - done) for done in range(0, runs, _CHUNK)]
    pool = joblib.Parallel(n_jobs=min(effort.jobs, len(sizes)))
    parts = pool(joblib.delayed(_many)(make, mechanism, pair, times, size) for size in sizes)
    return Played(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _many(
    make: Make, mechanism: Mechanism, pair: streams.Pair, times: tuple[int, ...], runs: int
) -> Played:
    dim = mechanism.setting.problem.dim
    secrets = np.random.default_rng().random((runs, len(times))) < 0.5  # noqa: PLR2004
    shown = np.empty((runs, 1 + len(times), pair.difference.size))
    starts = (0, *times[:-1])
    for run in range(runs):
        rows = {at: pair[0 if bit else 1] for at, bit in zip(starts, secrets[run], strict=True)}
        play_stream(make(), streams.stream(dim, times, rows), shown[run])
    return Played(shown, secrets)


def guess(played: Played, pair: streams.Pair) -> tuple[int, int]:
    """How many coins are guessed, and how many of these guesses are right.

    The weights come from all that was released and from nothing else, so the guesses are a
    function of it.
    """
    runs, count = played.secrets.shape
    seen = played.shown.reshape(runs, -1)
    standing = np.tril(np.ones((1 + count, count)), -1)  # canary j is in releases after j
    shifts = np.einsum("ij,k->jik", standing, pair.difference).reshape(count, -1)
    weights = scores.matched(scores.covariance(seen), shifts)
    leaning = ((seen - seen.mean(axis=0)) @ weights.T).ravel()
    guesses = min(leaning.size, max(_FEWEST, round(_SHARE * leaning.size)))
    surest = np.argsort(-np.abs(leaning), kind="stable")[:guesses]
    right = (leaning[surest] > 0) == played.secrets.ravel()[surest]
    return guesses, int(right.sum())
