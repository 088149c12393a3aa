"""Cells run once, in any order, on any number of workers, and survive a worker's death."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import BackendError, CellError
from discreet.experiments import _folder as folder
from discreet.experiments import _run as running
from discreet.experiments._experiment import Finished
from discreet.experiments._folder import Plan
from experiment_cells import Failing, Fragile, Square, plan_of


def run(
    plan: Plan, out: Path, *, jobs: int = 1, on_cell: Callable[[int], None] | None = None
) -> dict[str, Finished]:
    with folder.opened(out, plan) as kept, running.BACKENDS["loky"](jobs, None) as workers:
        running.run(plan.tasks, kept, workers, on_cell=on_cell)
        return kept.finished


def test_every_cell_is_run_and_counted(tmp_path: Path) -> None:
    counts: list[int] = []
    found = run(plan_of([Square(seed=seed) for seed in range(5)]), tmp_path, on_cell=counts.append)
    assert len(found) == 5
    assert counts == [1, 2, 3, 4, 5]


def test_a_second_run_goes_on_where_the_first_was_interrupted(tmp_path: Path) -> None:
    cells = [Fragile(seed=seed, folder=str(tmp_path), deaths=0) for seed in range(5)]
    plan, out = plan_of(cells), tmp_path / "out"

    def interrupt(done: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, out, on_cell=interrupt)
    found = run(plan, out)
    assert len(found) == 5
    assert [cell.times() for cell in cells] == [1] * 5


def test_a_killed_worker_costs_a_retry_and_nothing_else(tmp_path: Path) -> None:
    cells = [Fragile(seed=seed, folder=str(tmp_path)) for seed in range(6)]
    found = run(plan_of(cells), tmp_path / "out", jobs=2)
    assert cells[2].times() == 2
    assert [found[task.key].readings for task in plan_of(cells).tasks] == [
        tuple(Square(seed=cell.seed).run()) for cell in cells
    ]
    lines = (tmp_path / "out" / folder.JOURNAL).read_text().splitlines()
    assert len(lines) == len(cells)


def test_a_cell_that_kills_every_worker_is_given_up_and_the_rest_is_kept(tmp_path: Path) -> None:
    cells = [Fragile(seed=seed, folder=str(tmp_path), victim=5, deaths=99) for seed in range(6)]
    plan, out = plan_of(cells), tmp_path / "out"
    with pytest.raises(CellError, match=r"lost its worker.*run the same command again"):
        run(plan, out, jobs=2)
    assert cells[5].times() == running.LOSSES_ALLOWED + 1
    with folder.opened(out, plan) as kept:
        assert len(kept.finished) == 5


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_cell_names_the_cell_and_the_error(tmp_path: Path, jobs: int) -> None:
    plan = plan_of([Failing(seed=seed) for seed in range(2)])
    with pytest.raises(CellError, match=r'"seed": [01].*AwkwardError: one and two'):
        run(plan, tmp_path, jobs=jobs)


def test_loky_has_no_address() -> None:
    with (
        pytest.raises(BackendError, match="dask or ray"),
        running.BACKENDS["loky"](1, "tcp://here:1"),
    ):
        pass


@pytest.mark.parametrize(("backend", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named(
    backend: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(BackendError, match=rf"discreet\[{backend}\]"),
        running.BACKENDS[backend](1, None),
    ):
        pass
