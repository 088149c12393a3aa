"""Means and co-moments of columns over a stream of rows, and sums for each person.

Blocks of rows are centred on their own mean and put together by the formulas of Chan, Golub and
LeVeque (1983), so that nothing cancels however long the stream is. Knows nothing of policies.
"""

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ShapeError
from discreet.evaluation._log import Subjects

F64 = NDArray[np.float64]

_BLOCK = 8192  # rows that are worked on at a time: they stay in the processor's cache


class Moments:
    """Means of C columns and their centred sums of products. Memory: C^2 numbers.

    Attributes:
        rows: how many rows there were.
        means: shape (C,).
        products: sums of products of what is left after taking off the means, shape (C, C).
    """

    def __init__(self, columns: int) -> None:
        """Start without a row."""
        self.rows = 0
        self.means = np.zeros(columns)
        self.products = np.zeros((columns, columns))

    def add(self, columns: F64) -> None:
        """Add rows, as columns of shape (C, n)."""
        for start in range(0, columns.shape[1], _BLOCK):
            block = columns[:, start : start + _BLOCK]
            means = block.mean(axis=1)
            centred = block - means[:, None]
            self._join(block.shape[1], means, centred @ centred.T)

    def merge(self, other: "Moments") -> None:
        """Add the rows of another stream."""
        self._join(other.rows, other.means, other.products)

    def _join(self, rows: int, means: F64, products: F64) -> None:
        if rows == 0:
            return
        total = self.rows + rows
        apart = means - self.means
        self.products = self.products + products
        self.products += np.outer(apart, apart) * (self.rows * (rows / total))
        self.means = self.means + apart * (rows / total)
        self.rows = total

    def covariance(self) -> F64:
        """The covariance of the means, for independent rows, shape (C, C). Two rows at least."""
        return self.products / (self.rows - 1) / self.rows


class PersonSums:
    """Sums of C columns for each person. Memory: C + 1 numbers a person."""

    def __init__(self, columns: int) -> None:
        """Start without a person."""
        self._places: dict[int | str, int] = {}
        self._sums = np.zeros((0, columns + 1))  # the last column counts rows

    @property
    def people(self) -> int:
        """How many people there were."""
        return len(self._places)

    @property
    def sums(self) -> F64:
        """A person's sums a row, and last the number of rows, shape (people, C + 1)."""
        return self._sums[: self.people]

    @property
    def names(self) -> list[int | str]:
        """The names of all people, in the order of `sums`."""
        return list(self._places)

    def fitting(self, names: list[int | str]) -> None:
        """Refuse names of another kind: 7 and '7' may be one person or two."""
        known = next(iter(self._places), None)
        if names and known is not None and isinstance(known, str) != isinstance(names[0], str):
            raise ShapeError("subjects", "are texts here and numbers there; give one kind only")

    def add(self, columns: F64, subjects: Subjects) -> None:
        """Add rows, as columns of shape (C, n)."""
        count = len(subjects.names)
        rows = [np.bincount(subjects.places, column, count) for column in columns]
        self._join(subjects.names, np.array([*rows, np.bincount(subjects.places, None, count)]).T)

    def merge(self, other: "PersonSums") -> None:
        """Add another stream's rows; a person in both is one person."""
        self._join(other.names, other.sums)

    def _join(self, names: list[int | str], sums: F64) -> None:
        places = [self._places.setdefault(name, len(self._places)) for name in names]
        if self.people > len(self._sums):
            grown = np.zeros((max(self.people, 2 * len(self._sums)), self._sums.shape[1]))
            grown[: len(self._sums)] = self._sums
            self._sums = grown
        self._sums[places] += sums  # no name comes twice

    def covariance(self, means: F64, rows: int) -> F64:
        """The covariance of the means, for independent people, shape (C, C). Two at least.

        With S_g a person's sums and n_g rows, m the means over n rows and G people:
        G/(G - 1) sum_g (S_g - n_g m)(S_g - n_g m)^T / n^2.
        """
        left = self.sums[:, :-1] - self.sums[:, -1:] * means
        return np.asarray(left.T @ left * (self.people / (self.people - 1)) / rows**2)
