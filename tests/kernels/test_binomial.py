"""Binomial numbers: the right law in both ways of drawing them, and power against a wrong one.

Seeds are fixed. Under a new seed each comparison would reject a right sampler with probability
`FLAKE`.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.kernels import _random as random
from discreet.kernels._binomial import binomial

FLAKE = 1e-6
COUNT = 200_000

LAWS = [
    (1, 0.3),
    (7, 0.5),
    (40, 0.2),
    (30, 0.75),
    (1000, 0.004),
    (25, 0.4),  # ten expected successes: the rejection starts here
    (100, 0.9),
    (1000, 0.5),
    (100_000, 0.03),
    (10_000_000, 0.0005),
    (10_000_000, 0.4),
    (2_000_000_000, 0.9),
]


def drawn(trials: int, chance: float, seed: int = 1) -> NDArray[np.int64]:
    state = random.seed_state(np.random.SeedSequence(seed))
    return np.array([binomial(state, trials, chance) for _ in range(COUNT)])


def fit(sample: NDArray[np.int64], trials: int, chance: float) -> float:
    """The p-value of a chi-square test on about a hundred cells of equal probability."""
    law = stats.binom(trials, chance)
    edges = np.unique(law.ppf(np.linspace(0, 1, 101)[1:-1]))
    expected = COUNT * np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)
    keep = expected > 5
    seen = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 5:  # too few to stand alone
        seen = np.append(seen[:-2], seen[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    return float(stats.chisquare(seen, expected).pvalue)


@pytest.mark.parametrize(("trials", "chance"), LAWS)
def test_counts_follow_the_binomial_law(trials: int, chance: float) -> None:
    sample = drawn(trials, chance)
    assert sample.min() >= 0
    assert sample.max() <= trials
    assert fit(sample, trials, chance) > FLAKE


@pytest.mark.parametrize(("trials", "chance"), [law for law in LAWS if law[0] > 1])
def test_the_comparison_rejects_a_mean_that_is_a_thirtieth_of_a_deviation_off(
    trials: int, chance: float
) -> None:
    off = np.sqrt(chance * (1 - chance) / trials) / 30
    assert fit(drawn(trials, chance), trials, chance + off) < FLAKE


def test_certain_and_impossible_successes() -> None:
    state = random.seed_state(np.random.SeedSequence(1))
    assert binomial(state, 1000, 0.0) == 0
    assert binomial(state, 1000, 1.0) == 1000
    assert binomial(state, 0, 0.5) == 0


def test_equal_seeds_give_equal_counts() -> None:
    np.testing.assert_array_equal(drawn(1000, 0.3, seed=5)[:100], drawn(1000, 0.3, seed=5)[:100])
