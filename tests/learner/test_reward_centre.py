"""Rewards around a stated centre: clicks, ratings, money."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import LinUCB, Privacy, Problem
from discreet.curator.bounds import bounded_reward
from discreet.errors import OutOfBoundsError, ParameterError
from discreet.mechanism.noise.sources import SeededNoise

BOUNDS = {"dim": 2, "action_norm": 1.0, "theta_norm": 1.0}
CLICKS = Problem.between(0, 1, **BOUNDS)
TARGET = Privacy(epsilon=3.0, delta=0.01)


def learner(problem: Problem, path: Path | None = None, **options: object) -> LinUCB:
    source = SeededNoise(np.random.SeedSequence(3))
    return LinUCB(problem, horizon=1_000, privacy=TARGET, noise_source=source, path=path, **options)


def test_rewards_between_two_numbers_have_their_middle_as_centre() -> None:
    assert (CLICKS.reward_centre, CLICKS.reward_bound) == (0.5, 0.5)
    assert CLICKS.reward_subgaussian == 0.5
    stars = Problem.between(1, 5, reward_subgaussian=1.0, **BOUNDS)
    assert (stars.reward_centre, stars.reward_bound, stars.reward_subgaussian) == (3.0, 2.0, 1.0)


@given(st.floats(-1e3, 1e3), st.floats(1e-2, 1e3))
def test_both_ends_are_rewards_that_can_be(low: float, width: float) -> None:
    problem = Problem.between(low, low + width, **BOUNDS)
    ends = (low, low + width)
    reach = max(abs(Fraction(end) - Fraction(problem.reward_centre)) for end in ends)
    assert reach <= Fraction(problem.reward_bound) <= reach * (1 + Fraction(1, 2**50))
    for end in ends:
        assert abs(bounded_reward(problem, end, "error")) <= problem.reward_bound


def test_what_is_learned_is_the_distance_from_the_centre() -> None:
    plain = Problem(reward_bound=0.5, **BOUNDS)
    one, other = learner(CLICKS), learner(plain)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.7, 0.7, (300, 2))
    clicks = (rng.random(300) < 0.3).astype(float)
    for action, click in zip(actions, clicks, strict=True):
        one.learn(one.choose([action]), click)
        other.learn(other.choose([action]), click - 0.5)
    assert one.release.number > 5
    np.testing.assert_array_equal(one.release.moment, other.release.moment)
    np.testing.assert_array_equal(one.release.gram, other.release.gram)
    for found, expected in zip(one.estimate(actions), other.estimate(actions), strict=True):
        np.testing.assert_allclose(found, expected + 0.5, rtol=1e-14)
    assert one.mechanism.cost == other.mechanism.cost


def test_a_stored_learner_has_its_centre_and_its_rows_again(tmp_path: Path) -> None:
    kept = learner(CLICKS, tmp_path / "state")
    for turn in range(200):
        kept.learn(kept.choose([[0.6, 0.1]]), turn % 2)  # not compacted: the rows are there
    release = kept.release
    del kept
    again = discreet.load(tmp_path / "state", noise_source=SeededNoise(np.random.SeedSequence(4)))
    assert again.problem == CLICKS
    assert again.rows == 200
    np.testing.assert_array_equal(again.release.moment, release.moment)


@pytest.mark.parametrize("reward", [-0.001, 1.001, -0.5, 5.0])
def test_what_is_outside_is_refused_or_clipped(reward: float) -> None:
    strict, lenient = learner(CLICKS), learner(CLICKS, on_violation="clip")
    with pytest.raises(OutOfBoundsError, match="outside 0 to 1, the stated range"):
        strict.learn(strict.choose([[0.5, 0.5]]), reward)
    assert strict.rows == 0
    lenient.learn(lenient.choose([[0.5, 0.5]]), reward)
    assert lenient.rows == 1
    batch = lenient._curator._held.sums.arrays()["batch"]
    step = lenient.mechanism.grid.reward_step * lenient.mechanism.grid.action_step
    assert batch[-1] * step == pytest.approx(math.copysign(0.25, reward - 0.5))


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"low": 1, "high": 1}, "high"),
        ({"low": 2, "high": 1}, "high"),
        ({"low": math.nan, "high": 1}, "low"),
        ({"low": 0, "high": math.inf}, "high"),
        ({"low": 1e9, "high": 1e9 + 1}, "reward_centre"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(options: dict[str, float], parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Problem.between(**options, **BOUNDS)
    assert caught.value.parameter == parameter


def test_a_problem_without_a_centre_is_stored_as_it_was() -> None:
    from discreet.mechanism import _codec as codec  # noqa: PLC0415

    mechanism = learner(Problem(reward_bound=1.0, **BOUNDS)).mechanism
    entry = codec.to_json(mechanism)
    assert "reward_centre" not in entry["setting"]["problem"]
    assert codec.from_json(entry) == mechanism
    centred = learner(CLICKS).mechanism
    assert codec.from_json(codec.to_json(centred)) == centred
