"""The loops that discreet is measured beside play the same game."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.speed import loops, workload
from benchmarks.speed.loops import Reference
from discreet import UCB, LinUCB
from discreet.mechanism import Mechanism
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.simulation import Simulation
from discreet.simulation.environments import Sphere

F64 = NDArray[np.float64]

ROUNDS = 30_000
needs_compiler = pytest.mark.skipif(loops.compiler() is None, reason="no C++ compiler")


def test_the_numpy_loop_chooses_as_the_learner_does_on_the_same_data() -> None:
    rng = np.random.default_rng(1)
    theta = workload.unit_rows(rng, 1, 5)[0]
    bandit = LinUCB(
        Sphere(dim=5, n_actions=25).problem,
        horizon=10_000,
        variant="nonprivate",
        policy=UCB(),
    )
    baseline = loops.PlainLinUCB(5, 10_000)
    chosen = set()
    for _ in range(500):
        actions, means = loops.sphere_set(rng, theta, 25)
        actions *= 1 - 1e-12  # rounding must not push a unit vector over the bound
        decision = bandit.choose(actions)
        assert baseline.choose(actions) == decision.index
        reward = 1.0 if rng.random() < 0.5 * (1 + means[decision.index]) else -1.0
        bandit.learn(decision, reward)
        baseline.learn(actions[decision.index], reward)
        chosen.add(decision.index)
    assert len(chosen) == 25


def test_the_numpy_loops_decision_sets_follow_the_environments_law() -> None:
    """Kolmogorov-Smirnov at 1e-6, with seeds fixed."""
    rng = np.random.default_rng(2)
    theta = workload.unit_rows(rng, 1, 5)[0]
    world = Sphere(dim=5, n_actions=25).start(np.random.SeedSequence(3))
    theirs, ours = [], []
    for _ in range(1000):
        actions, means = loops.sphere_set(rng, theta, 25)
        np.testing.assert_allclose(np.linalg.norm(actions, axis=1), 1.0)
        np.testing.assert_allclose(actions @ theta, means, atol=1e-12)
        theirs.append(np.sort(means))
        ours.append(np.sort(world.decision_set() @ world.theta))
    for found in (theirs, ours):
        np.testing.assert_allclose(np.array(found)[:, -1], loops.TOP)
    others = [np.array(found)[:, :-1].ravel() for found in (theirs, ours)]
    assert stats.ks_2samp(*others).pvalue > 1e-6
    for scale in (0.85, 1 / 0.85):  # it would notice
        assert stats.ks_2samp(others[0], scale * others[1]).pvalue < 1e-6


@pytest.fixture(scope="module")
def program() -> Iterator[Reference]:
    with loops.compiled(dim=workload.DIM, n_actions=workload.N_ACTIONS) as built:
        assert built is not None
        yield built


def regrets(what: Simulation) -> F64:
    return np.array([workload.played(what, seed).regret for seed in range(24)])


def standard_errors_apart(program: Reference, played: F64, theirs: Mechanism) -> float:
    """How far apart the mean regrets of both loops are, over 24 seeds each."""
    runs = [program.play(theirs, rounds=ROUNDS, seed=seed) for seed in range(24)]
    others = np.array([run.regret for run in runs])
    return float(
        (others.mean() - played.mean()) / np.sqrt((others.var(ddof=1) + played.var(ddof=1)) / 24)
    )


@needs_compiler
def test_the_cpp_loop_has_our_regret_without_noise(program: Reference) -> None:
    """Within 4.9 standard errors (1e-6), seeds fixed; a radius twice as large is noticed.

    A smaller radius is not: regret hardly depends on it here.
    """
    what = workload.simulation("nonprivate", rounds=ROUNDS)
    mechanism, ours = what.mechanism, regrets(what)
    assert abs(standard_errors_apart(program, ours, mechanism)) < 4.9
    bounds = replace(mechanism.bounds, rho_max=100.0)
    wide = replace(mechanism, confidence=replace(mechanism.confidence, bounds=bounds))
    assert standard_errors_apart(program, ours, wide) > 4.9


@needs_compiler
def test_the_cpp_loop_has_our_regret_with_noise(program: Reference) -> None:
    """As above; a quarter of the noise is noticed, and four times as much."""
    what = workload.simulation("gaussian", rounds=ROUNDS)
    mechanism, ours = what.mechanism, regrets(what)
    assert isinstance(mechanism.noise, GaussianNoise)
    std = mechanism.noise.std
    assert abs(standard_errors_apart(program, ours, mechanism)) < 4.9
    less = replace(mechanism, noise=GaussianNoise(std=std / 4))
    assert standard_errors_apart(program, ours, less) < -4.9
    more = replace(mechanism, noise=GaussianNoise(std=std * 4))
    assert standard_errors_apart(program, ours, more) > 4.9


def test_without_a_compiler_there_is_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "compiler", lambda: None)
    with loops.compiled(dim=2, n_actions=2) as program:
        assert program is None


@needs_compiler
def test_a_program_that_does_not_compile_is_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FLAGS", ("--no-such-flag",))
    with loops.compiled(dim=2, n_actions=2) as program:
        assert program is None
