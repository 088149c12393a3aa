"""Decaying windows, and a filter that makes one estimate of all of them.

A window is the sum of all rows so far, each weighted by how old it is: at release b, after t_b
rows, batch k counts t_k / t_b. So H_b = a_b H_(b-1) + (sum of batch b) with a_b = t_(b-1) / t_b,
and the release shows H_b plus a fresh draw, larger than one draw by 1 / gamma_b, where
gamma_b^2 = 1 - a_(b+1)^2. What a row costs over all releases telescopes to that of one draw.

Windows overlap, so they can be averaged. The filter takes the rows' information about the
parameter to arrive at a known pace (a *profile*), the rewards' own noise in a window to decay with
it, and works out the combination of all windows that says most. It is the same combination for
every entry of the sums and it depends on the release times alone: public, and worked out without
looking at data. Proofs: docs/windows.md.

With a *memory* of m rows, n_b = min(t_b, m) stands for t_b, and the decay is
a_b = (n_b - (t_b - t_(b-1))) / n_b: the first m rows as above, and from then on a row's share falls
by e every m rows. The cost telescopes as before, whatever the decays are. The filter then takes
all earlier noise to be larger than it was, ever more as it grows old, so that earlier windows
count less and less. Proofs: docs/drift.md.

All of it comes out the same on every processor: a learner that is loaded after a crash makes its
last releases again, and they must be the ones that were shown.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _schedule as schedule
from discreet.kernels._compiling import reproducible

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

# Rows of the filter's public arrays, one number for each entry of a packed row.
SHOWN, RATE, LAG = range(3)
ESTIMATES = 3

# The filter's public figures. "Rate" is what a window holds for each unit of the profile; "lag" is
# the part of a window that is the rewards' own noise.
(
    _PROFILE,  # the profile summed up in the window
    _RATE_VAR,  # the variance of the estimated rate that is due to rewards
    _CROSS_VAR,  # its covariance with the estimated lag
    _LAG_VAR,  # the variance of that
    _RATE_DRAWS,  # the same of draws alone, in multiples of one draw's
    _CROSS_DRAWS,
    _LAG_DRAWS,
    _ROWS,  # the number of rows in the window, decayed as they are
    _ROWS_RATE,  # what the filter makes of that number
    _ROWS_LAG,
    SPREAD,  # the noise of what is shown, in multiples of one draw
    WEIGHT,  # the total weight of the rows in what is shown
    _RATE_DOUBT,  # with a memory: the variances by which gains go, of draws and rewards together,
    _CROSS_DOUBT,  # with old noise taken to be larger than it was
    _LAG_DOUBT,
) = range(15)
FIGURES = 12  # without a memory
FORGETTING = 15  # with one
NEVER = schedule.NEVER  # the memory of what forgets nothing
SETTLED = 42  # memories after which what is left of the first rows is beyond the last digit
_LN2 = 0.6931471805599453


class Filter(NamedTuple):
    """What the filter's weights depend on besides the release times."""

    variance: float  # of a reward
    draw: float  # the variance one draw adds to moment - gram @ theta, on average of directions
    share: float  # how much information one of the first rows brings in one direction
    full: float  # how many rows have that much; from then on 1/t of it, up to the memory
    memory: int = NEVER  # rows after which a row counts e times less


class Step(NamedTuple):
    """The times around a release: rows at the one before, at this one and at the next."""

    before: int
    rows: int
    after: int


@reproducible
def kept_rows(step: Step, memory: int) -> tuple[int, int]:
    """a_b, how much of the window before stays, as a fraction of whole numbers: over and under."""
    under = min(step.rows, memory)
    return max(0, under - (step.rows - step.before)), under


@reproducible
def decay(step: Step, memory: int = NEVER) -> float:
    """How much of the window before stays: a_b."""
    over, under = kept_rows(step, memory)
    return over / under


@reproducible
def lasting(step: Step, memory: int) -> float:
    """How much of what was known before still counts, so that all rows come to min(t, memory).

    All of it until the memory is full, then as much as stays of a window; none if there is none.
    """
    if step.before == 0:
        return 0.0
    return kept_rows(step, memory)[0] / min(step.before, memory)


@reproducible
def enlarged(rows: int, after: int, memory: int = NEVER) -> float:
    """How much larger than one draw the noise of a window is: 1 / gamma_b."""
    over, under = kept_rows(Step(rows, after, after), memory)
    return under / math.sqrt(float(under - over) * float(under + over))


@reproducible
def settled(timing: schedule.Timing, memory: int) -> int:
    """The release from which on all figures stay as they are, up to the last digits.

    There is one if there is a memory and all steps are alike once it is full.
    """
    if memory == NEVER or not schedule.steady(timing, memory):
        return NEVER
    return schedule.count(timing, SETTLED * memory) + 1


@reproducible
def widest(timing: schedule.Timing, releases: int, memory: int = NEVER) -> float:
    """The largest `enlarged` of the first releases."""
    rows = schedule.following(timing, 0)
    largest = 1.0
    for _ in range(min(releases, settled(timing, memory))):
        after = schedule.following(timing, rows)
        largest = max(largest, enlarged(rows, after, memory))
        rows = after
    return largest


@reproducible
def profile(known: Filter, before: int, rows: int) -> float:
    """The information in one direction that these rows are taken to bring."""
    if known.memory <= known.full:  # never so many that one would bring less
        return known.share * float(rows - before)
    early = max(0.0, min(float(rows), known.full) - before)
    late = 0.0
    growing = min(rows, known.memory)
    if growing > known.full and before < growing:
        late = known.full * _logarithm(growing / max(float(before), known.full))
    if rows > known.memory:
        late += known.full / known.memory * (rows - max(before, known.memory))
    return known.share * (early + late)


@reproducible
def _logarithm(ratio: float) -> float:
    """ln(ratio), ratio at least 1, by arithmetic that every machine does alike."""
    doublings = 0
    while ratio > 2.0:
        ratio *= 0.5
        doublings += 1
    at = (ratio - 1.0) / (ratio + 1.0)  # ln = 2 artanh(at), and at is at most 1/3
    power, total = at, 0.0
    for odd in range(1, 33, 2):
        total += power / odd
        power *= at * at
    return doublings * _LN2 + 2.0 * total


@reproducible
def step(
    known: Filter, times: Step, window: F64, public: F64, figures: F64, batch: F64, noise: F64
) -> None:
    """Make the next release from a batch and one draw.

    Shapes: window, batch (p,); public (3, p); figures (FIGURES,), or (FORGETTING,) with a memory;
    noise (1, p), overwritten.
    """
    kept = decay(times, known.memory)
    scale = enlarged(times.rows, times.after, known.memory)
    for i in range(batch.size):
        window[i] = kept * window[i] + batch[i]
        noise[0, i] = window[i] + scale * noise[0, i]
    follow(known, times, public, figures, noise[0])


@reproducible
def follow(known: Filter, times: Step, public: F64, figures: F64, seen: F64) -> None:
    """Take a noisy window into the estimate: post-processing.

    Shapes: public (3, p); figures (FIGURES,), or (FORGETTING,) with a memory; seen (p,).
    """
    gain, lag_gain = _advance(known, times, figures)
    kept, held = decay(times, known.memory), figures[_PROFILE]
    rate, lag, shown = public[RATE], public[LAG], public[SHOWN]
    size = _rescale(known, figures)
    for i in range(seen.size):
        surprise = seen[i] - held * rate[i] - kept * lag[i]
        rate[i] += gain * surprise
        lag[i] = kept * lag[i] + lag_gain * surprise
        shown[i] = size * rate[i]


@reproducible
def _advance(known: Filter, times: Step, figures: F64) -> tuple[float, float]:
    """Move all figures one release on; how far the rate and the lag follow a surprise."""
    kept, still = decay(times, known.memory), lasting(times, known.memory)
    spread = enlarged(times.rows, times.after, known.memory) ** 2
    new = profile(known, times.before, times.rows)
    held = kept * figures[_PROFILE] + new
    figures[_PROFILE] = held
    figures[_ROWS] = kept * figures[_ROWS] + (times.rows - times.before)
    if still == 0.0:  # nothing is known of the rate: it is what the window says
        figures[_RATE_VAR] = known.variance * new / held**2
        figures[_CROSS_VAR] = -known.variance * new / held
        figures[_LAG_VAR] = known.variance * new
        figures[_RATE_DRAWS] = spread / held**2
        figures[_CROSS_DRAWS] = figures[_LAG_DRAWS] = 0.0
        figures[_ROWS_RATE], figures[_ROWS_LAG] = figures[_ROWS] / held, 0.0
        if known.memory < NEVER:
            figures[_RATE_DOUBT] = figures[_RATE_VAR] + known.draw * figures[_RATE_DRAWS]
            figures[_CROSS_DOUBT], figures[_LAG_DOUBT] = figures[_CROSS_VAR], figures[_LAG_VAR]
        return 1.0 / held, 0.0
    for at in (_CROSS_VAR, _CROSS_DRAWS):
        figures[at] *= kept
        figures[at + 1] *= kept * kept
    figures[_LAG_VAR] += known.variance * new
    if known.memory < NEVER:
        figures[_RATE_DOUBT] /= still
        figures[_CROSS_DOUBT] *= kept / still
        figures[_LAG_DOUBT] = kept * kept / still * figures[_LAG_DOUBT] + known.variance * new
        rate, cross, lag = figures[_RATE_DOUBT], figures[_CROSS_DOUBT], figures[_LAG_DOUBT]
    else:
        rate = figures[_RATE_VAR] + known.draw * figures[_RATE_DRAWS]
        cross = figures[_CROSS_VAR] + known.draw * figures[_CROSS_DRAWS]
        lag = figures[_LAG_VAR] + known.draw * figures[_LAG_DRAWS]
    along, across = held * rate + cross, held * cross + lag
    total = held * along + across + known.draw * spread
    gain, lag_gain = along / total, across / total
    _spread_on(figures, _RATE_VAR, held, gain, lag_gain, 0.0)
    _spread_on(figures, _RATE_DRAWS, held, gain, lag_gain, spread)
    if known.memory < NEVER:
        _spread_on(figures, _RATE_DOUBT, held, gain, lag_gain, known.draw * spread)
    surprise = figures[_ROWS] - held * figures[_ROWS_RATE] - kept * figures[_ROWS_LAG]
    figures[_ROWS_RATE] += gain * surprise
    figures[_ROWS_LAG] = kept * figures[_ROWS_LAG] + lag_gain * surprise
    return gain, lag_gain


@reproducible
def figures_at(known: Filter, timing: schedule.Timing, numbers: I64) -> F64:
    """The figures after releases ``numbers`` (from 1, ascending), a row each."""
    size = FIGURES if known.memory == NEVER else FORGETTING
    found, figures = np.empty((numbers.size, size)), np.zeros(size)
    before, rows, at = 0, schedule.following(timing, 0), 0
    last = min(numbers[-1], settled(timing, known.memory))
    for number in range(1, last + 1):
        after = schedule.following(timing, rows)
        _advance(known, Step(before, rows, after), figures)
        while at < numbers.size and number == min(numbers[at], last):
            _rescale(known, figures)
            found[at] = figures
            at += 1
        before, rows = rows, after
    return found


(
    KEPT,  # how much of the window before stays
    ENLARGED,  # how much larger than one draw the noise of the window is
    GAIN,  # how far the rate follows a surprise
    LAG_GAIN,  # how far the lag does
    HELD,  # the profile summed up in the window
    SIZE,  # what turns the rate into a sum of rows
    COURSE_SPREAD,
    COURSE_WEIGHT,
) = range(8)


@reproducible
def course(known: Filter, timing: schedule.Timing, releases: int) -> F64:
    """All that `step` works out of public numbers, for the first releases, a row each."""
    found = np.empty((releases, 8))
    figures = np.zeros(FIGURES if known.memory == NEVER else FORGETTING)
    before, rows = 0, schedule.following(timing, 0)
    for at in range(releases):
        after = schedule.following(timing, rows)
        times = Step(before, rows, after)
        found[at, GAIN], found[at, LAG_GAIN] = _advance(known, times, figures)
        found[at, SIZE] = _rescale(known, figures)
        found[at, KEPT] = decay(times, known.memory)
        found[at, ENLARGED] = enlarged(rows, after, known.memory)
        found[at, HELD] = figures[_PROFILE]
        found[at, COURSE_SPREAD], found[at, COURSE_WEIGHT] = figures[SPREAD], figures[WEIGHT]
        before, rows = rows, after
    return found


def sizes(figures: F64) -> F64:
    """How large figures with a memory can be, judging by those that do not vanish; same shape."""
    held, found = figures[_PROFILE], np.abs(figures)
    for at in (_RATE_VAR, _RATE_DRAWS, _RATE_DOUBT):
        found[at + 1], found[at + 2] = held * found[at], held * held * found[at]
    found[_ROWS_LAG] = found[_ROWS]
    return found


@reproducible
def largest_spreads(known: Filter, timing: schedule.Timing, numbers: I64, found: F64) -> None:
    """The largest SPREAD of each stretch of releases that ends with one of ``numbers``.

    Numbers ascend from 1. ``found`` has an entry for each, which is filled.
    """
    figures = np.zeros(FIGURES if known.memory == NEVER else FORGETTING)
    before, rows, at = 0, schedule.following(timing, 0), 0
    found[:] = 0.0
    for number in range(1, min(numbers[-1], settled(timing, known.memory)) + 1):
        after = schedule.following(timing, rows)
        _advance(known, Step(before, rows, after), figures)
        _rescale(known, figures)
        found[at] = max(found[at], figures[SPREAD])
        if number == numbers[at]:
            at += 1
        before, rows = rows, after
    found[at:] = np.maximum(found[at:], figures[SPREAD])  # all settled


@reproducible
def _spread_on(
    figures: F64, at: int, held: float, gain: float, lag_gain: float, noise: float
) -> None:
    """The covariance of rate and lag after a window was taken in with these gains."""
    rate, cross, lag = figures[at], figures[at + 1], figures[at + 2]
    a, b, c, d = 1.0 - gain * held, -gain, -lag_gain * held, 1.0 - lag_gain
    figures[at] = a * a * rate + 2 * a * b * cross + b * b * lag + gain * gain * noise
    figures[at + 1] = a * c * rate + (a * d + b * c) * cross + b * d * lag + gain * lag_gain * noise
    figures[at + 2] = c * c * rate + 2 * c * d * cross + d * d * lag + lag_gain * lag_gain * noise


@reproducible
def _rescale(known: Filter, figures: F64) -> float:
    """What turns the rate into a sum of rows: then the rewards' noise in it is as in a sum."""
    draws = figures[_RATE_DRAWS]
    size = known.variance / figures[_RATE_VAR]
    figures[SPREAD] = size * math.sqrt(draws)
    figures[WEIGHT] = size * figures[_ROWS_RATE]
    return float(size)


@reproducible
def largest_weight(known: Filter, timing: schedule.Timing, number: int) -> float:
    """The largest weight of any row in what release ``number`` shows.

    The weights solve (variance * diag(profile) + draw * (C^T C)^-1) w = profile, with C the
    encoder: a tridiagonal matrix, because C's inverse has two diagonals. The weights are never
    negative: off its diagonal that matrix has no positive entry. With a memory, reward noise and
    draw of release k are taken to be larger by 1 / L_k, the product of all `lasting` since; gains
    are relative to their own release's time here, so that nothing overflows.
    """
    number = min(number, settled(timing, known.memory))
    gains, ratio = np.empty(number), np.empty(number)  # of the forward pass
    profiles, stills = np.empty(number), np.empty(number)
    before, rows = 0, schedule.following(timing, 0)
    last_scale = 0.0
    for b in range(number):
        after = schedule.following(timing, rows)
        profiles[b] = profile(known, before, rows)
        times = Step(before, rows, after)
        kept, still = decay(times, known.memory), lasting(times, known.memory)
        scale = known.draw * enlarged(rows, after, known.memory) ** 2
        # Release b shows window b: x_b = seen_b - kept * seen_(b-1), each seen with its own noise.
        diagonal = known.variance * profiles[b] + scale
        if still > 0.0:
            upper = -kept * last_scale / still  # between batch b - 1 and batch b
            ratio[b] = -kept * last_scale / gains[b - 1]
            gains[b] = diagonal - kept * upper - ratio[b] * upper
        else:
            gains[b] = diagonal
            ratio[b] = 0.0
        stills[b] = still
        last_scale = scale
        before, rows = rows, after
    solved = np.empty(number)
    for b in range(number):
        solved[b] = profiles[b] - (ratio[b] * solved[b - 1] if b > 0 else 0.0)
    share = 1.0  # of what release b is still worth
    for b in range(number - 1, -1, -1):
        solved[b] *= share / gains[b]
        if b + 1 < number:
            solved[b] -= ratio[b + 1] * solved[b + 1]
        share *= stills[b]
    top, information, square = 0.0, 0.0, 0.0
    for b in range(number):
        top = max(top, solved[b])
        information += solved[b] * profiles[b]
        square += solved[b] * solved[b] * profiles[b]
    return top * information / square
