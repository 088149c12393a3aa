import pytest

from discreet.experiments._experiment import Finished, Results, Scale
from discreet.experiments._reproduce import EXPERIMENTS


@pytest.fixture(scope="session")
def smoke_cells() -> list[Finished]:
    """Every experiment at the smallest scale, played in this process."""
    return [task.run() for one in EXPERIMENTS.values() for task in one.tasks(Scale.SMOKE)]


@pytest.fixture(params=list(EXPERIMENTS))
def experiment_and_results(request, smoke_cells):  # noqa: ANN001, ANN201
    """Each row of the table with what the smallest scale gives."""
    row = EXPERIMENTS[request.param]
    return row, Results.of(smoke_cells, row.name)
