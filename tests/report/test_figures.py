import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report._curves import LOGARITHMIC, PLAIN, Curve, Panel
from discreet.report._figures import STYLES, regret_drawings, spread

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
    drawings = regret_panels(_panels("first", "second"), logarithmic=logarithmic)
    for drawing, title in zip(drawings, ("left", "right"), strict=True):
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
    drawings = regret_panels(_panels("first", "second"))
    ids = [set(re.findall(r'\bid="([^"]+)"', drawing)) for drawing in drawings]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    for own, drawing in zip(ids, drawings, strict=True):
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
        ET.fromstring(drawing)  # noqa: S314


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
