"""Batched multi-armed learners: their noise, the simulator's play, and how their regret grows."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from discreet import errors
from discreet.baselines import (
    DPIMED,
    DPKLUCB,
    IMED,
    KLUCB,
    RULES,
    AdaPUCB,
    Arms,
    simulate,
)
from discreet.baselines.arms._divergence import DivergenceIndex
from discreet.baselines.arms._phases import PhasedLearner, PhasedRule
from discreet.kernels import _divergence as divergence
from discreet.kernels import _phases as phases
from discreet.kernels import _random as random
from discreet.kernels._binomial import binomial
from helpers import seeded

FLAKE = 1e-6
PRIVATE = ["adap-ucb", "adap-kl-ucb", "anytime-lazy-ucb", "lazy-dp-ts", "dp-kl-ucb", "dp-imed"]
ALL = ["kl-ucb", "imed", *PRIVATE]


def target(name: str, epsilon: float = 1.0) -> dict[str, float]:
    return {"epsilon": epsilon} if RULES[name].private else {}


@pytest.mark.parametrize("name", ALL)
def test_learner_and_simulator_pull_the_same_arms(name: str) -> None:
    horizon, arms = 6000, Arms((0.1, -0.5, 0.3, -0.2, 0.25))
    checkpoints = [1, 2, 5, 7, 500, 3333, 5999, 6000]
    row = RULES[name]
    rule = row.rule(n_arms=5, horizon=horizon, **target(name))
    expected = simulate(rule, arms, seeds=[3], checkpoints=checkpoints).pulls[0]
    rewards, noise = np.random.SeedSequence(3).spawn(2)
    state = random.seed_state(rewards)
    source = {"noise_source": type(seeded(0))(noise)} if row.private else {}
    learner = row.learner(n_arms=5, horizon=horizon, **target(name), **source)
    assert isinstance(learner, PhasedLearner)
    # The simulator draws each batch's number of wins at once; deal the same wins one by one.
    wins, seen = [0] * 5, []
    for turn in range(1, horizon + 1):
        arm = learner.choose()
        if learner._board[arm, phases.HELD] == 0:
            size = int(learner._board[arm, phases.SIZE])
            wins[arm] = binomial(state, size, 0.5 * (1 + arms.means[arm]))
        learner.learn(arm, 1.0 if wins[arm] > 0 else -1.0)
        wins[arm] -= 1
        if turn in checkpoints:
            seen.append(learner.pulls.tolist())
    assert seen == expected.tolist()
    assert min(seen[-1]) > 0


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 1.5])
@pytest.mark.parametrize("name", PRIVATE)
def test_a_batch_has_laplace_noise_of_two_over_epsilon(name: str, factor: float) -> None:
    # The first sum that each of 4,000 arms releases, less its rewards. A KS test with flake
    # probability 1e-6 tells a scale that is off by half from the right one.
    learner = RULES[name].learner(n_arms=4000, horizon=40_000, epsilon=0.5, noise_source=seeded(5))
    assert isinstance(learner, PhasedLearner)
    while np.isnan(learner.released_means[-1]):
        learner.learn(learner.choose(), 1.0)
    weights = learner._board[:, phases.WEIGHT]
    noise = learner._board[:, phases.RELEASED] - weights
    scale = factor * 2 / 0.5
    fits = stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > FLAKE
    assert fits == (factor == 1.0)


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 1.5])
def test_a_sum_that_is_not_forgotten_has_one_laplace_number_for_each_batch(factor: float) -> None:
    # The variance of m Laplace numbers of scale b is 2 m b^2. 4,000 sums of 4 numbers: the
    # deviation of the variance is 2.6% (the kurtosis is 3 + 3/4), 5 of them 13%; two thirds of the
    # scale would make it 0.44 of what it is.
    board_rule = DivergenceIndex(n_arms=2, horizon=100, epsilon=0.5, first_batch=1).compiled
    source, sums = seeded(6), np.empty(4000)
    for trial in range(sums.size):
        board = phases.empty_board(2, 1)
        batches = 0
        while batches < 4:
            batches += phases.learn(board, board_rule, 0, 0.0, source.normals(4))
        sums[trial] = board[0, phases.RELEASED]
    expected = 2 * 4 * (factor * 2 / 0.5) ** 2
    assert (abs(sums.var() / expected - 1) < 0.14) == (factor == 1.0)


@pytest.mark.parametrize("name", PRIVATE)
def test_noise_from_the_system_is_drawn_anew_for_each_learner(name: str) -> None:
    def first_mean() -> float:
        learner = RULES[name].learner(n_arms=2, horizon=1000, epsilon=1.0)
        while np.isnan(learner.released_means[0]):
            learner.learn(learner.choose(), 0.0)
        return float(learner.released_means[0])

    assert len({first_mean() for _ in range(5)}) == 5


@pytest.mark.parametrize("minimum", [False, True])
def test_without_noise_the_rules_are_the_textbooks(*, minimum: bool) -> None:
    rng = np.random.default_rng(4)
    learner = (IMED if minimum else KLUCB)(n_arms=3, horizon=1500)
    sums, counts = np.zeros(3), np.zeros(3)
    for turn in range(1, 1501):
        arm = learner.choose()
        if turn <= 3:
            assert arm == turn - 1
        else:
            means = (sums / counts + 1) / 2
            if minimum:
                away = [divergence.kl(mean, means.max()) for mean in means]
                indices = -(counts * away + np.log(counts))
            else:
                levels = math.log(turn) / counts
                pairs = zip(means, levels, strict=True)
                indices = np.array([divergence.kl_upper(*one) for one in pairs])
            assert indices[arm] >= indices.max() - 1e-12
        reward = rng.uniform(-1, (0.9, 0.6, 0.2)[arm])
        learner.learn(arm, reward)
        sums[arm] += reward
        counts[arm] += 1


@pytest.mark.parametrize("alpha", [3.0, 0.0, -1.0, math.nan, math.inf])
def test_a_width_for_which_nothing_is_proven_is_refused_by_name(alpha: float) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        AdaPUCB(n_arms=2, horizon=10, epsilon=1.0, alpha=alpha)
    assert caught.value.parameter == "alpha"


@pytest.mark.parametrize("make", [DPKLUCB, DPIMED])
@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"growth": 1.0}, "growth"),
        ({"growth": 0.5}, "growth"),
        ({"growth": math.inf}, "growth"),
        ({"first_batch": 0}, "first_batch"),
        ({"first_batch": 101}, "first_batch"),
        ({"first_batch": 2.5}, "first_batch"),
    ],
)
def test_bad_batches_are_refused_by_name(make: type, given: dict, parameter: str) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        make(n_arms=2, horizon=100, epsilon=1.0, **given)
    assert caught.value.parameter == parameter


def test_a_first_batch_grows_with_the_noise_and_leaves_most_of_the_horizon() -> None:
    def first(horizon: int, epsilon: float) -> int | None:
        return DivergenceIndex(n_arms=5, horizon=horizon, epsilon=epsilon).first_batch

    assert (first(10**6, 1.0), first(10**6, 0.1), first(10**6, 1e-6)) == (32, 320, 20_000)
    assert (first(100, 1.0), first(5, 1.0)) == (2, 1)


class Failing:
    """A source that cannot draw."""

    secret = False

    def normals(self, count: int) -> np.ndarray:
        raise OSError(count)

    chi_squares = words = normals


def test_a_source_that_fails_leaves_the_learner_as_it_was() -> None:
    learner = AdaPUCB(n_arms=2, horizon=10, epsilon=1.0, noise_source=Failing())
    before = learner._board.copy()
    with pytest.raises(OSError, match="4"):
        learner.learn(learner.choose(), 1.0)
    np.testing.assert_array_equal(learner._board, before)
    assert (learner.rounds, learner.choose()) == (0, 0)


def test_a_thompson_draw_is_made_once_for_each_round() -> None:
    learner = RULES["lazy-dp-ts"].learner(n_arms=2, horizon=400, epsilon=1.0)
    for _ in range(200):
        arms = {learner.choose() for _ in range(5)}
        assert len(arms) == 1
        learner.learn(arms.pop(), 0.0)


@cache
def regrets(name: str, epsilon: float) -> np.ndarray:
    """Mean regret after 2,000, 20,000 and 200,000 rounds, three gaps, 12 seeds."""
    arms = Arms.with_gaps([0.3, 0.5, 0.7], best_mean=0.4)
    rule = RULES[name].rule(n_arms=4, horizon=200_000, **target(name, epsilon))
    assert isinstance(rule, PhasedRule)
    found = simulate(rule, arms, seeds=range(12), checkpoints=[2000, 20_000, 200_000])
    return found.regrets.mean(axis=0)


@pytest.mark.parametrize("name", ALL)
def test_regret_grows_with_the_logarithm_of_the_rounds(name: str) -> None:
    # Logarithmic growth adds as much between 20,000 and 200,000 rounds as between 2,000 and 20,000,
    # doubling batches up to twice that; linear growth would add ten times as much.
    first, second, third = regrets(name, 1.0)
    assert third - second < 3 * max(second - first, 0.3 * first)
    assert third < 0.05 * 200_000 * 0.5


@pytest.mark.parametrize("name", PRIVATE)
def test_regret_falls_with_epsilon(name: str) -> None:
    # In 1/epsilon where noise dominates: between 0.1 and 1 by a factor of two or more.
    assert regrets(name, 0.1)[-1] > 2 * regrets(name, 1.0)[-1]
    assert regrets(name, 100.0)[-1] < regrets(name, 1.0)[-1] * 1.05
