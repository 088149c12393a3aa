"""The simulator on a GPU, measured. Every line that is printed is JSON.

    python -m benchmarks.gpu reference ref.json      processor: mean regret in every setting
    python -m benchmarks.gpu agreement ref.json      GPU: the same settings, compared
    python -m benchmarks.gpu speed                   GPU: rounds a second
    python -m benchmarks.gpu experiments OUT --seeds 32     GPU: the paper's three, at full scale
    python -m benchmarks.gpu report OUT --seeds 32   processor: their folders and reports
    compute-sanitizer --tool racecheck python -m benchmarks.gpu small      GPU: a little of all

`--jobs 8` compiles beforehand, in so many threads, and says how long each kernel took; without it
kernels are compiled when they are needed. `--seconds` ends a command early; what it has by then is
kept.
`reference` and `experiments` go on where they were if they are given the same file or folder;
`--part 1/2` is half of the seeds.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.gpu import agreement, experiments, speed
from benchmarks.gpu.settings import LANES
from discreet.simulation._cuda._runtime import Gpu

COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "reference": lambda given: agreement.reference(
        given.path, jobs=max(1, given.jobs), seeds=given.seeds or 600, names=given.names
    ),
    "agreement": lambda given: agreement.agreement(
        given.path, Gpu(), lanes=given.lanes, **_usual(given)
    ),
    "speed": lambda given: speed.speed(Gpu(), budget=given.budget, **_usual(given)),
    "small": lambda given: speed.small(Gpu(), **_usual(given)),
    "experiments": lambda given: experiments.play(
        given.path, Gpu(), seeds=given.seeds, part=given.part, **_usual(given)
    ),
    "report": lambda given: experiments.report(given.path, names=given.names, seeds=given.seeds),
}


def _usual(given: argparse.Namespace) -> dict[str, Any]:
    return {"names": given.names, "limit": given.seconds, "jobs": given.jobs}


def part(text: str) -> tuple[int, int]:
    """Such as 1/2: the first of two."""
    place, _, parts = text.partition("/")
    found = int(place), int(parts)
    if not 1 <= found[0] <= found[1]:
        raise ValueError(text)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("path", nargs="?", type=Path, default=Path("gpu-benchmark"))
    parser.add_argument("--jobs", type=int, default=0, help="processes; threads that compile")
    parser.add_argument("--seeds", type=int, default=0, help="in every cell; the least if left out")
    parser.add_argument("--part", type=part, default=(1, 1), help="of the seeds, such as 1/2")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which to stop")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of each measurement")
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    parser.add_argument("--names", nargs="*", default=[], help="of settings or experiments")
    given = parser.parse_args(arguments)
    COMMANDS[given.what](given)


if __name__ == "__main__":
    sys.exit(main())
