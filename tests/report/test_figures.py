import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report._curves import LOGARITHMIC, PLAIN, Curve, Guide, Mark, Panel
from discreet.report._figures import (
    STYLES,
    Ball,
    Exhibit,
    _frame,
    drawings,
    regret_drawings,
    spread,
)

SVG = "{http://www.w3.org/2000/svg}"


def regret_panels(panels: list[Panel], **how: bool) -> list[str]:
    return [drawing.svg for drawing in regret_drawings(panels, **how)]


def _curve(label: str, scale: float) -> Curve:
    rounds = np.geomspace(1, 1e6, 40)
    return Curve(label=label, rounds=rounds, mean=scale * rounds**0.5, stderr=0.1 * rounds**0.5)


def _panels(*labels: str) -> list[Panel]:
    curves = tuple(_curve(label, place + 1.0) for place, label in enumerate(labels))
    return [Panel(title=title, curves=curves) for title in ("left", "right")]


@pytest.mark.parametrize("logarithmic", [True, False])
def test_every_drawing_is_well_formed_and_shows_each_name(*, logarithmic: bool) -> None:
    drawn = regret_panels(_panels("first", "second"), logarithmic=logarithmic)
    for drawing, title in zip(drawn, ("left", "right"), strict=True):
        root = ET.fromstring(drawing)  # noqa: S314  # our own drawing
        texts = {"".join(node.itertext()).strip() for node in root.iter(f"{SVG}text")}
        assert root.tag == f"{SVG}svg"
        assert {title, "first", "second", "round", "pseudo-regret"} <= texts


def test_labels_and_titles_are_text_not_markup() -> None:
    label = '<script>"&$x_1$'
    drawing = regret_panels(_panels(label))[0]
    root = ET.fromstring(drawing)  # noqa: S314
    assert "<script" not in drawing
    assert label in {"".join(node.itertext()).strip() for node in root.iter(f"{SVG}text")}


def test_two_drawings_in_one_page_share_no_ids_and_refer_only_to_their_own() -> None:
    drawn = regret_panels(_panels("first", "second"))
    ids = [set(re.findall(r'\bid="([^"]+)"', drawing)) for drawing in drawn]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    for own, drawing in zip(ids, drawn, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawing)) <= own


def test_the_same_curves_give_the_same_bytes() -> None:
    assert regret_panels(_panels("first")) == regret_panels(_panels("first"))


def test_a_drawing_has_no_date_and_no_style_of_its_own() -> None:
    drawing = regret_panels(_panels("first"))[0]
    assert "<style" not in drawing
    assert "<metadata" not in drawing


def test_styles_differ_in_colour_and_in_marker() -> None:
    assert len({style.colour for style in STYLES}) == len(STYLES)
    assert len({style.marker for style in STYLES}) == len(STYLES)


def test_more_curves_than_styles_and_long_names_still_draw() -> None:
    labels = [f"a rather long name, number {place}" for place in range(len(STYLES) + 2)]
    drawing = regret_panels(_panels(*labels))[0]
    assert all(label in drawing for label in labels)


def test_a_curve_without_any_regret_is_left_out_of_a_logarithmic_drawing() -> None:
    rounds = np.array([1.0, 10.0])
    nothing = Curve(label="nothing", rounds=rounds, mean=np.zeros(2), stderr=np.zeros(2))
    something = Curve(label="something", rounds=rounds, mean=np.ones(2), stderr=np.zeros(2))
    drawing = regret_panels([Panel(title="both", curves=(nothing, something))])[0]
    assert "something" in drawing
    assert ">nothing" not in drawing
    assert ">nothing" in regret_panels(
        [Panel(title="both", curves=(nothing, something))], logarithmic=False
    )[0]  # fmt: skip


def test_a_drawing_without_any_regret_is_still_a_drawing() -> None:
    rounds = np.array([1.0, 10.0])
    nothing = Curve(label="nothing", rounds=rounds, mean=np.zeros(2), stderr=np.zeros(2))
    for logarithmic in (True, False):
        drawing = regret_panels(
            [Panel(title="none", curves=(nothing,))], logarithmic=logarithmic
        )[0]  # fmt: skip
        assert {"none", "round", "pseudo-regret"} <= texts(drawing)
        assert ("nothing" in texts(drawing)) != logarithmic


@given(positions=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_spread_labels_keep_order_and_distance_and_stay_inside(positions: list[float]) -> None:
    before = np.array(positions)
    after = spread(before, step=0.1)
    order = np.argsort(before, kind="stable")
    assert (np.diff(after[order]) >= 0.1 - 1e-9).all()
    assert after.min() >= -1e-9
    assert after.max() <= 1.0 + 1e-9


def test_labels_far_enough_apart_stay_where_they_are() -> None:
    np.testing.assert_allclose(spread(np.array([0.9, 0.1, 0.5]), step=0.1), [0.9, 0.1, 0.5])


def test_logarithmic_ticks_are_powers_of_ten_and_finer_on_a_short_axis() -> None:
    assert LOGARITHMIC.ticks(50.0, 1e5) == pytest.approx([1e2, 1e3, 1e4, 1e5])
    assert LOGARITHMIC.ticks(15.0, 60.0) == pytest.approx([20.0, 50.0])


def test_plain_ticks_start_at_zero_and_stay_inside() -> None:
    ticks = PLAIN.ticks(0.0, 75_000.0)
    assert ticks[0] == 0.0
    assert ticks[-1] <= 75_000.0
    assert 3 <= len(ticks) <= 6


def test_axes_hold_every_band() -> None:
    panels = _panels("first", "second")
    top = max(curve.band()[1].max() for panel in panels for curve in panel.curves)
    for scale in (LOGARITHMIC, PLAIN):
        low, high = scale.height(panels)
        assert high > top
        assert low < min(curve.mean.min() for panel in panels for curve in panel.curves)


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


def points(drawing: str) -> list[ET.Element]:
    """The markers of curves between the axes, which are drawn with a white edge."""
    groups = ET.fromstring(drawing).iter(f"{SVG}g")  # noqa: S314  # our own
    marks = [mark for one in groups if one.get("clip-path") for mark in one.iter(f"{SVG}use")]
    return [mark for mark in marks if "#ffffff" in mark.get("style", "")]


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
        panel = Panel(title="one", curves=(curve,))
        drawing = drawings([panel], across=scale, up=scale)[0]
        assert {"one", "x"} <= texts(drawing.svg)
        assert "At the right end: x 2" in drawing.label
        assert points(drawing.svg)


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
