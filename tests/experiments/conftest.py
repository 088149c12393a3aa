import pytest

from discreet.experiments._cell import Finished
from discreet.experiments._experiment import Scale
from discreet.experiments._results import Results
from discreet.experiments._table import EXPERIMENTS


@pytest.fixture(scope="session")
def smoke_cells() -> list[Finished]:
    """Every experiment at the smallest scale, played in this process."""
    return [task.run() for one in EXPERIMENTS.values() for task in one.tasks(Scale.SMOKE)]


@pytest.fixture(params=list(EXPERIMENTS))
def experiment_and_results(request, smoke_cells):  # noqa: ANN001, ANN201
    """Each row of the table with what the smallest scale gives."""
    row = EXPERIMENTS[request.param]
    return row, Results.of(smoke_cells, row.name)
