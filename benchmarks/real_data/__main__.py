"""`make real-data`: measures, and prints tables or one JSON object."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.real_data import figure, sizes, suite
from discreet.cli import _console as console
from discreet.cli._options import AsJson
from discreet.errors import DiscreetError, ParameterError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def real_data(
    only: Annotated[
        list[str] | None, typer.Option(help="A section; give it again for another. All if not.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything.")] = False,
    noise: Annotated[str, typer.Option(help="'float', or 'exact', which takes longer.")] = "float",
    folder: Annotated[
        Path | None, typer.Option(help="Write results.json and a figure into this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Judge the learner on real data, and count how often its intervals hold. An hour."""
    if noise not in sizes.NOISES:
        raise ParameterError("noise", f"is {noise!r}; give one of {', '.join(sizes.NOISES)}")
    wanted = replace(sizes.QUICK if quick else sizes.DEFAULT, noise=noise)
    result = suite.run(wanted, only=only or ())
    if folder is not None:
        figure.write(result.to_json()["sections"], folder)
    if as_json:
        console.print_json(result.to_json())
        return
    for (title, columns, rows), remarks in result.tables():
        console.print_table(title, columns, list(rows))
        for remark in remarks:
            console.print_text(f"- {remark}")


if __name__ == "__main__":
    try:
        app(prog_name="make real-data")
    except DiscreetError as error:
        console.note(str(error))
        sys.exit(2)
