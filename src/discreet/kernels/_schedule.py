"""When to release: one rule with four numbers, a function of the number of rows alone."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels._compiling import reproducible

NEVER = 2**62  # later than any row

I64 = NDArray[np.int64]


class Timing(NamedTuple):
    """The first release is after ``start`` rows; t rows later comes the next after t + step.

    The step is the smallest of ratio * t, root * sqrt(t) and batch, rounded down, and at least 1.
    """

    start: int
    ratio: float
    root: float
    batch: float


@reproducible
def following(timing: Timing, rows: int) -> int:
    """How many rows the next release will hold, where the last one held ``rows`` (0: none yet)."""
    if rows < timing.start:
        return timing.start
    step = min(timing.ratio * rows, timing.root * math.sqrt(rows), timing.batch)
    return min(rows + max(1, int(min(step, NEVER - rows))), NEVER)


@reproducible
def steady(timing: Timing, rows: int) -> bool:
    """Whether all steps are alike from a release with so many rows on: then it is the batch."""
    return rows >= timing.start and timing.batch <= min(
        timing.ratio * rows, timing.root * math.sqrt(rows)
    )


@reproducible
def time_of(timing: Timing, number: int) -> int:
    """How many rows release ``number`` (from 1) holds."""
    rows = following(timing, 0)
    for passed in range(1, number):
        if steady(timing, rows):
            step, left = following(timing, rows) - rows, number - passed
            return NEVER if left > (NEVER - rows) // max(1, step) else rows + left * step
        if rows == NEVER:
            break
        rows = following(timing, rows)
    return rows


@reproducible
def rows_at(timing: Timing, numbers: I64, rows: I64, after: I64) -> None:
    """Fill in how many rows releases ``numbers`` (from 1, ascending) hold, and the next of each."""
    number, now = 1, following(timing, 0)
    for at in range(numbers.size):
        while number < numbers[at]:
            if steady(timing, now):
                now += (numbers[at] - number) * (following(timing, now) - now)
                number = numbers[at]
            else:
                now = following(timing, now)
                number += 1
        rows[at], after[at] = now, following(timing, now)


@reproducible
def count(timing: Timing, horizon: int) -> int:
    """How many releases there are within a horizon."""
    releases = 0
    rows = following(timing, 0)
    while rows <= horizon:
        releases += 1
        if steady(timing, rows):
            return releases + (horizon - rows) // max(1, following(timing, rows) - rows)
        rows = following(timing, rows)
    return releases


@reproducible
def times(timing: Timing, releases: int) -> I64:
    """How many rows each of the first releases holds, shape (J,)."""
    found = np.empty(releases, np.int64)
    rows = 0
    for at in range(releases):
        rows = following(timing, rows)
        found[at] = rows
    return found


@reproducible
def milestones(timing: Timing, ratio: float, most: int, numbers: I64, rows: I64) -> int:
    """Some releases, each with at least ``ratio`` more rows than the one before, from the first on.

    Their numbers and rows are filled in, as many as there is room for, and none after release
    ``most``. Returns how many.
    """
    found, target, number = 0, 0.0, 1
    now = following(timing, 0)
    while number <= most and found < numbers.size and now != NEVER:
        if now >= target:
            numbers[found], rows[found] = number, now
            target = now * (1.0 + ratio)
            found += 1
        after = following(timing, now)
        if after - now == timing.batch:  # steps do not grow any more, so many can be taken at once
            further = max(0, int(min((target - after) / timing.batch, float(most - number))))
            number += further
            after = min(after + further * (after - now), NEVER)
        now = after
        number += 1
    return found
