"""All that is measured in one run, the bars of the service, and how both are shown."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.service import measures
from benchmarks.service.soak import soak
from benchmarks.service.workload import ServiceSizes
from benchmarks.speed.results import Bar, BarVerdict, BenchSection, Table, bar_table, verdicts
from discreet.errors import ParameterError
from discreet.report._page import Provenance

SECTIONS: dict[str, Callable[[ServiceSizes], BenchSection]] = {
    measure.__name__: measure
    for measure in (measures.decisions, measures.rankers, measures.writer, soak)
}
SHORT = tuple(name for name in SECTIONS if name != "soak")  # that takes half an hour

BARS = tuple(
    Bar(name=name, section=section, figure=figure, limit=limit, least=least, unit=unit)
    for name, section, figure, limit, least, unit in (
        ("rank, SQLite", "decisions", "sqlite_ranks_per_second", 1500.0, True, "/s"),
        ("rank, PostgreSQL", "decisions", "postgresql_ranks_per_second", 1000.0, True, "/s"),
        ("p99 at 70% load, SQLite", "decisions", "sqlite_p99_ms", 30.0, False, "ms"),
        ("p99 at 70% load, PostgreSQL", "decisions", "postgresql_p99_ms", 30.0, False, "ms"),
        ("rewards, SQLite", "decisions", "sqlite_rewards_per_second", 20000.0, True, "/s"),
        ("rewards, PostgreSQL", "decisions", "postgresql_rewards_per_second", 20000.0, True, "/s"),
        ("rank beside FastAPI + MABWiser", "decisions", "beside_fastapi", 1.0, True, "x"),
        ("two rankers beside one", "rankers", "two_beside_one", 1.5, True, "x"),
        ("writer, SQLite", "writer", "sqlite_rows_per_second", 20000.0, True, "rows/s"),
        ("writer, PostgreSQL", "writer", "postgresql_rows_per_second", 20000.0, True, "rows/s"),
        ("errors of a long run", "soak", "soak_errors", 0.0, False, ""),
        ("growth of memory", "soak", "soak_growth", 0.05, False, "x"),
    )
)


@dataclass(frozen=True, kw_only=True)
class ServiceResult:
    """What was measured, and on what. Loads are of the machine, before each section."""

    sections: tuple[BenchSection, ...]
    loads: dict[str, float]
    provenance: Provenance

    @property
    def verdicts(self) -> list[BarVerdict]:
        """The bars that these sections speak of."""
        names = {section.name for section in self.sections}
        return [one for one in verdicts(self.sections, BARS) if one.bar.section in names]

    def tables(self) -> list[tuple[Table, list[str]]]:
        """Each table with the remarks below it; the bars come last."""
        loads = ", ".join(f"{name} {load:.2f}" for name, load in self.loads.items())
        caution = (
            f"Load of the machine before: {loads}; {self.provenance.cores} cores, which servers, "
            "database and load share. Compare ratios, not runs."
        )
        found = [(section.table(), section.remarks()) for section in self.sections]
        return [*found, (bar_table(self.verdicts), [caution])]

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "sections": {section.name: section.to_json() for section in self.sections},
            "bars": [one.to_json() for one in self.verdicts],
            "loads_before": self.loads,
            "provenance": self.provenance.to_json(),
        }


def run(
    sizes: ServiceSizes,
    *,
    only: Sequence[str] = (),
    on_step: Callable[[int], None] | None = None,
) -> ServiceResult:
    """Measure the sections named, or all; ``on_step`` hears how many are done."""
    chosen = list(dict.fromkeys(only)) or list(SHORT)
    for name in chosen:
        if name not in SECTIONS:
            raise ParameterError("only", f"is {name!r}; give one of {', '.join(SECTIONS)}")
    started, clock = datetime.now(UTC), time.perf_counter()
    sections, loads = [], {}
    for name in chosen:
        loads[name] = os.getloadavg()[0]
        sections.append(SECTIONS[name](sizes))
        if on_step is not None:
            on_step(len(sections))
    return ServiceResult(
        sections=tuple(sections),
        loads=loads,
        provenance=Provenance.gathered(
            command="python -m benchmarks.service",
            started=started,
            seconds=time.perf_counter() - clock,
            workers=1,
        ),
    )
