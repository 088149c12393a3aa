"""The rows that attacks play are the worst ones, and neighbours differ in one person's rounds."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from discreet import UCB, LinUCB, Privacy, Problem, Setting, accounting
from discreet.audit import _streams as streams
from discreet.audit import _trials as trials
from discreet.errors import ParameterError
from discreet.mechanism import Mechanism
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import Tight, Windowed


def mechanism(
    dim: int = 3,
    *,
    std: float = 1.0,
    moment_std: float = 1.6,
    action_norm: float = 1.0,
    reward_bound: float = 1.0,
    **privacy: object,
) -> Mechanism:
    problem = Problem(dim=dim, action_norm=action_norm, reward_bound=reward_bound, theta_norm=1.0)
    row = Tight(schedule=batches(4), ratio=moment_std / std)
    target = Privacy(epsilon=1.0, delta=1e-6, **privacy)
    built = row.mechanism(Setting(problem=problem, horizon=12), target, noise="float")
    return replace(built, noise=GaussianNoise(std=std, moment_std=moment_std))


def whitened(pair: streams.RowPair, noise: GaussianNoise) -> float:
    gram = np.outer(pair.one.action, pair.one.action)
    gram -= np.outer(pair.other.action, pair.other.action)
    moment = pair.one.action * pair.one.reward - pair.other.action * pair.other.reward
    return math.hypot(
        np.linalg.norm(gram) / (math.sqrt(2) * noise.std),
        np.linalg.norm(moment) / noise.moment_std,
    )


@pytest.mark.parametrize("neighbours", ["replacement", "add-remove"])
@pytest.mark.parametrize("scales", [(1.0, 1.6), (2.0, 1.0), (1.0, 1.0), (0.3, 7.0)])
@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 0.5), (0.5, 3.0)])
def test_the_worst_pair_costs_what_accounting_says_a_row_costs(
    neighbours: str, scales: tuple[float, float], bounds: tuple[float, float]
) -> None:
    built = mechanism(
        std=scales[0],
        moment_std=scales[1],
        action_norm=bounds[0],
        reward_bound=bounds[1],
        neighbours=neighbours,
    )
    cost = accounting.row_cost(
        action_norm=bounds[0],
        reward_bound=bounds[1],
        gram_std=scales[0],
        moment_std=scales[1],
        neighbours=neighbours,
    )
    assert whitened(streams.worst_pair(built), built.noise) == pytest.approx(cost, rel=1e-12)


def test_the_worst_pair_is_within_bounds() -> None:
    for row in streams.worst_pair(mechanism(action_norm=2.0, reward_bound=0.5)):
        assert np.linalg.norm(row.action) <= 2.0 * (1 + 1e-15)
        assert abs(row.reward) <= 0.5


def test_in_one_dimension_no_pair_on_a_grid_is_worse() -> None:
    for moment_std in (1.6, 2.0, 5.0):
        built = mechanism(1, moment_std=moment_std)
        worst = whitened(streams.worst_pair(built), built.noise)
        actions = np.linspace(-1, 1, 81)
        others = [
            whitened(
                streams.RowPair(
                    streams.PlayedRow(np.array([1.0]), 1.0),
                    streams.PlayedRow(np.array([action]), reward),
                ),
                built.noise,
            )
            for action in actions
            for reward in (-1.0, 1.0)
        ]
        assert max(others) <= worst + 1e-12
        assert max(others) >= worst - 1e-2


def test_worlds_differ_in_one_persons_rounds_and_in_nothing_else() -> None:
    built = mechanism(contributions_per_user=3)
    pair = streams.worst_pair(built)
    found = streams.worlds(built, pair, (4, 8, 12), first=4)
    rows = [[row for part in stream.parts for row in part] for stream in found.streams]
    differ = [not np.array_equal(a[0], b[0]) or a[1] != b[1] for a, b in zip(*rows, strict=True)]
    assert np.flatnonzero(differ).tolist() == [4, 5, 6]
    expected = np.multiply.outer([0, 0, 3, 3], pair.difference)
    assert np.array_equal(found.shift, expected)


def test_the_shift_is_the_difference_of_the_sums() -> None:
    built = mechanism()
    pair = streams.worst_pair(built)
    found = streams.worlds(built, pair, (4, 8), first=4)
    for number in (1, 2):
        sums = [
            sum(
                streams.PlayedRow(actions[0], reward).sums()
                for part in stream.parts[:number]
                for actions, reward in part
            )
            for stream in found.streams
        ]
        assert np.allclose(sums[0] - sums[1], found.shift[number])


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("row", [Windowed(start=0.1), Tight(schedule=batches(4))])
def test_the_shift_is_what_releases_show_without_noise(
    row: Windowed | Tight, contributions: int
) -> None:
    problem = Problem(dim=3, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
    target = Privacy(epsilon=1.0, delta=1e-6, contributions_per_user=contributions)
    built = row.mechanism(Setting(problem=problem, horizon=60), target, noise="float")
    times = streams.release_times(built, 8)
    assert len(times) == 8
    found = streams.worlds(built, streams.worst_pair(built), times, first=times[1])
    assert not found.shift[:3].any()
    assert found.shift[3:].any(axis=1).all()
    still = replace(built, noise=GaussianNoise(std=1e-12, moment_std=1e-12))
    shown = [
        trials.recorded(made(still), stream, entries=5, count=1)[0] for stream in found.streams
    ]
    assert np.allclose(shown[0] - shown[1], found.shift, rtol=1e-9, atol=1e-9)


def made(built: Mechanism) -> partial[LinUCB]:
    return partial(LinUCB.from_mechanism, built, policy=UCB())


def test_only_the_releases_within_the_horizon_are_looked_at() -> None:
    assert streams.release_times(mechanism(), 32) == (4, 8, 12)
    assert streams.release_times(mechanism(), 2) == (4, 8)


def test_a_coin_decides_the_first_row_of_each_part() -> None:
    pair = streams.worst_pair(mechanism())
    found = streams.coin_stream(3, pair, (4, 8, 12), np.array([True, False, True]))
    first = [part[0] for part in found.parts]
    for (actions, reward), row in zip(first, (pair.one, pair.other, pair.one), strict=True):
        assert np.array_equal(actions[0], row.action)
        assert reward == row.reward
    assert not any(actions.any() or reward for part in found.parts for actions, reward in part[1:])


def test_a_horizon_before_the_first_release_is_refused() -> None:
    built = mechanism()
    short = replace(built, setting=replace(built.setting, horizon=3))
    with pytest.raises(ParameterError, match="ends before the first release"):
        streams.release_times(short, 1)


@pytest.mark.parametrize("neighbours", ["replacement", "add-remove"])
@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 0.5)])
def test_where_rewards_alone_are_protected_neighbours_differ_in_the_reward(
    neighbours: str, bounds: tuple[float, float]
) -> None:
    problem = Problem(dim=3, action_norm=bounds[0], reward_bound=bounds[1], theta_norm=1.0)
    target = Privacy(epsilon=1.0, delta=1e-6, neighbours=neighbours, protects="rewards")
    built = Tight().mechanism(Setting(problem=problem, horizon=50), target)
    pair = streams.worst_pair(built)
    assert np.array_equal(pair.one.action, pair.other.action)
    assert not pair.difference[:3].any()
    cost = accounting.reward_cost(
        action_norm=bounds[0], reward_bound=bounds[1], moment_std=1.0, neighbours=neighbours
    )
    assert np.linalg.norm(pair.difference[3:]) == pytest.approx(cost, rel=1e-12)
