"""Run notebooks and keep their outputs.

    python docs/_tools/run_notebooks.py docs/notebooks/*.ipynb

Nothing else is kept: no execution times, no counts, no names of kernels of this machine.
"""

import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat

SECONDS = 600  # for one cell; far more than it needs


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run in a folder of its own.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute()
    return notebook


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same without what differs from run to run for no reason."""
    notebook.metadata = {"language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = _tidy_outputs(cell.outputs)
    return notebook


def _tidy_outputs(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """What was printed, as one piece, and what was drawn; progress lines go."""
    printed = "".join(one.text for one in outputs if one.get("name") == "stdout")
    drawn = [one for one in outputs if one.output_type in {"display_data", "execute_result"}]
    for one in drawn:
        one.metadata = {}
        if "execution_count" in one:
            one.execution_count = None
    text = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
    return [*text, *drawn]


if __name__ == "__main__":
    for name in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as place:
            made = executed(name, Path(place))
        nbformat.write(tidy(made), name)
