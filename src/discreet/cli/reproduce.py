"""`discreet reproduce`: the paper's experiments again, and what it says of them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import AsJson, Device, Jobs, counting, path


def reproduce(
    experiment: Annotated[str, typer.Argument(help="dimension, variants, shifts, ..., or all.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for results and report; an unfinished run in it is continued.",
            parser=path,
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            help="Size of the experiment: smoke (does it run?), quick, or full (as in the paper)."
        ),
    ] = "quick",
    seeds: Annotated[
        int,
        counting(
            "--seeds",
            about=r"At least so many seeds in every cell. \[default: the scale's]",
            show_default=False,
        ),
    ] = 0,
    jobs: Jobs = None,
    device: Device = "cpu",
    backend: Annotated[
        str, typer.Option(help="What runs the workers: loky, dask or ray.")
    ] = "loky",
    address: Annotated[
        str | None,
        typer.Option(help=r"Address of a Dask or Ray cluster. \[default: start a local one]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments again and check its claims about them."""
    from discreet.experiments import _reproduce as again

    request = again.Request(
        name=experiment,
        scale=shared.one_of("scale", scale, again.SCALES),
        out=out,
        jobs=shared.workers(jobs),
        backend=backend,
        address=address,
        device=device,
        seeds=seeds,
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
