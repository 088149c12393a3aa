"""Builds and runs ``reference.cpp``, the same algorithm as a plain C++ loop."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.timing import Run
from discreet.mechanism import Mechanism

SOURCE = Path(__file__).with_name("reference.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native")


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
