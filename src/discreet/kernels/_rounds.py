"""Many rounds of the one loop, composed of the same kernels that serve a single round."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _arms as arms
from discreet.kernels import _linalg as linalg
from discreet.kernels import _noise as noise
from discreet.kernels import _posterior as posterior
from discreet.kernels import _random as random
from discreet.kernels import _schedule as schedule
from discreet.kernels import _score as score
from discreet.kernels import _sums as sums
from discreet.kernels import _tree as tree
from discreet.kernels import _width as width
from discreet.kernels import _windows as windows
from discreet.kernels._compiling import kernel
from discreet.kernels._noise import Noise

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


class RadiusArgs(NamedTuple):
    """What the paper's confidence set is made of besides the release."""

    shift: float
    floor: float
    noise_scale: float
    log_offset: float
    bias: float


class Rule(NamedTuple):
    """How a confidence set becomes a choice."""

    optimism: float
    sampling: bool


@kernel
def draw_nodes(state: U64, law: Noise, firsts: I64, nodes: F64, scratch: F64) -> None:
    """Fill packed nodes with noise, in the order in which a `NoiseSource` is asked.

    ``scratch`` holds d(d+1)/2 + 2d numbers for each node.
    """
    if law.dof == 0.0:
        random.fill_normals(state, nodes.reshape(nodes.size))
        noise.symmetric_gaussian(nodes, law.scale, law.moment_scale, firsts)
        return
    dim = firsts.size
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
            firsts,
            nodes[at],
        )


@kernel
def _play_row(
    world: arms.WorldArrays, world_state: U64, chosen: int, firsts: I64, action: F64, row: F64
) -> float:
    """Draw the reward of a choice and pack its row; the mean reward."""
    mean = world.means[chosen]
    for i in range(action.size):
        action[i] = world.actions[i, chosen]
    reward = arms.reward(world_state, mean, world.reward_std, world.reward_bound)
    linalg.pack_row(action, reward, firsts, row)
    return float(mean)


@kernel
def _make_release(
    law: Noise,
    firsts: I64,
    sharing: sums.Sharing,
    times: windows.Step,
    state: sums.Sums,
    noise_state: U64,
    drawn: F64,
    scratch: F64,
    releases: int,
    gram: F64,
    moment: F64,
) -> None:
    """Draw noise, make a release of the open batch, and write it out.

    ``drawn`` and ``scratch`` are room to draw in, as for `draw_nodes`.
    """
    starting = drawn[: sums.draws(sharing, state.number[0] + 1)]
    draw_nodes(noise_state, law, firsts, starting, scratch)
    sums.absorb(sharing, times, state, state.batch, starting, releases)
    state.batch[:] = 0.0
    linalg.unpack(state.totals[0], 0.0, firsts, gram, moment)


@kernel
def play_radius(
    world: arms.WorldArrays,
    law: Noise,
    firsts: I64,
    sharing: sums.Sharing,
    radius: RadiusArgs,
    rule: Rule,
    state: sums.Sums,
    world_state: U64,
    noise_state: U64,
    policy_state: U64,
    checkpoints: I64,
    regrets: F64,
) -> None:
    """The paper's learner: a release after every row, through a tree, and the radius beta_t.

    Runs to the last checkpoint, recording the pseudo-regret so far at each of them. One that lies
    behind is taken for reached, so that another thread can end it by moving the checkpoints.
    """
    nodes, idle, totals, number = state.nodes, state.idle, state.totals, state.number
    dim, size = world.theta.size, len(state.batch)
    draws = 2 if sharing.idle else 1
    drawn = np.empty((draws * sharing.levels, size))
    scratch = np.empty(len(drawn) * (dim * (dim + 1) // 2 + 2 * dim))
    draw_nodes(noise_state, law, firsts, drawn, scratch)
    tree.begin(nodes, idle, totals, drawn)

    lower = np.zeros((dim, dim))
    weights, action, row = np.empty(dim), np.empty(dim), np.empty(size)
    scores = np.empty(world.n_actions)
    released = totals[0]
    last = checkpoints[-1]
    regret = 0.0
    at = 0
    while at < checkpoints.size:
        start = arms.next_set(world_state, world)
        log_det = linalg.factor(released, radius.shift, radius.floor, firsts, lower)
        for i in range(dim):
            weights[i] = released[size - dim + i]
        linalg.forward(lower, firsts, weights)
        linalg.weigh(lower, weights)
        bonus = rule.optimism * score.radius(
            log_det, radius.noise_scale, radius.log_offset, radius.bias
        )
        if rule.sampling:
            for i in range(dim):
                weights[i] += bonus * math.sqrt(lower[i, i]) * random.normal(policy_state)
            bonus = 0.0
        chosen = start + score.best(world.actions, start, weights, lower, firsts, bonus, scores)

        best = arms.best_mean(world, start)
        regret += best - _play_row(world, world_state, chosen, firsts, action, row)
        starting = drawn[: draws * tree.carry(number[0] + 1, sharing.levels)]
        if len(starting) > 0:
            draw_nodes(noise_state, law, firsts, starting, scratch)
        tree.step(nodes, idle, totals, number, row, starting, last)
        if number[0] >= checkpoints[at]:
            regrets[at] = regret
            at += 1


@kernel
def play_width(
    world: arms.WorldArrays,
    law: Noise,
    firsts: I64,
    sharing: sums.Sharing,
    timing: schedule.Timing,
    table: width.NoiseTable,
    terms: width.Terms,
    releases: int,
    rule: Rule,
    state: sums.Sums,
    world_state: U64,
    noise_state: U64,
    policy_state: U64,
    checkpoints: I64,
    regrets: F64,
) -> None:
    """Scheduled releases, noise shared in any way, and the joint-noise width.

    Runs to the last checkpoint, as `play_radius` does. Between releases nothing changes but the
    open batch.
    """
    dim, size = world.theta.size, len(state.batch)
    drawn = np.empty((max(1, sums.first_draws(sharing)), size))
    scratch = np.empty(len(drawn) * (dim * (dim + 1) // 2 + 2 * dim))
    first = drawn[: sums.first_draws(sharing)]
    draw_nodes(noise_state, law, firsts, first, scratch)
    sums.begin(sharing, state, first)

    basis, gram = np.empty((dim, dim)), np.empty((dim, dim))
    centre, moment, spread, lean = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    weights, action, row = np.empty(dim), np.empty(dim), np.empty(size)
    scores = np.empty(world.n_actions)
    batch = state.batch
    width.nothing(terms.theta_norm, basis, centre, spread, lean)
    rows, released, due = 0, 0, schedule.following(timing, 0)
    regret = 0.0
    at = 0
    while at < checkpoints.size:
        start = arms.next_set(world_state, world)
        for i in range(dim):
            weights[i] = centre[i]
        optimism = rule.optimism
        if rule.sampling:
            for i in range(dim):
                deviation = math.sqrt(spread[i]) + math.sqrt(lean[i])
                weights[i] += optimism * deviation * random.normal(policy_state)
            optimism = 0.0
        chosen = start + width.best(
            world.actions, start, basis, weights, spread, lean, optimism, scores
        )

        best = arms.best_mean(world, start)
        regret += best - _play_row(world, world_state, chosen, firsts, action, row)
        for i in range(size):
            batch[i] += row[i]
        rows += 1
        if rows == due:
            due = schedule.following(timing, rows)
            times = windows.Step(released, rows, due)
            room = (noise_state, drawn, scratch)
            _make_release(law, firsts, sharing, times, state, *room, releases, gram, moment)
            released = rows
            number = state.number[0]
            heaviest = 1.0
            if sharing.kind == sums.WINDOWS:
                heaviest = windows.largest_weight(sharing.filter, timing, number)
            known = (number, heaviest, table, law, terms)
            width.region(gram, moment, *known, basis, centre, spread, lean)
        if rows >= checkpoints[at]:
            regrets[at] = regret
            at += 1


@kernel
def _held(
    law: Noise, sharing: sums.Sharing, state: sums.Sums, rows: int, numbers: I64, spreads: F64
) -> posterior.Noise:
    """The noise in a release with this many rows, and what they weigh. For compiled callers."""
    spread, weight = 0.0, float(rows)
    if sharing.kind == sums.WINDOWS:
        spread, weight = state.idle[0, windows.SPREAD], state.idle[0, windows.WEIGHT]
    elif sharing.kind != sums.NO_NOISE:
        place = min(int(np.searchsorted(numbers, state.number[0])), numbers.size - 1)
        spread = spreads[place]
    return posterior.Noise(spread * law.scale, spread * law.moment_scale, weight)


@kernel
def play_posterior(
    world: arms.WorldArrays,
    law: Noise,
    firsts: I64,
    sharing: sums.Sharing,
    timing: schedule.Timing,
    numbers: I64,
    spreads: F64,
    known: posterior.Known,
    releases: int,
    rule: posterior.PosteriorRule,
    state: sums.Sums,
    world_state: U64,
    noise_state: U64,
    policy_state: U64,
    checkpoints: I64,
    regrets: F64,
) -> None:
    """Scheduled releases, noise shared in any way, and the posterior.

    Runs to the last checkpoint, as `play_radius` does. ``spreads`` are deviations of the noise in
    releases ``numbers``, in multiples of one draw, where a filter does not say it.
    """
    dim, size = world.theta.size, len(state.batch)
    drawn = np.empty((max(1, sums.first_draws(sharing)), size))
    scratch = np.empty(len(drawn) * (dim * (dim + 1) // 2 + 2 * dim))
    first = drawn[: sums.first_draws(sharing)]
    draw_nodes(noise_state, law, firsts, first, scratch)
    sums.begin(sharing, state, first)

    lower, gram = np.zeros((dim, dim)), np.empty((dim, dim))
    centre, moment, weights = np.empty(dim), np.empty(dim), np.empty(dim)
    shifted, action, row = np.empty(dim), np.empty(dim), np.empty(size)
    scores, figures = np.empty(world.n_actions), np.zeros(2)
    batch = state.batch
    rows, released, due = 0, 0, schedule.following(timing, 0)
    share, scale, bonus = 1.0, 0.0, 0.0
    regret = 0.0
    at = 0
    while at < checkpoints.size:
        start = arms.next_set(world_state, world)
        if share > 0.0 and random.uniform(policy_state) < share:
            chosen = start + random.below(policy_state, world.n_actions)
        else:
            if scale > 0.0:
                which = random.below(policy_state, posterior.TILTS)
                posterior.tilt(state.number[0], which, lower, firsts, scale, shifted)
            else:
                shifted[:] = 0.0
            for i in range(dim):
                shifted[i] += weights[i]
            chosen = start + score.best(world.actions, start, shifted, lower, firsts, bonus, scores)

        best = arms.best_mean(world, start)
        regret += best - _play_row(world, world_state, chosen, firsts, action, row)
        for i in range(size):
            batch[i] += row[i]
        rows += 1
        if rows == due:
            due = schedule.following(timing, rows)
            times = windows.Step(released, rows, due)
            room = (noise_state, drawn, scratch)
            _make_release(law, firsts, sharing, times, state, *room, releases, gram, moment)
            released = rows
            held = _held(law, sharing, state, rows, numbers, spreads)
            posterior.fill(gram, moment, held, known, lower, weights, centre, figures)
            counted = min(rows, sharing.filter.memory)
            bonus = posterior.bonus(rule.deviations, rule.growth, counted, dim)
            scale = posterior.dither(rule.dither, figures)
            share = posterior.uniform_share(rule.uniform, figures)
        if rows >= checkpoints[at]:
            regrets[at] = regret
            at += 1
