"""`discreet demo`: every variant in a short form of the paper's experiment."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import AsJson, Jobs, path


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.", parser=path)] = Path("demo"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="20,000 rounds and 2 seeds: to see that it works, in seconds."
        ),
    ] = False,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Play every variant in the paper's setting and write a report. A minute or two."""
    from discreet.experiments import _demo as show

    workers = shared.workers(jobs)
    out.mkdir(parents=True, exist_ok=True)  # rather fail now than after a minute's work
    with console.progress(show.steps(quick=quick)) as on_step:
        result = show.run(jobs=workers, on_step=on_step, sizes=show.sizes(quick=quick))
    page = show.write_page(result, out)
    if as_json:
        console.print_json({"report": str(page), **result.to_json()})
        return
    for title, columns, rows in result.tables():
        console.print_table(title, columns, rows)
    console.print_text(f"The regret curves are in {page}; open it in a browser.")
