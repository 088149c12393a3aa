"""`discreet reproduce`: the paper's experiments again, and what it says of them."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import AsJson, Jobs


def reproduce(
    experiment: Annotated[str, typer.Argument(help="dimension, variants, shifts, ..., or all.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; an unfinished one is continued.")],
    scale: Annotated[str, typer.Option(help="smoke, quick or full.")] = "quick",
    jobs: Jobs = None,
    backend: Annotated[str, typer.Option(help="loky, dask or ray.")] = "loky",
    address: Annotated[
        str | None, typer.Option(help="An existing Dask or Ray cluster; else a local one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments again and check what it says of them."""
    from discreet.experiments import _reproduce as again

    request = again.Request(
        name=experiment,
        scale=shared.one_of("scale", scale, again.SCALES),
        out=out,
        jobs=os.cpu_count() or 1 if jobs is None else jobs,
        backend=backend,
        address=address,
    )
    steps = again.Steps(len(request.plan().tasks))
    try:
        with console.progress(steps.total) as on_step:
            findings = again.reproduce(request, on_cell=steps.heard_by(on_step))
    except KeyboardInterrupt:
        console.note(f"interrupted; {steps.kept(out)}")
        sys.exit(130)
    if as_json:
        console.print_json(findings.to_json())
        return
    for title, rows in findings.tables():
        console.print_table(title, ["claim", "measured", "published", "verdict"], rows)
    console.print_text(f"The report is {findings.files[0]}; open it in a browser.")
