"""The largest eigenvalue of symmetric Gaussian noise, against exact laws and simulation.

Simulated quantiles are of seeded draws; each comparison fails a right bound with probability below
1e-6 (so all of them below 1e-5), and a bound 15% too small passes none.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.mechanism import _tails as tails

F64 = NDArray[np.float64]

DIMS = [1, 2, 3, 6, 7, 13]
COUNT = 40_000


def bound(dim: int, probability: float) -> float:
    return float(tails.largest_eigenvalue(dim, np.array([-math.log(probability)]))[0])


def largest_eigenvalues(dim: int) -> F64:
    """Of matrices with standard deviation 1 off the diagonal and sqrt(2) on it."""
    rng = np.random.default_rng([1, dim])
    squares = rng.standard_normal((COUNT, dim, dim))
    draws = (squares + squares.transpose(0, 2, 1)) / math.sqrt(2)
    return np.asarray(np.linalg.eigvalsh(draws)[:, -1])


@pytest.mark.parametrize("dim", DIMS)
def test_an_eigenvalue_is_above_its_bound_with_the_stated_probability(dim: int) -> None:
    found = largest_eigenvalues(dim)
    for probability in (0.2, 0.05, 0.01, 0.002):
        limit = stats.binom.isf(4e-8, COUNT, probability) / COUNT
        at = bound(dim, probability)
        assert (found > at).mean() <= limit
        assert (found > 0.85 * at).mean() > limit
        if probability <= 0.01:  # there is hardly ever a second one so far out: nearly exact
            assert (found > at).mean() > stats.binom.ppf(4e-8, COUNT, probability) / COUNT * 0.8


@pytest.mark.parametrize("probability", [0.3, 0.05, 1e-3, 1e-8, 1e-15, 1e-30])
def test_in_one_dimension_it_is_a_normal_quantile(probability: float) -> None:
    exact = math.sqrt(2) * stats.norm.isf(probability)
    assert exact <= bound(1, probability) <= exact + 2e-3


@pytest.mark.parametrize("probability", [0.05, 1e-3, 1e-8, 1e-15])
def test_in_two_dimensions_the_count_is_what_can_be_computed_by_hand(probability: float) -> None:
    # The eigenvalues of [[a, b], [b, c]] are N(0, 1) plus and minus a Rayleigh variable R with
    # scale sqrt(2) / sqrt(2) = 1: (a + c)/2 ~ N(0, 1), and the root of ((a - c)/2)^2 + b^2.
    y = bound(2, probability)
    grid = np.linspace(0.0, 40.0, 200_001)
    above = stats.norm.sf(y - grid) + stats.norm.sf(y + grid)
    expected = np.trapezoid(above * grid * np.exp(-(grid**2) / 2), grid)
    assert expected <= probability * (1 + 1e-5)
    assert expected >= probability * 0.98


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8, 21, 60])
def test_it_grows_with_certainty_and_is_never_above_concentration(dim: int) -> None:
    log_tails = np.concatenate([[0.0, 0.1], np.geomspace(0.5, 1000.0, 200)])
    found = tails.largest_eigenvalue(dim, log_tails)
    assert found.shape == log_tails.shape
    assert (np.diff(found) >= 0).all()
    assert (found <= 2 * math.sqrt(dim) + 2 * np.sqrt(log_tails)).all()
    assert np.isfinite(found).all()


def test_it_grows_with_the_dimension() -> None:
    found = [bound(dim, 1e-6) for dim in range(1, 30)]
    assert (np.diff(found) > 0).all()


def test_at_five_dimensions_it_saves_a_quarter() -> None:
    found = bound(5, math.exp(-23))
    assert found == pytest.approx(10.7, abs=0.05)
    assert 2 * math.sqrt(5) + 2 * math.sqrt(23) == pytest.approx(14.1, abs=0.05)


def test_in_enormous_dimensions_concentration_is_used() -> None:
    log_tails = np.array([1.0, 20.0])
    expected = 2 * math.sqrt(1000) + 2 * np.sqrt(log_tails)
    np.testing.assert_allclose(tails.largest_eigenvalue(1000, log_tails), expected)
