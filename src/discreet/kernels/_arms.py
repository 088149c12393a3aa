"""Decision sets and rewards of the synthetic environments."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _random as random
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


SAME, BAND, CLUSTERS, RECORDED = range(4)  # what decision sets are made of


class Band(NamedTuple):
    """Where on the sphere actions lie, by their inner product with theta."""

    top: float  # that of the optimal action
    low: float  # the least of any other
    high: float  # the largest of any other


NO_BAND = Band(0.0, 0.0, 0.0)


class Groups(NamedTuple):
    """Groups of people, whose actions scatter around centres of their own."""

    number: int
    centres: F64  # (d, number * K), feature-major, a group after the other
    spread: F64  # (d,), the deviation of each feature around its centre


NO_GROUPS = Groups(0, np.empty((0, 0)), np.empty(0))


STILL, FLIP, TURN = range(3)  # how theta changes


class Drift(NamedTuple):
    """How theta changes from round to round."""

    kind: int  # STILL, FLIP or TURN
    flip: int  # the round before which theta changes its sign, counted from 0
    speed: float  # by how many radians theta turns in a round
    plane: F64  # (2, d), theta at first, and a direction of its length that it turns to
    turn: I64  # (1,), how many rounds there have been


NO_DRIFT = Drift(STILL, 0, 0.0, np.empty((0, 0)), np.zeros(1, np.int64))


class WorldArrays(NamedTuple):
    """An environment: decision sets drawn anew in each round, or always the same actions.

    New sets are drawn for a batch of B rounds at once, side by side, because long loops are
    faster than short ones. Where sets stay the same B is 1. Recorded sets come one after the other,
    and from the first again after the last; their means and best means are recorded too.
    """

    kind: int  # SAME, BAND, CLUSTERS or RECORDED
    n_actions: int
    theta: F64  # (d,), of unit length if sets are drawn
    band: Band
    groups: Groups
    actions: F64  # (d, B * K), feature-major
    means: F64  # (B * K,)
    best: F64  # (B,), the largest mean of each set
    next_start: I64  # (1,), where the next round's actions start
    reward_std: float  # 0 for rewards of plus or minus one
    reward_bound: float
    drift: Drift


@kernel
def next_set(state: U64, world: WorldArrays) -> int:
    """Where the next round's decision set starts in ``world.actions``."""
    if world.drift.kind != STILL:
        _move(world)
    if world.kind == SAME:
        return 0
    start = world.next_start[0]
    if start == world.means.size:
        if world.kind == BAND:
            _refill_band(state, world)
        elif world.kind == CLUSTERS:
            _refill_clusters(state, world)
        start = 0
    world.next_start[0] = start + world.n_actions
    return int(start)


@kernel
def _move(world: WorldArrays) -> None:
    """Bring theta to where it is in the next round, and with it all that depends on it.

    A flip is at its round exactly. A slow turn goes on whenever new decision sets are drawn.
    """
    drift, theta = world.drift, world.theta
    round_ = drift.turn[0]
    drift.turn[0] += 1
    if drift.kind == FLIP:
        if round_ != drift.flip:
            return
        for i in range(theta.size):
            theta[i] = -theta[i]
        if world.kind != SAME:
            world.next_start[0] = world.means.size  # those drawn already are of the old theta
    else:
        if world.kind != SAME and world.next_start[0] != world.means.size:
            return
        along, aside = math.cos(drift.speed * round_), math.sin(drift.speed * round_)
        for i in range(theta.size):
            theta[i] = along * drift.plane[0, i] + aside * drift.plane[1, i]
    if world.kind == SAME:
        for k in range(world.means.size):
            mean = 0.0
            for i in range(theta.size):
                mean += theta[i] * world.actions[i, k]
            world.means[k] = mean
        world.best[0] = world.means.max()


@kernel
def _refill_band(state: U64, world: WorldArrays) -> None:
    """Draw a batch of decision sets: one optimal action each, the others uniform on a band.

    Paper: section Experiments, Setting. Actions are normalised Gaussians, and those that fall
    outside the band are drawn again. The optimal action's place in its set is random.
    """
    actions, means, theta = world.actions, world.means, world.theta
    dim, total = actions.shape
    random.fill_normals(state, actions.reshape(dim * total))
    scales = np.zeros(total)
    means[:] = 0.0
    for i in range(dim):
        weight = theta[i]
        for k in range(total):
            means[k] += weight * actions[i, k]
            scales[k] += actions[i, k] * actions[i, k]
    for k in range(total):
        scales[k] = 1.0 / math.sqrt(scales[k])
        means[k] *= scales[k]
    for i in range(dim):
        for k in range(total):
            actions[i, k] *= scales[k]
    _redraw_outside(state, world)
    for start in range(0, total, world.n_actions):
        k = start + random.below(state, world.n_actions)
        means[k] = _turn(state, theta, means[k], world.band.top, actions[:, k])


@kernel
def _refill_clusters(state: U64, world: WorldArrays) -> None:
    """Draw a batch of decision sets, each around the centres of a group drawn at random.

    Actions that come out longer than 1 are shortened to 1.
    """
    actions, means, theta, groups = world.actions, world.means, world.theta, world.groups
    dim, total = actions.shape
    count = world.n_actions
    random.fill_normals(state, actions.reshape(dim * total))
    scales = np.zeros(total)
    means[:] = 0.0
    for start in range(0, total, count):
        centre = random.below(state, groups.number) * count
        for i in range(dim):
            spread, weight = groups.spread[i], theta[i]
            for k in range(count):
                entry = groups.centres[i, centre + k] + spread * actions[i, start + k]
                actions[i, start + k] = entry
                means[start + k] += weight * entry
                scales[start + k] += entry * entry
    for k in range(total):
        scales[k] = 1.0 / math.sqrt(max(1.0, scales[k]))
        means[k] *= scales[k]
    for i in range(dim):
        for k in range(total):
            actions[i, k] *= scales[k]
    for start in range(0, total, count):
        world.best[start // count] = means[start : start + count].max()


@kernel
def _redraw_outside(state: U64, world: WorldArrays) -> None:
    """Replace the actions that fell outside the band until none is left.

    A few rounds of drawing again empty the list if the band is wide. If it is narrow, the inner
    product is drawn by itself in the end, which is as exact because it is independent of the
    direction.
    """
    actions, means, theta, band = world.actions, world.means, world.theta, world.band
    dim, total = actions.shape
    outside = np.empty(total, np.int64)
    left = 0
    for k in range(total):  # without a branch, which could not be predicted
        outside[left] = k
        left += not band.low <= means[k] <= band.high
    drafts = np.empty((left, dim))
    for _ in range(8):
        tried, left = left, 0
        random.fill_normals(state, drafts[:tried].reshape(tried * dim))
        for at in range(tried):
            k = outside[at]
            for i in range(dim):
                actions[i, k] = drafts[at, i]
            means[k] = _normalise(theta, actions[:, k])
            outside[left] = k
            left += not band.low <= means[k] <= band.high
    for k in outside[:left]:
        wanted = band_product(state, dim, band.low, band.high)
        means[k] = _turn(state, theta, means[k], wanted, actions[:, k])


@kernel
def _turn(state: U64, theta: F64, product: float, wanted: float, action: F64) -> float:
    """Turn a unit vector towards or away from theta until its inner product is as wanted."""
    # A vector almost parallel to theta has no direction of its own left to keep.
    while 1.0 - product * product < 1e-2:
        for i in range(theta.size):
            action[i] = random.normal(state)
        product = _normalise(theta, action)
    scale = math.sqrt((1.0 - wanted * wanted) / (1.0 - product * product))
    along = wanted - scale * product
    for i in range(theta.size):
        action[i] = scale * action[i] + along * theta[i]
    return wanted


@kernel
def _normalise(theta: F64, action: F64) -> float:
    """Scale an action to unit length; its inner product with theta."""
    product = 0.0
    square = 0.0
    for i in range(theta.size):
        product += theta[i] * action[i]
        square += action[i] * action[i]
    scale = 1.0 / math.sqrt(square)
    for i in range(theta.size):
        action[i] *= scale
    return product * scale


@kernel
def band_product(state: U64, dim: int, low: float, high: float) -> float:
    """An inner product with density (1 - z^2)^((d-3)/2) on [low, high], by rejection."""
    power = 0.5 * (dim - 3)
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    furthest = max(abs(low), abs(high))
    peak = nearest if power >= 0.0 else furthest
    ceiling = power * math.log(1.0 - peak * peak)
    while True:
        z = low + (high - low) * random.uniform(state)
        if math.log(random.uniform(state)) < power * math.log(1.0 - z * z) - ceiling:
            return z


@kernel
def reward(state: U64, mean: float, std: float, bound: float) -> float:
    """A reward with the given mean: plus or minus one if std is 0, else normal.

    A normal reward is clipped to [-bound, bound].
    """
    if std == 0.0:
        return 2.0 * (random.uniform(state) < 0.5 * (1.0 + mean)) - 1.0  # no branch to guess
    return min(max(mean + std * random.normal(state), -bound), bound)


@kernel
def best_mean(world: WorldArrays, start: int) -> float:
    """The mean reward of the best action of the decision set that starts there."""
    return world.best[start // world.n_actions]  # type: ignore[no-any-return]  # an entry of an array
