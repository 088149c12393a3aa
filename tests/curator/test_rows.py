"""Rows at the door."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from discreet import Problem
from discreet.curator.rows import bounded_actions, bounded_reward, checked_choice
from discreet.errors import (
    DiscreetError,
    EmptyDecisionSetError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
)

PROBLEM = Problem(dim=3, action_norm=2.0, reward_bound=1.5, theta_norm=1)
SECRET = 0.777123456  # a number that must not show up in any message

BAD_ACTIONS = [
    ([], EmptyDecisionSetError),
    (np.empty((0, 3)), EmptyDecisionSetError),
    (np.empty((4, 0)), EmptyDecisionSetError),
    ([SECRET, 0.0, 0.0], ShapeError),
    ([[SECRET, 0.0]], ShapeError),
    (np.full((2, 2, 3), SECRET), ShapeError),
    ([[SECRET, 0.0, 0.0], [SECRET, 0.0]], ShapeError),
    ([["a", SECRET, "c"]], ShapeError),
    (np.array([[SECRET + 1j, 0, 0]]), ShapeError),
    (None, ShapeError),
    ("0.777123456", ShapeError),
    ({"x": SECRET}, ShapeError),
    ([[SECRET, math.nan, 0.0]], NotFiniteError),
    ([[SECRET, math.inf, 0.0]], NotFiniteError),
    ([[SECRET, 3.0, 0.0]], OutOfBoundsError),
    ([[SECRET, 1e300, 1e300]], OutOfBoundsError),
]


@pytest.mark.parametrize("mode", ["error", "clip"])
@pytest.mark.parametrize(("actions", "error"), BAD_ACTIONS)
def test_bad_actions_get_their_own_error_without_their_contents(
    actions: object, error: type[DiscreetError], mode: str
) -> None:
    if mode == "clip" and error is OutOfBoundsError:
        pytest.skip("clipping accepts these")
    with pytest.raises(error) as caught:
        bounded_actions(PROBLEM, actions, mode)
    assert caught.value.parameter == "actions"
    assert "0.777" not in str(caught.value)
    assert caught.value.__cause__ is None


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.just(3)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_clipped_rows_never_exceed_the_bound_and_keep_their_direction(rows: np.ndarray) -> None:
    bounded = bounded_actions(PROBLEM, rows, "clip")
    for before, after in zip(rows, bounded, strict=True):
        square = sum(Fraction(float(value)) ** 2 for value in after)
        assert square <= Fraction(PROBLEM.action_norm) ** 2 * (1 + Fraction(1, 10**13))
        scale = np.abs(before).max()
        if scale > 0:
            direction = before / scale
            np.testing.assert_allclose(
                after * np.linalg.norm(direction), direction * np.linalg.norm(after), atol=1e-12
            )


def test_rows_within_the_bound_pass_unchanged_as_a_copy() -> None:
    rows = np.array([[2.0, 0.0, 0.0], [0.1, 0.2, 0.3]])
    bounded = bounded_actions(PROBLEM, rows, "error")
    np.testing.assert_array_equal(bounded, rows)
    bounded[0, 0] = 9.0
    assert rows[0, 0] == 2.0


def test_lists_and_whole_numbers_are_fine() -> None:
    assert bounded_actions(PROBLEM, [[1, 0, 1]], "error").tolist() == [[1.0, 0.0, 1.0]]


def test_a_trace_of_arithmetic_beyond_the_bound_is_scaled_back() -> None:
    bounded = bounded_actions(PROBLEM, [[2.0 * (1 + 1e-10), 0.0, 0.0]], "error")
    assert bounded[0, 0] == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize(
    ("reward", "error"),
    [
        (math.nan, NotFiniteError),
        (-math.inf, NotFiniteError),
        (1.777, OutOfBoundsError),
        (-1.777, OutOfBoundsError),
        ("1.777", ShapeError),
        (None, ShapeError),
        ([1.777], ShapeError),
        (1.777j, ShapeError),
    ],
)
def test_bad_rewards_get_their_own_error_without_their_value(
    reward: object, error: type[DiscreetError]
) -> None:
    with pytest.raises(error) as caught:
        bounded_reward(PROBLEM, reward, "error")
    assert caught.value.parameter == "reward"
    assert "1.777" not in str(caught.value)


@pytest.mark.parametrize("reward", [1.5, -1.5, 0, True, np.float32(0.5), np.bool_(0), np.array(1)])
def test_rewards_within_the_bound_pass(reward: object) -> None:
    assert bounded_reward(PROBLEM, reward, "error") == float(reward)


@pytest.mark.parametrize(("reward", "kept"), [(7.0, 1.5), (-1e308, -1.5), (0.25, 0.25)])
def test_rewards_are_clipped_on_request(reward: float, kept: float) -> None:
    assert bounded_reward(PROBLEM, reward, "clip") == kept


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ParameterError, match="on_violation: is 'ignore'; give 'error' or 'clip'"):
        checked_choice("ignore")
