"""Experiment 1: how the regret of non-private LinUCB grows with the number of features.

Paper: sec:expt-regret-vs-d, fig:expt1-regret-vs-time and fig:expt1-regret-vs-d.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.experiments._claims import Claim, Interval, LogMeans, PowerLaw, only_if
from discreet.experiments._experiment import Experiment, Results, Sample, Scale
from discreet.experiments._play import Play
from discreet.report import _figures as figures
from discreet.report._curves import LOGARITHMIC, Curve, Guide, Panel
from discreet.report._numbers import grouped
from discreet.report._page import Table

NAME = "dimension"
SOURCE = "sec:expt-regret-vs-d"
REWARDS = {"signs": "plus or minus one", "gaussian": "Gaussian"}
SLOPES = {"signs": (1.8, 2.1), "gaussian": (1.7, 2.0)}  # what counts as the published slope
# The authors' best-fit lines of fig:expt1-regret-vs-d: factor and exponent of factor * d**exponent.
FITS = {"signs": (2.437, 1.988), "gaussian": (4.704, 1.85)}
TOLERANCE = 0.25  # how far from a published fit still counts as agreeing
MIDDLE = 16  # where the fits are compared
ROUNDS = 100_000
LARGEST = 64


@dataclass(frozen=True, kw_only=True)
class DimensionSizes:
    """How much is played: rounds, and how many seeds for each number of features."""

    rounds: int
    seeds: dict[int, int]


# Log-spaced as in the paper. A round costs about d**4 operations, so large d gets fewer seeds,
# and needs fewer: its relative spread is smaller.
SIZES = {
    Scale.SMOKE: DimensionSizes(rounds=500, seeds={4: 2, 6: 2, 8: 2}),
    Scale.QUICK: DimensionSizes(
        rounds=ROUNDS, seeds={4: 16, 6: 16, 8: 16, 11: 12, 16: 8, 23: 4, 32: 3}
    ),
    Scale.FULL: DimensionSizes(
        rounds=ROUNDS,
        seeds={4: 64, 6: 64, 8: 48, 11: 48, 16: 32, 23: 16, 32: 12, 45: 8, LARGEST: 6},
    ),
}


def seeded(sizes: DimensionSizes, least: int) -> DimensionSizes:
    """The same with at least so many seeds for every dimension."""
    return replace(sizes, seeds={dim: max(least, count) for dim, count in sizes.seeds.items()})


def cells(sizes: DimensionSizes) -> list[Play]:
    """Both kinds of rewards, every dimension, the large ones first."""
    return [
        Play(
            variant="nonprivate",
            policy="ucb",
            dim=dim,
            n_actions=dim**2,
            gap=0.1,
            rewards=rewards,
            horizon=sizes.rounds,
            rounds=sizes.rounds,
            shown=sizes.rounds,
            points=20,
            seed=seed,
        )
        for dim, seeds in sorted(sizes.seeds.items(), reverse=True)
        for seed in range(seeds)
        for rewards in REWARDS
    ]


def _dims(results: Results) -> list[int]:
    return [int(dim) for dim in results.numbers("dim")]


def _samples(results: Results, rewards: str) -> list[Sample]:
    return [results.sample(rewards=rewards, dim=dim) for dim in _dims(results)]


def fit(results: Results, rewards: str) -> PowerLaw:
    """The best line through the logarithms of dimension and mean regret."""
    finals = [sample.final for sample in _samples(results, rewards)]
    return PowerLaw(x=np.array(_dims(results), dtype=float), means=LogMeans.of(finals))


def claims(results: Results) -> list[Claim]:
    """What the paper says of its first experiment."""
    fits = {rewards: fit(results, rewards) for rewards in REWARDS}
    return [
        _superlinear(results, fits),
        *(_slope(results, rewards, found) for rewards, found in fits.items()),
        *(_level(results, rewards, found) for rewards, found in fits.items()),
        _gaussian_worse(results),
    ]


def _enough(results: Results) -> bool:
    """Whether all rounds were played, over at least a factor of eight in the dimension."""
    dims = _dims(results)
    return results.numbers("rounds") == [ROUNDS] and dims[-1] >= 8 * dims[0]


def _superlinear(results: Results, fits: dict[str, PowerLaw]) -> Claim:
    slopes = [found.exponent for found in fits.values()]
    least = min(slopes, key=lambda slope: slope.low)
    return Claim(
        name="superlinear",
        statement="The regret grows clearly faster than linearly with the dimension.",
        source=SOURCE,
        measured=f"smaller of the two slopes: {least.text()}",
        published="roughly 2",
        verdict=only_if(_enough(results), least.verdict(least=1.0)),
        rule="the intervals of both slopes lie above 1",
    )


def _slope(results: Results, rewards: str, found: PowerLaw) -> Claim:
    low, high = SLOPES[rewards]
    theirs = FITS[rewards][1]
    whole = _dims(results)[-1] >= LARGEST
    return Claim(
        name=f"slope-{rewards}",
        statement=f"With {REWARDS[rewards]} rewards the slope of the log-log line is about 2.",
        source=SOURCE,
        measured=found.exponent.text(),
        published=f"{theirs:g} (their fitted line)",
        verdict=only_if(_enough(results) and whole, found.exponent.verdict(least=low, most=high)),
        rule=f"the interval of the slope lies within [{low:g}, {high:g}], for d from 4 to 64",
    )


def _level(results: Results, rewards: str, found: PowerLaw) -> Claim:
    factor, exponent = FITS[rewards]
    theirs = factor * MIDDLE**exponent
    ours = found.at(MIDDLE)
    verdict = ours.verdict(least=theirs * (1 - TOLERANCE), most=theirs * (1 + TOLERANCE))
    return Claim(
        name=f"regret-at-16-{rewards}",
        statement=(
            f"With {REWARDS[rewards]} rewards the fitted regret at d = {MIDDLE} is about "
            f"{grouped(theirs)}."
        ),
        source=SOURCE,
        measured=ours.text(),
        published=f"{grouped(theirs)} ({factor:g} d^{exponent:g})",
        verdict=only_if(_enough(results), verdict),
        rule="the interval of the fitted line lies within 25 % of theirs",
    )


def _gaussian_worse(results: Results) -> Claim:
    ratio = _ratio_over_dims(results)
    return Claim(
        name="gaussian-rewards-worse",
        statement="Regret is somewhat lower with rewards of plus or minus one than with Gaussian.",
        source=SOURCE,
        measured=f"Gaussian over plus or minus one, geometric mean over d: {ratio.text()}",
        published=f"{_published_ratio()} at d = {MIDDLE} (their fitted lines)",
        verdict=only_if(_enough(results), ratio.verdict(least=1.0)),
        rule="the interval of the ratio lies above 1",
    )


def _ratio_over_dims(results: Results) -> Interval:
    """The geometric mean over dimensions, each counting the same."""
    finals = [sample.final for name in ("gaussian", "signs") for sample in _samples(results, name)]
    count = len(finals) // 2
    weights = np.repeat([1 / count, -1 / count], count)
    return LogMeans.of(finals).combined(weights).exponential()


def _published_ratio() -> str:
    (factor, exponent), (base, base_exponent) = (FITS[rewards] for rewards in ("gaussian", "signs"))
    return grouped(factor * MIDDLE**exponent / (base * MIDDLE**base_exponent))


def show(results: Results) -> list[figures.Exhibit]:
    """Regret over time by dimension, and at the end over the dimension."""
    over_time = [
        Panel(
            title=f"Rewards {words}",
            curves=tuple(
                sample.curve(f"d = {dim}")
                for dim, sample in zip(_dims(results), _samples(results, rewards), strict=True)
            ),
            ordered=True,
        )
        for rewards, words in REWARDS.items()
    ]
    return [
        figures.Exhibit(
            name="dimension-slope",
            drawings=figures.drawings(
                [_log_log(results)], across=LOGARITHMIC, up=LOGARITHMIC, prefix="dimension-slope"
            ),
            caption=(
                "Regret over the dimension, both axes logarithmic. Points are means over seeds, "
                "bars one standard error either side (often smaller than the points). Dashed: "
                "our fitted lines. Dotted: the authors' fitted lines."
            ),
        ),
        figures.Exhibit(
            name="dimension-time",
            drawings=figures.regret_drawings(over_time, logarithmic=False, prefix="dimension-time"),
            caption=(
                "Regret over time for each dimension. Lines are means over seeds; bands reach one "
                "standard error either side."
            ),
        ),
    ]


def _log_log(results: Results) -> Panel:
    dims = np.array(_dims(results), dtype=float)
    curves, guides = [], []
    for place, rewards in enumerate(REWARDS):
        values = [sample.measured() for sample in _samples(results, rewards)]
        errors = [math.nan if one.stderr is None else one.stderr for one in values]
        mean = np.array([one.mean for one in values])
        curves.append(
            Curve(label=rewards, rounds=dims, mean=mean, stderr=np.array(errors, dtype=float))
        )
        found = fit(results, rewards)
        factor, exponent = FITS[rewards]
        ours = np.array([found.at(dim).estimate for dim in dims])
        guides += [
            Guide(across=dims, up=ours, like=place),
            Guide(across=dims, up=factor * dims**exponent, like=place, dotted=True),
        ]
    return Panel(
        title=f"After {results.played}",
        curves=tuple(curves),
        guides=tuple(guides),
        across="dimension d",
        joined=False,
    )


def tables(results: Results) -> list[Table]:
    """Mean regret for each dimension, beside the authors' fits."""
    rows = []
    for dim in _dims(results):
        row = [f"{dim}"]
        for rewards, (factor, exponent) in FITS.items():
            sample = results.sample(rewards=rewards, dim=dim)
            row += [sample.measured().text(), grouped(factor * dim**exponent)]
        rows.append((*row, f"{len(results.sample(rewards='signs', dim=dim).seeds)}"))
    return [
        Table(
            title=(
                f"Pseudo-regret after {results.played}, mean ± standard "
                "error over seeds, and the authors' fitted lines at that dimension"
            ),
            columns=("d", "plus or minus one", "authors' fit", "Gaussian", "authors' fit", "seeds"),
            rows=tuple(rows),
        )
    ]


EXPERIMENT = Experiment(
    name=NAME,
    title="Experiment 1: how regret grows with the dimension",
    question=(
        "Is the regret of LinUCB quadratic in the number of features d when there is a gap? "
        "Non-private LinUCB with regularizer 1, d² fresh actions a round, gap 0.1, 100,000 "
        "rounds, alpha one over that, d log-spaced from 4 to 64; rewards of plus or minus one, "
        "and rewards with Gaussian noise of variance 1."
    ),
    sizes=SIZES,
    cells=cells,
    seeded=seeded,
    claims=claims,
    figures=show,
    tables=tables,
    reading=(
        (
            "The fitted line minimises squares between logarithms of d and of mean regret, each "
            "dimension counting once. Its intervals count what other seeds would have given. The "
            "points bend a little, so the line's slope sums up this range of d and is no limit."
        ),
    ),
)
