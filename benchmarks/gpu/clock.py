"""A device that is watched: how long it compiled, how long kernels took, and when to stop."""

import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.simulation._cuda._batch import Buffer, Device, Launch, Stream


class OutOfTimeError(Exception):
    """The time that was given is over."""


def tell(**facts: Any) -> None:  # noqa: ANN401  # anything that JSON has
    """Print facts as a line of JSON."""
    print(json.dumps(facts), flush=True)


@dataclass(kw_only=True)
class Noted:
    """One launch of a kernel, its rounds for each replicate, and when it was asked for."""

    kernel: str
    replicates: int
    rounds: int
    asked: float
    launch: Launch


@dataclass(kw_only=True)
class Compiled:
    """One kernel that was compiled, or loaded from CuPy's cache on disk."""

    kernel: str
    began: float
    seconds: float


class Clocked:
    """A device that notes what it does. It starts no launch after ``limit`` seconds."""

    def __init__(self, device: Device, *, limit: float = float("inf")) -> None:
        """Watch a device from now on."""
        self.launches: list[Noted] = []
        self.compilations: list[Compiled] = []
        self.limit = limit
        self._device, self._start = device, time.perf_counter()
        self._kernels: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    @property
    def processors(self) -> int:
        """How many multiprocessors the device has."""
        return self._device.processors

    def now(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def compiled(self, macros: dict[str, int]) -> Any:  # noqa: ANN401  # the device's own type
        """The kernel for one shape."""
        name = named(macros)
        if name not in self._kernels:
            began = self.now()
            kernel = self._device.compiled(macros)
            self._kernels[name], self._names[id(kernel)] = kernel, name
            self.compilations.append(Compiled(kernel=name, began=began, seconds=self.now() - began))
        return self._kernels[name]

    def put(self, array: NDArray[Any]) -> Buffer:
        """A copy on the device."""
        return self._device.put(array)

    def zeros(self, size: int) -> Buffer:
        """A buffer of zero bytes on the device."""
        return self._device.zeros(size)

    def stream(self, rank: int) -> Stream:
        """A new stream, which is watched."""
        return _ClockedStream(self, self._device.stream(rank))

    def name_of(self, kernel: object) -> str:
        """The name of a kernel that was compiled here."""
        return self._names[id(kernel)]

    def summary(self) -> dict[str, Any]:
        """What was compiled and launched until now. Waits for what is under way.

        Times of launches are the device's, in seconds after the first began. A launch begins when
        its stream is free, so what it waits for others is in them.
        """
        spans = [one.launch.span() for one in self.launches]
        first = min((began for began, _ in spans), default=0.0)
        spans = [(began - first, began - first + seconds) for began, seconds in spans]
        return {
            "wall_seconds": round(self.now(), 2),
            "first_launch_asked": round(min((one.asked for one in self.launches), default=0.0), 2),
            "kernel_seconds": round(covered(spans), 2),
            "ended_after_first": round(max((end for _, end in spans), default=0.0), 2),
            "compile_seconds": round(
                covered([(one.began, one.began + one.seconds) for one in self.compilations]), 2
            ),
            "compiled": {one.kernel: round(one.seconds, 2) for one in self.compilations},
            "kernels": self._by_kernel(spans),
        }

    def _by_kernel(self, spans: list[tuple[float, float]]) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for one, (began, ended) in zip(self.launches, spans, strict=True):
            own = found.setdefault(
                f"{one.kernel}, {one.replicates} replicates",
                {"began": round(began, 2), "launches": 0, "rounds": 0, "seconds": 0.0},
            )
            own["launches"] += 1
            own["rounds"] += one.rounds
            own["seconds"] = round(own["seconds"] + ended - began, 3)
            own["ended"] = round(ended, 2)
        return found


class _ClockedStream:
    """A stream that notes its launches, and starts none when the time is over."""

    def __init__(self, device: Clocked, stream: Stream) -> None:
        self._device, self._stream = device, stream

    def launch(
        self,
        function: Any,  # noqa: ANN401  # whatever compiles kernels has its own
        blocks: int,
        threads: int,
        arguments: tuple[Any, ...],
    ) -> Launch:
        asked = self._device.now()
        if asked > self._device.limit:
            raise OutOfTimeError
        *_, replicates, rounds = arguments
        noted = Noted(
            kernel=self._device.name_of(function),
            replicates=replicates,
            rounds=rounds,
            asked=asked,
            launch=self._stream.launch(function, blocks, threads, arguments),
        )
        self._device.launches.append(noted)
        return noted.launch


def named(macros: dict[str, int]) -> str:
    """A kernel's name: the macros that it was compiled with, but for what follows from others."""
    return " ".join(f"{name}={value}" for name, value in macros.items() if name != "BLOCK")


def covered(spans: list[tuple[float, float]]) -> float:
    """How much time spans cover, where those that overlap count once."""
    total, reached = 0.0, -np.inf
    for began, end in sorted(spans):
        total += max(0.0, end - max(began, reached))
        reached = max(reached, end)
    return float(total)
