"""Write the references of the command line and of HTTP, from the parser and the schema.

`make api` runs this. A test compares the pages with what this would write.
"""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import typer

from discreet.cli import app
from discreet.service._openapi import document

FOLDER = Path(__file__).parents[1] / "reference"
CLI = FOLDER / "cli.md"
HTTP = FOLDER / "http.md"

_CLI_HEAD = """# The command line

Made from the program's own parser by `make api`. Every command but `serve` prints a table, or with
`--json` one JSON object and nothing else on standard output. Long work shows its progress on
standard error. An error is one line on standard error and exit code 2. [What the commands
print](../commands.md) has examples; the words are in the [glossary](../glossary.md).
"""

_HTTP_HEAD = """# HTTP and JSON

Made from the service's own OpenAPI schema by `make api`; a running service has the same at
`/openapi.json`. [The service](../service.md) says what the calls mean, which statuses and error
codes there are, and how keys and scopes work. JSON in and out; times are seconds since 1970. The
words are in the [glossary](../glossary.md).
"""


def _cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("\\[", "[").replace("|", "\\|")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _command(name: str, command: Any, parent: Any) -> str:  # noqa: ANN401  # click's, or typer's own
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    records = [one.get_help_record(context) for one in command.params]
    shown = [(f"`{_cell(name)}`", _cell(about)) for name, about in filter(None, records)]
    options = [row for row in shown if row[0].startswith("`-")]
    arguments = [row for row in shown if row not in options]
    parts = [f"## `{context.command_path}`", _paragraphs(command.help), f"```text\n{usage}\n```"]
    if arguments:
        parts.append(_table(("argument", "meaning"), arguments))
    if options:
        parts.append(_table(("option", "meaning"), options))
    return "\n\n".join(parts)


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(one.split()) for one in text.split("\n\n"))


def cli_page() -> str:
    """The page of the command line."""
    group: Any = typer.main.get_command(app)
    with group.make_context("discreet", [], resilient_parsing=True) as context:
        sections = [
            _command(name, command, context) for name, command in sorted(group.commands.items())
        ]
    return "\n\n".join([_CLI_HEAD.rstrip(), *sections]) + "\n"


def _type(schema: dict[str, Any]) -> str:
    """The type of a field in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    kind = schema.get("type", "any JSON")
    if kind == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    return str(kind)


def _limits(schema: dict[str, Any]) -> str:
    names = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
        "minLength": "{} or more characters",
        "maxLength": "at most {} characters",
        "minItems": "{} or more items",
        "maxItems": "at most {} items",
        "pattern": "matches `{}`",
    }
    return ", ".join(text.format(schema[key]) for key, text in names.items() if key in schema)


def _meanings(attributes: str) -> dict[str, str]:
    """The fields of an ``Attributes:`` section, each with what is said of it."""
    found = re.finditer(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE)
    return {one[1]: " ".join(one[2].split()).rstrip(".") for one in found}


def _schema(name: str, schema: dict[str, Any]) -> str:
    about, _, attributes = inspect.cleandoc(schema.get("description", "")).partition("Attributes:")
    meanings = _meanings(attributes)
    parts = [f"### {name}"]
    if about:
        parts.append(_paragraphs(about.strip()))
    if "properties" not in schema:
        parts.append(f"A {_type(schema)}" + (f", {_limits(schema)}." if _limits(schema) else "."))
        return "\n\n".join(parts)
    required = schema.get("required", ())
    rows = [
        (
            f"`{field}`",
            _type(one).replace("|", "\\|"),
            "required" if field in required else f"`{json.dumps(one.get('default'))}`",
            _cell("; ".join(filter(None, [meanings.get(field, ""), _limits(one)]))),
        )
        for field, one in schema["properties"].items()
    ]
    parts.append(_table(("field", "type", "default", "meaning and limits"), rows))
    return "\n\n".join(parts)


def _body(content: dict[str, Any]) -> str:
    return " or ".join(
        _type(one["schema"]) if kind == "application/json" else f"text (`{kind}`)"
        for kind, one in content["content"].items()
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    about = f"{operation['summary']} {operation.get('description', 'Needs no key.')}"
    parts = [f"### `{method.upper()} {path}`", about]
    if "requestBody" in operation:
        parts.append(f"Body: {_body(operation['requestBody'])}.")
    rows = []
    refused = []
    for status, answer in operation["responses"].items():
        if answer["description"] == "Refused.":
            refused.append(status)
        else:
            rows.append((status, _body(answer) if "content" in answer else "no body"))
    if refused:
        rows.append((", ".join(refused), "refused: [ErrorAnswer](#erroranswer)"))
    parts.append(_table(("status", "answer"), rows))
    return "\n\n".join(parts)


def http_page() -> str:
    """The page of HTTP and JSON."""
    made = document()
    calls = [
        _operation(path, method, operation)
        for path, operations in made["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    ]
    schemas = [_schema(*one) for one in sorted(made["components"]["schemas"].items())]
    text = "\n\n".join([_HTTP_HEAD.rstrip(), "## Calls", *calls, "## Bodies", *schemas]) + "\n"
    return re.sub(r"[ \t]+\n", "\n", text)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    CLI.write_text(cli_page(), encoding="utf-8")
    HTTP.write_text(http_page(), encoding="utf-8")
