"""Worlds that change, and learners that forget in them."""

import math

import numpy as np
import pytest

from discreet import LinUCB, Privacy, Setting
from discreet.errors import ParameterError
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.variants import calibrate, named
from discreet.release.policies import UCB, PosteriorUCB
from discreet.simulation import Simulation, run_seed
from discreet.simulation._simulate import streams
from discreet.simulation.environments import (
    Basis,
    Clusters,
    Drifting,
    Environment,
    Fixed,
    Sphere,
    World,
    play,
)
from helpers import EARLY, TARGET, AsSimulated

WORLDS = {
    "sphere": Sphere(dim=4, n_actions=6, gap=0.1),
    "fixed": Fixed(dim=3, n_actions=5),
    "basis": Basis(dim=5),
    "clusters": Clusters(dim=4, n_actions=6),
}
each_world = pytest.mark.parametrize("environment", WORLDS.values(), ids=WORLDS)


def start(environment: Environment, seed: int = 0) -> World:
    return environment.start(np.random.SeedSequence(seed))


@each_world
def test_a_flip_is_after_its_round_exactly(environment: Environment) -> None:
    flipping, still = start(Drifting(world=environment, flip=77)), start(environment)
    theta = still.theta.copy()
    for turn in range(200):
        actions = flipping.decision_set()
        sign = -1.0 if turn >= 77 else 1.0
        np.testing.assert_array_equal(flipping.theta, sign * theta)
        if turn < 77:  # until then nothing is different
            np.testing.assert_array_equal(actions, still.decision_set())
        means = actions @ flipping.theta
        for index in range(environment.n_actions):
            reward, regret = flipping.pull(index)
            if turn < 77:
                assert (reward, regret) == still.pull(index)
            assert regret == pytest.approx(means.max() - means[index], abs=1e-12)


@each_world
def test_a_turn_comes_round_and_regret_is_against_what_is_best_now(
    environment: Environment,
) -> None:
    rounds = 4_096
    world = start(Drifting(world=environment, turn=rounds))
    first = world.theta.copy()
    lengths, along, furthest = [], [], 0.0
    for turn in range(rounds + 1):
        actions = world.decision_set()
        means = actions @ world.theta
        _, regret = world.pull(turn % environment.n_actions)
        assert regret == pytest.approx(means.max() - means[turn % environment.n_actions], abs=1e-9)
        lengths.append(np.linalg.norm(world.theta))
        along.append(float(world.theta @ first) / float(first @ first))
        wanted = math.cos(2 * math.pi * turn / rounds)
        furthest = max(furthest, abs(along[-1] - wanted))
    np.testing.assert_allclose(lengths, np.linalg.norm(first), rtol=1e-12)
    # Sets are drawn for up to a thousand actions at a time, and theta waits for the next ones.
    behind = 0 if environment in {WORLDS["fixed"], WORLDS["basis"]} else 1024 // 6
    assert furthest <= 2 * math.pi * behind / rounds + 1e-9
    assert min(along) < -0.95
    assert along[-1] > 0.95


def test_the_same_seed_turns_in_the_same_plane() -> None:
    drifting = Drifting(world=WORLDS["fixed"], turn=1_000)
    sequence = np.random.SeedSequence(3)
    worlds = [drifting.start(sequence), drifting.start(sequence), start(drifting, 4)]
    for _ in range(300):
        sets = [world.decision_set() for world in worlds]
    np.testing.assert_array_equal(worlds[0].theta, worlds[1].theta)
    np.testing.assert_array_equal(sets[0], sets[1])
    assert not np.allclose(worlds[0].theta, worlds[2].theta)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({}, "flip"),
        ({"flip": 5, "turn": 5}, "flip"),
        ({"flip": -1}, "flip"),
        ({"flip": 2.5}, "flip"),
        ({"turn": 0}, "turn"),
        ({"turn": "fast"}, "turn"),
    ],
)
def test_impossible_changes_are_refused_by_name(change: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        Drifting(world=WORLDS["sphere"], **change)
    assert refused.value.parameter == parameter


def test_one_feature_cannot_turn() -> None:
    with pytest.raises(ParameterError, match="turn: needs a world of at least 2 features"):
        Drifting(world=Basis(dim=1), turn=10)


@pytest.mark.parametrize("change", [{"flip": 150}, {"turn": 500}], ids=str)
@pytest.mark.parametrize("rule", [PosteriorUCB(), UCB(optimism=0.1)], ids=str)
@each_world
def test_the_compiled_loop_plays_the_same_drifting_world(
    environment: Environment, change: dict, rule: PosteriorUCB | UCB
) -> None:
    drifting, horizon, seed = Drifting(world=environment, **change), 400, 5
    world_seed, noise_seed, policy_seed = streams(seed)
    setting = Setting(problem=drifting.problem, horizon=horizon, failure_prob=0.1)
    mechanism = EARLY.with_memory(60).mechanism(setting, Privacy(epsilon=20.0, delta=0.1))
    simulation = Simulation(environment=drifting, mechanism=mechanism, rounds=horizon, policy=rule)
    learner = LinUCB.from_mechanism(
        mechanism,
        noise_source=SeededNoise(noise_seed),
        policy=AsSimulated(rule, policy_seed) if isinstance(rule, PosteriorUCB) else rule,
    )
    plain = np.cumsum(play(learner, drifting.start(world_seed), rounds=horizon))
    compiled = run_seed(simulation, seed)
    np.testing.assert_allclose(plain[simulation.checkpoints() - 1], compiled, rtol=1e-12)


def test_after_a_flip_the_one_that_forgets_recovers_and_the_other_does_not() -> None:
    """Mean rewards over 20,000 rounds, from four memories after the flip on; at best 0.75.

    Seeds are fixed, so the verdict can be repeated. Over 64 seeds a single seed's mean was 0.748
    with a deviation of 0.0006 with the memory, and -0.42 with one of 0.023 without: the bounds are
    at least nine deviations away even of one seed, far beyond a probability of 1e-5.
    """
    world = Drifting(world=Sphere(dim=5, n_actions=25), flip=20_000)
    at = np.array([40_000, 60_000])
    found = {}
    for memory in (None, 5_000):
        mechanism = calibrate(
            named("windows"), world.problem, horizon=None, privacy=TARGET, memory=memory
        )
        simulation = Simulation(environment=world, mechanism=mechanism, rounds=60_000)
        regrets = np.array([run_seed(simulation, seed, at) for seed in range(3)])
        found[memory] = 0.75 - np.diff(regrets, axis=1).mean() / 20_000
    assert found[5_000] > 0.70
    assert found[None] < -0.2
