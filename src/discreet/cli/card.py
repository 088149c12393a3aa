"""`discreet card`: a learner's privacy card for people. It takes no lock and changes nothing."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import _console as console
from discreet.cli._options import AsJson, path
from discreet.cli.ledger import read


def card(
    file: Annotated[
        str,
        typer.Argument(
            help="Where a learner is stored: a path, or postgresql://...#name. Or a .ledger file."
        ),
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write a page to this file.", parser=path)
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Say who is protected, against whom and how much; with --html as a page to hand on."""
    from discreet.report._card_page import Card

    found = Card.of(read("file", file), name=_name(file))
    written = None if html is None else found.page().write(html)
    if as_json:
        console.print_json({**found.to_json(), "page": None if written is None else str(written)})
        return
    for sentence in found.sentences():
        console.print_text(sentence)
    console.print_table("privacy card", ["quantity", "value"], [*found.facts()])
    console.print_table("not protected", ["what"], [(line,) for line in found.limits()])
    if written is not None:
        console.print_text(f"The page is in {written}; open it in a browser.")


def _name(file: str) -> str:
    """What to call it on a page: no folder, and of a database's address neither user nor host."""
    if "://" in file:
        address, mark, name = file.partition("#")
        return shlex.quote(f"{address.partition('://')[0]}://...{mark}{name}")
    return shlex.quote(Path(file).name)
