"""What privacy costs: regret of `tight` over regret without privacy. Ours, not the paper's.

Both play the same worlds (the same seeds) with the same policy, upper confidence bounds at
optimism 1. The statements that are judged are the project's own aims.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.experiments._claims import (
    Claim,
    Interval,
    all_of,
    mean_interval,
    only_if,
    ratio_interval,
)
from discreet.experiments._experiment import F64, Experiment, Results, Sample, Scale
from discreet.experiments._play import DELTA, DIM, EPSILON, N_ACTIONS, Play, paper_play
from discreet.report import _figures as figures
from discreet.report._curves import Curve, Guide, LogarithmicAxis, Panel
from discreet.report._numbers import Measured
from discreet.report._page import Table

NAME = "price"
SOURCE = "the project's own aims"
ENVIRONMENTS = ("sphere", "fixed", "basis")
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


MAIN = PriceTarget(epsilon=EPSILON, delta=DELTA)
# One curve each: a world and a delta.
CURVES = tuple(
    (PriceWorld(environment=environment, dim=dim), delta)
    for environment in ENVIRONMENTS
    for dim in DIMS
    for delta in DELTAS
)
# Here the paper's `gaussian` plays too.
BESIDE = (
    PriceWorld(environment="sphere", dim=DIM),
    PriceWorld(environment="sphere", dim=DIM, gap=0.1),
)
# Here the non-private learner plays with other regularizers than its own, which is 1, too.
WIDE = PriceWorld(environment="sphere", dim=20)
REGULARIZERS = (10.0, 100.0, 1000.0)


@dataclass(frozen=True, kw_only=True)
class PriceSizes:
    """How much is played: privacy targets, rounds, and seeds for each number of features."""

    epsilons: tuple[float, ...]
    rounds: int
    seeds: dict[int, int]


# With 20 features a round costs about six times as much as with 5.
SIZES = {
    Scale.SMOKE: PriceSizes(epsilons=(EPSILON, LARGE_EPSILON), rounds=2_000, seeds={5: 2, 20: 2}),
    Scale.QUICK: PriceSizes(epsilons=EPSILONS, rounds=100_000, seeds={5: 16, 20: 8}),
    Scale.FULL: PriceSizes(epsilons=EPSILONS, rounds=TELLING, seeds={5: 24, 20: 6}),
}


def cells(sizes: PriceSizes) -> list[Play]:
    """Every world, target and seed; many features first."""
    return list(_cells(sizes))


def _cells(sizes: PriceSizes) -> Iterator[Play]:
    targets = [PriceTarget(epsilon=one, delta=other) for one in sizes.epsilons for other in DELTAS]
    for dim in reversed(DIMS):
        for environment in ENVIRONMENTS:
            world = PriceWorld(environment=environment, dim=dim)
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


def _play(
    sizes: PriceSizes, variant: str, world: PriceWorld, target: PriceTarget | None, seed: int
) -> Play:
    return paper_play(
        variant,
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


def _sample(
    results: Results,
    variant: str,
    world: PriceWorld,
    target: PriceTarget | None,
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


def _pairs(results: Results, world: PriceWorld, target: PriceTarget) -> tuple[F64, F64]:
    """Regret with and without privacy, at the last round, for the same seeds."""
    base = _sample(results, "nonprivate", world, None)
    return _sample(results, "tight", world, target).paired(base)


def price(results: Results, world: PriceWorld, target: PriceTarget) -> Measured:
    """Mean regret with privacy over mean regret without; its standard error over shared seeds."""
    found = Measured.ratio(*_pairs(results, world, target))
    return found or Measured(mean=math.nan, stderr=None)


def _regrets(results: Results, world: PriceWorld, delta: float) -> F64:
    """Regret of `tight` per seed and epsilon, at the last round, shape (S, E)."""
    targets = (PriceTarget(epsilon=one, delta=delta) for one in results.numbers("epsilon"))
    return np.column_stack([_sample(results, "tight", world, one).final for one in targets])


ALIKE = 1.5  # a price that counts as close to 1 at epsilon 10
TITLES = {
    "sphere": "Price of privacy: 25 new actions a round",
    "fixed": "Price of privacy: 25 fixed actions",
    "basis": "Price of privacy: d arms",
}
WHERE = {
    "sphere": "On the sphere with gap {:g}",
    "fixed": "With 25 fixed actions",
    "basis": "With 5 arms",
}
ROOM = 1.25  # a factor above the curves, which begin high at the left, where the axis has its name
# By world: the most that `tight` may pay over the non-private learner.
MOST = {
    PriceWorld(environment="sphere", dim=DIM): 2.1,
    PriceWorld(environment="sphere", dim=DIM, gap=0.1): 3.0,
    PriceWorld(environment="fixed", dim=DIM): 2.2,
    PriceWorld(environment="basis", dim=DIM): 2.8,
}
# By world: the least that the paper's `gaussian` should pay over `tight`.
SAVED = dict(zip(BESIDE, (50.0, 60.0), strict=True))


class PriceAxis(LogarithmicAxis):
    """Logarithmic axes with ticks at 1 and 3 times the powers of ten."""

    def height(self, panels: Sequence[Panel]) -> tuple[float, float]:
        """With room for the name of the axis above the curves."""
        low, high = super().height(panels)
        return low, high * ROOM

    def ticks(self, low: float, high: float) -> list[float]:
        """Round numbers, a factor of about three apart."""
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = (step * 10.0**power for power in powers for step in (1, 3))
        return [tick for tick in ticks if low <= tick <= high]


def claims(results: Results) -> list[Claim]:
    """What this project set out to reach."""
    return [
        *(_affordable(results, world, most) for world, most in MOST.items()),
        *(_saved(results, world, least) for world, least in SAVED.items()),
        _falls(results),
        _close_to_one(results),
    ]


def _price_interval(results: Results, world: PriceWorld, target: PriceTarget) -> Interval:
    return ratio_interval(*_pairs(results, world, target))


def _enough(results: Results) -> bool:
    return results.rounds >= TELLING


def _played(results: Results) -> str:
    return f"{results.rounds:,.0f} rounds"


def _where(world: PriceWorld) -> str:
    return WHERE[world.environment].format(world.gap)


def _key(world: PriceWorld) -> str:
    return f"{world.environment}-gap" if world.gap else world.environment


def _affordable(results: Results, world: PriceWorld, most: float) -> Claim:
    found = _price_interval(results, world, MAIN)
    return Claim(
        name=f"price-{_key(world)}",
        statement=(
            f"{_where(world)}, at epsilon 1, delta 0.1 and 5 features, privacy costs "
            f"at most a factor of {most:g}."
        ),
        source=SOURCE,
        measured=f"regret of tight over non-private regret: {found.text()}",
        published="",
        verdict=only_if(_enough(results), found.verdict(most=most)),
        rule=f"the interval of the ratio after 1e6 rounds, over shared seeds, is below {most:g}",
    )


def _saved(results: Results, world: PriceWorld, least: float) -> Claim:
    paper = _sample(results, "gaussian", world, MAIN)
    found = ratio_interval(*paper.paired(_sample(results, "tight", world, MAIN)))
    return Claim(
        name=f"saved-{_key(world)}",
        statement=(
            f"{_where(world)}, for the same guarantee, the paper's Gaussian variant "
            f"pays at least {least:g} times the regret of tight."
        ),
        source=SOURCE,
        measured=f"regret of gaussian over regret of tight: {found.text()}",
        published="",
        verdict=only_if(_enough(results), found.verdict(least=least)),
        rule=f"the interval of the ratio after 1e6 rounds, over shared seeds, is above {least:g}",
    )


def _slope(results: Results, world: PriceWorld, delta: float) -> Interval:
    """Of the logarithm of the price over that of epsilon: least squares for each seed.

    The non-private regret does not depend on epsilon, so it does not change the slope.
    """
    across = np.log(results.numbers("epsilon"))
    around = across - across.mean()
    slopes = np.log(_regrets(results, world, delta)) @ around / (around @ around)
    return mean_interval(np.asarray(slopes))


def _falls(results: Results) -> Claim:
    slopes = [_slope(results, *one) for one in CURVES]
    steepest, flattest = (pick(slopes, key=lambda one: one.estimate) for pick in (min, max))
    steps = [np.diff(_regrets(results, *one).mean(axis=0)) for one in CURVES]
    falling = sum(int((one < 0.0).sum()) for one in steps)
    return Claim(
        name="price-falls",
        statement="The price of privacy falls as epsilon grows, in every setting.",
        source=SOURCE,
        measured=(
            f"the price goes with epsilon to the power of {steepest.text()} where it falls most "
            f"and {flattest.text()} where least; {falling} of {sum(map(len, steps))} single steps "
            "go down"
        ),
        published="",
        verdict=only_if(_enough(results), all_of(*(one.verdict(most=0.0) for one in slopes))),
        rule=(
            "in all settings the interval of the power, the mean over seeds of a least-squares "
            "slope of logarithms, is below 0"
        ),
    )


def _close_to_one(results: Results) -> Claim:
    target = PriceTarget(epsilon=LARGE_EPSILON, delta=MAIN.delta)
    found = {
        name: _price_interval(results, PriceWorld(environment=name, dim=DIM), target)
        for name in ENVIRONMENTS
    }
    return Claim(
        name="price-at-epsilon-10",
        statement=(
            "At epsilon 10, delta 0.1 and 5 features, privacy costs at most a factor of "
            f"{ALIKE:g} in all three environments."
        ),
        source=SOURCE,
        measured="; ".join(f"{name} {one.text()}" for name, one in found.items()),
        published="",
        verdict=only_if(
            _enough(results), all_of(*(one.verdict(most=ALIKE) for one in found.values()))
        ),
        rule=f"all three intervals after 1e6 rounds, over shared seeds, are below {ALIKE:g}",
    )


def _label(world: PriceWorld, delta: float) -> str:
    return f"d {world.dim}, δ {delta:g}".replace("e-0", "e-")


def _curve(results: Results, world: PriceWorld, delta: float) -> Curve:
    epsilons = results.numbers("epsilon")
    prices = [price(results, world, PriceTarget(epsilon=one, delta=delta)) for one in epsilons]
    return Curve(
        label=_label(world, delta),
        rounds=np.array(epsilons),
        mean=np.array([one.mean for one in prices]),
        stderr=np.array([np.nan if one.stderr is None else one.stderr for one in prices]),
    )


def _panel(results: Results, environment: str) -> Panel:
    own = [one for one in CURVES if one[0].environment == environment]
    epsilons = results.numbers("epsilon")
    ends = np.array([epsilons[0], epsilons[-1]])
    return Panel(
        title=TITLES[environment],
        curves=tuple(_curve(results, *one) for one in own),
        across="epsilon",
        up="regret over non-private regret",
        guides=(Guide(across=ends, up=np.ones(2), like=0, dotted=True),),
    )


def show(results: Results) -> list[figures.Exhibit]:
    """The price over epsilon, a panel for each environment, a curve for each d and delta."""
    panels = [_panel(results, environment) for environment in ENVIRONMENTS]
    return [
        figures.Exhibit(
            name=NAME,
            drawings=figures.drawings(panels, across=PriceAxis(), up=PriceAxis(), prefix=NAME),
            caption=(
                "The price of privacy: regret of tight over the regret of the same policy without "
                f"privacy in the same worlds, after {_played(results)} (both axes "
                "logarithmic). d is the number of features, δ is delta. Points are ratios of means "
                "over the seeds in the table; bands reach one standard error either side. Dotted: "
                "a price of 1."
            ),
        )
    ]


def tables(results: Results) -> list[Table]:
    """The price in every setting, by environment; the paper's variant beside it."""
    by_environment = [_prices(results, environment) for environment in ENVIRONMENTS]
    return [*by_environment, _beside(results), _regularized(results)]


def _prices(results: Results, environment: str) -> Table:
    epsilons = results.numbers("epsilon")
    rows = []
    for world, delta in CURVES:
        if world.environment != environment:
            continue
        base = _sample(results, "nonprivate", world, None)
        prices = (price(results, world, PriceTarget(epsilon=one, delta=delta)) for one in epsilons)
        rows.append(
            (
                _label(world, delta),
                *(price.text() for price in prices),
                base.measured().text(),
                f"{len(base.seeds)}",
            )
        )
    return Table(
        title=(
            f"{TITLES[environment]}. After {_played(results)}, by epsilon (ε), ± standard error "
            "over shared seeds; and the pseudo-regret without privacy"
        ),
        columns=("", *(f"ε {one:g}" for one in epsilons), "non-private", "seeds"),
        rows=tuple(rows),
    )


def _beside(results: Results) -> Table:
    rows = []
    for world in SAVED:
        tight, paper = (_sample(results, name, world, MAIN) for name in ("tight", "gaussian"))
        base = _sample(results, "nonprivate", world, None)
        price, saved = (Measured.ratio(*one) for one in (tight.paired(base), paper.paired(tight)))
        rows.append(
            (
                f"{world.gap:g}",
                *(one.measured().text() for one in (base, tight, paper)),
                *("" if one is None else one.text() for one in (price, saved)),
                f"{len(tight.seeds)}",
            )
        )
    return Table(
        title=(
            f"Sphere, 5 features, epsilon 1, delta 0.1: pseudo-regret after {_played(results)}, "
            "mean ± standard error, and ratios over shared seeds"
        ),
        columns=(
            "gap",
            "nonprivate",
            "tight",
            "gaussian",
            "tight over nonprivate",
            "gaussian over tight",
            "seeds",
        ),
        rows=tuple(rows),
    )


def _regularized(results: Results) -> Table:
    own = _sample(results, "nonprivate", WIDE, None)
    rows = [("1 (its own)", own.measured().text(), "1")]
    for regularizer in REGULARIZERS:
        other = _sample(results, "nonprivate", WIDE, None, regularizer=regularizer)
        ratio = Measured.ratio(*other.paired(own))
        text = "" if ratio is None else ratio.text()
        rows.append((f"{regularizer:,.0f}", other.measured().text(), text))
    return Table(
        title=(
            "Sphere, 20 features, without privacy, by the regularizer: pseudo-regret after "
            f"{_played(results)}, mean ± standard error over {len(own.seeds)} seeds, and its ratio "
            "to that of regularizer 1"
        ),
        columns=("regularizer", "pseudo-regret", "ratio"),
        rows=tuple(rows),
    )


EXPERIMENT = Experiment(
    name=NAME,
    title="The price of privacy",
    question=(
        "How many times the regret does privacy cost? The default variant, tight, and LinUCB "
        "without privacy play the same worlds with the same policy, for epsilon from 0.1 to 10, "
        "delta 0.1 and 1e-6, 5 and 20 features, in three environments. Rewards are plus or minus "
        "one, the horizon is 50,000,000, alpha one over that. The paper's Gaussian variant plays "
        "beside them in one setting. This experiment and its statements are ours, not the paper's."
    ),
    sizes=SIZES,
    cells=cells,
    claims=claims,
    figures=show,
    tables=tables,
    reading=(
        (
            "A price below 1 does not mean that privacy helps. The non-private learner is the "
            "paper's, with regularizer 1. On the sphere with 20 features that explores more than "
            "it need: there the private learner's larger regularizer saves more than its noise "
            "costs. The last table has what the non-private learner pays with a larger one. No "
            "regularizer was tuned for any other figure."
        ),
        (
            "What is left above 1 at large epsilon is hardly noise: it stays if epsilon grows "
            "further. The rest of tight differs from the non-private learner too: it releases "
            "seldom, and its confidence set is another one."
        ),
    ),
)
