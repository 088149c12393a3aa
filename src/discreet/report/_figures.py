"""Drawings: curves, and points on a ball. They show what they are given and compute nothing else.

One SVG per panel, so that a page can set panels side by side or one below the other. Text stays
text; ids carry a prefix, so that several drawings can live in one page.
"""

import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from discreet.report._curves import LOGARITHMIC, PLAIN, AxisScale, Curve, Mark, Panel
from discreet.report._numbers import short
from discreet.report._page import Drawings, replace_file

F64 = NDArray[np.float64]

# All lengths are in units of the drawing, which is about as many units wide as a phone has
# pixels: text keeps about its nominal size there, and grows with the page elsewhere.
WIDTH, HEIGHT = 340.0, 300.0
LEFT, BOTTOM, TOP = 40.0, 40.0, 28.0  # room around the axes; on the right stand the labels
LETTER = 5.8  # the width of an average letter
LEADER = 26.0  # from the axes to the labels
LABEL_STEP = 14.5  # the least distance between two labels
UNITS_PER_INCH = 72.0  # as matplotlib has it
PNG_DPI = 216  # three pixels for each unit
MARKS_END, MARKS_ROOM = 0.92, 1.4  # below what the vertical axis shows, above the curves
FEW = 12  # points that each get a marker
INK, FAINT = "#1b1b1b", "#d9d9d9"
TILT = np.radians(24)  # how far the viewer looks down on the pole
FRONT, BACK, BEST = "#0072B2", "#A9C9DE", "#D55E00"

SETTINGS: Any = {  # the stubs of matplotlib spell out every name, and change
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",  # the same curves give the same bytes
    "font.family": ["DejaVu Sans"],  # comes with matplotlib; the page may set another
    "text.parse_math": False,  # a dollar in a label is a dollar
    "font.size": 10.0,
    "axes.edgecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True)
class Style:
    """How one curve looks: three ways to tell it from its neighbours."""

    colour: str
    dashes: str | tuple[float, tuple[float, ...]]
    marker: str


# Okabe and Ito's palette, which the colour-blind can tell apart, without its yellow (too faint
# on white). Neighbours in the list differ in dashes too, so that one shows through the other.
STYLES = (
    Style("#000000", "-", "o"),
    Style("#0072B2", "-", "s"),
    Style("#56B4E9", (0, (5, 2)), "D"),
    Style("#D55E00", "-", "^"),
    Style("#E69F00", (0, (5, 2)), "v"),
    Style("#CC79A7", (0, (5, 2, 1, 2)), "P"),
    Style("#009E73", "-", "X"),
    Style("#555555", (0, (1, 1.5)), "*"),
    Style("#8C510A", (0, (3, 1.5)), "h"),  # not theirs: dark enough to be told from the orange
)
SEQUENCE, LIGHTEST = "viridis", 0.85  # for curves in an order; lighter would be faint on white


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The kinds of the two axes."""

    across: AxisScale
    up: AxisScale


@dataclass(frozen=True)
class Limits:
    """Where the axes begin and end."""

    width: tuple[float, float]
    height: tuple[float, float]


@dataclass(frozen=True)
class Drawing:
    """A finished figure.

    Attributes:
        figure: as matplotlib has it.
        prefix: of all ids in it.
        label: what it shows, in words.
    """

    figure: Figure
    prefix: str
    label: str

    @cached_property
    def svg(self) -> str:
        """As an element for a page."""
        with mpl.rc_context(SETTINGS):
            return _inline(self.figure, prefix=self.prefix, label=self.label)

    def file(self) -> str:
        """As the text of a file of its own, on white."""
        ground = f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" fill="#ffffff"/>'
        return self.svg.replace(">", f' width="{2 * WIDTH:g}">\n{ground}', 1) + "\n"

    @cached_property
    def png(self) -> bytes:
        """As the bytes of a PNG file, on white."""
        buffer = io.BytesIO()
        with mpl.rc_context(SETTINGS):
            self.figure.savefig(buffer, format="png", dpi=PNG_DPI, metadata={"Software": None})
        return buffer.getvalue()


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """Drawings with one caption.

    Attributes:
        name: the beginning of its files' names.
        drawings: one for each panel, by a name for its file.
        caption: what is drawn, and how uncertain it is.
    """

    name: str
    drawings: tuple[Drawing, ...]
    caption: str

    def block(self) -> Drawings:
        """This exhibit as a block of a page."""
        return Drawings(
            drawings=tuple(drawing.svg for drawing in self.drawings), caption=self.caption
        )

    def write(self, folder: Path) -> list[Path]:
        """Write each drawing as an .svg and a .png file, and say where they are."""
        written = []
        for place, drawing in enumerate(self.drawings, 1):
            stem = self.name if len(self.drawings) == 1 else f"{self.name}-{place}"
            written.append(replace_file(folder / f"{stem}.svg", drawing.file().encode()))
            written.append(replace_file(folder / f"{stem}.png", drawing.png))
        return written


def regret_drawings(
    panels: Sequence[Panel], *, logarithmic: bool = True, prefix: str = "panel"
) -> tuple[Drawing, ...]:
    """Regret over rounds, one drawing for each panel, all on the same axes.

    Curves in the same place of their panels look the same. The band is one standard error either
    side of the mean.
    """
    scale = LOGARITHMIC if logarithmic else PLAIN
    last = max(float(curve.rounds[-1]) for panel in panels for curve in panel.curves)
    first = scale.first_round(last)
    shown = [panel.since(first) if logarithmic else panel for panel in panels]
    limits = Limits(width=(first, last), height=scale.height(shown))
    return _draw_all(shown, Axis(across=scale, up=scale), limits, prefix)


def drawings(
    panels: Sequence[Panel], *, across: AxisScale, up: AxisScale, prefix: str = "panel"
) -> tuple[Drawing, ...]:
    """Any curves over anything, one drawing for each panel, all on the same axes."""
    places = [at for panel in panels for curve in panel.curves for at in curve.rounds]
    places += [mark.at for panel in panels for mark in panel.marks]
    width = across.around(min(places), max(places))
    low, high = up.height(panels)
    room = MARKS_ROOM if any(panel.marks for panel in panels) else 1.0
    limits = Limits(width=width, height=(low, high * room))
    return _draw_all(panels, Axis(across=across, up=up), limits, prefix)


def spread(positions: F64, *, step: float) -> F64:
    """Positions within [0, 1] moved as little as possible so that none are closer than ``step``."""
    order = np.argsort(positions, kind="stable")
    offsets = step * np.arange(len(positions))
    nearest = isotonic_regression(positions[order] - offsets).x
    moved = np.empty(len(positions))
    moved[order] = np.clip(nearest, 0.0, max(0.0, 1.0 - step * (len(positions) - 1))) + offsets
    return moved


def _draw_all(
    panels: Sequence[Panel], axis: Axis, limits: Limits, prefix: str
) -> tuple[Drawing, ...]:
    with mpl.rc_context(SETTINGS):
        return tuple(
            Drawing(_draw(panel, axis, limits), f"{prefix}-{place}", _in_words(panel))
            for place, panel in enumerate(panels, 1)
        )


def _draw(panel: Panel, axis: Axis, limits: Limits) -> Figure:
    figure = Figure(figsize=(WIDTH / UNITS_PER_INCH, HEIGHT / UNITS_PER_INCH))
    axes = figure.add_axes(_place(panel))
    _set_up(axes, panel, axis, limits)
    styles = _styles(panel)
    for mark in panel.marks:
        _draw_mark(axes, mark)
    for guide in panel.guides:
        dashes = ":" if guide.dotted else "--"
        colour = styles[guide.like].colour
        axes.plot(guide.across, guide.up, color=colour, linestyle=dashes, linewidth=1.0)
    lines = [line for line in zip(panel.curves, styles, strict=True) if line[0].mean.size]
    for place, (curve, style) in enumerate(lines):
        draw = _draw_curve if panel.joined else _draw_points
        draw(axes, curve, style, place)
    _draw_labels(axes, lines)
    return figure


def _styles(panel: Panel) -> list[Style]:
    count = len(panel.curves)
    styles = list(islice(cycle(STYLES), count))
    if not panel.ordered:
        return styles
    colours = mpl.colormaps[SEQUENCE](np.linspace(0.0, LIGHTEST, count))
    return [
        Style(to_hex(colour), "-", style.marker)
        for colour, style in zip(colours, styles, strict=True)
    ]


def _draw_mark(axes: Axes, mark: Mark) -> None:
    axes.axvline(mark.at, ymax=MARKS_END, color=INK, linestyle=":", linewidth=1.0)
    axes.text(
        mark.at,
        MARKS_END,
        f"{mark.label} ",
        transform=axes.get_xaxis_transform(),
        rotation=90,
        va="top",
        ha="right",
        fontsize=9.0,
    )


def _draw_points(axes: Axes, curve: Curve, style: Style, _place: int) -> None:
    """Points with bars of one standard error either side."""
    low, high = curve.band()
    axes.errorbar(
        curve.rounds,
        curve.mean,
        yerr=(curve.mean - low, high - curve.mean),
        color=style.colour,
        linestyle="",
        marker=style.marker,
        markersize=4.5,
        capsize=2.5,
        linewidth=1.2,
    )


def _place(panel: Panel) -> tuple[float, float, float, float]:
    """The axes' left, bottom, width and height: what the labels leave free, but at least half."""
    longest = max((len(curve.label) for curve in panel.curves), default=0)
    width = max(WIDTH - LEFT - LEADER - LETTER * longest, WIDTH / 2 - LEFT)
    return LEFT / WIDTH, BOTTOM / HEIGHT, width / WIDTH, (HEIGHT - BOTTOM - TOP) / HEIGHT


def _set_up(axes: Axes, panel: Panel, axis: Axis, limits: Limits) -> None:
    axes.set_xscale(axis.across.name)
    axes.set_yscale(axis.up.name)
    axes.set_xlim(*limits.width)
    axes.set_ylim(*limits.height)
    sides = ((axes.xaxis, axis.across, limits.width), (axes.yaxis, axis.up, limits.height))
    for side, scale, ends in sides:
        side.set_major_locator(FixedLocator(scale.ticks(*ends)))
        side.set_minor_locator(NullLocator())
        side.set_major_formatter(FuncFormatter(lambda tick, _: short(tick)))
    axes.grid(color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(panel.title, loc="left", fontsize=11.0, fontweight="bold", pad=8)
    axes.set_xlabel(panel.across)
    # Upright, inside the corner that growing curves leave free: easier to read than sideways.
    axes.text(0.015, 0.985, panel.up, transform=axes.transAxes, va="top")


def _draw_curve(axes: Axes, curve: Curve, style: Style, place: int) -> None:
    low, high = curve.band()
    floor = axes.get_ylim()[0]
    axes.fill_between(
        curve.rounds, low.clip(min=floor), high, color=style.colour, alpha=0.18, linewidth=0
    )
    axes.plot(
        curve.rounds,
        curve.mean,
        color=style.colour,
        linestyle=style.dashes,
        linewidth=1.6,
        marker=style.marker,
        markersize=5.0,
        markeredgecolor="white",
        markeredgewidth=0.5,
        # Each curve starts its markers elsewhere, so that they do not cover each other.
        markevery=1 if len(curve.rounds) <= FEW else (0.04 + 0.025 * place, 0.2),
    )


def _draw_labels(axes: Axes, lines: Sequence[tuple[Curve, Style]]) -> None:
    """Names to the right of the curves' ends, moved apart, each tied to its curve by a line."""
    ends = np.array([(curve.rounds[-1], curve.mean[-1]) for curve, _ in lines]).reshape(-1, 2)
    at = (axes.transData - axes.transAxes).transform(ends)[:, 1]
    leader = LEADER / (WIDTH * axes.get_position().width)
    placed = spread(at, step=LABEL_STEP / (HEIGHT * axes.get_position().height))
    for (curve, style), start, end in zip(lines, at, placed, strict=True):
        axes.plot(
            [1.0, 1.0 + 0.38 * leader, 1.0 + 0.7 * leader],
            [start, end, end],
            transform=axes.transAxes,
            clip_on=False,
            color=style.colour,
            linewidth=1.2,
            marker=style.marker,
            markevery=[2],
            markersize=5.5,
        )
        axes.text(1.0 + leader, end, curve.label, transform=axes.transAxes, va="center")


def _in_words(panel: Panel) -> str:
    ends = ", ".join(f"{c.label} {c.mean[-1]:.3g}" for c in panel.curves if c.mean.size)
    return f"{panel.title}: {panel.up} over {panel.across}. At the right end: {ends}."


def _inline(figure: Figure, *, prefix: str, label: str) -> str:
    """The drawing as an element for a page: no declaration, no fixed size, ids of its own."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA)
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :].strip()
    # Its style sheet would reach the whole page: the root's own attributes say the same.
    drawing = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawing, count=1, flags=re.DOTALL)
    own = re.compile(r'(\bid="|href="#|url\(#)')
    drawing = re.sub(r"<[^>]+>", lambda tag: own.sub(rf"\g<1>{prefix}-", tag[0]), drawing)
    root = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{html.escape(label)}" '
        'stroke-linejoin="round" stroke-linecap="butt">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: root, drawing, count=1)


@dataclass(frozen=True, kw_only=True)
class Ball:
    """Unit vectors around a pole.

    Attributes:
        title: above the drawing.
        pole: a unit vector, which points up, shape (3,).
        points: unit vectors, shape (N, 3).
        chosen: the place of the one that is set off.
        rings: heights along the pole at which a circle is drawn, and their names.
    """

    title: str
    pole: F64
    points: F64
    chosen: int
    rings: tuple[tuple[float, str], ...]

    def drawing(self, *, prefix: str, label: str) -> Drawing:
        """The half that faces the viewer dark, the other one light."""
        with mpl.rc_context(SETTINGS):
            figure = Figure(figsize=(WIDTH / UNITS_PER_INCH, HEIGHT / UNITS_PER_INCH))
            axes = figure.add_axes((0.0, 0.0, 1.0, 0.92))
            axes.set_xlim(-1.32, 1.62)
            axes.set_ylim(-1.12, 1.27)
            axes.set_aspect("equal")
            axes.set_axis_off()
            axes.set_title(self.title, loc="left", x=0.03, fontsize=11.0, fontweight="bold")
            axes.add_patch(Circle((0, 0), 1.0, fill=False, edgecolor=INK, linewidth=0.8))
            for height, name in self.rings:
                _ring(axes, height, name)
            self._draw_points(axes)
            return Drawing(figure, prefix, label)

    def _draw_points(self, axes: Axes) -> None:
        across, up, depth = _seen(self.points @ _frame(self.pole).T)
        front = depth >= 0
        axes.scatter(across[~front], up[~front], s=3.0, color=BACK, linewidths=0, zorder=1)
        axes.scatter(across[front], up[front], s=3.5, color=FRONT, linewidths=0, zorder=3)
        at = self.chosen
        axes.scatter(across[at], up[at], s=90, marker="*", color=BEST, edgecolor="white", zorder=5)
        beside = (across[at] + 0.07, up[at] + 0.05)
        axes.text(*beside, "best action", color=BEST, fontweight="bold", zorder=5)
        top = _seen(np.array([[0.0, 0.0, 1.0]]))
        tip = (float(top[0][0]), float(top[1][0]) * 1.18)
        axes.annotate(
            "", xy=tip, xytext=(0, 0), arrowprops={"arrowstyle": "->", "color": INK, "lw": 1.2}
        )
        axes.text(tip[0] + 0.05, tip[1] + 0.02, "θ*", va="bottom")


def _ring(axes: Axes, height: float, name: str) -> None:
    turn = np.linspace(0, 2 * np.pi, 181)
    radius = np.sqrt(1 - height**2)
    points = np.column_stack([radius * np.cos(turn), radius * np.sin(turn), 0 * turn + height])
    across, up, _ = _seen(points)
    axes.plot(across, up, color=INK, linewidth=0.7, linestyle=(0, (3, 2)), zorder=4)
    end = int(across.argmax())
    axes.plot([across[end], 1.08], [up[end], up[end]], color=INK, linewidth=0.4, zorder=4)
    axes.text(1.1, up[end], name, va="center", fontsize=9.0)


def _frame(pole: F64) -> F64:
    """An orthonormal basis whose last row is the pole."""
    away = np.eye(3)[int(np.abs(pole).argmin())]
    first = np.cross(pole, away)
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(pole, first), pole])


def _seen(points: F64) -> tuple[F64, F64, F64]:
    """Across, up and towards the viewer, who looks down on the pole a little."""
    x, y, z = points.T
    return x, z * np.cos(TILT) - y * np.sin(TILT), z * np.sin(TILT) + y * np.cos(TILT)
