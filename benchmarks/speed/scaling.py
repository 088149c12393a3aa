"""How the time of a round grows: with the horizon, with the decision set, with the workers."""

import os
import time
from functools import partial

import numpy as np

from benchmarks.speed import workload
from benchmarks.speed.results import Cell, Section
from benchmarks.speed.timing import Run, in_own_process, interleaved, seconds_of
from benchmarks.speed.workload import Sizes
from discreet.simulation import simulate

NAME = "scaling"
SHORT_HORIZON = 100_000
LARGE_DIM, LARGE_ACTIONS = 64, 4096
SEEDS = 4


def measure(sizes: Sizes) -> Section:
    """Three ratios, each of two things measured side by side."""
    horizon = _horizons(sizes)
    large = in_own_process(__name__, "large_set", rounds=sizes.large_rounds)
    measured = [horizon, large]
    figures = {"horizon_ratio": horizon["ratio"], "large_ratio": large["ratio"]}
    if cores() > 1:
        workers = _workers(sizes)
        measured.append(workers)
        figures["workers_ratio"] = workers["ratio"]
    return Section(
        name=NAME,
        title="what a longer horizon, a larger decision set and a second worker do",
        rows=tuple(measured),
        notes=(
            (
                "The large decision set is measured in a process of its own with one BLAS thread. "
                "Its yardstick is what no implementation that draws the set can do without."
            ),
            (
                "Two workers reach twice the speed only on an otherwise idle machine. A ratio "
                "above two is noise: something else slowed down the single worker."
            ),
        ),
        figures={name: float(value) for name, value in figures.items()},
    )


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _measured(what: str, value: float, beside: str, other: float, unit: str) -> dict[str, Cell]:
    return {
        "what": what,
        "measured": value,
        "beside": beside,
        "yardstick": other,
        "unit": unit,
        "ratio": value / other,
    }


def _horizons(sizes: Sizes) -> dict[str, Cell]:
    rounds = min(sizes.rounds, SHORT_HORIZON)
    horizons = {"horizon 5e7": workload.HORIZON, "horizon 1e5": SHORT_HORIZON}
    tasks = {
        name: partial(
            workload.played, workload.simulation("gaussian", rounds=rounds, horizon=horizon)
        )
        for name, horizon in horizons.items()
    }
    runs = interleaved(tasks, repeats=sizes.scaling_repeats)
    (long, slow), (short, fast) = (
        (name, 1e6 / max(run.rate for run in found)) for name, found in runs.items()
    )
    return _measured(f"gaussian, {long}", slow, short, fast, "us/round")


def large_set(*, rounds: int) -> dict[str, Cell]:
    """Milliseconds of a round of `nonprivate`, beside drawing K*d normals and the product X L."""
    what = workload.simulation("nonprivate", rounds=rounds, dim=LARGE_DIM, n_actions=LARGE_ACTIONS)
    rng = np.random.default_rng(0)
    factor = np.tril(rng.standard_normal((LARGE_DIM, LARGE_DIM)))

    actions = np.empty((LARGE_ACTIONS, LARGE_DIM))
    product = np.empty_like(actions)

    def bare() -> None:
        for _ in range(rounds):  # into arrays that stand: to allocate them takes half as long again
            rng.standard_normal(out=actions)
            np.matmul(actions, factor, out=product)

    workload.played(what, 0)
    bare()
    ours, theirs = [], []
    for seed in range(3):
        ours.append(workload.played(what, seed).seconds / rounds)
        theirs.append(seconds_of(bare) / rounds)
    return _measured(
        f"nonprivate, {LARGE_DIM} features, {LARGE_ACTIONS} actions",
        1e3 * min(ours),
        "NumPy: K*d normals and X L",
        1e3 * min(theirs),
        "ms/round",
    )


def _workers(sizes: Sizes) -> dict[str, Cell]:
    what = workload.simulation("gaussian", rounds=sizes.worker_rounds)
    brief = workload.simulation("gaussian", rounds=min(sizes.worker_rounds, 1000))

    def play(jobs: int, _: int) -> Run:
        simulate(brief, seeds=range(SEEDS), jobs=jobs)  # start the workers
        start = time.perf_counter()
        outcome = simulate(what, seeds=range(SEEDS), jobs=jobs)
        seconds = time.perf_counter() - start
        return Run(rounds=SEEDS * what.rounds, seconds=seconds, regret=float(outcome.final.sum()))

    tasks = {"one worker": partial(play, 1), "two workers": partial(play, 2)}
    runs = interleaved(tasks, repeats=sizes.repeats)
    (one, alone), (two, both) = (
        (name, max(run.rate for run in found)) for name, found in runs.items()
    )
    return _measured(f"gaussian, {two}", both, one, alone, "rounds/s")
