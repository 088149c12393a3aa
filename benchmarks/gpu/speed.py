"""Rounds a second by the device's own clock, compilation and sending aside."""

from collections.abc import Sequence

import numpy as np

from benchmarks.gpu.clock import Clocked, OutOfTimeError, tell
from benchmarks.gpu.compiling import beforehand
from benchmarks.gpu.settings import CHECKPOINTS, LANES, settings, simulation
from discreet.release import policies
from discreet.simulation._cuda._batch import Batch, Device, Replicates, lanes_for, macros
from discreet.simulation._cuda._plan import SMALL_DIM, plan
from discreet.simulation.environments import Sphere

ROUNDS = 20_000_000
EARLY = 20_000  # rounds in which releases are frequent
GRID = ((132, 32), (1_056, 32), (8_448, 4), (32_000, 4), (32_000, 1), (64_000, 1))
CONTENDERS = {
    "tight": "tight",
    "gaussian": "gaussian",
    "windows": "windows",
    "wishart": "wishart",
    "nonprivate": "nonprivate",
    "LinUCB": "nonprivate",
}
BARS = ("tight", "gaussian", "windows")  # of which so much is asked:
LEAST_RATE, MOST_MICROSECONDS = 2.5e9, 1.5  # at 64,000 replicates, and for each round at 132


def speed(
    device: Device,
    *,
    budget: float,
    names: Sequence[str],
    limit: float,
    early: int = EARLY,
    grid: Sequence[tuple[int, int]] = GRID,
    jobs: int = 0,
) -> None:
    """Time the rounds after the early ones, for ``budget`` seconds each."""
    clocked, world = Clocked(device, limit=limit), Sphere(dim=5, n_actions=25)
    found: dict[tuple[str, int], float] = {}
    plans = {}
    for name in names or CONTENDERS:
        policy = policies.UCB() if name == "LinUCB" else None
        what = simulation(CONTENDERS[name], world, policy, rounds=ROUNDS, epsilon=1.0)
        plans[name] = plan(what, np.array([ROUNDS]))
    shapes = (macros(made.shape, lane) for made in plans.values() for _, lane in grid)
    beforehand(clocked, shapes, jobs)
    for name, made in plans.items():
        for replicates, lanes in grid:
            try:
                parts = [Replicates(plan=made, seeds=range(replicates))]
                batch = Batch(clocked, parts, lanes)
                batch.advance(early)
                first = batch.seconds()
                count = min(ROUNDS - early, max(early // 20, int(early * budget / first)))
                batch.advance(count)
                seconds = batch.seconds()
            except OutOfTimeError:
                break
            found[name, replicates] = max(
                found.get((name, replicates), 0.0), replicates * count / seconds
            )
            tell(
                variant=name,
                replicates=replicates,
                lanes=batch.lanes,
                early_rounds_per_second=float(f"{replicates * early / first:.4g}"),
                rounds=count,
                seconds=round(seconds, 4),
                rounds_per_second=float(f"{replicates * count / seconds:.4g}"),
                microseconds_a_round=round(1e6 * seconds / count, 3),
            )
    tell(bars=bars(found), compiled=clocked.summary()["compiled"])


def bars(found: dict[tuple[str, int], float]) -> dict[str, bool | None]:
    """Which bars are reached, by rounds a second; None for what was not measured."""
    reached: dict[str, bool | None] = {}
    for name in BARS:
        few, many = found.get((name, 132)), found.get((name, 64_000))
        fast = None if few is None else 132e6 / few <= MOST_MICROSECONDS
        reached[f"{name}, at most {MOST_MICROSECONDS} us a round at 132 replicates"] = fast
        enough = None if many is None else many >= LEAST_RATE
        reached[f"{name}, at least {LEAST_RATE:.1e} rounds/s at 64,000 replicates"] = enough
    return reached


def small(device: Device, *, names: list[str], limit: float, jobs: int = 0) -> None:
    """A few rounds of each kind of shape, for a checker of memory and races."""
    usual = ["gap", "clusters", "12 features", "windows, ucb", "tight, thompson"]
    clocked = Clocked(device, limit=limit)
    wanted = []
    for name, what in settings(names or usual):
        made = plan(what, CHECKPOINTS[CHECKPOINTS <= 30])
        wanted += [(name, made, lane) for lane in LANES if made.shape.dim <= SMALL_DIM]
        if made.shape.dim > SMALL_DIM:
            wanted.append((name, made, lanes_for(made.shape, 40, clocked.processors)))
    beforehand(clocked, (macros(made.shape, lane) for _, made, lane in wanted), jobs)
    for name, made, lane in wanted:
        try:
            batch = Batch(clocked, [Replicates(plan=made, seeds=range(40))], lane)
            batch.advance(20)
            batch.advance(20)
        except OutOfTimeError:
            tell(not_reached=name)
            return
        tell(setting=name, lanes=batch.lanes, regret=float(batch.regrets()[0].mean()))
    tell(done=True)
