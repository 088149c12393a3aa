"""All sections in one run, or some of them."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.speed import batches, calls, libraries, simulation, store
from benchmarks.speed.results import BarVerdict, BenchSection, Table, bar_table, verdicts
from benchmarks.speed.workload import BenchSizes
from discreet.errors import ParameterError
from discreet.report._page import Provenance

SECTIONS: dict[str, Callable[[BenchSizes], BenchSection]] = {
    measure.__name__: measure
    for measure in (
        simulation.simulator,
        simulation.pulls,
        simulation.scaling,
        calls.latency,
        calls.exactness,
        calls.blocks,
        store.store,
        batches.batches,
        libraries.libraries,
        calls.startup,
        simulation.memory,
    )
}


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """Everything that was measured, and on what."""

    sections: tuple[BenchSection, ...]
    provenance: Provenance
    load: float | None

    @property
    def verdicts(self) -> list[BarVerdict]:
        """The promises that these sections speak of."""
        return [one for one in verdicts(self.sections) if one.bar.section in self._names]

    @property
    def _names(self) -> set[str]:
        return {section.name for section in self.sections}

    def tables(self) -> list[tuple[Table, list[str]]]:
        """Each table with the remarks below it; the bars come last."""
        found = [(section.table(), section.remarks()) for section in self.sections]
        return [*found, (bar_table(self.verdicts), self._caution())] if self.verdicts else found

    def _caution(self) -> list[str]:
        if self.load is None:
            return []
        cores = self.provenance.cores
        return [
            (
                f"Load of the machine before the run: {self.load:.2f} on {cores} cores. Figures "
                "are of this machine in this run; compare ratios, not runs."
            )
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "sections": {section.name: section.to_json() for section in self.sections},
            "bars": [one.to_json() for one in self.verdicts],
            "load_before": self.load,
            "provenance": self.provenance.to_json(),
        }


def run(
    sizes: BenchSizes,
    *,
    only: Sequence[str] = (),
    on_step: Callable[[int], None] | None = None,
) -> BenchResult:
    """Measure the sections named, or all; ``on_step`` hears how many are done."""
    chosen = list(only) or list(SECTIONS)
    for name in chosen:
        if name not in SECTIONS:
            raise ParameterError("only", f"is {name!r}; give one of {', '.join(SECTIONS)}")
    started, clock = datetime.now(UTC), time.perf_counter()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    sections = []
    for name in dict.fromkeys(chosen):
        sections.append(SECTIONS[name](sizes))
        if on_step is not None:
            on_step(len(sections))
    return BenchResult(
        sections=tuple(sections),
        provenance=Provenance.gathered(
            command="make bench",
            started=started,
            seconds=time.perf_counter() - clock,
            workers=1,
        ),
        load=load,
    )
