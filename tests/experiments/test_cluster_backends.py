"""A real local Dask cluster and a real local Ray: the same bytes, and a worker may die."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.errors import BackendError
from discreet.experiments import _folder as folder
from discreet.experiments import _reproduce as reproduce
from discreet.experiments import _run as running
from discreet.experiments._experiment import Scale
from discreet.experiments._reproduce import Request
from experiment_cells import Fragile, Square, plan_of

pytestmark = pytest.mark.cluster

CLUSTERS = ["dask", "ray"]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the cells of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)


def request(out: Path, backend: str, address: str | None = None) -> Request:
    return Request(
        name="shifts", scale=Scale.SMOKE, out=out, jobs=2, backend=backend, address=address
    )


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The results of worker processes on this machine."""
    out = tmp_path_factory.mktemp("loky") / "out"
    reproduce.reproduce(request(out, "loky"))
    return (out / "results.csv").read_bytes()


@pytest.mark.parametrize("backend", CLUSTERS)
def test_a_sweep_gives_the_same_bytes(backend: str, local: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out"
    reproduce.reproduce(request(out, backend))
    assert (out / "results.csv").read_bytes() == local


@pytest.mark.parametrize("backend", CLUSTERS)
def test_a_killed_worker_costs_a_retry_and_nothing_else(backend: str, tmp_path: Path) -> None:
    cells = [Fragile(seed=seed, folder=str(tmp_path)) for seed in range(6)]
    plan = plan_of(cells)
    with (
        folder.opened(tmp_path / "out", plan) as kept,
        running.BACKENDS[backend](2, None) as workers,
    ):
        running.run(plan.tasks, kept, workers)
        found = kept.finished
    assert cells[2].times() == 2
    assert [found[task.key].readings for task in plan.tasks] == [
        tuple(Square(seed=cell.seed).run()) for cell in cells
    ]


@pytest.fixture
def dask_address() -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


def test_a_sweep_runs_on_a_dask_cluster_that_is_there_already(
    dask_address: str, local: bytes, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    reproduce.reproduce(request(out, "dask", dask_address))
    assert (out / "results.csv").read_bytes() == local


HEAD = """
import ray, sys
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def ray_address() -> Iterator[str]:
    """A Ray that another process started."""
    with subprocess.Popen(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", HEAD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as head:
        assert head.stdout is not None
        yield head.stdout.readline().strip()
        head.communicate()


def test_a_sweep_runs_on_a_ray_cluster_that_is_there_already(
    ray_address: str, local: bytes, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    reproduce.reproduce(request(out, "ray", ray_address))
    assert (out / "results.csv").read_bytes() == local


@pytest.mark.parametrize(
    ("backend", "address"), [("dask", "tcp://127.0.0.1:9"), ("ray", "127.0.0.1:9")]
)
def test_an_address_where_nobody_answers_is_one_clear_error(
    backend: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.experiments._run.PATIENCE", 2)
    with pytest.raises(BackendError, match=f"answers at {address}"):
        reproduce.reproduce(request(tmp_path / "out", backend, address))
