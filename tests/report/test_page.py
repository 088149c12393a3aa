import json
import os
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from discreet import __version__
from discreet.report._curves import Curve, Panel
from discreet.report._figures import Exhibit, regret_drawings
from discreet.report._page import (
    Facts,
    Page,
    PageSection,
    Prose,
    Provenance,
    Statement,
    Statements,
    Table,
    replace_file,
)

NASTY = "<script>alert('&')</script>\"><img src=x>"


class Outline(HTMLParser):
    """What a browser would see: tags, references and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        names = {"src", "href", "xlink:href", "data", "action", "srcset", "poster"}
        self.references += [value or "" for name, value in attrs if name in names]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def page() -> Page:
    rounds = np.array([1.0, 10.0, 100.0])
    curve = Curve(label=NASTY, rounds=rounds, mean=rounds, stderr=0.1 * rounds)
    drawings = regret_drawings([Panel(title=NASTY, curves=(curve,))])
    table = Table(title=NASTY, columns=(NASTY, "number"), rows=((NASTY, NASTY), ("b", "12 ± 3")))
    blocks = (Prose(NASTY), Exhibit(name="x", drawings=drawings, caption=NASTY).block(), table)
    return Page(
        title=NASTY,
        lead=(Prose("first words"),),
        sections=(PageSection(heading=NASTY, blocks=blocks),),
        provenance=Facts(((NASTY, NASTY), ("seeds", "0 to 3"))),
    )


def test_every_tag_is_closed_in_order(page: Page) -> None:
    assert Outline(page.html()).open == []


def test_all_text_is_escaped(page: Page) -> None:
    seen = Outline(page.html())
    assert "script" not in seen.tags
    assert "img" not in seen.tags
    # Title twice, heading, prose, caption, label and title of the drawing, four in the table, two
    # facts; the drawing's alternative text is an attribute.
    assert sum(text.strip() == NASTY for text in seen.text) == 13


def test_nothing_is_asked_of_a_network(page: Page) -> None:
    text = page.html()
    seen = Outline(text)
    assert seen.references  # the drawing's own parts
    assert all(reference.startswith("#") for reference in seen.references)
    assert not {"link", "script", "iframe", "object", "embed", "base"} & set(seen.tags)
    assert "@import" not in text
    assert text.count("url(") == text.count("url(#")
    assert "default-src 'none'" in text


def test_the_page_fits_a_phone_and_a_printer(page: Page) -> None:
    text = page.html()
    assert 'name="viewport"' in text
    assert "@media print" in text


def test_writing_gives_the_whole_page_and_nothing_else(page: Page, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "report.html"
    assert page.write(target) == target
    assert target.read_text(encoding="utf-8") == page.html()
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_write_leaves_the_old_page_as_it_was(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    whole = Path.write_bytes

    def half(self: Path, data: bytes) -> int:
        whole(self, data[: len(data) // 2])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="disk full"):
        page.write(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_cannot_be_made_is_an_error(page: Page, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        page.write(tmp_path / "file" / "report.html")


def test_no_line_ends_between_a_number_and_its_uncertainty() -> None:
    assert Prose("lost 12 ± 3 in all").html() == "<p>lost 12&nbsp;±&nbsp;3 in all</p>"


def test_statements_are_escaped_and_say_their_verdict_in_words() -> None:
    item = Statement(
        text="a < b",
        mark="?",
        verdict="not decided",
        kind="open",
        details=(("measured", "1 & 2"), ("published", "")),
    )
    found = Statements(title="<All>", items=(item,)).html()
    assert "a &lt; b" in found
    assert "1 &amp; 2" in found
    assert "&lt;All&gt;" in found
    assert "not decided" in found
    assert "published" not in found


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = replace_file(tmp_path / "new" / "file", b"old")

    def fail(_self: Path, _target: Path) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no"):
        replace_file(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def _gathered() -> Provenance:
    return Provenance.gathered(
        command="discreet demo",
        started=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        seconds=61.4,
        workers=2,
    )


def test_provenance_says_how_when_and_with_what() -> None:
    facts = dict(_gathered().facts(("seeds", "0 to 3")).items)
    assert facts["run it again"] == "discreet demo"
    assert facts["seeds"] == "0 to 3"
    assert facts["started"] == "2024-05-06 07:08 UTC"
    assert facts["took"] == "61 seconds on 2 worker processes"
    assert f"{os.cpu_count()} cores" in facts["machine"]
    assert f"discreet {__version__}" in facts["versions"]
    assert all(name in facts["versions"] for name in ("python", "numpy", "numba"))


def test_provenance_survives_a_round_trip_through_json() -> None:
    found = _gathered().to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert datetime.fromisoformat(found["started"]) == _gathered().started
