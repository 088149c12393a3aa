"""Compiling apart from playing: what users would wait for."""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.gpu.clock import named, tell
from discreet.simulation._cuda._batch import Device


def beforehand(device: Device, shapes: Iterable[dict[str, int]], jobs: int) -> None:
    """Compile in so many threads, and tell how long each took; nothing with none."""
    if jobs == 0:
        return
    once, start = {named(one): one for one in shapes}, time.perf_counter()

    def seconds(shape: dict[str, int]) -> float:
        began = time.perf_counter()
        device.compiled(shape)
        return round(time.perf_counter() - began, 2)

    with ThreadPoolExecutor(jobs) as threads:
        taken = list(threads.map(seconds, once.values()))
    tell(
        compiled_beforehand=dict(zip(once, taken, strict=True)),
        threads=jobs,
        wall_seconds=round(time.perf_counter() - start, 2),
    )
