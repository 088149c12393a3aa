"""What a run ends in: a page, tables as CSV, figures, and where it all comes from."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.experiments._claims import Claim, Verdict
from discreet.experiments._experiment import Experiment, Finished, Results
from discreet.report._figures import Exhibit
from discreet.report._page import (
    Block,
    Facts,
    Page,
    PageSection,
    Prose,
    Statement,
    Statements,
    replace_file,
)

CLAIMS = ("experiment", "name", "verdict", "statement", "source", "measured", "published", "rule")
PAPER = (
    "“Differentially Private Contextual Linear Bandits” (Shariff and Sheffet, NeurIPS 2018, "
    "arXiv:1810.00068)"
)
WHAT_IT_IS = (
    f"The experiments of {PAPER}, run again by an independent implementation, and experiments of "
    "our own; what the paper says of its, and we of ours, is checked statement by statement, and "
    "each statement names its source. Pseudo-regret is what "
    "choices cost: in each round, the mean reward of the best action less that of the action "
    "chosen, summed up."
)
HOW_JUDGED = (
    "Figures in brackets are 95 % confidence intervals. A statement holds, or does not, only if "
    "the whole interval says so and enough was played; otherwise it is not decided. One in "
    "twenty such intervals misses the truth, and the statements were judged one by one."
)
MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.OPEN: "?"}


def write_report(
    out: Path,
    experiments: Sequence[Experiment[Any]],
    cells: Sequence[Finished],
    *,
    run: dict[str, Any],
    command: str,
    starts: Sequence[dict[str, Any]],
) -> tuple[dict[str, tuple[Claim, ...]], tuple[Path, ...]]:
    """Judge, draw and write everything that a run found.

    Args:
        out: the run's folder.
        experiments: what was run.
        cells: all finished cells, in the order of the plan.
        run: the manifest of the run.
        command: how to do it again.
        starts: what was noted at each start of the command, the first one first.

    Returns:
        The claims by experiment, and the files that were written, the page first.
    """
    results = {one.name: Results.of(cells, one.name) for one in experiments}
    claims = {one.name: tuple(one.claims(results[one.name])) for one in experiments}
    exhibits = {one.name: tuple(one.figures(results[one.name])) for one in experiments}
    provenance = {
        "run": run,
        "starts": starts,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds_in_cells": sum(cell.seconds for cell in cells),
        "cells": [
            {"experiment": cell.experiment, **cell.settings, "seconds": cell.seconds}
            for cell in cells
        ],
    }
    origin = (("run it again", command), ("scale", run["scale"]), *_origin(cells, starts))
    files = [
        _page(experiments, results, claims, exhibits, origin).write(out / "report.html"),
        replace_file(out / "results.csv", tidy(cells).encode()),
        replace_file(out / "claims.csv", _claims_table(claims).encode()),
        replace_file(out / "provenance.json", json.dumps(provenance, indent=1).encode() + b"\n"),
    ]
    for drawn in exhibits.values():
        for exhibit in drawn:
            files += exhibit.write(out / "figures")
    return claims, tuple(files)


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


def _claims_table(claims: Mapping[str, Sequence[Claim]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, CLAIMS, lineterminator="\n")
    writer.writeheader()
    for experiment, own in claims.items():
        writer.writerows({"experiment": experiment, **claim.to_json()} for claim in own)
    return text.getvalue()


def _page(
    experiments: Sequence[Experiment[Any]],
    results: Mapping[str, Results],
    claims: Mapping[str, Sequence[Claim]],
    exhibits: Mapping[str, Sequence[Exhibit]],
    origin: tuple[tuple[str, str], ...],
) -> Page:
    """All experiments of a run on one page."""
    every = [claim for one in experiments for claim in claims[one.name]]
    title = (
        experiments[0].title
        if len(experiments) == 1
        else "The paper's experiments run again, and our own"
    )
    sections = [
        PageSection(heading=one.title, blocks=_blocks(one, results[one.name], exhibits[one.name]))
        for one in experiments
    ]
    if every:
        judged = PageSection(
            heading="What is claimed, and what we measured",
            blocks=(Prose(_summary(every)), *_judged(experiments, claims), Prose(HOW_JUDGED)),
        )
        sections.insert(0, judged)
    return Page(
        title=title,
        lead=(Prose(WHAT_IT_IS),),
        sections=tuple(sections),
        provenance=Facts(origin),
    )


def _summary(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    parts = [f"{counts[verdict]} {_verb(verdict, counts[verdict])}" for verdict in Verdict]
    return f"Of {len(claims)} statements, " + ", ".join(parts[:-1]) + f" and {parts[-1]}."


def _verb(verdict: Verdict, count: int) -> str:
    many = {
        Verdict.HOLDS: "hold",
        Verdict.FAILS: "do not hold",
        Verdict.OPEN: "are not decided at this scale",
    }
    one = {
        Verdict.HOLDS: "holds",
        Verdict.FAILS: "does not hold",
        Verdict.OPEN: "is not decided at this scale",
    }
    return (one if count == 1 else many)[verdict]


def _judged(
    experiments: Sequence[Experiment[Any]], claims: Mapping[str, Sequence[Claim]]
) -> list[Statements]:
    return [
        Statements(
            title=one.title,
            items=tuple(_statement(claim) for claim in claims[one.name]),
        )
        for one in experiments
        if claims[one.name]
    ]


def _statement(claim: Claim) -> Statement:
    return Statement(
        text=claim.statement,
        mark=MARKS[claim.verdict],
        verdict=claim.verdict.value,
        kind=claim.verdict.name.lower(),
        details=(
            ("measured", claim.measured),
            ("published", claim.published),
            ("rule", claim.rule),
            ("source", claim.source),
        ),
    )


def _blocks(
    experiment: Experiment[Any], results: Results, exhibits: Sequence[Exhibit]
) -> tuple[Block, ...]:
    return (
        Prose(experiment.question),
        *(exhibit.block() for exhibit in exhibits),
        *experiment.tables(results),
        *(Prose(text) for text in experiment.reading),
    )


def _origin(
    cells: Sequence[Finished], starts: Sequence[dict[str, Any]]
) -> tuple[tuple[str, str], ...]:
    """For the foot of the page."""
    last = starts[-1]
    seeds = sorted({int(cell.settings["seed"] or 0) for cell in cells})
    span = f"{seeds[0]} to {seeds[-1]}" if seeds else "none"
    hours = sum(cell.seconds for cell in cells) / 3600
    begun = f"{starts[0]['started']}" + (f", {len(starts)} starts" if len(starts) > 1 else "")
    where = last["backend"] + (f" at {last['address']}" if last["address"] else "")
    return (
        ("cells", f"{len(cells)}, together {hours:.2f} hours of one core"),
        ("seeds", f"{span}, where an experiment has so many"),
        ("started", begun),
        ("workers", f"{last['workers']} ({where})"),
        ("machine", f"{last['cores']} cores, {last['platform']}"),
        ("versions", ", ".join(f"{name} {text}" for name, text in last["versions"].items())),
        ("data", "results.csv, claims.csv, provenance.json and figures/, beside this page"),
    )
