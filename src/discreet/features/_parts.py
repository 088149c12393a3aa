"""Parts that read one value: a constant, numbers, categories, hashed tokens, ids, embeddings."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.features import _values as read
from discreet.features._remembered import Remembered, content_of
from discreet.features._rows import (
    ACTION,
    F64,
    I64,
    Look,
    Part,
    Picked,
    Row,
    Sparse,
    checked_count,
    checked_list,
    checked_path,
    checked_text,
    dense,
    key_of,
    merged,
    merged_one,
    stacked,
    word_of,
)
from discreet.features._values import CLIPPED, MISSING, UNKNOWN, Flags, Values
from discreet.kernels import _features as kernels

MOST_ENTRIES = 65536  # ids, values, knots and coordinates
MOST_BUCKETS = 2**24
_MOST_DRAWS = 2**22  # entries of a public random matrix
_LARGEST_SEED = 2**63 - 1
_TEXTS = 20  # different ones that a made-up record may have at a path
_FEW = 64  # values that are read one by one rather than in arrays
_ROUNDING = 1e-9  # an embedding that is longer than 1 by this much counts as one of length 1


@dataclass(frozen=True, kw_only=True)
class Intercept(Part):
    """The number 1."""

    kind = "intercept"

    size = 1
    reads = frozenset[str]()
    label = kind

    def names(self) -> Iterator[str]:
        """One name."""
        yield self.label

    def rows(self, look: Look) -> Picked:
        """A row with the number 1 for each context and action."""
        one = dense(np.ones((1, 1)), np.zeros(1, np.uint8))
        return Picked(one, np.zeros(look.count, np.int64))


@dataclass(frozen=True, kw_only=True)
class _OnePath(Part):
    """A part that reads one value."""

    reads_whole: ClassVar[bool] = False  # whether it can read a whole context or action

    path: str

    def __post_init__(self) -> None:
        """Check the path."""
        object.__setattr__(self, "path", checked_path(self.path, whole=self.reads_whole))
        super().__post_init__()

    @cached_property
    def reads(self) -> frozenset[str]:
        """The side that the path begins with."""
        return frozenset({self.path.partition(".")[0]})

    @property
    def label(self) -> str:
        """The path."""
        return self.path

    def _values(self, look: Look) -> Values:
        """What there is at the path, for each context or each action."""
        side, _, rest = self.path.partition(".")
        return look.sources[side].values(rest)


@dataclass(frozen=True, kw_only=True)
class Numeric(_OnePath):
    """A number on a public scale, as it is or between knots."""

    kind = "numeric"

    low: float
    high: float
    knots: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check the scale and the knots."""
        fix = object.__setattr__
        fix(self, "low", checks.finite("low", self.low))
        fix(self, "high", checks.finite("high", self.high))
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ParameterError("high", "must be above low, by no more than floating point holds")
        if self.knots is not None:
            fix(self, "knots", self._inner(self.knots))
            if not all(np.diff(self._grid) > 0.0):
                raise ParameterError("knots", "must increase, all of them between low and high")
        super().__post_init__()

    def _inner(self, knots: object) -> tuple[float, ...]:
        """The knots between low and high; a number stands for that many, evenly spaced."""
        if isinstance(knots, list | tuple | np.ndarray):
            most = MOST_ENTRIES - 2
            given = checked_list("knots", knots, most) if len(knots) else ()
            return tuple(checks.finite("knots", knot) for knot in given)
        count = checked_count("knots", knots, 2, MOST_ENTRIES)
        width = self.high - self.low
        return tuple(self.low + width * (i / (count - 1)) for i in range(1, count - 1))

    def example(self, rng: np.random.Generator) -> dict[str, object]:
        """A number between the bounds."""
        return {self.path: float(rng.uniform(self.low, self.high))}

    @cached_property
    def _grid(self) -> F64:
        return np.array([self.low, *(self.knots or ()), self.high])

    @property
    def size(self) -> int:
        """One coordinate, or one for each knot."""
        return 1 if self.knots is None else 2 + len(self.knots)

    def names(self) -> Iterator[str]:
        """The path, with the knot."""
        if self.knots is None:
            yield self.path
        else:
            yield from (f"{self.path}@{knot:g}" for knot in self._grid)

    def rows(self, look: Look) -> Picked:
        """From -1 at low to 1 at high, or the weights of the two knots around the number."""
        found, flags = read.numbers(self._values(look))
        inside = np.clip(found, self.low, self.high)
        there = flags == 0
        flags = np.where(there & (inside != found), CLIPPED, flags).astype(np.uint8)
        if self.knots is None:
            ratio = (inside - self.low) / (self.high - self.low)
            rows = dense(np.where(there, 2.0 * ratio - 1.0, 0.0)[:, np.newaxis], flags)
        else:
            rows = self._hats(inside, there, flags)
        return Picked(rows, np.arange(found.size))

    def _hats(self, inside: F64, there: NDArray[np.bool_], flags: Flags) -> Sparse:
        grid = self._grid
        left = np.searchsorted(grid, inside, side="right") - 1
        left = np.clip(left, 0, grid.size - 2)
        ratio = (inside - grid[left]) / (grid[left + 1] - grid[left])
        weights = np.stack([1.0 - ratio, ratio], axis=1) * there[:, np.newaxis]
        starts = 2 * np.arange(inside.size + 1)
        return Sparse(starts, np.stack([left, left + 1], axis=1).ravel(), weights.ravel(), flags)


@dataclass(frozen=True, kw_only=True)
class _Tokens(_OnePath):
    """A part that reads text, or several texts: each has a place and a sign."""

    @property
    def _digits(self) -> int | None:
        """How many binary digits of a number count."""
        return None

    def _place(self, token: str) -> tuple[int, float] | None:
        """Coordinate and sign of a token; None if it has no place."""
        raise NotImplementedError

    @cached_property
    def _remembered(self) -> Remembered[Row]:
        return Remembered(most=2048, largest=4096)

    def rows(self, look: Look) -> Picked:
        """Signed counts of tokens, scaled to length 1."""
        side, _, rest = self.path.partition(".")
        source = look.sources[side]
        fields = {"": source.values(rest)} if rest else source.fields()
        values = fields.get("")
        if isinstance(values, list) and len(fields) == 1 and len(values) <= _FEW:
            return Picked(stacked(self._each(values, look)), np.arange(source.count))
        if rest:
            entries, codes = self._entries(fields[""], "")
            return Picked(merged(*entries), codes)
        return Picked(self._together(fields, source.count), np.arange(source.count))

    def _each(self, values: list[object], look: Look) -> list[Row]:
        """The row of each value, made one by one or remembered: as `_entries` and `merged`."""
        if self.reads != {ACTION}:
            return [self._row(value) for value in values]
        contents = look.contents.get(self.path)
        if contents is None:
            contents = look.contents[self.path] = [content_of(value) for value in values]
        recall = self._remembered.made
        return [recall(*one, self._row) for one in zip(contents, values, strict=True)]

    def _row(self, value: object) -> Row:
        found, flag = read.tokens(value, self._digits)
        places = [self._place(token) for token in found]
        known = [place for place in places if place is not None]
        return merged_one(known, flag if len(known) == len(places) else UNKNOWN)

    def _together(self, fields: dict[str, Values], count: int) -> Sparse:
        """All fields of a table, each with its name in front."""
        every = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        flags = np.full(count, MISSING, np.uint8)
        strange = np.zeros(count, dtype=np.bool_)
        for name, values in fields.items():
            (row, coordinate, sign, marks), codes = self._entries(values, name)
            ends = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=marks.size))))
            widths = (ends[1:] - ends[:-1])[codes]
            first = np.cumsum(widths) - widths
            at = np.repeat(ends[codes] - first, widths) + np.arange(widths.sum())
            every.append((np.repeat(np.arange(count), widths), coordinate[at], sign[at]))
            flags[(marks[codes] & MISSING) == 0] = 0
            strange |= (marks[codes] & UNKNOWN) != 0
        flags[strange] = UNKNOWN
        row, coordinate, sign = (np.concatenate(columns) for columns in zip(*every, strict=True))
        return merged(row, coordinate, sign, flags)

    def _entries(self, values: Values, name: str) -> tuple[tuple[I64, I64, F64, Flags], I64]:
        """Row, coordinate and sign of each token of values that stand for all, and for which."""
        distinct, codes = read.factor(values, self._digits)
        flags = np.zeros(len(distinct), np.uint8)
        row, coordinate, sign = [], [], []
        for number, value in enumerate(distinct):
            found, flags[number] = read.tokens(value, self._digits, name)
            for token in found:
                place = self._place(token)
                if place is None:
                    flags[number] = UNKNOWN
                else:
                    row.append(number)
                    coordinate.append(place[0])
                    sign.append(place[1])
        entries = np.array(row, np.int64), np.array(coordinate, np.int64), np.array(sign, float)
        return (*entries, flags), codes


@dataclass(frozen=True, kw_only=True)
class Category(_Tokens):
    """One coordinate for each of a few known values."""

    kind = "category"

    values: tuple[str, ...]
    other: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        object.__setattr__(self, "values", texts("values", self.values))
        if not isinstance(self.other, bool):
            raise ParameterError("other", "must be true or false")
        super().__post_init__()

    def example(self, rng: np.random.Generator) -> dict[str, object]:
        """One of the values."""
        return {self.path: self.values[int(rng.integers(len(self.values)))]}

    @cached_property
    def _places(self) -> dict[str, tuple[int, float]]:
        return {value: (number, 1.0) for number, value in enumerate(self.values)}

    @property
    def size(self) -> int:
        """One for each value, and one for all others if asked for."""
        return len(self.values) + self.other

    def names(self) -> Iterator[str]:
        """The path and the value."""
        yield from (f"{self.path}={value}" for value in self.values)
        if self.other:
            yield f"{self.path}=(other)"

    def _place(self, token: str) -> tuple[int, float] | None:
        return self._places.get(token, (len(self.values), 1.0) if self.other else None)


@dataclass(frozen=True, kw_only=True)
class Hashed(_Tokens):
    """Tokens in buckets, with signs; both follow from the token and the path."""

    kind = "hashed"
    reads_whole = True

    buckets: int
    digits: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        fix = object.__setattr__
        fix(self, "buckets", checked_count("buckets", self.buckets, 1, MOST_BUCKETS))
        if self.digits is not None:
            fix(self, "digits", checked_count("digits", self.digits, 1, 53))
        super().__post_init__()

    def example(self, rng: np.random.Generator) -> dict[str, object]:
        """One of a few texts."""
        return {self.path: f"text {rng.integers(_TEXTS)}"}

    @cached_property
    def _key(self) -> bytes:
        return key_of("hashed", self.path)

    @property
    def size(self) -> int:
        """The number of buckets."""
        return self.buckets

    @property
    def _digits(self) -> int | None:
        return self.digits

    def names(self) -> Iterator[str]:
        """The path and the bucket."""
        yield from (f"{self.path}#{bucket}" for bucket in range(self.buckets))

    def _place(self, token: str) -> tuple[int, float] | None:
        word = word_of(self._key, token)
        return (word >> 1) % self.buckets, 1.0 if word & 1 else -1.0


@dataclass(frozen=True, kw_only=True)
class Projected(_OnePath):
    """An embedding in fewer dimensions, by a public random map with orthonormal columns."""

    kind = "projected"

    dim_in: int
    dim_out: int
    seed: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        fix = object.__setattr__
        fix(self, "dim_in", checked_count("dim_in", self.dim_in, 1, MOST_ENTRIES))
        fix(self, "dim_out", checked_count("dim_out", self.dim_out, 1, MOST_ENTRIES))
        fix(self, "seed", checked_seed(self.seed))
        if self.dim_out > self.dim_in:
            raise ParameterError("dim_out", "must not be larger than dim_in")
        checked_draws("dim_out", self.dim_in * self.dim_out)
        super().__post_init__()

    def example(self, rng: np.random.Generator) -> dict[str, object]:
        """A vector that points anywhere."""
        return {self.path: rng.standard_normal(self.dim_in).tolist()}

    @cached_property
    def _matrix(self) -> F64:
        """Orthonormal columns times sqrt(dim_in/dim_out), shape (dim_in, dim_out)."""
        drawn = standard_normals("projected", self.seed, (self.dim_in, self.dim_out))
        columns, triangle = np.linalg.qr(drawn)
        columns *= np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0)  # the one such factor
        return np.ascontiguousarray(columns) * math.sqrt(self.dim_in / self.dim_out)

    @property
    def size(self) -> int:
        """The number of dimensions that are left."""
        return self.dim_out

    def names(self) -> Iterator[str]:
        """The path and the dimension."""
        yield from (f"{self.path}~{number}" for number in range(self.dim_out))

    def rows(self, look: Look) -> Picked:
        """Embeddings of norm at most 1, mapped, and shortened again where needed."""
        found, flags = read.vectors(self._values(look), self.dim_in)
        cut = np.zeros(len(found), dtype=np.bool_)
        kernels.shorten_any(found, _ROUNDING, cut)
        flags[cut] |= CLIPPED
        mapped = np.zeros((len(found), self.dim_out))
        kernels.project(found, self._matrix, mapped)
        kernels.shorten(mapped)
        return Picked(dense(mapped, flags), np.arange(len(found)))


def checked_seed(seed: object) -> int:
    """A whole number that fits into 64 bits. It is public: it protects nobody."""
    return checked_count("seed", seed, 0, _LARGEST_SEED)


def checked_draws(parameter: str, count: int) -> None:
    """Refuse a random matrix that would take long to draw."""
    if count > _MOST_DRAWS:
        raise ParameterError(
            parameter, f"needs more than {_MOST_DRAWS} random numbers; make it less"
        )


def standard_normals(purpose: str, seed: int, shape: tuple[int, int]) -> F64:
    """Public random numbers, the same wherever they are drawn (but for a logarithm's last bit).

    Args:
        purpose: what they are for, so that equal seeds do not give equal numbers.
        seed: which ones.
        shape: how many.
    """
    count = shape[0] * shape[1]
    stream = hashlib.shake_256(key_of(purpose, str(seed))).digest(8 * count)
    words = np.frombuffer(stream, dtype=">u8") >> np.uint64(12)
    uniform = (words.astype(np.float64) + 0.5) / 2.0**52  # inside (0, 1)
    quantile = NormalDist().inv_cdf
    return np.array([quantile(one) for one in uniform.tolist()]).reshape(shape)


def texts(parameter: str, values: object) -> tuple[str, ...]:
    """Different ids or values, as texts."""
    found = []
    for value in checked_list(parameter, values, MOST_ENTRIES):
        spelled = read.text(value)
        if spelled is None:
            raise ParameterError(parameter, "must be strings, numbers, true or false")
        found.append(checked_text(parameter, spelled))
    if len(set(found)) < len(found):
        raise ParameterError(parameter, "has an entry twice; numbers are compared as text")
    return tuple(found)
