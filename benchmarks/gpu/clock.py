"""A device that is watched: how long it compiled, how long kernels took, and when to stop."""

import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.simulation._cuda._batch import Buffer, Device, Stream


class OutOfTimeError(Exception):
    """The time that was given is over."""


def tell(**facts: Any) -> None:  # noqa: ANN401  # anything that JSON has
    """Print facts as a line of JSON."""
    print(json.dumps(facts), flush=True)


@dataclass(kw_only=True)
class Launch:
    """One launch of a kernel: times in seconds after the start, rounds for each replicate."""

    kernel: str
    replicates: int
    rounds: int
    began: float
    seconds: float = 0.0


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
        self.launches: list[Launch] = []
        self.compilations: list[Compiled] = []
        self.limit = limit
        self._device, self._start = device, time.perf_counter()
        self._kernels: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._streams: list[_ClockedStream] = []

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

    def stream(self) -> Stream:
        """A new stream, which is watched."""
        self._streams.append(_ClockedStream(self, self._device.stream()))
        return self._streams[-1]

    def name_of(self, kernel: object) -> str:
        """The name of a kernel that was compiled here."""
        return self._names[id(kernel)]

    def summary(self) -> dict[str, Any]:
        """What was compiled and launched until now. Waits for what is under way."""
        for stream in self._streams:
            stream.settle()
        spans = [(one.began, one.began + one.seconds) for one in self.launches]
        return {
            "wall_seconds": round(self.now(), 2),
            "kernel_seconds": round(covered(spans), 2),
            "first_launch": round(min((began for began, _ in spans), default=0.0), 2),
            "last_launch_ended": round(max((end for _, end in spans), default=0.0), 2),
            "compile_seconds": round(
                covered([(one.began, one.began + one.seconds) for one in self.compilations]), 2
            ),
            "compiled": {one.kernel: round(one.seconds, 2) for one in self.compilations},
            "kernels": self._by_kernel(),
        }

    def _by_kernel(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for one in self.launches:
            own = found.setdefault(
                one.kernel, {"began": one.began, "launches": 0, "rounds": 0, "seconds": 0.0}
            )
            own["replicates"] = one.replicates
            own["launches"] += 1
            own["rounds"] += one.rounds
            own["seconds"] = round(own["seconds"] + one.seconds, 3)
            own["ended"] = round(one.began + one.seconds, 2)
        return found


class _ClockedStream:
    """A stream that reads its own clock before each launch and at the end."""

    def __init__(self, device: Clocked, stream: Stream) -> None:
        self._device, self._stream = device, stream
        self._open: Launch | None = None

    def launch(self, function: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:  # noqa: ANN401  # whatever compiles kernels has its own
        self.settle()
        if self._device.now() > self._device.limit:
            raise OutOfTimeError
        *_, replicates, rounds = arguments
        self._open = Launch(
            kernel=self._device.name_of(function),
            replicates=replicates,
            rounds=rounds,
            began=round(self._device.now(), 4),
        )
        self._stream.launch(function, blocks, threads, arguments)

    def busy(self) -> bool:
        return self._stream.busy()

    def wait(self) -> None:
        self._stream.wait()
        self.settle()

    def seconds(self) -> float:
        return self._stream.seconds()

    def settle(self) -> None:
        """Note how long the last launch took; waits for it."""
        if self._open is not None:
            self._open.seconds = self._stream.seconds()
            self._device.launches.append(self._open)
            self._open = None


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
