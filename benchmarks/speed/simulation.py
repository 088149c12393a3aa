"""The simulators: rounds and pulls a second, how the time of a round grows, and peak memory."""

import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, median

import numpy as np

from benchmarks.speed import loops, workload
from benchmarks.speed.loops import Reference
from benchmarks.speed.results import BenchSection, Cell
from benchmarks.speed.workload import (
    DIM,
    HORIZON,
    N_ACTIONS,
    BenchSizes,
    Run,
    in_own_process,
    interleaved,
    seconds_of,
)
from discreet.baselines import Arms, Elimination, UpperConfidence
from discreet.baselines.arms._learner import ArmRule
from discreet.baselines.arms._simulate import run_seed
from discreet.mechanism.variants import VARIANTS
from discreet.simulation import simulate

SHORT_HORIZON = 100_000
LARGE_DIM, LARGE_ACTIONS = 64, 4096
SEEDS = 4
N_ARMS, ARM_GAP, ARM_EPSILON = 10, 0.35, 0.5
PULLS_PER_ROUND = 10  # pulls played for each round of the other sections
IN_CPP = ("nonprivate", "gaussian")

Task = Callable[[int], Run]


def simulator(sizes: BenchSizes) -> BenchSection:
    """One core, 5 features, 25 actions; decision sets, rewards and noise are drawn on the way."""
    with loops.compiled(dim=DIM, n_actions=N_ACTIONS) as program:
        runs = interleaved(_tasks(sizes, program), repeats=sizes.repeats)
    rates = {name: max(run.rate for run in found) for name, found in runs.items()}
    figures = {f"{name}_rounds_per_second": rates[name] for name in VARIANTS}
    for name in IN_CPP:
        if _cpp(name) in rates:
            figures[f"{name}_over_cpp"] = rates[name] / rates[_cpp(name)]
    figures["nonprivate_over_numpy"] = rates["nonprivate"] / rates["NumPy nonprivate"]
    return BenchSection(
        name="simulator",
        title=f"rounds per second on one core, {DIM} features, {N_ACTIONS} actions, sphere",
        rows=tuple(_loop_row(name, found, rates) for name, found in runs.items()),
        notes=(*_SIMULATOR_NOTES, *(() if program else (_NO_COMPILER,))),
        figures=figures,
    )


_SIMULATOR_NOTES = (
    (
        "All loops draw decision sets and rewards as they go, and play as if for a horizon of "
        f"{HORIZON:,} rounds. Rates and ratios are those of the best run; runs take turns."
    ),
    (
        "The NumPy and C++ loops share no code with the package, and not its random numbers. "
        "Regret is the mean over the runs (other numbers of rounds have other regrets) and shows "
        f"that they play the same game. C++ flags: {' '.join(loops.FLAGS)}."
    ),
    "`windows` plays by the posterior, its own policy, and all others by upper confidence bounds.",
)
_NO_COMPILER = "C++ was not measured: no working C++ compiler on the path."


def _cpp(variant: str) -> str:
    return f"C++ {variant}"


def _tasks(sizes: BenchSizes, program: Reference | None) -> dict[str, Task]:
    """Everything that is timed, warmed up."""
    tasks: dict[str, Task] = {}
    for name in VARIANTS:
        what = workload.simulation(name, rounds=sizes.rounds)
        workload.played(workload.simulation(name, rounds=min(sizes.rounds, 1000)), 0)
        tasks[name] = partial(workload.played, what)
    tasks["NumPy nonprivate"] = partial(_plain, sizes.plain_rounds)
    if program is not None:
        for name in IN_CPP:
            tasks[_cpp(name)] = partial(_reference, program, name, sizes.rounds)
    return tasks


def _plain(rounds: int, seed: int) -> Run:
    return loops.play_numpy(rounds=rounds, seed=seed, dim=DIM, n_actions=N_ACTIONS, horizon=HORIZON)


def _reference(program: Reference, variant: str, rounds: int, seed: int) -> Run:
    return program.play(workload.mechanism(variant), rounds=rounds, seed=seed)


def _loop_row(name: str, runs: tuple[Run, ...], rates: dict[str, float]) -> dict[str, Cell]:
    cpp = rates.get(_cpp(name))
    return {
        "loop": name,
        "rounds_per_second": round(rates[name]),
        "median": round(median(run.rate for run in runs)),
        "times_numpy": rates[name] / rates["NumPy nonprivate"],
        "times_cpp": None if cpp is None else rates[name] / cpp,
        "regret": fmean(run.regret for run in runs),
        "rounds": runs[0].rounds,
    }


def pulls(sizes: BenchSizes) -> BenchSection:
    """Ten arms with one gap; rewards and noise are drawn on the way."""
    horizon = PULLS_PER_ROUND * sizes.rounds
    rules: dict[str, ArmRule] = {
        "ucb1": UpperConfidence(n_arms=N_ARMS, horizon=horizon),
        "dpucb": UpperConfidence(n_arms=N_ARMS, horizon=horizon, epsilon=ARM_EPSILON),
        "dpse": Elimination(n_arms=N_ARMS, horizon=horizon, epsilon=ARM_EPSILON),
    }
    tasks = {name: partial(_pulled, rule) for name, rule in rules.items()}
    for task in tasks.values():
        task(0)  # compile
    runs = interleaved(tasks, repeats=sizes.repeats)
    return BenchSection(
        name="pulls",
        title=(
            f"arm pulls per second on one core, {N_ARMS} arms, gap {ARM_GAP:g}, "
            f"epsilon {ARM_EPSILON:g}"
        ),
        rows=tuple(
            {
                "learner": name,
                "pulls_per_second": round(max(run.rate for run in found)),
                "median": round(median(run.rate for run in found)),
                "regret": fmean(run.regret for run in found),
                "pulls": horizon,
            }
            for name, found in runs.items()
        ),
        notes=("dpse draws one binomial number for each arm and batch, not one for each pull.",),
        figures={
            f"{name}_pulls_per_second": max(run.rate for run in found)
            for name, found in runs.items()
        },
    )


def _pulled(rule: ArmRule, seed: int) -> Run:
    arms = Arms.with_gaps([ARM_GAP] * (N_ARMS - 1), best_mean=0.0)
    start = time.perf_counter()
    pulls = run_seed(rule, arms, seed, np.array([rule.horizon]))
    seconds = time.perf_counter() - start
    return Run(rounds=rule.horizon, seconds=seconds, regret=float(pulls[-1] @ arms.gaps))


def scaling(sizes: BenchSizes) -> BenchSection:
    """Three ratios, each of two things measured side by side."""
    horizon = _horizons(sizes)
    large = in_own_process(__name__, "large_set", rounds=sizes.large_rounds)
    measured = [horizon, large]
    figures = {"horizon_ratio": horizon["ratio"], "large_ratio": large["ratio"]}
    if cores() > 1:
        workers = _workers(sizes)
        measured.append(workers)
        figures["workers_ratio"] = workers["ratio"]
    return BenchSection(
        name="scaling",
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


def _horizons(sizes: BenchSizes) -> dict[str, Cell]:
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


def _workers(sizes: BenchSizes) -> dict[str, Cell]:
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


def memory(sizes: BenchSizes) -> BenchSection:
    """One process for each length."""
    peaks = {
        rounds: in_own_process(__name__, "peak_of_simulation", rounds=rounds)
        for rounds in (0, *sizes.memory_rounds)
    }
    short, long = sizes.memory_rounds
    rows: list[dict[str, Cell]] = [
        {
            "what": f"gaussian, {rounds:,} rounds" if rounds else "imports only",
            "peak_resident_mib": peak,
        }
        for rounds, peak in peaks.items()
    ]
    return BenchSection(
        name="memory",
        title="peak resident memory of a simulation",
        rows=tuple(rows),
        notes=(
            "With compiled kernels on disk. The bar is about 50,000,000 rounds: --full plays them.",
        ),
        figures={"peak_mib": peaks[long], "peak_growth": peaks[long] / peaks[short]},
    )


def peak_of_simulation(*, rounds: int) -> float:
    """Mebibytes at the most, after playing so many rounds in this process."""
    if rounds:
        workload.played(workload.simulation("gaussian", rounds=rounds), 0)
    return peak_mib()


def peak_mib() -> float:
    """The largest resident set this process has had.

    Linux lets a started process inherit the peak of the one that started it, in `getrusage`;
    the kernel's own table does not.
    """
    table = Path("/proc/self/status")
    if table.exists():
        lines = table.read_text(encoding="ascii").splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1024**2 if sys.platform == "darwin" else 1024)
