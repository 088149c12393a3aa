"""Epochs of successive elimination: batches, widths, and who is dropped."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.kernels import _elimination as elimination
from discreet.kernels import _random as random
from discreet.kernels._elimination import Rule

epsilons = st.floats(0.001, 100)
epochs = st.integers(1, 12)
arms = st.integers(2, 1000)
betas = st.floats(1e-9, 0.5)

HUGE = 10**15
EXAMPLES = settings(deadline=None, derandomize=True)


def test_a_batch_is_that_of_sajed_and_sheffet() -> None:
    rule = Rule(0.1, 1e-6, joint=False, horizon=HUGE)
    sampling, noise = math.log(8 * 10 * 9 / 1e-6), math.log(4 * 10 * 9 / 1e-6)
    assert elimination.batch(rule, 3, 10) == math.ceil(max(32 * sampling * 64, 640 * noise) + 1)
    loud = rule._replace(epsilon=0.001)
    assert elimination.batch(loud, 3, 10) == math.ceil(8 * noise * 8 / 0.001 + 1)


def test_a_batch_is_never_longer_than_the_horizon() -> None:
    rule = Rule(1e-6, 1e-6, joint=False, horizon=1000)
    assert elimination.batch(rule, 30, 10) == 1000


@EXAMPLES
@given(epsilon=epsilons, beta=betas, epoch=epochs, left=arms, joint=st.booleans())
def test_a_batch_brings_the_tolerance_below_the_target(
    *, epsilon: float, beta: float, epoch: int, left: int, joint: bool
) -> None:
    # On the scale of [-1, 1] the target gap is 2 D; an arm goes if its gap is twice the tolerance.
    rule = Rule(epsilon, beta, joint, HUGE)
    size = elimination.batch(rule, epoch, left)
    assert elimination.tolerance(rule, epoch, left, size) <= 2.0**-epoch


@EXAMPLES
@given(epsilon=epsilons, beta=betas, epoch=epochs, left=arms)
def test_a_joint_batch_is_shorter_and_no_shorter_one_would_do(
    epsilon: float, beta: float, epoch: int, left: int
) -> None:
    rule = Rule(epsilon, beta, joint=True, horizon=HUGE)
    size = elimination.batch(rule, epoch, left)
    assert size <= elimination.batch(rule._replace(joint=False), epoch, left) + 1
    assert elimination.tolerance(rule, epoch, left, size - 2) > 2.0**-epoch * (1 - 1e-9)


@EXAMPLES
@given(epsilon=epsilons, epoch=epochs, left=arms, size=st.integers(1, 10**9))
def test_the_tolerance_bounds_both_errors_of_two_means(
    epsilon: float, epoch: int, left: int, size: int
) -> None:
    rule = Rule(epsilon, 0.01, joint=False, horizon=HUGE)
    share = 0.01 / (4 * left * epoch**2)  # the failure probability of one error of one arm
    sampling = math.sqrt(2 * math.log(2 / share) / size)  # Hoeffding, for rewards in [-1, 1]
    noise = 2 * math.log(1 / share) / (epsilon * size)  # the tail of Laplace noise of scale 2/eps
    assert math.isclose(
        elimination.tolerance(rule, epoch, left, size), 2 * (sampling + noise), rel_tol=1e-9
    )


def test_only_arms_clearly_below_the_best_are_dropped_and_sums_are_forgotten() -> None:
    rule = Rule(math.inf, 0.01, joint=False, horizon=HUGE)
    width = elimination.tolerance(rule, 1, 4, 1000)
    alive = np.array([3, 0, 2, 1, 9])
    sums = np.zeros(10)
    sums[[3, 0, 2, 1]] = 1000 * np.array([0.5, 0.5 - 0.99 * width, 0.5 - 1.01 * width, 0.1])
    left = elimination.eliminate(rule, 1, 1000, 4, alive, sums, np.ones(16))
    assert left == 2
    assert alive[:left].tolist() == [3, 0]
    assert not sums.any()


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 1.5])
def test_drops_are_as_frequent_as_noise_of_scale_two_over_epsilon_makes_them(
    factor: float,
) -> None:
    # Two arms, x apart in their sums: the worse one goes if the difference of two Laplace numbers
    # of scale b exceeds x, with probability (1 + x/2b) exp(-x/b) / 2. Here x = 2, epsilon = 1.
    # 40,000 trials: 5 deviations are a flake probability of 6e-7, and 2/3 or 3/2 of the scale is
    # more than 15 away.
    rule = Rule(1.0, 0.5, joint=False, horizon=HUGE)
    size, trials, distance = 10**6, 40_000, 2.0
    slack = elimination.tolerance(rule, 1, 2, size) * size
    state = random.seed_state(np.random.SeedSequence(1))
    z, drops = np.empty(8), 0
    for _ in range(trials):
        random.fill_normals(state, z)
        sums = np.array([0.0, -slack + distance])
        drops += elimination.eliminate(rule, 1, size, 2, np.arange(2), sums, z) == 1
    scale = factor * 2.0 / rule.epsilon
    expected = 0.5 * (1 + distance / (2 * scale)) * math.exp(-distance / scale)
    # The better arm is dropped with a probability below 1e-9, as 2 * slack is hundreds of scales.
    deviations = abs(drops / trials - expected) / math.sqrt(expected * (1 - expected) / trials)
    assert (deviations < 5) == (factor == 1.0)
