"""Multi-armed learners: their contract, their guarantee, their noise, and the simulator's play."""

import copy
import math
import os
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from discreet import errors
from discreet.baselines import (
    DPIMED,
    DPKLUCB,
    DPSE,
    DPUCB,
    IMED,
    KLUCB,
    RULES,
    UCB1,
    AdaPKLUCB,
    AdaPUCB,
    AnytimeLazyUCB,
    Arms,
    Elimination,
    LazyDPTS,
    UpperConfidence,
    simulate,
)
from discreet.baselines.arms._learner import ArmLearner
from discreet.baselines.arms._ucb import laplace_sum_width
from discreet.kernels import _arms as kernel_arms
from discreet.kernels import _random as random
from discreet.kernels._binomial import binomial
from helpers import seeded

FLAKE = 1e-6


PRIVATE = [name for name, row in RULES.items() if row.private]


def maker(name: str) -> Callable:
    """Make this learner; epsilon is left out where there is none."""
    row = RULES[name]

    def make(*, epsilon: object, **given: object) -> ArmLearner:
        return row.learner(**given, **({"epsilon": epsilon} if row.private else {}))

    return make


@pytest.fixture(params=list(RULES))
def make(request: pytest.FixtureRequest) -> Callable:
    return maker(request.param)


@pytest.fixture(params=PRIVATE)
def make_private(request: pytest.FixtureRequest) -> Callable:
    return maker(request.param)


def test_the_table_has_every_learner_and_says_what_it_protects() -> None:
    classes = {type(maker(name)(n_arms=2, horizon=9, epsilon=1.0)) for name in RULES}
    assert classes == {
        UCB1,
        KLUCB,
        IMED,
        DPUCB,
        DPSE,
        AnytimeLazyUCB,
        AdaPUCB,
        AdaPKLUCB,
        LazyDPTS,
        DPKLUCB,
        DPIMED,
    }
    for name, row in RULES.items():
        learner = maker(name)(n_arms=2, horizon=9, epsilon=1.0)
        assert row.name == name
        assert row.private == learner.guarantee.private
        if row.private:
            assert (row.protects, row.trust, row.kind) == ("rewards", "central", "pure")
            assert (learner.guarantee.record, learner.guarantee.delta) == ("reward", 0.0)
        else:
            assert (row.protects, row.trust, row.kind) == ("nothing", "none", "none")


@pytest.mark.parametrize("name", list(RULES))
def test_an_epsilon_that_is_missing_or_not_used_is_refused(name: str) -> None:
    row = RULES[name]
    for make in (row.rule, row.learner):
        with pytest.raises(errors.ParameterError) as caught:
            make(n_arms=2, horizon=10, epsilon=None if row.private else 1.0)
        assert caught.value.parameter == "epsilon"


def test_released_means_come_with_the_first_release_and_cannot_be_written_through(
    make: Callable,
) -> None:
    learner = make(n_arms=2, horizon=4000, epsilon=1.0)
    assert np.isnan(learner.released_means).all()
    while np.isnan(learner.released_means).any():
        learner.learn(learner.choose(), 0.25)
    found = learner.released_means
    learner.released_means[:] = 7.0
    np.testing.assert_array_equal(learner.released_means, found)


def test_with_hardly_any_noise_released_means_are_means(make: Callable) -> None:
    learner = make(n_arms=2, horizon=4000, epsilon=1e9)
    while np.isnan(learner.released_means).any():
        learner.learn(learner.choose(), 0.25)
    np.testing.assert_allclose(learner.released_means, 0.25, atol=1e-4)


def test_a_learner_names_arms_and_learns_them_to_the_horizon(make: Callable) -> None:
    learner = make(n_arms=3, horizon=50, epsilon=1.0)
    for turn in range(50):
        assert learner.rounds == turn
        arm = learner.choose()
        assert 0 <= arm < 3
        assert learner.choose() == arm
        learner.learn(arm, 0.5)
    with pytest.raises(errors.HorizonReachedError, match="horizon"):
        learner.choose()


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"n_arms": 1}, "n_arms"),
        ({"n_arms": 2.5}, "n_arms"),
        ({"horizon": 2}, "horizon"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_bad_sizes_are_refused_by_name(make: Callable, given: dict, parameter: str) -> None:
    with pytest.raises(errors.ParameterError, match=parameter) as caught:
        make(**{"n_arms": 3, "horizon": 100, "epsilon": 1.0, **given})
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, None, "1", True])
def test_bad_targets_are_refused_by_name(make_private: Callable, epsilon: object) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        make_private(n_arms=3, horizon=100, epsilon=epsilon)
    assert caught.value.parameter == "epsilon"


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, math.nan])
def test_a_bad_failure_probability_is_refused_by_name(beta: float) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        DPSE(n_arms=3, horizon=100, epsilon=1.0, failure_prob=beta)
    assert caught.value.parameter == "failure_prob"


def test_joint_batches_are_a_yes_or_no() -> None:
    with pytest.raises(errors.ParameterError, match="joint"):
        Elimination(n_arms=3, horizon=100, joint="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reward", "error"),
    [
        (1.5, errors.OutOfBoundsError),
        (-1.0000001, errors.OutOfBoundsError),
        (math.nan, errors.NotFiniteError),
        (math.inf, errors.NotFiniteError),
        ("good", errors.NotFiniteError),
        (None, errors.NotFiniteError),
    ],
)
def test_a_bad_reward_is_refused_unsaid_and_changes_nothing(
    make: Callable, reward: object, error: type[Exception]
) -> None:
    learner = make(n_arms=2, horizon=10, epsilon=1.0)
    arm = learner.choose()
    with pytest.raises(error) as caught:
        learner.learn(arm, reward)
    assert "1.5" not in str(caught.value)
    assert learner.rounds == 0
    assert learner.choose() == arm


def test_only_the_arm_that_was_named_can_be_learned(make: Callable) -> None:
    learner = make(n_arms=2, horizon=10, epsilon=1.0)
    with pytest.raises(errors.UnknownDecisionError, match="arm"):
        learner.learn(1 - learner.choose(), 0.5)
    assert learner.rounds == 0


def test_copies_and_forks_are_refused(make: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make(n_arms=2, horizon=10, epsilon=1.0)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied"):
            duplicate(learner)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(errors.WrongProcessError):
        learner.choose()


def test_private_learners_declare_pure_differential_privacy(make_private: Callable) -> None:
    guarantee = make_private(n_arms=2, horizon=10, epsilon=0.3).guarantee
    assert (guarantee.epsilon, guarantee.delta) == (0.3, 0.0)
    assert "(0.3, 0)-" in str(guarantee)


def test_a_seeded_source_voids_the_guarantee(make_private: Callable) -> None:
    learner = make_private(n_arms=2, horizon=10, epsilon=0.3, noise_source=seeded(1))
    assert not learner.guarantee.private
    assert "seed" in str(learner.guarantee)


def test_ucb1_and_noiseless_elimination_promise_nothing() -> None:
    assert not UCB1(n_arms=2, horizon=10).guarantee.private
    assert not Elimination(n_arms=2, horizon=10).guarantee.private


@pytest.mark.parametrize("epsilon", [None, 1e12, 1.0, 0.05])
def test_upper_confidence_learner_and_simulator_pull_the_same_arms(
    epsilon: float | None,
) -> None:
    horizon, arms = 20_000, Arms((0.1, -0.2, 0.3, 0.0))
    checkpoints = [1, 3, 4, 5, 100, 777, 5000, 19_999, 20_000]
    rule = UpperConfidence(n_arms=4, horizon=horizon, epsilon=epsilon)
    expected = simulate(rule, arms, seeds=[7], checkpoints=checkpoints).pulls[0]
    rewards, noise = np.random.SeedSequence(7).spawn(2)
    state = random.seed_state(rewards)
    learner: UCB1 | DPUCB
    if epsilon is None:
        learner = UCB1(n_arms=4, horizon=horizon)
    else:
        source = type(seeded(0))(noise)
        learner = DPUCB(n_arms=4, horizon=horizon, epsilon=epsilon, noise_source=source)
    seen = []
    for turn in range(1, horizon + 1):
        arm = learner.choose()
        learner.learn(arm, kernel_arms.reward(state, arms.means[arm], 0.0, 1.0))
        if turn in checkpoints:
            seen.append(learner.pulls.tolist())
    assert seen == expected.tolist()


@pytest.mark.parametrize("joint", [False, True])
def test_elimination_learner_and_simulator_pull_the_same_arms(*, joint: bool) -> None:
    horizon, arms = 30_000, Arms((0.1, -0.5, 0.3, -0.2, 0.25))
    checkpoints = [1, 2, 7, 500, 3333, 12_345, 29_999, 30_000]
    rule = Elimination(n_arms=5, horizon=horizon, epsilon=1.0, failure_prob=0.1, joint=joint)
    expected = simulate(rule, arms, seeds=[3], checkpoints=checkpoints).pulls[0]
    rewards, noise = np.random.SeedSequence(3).spawn(2)
    state = random.seed_state(rewards)
    learner = DPSE(
        n_arms=5,
        horizon=horizon,
        epsilon=1.0,
        failure_prob=0.1,
        joint=joint,
        noise_source=type(seeded(0))(noise),
    )
    # The simulator draws each batch's number of wins at once; deal the same wins one by one.
    wins: dict[int, int] = {}
    pulls, seen, remaining = np.zeros(5, int), [], ()
    for turn in range(1, horizon + 1):
        if learner._done == 0 and learner._left > 1:
            remaining = learner.remaining
            for arm in remaining:
                wins[arm] = binomial(state, learner._size, 0.5 * (1 + arms.means[arm]))
        arm = learner.choose()
        learner.learn(arm, 1.0 if wins[arm] > 0 else -1.0)
        wins[arm] -= 1
        pulls[arm] += 1
        if turn in checkpoints:
            seen.append(pulls.tolist())
    assert len(learner.remaining) < 5
    assert seen == expected.tolist()


def test_with_hardly_any_noise_dpucb_plays_as_ucb1() -> None:
    # Rewards of plus or minus one make ties, which the faintest noise breaks; these make none.
    plain = UCB1(n_arms=3, horizon=5000)
    quiet = DPUCB(n_arms=3, horizon=5000, epsilon=1e12)
    rng = np.random.default_rng(2)
    for _ in range(5000):
        arm = plain.choose()
        assert quiet.choose() == arm
        reward = rng.uniform(-1.0, (1.0, 0.7, 0.4)[arm])
        plain.learn(arm, reward)
        quiet.learn(arm, reward)


def test_ucb1_is_the_textbook_rule() -> None:
    rng = np.random.default_rng(0)
    learner = UCB1(n_arms=3, horizon=2000)
    sums, counts = np.zeros(3), np.zeros(3)
    for turn in range(2000):
        if turn < 3:
            expected = turn
        else:  # on [0, 1]: mean + sqrt(2 ln t / N)
            means = (sums / counts + 1) / 2
            expected = int(np.argmax(means + np.sqrt(2 * np.log(turn) / counts)))
        arm = learner.choose()
        assert arm == expected
        reward = rng.uniform(-1, 1)
        learner.learn(arm, reward)
        sums[arm] += reward
        counts[arm] += 1


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 1.5])
def test_dpucb_adds_laplace_noise_of_twice_the_levels_over_epsilon(factor: float) -> None:
    # After one pull of each of k arms: noisy sum = reward + Laplace. 4,000 numbers; a KS test
    # with flake probability 1e-6 tells a scale that is off by half from the right one.
    learner = DPUCB(n_arms=4000, horizon=4000, epsilon=0.5, noise_source=seeded(5))
    for _ in range(4000):
        learner.learn(learner.choose(), 1.0)
    noise = learner._board[:, 0] - learner._widths[1] - 1.0
    scale = factor * 2 * 12 / 0.5  # 4000 has 12 binary digits
    fits = stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > FLAKE
    assert fits == (factor == 1.0)


@pytest.mark.parametrize(("horizon", "levels"), [(2, 2), (1023, 10), (1024, 11), (10**7, 24)])
def test_the_budget_is_shared_by_all_levels_that_can_be_finished(horizon: int, levels: int) -> None:
    rule = UpperConfidence(n_arms=2, horizon=horizon, epsilon=0.5)
    assert rule.levels == levels
    assert rule.noise_scale == 2 * levels / 0.5
    assert f"at most {levels} " in rule.guarantee.argument


def test_widths_fail_once_in_n_squared() -> None:
    rule = UpperConfidence(n_arms=2, horizon=1000, epsilon=0.5)
    for terms in (1, 5, 10):
        width = rule.noise_scale * laplace_sum_width(terms, math.log(1e6))
        assert math.isclose(rule.widths[terms], width)


def test_noise_from_the_system_has_the_same_law() -> None:
    learner = DPUCB(n_arms=4000, horizon=4000, epsilon=0.5)
    for _ in range(4000):
        learner.learn(learner.choose(), -1.0)
    noise = learner._board[:, 0] - learner._widths[1] + 1.0
    assert stats.kstest(noise, stats.laplace(scale=48).cdf).pvalue > FLAKE


@pytest.mark.parametrize("terms", [1, 2, 5, 24])
def test_widths_bound_sums_of_laplace_numbers(terms: int) -> None:
    # 2e6 sums; at probability 1e-3 about 2000 would be allowed and Chernoff's bound is not far
    # off, so the frequency lies between 1e-5 and 1e-3 (5 deviations are 1.6e-4 there).
    rng = np.random.default_rng(terms)
    width = laplace_sum_width(terms, math.log(1000))
    beyond = np.mean(
        [(rng.laplace(size=(200_000, terms)).sum(axis=1) > width).mean() for _ in range(10)]
    )
    assert 1e-5 < beyond < 1e-3


def test_a_width_for_one_number_is_near_its_exact_tail() -> None:
    exact = math.log(1e12 / 2)
    assert exact < laplace_sum_width(1, math.log(1e12)) < 1.2 * exact


def test_dpse_finds_the_best_arm_and_stays_with_it() -> None:
    # Its own failure probability here is 1e-9.
    rng = np.random.default_rng(1)
    learner = DPSE(n_arms=3, horizon=40_000, epsilon=2.0, failure_prob=1e-9)
    for _ in range(40_000):
        arm = learner.choose()
        learner.learn(arm, 2.0 * (rng.uniform() < (0.2, 0.9, 0.1)[arm]) - 1.0)
    assert learner.remaining == (1,)
