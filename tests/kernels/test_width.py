"""The joint-noise confidence set: the kernels against the formulas in plain NumPy."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import Release, Setting
from discreet.kernels import _width as width
from discreet.kernels._noise import Noise
from discreet.kernels._width import NoiseTable, ReleaseNoise, Terms
from discreet.mechanism import _tails as tails
from discreet.mechanism.variants import named
from discreet.release import confidence
from discreet.simulation.environments import Sphere
from helpers import TARGET, unit_rows

F64 = NDArray[np.float64]

DIMS = [1, 2, 3, 6, 7, 13]
TERMS = Terms(variance=1.5**2, theta_norm=1.25, prior=0.1)
HELD = ReleaseNoise(gram_std=3.0, moment_std=4.5, reach=32.0, log_tail=math.log(1e6))


class Region(NamedTuple):
    """What the kernel fills in, and the shift."""

    basis: F64
    weights: F64
    noise: F64
    bias: F64
    shift: float

    @property
    def centre(self) -> F64:
        return self.basis @ self.weights

    def widths(self, actions: F64) -> F64:
        squares = (actions @ self.basis) ** 2
        return np.asarray(np.sqrt(squares @ self.noise) + np.sqrt(squares @ self.bias))


def by_kernel(
    gram: F64, moment: F64, terms: Terms = TERMS, heaviest: float = 1.0, grow: float = 1.0
) -> Region:
    """The region of a release with ``grow`` times the noise `HELD`: a table with a single entry."""
    dim = moment.size
    basis, weights = np.empty((dim, dim)), np.empty(dim)
    noise, bias = np.empty(dim), np.empty(dim)
    reach = HELD.reach / HELD.gram_std
    table = NoiseTable(np.array([1]), *(np.array([x]) for x in (grow, reach, HELD.log_tail)))
    law = Noise(HELD.gram_std, HELD.moment_std, 0.0)
    known = (1, heaviest, table, law, terms)
    shift = width.region(gram, moment, *known, basis, weights, noise, bias)
    return Region(basis, weights, noise, bias, shift)


class Formulas:
    """Q, beta and the width as they are written down, for any shift."""

    def __init__(self, gram: F64, held: ReleaseNoise = HELD, terms: Terms = TERMS) -> None:
        dim = len(gram)
        self.gram, self.terms, self.held, self.reach = gram, terms, held, held.reach
        noise = held.moment_std**2 + 2 * terms.theta_norm**2 * held.gram_std**2
        prior = terms.prior * (terms.variance * self.reach + noise)
        values, vectors = np.linalg.eigh(gram + self.reach * np.eye(dim))
        positive = (vectors * values.clip(min=0)) @ vectors.T
        self.q = terms.variance * positive + (noise + prior) * np.eye(dim)
        self.beta = math.sqrt(
            2 * held.log_tail + np.linalg.slogdet(self.q)[1] - dim * math.log(prior)
        )

    def v(self, shift: float) -> F64:
        return self.gram + shift * np.eye(len(self.gram))

    def widths(self, shift: float, actions: F64) -> F64:
        solved = np.linalg.solve(self.v(shift), actions.T)
        noise = np.sqrt(np.einsum("ik,ij,jk->k", solved, self.q, solved))
        bias = shift * self.terms.theta_norm * np.linalg.norm(solved, axis=0)
        return np.asarray(self.beta * noise + bias)

    def proxy(self, shift: float) -> float:
        """The width of an action that is equally long in all directions of the eigenbasis."""
        _, vectors = np.linalg.eigh(self.gram)
        return float(self.widths(shift, vectors.sum(axis=1)[None, :])[0])

    def known(self) -> bool:
        """Whether without a shift no direction's width is above the bound on the parameter."""
        values, vectors = np.linalg.eigh(self.gram)
        return bool(values[0] > 0) and bool(
            (self.widths(0.0, vectors.T) <= self.terms.theta_norm).all()
        )

    def smallest(self) -> float:
        """c_0: where a direction becomes known, with the radius that there is without data."""
        empty = Formulas(np.zeros_like(self.gram), self.held, self.terms)
        variance, norm = self.terms.variance, self.terms.theta_norm
        flat = float(np.linalg.eigvalsh(empty.q)[0])
        roots = np.roots([norm**2, -(empty.beta**2) * variance, -(empty.beta**2) * flat])
        return self.reach + max(self.reach, float(roots.max()))

    def candidates(self) -> list[float]:
        """The shifts to choose from: 0 if all is known, else 16 from c_0 to 4 c_0."""
        if self.known():
            return [0.0]
        beyond = max(0.0, -float(np.linalg.eigvalsh(self.gram)[0]) - self.reach)
        return [float(c) for c in np.geomspace(1.0, 4.0, 16) * (self.smallest() + beyond)]


def symmetric_noise(rng: np.random.Generator, dim: int, std: float) -> F64:
    """Standard deviation ``std`` off the diagonal, sqrt(2) times that on it."""
    square = rng.standard_normal((dim, dim))
    return std * (square + square.T) / math.sqrt(2)


def a_release(seed: int, dim: int, rows: int) -> tuple[F64, F64]:
    """A noisy Gram matrix and a moment; with few rows it has negative eigenvalues."""
    rng = np.random.default_rng([seed, dim, rows])
    actions = unit_rows(rng, rows, dim)
    gram = actions.T @ actions + symmetric_noise(rng, dim, HELD.gram_std)
    moment = actions.T @ rng.uniform(-1, 1, rows)
    return gram, moment + HELD.moment_std * rng.standard_normal(dim)


each_dim = pytest.mark.parametrize("dim", DIMS)
each_length = pytest.mark.parametrize("rows", [0, 30, 1000, 100_000])


@each_dim
@each_length
def test_widths_and_estimate_are_those_of_the_formulas(dim: int, rows: int) -> None:
    actions = unit_rows(np.random.default_rng(1), 50, dim)
    for seed in range(5):
        gram, moment = a_release(seed, dim, rows)
        region, formulas = by_kernel(gram, moment), Formulas(gram)
        expected = np.linalg.solve(formulas.v(region.shift), moment)
        np.testing.assert_allclose(region.centre, expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(
            region.widths(actions), formulas.widths(region.shift, actions), rtol=1e-8
        )
        np.testing.assert_allclose(region.basis @ region.basis.T, np.eye(dim), atol=1e-12)


@each_dim
@each_length
def test_the_shift_is_the_best_of_the_candidates(dim: int, rows: int) -> None:
    for seed in range(5):
        gram, moment = a_release(seed, dim, rows)
        region, formulas = by_kernel(gram, moment), Formulas(gram)
        widths = {shift: formulas.proxy(shift) for shift in formulas.candidates()}
        assert min(abs(region.shift - shift) for shift in widths) <= 1e-9 * max(widths)
        assert formulas.proxy(region.shift) <= min(widths.values()) * (1 + 1e-9)


@each_dim
def test_the_shifted_matrix_is_positive_definite_whatever_the_noise(dim: int) -> None:
    rng = np.random.default_rng(2)
    for scale in (0.0, 1e-3, 1.0, 30.0, 1e6):
        gram = symmetric_noise(rng, dim, scale)
        gram -= (np.linalg.eigvalsh(gram)[0] + scale) * np.eye(dim)  # down to minus the scale
        region = by_kernel(gram, rng.standard_normal(dim))
        assert np.linalg.eigvalsh(gram + region.shift * np.eye(dim))[0] > 0
        for part in (region.weights, region.noise, region.bias):
            assert np.isfinite(part).all()


@each_dim
@each_length
@pytest.mark.parametrize("heaviest", [0.3, 2.5])
def test_rows_that_count_more_than_one_are_counted_as_one(
    dim: int, rows: int, heaviest: float
) -> None:
    # A release that is a multiple of another, noise and all, says the same.
    gram, moment = a_release(3, dim, rows)
    expected = by_kernel(gram, moment)
    scaled = (heaviest * gram, heaviest * moment)
    found = by_kernel(*scaled, heaviest=heaviest, grow=heaviest)
    assert found.shift == pytest.approx(expected.shift, rel=1e-9)
    np.testing.assert_allclose(found.centre, expected.centre, rtol=1e-8, atol=1e-10)
    actions = unit_rows(np.random.default_rng(1), 50, dim)
    np.testing.assert_allclose(found.widths(actions), expected.widths(actions), rtol=1e-8)
    if rows >= 1000:  # it matters, unless noise is all there is
        other = by_kernel(*scaled, grow=heaviest)
        assert (np.abs(other.widths(actions) / expected.widths(actions) - 1) > 1e-3).all()


@each_dim
def test_the_shift_and_its_bias_vanish_as_data_arrives(dim: int) -> None:
    few, many = (by_kernel(rows * np.eye(dim), np.zeros(dim)) for rows in (0.01, 10_000.0))
    assert few.shift > HELD.reach
    assert (few.bias > 0.5 * TERMS.theta_norm**2).all()
    assert many.shift == 0.0
    assert not many.bias.any()


@pytest.mark.parametrize("theta_norm", [1e-3, 0.03, 1.0, 50.0])
@pytest.mark.parametrize("rows", [0.0, 30.0, 3000.0])
def test_the_width_is_hardly_wider_than_the_bound_on_the_parameter(
    theta_norm: float, rows: float
) -> None:
    terms = TERMS._replace(theta_norm=theta_norm)
    rng = np.random.default_rng(8)
    gram = rows * np.eye(5) + symmetric_noise(rng, 5, HELD.gram_std)
    formulas = Formulas(gram, terms=terms)
    dim = len(gram)
    region = by_kernel(gram, np.zeros(dim), terms)
    squares = np.ones(dim)  # of an action that is equally long in all directions
    found = math.sqrt(squares @ region.noise) + math.sqrt(squares @ region.bias)
    assert found <= 1.35 * theta_norm * math.sqrt(dim)
    assert found == pytest.approx(min(formulas.proxy(at) for at in formulas.candidates()))


def test_a_direction_without_data_does_not_widen_the_others() -> None:
    # The shift that is best for both directions together would be about 40,000.
    gram = np.diag([0.0, 1e6])
    formulas, region = Formulas(gram), by_kernel(gram, np.zeros(2))
    known = np.array([[0.0, 1.0]])
    alone = formulas.beta * math.sqrt(formulas.q[1, 1]) / 1e6  # what no shift would give
    assert region.widths(known)[0] <= 1.2 * alone
    assert formulas.widths(40_000.0, known)[0] > 3 * alone
    assert formulas.proxy(40_000.0) < formulas.proxy(region.shift)


def test_a_worse_shift_would_be_noticed() -> None:
    # The shift matters by far more than the precision of the tests above.
    gram = np.diag([-10.0, 30.0, 90.0, 100.0, 200.0, 300.0])
    formulas = Formulas(gram)
    widths = np.sort([formulas.proxy(shift) for shift in formulas.candidates()])
    assert widths[-1] > 1.1 * widths[0]
    assert widths[1] > (1 + 1e-6) * widths[0]


# Choosing


@each_dim
@pytest.mark.parametrize("count", [1, 3, 25, 300])
@pytest.mark.parametrize("optimism", [0.0, 0.3, 1.0, 5.0])
def test_the_best_action_is_numpys_argmax(dim: int, count: int, optimism: float) -> None:
    rng = np.random.default_rng([4, dim, count])
    gram, moment = a_release(7, dim, 200)
    region = by_kernel(gram, moment)
    for start in (0, 5):
        everything = rng.standard_normal((start + count + 3, dim))
        actions = everything[start : start + count]
        expected = actions @ region.centre + optimism * region.widths(actions)
        scores = np.empty(count)
        found = width.best(
            np.ascontiguousarray(everything.T),
            start,
            region.basis,
            region.weights,
            region.noise,
            region.bias,
            optimism,
            scores,
        )
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
        assert found == expected.argmax()


def test_the_first_of_several_equal_actions_wins() -> None:
    gram, moment = a_release(1, 3, 50)
    region = by_kernel(gram, moment)
    actions = np.ascontiguousarray(np.tile(np.array([[0.5], [0.1], [-0.2]]), (1, 9)))
    parts = (region.basis, region.weights, region.noise, region.bias)
    assert width.best(actions, 0, *parts, 1.0, np.empty(9)) == 0


# From a release


def test_a_release_carries_all_that_its_region_needs() -> None:
    problem = Sphere(dim=3, n_actions=4).problem
    setting = Setting(problem=problem, horizon=10_000, failure_prob=0.05)
    mechanism = named("tight").mechanism(setting, TARGET)
    rng = np.random.default_rng(5)
    actions = unit_rows(rng, 20, 3)
    releases = mechanism.releases
    harmonic = sum(1 / number for number in range(1, releases + 1))
    for number in (1, 17, releases):
        scale = mechanism.strategy.row_norms(releases, np.array([number]))[0]
        log_tail = math.log(2 * number * harmonic / 0.05)
        std = scale * mechanism.noise.std
        reach = std * tails.largest_eigenvalue(3, np.array([log_tail]))[0]
        held = ReleaseNoise(std, scale * mechanism.noise.moment_std, reach, log_tail)
        terms = Terms(problem.reward_subgaussian**2, problem.theta_norm, mechanism.confidence.prior)
        gram = 500 * np.eye(3) + symmetric_noise(rng, 3, std)
        moment = rng.standard_normal(3)
        release = Release(
            number=number,
            rows=1500,
            gram=gram,
            moment=moment,
            spread=scale,
            weight=1500.0,
            mechanism=mechanism,
        )
        found, formulas = confidence.region(release), Formulas(gram, held, terms)
        expected = np.linalg.solve(formulas.v(found.shift), moment)
        # The harmonic number is rounded up.
        np.testing.assert_allclose(found.centre, expected, rtol=1e-6)
        widths = formulas.widths(found.shift, actions)
        np.testing.assert_allclose(found.widths(actions), widths, rtol=1e-3)
        assert (found.widths(actions) >= widths * (1 - 1e-9)).all()


def test_the_failure_probabilities_of_all_releases_add_up_to_alpha() -> None:
    problem = Sphere(dim=3, n_actions=4).problem
    for horizon in (1, 30, 1_000, 100_000):
        setting = Setting(problem=problem, horizon=horizon, failure_prob=0.05)
        mechanism = named("tight").mechanism(setting, TARGET)
        table = mechanism.noise_table
        at = np.searchsorted(table.numbers, np.arange(1, mechanism.releases + 1))
        spent = 2 * np.exp(-table.log_tails[at]).sum()
        assert 0.9 * 0.05 < spent <= 0.05 * (1 + 1e-12)
        reaches = tails.largest_eigenvalue(3, table.log_tails)
        np.testing.assert_array_equal(table.reaches, reaches)


def test_a_release_between_two_entries_of_the_table_has_the_noise_of_the_later_one() -> None:
    parts = [np.array(part) for part in ([1.0, 2.0, 5.0], [4.0, 5.0, 6.0], [9.0, 9.5, 10.0])]
    table, law = NoiseTable(np.array([1, 10, 100]), *parts), Noise(3.0, 4.0, 0.0)
    expected = {1: 0, 2: 1, 10: 1, 11: 2, 100: 2, 10**9: 2}
    for number, at in expected.items():
        norm, reach, log_tail = (part[at] for part in parts)
        alone = NoiseTable(np.array([1]), *(np.array([x]) for x in (norm, reach, log_tail)))
        found = []
        for known in (table, alone):
            filled = np.empty((2, 2)), np.empty(2), np.empty(2), np.empty(2)
            gram, moment = np.diag([50.0, 80.0]), np.array([1.0, 2.0])
            shift = width.region(gram, moment, number, 1.0, known, law, TERMS, *filled)
            found.append([shift, *filled[2], *filled[3]])
        assert found[0] == found[1]


def test_before_the_first_release_any_parameter_may_be() -> None:
    problem = Sphere(dim=3, n_actions=4).problem
    mechanism = named("tight").mechanism(Setting(problem=problem, horizon=100), TARGET)
    nothing = Release(
        number=0,
        rows=0,
        gram=np.zeros((3, 3)),
        moment=np.zeros(3),
        spread=0.0,
        weight=0.0,
        mechanism=mechanism,
    )
    found = confidence.region(nothing)
    actions = np.random.default_rng(6).standard_normal((9, 3))
    np.testing.assert_array_equal(found.centre, 0.0)
    lengths = problem.theta_norm * np.linalg.norm(actions, axis=1)
    np.testing.assert_allclose(found.widths(actions), lengths, rtol=1e-12)
    assert found.best(actions, 1.0) == lengths.argmax()
