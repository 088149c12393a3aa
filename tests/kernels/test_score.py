"""Choosing: scores against dense algebra, and the law of a sampled parameter."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.kernels import _linalg as linalg
from discreet.kernels import _random as random
from discreet.kernels import _score as score

F64 = NDArray[np.float64]

EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True)


def positive_matrix(rng: np.random.Generator, dim: int) -> F64:
    root = rng.standard_normal((dim, dim + 2))
    return root @ root.T + 0.1 * np.eye(dim)


def as_kernels_take_it(cholesky: F64) -> F64:
    """L below the diagonal, 1/D on it. What lies above the diagonal is never read."""
    scale = np.diag(cholesky)
    above = np.triu(np.full_like(cholesky, np.nan), 1)
    return np.tril(cholesky / scale, -1) + np.diag(1.0 / scale**2) + above


def weights_of(theta: F64, cholesky: F64) -> F64:
    """D^-1 L^-1 u for theta = V^-1 u."""
    return (cholesky / np.diag(cholesky)).T @ theta


def chosen(actions: F64, theta: F64, gram: F64, bonus: float, *, start: int = 0) -> int:
    """The kernel's choice among actions given as rows, shape (K, d).

    They lie between other columns, which must not be looked at.
    """
    count, dim = actions.shape
    lower = np.linalg.cholesky(gram)
    columns = np.full((dim, start + count + 3), np.nan)
    columns[:, start : start + count] = actions.T
    before = columns.copy()
    scores = np.full(count, np.nan)
    weights = weights_of(theta, lower)
    winner = score.best(
        columns,
        start,
        weights,
        as_kernels_take_it(lower),
        linalg.firsts_of((len(columns),)),
        bonus,
        scores,
    )
    np.testing.assert_array_equal(columns, before)
    return winner


def dense_scores(actions: F64, theta: F64, gram: F64, bonus: float) -> F64:
    inverse = np.linalg.inv(gram)
    return np.array([x @ theta + bonus * math.sqrt(x @ inverse @ x) for x in actions])


# Up to six features are scored in one pass, more row by row, in chunks of 256.
DIMS = st.integers(1, 12)
COUNTS = st.integers(1, 60)
STARTS = st.integers(0, 70)


@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=DIMS,
    count=COUNTS,
    start=STARTS,
    bonus=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
)
def test_the_best_action_is_the_dense_argmax(
    seed: int, dim: int, count: int, start: int, bonus: float
) -> None:
    rng = np.random.default_rng(seed)
    gram = positive_matrix(rng, dim)
    actions, theta = rng.standard_normal((count, dim)), rng.standard_normal(dim)
    scores = dense_scores(actions, theta, gram, bonus)
    ordered = np.sort(scores)
    assume(count == 1 or ordered[-1] - ordered[-2] > 1e-9)
    assert chosen(actions, theta, gram, bonus, start=start) == scores.argmax()


@pytest.mark.parametrize("dim", [1, 5, 6, 7, 12])
@pytest.mark.parametrize("bonus", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("count", [1, 7, 25, 60, 256, 600])
def test_every_action_has_its_dense_score(dim: int, bonus: float, count: int) -> None:
    rng = np.random.default_rng(2)
    gram = positive_matrix(rng, dim)
    lower = np.linalg.cholesky(gram)
    columns, theta = rng.standard_normal((dim, 13 + count)), rng.standard_normal(dim)
    scores = np.full(count, np.nan)
    weights = weights_of(theta, lower)
    winner = score.best(
        columns,
        13,
        weights,
        as_kernels_take_it(lower),
        linalg.firsts_of((len(columns),)),
        bonus,
        scores,
    )
    expected = dense_scores(columns[:, 13:].T, theta, gram, bonus)
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)
    assert winner == expected.argmax()


COPIES = [
    (10, [0, 1]),
    (10, [3, 7]),
    (10, [2, 5, 9]),
    (10, list(range(10))),
    (25, list(range(25))),
    (59, [2, 31, 58]),
    (60, list(range(60))),
]


@pytest.mark.parametrize("dim", [1, 4, 6, 7, 12])
@pytest.mark.parametrize("bonus", [0.0, 2.0])
def test_the_first_of_several_equal_actions_is_chosen(dim: int, bonus: float) -> None:
    for seed, start, (count, copies) in itertools.product(range(20), [0, 11], COPIES):
        rng = np.random.default_rng(seed)
        gram = positive_matrix(rng, dim)
        actions, theta = rng.standard_normal((count, dim)), rng.standard_normal(dim)
        actions[copies] = 100.0 * theta
        assert chosen(actions, theta, gram, bonus, start=start) == copies[0]


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), dim=DIMS, count=COUNTS, start=STARTS)
def test_without_a_bonus_only_the_estimate_counts(
    seed: int, dim: int, count: int, start: int
) -> None:
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((count, dim)), rng.standard_normal(dim)
    scores = actions @ theta
    ordered = np.sort(scores)
    assume(count == 1 or ordered[-1] - ordered[-2] > 1e-9)
    for gram in (np.eye(dim), positive_matrix(rng, dim)):
        assert chosen(actions, theta, gram, 0.0, start=start) == scores.argmax()


@pytest.mark.parametrize("dim", [3, 6, 7, 12])
def test_a_large_bonus_prefers_the_direction_that_is_known_least(dim: int) -> None:
    actions, theta = np.eye(dim), np.linspace(1.0, 0.0, dim)
    gram = np.diag([100.0] * (dim - 1) + [1.0])
    assert chosen(actions, theta, gram, 0.5) == 0
    assert chosen(actions, theta, gram, 5.0) == dim - 1


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


def drawn_weights(centre: F64, lower: F64, scale: float, normals: F64) -> F64:
    """A draw as Thompson sampling makes it."""
    factor = as_kernels_take_it(lower)
    return weights_of(centre, lower) + scale * np.sqrt(np.diag(factor)) * normals


def sampled(centre: F64, lower: F64, scale: float, normals: F64) -> F64:
    """The parameter behind such a draw."""
    theta = drawn_weights(centre, lower, scale, normals)
    linalg.backward(as_kernels_take_it(lower), linalg.firsts_of((len(lower),)), theta)
    return theta


def test_a_sampled_parameter_inverts_to_the_normals_it_used() -> None:
    rng = np.random.default_rng(3)
    lower = np.linalg.cholesky(positive_matrix(rng, 6))
    centre, normals = rng.standard_normal(6), rng.standard_normal(6)
    theta = sampled(centre, lower, 2.5, normals)
    np.testing.assert_allclose(lower.T @ (theta - centre) / 2.5, normals, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sampled(centre, lower, 0.0, normals), centre, rtol=1e-12)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), dim=DIMS, count=COUNTS, scale=st.floats(0.0, 10.0))
def test_a_draw_of_the_weights_chooses_the_best_action_for_its_parameter(
    seed: int, dim: int, count: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    lower = np.linalg.cholesky(positive_matrix(rng, dim))
    centre, normals = rng.standard_normal(dim), rng.standard_normal(dim)
    actions = rng.standard_normal((count, dim))
    expected = actions @ sampled(centre, lower, scale, normals)
    ordered = np.sort(expected)
    assume(count == 1 or ordered[-1] - ordered[-2] > 1e-9)
    drawn = drawn_weights(centre, lower, scale, normals)
    columns, scores = np.ascontiguousarray(actions.T), np.full(count, np.nan)
    factor, firsts = as_kernels_take_it(lower), linalg.firsts_of((len(columns),))
    winner = score.best(columns, 0, drawn, factor, firsts, 0.0, scores)
    assert winner == expected.argmax()


def covariance_scores(sample: F64, covariance: F64) -> F64:
    """Standard scores of all sample second moments of a centred normal sample."""
    expected_variance = np.outer(covariance.diagonal(), covariance.diagonal()) + covariance**2
    second = sample.T @ sample / len(sample)
    return (second - covariance) / np.sqrt(expected_variance / len(sample))


def test_sampled_parameters_have_the_stated_mean_and_covariance() -> None:
    # Fixed seed. Under another, 3 means and 6 second moments at 5.5 standard deviations
    # would fail with probability below 1e-6.
    scale, size = 1.7, 60_000
    gram = positive_matrix(np.random.default_rng(4), 3)
    lower = np.linalg.cholesky(gram)
    state = random.seed_state(np.random.SeedSequence(4))
    normals = np.empty((size, 3))
    random.fill_normals(state, normals.reshape(-1))
    centre = np.array([1.0, -2.0, 3.0])
    offsets = np.array([sampled(centre, lower, scale, used) for used in normals]) - centre

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
