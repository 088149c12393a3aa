"""Correlated noise in whole numbers.

With C the encoder of a strategy, ones on its diagonal, the noise of batch i is
w_i = z_i - (sum over k < i of C_ik w_k): what `strategies` calls C^-1 z. Here z_i are draws on the
whole numbers and the sum is rounded down to one, so that w_i is whole as well. What is released
is x_i + w_i, the exact sum of a batch plus that.

What the rounding costs: given all that was released, two neighbouring streams lead to values of w
that differ in known places, and the rounded sums differ by what the unrounded ones would, give or
take ``rounding``. So each release moves by at most that much more (docs/accounting.md).

Windows remember no noise: they keep the decayed sum itself, and each release rounds it down and
adds a draw of its own.

Nothing here overflows: these are Python's own whole numbers.
"""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.accounting import upwards
from discreet.kernels import _schedule as schedule
from discreet.kernels import _windows as windows
from discreet.kernels._sums import Arrays

F64 = NDArray[np.float64]
Whole = NDArray[np.object_]

_GUARD = 40  # bits behind the point in a buffer
_POINT = 60  # bits behind the point of a coefficient


class Feedback(Protocol):
    """How a release in whole numbers follows from what is held since the one before."""

    @property
    def rounding(self) -> float:
        """The most by which rounding can add to the difference of two sums, in steps."""

    @property
    def widest(self) -> float:
        """The largest `spread` of any release."""

    @property
    def narrowest(self) -> float:
        """The smallest `spread` of any release."""

    def spread(self, number: int, times: windows.Step) -> float:
        """How much larger the draw of release ``number`` (from 1) is than one draw."""

    def release(self, held: Arrays, batch: Whole, draw: Whole, times: windows.Step) -> Arrays:
        """What is held after the next release. Changes no argument."""


class _Remembered:
    """Noise of the next batch from the noise of those before it."""

    def memory(self, size: int) -> Whole:
        """What is remembered before the first batch, for packed rows of this size."""
        raise NotImplementedError

    def follow(self, memory: Whole, draw: Whole) -> tuple[Whole, Whole]:
        """(w_i, what is remembered after it), from the draw z_i. Changes neither argument."""
        raise NotImplementedError

    def release(self, held: Arrays, batch: Whole, draw: Whole, times: windows.Step) -> Arrays:
        """Add the batch and its noise to what was released before."""
        del times
        noise, memory = self.follow(held.nodes, draw)
        return Arrays(memory, held.idle, held.totals + batch + noise)


class BufferFeedback(_Remembered):
    """A few decaying buffers: buffer j is the sum over k < i of decay_j^(i-k-1) w_k."""

    def __init__(self, decays: F64, weights: F64) -> None:
        """Take each coefficient as the exact fraction that a floating-point number is."""
        self._decays, self._decay_bits = _fractions(decays)
        self._weights, self._weight_bits = _fractions(weights)
        tail = float(np.sum(weights / (1 - decays))) if decays.size else 0.0
        self.rounding = upwards(1.0 + tail * 2.0**-_GUARD)
        self.widest = self.narrowest = 1.0

    def memory(self, size: int) -> Whole:
        """Empty buffers, in fixed point."""
        return np.full((len(self._decays), size), 0, dtype=object)

    def spread(self, number: int, times: windows.Step) -> float:
        """One: the diagonal of C is one."""
        del number, times
        return 1.0

    def follow(self, memory: Whole, draw: Whole) -> tuple[Whole, Whole]:
        """Take the weighted buffers off the draw, and what comes of it into every buffer."""
        if not len(memory):
            return draw, memory
        weighted = (memory * self._weights[:, None]).sum(axis=0)
        noise = draw - (weighted >> (_GUARD + self._weight_bits))
        return noise, (memory * self._decays[:, None] >> self._decay_bits) + (noise << _GUARD)


class HistoryFeedback(_Remembered):
    """Any lower triangular encoder: all w so far are remembered."""

    def __init__(self, encoder: F64) -> None:
        """Take C written out. Row i is divided by its diagonal entry, and z_i is larger by it."""
        self._encoder = encoder
        self.rounding = 1.0
        self.widest = 1.0 / float(np.diag(encoder).min())
        self.narrowest = 1.0 / float(np.diag(encoder).max())

    def memory(self, size: int) -> Whole:
        """Room for the noise of no release yet."""
        return np.empty((0, size), dtype=object)

    def spread(self, number: int, times: windows.Step) -> float:
        """One over the diagonal entry of C."""
        del times
        return 1.0 / float(self._encoder[number - 1, number - 1])

    def follow(self, memory: Whole, draw: Whole) -> tuple[Whole, Whole]:
        """Take the weighted sum of all noise so far off the draw."""
        number = len(memory)
        noise = draw
        if number:
            row = self._encoder[number, :number] / self._encoder[number, number]
            whole = np.array([int(math.ldexp(entry, _POINT)) for entry in row], dtype=object)
            noise = draw - ((memory * whole[:, None]).sum(axis=0) >> _POINT)
        return noise, np.concatenate([memory, noise[None]])


class WindowFeedback:
    """A decaying window, in fixed point, that each release rounds down and adds a draw to."""

    narrowest = 1.0

    def __init__(self, filter_: windows.Filter, timing: schedule.Timing, releases: int) -> None:
        """Take the filter, the release times and how many releases there can be."""
        self._filter = filter_
        # One step where the window is shown, and a trace wherever it decays.
        self.rounding = upwards(1.0 + releases * 2.0**-_GUARD)
        self.widest = upwards(float(windows.widest(timing, releases, filter_.memory)))

    def spread(self, number: int, times: windows.Step) -> float:
        """How much larger than one draw: 1 / gamma_b, rounded up."""
        del number
        return upwards(float(windows.enlarged(times.rows, times.after, self._filter.memory)))

    def release(self, held: Arrays, batch: Whole, draw: Whole, times: windows.Step) -> Arrays:
        """Decay the window, add the batch, and show it with the draw to the filter.

        What the filter does is post-processing, so it is in floating point.
        """
        over, under = windows.kept_rows(times, self._filter.memory)
        window = held.nodes[0] * over // under + (batch << _GUARD)
        seen = ((window >> _GUARD) + draw).astype(np.float64)
        figures, estimates = held.idle.copy(), held.totals.copy()
        windows.follow(self._filter, times, estimates, figures[0], seen)
        return Arrays(window[None], figures, estimates)


def slack(feedback: Feedback | None, *, releases: int, size: int, std: float) -> float:
    """What rounding adds to the whitened distance of neighbours over all releases, rounded up.

    ``size`` entries a release, noise of at least ``std`` steps in each. Nothing without feedback.
    """
    if feedback is None:
        return 0.0
    least = std * min(1.0, feedback.narrowest)
    return upwards(feedback.rounding * math.sqrt(releases * size) / least)


def narrowest(feedback: Feedback | None) -> float:
    """How much smaller than one draw the smallest draw of a release is, at most."""
    return 1.0 if feedback is None else min(1.0, feedback.narrowest)


def _fractions(values: F64) -> tuple[Whole, int]:
    """The values as whole numbers over a power of two that they share, exactly."""
    ratios = [float(value).as_integer_ratio() for value in values]
    bits = max((below.bit_length() - 1 for _, below in ratios), default=0)
    scaled = [above << (bits - below.bit_length() + 1) for above, below in ratios]
    return np.array(scaled, dtype=object), bits
