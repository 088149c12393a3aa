"""Private ridge regression as a bandit plays it, one round at a time or many.

Rows are added up with Gaussian noise in one of three ways. *Batches*: the sums of each batch get
one draw, and what is shown is the sum over all batches so far. *Rows*: every row has a draw of its
own before anybody adds it up. *Tree*: `_tree` in its covering form. An estimate is renewed when a
batch ends: after so many rows by a `Timing`, or once the determinant of the regularised Gram matrix
has grown by a factor. Between two renewals nothing that a choice depends on changes.

With k draws in what is shown, each with deviation s on the Gram matrix and s_u on the moment, and
bounds that hold with high probability (``eigenvalue`` on the norm of one standard draw, ``length``
on that of d standard normals):

    Y = s sqrt(k) eigenvalue
    V = shown Gram matrix + (ridge + 2 Y) I,   theta = V^-1 (shown moment)
    radius = sigma sqrt(ln det V - d ln(ridge + Y) + 2 ln(4 r/alpha)) + S sqrt(ridge + 3 Y)
             + s_u sqrt(k) length / sqrt(floor)

where r is how many regularizers ridge + Y there are: one, or one for each renewal where Y grows
with every row; and the floor is at most the smallest eigenvalue of V: ridge + Y, or that eigenvalue
itself where the Gram matrix has no noise. A choice maximises theta.x + radius ||x||_{V^-1}, or
theta'.x for a draw theta' ~ N(theta, v^2 V^-1 + spread^2 k V^-2).

Rows and noise are rounded to whole multiples of a step before they are added up, so no sum is
rounded: rounding would tell of what was summed (Mironov 2012). Before the first renewal it is made
at random.

Shapes, with d features, packed vectors of length p and a tree of m levels: see `RidgeState`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _arms as arms
from discreet.kernels import _linalg as linalg
from discreet.kernels import _noise as noise
from discreet.kernels import _random as random
from discreet.kernels import _schedule as schedule
from discreet.kernels import _score as score
from discreet.kernels import _tree as tree
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

BATCHES, ROWS, TREE = range(3)  # where noise is added
ROWS_SEEN, DRAWS, DUE, RENEWALS = range(4)  # the counts
BONUS, LOG_DET = range(2)  # the figures
_STOCK = 16  # draws that are kept ready beyond what one step can need


class RidgeSpec(NamedTuple):
    """All that does not change: where noise is, when estimates are renewed, how wide they are."""

    kind: int  # BATCHES, ROWS or TREE
    law: noise.Noise  # of one draw
    timing: schedule.Timing  # when a batch ends, by the number of rows
    growth: float  # or by what the determinant grows; 0 where the number of rows decides
    levels: int  # of a tree
    last: int  # the last row there will be
    ridge: float
    eigenvalue: float
    length: float
    noise_scale: float  # sigma
    log_offset: float  # 2 ln(4 r/alpha): a quarter of alpha is for rewards
    theta_norm: float  # S
    gram_step: float  # what entries of the Gram matrix are whole multiples of
    moment_step: float  # and those of the moment
    sampling: float  # v; 0 for the upper confidence bound
    spread: float  # of the noise in a sampled parameter, for one draw


class RidgeState(NamedTuple):
    """All that changes."""

    shown: F64  # (p,), noisy sums of the rows up to the last renewal; of a tree, of all rows
    batch: F64  # (p,), rows since then; with noise of their own where every row has some
    nodes: F64  # (m, p)
    idle: F64  # (m, p), zeros
    totals: F64  # (m + 1, p)
    lower: F64  # (d, d), the factor of V
    trial: F64  # (d, d), room for another
    weights: F64  # (d,), of `score.best`
    shifted: F64  # (d,), room for others
    row: F64  # (p,), room for a row
    drawn: F64  # (max(1, m), p), room for noise
    firsts: I64  # (d,), zeros: one block
    counts: I64  # rows, draws, when the batch ends, renewals
    figures: F64  # the radius, the logarithm of the determinant


def empty(dim: int, levels: int) -> RidgeState:
    """Before any row: room for everything."""
    firsts = np.zeros(dim, np.int64)
    size = int(linalg.packed_size(firsts))
    return RidgeState(
        shown=np.zeros(size),
        batch=np.zeros(size),
        nodes=np.zeros((levels, size)),
        idle=np.zeros((levels, size)),
        totals=np.zeros((levels + 1, size)),
        lower=np.zeros((dim, dim)),
        trial=np.zeros((dim, dim)),
        weights=np.zeros(dim),
        shifted=np.zeros(dim),
        row=np.zeros(size),
        drawn=np.zeros((max(1, levels), size)),
        firsts=firsts,
        counts=np.zeros(4, np.int64),
        figures=np.zeros(2),
    )


@kernel
def most_normals(spec: RidgeSpec, state: RidgeState) -> int:
    """The most standard normals that one step can need."""
    return state.shown.size * max(1, spec.levels)


@kernel
def stock_size(spec: RidgeSpec, state: RidgeState) -> int:
    """How many standard normals are drawn at a time."""
    return most_normals(spec, state) + _STOCK * state.shown.size


@kernel
def begin(spec: RidgeSpec, state: RidgeState, normals: F64) -> int:
    """Give a tree its first noise, and make an empty estimate; how many normals that took."""
    state.counts[DUE] = schedule.following(spec.timing, 0)
    used = spec.levels * state.shown.size
    if spec.kind == TREE:
        first = _drawn(spec, state, normals, 0, spec.levels)
        tree.begin(state.nodes, state.idle, state.totals, first)
    _renew(spec, state)
    state.counts[RENEWALS] = 0
    return used


@kernel
def _drawn(spec: RidgeSpec, state: RidgeState, normals: F64, at: int, count: int) -> F64:
    """So many draws of noise, shape (count, p), from the normals that start there."""
    draws = state.drawn[:count]
    for level in range(count):
        for i in range(draws.shape[1]):
            draws[level, i] = normals[at]
            at += 1
    if count > 0:
        noise.symmetric_gaussian(draws, spec.law.scale, spec.law.moment_scale, state.firsts)
        for level in range(count):
            _to_grid(spec, draws[level], state.firsts.size)
    return draws


@kernel
def _to_grid(spec: RidgeSpec, packed: F64, dim: int) -> None:
    """Round to the nearest multiples of the steps, which are powers of two."""
    moment = packed.size - dim
    for i in range(moment):
        packed[i] = spec.gram_step * math.floor(packed[i] / spec.gram_step + 0.5)
    for i in range(moment, packed.size):
        packed[i] = spec.moment_step * math.floor(packed[i] / spec.moment_step + 0.5)


@kernel
def undecided(spec: RidgeSpec, state: RidgeState) -> bool:
    """Whether a choice needs random numbers: 2 d standard normals."""
    return spec.sampling > 0.0 or state.counts[RENEWALS] == 0


@kernel
def choose(
    spec: RidgeSpec, state: RidgeState, actions: F64, start: int, normals: F64, scores: F64
) -> int:
    """Which of the K actions from column ``start`` on to take.

    Shapes: actions (d, K or more), normals (2 d,), scores (K,).
    """
    dim = state.weights.size
    if not undecided(spec, state):
        bonus = state.figures[BONUS]
        return score.best(actions, start, state.weights, state.lower, state.firsts, bonus, scores)
    shifted = state.shifted
    for i in range(dim):
        shifted[i] = normals[i]
    if state.counts[RENEWALS] > 0:
        reach = spec.spread * math.sqrt(state.counts[DRAWS])
        for i in range(dim):
            shifted[i] *= reach
        linalg.forward(state.lower, state.firsts, shifted)
        linalg.weigh(state.lower, shifted)
        for i in range(dim):
            deviation = spec.sampling * math.sqrt(state.lower[i, i])
            shifted[i] += state.weights[i] + deviation * normals[dim + i]
    return score.best(actions, start, shifted, state.lower, state.firsts, 0.0, scores)


@kernel
def learn(
    spec: RidgeSpec, state: RidgeState, action: F64, reward: float, normals: F64, at: int
) -> int:
    """Take in a row; where the unused normals start. Nothing can interrupt it."""
    size = state.shown.size
    row = state.row
    linalg.pack_row(action, reward, state.firsts, row)
    _to_grid(spec, row, action.size)
    if spec.kind == TREE:
        starting = tree.carry(state.counts[ROWS_SEEN] + 1, spec.levels)
        fresh = _drawn(spec, state, normals, at, starting)
        clock = state.counts[:1]
        tree.step(state.nodes, state.idle, state.totals, clock, row, fresh, spec.last)
        for i in range(size):
            state.shown[i] = state.totals[0, i]
        at += starting * size
    else:
        if spec.kind == ROWS:
            _add(row, _drawn(spec, state, normals, at, 1)[0])
            state.counts[DRAWS] += 1
            at += size
        _add(state.batch, row)
        state.counts[ROWS_SEEN] += 1
    if _over(spec, state):
        if spec.kind == BATCHES:
            _add(state.batch, _drawn(spec, state, normals, at, 1)[0])
            state.counts[DRAWS] += 1
            at += size
        if spec.kind != TREE:
            _add(state.shown, state.batch)
            state.batch[:] = 0.0
        _renew(spec, state)
        state.counts[DUE] = schedule.following(spec.timing, state.counts[ROWS_SEEN])
    return at


@kernel
def _add(total: F64, more: F64) -> None:
    for i in range(total.size):
        total[i] += more[i]


@kernel
def _over(spec: RidgeSpec, state: RidgeState) -> bool:
    """Whether the batch ends with this row."""
    if spec.growth == 0.0:
        return bool(state.counts[ROWS_SEEN] == state.counts[DUE])
    shift, low, _ = _shifts(spec, state)
    for i in range(state.row.size):
        state.row[i] = state.shown[i] + state.batch[i]
    log_det = linalg.factor(state.row, shift, low, state.firsts, state.trial)
    return bool(log_det >= state.figures[LOG_DET] + math.log(spec.growth))


@kernel
def _shifts(spec: RidgeSpec, state: RidgeState) -> tuple[float, float, float]:
    """What is added to the diagonal, and how large regularizer and noise are: least and most."""
    draws = spec.levels if spec.kind == TREE else state.counts[DRAWS]
    norm = spec.law.scale * math.sqrt(draws) * spec.eigenvalue
    return spec.ridge + 2.0 * norm, spec.ridge + norm, spec.ridge + 3.0 * norm


@kernel
def _renew(spec: RidgeSpec, state: RidgeState) -> None:
    """Make the estimate of what is shown now, and its radius."""
    dim, size = state.weights.size, state.shown.size
    shift, low, high = _shifts(spec, state)
    log_det = linalg.factor(state.shown, shift, low, state.firsts, state.lower)
    for i in range(dim):
        state.weights[i] = state.shown[size - dim + i]
    linalg.forward(state.lower, state.firsts, state.weights)
    linalg.weigh(state.lower, state.weights)
    floor = low
    if spec.law.scale == 0.0 and spec.sampling == 0.0:
        gram, moment = np.empty((dim, dim)), np.empty(dim)
        linalg.unpack(state.shown, shift, state.firsts, gram, moment)
        floor = max(low, np.linalg.eigvalsh(gram)[0])
    draws = spec.levels if spec.kind == TREE else state.counts[DRAWS]
    reach = spec.law.moment_scale * math.sqrt(draws) * spec.length
    bias = spec.theta_norm * math.sqrt(high) + reach / math.sqrt(floor)
    offset = spec.log_offset - dim * math.log(low)
    state.figures[BONUS] = score.radius(log_det, spec.noise_scale, offset, bias)
    state.figures[LOG_DET] = log_det
    state.counts[RENEWALS] += 1


@kernel
def play(
    world: arms.WorldArrays,
    spec: RidgeSpec,
    state: RidgeState,
    world_state: U64,
    noise_state: U64,
    policy_state: U64,
    checkpoints: I64,
    regrets: F64,
) -> None:
    """Play to the last checkpoint, from an empty state; the pseudo-regret so far at each."""
    dim = world.theta.size
    normals = np.empty(stock_size(spec, state))
    random.fill_normals(noise_state, normals)
    at, room = begin(spec, state, normals), normals.size - most_normals(spec, state)
    draw, action, scores = np.empty(2 * dim), np.empty(dim), np.empty(world.n_actions)
    regret = 0.0
    turn = 0
    for recorded in range(checkpoints.size):
        while turn < checkpoints[recorded]:
            start = arms.next_set(world_state, world)
            if undecided(spec, state):
                random.fill_normals(policy_state, draw)
            chosen = start + choose(spec, state, world.actions, start, draw, scores)
            mean = world.means[chosen]
            regret += arms.best_mean(world, start) - mean
            for i in range(dim):
                action[i] = world.actions[i, chosen]
            reward = arms.reward(world_state, mean, world.reward_std, world.reward_bound)
            if at > room:
                random.fill_normals(noise_state, normals)
                at = 0
            at = learn(spec, state, action, reward, normals, at)
            turn += 1
        regrets[recorded] = regret
