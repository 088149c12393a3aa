"""How long it takes to get going: imports, help, and the first compilation."""

import tempfile
from statistics import median

from benchmarks.speed.results import Cell, Section
from benchmarks.speed.timing import median_seconds, python, seconds_of
from benchmarks.speed.workload import Sizes

NAME = "startup"
FIRST_USE = "discreet; discreet.LinUCB"

_IMPORT = (
    "import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
)
_SIMULATE = (
    *("-m", "discreet", "simulate", "--variant=gaussian", "--horizon=1e5", "--rounds=1000"),
    *("--epsilon=1", "--delta=0.1", "--seeds=1", "--jobs=1", "--json"),
)


def measure(sizes: Sizes) -> Section:
    """Every figure is that of a fresh interpreter."""
    warm_import = _warm_import("discreet", sizes.starts)
    in_use = _warm_import(FIRST_USE, sizes.starts)
    warm_help = median_seconds(lambda: python("-m", "discreet", "--help"), repeats=sizes.starts)
    cold_run, warm_run = _compilation()
    bare = median_seconds(lambda: python("-c", "pass"), repeats=sizes.starts)
    rows: tuple[dict[str, Cell], ...] = (
        _row("python, doing nothing", None, bare),
        _row("import numpy", None, _warm_import("numpy", sizes.starts)),
        _row("import discreet", _cold_import("discreet"), warm_import),
        _row("from discreet import LinUCB", _cold_import(FIRST_USE), in_use),
        _row("discreet --help", None, warm_help),
        _row("discreet simulate, 1000 rounds", cold_run, warm_run),
    )
    return Section(
        name=NAME,
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


def _row(what: str, cold: float | None, warm: float) -> dict[str, Cell]:
    return {"what": what, "cold_s": cold, "warm_s": warm}


def _import(module: str, env: dict[str, str] | None = None) -> float:
    return float(python("-c", _IMPORT.format(module=module), env=env))


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
        cold = seconds_of(lambda: python(*_SIMULATE, env=env))
        return cold, seconds_of(lambda: python(*_SIMULATE, env=env))
