"""Where values come from: a list of records, or columns. Contexts and actions, in any form.

Frames are known by what they can do; no library of frames is imported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import EmptyDecisionSetError, ParameterError, ShapeError
from discreet.features import _values as read
from discreet.features._values import Values

Frame: TypeAlias = Any
"""A table with columns by name: of pandas, polars or Arrow, none of which is imported."""

Contexts: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | Frame
"""Contexts of many people: arrays by column name, a dictionary each, or a frame."""

Actions: TypeAlias = Sequence[object] | NDArray[Any] | Mapping[str, Any] | Frame
"""A list of ids, of dictionaries with `id` and `features`, or of features; columns, or a frame."""

_NUMBERS = "biuf"
_TWO = {"id", "features"}
_AN_ACTION = "an id, a dictionary with `id` and `features`, or a dictionary of its features"


class Source(Protocol):
    """The contexts, or the actions, of one call."""

    @property
    def count(self) -> int:
        """How many there are."""

    def values(self, path: str) -> Values:
        """What each has at a path, None where it has nothing."""

    def fields(self) -> dict[str, Values]:
        """All there is: values by the name that their tokens have in front."""


@dataclass(frozen=True)
class Records:
    """Contexts or actions with a dictionary each."""

    records: Sequence[Mapping[str, object]]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.records)

    def values(self, path: str) -> Values:
        """What each has at a path."""
        return [read.find(record, path) for record in self.records]

    def fields(self) -> dict[str, Values]:
        """The whole dictionaries, which bring their names with them."""
        return {"": list(self.records)}


@dataclass(frozen=True)
class Columns:
    """Contexts or actions as columns: an array for each field."""

    columns: Mapping[str, Any]
    count: int

    def values(self, path: str) -> Values:
        """A column, or what is inside the dictionaries in one."""
        head, dot, rest = path.partition(".")
        if path in self.columns:
            return _listed(self.columns[path])
        if not dot or head not in self.columns:
            return [None] * self.count
        return [read.find(value, rest) for value in _listed(self.columns[head])]

    def fields(self) -> dict[str, Values]:
        """Every column."""
        return {name: _listed(column) for name, column in self.columns.items()}


def contexts_of(contexts: Contexts, parameter: str, count: int | None = None) -> Source:
    """Contexts as a caller gives them: columns, a frame, or a list of dictionaries.

    Args:
        contexts: What a caller gave.
        parameter: Its name, for messages.
        count: How many there must be if there are no columns to tell; None if they must.
    """
    columns = _columns_of(contexts)
    if columns is not None and not columns and count is not None:
        return Columns({}, count)
    if columns is not None:
        return _checked(columns, parameter)
    if not isinstance(contexts, list | tuple):
        raise ParameterError(
            parameter, "is no table; give arrays by column name, a frame, or a list of dictionaries"
        )
    return Records([context_of(one, parameter) for one in contexts])


def context_of(context: object, parameter: str = "context") -> Mapping[str, object]:
    """One context; None is an empty one."""
    if context is None:
        return {}
    if not isinstance(context, Mapping):
        raise ParameterError(parameter, "is no dictionary; give one, such as {'age': 30}")
    return context


def actions_of(actions: Actions, parameter: str = "actions") -> Source:
    """Actions as a caller gives them: a list, an array of ids, columns, or a frame."""
    columns = _columns_of(actions)
    found: Source
    if columns is not None:
        found = _checked(columns, parameter)
    else:
        found = Records([_action_of(one, parameter) for one in sequence(actions, parameter)])
    if not found.count:
        raise EmptyDecisionSetError(parameter, f"is empty; give at least one: {_AN_ACTION}")
    return found


def chosen_of(action: Actions, catalogue: Actions | None) -> tuple[Source, NDArray[np.int64]]:
    """The different actions that were chosen, and which of them each row has.

    Args:
        action: The chosen actions: ids, or what `actions_of` takes.
        catalogue: What is known of the actions, by their ids; None if nothing is.
    """
    columns = _columns_of(action)
    if columns is not None:
        source = _checked(columns, "action")
        return source, np.arange(source.count)
    distinct, codes = read.factor(sequence(action, "action"))
    records = [_action_of(one, "action") for one in distinct]
    if catalogue is not None:
        known = {read.text(one.get("id")): one for one in _records_of(actions_of(catalogue))}
        records = [
            known.get(read.text(one.get("id")), one) if set(one) <= {"id"} else one
            for one in records
        ]
    return Records(records), codes


def _records_of(source: Source) -> Sequence[Mapping[str, object]]:
    """The same as a dictionary each."""
    if isinstance(source, Records):
        return source.records
    fields = source.fields()
    return [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]


def sequence(values: Any, parameter: str) -> Values:  # noqa: ANN401  # lists, arrays, series
    """A list or an array of one dimension."""
    if isinstance(values, list):
        return values
    strange = isinstance(values, str | bytes | Mapping | set | frozenset)
    if strange or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
        raise ParameterError(parameter, "is no list; give a list or an array of one dimension")
    return _listed(values)


def _action_of(action: object, parameter: str) -> Mapping[str, object]:
    if type(action) is dict and action.keys() == _TWO and type(action["features"]) is dict:
        return {**action["features"], "id": action["id"]}  # as below, sooner
    action = read.plain(action)
    if isinstance(action, Mapping):
        if "features" not in action:
            return action
        features = action["features"]
        features = {} if features is None else features
        if not isinstance(features, Mapping) or not set(action) <= {"id", "features"}:
            raise ParameterError(
                parameter,
                "has an action with `features` that is not of the form {'id': ..., 'features': "
                "{...}}; give no other entries",
            )
        return {**features, "id": action.get("id")}
    if read.text(action) is None:
        raise ParameterError(parameter, f"holds something that is no action; give {_AN_ACTION}")
    return {"id": action}


def _columns_of(table: Contexts | Actions) -> Mapping[str, Any] | None:
    """Its columns by name, if it has named columns."""
    if isinstance(table, Mapping):
        return table
    if isinstance(table, np.ndarray):
        names = table.dtype.names
        return None if names is None else {name: table[name] for name in names}
    names = getattr(table, "column_names", None)  # Arrow
    if names is None:
        names = getattr(table, "columns", None)  # pandas, polars
    if names is None or callable(names) or not hasattr(table, "__len__"):
        return None
    return {str(name): table[name] for name in names}


def _checked(columns: Mapping[str, Any], parameter: str) -> Columns:
    if not columns:
        raise ParameterError(parameter, "has no columns; give arrays by column name")
    counts = set()
    for name, column in columns.items():
        if not isinstance(name, str):
            raise ParameterError(parameter, "has a column whose name is not a string")
        if isinstance(column, str | bytes | Mapping | set) or not hasattr(column, "__len__"):
            raise ParameterError(parameter, f"column {name!r} is no list; give an array")
        if isinstance(column, np.ndarray) and not column.ndim:
            raise ParameterError(parameter, f"column {name!r} is one value; give an array")
        counts.add(len(column))
    if len(counts) > 1:
        raise ShapeError(
            parameter, f"has columns of {len(counts)} different lengths; give one length to all"
        )
    return Columns(columns, counts.pop())


def _listed(column: Any) -> Values:  # noqa: ANN401  # arrays and series of any library
    """A column as an array of numbers, or else as a list."""
    if isinstance(column, list | tuple):
        return list(column)
    if isinstance(column, np.ma.MaskedArray):
        return list(column.tolist())  # None where masked
    try:
        array = np.asarray(column)
    except (TypeError, ValueError):  # rows of different lengths, say
        array = np.empty(0, dtype=object)
    if array.dtype.kind in _NUMBERS:
        return array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array
    for name in ("to_pylist", "to_list", "tolist"):  # Arrow; pandas and polars; numpy
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)
