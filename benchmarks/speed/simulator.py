"""Rounds per second of every variant, beside a NumPy loop and a C++ loop of the same algorithm."""

from collections.abc import Callable
from functools import partial
from statistics import fmean, median

from benchmarks.speed import plain, reference, workload
from benchmarks.speed.reference import Reference
from benchmarks.speed.results import Cell, Section
from benchmarks.speed.timing import Run, interleaved
from benchmarks.speed.workload import DIM, HORIZON, N_ACTIONS, Sizes
from discreet.mechanism.variants import VARIANTS

NAME = "simulator"
IN_CPP = ("nonprivate", "gaussian")

Task = Callable[[int], Run]


def measure(sizes: Sizes) -> Section:
    """One core, 5 features, 25 actions; decision sets, rewards and noise are drawn on the way."""
    with reference.compiled(dim=DIM, n_actions=N_ACTIONS) as program:
        runs = interleaved(_tasks(sizes, program), repeats=sizes.repeats)
    rates = {name: max(run.rate for run in found) for name, found in runs.items()}
    figures = {f"{name}_rounds_per_second": rates[name] for name in VARIANTS}
    for name in IN_CPP:
        if _cpp(name) in rates:
            figures[f"{name}_over_cpp"] = rates[name] / rates[_cpp(name)]
    figures["nonprivate_over_numpy"] = rates["nonprivate"] / rates["NumPy nonprivate"]
    return Section(
        name=NAME,
        title=f"rounds per second on one core, {DIM} features, {N_ACTIONS} actions, sphere",
        rows=tuple(_row(name, found, rates) for name, found in runs.items()),
        notes=(*_NOTES, *(() if program else (_NO_COMPILER,))),
        figures=figures,
    )


_NOTES = (
    (
        "All loops draw decision sets and rewards as they go, and play as if for a horizon of "
        f"{HORIZON:,} rounds. Rates and ratios are those of the best run; runs take turns."
    ),
    (
        "The NumPy and C++ loops share no code with the package, and not its random numbers. "
        "Regret is the mean over the runs (other numbers of rounds have other regrets) and shows "
        f"that they play the same game. C++ flags: {' '.join(reference.FLAGS)}."
    ),
)
_NO_COMPILER = "C++ was not measured: no working C++ compiler on the path."


def _cpp(variant: str) -> str:
    return f"C++ {variant}"


def _tasks(sizes: Sizes, program: Reference | None) -> dict[str, Task]:
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
    return plain.play(rounds=rounds, seed=seed, dim=DIM, n_actions=N_ACTIONS, horizon=HORIZON)


def _reference(program: Reference, variant: str, rounds: int, seed: int) -> Run:
    return program.play(workload.mechanism(variant), rounds=rounds, seed=seed)


def _row(name: str, runs: tuple[Run, ...], rates: dict[str, float]) -> dict[str, Cell]:
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
