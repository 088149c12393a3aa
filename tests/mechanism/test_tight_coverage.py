"""The widths of `tight` and `windows` hold at every release, for every action, in 95% of runs.

In each kind of environment 800 runs are played with alpha = 0.05. A run fails if at any release
|<theta* - theta~, x>| > width(x) for any x at all. Seeds are fixed, so the verdict can be repeated.
Failing more than 5% of 800 runs has probability below 1e-5 if the true failure rate is below
2.4%; the proof's slack makes it far smaller. Widths that are too small are noticed.

The loop is the learner's own, put together of the same kernels, because 800 learners are slow.
"""

import math
from dataclasses import replace

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import UCB, LinUCB, Mechanism, Privacy, Setting
from discreet.kernels import _arms as arms
from discreet.kernels import _linalg as linalg
from discreet.kernels import _random as random
from discreet.kernels import _rounds as rounds
from discreet.kernels import _schedule as schedule
from discreet.kernels import _sums as sums
from discreet.kernels import _width as width
from discreet.kernels import _windows as windows
from discreet.kernels._noise import Noise
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.schedules import every_round
from discreet.mechanism.strategies import Tree
from discreet.mechanism.variants import named
from discreet.simulation._simulate import streams
from discreet.simulation.environments import Basis, Environment, Fixed, Sphere
from helpers import EARLY

F64 = NDArray[np.float64]
U64 = NDArray[np.uint64]

RUNS, ALPHA, HORIZON = 800, 0.05, 300
ENVIRONMENTS: dict[str, Environment] = {
    "sphere": Sphere(dim=3, n_actions=6),
    "fixed": Fixed(dim=3, n_actions=6),
    "basis": Basis(dim=3),
}
each_environment = pytest.mark.parametrize("kind", ENVIRONMENTS)
OURS = {"tight": named("tight"), "windows": EARLY}
each_of_ours = pytest.mark.parametrize("name", OURS)


def worst_excess(error: F64, noise: F64, bias: F64) -> float:
    """The largest |e.w| over the width of w, sqrt(sum noise w^2) + sqrt(sum bias w^2).

    Where it is reached the gradients are parallel: w_i = e_i / (noise_i + r bias_i) for some r.
    """
    worst = 0.0
    for power in range(-24, 25):
        ratio = 2.0**power
        product = variance = lean = 0.0
        for i in range(error.size):
            w = error[i] / (noise[i] + ratio * bias[i])
            product += error[i] * w
            variance += noise[i] * w * w
            lean += bias[i] * w * w
        worst = max(worst, product / (math.sqrt(variance) + math.sqrt(lean)))
    return worst


compiled_worst_excess = numba.njit(worst_excess)


@numba.njit
def play(  # noqa: PLR0917  # compiled functions take positions only
    world: arms.WorldArrays,
    law: Noise,
    sharing: sums.Sharing,
    timing: schedule.Timing,
    table: width.NoiseTable,
    terms: width.Terms,
    state: sums.Sums,
    world_state: U64,
    noise_state: U64,
    excesses: F64,
) -> None:
    """Play one run by the rule of the upper confidence bound; the worst excess at each release."""
    dim, size = world.theta.size, state.batch.size
    firsts = np.zeros(dim, np.int64)  # one block
    fresh = np.empty((max(1, sums.first_draws(sharing)), size))
    scratch = np.empty(len(fresh) * (dim * (dim + 1) // 2 + 2 * dim))
    first = fresh[: sums.first_draws(sharing)]
    rounds.draw_nodes(noise_state, law, firsts, first, scratch)
    sums.begin(sharing, state, first)
    basis, gram = np.empty((dim, dim)), np.empty((dim, dim))
    weights, moment, noise, bias = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    action, row, scores = np.empty(dim), np.empty(size), np.empty(world.n_actions)
    width.nothing(terms.theta_norm, basis, weights, noise, bias)
    while state.number[0] < excesses.size:
        start = arms.next_set(world_state, world)
        chosen = start + width.best(world.actions, start, basis, weights, noise, bias, 1.0, scores)
        for i in range(dim):
            action[i] = world.actions[i, chosen]
        mean = world.means[chosen]
        reward = arms.reward(world_state, mean, world.reward_std, world.reward_bound)
        linalg.pack_row(action, reward, firsts, row)
        starting = fresh[: sums.next_draws(sharing, timing, state)]
        rounds.draw_nodes(noise_state, law, firsts, starting, scratch)
        if sums.step(sharing, timing, state, row, starting, excesses.size):
            number = state.number[0]
            linalg.unpack(state.totals[0], 0.0, firsts, gram, moment)
            heaviest = 1.0
            if sharing.kind == sums.WINDOWS:
                heaviest = windows.largest_weight(sharing.filter, timing, number)
            known = (number, heaviest, table, law, terms)
            width.region(gram, moment, *known, basis, weights, noise, bias)
            error = basis.T @ world.theta - weights
            excesses[number - 1] = compiled_worst_excess(error, noise, bias)


def mechanism_for(environment: Environment, epsilon: float, name: str = "tight") -> Mechanism:
    setting = Setting(problem=environment.problem, horizon=HORIZON, failure_prob=ALPHA)
    return OURS[name].mechanism(setting, Privacy(epsilon=epsilon, delta=0.1))


def excesses(environment: Environment, mechanism: Mechanism, seed: int) -> F64:
    """How large the worst error is at each release, in widths."""
    world_seed, noise_seed, _ = streams(seed)
    world = environment.start(world_seed)
    found = np.empty(mechanism.releases)
    play(
        world.arrays,
        mechanism.noise.law(),
        mechanism.sharing,
        mechanism.schedule.timing,
        mechanism.noise_table,
        mechanism.width_terms,
        mechanism.float_sums(),
        world.state,
        random.seed_state(noise_seed),
        found,
    )
    return found


def worst_of_runs(environment: Environment, mechanism: Mechanism, runs: int = RUNS) -> F64:
    """The worst excess of each run: the widths failed if it is above 1."""
    return np.array([excesses(environment, mechanism, seed).max() for seed in range(runs)])


@pytest.mark.parametrize("epsilon", [1.0, 20.0])
@each_environment
@each_of_ours
def test_every_width_holds_at_every_release_in_95_percent_of_runs(
    name: str, kind: str, epsilon: float
) -> None:
    # With little noise the widths are not vacuous: errors come close to them.
    environment = ENVIRONMENTS[kind]
    worst = worst_of_runs(environment, mechanism_for(environment, epsilon, name))
    assert (worst > 1.0).sum() <= ALPHA * RUNS
    # A tenth of the width fails most runs; the largest errors are a good part of it.
    assert (worst > 0.1).mean() > 0.9
    assert np.quantile(worst, 0.95) > 0.3


@pytest.mark.parametrize("tree", ["pan-private", "covering"])
def test_widths_hold_with_a_tree_over_all_rounds_too(tree: str) -> None:
    environment = ENVIRONMENTS["fixed"]
    variant = named("tight").with_schedule(every_round()).with_tree(tree)
    setting = Setting(problem=environment.problem, horizon=100, failure_prob=ALPHA)
    mechanism = variant.mechanism(setting, Privacy(epsilon=10.0, delta=0.1))
    assert mechanism.strategy == Tree(pan_private=tree == "pan-private")
    worst = worst_of_runs(environment, mechanism, runs=500)
    assert (worst > 1.0).sum() <= ALPHA * 500
    assert (worst > 0.1).mean() > 0.9


@each_of_ours
def test_a_width_without_privacy_noise_in_it_does_not_cover(name: str) -> None:
    # The same check must be able to fail: claim hardly any noise, where there is much.
    environment = ENVIRONMENTS["sphere"]
    mechanism = mechanism_for(environment, 0.02, name)
    table = mechanism.noise_table
    quiet = replace(mechanism)
    quiet.__dict__["noise_table"] = table._replace(norms=0.01 * table.norms)
    worst = worst_of_runs(environment, quiet, runs=200)
    assert (worst > 1.0).mean() > 0.5


@each_of_ours
def test_a_width_without_reward_noise_in_it_does_not_cover(name: str) -> None:
    environment = ENVIRONMENTS["fixed"]
    mechanism = mechanism_for(environment, 1e6, name)
    terms = mechanism.width_terms
    assert (worst_of_runs(environment, mechanism, runs=200) > 1.0).mean() < ALPHA
    sure = replace(mechanism)
    sure.__dict__["width_terms"] = terms._replace(variance=terms.variance / 100)
    assert (worst_of_runs(environment, sure, runs=200) > 1.0).mean() > 0.5


@each_environment
@each_of_ours
def test_the_loop_is_the_learners_own(name: str, kind: str) -> None:
    # The same seeds through `LinUCB`: the same errors in the same widths, for many actions; none
    # exceeds the worst, and the worst is reached by some.
    environment, seed = ENVIRONMENTS[kind], 3
    mechanism = mechanism_for(environment, 1.0, name)
    expected = excesses(environment, mechanism, seed)
    world_seed, noise_seed, _ = streams(seed)
    world = environment.start(world_seed)
    learner = LinUCB(
        environment.problem,
        horizon=HORIZON,
        privacy=Privacy(epsilon=1.0, delta=0.1),
        failure_prob=ALPHA,
        variant=OURS[name],
        policy=UCB(),
        noise="float",  # as in the loop
        noise_source=SeededNoise(noise_seed),
    )
    directions = np.random.default_rng(4).standard_normal((4_000, 3))
    found = []
    for _ in range(HORIZON):
        decision = learner.choose(world.decision_set())
        learner.learn(decision, world.pull(decision.index)[0])
        if learner.release.number > len(found):
            region = learner.confidence
            errors = np.abs(directions @ (world.theta - region.centre))
            found.append((errors / region.widths(directions)).max())
    assert len(found) == len(expected)
    assert (np.array(found) <= expected * (1 + 1e-2)).all()
    np.testing.assert_allclose(found, expected, rtol=0.02)
