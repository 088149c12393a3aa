"""Running cells: on worker processes of this machine, or on an existing Dask or Ray cluster.

A backend is joblib's own: a context that yields `Workers`, with the errors that mean that one of
them was lost. `run` runs what is missing, hands on what is finished, and runs again what a lost
worker took with it. All imports of Dask and Ray are in here; nothing knows what is measured.
"""

import contextlib
import logging
import socket
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from discreet.errors import BackendError, CellError
from discreet.experiments._experiment import Finished, Task

PATIENCE = 20  # seconds to wait for a cluster's first word
LOSSES_ALLOWED = 3  # how often a cell may have been under way when a worker was lost


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Ready for work.

    Attributes:
        name: the backend, as joblib calls it.
        count: how many cells run at a time.
        lost: what joblib raises when a worker dies.
    """

    name: str
    count: int
    lost: tuple[type[BaseException], ...]

    def parallel(self) -> Any:  # noqa: ANN401  # joblib ships no types
        """A fresh `joblib.Parallel` that hands out cells one by one and results as they come."""
        return joblib.Parallel(
            n_jobs=self.count,
            return_as="generator_unordered",
            pre_dispatch=self.count,
            batch_size=1,
        )


Start = Callable[[int, str | None], AbstractContextManager[Workers]]


@contextmanager
def loky(jobs: int, address: str | None) -> Iterator[Workers]:
    """Processes on this machine."""
    if address is not None:
        raise BackendError("address", "has no meaning for loky; give --backend dask or ray with it")
    with joblib.parallel_config(backend="loky"):
        yield Workers(name="loky", count=jobs, lost=(BrokenProcessPool,))


@contextmanager
def dask(jobs: int, address: str | None) -> Iterator[Workers]:
    """A Dask cluster: the one at an address, or a local one of so many processes."""
    try:
        import distributed  # noqa: PLC0415  # an extra
    except ImportError:
        raise _not_installed("dask") from None
    with contextlib.ExitStack() as stack:
        place = address
        if place is None:
            place = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.ERROR,
                )
            )
        try:
            client = stack.enter_context(distributed.Client(place, timeout=PATIENCE))
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise _unreachable("Dask scheduler", address, error) from None
        count = sum(client.ncores().values())
        stack.enter_context(joblib.parallel_config(backend="dask"))
        lost = (distributed.scheduler.KilledWorker, distributed.comm.CommClosedError)
        yield Workers(name="dask", count=count, lost=lost)


@contextmanager
def ray(jobs: int, address: str | None) -> Iterator[Workers]:
    """A Ray cluster: the one at an address, or a local one of so many processes."""
    try:
        import ray as cluster  # noqa: PLC0415  # an extra
        from ray.util.joblib.ray_backend import RayBackend  # noqa: PLC0415  # as above
    except ImportError:
        raise _not_installed("ray") from None
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        options |= {"num_cpus": jobs, "include_dashboard": False, "address": "local"}
    else:
        _knock(address)
        options |= {"address": address}
    try:
        cluster.init(**options)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreachable("Ray cluster", address, error) from None
    # Ray's backend inherits from one whose pool must not be closed by a generator's thread. Its
    # own pool does not mind, and without this flag nothing would be kept before all is done.
    results_as_they_come = type("Ray", (RayBackend,), {"supports_return_generator": True})
    joblib.register_parallel_backend("ray", results_as_they_come)
    try:
        count = jobs if address is None else int(cluster.cluster_resources()["CPU"])
        with joblib.parallel_config(backend="ray"):
            yield Workers(name="ray", count=count, lost=(cluster.exceptions.RayError,))
    finally:
        cluster.shutdown()


BACKENDS: dict[str, Start] = {"loky": loky, "dask": dask, "ray": ray}


def _not_installed(extra: str) -> BackendError:
    return BackendError("backend", f"{extra} is not installed; run pip install 'discreet[{extra}]'")


def _unreachable(what: str, address: str | None, error: BaseException) -> BackendError:
    if address is None:
        return BackendError("backend", f"a local {what} did not start ({error})")
    return BackendError("address", f"no {what} answers at {address}; check that it is running")


def _knock(address: str) -> None:
    """Ray itself waits for minutes before it gives up on an address."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # a name that Ray understands, such as auto
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except OSError as error:
        raise _unreachable("Ray cluster", address, error) from None


class FinishedCells(Protocol):
    """Where finished cells are kept."""

    @property
    def finished(self) -> dict[str, Finished]:
        """Finished cells by key."""

    def add(self, cell: Finished) -> None:
        """Keep another finished cell."""


class InMemory:
    """Finished cells for as long as this process lives."""

    def __init__(self) -> None:
        """Start without any finished cell."""
        self.finished: dict[str, Finished] = {}

    def add(self, cell: Finished) -> None:
        """Keep another finished cell."""
        self.finished[cell.key] = cell


def run(
    tasks: Sequence[Task],
    kept: FinishedCells,
    workers: Workers,
    *,
    on_cell: Callable[[int], None] | None = None,
) -> None:
    """Run every task that is not finished yet.

    Args:
        tasks: all of them, the ones that take longest best first.
        kept: where finished ones go, at once.
        workers: where they run.
        on_cell: called with the number of finished tasks whenever there is another.
    """
    losses: Counter[str] = Counter()
    missing = _unfinished(tasks, kept)
    _prepare(missing)
    while missing:
        try:
            with closing(_run_once(missing, workers, losses)) as stream:
                for finished in stream:
                    kept.add(finished)
                    losses.pop(finished.key, None)
                    if on_cell is not None:
                        on_cell(len(kept.finished))
        except workers.lost as error:
            _judge(losses, error)
        missing = _unfinished(tasks, kept)


def _unfinished(tasks: Sequence[Task], kept: FinishedCells) -> list[Task]:
    finished = kept.finished
    return [task for task in tasks if task.key not in finished]


def _prepare(missing: Sequence[Task]) -> None:
    """Compile here, once, rather than in every worker at the same time."""
    for task in {task.experiment: task for task in missing}.values():
        task.cell.prepare()


def _run_once(
    missing: Sequence[Task], workers: Workers, losses: Counter[str]
) -> Generator[Finished]:
    """Until all are done or a worker is lost; ``losses`` then counts what was under way."""

    def handed_out() -> Iterator[object]:
        for task in missing:
            losses[task.key] += 1
            yield joblib.delayed(_attempt)(task)

    with _quietly_closing(workers.parallel()(handed_out())) as outcomes:
        for finished, trouble in outcomes:
            if trouble is not None:
                raise CellError("cell", f"{finished}: {trouble}")
            yield finished


@contextmanager
def _quietly_closing(outcomes: Any) -> Iterator[Any]:  # noqa: ANN401  # joblib ships no types
    """Close the outcomes at the end, without joblib's warning about tasks that were not run."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()


def _attempt(task: Task) -> tuple[Finished | str, str | None]:
    """In a worker. Errors travel as text: not all of them survive being pickled."""
    try:
        return task.run(), None
    except Exception as error:  # noqa: BLE001  # all of them are reported
        return task.key, f"{type(error).__name__}: {error}"


def _judge(losses: Counter[str], error: BaseException) -> None:
    """Go on, unless some cell was under way too often when a worker was lost."""
    worst = [key for key, count in losses.items() if count > LOSSES_ALLOWED]
    if worst:
        reason = type(error).__name__
        raise CellError(
            "cell",
            f"{worst[0]} lost its worker {LOSSES_ALLOWED + 1} times ({reason}); is there enough "
            "memory? Finished cells are kept: run the same command again to go on",
        ) from error
