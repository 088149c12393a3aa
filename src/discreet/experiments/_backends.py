"""Where cells run: worker processes of this machine, or an existing Dask or Ray cluster.

Each backend is joblib's own. A backend is a context that yields what `joblib.Parallel` needs and
the errors that mean that a worker was lost; all imports of Dask and Ray are in here.
"""

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
from joblib.externals.loky.process_executor import BrokenProcessPool

from discreet.errors import BackendError

PATIENCE = 20  # seconds to wait for a cluster's first word


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
        raise _missing("dask") from None
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
        from ray.util.joblib.ray_backend import RayBackend  # noqa: PLC0415
    except ImportError:
        raise _missing("ray") from None
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


def _missing(extra: str) -> BackendError:
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
