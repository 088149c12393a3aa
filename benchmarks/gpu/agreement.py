"""The same settings on the processor and on the GPU: mean regrets, in standard errors apart."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks.gpu.clock import Clocked, OutOfTimeError, tell
from benchmarks.gpu.compiling import beforehand
from benchmarks.gpu.settings import CHECKPOINTS, settings
from discreet.simulation import Simulation, run_seed
from discreet.simulation._cuda._batch import Batch, Device, Replicates, lanes_for, macros
from discreet.simulation._cuda._plan import ADDRESSES, SMALL_DIM, Plan, plan

GPU_SEEDS = 4_000
FIRST_GPU_SEED = 1_000_000  # so that no seed is played on both
LEAST_SEEDS = 500  # on the processor
LARGEST, RMS = 4.0, 1.2  # that are allowed, in standard errors


def reference(path: Path, *, jobs: int, seeds: int, names: list[str]) -> None:
    """Play settings on the processor, but for those that are in the file as they are now."""
    found = _read(path)
    for name, simulation in settings(names):
        facts = sketch(plan(simulation, CHECKPOINTS))
        if name in found and found[name]["seeds"] >= seeds and _alike(found[name]["of"], facts):
            continue
        found[name] = {"of": facts, "seeds": seeds, **_played(simulation, jobs, seeds)}
        tell(setting=name, seeds=seeds, regret=found[name]["mean"][-1])
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found, indent=1), encoding="utf-8")
        part.replace(path)


def agreement(
    path: Path,
    device: Device,
    *,
    lanes: Sequence[int],
    names: list[str],
    limit: float,
    jobs: int = 0,
) -> None:
    """Play settings on the GPU, with one of ``lanes`` in turn; by how much each differs.

    What the reference does not have, or has from before the setting changed, is told and left out.
    """
    known, clocked = _read(path), Clocked(device, limit=limit)
    wanted, missing = [], []
    for at, (name, simulation) in enumerate(settings(names)):
        made = plan(simulation, CHECKPOINTS)
        if name not in known or not _alike(known[name]["of"], sketch(made)):
            missing.append(name)
            continue
        chosen = lanes[at % len(lanes)]
        if made.shape.dim > SMALL_DIM:  # in turn as if there were many, and few
            chosen = lanes_for(made.shape, (GPU_SEEDS, 1)[at % 2], clocked.processors)
        wanted.append((name, made, chosen))
    found, left = [], [name for name, _, _ in wanted]
    beforehand(clocked, (macros(made.shape, chosen) for _, made, chosen in wanted), jobs)
    try:
        for name, made, chosen in wanted:
            scores, means = _compared(clocked, made, chosen, known[name])
            left.remove(name)
            found.append(scores)
            rounded = [round(float(score), 2) for score in scores]
            cpu = known[name]["mean"][-1]
            tell(setting=name, lanes=chosen, z=rounded, gpu=means[-1], cpu=cpu)
    except OutOfTimeError:
        pass
    seeds = min((one["seeds"] for one in known.values()), default=0)
    tell(**verdict(np.array(found), seeds), not_in_reference=missing, not_reached=left)


def verdict(scores: np.ndarray, seeds: int) -> dict[str, Any]:
    """What all scores, shape (settings, checkpoints), say together."""
    if scores.size == 0:
        return {"settings": 0, "agrees": None}
    largest, rms = float(np.abs(scores).max()), float(np.sqrt((scores**2).mean()))
    return {
        "settings": len(scores),
        "cpu_seeds": seeds,
        "largest": round(largest, 3),
        "rms": round(rms, 3),
        "rms_last": round(float(np.sqrt((scores[:, -1] ** 2).mean())), 3),
        "agrees": largest <= LARGEST and rms <= RMS and seeds >= LEAST_SEEDS,
    }


def sketch(made: Plan) -> dict[str, Any]:
    """What tells a setting from what it was before the package changed."""
    numbers = [float(made.record[name][0]) for name in made.record.dtype.names]
    fields = numbers[: len(numbers) - len(ADDRESSES)]
    tables = [float(value) for name in made.tables for value in _sums(made.tables[name])]
    world = repr(made.simulation.environment)
    return {
        "shape": hashlib.sha256(f"{made.shape} {world}".encode()).hexdigest()[:12],
        "numbers": fields + tables,
    }


def _sums(table: np.ndarray) -> tuple[float, float]:
    finite = table[np.isfinite(table)].astype(np.float64)
    return finite.sum(), (finite**2).sum()


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether sketches agree, up to what another machine's rounding does to them."""
    same = one["shape"] == other["shape"] and len(one["numbers"]) == len(other["numbers"])
    return same and np.allclose(one["numbers"], other["numbers"], rtol=1e-4, equal_nan=True)


def _played(simulation: Simulation, jobs: int, seeds: int) -> dict[str, list[float]]:
    run_seed(simulation, 0, np.array([1]))
    work = (joblib.delayed(run_seed)(simulation, seed, CHECKPOINTS) for seed in range(seeds))
    regrets = np.array(joblib.Parallel(n_jobs=jobs)(work))
    error = regrets.std(axis=0, ddof=1) / np.sqrt(seeds)
    return {"mean": regrets.mean(axis=0).tolist(), "stderr": error.tolist()}


def _compared(
    device: Device, made: Plan, lanes: int, known: dict[str, Any]
) -> tuple[np.ndarray, list[float]]:
    seeds = range(FIRST_GPU_SEED, FIRST_GPU_SEED + GPU_SEEDS)
    batch = Batch(device, [Replicates(plan=made, seeds=seeds)], lanes)
    while not batch.done:
        batch.advance(made.rounds // 3)  # in parts, as users' runs are
    regrets = batch.regrets()[0]
    own = regrets.std(axis=0, ddof=1) / np.sqrt(len(regrets))
    error = np.maximum(np.hypot(own, known["stderr"]), 1e-12)
    mean = regrets.mean(axis=0)
    return (mean - known["mean"]) / error, mean.tolist()


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found
