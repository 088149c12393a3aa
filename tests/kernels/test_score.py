"""Choosing: scores against dense algebra, and the law of a sampled parameter."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.kernels import random, score

F64 = NDArray[np.float64]

EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True)


def positive_matrix(rng: np.random.Generator, dim: int) -> F64:
    root = rng.standard_normal((dim, dim + 2))
    return root @ root.T + 0.1 * np.eye(dim)


def chosen(actions: F64, theta: F64, lower: F64, bonus: float) -> int:
    """The kernel's choice among actions given as rows, shape (K, d)."""
    count, dim = actions.shape
    work = np.full((dim + 2, count), np.nan)
    return score.best(np.ascontiguousarray(actions.T), theta, lower, bonus, work)


def dense_scores(actions: F64, theta: F64, gram: F64, bonus: float) -> F64:
    inverse = np.linalg.inv(gram)
    return np.array([x @ theta + bonus * math.sqrt(x @ inverse @ x) for x in actions])


@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 12),
    count=st.integers(1, 40),
    bonus=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
)
def test_the_best_action_is_the_dense_argmax(seed: int, dim: int, count: int, bonus: float) -> None:
    rng = np.random.default_rng(seed)
    gram = positive_matrix(rng, dim)
    actions, theta = rng.standard_normal((count, dim)), rng.standard_normal(dim)
    scores = dense_scores(actions, theta, gram, bonus)
    ordered = np.sort(scores)
    assume(count == 1 or ordered[-1] - ordered[-2] > 1e-9)
    assert chosen(actions, theta, np.linalg.cholesky(gram), bonus) == scores.argmax()


@pytest.mark.parametrize("bonus", [0.0, 2.0])
@pytest.mark.parametrize("copies", [[0, 1], [3, 7], [2, 5, 9], list(range(10))])
def test_the_first_of_several_equal_actions_is_chosen(bonus: float, copies: list[int]) -> None:
    rng = np.random.default_rng(1)
    gram = positive_matrix(rng, 4)
    actions, theta = rng.standard_normal((10, 4)), rng.standard_normal(4)
    actions[copies] = 100.0 * theta
    assert chosen(actions, theta, np.linalg.cholesky(gram), bonus) == copies[0]


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 12), count=st.integers(1, 40))
def test_without_a_bonus_only_the_estimate_counts(seed: int, dim: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((count, dim)), rng.standard_normal(dim)
    nonsense = np.full((dim, dim), np.nan)
    assert chosen(actions, theta, nonsense, 0.0) == (actions @ theta).argmax()


def test_a_large_bonus_prefers_the_direction_that_is_known_least() -> None:
    actions, theta = np.eye(3), np.array([1.0, 0.5, 0.0])
    lower = np.diag([10.0, 10.0, 1.0])
    assert chosen(actions, theta, lower, 0.5) == 0
    assert chosen(actions, theta, lower, 5.0) == 2


@given(
    log_det=st.floats(-50, 500),
    noise_scale=st.floats(0, 10),
    log_offset=st.floats(-50, 100),
    bias=st.floats(0, 1e3),
)
@EXAMPLES
def test_the_radius_is_its_formula(
    log_det: float, noise_scale: float, log_offset: float, bias: float
) -> None:
    root = np.sqrt(np.clip(log_det + log_offset, 0.0, None))
    expected = noise_scale * root + bias
    assert score.radius(log_det, noise_scale, log_offset, bias) == pytest.approx(expected, 1e-13)


def test_the_radius_is_its_bias_where_the_determinant_is_too_small() -> None:
    assert score.radius(-10.0, 2.0, 3.0, 0.5) == 0.5
    assert score.radius(1.0, 2.0, 3.0, 0.5) == 4.5


def test_a_sampled_parameter_inverts_to_the_normals_it_used() -> None:
    rng = np.random.default_rng(3)
    lower = np.linalg.cholesky(positive_matrix(rng, 6))
    centre, normals = rng.standard_normal(6), rng.standard_normal(6)
    theta = centre.copy()
    score.sample_theta(theta, lower, 2.5, normals.copy())
    np.testing.assert_allclose(lower.T @ (theta - centre) / 2.5, normals, rtol=1e-12, atol=1e-12)
    score.sample_theta(theta, lower, 0.0, normals.copy())
    np.testing.assert_allclose(lower.T @ (theta - centre) / 2.5, normals, rtol=1e-12, atol=1e-12)


def covariance_scores(sample: F64, covariance: F64) -> F64:
    """Standard scores of all sample second moments of a centred normal sample."""
    expected_variance = np.outer(covariance.diagonal(), covariance.diagonal()) + covariance**2
    second = sample.T @ sample / len(sample)
    return (second - covariance) / np.sqrt(expected_variance / len(sample))


def test_sampled_parameters_have_the_stated_mean_and_covariance() -> None:
    # Fixed seed. Under another, 3 means and 6 second moments at 5.5 standard deviations
    # would fail with probability below 1e-6.
    scale, size = 1.7, 100_000
    gram = positive_matrix(np.random.default_rng(4), 3)
    lower = np.linalg.cholesky(gram)
    state = random.seed_state(np.random.SeedSequence(4))
    normals = np.empty((size, 3))
    random.fill_normals(state, normals.reshape(-1))
    centre = np.array([1.0, -2.0, 3.0])
    drawn = np.tile(centre, (size, 1))
    for theta, used in zip(drawn, normals, strict=True):
        score.sample_theta(theta, lower, scale, used)
    offsets = drawn - centre

    covariance = scale**2 * np.linalg.inv(gram)
    mean_scores = offsets.mean(axis=0) / np.sqrt(covariance.diagonal() / size)
    assert np.abs(mean_scores).max() < 5.5
    assert np.abs(covariance_scores(offsets, covariance)).max() < 5.5
    for factor in (2 / 3, 0.98, 1.02, 3 / 2):
        wrong = np.abs(covariance_scores(factor * offsets, covariance))
        assert wrong.diagonal().min() > 5.5
    transposed = scale**2 * np.linalg.inv(lower.T @ lower)  # L^-1 in place of L^-T
    assert np.abs(covariance_scores(offsets, transposed)).max() > 5.5

    # The whole law: squared distances are chi-square with three degrees of freedom.
    distances = np.einsum("ni,ij,nj->n", offsets, gram, offsets) / scale**2
    assert stats.kstest(distances, stats.chi2(3).cdf).pvalue > 1e-6
    assert stats.kstest(1.05 * distances, stats.chi2(3).cdf).pvalue < 1e-6
    assert stats.kstest(distances / 1.05, stats.chi2(3).cdf).pvalue < 1e-6
