"""Bernoulli divergences, with and without privacy, beside their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from discreet.kernels import _divergence as divergence

EXAMPLES = settings(deadline=None, derandomize=True)
means = st.floats(0, 1)
inner = st.floats(0.001, 0.999)
levels = st.floats(1e-4, 20)
epsilons = st.floats(1e-3, 50)


def bernoulli_kl(x: float, y: float) -> float:
    return float(rel_entr(x, y) + rel_entr(1 - x, 1 - y))


def by_definition(x: float, y: float, epsilon: float) -> float:
    """The smallest value over all points between x and y, by search; it is convex."""

    def cost(z: float) -> float:
        return epsilon * abs(z - x) + bernoulli_kl(z, y)

    found = minimize_scalar(cost, bounds=(x, y), method="bounded", options={"xatol": 1e-12})
    return min(cost(x), cost(y), float(found.fun))


@EXAMPLES
@given(x=means, y=inner)
def test_kl_is_the_relative_entropy(x: float, y: float) -> None:
    assert math.isclose(divergence.kl(x, y), bernoulli_kl(x, y), rel_tol=1e-9, abs_tol=1e-12)


def test_kl_at_the_ends() -> None:
    assert divergence.kl(0.0, 0.0) == divergence.kl(1.0, 1.0) == 0.0
    assert divergence.kl(0.5, 1.0) == divergence.kl(0.5, 0.0) == math.inf
    assert math.isclose(divergence.kl(0.0, 0.5), math.log(2))


@EXAMPLES
@given(x=means, level=levels)
def test_an_upper_bound_is_where_the_divergence_reaches_its_level(x: float, level: float) -> None:
    y = divergence.kl_upper(x, level)
    assert x <= y <= 1.0
    if y < 1 - 1e-6:
        assert math.isclose(divergence.kl(x, y), level, rel_tol=1e-6)


@EXAMPLES
@given(x=inner, y=inner, epsilon=epsilons)
def test_the_private_divergence_is_the_smallest_sum_of_both_costs(
    x: float, y: float, epsilon: float
) -> None:
    x, y = min(x, y), max(x, y)
    expected = by_definition(x, y, epsilon)
    found = divergence.private_divergence(x, y, epsilon)
    assert math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9)


@EXAMPLES
@given(x=means, level=levels, epsilon=epsilons)
def test_a_private_upper_bound_is_where_the_private_divergence_reaches_its_level(
    x: float, level: float, epsilon: float
) -> None:
    y = divergence.private_upper(x, level, epsilon)
    assert x <= y <= 1.0
    assert y >= divergence.kl_upper(x, level) - 1e-9  # noise makes an arm harder to rule out
    if y < 1 - 1e-6:
        found = divergence.private_divergence(x, y, epsilon)
        assert math.isclose(found, level, rel_tol=1e-6)


@pytest.mark.parametrize("epsilon", [math.inf, 1e12])
def test_without_privacy_the_divergence_is_kl(epsilon: float) -> None:
    for x, y in [(0.0, 0.3), (0.2, 0.9), (0.5, 0.5)]:
        assert math.isclose(divergence.private_divergence(x, y, epsilon), divergence.kl(x, y))
        assert math.isclose(divergence.private_upper(x, 0.7, epsilon), divergence.kl_upper(x, 0.7))


def test_under_strong_privacy_the_divergence_is_epsilon_times_the_distance() -> None:
    found = divergence.private_divergence(0.3, 0.6, 1e-5)
    assert math.isclose(found, 0.3e-5, rel_tol=1e-4)
    assert math.isclose(divergence.private_divergence(0.3, 1.0, 0.5), 0.35)


def test_a_mean_above_the_other_has_no_divergence_from_it() -> None:
    assert divergence.private_divergence(0.6, 0.5, 1.0) == 0.0
    np.testing.assert_array_equal([divergence.clip(x) for x in (-2.0, 0.25, 3.0)], [0, 0.25, 1])
