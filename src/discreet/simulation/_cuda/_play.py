"""Everything that is asked for, on a device: shapes side by side, each some rounds at a time.

Between the parts of a run interrupts are handled and progress is reported.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from discreet.simulation._cuda._batch import Batch, Device, Launch, Replicates, lanes_for, macros
from discreet.simulation._cuda._plan import F64, SMALL_DIM, Shape, plan
from discreet.simulation._simulate import Simulation

_PART = 0.25  # seconds that a launch should take
_FIRST = 2_000  # rounds of the first
_QUEUED = 2  # launches, so that the device need not wait for the next
_PAUSE = 0.002  # seconds between looks at the device
_MOST = 512  # replicates for each processor in one batch: so many fit at a time
_COMPILERS = 2  # at a time: NVIDIA's compiler has locks, and the longest runs should not wait

Share = Callable[[float], None]


def play(
    device: Device, wanted: Sequence[Replicates], *, on_share: Share | None = None
) -> Iterator[tuple[int, Sequence[int], F64]]:
    """Play all seeds of all settings.

    Args:
        device: where.
        wanted: settings, each with its seeds.
        on_share: called now and then with the share of all rounds that has been played.

    Yields:
        The place of a setting in ``wanted``, some of its seeds, and their pseudo-regret at its
        checkpoints, shape (seeds, checkpoints), as soon as a batch is done.
    """
    total = sum(len(part.seeds) * part.plan.rounds for part in wanted)
    most, finished = _MOST * device.processors, 0.0
    waiting, under_way = grouped(device, wanted), list[_UnderWay]()
    ranks = {group: rank for rank, group in enumerate(waiting)}
    compiling = _Compiling(device, waiting)
    try:
        while waiting or under_way:
            held = sum(one.batch.replicates for one in under_way)
            group = compiling.next_of(waiting)
            if group is not None and (not under_way or held + group.replicates <= most):
                waiting.remove(group)
                under_way.append(_UnderWay(device, group, ranks[group]))
            for one in list(under_way):
                if not one.advance():
                    under_way.remove(one)
                    finished += one.rounds_played()
                    yield from one.results()
            if on_share is not None:
                ready = finished + sum(one.rounds_played() for one in under_way)
                on_share(min(1.0, ready / total))
            time.sleep(_PAUSE)
    finally:
        compiling.close()
        for one in under_way:  # after an interrupt: what they write to is not to be used again yet
            one.batch.seconds()


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Seeds of settings of one shape and as many rounds.

    Attributes:
        places: of those settings in what is wanted.
        parts: the seeds.
        lanes: threads for each of them.
    """

    places: list[int]
    parts: list[Replicates]
    lanes: int = 1

    @property
    def replicates(self) -> int:
        """How many there are."""
        return sum(len(part.seeds) for part in self.parts)

    @property
    def rounds(self) -> int:
        """How many rounds each of them has."""
        return self.parts[0].plan.rounds

    @property
    def shape(self) -> Shape:
        """What they have in common."""
        return self.parts[0].plan.shape

    @property
    def macros(self) -> dict[str, int]:
        """What has to be compiled for them."""
        return macros(self.shape, self.lanes)


class _Compiling:
    """Compiles for all groups in threads, in order: the first are played while others wait."""

    def __init__(self, device: Device, groups: Sequence[Group]) -> None:
        self._threads = ThreadPoolExecutor(_COMPILERS)
        shapes = {group: group.macros for group in groups}
        once = {
            tuple(shape.items()): self._threads.submit(device.compiled, shape)
            for shape in {tuple(one.items()): one for one in shapes.values()}.values()
        }
        self._pending = {group: once[tuple(shape.items())] for group, shape in shapes.items()}

    def close(self) -> None:
        """Compile nothing that has not begun: nobody waits for it after an interrupt."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def next_of(self, waiting: Sequence[Group]) -> Group | None:
        """The first group that can be played, if any; an error of its compiler is raised."""
        for group in waiting:
            if self._pending[group].done():
                self._pending[group].result()
                return group
        return None


class _UnderWay:
    """A group on the device."""

    def __init__(self, device: Device, group: Group, rank: int) -> None:
        self._group, self._pace, self._played = group, _FIRST, 0
        self._queue: deque[tuple[int, Launch]] = deque()
        self.batch = Batch(device, group.parts, group.lanes, rank)

    def advance(self) -> bool:
        """Start what there is room for in the queue; whether anything is left to wait for.

        A launch has as many rounds as take `_PART` seconds, by how long the last one took.
        """
        while self._queue and self._queue[0][1].done:
            last, launch = self._queue.popleft()
            faster = _PART / max(1e-6, launch.span()[1])
            self._pace = max(1, int(last * min(4.0, max(0.25, faster))))
            self._played = min(self._played + last, self._group.rounds)
        while len(self._queue) < _QUEUED and not self.batch.done:
            self._queue.append((self._pace, self.batch.advance(self._pace)))
        return bool(self._queue)

    def rounds_played(self) -> float:
        """In launches that have ended."""
        return float(self._group.replicates * self._played)

    def results(self) -> Iterator[tuple[int, Sequence[int], F64]]:
        group = self._group
        for place, part, found in zip(group.places, group.parts, self.batch.regrets(), strict=True):
            yield place, part.seeds, found


def grouped(device: Device, wanted: Sequence[Replicates]) -> list[Group]:
    """Settings of one shape and length together, as many seeds as fit; the longest runs first.

    Of runs as long as each other those with Wishart noise come first: their rounds take longest.
    """
    most = _MOST * device.processors
    alike: dict[tuple[Shape, int], list[tuple[int, Replicates]]] = {}
    for place, part in enumerate(wanted):
        alike.setdefault((part.plan.shape, part.plan.rounds), []).append((place, part))
    found = []
    for members in alike.values():
        found += [
            Group(places=[place for place, _ in some], parts=[part for _, part in some])
            for some in _filled(members, most)
        ]
    found.sort(key=lambda group: (-group.rounds, not group.shape.wishart))
    return [replace(group, lanes=_lanes(group, found, device.processors)) for group in found]


def _lanes(group: Group, groups: Sequence[Group], processors: int) -> int:
    """How many threads play one replicate of a group, where all are played side by side.

    So many that the device is busy for as long as the longest runs take. Where these are no more
    than half of the work they get four times as many, as all others can end before them.
    """
    if group.shape.dim > SMALL_DIM:
        return lanes_for(group.shape, group.replicates, processors)
    small = [one for one in groups if one.shape.dim <= SMALL_DIM]
    longest = max(one.rounds for one in small)
    load = sum(one.replicates * one.rounds for one in small) / longest
    long = sum(one.replicates for one in small if one.rounds == longest)
    ahead = 4 if group.rounds == longest and long <= load / 2 else 1
    return lanes_for(group.shape, load / ahead, processors)


def _filled(
    members: list[tuple[int, Replicates]], most: int
) -> Iterator[list[tuple[int, Replicates]]]:
    """Members in groups of at most ``most`` seeds; a member may be in several."""
    group: list[tuple[int, Replicates]] = []
    room = most
    for place, part in members:
        start = 0
        while start < len(part.seeds):
            seeds = part.seeds[start : start + room]
            group.append((place, Replicates(plan=part.plan, seeds=seeds)))
            start, room = start + len(seeds), room - len(seeds)
            if room == 0:
                yield group
                group, room = [], most
    if group:
        yield group


def played(
    device: Device,
    simulation: Simulation,
    seeds: Sequence[int],
    *,
    on_seed: Callable[[int], None] | None = None,
) -> tuple[list[int], F64]:
    """Play seeds of one simulation; an interrupt ends it early.

    Args:
        device: where.
        simulation: what to play.
        seeds: which.
        on_seed: called with how many seeds are done, as a share of all their rounds.

    Returns:
        The seeds that were played, in the order of ``seeds``, and their pseudo-regret, shape
        (S, checkpoints). Batches may end in any order.
    """

    def on_share(share: float) -> None:
        if on_seed is not None:
            on_seed(int(share * len(seeds)))

    wanted = [Replicates(plan=plan(simulation, simulation.checkpoints()), seeds=seeds)]
    done: list[int] = []
    regrets: list[F64] = []
    try:
        for _, some, found in play(device, wanted, on_share=on_share):
            done.extend(some)
            regrets.append(found)
    except KeyboardInterrupt:
        if not done:
            raise
    places = {seed: place for place, seed in enumerate(seeds)}
    order = sorted(range(len(done)), key=lambda at: places[done[at]])
    return [done[at] for at in order], np.concatenate(regrets)[order]
