"""Logged rounds from a file, checked: contexts, actions, propensities and rewards.

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

_ADVICE = "correct it, or leave that row out"


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
        subjects: whose rounds these are, if that was asked for.
    """

    contexts: dict[str, Cells]
    actions: I64
    rewards: F64
    propensities: F64
    rows: I64
    subjects: list[str] | None = None

    def pieces(self, most: int) -> "Iterator[Rounds]":
        """These rounds in pieces of at most ``most``."""
        for start in range(0, self.rows.size, most):
            rows = slice(start, start + most)
            contexts = {name: cells[rows] for name, cells in self.contexts.items()}
            arrays: tuple[Any, ...] = self[1:-1]
            subjects = None if self.subjects is None else self.subjects[rows]
            yield Rounds(contexts, *(array[rows] for array in arrays))._replace(subjects=subjects)


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
                raise ParameterError(
                    parameter,
                    f"is {name!r}, and the log has no such column; give the name of one: in a .csv "
                    "file the first line has them, with commas between",
                )

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

    def known(self, names: Sequence[str | None], parameter: str, start: int) -> list[str]:
        """Ids of the rows from ``start`` on, if none is missing."""
        if None in names:
            row = start + names.index(None)
            self._refuse(ParameterError, parameter, row, "is missing", advice=_ADVICE)
        return names  # type: ignore[return-value]  # none is None

    def rounds(
        self, terms: Terms, part: Callable[[int, int], Flags], last: int, *, subjects: bool = False
    ) -> Iterator[Rounds]:
        """The rounds of one part of the log, chunk by chunk.

        Args:
            terms: what rows are checked against.
            part: which of some rows are in this part, given the first and how many they are.
            last: no row from this one on is.
            subjects: whether to say whose rounds they are, if the log does.

        Yields:
            Rounds, all of them checked.

        Raises:
            DiscreetError: A row cannot be used; the message says which.
        """
        log, start = self.log, 0
        named = (log.action, log.reward, log.propensity, log.subject if subjects else None)
        wanted = dict.fromkeys([*(name for name in named if name), *terms.contexts])
        for count, columns in self.table.chunks(list(wanted), terms.chunk):
            if start >= last:
                return
            rows = np.flatnonzero(part(start, count))
            if rows.size:
                yield self._checked(terms, columns, rows, start)
            start += count

    def _checked(self, terms: Terms, chunk: Mapping[str, Column], rows: I64, start: int) -> Rounds:
        """Those rows of a chunk, checked; ``start`` is the chunk's first row."""
        columns = {name: chunk[name].at(rows) for name in chunk}
        rows = start + rows
        actions = self._places(columns[self.log.action], terms.actions, rows)
        rewards = self._numbers(columns[self.log.reward], "reward", rows)
        outside = (rewards < terms.low) | (rewards > terms.high)
        if not terms.clip:
            bounds = f"is outside {terms.low:g} ... {terms.high:g}"
            advice = "state wider bounds, or pass on_violation='clip' to move it to the nearest"
            self._require(~outside, OutOfBoundsError, "reward", rows, bounds, advice=advice)
        propensities = np.full(rows.size, 1.0 / len(terms.actions))
        if self.log.propensity is not None:
            propensities = self._numbers(columns[self.log.propensity], "propensity", rows)
            right = (propensities > 0.0) & (propensities <= 1.0)
            trouble = "is not above 0 and at most 1"
            self._require(right, OutOfBoundsError, "propensity", rows, trouble, advice=_ADVICE)
        contexts = {
            name: columns[name].numbers() if numeric else columns[name].values()
            for name, numeric in terms.contexts.items()
        }
        bounded = np.clip(rewards, terms.low, terms.high)
        subjects = None
        if self.log.subject in columns:  # `parts_of` has seen that none is missing
            subjects = [name or "" for name in columns[self.log.subject].texts()]
        return Rounds(contexts, actions, bounded, propensities, rows, subjects)

    def _places(self, column: Column, actions: Sequence[str], rows: I64) -> I64:
        names, codes = column.factored()
        known = {name: number for number, name in enumerate(actions)}
        found = np.array([known.get(name or "", -1) for name in names], dtype=np.int64)[codes]
        trouble = "is missing or none of the actions"
        advice = "name it among the actions, or leave that row out"
        self._require(found >= 0, OutOfBoundsError, "action", rows, trouble, advice=advice)
        return found

    def _numbers(self, column: Column, parameter: str, rows: I64) -> F64:
        cells = column.numbers()
        if isinstance(cells, list):
            cells = np.array([_finite(cell) for cell in cells])
        found = cells.astype(np.float64)
        trouble = "is missing, or no finite number,"
        self._require(np.isfinite(found), NotFiniteError, parameter, rows, trouble, advice=_ADVICE)
        return found

    def _require(
        self,
        right: Flags,
        kind: type[DiscreetError],
        parameter: str,
        rows: I64,
        trouble: str,
        *,
        advice: str,
    ) -> None:
        """Refuse the first row that is not right."""
        if not right.all():
            self._refuse(kind, parameter, int(rows[~right][0]), trouble, advice=advice)

    def _refuse(
        self, kind: type[DiscreetError], parameter: str, row: int, trouble: str, *, advice: str
    ) -> NoReturn:
        raise kind(parameter, f"{trouble} in {self.table.place(row)} of the log; {advice}")


def leaves(parts: Iterable[Part]) -> Iterator[_OnePath]:
    """The parts that read a path, also those inside others."""
    for part in parts:
        if isinstance(part, _OnePath):
            yield part
        yield from leaves(part.inputs)


def _reads_numbers(part: Part) -> bool:
    digits = part.digits if isinstance(part, Hashed) else None
    return isinstance(part, Numeric | Projected) or digits is not None


def _finite(cell: object) -> float:
    """A number; NaN for anything else."""
    return float(cell) if isinstance(cell, int | float) else math.nan
