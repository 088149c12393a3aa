"""Small tables of text: for a terminal, and as escaped HTML for a notebook."""

from collections.abc import Sequence
from html import escape

Rows = Sequence[Sequence[str]]


def as_text(head: Sequence[str], rows: Rows) -> str:
    """Columns set flush left, with a rule below their names.

    Args:
        head: the names of the columns.
        rows: as many cells each.

    Returns:
        Lines without an end.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def as_html(head: Sequence[str], rows: Rows, *, title: str = "", notes: Sequence[str] = ()) -> str:
    """A table without style or script, with every text escaped.

    Args:
        head: the names of the columns; none for a table of names and values.
        rows: as many cells each.
        title: a line above it.
        notes: paragraphs below it.

    Returns:
        HTML.
    """
    above = f"<p><strong>{escape(title)}</strong></p>" if title else ""
    names = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = [f"<thead><tr>{names}</tr></thead>"] if head else []
    lines += [
        "<tr>"
        + (f'<th scope="row">{escape(row[0])}</th>' if not head else f"<td>{escape(row[0])}</td>")
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    ]
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    table = f"<table>{''.join(lines)}</table>" if lines else ""
    return f"{above}{table}{below}"
