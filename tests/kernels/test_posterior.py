"""The posterior of a noisy release: the kernel against dense algebra, and against the truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.kernels import _linalg as linalg
from discreet.kernels import _posterior as posterior
from discreet.kernels._posterior import Known, Noise

F64 = NDArray[np.float64]

BLOCKS = {"one": (6,), "two": (2, 4), "all alone": (1, 1, 1, 1, 1, 1), "three": (3, 1, 2)}
each_block = pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
DIM = 6


def known_for(blocks: tuple[int, ...] = (DIM,), **more: float) -> Known:
    facts = {"variance": 0.25, "theta_norm": 1.0, "square": 1.0, "prior": 2.0 / sum(blocks)}
    firsts = linalg.firsts_of(blocks)
    return Known(**{**facts, **more}, firsts=firsts, halvings=posterior.HALVINGS)


def parts(known: Known) -> list[tuple[int, int]]:
    """Where blocks start and end."""
    starts = np.unique(known.firsts).tolist()
    return list(zip(starts, [*starts[1:], known.firsts.size], strict=True))


class Filled:
    """What the kernel makes of a release."""

    def __init__(self, gram: F64, moment: F64, noise: Noise, known: Known) -> None:
        dim = moment.size
        self.lower = np.zeros((dim, dim))
        self.weights, self.centre, self.figures = np.empty(dim), np.empty(dim), np.empty(2)
        given = (gram.copy(), moment.copy())
        posterior.fill(
            gram, moment, noise, known, self.lower, self.weights, self.centre, self.figures
        )
        np.testing.assert_array_equal(gram, given[0])
        np.testing.assert_array_equal(moment, given[1])
        self.prior, self.known = self.figures
        self.firsts = known.firsts

    @property
    def precision(self) -> F64:
        unit = np.tril(self.lower, -1) + np.eye(len(self.lower))
        return np.asarray(unit @ np.diag(1 / np.diag(self.lower)) @ unit.T)


def mean_above_zero(value: float, std: float) -> float:
    return float(stats.truncnorm(-value / std, np.inf, loc=value, scale=std).mean())


def drawn_together(values: F64, std: float) -> F64:
    """Eigenvalues after James and Stein: what noise has added to their spread is taken off.

    With Z symmetric, of deviation std off the diagonal and sqrt(2) std on it, the part of Z that
    is no multiple of the identity has the expected square 2 std^2 (d(d+1)/2 - 1).
    """
    size, mean = len(values), values.mean()
    apart = ((values - mean) ** 2).sum()
    expected = 2 * std**2 * (size * (size + 1) / 2 - 1)
    kept = max(0.0, 1 - expected / apart) if apart > 0 else 0.0
    return np.asarray(mean + kept * (values - mean))


def dense(
    gram: F64, moment: F64, noise: Noise, known: Known, prior: float
) -> tuple[F64, F64, float, float]:
    """(precision, centre, most known of any direction, log-likelihood) under a given prior.

    As the model is written down: matrices, block by block, with the Gram matrix's eigenvalues
    restored, and u | theta ~ N(G theta, variance G + floor I).
    """
    dim = moment.size
    spectra, bases = [], []
    for start, stop in parts(known):
        values, vectors = np.linalg.eigh(gram[start:stop, start:stop])
        std = math.sqrt(2) * noise.gram_std
        values = drawn_together(values, noise.gram_std)
        spectra.append(np.array([mean_above_zero(value, std) for value in values]))
        bases.append(vectors)
    total = sum(part.sum() for part in spectra)
    shrink = min(1.0, noise.weight * known.square / total)
    information, pull, likelihood, most = np.zeros((dim, dim)), np.zeros(dim), 0.0, 0.0
    for at, (start, stop) in enumerate(parts(known)):
        size = stop - start
        likely = (bases[at] * (shrink * spectra[at])) @ bases[at].T
        length = min(known.theta_norm**2, prior * size)
        floor = noise.moment_std**2 + (1 + 1 / size) * length * noise.gram_std**2
        spread = known.variance * likely + floor * np.eye(size)
        part = likely @ np.linalg.solve(spread, likely)
        information[start:stop, start:stop] = part
        pull[start:stop] = likely @ np.linalg.solve(spread, moment[start:stop])
        marginal = spread + prior * likely @ likely
        likelihood += stats.multivariate_normal(cov=marginal).logpdf(moment[start:stop])
        gained = prior * np.linalg.eigvalsh(part).max()
        most = max(most, gained / (1 + gained))
    precision = information + np.eye(dim) / prior
    return precision, np.linalg.solve(precision, pull), most, likelihood


def likeliest(gram: F64, moment: F64, noise: Noise, known: Known) -> float:
    """The prior of all halvings, where each has to be e times as likely as without it."""
    priors = [known.prior * 0.5**k for k in range(posterior.HALVINGS + 1)]
    worth = [dense(gram, moment, noise, known, one)[3] - k for k, one in enumerate(priors)]
    return priors[int(np.argmax(worth))]


def a_release(
    rng: np.random.Generator, known: Known, noise: Noise, rows: int, length: float
) -> tuple[F64, F64]:
    """Rows within one block each, rewards of a parameter of this length, and noise."""
    dim = known.firsts.size
    theta = rng.standard_normal(dim)
    theta *= length / np.linalg.norm(theta)
    gram, moment = np.zeros((dim, dim)), np.zeros(dim)
    for start, stop in parts(known):
        actions = rng.standard_normal((rows // len(parts(known)), stop - start))
        actions /= np.linalg.norm(actions, axis=1, keepdims=True)
        rewards = actions @ theta[start:stop]
        rewards += math.sqrt(known.variance) * rng.standard_normal(len(actions))
        gram[start:stop, start:stop] += actions.T @ actions
        moment[start:stop] += actions.T @ rewards
    square = rng.standard_normal((dim, dim))
    gram += noise.gram_std * (square + square.T) / math.sqrt(2)
    return gram, moment + noise.moment_std * rng.standard_normal(dim)


@each_block
@pytest.mark.parametrize("rows", [0, 60, 600, 60_000])
@pytest.mark.parametrize("length", [0.0, 0.2, 1.0])
def test_the_posterior_is_that_of_the_dense_model(
    blocks: tuple[int, ...], rows: int, length: float
) -> None:
    known = known_for(blocks)
    noise = Noise(gram_std=9.0, moment_std=12.0, weight=float(rows))
    for seed in range(2):
        rng = np.random.default_rng([seed, rows])
        gram, moment = a_release(rng, known, noise, rows, length)
        if rows == 0:
            noise = noise._replace(weight=0.5)  # a bound of nothing at all leaves nothing
        found = Filled(gram, moment, noise, known)
        assert found.prior == likeliest(gram, moment, noise, known)
        precision, centre, most, _ = dense(gram, moment, noise, known, found.prior)
        np.testing.assert_allclose(found.precision, precision, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.centre, centre, rtol=1e-7, atol=1e-10)
        assert found.known == pytest.approx(most, rel=1e-9)
        # What the kernels that score actions use: D^-1 L^-1 of the pull.
        unit = np.tril(found.lower, -1) + np.eye(DIM)
        pull = precision @ centre
        weights = np.diag(found.lower) * np.linalg.solve(unit, pull)
        np.testing.assert_allclose(found.weights, weights, rtol=1e-7, atol=1e-10)


def test_what_is_off_the_blocks_is_taken_to_be_zero() -> None:
    known, noise = known_for((2, 4)), Noise(9.0, 12.0, 600.0)
    gram, moment = a_release(np.random.default_rng(1), known, noise, 600, 1.0)
    found = Filled(gram, moment, noise, known)
    cleared = gram.copy()
    cleared[:2, 2:] = cleared[2:, :2] = 0.0
    expected = Filled(cleared, moment, noise, known)
    np.testing.assert_array_equal(found.centre, expected.centre)
    np.testing.assert_array_equal(found.lower, expected.lower)
    assert not found.precision[:2, 2:].any()
    whole = Filled(gram, moment, noise, known_for((6,)))
    assert np.abs(whole.centre - found.centre).max() > 1e-3


@each_block
def test_without_noise_it_is_ridge_regression(blocks: tuple[int, ...]) -> None:
    known, quiet = known_for(blocks), Noise(0.0, 0.0, 300.0)
    gram, moment = a_release(np.random.default_rng(2), known, quiet, 300, 0.4)
    found = Filled(gram, moment, quiet, known)
    precision = gram / known.variance + np.eye(DIM) / known.prior
    np.testing.assert_allclose(found.precision, precision, rtol=1e-10, atol=1e-10)
    expected = np.linalg.solve(precision, moment / known.variance)
    np.testing.assert_allclose(found.centre, expected, rtol=1e-10)
    gain = known.prior * np.diag(gram).max() / known.variance
    assert found.prior == known.prior
    assert found.known == pytest.approx(gain / (1 + gain))


def test_a_trace_of_noise_changes_hardly_anything() -> None:
    known = known_for(theta_norm=1.0)
    gram, moment = a_release(np.random.default_rng(3), known, Noise(0, 0, 3000.0), 3000, 1.0)
    exact = Filled(gram, moment, Noise(0.0, 0.0, 3000.0), known)
    nearly = Filled(gram, moment, Noise(1e-4, 1e-4, 3000.0), known)
    np.testing.assert_allclose(nearly.centre, exact.centre, rtol=1e-5)
    np.testing.assert_allclose(nearly.precision, exact.precision, rtol=1e-5, atol=1e-3)


# Its parts


@settings(max_examples=300, deadline=None, derandomize=True)
@given(value=st.floats(-7.9, 30.0), std=st.floats(1e-3, 1e6))
def test_the_mean_above_zero_is_that_of_a_truncated_normal(value: float, std: float) -> None:
    expected = mean_above_zero(value * std, std)
    assert posterior.above_zero(value * std, std) == pytest.approx(expected, rel=1e-7)


def test_the_mean_above_zero_is_positive_and_grows_everywhere() -> None:
    at = np.concatenate([-np.geomspace(1e6, 8.0, 200), np.linspace(-8.0, 8.0, 4001)])
    found = np.array([posterior.above_zero(3.0 * value, 3.0) for value in at])
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert (np.diff(found[:200]) > 0).all()
    assert (np.diff(found[200:]) >= -1e-9).all()
    # Where the limit takes over it is off by a share of 1/64 or so: nothing of note.
    assert posterior.above_zero(-24.0 - 1e-9, 3.0) == pytest.approx(
        posterior.above_zero(-24.0 + 1e-9, 3.0), rel=0.03
    )


def test_what_noise_adds_to_the_spread_of_eigenvalues_is_taken_off_on_average() -> None:
    # Over 4,000 draws, the square distance from the mean eigenvalue is that of the matrix without
    # noise plus what is taken off: within 2%, where one draw is off by half and the mean of all by
    # less than 1% (six deviations are 5%; seeds are fixed).
    rng, std, runs = np.random.default_rng(6), 3.0, 4_000
    exact = np.diag([10.0, 20.0, 30.0, 40.0])
    apart = ((np.diag(exact) - 25.0) ** 2).sum()
    found = []
    for _ in range(runs):
        square = rng.standard_normal((4, 4))
        values = np.linalg.eigvalsh(exact + std * (square + square.T) / math.sqrt(2))
        found.append(((values - values.mean()) ** 2).sum())
    assert np.mean(found) - 2 * std**2 * 9 == pytest.approx(apart, rel=0.05)
    assert np.mean(found) != pytest.approx(apart, rel=0.05)
    values = np.array([1.0, 5.0, 9.0])
    posterior._gather(values, 1e3)  # noise hides the differences
    np.testing.assert_allclose(values, 5.0)
    values = np.array([100.0, 500.0, 900.0])
    posterior._gather(values, 20.0)
    np.testing.assert_allclose(values, drawn_together(np.array([100.0, 500.0, 900.0]), 20.0))


def test_eigenvalues_add_up_to_no_more_than_rows_can() -> None:
    known, noise = known_for(square=4.0), Noise(50.0, 1.0, 10.0)
    gram = np.diag([400.0, 300.0, 10.0, 0.0, -50.0, -90.0])
    moment = np.full(DIM, 1.0)
    found = Filled(gram, moment, noise, known)
    likely = drawn_together(np.diag(gram), 50.0)
    values = np.array([mean_above_zero(value, math.sqrt(2) * 50) for value in likely])
    values *= 10.0 * 4.0 / values.sum()
    length = min(1.0, found.prior * DIM)
    floor = 1.0 + (1 + 1 / DIM) * length * 50.0**2
    expected = values**2 / (known.variance * values + floor) + 1 / found.prior
    np.testing.assert_allclose(np.diag(found.precision), expected, rtol=1e-9)
    more = Filled(gram, moment, noise._replace(weight=1e9), known)  # no bound: all of them
    assert (np.diag(more.precision) > np.diag(found.precision)).all()


@pytest.mark.parametrize(("length", "least", "most"), [(1.0, 0, 2), (0.1, 3, 8), (0.0, 5, 8)])
def test_the_prior_is_halved_if_the_parameter_is_far_shorter_than_stated(
    length: float, least: int, most: int
) -> None:
    known, noise = known_for((20,)), Noise(20.0, 30.0, 1e6)
    for seed in range(5):
        gram, moment = a_release(np.random.default_rng(seed), known, noise, 200_000, length)
        found = Filled(gram, moment, noise, known)
        halvings = math.log2(known.prior / found.prior)
        assert halvings == int(halvings)
        assert least <= halvings <= most


def test_a_release_of_noise_alone_is_no_reason_to_halve_the_prior_but_knows_nothing() -> None:
    # Where noise hides everything, all priors explain it alike, so the stated one stays.
    known, noise = known_for(), Noise(1e4, 1e4, 10.0)
    gram, moment = a_release(np.random.default_rng(4), known, noise, 12, 1.0)
    found = Filled(gram, moment, noise, known)
    assert found.prior == known.prior
    assert found.known < 0.01
    assert posterior.uniform_share(0.25, found.figures) == 1.0


def test_choices_are_uniform_if_no_direction_is_known() -> None:
    for known, share in ((0.5, 0.1), (0.0101, 0.1), (0.0099, 1.0)):
        assert posterior.uniform_share(0.1, np.array([0.4, known])) == share


@pytest.mark.parametrize("shorter", [30.0, 1000.0])
def test_a_parameter_far_shorter_than_stated_is_played_once_it_is_known(shorter: float) -> None:
    known, rows = known_for(), 1e10
    theta = np.ones(DIM) / math.sqrt(DIM) / shorter
    gram = rows / DIM * np.eye(DIM)
    found = Filled(gram, gram @ theta, Noise(3.0, 4.0, rows), known)
    np.testing.assert_allclose(found.centre, theta, rtol=0.01)
    assert posterior.uniform_share(0.0, found.figures) == 0.0


# Tilts and probabilities


def some_posterior(seed: int, dim: int = DIM) -> Filled:
    known = known_for((dim,))
    noise = Noise(9.0, 12.0, 900.0)
    return Filled(*a_release(np.random.default_rng(seed), known, noise, 900, 0.7), noise, known)


def tilts(number: int, found: Filled, scale: float) -> F64:
    """All tilts of a release, as shifts of the centre."""
    unit = np.tril(found.lower, -1) + np.eye(len(found.lower))
    shifts = []
    for at in range(posterior.TILTS):
        out = np.empty(found.centre.size)
        posterior.tilt(number, at, found.lower, found.firsts, scale, out)
        shifts.append(np.linalg.solve(unit.T, out))
    return np.array(shifts)


def test_tilts_come_in_pairs_that_cancel_and_differ_from_release_to_release() -> None:
    found = some_posterior(1)
    first, again, other = (tilts(number, found, 2.0) for number in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[::2], -first[1::2])
    assert len(np.unique(np.vstack([first, other]).round(12), axis=0)) == 2 * posterior.TILTS
    assert not tilts(7, found, 0.0).any()


def test_a_tilt_is_the_covariance_times_standard_normals() -> None:
    # Half of a release's tilts are independent. In whitened coordinates, over 4,000 releases,
    # entries have the variance 1 and no correlation: chi-square and scores at 1e-8 each.
    found, scale, dim = some_posterior(2, 3), 0.6, 3
    normals = np.vstack([tilts(number, found, scale)[::2] for number in range(4_000)])
    normals = normals @ found.precision / scale
    law = stats.chi2(normals.size)
    total = (normals**2).sum()
    assert 2 * min(law.cdf(total), law.sf(total)) > 1e-8
    seen = normals.T @ normals / len(normals)
    scores = (seen - np.eye(dim)) * math.sqrt(len(normals)) / np.sqrt(1 + np.eye(dim))
    assert np.abs(scores).max() < 6.0


def scores_of(actions: F64, centre: F64, found: Filled, bonus: float) -> F64:
    widths = np.sqrt(np.einsum("ki,ki->k", actions, np.linalg.solve(found.precision, actions.T).T))
    return np.asarray(actions @ centre + bonus * widths)


@pytest.mark.parametrize("dim", [1, 3, 9])
@pytest.mark.parametrize("count", [1, 5, 300])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", [0.0, 3.0])
def test_probabilities_are_how_many_tilts_an_action_wins(
    dim: int, count: int, share: float, scale: float
) -> None:
    found, number, bonus = some_posterior(3, dim), 5, 1.2
    actions = np.random.default_rng(4).standard_normal((count, dim))
    probabilities = np.empty(count)
    given = posterior.tilts(number, found.lower, found.firsts, scale)
    assert given.shape == ((posterior.TILTS if scale else 1), dim)
    args = (found.weights, found.lower, found.firsts, bonus, given, share)
    posterior.drawn(actions, *args, 0.5, probabilities)
    wins = np.zeros(count)
    shifts = tilts(number, found, scale)
    for shift in shifts:
        wins[scores_of(actions, found.centre + shift, found, bonus).argmax()] += 1
    expected = share / count + (1 - share) * wins / len(shifts)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
    assert probabilities.sum() == pytest.approx(1.0, rel=1e-12)


def test_optimism_grows_with_the_root_of_the_logarithm_of_rows() -> None:
    later = 1.25 + 0.8 * math.sqrt(math.log(1000) / 4)
    for rows, expected in ((0, 1.25), (1, 1.25), (1000, later)):
        assert posterior.bonus(1.25, 0.8, rows, 4) == pytest.approx(expected, rel=1e-14)
    assert posterior.bonus(1.25, 0.0, 10**12, 4) == 1.25


def test_a_coin_stands_for_the_action_whose_share_it_falls_in() -> None:
    found = some_posterior(3)
    actions = np.random.default_rng(4).standard_normal((40, DIM))
    probabilities = np.empty(40)
    given = posterior.tilts(5, found.lower, found.firsts, 30.0)
    args = (found.weights, found.lower, found.firsts, 1.2, given, 0.0)
    coins = (np.arange(3200) + 0.5) / 3200
    drawn = [posterior.drawn(actions, *args, coin, probabilities) for coin in coins.tolist()]
    counts = np.bincount(drawn, minlength=40)
    np.testing.assert_allclose(counts / 3200, probabilities, atol=1e-12)
    assert (probabilities > 0).sum() > 2
    for coin in (0.0, 1.0 - 2**-53, 1.0):  # the ends, too, are actions that can be chosen
        assert probabilities[posterior.drawn(actions, *args, coin, probabilities)] > 0


# Against the truth


@pytest.mark.parametrize("kind", ["sphere", "fixed", "basis"])
@pytest.mark.parametrize("deviation", [3.0, 30.0])
def test_intervals_cover_as_often_as_they_say_if_the_prior_is_true(
    kind: str, deviation: float
) -> None:
    """The parameter is drawn from the stated prior, rows are many and noise is as stated.

    2,000 runs, intervals of 95% for one action: at that coverage fewer than 1,850 hold with
    probability 7e-7. Were they too narrow by a fifth, 88.3% would hold, and 1,850 with
    probability 4e-10.
    """
    runs, rows, dim = 2_000, 3_000, 4
    rng = np.random.default_rng([1, int(deviation)])
    known = known_for((dim,), theta_norm=10.0, prior=0.5, variance=0.5)
    noise = Noise(deviation, 1.5 * deviation, float(rows))
    fixed = rng.standard_normal((6, dim))
    fixed /= np.linalg.norm(fixed, axis=1, keepdims=True)
    covered = 0
    for _ in range(runs):
        theta = math.sqrt(known.prior) * rng.standard_normal(dim)
        if kind == "sphere":
            gram = rows / dim * np.eye(dim)
        else:
            arms = fixed if kind == "fixed" else np.eye(dim)
            gram = rows / len(arms) * arms.T @ arms
        root = np.linalg.cholesky(gram)
        moment = gram @ theta + math.sqrt(known.variance) * root @ rng.standard_normal(dim)
        square = rng.standard_normal((dim, dim))
        noisy = gram + noise.gram_std * (square + square.T) / math.sqrt(2)
        found = Filled(noisy, moment + noise.moment_std * rng.standard_normal(dim), noise, known)
        action = fixed[0]
        width = math.sqrt(action @ np.linalg.solve(found.precision, action))
        covered += abs(action @ (theta - found.centre)) <= stats.norm.ppf(0.975) * width
    assert covered >= 0.925 * runs
