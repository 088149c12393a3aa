"""The posterior of a release, the rule that plays by it, and what is said of both."""

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet import LinUCB, Privacy, Problem, Release, Setting
from discreet.errors import ParameterError, ShapeError, UninformedWarning
from discreet.kernels import _posterior as kernel
from discreet.mechanism.variants import VARIANTS, Named, named
from discreet.release import policies
from discreet.release.policies import UCB, Choice, PosteriorUCB, Thompson, greedy
from discreet.release.posterior import posterior
from discreet.simulation import Simulation
from discreet.simulation.environments import Sphere
from helpers import EARLY, TARGET, learner_for, noise_of, restarted, seeded, target, unit_rows

F64 = NDArray[np.float64]

DIM, ACTIONS = 3, 6
UNIT = Problem(dim=DIM, action_norm=1, reward_bound=1, theta_norm=1)
THETA = np.array([0.6, -0.3, 0.2])
LOOSE = Privacy(epsilon=20.0, delta=0.1)
RULES = [
    PosteriorUCB(),
    PosteriorUCB(uniform=0.3),
    PosteriorUCB(dither=4.0),
    PosteriorUCB(dither=0.0),
    PosteriorUCB(growth=2.0, dither=2.0),
    PosteriorUCB(dither=2.0, deviations=0.0, uniform=0.05),
]
each_rule = pytest.mark.parametrize("rule", RULES, ids=str)


def informed(variant: Named = EARLY, rows: int = 300, problem: Problem = UNIT) -> LinUCB:
    """A learner that has seen rewards of `THETA`, with little noise."""
    privacy = LOOSE if variant.private else None
    learner = LinUCB(
        problem, horizon=10_000, privacy=privacy, variant=variant, noise=noise_of(variant)
    )
    rng = np.random.default_rng(1)
    for _ in range(rows):
        actions = unit_rows(rng, ACTIONS, DIM)
        decision = learner.choose(actions)
        noise = rng.uniform(-0.2, 0.2)
        learner.learn(decision, float(actions[decision.index] @ THETA + noise))
    return learner


@pytest.fixture(scope="module")
def release() -> Release:
    """One that can tell actions apart, and is not sure."""
    found = informed(rows=40).release
    assert found.posterior.distinguishes
    return found


def some_actions(seed: int = 0, count: int = ACTIONS) -> F64:
    return unit_rows(np.random.default_rng(seed), count, DIM)


def by_hand(rule: PosteriorUCB, release: Release, actions: F64) -> F64:
    """The share of tilts for which each action is best, with the covariance written out."""
    known = release.posterior
    scale = rule.dither / math.sqrt(known.prior)
    widths = np.sqrt(np.einsum("ki,ij,kj->k", actions, known.covariance, actions))
    unit = np.tril(known.factor, -1) + np.eye(DIM)
    wins = np.zeros(len(actions))
    numbers = rule.numbers(release.mechanism)
    bonus = numbers.growth * math.sqrt(math.log(release.rows) / release.moment.size)
    bonus += numbers.deviations
    for at in range(kernel.TILTS):
        shift = np.empty(DIM)
        kernel.tilt(release.number, at, known.factor, known.firsts, scale, shift)
        centre = known.centre + np.linalg.solve(unit.T, shift)
        wins[(actions @ centre + bonus * widths).argmax()] += 1
    share = rule.uniform
    return np.asarray(share / len(actions) + (1 - share) * wins / kernel.TILTS)


# The posterior


@pytest.mark.parametrize("name", ["windows", "tight", "gaussian", "nonprivate"])
def test_the_posterior_of_a_release_is_the_kernels_on_its_sums_without_the_shift(
    name: str,
) -> None:
    found = informed(EARLY if name == "windows" else named(name), rows=60).release
    mechanism, dim = found.mechanism, DIM
    law = mechanism.law
    noise = kernel.Noise(found.spread * law.scale, found.spread * law.moment_scale, found.weight)
    known = kernel.Known(1.0, 1.0, 1.0, 2.0 / dim, mechanism.firsts, kernel.HALVINGS)
    lower, weights, centre, figures = np.zeros((3, 3)), np.zeros(3), np.zeros(3), np.zeros(2)
    gram = found.gram - mechanism.shift * np.eye(dim)
    assert (mechanism.shift > 0) == (name in {"gaussian", "nonprivate"})
    kernel.fill(gram, found.moment, noise, known, lower, weights, centre, figures)
    np.testing.assert_allclose(found.posterior.centre, centre, rtol=1e-12)
    np.testing.assert_allclose(found.posterior.factor, lower, rtol=1e-12)
    assert found.posterior.prior == figures[0]
    assert found.posterior.stated == pytest.approx(2.0 / dim)
    assert found.posterior is found.posterior  # worked out once
    if name == "nonprivate":
        assert found.spread == 0.0
        ridge = gram + np.eye(dim) * dim / 2
        np.testing.assert_allclose(found.posterior.centre, np.linalg.solve(ridge, found.moment))
    else:
        assert found.spread > 0


def test_the_covariance_and_the_deviations_are_those_of_the_factor(release: Release) -> None:
    known, actions = release.posterior, some_actions(3, 50)
    unit = np.tril(known.factor, -1) + np.eye(DIM)
    precision = unit @ np.diag(1 / np.diag(known.factor)) @ unit.T
    np.testing.assert_allclose(known.covariance @ precision, np.eye(DIM), atol=1e-10)
    expected = np.sqrt(np.einsum("ki,ij,kj->k", actions, known.covariance, actions))
    np.testing.assert_allclose(known.deviations(actions), expected, rtol=1e-10)


def test_an_estimate_is_the_mean_with_a_bayesian_interval() -> None:
    learner = informed(rows=40)
    actions, known = some_actions(4), learner.posterior
    before = learner.rounds
    for level, reach in ((0.95, 1.959964), (0.5, 0.6744898), (0.9, 1.644854)):
        found = learner.estimate(actions.tolist(), level=level)
        np.testing.assert_allclose(found.estimate, actions @ known.centre, rtol=1e-12)
        half = reach * known.deviations(actions)
        np.testing.assert_allclose(found.high - found.estimate, half, rtol=1e-5)
        np.testing.assert_allclose(found.estimate - found.low, half, rtol=1e-5)
    assert learner.rounds == before
    for wrong in (np.ones(DIM), np.ones((2, DIM + 1)), np.ones((1, 2, DIM))):
        with pytest.raises(ShapeError):
            learner.estimate(wrong)
    for level in (0.0, 1.0, -0.5, math.nan, "0.9"):
        with pytest.raises(ParameterError, match="level: "):
            learner.estimate(actions, level=level)


def test_before_the_first_release_it_is_the_prior() -> None:
    learner = LinUCB(UNIT, horizon=100, privacy=TARGET)
    known = learner.posterior
    np.testing.assert_array_equal(known.centre, 0.0)
    np.testing.assert_allclose(known.covariance, 2 / DIM * np.eye(DIM), rtol=1e-12)
    assert (known.number, known.known, known.distinguishes) == (0, 0.0, False)
    found = learner.estimate(np.eye(DIM))
    np.testing.assert_allclose(found.high, stats.norm.ppf(0.975) * math.sqrt(2 / DIM), rtol=1e-9)


def test_blocks_of_features_make_blocks_of_the_covariance() -> None:
    learner = LinUCB(replace(UNIT, blocks=(1, 2)), horizon=10_000, privacy=LOOSE, variant=EARLY)
    rng = np.random.default_rng(1)
    for turn in range(60):
        actions = unit_rows(rng, ACTIONS, DIM) * ([0, 1, 1] if turn % 2 else [1, 0, 0])
        learner.learn(learner.choose(actions), float(rng.uniform(-1, 1)))
    covariance = learner.posterior.covariance
    assert not covariance[0, 1:].any()
    assert covariance[1, 2] != 0
    assert informed(rows=60).posterior.covariance[0, 1:].all()


def test_noise_of_another_law_has_no_posterior() -> None:
    learner = learner_for(named("wishart"), UNIT)
    with pytest.raises(ParameterError, match="variant: 'wishart' has noise of another law"):
        posterior(learner.release)
    assert learner.diagnosis.known is None
    mechanism = named("wishart").mechanism(Setting(problem=UNIT, horizon=50), TARGET)
    with pytest.raises(ParameterError, match="variant: 'wishart'"):
        Simulation(
            environment=Sphere(dim=DIM, n_actions=4),
            mechanism=mechanism,
            rounds=50,
            policy=PosteriorUCB(),
        )


# The rule


@each_rule
def test_probabilities_are_shares_of_tilts_and_sum_up_to_one(
    rule: PosteriorUCB, release: Release
) -> None:
    for seed in range(20):
        actions = some_actions(seed)
        found = rule.probabilities(release, actions)
        assert found.sum() == pytest.approx(1.0, rel=1e-12)
        assert (found >= rule.uniform / ACTIONS).all()
        np.testing.assert_allclose(found, by_hand(rule, release, actions), rtol=1e-9)


def test_some_of_them_are_neither_nothing_nor_everything(release: Release) -> None:
    # Otherwise the test above would say little.
    found = [PosteriorUCB(dither=4.0).probabilities(release, some_actions(s)) for s in range(20)]
    assert sum(((p > 0) & (p < 1)).sum() for p in found) > 20


@each_rule
def test_choices_come_as_often_as_their_probabilities_say(
    rule: PosteriorUCB, release: Release
) -> None:
    # Draws cannot be seeded. Chi-square at 1e-6, six rules: together 6e-6.
    actions, count = some_actions(7), 6_000
    expected = rule.probabilities(release, actions)
    made = [rule.choose(release, actions) for _ in range(count)]
    for one in made:
        assert type(one) is Choice
        assert one.probability == expected[one.index]
    seen = np.bincount([one.index for one in made], minlength=ACTIONS)
    possible = expected > 0
    assert not seen[~possible].any()
    if possible.sum() > 1:
        assert stats.chisquare(seen[possible], count * expected[possible]).pvalue > 1e-6
        even = np.full(possible.sum(), count / possible.sum())
        if np.ptp(expected[possible]) > 0.1:
            assert stats.chisquare(seen[possible], even).pvalue < 1e-6


def test_tilts_are_other_ones_after_each_release(release: Release) -> None:
    rule, actions = PosteriorUCB(dither=4.0), some_actions(7)
    later = replace(release, number=release.number + 1)
    assert later.number == release.number + 1
    np.testing.assert_array_equal(later.posterior.centre, release.posterior.centre)
    assert (rule.probabilities(later, actions) != rule.probabilities(release, actions)).any()


@each_rule
@pytest.mark.parametrize("count", [1, 2, 7])
def test_before_the_first_release_all_actions_are_equally_probable(
    rule: PosteriorUCB, count: int
) -> None:
    nothing = LinUCB(UNIT, horizon=100, privacy=TARGET).release
    found = rule.probabilities(nothing, some_actions(1, count))
    np.testing.assert_allclose(found, 1 / count, rtol=1e-12)


@each_rule
def test_they_are_if_a_release_cannot_tell_them_apart(rule: PosteriorUCB) -> None:
    learner = LinUCB(UNIT, horizon=100, privacy=Privacy(epsilon=0.05, delta=1e-6), variant=EARLY)
    for _ in range(4):
        learner.learn(learner.choose(np.eye(DIM)), 1.0)
    assert learner.release.number > 0
    assert not learner.posterior.distinguishes
    found = rule.probabilities(learner.release, some_actions(1))
    np.testing.assert_allclose(found, 1 / ACTIONS, rtol=1e-12)


def test_with_much_known_the_best_action_is_nearly_certain() -> None:
    release = informed(rows=3_000).release
    actions = np.array([THETA, -THETA, [0.2, 0.9, 0.0]]) / np.linalg.norm(THETA) * 0.9
    assert PosteriorUCB().probabilities(release, actions)[0] > 0.9
    assert PosteriorUCB(uniform=0.3).probabilities(release, actions)[1] == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["deviations", "growth", "dither", "uniform"])
@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf, "1", True])
def test_numbers_of_the_rule_that_make_no_sense_are_refused(name: str, value: object) -> None:
    with pytest.raises(ParameterError) as refused:
        PosteriorUCB(**{name: value})
    assert refused.value.parameter == name


def test_a_uniform_share_of_more_than_one_is_refused() -> None:
    assert PosteriorUCB(uniform=1.0).uniform == 1.0
    with pytest.raises(ParameterError, match="uniform: "):
        PosteriorUCB(uniform=1.01)


@pytest.mark.parametrize(
    "rule",
    [*RULES, UCB(), UCB(optimism=0.3), Thompson(optimism=2.0), greedy()],
    ids=str,
)
def test_a_rule_survives_json_both_ways(rule: policies.Policy) -> None:
    entry = json.loads(json.dumps(policies.to_json(rule), allow_nan=False))
    found = policies.from_json(entry)
    assert found == rule
    assert type(found) is type(rule)
    with pytest.raises((KeyError, TypeError, ValueError)):
        policies.from_json({**entry, "rule": "luck"})
    with pytest.raises((KeyError, TypeError, ValueError)):
        policies.from_json({**entry, "luck": 1.0})


@pytest.mark.parametrize(
    ("privacy", "growth"),
    [
        (Privacy(epsilon=1, delta=1e-6), 0.8),
        (Privacy(epsilon=1, delta=1e-6, protects="rewards"), 0.8),
        (Privacy(epsilon=1, delta=0.1), 0.8),
        (Privacy(epsilon=1, delta=0.1, protects="rewards"), 1.2),
        (Privacy(epsilon=3, delta=0.1), 1.2),
        (None, 1.6),
    ],
)
@pytest.mark.parametrize("unit", [1.0, 50.0])
def test_the_less_noise_there_is_the_faster_optimism_grows(
    privacy: Privacy | None, growth: float, unit: float
) -> None:
    # One of 24 runs on basis with rewards alone protected was stuck for good without that.
    problem = Problem(dim=5, action_norm=1, reward_bound=unit, theta_norm=unit)
    row = named("nonprivate" if privacy is None else "windows")
    usual = policies.usual(row.mechanism(Setting(problem=problem, horizon=10_000), privacy))
    assert isinstance(usual, PosteriorUCB)
    assert usual.growth == growth


@pytest.mark.parametrize(
    ("delta", "protects", "most"),
    [(0.1, "rows", 1.3), (0.1, "rewards", 0.8), (1e-6, "rows", 5.3), (1e-6, "rewards", 3.8)],
)
def test_from_which_epsilon_on_there_is_little_noise(
    delta: float, protects: Literal["rows", "rewards"], most: float
) -> None:
    # The figures of docs/estimate.md.
    setting = Setting(
        problem=Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1), horizon=10_000
    )
    growths = []
    for epsilon in (most - 0.1, most + 0.1):
        privacy = Privacy(epsilon=epsilon, delta=delta, protects=protects)
        growths.append(policies.usual(named("windows").mechanism(setting, privacy)).growth)
    assert growths == [0.8, 1.2]


@pytest.mark.parametrize("name", ["windows", "nonprivate"])
def test_what_a_policy_leaves_open_is_what_suits_the_noise(name: str) -> None:
    learner = learner_for(VARIANTS[name], UNIT)
    own = policies.usual(learner.mechanism)
    asked = PosteriorUCB(uniform=0.05)
    with LinUCB.from_mechanism(learner.mechanism, policy=asked) as bandit:
        assert bandit.policy == replace(own, uniform=0.05)
    with LinUCB.from_mechanism(learner.mechanism, policy=PosteriorUCB(growth=0.1)) as bandit:
        assert bandit.policy == replace(own, growth=0.1)
    sets = np.eye(DIM)
    for first, second in ((asked, replace(own, uniform=0.05)), (PosteriorUCB(), own)):
        found = first.probabilities(learner.release, sets)
        assert found.tolist() == second.probabilities(learner.release, sets).tolist()


def test_each_variant_has_its_own_rule(variant: Named) -> None:
    learner = learner_for(variant, UNIT)
    usual = policies.usual(learner.mechanism)
    assert learner.policy == usual
    if variant.name == "windows":
        assert usual == PosteriorUCB(deviations=0.75, growth=0.8)
    elif variant.name == "nonprivate":  # it never forgets, so optimism must not stop growing
        assert isinstance(usual, PosteriorUCB)
        assert usual.growth > 0
    else:
        assert usual == UCB()
    mechanism = variant.mechanism(Setting(problem=UNIT, horizon=50), target(variant))
    played = Simulation(environment=Sphere(dim=DIM, n_actions=4), mechanism=mechanism, rounds=50)
    assert played.policy == usual


# In a learner


class First:
    """A policy of one's own, which says an index and nothing else."""

    def choose(self, _: Release, __: F64) -> int:
        return 0


class Doubtful:
    """One that says how probable its choice was."""

    def choose(self, _: Release, actions: F64) -> Choice:
        return Choice(len(actions) - 1, 0.125)


@pytest.mark.parametrize("many", [False, True])
def test_a_decision_says_how_probable_it_was(*, many: bool) -> None:
    learner = informed(rows=40)
    sets = [some_actions(seed) for seed in range(30)]
    release = learner.release
    made = learner.choose_many(sets) if many else [learner.choose(one) for one in sets]
    for actions, decision in zip(sets, made, strict=True):
        expected = learner.policy.probabilities(release, actions)
        assert decision.probability == expected[decision.index] > 0
        assert type(decision.probability) is float


@pytest.mark.parametrize(
    ("policy", "probability"),
    [(First(), None), (Doubtful(), 0.125), (UCB(), 1.0), (greedy(), 1.0), (Thompson(), None)],
    ids=lambda value: type(value).__name__,
)
def test_other_rules_say_it_if_they_know(
    policy: policies.Policy, probability: float | None
) -> None:
    learner = LinUCB(UNIT, horizon=100, privacy=TARGET, policy=policy)
    for decision in (learner.choose(np.eye(DIM)), *learner.choose_many([np.eye(DIM)] * 2)):
        assert decision.probability == probability
        learner.learn(decision, 0.5)


# What is said


def warned(call: Callable[[], object]) -> list[str]:
    """Texts of `UninformedWarning` during a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if one.category is UninformedWarning]


def play(learner: LinUCB, rows: int) -> Callable[[], None]:
    def go() -> None:
        for _ in range(rows):
            learner.learn(learner.choose(np.eye(DIM)), 0.5)

    return go


def test_a_learner_warns_exactly_once_if_there_will_be_no_release(tmp_path: Path) -> None:
    learner = LinUCB(UNIT, horizon=10, privacy=TARGET)
    first = learner.mechanism.schedule.start
    assert first > 10
    found = warned(play(learner, 9))
    assert len(found) == 1
    assert f"There will be no release: the first would have {first} rows" in found[0]
    assert found[0] == str(learner.diagnosis)
    restored = restarted(learner, tmp_path / "file")
    assert len(warned(play(restored, 1))) == 1  # a new process is told as well
    assert warned(play(LinUCB(UNIT, horizon=10, privacy=TARGET, policy=UCB()), 9)) == found
    long = 2 * learner.mechanism.half_gain_rows
    assert not warned(play(LinUCB(UNIT, horizon=long, privacy=TARGET), first - 1))


def test_a_learner_warns_exactly_once_if_the_horizon_is_too_short_to_learn_much() -> None:
    known = LinUCB(UNIT, horizon=10**6, privacy=TARGET).mechanism
    first, needed = known.schedule.start, known.half_gain_rows
    assert first < needed
    for horizon, warns in ((first, 1), (needed - 1, 1), (needed, 0)):
        learner = LinUCB(UNIT, horizon=horizon, privacy=TARGET)
        found = warned(play(learner, 3))
        assert len(found) == warns
        assert learner.diagnosis.too_short == bool(warns)
        assert ("hardly choose better than chance" in str(learner.diagnosis)) == bool(warns)
    assert (
        f"Within {needed - 1:,} rounds this learner will hardly choose better than chance"
        in str(LinUCB(UNIT, horizon=needed - 1, privacy=TARGET).diagnosis)
    )
    proven = LinUCB(UNIT, horizon=first, privacy=TARGET, policy=UCB())
    assert not warned(play(proven, 3))  # how soon it learns is not foretold


def test_a_learner_warns_exactly_once_if_a_release_cannot_tell_actions_apart() -> None:
    learner = LinUCB(UNIT, horizon=10**7, privacy=Privacy(epsilon=1e-3, delta=1e-6), variant=EARLY)
    assert not warned(play(learner, 3))  # none has been used before the first release
    found = warned(play(learner, 60))
    assert len(found) == 1
    assert learner.release.number > 5
    assert "It cannot tell actions apart" in found[0]
    proven = LinUCB(
        UNIT, horizon=100, privacy=Privacy(epsilon=1e-3, delta=1e-6), variant=EARLY, policy=UCB()
    )
    assert not warned(play(proven, 60))  # it does not play by the posterior


def test_a_first_release_that_says_nothing_is_no_alarm_yet() -> None:
    found = LinUCB(UNIT, horizon=10_000, privacy=LOOSE).diagnosis
    early = replace(found, release=1, rows=found.first_release, distinguishes=False)
    assert not early.in_vain
    assert replace(early, rows=4 * found.first_release).in_vain
    assert replace(early, horizon=2 * found.first_release).in_vain  # it is half of all there is
    assert not replace(early, rows=4 * found.first_release, distinguishes=True).in_vain
    assert not replace(early, rows=4 * found.first_release, distinguishes=None).in_vain
    assert "theta_norm" in str(replace(early, distinguishes=True, known=0.9, prior_share=1 / 64))
    assert "theta_norm" not in str(replace(early, distinguishes=True, known=0.9, prior_share=1 / 8))


def test_the_warning_points_at_the_callers_line() -> None:
    learner = LinUCB(UNIT, horizon=10, privacy=TARGET)
    for call in (
        lambda: learner.choose(np.eye(DIM)),
        lambda: LinUCB(UNIT, horizon=10, privacy=TARGET).choose_many([np.eye(DIM)]),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert [one.filename for one in caught] == [__file__]


def test_the_diagnosis_says_what_can_be_expected() -> None:
    learner = LinUCB(UNIT, horizon=10_000, privacy=LOOSE)
    first = learner.mechanism.schedule.start
    found = learner.diagnosis
    assert (found.release, found.rows, found.first_release) == (0, 0, first)
    assert (found.horizon, found.known, found.prior_share) == (10_000, 0.0, 1.0)
    assert found.distinguishes is False
    assert found.verdict == "cannot have learned yet"
    assert found.evidence is None
    assert str(found) == (
        f"No release yet: the first has {first} rows. Until then choices are no better than chance."
        " To gain half of what the best choices gain over chance takes about "
        f"{learner.mechanism.half_gain_rows} rows."
    )
    known = informed(rows=2_000)
    found = known.diagnosis
    assert found.distinguishes
    assert found.rows == known.release.rows
    assert found.known == known.posterior.known > 0.5
    assert found.prior_share == known.posterior.prior / known.posterior.stated
    assert f"Release {found.release:,} holds {found.rows:,} rows. It says much" in str(found)
    assert f"{100 * found.known:.0f}% of the prior variance is gone" in str(found)
    assert "It says little" in str(replace(found, known=0.2))
    assert "There will be no release" in str(replace(found, horizon=found.first_release - 1))
    assert "How much it says is in its confidence set" in str(
        replace(found, known=None, prior_share=None, distinguishes=None)
    )


@pytest.mark.parametrize("uniform", [0.0, 0.25])
@pytest.mark.parametrize("rows", [0, 3_000])
def test_many_sets_at_once_have_the_probabilities_of_one_at_a_time(
    uniform: float, rows: int
) -> None:
    rng = np.random.default_rng(4)
    problem = Problem(dim=6, action_norm=1, reward_bound=1, theta_norm=1)
    bandit = LinUCB(
        problem, horizon=None, privacy=Privacy(epsilon=1, delta=1e-6), noise_source=seeded(1)
    )
    if rows:
        bandit.observe(unit_rows(rng, rows, 6), rng.choice([-1.0, 1.0], rows))
    sets = unit_rows(rng, 200 * 5, 6).reshape(200, 5, 6)
    policy = policies.PosteriorUCB(uniform=uniform)
    found = policy.probabilities(bandit.release, sets)
    assert found.shape == (200, 5)
    for one, expected in zip(sets, found, strict=True):
        np.testing.assert_array_equal(policy.probabilities(bandit.release, one), expected)
    assert (np.ptp(found) > 0.5) == bool(rows)


@each_rule
def test_many_sets_at_once_get_what_their_coins_stand_for(
    rule: PosteriorUCB, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = unit_rows(np.random.default_rng(5), 200 * ACTIONS, DIM).reshape(200, ACTIONS, DIM)
    drawn = np.random.default_rng(6).bytes(8 * 200)
    monkeypatch.setattr(policies.os, "urandom", lambda count: drawn[:count])
    found = rule.choose_each(release, sets)
    coins = (np.frombuffer(drawn, np.uint64) >> np.uint64(11)) / 2.0**53
    chances = np.empty(ACTIONS)
    for choice, actions, coin in zip(found, sets, coins.tolist(), strict=True):
        index = release.posterior.drawn(actions, rule.numbers(release.mechanism), coin, chances)
        assert choice == Choice(index, chances[index])
    assert len({choice.index for choice in found}) == ACTIONS


def test_choose_many_draws_with_the_probabilities_that_it_says() -> None:
    learner = informed(rows=40)
    actions = some_actions()
    wanted = learner.policy.probabilities(learner.release, actions)
    found = learner.choose_many([actions] * 3_000)
    counts = np.bincount([one.index for one in found], minlength=ACTIONS)
    assert all(one.probability == wanted[one.index] for one in found)
    assert not counts[wanted == 0.0].any()
    some = wanted > 0.0
    if some.sum() > 1:  # the draws have no seed; a false alarm has a probability of 1e-6
        assert stats.chisquare(counts[some], 3_000 * wanted[some]).pvalue > 1e-6
