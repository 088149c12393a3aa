"""What a user waits for: one decision, one reward with exact noise, and the start."""

import tempfile
import time
from statistics import median

import numpy as np

from benchmarks.speed import workload
from benchmarks.speed.results import BenchSection, Cell
from benchmarks.speed.workload import BenchSizes
from discreet.learner import LinUCB
from discreet.problem import Problem
from discreet.simulation.environments import Sphere

LATENCY_VARIANTS = ("nonprivate", "gaussian", "tight", "windows")
LATENCY_SIZES = ((5, 25), (50, 1000))
LATENCY_WARM_UP = 20
SETS = 16  # decision sets, offered in turns

EXACTNESS_DIMS = (5, 50)
EXACTNESS_VARIANTS = ("windows", "tight", "gaussian")
NOISES = ("exact", "float")
EXACTNESS_WARM_UP = 40  # rows: the first release is among them

BLOCK_ACTIONS, BLOCK_SIZE = 10, 30  # a model of 30 features for each of 10 actions
BLOCK_LIMIT = 30_000  # rounds, at most

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


def blocks(sizes: BenchSizes) -> BenchSection:
    """Milliseconds around a release of a model for each action, in a process of its own."""
    rows = workload.in_own_process(__name__, "blocks_rows", releases=max(10, sizes.calls // 200))
    return BenchSection(
        name="blocks",
        title=f"milliseconds around a release, {BLOCK_ACTIONS} models of {BLOCK_SIZE} features",
        rows=tuple(rows),
        notes=(
            (
                "`learn` is the median of calls that make a release, `choose` of the first after "
                "one, `other` of all others. LAPACK is NumPy's eigendecomposition of the same "
                "blocks, on one thread, median, in turns with the calls."
            ),
        ),
        figures={
            f"{row['model']}_{name}": row[name]
            for row in rows
            for name in ("learn_ms", "choose_ms", "choose_over_lapack")
        },
    )


def blocks_rows(*, releases: int) -> list[dict[str, Cell]]:
    """A row for the model with its blocks, and one for the same as a single block."""
    sizes = {"blocks": (BLOCK_SIZE,) * BLOCK_ACTIONS, "one": (BLOCK_ACTIONS * BLOCK_SIZE,)}
    return [_blocks_row(name, found, releases) for name, found in sizes.items()]


def _blocks_row(name: str, sizes: tuple[int, ...], releases: int) -> dict[str, Cell]:
    dim = sum(sizes)
    bandit = LinUCB(
        Problem(dim=dim, action_norm=1, reward_bound=1, theta_norm=1, blocks=sizes),
        horizon=workload.HORIZON,
        privacy=workload.PRIVACY,
    )
    rng = np.random.default_rng(0)
    sets = [_apart(rng) for _ in range(SETS)]
    learn: list[float] = []
    first: list[float] = []
    other: list[float] = []
    lapack: list[float] = []
    fresh = False
    clock = time.perf_counter
    for turn in range(BLOCK_LIMIT):
        number = bandit.release.number
        start = clock()
        decision = bandit.choose(sets[turn % SETS])
        chosen = clock()
        bandit.learn(decision, 0.5)
        learnt = clock()
        (first if fresh else other).append(1e3 * (chosen - start))
        fresh = bandit.release.number != number
        if fresh:
            learn.append(1e3 * (learnt - chosen))
            lapack.append(_decomposed(bandit.release.gram, sizes))
        if len(first) > releases:
            break
    return {
        "model": name,
        "releases": len(first),
        "learn_ms": median(learn[1:]),
        "choose_ms": median(first[1:]),
        "other_ms": median(other),
        "lapack_ms": median(lapack),
        "choose_over_lapack": median(first[1:]) / median(lapack),
    }


def _apart(rng: np.random.Generator) -> np.ndarray:
    """A decision set in which each action has features of its own."""
    own = workload.unit_rows(rng, BLOCK_ACTIONS, BLOCK_SIZE) * 0.999
    found = np.zeros((BLOCK_ACTIONS, BLOCK_ACTIONS, BLOCK_SIZE))
    found[np.arange(BLOCK_ACTIONS), np.arange(BLOCK_ACTIONS)] = own
    return found.reshape(BLOCK_ACTIONS, -1)


def _decomposed(gram: np.ndarray, sizes: tuple[int, ...]) -> float:
    """Milliseconds of the eigendecompositions of all blocks."""
    stops = np.cumsum(sizes)
    start = time.perf_counter()
    for size, stop in zip(sizes, stops, strict=True):
        np.linalg.eigh(gram[stop - size : stop, stop - size : stop])
    return 1e3 * (time.perf_counter() - start)


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
