"""Check the built site: links and anchors resolve, and no page asks anything of another host.

python docs/_tools/check_site.py site
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
LOADING_LINKS = {"stylesheet", "icon", "preconnect", "preload", "dns-prefetch", "modulepreload"}
CSS_URL = re.compile(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)")
UNPARSED = re.compile(
    r"^(?:[-*] |\d{1,2}\. |\|.*\|$)", re.MULTILINE
)  # lists and tables that were not seen


class Page(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.unparsed: list[str] = []
        self._paragraph: list[str] | None = None
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to."""
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        for name in ("href", "src"):
            value = given.get(name)
            if not value or value.startswith("data:"):
                continue
            loading = (tag, name) in LOADS
            if tag == "link":
                loading = bool(LOADING_LINKS & set((given.get("rel") or "").split()))
            (self.loads if loading else self.links).append(value)
        if tag == "p":
            self._paragraph = []

    def handle_endtag(self, tag: str) -> None:
        """Look at a paragraph for Markdown that was taken for text."""
        if tag == "p" and self._paragraph is not None:
            text = "".join(self._paragraph)
            if "\n" in text and UNPARSED.search(text.partition("\n")[2]):
                self.unparsed.append(text[:80])
            self._paragraph = None

    def handle_data(self, data: str) -> None:
        """Gather a paragraph's text."""
        if self._paragraph is not None:
            self._paragraph.append(data)


def elsewhere(url: str) -> bool:
    """Whether a URL is on another host."""
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme in {"http", "https"}


def _link_trouble(page: Page, url: str, pages: dict[Path, Page], site: Path) -> str | None:
    parts = urlsplit(url)
    if elsewhere(url) or parts.scheme in {"mailto", "javascript"}:
        return None
    target = page.path
    if parts.path:
        start = site if parts.path.startswith("/") else page.path.parent
        target = (start / unquote(parts.path).lstrip("/")).resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return f"leads nowhere: {url}"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return f"no such heading: {url}"
    return None


def troubles(site: Path) -> list[str]:
    """Everything that is wrong with a built site, a line each."""
    site = site.resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: asks another host: {url}" for url in page.loads if elsewhere(url)]
        for url in [*page.links, *page.loads]:
            if trouble := _link_trouble(page, url, pages, site):
                found.append(f"{name}: {trouble}")
        if path.name != "404.html":
            found += [f"{name}: Markdown shows as text: {text!r}" for text in page.unparsed]
    for sheet in sorted(site.rglob("*.css")):
        for match in CSS_URL.finditer(sheet.read_text("utf-8")):
            if elsewhere(match[1] or match[2]):
                found.append(f"{sheet.relative_to(site)}: asks another host: {match[0]}")
    return found


if __name__ == "__main__":
    wrong = troubles(Path(sys.argv[1]))
    print("\n".join(wrong) or f"{sys.argv[1]}: links resolve, nothing is asked of other hosts")  # noqa: T201
    sys.exit(bool(wrong))
