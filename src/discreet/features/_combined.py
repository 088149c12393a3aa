"""Parts that are made of other parts: products, and waves."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.features._parts import (
    MOST_BUCKETS,
    MOST_ENTRIES,
    checked_draws,
    checked_seed,
    standard_normals,
)
from discreet.features._rows import (
    F64,
    Look,
    Part,
    Picked,
    Sparse,
    checked_count,
    checked_list,
    dense,
    key_of,
    word_of,
)
from discreet.features._values import MISSING, UNKNOWN
from discreet.kernels import _features as kernels

_MOST_PRODUCTS = 2**62  # coordinates are numbered in 64 bits


@dataclass(frozen=True, kw_only=True)
class _Combined(Part):
    """A part that reads what its inputs read."""

    @cached_property
    def reads(self) -> frozenset[str]:
        """All that the inputs read."""
        return frozenset[str]().union(*(one.reads for one in self.inputs))


@dataclass(frozen=True, kw_only=True)
class Cross(_Combined):
    """All products of a coordinate of one part with one of another, perhaps in buckets."""

    kind = "cross"

    a: Part
    b: Part
    buckets: int | None = None

    def __post_init__(self) -> None:
        """Check the number of buckets."""
        if self.buckets is not None:
            buckets = checked_count("buckets", self.buckets, 1, MOST_BUCKETS)
            object.__setattr__(self, "buckets", buckets)
        super().__post_init__()
        if self.a.size * self.b.size > _MOST_PRODUCTS:
            raise ParameterError(
                "buckets", "are too many in the parts that are crossed; give fewer"
            )

    @property
    def inputs(self) -> tuple[Part, ...]:
        """The two parts that are crossed."""
        return (self.a, self.b)

    @property
    def size(self) -> int:
        """The number of all pairs, or of buckets."""
        return self.a.size * self.b.size if self.buckets is None else self.buckets

    @property
    def label(self) -> str:
        """The labels of both parts."""
        return f"{self.a.label}*{self.b.label}"

    @cached_property
    def _key(self) -> np.uint64:
        return np.uint64(word_of(key_of("cross", self.label), ""))

    def names(self) -> Iterator[str]:
        """The names of both coordinates, or the number of the bucket."""
        if self.buckets is None:
            others = list(self.b.names())
            yield from (f"{one}*{other}" for one in self.a.names() for other in others)
        else:
            yield from (f"{self.label}#{bucket}" for bucket in range(self.buckets))

    def rows(self, look: Look) -> Picked:
        """The outer product of both rows; in buckets, shortened to length 1 if longer."""
        a, b = self.a.made(look), self.b.made(look)
        flags = a.flags | b.flags
        both = *a.rows[:3], a.pick, *b.rows[:3], b.pick, self.b.size
        if self.buckets is None:
            rows = Sparse(*kernels.products(*both), flags)
        else:
            added = np.zeros((flags.size, self.buckets))
            kernels.sketches(*both, self._key, added)
            rows = dense(added, flags)
        return Picked(rows, np.arange(flags.size))


@dataclass(frozen=True, kw_only=True)
class RandomFourier(_Combined):
    """Waves of public random frequencies over the inputs."""

    kind = "random_fourier"

    of: tuple[Part, ...]
    count: int
    scale: float
    seed: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        fix = object.__setattr__
        given = (self.of,) if isinstance(self.of, Part) else self.of
        fix(self, "of", checked_list("of", given, MOST_ENTRIES))
        fix(self, "count", checked_count("count", self.count, 1, MOST_ENTRIES))
        scale = checks.within("scale", checks.positive("scale", self.scale), 1e-6, 1e6)
        fix(self, "scale", scale)
        fix(self, "seed", checked_seed(self.seed))
        super().__post_init__()
        checked_draws("count", self.count * sum(one.size for one in self.of))

    @property
    def inputs(self) -> tuple[Part, ...]:
        """The parts whose coordinates are the points."""
        return self.of

    @property
    def size(self) -> int:
        """A cosine and a sine for each frequency."""
        return 2 * self.count

    @property
    def label(self) -> str:
        """The kind, with the labels of the inputs."""
        return f"fourier({','.join(one.label for one in self.of)})"

    def names(self) -> Iterator[str]:
        """The name of each coordinate: the number of its wave."""
        for wave in ("cos", "sin"):
            yield from (f"{self.label}:{wave}{number}" for number in range(self.count))

    @cached_property
    def _frequencies(self) -> F64:
        shape = (sum(one.size for one in self.of), self.count)
        return standard_normals("fourier", self.seed, shape) / self.scale

    def rows(self, look: Look) -> Picked:
        """Cosines and sines; zeros where an input is missing or unknown."""
        frequencies, count = self._frequencies, look.count
        points = np.zeros((count, len(frequencies)))
        flags = np.zeros(count, np.uint8)
        offset = 0
        for one in self.of:
            made = one.made(look)
            offsets = np.full(count, offset)
            kernels.scatter(*made.rows[:3], made.pick, 1.0, offsets, points)
            flags |= made.flags
            offset += one.size
        found = np.zeros((count, self.size))
        kernels.waves(*dense(points, flags)[:3], frequencies, found)
        found[(flags & (MISSING | UNKNOWN)) != 0] = 0.0
        return Picked(dense(found, flags), np.arange(count))
