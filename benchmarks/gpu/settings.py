"""What is compared and timed."""

from collections.abc import Iterator

import numpy as np

from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.release import policies
from discreet.simulation import Simulation
from discreet.simulation.environments import (
    GAUSSIAN,
    Basis,
    Clusters,
    Environment,
    Fixed,
    Sphere,
)

LANES = (1, 2, 4, 8, 16, 32)  # for a replicate of few features
ROUNDS = 10_000
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


def settings(names: list[str]) -> Iterator[tuple[str, Simulation]]:
    """Those whose name has one of ``names`` in it; all if there are none."""
    for name, simulation in _settings():
        if not names or any(part in name for part in names):
            yield name, simulation


def _settings() -> Iterator[tuple[str, Simulation]]:
    """Every variant in every world, and then other policies, trees and dimensions."""
    for name, world in WORLDS.items():
        for variant in VARIANTS:
            yield f"{variant}, {name}", simulation(variant, world)
        yield f"LinUCB, {name}", simulation("nonprivate", world, policies.UCB())
    gap = WORLDS["gap"]
    for variant in ("gaussian", "tight"):
        yield f"{variant}, covering tree", simulation(variant, gap, tree="covering")
        yield f"{variant}, thompson", simulation(variant, gap, policies.Thompson())
    yield "tight, pan-private tree", simulation("tight", gap, tree="pan-private")
    yield "tight, posterior", simulation("tight", gap, policies.PosteriorUCB())
    yield "windows, ucb", simulation("windows", gap, policies.UCB())
    yield "windows, uniform", simulation("windows", gap, policies.PosteriorUCB(uniform=0.2))
    yield "windows, memory", simulation("windows", WORLDS["fixed"], memory=1_000)
    for variant in ("windows", "tight"):
        for name in ("fixed", "clusters"):
            world = WORLDS[name]
            yield (
                f"{variant}, rewards alone, {name}",
                simulation(variant, world, protects="rewards"),
            )
    for dim in (2, 3, 8, 12, 20):
        world = Sphere(dim=dim, n_actions=2 * dim, gap=0.1)
        for variant in ("windows", "tight", "nonprivate", "gaussian", "wishart"):
            yield f"{variant}, {dim} features", simulation(variant, world)
        yield f"LinUCB, {dim} features", simulation("nonprivate", world, policies.UCB())


def simulation(
    variant: str,
    world: Environment,
    policy: policies.PosteriorUCB | policies.UCB | policies.Thompson | None = None,
    *,
    tree: str | None = None,
    rounds: int = ROUNDS,
    epsilon: float = 8.0,
    protects: str = "rows",
    memory: int | None = None,
) -> Simulation:
    """A variant in a world, calibrated for as many rounds as are played."""
    row = named(variant) if tree is None else named(variant).with_tree(tree)
    if variant.startswith("wishart"):
        epsilon = 1.0
    privacy = Privacy(epsilon=epsilon, delta=0.1, protects=protects) if row.private else None
    mechanism = calibrate(row, world.problem, horizon=rounds, privacy=privacy, memory=memory)
    return Simulation(environment=world, mechanism=mechanism, rounds=rounds, policy=policy)  # type: ignore[arg-type]  # None stands for the variant's own
