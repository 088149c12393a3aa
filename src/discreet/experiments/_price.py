"""What privacy costs: regret of the default over that of the same policy without noise.

The default variant, `windows`, and `nonprivate` play the same worlds (the same seeds) with the same
policy, so that noise is all that sets them apart. The paper's LinUCB without privacy and `tight`
play beside them. Ours, not the paper's. The statements that are judged are the project's own aims.
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
from discreet.report import _figures as figures
from discreet.report._curves import Curve, Guide, LogarithmicAxis, Panel
from discreet.report._numbers import Measured, grouped
from discreet.report._page import Table

NAME = "price"
SOURCE = "the project's own aims"
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
        title="groups of people, uneven features",
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


def _sample(
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


def _pairs(results: Results, world: PriceWorld, target: PriceTarget) -> tuple[F64, F64]:
    """Regret with and without privacy, at the last round, for the same seeds."""
    return _sample(results, OURS, world, target).paired(_sample(results, BASE, world))


def price(results: Results, world: PriceWorld, target: PriceTarget) -> Measured:
    """Mean regret with privacy over mean regret without; its standard error over shared seeds."""
    found = Measured.ratio(*_pairs(results, world, target))
    return found or Measured(mean=math.nan, stderr=None)


def _regrets(results: Results, world: PriceWorld, delta: float) -> F64:
    """Regret of the default per seed and epsilon, at the last round, shape (S, E)."""
    targets = (PriceTarget(epsilon=one, delta=delta) for one in results.numbers("epsilon"))
    return np.column_stack([_sample(results, OURS, world, one).final for one in targets])


ROOM = 1.25  # a factor above the curves, which begin high at the left, where the axis has its name
# By scene, with 5 features: the most that the default may pay over the same without noise.
MOST = dict(zip(SCENES, (2.1, 3.0, 2.2, 2.8, 3.0), strict=True))
ALIKE = 1.5  # a price that counts as close to 1 at epsilon 10
# The least that the paper's `gaussian` should pay over the default.
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
        *(_affordable(results, scene, most) for scene, most in MOST.items()),
        *(_better(results, scene) for scene in SCENES),
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


def _key(world: PriceWorld | PriceScene) -> str:
    return f"{world.environment}-gap" if world.gap else world.environment


def _affordable(results: Results, scene: PriceScene, most: float) -> Claim:
    found = _price_interval(results, scene.world(DIM), MAIN)
    return Claim(
        name=f"price-{_key(scene)}",
        statement=(
            f"{scene.where}, at epsilon 1, delta 0.1 and 5 features, privacy costs "
            f"at most a factor of {most:g}."
        ),
        source=SOURCE,
        measured=f"regret of {OURS} over regret of {BASE}: {found.text()}",
        published="",
        verdict=only_if(_enough(results), found.verdict(most=most)),
        rule=f"the interval of the ratio after 1e6 rounds, over shared seeds, is below {most:g}",
    )


def _better(results: Results, scene: PriceScene) -> Claim:
    world = scene.world(DIM)
    ours, tight = (_sample(results, name, world, MAIN) for name in (OURS, "tight"))
    found = ratio_interval(*ours.paired(tight))
    return Claim(
        name=f"better-{_key(scene)}",
        statement=(
            f"{scene.where}, for the same guarantee, at 5 features, {OURS} has less regret than "
            "tight."
        ),
        source=SOURCE,
        measured=f"regret of {OURS} over regret of tight: {found.text()}",
        published="",
        verdict=only_if(_enough(results), found.verdict(most=1.0)),
        rule="the interval of the ratio after 1e6 rounds, over shared seeds, is below 1",
    )


def _saved(results: Results, world: PriceWorld, least: float) -> Claim:
    paper = _sample(results, PAPER, world, MAIN)
    found = ratio_interval(*paper.paired(_sample(results, OURS, world, MAIN)))
    return Claim(
        name=f"saved-{_key(world)}",
        statement=(
            f"On the sphere with gap {world.gap:g}, for the same guarantee, the paper's Gaussian "
            f"variant pays at least {least:g} times the regret of {OURS}."
        ),
        source=SOURCE,
        measured=f"regret of {PAPER} over regret of {OURS}: {found.text()}",
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
    found = {_key(scene): _price_interval(results, scene.world(DIM), target) for scene in SCENES}
    return Claim(
        name="price-at-epsilon-10",
        statement=(
            "At epsilon 10, delta 0.1 and 5 features, privacy costs at most a factor of "
            f"{ALIKE:g} everywhere."
        ),
        source=SOURCE,
        measured="; ".join(f"{name} {one.text()}" for name, one in found.items()),
        published="",
        verdict=only_if(
            _enough(results), all_of(*(one.verdict(most=ALIKE) for one in found.values()))
        ),
        rule=f"all intervals after 1e6 rounds, over shared seeds, are below {ALIKE:g}",
    )


def _label(world: PriceWorld, delta: float) -> str:
    return f"d {world.dim}, δ {delta:g}".replace("e-0", "e-")


def _own(scene: PriceScene) -> list[tuple[PriceWorld, float]]:
    worlds = [scene.world(dim) for dim in DIMS]
    return [one for one in CURVES if one[0] in worlds]


def _curve(results: Results, world: PriceWorld, delta: float) -> Curve:
    epsilons = results.numbers("epsilon")
    prices = [price(results, world, PriceTarget(epsilon=one, delta=delta)) for one in epsilons]
    return Curve(
        label=_label(world, delta),
        rounds=np.array(epsilons),
        mean=np.array([one.mean for one in prices]),
        stderr=np.array([np.nan if one.stderr is None else one.stderr for one in prices]),
    )


def _panel(results: Results, scene: PriceScene) -> Panel:
    epsilons = results.numbers("epsilon")
    ends = np.array([epsilons[0], epsilons[-1]])
    return Panel(
        title=f"Price of privacy: {scene.title}",
        curves=tuple(_curve(results, *one) for one in _own(scene)),
        across="epsilon",
        up=f"regret over that of {BASE}",
        guides=(Guide(across=ends, up=np.ones(2), like=0, dotted=True),),
    )


def show(results: Results) -> list[figures.Exhibit]:
    """The price over epsilon, a panel for each scene, a curve for each d and delta."""
    panels = [_panel(results, scene) for scene in SCENES]
    return [
        figures.Exhibit(
            name=NAME,
            drawings=figures.drawings(panels, across=PriceAxis(), up=PriceAxis(), prefix=NAME),
            caption=(
                f"The price of privacy: regret of {OURS} over that of {BASE}, the same policy "
                f"without noise in the same worlds, after {_played(results)} (both axes "
                "logarithmic). d is the number of features, δ is delta. Points are ratios of means "
                "over the seeds in the table; bands reach one standard error either side. Dotted: "
                "a price of 1."
            ),
        )
    ]


def tables(results: Results) -> list[Table]:
    """Everybody side by side; the price in every setting; the paper's variant."""
    beside = [_beside(results, dim) for dim in DIMS]
    return [*beside, *(_prices(results, scene) for scene in SCENES), _against_paper(results)]


def _beside(results: Results, dim: int) -> Table:
    rows = []
    for scene in SCENES:
        world = scene.world(dim)
        base, linucb = (_sample(results, name, world) for name in (BASE, LINUCB))
        ours, tight = (_sample(results, name, world, MAIN) for name in (OURS, "tight"))
        ratio = Measured.ratio(*ours.paired(base))
        rows.append(
            (
                _key(scene),
                base.measured().text(),
                ours.measured().text(),
                "" if ratio is None else ratio.text(),
                linucb.measured().text(),
                tight.measured().text(),
                *(grouped(float(one.final.max())) for one in (base, ours)),
                f"{len(base.seeds)}",
            )
        )
    return Table(
        title=(
            f"{dim} features, epsilon 1, delta 0.1: pseudo-regret after {_played(results)}, mean "
            f"± standard error. {OURS} and {BASE} play by the same policy, with and without noise; "
            f"price is their ratio over shared seeds. {LINUCB}, without privacy, and tight play by "
            "upper confidence bounds"
        ),
        columns=(
            "world",
            BASE,
            OURS,
            "price",
            LINUCB,
            "tight",
            f"worst seed of {BASE}",
            f"worst seed of {OURS}",
            "seeds",
        ),
        rows=tuple(rows),
    )


def _prices(results: Results, scene: PriceScene) -> Table:
    epsilons = results.numbers("epsilon")
    rows = []
    for world, delta in _own(scene):
        base = _sample(results, BASE, world)
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
            f"Price of privacy: {scene.title}. Regret of {OURS} over that of {BASE} after "
            f"{_played(results)}, by epsilon (ε), ± standard error over shared seeds; and the "
            f"pseudo-regret of {BASE}"
        ),
        columns=("", *(f"ε {one:g}" for one in epsilons), BASE, "seeds"),
        rows=tuple(rows),
    )


def _against_paper(results: Results) -> Table:
    rows = []
    for world in SAVED:
        ours, paper = (_sample(results, name, world, MAIN) for name in (OURS, PAPER))
        saved = Measured.ratio(*paper.paired(ours))
        rows.append(
            (
                f"{world.gap:g}",
                *(one.measured().text() for one in (ours, paper)),
                "" if saved is None else saved.text(),
                f"{len(ours.seeds)}",
            )
        )
    return Table(
        title=(
            f"Sphere, 5 features, epsilon 1, delta 0.1: pseudo-regret after {_played(results)}, "
            "mean ± standard error, and its ratio over shared seeds"
        ),
        columns=("gap", OURS, PAPER, f"{PAPER} over {OURS}", "seeds"),
        rows=tuple(rows),
    )


EXPERIMENT = Experiment(
    name=NAME,
    title="The price of privacy",
    question=(
        "How many times the regret does privacy cost? The default variant, windows, and "
        "nonprivate, the same policy without noise, play the same worlds, for epsilon from 0.1 to "
        "10, delta 0.1 and 1e-6, 5 and 20 features: new actions in every round, with and without a "
        "gap, fixed actions, arms, and groups of people whose features vary very unevenly. Rewards "
        "are plus or minus one and the horizon is 50,000,000. Beside them, at epsilon 1 and delta "
        f"0.1, stand LinUCB without privacy as in the paper ({LINUCB}, alpha one over the "
        "horizon), tight, and on the sphere the paper's Gaussian variant. This experiment and its "
        "statements are ours, not the paper's."
    ),
    sizes=SIZES,
    cells=cells,
    seeded=seeded,
    claims=claims,
    figures=show,
    tables=tables,
    reading=(
        (
            "The price compares windows with nonprivate and with nothing else: both play by the "
            "same policy with the same numbers, and differ in noise and in how often they release. "
            f"{LINUCB} explores far more than it need where actions stay the same, because its "
            "confidence sets hold with probability one minus alpha at all times; so windows can "
            "have less regret than it. That is the policy's doing and not a gift of privacy."
        ),
        (
            "A policy that explores little now and then settles on a wrong action for long. Means "
            "over few seeds hide that or are made by it, so the worst seeds stand in the tables."
        ),
    ),
)
