"""Bars: met, missed or not measured, and nothing in between."""

import pytest

from benchmarks.speed import suite
from benchmarks.speed.results import BARS, Bar, BenchSection, bar_table, verdicts, written

AT_LEAST = Bar(name="speed", section="one", figure="rate", limit=2.0, least=True, unit="x")
AT_MOST = Bar(name="cost", section="one", figure="time", limit=3.0, least=False)


def section(**figures: float) -> BenchSection:
    return BenchSection(name="one", title="", rows=({"what": "x"},), figures=figures)


@pytest.mark.parametrize(
    ("rate", "verdict"), [(1.999, "missed"), (2.0, "met"), (5.0, "met"), (0.0, "missed")]
)
def test_a_lower_limit_must_be_reached(rate: float, verdict: str) -> None:
    assert [one.text for one in verdicts([section(rate=rate)], [AT_LEAST])] == [verdict]


@pytest.mark.parametrize(("time", "verdict"), [(3.001, "missed"), (3.0, "met"), (0.1, "met")])
def test_an_upper_limit_must_not_be_passed(time: float, verdict: str) -> None:
    assert [one.text for one in verdicts([section(time=time)], [AT_MOST])] == [verdict]


def test_a_figure_that_is_not_there_is_neither_met_nor_missed() -> None:
    (found,) = verdicts([section(rate=9.0)], [AT_MOST])
    assert found.text == "not measured"
    assert found.to_json()["measured"] is None


def test_a_figure_of_another_section_does_not_count() -> None:
    other = BenchSection(name="two", title="", rows=({"what": "x"},), figures={"rate": 9.0})
    assert verdicts([other], [AT_LEAST])[0].text == "not measured"


def test_the_table_says_what_was_measured_and_what_was_promised() -> None:
    _, columns, rows = bar_table(verdicts([section(rate=2.5)], [AT_LEAST, AT_MOST]))
    assert columns == ["what", "measured", "bar", "verdict"]
    assert rows == [
        ("speed", "2.5", "at least 2 x", "met"),
        ("cost", "-", "at most 3", "not measured"),
    ]


def test_every_bar_speaks_of_a_section_that_exists() -> None:
    assert {bar.section for bar in BARS} <= set(suite.SECTIONS)


def test_cells_are_written_with_three_digits() -> None:
    cells = (None, "text", 1234567, 1234567.0, 0.012345)
    assert [written(cell) for cell in cells] == ["-", "text", "1,234,567", "1,230,000", "0.0123"]
