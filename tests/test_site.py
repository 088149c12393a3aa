"""The site that `make docs` builds, and the check that looks at it: it finds what is wrong."""

from pathlib import Path

import pytest

from test_docs import load_tool

pytestmark = pytest.mark.docs
check = load_tool("check_site")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="gone.html">', "leads nowhere"),
        ('<a href="#gone">', "no such heading"),
        ('<a href="other.html#gone">', "no such heading"),
        ('<img src="gone.svg">', "leads nowhere"),
        ('<script src="https://cdn.example.org/x.js"></script>', "asks another host"),
        ('<link rel="stylesheet" href="//fonts.example.org/x.css">', "asks another host"),
        ("<p>A list:\n- one\n- two</p>", "shows as text"),
    ],
)
def test_the_check_finds_what_is_wrong(tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "other.html").write_text('<h1 id="here">')
    (tmp_path / "index.html").write_text(body)
    (found,) = check.troubles(tmp_path)
    assert said in found


def test_the_check_passes_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<h1 id="here">')
    text = (
        '<p id="a">A - b</p><a href="#a"><a href="other.html#here"><a href="https://example.org">'
    )
    (tmp_path / "index.html").write_text(text)
    assert check.troubles(tmp_path) == []


def test_a_style_sheet_that_loads_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>x</p>")
    (tmp_path / "site.css").write_text("@import 'https://fonts.example.org/x.css';")
    assert len(check.troubles(tmp_path)) == 1
