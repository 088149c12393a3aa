"""Pulling one of the fixed actions of a world many times in a row."""

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _arms as arms
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

TURN, RECORDED = range(2)  # the counts: rounds played, checkpoints passed


@kernel
def pull(
    world: arms.WorldArrays,
    world_state: U64,
    arm: int,
    most: int,
    counts: I64,
    regret: F64,
    checkpoints: I64,
    regrets: F64,
) -> float:
    """Play an action up to ``most`` times, to the last checkpoint; the sum of its rewards.

    ``counts`` and ``regret``, the pseudo-regret so far of shape (1,), are moved on.
    """
    total = 0.0
    for _ in range(most):
        if counts[RECORDED] == checkpoints.size:
            break
        start = arms.next_set(world_state, world)
        mean = world.means[start + arm]
        regret[0] += arms.best_mean(world, start) - mean
        total += arms.reward(world_state, mean, world.reward_std, world.reward_bound)
        counts[TURN] += 1
        if counts[TURN] >= checkpoints[counts[RECORDED]]:
            regrets[counts[RECORDED]] = regret[0]
            counts[RECORDED] += 1
    return total
