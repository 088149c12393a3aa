"""The worlds, through their protocol."""

import math

import numpy as np
import pytest

from discreet import LinUCB
from discreet.errors import ParameterError
from discreet.simulation.environments import (
    GAUSSIAN,
    SIGNS,
    Basis,
    Environment,
    Fixed,
    Sphere,
    play,
)

SPHERE = Sphere(dim=4, n_actions=6, gap=0.1)
FIXED = Fixed(dim=3, n_actions=5)
BASIS = Basis(dim=5)
EVERY = pytest.mark.parametrize(
    "environment", [SPHERE, FIXED, BASIS], ids=["sphere", "fixed", "basis"]
)


def start(environment: Environment, seed: int = 0):  # noqa: ANN201
    return environment.start(np.random.SeedSequence(seed))


@EVERY
def test_a_world_keeps_within_its_stated_bounds(environment: Environment) -> None:
    world, problem = start(environment), environment.problem
    assert np.linalg.norm(world.theta) <= problem.theta_norm * (1 + 1e-12)
    for _ in range(200):
        actions = world.decision_set()
        assert actions.shape == (environment.n_actions, problem.dim)
        assert np.linalg.norm(actions, axis=1).max() <= problem.action_norm * (1 + 1e-12)
        means = actions @ world.theta
        assert np.abs(means).max() <= problem.mean_reward_bound
        for index in range(environment.n_actions):
            reward, regret = world.pull(index)
            assert abs(reward) <= problem.reward_bound
            assert regret == pytest.approx(means.max() - means[index], abs=1e-12)


@EVERY
def test_the_same_seed_gives_the_same_world(environment: Environment) -> None:
    first, second, other = start(environment, 1), start(environment, 1), start(environment, 2)
    np.testing.assert_array_equal(first.theta, second.theta)
    np.testing.assert_array_equal(first.decision_set(), second.decision_set())
    assert [first.pull(0) for _ in range(20)] == [second.pull(0) for _ in range(20)]
    assert not np.array_equal(first.theta, other.theta)


def test_the_sphere_is_fresh_every_round_and_the_others_are_not() -> None:
    world = start(SPHERE)
    assert not np.array_equal(world.decision_set(), world.decision_set())
    for environment in (FIXED, BASIS):
        world = start(environment)
        np.testing.assert_array_equal(world.decision_set(), world.decision_set())


def test_a_returned_decision_set_may_be_changed_freely() -> None:
    world = start(FIXED)
    world.decision_set()[:] = 0.0
    assert np.linalg.norm(world.decision_set()[0]) == pytest.approx(1.0)


def test_a_gap_separates_the_best_action_from_the_others() -> None:
    world = start(Sphere(dim=3, n_actions=20, gap=0.3))
    for _ in range(200):
        means = np.sort(world.decision_set() @ world.theta)
        assert means[-1] == pytest.approx(0.75)
        assert means[-2] <= 0.45 + 1e-12
        assert means[0] >= -0.75 - 1e-12


def test_the_basis_has_one_best_arm_at_a_random_place() -> None:
    places = set()
    for seed in range(60):
        world = start(BASIS, seed)
        np.testing.assert_array_equal(world.decision_set(), np.eye(5))
        assert world.theta.max() == 0.4
        assert np.abs(np.sort(world.theta)[:-1]).max() <= 0.3
        places.add(int(world.theta.argmax()))
    assert places == set(range(5))


def test_many_arms_widen_the_stated_parameter_norm() -> None:
    assert Basis(dim=5).problem.theta_norm == 1.0
    assert Basis(dim=100).problem.theta_norm == pytest.approx(math.sqrt(0.16 + 99 * 0.09))


@EVERY
def test_gaussian_rewards_are_declared_and_bounded(environment: Environment) -> None:
    assert environment.problem.reward_bound == SIGNS.bound == 1.0
    loud = type(environment)(**{**vars(environment), "rewards": GAUSSIAN})
    assert loud.problem.reward_bound == 9.0
    assert loud.problem.reward_subgaussian == 1.0
    world = start(loud)
    world.decision_set()
    rewards = np.array([world.pull(0)[0] for _ in range(4000)])
    # The standard deviation of 4,000 normals is within 6% of 1 but for a chance below 1e-7.
    assert rewards.std() == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    ("build", "parameter"),
    [
        (lambda: Sphere(dim=1, n_actions=3), "dim"),
        (lambda: Sphere(dim=3, n_actions=0), "actions"),
        (lambda: Sphere(dim=3, n_actions=3, gap=-0.1), "gap"),
        (lambda: Sphere(dim=3, n_actions=3, gap=1.5), "gap"),
        (lambda: Sphere(dim=3, n_actions=3, gap=math.nan), "gap"),
        (lambda: Fixed(dim=0, n_actions=3), "dim"),
        (lambda: Fixed(dim=3, n_actions=-1), "actions"),
        (lambda: Basis(dim=0), "dim"),
    ],
)
def test_impossible_worlds_are_refused_by_name(build: object, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        build()
    assert caught.value.parameter == parameter


@EVERY
@pytest.mark.parametrize("index", [-1, 1000])
def test_an_action_that_is_not_there_cannot_be_pulled(environment: Environment, index: int) -> None:
    world = start(environment)
    world.decision_set()
    with pytest.raises(ParameterError, match="index"):
        world.pull(index)


@EVERY
def test_the_plain_loop_runs_a_learner_that_learns(environment: Environment) -> None:
    runs = []
    for seed in range(10):
        learner = LinUCB(environment.problem, horizon=3000, variant="nonprivate")
        runs.append(play(learner, start(environment, seed), rounds=3000))
    regrets = np.array(runs)
    assert regrets.shape == (10, 3000)
    assert regrets.min() >= -1e-12
    # Seeds are fixed. A learner that ignored rewards would pay the same early and late; ours pays
    # at most a third, in the mean over 40 seeds.
    assert regrets[:, -1000:].mean() < 0.8 * regrets[:, :1000].mean()
