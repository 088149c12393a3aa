"""How numbers are written and small things are drawn; which releases are on a chart."""

from pathlib import Path

import pytest
from visiting import Browser, World, spec, world_in

from discreet.service.dashboard import _shown as shown
from discreet.service.dashboard._history import Histories, chart
from discreet.service.dashboard._learning import Band


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (0.25, "0.25"),
        (-0.25, "\N{MINUS SIGN}0.25"),
        (1e-6, "10⁻⁶"),
        (2.5e-7, "2.5 · 10⁻⁷"),
        (12345.0, "12,345"),
        (1e300, "10³⁰⁰"),
        (None, "\N{EN DASH}"),
        (float("nan"), "\N{EN DASH}"),
    ],
)
def test_numbers_are_written_as_people_write_them(value: float | None, text: str) -> None:
    assert shown.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "0.5 seconds"),
        (1, "1 second"),
        (90, "1.5 minutes"),
        (86400, "1 day"),
        (0, "0 seconds"),
    ],
)
def test_lengths_of_time_have_their_largest_unit(seconds: float, text: str) -> None:
    assert shown.duration(seconds) == text


def test_times_are_in_utc_for_those_without_scripts() -> None:
    text = '<time datetime="2027-01-15T08:00:00Z">2027-01-15 08:00:00 UTC</time>'
    assert shown.moment(1_800_000_000.0) == text
    assert shown.moment(None) == "\N{EN DASH}"


def test_names_of_coordinates_break_at_punctuation_and_are_escaped() -> None:
    assert shown.breakable("action.id=<b>") == "action.<wbr>id=<wbr>&lt;b&gt;"


def test_a_sparkline_needs_two_points_and_leaves_out_what_is_not_known() -> None:
    known = Band(estimate=0.5, low=0.0, high=1.0)
    hidden = Band(estimate=None, low=0.0, high=1.0)
    assert shown.sparkline([known], low=0, high=1) == ""
    drawn = str(shown.sparkline([hidden, known, known, None], low=0, high=1))
    assert drawn.count("80.0,") == 3  # the middle: both ends of its band, and its estimate
    assert 'class="curve" points="80.0,20.0 160.0,20.0"' in drawn


def test_an_interval_is_where_its_numbers_are() -> None:
    drawn = str(shown.interval(-1.0, 0.0, 3.0, reach=(-2.0, 2.0)))
    assert 'x="25.0%"' in drawn
    assert 'width="75.0%"' in drawn
    assert 'cx="50.0%"' in drawn
    assert 'class="zero"' in drawn
    without = str(shown.interval(0.0, None, 1.0, reach=(0.0, 1.0)))
    assert "circle" not in without
    assert "zero" not in without


def test_of_many_releases_a_chart_has_some_and_always_the_last(tmp_path: Path) -> None:
    with world_in(tmp_path) as world:
        world.do(world.core.create_bandit(spec("busy", epsilon=100.0), who="a test"))
        world.play("busy", 400)
        bandit = world.core.bandit("busy")
        last = bandit.ranker.release.number
        histories = Histories(world.core)
        for most in (8, 20, 48):
            points = world.do(histories.points(bandit, most))
            numbers = [point.number for _, point in points]
            assert most // 2 <= len(numbers) <= most + 1
            assert numbers == sorted(numbers)
            assert numbers[-1] == last
            step = numbers[1] - numbers[0]
            assert all(number % step == 0 for number in numbers[:-1])
            assert chart(points)["number"] == numbers


def test_before_any_release_a_chart_is_empty() -> None:
    empty = {"rows": [], "number": [], "made": [], "mean": None, "actions": []}
    assert chart([]) == empty


def test_a_page_that_is_looked_at_again_reads_no_release_again(
    world: World, reader: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/dashboard/data/bandits/news/learning"
    first = reader.get(path).json()

    async def forbidden(name: str, number: int | None) -> bytes:
        raise AssertionError((name, number))

    monkeypatch.setattr(world.core, "release_document", forbidden)
    assert reader.get(path).json() == first
