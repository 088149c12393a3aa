"""What privacy costs: regret of `tight` over regret without privacy. Ours, not the paper's.

Both play the same worlds (the same seeds) with the same policy, upper confidence bounds at
optimism 1. The statements that are judged are the project's own aims.
"""

import math
from collections.abc import Sequence

import numpy as np

from discreet.experiments import _pricing as pricing
from discreet.experiments._claims import (
    Claim,
    Interval,
    all_of,
    mean_interval,
    only_if,
    ratio_interval,
)
from discreet.experiments._experiment import Experiment
from discreet.experiments._pricing import (
    BESIDE,
    CURVES,
    DIM,
    ENVIRONMENTS,
    LARGE_EPSILON,
    MAIN,
    REGULARIZERS,
    TELLING,
    WIDE,
    Target,
    World,
)
from discreet.experiments._results import Results
from discreet.report import _figures as figures
from discreet.report._curves import Curve, Guide, Panel
from discreet.report._exhibit import Exhibit
from discreet.report._numbers import Measured
from discreet.report._page import Table
from discreet.report._scales import Logarithmic

NAME = "price"
SOURCE = "the project's own aims"
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
    World(environment="sphere", dim=DIM): 2.1,
    World(environment="sphere", dim=DIM, gap=0.1): 3.0,
    World(environment="fixed", dim=DIM): 2.2,
    World(environment="basis", dim=DIM): 2.8,
}
# By world: the least that the paper's `gaussian` should pay over `tight`.
SAVED = dict(zip(BESIDE, (50.0, 60.0), strict=True))


class Prices(Logarithmic):
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


def _price(results: Results, world: World, target: Target) -> Interval:
    return ratio_interval(*pricing.pairs(results, world, target))


def _enough(results: Results) -> bool:
    return pricing.rounds(results) >= TELLING


def _played(results: Results) -> str:
    return f"{pricing.rounds(results):,.0f} rounds"


def _where(world: World) -> str:
    return WHERE[world.environment].format(world.gap)


def _key(world: World) -> str:
    return f"{world.environment}-gap" if world.gap else world.environment


def _affordable(results: Results, world: World, most: float) -> Claim:
    found = _price(results, world, MAIN)
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


def _saved(results: Results, world: World, least: float) -> Claim:
    paper = pricing.sample(results, "gaussian", world, MAIN)
    found = ratio_interval(*paper.paired(pricing.sample(results, "tight", world, MAIN)))
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


def _slope(results: Results, world: World, delta: float) -> Interval:
    """Of the logarithm of the price over that of epsilon: least squares for each seed.

    The non-private regret does not depend on epsilon, so it does not change the slope.
    """
    across = np.log(results.numbers("epsilon"))
    around = across - across.mean()
    slopes = np.log(pricing.regrets(results, world, delta)) @ around / (around @ around)
    return mean_interval(np.asarray(slopes))


def _falls(results: Results) -> Claim:
    slopes = [_slope(results, *one) for one in CURVES]
    steepest, flattest = (pick(slopes, key=lambda one: one.estimate) for pick in (min, max))
    steps = [np.diff(pricing.regrets(results, *one).mean(axis=0)) for one in CURVES]
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
    target = Target(epsilon=LARGE_EPSILON, delta=MAIN.delta)
    found = {
        name: _price(results, World(environment=name, dim=DIM), target) for name in ENVIRONMENTS
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


def _label(world: World, delta: float) -> str:
    return f"d {world.dim}, δ {delta:g}".replace("e-0", "e-")


def _curve(results: Results, world: World, delta: float) -> Curve:
    epsilons = results.numbers("epsilon")
    prices = [pricing.price(results, world, Target(epsilon=one, delta=delta)) for one in epsilons]
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


def show(results: Results) -> list[Exhibit]:
    """The price over epsilon, a panel for each environment, a curve for each d and delta."""
    panels = [_panel(results, environment) for environment in ENVIRONMENTS]
    return [
        Exhibit(
            name=NAME,
            drawings=figures.drawings(panels, across=Prices(), up=Prices(), prefix=NAME),
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
        base = pricing.sample(results, "nonprivate", world, None)
        prices = (
            pricing.price(results, world, Target(epsilon=one, delta=delta)) for one in epsilons
        )
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
        tight, paper = (
            pricing.sample(results, name, world, MAIN) for name in ("tight", "gaussian")
        )
        base = pricing.sample(results, "nonprivate", world, None)
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
    own = pricing.sample(results, "nonprivate", WIDE, None)
    rows = [("1 (its own)", own.measured().text(), "1")]
    for regularizer in REGULARIZERS:
        other = pricing.sample(results, "nonprivate", WIDE, None, regularizer=regularizer)
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
    cells=pricing.cells,
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
