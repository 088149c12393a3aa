"""Sparse rows, and the small interface that every part of a map has.

Formal guarantee: what a part makes of one value depends on that value and on the specification
alone, and has Euclidean norm at most 1, but for rounding (see `FeatureMap`).
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.features._remembered import Content
from discreet.features._sources import Source
from discreet.features._values import Flags

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

CONTEXT, ACTION = "context", "action"
LONGEST_TEXT = 1000  # characters of a path, an id or a value in a specification
_DEEPEST = 4  # parts inside parts


class Sparse(NamedTuple):
    """Sparse rows, as in `discreet.kernels`, with what happened to the values of each."""

    starts: I64
    coordinates: I64
    values: F64
    flags: Flags


class Row(NamedTuple):
    """One sparse row, in the order of its coordinates."""

    coordinates: tuple[int, ...]
    values: tuple[float, ...]
    flag: int


class Picked(NamedTuple):
    """Rows that are made of sparse ones: row i of ``rows[pick[i]]``."""

    rows: Sparse
    pick: I64

    @property
    def flags(self) -> Flags:
        """What happened to the values of each row."""
        return self.rows.flags[self.pick]


@dataclass(frozen=True)
class Look:
    """What is asked for: rows of pairs of a context and an action.

    Attributes:
        sources: the contexts and the actions.
        picks: which of them each row is about.
        seen: what parts have made of them, not to be made twice.
        contents: what actions hold at a path, for parts that remember them.
    """

    sources: dict[str, Source]
    picks: dict[str, I64]
    seen: dict["Part", Picked] = field(default_factory=dict)
    contents: dict[str, list[Content | None]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many rows."""
        return self.picks[CONTEXT].size

    def piece(self, rows: slice) -> "Look":
        """The same look at a slice of the rows."""
        picks = {side: pick[rows] for side, pick in self.picks.items()}
        return Look(self.sources, picks, self.seen, self.contents)

    def side(self, side: str) -> "Look":
        """A row for each context, or for each action."""
        pick = np.arange(self.sources[side].count)
        return Look(self.sources, dict.fromkeys(self.picks, pick), self.seen, self.contents)


@dataclass(frozen=True, kw_only=True)
class Part(ABC):
    """A part of a feature map: some coordinates, and how they follow from context and action.

    Attributes:
        weight: how much of the norm this part may take, beside the other parts' weights.
    """

    kind: ClassVar[str]

    weight: float = 1.0

    def __post_init__(self) -> None:
        """Check the weight, and how deep parts are inside one another."""
        weight = checks.positive("weight", self.weight)
        object.__setattr__(self, "weight", checks.within("weight", weight, 1e-6, 1e6))
        for one in self.inputs:
            if not isinstance(one, Part):
                raise ParameterError(self.kind, "takes parts, such as numeric('context.age', 0, 1)")
            if one.weight != 1.0:
                raise ParameterError(
                    "weight", f"has no effect on a part inside {self.kind}; leave it out there"
                )
        if self.depth > _DEEPEST:
            raise ParameterError(self.kind, f"has parts inside parts more than {_DEEPEST} deep")

    @property
    @abstractmethod
    def size(self) -> int:
        """How many coordinates it has."""

    @property
    @abstractmethod
    def reads(self) -> frozenset[str]:
        """Which of context and action it reads."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name."""

    @abstractmethod
    def names(self) -> Iterator[str]:
        """A name for each coordinate."""

    @abstractmethod
    def rows(self, look: Look) -> Picked:
        """The rows that are asked for."""

    @property
    def inputs(self) -> tuple["Part", ...]:
        """The parts that this one is made of."""
        return ()

    def example(self, rng: np.random.Generator) -> dict[str, object]:  # noqa: ARG002  # some use it
        """A value that it takes, by path, drawn evenly; empty if it reads none by itself."""
        return {}

    @property
    def depth(self) -> int:
        """How deep parts are inside one another here."""
        return 1 + max((one.depth for one in self.inputs if isinstance(one, Part)), default=0)

    def made(self, look: Look) -> Picked:
        """`rows`, once for each context or each action where they depend on nothing else."""
        if len(self.reads) != 1:
            return self.rows(look)
        (side,) = self.reads
        if self not in look.seen:
            look.seen[self] = self.rows(look.side(side))
        rows, pick = look.seen[self]
        return Picked(rows, pick[look.picks[side]])

    def to_json(self) -> dict[str, Any]:
        """What its constructor takes, under its kind."""
        return {
            "kind": self.kind,
            **{one.name: _plain(getattr(self, one.name)) for one in fields(self)},
        }


def _plain(value: Any) -> Any:  # noqa: ANN401  # any field
    if isinstance(value, Part):
        entry = value.to_json()
        del entry["weight"]  # of no effect there
        return entry
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def dense(rows: F64, flags: Flags) -> Sparse:
    """All entries of an (m, s) array as sparse rows."""
    count, size = rows.shape
    columns = np.empty((count, size), np.int64)
    columns[:] = np.arange(size)
    return Sparse(np.arange(count + 1) * size, columns.ravel(), rows.ravel(), flags)


def merged(row: I64, coordinate: I64, weight: F64, flags: Flags) -> Sparse:
    """Entries added up where row and coordinate agree, each row scaled to length 1.

    Args:
        row: which row an entry belongs to.
        coordinate: its place there.
        weight: whole numbers; sums of them are exact, so that their order does not matter.
        flags: one for each row.
    """
    order = np.lexsort((coordinate, row))
    row, coordinate, weight = row[order], coordinate[order], weight[order]
    first = np.ones(row.size, dtype=np.bool_)
    first[1:] = (row[1:] != row[:-1]) | (coordinate[1:] != coordinate[:-1])
    at = np.flatnonzero(first)
    sums = np.add.reduceat(weight, at) if at.size else weight
    row, coordinate = row[at], coordinate[at]
    kept = sums != 0.0
    row, coordinate, sums = row[kept], coordinate[kept], sums[kept]
    squares = np.bincount(row, sums * sums, minlength=flags.size)
    starts = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=flags.size))))
    return Sparse(starts, coordinate, sums / np.sqrt(squares[row]), flags)


def merged_one(places: Iterable[tuple[int, float]], flag: int) -> Row:
    """What `merged` makes of the entries of one row, without arrays: faster for a short one."""
    sums: dict[int, float] = {}
    for coordinate, weight in places:
        sums[coordinate] = sums.get(coordinate, 0.0) + weight
    kept = sorted(one for one in sums.items() if one[1] != 0.0)
    length = math.sqrt(sum([weight * weight for _, weight in kept]))
    coordinates = tuple([coordinate for coordinate, _ in kept])
    return Row(coordinates, tuple([weight / length for _, weight in kept]), flag)


def stacked(rows: Sequence[Row]) -> Sparse:
    """Single rows, one below the other."""
    coordinates, values, flags = zip(*rows, strict=True)
    return Sparse(
        np.array([0, *accumulate(map(len, coordinates))]),
        np.array(list(chain.from_iterable(coordinates)), np.int64),
        np.array(list(chain.from_iterable(values)), np.float64),
        np.array(flags, np.uint8),
    )


def key_of(purpose: str, name: str) -> bytes:
    """A public, fixed key for hashing: the same in every process, everywhere."""
    return hashlib.blake2b(f"discreet {purpose} {name}".encode(), digest_size=32).digest()


def word_of(key: bytes, token: str) -> int:
    """64 bits of a token."""
    data = token.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "big")


def checked_text(parameter: str, value: object) -> str:
    """A string that can be written to a file, and is not very long."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
        raise ParameterError(parameter, f"must be a string of 1 to {LONGEST_TEXT} characters")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ParameterError(parameter, "holds half a surrogate pair; give proper text") from None
    return str.__str__(value)


def checked_path(path: object, *, whole: bool = False) -> str:
    """A path, such as context.age; a whole context or action only where that makes sense."""
    found = checked_text("path", path)
    side, *rest = found.split(".")
    if side not in {CONTEXT, ACTION} or not all(rest) or not (rest or whole):
        raise ParameterError(
            "path",
            f"is {found!r}; give one that begins with 'context.' or 'action.', such as context.age",
        )
    return found


def checked_count(parameter: str, value: object, least: int, most: int) -> int:
    """A whole number in a range."""
    if isinstance(value, int) and not isinstance(value, bool) and not least <= value <= most:
        raise ParameterError(parameter, f"must be a whole number from {least} to {most}")
    number = checks.count(parameter, value, least)
    if number > most:
        raise ParameterError(parameter, f"must be a whole number from {least} to {most}")
    return number


def checked_list(parameter: str, values: object, most: int) -> tuple[object, ...]:
    """A list that is neither empty nor very long."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(values, list | tuple) or not 0 < len(values) <= most:
        raise ParameterError(parameter, f"must be a list of 1 to {most} entries")
    return tuple(values)
