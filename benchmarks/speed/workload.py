"""What is played (the setting of the paper's second experiment), how much of it, and the clocks."""

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

import numpy as np
from numpy.typing import NDArray

from discreet.learner import LinUCB
from discreet.mechanism import Mechanism
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.release.policies import UCB
from discreet.simulation import Simulation, simulate
from discreet.simulation.environments import Sphere

F64 = NDArray[np.float64]

DIM = 5
N_ACTIONS = 25
HORIZON = 50_000_000
PRIVACY = Privacy(epsilon=1.0, delta=0.1)
DEFAULT = "windows"  # the variant of `LinUCB`


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
class BenchSizes:
    """How long each measurement is.

    Attributes:
        rounds: of the compiled simulator, in one run.
        plain_rounds: of the NumPy loop, in one run.
        repeats: runs of each.
        scaling_repeats: runs of each horizon; these are short.
        worker_rounds: for each of four seeds, on one worker and on two.
        large_rounds: with 64 features and 4096 actions.
        calls: of the library at 5 features and 25 actions; a tenth of that at 50 and 1000.
        library_rounds: of the other bandit libraries, at most.
        library_seconds: for each of them, at most.
        starts: of the interpreter.
        memory_rounds: two lengths of a simulation.
        stored_pairs: of `choose` and `learn` of a learner, in one turn.
        waiting: decisions that wait while calls of a stored learner are timed.
        waiting_calls: how many of these.
        batch: decisions in one call.
        baseline: a checkout of another commit whose stored learner is measured too; None for none.
    """

    rounds: int
    plain_rounds: int
    repeats: int
    scaling_repeats: int
    worker_rounds: int
    large_rounds: int
    calls: int
    library_rounds: int
    library_seconds: float
    starts: int
    memory_rounds: tuple[int, int]
    stored_pairs: int
    waiting: int
    waiting_calls: int
    batch: int
    baseline: Path | None = None


DEFAULT = BenchSizes(
    rounds=700_000,
    plain_rounds=30_000,
    repeats=5,
    scaling_repeats=15,
    worker_rounds=700_000,
    large_rounds=150,
    calls=10_000,
    library_rounds=2_000,
    library_seconds=8.0,
    starts=7,
    memory_rounds=(100_000, 5_000_000),
    stored_pairs=192,
    waiting=300_000,
    waiting_calls=2_000,
    batch=10_000,
)
QUICK = BenchSizes(
    rounds=300_000,
    plain_rounds=8_000,
    repeats=3,
    scaling_repeats=5,
    worker_rounds=250_000,
    large_rounds=40,
    calls=2_000,
    library_rounds=300,
    library_seconds=2.0,
    starts=3,
    memory_rounds=(100_000, 1_000_000),
    stored_pairs=64,
    waiting=30_000,
    waiting_calls=500,
    batch=10_000,
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


def mechanism(
    variant: str, *, horizon: int = HORIZON, dim: int = DIM, n_actions: int = N_ACTIONS
) -> Mechanism:
    """A variant, calibrated for the sphere."""
    row = named(variant)
    problem = Sphere(dim=dim, n_actions=n_actions).problem
    return calibrate(row, problem, horizon=horizon, privacy=PRIVACY if row.private else None)


def policy(variant: str) -> UCB | None:
    """Upper confidence bounds, as other loops and libraries play; for the default its own."""
    return None if variant == DEFAULT else UCB()


def simulation(
    variant: str,
    *,
    rounds: int,
    horizon: int = HORIZON,
    dim: int = DIM,
    n_actions: int = N_ACTIONS,
) -> Simulation:
    """A variant on the sphere, without a gap."""
    return Simulation(
        environment=Sphere(dim=dim, n_actions=n_actions),
        mechanism=mechanism(variant, horizon=horizon, dim=dim, n_actions=n_actions),
        rounds=rounds,
        policy=policy(variant),  # type: ignore[arg-type]  # None means: the variant's own
    )


def played(what: Simulation, seed: int) -> Run:
    """One seed of the compiled simulator, on this core. Compilation does not count."""
    outcome = simulate(what, seeds=[seed], jobs=1)
    return Run(rounds=what.rounds, seconds=outcome.seconds, regret=float(outcome.final[0]))


def learner(variant: str, *, dim: int, n_actions: int) -> LinUCB:
    """As a user would make it, for a long horizon."""
    return LinUCB(
        Sphere(dim=dim, n_actions=n_actions).problem,
        horizon=HORIZON,
        privacy=PRIVACY if named(variant).private else None,
        variant=variant,
        policy=policy(variant),
    )


def unit_rows(rng: np.random.Generator, count: int, dim: int) -> F64:
    """Uniform unit vectors, shape (count, dim)."""
    rows = rng.standard_normal((count, dim))
    rows /= np.sqrt(np.einsum("kd,kd->k", rows, rows))[:, None]
    return rows


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
