"""Linear baselines: one contract over the whole table, and the simulator's play."""

import copy
import math
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from discreet import Privacy, Problem, errors
from discreet.baselines import (
    LINEAR_BASELINES,
    LinearLearner,
    LinearRule,
    linear_rule,
    simulate_linear,
)
from discreet.baselines.linear._core_set import CoreSetSteps
from discreet.baselines.linear._simulate import run_linear_seed
from discreet.mechanism.noise.sources import SeededNoise
from discreet.simulation.environments import Basis, Clusters, Environment, Fixed, Sphere, play

PROBLEM = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
ACTIONS = np.eye(3)


def rule_of(
    name: str,
    problem: Problem = PROBLEM,
    *,
    horizon: int = 200,
    epsilon: float = 1.0,
    delta: float = 1e-6,
) -> LinearRule:
    target = Privacy(epsilon=epsilon, delta=delta, protects=LINEAR_BASELINES[name].protects)
    return linear_rule(name, problem=problem, horizon=horizon, privacy=target)


@pytest.fixture(params=list(LINEAR_BASELINES))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_learner_chooses_and_learns_to_the_horizon(name: str) -> None:
    learner = LinearLearner(rule_of(name, horizon=40))
    for turn in range(40):
        assert learner.rounds == turn
        decision = learner.choose(ACTIONS)
        assert 0 <= decision.index < 3
        learner.learn(decision, 0.5)
    with pytest.raises(errors.HorizonReachedError, match="horizon"):
        learner.choose(ACTIONS)


def test_the_table_says_what_the_rule_says(name: str) -> None:
    row, rule = LINEAR_BASELINES[name], rule_of(name)
    assert (rule.protects, rule.trust) == (row.protects, row.trust)
    assert rule.guarantee.protects == row.protects
    others_may_pool = row.trust == "shuffle"  # what they sent: then the local promise is left
    assert rule.guarantee.joint == (row.protects == "rows" and not others_may_pool)
    assert rule.guarantee.epsilon == 1.0
    assert rule.guarantee.delta == (0.0 if row.pure else 1e-6)
    assert row.source
    assert "replacing one person's" in str(rule.guarantee)


def test_another_kind_of_protection_is_refused(name: str) -> None:
    row = LINEAR_BASELINES[name]
    if name.startswith("batched-ts"):
        pytest.skip("it can do both")
    other = "rows" if row.protects == "rewards" else "rewards"
    with pytest.raises(errors.ParameterError, match=row.protects):
        row.make(problem=PROBLEM, horizon=10, privacy=Privacy(epsilon=1, delta=0.1, protects=other))


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2.5}, "horizon"),
        ({"privacy": None}, "privacy"),
        ({"failure_prob": 0.0}, "failure_prob"),
    ],
)
def test_bad_settings_are_refused_by_name(name: str, given: dict, parameter: str) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        replace(rule_of(name), **given)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("changed", [{"contributions_per_user": 2}, {"neighbours": "add-remove"}])
def test_more_than_one_round_or_another_relation_is_refused(name: str, changed: dict) -> None:
    rule = rule_of(name)
    with pytest.raises(errors.ParameterError, match="LinUCB"):
        replace(rule, privacy=replace(rule.privacy, **changed))


@pytest.mark.parametrize(
    ("reward", "error"),
    [
        (1.5, errors.OutOfBoundsError),
        (math.nan, errors.NotFiniteError),
        ("good", errors.NotFiniteError),
        (None, errors.NotFiniteError),
    ],
)
def test_a_bad_reward_is_refused_unsaid_and_changes_nothing(
    name: str, reward: object, error: type[Exception]
) -> None:
    learner = LinearLearner(rule_of(name))
    decision = learner.choose(ACTIONS)
    before = learner.released
    with pytest.raises(error) as caught:
        learner.learn(decision, reward)
    assert "1.5" not in str(caught.value)
    assert learner.rounds == 0
    assert (learner.released == before).all()
    learner.learn(decision, 0.5)


@pytest.mark.parametrize(
    ("actions", "error"),
    [
        (np.eye(2), errors.ShapeError),
        (np.ones(3), errors.ShapeError),
        (np.empty((0, 3)), errors.EmptyDecisionSetError),
        (2 * np.eye(3), errors.OutOfBoundsError),
        (np.full((2, 3), math.nan), errors.NotFiniteError),
        ("actions", errors.ShapeError),
    ],
)
def test_a_bad_decision_set_is_refused(name: str, actions: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        LinearLearner(rule_of(name)).choose(actions)


def test_only_the_last_decision_can_be_learned_and_only_once(name: str) -> None:
    learner = LinearLearner(rule_of(name))
    first = learner.choose(ACTIONS)
    learner.learn(first, 0.5)
    with pytest.raises(errors.UnknownDecisionError):
        learner.learn(first, 0.5)
    assert learner.rounds == 1


def test_copies_and_forks_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = LinearLearner(rule_of(name))
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied"):
            duplicate(learner)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(errors.WrongProcessError):
        learner.choose(ACTIONS)


def test_a_seeded_source_voids_the_guarantee(name: str) -> None:
    source = SeededNoise(np.random.SeedSequence(1))
    learner = LinearLearner(rule_of(name), noise_source=source)
    assert not learner.guarantee.private
    assert "seed" in str(learner.guarantee)
    assert LinearLearner(rule_of(name)).guarantee.private


def world_for(name: str) -> Environment:
    fixed = LINEAR_BASELINES[name].fixed_sets
    return Fixed(dim=3, n_actions=6) if fixed else Clusters(dim=3, n_actions=6)


def test_learner_and_simulator_play_the_same(name: str) -> None:
    environment = world_for(name)
    rule = rule_of(name, environment.problem, horizon=300, epsilon=5.0, delta=0.1)
    world_seed, noise_seed, policy_seed = np.random.SeedSequence(7).spawn(3)
    learner = LinearLearner(
        rule, noise_source=SeededNoise(noise_seed), policy_source=SeededNoise(policy_seed)
    )
    regrets = play(learner, environment.start(world_seed), rounds=300).cumsum()
    rounds = np.array([1, 50, 299, 300])
    assert run_linear_seed(rule, environment, 7, rounds) == pytest.approx(regrets[rounds - 1])


def test_seeds_fix_everything_whatever_the_jobs(name: str) -> None:
    environment = world_for(name)
    rule = rule_of(name, environment.problem, horizon=500)
    alone = simulate_linear(rule, environment, seeds=[3, 4], jobs=1)
    together = simulate_linear(rule, environment, seeds=[4], jobs=1)
    assert (alone.regrets[1] == together.regrets[0]).all()
    assert (alone.regrets[0] != alone.regrets[1]).any()
    assert alone.to_json()["pseudo_regret"]["mean"] == pytest.approx(alone.regrets[:, -1].mean())


def test_less_privacy_costs_less_regret_and_regret_grows_slower_than_rounds(name: str) -> None:
    """At epsilon 100 against 0.3; the means of three seeds differ by far more than their spread."""
    environment = Basis(dim=3) if name == "core-set" else Sphere(dim=3, n_actions=8)
    rounds = np.array([10_000, 20_000])

    def mean(epsilon: float) -> np.ndarray:
        rule = rule_of(name, environment.problem, horizon=20_000, epsilon=epsilon)
        return np.mean([run_linear_seed(rule, environment, s, rounds) for s in (1, 2, 3)], axis=0)

    loose, strict = mean(100.0), mean(0.3)
    assert loose[1] < 0.7 * strict[1]
    assert loose[1] < 1.85 * loose[0]


def test_core_set_elimination_refuses_sets_that_change() -> None:
    rule = rule_of("core-set")
    with pytest.raises(errors.ParameterError, match="stays"):
        run_linear_seed(rule, Sphere(dim=3, n_actions=4), 0, np.array([10]))
    learner = LinearLearner(rule)
    learner.learn(learner.choose(ACTIONS), 0.5)
    with pytest.raises(errors.ParameterError, match="stays"):
        learner.choose(ACTIONS[::-1])
    learner.learn(learner.choose(ACTIONS), 0.5)


def test_core_set_elimination_refuses_a_set_of_zeros_and_can_go_on_with_another() -> None:
    learner = LinearLearner(rule_of("core-set"))
    with pytest.raises(errors.ParameterError, match="actions: are all zeros"):
        learner.choose(np.zeros((3, 3)))
    learner.learn(learner.choose(ACTIONS), 0.5)
    assert learner.rounds == 1


def test_core_set_elimination_is_done_when_only_zeros_remain() -> None:
    rule = rule_of("core-set", horizon=2000, epsilon=100.0)
    learner = LinearLearner(rule, noise_source=SeededNoise(np.random.SeedSequence(1)))
    actions = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for _ in range(2000):
        decision = learner.choose(actions)
        learner.learn(decision, -1.0 if decision.index == 0 else 0.0)
    assert decision.index == 1


def test_core_set_steps_show_no_sum_without_noise() -> None:
    """Whoever forgets to hand in noise is told so; nothing is taken in and nothing is shown."""
    steps = CoreSetSteps(rule_of("core-set"))
    assert steps.remaining == ()
    with pytest.raises(errors.ParameterError, match="not known yet"):
        steps.add(1.0, 1)
    steps.begin(ACTIONS)
    for given in (None, np.zeros(steps.stock() - 1)):
        if given is not None:
            steps.refill(given)
        for _ in range(50):  # more than a phase has
            with pytest.raises(errors.ParameterError, match="noise"):
                steps.learn(ACTIONS[0], 1.0)
    assert not steps.released.any()
    steps.refill(np.ones(steps.stock() or 12))
    steps.learn(ACTIONS[0], 1.0)


def test_a_world_that_does_not_fit_is_refused() -> None:
    rule = rule_of("adac-oful")
    with pytest.raises(errors.ParameterError, match="features"):
        run_linear_seed(rule, Basis(dim=2), 0, np.array([10]))
    with pytest.raises(errors.ParameterError, match="horizon"):
        run_linear_seed(rule, Basis(dim=3), 0, np.array([1000]))
    with pytest.raises(errors.ParameterError, match="seed"):
        simulate_linear(rule, Basis(dim=3), seeds=[])
    with pytest.raises(errors.ParameterError, match="baseline"):
        linear_rule("best", problem=PROBLEM, horizon=10, privacy=rule.privacy)
