"""What the price of privacy looks like: figures and tables of that experiment."""

import math
from collections.abc import Sequence

import numpy as np

from discreet.experiments._experiment import Results
from discreet.experiments._play import LINUCB
from discreet.experiments._price_cells import (
    BASE,
    BESIDE,
    CURVES,
    DIMS,
    MAIN,
    NAME,
    OURS,
    PAPER,
    SCENES,
    PriceScene,
    PriceTarget,
    PriceWorld,
    key,
    price_of,
    sample,
)
from discreet.report import _figures as figures
from discreet.report._curves import Curve, Guide, LogarithmicAxis, Panel
from discreet.report._numbers import grouped
from discreet.report._page import Table

ROOM = 1.25  # a factor above the curves, which begin high at the left, where the axis has its name


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


def _label(world: PriceWorld, delta: float) -> str:
    return f"d {world.dim}, δ {delta:g}".replace("e-0", "e-")


def _own(scene: PriceScene) -> list[tuple[PriceWorld, float]]:
    worlds = [scene.world(dim) for dim in DIMS]
    return [one for one in CURVES if one[0] in worlds]


def _curve(results: Results, world: PriceWorld, delta: float) -> Curve:
    epsilons = results.numbers("epsilon")
    prices = [price_of(results, world, PriceTarget(epsilon=one, delta=delta)) for one in epsilons]
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
                f"without noise in the same worlds, after {results.played} (both axes "
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
        base, linucb = (sample(results, name, world) for name in (BASE, LINUCB))
        ours, tight = (sample(results, name, world, MAIN) for name in (OURS, "tight"))
        rows.append(
            (
                key(scene),
                base.measured().text(),
                ours.measured().text(),
                ours.over_text(base),
                linucb.measured().text(),
                tight.measured().text(),
                *(grouped(float(one.final.max())) for one in (base, ours)),
                f"{len(base.seeds)}",
            )
        )
    return Table(
        title=(
            f"{dim} features, epsilon 1, delta 0.1: pseudo-regret after {results.played}, mean "
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
        base = sample(results, BASE, world)
        prices = (
            price_of(results, world, PriceTarget(epsilon=one, delta=delta)) for one in epsilons
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
            f"Price of privacy: {scene.title}. Regret of {OURS} over that of {BASE} after "
            f"{results.played}, by epsilon (ε), ± standard error over shared seeds; and the "
            f"pseudo-regret of {BASE}"
        ),
        columns=("", *(f"ε {one:g}" for one in epsilons), BASE, "seeds"),
        rows=tuple(rows),
    )


def _against_paper(results: Results) -> Table:
    rows = []
    for world in BESIDE:
        ours, paper = (sample(results, name, world, MAIN) for name in (OURS, PAPER))
        rows.append(
            (
                f"{world.gap:g}",
                *(one.measured().text() for one in (ours, paper)),
                paper.over_text(ours),
                f"{len(ours.seeds)}",
            )
        )
    return Table(
        title=(
            f"Sphere, 5 features, epsilon 1, delta 0.1: pseudo-regret after {results.played}, "
            "mean ± standard error, and its ratio over shared seeds"
        ),
        columns=("gap", OURS, PAPER, f"{PAPER} over {OURS}", "seeds"),
        rows=tuple(rows),
    )
