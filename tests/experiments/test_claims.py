"""Intervals are those of the textbook, and a verdict needs a whole interval."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.experiments._claims import (
    Interval,
    LogMeans,
    PowerLaw,
    Verdict,
    all_of,
    mean_interval,
    only_if,
    ratio_interval,
)

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.1, 1.9, HOLDS), (0.9, 1.5, OPEN), (1.5, 2.1, OPEN), (2.1, 3.0, FAILS), (0.0, 0.9, FAILS)],
)
def test_a_verdict_needs_the_whole_interval(low: float, high: float, verdict: Verdict) -> None:
    interval = Interval(estimate=(low + high) / 2, low=low, high=high)
    assert interval.verdict(least=1.0, most=2.0) is verdict


def test_one_seed_decides_nothing() -> None:
    for interval in (
        mean_interval(np.array([3.0])),
        ratio_interval(np.array([3.0]), np.array([1.0])),
        LogMeans.of([np.array([3.0])]).combined(np.array([1.0])),
    ):
        assert interval.verdict(least=0.0) is OPEN
        assert "too few runs" in interval.text()


def test_the_interval_of_a_mean_is_students() -> None:
    values = np.array([1.0, 2.0, 4.0, 8.0])
    known = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    found = mean_interval(values)
    assert (found.low, found.high) == pytest.approx((known.low, known.high))


def test_a_ratio_over_shared_seeds_is_certain_where_the_seeds_agree() -> None:
    base = np.array([10.0, 11.0, 13.0])
    found = ratio_interval(3 * base, base)
    assert (found.low, found.estimate, found.high) == pytest.approx((3.0, 3.0, 3.0))


def test_a_ratio_of_one_is_covered_about_as_often_as_promised() -> None:
    # 2000 intervals at 95 %: between 92 % and 98 % with a flake rate below 1e-8.
    rng = np.random.default_rng(1)
    draws = 10 + rng.normal(size=(2000, 2, 8))
    intervals = [ratio_interval(first, second) for first, second in draws]
    covered = np.mean([one.low <= 1.0 <= one.high for one in intervals])
    assert 0.92 < covered < 0.98


def test_the_interval_of_a_ratio_is_what_paired_t_tests_do_not_reject() -> None:
    rng = np.random.default_rng(4)
    base = 10 + 8 * rng.standard_normal(12)
    values = 5 + base / 2 + 3 * rng.standard_normal(12)
    found = ratio_interval(values, base)
    for end in (found.low, found.high):
        assert stats.ttest_1samp(values - end * base, 0.0).pvalue == pytest.approx(0.05)
    assert found.estimate == pytest.approx(values.mean() / base.mean())


def test_a_ratio_to_a_mean_that_one_seed_makes_decides_nothing() -> None:
    base = np.array([300.0] * 11 + [18_000.0])  # its t statistic is 1.2
    ours = np.full(12, 100.0)
    found = ratio_interval(ours, base)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.verdict(most=1.0) is OPEN
    assert "too few runs" in found.text()
    assert ratio_interval(ours, np.zeros(12)).verdict(most=1.0) is OPEN


def test_a_ratio_to_a_mean_that_is_well_known_has_the_interval_of_the_delta_method() -> None:
    rng = np.random.default_rng(5)
    values, base = 70 + rng.standard_normal(24), 100 + rng.standard_normal(24)
    errors = (values - values.mean() / base.mean() * base) / base.mean()
    reach = stats.t.ppf(0.975, 23) * stats.sem(errors)
    found = ratio_interval(values, base)
    assert (found.high - found.low) / 2 == pytest.approx(reach, rel=1e-3)
    assert (found.high + found.low) / 2 == pytest.approx(0.7, rel=0.01)


def test_an_exact_power_law_is_found() -> None:
    x = np.array([4.0, 8.0, 16.0, 64.0])
    line = PowerLaw(x=x, means=LogMeans.of([np.full(3, 2.5 * at**1.9) for at in x]))
    assert line.exponent.estimate == pytest.approx(1.9)
    assert (line.exponent.low, line.exponent.high) == pytest.approx((1.9, 1.9))
    assert line.at(16.0).estimate == pytest.approx(2.5 * 16**1.9)


def test_the_line_is_that_of_least_squares_through_logarithms() -> None:
    rng = np.random.default_rng(2)
    x = np.geomspace(4, 64, 9)
    samples = [at**2 * np.exp(0.3 * rng.normal(size=5)) for at in x]
    known = stats.linregress(np.log(x), np.log([values.mean() for values in samples]))
    line = PowerLaw(x=x, means=LogMeans.of(samples))
    assert line.exponent.estimate == pytest.approx(known.slope)
    assert math.log(line.at(10.0).estimate) == pytest.approx(
        known.intercept + known.slope * math.log(10.0)
    )


def test_the_slope_is_covered_about_as_often_as_promised() -> None:
    # 1000 intervals at 95 %: between 90 % and 99 % with a flake rate below 1e-5.
    rng = np.random.default_rng(3)
    x = np.geomspace(4, 64, 9)
    covered = 0
    for _ in range(1000):
        samples = [at**2 * (1 + 0.1 * rng.normal(size=6)) for at in x]
        slope = PowerLaw(x=x, means=LogMeans.of(samples)).exponent
        covered += slope.low <= 2.0 <= slope.high
    assert 900 < covered < 990


def test_verdicts_combine_like_statements() -> None:
    assert all_of(HOLDS, HOLDS) is HOLDS
    assert all_of(HOLDS, OPEN) is OPEN
    assert all_of(OPEN, FAILS) is FAILS
    assert only_if(True, FAILS) is FAILS  # noqa: FBT003
    assert only_if(False, FAILS) is OPEN  # noqa: FBT003
