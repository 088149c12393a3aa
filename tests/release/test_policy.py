"""Policies against dense algebra, and Thompson's choices against their probabilities."""

import math
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import Release
from discreet.errors import ParameterError
from discreet.release.confidence import Ellipsoid
from discreet.release.policies import UCB, Thompson, greedy


def region_of(centre: np.ndarray, gram: np.ndarray, radius: float) -> Ellipsoid:
    lower = np.linalg.cholesky(gram)
    scale = np.diag(lower)
    factor = np.tril(lower / scale, -1) + np.diag(1.0 / scale**2)
    weights = (lower / scale).T @ centre
    return Ellipsoid(centre=centre, weights=weights, factor=factor, radius=radius)


def release_with(region: Ellipsoid) -> Release:
    """As much of a release as these rules look at."""
    return cast("Release", SimpleNamespace(confidence=region))


def random_region(rng: np.random.Generator, dim: int) -> tuple[Ellipsoid, np.ndarray]:
    """A confidence set, and its matrix."""
    root = rng.standard_normal((dim, dim + 2))
    gram = root @ root.T + 0.1 * np.eye(dim)
    return region_of(rng.standard_normal(dim), gram, float(rng.uniform(0.1, 5.0))), gram


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 10),
    count=st.integers(1, 30),
    optimism=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
)
def test_ucb_picks_the_dense_argmax(seed: int, dim: int, count: int, optimism: float) -> None:
    rng = np.random.default_rng(seed)
    region, gram = random_region(rng, dim)
    actions = rng.standard_normal((count, dim))
    widths = np.sqrt(np.einsum("ki,ij,kj->k", actions, np.linalg.inv(gram), actions))
    scores = actions @ region.centre + optimism * region.radius * widths
    ordered = np.sort(scores)
    assume(count == 1 or ordered[-1] - ordered[-2] > 1e-9)
    rule, release = UCB(optimism=optimism), release_with(region)
    assert rule.choose(release, actions) == (scores.argmax(), 1.0)
    expected = np.eye(count)[scores.argmax()]
    np.testing.assert_array_equal(rule.probabilities(release, actions), expected)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 10), count=st.integers(1, 30))
def test_the_greedy_rule_and_thompson_without_optimism_trust_the_estimate(
    seed: int, dim: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    region, _ = random_region(rng, dim)
    actions = rng.standard_normal((count, dim))
    best = (actions @ region.centre).argmax()
    release = release_with(region)
    assert greedy().choose(release, actions) == (best, 1.0)
    # A rule that draws does not say how probable its choices are.
    assert Thompson(optimism=0.0).choose(release, actions) == (best, None)


def test_the_paper_rule_is_the_default() -> None:
    assert UCB() == UCB(optimism=1.0)
    assert greedy() == UCB(optimism=0.0)
    assert Thompson() == Thompson(optimism=1.0)


@pytest.mark.parametrize("optimism", [0.5, 1.0, 3.0])
def test_thompson_chooses_between_two_actions_with_the_right_probability(optimism: float) -> None:
    # The draws cannot be seeded. A right rule fails with probability below 1e-7; a scale off by
    # a half in either direction, or an untransposed factor, passes with less.
    size = 20_000
    gram = np.array([[9.0, 3.0], [3.0, 2.0]])
    lower = np.linalg.cholesky(gram)
    # The estimate grows with the scale, so that the odds are far from even in every case.
    centre = optimism * np.array([0.9, 0.2])
    region = region_of(centre, gram, 1.3)
    actions = np.array([[1.0, 0.3], [0.2, 0.8]])
    rule = Thompson(optimism=optimism)
    before = region.centre.copy(), region.weights.copy(), region.factor.copy()
    release = release_with(region)
    wins = sum(rule.choose(release, actions).index == 0 for _ in range(size))
    for now, then in zip((region.centre, region.weights, region.factor), before, strict=True):
        assert (now == then).all()

    difference = actions[0] - actions[1]

    def probability(scale: float, matrix: np.ndarray) -> float:
        width = scale * region.radius * math.sqrt(difference @ np.linalg.solve(matrix, difference))
        return float(stats.norm.cdf(difference @ region.centre / width))

    def p_value(scale: float, matrix: np.ndarray) -> float:
        return float(stats.binomtest(wins, size, probability(scale, matrix)).pvalue)

    assert p_value(optimism, gram) > 1e-8
    assert p_value(optimism * 2 / 3, gram) < 1e-8
    assert p_value(optimism * 3 / 2, gram) < 1e-8
    assert p_value(optimism, lower.T @ lower) < 1e-8


@pytest.mark.parametrize("rule", [UCB, Thompson])
@pytest.mark.parametrize("optimism", [-1.0, -1e-9, math.nan, math.inf, "1", True])
def test_optimism_that_is_not_a_number_of_at_least_zero_is_refused(
    rule: type[UCB] | type[Thompson], optimism: object
) -> None:
    with pytest.raises(ParameterError) as refused:
        rule(optimism=optimism)
    assert refused.value.parameter == "optimism"
