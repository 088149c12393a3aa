"""What an experiment is made of, from the unit of work to the declaration.

A `Cell` is plain data that says what to run, and runs it; a `Finished` cell is what it measured;
`Results` are the finished cells of one experiment, ready to be judged and drawn; an `Experiment`
says what to run at each `Scale` and what to make of it. Nothing here knows where cells run or how
finished ones are kept.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.experiments._claims import Claim, Interval, ratio_interval
from discreet.report._curves import Curve
from discreet.report._figures import Exhibit
from discreet.report._numbers import Measured
from discreet.report._page import Table

F64 = NDArray[np.float64]
Plain = str | int | float | None
Settings = dict[str, Plain]
SizesT = TypeVar("SizesT")

REGRET = "pseudo_regret"


class Reading(NamedTuple):
    """One measured number: what it is, after which round, and how much."""

    quantity: str
    round: int
    value: float


class Cell(Protocol):
    """A frozen dataclass of plain fields, its seed among them, that can be pickled.

    Its fields fix what ``run`` returns, to the bit.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def prepare(self) -> None:
        """Compile what ``run`` needs, so that workers find it on disk."""

    def run(self) -> list[Reading]:
        """Run what the fields say, and return all that was measured."""


@dataclass(frozen=True)
class Task:
    """A cell together with the name of its experiment."""

    experiment: str
    cell: Cell

    @property
    def settings(self) -> Settings:
        """The cell's fields by name."""
        return dict(asdict(self.cell))

    @property
    def key(self) -> str:
        """What makes it this task and no other, as text."""
        return _key(self.experiment, self.settings)

    def run(self) -> "Finished":
        """Run the cell and time it."""
        start = time.perf_counter()
        readings = tuple(self.cell.run())
        return Finished(
            experiment=self.experiment,
            settings=self.settings,
            readings=readings,
            seconds=time.perf_counter() - start,
        )


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A cell that has been run.

    Attributes:
        experiment: the experiment it belongs to.
        settings: the cell's fields.
        readings: what it measured.
        seconds: how long it took.
    """

    experiment: str
    settings: Settings
    readings: tuple[Reading, ...]
    seconds: float

    @property
    def key(self) -> str:
        """The key of the task that gave it."""
        return _key(self.experiment, self.settings)

    def to_json(self) -> dict[str, Any]:
        """Plain data; floats survive the way to text and back."""
        return {
            "experiment": self.experiment,
            "settings": self.settings,
            "readings": [list(reading) for reading in self.readings],
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Finished":
        """The inverse of ``to_json``."""
        return cls(
            experiment=data["experiment"],
            settings=data["settings"],
            readings=tuple(Reading(*reading) for reading in data["readings"]),
            seconds=data["seconds"],
        )


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One quantity over time, for several seeds of the same settings.

    Attributes:
        seeds: which, shape (S,).
        rounds: the rounds at which every seed has a reading, shape (C,).
        values: the readings, shape (S, C).
    """

    seeds: tuple[int, ...]
    rounds: F64
    values: F64

    @property
    def final(self) -> F64:
        """At the last common round, per seed."""
        return self.values[:, -1]

    def at(self, when: float) -> F64:
        """At the last round up to ``when``, per seed."""
        return self.values[:, int(np.searchsorted(self.rounds, when, side="right")) - 1]

    def up_to(self, last: float) -> "Sample":
        """The part up to a round."""
        keep = self.rounds <= last
        return Sample(seeds=self.seeds, rounds=self.rounds[keep], values=self.values[:, keep])

    def paired(self, other: "Sample") -> tuple[F64, F64]:
        """Both at their last rounds, for the seeds that both have."""
        common = [seed for seed in self.seeds if seed in other.seeds]
        places = ([one.seeds.index(seed) for seed in common] for one in (self, other))
        own, others = places
        return self.final[own], other.final[others]

    def over(self, other: "Sample") -> Interval:
        """The ratio of the means at the last rounds, for the seeds that both have."""
        return ratio_interval(*self.paired(other))

    def over_text(self, other: "Sample") -> str:
        """The same ratio with its standard error, for tables; empty if there is none."""
        ratio = Measured.ratio(*self.paired(other))
        return "" if ratio is None else ratio.text()

    def measured(self) -> Measured:
        """Mean and standard error at the last common round."""
        return Measured.over_seeds(self.final)

    def curve(self, label: str) -> Curve:
        """Mean and standard error over time."""
        return Curve.over_seeds(label, self.rounds, self.values)


@dataclass(frozen=True)
class Results:
    """All finished cells of one experiment."""

    cells: tuple[Finished, ...]

    def values(self, setting: str) -> list[Plain]:
        """The distinct values of a setting, in the order of the cells."""
        return list(dict.fromkeys(cell.settings[setting] for cell in self.cells))

    def numbers(self, setting: str) -> list[float]:
        """The distinct values of a numeric setting, sorted, None left out."""
        return sorted(
            {float(value) for value in self.values(setting) if isinstance(value, int | float)}
        )

    @property
    def rounds(self) -> float:
        """How many rounds were played, the fewest if cells differ."""
        return self.numbers("rounds")[0]

    @property
    def played(self) -> str:
        """As in: 100,000 rounds."""
        return f"{self.rounds:,.0f} rounds"

    def where(self, **settings: Plain) -> "Results":
        """The cells with these settings."""
        wanted = settings.items()
        return self.only(lambda cell: all(cell.settings[name] == value for name, value in wanted))

    def only(self, keep: Callable[[Finished], bool]) -> "Results":
        """The cells that pass a test."""
        return Results(tuple(cell for cell in self.cells if keep(cell)))

    def sample(self, quantity: str = REGRET, **settings: Plain) -> Sample:
        """A quantity over time, for the seeds with these settings, in the order of the seeds."""
        chosen = sorted(self.where(**settings).cells, key=_seed)
        tables = [_over_time(cell, quantity) for cell in chosen]
        common = sorted(set.intersection(*(set(table) for table in tables)))
        return Sample(
            seeds=tuple(_seed(cell) for cell in chosen),
            rounds=np.array(common, dtype=np.float64),
            values=np.array([[table[at] for at in common] for table in tables]),
        )

    @classmethod
    def of(cls, cells: Iterable[Finished], experiment: str) -> "Results":
        """The cells of one experiment among many, in a fixed order."""
        own = [cell for cell in cells if cell.experiment == experiment]
        return cls(tuple(sorted(own, key=lambda cell: cell.key)))


class Scale(StrEnum):
    """How much of an experiment is run."""

    SMOKE = "smoke"
    QUICK = "quick"
    FULL = "full"


def _no_cells(_sizes: object) -> tuple[Cell, ...]:
    return ()


def _as_it_is(sizes: SizesT, _least: int) -> SizesT:
    return sizes


def _no_tables(_results: Results) -> tuple[Table, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[SizesT]):
    """One experiment, declared.

    Attributes:
        name: as the command line has it.
        title: for headings.
        question: what it asks, and how, in a few sentences.
        sizes: how much is played at each scale, in a form of the experiment's own.
        cells: what to run at such a size, the cells that take longest first; nothing if left out.
        seeded: a size with at least so many seeds in every cell; the same if left out.
        claims: statements and whether they hold.
        figures: what is drawn.
        tables: what is tabulated.
        reading: how to read it, what differs from the paper, and why; paragraphs.
    """

    name: str
    title: str
    question: str
    sizes: Mapping[Scale, SizesT] = field(default_factory=dict)
    cells: Callable[[SizesT], Sequence[Cell]] = field(default=_no_cells)
    seeded: Callable[[SizesT, int], SizesT] = field(default=_as_it_is)
    claims: Callable[[Results], Sequence[Claim]]
    figures: Callable[[Results], Sequence[Exhibit]]
    tables: Callable[[Results], Sequence[Table]] = field(default=_no_tables)
    reading: tuple[str, ...] = ()

    def tasks(self, scale: Scale, seeds: int = 0) -> tuple[Task, ...]:
        """Its cells at a scale with at least so many seeds, under its name."""
        return self.tasks_of(self.seeded(self.sizes[scale], seeds)) if self.sizes else ()

    def tasks_of(self, sizes: SizesT) -> tuple[Task, ...]:
        """Its cells at a size of your own, under its name."""
        return tuple(Task(self.name, cell) for cell in self.cells(sizes))


def _key(experiment: str, settings: Settings) -> str:
    """The same text for the same settings, whatever their order."""
    return f"{experiment} {json.dumps(settings, sort_keys=True, allow_nan=False)}"


def _seed(cell: Finished) -> int:
    return int(cell.settings["seed"] or 0)


def _over_time(cell: Finished, quantity: str) -> dict[int, float]:
    return {at: value for name, at, value in cell.readings if name == quantity}
