"""The notebooks run from top to bottom; what they assert holds."""

from pathlib import Path

import pytest

from test_docs import DOCS, load_tool

NOTEBOOKS = DOCS / "notebooks"
LARGEST = 100_000  # bytes of a notebook with its outputs


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("paper", marks=pytest.mark.docs),
        pytest.param("audit", marks=pytest.mark.docs),
        pytest.param("rand", marks=pytest.mark.data),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the kernel's own libraries
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    run = load_tool("run_notebooks")
    done = run.executed(NOTEBOOKS / f"{name}.ipynb", tmp_path)
    assert any(cell.get("outputs") for cell in done.cells)


def test_there_are_three_and_their_outputs_are_kept_and_small() -> None:
    found = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert [one.stem for one in found] == ["audit", "paper", "rand"]
    for one in found:
        text = one.read_text("utf-8")
        assert len(text) < LARGEST
        assert '"output_type"' in text
