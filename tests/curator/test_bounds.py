"""What an action and a reward must be to be taken."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_array

from discreet import Problem
from discreet.curator.bounds import (
    _ROUNDING,
    bounded_actions,
    bounded_reward,
    bounded_sets,
    checked_on_violation,
    still_bounded,
)
from discreet.errors import (
    DiscreetError,
    EmptyDecisionSetError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
)


class RefusesConversion:
    """Like an array of a library that will not leave its device."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("0.777123456 is on another device")


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
    (SECRET, ShapeError),
    (csr_array(np.full((1, 3), SECRET)), ShapeError),
    (np.array([[SECRET, 0, 0]], dtype=object), ShapeError),
    (np.array([(SECRET, 0.0, 0.0)], dtype="f8,f8,f8"), ShapeError),
    (np.array([[7, 7, 7]], dtype="m8[ns]"), ShapeError),
    (np.array([[7, 7, 7]], dtype="M8[ns]"), ShapeError),
    (np.ma.array([[SECRET, 0.0, 0.0]], mask=[[False, True, False]]), ShapeError),
    ([np.ma.array([SECRET, 0.0, 0.0], mask=[False, True, False])], ShapeError),
    ([[SECRET, np.ma.masked, 0]], ShapeError),
    (((SECRET, 0.0, np.ma.masked),), ShapeError),
    (RefusesConversion(), ShapeError),
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
        (np.complex128(1.777), ShapeError),
        (np.array([1.777]), ShapeError),
        (np.array(1.777, dtype=object), ShapeError),
        (np.timedelta64(1, "s"), ShapeError),
        (np.timedelta64(1, "ns"), ShapeError),
        (np.datetime64(1, "ns"), ShapeError),
        (np.array(1, dtype="m8[ns]"), ShapeError),
        (np.array(1, dtype="M8[ns]"), ShapeError),
        (np.array([1], dtype="m8[ns]"), ShapeError),
        (np.void(b"1.777"), ShapeError),
        (np.str_("1.777"), ShapeError),
        (np.ma.masked, ShapeError),
        (np.ma.array(1.777, mask=True), ShapeError),
        ([np.ma.masked], ShapeError),
    ],
)
def test_bad_rewards_get_their_own_error_without_their_value(
    reward: object, error: type[DiscreetError]
) -> None:
    with pytest.raises(error) as caught:
        bounded_reward(PROBLEM, reward, "error")
    assert caught.value.parameter == "reward"
    assert "1.777" not in str(caught.value)


@pytest.mark.parametrize(
    "reward",
    [
        1.5,
        -1.5,
        0,
        True,
        Fraction(1, 3),
        np.float32(0.5),
        np.longdouble(0.5),
        np.int8(1),
        np.bool_(0),
        np.array(1),
        np.array(True),  # noqa: FBT003  # the reward
        np.ma.array(0.5),
    ],
)
def test_rewards_within_the_bound_pass(reward: object) -> None:
    assert bounded_reward(PROBLEM, reward, "error") == float(reward)


@pytest.mark.parametrize(("reward", "kept"), [(7.0, 1.5), (-1e308, -1.5), (0.25, 0.25)])
def test_rewards_are_clipped_on_request(reward: float, kept: float) -> None:
    assert bounded_reward(PROBLEM, reward, "clip") == kept


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ParameterError, match="on_violation: is 'ignore'; give 'error' or 'clip'"):
        checked_on_violation("ignore")


def test_masks_are_named_for_actions_and_for_rewards() -> None:
    for refused in ([[np.ma.masked, 0, 0]], np.ma.array([[0.0, 0.0, 0.0]], mask=True)):
        with pytest.raises(ShapeError, match=r"^actions: has masked entries; fill or drop them$"):
            bounded_actions(PROBLEM, refused, "error")
    with pytest.raises(ShapeError, match=r"^reward: has masked entries; fill or drop them$"):
        bounded_reward(PROBLEM, np.ma.masked, "error")


def test_a_masked_array_without_masked_entries_is_an_array() -> None:
    rows = np.ma.array([[1.0, 0.0, 1.0]], mask=[[False, False, False]])
    bounded = bounded_actions(PROBLEM, rows, "error")
    assert type(bounded) is np.ndarray
    assert bounded.tolist() == [[1.0, 0.0, 1.0]]


def test_what_a_policy_left_alone_is_copied_to_the_bit() -> None:
    long = PROBLEM.action_norm / math.sqrt(3)
    bounded = bounded_actions(PROBLEM, [[2.0, 0.0, 0.0], [long, long, long]], "error")
    for rows in ([bounded[0]], [bounded[1]], list(bounded)):
        copies = still_bounded(PROBLEM, rows)
        assert len(copies) == len(rows)
        for copy, row in zip(copies, rows, strict=True):
            assert copy.tobytes() == row.tobytes()
            assert copy.shape == (3,)
            assert not np.shares_memory(copy, bounded)


def test_a_chosen_action_that_waits_does_not_keep_the_others_in_memory() -> None:
    first, second = still_bounded(PROBLEM, [np.zeros(3), np.ones(3)])
    assert (first.base, second.base) == (None, None)


def test_no_chosen_action_is_bounded() -> None:
    assert still_bounded(PROBLEM, []) == []


@given(
    arrays.arrays(
        np.float64, (1, 3), elements=st.floats(allow_nan=False, allow_infinity=False, width=64)
    )
)
def test_whatever_was_bounded_is_still_bounded(rows: np.ndarray) -> None:
    row = bounded_actions(PROBLEM, rows, "clip")[0]
    (copy,) = still_bounded(PROBLEM, [row])
    assert copy.tobytes() == row.tobytes()


@pytest.mark.parametrize(
    "changed",
    [
        [2.0 * (1 + 100 * _ROUNDING), 0.0, 0.0],
        [SECRET, 2.0, 0.0],
        [1e300, 1e300, 0.0],
        [math.nan, 0.0, 0.0],
        [0.0, math.inf, 0.0],
        [0.0, 0.0],
        [[0.0, 0.0, 0.0]] * 2,
    ],
)
@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.filterwarnings("error")
def test_what_a_policy_changed_is_refused_without_its_contents(
    changed: list[float], others: int
) -> None:
    with pytest.raises(ParameterError) as caught:
        still_bounded(PROBLEM, [*[np.zeros(3)] * others, np.array(changed)])
    assert str(caught.value) == (
        "policy: changed the decision set it was given; a policy may only read it"
    )


def decision_sets() -> dict[str, list[object]]:
    """Several decision sets each, all within the bounds."""
    rng = np.random.default_rng(0)
    few, more = rng.uniform(-1, 1, (2, 3)), rng.uniform(-1, 1, (5, 3))
    return {
        "none": [],
        "one": [few],
        "of different lengths": [few, more, few[:1]],
        "column by column": [np.asfortranarray(few), np.asfortranarray(more)],
        "views": list(np.stack([more, -more])[:, ::2]),
        "of other types": [few, more.astype(np.float32), few.astype(">f8"), [[1, 0, 1]]],
        "too long by a trace": [few, np.array([[2.0 * (1 + 1e-10), 0.0, 0.0]])],
        "masked arrays": [few, np.ma.array(more)],
    }


@pytest.mark.parametrize("kind", decision_sets())
def test_several_sets_are_bounded_as_each_of_them_is(kind: str) -> None:
    sets = decision_sets()[kind]
    found = bounded_sets(PROBLEM, sets, "error")
    assert len(found) == len(sets)
    for bounded, actions in zip(found, sets, strict=True):
        alone = bounded_actions(PROBLEM, actions, "error")
        assert type(bounded) is np.ndarray
        assert (bounded.shape, bounded.dtype) == (alone.shape, alone.dtype)
        assert bounded.tobytes() == alone.tobytes()
        assert bounded.flags.c_contiguous
        assert not bounded.flags.writeable
        assert not np.shares_memory(bounded, np.asarray(actions))


@pytest.mark.parametrize("mode", ["error", "clip"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("actions", "error"), BAD_ACTIONS)
def test_one_bad_set_among_several_gets_its_own_error(
    actions: object, error: type[DiscreetError], place: int, mode: str
) -> None:
    if mode == "clip" and error is OutOfBoundsError:
        pytest.skip("clipping accepts these")
    if isinstance(actions, list) and error in {NotFiniteError, OutOfBoundsError}:
        actions = np.array(actions)  # so that all of them are plain arrays
    sets = [np.eye(3), np.eye(3)]
    sets.insert(place, actions)  # type: ignore[arg-type]
    with pytest.raises(error) as caught:
        bounded_sets(PROBLEM, sets, mode)  # type: ignore[arg-type]
    assert str(SECRET) not in str(caught.value)


def test_a_long_row_in_one_of_several_sets_is_clipped_there_only() -> None:
    short, long = bounded_sets(PROBLEM, [np.eye(3), 4.0 * np.eye(3)], "clip")
    assert short.tolist() == np.eye(3).tolist()
    assert long.tolist() == (2.0 * np.eye(3)).tolist()


def test_the_first_bad_set_is_the_one_that_is_told_of() -> None:
    nan, long = np.full((1, 3), math.nan), np.full((1, 3), 3.0)
    with pytest.raises(OutOfBoundsError):
        bounded_sets(PROBLEM, [np.eye(3), long, nan], "error")
    with pytest.raises(NotFiniteError):
        bounded_sets(PROBLEM, [np.eye(3), nan, long], "error")
