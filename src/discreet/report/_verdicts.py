"""Statements and their verdicts as a block of a page: readable in print and on a phone."""

from dataclasses import dataclass
from html import escape


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
