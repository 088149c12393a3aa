"""The worlds, through their protocol."""

import math

import numpy as np
import pytest

from discreet import UCB, LinUCB, Privacy
from discreet.errors import ParameterError
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.variants import calibrate, named
from discreet.simulation import Simulation, run_seed
from discreet.simulation._simulate import streams
from discreet.simulation.environments import (
    GAUSSIAN,
    SIGNS,
    Basis,
    Clusters,
    Environment,
    Fixed,
    Sphere,
    play,
)

SPHERE = Sphere(dim=4, n_actions=6, gap=0.1)
FIXED = Fixed(dim=3, n_actions=5)
BASIS = Basis(dim=5)
CLUSTERS = Clusters(dim=4, n_actions=6)
EVERY = pytest.mark.parametrize(
    "environment",
    [SPHERE, FIXED, BASIS, CLUSTERS],
    ids=["sphere", "fixed", "basis", "clusters"],
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


def test_some_worlds_are_fresh_every_round_and_some_are_not() -> None:
    for environment in (SPHERE, CLUSTERS):
        world = start(environment)
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


def sets(environment: Environment, rounds: int, seed: int = 0) -> np.ndarray:
    """Decision sets of one world, shape (rounds, K, d)."""
    world = start(environment, seed)
    return np.array([world.decision_set() for _ in range(rounds)])


@pytest.mark.parametrize("dim", [2, 5, 20])
def test_clusters_are_far_from_isotropic(dim: int) -> None:
    # Seeds are fixed. With a condition of 1 the same number stays below 20 in all of them.
    for seed in range(5):
        actions = sets(Clusters(dim=dim, n_actions=25), 1_000, seed).reshape(-1, dim)
        values = np.linalg.eigvalsh(actions.T @ actions / len(actions))
        assert values[-1] > 100 * values[0]
        alike = sets(Clusters(dim=dim, n_actions=25, condition=1.0), 1_000, seed).reshape(-1, dim)
        values = np.linalg.eigvalsh(alike.T @ alike / len(alike))
        assert values[-1] < 20 * values[0]


def test_clusters_have_a_centre_for_each_group_and_place() -> None:
    environment = Clusters(dim=2, n_actions=25, groups=3, condition=1.0)
    world = start(environment)
    groups = world.arrays.groups
    centres = groups.centres.T.reshape(3, 25, 2)
    actions = np.array([world.decision_set() for _ in range(3_000)])
    away = (actions[:, None] - centres) / groups.spread
    own = (away**2).sum(axis=(2, 3)).argmin(axis=1)  # 25 actions leave no doubt
    # Groups are equally likely: of 3,000 rounds each has 1,000, give or take 26. Seeds are fixed;
    # with others five deviations would be exceeded with a probability below 1e-5.
    assert np.abs(np.bincount(own) - 1_000).max() < 130
    # Actions with centres close to 0 are hardly ever shortened, so they are normal around them:
    # 1,000 rounds and more than 20 numbers in each, of which mean and variance are known.
    near = np.linalg.norm(centres, axis=2) < 0.25
    found = np.concatenate([away[turn, group][near[group]] for turn, group in enumerate(own)])
    assert len(found) > 10_000
    assert np.abs(found.mean(axis=0)).max() < 5 / math.sqrt(len(found))
    assert np.abs(found.var(axis=0) - 1).max() < 5 * math.sqrt(2 / len(found))


def test_the_best_mean_of_clusters_changes_from_round_to_round() -> None:
    actions = sets(CLUSTERS, 100)
    best = (actions @ start(CLUSTERS).theta).max(axis=1)
    assert best.std() > 0.01


def test_some_actions_of_clusters_are_shortened_and_none_is_longer_than_one() -> None:
    lengths = np.linalg.norm(sets(CLUSTERS, 1_000), axis=2)
    shortened = np.isclose(lengths, 1.0, rtol=0, atol=1e-12)
    assert lengths.max() <= 1 + 1e-12
    assert 0.0 < shortened.mean() < 0.2


@pytest.mark.parametrize("name", ["nonprivate", "tight", "windows", "gaussian"])
@pytest.mark.parametrize("environment", [CLUSTERS, Clusters(dim=3, n_actions=30, groups=2)])
def test_the_compiled_loop_plays_the_same_clusters(name: str, environment: Clusters) -> None:
    # One stream of random numbers, the plain loop on one side and the compiled one on the other:
    # every choice agrees, so the regrets do.
    rounds, seed = 300, 5
    world_seed, noise_seed, _ = streams(seed)
    privacy = Privacy(epsilon=8.0, delta=0.1) if named(name).private else None
    mechanism = calibrate(name, environment.problem, horizon=rounds, privacy=privacy)
    simulation = Simulation(
        environment=environment, mechanism=mechanism, rounds=rounds, policy=UCB()
    )
    learner = LinUCB.from_mechanism(mechanism, policy=UCB(), noise_source=SeededNoise(noise_seed))
    plain = np.cumsum(play(learner, environment.start(world_seed), rounds=rounds))
    at = simulation.checkpoints() - 1
    np.testing.assert_allclose(plain[at], run_seed(simulation, seed), rtol=1e-12)


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
        (lambda: Clusters(dim=1, n_actions=3), "dim"),
        (lambda: Clusters(dim=3, n_actions=0), "actions"),
        (lambda: Clusters(dim=3, n_actions=3, groups=0), "groups"),
        (lambda: Clusters(dim=3, n_actions=3, condition=0.5), "condition"),
        (lambda: Clusters(dim=3, n_actions=3, condition=math.inf), "condition"),
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
    for seed in range(5):
        learner = LinUCB(environment.problem, horizon=3000, variant="nonprivate")
        runs.append(play(learner, start(environment, seed), rounds=3000))
    regrets = np.array(runs)
    assert regrets.shape == (5, 3000)
    assert regrets.min() >= -1e-12
    # Seeds are fixed. A learner that ignored rewards would pay the same early and late; ours pays
    # at most a third, in the mean over 40 seeds.
    assert regrets[:, -1000:].mean() < 0.8 * regrets[:, :1000].mean()
