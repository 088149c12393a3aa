"""`discreet ledger`: what a learner released, checked. It takes no lock and changes nothing."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from discreet.cli import _console as console
from discreet.cli._options import AsJson
from discreet.errors import CorruptFileError, ParameterError, StateFileError

if TYPE_CHECKING:
    from discreet.release.ledger import Ledger

_SHOWN = 3  # releases at either end


def ledger(
    file: Annotated[
        str,
        typer.Argument(
            help="Where a learner is stored: a path, or postgresql://...#name. Or a .ledger file."
        ),
    ],
    against: Annotated[
        str | None, typer.Option(help="Another ledger of the same learner, to compare with.")
    ] = None,
    *,
    card: Annotated[
        bool, typer.Option("--card", help="Print only the privacy card, as JSON.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a learner's ledger; show what was released and what is promised about it."""
    found = read("file", file)
    other = None if against is None else _compared(found, against)
    if card:
        console.print_json(_card(found))
    elif as_json:
        console.print_json(_everything(found, other))
    else:
        _show(found, other)


def _show(found: "Ledger", other: dict[str, Any] | None) -> None:
    facts = [("learner", found.learner), ("variant", str(found.card.get("variant")))]
    facts += [("releases", str(len(found))), ("rows", str(found.rows)), ("head", found.head)]
    console.print_text(str(found.card.get("text", "The card promises nothing.")))
    console.print_table("ledger", ["quantity", "value"], list[tuple[Any, ...]](facts))
    last = found.entries[max(_SHOWN, len(found) - _SHOWN) :]
    rows = [(entry.number, entry.rows, f"{entry.sha256[:40]}…") for entry in found.entries[:_SHOWN]]
    left_out = len(found) - len(rows) - len(last)
    rows_shown: list[tuple[Any, ...]] = [*rows]
    rows_shown += [("...", "...", f"{left_out} more")] if left_out else []
    rows_shown += [(entry.number, entry.rows, f"{entry.sha256[:40]}…") for entry in last]
    if rows_shown:
        console.print_table("releases", ["number", "rows", "sha256"], rows_shown)
    console.print_text("The chain is intact.")
    if found.torn:
        console.print_text(
            f"The last line is not finished ({found.torn} bytes) and is left out: it is being "
            "written, or a crash came in between. That release was not shown."
        )
    if other is not None:
        console.print_text(
            f"Both ledgers agree on the {other['shared']} releases that they share; this one has "
            f"{len(found)} and the other {other['releases']}."
        )


def _everything(found: "Ledger", other: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "learner": found.learner,
        "releases": len(found),
        "rows": found.rows,
        "head": found.head,
        "intact": True,
        "torn_bytes": found.torn,
        "against": other,
        "card": _card(found),
        "entries": [
            {"number": entry.number, "rows": entry.rows, "sha256": entry.sha256}
            for entry in found.entries
        ],
    }


def _card(found: "Ledger") -> dict[str, Any]:
    """The card of the first line, with what is known by now."""
    known = {"learner": found.learner, "releases": len(found), "rows": found.rows}
    return {**found.card, **known}


def _compared(found: "Ledger", against: str) -> dict[str, Any]:
    other = read("against", against)
    try:
        shared = found.agrees(other)
    except StateFileError as error:
        _refuse(against, error)
    return {"releases": len(other), "shared": shared, "agrees": True}


def read(option: str, place: str) -> "Ledger":
    """The ledger at a place, checked; one line on standard error and exit code 1 if it is broken.

    Args:
        option: what names the place.
        place: a learner's, or that of its ledger.

    Returns:
        The ledger.
    """
    from discreet.learner import read_ledger

    if not place or "\0" in place or not Path(place).resolve().name:
        raise ParameterError(option, f"is {place!r}; give the path of a learner or of its ledger")
    try:
        return read_ledger(place)
    except CorruptFileError as error:
        _refuse(place, error)


def _refuse(place: str, error: StateFileError) -> NoReturn:
    console.note(f"{place}: {error}")
    sys.exit(1)
