"""Stated bounds, targets and guarantees."""

import math

import pytest

from discreet import Guarantee, Privacy, Problem, Setting
from discreet.errors import ParameterError

STATED = {"dim": 4, "action_norm": 2.0, "reward_bound": 1.5, "theta_norm": 3.0}


def test_the_derived_bounds_follow_from_the_stated_ones() -> None:
    problem = Problem(**STATED)
    assert problem.row_norm == pytest.approx(2.5)
    assert problem.mean_reward_bound == 1.5  # the smaller of 2 * 3 and the reward bound
    assert problem.reward_subgaussian == 1.5


def test_a_small_mean_reward_bound_is_raised_to_one() -> None:
    problem = Problem(dim=1, action_norm=0.1, reward_bound=0.5, theta_norm=1)
    assert problem.mean_reward_bound == 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", 0),
        ("dim", 1.5),
        ("dim", "4"),
        ("dim", math.nan),
        ("action_norm", 0.0),
        ("action_norm", -1),
        ("reward_bound", math.inf),
        ("theta_norm", math.nan),
        ("action_norm", 1e-170),
        ("reward_bound", 1e200),
        ("theta_norm", None),
        ("mean_reward_bound", 0.5),
        ("mean_reward_bound", 0),
        ("reward_subgaussian", 0.0),
    ],
)
def test_a_bad_bound_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ParameterError, match=f"^{name}: ") as caught:
        Problem(**{**STATED, name: value})
    assert caught.value.parameter == name


@pytest.mark.parametrize(("horizon", "alpha"), [(1, 0.5), (2, 0.5), (1000, 1e-3)])
def test_the_failure_probability_defaults_to_one_over_the_horizon(
    horizon: int, alpha: float
) -> None:
    assert Setting(problem=Problem(**STATED), horizon=horizon).failure_prob == alpha


def test_a_horizon_may_be_written_as_a_float() -> None:
    setting = Setting(problem=Problem(**STATED), horizon=5e7)
    assert setting.horizon == 50_000_000
    assert isinstance(setting.horizon, int)


def test_a_guarantee_reads_as_a_sentence() -> None:
    text = str(Guarantee(epsilon=0.5, delta=1e-6, argument="because"))
    assert text.startswith("(0.5, 1e-06)-joint differential privacy: replacing one person's")
    assert text.endswith("Why: because.")


def test_no_guarantee_reads_as_a_sentence_too() -> None:
    nothing = Guarantee.nothing("there is no noise")
    assert str(nothing) == "No privacy is promised: there is no noise."
    assert not nothing.private
    assert nothing.to_json()["epsilon"] is None


def test_targets_have_no_defaults() -> None:
    with pytest.raises(TypeError):
        Privacy()
    with pytest.raises(TypeError):
        Problem(dim=3)


@pytest.mark.parametrize("horizon", [10**151, 10**400, float("inf"), float("nan")])
def test_a_horizon_beyond_all_numbers_is_refused(problem: Problem, horizon: float) -> None:
    with pytest.raises(ParameterError, match="horizon: is "):
        Setting(problem=problem, horizon=horizon)
