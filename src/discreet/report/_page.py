"""One self-contained HTML page: its blocks, its sections, where it comes from, and its file.

All text is escaped here and nowhere else; the only thing that goes in as it is, is a drawing made
by `_figures`. The page asks nothing of a network, and its policy forbids it to. Nothing here knows
what the page says.
"""

import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from discreet.version import __version__

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
    """Names, each with a text.

    Attributes:
        items: the names and the texts.
        compact: whether a name and its text share a line where there is room.
    """

    items: tuple[tuple[str, str], ...]
    compact: bool = False

    def html(self) -> str:
        """As a definition list."""
        pairs = "\n".join(
            f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in self.items
        )
        kind = ' class="compact"' if self.compact else ""
        return f"<dl{kind}>\n{pairs}\n</dl>"


@dataclass(frozen=True)
class Points:
    """A list of short texts."""

    items: tuple[str, ...]

    def html(self) -> str:
        """As a list."""
        items = "\n".join(f"<li>{escape(item)}</li>" for item in self.items)
        return f'<ul class="points">\n{items}\n</ul>'


@dataclass(frozen=True)
class Commands:
    """Lines for a terminal."""

    lines: tuple[str, ...]

    def html(self) -> str:
        """As they are to be typed; a long line is broken in sight only."""
        return f"<pre><code>{escape(chr(10).join(self.lines))}</code></pre>"


@dataclass(frozen=True, kw_only=True)
class Folded:
    """A block that is shown when its summary is clicked."""

    summary: str
    block: Block

    def html(self) -> str:
        """As an element that opens without a script."""
        return (
            f"<details><summary>{escape(self.summary)}</summary>\n{self.block.html()}\n</details>"
        )


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement.

    Attributes:
        text: what is stated.
        mark: one character for the verdict, which does not rely on colour.
        verdict: in words.
        kind: a class of the style sheet: holds, fails or open.
        details: names and texts below it.
    """

    text: str
    mark: str
    verdict: str
    kind: str
    details: tuple[tuple[str, str], ...]

    def html(self) -> str:
        """As an item of a list."""
        pairs = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in self.details if text
        )
        return (
            f'<li class="{self.kind}"><p class="verdict"><span aria-hidden="true">'
            f"{escape(self.mark)}</span> {escape(self.verdict)}</p>\n"
            f'<p class="statement">{escape(self.text)}</p>\n<dl>{pairs}</dl></li>'
        )


@dataclass(frozen=True, kw_only=True)
class Statements:
    """Statements under a heading of their own."""

    title: str
    items: tuple[Statement, ...]

    def html(self) -> str:
        """As a list."""
        items = "\n".join(item.html() for item in self.items)
        return f'<h3>{escape(self.title)}</h3>\n<ul class="statements">\n{items}\n</ul>'


@dataclass(frozen=True, kw_only=True)
class PageSection:
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
    sections: tuple[PageSection, ...]
    provenance: Facts

    def html(self) -> str:
        """The whole document."""
        style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
        origin = PageSection(heading="Where this comes from", blocks=(self.provenance,))
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
        return replace_file(path, self.html().encode())


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What a reader needs to run the same thing again.

    Attributes:
        command: how to run it again.
        started: when it began, with its time zone.
        seconds: wall-clock time from start to end.
        workers: processes that shared the work.
        cores: processors of the machine.
        platform: system and architecture.
        versions: of discreet, Python and the libraries that the numbers depend on.
    """

    command: str
    started: datetime
    seconds: float
    workers: int
    cores: int
    platform: str
    versions: dict[str, str]

    @classmethod
    def gathered(
        cls, *, command: str, started: datetime, seconds: float, workers: int
    ) -> "Provenance":
        """For work done by this process on this machine."""
        libraries = {name: version(name) for name in ("numpy", "numba", "scipy")}
        return cls(
            command=command,
            started=started,
            seconds=seconds,
            workers=workers,
            cores=os.cpu_count() or 1,
            platform=f"{platform.system()} {platform.machine()}",
            versions={
                "discreet": __version__,
                "python": platform.python_version(),
                **libraries,
            },
        )

    def to_json(self) -> dict[str, Any]:
        """All fields, the time as text."""
        return {**asdict(self), "started": self.started.isoformat(timespec="seconds")}

    def facts(self, *more: tuple[str, str]) -> Facts:
        """For the foot of a page, after what the page has to say itself."""
        workers = f"{self.workers} worker process{'' if self.workers == 1 else 'es'}"
        return Facts(
            (
                ("run it again", self.command),
                *more,
                ("started", f"{self.started:%Y-%m-%d %H:%M} {self.started.tzname()}"),
                ("took", f"{self.seconds:.0f} seconds on {workers}"),
                ("machine", f"{self.cores} cores, {self.platform}"),
                ("versions", ", ".join(f"{name} {text}" for name, text in self.versions.items())),
            )
        )


def replace_file(path: Path, data: bytes) -> Path:
    """Write a file, and its folder if need be, in one step.

    Readers see the old file or the whole new one; after a failure the old one is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        if error.filename is not None:  # the partial file, which nobody knows
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def _row(cells: Sequence[str]) -> str:
    name, *rest = (escape(cell) for cell in cells)
    return (
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
    )


def _join(blocks: Sequence[Block]) -> str:
    return "\n".join(block.html() for block in blocks)
