"""Compiling beforehand, in processes: NVIDIA's compiler has locks that threads would wait for."""

import time
from collections.abc import Callable, Iterable

import joblib

from benchmarks.gpu.clock import named, tell
from discreet.simulation._cuda._batch import Device
from discreet.simulation._cuda._runtime import Gpu


def beforehand(
    shapes: Iterable[dict[str, int]], jobs: int, make: Callable[[], Device] = Gpu
) -> None:
    """Compile into CuPy's cache on disk, and tell how long each took; nothing with no processes."""
    if jobs == 0:
        return
    once, start = {named(one): one for one in shapes}, time.perf_counter()
    work = (joblib.delayed(_seconds)(make, one) for one in once.values())
    seconds = joblib.Parallel(n_jobs=jobs, batch_size=1)(work)
    tell(
        compiled_beforehand=dict(zip(once, seconds, strict=True)),
        processes=jobs,
        wall_seconds=round(time.perf_counter() - start, 2),
    )


def _seconds(make: Callable[[], Device], macros: dict[str, int]) -> float:
    device, start = make(), time.perf_counter()
    device.compiled(macros)
    return round(time.perf_counter() - start, 2)
