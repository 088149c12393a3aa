"""What was measured, ready to be judged and drawn. Knows nothing of how it came about."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.experiments._cell import Finished, Plain
from discreet.report._curves import Curve
from discreet.report._numbers import Measured

F64 = NDArray[np.float64]
REGRET = "pseudo_regret"


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


def _seed(cell: Finished) -> int:
    return int(cell.settings["seed"] or 0)


def _over_time(cell: Finished, quantity: str) -> dict[int, float]:
    return {at: value for name, at, value in cell.readings if name == quantity}
