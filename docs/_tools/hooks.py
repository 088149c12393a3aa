"""What MkDocs does for this site beyond its configuration.

- Pages that live outside of docs/ (CONTRIBUTING.md and the like) and notebooks become pages.
- Each public module gets a page of its docstrings.
- Links are written for readers of the repository; here they are turned towards the site's pages.
"""

import importlib.util
import logging
import posixpath
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OUTSIDE = {  # page of the site: file of the repository
    "project/contributing.md": "CONTRIBUTING.md",
    "project/security.md": "SECURITY.md",
    "project/conduct.md": "CODE_OF_CONDUCT.md",
    "project/changelog.md": "CHANGELOG.md",
    "project/deploy.md": "deploy/README.md",
}
LINK = re.compile(r"(?P<open>\]\()(?P<target>[^)\s]+)(?P<close>\))")
FENCED = re.compile(r"(^[ ]*```.*?^[ ]*```$)", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("http://", "https://", "mailto:", "#")
log = logging.getLogger("mkdocs.hooks.discreet")


def _load(name: str, path: Path) -> ModuleType:
    """A script beside this one, as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101  # a path that ends in .py
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


make_api = _load("make_api", DOCS / "make_api.py")
notebooks = _load("notebooks", DOCS / "_tools" / "notebooks.py")


def heading_anchor(text: str, separator: str) -> str:
    """The anchor that code forges make of a heading, so that links work there and here."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", separator)


def module_page(name: str) -> str:
    """The page of a public module, as a path in docs/."""
    return f"reference/python/{name}.md"


def on_config(config: Any, **_: Any) -> Any:  # noqa: ANN401  # MkDocs's own type
    """Put a page for each public module into the navigation, and set how anchors are made."""
    reference = next(entry["Reference"] for entry in config["nav"] if "Reference" in entry)
    python = next(entry for entry in reference if isinstance(entry, dict) and "Python" in entry)
    python["Python"] = [{name: module_page(name)} for name in make_api.MODULES]
    explanation = next(entry["Explanation"] for entry in config["nav"] if "Explanation" in entry)
    explanation += _unnamed_pages(config["nav"])
    config["mdx_configs"]["toc"]["slugify"] = heading_anchor
    return config


def _unnamed_pages(nav: object) -> list[str]:
    """Pages directly in docs/ that the navigation forgot: they go to the end of Explanation."""
    named = set(re.findall(r"[\w./-]+\.md", repr(nav)))
    return sorted(page.name for page in DOCS.glob("*.md") if page.name not in named)


def on_files(files: Files, *, config: Any, **_: Any) -> Files:  # noqa: ANN401
    """Add the pages that are made."""
    for page, source in OUTSIDE.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=text))
    for notebook in sorted((DOCS / "notebooks").glob("*.ipynb")):
        page = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, page, content=notebooks.to_markdown(notebook)))
    for name, about in make_api.MODULES.items():
        text = make_api.reference_page(name, about)
        files.append(File.generated(config, module_page(name), content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, config: Any, **_: Any) -> str:  # noqa: ANN401
    """Turn links towards the site's pages, and link the list of public names to their pages."""
    here = page.file.src_uri
    if here == "api.md":
        markdown = re.sub(r"^## `(discreet[\w.]*)`$", _linked_heading, markdown, flags=re.MULTILINE)
    parts = FENCED.split(markdown)
    for number, part in enumerate(parts):
        if part.startswith("```") or part.lstrip().startswith("```"):
            parts[number] = part.replace("```python fragment", "```python")
        else:
            parts[number] = LINK.sub(lambda found: _link(found, here, files, config), part)
    return "".join(parts)


def _linked_heading(found: re.Match[str]) -> str:
    name = found[1]
    return f"{found[0]}\n\n[All of `{name}`]({module_page(name)})."


def _link(found: re.Match[str], here: str, files: Files, config: Any) -> str:  # noqa: ANN401
    """The same link for the site, or as it is if it leads to a page of docs/ or elsewhere."""
    target = found["target"]
    if target.startswith(ELSEWHERE):
        return found[0]
    path, _, anchor = target.partition("#")
    source = OUTSIDE.get(here, f"docs/{here}")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    there = _page_of(wanted, files, config)
    if there is None:
        return found[0]
    moved = posixpath.relpath(there, posixpath.dirname(here) or ".")
    return f"{found['open']}{moved}{'#' + anchor if anchor else ''}{found['close']}"


def _page_of_folder(folder: Path) -> str:
    """The README of a folder of docs/, or of the next one above that has one."""
    while not (folder / "README.md").is_file() and folder != DOCS:
        folder = folder.parent
    return "index.md" if folder == DOCS else f"{folder.relative_to(DOCS).as_posix()}/README.md"


def _page_of(path: str, files: Files, config: Any) -> str | None:  # noqa: ANN401
    """Where a file of the repository is on the site; files that are no pages are copied."""
    by_source = {source: page for page, source in OUTSIDE.items()}
    if path in by_source:
        return by_source[path]
    if path == "README.md":
        return "index.md"
    if path.endswith(".ipynb"):
        return path.removeprefix("docs/").removesuffix(".ipynb") + ".md"
    if path.startswith("docs/"):
        return _page_of_folder(ROOT / path) if (ROOT / path).is_dir() else path[len("docs/") :]
    if not (ROOT / path).is_file():
        log.warning("a link leads to %s, which is not in the repository", path)
        return None
    copy = f"files/{path}"
    if files.get_file_from_path(copy) is None:
        files.append(File.generated(config, copy, content=(ROOT / path).read_bytes()))
    return copy
