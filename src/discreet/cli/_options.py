"""Options that several commands take: their names, their help, and how their text is read."""

from typing import Annotated, Any

import typer

OPEN = "none"  # a horizon that is not known


def count(text: str) -> int:
    """A whole number, also as 5e7 or 1_000_000."""
    try:
        number = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None
    if not number.is_integer():
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return int(number)


def horizon(text: str) -> int | str:
    """A whole number, or `OPEN`: a parser that gave None would pass for an option left out."""
    return OPEN if text.lower() == OPEN else count(text)


def counting(*names: str, about: str) -> Any:  # noqa: ANN401  # typer's own type is private
    """An option that takes a whole number."""
    return typer.Option(*names, help=about, parser=count, metavar="N")


Variant = Annotated[
    str, typer.Option(help="A row of the table of variants; `discreet variants` lists them.")
]
Horizon = Annotated[
    Any,  # int | str, which typer cannot declare
    typer.Option(
        "--horizon",
        help="The most rounds that will be played; none if not known (tight only).",
        parser=horizon,
        metavar="N|none",
    ),
]
Dim = Annotated[int, counting("--dim", about="Number of features.")]
Epsilon = Annotated[
    float | None, typer.Option(help="Privacy loss bound; private variants need it.")
]
Delta = Annotated[float | None, typer.Option(help="Its exception; private variants need it.")]
Contributions = Annotated[
    int, counting("--contributions", about="Rounds in which one person may take part.")
]
Neighbours = Annotated[
    str, typer.Option(help="replacement or add-remove: what may differ about one person.")
]
FailureProb = Annotated[
    float | None,
    typer.Option(help="Failure probability of all bounds together; 1/horizon, or 1e-8 without."),
]
Calibration = Annotated[
    str | None,
    typer.Option(help="paper or gdp, also called exact (Gaussian noise): how much noise."),
]
Tree = Annotated[
    str | None, typer.Option(help="pan-private or covering (Gaussian noise only): use a tree.")
]
Shift = Annotated[float | None, typer.Option(help="A shift of your own instead of the variant's.")]
RhoMin = Annotated[
    float | None, typer.Option(help="The same, given as the lower bound of the regularizer.")
]
Jobs = Annotated[int | None, counting("--jobs", about="Worker processes; one per core.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
