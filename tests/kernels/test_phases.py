"""Batches, releases and indices: what one reward can move, and who is chosen."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from discreet.baselines import RULES
from discreet.baselines.arms._phases import PhasedRule
from discreet.kernels import _divergence as divergence
from discreet.kernels import _phases as phases
from discreet.kernels._phases import Rule

EPSILON = 0.5
NAMES = ["adap-ucb", "adap-kl-ucb", "anytime-lazy-ucb", "lazy-dp-ts", "dp-kl-ucb", "dp-imed"]


def phased(name: str, epsilon: float = EPSILON, horizon: int = 400) -> PhasedRule:
    rule = RULES[name].rule(n_arms=2, horizon=horizon, epsilon=epsilon)
    assert isinstance(rule, PhasedRule)
    return rule


def test_every_batched_private_rule_is_tested_here() -> None:
    rules = {name: row.rule(n_arms=2, horizon=9, epsilon=1.0) for name, row in private()}
    assert [name for name, rule in rules.items() if isinstance(rule, PhasedRule)] == sorted(
        NAMES, key=list(RULES).index
    )


def private() -> list:
    return [(name, row) for name, row in RULES.items() if row.private]


def sizes(rule: Rule, batches: int) -> list[int]:
    """The sizes of an arm's batches, by playing them."""
    board, found = phases.empty_board(2, rule.first), []
    for _ in range(batches):
        size = int(board[0, phases.SIZE])
        found.append(size)
        for left in range(size, 0, -1):
            assert phases.learn(board, rule, 0, 0.0, np.zeros(4)) == (left == 1)
    return found


def test_batch_sizes_are_those_of_the_papers() -> None:
    assert sizes(phased("adap-ucb").compiled, 6) == [1, 1, 2, 4, 8, 16]
    assert sizes(phased("lazy-dp-ts").compiled, 6) == [1, 2, 4, 8, 16, 32]
    grown = sizes(phased("dp-imed").compiled, 6)
    totals = list(itertools.accumulate(grown))
    assert grown[0] == 20  # of 64 by epsilon and 20 by the horizon
    assert totals == [20, 30, 45, 68, 102, 153]
    assert sizes(RULES["imed"].rule(n_arms=2, horizon=400).compiled, 3) == [1, 1, 1]


def releases(rule: Rule, arms: list[int], rewards: list[float]) -> list[float]:
    """The sums that get noise, one after the other, without it: a fixed sequence of arms."""
    board, found = phases.empty_board(2, rule.first), []
    for arm, reward in zip(arms, rewards, strict=True):
        before = 0.0 if rule.forgetting else board[arm, phases.RELEASED]
        if phases.learn(board, rule, arm, reward, np.zeros(4)):
            found.append(board[arm, phases.RELEASED] - before)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_replacing_a_reward_moves_all_released_sums_together_by_what_the_noise_hides(
    name: str,
) -> None:
    # Brute force: every place, the two rewards that are farthest apart. Arms are the same in both
    # worlds, as they are given the same releases so far. Laplace noise of scale b on sums that are
    # D apart in all makes densities differ by e^(D/b); D is measured and b is what a rule adds.
    rule = phased(name, horizon=60)
    rng = np.random.default_rng(1)
    arms = rng.integers(0, 2, 60).tolist()
    base = rng.uniform(-1, 1, 60).tolist()
    widest = 0.0
    for place in range(60):
        low, high = ([*base[:place], end, *base[place + 1 :]] for end in (-1.0, 1.0))
        pair = releases(rule.compiled, arms, low), releases(rule.compiled, arms, high)
        assert len(pair[0]) == len(pair[1]) > 4
        apart = np.abs(np.subtract(*pair))
        assert np.count_nonzero(apart > 1e-9) <= 1
        widest = max(widest, apart.sum())
    assert math.isclose(widest / rule.compiled.noise_scale, EPSILON)


def board_of(*rows: tuple[float, float]) -> np.ndarray:
    """Arms with these released means of rewards in [-1, 1], of so many rewards each."""
    board = phases.empty_board(len(rows), 1)
    for arm, (mean, weight) in enumerate(rows):
        board[arm, phases.RELEASED], board[arm, phases.WEIGHT] = mean * weight, weight
    return board


def written_out(name: str, x: float, n: float, t: int, best: float) -> float:
    """The indices as the docstrings have them, on the scale of [0, 1]."""
    log = math.log(t)
    if name == "adap-ucb":
        return x + math.sqrt(3.1 * math.log(2 * t) / (2 * n)) + 3.1 * log / (EPSILON * n)
    if name == "anytime-lazy-ucb":
        return x + math.sqrt(3 * log / (2 * n)) + 3 * log / (EPSILON * n)
    if name == "adap-kl-ucb":
        x, level = min(max(x + 3.1 * log / (EPSILON * n), 0.0), 1.0), 3.1 * log / n
        last = 1 - 1e-15
        if x >= last or divergence.kl(x, last) <= level:
            return 1.0
        return float(brentq(lambda y: divergence.kl(x, y) - level, x, last))
    x, best = min(max(x, 0.0), 1.0), min(max(best, 0.0), 1.0)
    if name == "dp-imed":
        return -(n * divergence.private_divergence(x, best, EPSILON) + math.log(n))

    def above(y: float) -> float:
        return divergence.private_divergence(x, y, EPSILON) - log / n

    return 1.0 if above(1.0) <= 0 else float(brentq(above, x, 1.0))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "lazy-dp-ts"])
def test_the_arm_with_the_best_index_is_chosen(name: str) -> None:
    rule = phased(name).compiled
    rng = np.random.default_rng(3)
    chosen = set()
    for _ in range(300):
        rows = [(rng.uniform(-1.2, 1.2), float(rng.integers(20, 4000))) for _ in range(4)]
        t = int(rng.integers(100, 10**6))
        xs = [(1 + mean) / 2 for mean, _ in rows]
        indices = [written_out(name, x, n, t, max(xs)) for x, (_, n) in zip(xs, rows, strict=True)]
        arm = phases.choose(board_of(*rows), rule, t, np.empty(0))
        assert indices[arm] >= max(indices) - 1e-9
        chosen.add(arm)
    assert chosen == {0, 1, 2, 3}


def test_thompson_draws_have_the_shifted_posteriors_degrees_of_freedom() -> None:
    rule, t = phased("lazy-dp-ts").compiled, 1000
    dofs = np.empty(6)
    phases.fill_dofs(board_of((0.5, 200.0), (-3.0, 4000.0), (0.0, 4.0)), rule, t, dofs)
    shift = 3 * math.log(t) / (EPSILON * 200)
    first = 0.75 + shift
    expected = [2 * (200 * first + 1), 2 * (200 * (1 - first) + 1), 2, 8002, 10, 2]
    np.testing.assert_allclose(dofs, expected)


def test_thompson_takes_the_largest_share_and_arms_without_a_release_come_first() -> None:
    rule = phased("lazy-dp-ts").compiled
    board = board_of((0.0, 4.0), (0.0, 4.0))
    assert phases.choose(board, rule, 9, np.array([1.0, 1.0, 3.0, 2.0])) == 1
    assert phases.choose(board, rule, 9, np.array([2.0, 1.0, 3.0, 2.0])) == 0
    board[1, phases.WEIGHT] = 0.0
    assert phases.choose(board, rule, 9, np.array([2.0, 1.0, 3.0, 2.0])) == 1
