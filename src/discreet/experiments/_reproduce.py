"""One command's worth of work: run what is missing, judge it, and write it all down.

The command line calls ``reproduce``; everything else in here is how its files come about.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.experiments import _runner as runner
from discreet.experiments import _store as store
from discreet.experiments import _table as table
from discreet.experiments._backends import BACKENDS
from discreet.experiments._cell import Finished
from discreet.experiments._claims import Claim
from discreet.experiments._experiment import Experiment, Scale
from discreet.experiments._results import Results
from discreet.experiments._story import page
from discreet.report._files import replace
from discreet.report._provenance import Provenance

SCALES = {scale.value: scale for scale in Scale}
CLAIMS = ("experiment", "name", "verdict", "statement", "source", "measured", "published", "rule")


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
    """

    name: str
    scale: Scale
    out: Path
    jobs: int
    backend: str = "loky"
    address: str | None = None

    def __post_init__(self) -> None:
        """Refuse what does not exist."""
        checks.count("jobs", self.jobs)
        if self.backend not in BACKENDS:
            raise ParameterError(
                "backend", f"is {self.backend!r}; give one of {', '.join(BACKENDS)}"
            )

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """The rows of the table that are asked for."""
        return table.named(self.name)

    def plan(self) -> store.Plan:
        """All tasks."""
        tasks = [task for one in self.experiments for task in one.tasks(self.scale)]
        return store.Plan(name=self.name, scale=self.scale, tasks=tuple(tasks))

    def command(self) -> str:
        """How to do it again."""
        return f"discreet reproduce {self.name} --scale {self.scale} --out {self.out.name}"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What came of it.

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
        """For programs."""
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
        """Of so many cells."""
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

    ``on_cell`` hears the number of finished cells.
    """
    plan = request.plan()
    with store.opened(request.out, plan) as kept:
        if on_cell is not None:
            on_cell(len(kept.finished))
        if len(kept.finished) < len(plan.tasks):
            with BACKENDS[request.backend](request.jobs, request.address) as workers:
                kept.note_start(_start(request, workers.count))
                runner.run(plan.tasks, kept, workers, on_cell=on_cell)
        elif not kept.starts:
            kept.note_start(_start(request, request.jobs))
        cells = [kept.finished[task.key] for task in plan.tasks]
        try:
            return _write(request, cells, kept.starts)
        except OSError as error:
            raise kept.unwritable(error) from error


def _start(request: Request, workers: int) -> dict[str, Any]:
    origin = Provenance.gathered(
        command=request.command(), started=datetime.now(UTC), seconds=0.0, workers=workers
    )
    facts = {**origin.to_json(), "backend": request.backend, "address": request.address}
    del facts["seconds"]  # it has only begun; every cell has its own
    return facts


def _write(request: Request, cells: list[Finished], starts: list[dict[str, Any]]) -> Findings:
    out = request.out
    results = {one.name: Results.of(cells, one.name) for one in request.experiments}
    claims = {one.name: tuple(one.claims(results[one.name])) for one in request.experiments}
    exhibits = {one.name: tuple(one.figures(results[one.name])) for one in request.experiments}
    provenance = {
        "run": json.loads((out / store.MANIFEST).read_text(encoding="utf-8")),
        "starts": starts,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds_in_cells": sum(cell.seconds for cell in cells),
        "cells": [
            {"experiment": cell.experiment, **cell.settings, "seconds": cell.seconds}
            for cell in cells
        ],
    }
    report = page(request.experiments, results, claims, exhibits, _origin(request, cells, starts))
    files = [
        report.write(out / "report.html"),
        replace(out / "results.csv", tidy(cells).encode()),
        replace(out / "claims.csv", _claims_table(claims).encode()),
        replace(out / "provenance.json", json.dumps(provenance, indent=1).encode() + b"\n"),
    ]
    for drawn in exhibits.values():
        for exhibit in drawn:
            files += exhibit.write(out / "figures")
    return Findings(claims=claims, files=tuple(files), cells=len(cells))


def tidy(cells: Iterable[Finished]) -> str:
    """One row per cell and reading: experiment, settings, quantity, round, value.

    Rows are in a fixed order and floats in full, so equal results are equal text.
    """
    ordered = sorted(cells, key=lambda cell: cell.key)
    names = list(dict.fromkeys(name for cell in ordered for name in cell.settings))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["experiment", *names, "quantity", "round", "value"])
    for cell in ordered:
        settings = [cell.settings.get(name) for name in names]
        for quantity, at, value in cell.readings:
            writer.writerow([cell.experiment, *settings, quantity, at, repr(value)])
    return text.getvalue()


def _claims_table(claims: dict[str, tuple[Claim, ...]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, CLAIMS, lineterminator="\n")
    writer.writeheader()
    for experiment, own in claims.items():
        writer.writerows({"experiment": experiment, **claim.to_json()} for claim in own)
    return text.getvalue()


def _origin(
    request: Request, cells: list[Finished], starts: list[dict[str, Any]]
) -> tuple[tuple[str, str], ...]:
    """For the foot of the page."""
    last = starts[-1]
    seeds = sorted({int(cell.settings["seed"] or 0) for cell in cells})
    span = f"{seeds[0]} to {seeds[-1]}" if seeds else "none"
    hours = sum(cell.seconds for cell in cells) / 3600
    begun = f"{starts[0]['started']}" + (f", {len(starts)} starts" if len(starts) > 1 else "")
    where = last["backend"] + (f" at {last['address']}" if last["address"] else "")
    return (
        ("run it again", request.command()),
        ("scale", str(request.scale)),
        ("cells", f"{len(cells)}, together {hours:.2f} hours of one core"),
        ("seeds", f"{span}, where an experiment has so many"),
        ("started", begun),
        ("workers", f"{last['workers']} ({where})"),
        ("machine", f"{last['cores']} cores, {last['platform']}"),
        ("versions", ", ".join(f"{name} {text}" for name, text in last["versions"].items())),
        ("data", "results.csv, claims.csv, provenance.json and figures/, beside this page"),
    )
