"""Where standard random numbers for noise come from."""

import os
import threading
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtri

from discreet.kernels import _discrete_gaussian as discrete_gaussian
from discreet.kernels import _random as random

__all__ = ["NoiseSource", "SeededNoise", "SystemNoise"]

_F64 = NDArray[np.float64]
_U64 = NDArray[np.uint64]

_HALF = 2.0**-64


class NoiseSource(Protocol):
    """Independent standard random numbers, and whether an outsider could reproduce them."""

    @property
    def secret(self) -> bool:
        """True only if nobody can predict or repeat the numbers."""

    def normals(self, count: int) -> _F64:
        """Standard normals, shape (count,).

        Args:
            count: how many.

        Returns:
            Numbers that were not handed out before, in an array of the caller's own.
        """

    def chi_squares(self, dofs: _F64) -> _F64:
        """One chi-square for each entry of ``dofs``.

        Args:
            dofs: degrees of freedom, above 0, shape (n,).

        Returns:
            Chi-squares, shape (n,).
        """

    def words(self, count: int) -> _U64:
        """Uniform 64-bit words, shape (count,), an array of the caller's own.

        Args:
            count: how many.

        Returns:
            Words that were not handed out before.
        """


class SystemNoise:
    """Noise from the operating system's cryptographic generator. It has no seed to give.

    Each number is the inverse distribution function at 63 random bits of tail probability, with
    one more bit to say which tail. Normals are made a few hundred at a time, and each is handed
    out once. Words are the generator's own, and none is kept or handed out twice.
    """

    secret = True
    _STOCK = 512

    def __init__(self) -> None:
        """Start with nothing in stock."""
        self._stock = np.empty(0)
        self._lock = threading.Lock()

    def normals(self, count: int) -> _F64:
        """Standard normals, shape (count,)."""
        with self._lock:
            if count > self._stock.size:
                self._stock = self._draw_normals(max(count, self._STOCK))
            taken = self._stock[:count].copy()
            self._stock[:count] = 0.0  # what is handed out is nowhere else
            self._stock = self._stock[count:]
        return taken

    def _draw_normals(self, count: int) -> _F64:
        tail, upper = self._tails(count)
        values: _F64 = ndtri(tail)
        np.negative(values, out=values, where=upper)
        return values

    def chi_squares(self, dofs: _F64) -> _F64:
        """One chi-square for each entry of ``dofs``."""
        tail, upper = self._tails(dofs.size)
        shape = 0.5 * dofs
        values: _F64 = 2.0 * np.where(upper, gammainccinv(shape, tail), gammaincinv(shape, tail))
        return values

    def words(self, count: int) -> _U64:
        """Uniform 64-bit words, shape (count,), an array of the caller's own."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64).copy()

    def _tails(self, count: int) -> tuple[_F64, NDArray[np.bool_]]:
        words = self.words(count)
        tail = ((words >> np.uint64(1)) + np.float64(0.5)) * _HALF
        return tail, (words & np.uint64(1)).astype(np.bool_)


class SeededNoise:
    """Reproducible noise for tests and simulations. A learner that uses it promises nothing."""

    secret = False

    def __init__(self, sequence: np.random.SeedSequence) -> None:
        """Start the simulator's generator from a seed sequence."""
        self._state = random.seed_state(sequence)

    def normals(self, count: int) -> _F64:
        """Standard normals, shape (count,)."""
        values = np.empty(count)
        random.fill_normals(self._state, values)
        return values

    def chi_squares(self, dofs: _F64) -> _F64:
        """One chi-square for each entry of ``dofs``."""
        values = np.empty(dofs.size)
        random.fill_chi_squares(self._state, dofs, values)
        return values

    def words(self, count: int) -> _U64:
        """Uniform 64-bit words, shape (count,), an array of the caller's own."""
        values = np.empty(count, dtype=np.uint64)
        discrete_gaussian.fill_words(self._state, values)
        return values
