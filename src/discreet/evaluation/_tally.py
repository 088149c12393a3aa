"""What the exact values of a log are computed from: moments of columns, and the overlap's figures.

Secret: these are sums of people's rewards as they are. Columns: w s, w, and where they are asked
for the doubly robust term, and which rounds a replay accepted; with s the scaled reward and w the
clipped weight.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.evaluation._log import Chunk, Log
from discreet.evaluation._moments import Moments, PersonSums

F64 = NDArray[np.float64]


class Shape(NamedTuple):
    """Which optional columns there are. All chunks of a log are of one shape."""

    predictions: bool
    accepted: bool
    subjects: bool


class Tally:
    """Sums over a stream of chunks.

    Attributes:
        log: what is stated.
        shape: which columns there are; None before the first chunk.
        moments: means and co-moments of the columns.
        people: sums for each person, if subjects are given.
        largest: the largest weight before clipping, for each policy.
        smallest: the smallest propensity where a policy might have acted so.
        clipped: how many weights were clipped.
        zeros: how many propensities are 0 where a policy might have acted so.
    """

    def __init__(self, log: Log) -> None:
        """Start without a row."""
        count = len(log.policies)
        self.log = log
        self.shape: Shape | None = None
        self.moments = Moments(0)
        self.people: PersonSums | None = None
        self.largest, self.smallest = np.zeros(count), np.full(count, math.inf)
        self.clipped, self.zeros = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def add(self, chunk: Chunk) -> None:
        """Add a chunk."""
        shape = Shape(
            *(part is not None for part in (chunk.direct, chunk.accepted, chunk.subjects))
        )
        self._agree(shape, [] if chunk.subjects is None else chunk.subjects.names)
        columns = self._columns(chunk)
        self._start(shape)
        self.moments.add(columns)
        if self.people is not None and chunk.subjects is not None:
            self.people.add(columns, chunk.subjects)
        if not chunk.rewards.size:
            return
        weights = chunk.weights
        self.largest = np.maximum(self.largest, weights.max(axis=1))
        logged = np.where(weights > 0.0, chunk.propensities, math.inf)
        self.smallest = np.minimum(self.smallest, logged.min(axis=1))
        self.zeros = self.zeros + (logged == 0.0).sum(axis=1)
        if self.log.clip is not None:
            self.clipped = self.clipped + (weights > self.log.clip).sum(axis=1)

    def merge(self, other: "Tally") -> None:
        """Add all chunks of another one, which stays as it is."""
        if other.shape is None:
            return
        self._agree(other.shape, [] if other.people is None else other.people.names)
        self._start(other.shape)
        self.moments.merge(other.moments)
        if self.people is not None and other.people is not None:
            self.people.merge(other.people)
        self.largest = np.maximum(self.largest, other.largest)
        self.smallest = np.minimum(self.smallest, other.smallest)
        self.clipped, self.zeros = self.clipped + other.clipped, self.zeros + other.zeros

    @property
    def units(self) -> int:
        """How many independent units there are: rows, or people."""
        return self.moments.rows if self.people is None else self.people.people

    def covariance(self) -> F64 | None:
        """The covariance of the columns' means; None if there are too few rows or people."""
        if self.units <= 1:
            return None
        if self.people is not None:
            return self.people.covariance(self.moments.means, self.moments.rows)
        return self.moments.covariance()

    def column(self, policy: str, kind: int) -> int:
        """Where a policy's column of some kind is: 0 for w s, 1 for w, then what else there is."""
        return kind * len(self.log.policies) + self.log.policies.index(policy)

    def _agree(self, shape: Shape, names: list[int | str]) -> None:
        if self.shape is None:
            return
        for name, was, now in zip(Shape._fields, self.shape, shape, strict=True):
            if was != now:
                raise ParameterError(name, "were given with some chunks only; give all, or none")
        if self.people is not None:
            self.people.fitting(names)

    def _start(self, shape: Shape) -> None:
        """Make room for the columns, with the first chunk."""
        if self.shape is None:
            columns = (2 + shape.predictions + 2 * shape.accepted) * len(self.log.policies)
            self.shape, self.moments = shape, Moments(columns)
            self.people = PersonSums(columns) if shape.subjects else None

    def _columns(self, chunk: Chunk) -> F64:
        """The columns, shape (C, n): w s, w, then the doubly robust term, then a s and a."""
        weights = self.log.clipped(chunk.weights)
        parts = [weights * chunk.rewards, weights]
        if chunk.direct is not None and chunk.predicted is not None:
            parts.append(chunk.direct + weights * (chunk.rewards - chunk.predicted))
        if chunk.accepted is not None:
            parts += [chunk.accepted * chunk.rewards, chunk.accepted]
        return np.concatenate(parts)
