"""The most memory a simulation ever held, at two lengths: it should be the same."""

import resource
import sys
from pathlib import Path

from benchmarks.speed import workload
from benchmarks.speed.results import Cell, Section
from benchmarks.speed.timing import in_own_process
from benchmarks.speed.workload import Sizes

NAME = "memory"
VARIANT = "gaussian"


def measure(sizes: Sizes) -> Section:
    """One process for each length."""
    peaks = {
        rounds: in_own_process(__name__, "peak_of_simulation", rounds=rounds)
        for rounds in (0, *sizes.memory_rounds)
    }
    short, long = sizes.memory_rounds
    rows: list[dict[str, Cell]] = [
        {
            "what": f"{VARIANT}, {rounds:,} rounds" if rounds else "imports only",
            "peak_resident_mib": peak,
        }
        for rounds, peak in peaks.items()
    ]
    return Section(
        name=NAME,
        title="peak resident memory of a simulation",
        rows=tuple(rows),
        notes=(
            "With compiled kernels on disk. The bar is about 50,000,000 rounds: --full plays them.",
        ),
        figures={"peak_mib": peaks[long], "peak_growth": peaks[long] / peaks[short]},
    )


def peak_of_simulation(*, rounds: int) -> float:
    """Mebibytes at the most, after playing so many rounds in this process."""
    if rounds:
        workload.played(workload.simulation(VARIANT, rounds=rounds), 0)
    return peak_mib()


def peak_mib() -> float:
    """The largest resident set this process has had.

    Linux lets a started process inherit the peak of the one that started it, in `getrusage`;
    the kernel's own table does not.
    """
    table = Path("/proc/self/status")
    if table.exists():
        lines = table.read_text(encoding="ascii").splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1024**2 if sys.platform == "darwin" else 1024)
