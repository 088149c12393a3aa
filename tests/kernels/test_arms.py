"""The sphere's decision sets and the rewards, against their definitions.

Every stream has a fixed seed, so a verdict repeats. Under a new seed each test would reject right
numbers with probability below 1e-5; each is also shown to reject a wrong law.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.kernels import _arms as arms
from discreet.kernels import _random as random
from discreet.simulation.environments import _BATCHED_ACTIONS as BATCHED_ACTIONS
from discreet.simulation.environments import (
    Basis,
    Clusters,
    Environment,
    Fixed,
    Sphere,
)

F64 = NDArray[np.float64]
U64 = NDArray[np.uint64]

FLAKE = 1e-6
TOP = 0.75
COUNT = 25
ROUNDS = 4_000
BANDS = [(2, 0.0), (2, 0.5), (3, 0.0), (5, 0.0), (5, 0.1), (5, 1.4), (64, 0.0), (64, 1.0)]


def stream(seed: int) -> U64:
    return random.seed_state(np.random.SeedSequence(seed))


class Rounds(NamedTuple):
    """Many decision sets of one world."""

    theta: F64  # (d,)
    actions: F64  # (rounds, K, d)
    means: F64  # (rounds, K)

    @property
    def optimal(self) -> NDArray[np.bool_]:
        """Which actions were placed at the top, shape (rounds, K)."""
        return self.means == TOP


_PLAYED: dict[tuple[int, float], Rounds] = {}


def play(dim: int, gap: float) -> Rounds:
    """The same rounds for every test that asks."""
    if (dim, gap) not in _PLAYED:
        world = Sphere(dim=dim, n_actions=COUNT, gap=gap).start(np.random.SeedSequence(dim))
        arrays = world.arrays
        played = Rounds(arrays.theta, np.empty((ROUNDS, COUNT, dim)), np.empty((ROUNDS, COUNT)))
        for turn in range(ROUNDS):
            start = arms.next_set(world.state, arrays)
            played.actions[turn] = arrays.actions[:, start : start + COUNT].T
            played.means[turn] = arrays.means[start : start + COUNT]
        _PLAYED[dim, gap] = played
    return _PLAYED[dim, gap]


@pytest.mark.parametrize("count", [1, 7, 25, 256, 257, 512, 513, 1_000])
def test_a_batch_of_sets_is_used_one_after_the_other_and_then_drawn_afresh(count: int) -> None:
    world = Sphere(dim=3, n_actions=count).start(np.random.SeedSequence(18))
    state, arrays = world.state, world.arrays
    batch = max(1, BATCHED_ACTIONS // count)
    assert arrays.actions.shape == (3, batch * count)
    assert arrays.means.shape == (batch * count,)
    before = arrays.actions.copy()
    for _ in range(3):
        assert arms.next_set(state, arrays) == 0
        drawn, means, then = arrays.actions.copy(), arrays.means.copy(), state.copy()
        assert not (drawn == before).any()
        for turn in range(1, batch):
            assert arms.next_set(state, arrays) == turn * count
        np.testing.assert_array_equal(arrays.actions, drawn)
        np.testing.assert_array_equal(arrays.means, means)
        np.testing.assert_array_equal(state, then)
        before = drawn


@pytest.mark.parametrize("environment", [Fixed(dim=3, n_actions=5), Basis(dim=4)])
def test_a_static_world_offers_the_same_set_in_every_round(environment: Environment) -> None:
    world = environment.start(np.random.SeedSequence(19))
    state, arrays = world.state, world.arrays
    then, actions, means = state.copy(), arrays.actions.copy(), arrays.means.copy()
    assert {arms.next_set(state, arrays) for _ in range(1_000)} == {0}
    np.testing.assert_array_equal(state, then)
    np.testing.assert_array_equal(arrays.actions, actions)
    np.testing.assert_array_equal(arrays.means, means)
    np.testing.assert_allclose(actions.T @ arrays.theta, means, rtol=0, atol=1e-15)
    assert arms.best_mean(arrays, 0) == means.max()


def test_the_best_mean_of_a_fresh_world_is_the_top() -> None:
    world = Sphere(dim=3, n_actions=5).start(np.random.SeedSequence(20))
    for _ in range(1_000):
        start = arms.next_set(world.state, world.arrays)
        assert arms.best_mean(world.arrays, start) == TOP
        assert world.arrays.means[start : start + 5].max() == TOP


def test_the_best_mean_in_clusters_is_that_of_each_set() -> None:
    world = Clusters(dim=3, n_actions=5).start(np.random.SeedSequence(20))
    seen = set()
    for _ in range(1_000):
        start = arms.next_set(world.state, world.arrays)
        best = arms.best_mean(world.arrays, start)
        assert best == world.arrays.means[start : start + 5].max()
        seen.add(best)
    assert len(seen) == 1_000


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_every_action_has_unit_length(dim: int, gap: float) -> None:
    lengths = np.linalg.norm(play(dim, gap).actions, axis=-1)
    assert np.abs(lengths - 1.0).max() < 1e-12


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_the_means_are_the_inner_products(dim: int, gap: float) -> None:
    played = play(dim, gap)
    assert np.abs(played.actions @ played.theta - played.means).max() < 1e-12


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_one_action_is_at_the_top_and_the_others_lie_in_the_band(dim: int, gap: float) -> None:
    played = play(dim, gap)
    assert (played.optimal.sum(axis=1) == 1).all()
    inner = played.actions @ played.theta
    assert np.abs(inner[played.optimal] - TOP).max() < 1e-12
    others = played.means[~played.optimal]
    assert others.min() >= -TOP
    assert others.max() <= TOP - gap


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_the_optimal_action_is_anywhere_with_equal_probability(dim: int, gap: float) -> None:
    seen = play(dim, gap).optimal.sum(axis=0)
    assert stats.chisquare(seen).pvalue > FLAKE
    biased = seen + np.where(np.arange(COUNT) == 0, 200, 0)  # 5% of the rounds moved in front
    assert stats.chisquare(biased).pvalue < FLAKE


def band_law(z: F64, dim: int, low: float, high: float) -> F64:
    """Distribution function of an inner product: (z + 1)/2 is Beta, truncated to the band."""
    law = stats.beta(0.5 * (dim - 1), 0.5 * (dim - 1))
    floor, ceiling = law.cdf([0.5 * (low + 1), 0.5 * (high + 1)])
    return (law.cdf(0.5 * (z + 1)) - floor) / (ceiling - floor)


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_inner_products_follow_the_spheres_law_on_the_band(dim: int, gap: float) -> None:
    played = play(dim, gap)
    inner = (played.actions @ played.theta)[~played.optimal]
    inner = np.clip(inner, -TOP, TOP - gap)  # the last digit may stray
    assert stats.kstest(inner, lambda z: band_law(z, dim, -TOP, TOP - gap)).pvalue > FLAKE
    # The law of the next dimension up differs by too little to see only on the narrow band.
    wrong = dim + (1 if dim < 64 and gap < 1.4 else 10)
    assert stats.kstest(inner, lambda z: band_law(z, wrong, -TOP, TOP - gap)).pvalue < FLAKE


def test_inner_products_in_five_dimensions_are_not_uniform_on_the_band() -> None:
    played = play(5, 0.0)
    inner = played.means[~played.optimal]
    assert stats.kstest(inner, stats.uniform(-TOP, 2 * TOP).cdf).pvalue < FLAKE


@pytest.mark.parametrize(
    ("dim", "low", "high"),
    [(2, -0.75, 0.75), (2, 0.2, 0.7), (3, -0.5, 0.1), (5, -0.75, -0.65), (64, -0.75, -0.25)],
)
def test_a_product_redrawn_on_the_band_follows_the_same_law(
    dim: int, low: float, high: float
) -> None:
    state = stream(11)
    drawn = np.array([arms.band_product(state, dim, low, high) for _ in range(50_000)])
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert stats.kstest(drawn, lambda z: band_law(z, dim, low, high)).pvalue > FLAKE
    shrunk = low + 0.98 * (drawn - low)
    assert stats.kstest(shrunk, lambda z: band_law(z, dim, low, high)).pvalue < FLAKE


def directions(played: Rounds) -> tuple[F64, NDArray[np.bool_]]:
    """Unit directions across theta, in a basis of its complement, and which were optimal."""
    dim = played.theta.size
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(np.c_[played.theta, rng.standard_normal((dim, dim - 1))])
    across = played.actions.reshape(-1, dim) @ basis[:, 1:]
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return across, played.optimal.reshape(-1)


def isotropy_scores(across: F64) -> F64:
    """Standard scores of the mean and of all second moments of uniform unit vectors."""
    size, dim = across.shape
    mean = across.mean(axis=0) / math.sqrt(1 / (dim * size))
    expected = np.eye(dim) / dim
    fourth = (1 + 2 * np.eye(dim)) / (dim * (dim + 2))
    second = (across.T @ across / size - expected) / np.sqrt((fourth - expected**2) / size)
    return np.r_[mean, second[np.tril_indices(dim)]]


# At most 63 + 2016 scores at 6.5 standard deviations: 2e-7 in all.
@pytest.mark.parametrize(("dim", "gap"), [(3, 0.0), (5, 0.0), (5, 1.4), (64, 0.0), (64, 1.0)])
def test_directions_across_theta_are_isotropic(dim: int, gap: float) -> None:
    across, optimal = directions(play(dim, gap))
    assert np.abs(isotropy_scores(across[~optimal])).max() < 6.5
    assert np.abs(isotropy_scores(across[optimal])).max() < 6.5
    stretched = across * np.where(np.arange(dim - 1) == 0, 1.05, 1.0)
    stretched /= np.linalg.norm(stretched, axis=1, keepdims=True)
    assert np.abs(isotropy_scores(stretched)).max() > 6.5
    drifting = across + 0.05 * np.eye(dim - 1)[0]
    drifting /= np.linalg.norm(drifting, axis=1, keepdims=True)
    assert np.abs(isotropy_scores(drifting)).max() > 6.5


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_in_two_dimensions_both_sides_of_theta_are_equally_likely(gap: float) -> None:
    across, optimal = directions(play(2, gap))
    for kind in (optimal, ~optimal):
        left = int((across[kind] > 0).sum())
        assert stats.binomtest(left, int(kind.sum())).pvalue > FLAKE
        assert stats.binomtest(left, int(kind.sum()), 0.4).pvalue < FLAKE


@pytest.mark.parametrize(("dim", "gap"), [(2, 0.0), (3, 0.0), (5, 0.1), (5, 1.4), (64, 1.0)])
def test_direction_and_inner_product_are_independent(dim: int, gap: float) -> None:
    played = play(dim, gap)
    across, optimal = directions(played)
    inner = played.means.reshape(-1)[~optimal]
    inner = (inner - inner.mean()) / inner.std()

    def scores(across: F64) -> F64:
        return inner @ across * math.sqrt((dim - 1) / inner.size)

    assert np.abs(scores(across[~optimal])).max() < 6.0
    leaning = across[~optimal] + 0.05 * inner[:, None]
    assert np.abs(scores(leaning)).max() > 6.0


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_no_action_is_offered_twice(dim: int, gap: float) -> None:
    played = play(dim, gap)
    # In two dimensions there are only two optimal actions.
    kept = played.actions[~played.optimal] if dim == 2 else played.actions.reshape(-1, dim)
    for coordinate in kept.T:
        assert np.unique(coordinate).size == coordinate.size


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_neighbouring_sets_and_neighbouring_actions_are_independent(dim: int, gap: float) -> None:
    played = play(dim, gap)
    across, _ = directions(played)
    across = across.reshape(ROUNDS, COUNT, dim - 1)
    inner = np.where(played.optimal, np.nan, played.means)
    inner = (inner - np.nanmean(inner)) / np.nanstd(inner)
    inner = np.nan_to_num(inner)[:, :, None]  # the optimal ones count for nothing

    def scores(values: F64, per_product: float) -> F64:
        """Standard scores of the products with the next four sets and the next four actions."""
        products = [(values[lag:] * values[:-lag]).sum(axis=-1) for lag in (1, 2, 3, 4)]
        products += [(values[:, k:] * values[:, :-k]).sum(axis=-1) for k in (1, 2, 3, 4)]
        return np.array([p.sum() / math.sqrt(per_product * p.size) for p in products])

    # 32 scores at 6 standard deviations: 1e-7 in all.
    for values, variance in ((across, 1 / (dim - 1)), (inner, (1 - 1 / COUNT) ** 2)):
        assert np.abs(scores(values, variance)).max() < 6.0
        for echo in (np.roll(values, 1, axis=0), np.roll(values, 1, axis=1)):
            assert np.abs(scores(values + 0.05 * echo, variance)).max() > 6.0


@pytest.mark.parametrize(("dim", "gap"), BANDS)
def test_the_place_of_the_optimal_action_tells_nothing_of_the_next(dim: int, gap: float) -> None:
    places = play(dim, gap).optimal.argmax(axis=1)
    for lag in (1, 2, BATCHED_ACTIONS // COUNT):
        moves = np.bincount((places[lag:] - places[:-lag]) % COUNT, minlength=COUNT)
        assert stats.chisquare(moves).pvalue > FLAKE
        biased = moves + np.where(np.arange(COUNT) == 0, 200, 0)
        assert stats.chisquare(biased).pvalue < FLAKE


@pytest.mark.parametrize("dim", [2, 5])
def test_theta_along_an_axis_is_no_special_case(dim: int) -> None:
    world = Sphere(dim=dim, n_actions=1_000).start(np.random.SeedSequence(12))
    arrays = world.arrays._replace(theta=np.eye(dim)[0])
    assert arms.next_set(world.state, arrays) == 0
    assert np.abs(np.linalg.norm(arrays.actions, axis=0) - 1).max() < 1e-12
    assert np.abs(arrays.actions[0] - arrays.means).max() < 1e-12


def test_a_single_action_is_the_optimal_one() -> None:
    world = Sphere(dim=4, n_actions=1).start(np.random.SeedSequence(13))
    arms.next_set(world.state, world.arrays)
    assert (world.arrays.means == TOP).all()
    inner = world.arrays.theta @ world.arrays.actions
    assert np.abs(inner - TOP).max() < 1e-12


@pytest.mark.parametrize("mean", [-1.0, -0.75, -0.1, 0.0, 0.4, 0.75, 1.0])
def test_sign_rewards_are_plus_or_minus_one_with_the_right_mean(mean: float) -> None:
    state, size = stream(14), 100_000
    drawn = np.array([arms.reward(state, mean, 0.0, 1.0) for _ in range(size)])
    assert set(drawn.tolist()) <= {-1.0, 1.0}
    wins = int((drawn > 0).sum())
    assert stats.binomtest(wins, size, 0.5 * (1 + mean)).pvalue > FLAKE
    for wrong in (mean - 0.05, mean + 0.05):
        if abs(wrong) <= 1.0:
            assert stats.binomtest(wins, size, 0.5 * (1 + wrong)).pvalue < FLAKE


@pytest.mark.parametrize("mean", [-0.75, 0.0, 0.4])
@pytest.mark.parametrize("std", [0.5, 1.0])
def test_gaussian_rewards_have_the_right_mean_and_deviation(mean: float, std: float) -> None:
    state, size = stream(15), 100_000
    drawn = np.array([arms.reward(state, mean, std, 9.0) for _ in range(size)])
    assert np.abs(drawn).max() <= 9.0
    assert stats.kstest(drawn, stats.norm(mean, std).cdf).pvalue > FLAKE
    for law in (stats.norm(mean, 1.1 * std), stats.norm(mean, std / 1.1)):
        assert stats.kstest(drawn, law.cdf).pvalue < FLAKE
    for law in (stats.norm(mean + 0.05 * std, std), stats.norm(mean - 0.05 * std, std)):
        assert stats.kstest(drawn, law.cdf).pvalue < FLAKE


def test_gaussian_rewards_stop_at_their_bound() -> None:
    state, size = stream(16), 50_000
    drawn = np.array([arms.reward(state, 0.5, 1.0, 1.0) for _ in range(size)])
    assert (drawn.min(), drawn.max()) == (-1.0, 1.0)
    for side, beyond in ((1.0, stats.norm.sf(0.5)), (-1.0, stats.norm.sf(1.5))):
        stopped = int((drawn == side).sum())
        assert stats.binomtest(stopped, size, beyond).pvalue > FLAKE
        assert stats.binomtest(stopped, size, 1.2 * beyond).pvalue < FLAKE
