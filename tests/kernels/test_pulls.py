"""Steps of upper-confidence play: the scalar tree is the tree, and Laplace is Laplace."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.kernels import _pulls as pulls
from discreet.kernels import _random as random
from discreet.kernels import _tree as tree

F64 = NDArray[np.float64]
EXAMPLES = settings(deadline=None, derandomize=True)
FLAKE = 1e-6  # of each statistical comparison, under a new seed


def normals(seed: int, count: int) -> F64:
    out = np.empty(count)
    random.fill_normals(random.seed_state(np.random.SeedSequence(seed)), out)
    return out


def laplaces(z: F64) -> F64:
    return np.array([pulls.laplace(z, at) for at in range(0, len(z), pulls.PER_DRAW)])


def test_four_normals_make_one_laplace_number() -> None:
    sample = laplaces(normals(seed=1, count=400_000))
    assert stats.kstest(sample, stats.laplace().cdf).pvalue > FLAKE
    for wrong in (0.93, 1.07):
        assert stats.kstest(sample, stats.laplace(scale=wrong).cdf).pvalue < FLAKE


@EXAMPLES
@given(seed=st.integers(0, 2**32), scale=st.floats(1e-3, 1e6), reward=st.integers(-(2**20), 2**20))
def test_noise_is_on_a_grid_and_sums_with_rewards_on_it_are_exact(
    seed: int, scale: float, reward: int
) -> None:
    z = normals(seed, pulls.PER_DRAW)
    drawn, exact = pulls.noise(z, 0, scale), scale * pulls.laplace(z, 0)
    assert abs(drawn - exact) <= 0.5 * pulls.GRID * (1 + 1e-9)
    steps = int(drawn * 2**20)
    assert drawn == steps * pulls.GRID
    assert drawn + reward * pulls.GRID == (steps + reward) * pulls.GRID


@EXAMPLES
@given(st.integers(0, 2**62))
def test_ones_counts_binary_ones(number: int) -> None:
    assert pulls.ones(number) == number.bit_count()


@EXAMPLES
@given(
    rewards=st.lists(st.floats(-1, 1), min_size=1, max_size=40),
    spare=st.integers(0, 30),
    seed=st.integers(0, 2**32),
)
def test_an_arm_sums_as_the_covering_tree_does(rewards: list[float], spare: int, seed: int) -> None:
    horizon = len(rewards) + spare
    levels, scale = horizon.bit_length(), 3.0
    z = normals(seed, pulls.PER_DRAW * 3 * (levels + 1) * (len(rewards) + 1))
    board = pulls.empty_board(2, levels)
    at = pulls.begin(board, levels, scale, z, 0)
    noise = np.array([pulls.noise(z, one, scale) for one in range(0, len(z), pulls.PER_DRAW)])
    used = 2 * levels

    nodes, idle = np.zeros((levels, 1)), np.zeros((levels, 1))
    totals, clock = np.zeros((levels + 1, 1)), np.zeros(1, np.int64)
    tree.begin(nodes, idle, totals, noise[levels:used, None])

    widths = np.zeros(64)
    for reward in rewards:
        starting = tree.carry(int(clock[0]) + 1, levels)
        fresh = noise[used : used + starting, None]
        used += starting
        tree.step(nodes, idle, totals, clock, np.array([reward]), fresh, horizon)
        at = pulls.learn(board, widths, 1, reward, horizon, scale, z, at)
        assert at == pulls.PER_DRAW * used
        assert board[1, pulls.PULLS] == clock[0]
        assert math.isclose(board[1, 0] * clock[0], totals[0, 0], abs_tol=1e-9)
    assert board[0, pulls.PULLS] == 0


@EXAMPLES
@given(horizon=st.integers(2, 70), place=st.integers(0, 69))
def test_a_reward_is_in_at_most_one_node_of_each_level_that_ever_shows(
    horizon: int, place: int
) -> None:
    place %= horizon
    levels = horizon.bit_length()
    board = pulls.empty_board(2, levels)
    totals = board.shape[1] - levels - 1
    touched = set()
    for turn in range(1, horizon + 1):
        reward = 1.0 if turn == place + 1 else 0.0
        pulls.learn(board, np.zeros(64), 0, reward, horizon, 0.0, np.zeros(4 * levels), 0)
        shown = -np.diff(board[0, totals:])  # what stands at each level
        assert shown.sum() == (turn > place)
        touched |= {(level, turn >> level) for level in range(levels) if shown[level] != 0}
    assert len({level for level, _ in touched}) == len(touched) <= levels
    assert place > 0 or len(touched) == levels  # the first reward is in all of them


def test_without_levels_the_base_is_the_mean_plus_the_width() -> None:
    board, widths = pulls.empty_board(2, 0), np.full(64, 0.5)
    for reward in (1.0, -1.0, 0.25):
        pulls.learn(board, widths, 0, reward, 10, 0.0, np.empty(0), 0)
    assert math.isclose(board[0, 0], (0.25 + 0.5) / 3)
    assert math.isclose(board[0, 1], 1 / math.sqrt(3))
    assert board[1, 0] == math.inf


def test_the_first_of_equal_indices_is_chosen() -> None:
    board = pulls.empty_board(3, 0)
    board[:, 0], board[:, 1] = [0.5, 1.0, 1.0], 0.1
    assert pulls.choose(board, 2.0) == 1
    board[0, 1] = 1.0
    assert pulls.choose(board, 2.0) == 0


@pytest.mark.parametrize("turn", [1, 2, 1000])
def test_the_growth_is_that_of_ucb1_for_rewards_twice_as_wide(turn: int) -> None:
    assert math.isclose(pulls.growth(turn), 2 * math.sqrt(2 * math.log(turn)))
