"""Many decisions in one call of a learner: stored in a file, beside one that is in memory.

All decisions are on the disk when the call returns. After the last turn the learner is loaded again
and takes a reward for each of them, so that a number here is never one of decisions that were lost.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

import discreet
from benchmarks.speed.results import BenchSection, Cell
from benchmarks.speed.workload import ROOT, BenchSizes, Run, interleaved, seconds_of

DIMS = (5, 20)
N_ACTIONS = 10
Task = Callable[[int], Run]
ROWS = 5_000  # taken in before, so that there is a release to choose from


def batches(sizes: BenchSizes) -> BenchSection:
    """Seconds of one `choose_many`, and how many times as long it takes with a store."""
    rows: list[dict[str, Cell]] = []
    figures = {}
    for dim in DIMS:
        with tempfile.TemporaryDirectory(prefix=".bench-batches-", dir=ROOT) as name:
            taken = _measured(Path(name) / "one", dim, sizes)
        memory, stored = (median(run.seconds for run in runs) for runs in taken)
        turns = zip(*taken, strict=True)
        ratio = median(kept.seconds / plain.seconds for plain, kept in turns)
        figures |= {f"stored_{dim}_seconds": stored, f"stored_{dim}_over_memory": ratio}
        rows.append(
            {
                "features": dim,
                "decisions": sizes.batch,
                "in_memory_s": memory,
                "stored_s": stored,
                "best_stored_s": min(run.seconds for run in taken[1]),
                "stored_over_memory": ratio,
            }
        )
    return BenchSection(
        name="batches",
        title=f"{sizes.batch:,} decisions in one choose_many, {N_ACTIONS} actions each",
        rows=tuple(rows),
        notes=(
            (
                "Medians over turns. Stored decisions are on the disk when the call returns, and "
                "all of them had their reward after the learner was loaded again."
            ),
        ),
        figures=figures,
    )


def _measured(path: Path, dim: int, sizes: BenchSizes) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Turns of a learner in memory and of one that is stored."""
    room = (sizes.repeats + 2) * sizes.batch
    offered = list(_units((sizes.batch, N_ACTIONS, dim)))
    learners = {"memory": _learner(dim, room), "stored": _learner(dim, room, path)}
    made: list[discreet.Decision] = []
    tasks: dict[str, Task] = {
        "memory": partial(_timed, learners["memory"], offered, []),
        "stored": partial(_timed, learners["stored"], offered, made),
    }
    runs = interleaved(tasks, repeats=sizes.repeats)
    learners["stored"].close()
    with discreet.load(path) as again:
        rows = again.rows
        again.learn_many([(one.id, 0.5) for one in made])
        if again.rows != rows + len(made) or again.waiting:
            raise AssertionError("decisions were lost")
    return runs["memory"], runs["stored"]


def _learner(dim: int, room: int, path: Path | None = None) -> discreet.LinUCB:
    bandit = discreet.LinUCB(
        discreet.Problem(dim=dim, action_norm=1.0, reward_bound=1.0, theta_norm=1.0),
        horizon=None,
        privacy=discreet.Privacy(epsilon=1.0, delta=1e-6),
        max_pending=room,
        path=path,
    )
    rewards = np.where(np.random.default_rng(1).random(ROWS) < 0.5, 1.0, -1.0)
    bandit.observe(_units((ROWS, dim)), rewards)
    bandit.forget(bandit.choose(_units((N_ACTIONS, dim))))  # kernels are compiled
    return bandit


def _units(shape: tuple[int, ...]) -> np.ndarray:
    drawn = np.random.default_rng(0).standard_normal(shape)
    return 0.999 * drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def _timed(
    bandit: discreet.LinUCB,
    offered: list[np.ndarray],
    made: list[discreet.Decision],
    _repeat: int,
) -> Run:
    found: list[discreet.Decision] = []
    seconds = seconds_of(lambda: found.extend(bandit.choose_many(offered)))
    made += found
    return Run(rounds=len(offered), seconds=seconds, regret=0.0)
