"""Many rounds of the one loop, composed of the same kernels that serve a single round."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import arms, linalg, noise, random, score, tree
from discreet.kernels.compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


class Noise(NamedTuple):
    """What a node draws: nothing (no levels), Gaussian (dof 0) or Wishart."""

    levels: int
    idle: bool
    scale: float  # Gaussian: the standard deviation; Wishart: the squared row norm
    dof: float


class Rule(NamedTuple):
    """How a release becomes a choice."""

    shift: float
    floor: float
    noise_scale: float
    log_offset: float
    bias: float
    optimism: float
    sampling: bool


@kernel
def draw_nodes(state: U64, law: Noise, dim: int, nodes: F64, scratch: F64) -> None:
    """Fill packed nodes with fresh noise, in the order in which a `NoiseSource` is asked.

    ``scratch`` holds d(d+1)/2 + 2d numbers for each node.
    """
    if law.dof == 0.0:
        random.fill_normals(state, nodes.reshape(nodes.size))
        noise.symmetric_gaussian(nodes, law.scale, dim)
        return
    count, below = len(nodes), dim * (dim + 1) // 2
    normals, rest = scratch[: count * below], scratch[count * below :]
    dofs, squares = rest[: count * dim], rest[count * dim : 2 * count * dim]
    for at in range(count):
        for i in range(dim):
            dofs[at * dim + i] = law.dof - i
    random.fill_normals(state, normals)
    random.fill_chi_squares(state, dofs, squares)
    for at in range(count):
        noise.wishart(
            normals[at * below : (at + 1) * below],
            squares[at * dim : (at + 1) * dim],
            law.scale,
            nodes[at],
        )


@kernel
def play(
    world: arms.World,
    law: Noise,
    rule: Rule,
    world_state: U64,
    noise_state: U64,
    policy_state: U64,
    checkpoints: I64,
    regrets: F64,
) -> None:
    """Run to the last checkpoint, recording the pseudo-regret so far at each of them."""
    dim = world.theta.size
    size = linalg.packed_size(dim)
    nodes = np.zeros((law.levels, size))
    idle = np.zeros((law.levels, size))
    totals = np.zeros((law.levels + 1, size))
    clock = np.zeros(1, np.int64)
    draws = 2 if law.idle else 1
    fresh = np.empty((draws * law.levels, size))
    scratch = np.empty(len(fresh) * (dim * (dim + 1) // 2 + 2 * dim))
    draw_nodes(noise_state, law, dim, fresh, scratch)
    tree.begin(nodes, idle, totals, fresh)

    lower = np.zeros((dim, dim))
    weights = np.empty(dim)
    action = np.empty(dim)
    row = np.empty(size)
    scores = np.empty(world.n_actions)
    released = totals[0]
    last = checkpoints[-1]
    best_mean = arms.best_mean(world)
    regret = 0.0
    at = 0
    while at < checkpoints.size:
        start = arms.next_set(world_state, world)
        log_det = linalg.factor(released, rule.shift, rule.floor, lower)
        for i in range(dim):
            weights[i] = released[size - dim + i]
        linalg.forward(lower, weights)
        linalg.weigh(lower, weights)
        width = score.radius(log_det, rule.noise_scale, rule.log_offset, rule.bias) * rule.optimism
        if rule.sampling:
            for i in range(dim):
                weights[i] += width * math.sqrt(lower[i, i]) * random.normal(policy_state)
            width = 0.0
        chosen = start + score.best(world.actions, start, weights, lower, width, scores)

        mean = world.means[chosen]
        regret += best_mean - mean
        for i in range(dim):
            action[i] = world.actions[i, chosen]
        reward = arms.reward(world_state, mean, world.reward_std, world.reward_bound)
        linalg.pack_row(action, reward, row)
        starting = fresh[: draws * tree.carry(clock[0] + 1, law.levels)]
        if len(starting) > 0:
            draw_nodes(noise_state, law, dim, starting, scratch)
        tree.step(nodes, idle, totals, clock, row, starting, last)
        if clock[0] == checkpoints[at]:
            regrets[at] = regret
            at += 1
