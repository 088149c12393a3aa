"""A release says one version everywhere, and takes along what it needs."""

import re
import tomllib
from pathlib import Path

import discreet

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_same_in_the_package_the_citation_and_the_changelog() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == discreet.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.MULTILINE)
    coming = re.search(r"^To become (\d+\.\d+\.\d+)\b", changelog, re.MULTILINE)
    assert discreet.__version__ == (coming[1] if coming else released[0])


def test_the_changelog_has_only_kinds_that_keep_a_changelog_knows() -> None:
    kinds = re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_sdist_takes_along_every_page_of_the_root() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    assert {f"/{page.name}" for page in ROOT.glob("*.md")} <= included


def test_the_workflow_calls_make_targets_and_the_one_script() -> None:
    text = (ROOT / ".github" / "workflows" / "checks.yml").read_text("utf-8")
    made = set(
        re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    runs = re.findall(r"- run: (.*)$", text, re.MULTILINE)
    assert runs
    for command in runs:
        assert command == ".ci/run" or command.removeprefix("make ") in made, command
