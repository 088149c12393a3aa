"""Options that several commands take: their names, their help, and how their text is read."""

from pathlib import Path
from typing import Annotated, Any

import typer

OPEN = "none"  # a horizon that is not known
MOST = 10**18  # what 64 bits hold, with room for arithmetic
MOST_JOBS = 1024


def count(text: str, most: int = MOST) -> int:
    """A whole number, also as 5e7 or 1_000_000.

    Args:
        text: What was given.
        most: The largest number that makes sense.

    Returns:
        The number, which may still be too small.

    Raises:
        typer.BadParameter: It is no whole number, or too large.
    """
    try:
        number = int(text)
    except ValueError:
        number = _whole(text)
    if number > most:
        largest = f"{most:g}".replace("e+", "e").replace("e0", "e")
        raise typer.BadParameter(f"{text!r} is too large; give at most {largest}")
    return number


def _whole(text: str) -> int:
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


def path(given: str | Path) -> Path:
    """A file or folder that may or may not exist; a default comes as a path already."""
    text = str(given)
    if not text or "\0" in text:
        raise typer.BadParameter(f"{text!r} is no path")
    return Path(text)


def counting(*names: str, about: str, most: int = MOST, show_default: bool = True) -> Any:  # noqa: ANN401  # typer's own
    """An option that takes a whole number.

    Args:
        names: How it is given.
        about: Its help.
        most: The largest number that makes sense.
        show_default: Whether the help ends with the default.

    Returns:
        The option, as typer declares it.
    """

    def parse(text: str) -> int:
        return count(text, most)

    return typer.Option(*names, help=about, parser=parse, metavar="N", show_default=show_default)


DEFAULT = "windows"  # the variant of `LinUCB`
Variant = Annotated[str, typer.Option(help="The variant's name; `discreet variants` lists them.")]
Horizon = Annotated[
    Any,  # int | str, which typer cannot declare
    typer.Option(
        "--horizon",
        help="The most rounds that will ever be played; none if that is not known (windows and "
        "tight only).",
        parser=horizon,
        metavar="N|none",
    ),
]
Dim = Annotated[int, counting("--dim", about="Number of features of an action.")]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Privacy loss: a smaller one protects more. Private variants need it."),
]
Delta = Annotated[
    float | None,
    typer.Option(help="Probability that epsilon may be exceeded. Private variants need it."),
]
Contributions = Annotated[
    int, counting("--contributions", about="The most rounds that one person takes part in.")
]
Neighbours = Annotated[
    str,
    typer.Option(
        help="What is hidden: replacement of a person's rows by others, or add-remove, whether "
        "the person took part."
    ),
]
Protects = Annotated[
    str,
    typer.Option(
        help="What is protected: rows (decision sets and rewards), or rewards alone, where "
        "decision sets and actions are public (windows and tight only)."
    ),
]
FailureProb = Annotated[
    float | None,
    typer.Option(
        help="Probability that some confidence bound fails. "
        r"\[default: 1/horizon, or 1e-8 if that is not known]"
    ),
]
Calibration = Annotated[
    str | None,
    typer.Option(
        help="How much noise there is: paper, as in the paper, or gdp (exact is another name for "
        "it), the least that exact Gaussian accounting allows (Gaussian noise only). "
        r"\[default: the variant's]"
    ),
]
Tree = Annotated[
    str | None,
    typer.Option(
        help="How releases share noise: a pan-private or a covering tree (Gaussian noise only). "
        r"\[default: the variant's]"
    ),
]
Shift = Annotated[
    float | None,
    typer.Option(
        help="What is added to the diagonal of the noisy Gram matrix. "
        r"\[default: the variant's]"
    ),
]
RhoMin = Annotated[
    float | None,
    typer.Option(
        help="Lower bound on the eigenvalues of shift and noise together; instead of --shift."
    ),
]
Jobs = Annotated[
    int | None,
    counting("--jobs", about=r"Worker processes. \[default: one per core]", most=MOST_JOBS),
]
Device = Annotated[
    str,
    typer.Option(help="What plays: cpu, or cuda for a GPU, which needs the extra `cuda`."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
