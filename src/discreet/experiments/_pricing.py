"""What the experiment on the price of privacy plays, and its prices per setting.

The price is the regret of `tight` over the regret without privacy, for the same seeds (so the
same worlds) and the same policy. It judges and draws nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.experiments._experiment import Scale
from discreet.experiments._play import Play
from discreet.experiments._results import Results, Sample
from discreet.report._numbers import Measured

F64 = NDArray[np.float64]

ENVIRONMENTS = ("sphere", "fixed", "basis")
N_ACTIONS = 25  # of the sphere and the fixed sets
DIMS = (5, 20)
DELTAS = (0.1, 1e-6)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
HORIZON = 50_000_000
TELLING = 1_000_000  # the rounds that the aims speak of
EPSILON, DELTA, DIM = 1.0, 0.1, 5  # and their setting
LARGE_EPSILON = 10.0


@dataclass(frozen=True, kw_only=True)
class World:
    """Where it is played."""

    environment: str
    dim: int
    gap: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is promised."""

    epsilon: float
    delta: float


MAIN = Target(epsilon=EPSILON, delta=DELTA)
# One curve each: a world and a delta.
CURVES = tuple(
    (World(environment=environment, dim=dim), delta)
    for environment in ENVIRONMENTS
    for dim in DIMS
    for delta in DELTAS
)
# Here the paper's `gaussian` plays too.
BESIDE = (World(environment="sphere", dim=DIM), World(environment="sphere", dim=DIM, gap=0.1))
# Here the non-private learner plays with other regularizers than its own, which is 1, too.
WIDE = World(environment="sphere", dim=20)
REGULARIZERS = (10.0, 100.0, 1000.0)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is played: privacy targets, rounds, and seeds for each number of features."""

    epsilons: tuple[float, ...]
    rounds: int
    seeds: dict[int, int]


# With 20 features a round costs about six times as much as with 5.
SIZES = {
    Scale.SMOKE: Sizes(epsilons=(EPSILON, LARGE_EPSILON), rounds=2_000, seeds={5: 2, 20: 2}),
    Scale.QUICK: Sizes(epsilons=EPSILONS, rounds=100_000, seeds={5: 16, 20: 8}),
    Scale.FULL: Sizes(epsilons=EPSILONS, rounds=TELLING, seeds={5: 24, 20: 6}),
}


def cells(scale: Scale) -> list[Play]:
    """Every world, target and seed; many features first."""
    return list(_cells(SIZES[scale]))


def _cells(sizes: Sizes) -> Iterator[Play]:
    targets = [Target(epsilon=one, delta=other) for one in sizes.epsilons for other in DELTAS]
    for dim in reversed(DIMS):
        for environment in ENVIRONMENTS:
            world = World(environment=environment, dim=dim)
            for seed in range(sizes.seeds[dim]):
                yield _play(sizes, "nonprivate", world, None, seed)
                for target in targets:
                    yield _play(sizes, "tight", world, target, seed)
    for regularizer in REGULARIZERS:
        for seed in range(sizes.seeds[WIDE.dim]):
            yield replace(_play(sizes, "nonprivate", WIDE, None, seed), rho_min=regularizer)
    for world in BESIDE:
        for seed in range(sizes.seeds[world.dim]):
            yield _play(sizes, "gaussian", world, MAIN, seed)
            if world.gap:
                yield _play(sizes, "nonprivate", world, None, seed)
                yield _play(sizes, "tight", world, MAIN, seed)


def _play(sizes: Sizes, variant: str, world: World, target: Target | None, seed: int) -> Play:
    return Play(
        variant=variant,
        environment=world.environment,
        dim=world.dim,
        n_actions=world.dim if world.environment == "basis" else N_ACTIONS,
        gap=world.gap,
        epsilon=target.epsilon if target else None,
        delta=target.delta if target else None,
        horizon=HORIZON,
        rounds=sizes.rounds,
        shown=sizes.rounds,
        points=10,
        seed=seed,
    )


def sample(
    results: Results,
    variant: str,
    world: World,
    target: Target | None,
    *,
    regularizer: float | None = None,
) -> Sample:
    """The regret of a variant over time, with its own regularizer or another."""
    return results.sample(
        variant=variant,
        environment=world.environment,
        dim=world.dim,
        gap=world.gap,
        epsilon=target.epsilon if target else None,
        delta=target.delta if target else None,
        rho_min=regularizer,
    )


def pairs(results: Results, world: World, target: Target) -> tuple[F64, F64]:
    """Regret with and without privacy, at the last round, for the same seeds."""
    base = sample(results, "nonprivate", world, None)
    return sample(results, "tight", world, target).paired(base)


def price(results: Results, world: World, target: Target) -> Measured:
    """Mean regret with privacy over mean regret without; its standard error over shared seeds."""
    found = Measured.ratio(*pairs(results, world, target))
    return found or Measured(mean=math.nan, stderr=None)


def regrets(results: Results, world: World, delta: float) -> F64:
    """Regret of `tight` per seed and epsilon, at the last round, shape (S, E)."""
    targets = (Target(epsilon=one, delta=delta) for one in results.numbers("epsilon"))
    return np.column_stack([sample(results, "tight", world, one).final for one in targets])


def rounds(results: Results) -> float:
    """How many were played."""
    return results.numbers("rounds")[0]
