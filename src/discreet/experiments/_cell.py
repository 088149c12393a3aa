"""The unit of work: a cell is plain data that says what to run, and runs it.

Nothing here knows what is measured, where cells run or how results are kept.
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

Plain = str | int | float | None
Settings = dict[str, Plain]


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
        """Do the work."""


@dataclass(frozen=True)
class Task:
    """A cell of an experiment."""

    experiment: str
    cell: Cell

    @property
    def settings(self) -> Settings:
        """The cell's fields."""
        return dict(asdict(self.cell))

    @property
    def key(self) -> str:
        """What makes it this task and no other, as text."""
        return key(self.experiment, self.settings)

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
        """The key of its task."""
        return key(self.experiment, self.settings)

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


def key(experiment: str, settings: Settings) -> str:
    """The same text for the same settings, whatever their order."""
    return f"{experiment} {json.dumps(settings, sort_keys=True, allow_nan=False)}"
