"""Many rounds of the one loop, composed of the same kernels that serve a single round."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import arms, linalg, noise, random, score, tree
from discreet.kernels.compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


class World(NamedTuple):
    """An environment: fresh sphere decision sets, or the same actions in every round."""

    fresh: bool
    theta: F64  # (d,)
    top: float
    low: float
    high: float
    actions: F64  # (d, K), refilled every round if fresh
    means: F64  # (K,)
    reward_std: float  # 0 for rewards of plus or minus one
    reward_bound: float


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
def draw_node(state: U64, law: Noise, normals: F64, dofs: F64, squares: F64, out: F64) -> None:
    """Fill one packed node with fresh noise; normals, dofs and squares are scratch."""
    dim = squares.size
    if law.dof == 0.0:
        random.fill_normals(state, out)
        noise.symmetric_gaussian(out, law.scale, dim)
    else:
        random.fill_normals(state, normals)
        for i in range(dim):
            dofs[i] = law.dof - i
        random.fill_chi_squares(state, dofs, squares)
        noise.wishart(normals, squares, law.scale, out)


@kernel
def play(
    world: World,
    law: Noise,
    rule: Rule,
    world_state: U64,
    noise_state: U64,
    policy_state: U64,
    checkpoints: I64,
    regrets: F64,
) -> None:
    """Run to the last checkpoint, recording the pseudo-regret so far at each of them."""
    dim, count = world.actions.shape
    size = linalg.packed_size(dim)
    nodes = np.zeros((law.levels, size))
    idle = np.zeros((law.levels, size))
    totals = np.zeros((law.levels + 1, size))
    row = np.empty(size)
    normals = np.empty(dim * (dim + 1) // 2)
    dofs = np.empty(dim)
    squares = np.empty(dim)
    lower = np.zeros((dim, dim))
    theta = np.empty(dim)
    sample = np.empty(dim)
    action = np.empty(dim)
    work = np.empty((dim + 2, count))
    best_mean = world.means.max()
    regret = 0.0
    at = 0
    clock = np.zeros(1, np.int64)
    draws = 2 if law.idle else 1
    fresh = np.empty((draws * law.levels, size))
    for i in range(fresh.shape[0]):
        draw_node(noise_state, law, normals, dofs, squares, fresh[i])
    tree.begin(nodes, idle, totals, fresh)
    while at < checkpoints.size:
        if world.fresh:
            arms.sphere(
                world_state, world.theta, world.top, world.low, world.high, world.actions,
                world.means,
            )  # fmt: skip
            best_mean = world.top
        released = totals[0]
        log_det = linalg.factor(released, rule.shift, rule.floor, lower)
        linalg.solve(lower, released, theta)
        width = score.radius(log_det, rule.noise_scale, rule.log_offset, rule.bias) * rule.optimism
        if rule.sampling:
            random.fill_normals(policy_state, sample)
            score.sample_theta(theta, lower, width, sample)
            width = 0.0
        chosen = score.best(world.actions, theta, lower, width, work)

        mean = world.means[chosen]
        regret += best_mean - mean
        reward = arms.reward(world_state, mean, world.reward_std, world.reward_bound)
        for i in range(dim):
            action[i] = world.actions[i, chosen]
        linalg.pack_row(action, reward, row)
        starting = draws * tree.carry(clock[0] + 1, law.levels)
        for i in range(starting):
            draw_node(noise_state, law, normals, dofs, squares, fresh[i])
        tree.step(nodes, idle, totals, clock, row, fresh[:starting])
        if clock[0] == checkpoints[at]:
            regrets[at] = regret
            at += 1
