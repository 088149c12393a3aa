"""Noisy prefix sums: rows gather in a batch, and at a release the batch joins all earlier rows.

One rule says when (`schedule`), one of four ways says how noise is shared (`tree`, `buffers`,
`history`, `windows`), or there is no noise. Windows weigh rows by their age; all others show sums
of all rows alike.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _buffers as buffers
from discreet.kernels import _history as history
from discreet.kernels import _rounding as rounding
from discreet.kernels import _schedule as schedule
from discreet.kernels import _tree as tree
from discreet.kernels import _windows as windows
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Numbers = NDArray[Any]  # floating-point, or whole

NO_NOISE, TREE, BUFFERS, MATRIX, WINDOWS = range(5)


class Sharing(NamedTuple):
    """How noise is shared between releases."""

    kind: int
    levels: int  # of a tree
    idle: bool  # whether a level without a finished node shows a draw
    decays: F64  # of buffers, (b,)
    weights: F64  # of buffers, (b,)
    decoder: F64  # of a matrix, (J, J)
    filter: windows.Filter  # of windows


class Arrays(NamedTuple):
    """What a way of sharing noise holds from one release to the next."""

    nodes: Numbers  # tree nodes (m, p), buffers (b, p), all draws so far (J, p), a window (1, p)
    idle: Numbers  # idle draws (m, p), the noise in the last release (1, p), a filter's figures
    totals: Numbers  # row 0 is what is released; a tree has more (m + 1, p), and so has a filter


class Sums(NamedTuple):
    """All that changes as rows come in: `Arrays`, the open batch and the counters."""

    nodes: Numbers
    idle: Numbers
    totals: Numbers
    batch: Numbers  # rows since the last release, (p,)
    rows: I64  # how many rows there are, (1,)
    released: I64  # how many of them are in the last release, (1,)
    number: I64  # how many releases there have been, (1,)


NO_FILTER = windows.Filter(1.0, 1.0, 1.0, 1.0)


def no_noise() -> Sharing:
    """The way of sharing where there is no noise to share."""
    nothing = np.empty(0)
    return Sharing(NO_NOISE, 0, False, nothing, nothing, np.empty((0, 0)), NO_FILTER)  # noqa: FBT003  # a tuple, by place


def empty(arrays: Arrays, batch: Numbers) -> Sums:
    """Before any row: arrays of zeros, and an empty batch."""
    counters = (np.zeros(1, np.int64) for _ in range(3))
    return Sums(*arrays, batch, *counters)


@kernel
def first_draws(sharing: Sharing) -> int:
    """How many nodes draw noise before the first row."""
    return (2 if sharing.idle else 1) * sharing.levels


@kernel
def draws(sharing: Sharing, release: int) -> int:
    """How many nodes draw noise for this release."""
    if sharing.kind == NO_NOISE:
        return 0
    if sharing.kind == TREE:
        return tree.carry(release, sharing.levels) * (2 if sharing.idle else 1)
    return 1


@kernel
def next_draws(sharing: Sharing, timing: schedule.Timing, sums: Sums) -> int:
    """How many nodes draw noise with the next row: none, unless it leads to a release."""
    if sums.rows[0] + 1 != schedule.following(timing, sums.released[0]):
        return 0
    return draws(sharing, sums.number[0] + 1)


@kernel
def begin(sharing: Sharing, sums: Sums, noise: F64) -> None:
    """Give every level of a tree its first noise. Others have none before the first release."""
    if sharing.kind == TREE:
        tree.begin(sums.nodes, sums.idle, sums.totals, noise)


@kernel
def step(
    sharing: Sharing, timing: schedule.Timing, sums: Sums, row: F64, noise: F64, last: int
) -> bool:
    """Add a packed row, in one call that nothing can interrupt; whether that made a release.

    ``noise`` holds as many draws as `next_draws` says. ``last`` is the last release there will be.
    """
    gather(sums.batch, sums.rows, row)
    rows = sums.rows[0]
    if rows != schedule.following(timing, sums.released[0]):
        return False
    times = windows.Step(sums.released[0], rows, schedule.following(timing, rows))
    absorb(sharing, times, sums, sums.batch, noise, last)
    sums.batch[:] = 0.0
    sums.released[0] = rows
    return True


@kernel
def gather(batch: Numbers, rows: I64, row: Numbers) -> None:
    """Add a packed row that makes no release: what `step` does then, with less to pass."""
    rows[0] += 1
    for i in range(row.size):
        batch[i] += row[i]


@kernel
def gather_rounded(
    actions: F64,
    rewards: F64,
    per_action: float,
    per_reward: float,
    largest_square: int,
    largest_reward: int,
    firsts: I64,
    batch: I64,
    rows: I64,
) -> int:
    """Round rows that make no release, and add them up to the first that is too long.

    How many were added. Nothing can interrupt it.

    Shapes: actions (n, d), rewards (n,), firsts (d,), batch (p,); see `linalg`.
    """
    row = np.empty(batch.size, np.int64)
    for at in range(rewards.size):
        if not rounding.packed(
            actions[at],
            rewards[at],
            per_action,
            per_reward,
            largest_square,
            largest_reward,
            firsts,
            row,
        ):
            return at
        gather(batch, rows, row)
    return rewards.size


@kernel
def absorb(
    sharing: Sharing, times: windows.Step, sums: Sums, batch: F64, noise: F64, last: int
) -> None:
    """Make a release of the one before, a batch and new noise, at the given times."""
    if sharing.kind in (TREE, NO_NOISE):
        tree.step(sums.nodes, sums.idle, sums.totals, sums.number, batch, noise, last)
    elif sharing.kind == BUFFERS:
        buffers.step(
            sharing.decays, sharing.weights, sums.nodes, sums.totals, sums.number, batch, noise
        )
    elif sharing.kind == WINDOWS:
        windows.step(sharing.filter, times, sums.nodes[0], sums.totals, sums.idle[0], batch, noise)
        sums.number[0] += 1
    else:
        history.step(sharing.decoder, sums.nodes, sums.idle, sums.totals, sums.number, batch, noise)
