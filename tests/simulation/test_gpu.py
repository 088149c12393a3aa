"""On a GPU: lanes share the work of a replicate, and the result is that of one lane."""

import numpy as np
import pytest
from test_gpu_source import (
    CASES,
    CHECKPOINTS,
    FAR,
    MORE_CASES,
    OPTIONS,
    ROUNDS,
    VARIANTS,
    simulation,
)

from discreet.release.policies import UCB
from discreet.simulation import run_seed, simulate
from discreet.simulation._cuda._batch import Batch, Replicates
from discreet.simulation._cuda._plan import plan
from discreet.simulation._cuda._runtime import Gpu
from discreet.simulation.environments import Sphere

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("name", [*CASES, *MORE_CASES])
def test_regret_is_that_of_the_package_whatever_the_lanes(name: str, lanes: int) -> None:
    world, policy = {**CASES, **MORE_CASES}[name]
    what = simulation(VARIANTS.get(name, name), world, policy, **OPTIONS.get(name, {}))
    made = plan(what, CHECKPOINTS)
    seeds = range(5_000, 9_000)
    parts = [Replicates(plan=made, seeds=seeds)]
    batch = Batch(Gpu(), parts, lanes if made.shape.dim <= 8 else 0)
    batch.advance(100)
    batch.advance(ROUNDS)
    found = batch.regrets()[0]
    known = np.array([run_seed(what, seed, CHECKPOINTS) for seed in range(500)])
    apart = found.mean(axis=0) - known.mean(axis=0)
    error = np.hypot(*(one.std(axis=0, ddof=1) / np.sqrt(len(one)) for one in (found, known)))
    assert (np.abs(apart) < FAR * error).all()


@pytest.mark.parametrize("name", ["LinUCB", "windows", "tight", "wishart"])
def test_with_many_features_any_number_of_threads_plays_the_same(name: str) -> None:
    # Each number has its place in its stream, so that rounding alone sets them apart.
    world, policy = Sphere(dim=24, n_actions=600, gap=0.1), UCB() if name == "LinUCB" else None
    made = plan(simulation(VARIANTS.get(name, name), world, policy), CHECKPOINTS)
    device, parts = Gpu(), [Replicates(plan=made, seeds=range(200))]
    regrets = []
    for lanes in (64, 128, 256, 512):
        batch = Batch(device, parts, lanes)
        batch.advance(ROUNDS)
        regrets.append(batch.regrets()[0])
    for other in regrets[1:]:
        same = np.isclose(other, regrets[0], rtol=1e-3).all(axis=1)
        assert same.mean() > 0.9  # rounding may turn a choice, and with it a whole run


def test_simulate_gives_an_outcome_for_every_seed() -> None:
    outcome = simulate(simulation("windows"), seeds=range(100), device="cuda")
    assert outcome.seeds == list(range(100))
    assert (outcome.final > 0.0).all()
