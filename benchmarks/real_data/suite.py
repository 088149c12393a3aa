"""All sections in one run, or some of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.real_data import data
from benchmarks.real_data.clicks import clicks
from benchmarks.real_data.coverage import coverage
from benchmarks.real_data.insurance import insurance
from benchmarks.real_data.records import cancer, digits, norms
from benchmarks.real_data.sizes import Sizes
from benchmarks.speed.results import Bar, BarVerdict, BenchSection, Table, bar_table, verdicts
from discreet.errors import ParameterError
from discreet.report._page import Provenance

Measure = Callable[[Sizes, Any, Callable[[], None]], BenchSection]

SECTIONS: dict[str, tuple[Measure, Callable[[], Any]]] = {
    "insurance": (insurance, data.insurance),
    "cancer": (cancer, data.cancer),
    "digits": (digits, data.digits),
    "norms": (norms, data.cancer),
    "clicks": (clicks, lambda: None),
    "coverage": (coverage, data.insurance),
}

BARS = (
    Bar(
        name="insurance: t of the learner over uniform, the lowest of all",
        section="insurance",
        figure="lowest_t",
        limit=-2.4,
        least=True,
    ),
    Bar(
        name="cancer: right answers beyond the best fixed one, the lowest of all",
        section="cancer",
        figure="lowest_above_fixed",
        limit=0.0,
        least=True,
    ),
    Bar(
        name="digits: right answers beyond the best fixed one, the lowest of all",
        section="digits",
        figure="lowest_above_fixed",
        limit=0.0,
        least=True,
    ),
    Bar(
        name="clicks: rate above that of uniform choices, the lowest of all",
        section="clicks",
        figure="lowest_above_uniform",
        limit=0.0,
        least=True,
    ),
    Bar(
        name="coverage at 80%, less 80%, plus two errors, the lowest of all",
        section="coverage",
        figure="least_80",
        limit=0.0,
        least=True,
    ),
    Bar(
        name="coverage at 95%, less 95%, plus two errors, the lowest of all",
        section="coverage",
        figure="least_95",
        limit=0.0,
        least=True,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """Everything that was measured, and on what."""

    sections: tuple[BenchSection, ...]
    provenance: Provenance

    @property
    def verdicts(self) -> list[BarVerdict]:
        """The promises that these sections speak of."""
        names = {section.name for section in self.sections}
        return [one for one in verdicts(self.sections, BARS) if one.bar.section in names]

    def tables(self) -> list[tuple[Table, list[str]]]:
        """Each table with the remarks below it; the bars come last."""
        found = [(section.table(), section.remarks()) for section in self.sections]
        return [*found, (bar_table(self.verdicts), [])]

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "sections": {section.name: section.to_json() for section in self.sections},
            "bars": [one.to_json() for one in self.verdicts],
            "provenance": self.provenance.to_json(),
        }


def run(
    sizes: Sizes, *, only: Sequence[str] = (), on_step: Callable[[], None] = lambda: None
) -> Result:
    """Measure the sections named, or all.

    Args:
        sizes: how much is measured.
        only: names of sections.
        on_step: called now and then.
    """
    chosen = list(dict.fromkeys(only)) or list(SECTIONS)
    for name in chosen:
        if name not in SECTIONS:
            raise ParameterError("only", f"is {name!r}; give one of {', '.join(SECTIONS)}")
    started, clock = datetime.now(UTC), time.perf_counter()
    sections = []
    for name in chosen:
        measure, read = SECTIONS[name]
        sections.append(measure(sizes, read(), on_step))
    return Result(
        sections=tuple(sections),
        provenance=Provenance.gathered(
            command="make real-data",
            started=started,
            seconds=time.perf_counter() - clock,
            workers=1,
        ),
    )
