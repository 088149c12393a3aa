"""Simulations of multi-armed bandits: arms, checkpoints, seeds."""

import numpy as np
import pytest

from discreet import errors
from discreet.baselines import RULES, Arms, Elimination, simulate
from discreet.baselines.arms._learner import ArmRule

MADE: dict[str, ArmRule] = {
    name: row.rule(n_arms=3, horizon=3000, **({"epsilon": 1.0} if row.private else {}))
    for name, row in RULES.items()
} | {"se": Elimination(n_arms=3, horizon=3000)}
ARMS = Arms.with_gaps([0.5, 1.0], best_mean=0.25)


@pytest.fixture(params=list(MADE))
def rule(request: pytest.FixtureRequest) -> ArmRule:
    return MADE[request.param]


def test_arms_know_their_gaps() -> None:
    assert ARMS.means == (0.25, -0.25, -0.75)
    np.testing.assert_allclose(ARMS.gaps, [0.0, 0.5, 1.0])


@pytest.mark.parametrize("gap", [0.0, -0.1, 2.1, float("nan")])
def test_gaps_outside_zero_to_two_are_refused_by_name(gap: float) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        Arms.with_gaps([gap], best_mean=1.0)
    assert caught.value.parameter == "gap"


@pytest.mark.parametrize("means", [(0.5,), (), (0.5, 1.5), (0.0, float("nan"))])
def test_impossible_means_are_refused_by_name(means: tuple[float, ...]) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        Arms(means)
    assert caught.value.parameter == "means"


def test_every_round_pulls_one_arm(rule: ArmRule) -> None:
    checkpoints = [1, 2, 3, 4, 100, 2999, 3000]
    outcome = simulate(rule, ARMS, seeds=range(4), checkpoints=checkpoints)
    assert outcome.pulls.shape == (4, 7, 3)
    np.testing.assert_array_equal(outcome.pulls.sum(axis=2), [checkpoints] * 4)
    assert (np.diff(outcome.pulls, axis=1) >= 0).all()
    np.testing.assert_allclose(
        outcome.regrets, 0.5 * outcome.pulls[:, :, 1] + outcome.pulls[:, :, 2]
    )


def test_checkpoints_do_not_change_the_play(rule: ArmRule) -> None:
    often = simulate(rule, ARMS, seeds=[5], checkpoints=range(1, 3001)).pulls
    once = simulate(rule, ARMS, seeds=[5]).pulls
    np.testing.assert_array_equal(often[:, -1], once[:, -1])


def test_seeds_are_repeatable_on_any_number_of_workers(
    rule: ArmRule,
) -> None:
    alone = simulate(rule, ARMS, seeds=range(4)).pulls
    shared = simulate(rule, ARMS, seeds=range(4), jobs=2).pulls
    np.testing.assert_array_equal(alone, shared)


@pytest.mark.parametrize("checkpoints", [[], [0], [5, 5], [6, 5], [3001], [2.5]])
def test_bad_checkpoints_are_refused_by_name(checkpoints: list[int]) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        simulate(MADE["ucb1"], ARMS, seeds=[1], checkpoints=checkpoints)
    assert caught.value.parameter == "checkpoints"


def test_no_seeds_and_the_wrong_number_of_arms_are_refused_by_name() -> None:
    with pytest.raises(errors.ParameterError, match="seeds"):
        simulate(MADE["ucb1"], ARMS, seeds=[])
    with pytest.raises(errors.ParameterError, match="arms"):
        simulate(MADE["ucb1"], Arms((0.0, 0.1)), seeds=[1])
