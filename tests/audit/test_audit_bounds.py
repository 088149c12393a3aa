"""Bounds from counts, against exact enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from discreet import accounting
from discreet.audit import _statistics as statistics


@pytest.mark.parametrize("trials", [1, 7, 60])
@pytest.mark.parametrize("risk", [0.05, 5e-4])
def test_each_side_of_a_rate_is_wrong_no_more_often_than_stated(trials: int, risk: float) -> None:
    hits = np.arange(trials + 1)
    low = statistics.lower_rate(hits, trials, risk)
    high = statistics.upper_rate(hits, trials, risk)
    for rate in np.linspace(0.001, 0.999, 97):
        chances = binom.pmf(hits, trials, rate)
        assert chances[low > rate].sum() <= risk * (1 + 1e-9)
        assert chances[high < rate].sum() <= risk * (1 + 1e-9)


def test_a_rate_is_as_tight_as_its_risk_allows() -> None:
    low = float(statistics.lower_rate(30, 100, 1e-3))
    high = float(statistics.upper_rate(30, 100, 1e-3))
    assert binom.sf(29, 100, low) == pytest.approx(1e-3)
    assert binom.cdf(30, 100, high) == pytest.approx(1e-3)


def test_no_hit_and_nothing_but_hits_leave_one_side_open() -> None:
    assert float(statistics.lower_rate(0, 50, 1e-3)) == 0.0
    assert float(statistics.upper_rate(50, 50, 1e-3)) == 1.0
    assert float(statistics.upper_rate(0, 50, 1e-3)) == pytest.approx(1 - 1e-3 ** (1 / 50))


@given(epsilon=st.floats(0.01, 5.0), other=st.floats(0.001, 0.999), delta=st.floats(1e-9, 0.1))
def test_rates_that_privacy_allows_prove_no_more_than_its_epsilon(
    epsilon: float, other: float, delta: float
) -> None:
    yes = min(math.exp(epsilon) * other + delta, 1 - math.exp(-epsilon) * (1 - other - delta))
    found = float(statistics.rates_epsilon(min(yes, 1.0), other, delta=delta))
    assert found <= epsilon + 1e-9


def test_a_yes_and_a_no_both_count() -> None:
    assert float(statistics.rates_epsilon(0.3, 0.1, delta=0.0)) == pytest.approx(math.log(3))
    assert float(statistics.rates_epsilon(0.9, 0.7, delta=0.0)) == pytest.approx(math.log(3))
    assert float(statistics.rates_epsilon(0.3, 0.1, delta=0.1)) == pytest.approx(math.log(2))
    assert float(statistics.rates_epsilon(0.1, 0.3, delta=0.0)) == 0.0
    assert float(statistics.rates_epsilon(0.0, 1.0, delta=0.0)) == 0.0


def test_rates_of_a_gaussian_test_give_its_mu() -> None:
    found = statistics.rates_mu(norm.sf(0.4 - 0.25), norm.sf(0.4))
    assert float(found) == pytest.approx(0.25)
    assert float(statistics.rates_mu(0.0, 1.0)) == 0.0


@pytest.mark.parametrize("mu", [0.01, 0.2, 3.0])
def test_epsilon_is_rounded_down(mu: float) -> None:
    found = statistics.mu_epsilon(mu, delta=1e-6)
    up = accounting.gaussian_epsilon(delta=1e-6, mu=mu)
    assert up * (1 - 1e-6) < found < up
    assert statistics.mu_epsilon(0.0, delta=1e-6) == 0.0


def written_out(epsilon: float, delta: float, canaries: int, guesses: int, correct: int) -> float:
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    chances = [
        math.comb(guesses, k) * right**k * (1 - right) ** (guesses - k) for k in range(guesses + 1)
    ]
    extra = max(sum(chances[correct - i : correct]) / i for i in range(1, correct + 1))
    return min(1.0, sum(chances[correct:]) + 2 * canaries * delta * extra)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("correct", [1, 8, 19, 20])
def test_the_one_run_p_value_is_the_formula_written_out(epsilon: float, correct: int) -> None:
    numbers = {"epsilon": epsilon, "delta": 1e-3, "canaries": 30, "guesses": 20, "correct": correct}
    assert statistics.one_run_p_value(**numbers) == pytest.approx(written_out(**numbers), rel=1e-9)


def chances_of_correct(epsilon: float, delta: float, coins: int, *, jointly: bool) -> np.ndarray:
    """How likely each number of correct guesses is, coin by coin and outcome by outcome.

    Randomised response on each coin, which all are shown without noise with probability delta:
    jointly, or each by itself. Either is (epsilon, delta)-private, and every coin is guessed.
    """
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    alone = right if jointly else delta + (1 - delta) * right
    found = np.zeros(coins + 1)
    for outcome in itertools.product([True, False], repeat=coins):
        found[sum(outcome)] += math.prod(alone if hit else 1 - alone for hit in outcome)
    if jointly:
        found *= 1 - delta
        found[coins] += delta
    return found


@pytest.mark.parametrize("jointly", [True, False])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("coins", [1, 3, 9])
def test_the_one_run_p_value_is_small_no_more_often_than_it_says(
    *, jointly: bool, delta: float, coins: int
) -> None:
    chances = chances_of_correct(0.8, delta, coins, jointly=jointly)
    for correct in range(1, coins + 1):
        p_value = statistics.one_run_p_value(
            epsilon=0.8, delta=delta, canaries=coins, guesses=coins, correct=correct
        )
        assert chances[correct:].sum() <= p_value * (1 + 1e-9)


def test_without_delta_the_one_run_p_value_is_exact_for_randomised_response() -> None:
    chances = chances_of_correct(0.8, 0.0, 9, jointly=False)
    p_value = statistics.one_run_p_value(epsilon=0.8, delta=0.0, canaries=9, guesses=9, correct=7)
    assert p_value == pytest.approx(chances[7:].sum())


def test_perfect_guesses_prove_the_epsilon_at_which_they_are_just_too_lucky() -> None:
    found = statistics.one_run_epsilon(delta=0.0, canaries=100, guesses=100, correct=100, risk=1e-3)
    right = 1e-3 ** (1 / 100)
    assert found == pytest.approx(math.log(right / (1 - right)), abs=1e-6)


@pytest.mark.parametrize("correct", [0, 40, 55])
def test_guesses_like_coin_tosses_prove_nothing(correct: int) -> None:
    numbers = {"delta": 1e-6, "canaries": 1000, "guesses": 100, "correct": correct, "risk": 1e-3}
    assert statistics.one_run_epsilon(**numbers) == 0.0


def test_delta_takes_something_off_the_one_run_bound() -> None:
    found = [
        statistics.one_run_epsilon(delta=delta, canaries=1000, guesses=100, correct=90, risk=1e-3)
        for delta in (0.0, 1e-6, 1e-4)
    ]
    assert found[0] > found[1] > found[2]
