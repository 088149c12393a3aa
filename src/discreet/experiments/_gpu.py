"""Running cells on a GPU: all seeds of all settings of `Play` together.

Its results are not those of the processor to the bit: the worlds are, what happens in them is
drawn anew. So a run's folder is for the one or for the other.
"""

import time
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

from discreet.experiments._experiment import Finished, Task
from discreet.experiments._play import Play, regret_readings
from discreet.experiments._run import FinishedCells
from discreet.simulation._cuda._batch import Device, Replicates
from discreet.simulation._cuda._plan import Plan, plan
from discreet.simulation._cuda._play import play


def run(
    tasks: Sequence[Task],
    kept: FinishedCells,
    device: Device,
    *,
    on_cell: Callable[[int], None] | None = None,
) -> None:
    """Run every task that a GPU can and that is not finished yet.

    Args:
        tasks: all of them.
        kept: where finished ones go, as soon as all of their shape are done.
        device: where they run.
        on_cell: called with the number of finished tasks whenever there are others.
    """
    settings = _by_setting(tasks, kept.finished)
    wanted = _replicates(settings)
    members, start = list(settings.values()), time.perf_counter()
    for place, seeds, regrets in play(device, wanted):
        checkpoints = wanted[place].plan.checkpoints
        seconds = (time.perf_counter() - start) / len(tasks)
        for seed, curve in zip(seeds, regrets, strict=True):
            readings = tuple(regret_readings(checkpoints, curve))
            for task in members[place][seed]:
                kept.add(_finished(task, readings, seconds))
        if on_cell is not None:
            on_cell(len(kept.finished))


def replicates(tasks: Sequence[Task]) -> list[Replicates]:
    """What a GPU plays for these tasks.

    Args:
        tasks: any; those that are not of `Play` are left out.

    Returns:
        Each setting with its seeds.
    """
    return _replicates(_by_setting(tasks, ()))


def _by_setting(
    tasks: Sequence[Task], finished: Container[str]
) -> dict[Play, dict[int, list[Task]]]:
    """Unfinished tasks by setting and seed."""
    settings: dict[Play, dict[int, list[Task]]] = {}
    for task in tasks:
        if task.key not in finished and isinstance(task.cell, Play):
            same = settings.setdefault(replace(task.cell, seed=0), {})
            same.setdefault(task.cell.seed, []).append(task)
    return settings


def _finished(task: Task, readings: Any, seconds: float) -> Finished:  # noqa: ANN401  # a tuple
    return Finished(
        experiment=task.experiment, settings=task.settings, readings=readings, seconds=seconds
    )


def _replicates(settings: dict[Play, dict[int, list[Task]]]) -> list[Replicates]:
    return [Replicates(plan=_plan(cell), seeds=sorted(by)) for cell, by in settings.items()]


def _plan(cell: Play) -> Plan:
    return plan(cell.simulation(), cell.checkpoints())
