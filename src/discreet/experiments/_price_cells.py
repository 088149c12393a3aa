"""What is played for the price of privacy: worlds, targets and sizes, and how results are found."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from discreet.experiments._experiment import F64, Results, Sample, Scale
from discreet.experiments._play import (
    CONTENDERS,
    DELTA,
    DIM,
    EPSILON,
    LINUCB,
    N_ACTIONS,
    Play,
    contender,
)
from discreet.report._numbers import Measured

NAME = "price"
OURS, BASE, PAPER = "windows", "nonprivate", "gaussian"
DIMS = (5, 20)
DELTAS = (0.1, 1e-6)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
TELLING = 1_000_000  # the rounds that the aims speak of
LARGE_EPSILON = 10.0


@dataclass(frozen=True, kw_only=True)
class PriceWorld:
    """An environment and its size."""

    environment: str
    dim: int
    gap: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PriceTarget:
    """What privacy is promised."""

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class PriceScene:
    """Where it is played: an environment of any number of features, and how it is called."""

    environment: str
    gap: float
    title: str
    where: str

    def world(self, dim: int) -> PriceWorld:
        """With so many features."""
        return PriceWorld(environment=self.environment, dim=dim, gap=self.gap)


MAIN = PriceTarget(epsilon=EPSILON, delta=DELTA)
SCENES = (
    PriceScene(
        environment="sphere",
        gap=0.0,
        title="25 new actions a round",
        where="On the sphere with gap 0",
    ),
    PriceScene(
        environment="sphere",
        gap=0.1,
        title="25 new actions a round, gap 0.1",
        where="On the sphere with gap 0.1",
    ),
    PriceScene(
        environment="fixed", gap=0.0, title="25 fixed actions", where="With 25 fixed actions"
    ),
    PriceScene(environment="basis", gap=0.0, title="d arms", where="With 5 arms"),
    PriceScene(
        environment="clusters",
        gap=0.0,
        title="groups of people",
        where="In clusters",
    ),
)
# One curve each: a world and a delta.
CURVES = tuple((scene.world(dim), delta) for scene in SCENES for dim in DIMS for delta in DELTAS)
# Here the paper's `gaussian` plays too.
BESIDE = tuple(scene.world(DIM) for scene in SCENES if scene.environment == "sphere")


@dataclass(frozen=True, kw_only=True)
class PriceSizes:
    """How much is played: privacy targets, rounds, and seeds for each number of features."""

    epsilons: tuple[float, ...]
    rounds: int
    seeds: dict[int, int]


# With 20 features a round costs about six times as much as with 5.
SIZES = {
    Scale.SMOKE: PriceSizes(epsilons=(EPSILON, LARGE_EPSILON), rounds=2_000, seeds={5: 2, 20: 2}),
    Scale.QUICK: PriceSizes(epsilons=EPSILONS, rounds=100_000, seeds={5: 6, 20: 2}),
    Scale.FULL: PriceSizes(epsilons=EPSILONS, rounds=TELLING, seeds={5: 24, 20: 6}),
}


def seeded(sizes: PriceSizes, least: int) -> PriceSizes:
    """The same with at least so many seeds for every number of features."""
    return replace(sizes, seeds={dim: max(least, count) for dim, count in sizes.seeds.items()})


def cells(sizes: PriceSizes) -> list[Play]:
    """Every world, target and seed; many features first."""
    return list(_cells(sizes))


def _cells(sizes: PriceSizes) -> Iterator[Play]:
    targets = [PriceTarget(epsilon=one, delta=other) for one in sizes.epsilons for other in DELTAS]
    for dim in reversed(DIMS):
        for world in (scene.world(dim) for scene in SCENES):
            for seed in range(sizes.seeds[dim]):
                yield _play(sizes, BASE, world, None, seed)
                yield _play(sizes, LINUCB, world, None, seed)
                yield _play(sizes, "tight", world, MAIN, seed)
                for target in targets:
                    yield _play(sizes, OURS, world, target, seed)
    for world in BESIDE:
        for seed in range(sizes.seeds[world.dim]):
            yield _play(sizes, PAPER, world, MAIN, seed)


def _play(
    sizes: PriceSizes, label: str, world: PriceWorld, target: PriceTarget | None, seed: int
) -> Play:
    return contender(
        label,
        environment=world.environment,
        dim=world.dim,
        n_actions=world.dim if world.environment == "basis" else N_ACTIONS,
        gap=world.gap,
        epsilon=target.epsilon if target else None,
        delta=target.delta if target else None,
        rounds=sizes.rounds,
        points=10,
        seed=seed,
    )


def key(world: PriceWorld | PriceScene) -> str:
    """What it is called in names: the environment, and whether there is a gap."""
    return f"{world.environment}-gap" if world.gap else world.environment


def sample(
    results: Results, label: str, world: PriceWorld, target: PriceTarget | None = None
) -> Sample:
    """The regret of a contender over time."""
    who = CONTENDERS[label]
    return results.sample(
        variant=who.variant,
        policy=who.policy,
        environment=world.environment,
        dim=world.dim,
        gap=world.gap,
        epsilon=target.epsilon if target else None,
        delta=target.delta if target else None,
    )


def price_of(results: Results, world: PriceWorld, target: PriceTarget) -> Measured:
    """Mean regret with privacy over mean regret without; its standard error over shared seeds."""
    ours, base = sample(results, OURS, world, target), sample(results, BASE, world)
    found = Measured.ratio(*ours.paired(base))
    return found or Measured(mean=math.nan, stderr=None)


def regrets(results: Results, world: PriceWorld, delta: float) -> F64:
    """Regret of the default per seed and epsilon, at the last round, shape (S, E)."""
    targets = (PriceTarget(epsilon=one, delta=delta) for one in results.numbers("epsilon"))
    return np.column_stack([sample(results, OURS, world, one).final for one in targets])
