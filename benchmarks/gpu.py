"""The simulator on a GPU: does it agree with the processor, and how fast is it?

    python -m benchmarks.gpu reference ref.npz     processor: mean regret in every setting
    python -m benchmarks.gpu agreement ref.npz     GPU: the same settings, compared
    python -m benchmarks.gpu speed                 GPU: rounds a second
    python -m benchmarks.gpu experiments OUT       GPU: the paper's three experiments at full scale
    compute-sanitizer --tool racecheck python -m benchmarks.gpu small      GPU: a little of all

docs/gpu.md says what came of it.
"""

import argparse
import json
import lzma
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np

from discreet.experiments import _folder as folder
from discreet.experiments import _gpu as on_gpu
from discreet.experiments import _reproduce as again
from discreet.experiments._experiment import Scale
from discreet.experiments._run import InMemory
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.release import policies
from discreet.simulation import Simulation, run_seed
from discreet.simulation._cuda._batch import Batch, Replicates, lanes_for, macros
from discreet.simulation._cuda._plan import plan
from discreet.simulation._cuda._runtime import Gpu
from discreet.simulation.environments import (
    GAUSSIAN,
    Basis,
    Clusters,
    Environment,
    Fixed,
    Sphere,
)

ROUNDS = 10_000
CPU_SEEDS = 600
GPU_SEEDS = 4_000
FIRST_GPU_SEED = 1_000_000  # so that no seed is played on both
CHECKPOINTS = np.array([1, 3, 10, 30, 100, 300, 1_000, 2_000, 5_000, ROUNDS])
WORLDS: dict[str, Environment] = {
    "sphere": Sphere(dim=5, n_actions=25),
    "gap": Sphere(dim=5, n_actions=25, gap=0.1),
    "fixed": Fixed(dim=5, n_actions=25),
    "basis": Basis(dim=5),
    "clusters": Clusters(dim=5, n_actions=25),
    "gaussian rewards": Sphere(dim=5, n_actions=25, gap=0.1, rewards=GAUSSIAN),
}
VARIANTS = (
    *("windows", "tight", "nonprivate", "gaussian", "gaussian-opt"),
    *("wishart", "wishart-opt", "wishart-unshifted"),
)


def settings() -> Iterator[tuple[str, Simulation]]:
    """Every variant in every world, and then other policies, trees and dimensions."""
    for name, world in WORLDS.items():
        for variant in VARIANTS:
            yield f"{variant}, {name}", _simulation(variant, world)
        yield f"LinUCB, {name}", _simulation("nonprivate", world, policies.UCB())
    gap = WORLDS["gap"]
    for variant in ("gaussian", "tight"):
        yield f"{variant}, covering tree", _simulation(variant, gap, tree="covering")
        yield f"{variant}, thompson", _simulation(variant, gap, policies.Thompson())
    yield "tight, pan-private tree", _simulation("tight", gap, tree="pan-private")
    yield "tight, posterior", _simulation("tight", gap, policies.PosteriorUCB())
    yield "windows, ucb", _simulation("windows", gap, policies.UCB())
    yield "windows, uniform", _simulation("windows", gap, policies.PosteriorUCB(uniform=0.2))
    for dim in (2, 3, 8, 12, 20):
        world = Sphere(dim=dim, n_actions=2 * dim, gap=0.1)
        for variant in ("windows", "tight", "nonprivate", "gaussian", "wishart"):
            yield f"{variant}, {dim} features", _simulation(variant, world)
        yield f"LinUCB, {dim} features", _simulation("nonprivate", world, policies.UCB())


def _simulation(
    variant: str,
    world: Environment,
    policy: policies.PosteriorUCB | policies.UCB | policies.Thompson | None = None,
    *,
    tree: str | None = None,
    rounds: int = ROUNDS,
    epsilon: float = 8.0,
) -> Simulation:
    row = named(variant) if tree is None else named(variant).with_tree(tree)
    if variant.startswith("wishart"):
        epsilon = 1.0
    privacy = Privacy(epsilon=epsilon, delta=0.1) if row.private else None
    mechanism = calibrate(row, world.problem, horizon=rounds, privacy=privacy)
    return Simulation(environment=world, mechanism=mechanism, rounds=rounds, policy=policy)  # type: ignore[arg-type]


def reference(path: Path, jobs: int, seeds: int, names: list[str]) -> None:
    """Play every setting on the processor; mean and standard error at each checkpoint."""
    found = dict(np.load(path)) if path.exists() else {}
    for name, simulation in settings():
        if names and not any(part in name for part in names):
            continue
        run_seed(simulation, 0, np.array([1]))
        work = (joblib.delayed(run_seed)(simulation, seed, CHECKPOINTS) for seed in range(seeds))
        regrets = np.array(joblib.Parallel(n_jobs=jobs)(work))
        found[name] = np.array([regrets.mean(0), regrets.std(0, ddof=1) / np.sqrt(seeds)])
        print(name, found[name][:, -1], flush=True)
        np.savez(path, **found)


def agreement(path: Path, lanes: tuple[int, ...], *, every_lane: bool) -> None:
    """Play every setting on the GPU; by how many standard errors it differs."""
    known, gpu, every = np.load(path), Gpu(), []
    wanted = []
    for at, (name, simulation) in enumerate(settings()):
        made = plan(simulation, CHECKPOINTS)
        chosen = lanes if every_lane else (lanes[at % len(lanes)],)
        if made.shape.dim > 8:
            chosen = (lanes_for(made.shape, GPU_SEEDS, gpu.processors),)
        wanted += [(name, made, lane) for lane in chosen if name in known]
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda one: gpu.compiled(macros(one[1].shape, one[2])), wanted))
    for name, made, lane in wanted:
        seeds = range(FIRST_GPU_SEED, FIRST_GPU_SEED + GPU_SEEDS)
        batch = Batch(gpu, [Replicates(plan=made, seeds=seeds)], lane)
        while not batch.done:
            batch.advance(3_333)  # in parts, as users' runs are
        regrets, (mean, stderr) = batch.regrets()[0], known[name]
        own = regrets.std(0, ddof=1) / np.sqrt(len(regrets))
        scores = (regrets.mean(0) - mean) / np.hypot(own, stderr)
        every.append(scores)
        print(
            f"{name:32s} {lane:3d} lanes  {regrets.mean(0)[-1]:9.2f} {mean[-1]:9.2f}  z",
            *(f"{score:5.2f}" for score in scores),
            flush=True,
        )
    found = np.array(every)
    print(
        json.dumps(
            {
                "settings": len(found),
                "largest": float(abs(found).max()),
                "rms": float(np.sqrt((found**2).mean())),
                "rms_last": float(np.sqrt((found[:, -1] ** 2).mean())),
            }
        )
    )


_GRID = ((132, 32), (1_056, 32), (4_224, 4), (8_448, 4), (64_000, 1))


def speed(budget: float, names: list[str]) -> None:
    """Rounds a second by the device's own clock, compilation and sending aside."""
    gpu = Gpu()
    world = Sphere(dim=5, n_actions=25)
    rounds = 20_000_000
    contenders = {
        "tight": None,
        "gaussian": None,
        "windows": None,
        "wishart": None,
        "nonprivate": None,
        "LinUCB": policies.UCB(),
    }
    for name, policy in contenders.items():
        simulation = _simulation(
            "nonprivate" if name == "LinUCB" else name, world, policy, rounds=rounds, epsilon=1.0
        )
        made = plan(simulation, np.array([rounds]))
        if names and name not in names:
            continue
        for replicates, lanes in _GRID:
            start = time.perf_counter()
            batch = Batch(gpu, [Replicates(plan=made, seeds=range(replicates))], lanes)
            ready = time.perf_counter() - start
            batch.advance(20_000)  # past the early releases
            first = batch.seconds()
            count = max(1_000, int(20_000 * budget / first))
            batch.advance(count)
            second = batch.seconds()
            print(
                f"{name:11s} {replicates:6d} replicates {batch.lanes:3d} lanes  first 20,000: "
                f"{replicates * 2e4 / first:.2e}/s  then {count:8d}: "
                f"{replicates * count / second:.2e} rounds/s, {1e6 * second / count:.2f} us a "
                f"round  (ready in {ready:.1f} s)",
                flush=True,
            )


def experiments(out: Path, seeds: int) -> None:
    """The paper's three experiments in one go, then a folder and a report for each."""
    requests = [
        again.Request(
            name=name, scale=Scale.FULL, out=out / name, jobs=1, device="cuda", seeds=seeds
        )
        for name in ("dimension", "variants", "shifts")
    ]
    start, kept, gpu = time.perf_counter(), InMemory(), Gpu()
    tasks = [task for request in requests for task in request.plan().tasks]
    print(f"{len(tasks)} cells, planned in {time.perf_counter() - start:.1f} s", flush=True)
    start = time.perf_counter()
    try:
        on_gpu.run(
            tasks,
            kept,
            gpu,
            on_cell=lambda done: print(
                f"{time.perf_counter() - start:6.1f} s: {done} cells", flush=True
            ),
        )
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    with lzma.open(out / "cells.jsonl.xz", "wt", preset=1) as file:
        file.writelines(json.dumps(cell.to_json()) + "\n" for cell in kept.finished.values())
    total = sum(cell.settings["rounds"] for cell in kept.finished.values())
    seconds = time.perf_counter() - start
    print(f"{total:.3e} rounds in {seconds:.1f} s, {total / seconds:.2e} a second", flush=True)
    for request in requests:
        plan_ = request.plan()
        if any(task.key not in kept.finished for task in plan_.tasks):
            continue
        with folder.opened(request.out, plan_) as own:
            for task in plan_.tasks:
                own.add(kept.finished[task.key])
        found = again.reproduce(request)
        for title, rows in found.tables():
            print(title, *rows, sep="\n", flush=True)


def small() -> None:
    """A few rounds of each kind of shape, for a checker of memory and races."""
    gpu, names = Gpu(), ("gap", "clusters", "12 features", "windows, ucb", "tight, thompson")
    for name, simulation in settings():
        if not any(part in name for part in names):
            continue
        made = plan(simulation, np.array([40]))
        for lanes in (1, 4, 32) if made.shape.dim <= 8 else (0,):
            batch = Batch(gpu, [Replicates(plan=made, seeds=range(40))], lanes)
            batch.advance(30)
            batch.advance(30)
            print(name, batch.lanes, batch.regrets()[0].mean(), flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("reference", "agreement", "speed", "experiments", "small"))
    parser.add_argument("path", nargs="?", type=Path, default=Path("reference.npz"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=CPU_SEEDS)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of each measurement")
    parser.add_argument("--lanes", type=int, nargs="*", default=[1, 4, 32])
    parser.add_argument("--names", nargs="*", default=[], help="of settings; all if left out")
    parser.add_argument("--every-lane", action="store_true", help="not only one for each setting")
    given = parser.parse_args()
    if given.what == "reference":
        reference(given.path, given.jobs, given.seeds, given.names)
    elif given.what == "agreement":
        agreement(given.path, tuple(given.lanes), every_lane=given.every_lane)
    elif given.what == "experiments":
        experiments(given.path, given.seeds)
    elif given.what == "small":
        small()
    else:
        speed(given.budget, given.names)


if __name__ == "__main__":
    sys.exit(main())
