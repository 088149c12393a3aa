"""The two kinds of axes that regret is drawn on: where they begin and end, and their ticks."""

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

from matplotlib.ticker import MaxNLocator

from discreet.report._curves import Curve, Panel

DECADES_SHOWN = 3  # earlier rounds, where regrets are small and alike, are left out
AIR = 1.3  # a factor between the outermost curves and the ends of a logarithmic axis


class Scale(Protocol):
    """A kind of axes."""

    @property
    def name(self) -> str:
        """As matplotlib calls it."""

    def first_round(self, last: float, /) -> float:
        """Where the horizontal axis begins."""

    def around(self, low: float, high: float) -> tuple[float, float]:
        """Limits of a horizontal axis that leave some air around what is shown."""

    def height(self, panels: Sequence[Panel]) -> tuple[float, float]:
        """Limits of the vertical axis that all the panels fit in."""

    def ticks(self, low: float, high: float) -> list[float]:
        """Round numbers within an axis."""


class Logarithmic:
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


class Plain:
    """Equal steps are equal differences, from zero."""

    name = "linear"

    def first_round(self, _last: float, /) -> float:
        """The start."""
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


LOGARITHMIC, PLAIN = Logarithmic(), Plain()


def _curves(panels: Sequence[Panel]) -> Iterator[Curve]:
    return (curve for panel in panels for curve in panel.curves if curve.mean.size)


def _top(panels: Sequence[Panel]) -> float:
    return max((float(curve.band()[1].max()) for curve in _curves(panels)), default=1.0)
