"""zCDP beside 50 digits, Google's Renyi accountant, and the exact Gaussian curve."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet import accounting
from discreet.errors import ParameterError
from discreet.privacy import Privacy


def exact_delta(zcdp: float, epsilon: float) -> mpmath.mpf:
    """Proposition 12 with 80 digits, minimised by bisection of its slope in ln(a - 1)."""
    with mpmath.workdps(80):
        z, eps = mpmath.mpf(zcdp), mpmath.mpf(epsilon)
        low, high = mpmath.mpf(-2000), mpmath.mpf(400)
        for _ in range(250):
            middle = (low + high) / 2
            b = mpmath.exp(middle)
            slope = (2 * b + 1) * z - eps - mpmath.log1p(1 / b)
            low, high = (low, middle) if slope > 0 else (middle, high)
        return mpmath.exp(b * ((1 + b) * z - eps)) * b**b / (1 + b) ** (1 + b)


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


@settings(deadline=None, max_examples=60)
@given(zcdp=powers(1e-20, 1e4), epsilon=powers(1e-6, 1e5))
@example(zcdp=1e4, epsilon=1.0)
@example(zcdp=1.0, epsilon=1e-6)
def test_the_delta_is_never_below_80_digits_and_hardly_above(zcdp: float, epsilon: float) -> None:
    exact, found = exact_delta(zcdp, epsilon), accounting.zcdp_delta(zcdp=zcdp, epsilon=epsilon)
    assert found <= 1.0
    assert exact * (1 - mpmath.mpf(10) ** -40) <= found
    if exact > 1e-300:
        assert found <= exact * (1 + 1e-10)


@pytest.mark.parametrize("order", np.geomspace(1e-3, 50, 25))
def test_no_order_gives_less(order: float) -> None:
    a, z, epsilon = 1 + order, 0.1, 1.0
    value = math.exp((a - 1) * (a * z - epsilon)) / (a - 1) * (1 - 1 / a) ** a
    assert accounting.zcdp_delta(zcdp=z, epsilon=epsilon) <= value * (1 + 1e-9)


@settings(deadline=None, max_examples=60)
@given(epsilon=powers(1.01e-6, 0.99e12), delta=powers(1.01e-100, 0.999))
def test_the_budget_never_exceeds_its_target(epsilon: float, delta: float) -> None:
    zcdp = accounting.zcdp_parameter(Privacy(epsilon=epsilon, delta=delta))
    assert exact_delta(zcdp, epsilon) <= delta
    if epsilon < 1e5 and delta < 0.9:
        assert exact_delta(zcdp * (1 + 1e-9), epsilon) > delta


@settings(deadline=None, max_examples=60)
@given(zcdp=powers(1e-12, 1e4), delta=powers(1e-90, 0.9))
def test_the_epsilon_never_understates(zcdp: float, delta: float) -> None:
    epsilon = accounting.zcdp_epsilon(zcdp=zcdp, delta=delta)
    assert exact_delta(zcdp, epsilon) <= delta
    assert epsilon <= zcdp + 2 * math.sqrt(zcdp * math.log(1 / delta))  # the textbook conversion


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("zcdp", [1e-3, 0.05, 1.0])
def test_google_has_the_same_epsilon(zcdp: float, delta: float) -> None:
    mine = accounting.zcdp_epsilon(zcdp=zcdp, delta=delta)
    orders = np.geomspace(1.02, 1e5, 20_000)
    theirs, _ = rdp.compute_epsilon(list(orders), list(orders * zcdp), delta)
    assert mine <= theirs * (1 + 1e-12)
    assert mine == pytest.approx(theirs, rel=1e-5)
    accountant = rdp.RdpAccountant()  # at its own few orders
    accountant.compose(dp_accounting.ZCDpEvent(zcdp))
    assert mine <= accountant.get_epsilon(delta) * (1 + 1e-12)
    assert mine == pytest.approx(accountant.get_epsilon(delta), rel=0.05)


@settings(deadline=None, max_examples=60)
@given(mu=powers(1e-4, 30.0), epsilon=powers(1e-3, 1e3))
def test_the_exact_gaussian_curve_lies_below(mu: float, epsilon: float) -> None:
    zcdp = accounting.zcdp_of_gdp(mu)
    assert zcdp >= mu**2 / 2
    gaussian = accounting.gaussian_delta(epsilon=epsilon, mu=mu)
    assert gaussian <= accounting.zcdp_delta(zcdp=zcdp, epsilon=epsilon) * (1 + 1e-10)


def test_the_delta_is_monotone() -> None:
    grid = np.geomspace(1e-3, 10, 60)
    by_zcdp = [accounting.zcdp_delta(zcdp=z, epsilon=1.0) for z in grid]
    by_epsilon = [accounting.zcdp_delta(zcdp=0.1, epsilon=e) for e in grid]
    assert (np.diff(by_zcdp) > 0).all()
    assert (np.diff(by_epsilon) < 0).all()


def test_the_ends_are_computed() -> None:
    assert accounting.zcdp_delta(zcdp=1e50, epsilon=1.0) == 1.0
    assert accounting.zcdp_delta(zcdp=1e-50, epsilon=1.0) == 5e-324
    assert accounting.zcdp_epsilon(zcdp=1e-50, delta=1e-3) == 0.0
    with pytest.raises(ParameterError):
        accounting.zcdp_delta(zcdp=0.0, epsilon=1.0)
