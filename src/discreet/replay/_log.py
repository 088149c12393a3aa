"""Logged rounds from a file, checked: what was known, what was done, what came of it.

A round's numbers depend on its own row alone. Messages say in which line something is wrong, and
never what stands there.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, NotFiniteError, OutOfBoundsError, ParameterError
from discreet.features import FeatureMap
from discreet.features._parts import Hashed, Numeric, Projected, _OnePath
from discreet.features._rows import Part
from discreet.replay._table import Cells, Column, Table, opened

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Log:
    """Where a log is, and what its columns mean. A row is a round.

    Attributes:
        path: a CSV file with names in its first line, or a Parquet file, by the end of its name.
        action: the column with the id of the action that was taken.
        reward: the column with its reward.
        propensity: the column with how probable that action was; None if all actions were equally
            probable.
        subject: the column that says whose round it was; None if nobody has more rounds than
            `Privacy.contributions_per_user` allows, and you see to it.
    """

    path: str | Path
    action: str
    reward: str
    propensity: str | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        """Check that columns are named, and no two the same."""
        if not isinstance(self.path, str | Path) or not str(self.path):
            raise ParameterError("log", "must be the path of a file")
        for name in ("action", "reward", "propensity", "subject"):
            column = getattr(self, name)
            optional = name in {"propensity", "subject"}
            if not (isinstance(column, str) and column) and not (optional and column is None):
                raise ParameterError(name, "must be the name of a column of the log")
        if len(set(self.roles)) < len(self.roles):
            raise ParameterError("action", "and the other columns must be different ones")

    @property
    def roles(self) -> tuple[str, ...]:
        """The columns that are no context."""
        named = (self.action, self.reward, self.propensity, self.subject)
        return tuple(name for name in named if name is not None)


class Rounds(NamedTuple):
    """Some rounds of a log.

    Attributes:
        contexts: columns of the context by name.
        actions: places in the list of actions, shape (n,).
        rewards: within the bounds, shape (n,).
        propensities: shape (n,).
        rows: which rows of the log these are, from 0, shape (n,).
    """

    contexts: dict[str, Cells]
    actions: I64
    rewards: F64
    propensities: F64
    rows: I64

    def pieces(self, most: int) -> "Iterator[Rounds]":
        """The same, no more than so many at a time."""
        for start in range(0, self.rows.size, most):
            rows = slice(start, start + most)
            contexts = {name: cells[rows] for name, cells in self.contexts.items()}
            arrays: tuple[Any, ...] = self[1:]
            yield Rounds(contexts, *(array[rows] for array in arrays))


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is stated about a log: what rows are checked against.

    Attributes:
        actions: the ids of all actions.
        contexts: the columns that are read of the context, and whether as numbers.
        low: no reward is below this.
        high: no reward is above this.
        clip: whether rewards beyond are moved to the bounds; they are refused otherwise.
        chunk: how many rows are read at a time.
    """

    actions: tuple[str, ...]
    contexts: dict[str, bool]
    low: float
    high: float
    clip: bool
    chunk: int


class Reader:
    """Reads the rounds of a log.

    Args:
        log: where it is, and what its columns mean.
    """

    def __init__(self, log: Log) -> None:
        """Look at the names of its columns."""
        self.log = log
        self.table: Table = opened(Path(log.path))
        for parameter in ("action", "reward", "propensity", "subject"):
            name = getattr(log, parameter)
            if name is not None and name not in self.table.names:
                raise ParameterError(parameter, f"is {name!r}, and the log has no such column")

    def contexts(self, features: FeatureMap) -> tuple[dict[str, bool], tuple[str, ...]]:
        """Which columns a map reads, whether as numbers, and which paths lead to none."""
        free = [name for name in self.table.names if name not in self.log.roles]
        found: dict[str, bool] = {}
        missing = []
        for part in leaves(features.parts):
            side, _, rest = part.path.partition(".")
            if side != "context":
                continue
            names = free
            if rest:
                names = [name for name in (rest, rest.partition(".")[0]) if name in self._names][:1]
                missing += [] if names else [part.path]
            if self.log.reward in names:
                raise ParameterError("features", "read the reward, which nobody knows beforehand")
            for name in names:
                found[name] = found.get(name, False) or _reads_numbers(part)
        return found, tuple(dict.fromkeys(missing))

    @property
    def _names(self) -> tuple[str, ...]:
        return self.table.names

    def ids(self, column: Column, parameter: str, start: int) -> tuple[list[str], I64]:
        """The different ids in a column of a chunk, and which of them each row has."""
        names, codes = column.factored()
        if None in names:
            row = start + int(np.flatnonzero(codes == names.index(None))[0])
            self._refuse(ParameterError, parameter, row, "is missing")
        return [name for name in names if name is not None], codes

    def rounds(
        self, terms: Terms, part: Callable[[int, int], Flags], last: int
    ) -> Iterator[Rounds]:
        """The rounds of one part of the log, chunk by chunk.

        Args:
            terms: what rows are checked against.
            part: which of some rows are in this part, given the first and how many they are.
            last: no row from this one on is.

        Yields:
            Rounds, all of them checked.

        Raises:
            DiscreetError: A row cannot be used; the message says which.
        """
        log, start = self.log, 0
        named = (log.action, log.reward, log.propensity)
        wanted = dict.fromkeys([*(name for name in named if name), *terms.contexts])
        for count, columns in self.table.chunks(list(wanted), terms.chunk):
            if start >= last:
                return
            rows = np.flatnonzero(part(start, count))
            if rows.size:
                yield self._checked(terms, columns, rows, start)
            start += count

    def _checked(
        self, terms: Terms, columns: Mapping[str, Column], rows: I64, start: int
    ) -> Rounds:
        """Those rows of a chunk, checked; ``start`` is the chunk's first row."""
        actions = self._places(columns[self.log.action], terms.actions, rows, start)
        rewards = self._numbers(columns, self.log.reward, "reward", rows, start)
        outside = (rewards < terms.low) | (rewards > terms.high)
        if outside.any() and not terms.clip:
            row = start + int(rows[outside][0])
            bounds = f"is outside {terms.low:g} ... {terms.high:g}"
            self._refuse(OutOfBoundsError, "reward", row, bounds)
        propensities = np.full(rows.size, 1.0 / len(terms.actions))
        if self.log.propensity is not None:
            name = self.log.propensity
            propensities = self._numbers(columns, name, "propensity", rows, start)
            strange = ~((propensities > 0.0) & (propensities <= 1.0))
            if strange.any():
                row = start + int(rows[strange][0])
                self._refuse(OutOfBoundsError, "propensity", row, "is not above 0 and at most 1")
        contexts = {
            name: _taken(columns[name].numbers() if numeric else columns[name].values(), rows)
            for name, numeric in terms.contexts.items()
        }
        bounded = np.clip(rewards, terms.low, terms.high)
        return Rounds(contexts, actions, bounded, propensities, start + rows)

    def _places(self, column: Column, actions: Sequence[str], rows: I64, start: int) -> I64:
        names, codes = column.factored()
        known = {name: number for number, name in enumerate(actions)}
        places = np.array([known.get(name or "", -1) for name in names], dtype=np.int64)
        found = places[codes[rows]] if names else np.empty(0, np.int64)
        if (found < 0).any():
            row = start + int(rows[found < 0][0])
            self._refuse(OutOfBoundsError, "action", row, "is missing or none of the actions")
        return found

    def _numbers(
        self, columns: Mapping[str, Column], name: str, parameter: str, rows: I64, start: int
    ) -> F64:
        cells = columns[name].numbers()
        if isinstance(cells, list):
            cells = np.array([_finite(cells[row]) for row in rows])
        else:
            cells = cells[rows].astype(np.float64)
        if not np.isfinite(cells).all():
            row = start + int(rows[~np.isfinite(cells)][0])
            self._refuse(NotFiniteError, parameter, row, "is missing, or no finite number,")
        return cells

    def _refuse(
        self, kind: type[DiscreetError], parameter: str, row: int, trouble: str
    ) -> NoReturn:
        raise kind(parameter, f"{trouble} in {self.table.place(row)} of the log")


def leaves(parts: Iterable[Part]) -> Iterator[_OnePath]:
    """The parts that read a path, also those inside others."""
    for part in parts:
        if isinstance(part, _OnePath):
            yield part
        yield from leaves(part.inputs)


def _reads_numbers(part: Part) -> bool:
    digits = part.digits if isinstance(part, Hashed) else None
    return isinstance(part, Numeric | Projected) or digits is not None


def _taken(cells: Cells, rows: I64) -> Cells:
    if len(cells) == rows.size:
        return cells
    if isinstance(cells, list):
        return list(map(cells.__getitem__, rows.tolist()))
    return cells[rows]


def _finite(cell: object) -> float:
    """A number; NaN for anything else."""
    return float(cell) if isinstance(cell, int | float) else math.nan
