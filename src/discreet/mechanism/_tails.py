"""How large the largest eigenvalue of a symmetric Gaussian matrix may be.

The matrix is the noise on a Gram matrix: standard deviation 1 off the diagonal, sqrt(2) on it (the
Gaussian orthogonal ensemble). The probability that any eigenvalue is above y is at most the
expected number of eigenvalues above y, the integral of their density, which is known in closed form
for every dimension (Mehta, Random Matrices, section 7.2). Far out in the tail there is hardly ever
more than one, so the bound is nearly exact.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_STEP = 1e-3
_FURTHEST = 36.0  # beyond this exp(-x^2 / 2) is lost to double precision
_BEYOND = 4.0  # what lies this far beyond a place adds less than the safety margin
_LARGEST_DIM = 400
_SAFETY = 1 + 1e-4  # far above the error of the trapezoidal rule at this step


def largest_eigenvalue(dim: int, log_tail: F64) -> F64:
    """What the largest eigenvalue passes with probability at most e^(-log_tail), rounded up.

    Where the density is out of reach, 2 sqrt(d) + 2 sqrt(log_tail), by concentration: the
    eigenvalue has mean at most 2 sqrt(d) and is sqrt(2)-Lipschitz in the standard normals.
    """
    concentration = 2 * math.sqrt(dim) + 2 * np.sqrt(log_tail)
    if dim > _LARGEST_DIM:
        return np.asarray(concentration)
    places, logs = _log_expected_count(dim)
    index = np.searchsorted(-logs, log_tail)  # the first place whose tail is small enough
    within = index < len(places)
    found = places[np.minimum(index, len(places) - 1)]
    return np.where(within, np.minimum(found, concentration), concentration)


@lru_cache(maxsize=32)
def _log_expected_count(dim: int) -> tuple[F64, F64]:
    """Places y, ascending, and the logarithm of the expected number of eigenvalues above each."""
    # In units of sqrt(2) the weight is exp(-x^2), the one of the Hermite functions.
    edge = math.sqrt(2 * dim)
    x = np.arange(0.0, min(edge + 16.0, _FURTHEST), _STEP)
    functions = _hermite_functions(dim, x)
    density = (functions[:dim] ** 2).sum(axis=0)
    # The integral of sign(x - t)/2 times the d-th function, from its total and its part above x.
    half_signed = _total(dim) / 2 - _above(functions[dim], x)
    density += math.sqrt(dim / 2) * functions[dim - 1] * half_signed
    if dim % 2 == 1:
        density += functions[dim - 1] / _total(dim - 1)
    count = _above(density, x) * _SAFETY
    reached = x < x[-1] - _BEYOND
    return math.sqrt(2) * x[reached], np.log(count[reached])


def _hermite_functions(degree: int, x: F64) -> F64:
    """Orthonormal Hermite functions 0 ... degree at x, shape (degree + 1, len(x))."""
    found = np.empty((degree + 1, len(x)))
    found[0] = math.pi**-0.25 * np.exp(-(x**2) / 2)
    found[1] = math.sqrt(2) * x * found[0]
    for k in range(1, degree):
        found[k + 1] = math.sqrt(2 / (k + 1)) * x * found[k] - math.sqrt(k / (k + 1)) * found[k - 1]
    return found


def _above(values: F64, x: F64) -> F64:
    """The integral from each x to the end of the grid."""
    between = (values[1:] + values[:-1]) / 2 * np.diff(x)
    return np.append(np.cumsum(between[::-1])[::-1], 0.0)


@lru_cache(maxsize=64)
def _total(degree: int) -> float:
    """The integral of a Hermite function over the line; 0 for an odd one."""
    if degree % 2 == 1:
        return 0.0
    reach = min(math.sqrt(2 * degree + 1) + 12.0, _FURTHEST)
    x = np.arange(-reach, reach, _STEP)
    return float(np.trapezoid(_hermite_functions(max(1, degree), x)[degree], x))
