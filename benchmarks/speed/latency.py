"""The library's own calls, one decision at a time, beside the bare product they cannot avoid."""

import time
from statistics import median

import numpy as np

from benchmarks.speed import workload
from benchmarks.speed.plain import unit_rows
from benchmarks.speed.results import Cell, Section
from benchmarks.speed.timing import in_own_process, quantile
from benchmarks.speed.workload import Sizes
from discreet.learner import LinUCB
from discreet.mechanism.variants import named
from discreet.simulation.environments import Sphere

NAME = "latency"
VARIANTS = ("nonprivate", "gaussian", "tight")
SIZES = ((5, 25), (50, 1000))
WARM_UP = 20
SETS = 16  # decision sets, offered in turns


def measure(sizes: Sizes) -> Section:
    """Microseconds of `choose` and `learn`, in a process of its own with one BLAS thread."""
    rows: list[dict[str, Cell]] = []
    figures: dict[str, float] = {}
    for dim, n_actions in SIZES:
        calls = sizes.calls if dim == SIZES[0][0] else max(50, sizes.calls // 10)
        found = in_own_process(__name__, "one_size", dim=dim, n_actions=n_actions, calls=calls)
        rows += found
        for row in found:
            name = f"{row['variant']}_{dim}x{n_actions}"
            figures[f"{name}_us"] = row["both_median_us"]
            figures[f"{name}_over_blas"] = row["times_blas"]
    return Section(
        name=NAME,
        title="microseconds for one decision through LinUCB",
        rows=tuple(rows),
        notes=(
            (
                "Median and 95th percentile over all calls; `both` is `choose` and `learn` "
                "together. BLAS is NumPy's bare product of the decision set (K x d) with a d x d "
                "matrix, median, timed in turns with the calls. Decision sets are drawn beforehand."
            ),
            "Privacy noise comes from the operating system, as for users.",
        ),
        figures=figures,
    )


def one_size(*, dim: int, n_actions: int, calls: int) -> list[dict[str, Cell]]:
    """A row for each variant at one size of the problem."""
    return [_row(variant, dim, n_actions, calls) for variant in VARIANTS]


def _row(variant: str, dim: int, n_actions: int, calls: int) -> dict[str, Cell]:
    choose, learn, blas = _times(variant, dim, n_actions, calls)
    both = [one + other for one, other in zip(choose, learn, strict=True)]
    return {
        "variant": variant,
        "dim": dim,
        "actions": n_actions,
        "choose_median_us": median(choose),
        "choose_95_us": quantile(choose, 0.95),
        "learn_median_us": median(learn),
        "learn_95_us": quantile(learn, 0.95),
        "both_median_us": median(both),
        "blas_us": median(blas),
        "times_blas": median(both) / median(blas),
    }


def learner(variant: str, *, dim: int, n_actions: int) -> LinUCB:
    """As a user would make it, for a long horizon."""
    return LinUCB(
        Sphere(dim=dim, n_actions=n_actions).problem,
        horizon=workload.HORIZON,
        privacy=workload.PRIVACY if named(variant).private else None,
        variant=variant,
    )


def _times(
    variant: str, dim: int, n_actions: int, calls: int
) -> tuple[list[float], list[float], list[float]]:
    rng = np.random.default_rng(0)
    sets = [unit_rows(rng, n_actions, dim) * 0.999 for _ in range(SETS)]
    matrix = np.tril(rng.standard_normal((dim, dim)))
    product = np.empty((n_actions, dim))
    rewards = rng.choice([-1.0, 1.0], size=calls + WARM_UP)
    bandit = learner(variant, dim=dim, n_actions=n_actions)
    choose, learn, blas = [], [], []
    clock = time.perf_counter
    for turn, reward in enumerate(rewards):
        actions = sets[turn % SETS]
        start = clock()
        decision = bandit.choose(actions)
        chosen = clock()
        bandit.learn(decision, reward)
        learnt = clock()
        np.matmul(actions, matrix, out=product)  # the caches are warm for the next one
        ready = clock()
        np.matmul(actions, matrix, out=product)
        end = clock()
        choose.append(1e6 * (chosen - start))
        learn.append(1e6 * (learnt - chosen))
        blas.append(1e6 * (end - ready))
    return choose[WARM_UP:], learn[WARM_UP:], blas[WARM_UP:]
