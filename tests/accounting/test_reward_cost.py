"""What one reward costs if the rest is public: the formula beside a search over all pairs."""

import itertools
import math

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import ParameterError
from discreet.problem import Problem

CASES = [(1.0, 1.0, 1.0), (2.0, 0.5, 3.0), (0.3, 7.0, 0.2)]  # L, B, s_u


def moved(action: np.ndarray, first: float, second: float, std: float) -> float:
    """How far the moment moves if one reward is exchanged, in standard deviations."""
    return float(np.linalg.norm(action * first - action * second)) / std


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("neighbours", ["replacement", "add-remove"])
def test_no_pair_of_rewards_costs_more_and_some_pair_costs_as_much(
    dim: int, case: tuple[float, float, float], neighbours: str
) -> None:
    length, bound, std = case
    rng = np.random.default_rng(dim)
    directions = rng.normal(size=(40, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    actions = [size * length * one for one in directions for size in (0.0, 0.4, 1.0)]
    rewards = np.linspace(-bound, bound, 9)
    others = rewards if neighbours == "replacement" else [0.0]  # at the centre
    largest = max(
        moved(action, *pair, std)
        for action in actions
        for pair in itertools.product(rewards, others)
    )
    claimed = accounting.reward_cost(
        action_norm=length, reward_bound=bound, moment_std=std, neighbours=neighbours
    )
    assert largest <= claimed
    assert claimed == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("neighbours", ["replacement", "add-remove"])
@pytest.mark.parametrize("mu", [0.236, 1.0, 40.0])
def test_the_deviation_meets_a_cost_from_below_and_closely(neighbours: str, mu: float) -> None:
    problem = Problem(dim=3, action_norm=1.7, reward_bound=0.3, theta_norm=1)
    std = accounting.reward_std(problem, mu_one=mu, neighbours=neighbours)
    # By hand: 2 L B / mu, or half of it.
    assert std == pytest.approx((2 if neighbours == "replacement" else 1) * 1.7 * 0.3 / mu)
    cost = accounting.reward_cost(
        action_norm=1.7, reward_bound=0.3, moment_std=std, neighbours=neighbours
    )
    assert mu * (1 - 1e-12) < cost <= mu


def test_rewards_cost_less_than_rows_with_the_same_noise() -> None:
    # Where the Gram matrix has much noise, only the moment counts, and both agree.
    bounds = {"action_norm": 1.0, "reward_bound": 1.0}
    alone = accounting.reward_cost(**bounds, moment_std=1.0)
    for gram_std in (0.5, 1.0, 1e6):
        assert alone <= accounting.row_cost(**bounds, gram_std=gram_std, moment_std=1.0) * (
            1 + 1e-9
        )
    assert alone == pytest.approx(accounting.row_cost(**bounds, gram_std=1e6, moment_std=1.0))


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_deviation_that_makes_no_sense_is_refused(wrong: float) -> None:
    with pytest.raises(ParameterError, match="moment_std"):
        accounting.reward_cost(action_norm=1.0, reward_bound=1.0, moment_std=wrong)
