"""A ranker decides as the learner would, from what was published and nothing else."""

import json
import subprocess
import sys

import numpy as np
import pytest

from discreet import LinUCB, Problem, Ranker, Release, Thompson, features
from discreet.errors import (
    EmptyDecisionSetError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    RewoundStateError,
    ShapeError,
)
from helpers import EARLY, TARGET, learner_for, played

MAP = features.FeatureMap(
    [features.intercept(), features.category("context.kind", ["young", "old"])], actions=["a", "b"]
)


def shipped(learner: LinUCB) -> Release:
    return Release.from_json(json.dumps(learner.release.to_json()))


def test_it_decides_as_the_learner_does(problem: Problem) -> None:
    learner = played(learner_for(EARLY, problem), 40)
    ranker, sets = Ranker(shipped(learner)), np.eye(3)
    expected = learner.policy.probabilities(learner.release, sets)
    np.testing.assert_array_equal(ranker.probabilities(sets), expected)
    np.testing.assert_array_equal(ranker.estimate(sets).low, learner.estimate(sets).low)
    ranking = ranker.rank(sets)
    assert sorted(choice.index for choice in ranking) == [0, 1, 2]
    assert [choice.probability for choice in ranking] == sorted(expected.tolist(), reverse=True)
    for _ in range(20):
        choice = ranker.choose(sets, exclude=[1])
        assert choice.index in {0, 2}
        assert choice.probability == ranker.probabilities(sets, exclude=[1])[choice.index]
    assert ranker.probabilities(sets, among=[1]).tolist() == [0.0, 1.0, 0.0]
    shown = learner.release
    assert repr(ranker) == f"Ranker(release={shown.number}, rows={shown.rows}, dim=3)"


def test_it_takes_people_and_actions_through_the_learners_feature_map() -> None:
    problem = MAP.problem(reward_bound=1, theta_norm=1)
    learner = LinUCB(problem, horizon=100, privacy=TARGET, variant=EARLY)
    ranker = Ranker(shipped(learner), features=MAP)
    assert ranker.features is MAP
    rows = MAP({"kind": "old"}, ["a", "b"])
    np.testing.assert_array_equal(
        ranker.probabilities(["a", "b"], context={"kind": "old"}),
        learner.policy.probabilities(learner.release, rows),
    )
    other = features.FeatureMap([features.intercept()], actions=["a", "b"])
    with pytest.raises(ParameterError, match="does not match the learner's feature map"):
        Ranker(learner.release, features=other)
    with pytest.raises(ParameterError, match="is no feature map"):
        Ranker(learner.release, features={"parts": []})
    with pytest.raises(ParameterError, match="pass features="):
        Ranker(learner.release).choose(rows, context={"kind": "old"})


def test_a_map_that_nobody_named_must_have_the_right_size(problem: Problem) -> None:
    with pytest.raises(ParameterError, match="makes 6 features, and the learner has 3"):
        Ranker(learner_for(EARLY, problem).release, features=MAP)


def test_it_moves_on_to_later_releases_and_to_no_others(problem: Problem) -> None:
    learner = played(learner_for(EARLY, problem), 20)
    first = shipped(learner)
    ranker = Ranker(first)
    assert not ranker.update(shipped(learner))
    assert ranker.release is first
    later = shipped(played(learner, 20))
    assert ranker.update(later)
    assert ranker.release is later
    twin = played(learner_for(EARLY, problem, seed=1), 40).release
    for wrong, used in ((first, "release"), (twin, "a different release")):
        with pytest.raises(RewoundStateError, match=f"already used {used} number {later.number};"):
            ranker.update(wrong)
    other = learner_for(EARLY, problem, horizon=99).release
    for stranger in (other, None):
        with pytest.raises(ParameterError, match="not of the same learner"):
            ranker.update(stranger)
    assert ranker.release is later


def test_an_action_that_the_learner_would_refuse_is_refused(problem: Problem) -> None:
    learner = learner_for(EARLY, problem)
    ranker, sets = Ranker(shipped(learner)), np.eye(3) * problem.action_norm
    for ask in (learner.choose, ranker.choose, ranker.rank, ranker.probabilities, ranker.estimate):
        with pytest.raises(OutOfBoundsError, match="a row is longer than action_norm=") as caught:
            ask(np.vstack([sets, 1.001 * sets[0]]))
        assert caught.value.parameter == "actions"
    # Rows that are too long by a trace of arithmetic are taken, as the learner takes them.
    assert learner.choose(sets * (1 + 1e-10)).index in range(3)
    assert ranker.choose(sets * (1 + 1e-10)).index in range(3)


def test_bad_input_is_refused(problem: Problem) -> None:
    release = learner_for(EARLY, problem).release
    ranker = Ranker(release)
    for wrong in (np.eye(2), [1.0, 2.0, 3.0], "abc", [], np.empty((0, 3)), None, [["x"] * 3]):
        with pytest.raises(ShapeError):
            ranker.choose(wrong)
    with pytest.raises(NotFiniteError):
        ranker.choose([[np.nan, 0, 0]])
    for huge in (np.inf, 1e300):
        with pytest.raises((NotFiniteError, OutOfBoundsError)):
            ranker.choose([[huge, 0, 0]])
    with pytest.raises(EmptyDecisionSetError):
        ranker.choose(np.eye(3), exclude=[0, 1, 2])
    with pytest.raises(ParameterError, match="does not say how probable"):
        Ranker(release, policy=Thompson()).probabilities(np.eye(3))
    with pytest.raises(ParameterError, match=r"^release: is not a Release"):
        Ranker("release")
    with pytest.raises(ParameterError, match=r"^policy: has no choose\(\) method"):
        Ranker(release, policy="greedy")


def test_it_needs_no_curator() -> None:
    code = (
        "import sys, discreet; discreet.Ranker; discreet.Release; "
        "assert not any(name.startswith(('discreet.curator', 'discreet.learner')) "
        "for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
