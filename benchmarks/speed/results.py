"""What a measurement looks like: sections of rows, for a terminal and for programs."""

from dataclasses import dataclass, field
from typing import Any

from discreet.report._numbers import grouped

Cell = str | float | int | None
Table = tuple[str, list[str], list[tuple[str, ...]]]


@dataclass(frozen=True, kw_only=True)
class Section:
    """One thing that was measured.

    Attributes:
        name: what the command line calls it.
        title: a line above the table.
        rows: one mapping from column to value for each thing measured; the same columns in all.
        notes: what can be compared with what.
        figures: the numbers that bars are held against, by name.
    """

    name: str
    title: str
    rows: tuple[dict[str, Cell], ...]
    notes: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    def table(self) -> Table:
        """Title, columns and cells, for a terminal; notes on rows are left to `remarks`."""
        columns = [column for column in self.rows[0] if column != "note"]
        cells = [tuple(written(row[column]) for column in columns) for row in self.rows]
        return f"{self.name}: {self.title}", [name.replace("_", " ") for name in columns], cells

    def remarks(self) -> list[str]:
        """The notes on single rows, then those on the section."""
        about = [f"{next(iter(row.values()))}: {row['note']}" for row in self.rows if "note" in row]
        return [*about, *self.notes]

    def to_json(self) -> dict[str, Any]:
        """Everything, unrounded."""
        return {
            "title": self.title,
            "rows": list(self.rows),
            "notes": list(self.notes),
            "figures": self.figures,
        }


def written(value: Cell) -> str:
    """A cell as a reader sees it: three significant digits, nothing for None."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else grouped(value)
