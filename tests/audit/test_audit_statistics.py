"""Statistics, thresholds and bits, on numbers with a known law. Seeds are fixed."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from discreet.audit import _statistics as statistics
from discreet.audit._statistics import Samples


def normals(seed: int, count: int, mu: float, dim: int = 1) -> tuple[Samples, Samples]:
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, count, dim))
    one[:, 0] += mu
    cut = count // 5
    return Samples(one[:cut], other[:cut]), Samples(one[cut:], other[cut:])


def test_the_matched_weights_are_those_of_the_likelihood_ratio() -> None:
    root = np.random.default_rng(1).normal(size=(4, 4))
    spread = root @ root.T + np.eye(4)
    shift = np.array([1.0, -2.0, 0.0, 0.5])
    assert np.allclose(statistics.matched_weights(spread, shift), np.linalg.solve(spread, shift))


def test_a_direction_without_noise_outweighs_everything() -> None:
    spread = np.array([[4.0, 4.0], [4.0, 4.0]])  # both entries have the same noise
    weights = statistics.matched_weights(spread, np.array([1.0, 0.0]))
    assert weights[0] == pytest.approx(-weights[1])
    assert weights[0] > 1e8
    assert np.isfinite(statistics.matched_weights(np.zeros((2, 2)), np.array([1.0, 0.0]))).all()


def test_bounds_stay_below_the_truth_and_come_close_to_it() -> None:
    # The bound is true with probability 1 - 1e-6 for each of the two scores; seeds are fixed.
    mu, risk = 1.0, 1e-6
    tuning, testing = (Samples(*(group[:, 0] for group in part)) for part in normals(2, 40_000, mu))
    found = statistics.median_rates(tuning, testing, risk=risk)
    assert 0.85 * mu < float(statistics.rates_mu(*found)) < mu
    best = max(math.log(norm.sf(t - mu) / norm.sf(t)) for t in np.linspace(0, norm.isf(1e-3), 100))

    def score(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return statistics.rates_epsilon(low, high, delta=0.0)

    low, high = statistics.threshold_rates(tuning, testing, risk=risk, score=score)
    assert 0.6 * best < float(statistics.rates_epsilon(low, high, delta=0.0)) < best


def test_two_worlds_that_are_the_same_prove_nothing() -> None:
    # A bound above 0 has probability 1e-6 at most; the seed is fixed.
    tuning, testing = normals(3, 5_000, 0.0, dim=3)
    first, second = statistics.linear_statistic(tuning, testing, np.array([1.0, 0.0, 0.0]))
    found = statistics.threshold_rates(first, second, risk=1e-6, score=statistics.rates_mu)
    assert float(statistics.rates_mu(*found)) == 0.0


def test_a_statistic_without_noise_is_cut_between_the_worlds() -> None:
    part = Samples(np.full(200, 2.0), np.full(200, 1.0))
    found = statistics.threshold_rates(part, part, risk=1e-3, score=statistics.rates_mu)
    assert found.low > 0.95
    assert found.high < 0.05


def test_bits_tell_the_size_and_the_lowest_bit() -> None:
    found = statistics.binary_scales(
        np.array([1.5, -0.75, 3 * 2.0**-55, 0.0, 1024.0, 1 + 2.0**-52])
    )
    assert found.size.tolist() == [1, 0, -53, -80, 11, 1]
    assert found.lowest.tolist() == [-1, -2, -55, 80, 10, -52]


def test_low_bits_are_found_where_a_sum_was_rounded() -> None:
    # Without bits there is next to nothing to see: noise is wide. About 1.6% of the first world
    # is below 0.5 in size with bits that the second cannot have; seen in 8,000 trials of it,
    # 128 expected, at least 60 but for a probability of 1e-10.
    rng = np.random.default_rng(4)
    noise = rng.normal(scale=25.0, size=(2, 10_000, 1))
    part = [Samples(noise[0, a:b], 1.0 + noise[1, a:b]) for a, b in ((0, 2000), (2000, 10_000))]

    def score(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return statistics.rates_epsilon(low, high, delta=1e-6)

    for worlds in (part, [Samples(piece.other, piece.one) for piece in part]):
        rates = statistics.low_bits_rates(*worlds, risk=1e-3, score=score)
        assert float(score(*map(np.asarray, rates))) > 1.0
    whole = [Samples(*(np.round(group * 2**30) / 2**30 for group in piece)) for piece in part]
    rates = statistics.low_bits_rates(*whole, risk=1e-3, score=score)
    assert float(score(*map(np.asarray, rates))) < 0.5
