"""`make bench`: measures, and prints tables or one JSON object."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.speed import suite, workload
from discreet.cli import _console as console
from discreet.cli._options import AsJson
from discreet.errors import DiscreetError, ParameterError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def bench(
    only: Annotated[
        list[str] | None, typer.Option(help="A section; give it again for another. All if not.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Memory over 50,000,000 rounds.")] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(help="A checkout of another commit, to measure its stored learner as well."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed, start-up and memory beside other ways to do the same. Minutes."""
    sizes = workload.QUICK if quick else workload.DEFAULT
    if full:
        sizes = replace(sizes, memory_rounds=(sizes.memory_rounds[0], workload.HORIZON))
    if baseline is not None:
        if not (baseline / "src" / "discreet").is_dir():
            raise ParameterError("baseline", f"is {baseline}, which has no src/discreet")
        sizes = replace(sizes, baseline=baseline)
    with console.progress(len(only or suite.SECTIONS)) as on_step:
        result = suite.run(sizes, only=only or (), on_step=on_step)
    if as_json:
        console.print_json(result.to_json())
        return
    for (title, columns, rows), remarks in result.tables():
        console.print_table(title, columns, list(rows))
        for remark in remarks:
            console.print_text(f"- {remark}")


if __name__ == "__main__":
    try:
        app(prog_name="make bench")
    except DiscreetError as error:
        console.note(str(error))
        sys.exit(2)
