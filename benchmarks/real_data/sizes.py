"""How much is measured."""

from dataclasses import dataclass

NOISES = ("float", "exact")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How long each measurement is.

    Attributes:
        noise: 'float', which is quicker, or 'exact', as learners have it by default.
        splits: of the insurance data, with seeds 0, 1 and so on.
        learned: rows that a split learns from.
        theta_norms: that are stated for both data sets.
        epsilons: privacy targets, with ``delta``.
        delta: of all targets on real data.
        players: seeds of the games on records and of the clicks.
        rounds: of that game.
        drawings: rounds of the game with handwritten digits.
        stated_norms: theta norms for the same game, where a wrong one is stated.
        norm_rounds: of those.
        views: rounds of the clicks.
        worlds: seeds for each kind of synthetic world, where coverage is counted.
        world_rounds: of those.
        sets: decision sets whose actions are looked at, in each world and at each time.
        factors: times at which it is counted, in multiples of the first release's rows; in
            synthetic worlds at the end as well.
        samples: of the insurance data, where coverage is counted.
    """

    noise: str = "float"
    splits: int = 8
    learned: int = 14_000
    theta_norms: tuple[float, ...] = (1.0, 3.0)
    epsilons: tuple[float, ...] = (1.0, 0.1)
    delta: float = 1e-6
    players: int = 6
    rounds: int = 50_000
    drawings: int = 20_000
    stated_norms: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
    norm_rounds: int = 20_000
    views: int = 300_000
    worlds: int = 100
    world_rounds: int = 100_000
    sets: int = 20
    factors: tuple[int, ...] = (1, 10, 100)
    samples: int = 10

    @property
    def targets(self) -> tuple[float | None, ...]:
        """All privacy targets, and none."""
        return (*self.epsilons, None)


DEFAULT = Sizes()
QUICK = Sizes(
    splits=2,
    epsilons=(1.0,),
    players=1,
    rounds=10_000,
    drawings=10_000,
    stated_norms=(1.0, 10.0),
    norm_rounds=5_000,
    views=20_000,
    worlds=20,
    samples=4,
)
