"""What was promised, and whether it holds: figures of a run against fixed bars."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.results import Section, Table, written


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
class Verdict:
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
        """For programs."""
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
    _least("tight", "simulator", "tight_rounds_per_second", 1_000_000, "rounds/s"),
    _least("wishart", "simulator", "wishart_rounds_per_second", 800_000, "rounds/s"),
    _least("nonprivate", "simulator", "nonprivate_rounds_per_second", 1_200_000, "rounds/s"),
    _least("ucb1", "pulls", "ucb1_pulls_per_second", 10_000_000, "pulls/s"),
    _least("dpucb", "pulls", "dpucb_pulls_per_second", 10_000_000, "pulls/s"),
    _least("dpse", "pulls", "dpse_pulls_per_second", 100_000_000, "pulls/s"),
    _most("horizon 5e7 beside 1e5", "scaling", "horizon_ratio", 1.3, "x"),
    _most("d=64, K=4096 beside NumPy's product", "scaling", "large_ratio", 3.0, "x"),
    _least("two workers beside one", "scaling", "workers_ratio", 1.8, "x"),
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
    _most("import discreet, warm", "startup", "import_seconds", 0.4, "s"),
    _most("discreet --help, warm", "startup", "help_seconds", 0.7, "s"),
    _most("peak memory, longest run played", "memory", "peak_mib", 400.0, "MiB"),
    _most("peak memory, long beside short", "memory", "peak_growth", 1.05, "x"),
)


def verdicts(sections: Iterable[Section], bars: Iterable[Bar] = BARS) -> list[Verdict]:
    """Every bar, with its figure if one of the sections has it."""
    figures = {(one.name, name): value for one in sections for name, value in one.figures.items()}
    return [Verdict(bar, figures.get((bar.section, bar.figure))) for bar in bars]


def table(found: Iterable[Verdict]) -> Table:
    """For a terminal."""
    rows: list[tuple[str, ...]] = []
    for one in found:
        bar = one.bar
        limit = f"{'at least' if bar.least else 'at most'} {written(bar.limit)} {bar.unit}".rstrip()
        rows.append((bar.name, written(one.value), limit, one.text))
    return "bars", ["what", "measured", "bar", "verdict"], rows
