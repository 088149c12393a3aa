"""The contract of every variant, run over the table."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet import LinUCB, NoiseBounds, Privacy, Problem, Setting, theory
from discreet.errors import DecisionClosedError, ParameterError
from discreet.mechanism import JointWidth
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.schedules import Schedule, batches, every_round, geometric
from discreet.mechanism.strategies import Optimised, SquareRoot, independent
from discreet.mechanism.variants import VARIANTS, Named, TreeVariant, calibrate, named
from discreet.release.policies import UCB, PosteriorUCB
from discreet.simulation import Simulation, run_seed
from discreet.simulation._simulate import streams
from discreet.simulation.environments import Basis, Environment, Fixed, Sphere, play
from helpers import (
    EARLY,
    TARGET,
    AsSimulated,
    learner_for,
    noise_of,
    restarted,
    target,
    unit_rows,
)


def test_the_table_lists_ours_and_the_papers_variants_once() -> None:
    assert list(VARIANTS) == [
        "windows",
        "tight",
        "nonprivate",
        "gaussian",
        "gaussian-opt",
        "wishart",
        "wishart-opt",
        "wishart-unshifted",
    ]
    assert all(VARIANTS[name].name == name for name in VARIANTS)


def test_a_mechanism_is_what_its_variant_says(variant: Named, setting: Setting) -> None:
    mechanism = variant.mechanism(setting, target(variant))
    assert mechanism.variant == variant.name
    assert mechanism.guarantee.private is variant.private
    assert (mechanism.noise is not None) is variant.private
    assert mechanism.releases == max(1, len(mechanism.schedule.times(setting.horizon)))


@pytest.mark.parametrize("name", ["tight", "windows"])
def test_only_ours_have_no_bounds_of_the_papers_kind(name: str, setting: Setting) -> None:
    mechanism = named(name).mechanism(setting, TARGET)
    assert mechanism.bounds is None
    assert mechanism.confidence == JointWidth()
    assert mechanism.shift == 0.0
    with pytest.raises(ParameterError, match=f"variant: '{name}' has no confidence radius"):
        _ = mechanism.radius_terms


def test_a_mechanism_has_sound_bounds(ellipsoid_variant: Named, setting: Setting) -> None:
    mechanism = ellipsoid_variant.mechanism(setting, target(ellipsoid_variant))
    bounds = mechanism.bounds
    assert 0 < bounds.rho_min <= bounds.rho_max
    assert bounds.gamma >= 0
    if mechanism.noise is not None:
        low, high = mechanism.noise.eigenvalues(setting)
        assert bounds.rho_min == pytest.approx(low + mechanism.shift)
        assert bounds.rho_max == pytest.approx(high + mechanism.shift)


def test_the_guarantee_says_what_was_asked_for(private_variant: Named, setting: Setting) -> None:
    guarantee = private_variant.mechanism(setting, TARGET).guarantee
    assert (guarantee.epsilon, guarantee.delta) == (TARGET.epsilon, TARGET.delta)
    assert "(1, 1e-06)-joint differential privacy" in str(guarantee)


def test_a_private_variant_needs_a_target(private_variant: Named, setting: Setting) -> None:
    with pytest.raises(ParameterError, match="privacy: is missing"):
        private_variant.mechanism(setting, None)


def test_a_variant_that_promises_nothing_refuses_a_target(setting: Setting) -> None:
    with pytest.raises(ParameterError, match="privacy: has no effect"):
        named("nonprivate").mechanism(setting, TARGET)


def test_more_privacy_means_more_noise(private_variant: Named, setting: Setting) -> None:
    weak = private_variant.mechanism(setting, Privacy(epsilon=2.0, delta=1e-3))
    strong = private_variant.mechanism(setting, Privacy(epsilon=0.5, delta=1e-6))
    if weak.bounds is not None:
        assert strong.bounds.rho_max > weak.bounds.rho_max
    weak_law, strong_law = weak.noise.law(), strong.noise.law()
    assert (strong_law.scale, strong_law.dof) > (weak_law.scale, weak_law.dof)
    assert strong_law.moment_scale >= weak_law.moment_scale


def test_the_optimal_shift_beats_its_neighbours_and_the_papers(
    problem: Problem, paper_variant: TreeVariant
) -> None:
    setting = Setting(problem=problem, horizon=50_000_000)
    family = "gaussian" if paper_variant.name.startswith("gaussian") else "wishart"
    best = named(f"{family}-opt").mechanism(setting, TARGET)
    reached = theory.regret_bound(setting, best.bounds)
    assert reached <= theory.regret_bound(setting, paper_variant.mechanism(setting, TARGET).bounds)
    for factor in (0.8, 0.99, 1.01, 1.25):
        other = paper_variant.with_rho_min(best.bounds.rho_min * factor)
        bound = theory.regret_bound(setting, other.mechanism(setting, TARGET).bounds)
        assert bound > reached


@pytest.mark.parametrize("family", ["gaussian", "wishart"])
def test_where_no_shift_is_best_the_papers_is_used(family: str, setting: Setting) -> None:
    assert setting.horizon == 64
    optimal = named(f"{family}-opt").mechanism(setting, TARGET)
    assert optimal.shift == named(family).mechanism(setting, TARGET).shift


def test_a_shift_of_ones_own_can_be_given_either_way(
    paper_variant: TreeVariant, setting: Setting
) -> None:
    low, _ = paper_variant.mechanism(setting, TARGET).noise.eigenvalues(setting)
    by_rho = paper_variant.with_rho_min(123.0).mechanism(setting, TARGET)
    by_shift = paper_variant.with_shift(123.0 - low).mechanism(setting, TARGET)
    assert by_rho.bounds.rho_min == pytest.approx(123.0)
    assert by_shift.bounds.rho_min == pytest.approx(123.0, rel=1e-6)
    with pytest.raises(ParameterError, match="shift"):
        paper_variant.with_shift(-low).mechanism(setting, TARGET)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        ParameterError, match="variant: is 'gauss'; give one of windows, tight, nonprivate"
    ):
        named("gauss")


@pytest.mark.parametrize("name", ["gaussian", "tight"])
def test_an_unknown_tree_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ParameterError, match="tree: is 'oak'; give one of pan-private, covering"):
        named(name).with_tree("oak")


def all_forms() -> dict[str, Named]:
    """The table, and what can be exchanged in its rows."""
    tight = named("tight")
    return {
        **VARIANTS,
        "windows, early": EARLY,
        "windows, few and late": replace(named("windows"), start=2.0, growth=0.5, ratio=1.0),
        "gaussian, covering": named("gaussian").with_tree("covering"),
        "gaussian, exact": named("gaussian").with_calibration("gdp"),
        "tight, every round": tight.with_schedule(every_round()),
        "tight, batches": tight.with_schedule(batches(13)),
        "tight, late and then every row": tight.with_schedule(Schedule(start=9, batch=1)),
        "tight, pan-private tree": tight.with_tree("pan-private"),
        "tight, covering tree": tight.with_tree("covering"),
        "tight, independent": tight.with_strategy(independent()),
        "tight, square root": tight.with_strategy(SquareRoot()).with_schedule(geometric(start=5)),
        "tight, optimised": tight.with_schedule(batches(20)).with_strategy(
            Optimised(1 / np.sqrt(np.arange(1, 16)))
        ),
    }


FORMS = all_forms()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("environment", [Sphere(dim=3, n_actions=7), Fixed(dim=4, n_actions=5)])
def test_learner_and_simulator_take_the_same_path(form: str, environment: Environment) -> None:
    # One stream of random numbers, the plain loop on one side and the compiled one on the other:
    # every choice must agree, so the regrets agree at every checkpoint.
    row, horizon, seed = FORMS[form], 300, 11
    world_seed, noise_seed, policy_seed = streams(seed)
    setting = Setting(problem=environment.problem, horizon=horizon, failure_prob=0.1)
    privacy = Privacy(epsilon=2.0, delta=0.1) if row.private else None
    simulation = Simulation(
        environment=environment, mechanism=row.mechanism(setting, privacy), rounds=horizon
    )
    compiled = run_seed(simulation, seed)
    rule = simulation.policy
    learner = LinUCB(
        environment.problem,
        horizon=horizon,
        failure_prob=0.1,
        privacy=privacy,
        variant=row,
        noise="float",  # as in the simulator
        noise_source=SeededNoise(noise_seed),
        policy=AsSimulated(rule, policy_seed) if isinstance(rule, PosteriorUCB) else None,
    )
    plain = np.cumsum(play(learner, environment.start(world_seed), rounds=horizon))
    np.testing.assert_allclose(plain[simulation.checkpoints() - 1], compiled, rtol=1e-12)


@pytest.mark.parametrize("variant_name", ["windows", "tight", "nonprivate"])
@pytest.mark.parametrize("environment", [Sphere(dim=3, n_actions=7), Basis(dim=4)])
@pytest.mark.parametrize(
    "rule",
    [
        PosteriorUCB(uniform=0.2),
        PosteriorUCB(dither=0.0),
        PosteriorUCB(growth=0.7),
        PosteriorUCB(dither=3.0, deviations=0.5),
        UCB(),
        UCB(optimism=0.1),
    ],
    ids=str,
)
def test_they_do_by_any_rule(
    variant_name: str, environment: Environment, rule: PosteriorUCB | UCB
) -> None:
    row = EARLY if variant_name == "windows" else named(variant_name)
    horizon, seed = 400, 5
    world_seed, noise_seed, policy_seed = streams(seed)
    setting = Setting(problem=environment.problem, horizon=horizon, failure_prob=0.1)
    privacy = Privacy(epsilon=20.0, delta=0.1) if row.private else None
    mechanism = row.mechanism(setting, privacy)
    simulation = Simulation(
        environment=environment, mechanism=mechanism, rounds=horizon, policy=rule
    )
    learner = LinUCB.from_mechanism(
        mechanism,
        noise_source=SeededNoise(noise_seed),
        policy=AsSimulated(rule, policy_seed) if isinstance(rule, PosteriorUCB) else rule,
    )
    plain = np.cumsum(play(learner, environment.start(world_seed), rounds=horizon))
    compiled = run_seed(simulation, seed)
    np.testing.assert_allclose(plain[simulation.checkpoints() - 1], compiled, rtol=1e-12)


def test_a_restored_learner_continues_exactly(
    variant: Named, problem: Problem, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    sets = [unit_rows(rng, 6, 3) for _ in range(60)]
    # By a rule that leaves nothing to chance.
    straight, stopped = (learner_for(variant, problem, seed=3, policy=UCB()) for _ in range(2))
    waiting = {}
    for learner in (straight, stopped):
        waiting[learner] = [learner.choose(actions) for actions in sets[:23]]
        for decision in waiting[learner][:20]:
            learner.learn(decision, 0.25)
    source = stopped._curator._held.sums._source
    restored = restarted(stopped, tmp_path / "file", noise_source=source)
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


@pytest.mark.parametrize("rows", [0, 13, 33])
def test_a_restored_learner_shows_the_very_same_release(
    variant: Named, problem: Problem, tmp_path: Path, rows: int
) -> None:
    learner = LinUCB(
        problem, horizon=40, privacy=target(variant), variant=variant, noise=noise_of(variant)
    )
    for actions in itertools.repeat(np.eye(3), rows):
        learner.learn(learner.choose(actions), 1)
    release = learner.release
    restored = restarted(learner, tmp_path / "file")
    np.testing.assert_array_equal(restored.release.gram, release.gram)
    np.testing.assert_array_equal(restored.release.moment, release.moment)
    assert (restored.release.number, restored.rows) == (release.number, rows)
    assert restored.guarantee == learner.guarantee
    assert restored.mechanism == learner.mechanism


def test_the_noise_changes_from_learner_to_learner(
    private_variant: Named, problem: Problem
) -> None:
    first, second = (
        LinUCB(
            problem,
            horizon=40,
            privacy=TARGET,
            variant=private_variant,
            noise=noise_of(private_variant),
        )
        for _ in range(2)
    )
    for _ in range(20):  # to the first release of all
        for learner in (first, second):
            learner.learn(learner.choose([[1.0, 0.0, 0.0]]), 1)
    assert not (first.release.gram == second.release.gram).any()
    assert not (first.release.moment == second.release.moment).any()


def test_seeded_noise_voids_the_guarantee(private_variant: Named, problem: Problem) -> None:
    learner = learner_for(private_variant, problem)
    assert not learner.guarantee.private
    assert "No privacy is promised: its noise comes from a seed" in str(learner.guarantee)
    assert not learner.release.guarantee.private


def test_bounds_that_cannot_hold_are_refused() -> None:
    for bad in ({"rho_min": 0.0}, {"rho_max": 0.5}, {"gamma": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            NoiseBounds(**{"rho_min": 1.0, "rho_max": 2.0, "gamma": 0.0, **bad})


def test_a_mechanism_is_calibrated_from_a_name_or_a_variant(problem: Problem) -> None:
    setting = Setting(problem=problem, horizon=200, failure_prob=0.01)
    expected = named("tight").mechanism(setting, TARGET, noise="exact")
    for variant in ("tight", named("tight")):
        found = calibrate(
            variant, problem, horizon=200, privacy=TARGET, failure_prob=0.01, noise="exact"
        )
        assert found == expected
    assert calibrate("tight", problem, horizon=None, privacy=TARGET).setting == Setting.over(
        problem, None
    )
    with pytest.raises(ParameterError, match="horizon: is None"):
        calibrate("gaussian", problem, horizon=None, privacy=TARGET)
    with pytest.raises(ParameterError, match="variant: "):
        calibrate("loose", problem, horizon=9, privacy=TARGET)
