"""Replicates of one shape that are under way on a device, some rounds at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.simulation._cuda._plan import (
    ADDRESSES,
    F64,
    POSTERIOR,
    RADIUS,
    SMALL_DIM,
    Plan,
    Shape,
    seed_numbers,
)

_SCALARS = 5  # of a replicate's state; see rounds.cu
_THREADS = 256  # for each processor: with more, replicates wait for each other
_MEDIUM_DIM = 32  # up to here half as many threads are faster where there are many replicates
_BLOCK = 128
_SHARED = 48 * 1024  # bytes that the threads of a block have in common


class Buffer(Protocol):
    """Memory of a device."""

    @property
    def address(self) -> int:
        """Its address in the device's memory."""

    def read(self, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
        """A copy of what it holds."""


class Launch(Protocol):
    """A kernel that was started, by the device's own clock."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""

    def span(self) -> tuple[float, float]:
        """When it began, in seconds after the device was opened, and how long it took.

        Waits until it has ended.
        """


class Stream(Protocol):
    """Work of a device that is done in order."""

    def launch(
        self,
        function: Any,  # noqa: ANN401  # whatever compiles kernels has its own
        blocks: int,
        threads: int,
        arguments: tuple[Any, ...],
    ) -> Launch:
        """Start a kernel, after those that were started before; returns at once."""


class Device(Protocol):
    """What can play: see `_runtime`."""

    @property
    def processors(self) -> int:
        """How many multiprocessors it has."""

    def compiled(self, macros: dict[str, int]) -> Any:  # noqa: ANN401  # its own type
        """The kernel for one shape."""

    def put(self, array: NDArray[Any]) -> Buffer:
        """A copy on the device."""

    def zeros(self, size: int) -> Buffer:
        """A buffer of ``size`` zero bytes on the device."""

    def stream(self, rank: int) -> Stream:
        """A new stream; where several have work, lower ranks go first."""


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """Seeds of one setting.

    Attributes:
        plan: the setting.
        seeds: which.
    """

    plan: Plan
    seeds: Sequence[int]


def lanes_for(shape: Shape, replicates: float, processors: int) -> int:
    """How many threads play one replicate: more if there are few, so that none is idle."""
    if shape.dim > SMALL_DIM:
        if replicates > 2 * processors:
            return 64 if shape.dim <= _MEDIUM_DIM else 128
        return next((lanes for lanes in (128, 256) if lanes >= shape.actions), 512)
    room = _THREADS * processors / replicates
    return next((lanes for lanes in (32, 16, 8, 4, 2) if lanes <= room), 1)


class Batch:
    """All replicates of one shape on a device."""

    def __init__(
        self, device: Device, parts: Sequence[Replicates], lanes: int = 0, rank: int = 0
    ) -> None:
        """Send everything there; ``lanes`` 0 to choose them by the number of replicates."""
        self.parts = tuple(parts)
        shape = self.parts[0].plan.shape
        self.shape, self.replicates = shape, sum(len(part.seeds) for part in self.parts)
        self.lanes = lanes or lanes_for(shape, self.replicates, device.processors)
        self.rounds = max(part.plan.rounds for part in self.parts)
        self.played = 0
        made = macros(shape, self.lanes)
        self._block = made["BLOCK"]
        self._kernel = device.compiled(made)
        self._stream = device.stream(rank)
        self._last: Launch | None = None
        self._points = max(len(part.plan.checkpoints) for part in self.parts)
        self._send(device)

    def _send(self, device: Device) -> None:
        owned: list[Buffer] = []
        settings = np.concatenate([part.plan.record for part in self.parts])
        for at, part in enumerate(self.parts):
            for name in ADDRESSES:
                owned.append(device.put(part.plan.tables[name]))
                settings[name][at] = owned[-1].address
        counts = [len(part.seeds) for part in self.parts]
        numbers = [seed_numbers(part.plan, seed) for part in self.parts for seed in part.seeds]
        worlds = np.array([world for _, world in numbers])
        kept = max(part.plan.kept for part in self.parts)
        state = 2 * self.shape.packed + _SCALARS
        if self.shape.dim > SMALL_DIM:
            state += self.shape.packed + 2 * self.shape.dim**2
        arguments = (
            device.put(settings),
            device.put(np.repeat(np.arange(len(counts), dtype=np.int32), counts)),
            device.put(np.array([states for states, _ in numbers])),
            device.zeros(8 * state * self.replicates),
            device.zeros(8 * kept * self.replicates),
            kept,
            device.put(np.ascontiguousarray(worlds.T) if self.lanes == 1 else worlds),
            worlds.shape[1],
            device.zeros(8 * self._points * self.replicates),
            self.replicates,
        )
        self._arguments, self._tables, self._regrets = arguments, owned, arguments[8]

    @property
    def done(self) -> bool:
        """Whether all rounds are played, or will be when the last launch is done."""
        return self.played >= self.rounds

    def advance(self, rounds: int) -> Launch:
        """Start some more rounds of every replicate that has any left."""
        blocks = -(-self.replicates * self.lanes // self._block)
        arguments = (*self._arguments, rounds)
        self._last = self._stream.launch(self._kernel, blocks, self._block, arguments)
        self.played = min(self.played + rounds, self.rounds)
        return self._last

    def busy(self) -> bool:
        """Whether rounds are being played."""
        return self._last is not None and not self._last.done

    def seconds(self) -> float:
        """How long the last launch took; waits for it."""
        return self._last.span()[1] if self._last is not None else 0.0

    def regrets(self) -> list[F64]:
        """For each part the pseudo-regret so far, shape (seeds, its checkpoints)."""
        self.seconds()
        every = self._regrets.read(np.float64, (self._points, self.replicates)).T
        found, start = [], 0
        for part in self.parts:
            count, points = len(part.seeds), len(part.plan.checkpoints)
            found.append(every[start : start + count, :points].copy())
            start += count
        return found


def _block(shape: Shape, lanes: int) -> int:
    """How many threads a block has: fewer where its replicates need too much memory in common."""
    if shape.dim > SMALL_DIM:
        return lanes
    threads = _BLOCK
    while lanes > 1 and threads // lanes * _shared(shape) > _SHARED:
        threads //= 2
    return threads


def _shared(shape: Shape) -> int:
    """Bytes that a replicate of few features needs, as `play` in rounds.cu declares them."""
    posterior, radius = shape.rule == POSTERIOR, shape.rule == RADIUS
    packed, square = shape.packed, 1 if radius else shape.dim**2
    doubles = (packed, packed if posterior else 1, square, square, 1, shape.dim, shape.dim)
    floats = (2 * packed if shape.wishart else 1, shape.dim + 1)
    sizes = [8 * count for count in doubles] + [4 * count for count in floats]
    return sum(-(-size // 16) * 16 for size in sizes)


def macros(shape: Shape, lanes: int) -> dict[str, int]:
    """What `rounds.cu` is compiled with."""
    return {
        "DIM": shape.dim,
        "ACTIONS": shape.actions,
        "LANES": lanes,
        "BLOCK": _block(shape, lanes),
        "RULE": shape.rule,
        "SHARING": shape.sharing,
        "WORLD": shape.world,
        "WISHART": int(shape.wishart),
        "SAMPLING": int(shape.sampling),
        "EVERY_ROUND": int(shape.every_round),
    }
