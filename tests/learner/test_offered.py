"""Some actions of a decision set may be left out, and a decision still names its place in all."""

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import LinUCB, Privacy, Problem, greedy
from discreet.errors import (
    DiscreetError,
    EmptyDecisionSetError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
)
from discreet.release import Release
from discreet.release.policies import PosteriorUCB

F64 = NDArray[np.float64]
SET = np.diag([0.2, 0.4, 0.6, 0.8])


def bandit(**options: object) -> LinUCB:
    problem = Problem(dim=4, action_norm=1, reward_bound=1, theta_norm=1)
    return LinUCB(
        problem, horizon=1_000, privacy=Privacy(epsilon=1, delta=1e-6), noise="float", **options
    )


class Watching:
    """Takes the last action that it is offered, and remembers what it saw."""

    def __init__(self) -> None:
        self.seen: list[F64] = []

    def choose(self, release: Release, actions: F64) -> int:
        assert isinstance(release, Release)
        self.seen.append(actions.copy())
        return len(actions) - 1


@pytest.mark.parametrize(
    ("among", "exclude", "left"),
    [
        ([2, 0], None, [0, 2]),
        (np.array([1]), None, [1]),
        ({3, 1}, None, [1, 3]),
        (range(1, 3), None, [1, 2]),
        ([True, False, False, True], None, [0, 3]),
        (None, [3], [0, 1, 2]),
        (None, [], [0, 1, 2, 3]),
        (None, np.array([False, True, True, False]), [0, 3]),
        ([0, 1, 2], [2], [0, 1]),
        ([0, 1], [2], [0, 1]),
    ],
)
def test_a_policy_sees_what_is_on_offer_and_the_index_is_that_of_the_whole_set(
    among: object, exclude: object, left: list[int]
) -> None:
    policy = Watching()
    learner = bandit(policy=policy)
    one = learner.choose(SET, among=among, exclude=exclude)
    (many,) = learner.choose_many([SET], among=[among], exclude=[exclude])
    assert one.index == many.index == left[-1]
    for seen in policy.seen:
        np.testing.assert_array_equal(seen, SET[left])


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ([], EmptyDecisionSetError, "at least one"),
        ([False] * 4, EmptyDecisionSetError, "at least one"),
        ([1, 1], ParameterError, "twice"),
        ([4], OutOfBoundsError, "4 actions"),
        ([-1], OutOfBoundsError, "4 actions"),
        ([True, False], ShapeError, "mask of 2"),
        ([1.0], ShapeError, "neither"),
        (1, ShapeError, "neither"),
        ([[0], [1]], ShapeError, "neither"),
        ([[0], [1, 2]], ShapeError, "neither"),
        (["first"], ShapeError, "neither"),
        ([None], ShapeError, "neither"),
    ],
)
def test_what_cannot_be_on_offer_is_refused_and_nothing_is_decided(
    given: object, error: type[DiscreetError], says: str
) -> None:
    learner = bandit()
    with pytest.raises(error, match=says) as found:
        learner.choose(SET, among=given)
    assert found.value.parameter == "among"
    with pytest.raises(error, match=says):
        learner.choose_many([SET, SET], among=[None, given])
    assert learner.rounds == 0


def test_excluding_everything_is_refused() -> None:
    with pytest.raises(EmptyDecisionSetError, match="exclude"):
        bandit().choose(SET, exclude=[0, 1, 2, 3])
    with pytest.raises(EmptyDecisionSetError, match="exclude"):
        bandit().choose(SET, among=[1], exclude=[1])


@pytest.mark.parametrize("given", [[[0]], [[0], [0], [0]], {0: [0]}, 3])
def test_many_sets_need_an_entry_each(given: object) -> None:
    learner = bandit()
    with pytest.raises(ShapeError, match="each of the 2"):
        learner.choose_many([SET, SET], exclude=given)
    assert learner.rounds == 0


def test_probabilities_are_over_what_is_on_offer() -> None:
    learner = bandit()
    assert learner.choose(SET).probability == pytest.approx(1 / 4)
    assert learner.choose(SET, among=[1, 3]).probability == pytest.approx(1 / 2)
    only = learner.choose(SET, exclude=[0, 1, 2])
    assert (only.index, only.probability) == (3, pytest.approx(1.0))


def test_probabilities_after_a_release_are_those_of_the_smaller_set() -> None:
    learner = bandit(policy=PosteriorUCB(uniform=0.3))
    actions = np.tile(np.eye(4), (200, 1))
    learner.observe(actions, np.where(actions[:, 2] > 0, 1.0, -1.0))
    assert learner.release.number > 0
    left = [0, 1, 3]
    wanted = learner.policy.probabilities(learner.release, SET[left])  # type: ignore[attr-defined]
    for _ in range(20):
        decision = learner.choose(SET, exclude=[2])
        assert decision.index in left
        assert decision.probability == pytest.approx(wanted[left.index(decision.index)])


def test_the_row_that_is_learned_is_that_of_the_whole_set() -> None:
    problem = Problem(dim=4, action_norm=1, reward_bound=1, theta_norm=1)
    learner = LinUCB(problem, horizon=10, variant="nonprivate", policy=greedy())
    decisions = learner.choose_many([SET, SET], among=[[2], [True, False, False, False]])
    assert [one.index for one in decisions] == [2, 0]
    learner.learn_many(zip(decisions, [1.0, -1.0], strict=True))
    np.testing.assert_allclose(learner.release.moment, SET[2] - SET[0])
