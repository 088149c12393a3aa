"""What all releases cost together, beside brute force over rounds, batches and directions."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet import accounting
from discreet.accounting import Neighbours
from discreet.errors import ParameterError, ShapeError
from discreet.privacy import Privacy
from discreet.problem import Problem

F64 = NDArray[np.float64]


def toeplitz(size: int) -> F64:
    """The square root of the prefix-sum matrix."""
    first = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, size))])
    return np.array([[first[i - j] if i >= j else 0.0 for j in range(size)] for i in range(size)])


def tree(depth: int, *, released_only: bool = False) -> F64:
    """Nodes by rounds: which of the 2^(m-1) rounds each node sums.

    Prefix sums need only nodes at even positions of their level: the others are right children,
    and a prefix that has all of one also has all of its parent.
    """
    rounds = np.arange(2 ** (depth - 1))
    nodes = [
        rounds // 2**level == node
        for level in range(depth)
        for node in range(0, 2 ** (depth - 1 - level), 2 if released_only else 1)
    ]
    return np.array(nodes, dtype=np.float64)


STRATEGIES = {
    "independent": np.eye(5),
    "prefix sums": np.tril(np.ones((5, 5))),
    "square root": toeplitz(6),
    "tree": tree(4),
    "signed": np.linalg.inv(toeplitz(5)),
    "any": np.random.default_rng(1).standard_normal((4, 6)),
}


def worst_aligned(encoder: F64, sizes: list[int], rounds: int) -> float:
    """The largest distance if every change is the same unit vector, up to its sign."""
    choices = [
        [j for j in chosen if j >= 0]
        for chosen in itertools.combinations_with_replacement(range(-1, len(sizes)), rounds)
        if all(chosen.count(j) <= sizes[j] for j in set(chosen) - {-1})
    ]
    return max(
        float(np.linalg.norm(encoder[:, chosen] @ np.array(signs)))
        for chosen in choices
        for signs in itertools.product([1, -1], repeat=len(chosen))
    )


# Strategies


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("contributions", [1, 2, 3])
def test_roomy_batches_cost_exactly_the_longest_column(name: str, contributions: int) -> None:
    encoder = STRATEGIES[name]
    room = [contributions] * encoder.shape[1]
    worst = 0.3 * worst_aligned(encoder, room, contributions)
    cost = accounting.strategy_cost(encoder, row_cost=0.3, contributions=contributions)
    assert worst * (1 - 1e-14) <= cost
    assert cost == pytest.approx(worst, rel=1e-12)
    same = accounting.group_cost(
        encoder, row_cost=0.3, contributions=contributions, batch_sizes=room
    )
    assert same == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("contributions", [2, 3])
@pytest.mark.parametrize("most", [1, 2])
def test_small_batches_cost_less_but_no_less_than_the_worst_case(
    name: str, contributions: int, most: int
) -> None:
    encoder = STRATEGIES[name]
    sizes = [1 + j % most for j in range(encoder.shape[1])]
    cost = accounting.group_cost(
        encoder, row_cost=1.0, contributions=contributions, batch_sizes=sizes
    )
    assert cost >= worst_aligned(encoder, sizes, contributions)
    assert cost <= accounting.strategy_cost(encoder, row_cost=1.0, contributions=contributions)


def test_one_round_in_each_batch_is_exact_for_independent_batches() -> None:
    cost = accounting.group_cost(np.eye(9), row_cost=1.0, contributions=4, batch_sizes=[1] * 9)
    assert cost == pytest.approx(math.sqrt(4), rel=1e-12)
    roomy = accounting.strategy_cost(np.eye(9), row_cost=1.0, contributions=4)
    assert roomy == pytest.approx(4, rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), contributions=st.integers(1, 5))
def test_changes_in_any_directions_stay_within_the_cost(seed: int, contributions: int) -> None:
    rng = np.random.default_rng(seed)
    encoder = rng.standard_normal((7, 5))
    sizes = rng.integers(1, 4, size=5)
    places = np.repeat(np.arange(5), sizes)
    rounds = min(contributions, places.size)
    chosen = rng.choice(places.size, size=rounds, replace=False)
    changes = rng.standard_normal((rounds, 4))
    changes /= np.linalg.norm(changes, axis=1, keepdims=True)
    moved = np.zeros((5, 4))
    np.add.at(moved, places[chosen], changes)
    cost = accounting.group_cost(
        encoder, row_cost=1.0, contributions=contributions, batch_sizes=sizes
    )
    assert np.linalg.norm(encoder @ moved) <= cost


def test_the_square_root_strategy_costs_about_the_logarithm() -> None:
    cost = accounting.strategy_cost(toeplitz(66), row_cost=1.0)
    assert cost**2 == pytest.approx(1 + (math.log(66) + 0.2) / math.pi, rel=0.05)


def test_bad_matrices_are_refused() -> None:
    for encoder in ([1.0, 2.0], [[math.nan]], np.empty((0, 3))):
        with pytest.raises(ShapeError):
            accounting.strategy_cost(encoder, row_cost=1.0)
    for sizes in ([1], [1, 0], [1, math.nan]):
        with pytest.raises(ShapeError):
            accounting.group_cost(np.eye(2), row_cost=1.0, contributions=2, batch_sizes=sizes)
    with pytest.raises(ParameterError):
        accounting.strategy_cost(np.eye(2), row_cost=1.0, contributions=0)


# Trees


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_one_round_costs_the_root_of_the_depth(depth: int) -> None:
    cost = accounting.tree_cost(row_cost=0.7, depth=depth)
    assert cost == pytest.approx(0.7 * math.sqrt(depth), rel=1e-12)
    for released_only in (False, True):  # the first round is in a released node of every level
        encoder = tree(depth, released_only=released_only)
        assert accounting.strategy_cost(encoder, row_cost=0.7) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("contributions", [2, 3, 4])
def test_several_rounds_cost_exactly_what_brute_force_finds(contributions: int) -> None:
    def worst(encoder: F64) -> float:
        return max(
            float(np.linalg.norm(encoder[:, chosen].sum(axis=1)))
            for chosen in map(list, itertools.combinations(range(16), contributions))
        )

    cost = accounting.tree_cost(row_cost=1.0, depth=5, contributions=contributions)
    assert cost == pytest.approx(worst(tree(5)), rel=1e-12)
    assert cost >= worst(tree(5, released_only=True))
    assert cost < contributions * math.sqrt(5)


# Whole calibrations


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (1.0, 1e-6), (0.1, 1e-6)])
def test_google_confirms_a_calibration_from_end_to_end(epsilon: float, delta: float) -> None:
    privacy = Privacy(epsilon=epsilon, delta=delta)
    problem = Problem(dim=5, action_norm=2, reward_bound=1.5, theta_norm=1)
    budget = accounting.gaussian_mu(privacy)
    encoder = toeplitz(12)
    mu_one = budget / accounting.strategy_cost(encoder, row_cost=1.0)
    scales = accounting.row_scales(problem, mu_one=mu_one)
    one = accounting.row_cost(action_norm=2, reward_bound=1.5, **scales._asdict())
    # The first batch is in every release: twelve Gaussian mechanisms, one for each.
    losses = [
        pld.privacy_loss_distribution.from_gaussian_mechanism(
            1 / (one * entry), value_discretization_interval=1e-4
        )
        for entry in encoder[:, 0]
    ]
    total = losses[0]
    for loss in losses[1:]:
        total = total.compose(loss)
    assert total.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=2e-3)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("contributions", [1, 3])
@settings(deadline=None, max_examples=40)
@given(
    epsilon=st.floats(-10, 10).map(math.exp),
    delta=st.floats(-80, -0.1).map(math.exp),
    depth=st.integers(1, 60),
    norm=st.floats(-5, 5).map(math.exp),
    bound=st.floats(-5, 5).map(math.exp),
)
def test_the_exact_node_scale_meets_its_target_and_no_smaller_one_does(
    *,
    neighbours: Neighbours,
    contributions: int,
    epsilon: float,
    delta: float,
    depth: int,
    norm: float,
    bound: float,
) -> None:
    std = accounting.gaussian_node_std_gdp(
        privacy=Privacy(epsilon=epsilon, delta=delta), depth=depth, action_norm=norm,
        reward_bound=bound, neighbours=neighbours, contributions=contributions,
    )  # fmt: skip

    def delta_at(scale: float) -> float:
        one = accounting.row_cost(
            action_norm=norm, reward_bound=bound, gram_std=scale, moment_std=scale,
            neighbours=neighbours,
        )  # fmt: skip
        mu = accounting.tree_cost(row_cost=one, depth=depth, contributions=contributions)
        return accounting.gaussian_delta(epsilon=epsilon, mu=mu)

    assert delta_at(std * (1 + 1e-12)) <= delta
    assert delta_at(std * (1 - 1e-8)) > delta


def test_exact_accounting_divides_the_papers_scale_by_its_golden_factor() -> None:
    privacy = Privacy(epsilon=1, delta=0.1)
    paper = accounting.gaussian_node_std(privacy=privacy, depth=27, row_norm=math.sqrt(2))
    exact = accounting.gaussian_node_std_gdp(
        privacy=privacy, depth=27, action_norm=1, reward_bound=1
    )
    assert exact == pytest.approx(2 * math.sqrt(27) / 0.9209139666, rel=1e-9)
    assert paper / exact == pytest.approx(13.58856, rel=1e-6)
    assert accounting.paper_gaussian_mu(privacy) == pytest.approx(2 * math.sqrt(27) / paper)
