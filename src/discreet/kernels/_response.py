"""Randomised response on a choice between two actions, many rounds at a time."""

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _arms as arms
from discreet.kernels import _random as random
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


@kernel
def play(
    world: arms.WorldArrays,
    chance: float,
    world_state: U64,
    response_state: U64,
    checkpoints: I64,
    regrets: F64,
) -> None:
    """The better of two actions with this chance, else the other; the pseudo-regret so far.

    Rewards are drawn although nobody learns from them, so that the world's stream is the one that
    any other learner meets.
    """
    regret = 0.0
    turn = 0
    for at in range(checkpoints.size):
        while turn < checkpoints[at]:
            start = arms.next_set(world_state, world)
            better = 1 if world.means[start + 1] > world.means[start] else 0
            right = random.uniform(response_state) < chance
            mean = world.means[start + (better if right else 1 - better)]
            arms.reward(world_state, mean, world.reward_std, world.reward_bound)
            regret += arms.best_mean(world, start) - mean
            turn += 1
        regrets[at] = regret
