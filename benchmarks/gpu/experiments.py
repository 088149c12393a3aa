"""The paper's three experiments at full scale, in parts that fit into the time there is."""

import json
import lzma
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.clock import Clocked, OutOfTimeError, named, tell
from benchmarks.gpu.compiling import beforehand
from discreet.experiments import _folder as folder
from discreet.experiments import _gpu as on_gpu
from discreet.experiments import _reproduce as again
from discreet.experiments._experiment import Finished, Scale, Task
from discreet.experiments._run import InMemory
from discreet.simulation._cuda._batch import Device
from discreet.simulation._cuda._play import grouped

NAMES = ("dimension", "variants", "shifts")


def request(name: str, out: Path, seeds: int, scale: str = "full") -> again.Request:
    """What `discreet reproduce` is asked for."""
    return again.Request(
        name=name, scale=Scale(scale), out=out / name, jobs=1, device="cuda", seeds=seeds
    )


def tasks_of(
    names: Sequence[str], seeds: int, part: tuple[int, int] = (1, 1), scale: str = "full"
) -> list[Task]:
    """All tasks of these experiments with one part of the seeds, such as (1, 2): every other."""
    place, parts = part
    return [
        task
        for name in names or NAMES
        for task in request(name, Path(), seeds, scale).plan().tasks
        if int(task.settings["seed"] or 0) % parts == place - 1
    ]


def play(
    out: Path,
    device: Device,
    *,
    names: Sequence[str],
    seeds: int,
    part: tuple[int, int],
    limit: float,
    jobs: int = 0,
    scale: str = "full",
) -> None:
    """Play, and write finished cells to a file for each experiment; `report` reads them.

    Cells that such files in ``out`` have already are not played again. With ``jobs`` kernels are
    compiled beforehand, which does not count; without, while others are played, as users have it.
    """
    start = time.perf_counter()
    tasks = tasks_of(names, seeds, part, scale)
    have = read(out)[0]
    tasks = [task for task in tasks if task.key not in have]
    groups = grouped(device, on_gpu.replicates(tasks))
    rounds = {
        f"{named(group.macros)}, {group.replicates} replicates": group.rounds for group in groups
    }
    tell(cells=len(tasks), planned_in=round(time.perf_counter() - start, 2))
    beforehand(device, (group.macros for group in groups), jobs)
    rest = limit - (time.perf_counter() - start)
    clocked, kept = Clocked(device, limit=rest), InMemory()
    try:
        on_gpu.run(tasks, kept, clocked)
    except (OutOfTimeError, KeyboardInterrupt):
        tell(interrupted=True)
    summary = clocked.summary()
    for kernel, facts in summary["kernels"].items():
        share = min(1.0, facts["rounds"] / rounds[kernel])
        facts["share"] = round(share, 4)  # of the longest run's rounds
        facts["expected_end"] = round(facts["began"] + (facts["ended"] - facts["began"]) / share, 1)
    total = sum(int(cell.settings["rounds"] or 0) for cell in kept.finished.values())
    tell(
        seeds=seeds,
        part=list(part),
        finished=len(kept.finished),
        left=len(tasks) - len(kept.finished),
        rounds_of_finished=total,
        **summary,
    )
    write(out, list(kept.finished.values()), f"{part[0]}of{part[1]}-{len(have)}", seeds)


def write(out: Path, cells: Sequence[Finished], label: str, seeds: int) -> None:
    """A compressed file for each experiment: where it ran, and its cells."""
    out.mkdir(parents=True, exist_ok=True)
    for name in {cell.experiment for cell in cells}:
        with lzma.open(out / f"{name}-{label}.jsonl.xz", "wt", preset=3) as file:
            where = again.start_facts(request(name, out, seeds), 1)
            file.write(json.dumps({"start": where}) + "\n")
            for cell in cells:
                if cell.experiment == name:
                    file.write(json.dumps({"cell": cell.to_json()}) + "\n")


def read(out: Path) -> tuple[dict[str, Finished], dict[str, list[dict[str, Any]]]]:
    """All cells in files of ``out`` by key, and where they ran by experiment."""
    cells: dict[str, Finished] = {}
    starts: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(out.glob("*.jsonl.xz")):
        with lzma.open(path, "rt") as file:
            for line in map(json.loads, file):
                if "start" in line:
                    starts.setdefault(path.name.rsplit("-", 2)[0], []).append(line["start"])
                else:
                    cell = Finished.from_json(line["cell"])
                    cells[cell.key] = cell
    return cells, starts


def report(out: Path, *, names: Sequence[str], seeds: int, scale: str = "full") -> None:
    """Write the folder and the report of each experiment whose cells are all there: no GPU."""
    cells, starts = read(out)
    for name in names or NAMES:
        asked = request(name, out, seeds, scale)
        plan = asked.plan()
        missing = sum(task.key not in cells for task in plan.tasks)
        if missing:
            tell(experiment=name, missing=missing)
            continue
        with folder.opened(asked.out, plan) as own:
            done = own.finished
            if not own.starts:
                for facts in starts[name]:
                    own.note_start(facts)
            for task in plan.tasks:
                if task.key not in done:
                    own.add(cells[task.key])
        found = again.reproduce(asked)
        tell(experiment=name, **found.to_json())
