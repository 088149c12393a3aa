"""Points on a ball in three dimensions as a drawing. It computes a view and nothing else."""

from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from discreet.report._figures import HEIGHT, INK, SETTINGS, UNITS_PER_INCH, WIDTH, Drawing

F64 = NDArray[np.float64]
TILT = np.radians(24)  # how far the viewer looks down on the pole
FRONT, BACK, BEST = "#0072B2", "#A9C9DE", "#D55E00"


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
