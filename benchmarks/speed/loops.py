"""The same algorithm as one writes it in NumPy, and as a plain C++ loop (``reference.cpp``).

Neither shares code with the package.
"""

import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.speed.workload import F64, Run, unit_rows
from discreet.mechanism import Mechanism

TOP = 0.75  # the mean reward of the best action
SOURCE = Path(__file__).with_name("reference.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native")


class PlainLinUCB:
    """LinUCB with regularizer 1 for unit actions, a unit parameter and rewards within [-1, 1].

    Paper: alg:linucb with the radius of prop:calc-beta and no perturbations. The inverse and the
    log-determinant are kept up to date by rank-one formulas, which in NumPy is twice as fast as
    to solve and to factor anew: a slow baseline would flatter what stands beside it.
    """

    def __init__(self, dim: int, horizon: int) -> None:
        """Start from the regularizer alone."""
        self.inverse = np.eye(dim)
        self.moment = np.zeros(dim)
        self.log_det = 0.0
        self.tail = 2 * math.log(2 * horizon)

    def choose(self, actions: F64) -> int:
        """The first row with the largest upper confidence bound."""
        solved = actions @ self.inverse
        radius = math.sqrt(self.tail + self.log_det) + 1.0
        widths = np.sqrt(np.einsum("kd,kd->k", solved, actions))
        return int((solved @ self.moment + radius * widths).argmax())

    def learn(self, action: F64, reward: float) -> None:
        """Add one row. Sherman-Morrison, and the determinant lemma."""
        solved = self.inverse @ action
        growth = 1.0 + float(action @ solved)
        self.inverse -= np.outer(solved, solved) / growth
        self.log_det += math.log(growth)
        self.moment += reward * action


def sphere_set(rng: np.random.Generator, theta: F64, n_actions: int) -> tuple[F64, F64]:
    """A decision set of the sphere without a gap, and its means: (K, d), (K,).

    Half as many again are drawn as are needed, which mostly leaves enough within the band.
    """
    kept = np.empty(0, dtype=np.intp)
    while kept.size < n_actions:
        drafts = unit_rows(rng, n_actions + n_actions // 2 + 1, theta.size)
        products = drafts @ theta
        kept = np.flatnonzero(np.abs(products) <= TOP)[:n_actions]
    actions, means = drafts[kept], products[kept]
    best = int(rng.random() * n_actions)
    across = actions[best] - means[best] * theta
    across *= math.sqrt((1 - TOP**2) / (across @ across))
    actions[best], means[best] = TOP * theta + across, TOP
    return actions, means


def play_numpy(*, rounds: int, seed: int, dim: int, n_actions: int, horizon: int) -> Run:
    """The loop: a decision set, a choice, a reward."""
    rng = np.random.default_rng(seed)
    theta = unit_rows(rng, 1, dim)[0]
    learner = PlainLinUCB(dim, horizon)
    regret = 0.0
    start = time.perf_counter()
    for _ in range(rounds):
        actions, means = sphere_set(rng, theta, n_actions)
        chosen = learner.choose(actions)
        reward = 1.0 if rng.random() < 0.5 * (1.0 + means[chosen]) else -1.0
        learner.learn(actions[chosen], reward)
        regret += TOP - float(means[chosen])
    return Run(rounds=rounds, seconds=time.perf_counter() - start, regret=regret)


@dataclass(frozen=True)
class Reference:
    """A compiled program, for one number of features and of actions."""

    program: Path

    def play(self, mechanism: Mechanism, *, rounds: int, seed: int) -> Run:
        """One run with the noise (Gaussian or none), the shift and the radius of a mechanism."""
        noise = {} if mechanism.noise is None else mechanism.noise.describe(mechanism.setting)
        std = noise["node_noise_std"] if noise else 0.0
        floor = 1.0 if mechanism.bounds is None else mechanism.bounds.rho_min
        numbers = (mechanism.levels, std, mechanism.shift, floor, *mechanism.radius_terms, 0.0)
        done = subprocess.run(  # noqa: S603  # what `compiled` has built
            [self.program, str(rounds), str(seed), *(repr(number) for number in numbers)],
            capture_output=True,
            check=True,
        )
        found = json.loads(done.stdout)
        return Run(rounds=rounds, seconds=found["seconds"], regret=found["regret"])


def compiler() -> str | None:
    """A C++ compiler on the path."""
    return shutil.which("c++") or shutil.which("g++")


@contextmanager
def compiled(*, dim: int, n_actions: int) -> Iterator[Reference | None]:
    """The program, for as long as its temporary folder lasts; None if it cannot be built."""
    tool = compiler()
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
        program = Path(folder) / "reference"
        sizes = (f"-DDIM={dim}", f"-DACTIONS={n_actions}")
        built = tool is not None and _run(tool, *FLAGS, *sizes, str(SOURCE), "-o", str(program))
        yield Reference(program) if built else None


def _run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603  # a compiler
