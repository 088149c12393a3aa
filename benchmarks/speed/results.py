"""What a measurement looks like: sections of rows, and the bars that their figures are held to."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from discreet.report._numbers import grouped

Cell = str | float | int | None
Table = tuple[str, list[str], list[tuple[str, ...]]]


@dataclass(frozen=True, kw_only=True)
class BenchSection:
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
        """The whole section as plain data, unrounded."""
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


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A promise about one figure.

    Attributes:
        name: for readers.
        section: which section measures it.
        figure: its name there.
        limit: the number promised.
        least: whether the figure must reach the limit, or else stay within it.
        unit: of both.
    """

    name: str
    section: str
    figure: str
    limit: float
    least: bool
    unit: str = ""

    def met_by(self, value: float) -> bool:
        """Whether the promise holds."""
        return value >= self.limit if self.least else value <= self.limit


@dataclass(frozen=True)
class BarVerdict:
    """A bar and what was measured; None if it was not."""

    bar: Bar
    value: float | None

    @property
    def text(self) -> str:
        """'met', 'missed' or 'not measured'."""
        if self.value is None:
            return "not measured"
        return "met" if self.bar.met_by(self.value) else "missed"

    def to_json(self) -> dict[str, Any]:
        """The bar and its verdict as plain data."""
        bar = self.bar
        return {
            "name": bar.name,
            "measured": self.value,
            "bar": bar.limit,
            "sense": ">=" if bar.least else "<=",
            "unit": bar.unit,
            "verdict": self.text,
        }


def _least(name: str, section: str, figure: str, limit: float, unit: str) -> Bar:
    return Bar(name=name, section=section, figure=figure, limit=limit, least=True, unit=unit)


def _most(name: str, section: str, figure: str, limit: float, unit: str) -> Bar:
    return Bar(name=name, section=section, figure=figure, limit=limit, least=False, unit=unit)


BARS = (
    _least("gaussian beside C++", "simulator", "gaussian_over_cpp", 1.3, "x"),
    _least("gaussian", "simulator", "gaussian_rounds_per_second", 1_050_000, "rounds/s"),
    _least("gaussian, stretch", "simulator", "gaussian_rounds_per_second", 2_000_000, "rounds/s"),
    _least("windows", "simulator", "windows_rounds_per_second", 1_000_000, "rounds/s"),
    _least("tight", "simulator", "tight_rounds_per_second", 1_000_000, "rounds/s"),
    _least("wishart", "simulator", "wishart_rounds_per_second", 800_000, "rounds/s"),
    _least("nonprivate", "simulator", "nonprivate_rounds_per_second", 1_200_000, "rounds/s"),
    _least("ucb1", "pulls", "ucb1_pulls_per_second", 10_000_000, "pulls/s"),
    _least("dpucb", "pulls", "dpucb_pulls_per_second", 10_000_000, "pulls/s"),
    _least("dpse", "pulls", "dpse_pulls_per_second", 100_000_000, "pulls/s"),
    _most("horizon 5e7 beside 1e5", "scaling", "horizon_ratio", 1.3, "x"),
    _most("d=64, K=4096 beside NumPy's product", "scaling", "large_ratio", 3.0, "x"),
    _least("two workers beside one", "scaling", "workers_ratio", 1.8, "x"),
    _most("learn with a release, 10 blocks of 30", "blocks", "blocks_learn_ms", 10.0, "ms"),
    _most("choose after a release, 10 blocks of 30", "blocks", "blocks_choose_ms", 2.0, "ms"),
    _most("choose + learn, nonprivate, d=5, K=25", "latency", "nonprivate_5x25_us", 25.0, "us"),
    _most("choose + learn, gaussian, d=5, K=25", "latency", "gaussian_5x25_us", 25.0, "us"),
    _most(
        "choose + learn, nonprivate, d=50, K=1000, beside BLAS",
        "latency",
        "nonprivate_50x1000_over_blas",
        5.0,
        "x",
    ),
    _most(
        "choose + learn, gaussian, d=50, K=1000, beside BLAS",
        "latency",
        "gaussian_50x1000_over_blas",
        5.0,
        "x",
    ),
    _most("exact release, tight, d=5", "exactness", "tight_5_release_ms", 5.0, "ms"),
    _most("exact release, tight, d=50", "exactness", "tight_50_release_ms", 200.0, "ms"),
    _most("exact learn beside float, tight, d=5", "exactness", "tight_5_row_ratio", 2.0, "x"),
    _most("exact learn beside float, tight, d=50", "exactness", "tight_50_row_ratio", 2.0, "x"),
    _most(
        "exact learn beside float, gaussian, d=5", "exactness", "gaussian_5_mean_ratio", 2.0, "x"
    ),
    _most("10,000 stored decisions at once, d=5", "batches", "stored_5_seconds", 0.5, "s"),
    _most("10,000 stored decisions at once, d=20", "batches", "stored_20_seconds", 0.5, "s"),
    _most("import discreet, warm", "startup", "import_seconds", 0.4, "s"),
    _most("discreet --help, warm", "startup", "help_seconds", 0.7, "s"),
    _most("peak memory, longest run played", "memory", "peak_mib", 400.0, "MiB"),
    _most("peak memory, long beside short", "memory", "peak_growth", 1.05, "x"),
)


def verdicts(sections: Iterable[BenchSection], bars: Iterable[Bar] = BARS) -> list[BarVerdict]:
    """Every bar, with its figure if one of the sections has it."""
    figures = {(one.name, name): value for one in sections for name, value in one.figures.items()}
    return [BarVerdict(bar, figures.get((bar.section, bar.figure))) for bar in bars]


def bar_table(found: Iterable[BarVerdict]) -> Table:
    """The bars as a table for a terminal."""
    rows: list[tuple[str, ...]] = []
    for one in found:
        bar = one.bar
        limit = f"{'at least' if bar.least else 'at most'} {written(bar.limit)} {bar.unit}".rstrip()
        rows.append((bar.name, written(one.value), limit, one.text))
    return "bars", ["what", "measured", "bar", "verdict"], rows
