"""What an experiment is: a question, cells at three scales, claims and figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from discreet.experiments._cell import Cell, Task
from discreet.experiments._claims import Claim
from discreet.experiments._results import Results
from discreet.report._exhibit import Exhibit
from discreet.report._page import Table


class Scale(StrEnum):
    """How much of an experiment is run."""

    SMOKE = "smoke"
    QUICK = "quick"
    FULL = "full"


def _nothing(_results: Results) -> tuple[Table, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One experiment, declared.

    Attributes:
        name: as the command line has it.
        title: for headings.
        question: what it asks, and how, in a few sentences.
        cells: what to run at a scale, the cells that take longest first.
        claims: statements and whether they hold.
        figures: what is drawn.
        tables: what is tabulated.
        reading: how to read it, what differs from the paper, and why; paragraphs.
    """

    name: str
    title: str
    question: str
    cells: Callable[[Scale], Sequence[Cell]]
    claims: Callable[[Results], Sequence[Claim]]
    figures: Callable[[Results], Sequence[Exhibit]]
    tables: Callable[[Results], Sequence[Table]] = field(default=_nothing)
    reading: tuple[str, ...] = ()

    def tasks(self, scale: Scale) -> tuple[Task, ...]:
        """Its cells, under its name."""
        return tuple(Task(self.name, cell) for cell in self.cells(scale))
