"""Successive elimination in epochs, one pull at a time or a batch at a time.

In epoch e every remaining arm is pulled equally often, in turns; then each of their sums, of this
epoch's rewards alone, gets Laplace noise, and arms that are clearly worse are dropped. After
Sajed & Sheffet (2019), whose rewards lie in [0, 1]; here they lie in [-1, 1], so widths, gaps and
the sensitivity of a sum are twice theirs.

Letters: D = 2^-e the target gap on their scale, s the number of remaining arms, R the pulls of
each of them in the epoch, L = ln(8 s e^2 / beta), L' = ln(4 s e^2 / beta). With probability at
least 1 - beta all sample means, on their scale, are within h = sqrt(L / 2R) of the truth and all
noise on means within c = L' / (epsilon R).

Shapes, with k arms: alive (k,), the remaining arms in front; sums (k,).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _pulls as upper
from discreet.kernels import _random as random
from discreet.kernels._binomial import binomial
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


class Rule(NamedTuple):
    """What an epoch looks like."""

    epsilon: float  # infinite for no noise
    failure_prob: float  # beta
    joint: bool  # whether R makes h + c at most D/4, or each of them at most D/8
    horizon: int


@kernel
def batch(rule: Rule, epoch: int, left: int) -> int:
    """R, how often each of ``left`` arms is pulled in an epoch; the horizon at most.

    Their choice: max(32 L / D^2, 8 L' / (epsilon D)) + 1. Joint: the solution of h + c = D/4,
    plus 1, which is never more.
    """
    squares = left * float(epoch) * float(epoch) / rule.failure_prob
    sampling, noise = math.log(8.0 * squares), math.log(4.0 * squares) / rule.epsilon
    target = math.pow(2.0, -epoch)
    if rule.joint:
        root = math.sqrt(0.5 * sampling)
        root = (root + math.sqrt(0.5 * sampling + noise * target)) / (0.5 * target)
        size = root * root
    else:
        size = max(32.0 * sampling / (target * target), 8.0 * noise / target)
    return math.ceil(min(size + 1.0, float(rule.horizon)))


@kernel
def tolerance(rule: Rule, epoch: int, left: int, size: int) -> float:
    """4 (h + c): how far an arm's noisy mean may lie below the best, for rewards in [-1, 1]."""
    squares = left * float(epoch) * float(epoch) / rule.failure_prob
    sampling = math.sqrt(0.5 * math.log(8.0 * squares) / size)
    return 4.0 * (sampling + math.log(4.0 * squares) / (rule.epsilon * size))


@kernel
def noise_scale(rule: Rule) -> float:
    """The Laplace scale of a sum of rewards in [-1, 1], which one of them changes by at most 2."""
    return 2.0 / rule.epsilon


@kernel
def release(rule: Rule, size: int, left: int, alive: I64, sums: F64, z: F64) -> None:
    """Put the noisy mean of the epoch in the place of each remaining arm's sum.

    ``z`` holds four standard normals for each arm that is left, in their order.
    """
    scale = noise_scale(rule)
    for i in range(left):
        noise = upper.noise(z, upper.PER_DRAW * i, scale)
        sums[alive[i]] = (sums[alive[i]] + noise) / size


@kernel
def drop(rule: Rule, epoch: int, size: int, left: int, alive: I64, means: F64) -> int:
    """Take worse arms out and forget the noisy means; how many arms are left."""
    best = -math.inf
    for i in range(left):
        best = max(best, means[alive[i]])
    least = best - tolerance(rule, epoch, left, size)
    kept = 0
    for i in range(left):
        arm = alive[i]
        if means[arm] >= least:
            alive[kept] = arm
            kept += 1
        means[arm] = 0.0
    return kept


@kernel
def eliminate(rule: Rule, epoch: int, size: int, left: int, alive: I64, sums: F64, z: F64) -> int:
    """End an epoch: noise on the sums, worse arms out, sums forgotten; how many arms are left."""
    release(rule, size, left, alive, sums, z)
    return drop(rule, epoch, size, left, alive, sums)


@kernel
def play(
    means: F64,
    rule: Rule,
    reward_state: U64,
    noise_state: U64,
    checkpoints: I64,
    pulls: I64,
) -> None:
    """Rewards of plus or minus one up to the last checkpoint; the pulls of each arm at each.

    A batch of one arm's rewards is one binomial number, so the time does not grow with the pulls.

    Shapes: means (k,), checkpoints (C,), pulls (C, k).
    """
    n_arms = means.size
    alive = np.arange(n_arms)
    sums = np.zeros(n_arms)
    counts = np.zeros(n_arms, np.int64)
    z = np.empty(upper.PER_DRAW * n_arms)
    turn, epoch, left, recorded = 0, 0, n_arms, 0
    while True:
        epoch += 1
        size = batch(rule, epoch, left) if left > 1 else rule.horizon
        while recorded < checkpoints.size and checkpoints[recorded] <= turn + size * left:
            turns = checkpoints[recorded] - turn
            for arm in range(n_arms):
                pulls[recorded, arm] = counts[arm]
            for i in range(left):
                pulls[recorded, alive[i]] += turns // left + (i < turns % left)
            recorded += 1
        if recorded == checkpoints.size:
            return
        for i in range(left):
            arm = alive[i]
            wins = binomial(reward_state, size, 0.5 * (1.0 + means[arm]))
            sums[arm] = 2.0 * wins - size
            counts[arm] += size
        turn += size * left
        random.fill_normals(noise_state, z[: upper.PER_DRAW * left])
        left = eliminate(rule, epoch, size, left, alive, sums, z)
