"""Gaussian accounting beside 80 digits, an integral, Google's dp-accounting, golden numbers."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from discreet import accounting
from discreet.errors import ParameterError
from discreet.privacy import Privacy


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """The textbook formula with 80 digits; at most 20 of them are lost where terms cancel."""
    with mpmath.workdps(80 + len(str(int(epsilon)))):
        eps, distance = mpmath.mpf(epsilon), mpmath.mpf(mu)
        low, high = (eps / distance + sign * distance / 2 for sign in (-1, 1))
        tails = [mpmath.erfc(point / mpmath.sqrt(2)) / 2 for point in (low, high)]
        return tails[0] - mpmath.exp(eps) * tails[1]


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers spread evenly over orders of magnitude."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


EPSILONS, DELTAS = powers(1.01e-6, 0.99e12), powers(1.01e-100, 0.999)
MILD_EPSILONS, MILD_DELTAS = powers(1e-5, 1e4), powers(1e-90, 0.9)


# The delta


@settings(deadline=None, max_examples=300)
@given(epsilon=powers(1e-9, 1e5), mu=powers(1e-10, 1e4))
@example(epsilon=1e-6, mu=4.92e-8)  # delta 1e-100, from terms that agree in 8 digits
@example(epsilon=1e-9, mu=1e-10)
@example(epsilon=1.0, mu=0.0265)  # near the smallest positive number
def test_the_delta_is_never_below_80_digits_and_hardly_above(epsilon: float, mu: float) -> None:
    exact, found = exact_delta(epsilon, mu), accounting.gaussian_delta(epsilon=epsilon, mu=mu)
    assert min(exact, 1) <= found
    if exact > 1e-300:
        assert found <= exact * (1 + 2e-11)


@settings(deadline=None, max_examples=300)
@given(epsilon=powers(1e7, 1e12), place=st.floats(-3, 30))
def test_the_delta_is_never_below_where_its_arguments_round(epsilon: float, place: float) -> None:
    mu = math.sqrt(place**2 + 2 * epsilon) - place  # so that eps/mu - mu/2 is about the place
    assert exact_delta(epsilon, mu) <= accounting.gaussian_delta(epsilon=epsilon, mu=mu)


@pytest.mark.parametrize("mu", [1e-300, 1e-12, 1e-3, 1.0, 30.0, 1e5])
def test_at_epsilon_zero_the_delta_is_the_total_variation(mu: float) -> None:
    exact = mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))
    found = accounting.gaussian_delta(epsilon=0.0, mu=mu)
    assert exact <= found <= exact * (1 + 2e-11)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
def test_the_delta_is_the_hockey_stick_divergence(epsilon: float, mu: float) -> None:
    # The privacy loss is N(mu^2/2, mu^2); delta is the mean of (1 - e^(eps - loss)) above eps.
    loss = stats.norm(mu**2 / 2, mu)
    start, stop = epsilon, max(epsilon, mu**2 / 2) + 40 * mu
    delta, error = integrate.quad(
        lambda x: -math.expm1(epsilon - x) * loss.pdf(x), start, stop, limit=500, epsabs=0,
        points=[min(stop, max(start, mu**2 / 2)), min(stop, start + 3 * mu)],
    )  # fmt: skip
    assert accounting.gaussian_delta(epsilon=epsilon, mu=mu) == pytest.approx(
        delta, rel=1e-7, abs=max(error, 1e-15)
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 10.0, 1_000.0])
def test_the_delta_grows_with_mu_and_stays_a_probability(epsilon: float) -> None:
    deltas = np.array(
        [accounting.gaussian_delta(epsilon=epsilon, mu=mu) for mu in np.geomspace(0.01, 200, 300)]
    )
    assert deltas.min() > 0.0
    assert deltas.max() <= 1.0
    assert (np.diff(deltas) >= 0).all()
    inside = (deltas > 1e-300) & (deltas < 1 - 1e-10)
    assert (np.diff(deltas[inside]) > 0).all()


def test_the_delta_shrinks_as_epsilon_grows() -> None:
    deltas = [accounting.gaussian_delta(epsilon=e, mu=1.0) for e in np.linspace(0, 30, 200)]
    assert (np.diff(deltas) < 0).all()


def test_the_delta_is_computed_at_the_ends_of_floating_point() -> None:
    assert accounting.gaussian_delta(epsilon=1e300, mu=1e-300) == 5e-324
    assert accounting.gaussian_delta(epsilon=0.0, mu=1e300) == 1.0
    assert accounting.gaussian_delta(epsilon=1e12, mu=1.0) == 5e-324


@pytest.mark.parametrize(("epsilon", "mu"), [(-0.1, 1.0), (math.nan, 1.0), (1.0, 0.0), (1.0, -1.0)])
def test_numbers_out_of_range_are_refused(epsilon: float, mu: float) -> None:
    with pytest.raises(ParameterError):
        accounting.gaussian_delta(epsilon=epsilon, mu=mu)


# The budget


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [(1.0, 0.1, 0.9209139666), (1.0, 1e-6, 0.2367043807), (0.1, 1e-6, 0.0275446502)],
)
def test_the_budget_has_its_golden_values(epsilon: float, delta: float, mu: float) -> None:
    found = accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta))
    assert found == pytest.approx(mu, abs=5.1e-11)


@settings(deadline=None, max_examples=150)
@given(epsilon=EPSILONS, delta=DELTAS)
@example(epsilon=1e-6, delta=1e-100)
@example(epsilon=1e12, delta=1e-100)
@example(epsilon=1e12, delta=1 - 1e-16)
@example(epsilon=1e-6, delta=1 - 1e-16)
def test_the_budget_never_exceeds_its_target(epsilon: float, delta: float) -> None:
    mu = accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta))
    assert exact_delta(epsilon, mu) <= delta


@settings(deadline=None, max_examples=150)
@given(epsilon=MILD_EPSILONS, delta=MILD_DELTAS)
def test_nothing_much_larger_than_the_budget_meets_the_target(epsilon: float, delta: float) -> None:
    mu = accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta))
    assert exact_delta(epsilon, mu * (1 + 1e-9)) > delta


@settings(deadline=None, max_examples=100)
@given(epsilon=MILD_EPSILONS, delta=MILD_DELTAS, factor=st.floats(1.001, 10))
def test_the_budget_grows_with_both_parts_of_the_target(
    epsilon: float, delta: float, factor: float
) -> None:
    mu = accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta))
    assert accounting.gaussian_mu(Privacy(epsilon=epsilon * factor, delta=delta)) > mu
    assert accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta ** (1 / factor))) > mu


# The epsilon


@settings(deadline=None, max_examples=150)
@given(mu=powers(1e-9, 1e6), delta=DELTAS)
def test_the_epsilon_never_understates(mu: float, delta: float) -> None:
    epsilon = accounting.gaussian_epsilon(delta=delta, mu=mu)
    assert exact_delta(epsilon, mu) <= delta
    if epsilon > 1e-6 and mu < 100 and delta < 0.9:
        assert exact_delta(epsilon * (1 - 1e-4) if epsilon < 1e-3 else epsilon - 1e-7, mu) > delta


@settings(deadline=None, max_examples=100)
@given(epsilon=MILD_EPSILONS, delta=powers(1e-90, 1e-9))
def test_budget_and_epsilon_invert_each_other(epsilon: float, delta: float) -> None:
    mu = accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta))
    back = accounting.gaussian_epsilon(delta=delta, mu=mu)
    assert back <= epsilon * (1 + 1e-12)  # neighbouring numbers may round either way
    assert back == pytest.approx(epsilon, rel=1e-9)


def test_a_small_mu_needs_no_epsilon() -> None:
    # The total variation of 0.1-GDP is 0.0399.
    assert accounting.gaussian_epsilon(delta=0.04, mu=0.1) == 0.0
    assert accounting.gaussian_epsilon(delta=0.0398, mu=0.1) > 0.0


# Google's dp-accounting


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_google_has_the_same_budget(epsilon: float, delta: float) -> None:
    mu = accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta))
    std = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert mu == pytest.approx(1 / std, rel=1e-6)
    assert dp_accounting.get_epsilon_gaussian(1 / mu, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta", "releases"), [(1.0, 0.1, 27), (1.0, 1e-6, 66)])
def test_googles_loss_distributions_bracket_a_composition(
    epsilon: float, delta: float, releases: int
) -> None:
    # Each release at mu / sqrt(releases) makes mu in all. Discretised losses, rounded up and down.
    each = accounting.gaussian_mu(Privacy(epsilon=epsilon, delta=delta)) / math.sqrt(releases)
    low, high = (
        pld.privacy_loss_distribution.from_gaussian_mechanism(
            1 / each, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        )
        .self_compose(releases)
        .get_delta_for_epsilon(epsilon)
        for pessimistic in (False, True)
    )
    assert low <= delta <= high
    assert high == pytest.approx(delta, rel=1e-3)  # it joins the dots of the curve: sharp
    assert low > 0.9 * delta


def test_googles_accountant_agrees_on_unequal_releases() -> None:
    mus = [0.1, 0.2, 0.35, 0.5]
    accountant = pld.PLDAccountant()
    for mu in mus:
        accountant.compose(dp_accounting.GaussianDpEvent(1 / mu))
    total = math.hypot(*mus)
    for delta in (1e-9, 1e-5, 0.01):
        mine = accounting.gaussian_epsilon(delta=delta, mu=total)
        assert accountant.get_epsilon(delta) == pytest.approx(mine, rel=1e-3)
        assert accountant.get_delta(mine) >= delta * (1 - 1e-9)
