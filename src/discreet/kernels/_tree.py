"""The binary tree over the rows, one step at a time.

After t rows, level j belongs to bit j of t. Where the bit is 1, the level shows a finished *node*:
the noisy sum of the 2**j rows that this bit covers. Where it is 0, the level's next node is still
open and gathers rows; the level shows an independent *idle* draw instead (pan-private form) or
nothing (covering form, where the idle array stays zero). The prefix sum is the sum of what all
levels show.

A node starts from its noise and adds rows to it, so no exact sum is ever stored. A level starts
over, with new noise for its node and its idle draw, when a carry passes through it: for row t those
are the levels below the number of trailing zeros of t.

``totals[j]`` is the sum of what levels j and above show, so that a step that changes the lowest
levels adds up only those, and rounding errors do not pile up over rounds. With no levels at all,
``totals[0]`` is the exact sum: the non-private learner.

Shapes, with m levels and packed vectors of length p: nodes, idle (m, p); totals (m + 1, p).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.kernels._compiling import kernel

Numbers = NDArray[Any]  # floating-point or whole, 64 bits: the same steps for both
I64 = NDArray[np.int64]


@kernel
def carry(rows: int, levels: int) -> int:
    """Trailing zeros of the row count: how many levels start over after this many rows.

    With no rows yet, every level starts.
    """
    count = 0
    while count < levels and (rows >> count) & 1 == 0:
        count += 1
    return count


@kernel
def begin(nodes: Numbers, idle: Numbers, totals: Numbers, noise: Numbers) -> None:
    """Give every level its first noise. ``noise`` as in `step`."""
    _restart(nodes, idle, nodes.shape[0], noise)
    update_totals(nodes, idle, totals, 0, nodes.shape[0] - 1)


@kernel
def step(
    nodes: Numbers,
    idle: Numbers,
    totals: Numbers,
    clock: I64,
    row: Numbers,
    noise: Numbers,
    last: int,
) -> None:
    """Add one packed row and move the clock, in one call that nothing can interrupt.

    ``clock[0]`` is the number of rows before the call and after it one more. ``noise`` holds the
    draws of the levels that start over, lowest first: a node and an idle draw for each, or in the
    covering form (recognised by its length) a node alone. ``last`` is the last row there will be:
    a node that would be finished after it never shows, and takes no rows.
    """
    levels = nodes.shape[0]
    rows = clock[0]
    if levels == 0:
        for i in range(row.size):
            totals[0, i] += row[i]
    for level in range(levels):
        block = rows >> level
        if block & 1 == 0 and (block + 1) << level <= last:
            for i in range(row.size):
                nodes[level, i] += row[i]
    clock[0] = rows + 1
    starting = carry(rows + 1, levels)
    _restart(nodes, idle, starting, noise)
    update_totals(nodes, idle, totals, rows + 1, min(starting, levels - 1))


@kernel
def _restart(nodes: Numbers, idle: Numbers, starting: int, noise: Numbers) -> None:
    draws = 2 if noise.shape[0] == 2 * starting else 1
    for level in range(starting):
        for i in range(nodes.shape[1]):
            nodes[level, i] = noise[draws * level, i]
        if draws == 2:
            for i in range(nodes.shape[1]):
                idle[level, i] = noise[2 * level + 1, i]


@kernel
def update_totals(nodes: Numbers, idle: Numbers, totals: Numbers, rows: int, top: int) -> None:
    """Bring the totals of level ``top`` and all below it up to date."""
    for level in range(top, -1, -1):
        if (rows >> level) & 1 == 1:
            for i in range(totals.shape[1]):
                totals[level, i] = totals[level + 1, i] + nodes[level, i]
        else:
            for i in range(totals.shape[1]):
                totals[level, i] = totals[level + 1, i] + idle[level, i]
