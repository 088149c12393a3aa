"""An interrupt at any instruction leaves a baseline's learner as it was, or done with the call.

A row that is in the sums while its decision is still open could be learned twice, and noise that
was used could be used for another row. So after an interrupt the learner must go on exactly as one
that was never interrupted, whichever of the two it is.
"""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import Privacy, Problem
from discreet.baselines import LINEAR_BASELINES, RULES, LinearLearner, linear_rule
from discreet.baselines import _whole as whole
from discreet.baselines.arms import _divergence, _elimination, _learner, _phases, _ucb
from discreet.baselines.arms._learner import ArmLearner
from discreet.baselines.linear import _core_set, _ridge
from discreet.baselines.linear import _learner as linear
from discreet.errors import UnknownDecisionError
from discreet.mechanism.noise.sources import NoiseSource, SeededNoise
from interrupting import Interrupting

F64 = NDArray[np.float64]

PROBLEM = Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
ACTIONS = np.array([[1.0, 0.0], [0.0, 1.0]])
ARM_MODULES = (whole, _learner, _phases, _ucb, _elimination, _divergence)
LINEAR_MODULES = (whole, linear, _ridge, _core_set)
ROWS = 6  # before the interrupt, and as many after it


class SameNoise:
    """The same numbers whenever it is asked, so that numbers drawn in vain change nothing."""

    secret = False

    def normals(self, count: int) -> F64:
        return np.sin(np.arange(1.0, count + 1.0))

    def chi_squares(self, dofs: F64) -> F64:
        return dofs.copy()

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.arange(1, count + 1, dtype=np.uint64)


def arms(name: str) -> ArmLearner:
    baseline = RULES[name]
    sizes = {"n_arms": 2, "horizon": 64}
    if not baseline.private:
        return baseline.learner(**sizes)
    return baseline.learner(**sizes, epsilon=2.0, noise_source=SameNoise())


def linears(name: str, source: NoiseSource) -> LinearLearner:
    privacy = Privacy(epsilon=8.0, delta=1e-6, protects=LINEAR_BASELINES[name].protects)
    rule = linear_rule(name, problem=PROBLEM, horizon=64, privacy=privacy)
    return LinearLearner(rule, noise_source=source, policy_source=SameNoise())


def arm_round(learner: ArmLearner, reward: float) -> list[float]:
    arm = learner.choose()
    learner.learn(arm, reward)
    return [arm, *np.nan_to_num(learner.released_means, nan=-9.0)]


def reward_of(turn: int) -> float:
    return (-1.0) ** turn / 2


@pytest.mark.parametrize("name", RULES)
def test_an_interrupted_arm_learner_goes_on_as_one_that_was_not(name: str) -> None:
    known = arms(name)
    wanted = [arm_round(known, reward_of(turn)) for turn in range(2 * ROWS)]
    for place in itertools.count(1):
        learner = arms(name)
        found = [arm_round(learner, reward_of(turn)) for turn in range(ROWS)]
        arm = learner.choose()
        interrupting = Interrupting(place, ARM_MODULES)
        try:
            with interrupting:
                learner.learn(arm, reward_of(ROWS))
        except KeyboardInterrupt:
            assert learner.rounds in {ROWS, ROWS + 1}
        if learner.rounds == ROWS:
            learner.learn(learner.choose(), reward_of(ROWS))
        found.append([arm, *np.nan_to_num(learner.released_means, nan=-9.0)])
        found += [arm_round(learner, reward_of(turn)) for turn in range(ROWS + 1, 2 * ROWS)]
        assert found == wanted
        if not interrupting.happened:
            assert place > 10
            return


def linear_round(learner: LinearLearner, reward: float, actions: F64 = ACTIONS) -> list[float]:
    decision = learner.choose(actions)
    learner.learn(decision, reward)
    return [decision.index, *learner.released]


@pytest.mark.parametrize("name", LINEAR_BASELINES)
def test_an_interrupted_linear_learner_goes_on_as_one_that_was_not(name: str) -> None:
    known = linears(name, SameNoise())
    wanted = [linear_round(known, reward_of(turn)) for turn in range(2 * ROWS)]
    for place in itertools.count(1):
        learner = linears(name, SameNoise())
        found = [linear_round(learner, reward_of(turn)) for turn in range(ROWS)]
        decision = learner.choose(ACTIONS)
        interrupting = Interrupting(place, LINEAR_MODULES)
        try:
            with interrupting:
                learner.learn(decision, reward_of(ROWS))
        except KeyboardInterrupt:
            assert learner.rounds in {ROWS, ROWS + 1}
        if learner.rounds == ROWS:
            learner.learn(decision, reward_of(ROWS))
        with pytest.raises(UnknownDecisionError):
            learner.learn(decision, reward_of(ROWS))
        found.append([decision.index, *learner.released])
        found += [linear_round(learner, reward_of(turn)) for turn in range(ROWS + 1, 2 * ROWS)]
        assert found == wanted
        if not interrupting.happened:
            assert place > 10
            return


@pytest.mark.parametrize("name", ["ldp-linucb"])
def test_noise_that_was_used_is_not_used_for_another_row(name: str) -> None:
    """Equal rows give different sums: each has noise of its own, wherever an interrupt came."""

    def after(place: int) -> list[np.ndarray]:
        learner = linears(name, SeededNoise(np.random.SeedSequence(3)))
        shown = [learner.released]
        decision = learner.choose(ACTIONS[:1])
        try:
            with Interrupting(place, LINEAR_MODULES):
                learner.learn(decision, 0.5)
        except KeyboardInterrupt:
            pass
        shown.append(learner.released)
        for _ in range(2):
            linear_round(learner, 0.5, ACTIONS[:1])
            shown.append(learner.released)
        return shown

    for place in range(1, 60):
        steps = np.diff(after(place), axis=0)
        told = [one for one in steps if one.any()]
        assert all(not np.array_equal(one, two) for one, two in itertools.combinations(told, 2))


def test_a_copy_shares_no_array_with_its_original() -> None:
    learner = linears("rare-switching", SameNoise())
    steps = learner._held.steps
    other = whole.copied(steps)
    assert isinstance(steps, _ridge.RidgeSteps)
    pairs = zip((*steps._state, steps._normals), (*other._state, other._normals), strict=True)
    assert not any(np.shares_memory(mine, yours) for mine, yours in pairs if mine.size)
