"""`discreet reproduce`: the table of experiments, and one command's worth of work.

``reproduce`` runs what a run's folder does not have yet, judges it, and writes it all down.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.experiments import _compare as compare
from discreet.experiments import _decision_set as decision_set
from discreet.experiments import _dimension as dimension
from discreet.experiments import _folder as folder
from discreet.experiments import _gpu as gpu
from discreet.experiments import _lower_bounds as lower_bounds
from discreet.experiments import _price as price
from discreet.experiments import _run as running
from discreet.experiments import _shifts as shifts
from discreet.experiments import _variants as variants
from discreet.experiments._claims import Claim
from discreet.experiments._experiment import Experiment, Scale
from discreet.experiments._report import write_report
from discreet.report._page import Provenance
from discreet.simulation._cuda._runtime import Gpu
from discreet.simulation._simulate import DEVICES

SCALES = {scale.value: scale for scale in Scale}
ALL = "all"

# In the order in which a reader meets them. Adding an experiment is a line here.
EXPERIMENTS: dict[str, Experiment[Any]] = {
    row.name: row
    for row in (
        decision_set.EXPERIMENT,
        dimension.EXPERIMENT,
        variants.EXPERIMENT,
        shifts.EXPERIMENT,
        lower_bounds.EXPERIMENT,
        price.EXPERIMENT,
        compare.EXPERIMENT,
    )
}


def named(name: str) -> tuple[Experiment[Any], ...]:
    """The experiment of that name, or all of them."""
    if name == ALL:
        return tuple(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        names = ", ".join([*EXPERIMENTS, ALL])
        raise ParameterError("experiment", f"is {name!r}; give one of {names}")
    return (EXPERIMENTS[name],)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person asks for.

    Attributes:
        name: an experiment, or all.
        scale: smoke, quick or full.
        out: the folder.
        jobs: worker processes, where they are ours to start.
        backend: loky, dask or ray.
        address: of an existing cluster.
        device: cpu, or cuda: then a GPU plays, and workers do only what it cannot.
        seeds: the least number of seeds in every cell; 0 for the scale's own.
    """

    name: str
    scale: Scale
    out: Path
    jobs: int
    backend: str = "loky"
    address: str | None = None
    device: str = "cpu"
    seeds: int = 0

    def __post_init__(self) -> None:
        """Refuse what does not exist."""
        checks.count("jobs", self.jobs)
        checks.count("seeds", self.seeds, least=0)
        checks.one_of("device", self.device, DEVICES)
        if self.backend not in running.BACKENDS:
            raise ParameterError(
                "backend", f"is {self.backend!r}; give one of {', '.join(running.BACKENDS)}"
            )

    @property
    def experiments(self) -> tuple[Experiment[Any], ...]:
        """The rows of the table that are asked for."""
        return named(self.name)

    def plan(self) -> folder.Plan:
        """Every task of these experiments at this scale."""
        tasks = [task for one in self.experiments for task in one.tasks(self.scale, self.seeds)]
        return folder.Plan(name=self.name, scale=self.scale, tasks=tuple(tasks), device=self.device)

    def command(self) -> str:
        """The command line that asks for the same."""
        more = f" --seeds {self.seeds}" if self.seeds else ""
        more += "" if self.device == "cpu" else f" --device {self.device}"
        return f"discreet reproduce {self.name} --scale {self.scale}{more} --out {self.out.name}"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The verdicts and files of a run.

    Attributes:
        claims: by experiment.
        files: what was written, the page first.
        cells: how many were run, now or before.
    """

    claims: dict[str, tuple[Claim, ...]]
    files: tuple[Path, ...]
    cells: int

    def tables(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """Title and rows of the claims of each experiment, for a terminal."""
        return [
            (
                f"claims: {name}",
                [
                    (claim.name, claim.measured, claim.published, claim.verdict.value)
                    for claim in claims
                ],
            )
            for name, claims in self.claims.items()
            if claims
        ]

    def to_json(self) -> dict[str, Any]:
        """What ``discreet reproduce --json`` prints."""
        return {
            "report": str(self.files[0]),
            "files": [str(path) for path in self.files],
            "cells": self.cells,
            "claims": {
                name: [claim.to_json() for claim in claims] for name, claims in self.claims.items()
            },
        }


class Steps:
    """How far a run has come."""

    def __init__(self, total: int) -> None:
        """Start with none done of ``total`` cells."""
        self.total = total
        self.done = 0

    def heard_by(self, listener: Callable[[int], None] | None) -> Callable[[int], None]:
        """A callback that counts, and passes the count on."""

        def on_cell(done: int) -> None:
            self.done = done
            if listener is not None:
                listener(done)

        return on_cell

    def kept(self, out: Path) -> str:
        """What an interrupted run leaves behind."""
        return (
            f"{self.done} of {self.total} cells are kept in {out}; "
            "run the same command again to go on"
        )


def reproduce(request: Request, *, on_cell: Callable[[int], None] | None = None) -> Findings:
    """Run, judge, write. Cells that the folder has already are not run again.

    ``on_cell`` is called with the number of finished cells. A GPU is looked for only if there is
    something to run on it.
    """
    plan = request.plan()
    if request.device == "cuda" and not request.out.exists():
        Gpu()  # or an error, before there is a folder that only a GPU can fill
    with folder.opened(request.out, plan) as kept:
        if on_cell is not None:
            on_cell(len(kept.finished))
        if request.device == "cuda" and len(kept.finished) < len(plan.tasks):
            device = Gpu()
            kept.note_start(start_facts(request, 1))
            gpu.run(plan.tasks, kept, device, on_cell=on_cell)
        if len(kept.finished) < len(plan.tasks):
            with running.BACKENDS[request.backend](request.jobs, request.address) as workers:
                kept.note_start(start_facts(request, workers.count))
                running.run(plan.tasks, kept, workers, on_cell=on_cell)
        elif not kept.starts:
            kept.note_start(start_facts(request, request.jobs))
        cells = [kept.finished[task.key] for task in plan.tasks]
        try:
            claims, files = write_report(
                request.out,
                request.experiments,
                cells,
                run=plan.manifest(),
                command=request.command(),
                starts=kept.starts,
            )
        except OSError as error:
            raise kept.unwritable(error) from error
    return Findings(claims=claims, files=files, cells=len(cells))


def start_facts(request: Request, workers: int) -> dict[str, Any]:
    """Where and how a command is started, for the journal of its run."""
    origin = Provenance.gathered(
        command=request.command(), started=datetime.now(UTC), seconds=0.0, workers=workers
    )
    facts = {**origin.to_json(), "backend": request.backend, "address": request.address}
    if request.device != "cpu":
        facts["device"] = request.device
    del facts["seconds"]  # it has only begun; every cell has its own
    return facts
