"""What a figure shows: curves with their uncertainty, panels of them, and the kinds of axes.

Nothing here draws, and nothing knows where the numbers come from.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

F64 = NDArray[np.float64]

DECADES_SHOWN = 3  # earlier rounds, where regrets are small and alike, are left out
AIR = 1.3  # a factor between the outermost curves and the ends of a logarithmic axis


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A mean over time and its standard error.

    Attributes:
        label: the name that stands beside the curve.
        rounds: when it was recorded, or whatever else the panel has across, shape (C,).
        mean: the mean over seeds, shape (C,).
        stderr: its standard error, shape (C,); NaN for a single seed.
    """

    label: str
    rounds: F64
    mean: F64
    stderr: F64

    @classmethod
    def over_seeds(cls, label: str, rounds: F64, values: F64) -> "Curve":
        """From one row of values per seed, shape (S, C)."""
        count = len(values)
        unknown = np.full(values.shape[1], np.nan)
        spread = unknown if count == 1 else values.std(axis=0, ddof=1) / np.sqrt(count)
        return cls(label=label, rounds=rounds, mean=values.mean(axis=0), stderr=spread)

    def band(self) -> tuple[F64, F64]:
        """One standard error below and above the mean; the mean itself for a single seed."""
        spread = np.nan_to_num(self.stderr, nan=0.0)
        return self.mean - spread, self.mean + spread

    def drawable(self, *, first_round: float = 1.0) -> "Curve":
        """The part that a logarithmic axis can show: positive means, from a round on.

        It starts at the last checkpoint up to that round, so that the line reaches the axis.
        """
        start = max(0, int(np.searchsorted(self.rounds, first_round, side="right")) - 1)
        keep = (self.mean > 0.0) & (np.arange(len(self.rounds)) >= start)
        return replace(
            self, rounds=self.rounds[keep], mean=self.mean[keep], stderr=self.stderr[keep]
        )


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A place on the horizontal axis, drawn as a dotted vertical line with a name."""

    label: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Guide:
    """A line that was not measured, such as a fit, drawn thin.

    Attributes:
        across: shape (C,).
        up: shape (C,).
        like: the place of the curve whose colour it takes.
        dotted: or dashed.
    """

    across: F64
    up: F64
    like: int
    dotted: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves that share one pair of axes.

    Attributes:
        title: what sets this panel apart.
        curves: what was measured.
        across: what the horizontal axis shows.
        up: what the vertical axis shows.
        ordered: whether the curves' order means something, and shows in their colours.
        joined: whether a curve's points are joined by a line, or stand for themselves.
        marks: places on the horizontal axis.
        guides: lines that were not measured.
    """

    title: str
    curves: tuple[Curve, ...]
    across: str = "round"
    up: str = "pseudo-regret"
    ordered: bool = False
    joined: bool = True
    marks: tuple[Mark, ...] = ()
    guides: tuple[Guide, ...] = ()

    def since(self, first_round: float) -> "Panel":
        """What a logarithmic axis can show, from a round on."""
        shown = (curve.drawable(first_round=first_round) for curve in self.curves)
        return replace(self, curves=tuple(shown))


class AxisScale(Protocol):
    """How numbers become places on an axis."""

    @property
    def name(self) -> str:
        """Matplotlib's name for this scale."""

    def first_round(self, last: float, /) -> float:
        """Where the horizontal axis begins."""

    def around(self, low: float, high: float) -> tuple[float, float]:
        """Limits of a horizontal axis that leave some air around what is shown."""

    def height(self, panels: Sequence[Panel]) -> tuple[float, float]:
        """Limits of the vertical axis that all the panels fit in."""

    def ticks(self, low: float, high: float) -> list[float]:
        """Round numbers within an axis."""


class LogarithmicAxis:
    """Equal steps are equal factors."""

    name = "log"

    def first_round(self, last: float, /) -> float:
        """The last few powers of ten, and no earlier than round 1."""
        return max(1.0, last / 10.0**DECADES_SHOWN)

    def around(self, low: float, high: float) -> tuple[float, float]:
        """A thirtieth of the length on either side."""
        air = (high / low) ** (1 / 30) if high > low else AIR
        return low / air, high * air

    def height(self, panels: Sequence[Panel]) -> tuple[float, float]:
        """From the lowest mean to the top of the highest band."""
        low = min((float(curve.mean.min()) for curve in _curves(panels)), default=1.0)
        return low / AIR, max(_top(panels), low) * AIR

    def ticks(self, low: float, high: float) -> list[float]:
        """Powers of ten, or 1, 2 and 5 times them on a short axis."""
        slack = 1e-9
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in ((1,), (1, 2, 5)):
            ticks = [step * 10.0**power for power in powers for step in steps]
            inside = [tick for tick in ticks if low * (1 - slack) <= tick <= high * (1 + slack)]
            if len(inside) > 1:
                break
        return inside


class PlainAxis:
    """Equal steps are equal differences, from zero."""

    name = "linear"

    def first_round(self, _last: float, /) -> float:
        """Zero: a plain axis shows every round."""
        return 0.0

    def around(self, low: float, high: float) -> tuple[float, float]:
        """A thirtieth of the length on either side."""
        air = (high - low) / 30 or 1.0
        return low - air, high + air

    def height(self, panels: Sequence[Panel]) -> tuple[float, float]:
        """From zero to the top of the highest band."""
        return 0.0, _top(panels) * 1.08 or 1.0

    def ticks(self, low: float, high: float) -> list[float]:
        """Five or fewer steps of a round size."""
        ticks = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)
        return [float(tick) for tick in ticks if low <= tick <= high]


LOGARITHMIC, PLAIN = LogarithmicAxis(), PlainAxis()


def _curves(panels: Sequence[Panel]) -> Iterator[Curve]:
    return (curve for panel in panels for curve in panel.curves if curve.mean.size)


def _top(panels: Sequence[Panel]) -> float:
    return max((float(curve.band()[1].max()) for curve in _curves(panels)), default=1.0)
