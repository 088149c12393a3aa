"""One figure of all data sets: private learners beside non-private, uniform and fixed choices."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Row = Mapping[str, Any]

NAME = "real-data"
_INK = {"learner": "#0072B2", "nonprivate": "#222222"}
_PLAIN = "#999999"
_ACROSS = 2  # panels in a line
_NORM = 3.0  # the stated norm of the parameter, where there are several


@dataclass(frozen=True)
class _Panel:
    """A data set.

    Attributes:
        section: where its rows are.
        title: above it.
        axis: what is measured.
        figure: the column that has it.
        fixed: the rule of the best fixed action.
        shown: which rows of learners are drawn; the section may have more.
    """

    section: str
    title: str
    axis: str
    figure: str
    fixed: str
    shown: Callable[[Row], bool]


_PANELS = (
    _Panel(
        section="insurance",
        title="Health insurance",
        axis="mean reward, people held out",
        figure="value",
        fixed="best single plan",
        shown=lambda row: (
            row["theta_norm"] == _NORM
            and row["model"]
            == ("one per plan" if row["epsilon"] is None else "one per plan, blocks")
        ),
    ),
    _Panel(
        section="cancer",
        title="Breast cancer records",
        axis="right answers, last quarter",
        figure="last_quarter",
        fixed="best fixed answer",
        shown=lambda row: (
            row["theta_norm"] == _NORM and (row["blocks"] == "yes") == (row["epsilon"] is not None)
        ),
    ),
    _Panel(
        section="digits",
        title="Handwritten digits",
        axis="right answers, last quarter",
        figure="last_quarter",
        fixed="best fixed answer",
        shown=lambda _: True,
    ),
    _Panel(
        section="clicks",
        title="Clicks",
        axis="click rate, last quarter",
        figure="last_quarter",
        fixed="best fixed article",
        shown=lambda _: True,
    ),
)


def write(sections: Mapping[str, Any], folder: Path) -> None:
    """Keep what was measured, and draw it.

    Args:
        sections: as in the JSON of a run.
        folder: where the files go; made if it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(sections, indent=1) + "\n", encoding="utf-8")
    draw(sections, folder)


def draw(sections: Mapping[str, Any], folder: Path) -> Path:
    """Draw all data sets that were measured.

    Args:
        sections: as in the JSON of a run.
        folder: where the figure goes.

    Returns:
        The file.
    """
    panels = [panel for panel in _PANELS if panel.section in sections]
    lines = -(-len(panels) // _ACROSS)
    figure = Figure(figsize=(3.8 * _ACROSS, 2.5 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    for place, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(lines, _ACROSS, place)
        _panel(axes, panel, sections[panel.section]["rows"])
    path = folder / f"{NAME}.svg"
    with rc_context({"svg.hashsalt": NAME}):  # the same figure is the same file
        figure.savefig(path, metadata={"Date": None})
    return path


def _panel(axes: Any, panel: _Panel, rows: list[Row]) -> None:  # noqa: ANN401  # matplotlib's
    """A line for each rule, with its interval where there is one."""
    drawn = _lines(panel, rows)
    for place, (name, row) in enumerate(drawn):
        colour = _INK.get(row["rule"], _PLAIN)
        if row["low"] is not None:
            axes.hlines(place, row["low"], row["high"], color=colour, linewidth=2.0)
        axes.plot(row[panel.figure], place, "o", color=colour, label=name)
        if row["rule"] == "uniform":
            axes.axvline(row[panel.figure], color=_PLAIN, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(drawn)), [name for name, _ in drawn])
    axes.set_ylim(len(drawn) - 0.5, -0.5)
    axes.set_title(panel.title, fontsize=11)
    axes.set_xlabel(panel.axis)


def _lines(panel: _Panel, rows: list[Row]) -> list[tuple[str, Row]]:
    """The rows to draw, from choices that know nothing to those without privacy."""
    (uniform,) = [row for row in rows if row["rule"] == "uniform"]
    (fixed,) = [row for row in rows if row["rule"] == panel.fixed]
    private = [row for row in rows if row["rule"] == "learner" and panel.shown(row)]
    plain = [row for row in rows if row["rule"] == "nonprivate" and panel.shown(row)]
    private.sort(key=lambda row: row["epsilon"])
    return [
        ("uniform", uniform),
        ("best fixed", fixed),
        *((f"\u03b5 = {row['epsilon']:g}", row) for row in private),
        *(("no privacy", row) for row in plain),
    ]
