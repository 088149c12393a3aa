"""One self-contained HTML page from sections. It knows HTML and nothing of what it says.

All text is escaped here and nowhere else; the only thing that goes in as it is, is a drawing made
by `figures`. The page asks nothing of a network, and its policy forbids it to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from discreet.report._files import replace

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Block(Protocol):
    """A piece of a section."""

    def html(self) -> str:
        """As HTML, with its text escaped."""


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str

    def html(self) -> str:
        """As a paragraph, in which no line ends between a number and its uncertainty."""
        return f"<p>{escape(self.text).replace(' ± ', '&nbsp;±&nbsp;')}</p>"


@dataclass(frozen=True, kw_only=True)
class Drawings:
    """Drawings side by side, or one below the other on a narrow page, with one caption."""

    drawings: tuple[str, ...]
    caption: str

    def html(self) -> str:
        """As a figure."""
        panels = "\n".join(f'<div class="panel">{drawing}</div>' for drawing in self.drawings)
        return (
            f'<figure>\n<div class="panels">\n{panels}\n</div>\n'
            f"<figcaption>{escape(self.caption)}</figcaption>\n</figure>"
        )


@dataclass(frozen=True, kw_only=True)
class Table:
    """Text cells in rows; the first cell names its row.

    Attributes:
        title: what the table shows, with units and uncertainty.
        columns: headings, shape (C,).
        rows: cells, shape (R, C).
        numeric: whether all cells but the first are numbers, set flush right.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: bool = True

    def html(self) -> str:
        """As a table that scrolls sideways under its title on a narrow page."""
        heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        body = "\n".join(_row(row) for row in self.rows)
        kind = ' class="numeric"' if self.numeric else ""
        return (
            f"<figure>\n<figcaption>{escape(self.title)}</figcaption>\n"
            f'<div class="scroll"><table{kind}>\n<thead><tr>{heads}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody>\n</table></div>\n</figure>"
        )


@dataclass(frozen=True)
class Facts:
    """Names and what is to be said of each."""

    items: tuple[tuple[str, str], ...]

    def html(self) -> str:
        """As a definition list."""
        pairs = "\n".join(
            f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in self.items
        )
        return f"<dl>\n{pairs}\n</dl>"


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    blocks: tuple[Block, ...]

    def html(self) -> str:
        """As a section."""
        return f"<section>\n<h2>{escape(self.heading)}</h2>\n{_join(self.blocks)}\n</section>"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: its title, an opening, sections, and where it all comes from."""

    title: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]
    provenance: Facts

    def html(self) -> str:
        """The whole document."""
        style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
        origin = Section(heading="Where this comes from", blocks=(self.provenance,))
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
            f"<main>\n<header>\n<h1>{escape(self.title)}</h1>\n{_join(self.lead)}\n</header>\n"
            f"{_join(self.sections)}\n<footer>\n{origin.html()}\n</footer>\n</main>\n"
            "</body>\n</html>\n"
        )

    def write(self, path: Path) -> Path:
        """Write the page in one step: readers see the old file or the whole new one."""
        return replace(path, self.html().encode())


def _row(cells: Sequence[str]) -> str:
    name, *rest = (escape(cell) for cell in cells)
    return (
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
    )


def _join(blocks: Sequence[Block]) -> str:
    return "\n".join(block.html() for block in blocks)
