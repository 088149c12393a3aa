"""Clocks, and processes of their own for what must not depend on this one."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)

ROOT = Path(__file__).parents[2]  # from where a fresh interpreter finds this package

_CALL = (
    "import importlib, json, sys; module, name, arguments = json.loads(sys.argv[1]); "
    "print(json.dumps(getattr(importlib.import_module(module), name)(**arguments)))"
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One timed run of a loop."""

    rounds: int
    seconds: float
    regret: float

    @property
    def rate(self) -> float:
        """Rounds per second."""
        return self.rounds / self.seconds


def interleaved(
    tasks: Mapping[str, Callable[[int], Run]], *, repeats: int
) -> dict[str, tuple[Run, ...]]:
    """Every task ``repeats`` times, in turns, so that a slow minute is slow for all of them.

    A task gets the number of the repeat, which it takes for its seed.
    """
    runs: dict[str, list[Run]] = {name: [] for name in tasks}
    for repeat in range(repeats):
        for name, task in tasks.items():
            runs[name].append(task(repeat))
    return {name: tuple(found) for name, found in runs.items()}


def seconds_of(action: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def quantile(values: list[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def in_own_process(module: str, name: str, /, **arguments: object) -> Any:  # noqa: ANN401  # JSON
    """Call a function of the package in a fresh interpreter with one BLAS thread."""
    found = python("-c", _CALL, json.dumps([module, name, arguments]), env=ONE_THREAD)
    return json.loads(found.splitlines()[-1])


def python(*arguments: str, env: Mapping[str, str] | None = None) -> str:
    """What this interpreter prints when it is started with these arguments."""
    done = subprocess.run(  # noqa: S603  # our own interpreter and our own code
        [sys.executable, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
    )
    return done.stdout


def median_seconds(action: Callable[[], object], *, repeats: int) -> float:
    """The median time of several calls, after one that does not count."""
    action()
    return median(seconds_of(action) for _ in range(repeats))
