"""What privacy costs: regret of the default over that of the same policy without noise.

The default variant, `windows`, and `nonprivate` play the same worlds (the same seeds) with the same
policy, so that noise is all that sets them apart. The paper's LinUCB without privacy and `tight`
play beside them. Ours, not the paper's. The statements that are judged are the project's own aims.
"""

import numpy as np

from discreet.experiments import _price_shown as shown
from discreet.experiments._claims import Claim, Interval, all_of, mean_interval, only_if
from discreet.experiments._experiment import Experiment, Results
from discreet.experiments._play import DIM, LINUCB
from discreet.experiments._price_cells import (
    BASE,
    BESIDE,
    CURVES,
    LARGE_EPSILON,
    MAIN,
    NAME,
    OURS,
    PAPER,
    SCENES,
    SIZES,
    TELLING,
    PriceScene,
    PriceTarget,
    PriceWorld,
    cells,
    key,
    regrets,
    sample,
    seeded,
)

SOURCE = "the project's own aims"
# By scene, with 5 features: the most that the default may pay over the same without noise.
MOST = dict(zip(SCENES, (2.1, 3.0, 2.2, 2.8, 3.0), strict=True))
ALIKE = 1.5  # a price that counts as close to 1 at epsilon 10
# The least that the paper's `gaussian` should pay over the default.
SAVED = dict(zip(BESIDE, (50.0, 60.0), strict=True))


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
    return sample(results, OURS, world, target).over(sample(results, BASE, world))


def _affordable(results: Results, scene: PriceScene, most: float) -> Claim:
    found = _price_interval(results, scene.world(DIM), MAIN)
    return Claim(
        name=f"price-{key(scene)}",
        statement=(
            f"{scene.where}, at epsilon 1, delta 0.1 and 5 features, privacy costs "
            f"at most a factor of {most:g}."
        ),
        source=SOURCE,
        measured=f"regret of {OURS} over regret of {BASE}: {found.text()}",
        published="",
        verdict=only_if(results.rounds >= TELLING, found.verdict(most=most)),
        rule=f"the interval of the ratio after 1e6 rounds, over shared seeds, is below {most:g}",
    )


def _better(results: Results, scene: PriceScene) -> Claim:
    world = scene.world(DIM)
    ours, tight = (sample(results, name, world, MAIN) for name in (OURS, "tight"))
    found = ours.over(tight)
    return Claim(
        name=f"better-{key(scene)}",
        statement=(
            f"{scene.where}, for the same guarantee, at 5 features, {OURS} has less regret than "
            "tight."
        ),
        source=SOURCE,
        measured=f"regret of {OURS} over regret of tight: {found.text()}",
        published="",
        verdict=only_if(results.rounds >= TELLING, found.verdict(most=1.0)),
        rule="the interval of the ratio after 1e6 rounds, over shared seeds, is below 1",
    )


def _saved(results: Results, world: PriceWorld, least: float) -> Claim:
    paper, ours = (sample(results, name, world, MAIN) for name in (PAPER, OURS))
    found = paper.over(ours)
    return Claim(
        name=f"saved-{key(world)}",
        statement=(
            f"On the sphere with gap {world.gap:g}, for the same guarantee, the paper's Gaussian "
            f"variant pays at least {least:g} times the regret of {OURS}."
        ),
        source=SOURCE,
        measured=f"regret of {PAPER} over regret of {OURS}: {found.text()}",
        published="",
        verdict=only_if(results.rounds >= TELLING, found.verdict(least=least)),
        rule=f"the interval of the ratio after 1e6 rounds, over shared seeds, is above {least:g}",
    )


def _slope(results: Results, world: PriceWorld, delta: float) -> Interval:
    """Of the logarithm of the price over that of epsilon: least squares for each seed.

    The non-private regret does not depend on epsilon, so it does not change the slope.
    """
    across = np.log(results.numbers("epsilon"))
    around = across - across.mean()
    slopes = np.log(regrets(results, world, delta)) @ around / (around @ around)
    return mean_interval(np.asarray(slopes))


def _falls(results: Results) -> Claim:
    slopes = [_slope(results, *one) for one in CURVES]
    steepest, flattest = (pick(slopes, key=lambda one: one.estimate) for pick in (min, max))
    steps = [np.diff(regrets(results, *one).mean(axis=0)) for one in CURVES]
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
        verdict=only_if(
            results.rounds >= TELLING, all_of(*(one.verdict(most=0.0) for one in slopes))
        ),
        rule=(
            "in all settings the interval of the power, the mean over seeds of a least-squares "
            "slope of logarithms, is below 0"
        ),
    )


def _close_to_one(results: Results) -> Claim:
    target = PriceTarget(epsilon=LARGE_EPSILON, delta=MAIN.delta)
    found = {key(scene): _price_interval(results, scene.world(DIM), target) for scene in SCENES}
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
            results.rounds >= TELLING, all_of(*(one.verdict(most=ALIKE) for one in found.values()))
        ),
        rule=f"all intervals after 1e6 rounds, over shared seeds, are below {ALIKE:g}",
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
    figures=shown.show,
    tables=shown.tables,
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
