"""`python -m benchmarks.service`: measures, and prints tables or one JSON object."""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from benchmarks.service import suite, workload
from discreet.cli import _console as console
from discreet.cli._options import AsJson
from discreet.errors import DiscreetError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(help="A section; give it again for another. All but soak if not."),
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything.")] = False,
    minutes: Annotated[float | None, typer.Option(help="How long soak lasts; 30 if not.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the service under load, beside other servers, on this machine. Minutes."""
    sizes = workload.QUICK if quick else workload.DEFAULT
    if minutes is not None:
        sizes = replace(sizes, soak=60.0 * minutes)
    with console.progress(len(only or suite.SHORT)) as on_step:
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
        app(prog_name="python -m benchmarks.service")
    except DiscreetError as error:
        console.note(str(error))
        sys.exit(2)
