"""What exact noise costs beside floating-point noise, in calls of `learn`."""

import time
from statistics import median

from benchmarks.speed import workload
from benchmarks.speed.results import Cell, Section
from benchmarks.speed.timing import in_own_process
from benchmarks.speed.workload import Sizes
from discreet.learner import LinUCB
from discreet.simulation.environments import Sphere

NAME = "exactness"
DIMS = (5, 50)
VARIANTS = ("tight", "gaussian")
NOISES = ("exact", "float")
WARM_UP = 40  # rows: the first release is among them


def measure(sizes: Sizes) -> Section:
    """Microseconds of `learn`, with and without a release, in a process of its own."""
    rows: list[dict[str, Cell]] = []
    figures: dict[str, float] = {}
    for dim in DIMS:
        calls = sizes.calls if dim == DIMS[0] else max(100, sizes.calls // 10)
        for row in in_own_process(__name__, "one_size", dim=dim, calls=calls):
            rows.append(row)
            name = f"{row['variant']}_{dim}"
            figures[f"{name}_release_ms"] = row["exact_release_us"] / 1000
            if row["exact_row_us"] is not None:
                figures[f"{name}_row_ratio"] = row["exact_row_us"] / row["float_row_us"]
            figures[f"{name}_mean_ratio"] = row["exact_mean_us"] / row["float_mean_us"]
    return Section(
        name=NAME,
        title="microseconds of learn, exact noise beside floating-point noise",
        rows=tuple(rows),
        notes=(
            (
                "`row` is the median of calls without a release, `release` of those with one (with "
                "`gaussian` all of them), `mean` the mean of all calls. Both learners take turns. "
                "Decisions have one action. Noise comes from the operating system."
            ),
        ),
        figures=figures,
    )


def one_size(*, dim: int, calls: int) -> list[dict[str, Cell]]:
    """A row for each variant."""
    return [_row(variant, dim, calls) for variant in VARIANTS]


def _row(variant: str, dim: int, calls: int) -> dict[str, Cell]:
    found: dict[str, Cell] = {"variant": variant, "dim": dim}
    for noise, (plain, releasing) in _times(variant, dim, calls).items():
        found[f"{noise}_row_us"] = median(plain) if plain else None
        found[f"{noise}_release_us"] = median(releasing)
        found[f"{noise}_mean_us"] = (sum(plain) + sum(releasing)) / calls
    return found


def _times(variant: str, dim: int, calls: int) -> dict[str, tuple[list[float], list[float]]]:
    problem = Sphere(dim=dim, n_actions=2).problem
    learners = {
        noise: LinUCB(
            problem,
            horizon=workload.HORIZON,
            privacy=workload.PRIVACY,
            variant=variant,
            noise=noise,
        )
        for noise in NOISES
    }
    times: dict[str, tuple[list[float], list[float]]] = {noise: ([], []) for noise in NOISES}
    action = [[0.9] + [0.1] * (dim - 1)] if dim <= DIMS[0] else [[0.1] * dim]
    for turn in range(calls + WARM_UP):
        for noise, learner in learners.items():
            decision = learner.choose(action)
            before = learner.release.number
            start = time.perf_counter()
            learner.learn(decision, 0.5)
            took = 1e6 * (time.perf_counter() - start)
            if turn >= WARM_UP:
                times[noise][learner.release.number > before].append(took)
    return times
