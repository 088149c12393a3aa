"""The documentation is true: its examples run, its links lead somewhere, its output is real."""

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import typer

from discreet.cli import app

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
COMMANDS = DOCS / "commands.md"
TUTORIAL = DOCS / "tutorial-rand.md"  # one program, which test_tutorial.py runs
PRODUCT = DOCS / "tutorials" / "product.md"  # needs a service: service/test_product_tutorial.py
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), ROOT / "deploy" / "README.md"]
PROGRAMS = [  # pages whose blocks are one program
    DOCS / "start.md",
    *(page for page in PAGES if page.parent.name in {"tutorials", "how-to"} and page != PRODUCT),
]

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
PRINTS = re.compile(
    r"```python\n(?P<code>[^`]*?)^```\n\nIt prints:\n\n```text\n(?P<said>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
INLINE = re.compile(r"`(discreet reproduce [^`-][^`]* --[^`]*)`")
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
    return [
        textwrap.dedent(found["body"])
        for found in FENCE.finditer(text)
        if found["info"].strip() == info
    ]


def run_program(page: Path) -> dict[str, str]:
    """Run all Python blocks of a page in one namespace; what each of them printed."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = {}
    for number, block in enumerate(blocks(page, "python"), start=1):
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            exec(compile(block, f"{page.name}, Python example {number}", "exec"), names)  # noqa: S102
        printed[block] = heard.getvalue()
    return printed


def promised_output(page: Path) -> dict[str, str]:
    """What a page says that its blocks print, by block."""
    return {one["code"]: one["said"] for one in PRINTS.finditer(page.read_text("utf-8"))}


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


def load_tool(name: str) -> ModuleType:
    """A script of docs/_tools."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(text: str) -> str:
    return " ".join(text.split())


def identity(page: Path) -> str:
    return str(page.relative_to(ROOT))


EXAMPLES = [(page, example) for page in PAGES for example in console_examples(page)]
CHEAP_EXAMPLES = [
    (page, example)
    for page, example in EXAMPLES
    if example.arguments[0] in CHEAP and example.output.strip()
]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in {TUTORIAL, PRODUCT, *PROGRAMS}], ids=identity
)
def test_each_python_example_of_a_page_runs_by_itself(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(blocks(page, "python"), start=1):
        code = compile(block, f"{page.name}, Python example {number}", "exec")
        exec(code, {"__name__": "__main__"})  # noqa: S102  # our own pages


@pytest.mark.parametrize("page", PROGRAMS, ids=identity)
def test_the_python_examples_of_a_guide_are_one_program(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = run_program(page)
    for block, said in promised_output(page).items():
        assert words(printed[block]) == words(said)


def test_the_study_replays_the_log_that_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / "tutorials" / "study.md"
    run_program(page)
    for example in console_examples(page):
        found = json.loads(printed(Example(f"{example.command} --json", "")))
        assert found["log"]["rows"] == 6_000
    assert (tmp_path / "banners.discreet").exists()


def test_the_first_example_prints_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks(README, "python")[0], {"__name__": "__main__"})  # noqa: S102
    assert words(capsys.readouterr().out) == words(blocks(README, "text")[0])


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert broken_links(page) == []


def test_the_command_line_accepts_every_example() -> None:
    assert EXAMPLES
    for _, example in EXAMPLES:
        parse(example.arguments)


def test_the_command_line_accepts_every_experiment_that_a_text_names() -> None:
    found = [one for page in PAGES for one in INLINE.findall(prose(page))]
    assert found
    for command in found:
        parse(shlex.split(command)[1:])


@pytest.mark.parametrize(
    ("page", "example"), CHEAP_EXAMPLES, ids=lambda one: getattr(one, "command", "")
)
def test_cheap_commands_print_what_a_page_shows(page: Path, example: Example) -> None:
    assert words(printed(example)) == words(example.output), page


def test_the_page_of_commands_shows_every_command() -> None:
    shown = {example.arguments[0] for example in console_examples(COMMANDS)}
    assert shown == set(typer.main.get_command(app).commands)


def test_the_references_are_what_the_parser_and_the_schema_say() -> None:
    reference = load_tool("reference")
    assert reference.CLI.read_text("utf-8") == reference.cli_page(), "run `make api`"
    assert reference.HTTP.read_text("utf-8") == reference.http_page(), "run `make api`"


@pytest.mark.parametrize("page", [*PROGRAMS, PRODUCT], ids=identity)
def test_a_guide_links_to_the_glossary(page: Path) -> None:
    assert "glossary.md" in page.read_text("utf-8")


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
