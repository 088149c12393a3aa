"""The contract of every variant, run over the table."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from discreet import LinUCB, NoiseBounds, Privacy, Problem, Setting, load, theory
from discreet.environments import Environment, Fixed, Sphere, play
from discreet.errors import DecisionClosedError, ParameterError
from discreet.noise.source import SeededNoise
from discreet.simulate import Simulation, run_seed, streams
from discreet.variants import VARIANTS, TreeVariant, Unperturbed, named
from helpers import TARGET, learner_for, target, unit_rows

Variant = TreeVariant | Unperturbed


def test_the_table_lists_the_papers_variants_once() -> None:
    assert list(VARIANTS) == [
        "nonprivate",
        "gaussian",
        "gaussian-opt",
        "wishart",
        "wishart-opt",
        "wishart-unshifted",
    ]
    assert all(VARIANTS[name].name == name for name in VARIANTS)


def test_a_mechanism_has_sound_bounds(variant: Variant, setting: Setting) -> None:
    mechanism = variant.mechanism(setting, target(variant))
    bounds = mechanism.bounds
    assert 0 < bounds.rho_min <= bounds.rho_max
    assert bounds.gamma >= 0
    assert mechanism.variant == variant.name
    assert mechanism.guarantee.private is variant.private
    if mechanism.noise is not None:
        low, high = mechanism.noise.eigenvalues(setting)
        assert bounds.rho_min == pytest.approx(low + mechanism.shift)
        assert bounds.rho_max == pytest.approx(high + mechanism.shift)


def test_the_guarantee_says_what_was_asked_for(private_variant: Variant, setting: Setting) -> None:
    guarantee = private_variant.mechanism(setting, TARGET).guarantee
    assert (guarantee.epsilon, guarantee.delta) == (TARGET.epsilon, TARGET.delta)
    assert "(1, 1e-06)-joint differential privacy" in str(guarantee)


def test_a_private_variant_needs_a_target(private_variant: Variant, setting: Setting) -> None:
    with pytest.raises(ParameterError, match="privacy: is missing"):
        private_variant.mechanism(setting, None)


def test_a_variant_that_promises_nothing_refuses_a_target(setting: Setting) -> None:
    with pytest.raises(ParameterError, match="privacy: has no effect"):
        named("nonprivate").mechanism(setting, TARGET)


def test_more_privacy_means_more_noise(private_variant: Variant, setting: Setting) -> None:
    weak = private_variant.mechanism(setting, Privacy(epsilon=2.0, delta=1e-3))
    strong = private_variant.mechanism(setting, Privacy(epsilon=0.5, delta=1e-6))
    assert strong.bounds.rho_max > weak.bounds.rho_max


def test_the_optimal_shift_beats_its_neighbours_and_the_papers(
    problem: Problem, private_variant: TreeVariant
) -> None:
    setting = Setting(problem=problem, horizon=50_000_000)
    family = "gaussian" if private_variant.name.startswith("gaussian") else "wishart"
    best = named(f"{family}-opt").mechanism(setting, TARGET)
    reached = theory.regret_bound(setting, best.bounds)
    assert reached <= theory.regret_bound(
        setting, private_variant.mechanism(setting, TARGET).bounds
    )
    for factor in (0.8, 0.99, 1.01, 1.25):
        other = private_variant.with_rho_min(best.bounds.rho_min * factor)
        bound = theory.regret_bound(setting, other.mechanism(setting, TARGET).bounds)
        assert bound > reached


@pytest.mark.parametrize("family", ["gaussian", "wishart"])
def test_where_no_shift_is_best_the_papers_is_used(family: str, setting: Setting) -> None:
    assert setting.horizon == 64
    optimal = named(f"{family}-opt").mechanism(setting, TARGET)
    assert optimal.shift == named(family).mechanism(setting, TARGET).shift


def test_a_shift_of_ones_own_can_be_given_either_way(
    private_variant: TreeVariant, setting: Setting
) -> None:
    low, _ = private_variant.mechanism(setting, TARGET).noise.eigenvalues(setting)
    by_rho = private_variant.with_rho_min(123.0).mechanism(setting, TARGET)
    by_shift = private_variant.with_shift(123.0 - low).mechanism(setting, TARGET)
    assert by_rho.bounds.rho_min == pytest.approx(123.0)
    assert by_shift.bounds.rho_min == pytest.approx(123.0, rel=1e-6)
    with pytest.raises(ParameterError, match="shift"):
        private_variant.with_shift(-low).mechanism(setting, TARGET)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"variant: is 'gauss'; give one of nonprivate, gauss"):
        named("gauss")


def test_an_unknown_tree_lists_the_known_ones() -> None:
    with pytest.raises(ParameterError, match="tree: is 'oak'; give one of pan-private, covering"):
        named("gaussian").with_tree("oak")


def trees() -> list[Variant]:
    return [*VARIANTS.values(), named("gaussian").with_tree("covering")]


@pytest.mark.parametrize("row", trees(), ids=lambda row: f"{row.name}-{getattr(row, 'tree', '')}")
@pytest.mark.parametrize("environment", [Sphere(dim=3, n_actions=7), Fixed(dim=4, n_actions=5)])
def test_learner_and_simulator_take_the_same_path(row: Variant, environment: Environment) -> None:
    # One stream of random numbers, the plain loop on one side and the compiled one on the other:
    # every choice must agree, so the regrets agree at every checkpoint.
    horizon, seed = 300, 11
    world_seed, noise_seed, _ = streams(seed)
    setting = Setting(problem=environment.problem, horizon=horizon, failure_prob=0.1)
    privacy = Privacy(epsilon=2.0, delta=0.1) if row.private else None
    simulation = Simulation(
        environment=environment, mechanism=row.mechanism(setting, privacy), rounds=horizon
    )
    compiled = run_seed(simulation, seed)

    learner = LinUCB(
        environment.problem,
        horizon=horizon,
        failure_prob=0.1,
        privacy=privacy,
        variant=row,
        noise_source=SeededNoise(noise_seed),
    )
    plain = np.cumsum(play(learner, environment.start(world_seed), rounds=horizon))
    np.testing.assert_allclose(plain[simulation.checkpoints() - 1], compiled, rtol=1e-12)


def test_a_restored_learner_continues_exactly(
    variant: Variant, problem: Problem, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    sets = [unit_rows(rng, 6, 3) for _ in range(60)]
    straight, stopped = (learner_for(variant, problem, seed=3) for _ in range(2))
    waiting = {}
    for learner in (straight, stopped):
        waiting[learner] = [learner.choose(actions) for actions in sets[:23]]
        for decision in waiting[learner][:20]:
            learner.learn(decision, 0.25)
    stopped.save(tmp_path / "file")
    restored = load(tmp_path / "file", noise_source=stopped._curator._sums._source)
    straight.learn(waiting[straight][20], -0.5)  # a decision from before the save
    restored.learn(waiting[stopped][20], -0.5)
    with pytest.raises(DecisionClosedError):
        restored.learn(waiting[stopped][19], -0.5)
    for actions in sets[23:]:
        first, second = straight.choose(actions), restored.choose(actions)
        assert first.index == second.index
        straight.learn(first, 0.5)
        restored.learn(second, 0.5)
        np.testing.assert_array_equal(straight.release.gram, restored.release.gram)
        np.testing.assert_array_equal(straight.release.moment, restored.release.moment)


def test_a_restored_learner_shows_the_very_same_release(
    variant: Variant, problem: Problem, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=40, privacy=target(variant), variant=variant)
    for actions in itertools.repeat(np.eye(3), 13):
        learner.learn(learner.choose(actions), 1)
    learner.save(tmp_path / "file")
    restored = load(tmp_path / "file")
    np.testing.assert_array_equal(restored.release.gram, learner.release.gram)
    assert restored.guarantee == learner.guarantee
    assert restored.mechanism == learner.mechanism


def test_the_noise_changes_from_learner_to_learner(
    private_variant: Variant, problem: Problem
) -> None:
    first, second = (
        LinUCB(problem, horizon=8, privacy=TARGET, variant=private_variant) for _ in range(2)
    )
    assert not np.array_equal(first.release.gram, second.release.gram)


def test_seeded_noise_voids_the_guarantee(private_variant: Variant, problem: Problem) -> None:
    learner = learner_for(private_variant, problem)
    assert not learner.guarantee.private
    assert "No privacy is promised: its noise comes from a seed" in str(learner.guarantee)
    assert not learner.release.guarantee.private


def test_bounds_that_cannot_hold_are_refused() -> None:
    for bad in ({"rho_min": 0.0}, {"rho_max": 0.5}, {"gamma": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            NoiseBounds(**{"rho_min": 1.0, "rho_max": 2.0, "gamma": 0.0, **bad})
