"""What a diagnosis says in numbers: about the release alone, and in the right order."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import LinUCB, Privacy, Problem, Ranker, Release, features
from discreet.errors import OutOfBoundsError
from discreet.mechanism.variants import calibrate, named
from discreet.release._diagnosis import BEGUN, CANNOT, LEARNED, Diagnosis, diagnosis
from discreet.simulation import Simulation
from discreet.simulation._simulate import release_after
from discreet.simulation.environments import Sphere
from helpers import TARGET, seeded

DIM = 20
WORLD = Sphere(dim=DIM, n_actions=25)
PLAYED = Simulation(
    environment=WORLD,
    mechanism=calibrate(named("windows"), WORLD.problem, horizon=10**6, privacy=TARGET),
    rounds=50_000,
)
NEEDED = PLAYED.mechanism.half_gain_rows
FIRST = PLAYED.mechanism.schedule.after(0)


def release(rows: int, seed: int = 0) -> Release:
    return release_after(PLAYED, seed, rows)[0]


def test_the_verdict_follows_what_is_learned() -> None:
    # Seeds are fixed. Over 8 of them, verdicts come in their order.
    early = [diagnosis(release(FIRST, seed)) for seed in range(8)]
    late = [diagnosis(release(20 * NEEDED, seed)) for seed in range(8)]
    assert {one.verdict for one in early} == {CANNOT}
    assert {one.verdict for one in late} == {LEARNED}
    assert BEGUN in {diagnosis(release(NEEDED // 2, seed)).verdict for seed in range(8)}
    for before, after in zip(early, late, strict=True):
        assert before.evidence.removed < 0.02 < after.evidence.removed
        assert before.evidence.gain < 0.1
        assert after.evidence.gain > 0.5
        assert before.evidence.width > after.evidence.width
        assert before.evidence.separated < 0.05 < after.evidence.separated
        assert before.evidence.signal < 2 < after.evidence.signal
        assert str(before).endswith(f"takes about {NEEDED:,} rows.")
        assert "takes about" not in str(after)
        assert f"This learner {CANNOT}." in str(before)


def test_the_length_of_the_moment_is_about_1_if_actions_make_no_difference() -> None:
    problem = Problem(dim=DIM, action_norm=1, reward_bound=1, theta_norm=1)
    found = []
    for seed in range(10):
        bandit = LinUCB(
            problem, horizon=10**6, privacy=TARGET, noise="float", noise_source=seeded(seed)
        )
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((2_000, DIM))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        bandit.observe(rows, rng.choice([-1.0, 1.0], 2_000))
        found.append(bandit.diagnosis.evidence.signal)
    # Fixed seeds: each is the root of a chi-square of 20 over 20, deviation 0.16, and the mean
    # of ten 0.05.
    assert np.mean(found) == pytest.approx(1.0, abs=0.25)


def test_removed_and_width_are_those_of_the_posterior() -> None:
    shown = release(NEEDED)
    found = diagnosis(shown).evidence
    left = np.trace(shown.posterior.covariance) / DIM
    assert found.removed == pytest.approx(1 - left / shown.posterior.prior)
    intervals = shown.cautious.estimate(np.eye(DIM))
    root_mean_square = np.sqrt(np.mean((intervals.high - intervals.low) ** 2))
    assert found.width == pytest.approx(root_mean_square / 2, rel=1e-3)


def test_it_is_a_function_of_the_release_alone() -> None:
    shown = release(2 * NEEDED)
    again = replace(shown)
    assert diagnosis(shown) == diagnosis(again)
    assert diagnosis(shown, brief=True) == replace(diagnosis(shown), evidence=None)
    assert diagnosis(shown)._repr_html_() == diagnosis(again)._repr_html_()
    assert "verdict" in diagnosis(shown)._repr_html_()


def test_given_decision_sets_are_looked_at() -> None:
    shown = release(20 * NEEDED)
    centre = shown.posterior.centre / np.linalg.norm(shown.posterior.centre)
    clear = np.array([centre, -centre])
    unclear = np.array([centre, centre])
    assert diagnosis(shown, [clear, clear]).evidence.separated == 1.0
    assert diagnosis(shown, [clear, unclear]).evidence.separated == 0.5
    assert diagnosis(shown, []).evidence.separated == 0.0


def test_a_learner_diagnoses_decision_sets_of_its_bounds() -> None:
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1, blocks=(1, 1))
    bandit = LinUCB(problem, horizon=10_000, privacy=Privacy(epsilon=8, delta=1e-6))
    assert bandit.diagnose([np.eye(2)]).evidence is None
    bandit.observe(np.tile(np.eye(2), (1_000, 1)), np.tile([0.8, -0.8], 1_000))
    assert bandit.diagnose([np.eye(2)]).evidence.separated == 1.0
    assert bandit.diagnosis.evidence.separated > 0.4  # made up within blocks
    with pytest.raises(OutOfBoundsError):
        bandit.diagnose([2 * np.eye(2)])


PAGE = features.FeatureMap(
    [
        features.intercept(),
        features.action_id(["a", "b", "c"]),
        features.cross(
            features.category("context.age", ["young", "old"]), features.action_id(list("abc"))
        ),
    ]
)


def shown_of_a_page(clicks: dict[str, float], readers: int) -> Diagnosis:
    """What is said after readers who click on what they are shown with these chances."""
    problem = replace(PAGE.problem(reward_bound=0.5, theta_norm=1.0), reward_centre=0.5)
    privacy = Privacy(epsilon=2, delta=1e-6)
    bandit = LinUCB(problem, horizon=10**5, privacy=privacy, noise="float", noise_source=seeded(3))
    rng = np.random.default_rng(3)
    sets = [PAGE({"age": age}, [{"id": one} for one in clicks]) for age in ("young", "old")]
    shown = rng.integers(len(clicks), size=readers)
    rows = np.array([sets[turn % 2][place] for turn, place in enumerate(shown)])
    bandit.observe(rows, (rng.random(readers) < np.array(list(clicks.values()))[shown]) * 1.0)
    return Ranker(bandit.release, features=PAGE).diagnosis


def test_what_all_actions_have_in_common_is_not_taken_for_knowledge_of_which_is_best() -> None:
    """Seeds are fixed. In the second world all are clicked on as often again: no choice changes."""
    little, much = {"a": 0.45, "b": 0.45, "c": 0.55}, {"a": 0.05, "b": 0.05, "c": 0.15}
    one, other = shown_of_a_page(little, 500), shown_of_a_page(much, 500)
    assert one.known < 0.9
    assert other.known > 0.95  # the intercept is known well
    assert max(one.evidence.gain, other.evidence.gain) < 0.5
    assert LEARNED not in {one.verdict, other.verdict}
    late = shown_of_a_page({"a": 0.05, "b": 0.05, "c": 0.8}, 4_000)
    assert late.evidence.gain > 0.6
    assert late.verdict == LEARNED
    assert not late.evidence.anywhere
    assert "point anywhere" not in str(late)


def test_without_noise_there_is_evidence_too_and_with_other_noise_none() -> None:
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    bandit = LinUCB(problem, horizon=1_000, variant="nonprivate")
    bandit.observe(np.tile(np.eye(2), (100, 1)), np.tile([0.5, -0.5], 100))
    assert bandit.diagnosis.verdict == LEARNED
    wishart = LinUCB(problem, horizon=100, privacy=TARGET, variant="wishart", noise="float")
    wishart.observe(np.eye(2), [0.5, -0.5])
    found = wishart.diagnosis
    assert (found.half_gain_rows, found.evidence, found.verdict) == (None, None, None)
    assert not found.too_short
