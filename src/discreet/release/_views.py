"""How what is released looks in a notebook: small tables, and intervals as a picture.

Everything shown is in the object already, and public as it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet import _tables
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 50  # lines of a table
_INK, _FAINT = "#0072B2", "#999999"
_LEAST_HEIGHT, _LINE_HEIGHT, _WIDTH = 1.6, 0.3, 6.0  # inches

_F64 = NDArray[np.float64]


def intervals_html(
    first: str, middle: _F64, low: _F64, high: _F64, *, title: str = "", note: str = ""
) -> str:
    """A line for each interval.

    Args:
        first: what a line is for.
        middle: estimates, shape (K,).
        low: lower ends, shape (K,).
        high: upper ends, shape (K,).
        title: a line above.
        note: a line below.

    Returns:
        HTML.
    """
    rows = [
        (str(at), *(f"{number:.5g}" for number in line))
        for at, line in enumerate(zip(middle, low, high, strict=True))
        if at < _MOST
    ]
    notes = [f"{len(middle) - _MOST:,} more are not shown."] if len(middle) > _MOST else []
    notes += [note] if note else []
    return _tables.as_html((first, "estimate", "low", "high"), rows, title=title, notes=notes)


def draw_intervals(
    middle: _F64,
    low: _F64,
    high: _F64,
    *,
    ax: "Axes | None",
    labels: Sequence[str] | None,
    name: str,
) -> "Axes":
    """Estimates with their intervals, one below the other.

    Args:
        middle: estimates, shape (K,).
        low: lower ends, shape (K,).
        high: upper ends, shape (K,).
        ax: where to draw; a figure of its own if left out.
        labels: a name for each; their places if left out.
        name: what is estimated.

    Returns:
        The axes; their figure is ``.figure``.

    Raises:
        ParameterError: There are not as many labels as estimates.
    """
    places = np.arange(len(middle))
    names = [str(at) for at in places] if labels is None else [str(label) for label in labels]
    if len(names) != len(places):
        raise ParameterError("labels", f"are {len(names)} for {len(places)}; give one for each")
    axes = _axes(len(places)) if ax is None else ax
    axes.axvline(0.0, color=_FAINT, linewidth=0.8)
    axes.hlines(places, low, high, color=_INK, linewidth=2.0)
    axes.plot(middle, places, "o", color=_INK)
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(len(places) - 0.5, -0.5)  # the first on top
    axes.set_xlabel(name)
    return axes


def _axes(lines: int) -> "Axes":
    """Axes in a figure of their own, which no other code knows of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415  # as above

    height = max(_LEAST_HEIGHT, 0.8 + _LINE_HEIGHT * lines)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()
