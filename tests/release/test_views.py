"""Notebook views: small, escaped, and made of public objects alone."""

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from discreet import Guarantee, Ledger, LinUCB, Privacy, Problem, _tables
from discreet.errors import ParameterError
from discreet.release.posterior import Estimate
from helpers import EARLY

NASTY = "<script>alert('&')</script>\"><img src=x>"


class Cells(HTMLParser):
    """The cells of a table, and the names of all tags; every tag has to be closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data
        if self.open and self.open[-1] in {"td", "th"}:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def bandit() -> LinUCB:
    problem = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
    privacy = Privacy(epsilon=5, delta=1e-6)
    found = LinUCB(problem, horizon=5000, privacy=privacy, variant=EARLY)
    found.observe(np.tile(np.eye(3), (1000, 1)), np.tile([0.7, 0.1, -0.5], 1000))
    assert found.release.number > 6
    return found


def test_every_public_object_has_a_view_of_what_it_holds(bandit: LinUCB) -> None:
    release, ledger = bandit.release, bandit.ledger
    seen = Cells(release._repr_html_())
    assert f"Release {release.number}" in seen.words
    assert f"{release.rows:,}" in seen.cells
    assert str(release.guarantee) in seen.words
    seen = Cells(bandit.guarantee._repr_html_())
    assert {"5", "1e-06", "replacement"} <= set(seen.cells)
    assert str(bandit.guarantee) in seen.words
    seen = Cells(ledger._repr_html_())
    assert ledger.head in seen.words
    assert ledger.entries[0].sha256 in seen.cells
    assert ledger.entries[3].sha256 not in seen.cells
    assert f"{len(ledger) - 6} more" in seen.cells
    seen = Cells(bandit.diagnosis._repr_html_())
    assert str(bandit.diagnosis) in seen.words
    assert "yes" in seen.cells or "no" in seen.cells
    seen = Cells(bandit.posterior._repr_html_())
    for number in bandit.posterior.centre:
        assert f"{number:.5g}" in seen.cells
    found = bandit.estimate(np.eye(3))
    seen = Cells(found._repr_html_())
    expected = [f"{number:.5g}" for line in zip(*found, strict=True) for number in line]
    assert [cell for cell in seen.cells[4:] if cell not in {"0", "1", "2"}] == expected


def test_before_the_first_release_and_without_a_promise_there_is_a_view_too() -> None:
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    fresh = LinUCB(problem, horizon=100, variant="nonprivate")
    for one in (fresh.release, fresh.guarantee, fresh.ledger, fresh.diagnosis, fresh.posterior):
        seen = Cells(one._repr_html_())
        assert seen.words
    assert "table" not in Cells(fresh.guarantee._repr_html_()).tags
    wishart = LinUCB(
        problem,
        horizon=100,
        privacy=Privacy(epsilon=0.1, delta=1e-6),
        variant="wishart",
        noise="float",
    )
    assert "tells actions apart" not in wishart.diagnosis._repr_html_()


def test_texts_of_strangers_are_escaped(bandit: LinUCB) -> None:
    evil = replace(bandit.guarantee, argument=NASTY, record=NASTY, neighbours=NASTY)
    other = replace(bandit.release, mechanism=replace(bandit.mechanism, variant=NASTY))
    for page in (
        evil._repr_html_(),
        Guarantee.nothing(NASTY)._repr_html_(),
        other._repr_html_(),
        Ledger({"text": NASTY})._repr_html_(),
        _tables.as_html((NASTY,), [(NASTY,)], title=NASTY, notes=[NASTY]),
    ):
        seen = Cells(page)
        assert NASTY in seen.words
        assert not {"script", "img"} & set(seen.tags)


def test_a_long_estimate_is_cut_and_says_so() -> None:
    numbers = np.arange(60.0)
    page = Estimate(numbers, numbers - 1, numbers + 1)._repr_html_()
    assert page.count("<tr>") == 51
    assert "10 more are not shown." in page


def test_a_plot_shows_the_intervals_with_their_names(bandit: LinUCB) -> None:
    found = bandit.estimate(np.eye(3))
    axes = found.plot(labels=["$one$", "two", "three"])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["$one$", "two", "three"]
    segments = axes.collections[0].get_segments()  # type: ignore[attr-defined]
    np.testing.assert_allclose([one[:, 0] for one in segments], np.stack(found[1:], axis=1))
    points = axes.lines[-1]
    np.testing.assert_allclose(points.get_xdata(), found.estimate)
    axes.figure.canvas.draw()
    mine = Figure().add_subplot()
    assert found.plot(mine) is mine
    assert bandit.posterior.plot(mine, labels="abc") is mine
    assert bandit.posterior.plot().get_xlabel() == "parameter"
    for one in (found, bandit.posterior):
        with pytest.raises(ParameterError, match="labels"):
            one.plot(labels=["a"])


def test_views_load_no_plotting_library_and_plots_leave_no_figure_behind() -> None:
    code = (
        "import sys, numpy as np\n"
        "from discreet.release.posterior import Estimate\n"
        "found = Estimate(*np.eye(3))\n"
        "found._repr_html_()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "found.plot()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  # our own text


def test_a_text_table_lines_up() -> None:
    lines = _tables.as_text(("a", "long name"), [("1", "x"), ("123", "")]).splitlines()
    assert lines == ["a    long name", "---  ---------", "1    x", "123"]
