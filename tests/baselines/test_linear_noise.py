"""Linear baselines: how much noise there is, derived again in another way, and what it hides."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from discreet import Privacy, Problem
from discreet.baselines import (
    LINEAR_BASELINES,
    AdaCOFUL,
    BatchedThompson,
    CoreSetElimination,
    LinearLearner,
    LocalLinUCB,
    RareSwitching,
    ShuffleLinUCB,
    linear_rule,
)
from discreet.baselines.linear._core_set import laplace_width
from discreet.baselines.linear._design import g_optimal
from discreet.baselines.linear._local import amplified
from discreet.baselines.linear._ridge import MOST_ROWS, step
from discreet.errors import ParameterError
from discreet.kernels import _ridge as kernels
from discreet.mechanism._tails import largest_eigenvalue

PROBLEM = Problem(dim=2, action_norm=0.5, reward_bound=2, theta_norm=1)
FLAKE = 1e-6


def delta_of(mu: float, epsilon: float) -> float:
    """The textbook formula for Gaussian noise."""
    normal = stats.norm.cdf
    return normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)


def mu_of(privacy: Privacy) -> float:
    return brentq(lambda mu: delta_of(mu, privacy.epsilon) - privacy.delta, 1e-3, 50.0)


def largest_distance(gram_std: float, moment_std: float) -> float:
    """Over pairs of rows on a fine grid of angles, lengths and rewards: the whitened distance."""
    angles = np.linspace(0, math.pi, 181)
    lengths, rewards = (0.0, 0.25, 0.5), (-2.0, 0.0, 2.0)
    rows = [
        (length * np.array([math.cos(a), math.sin(a)]), reward)
        for a in angles
        for length in lengths
        for reward in rewards
    ]
    first = np.array([1.0, 0.0]) * 0.5, 2.0
    found = 0.0
    for x, y in rows:
        gram = np.outer(*2 * (first[0],)) - np.outer(x, x)
        moment = first[0] * first[1] - x * y
        square = (gram**2).sum() / (2 * gram_std**2) + (moment**2).sum() / moment_std**2
        found = max(found, math.sqrt(square))
    return found


TARGETS = [Privacy(epsilon=1, delta=0.1), Privacy(epsilon=0.3, delta=1e-6)]


@pytest.mark.parametrize("target", TARGETS)
def test_one_row_costs_what_the_target_allows_and_hardly_less(target: Privacy) -> None:
    given = {"problem": PROBLEM, "horizon": 1000, "privacy": target}
    for rule, releases in (
        (LocalLinUCB(**given), 1),
        (BatchedThompson(**given), 1),
        (RareSwitching(**given), 1 + math.ceil(math.log2(1000))),
    ):
        spent = math.sqrt(releases) * largest_distance(*rule.noise_stds)
        assert spent <= mu_of(target) * (1 + 1e-9)
        assert spent > 0.999 * mu_of(target)


def test_the_chances_that_a_confidence_set_fails_add_up_to_no_more_than_alpha() -> None:
    """Of rewards, of the moment's noise, and of either end of the spectrum of the Gram matrix's.

    The bound on rewards holds at all times for one regularizer; where it grows with every row,
    each renewal has another.
    """
    given = {"problem": PROBLEM, "horizon": 1000, "privacy": TARGETS[0], "failure_prob": 0.02}
    for rule, regularizers in (
        (LocalLinUCB(**given), 1000),
        (RareSwitching(**given), 1),
        (ShuffleLinUCB(**given, batch=300), 4),
    ):
        spec = rule.compiled
        rewards = regularizers * math.exp(-spec.log_offset / 2)
        log_tail = (spec.length - math.sqrt(PROBLEM.dim)) ** 2 / 2
        assert spec.eigenvalue == pytest.approx(float(largest_eigenvalue(2, np.array(log_tail))))
        noise = 3 * 1000 * math.exp(-log_tail)  # at each of the renewals
        assert 0.9 * 0.02 < rewards + noise <= 0.02 * (1 + 1e-9)


@pytest.mark.parametrize("dim", [2, 5, 20])
@pytest.mark.parametrize("target", TARGETS)
def test_what_nothing_is_known_of_is_drawn_about_as_widely_as_the_parameter_is(
    target: Privacy, dim: int
) -> None:
    """A prior that is surer of zero never tries the best action, now and then.

    A draw is linear in its 2 d standard normals, so its deviation is the length of what it makes of
    each of them.
    """
    problem = Problem(dim=dim, action_norm=1, reward_bound=1, theta_norm=1)
    steps = BatchedThompson(problem=problem, horizon=10_000, privacy=target).steps()
    for _ in range(dim * 2**7):  # eight batches of rows and noise of zero
        if steps.stock():
            steps.refill(np.zeros(steps.stock()))
        steps.learn(np.zeros(dim), 0.0)
    assert steps.renewals == 8
    first, drawn = np.eye(dim)[:, :1].copy(), np.empty(2 * dim)
    for at, normals in enumerate(np.eye(2 * dim)):
        kernels.choose(steps._spec, steps._state, first, 0, normals, drawn[at : at + 1])
    usual = problem.theta_norm / math.sqrt(dim)
    assert 0.8 * usual < np.linalg.norm(drawn) < 1.6 * usual


@pytest.mark.parametrize("target", TARGETS)
def test_one_reward_costs_what_the_target_allows_and_hardly_less(target: Privacy) -> None:
    private = Privacy(epsilon=target.epsilon, delta=target.delta, protects="rewards")
    given = {"problem": PROBLEM, "horizon": 1000, "privacy": private}
    moved = 2 * 0.5 * 2  # from -2 to 2, times an action of length 0.5
    for std in (AdaCOFUL(**given).noise_std, BatchedThompson(**given).noise_stds.moment_std):
        assert moved / std <= mu_of(target) * (1 + 1e-9)
        assert moved / std > 0.999 * mu_of(target)
    assert BatchedThompson(**given).noise_stds.gram_std == 0.0
    elimination = CoreSetElimination(**given)
    assert 4.0 / elimination.noise_scale == pytest.approx(target.epsilon, rel=1e-4)
    assert 4.0 / elimination.noise_scale <= target.epsilon


@pytest.mark.parametrize("name", [name for name in LINEAR_BASELINES if name != "core-set"])
def test_what_is_released_has_the_stated_noise_and_is_otherwise_exact(name: str) -> None:
    """Deviations of 600 first releases; a third more or less is rejected, a right one at 1e-6."""
    privacy = Privacy(epsilon=1, delta=0.1, protects=LINEAR_BASELINES[name].protects)
    rule = linear_rule(name, problem=PROBLEM, horizon=2, privacy=privacy)
    if isinstance(rule, AdaCOFUL):
        rule = replace(rule, growth=1.01)  # an episode a row
    action = np.array([0.3, 0.4])
    shown = []
    for _ in range(600):
        learner = LinearLearner(rule)
        for reward in (1.5, -1.0):
            learner.learn(learner.choose(action[None]), reward)
        shown.append(learner.released)
    shown = np.array(shown)
    exact = np.array([2 * 0.09, 2 * 0.12, 2 * 0.16, 0.5 * 0.3, 0.5 * 0.4])
    draws = {"ldp-linucb": 2, "shuffle-linucb": 2, "adac-oful": 2}.get(name, 1)
    gram, moment = (0.0, rule.noise_std) if isinstance(rule, AdaCOFUL) else tuple(rule.noise_stds)
    stds = math.sqrt(draws) * np.array(
        [math.sqrt(2) * gram, gram, math.sqrt(2) * gram, moment, moment]
    )
    for entry, std in enumerate(stds):
        if std == 0.0:
            assert shown[:, entry] == pytest.approx(exact[entry], abs=1e-6)
            continue
        z = (shown[:, entry] - exact[entry]) / std
        low, high = stats.chi2.ppf([FLAKE / 20, 1 - FLAKE / 20], 600)
        assert low < (z**2).sum() < high
        assert 1.33**2 * z @ z > high
        assert z @ z / 1.33**2 < low
        assert abs(z.mean()) < stats.norm.isf(FLAKE / 20) / math.sqrt(600)


def test_adac_oful_keeps_to_episodes_and_each_reward_is_in_one_release() -> None:
    privacy = Privacy(epsilon=1e6, delta=0.1, protects="rewards")
    rule = AdaCOFUL(problem=PROBLEM, horizon=400, privacy=privacy)
    steps, rng = rule.steps(), np.random.default_rng(3)
    steps.refill(np.zeros(steps.stock()))
    gram, moment, logs, seen = np.eye(2), np.zeros(2), [0.0], 0
    held = np.zeros(2)
    for _ in range(400):
        if steps.stock():
            steps.refill(np.zeros(steps.stock()))
        action, reward = 0.5 * np.array([1.0, rng.uniform(-0.5, 0.5)]) / 1.2, rng.choice([-1.0, 1])
        steps.learn(action, reward)
        gram += np.outer(action, action)
        held += reward * action
        if math.log(np.linalg.det(gram)) >= logs[-1] + math.log(2):
            logs.append(math.log(np.linalg.det(gram)))
            moment, held, seen = moment + held, np.zeros(2), seen + 1
        assert steps.renewals == seen
        assert steps.released[3:] == pytest.approx(moment, abs=1e-4)
    assert seen >= 4


def test_amplification_is_the_theorems_formula_and_checks_its_condition() -> None:
    local = Privacy(epsilon=1.0, delta=1e-12)
    found = amplified(local=local, batch=100_000, delta=1e-6)
    assert found is not None
    e = math.e
    inside = 8 * math.sqrt(e * math.log(4e6)) / math.sqrt(1e5) + 8 * e / 1e5
    epsilon = math.log(1 + (e - 1) / (e + 1) * inside)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-9)
    more = (math.exp(epsilon) + 1) * (1 + 1 / (2 * e)) * 1e5 * 1e-12
    assert found.delta == pytest.approx(1e-6 + more, rel=1e-9)
    assert amplified(local=local, batch=600, delta=1e-6) is None  # 16 ln(2/delta) e is 631


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("batch", [10, 1000, 1_000_000])
def test_a_shuffled_batch_keeps_the_target_with_no_more_noise_than_local(
    target: Privacy, batch: int
) -> None:
    given = {"problem": PROBLEM, "horizon": 10_000_000, "privacy": target}
    rule = ShuffleLinUCB(**given, batch=batch)
    local = rule.local_target
    if local != target:
        kept = [
            amplified(local=local, batch=batch, delta=s * target.delta) for s in (0.25, 0.5, 0.75)
        ]
        assert any(
            one is not None and one.epsilon <= target.epsilon and one.delta <= target.delta
            for one in kept
        )
    assert rule.noise_stds.gram_std <= LocalLinUCB(**given).noise_stds.gram_std * (1 + 1e-12)
    if batch == 1_000_000:
        assert rule.noise_stds.gram_std < 0.7 * LocalLinUCB(**given).noise_stds.gram_std


def test_a_design_knows_all_actions_as_well_as_can_be() -> None:
    rng = np.random.default_rng(5)
    for actions, rank in (
        (rng.normal(size=(25, 5)), 5),
        (np.eye(4), 4),
        (np.outer(rng.normal(size=6), [1.0, 2.0, 0.0]), 1),
    ):
        found = g_optimal(actions)
        gram = actions.T @ (actions * found.weights[:, None])
        squares = np.einsum("ki,ij,kj->k", actions, np.linalg.pinv(gram), actions)
        assert found.weights.sum() == pytest.approx(1.0)
        assert found.coordinates.shape == (len(actions), rank)
        assert rank <= squares.max() * (1 + 1e-9)
        assert squares.max() < 1.05 * rank


def test_sums_of_laplace_numbers_stay_within_their_width() -> None:
    """With probability 1/20 at most, and not with hardly any: 20,000 draws of each sum."""
    rng = np.random.default_rng(11)
    weights = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [1.0, 0.1, 0.01]])
    level = math.log(20)
    widths = laplace_width(weights, level)
    sums = rng.laplace(size=(20_000, 3)) @ weights.T
    beyond = (sums > widths).mean(axis=0)
    assert (beyond <= 0.05).all()
    assert (beyond > 1e-3).all()
    assert laplace_width(np.zeros((1, 3)), level) == 0.0


@pytest.mark.parametrize("bound", [1.0, 1.999])
def test_as_many_rows_as_a_rule_takes_are_below_the_largest_sum_that_is_exact(bound: float) -> None:
    """Just below a power of two an entry has nearly twice as many steps as just above."""
    entry = bound / step(bound)
    assert MOST_ROWS * entry < 0.98 * 2**53  # the rest is for noise
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    with pytest.raises(ParameterError, match="horizon"):
        LocalLinUCB(problem=problem, horizon=MOST_ROWS + 1, privacy=TARGETS[0])
