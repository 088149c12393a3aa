"""Discrete Gaussian noise: what is promised is never less than what brute force finds."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet import Privacy, accounting


def pmf(std: int, reach: int = 60) -> np.ndarray:
    values = np.exp(-0.5 * (np.arange(-reach * std, reach * std + 1) / std) ** 2)
    return values / values.sum()


def brute_force_delta(std: int, shift: int, epsilon: float) -> float:
    here = pmf(std)
    there = np.zeros_like(here)
    there[shift:] = here[:-shift]
    return float(np.maximum(0.0, here - math.exp(epsilon) * there).sum())


@pytest.mark.parametrize(
    ("std", "shift", "epsilon"),
    [
        (std, shift, epsilon)
        for std in (1, 2, 5, 40)
        for shift in (1, 2)
        for epsilon in (0.05, 0.5, 1.0, 3.0)
        if epsilon <= 6 * shift / std  # beyond that delta is too small to compare with
    ],
)
def test_no_more_is_promised_than_brute_force_finds(std: int, shift: int, epsilon: float) -> None:
    true = brute_force_delta(std, shift, epsilon)
    assert 1e-12 < true < 1
    less = Privacy(epsilon=epsilon, delta=true * (1 - 1e-6))
    assert accounting.discrete_gaussian_mu(less, draws=1, std=std) < shift / std


def test_brute_force_agrees_with_an_independent_accountant() -> None:
    found = pld.from_discrete_gaussian_mechanism(5.0, sensitivity=1).get_delta_for_epsilon(0.5)
    assert found == pytest.approx(brute_force_delta(5, 1, 0.5), rel=1e-3)


def test_two_draws_together_are_covered_as_well() -> None:
    std, epsilon = 3, 0.7
    here = np.multiply.outer(pmf(std, 12), pmf(std, 12))
    there = np.roll(here, (1, 2), axis=(0, 1))
    true = float(np.maximum(0.0, here - math.exp(epsilon) * there).sum())
    less = Privacy(epsilon=epsilon, delta=true * (1 - 1e-6))
    assert accounting.discrete_gaussian_mu(less, draws=2, std=std) < math.hypot(1, 2) / std


@pytest.mark.parametrize("std", [1, 2, 7])
def test_discrete_noise_is_within_the_trace_of_rounded_noise(std: int) -> None:
    """The inequality that carries the Gaussian guarantee over, at 40 digits."""
    with mpmath.workdps(40):
        constant = mpmath.nsum(
            lambda k: mpmath.exp(-(k**2) / (2 * std**2)), [-mpmath.inf, mpmath.inf]
        )
        for k in range(8 * std):
            discrete = mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * std**2)) / constant
            edges = ((k - mpmath.mpf(1) / 2) / std, (k + mpmath.mpf(1) / 2) / std)
            rounded = mpmath.ncdf(edges[1]) - mpmath.ncdf(edges[0])
            assert discrete <= mpmath.exp(mpmath.mpf(1) / (24 * std**2)) * rounded


def test_on_a_fine_grid_it_is_worth_as_much_as_continuous_noise() -> None:
    for delta in (0.1, 1e-6, 1e-9):
        target = Privacy(epsilon=1, delta=delta)
        fine = accounting.discrete_gaussian_mu(target, draws=300_000, std=1e12)
        assert 1 - 1e-6 < fine / accounting.gaussian_mu(target) <= 1


def test_on_a_coarse_grid_zcdp_is_what_is_left() -> None:
    target = Privacy(epsilon=1, delta=1e-6)
    coarse = accounting.discrete_gaussian_mu(target, draws=10**9, std=2.0)
    assert accounting.zcdp_delta(zcdp=coarse**2 / 2, epsilon=1) <= 1e-6
    assert coarse == pytest.approx(math.sqrt(2 * accounting.zcdp_parameter(target)), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 800.0, 1e12])
def test_extreme_targets_have_an_answer(epsilon: float) -> None:
    target = Privacy(epsilon=epsilon, delta=1e-9)
    found = accounting.discrete_gaussian_mu(target, draws=1000, std=1e9)
    assert 0 < found <= accounting.gaussian_mu(target)
