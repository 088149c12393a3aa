"""What a user waits for: one decision, one reward with exact noise, and the start."""

import tempfile
import time
from statistics import median

import numpy as np

from benchmarks.speed import workload
from benchmarks.speed.results import BenchSection, Cell
from benchmarks.speed.workload import BenchSizes
from discreet.learner import LinUCB
from discreet.simulation.environments import Sphere

LATENCY_VARIANTS = ("nonprivate", "gaussian", "tight")
LATENCY_SIZES = ((5, 25), (50, 1000))
LATENCY_WARM_UP = 20
SETS = 16  # decision sets, offered in turns

EXACTNESS_DIMS = (5, 50)
EXACTNESS_VARIANTS = ("tight", "gaussian")
NOISES = ("exact", "float")
EXACTNESS_WARM_UP = 40  # rows: the first release is among them

FIRST_USE = "discreet; discreet.LinUCB"

_IMPORT = (
    "import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
)
_SIMULATE = (
    *("-m", "discreet", "simulate", "--variant=gaussian", "--horizon=1e5", "--rounds=1000"),
    *("--epsilon=1", "--delta=0.1", "--seeds=1", "--jobs=1", "--json"),
)


def latency(sizes: BenchSizes) -> BenchSection:
    """Microseconds of `choose` and `learn`, in a process of its own with one BLAS thread."""
    rows: list[dict[str, Cell]] = []
    figures: dict[str, float] = {}
    for dim, n_actions in LATENCY_SIZES:
        calls = sizes.calls if dim == LATENCY_SIZES[0][0] else max(50, sizes.calls // 10)
        found = workload.in_own_process(
            __name__, "latency_rows", dim=dim, n_actions=n_actions, calls=calls
        )
        rows += found
        for row in found:
            name = f"{row['variant']}_{dim}x{n_actions}"
            figures[f"{name}_us"] = row["both_median_us"]
            figures[f"{name}_over_blas"] = row["times_blas"]
    return BenchSection(
        name="latency",
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


def latency_rows(*, dim: int, n_actions: int, calls: int) -> list[dict[str, Cell]]:
    """A row for each variant at one size of the problem."""
    return [_latency_row(variant, dim, n_actions, calls) for variant in LATENCY_VARIANTS]


def _latency_row(variant: str, dim: int, n_actions: int, calls: int) -> dict[str, Cell]:
    choose, learn, blas = _latency_times(variant, dim, n_actions, calls)
    both = [one + other for one, other in zip(choose, learn, strict=True)]
    return {
        "variant": variant,
        "dim": dim,
        "actions": n_actions,
        "choose_median_us": median(choose),
        "choose_95_us": workload.quantile(choose, 0.95),
        "learn_median_us": median(learn),
        "learn_95_us": workload.quantile(learn, 0.95),
        "both_median_us": median(both),
        "blas_us": median(blas),
        "times_blas": median(both) / median(blas),
    }


def _latency_times(
    variant: str, dim: int, n_actions: int, calls: int
) -> tuple[list[float], list[float], list[float]]:
    rng = np.random.default_rng(0)
    sets = [workload.unit_rows(rng, n_actions, dim) * 0.999 for _ in range(SETS)]
    matrix = np.tril(rng.standard_normal((dim, dim)))
    product = np.empty((n_actions, dim))
    rewards = rng.choice([-1.0, 1.0], size=calls + LATENCY_WARM_UP)
    bandit = workload.learner(variant, dim=dim, n_actions=n_actions)
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
    return choose[LATENCY_WARM_UP:], learn[LATENCY_WARM_UP:], blas[LATENCY_WARM_UP:]


def exactness(sizes: BenchSizes) -> BenchSection:
    """Microseconds of `learn`, with and without a release, in a process of its own."""
    rows: list[dict[str, Cell]] = []
    figures: dict[str, float] = {}
    for dim in EXACTNESS_DIMS:
        calls = sizes.calls if dim == EXACTNESS_DIMS[0] else max(100, sizes.calls // 10)
        for row in workload.in_own_process(__name__, "exactness_rows", dim=dim, calls=calls):
            rows.append(row)
            name = f"{row['variant']}_{dim}"
            figures[f"{name}_release_ms"] = row["exact_release_us"] / 1000
            if row["exact_row_us"] is not None:
                figures[f"{name}_row_ratio"] = row["exact_row_us"] / row["float_row_us"]
            figures[f"{name}_mean_ratio"] = row["exact_mean_us"] / row["float_mean_us"]
    return BenchSection(
        name="exactness",
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


def exactness_rows(*, dim: int, calls: int) -> list[dict[str, Cell]]:
    """A row for each variant."""
    return [_exactness_row(variant, dim, calls) for variant in EXACTNESS_VARIANTS]


def _exactness_row(variant: str, dim: int, calls: int) -> dict[str, Cell]:
    found: dict[str, Cell] = {"variant": variant, "dim": dim}
    for noise, (plain, releasing) in _learn_times(variant, dim, calls).items():
        found[f"{noise}_row_us"] = median(plain) if plain else None
        found[f"{noise}_release_us"] = median(releasing)
        found[f"{noise}_mean_us"] = (sum(plain) + sum(releasing)) / calls
    return found


def _learn_times(variant: str, dim: int, calls: int) -> dict[str, tuple[list[float], list[float]]]:
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
    action = [[0.9] + [0.1] * (dim - 1)] if dim <= EXACTNESS_DIMS[0] else [[0.1] * dim]
    for turn in range(calls + EXACTNESS_WARM_UP):
        for noise, learner in learners.items():
            decision = learner.choose(action)
            before = learner.release.number
            start = time.perf_counter()
            learner.learn(decision, 0.5)
            took = 1e6 * (time.perf_counter() - start)
            if turn >= EXACTNESS_WARM_UP:
                times[noise][learner.release.number > before].append(took)
    return times


def startup(sizes: BenchSizes) -> BenchSection:
    """Every figure is that of a fresh interpreter."""
    warm_import = _warm_import("discreet", sizes.starts)
    in_use = _warm_import(FIRST_USE, sizes.starts)
    warm_help = workload.median_seconds(
        lambda: workload.python("-m", "discreet", "--help"), repeats=sizes.starts
    )
    cold_run, warm_run = _compilation()
    bare = workload.median_seconds(lambda: workload.python("-c", "pass"), repeats=sizes.starts)
    rows: tuple[dict[str, Cell], ...] = (
        _startup_row("python, doing nothing", None, bare),
        _startup_row("import numpy", None, _warm_import("numpy", sizes.starts)),
        _startup_row("import discreet", _cold_import("discreet"), warm_import),
        _startup_row("from discreet import LinUCB", _cold_import(FIRST_USE), in_use),
        _startup_row("discreet --help", None, warm_help),
        _startup_row("discreet simulate, 1000 rounds", cold_run, warm_run),
    )
    return BenchSection(
        name="startup",
        title="seconds to start",
        rows=rows,
        notes=(
            (
                "Imports are timed inside the interpreter, the rest from outside. Warm: what was "
                "compiled before is found on disk; the median of several. Cold: measured once, an "
                "import without any compiled Python (its dependencies' included), a simulation "
                "without compiled kernels. Files were in the system's memory already."
            ),
            (
                "`import discreet` puts off all work until a name is used, so it is quick by "
                "itself; who wants a learner waits for the line below it."
            ),
        ),
        figures={
            "import_seconds": warm_import,
            "first_use_seconds": in_use,
            "help_seconds": warm_help,
            "compile_seconds": cold_run - warm_run,
        },
    )


def _startup_row(what: str, cold: float | None, warm: float) -> dict[str, Cell]:
    return {"what": what, "cold_s": cold, "warm_s": warm}


def _import(module: str, env: dict[str, str] | None = None) -> float:
    return float(workload.python("-c", _IMPORT.format(module=module), env=env))


def _warm_import(module: str, starts: int) -> float:
    _import(module)
    return median(_import(module) for _ in range(starts))


def _cold_import(module: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return _import(module, {"PYTHONPYCACHEPREFIX": folder})


def _compilation() -> tuple[float, float]:
    """A short simulation that compiles the kernels, and the same one again."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"NUMBA_CACHE_DIR": folder}
        cold = workload.seconds_of(lambda: workload.python(*_SIMULATE, env=env))
        return cold, workload.seconds_of(lambda: workload.python(*_SIMULATE, env=env))
