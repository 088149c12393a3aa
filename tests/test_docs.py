"""The documentation is true: its examples run, its links lead somewhere, its output is real."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from discreet.cli import app

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial-rand.md"  # one program, which test_tutorial.py runs
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]

FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
OUTSIDE = ("http://", "https://", "mailto:")
PRETTY = "| python3 -m json.tool"
CHEAP = ("plan", "variants")


@dataclass(frozen=True)
class Example:
    """A command that a page shows, and what the page says it prints."""

    command: str
    output: str

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.command.removesuffix(PRETTY))[1:]


def blocks(page: Path, info: str) -> list[str]:
    """The code blocks of a page with exactly this info string."""
    text = page.read_text(encoding="utf-8")
    return [found["body"] for found in FENCE.finditer(text) if found["info"].strip() == info]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    broken = []
    for found in LINK.finditer(prose(page)):
        target = found["target"]
        if target.startswith(OUTSIDE):
            continue
        name, _, anchor = target.partition("#")
        other = page.parent / name if name else page
        if not other.exists() or (anchor and anchor not in anchors(other)):
            broken.append(target)
    return broken


def console_examples(page: Path) -> list[Example]:
    """Every `$ discreet ...` of a page, with the lines below it."""
    examples = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith("discreet "):
                examples.append(Example(command, output))
    return examples


def parse(arguments: list[str]) -> None:
    """Raise a usage error unless the command line accepts these arguments."""
    group = typer.main.get_command(app)
    with group.make_context("discreet", list(arguments)) as context:
        name, command, rest = group.resolve_command(context, list(arguments))
        command.make_context(name, rest, parent=context).close()


def printed(example: Example) -> str:
    """What a command prints on a terminal of 80 columns."""
    result = subprocess.run(  # noqa: S603  # our own command line
        [sys.executable, "-m", "discreet", *example.arguments],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1", "TERM": "dumb"},
    )
    if example.command.endswith(PRETTY):
        return json.dumps(json.loads(result.stdout), indent=4)
    return result.stdout


def words(text: str) -> str:
    return " ".join(text.split())


EXAMPLES = console_examples(README)
CHEAP_EXAMPLES = [example for example in EXAMPLES if example.arguments[0] in CHEAP]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != TUTORIAL], ids=lambda page: page.name
)
def test_the_python_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(blocks(page, "python"), start=1):
        code = compile(block, f"{page.name}, Python example {number}", "exec")
        exec(code, {"__name__": "__main__"})  # noqa: S102  # our own pages


def test_the_first_example_prints_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks(README, "python")[0], {"__name__": "__main__"})  # noqa: S102
    assert words(capsys.readouterr().out) == words(blocks(README, "text")[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.command)
def test_the_command_line_accepts_the_readmes_examples(example: Example) -> None:
    parse(example.arguments)


@pytest.mark.parametrize("example", CHEAP_EXAMPLES, ids=lambda example: example.command)
def test_cheap_commands_print_what_the_readme_shows(example: Example) -> None:
    assert words(printed(example)) == words(example.output)


def test_the_readme_shows_every_command() -> None:
    shown = {example.arguments[0] for example in EXAMPLES}
    assert shown == set(typer.main.get_command(app).commands)


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](#here) [b](#gone) [c](page.md#here) [d](none.md) [e](http://x.y)\n"
    )
    assert broken_links(page) == ["#gone", "none.md"]


@pytest.mark.parametrize("arguments", [["plan", "--no-such-option"], ["plan"], ["nonsense"]])
def test_a_wrong_command_line_is_noticed(arguments: list[str]) -> None:
    usage_error = next(
        base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
    )
    with pytest.raises(usage_error):
        parse(arguments)
