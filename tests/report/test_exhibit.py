from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from discreet.report._curves import LOGARITHMIC, PLAIN, Curve, Guide, Mark, Panel
from discreet.report._figures import Ball, Exhibit, _frame, drawings

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def panel() -> Panel:
    across = np.array([4.0, 8.0, 64.0])
    values = np.array([[10.0, 40.0, 2000.0], [12.0, 44.0, 2400.0]])
    curve = Curve.over_seeds("signs", across, values)
    return Panel(
        title="both",
        curves=(curve,),
        across="dimension",
        up="regret",
        ordered=True,
        joined=False,
        marks=(Mark(label="here", at=100.0),),
        guides=(Guide(across=across, up=across**2, like=0),),
    )


def texts(drawing: str) -> set[str]:
    root = ET.fromstring(drawing)  # noqa: S314  # our own
    return {"".join(node.itertext()).strip() for node in root.iter(f"{SVG}text")}


def test_a_curve_over_seeds_has_the_standard_error_of_the_mean() -> None:
    values = np.array([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]])
    curve = Curve.over_seeds("x", np.array([1.0, 2.0]), values)
    np.testing.assert_allclose(curve.mean, [3.0, 2.0])
    np.testing.assert_allclose(curve.stderr, [2.0 / np.sqrt(3), 0.0])
    assert np.isnan(Curve.over_seeds("x", np.array([1.0]), np.array([[1.0]])).stderr).all()


@pytest.mark.parametrize("up", [LOGARITHMIC, PLAIN])
def test_a_panel_shows_its_axes_curves_and_marks(panel: Panel, up) -> None:  # noqa: ANN001
    drawing = drawings([panel], across=LOGARITHMIC, up=up)[0]
    assert {"both", "dimension", "regret", "signs", "here"} <= texts(drawing.svg)
    assert "regret over dimension" in drawing.label


def test_an_exhibit_is_written_as_pictures_on_white(panel: Panel, tmp_path: Path) -> None:
    drawn = drawings([panel, panel], across=LOGARITHMIC, up=LOGARITHMIC)
    exhibit = Exhibit(name="pair", drawings=drawn, caption="two")
    written = exhibit.write(tmp_path)
    assert [path.name for path in written] == [
        "pair-1.svg",
        "pair-1.png",
        "pair-2.svg",
        "pair-2.png",
    ]
    root = ET.fromstring((tmp_path / "pair-1.svg").read_text())  # noqa: S314
    assert root[0].tag == f"{SVG}rect"
    assert root[0].get("fill") == "#ffffff"
    assert exhibit.block().html().count("<svg") == 2


def test_the_same_figure_gives_the_same_bytes_again(panel: Panel) -> None:
    first, second = (drawings([panel], across=LOGARITHMIC, up=PLAIN)[0] for _ in range(2))
    assert first.svg == second.svg
    assert first.png == second.png


def test_a_single_point_still_draws() -> None:
    curve = Curve.over_seeds("x", np.array([3.0]), np.array([[2.0]]))
    for scale in (LOGARITHMIC, PLAIN):
        drawings([Panel(title="one", curves=(curve,))], across=scale, up=scale)


def test_a_ball_sets_off_the_chosen_point_and_names_its_rings() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    ball = Ball(title="ball", pole=points[0], points=points, chosen=3, rings=((0.5, "half"),))
    assert {"ball", "best action", "half"} <= texts(ball.drawing(prefix="b", label="l").svg)


@pytest.mark.parametrize("pole", [np.eye(3)[0], np.eye(3)[2], np.array([0.6, 0.0, -0.8])])
def test_the_frame_of_a_ball_is_a_rotation_that_turns_the_pole_up(pole) -> None:  # noqa: ANN001
    frame = _frame(pole)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(frame @ pole, [0, 0, 1], atol=1e-12)
