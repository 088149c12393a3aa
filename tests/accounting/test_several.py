"""Several mechanisms together: roots of sums of squares, traces, and two rows instead of one."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Privacy, accounting


@settings(deadline=None)
@given(mus=st.lists(st.floats(1e-20, 1e20), min_size=1, max_size=20))
def test_the_composed_mu_is_never_below_50_digits_and_hardly_above(mus: list[float]) -> None:
    with mpmath.workdps(50):
        exact = mpmath.sqrt(mpmath.fsum(mpmath.mpf(mu) ** 2 for mu in mus))
        found = accounting.composed_mu(mus)
        assert exact <= found <= exact * (1 + 2e-14)


def test_nothing_composes_to_nothing() -> None:
    assert accounting.composed_mu([]) == 0.0


@settings(deadline=None, max_examples=100)
@given(
    epsilon=st.floats(0.01, 30),
    delta=st.floats(-20, -0.5).map(lambda power: 10**power),
    share=st.floats(-20, -1).map(lambda power: 10**power),
)
def test_the_mu_with_a_trace_keeps_the_target_by_the_formula_at_50_digits(
    epsilon: float, delta: float, share: float
) -> None:
    trace = share * delta * math.exp(-epsilon)
    mu = accounting.traced_mu(Privacy(epsilon=epsilon, delta=delta), trace=trace)
    assert 0 < mu <= accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta))
    with mpmath.workdps(50):
        left, distance = mpmath.mpf(epsilon) - mpmath.mpf(trace), mpmath.mpf(mu)
        tails = [
            mpmath.erfc((left / distance + sign * distance / 2) / mpmath.sqrt(2)) / 2
            for sign in (-1, 1)
        ]
        gaussian = tails[0] - mpmath.exp(left) * tails[1]
        exact = mpmath.exp(trace) * gaussian + mpmath.exp(epsilon) * mpmath.mpf(trace)
        assert exact <= delta
        found = accounting.traced_delta(epsilon=epsilon, mu=mu, trace=trace)
        assert exact <= found <= exact * (1 + 1e-10)


def test_without_a_trace_it_is_the_gaussian_and_with_too_large_a_one_nothing() -> None:
    target = Privacy(epsilon=1, delta=1e-6)
    assert accounting.traced_mu(target, trace=0.0) == accounting.gaussian_mu(target)
    assert accounting.traced_delta(epsilon=1, mu=0.2, trace=0.0) == accounting.gaussian_delta(
        epsilon=1, mu=0.2
    )
    assert accounting.traced_mu(target, trace=1e-6) == 0.0
    assert accounting.traced_delta(epsilon=1, mu=0.2, trace=2.0) == 1.0
    assert accounting.traced_delta(epsilon=800, mu=0.2, trace=1e-30) == 1.0


def test_two_rows_cost_what_group_privacy_says() -> None:
    epsilon, delta = accounting.group_of_two(epsilon=1.0, delta=1e-6)
    assert epsilon == 2.0
    assert (1 + math.e) * 1e-6 <= delta == pytest.approx((1 + math.e) * 1e-6, rel=1e-12)
    assert accounting.group_of_two(epsilon=1e3, delta=1e-6) == (2e3, math.inf)
