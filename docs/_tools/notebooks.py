"""Notebooks as pages: text as it is, code as code, and the outputs that were kept below it."""

import json
from pathlib import Path
from typing import Any


def to_markdown(path: Path) -> str:
    """The Markdown of a notebook, with a line that says where the file is."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    made = [_cell(cell) for cell in cells]
    note = (
        f"*This page is the notebook `docs/notebooks/{path.name}` of the repository, with the "
        "outputs of one run. The tests run it.*"
    )
    title, _, rest = made[0].partition("\n")
    return "\n\n".join([title, note, rest, *made[1:]])


def _cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return text
    outputs = [shown for output in cell["outputs"] if (shown := _output(output))]
    return "\n\n".join([f"```python\n{text}\n```", *outputs])


def _output(output: dict[str, Any]) -> str:
    """What a cell printed or drew."""
    if "text" in output:
        return f"```text\n{''.join(output['text'])}\n```"
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return f"<figure>{''.join(data['image/svg+xml'])}</figure>"
    if "image/png" in data:
        image = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="Figure of the cell above" src="data:image/png;base64,{image}">'
    if "text/plain" in data:
        return f"```text\n{''.join(data['text/plain'])}\n```"
    return ""
