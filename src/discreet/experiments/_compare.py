"""Every private bandit in one table: ours, other people's, and none at all, in the same worlds.

What is protected, and who has to be trusted, stand beside every figure, and statements compare only
learners that agree in both. Ours, not the paper's.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from discreet.experiments import _patients
from discreet.experiments._claims import Claim, Interval, Verdict, all_of, only_if
from discreet.experiments._contest import (
    BASIS,
    CONTESTANTS,
    NOTHING,
    PLACES,
    REWARDS,
    ROWS,
    Contest,
    Contestant,
)
from discreet.experiments._experiment import Experiment, Results, Sample, Scale
from discreet.report import _figures as figures
from discreet.report._curves import Panel
from discreet.report._numbers import grouped
from discreet.report._page import Table

NAME = "compare"
SOURCE = "the project's own aims"
FIRST_SEED = 70_000  # nothing was tuned on these
TELLING = 100_000  # rounds from which on statements are judged
NEAR = 1.5  # how many times the regret of the better multi-armed rule is allowed
DEFAULT = {ROWS: "windows", REWARDS: "windows (rewards)"}
DIVERGENCES = ("dp-imed", "dp-kl-ucb")
PROTECTION = {ROWS: "decision sets and rewards", REWARDS: "rewards", NOTHING: "nothing"}
TRUST = {"central": "curator", "shuffle": "shuffler", "local": "nobody", "-": "-"}


@dataclass(frozen=True, kw_only=True)
class CompareTarget:
    """What privacy is promised."""

    epsilon: float
    delta: float

    def label(self) -> str:
        """As in: ε 1, δ 1e-6."""
        return f"ε {self.epsilon:g}, δ {self.delta:g}".replace("e-0", "e-")


DELTAS = (0.1, 1e-6)
MAIN = tuple(CompareTarget(epsilon=1.0, delta=delta) for delta in DELTAS)
TARGETS = tuple(
    CompareTarget(epsilon=epsilon, delta=delta) for epsilon in (0.1, 1.0, 10.0) for delta in DELTAS
)
# Curves of a figure: at most nine can be told apart.
DRAWN = (
    "nonprivate",
    "windows",
    "windows (rewards)",
    "tight",
    "rare-switching",
    "batched-ts-joint",
    "adac-oful",
    "batched-ts",
    "ldp-linucb",
)
DRAWN_ON_BASIS = tuple("dp-imed" if name == "rare-switching" else name for name in DRAWN)


@dataclass(frozen=True, kw_only=True)
class CompareSizes:
    """How much is played."""

    targets: tuple[CompareTarget, ...]
    rounds: int
    seeds: int
    places: tuple[str, ...]


_SIMULATED = tuple(place for place in PLACES if place != "patients")
_PLACES = PLACES if _patients.available() else _SIMULATED
SIZES = {
    Scale.SMOKE: CompareSizes(targets=MAIN[:1], rounds=500, seeds=2, places=_SIMULATED),
    Scale.QUICK: CompareSizes(targets=TARGETS, rounds=100_000, seeds=12, places=_PLACES),
    Scale.FULL: CompareSizes(targets=MAIN, rounds=1_000_000, seeds=24, places=_PLACES),
}


def seeded(sizes: CompareSizes, least: int) -> CompareSizes:
    """The same with at least so many seeds."""
    return replace(sizes, seeds=max(sizes.seeds, least))


def cells(sizes: CompareSizes) -> list[Contest]:
    """Every learner in every place that it can play in, at every target; seed by seed."""
    return list(_cells(sizes))


def _cells(sizes: CompareSizes) -> Iterator[Contest]:
    seeds = range(FIRST_SEED, FIRST_SEED + sizes.seeds)
    for seed, where, who in product(seeds, sizes.places, CONTESTANTS.values()):
        if where not in who.places:
            continue
        for epsilon, delta in dict.fromkeys(_told(who, one) for one in sizes.targets):
            yield Contest(
                learner=who.name,
                environment=where,
                epsilon=epsilon,
                delta=delta,
                rounds=sizes.rounds,
                points=20,
                seed=seed,
            )


def _told(who: Contestant, target: CompareTarget) -> tuple[float | None, float | None]:
    """Which parts of a target a learner gets: neither, epsilon alone, or both."""
    if not who.private:
        return None, None
    return target.epsilon, None if who.pure else target.delta


def _sample(results: Results, name: str, where: str, target: CompareTarget) -> Sample:
    epsilon, delta = _told(CONTESTANTS[name], target)
    return results.sample(learner=name, environment=where, epsilon=epsilon, delta=delta)


def _here(results: Results, where: str, protects: str, trust: str | None = None) -> list[str]:
    """Who protects just that, among those who played there."""
    played = set(results.where(environment=where).values("learner"))
    return [
        who.name
        for who in CONTESTANTS.values()
        if who.name in played and who.protects == protects and trust in {None, who.trust}
    ]


def _best(results: Results, names: list[str], where: str, target: CompareTarget) -> str:
    """Who has the least mean regret."""
    return min(names, key=lambda name: _sample(results, name, where, target).final.mean())


def _targets(results: Results) -> list[CompareTarget]:
    return [one for one in TARGETS if _has(results, one)]


def _has(results: Results, target: CompareTarget) -> bool:
    """Whether this target was played."""
    return target.epsilon in results.numbers("epsilon") and target.delta in results.numbers("delta")


def _places(results: Results) -> list[str]:
    return [place for place in PLACES if place in results.values("environment")]


def claims(results: Results) -> list[Claim]:
    """The default has the least regret of all that promise the same, and is near the best arms."""
    found = [
        _least(results, where, protects, target)
        for protects in (ROWS, REWARDS)
        for target in MAIN
        if _has(results, target)
        for where in _places(results)
    ]
    return [*found, *(_near(results, target) for target in MAIN if _has(results, target))]


@dataclass(frozen=True, kw_only=True)
class _Duel:
    """The regret of one learner over that of a rival, and what it says of a bound on it."""

    rival: str
    ratio: Interval
    verdict: Verdict


def _duels(own: Sample, rivals: dict[str, Sample], most: float) -> list[_Duel]:
    """One with each rival: whether our regret is at most so many times theirs."""
    ratios = {name: own.over(other) for name, other in rivals.items()}
    return [
        _Duel(rival=name, ratio=ratio, verdict=ratio.verdict(most=most))
        for name, ratio in ratios.items()
    ]


def _hardest(duels: list[_Duel]) -> _Duel:
    """The duel that the common verdict rests on; of several the one with the largest ratio."""
    common = all_of(*(duel.verdict for duel in duels))
    deciding = [duel for duel in duels if duel.verdict is common]
    return max(deciding, key=lambda duel: duel.ratio.estimate)


def _least(results: Results, where: str, protects: str, target: CompareTarget) -> Claim:
    ours = DEFAULT[protects]
    others = [name for name in _here(results, where, protects, "central") if name != ours]
    rivals = {name: _sample(results, name, where, target) for name in others}
    duels = _duels(_sample(results, ours, where, target), rivals, 1.0)
    hardest = _hardest(duels)
    return Claim(
        name=f"least-{protects}-{where}-{target.delta:g}",
        statement=(
            f"In {where}, at {target.label()}, the default learner has the least regret of all "
            f"that protect {PROTECTION[protects]} with a trusted curator."
        ),
        source=SOURCE,
        measured=f"regret of {ours} over regret of {hardest.rival}, the hardest of {len(others)} "
        f"rivals: {hardest.ratio.text()}; below 1 against {_beaten(duels)} of {len(others)}",
        published="",
        verdict=only_if(results.rounds >= TELLING, hardest.verdict),
        rule=(
            f"the interval of the ratio after {results.played}, over shared seeds, is "
            "below 1 against every rival; it does not hold if one interval is above 1"
        ),
    )


def _beaten(duels: list[_Duel]) -> int:
    return sum(duel.verdict is Verdict.HOLDS for duel in duels)


def _near(results: Results, target: CompareTarget) -> Claim:
    ours = _sample(results, DEFAULT[REWARDS], BASIS, target)
    rivals = {name: _sample(results, name, BASIS, target) for name in DIVERGENCES}
    hardest = _hardest(_duels(ours, rivals, NEAR))
    return Claim(
        name=f"near-arms-{target.delta:g}",
        statement=(
            f"On basis, at {target.label()} and protecting rewards, the default has at most "
            f"{NEAR:g} times the regret of the better of DP-IMED and DP-KLUCB, which know that it "
            "is a multi-armed bandit."
        ),
        source=SOURCE,
        measured=f"regret of {DEFAULT[REWARDS]} over regret of {hardest.rival}, the harder of the "
        f"two: {hardest.ratio.text()}",
        published="",
        verdict=only_if(results.rounds >= TELLING, hardest.verdict),
        rule=(
            f"the interval of the ratio after {results.played}, over shared worlds, is "
            f"below {NEAR:g} against both"
        ),
    )


def _panel(results: Results, where: str) -> Panel:
    names = DRAWN_ON_BASIS if where == BASIS else DRAWN
    return Panel(
        title=f"{where}, {MAIN[0].label()}",
        curves=tuple(_sample(results, name, where, MAIN[0]).curve(name) for name in names),
    )


def show(results: Results) -> list[figures.Exhibit]:
    """Regret over time at epsilon 1 and delta 0.1, a figure for each place."""
    return [
        figures.Exhibit(
            name=f"{NAME}-{where}",
            drawings=figures.regret_drawings(
                [_panel(results, where)], logarithmic=True, prefix=f"{NAME}-{where}"
            ),
            caption=(
                f"{where.capitalize()}: pseudo-regret over rounds at {MAIN[0].label()}, both axes "
                "logarithmic. Lines are means over the seeds in the table; bands reach one "
                "standard error either side. nonprivate promises nothing; windows, tight, "
                "rare-switching and batched-ts-joint protect decision sets and rewards; names "
                "with (rewards), adac-oful, batched-ts and dp-imed protect rewards only; "
                "ldp-linucb protects against the server as well."
            ),
        )
        for where in _places(results)
    ]


def tables(results: Results) -> list[Table]:
    """Everybody in each place; then what privacy costs against the best rule without it."""
    return [*(_everybody(results, where) for where in _places(results)), _prices(results)]


def _everybody(results: Results, where: str) -> Table:
    targets = _targets(results)
    rows = []
    for protects in (NOTHING, ROWS, REWARDS):
        for name in _here(results, where, protects):
            who = CONTESTANTS[name]
            found = [_sample(results, name, where, target) for target in targets]
            rows.append(
                (
                    name,
                    PROTECTION[protects],
                    TRUST[who.trust],
                    ("pure" if who.pure else "approximate") if who.private else "-",
                    *(_mean_and_median(one) for one in found),
                )
            )
    seeds = len(_sample(results, DEFAULT[ROWS], where, targets[0]).seeds)
    return Table(
        title=(
            f"{where.capitalize()}: pseudo-regret after {results.played}, mean ± "
            f"standard error (median) over {seeds} seeds from {FIRST_SEED:,} on. Compare only what "
            "protects the same and trusts the same. Pure privacy has a delta of 0, so its "
            "figures are the same at every delta"
        ),
        columns=("learner", "protects", "trusts", "kind", *(one.label() for one in targets)),
        rows=tuple(rows),
    )


def _mean_and_median(sample: Sample) -> str:
    """As in: 280 ± 150 (111). They are far apart where a few bad seeds make the mean."""
    return f"{sample.measured().text()} ({grouped(float(np.median(sample.final)))})"


def _prices(results: Results) -> Table:
    targets = _targets(results)
    rows = []
    for where, ours in product(_places(results), DEFAULT.values()):
        free = _here(results, where, NOTHING)
        best = _best(results, free, where, targets[0])
        base = _sample(results, best, where, targets[0])
        prices = (_sample(results, ours, where, target).over_text(base) for target in targets)
        rows.append(
            (
                where,
                ours,
                f"{best}, {grouped(float(base.final.mean()))}",
                *prices,
            )
        )
    return Table(
        title=(
            "The price of privacy: regret of the default over that of the non-private rule with "
            "the least mean regret in that place, ± standard error over shared seeds. The rule is "
            "chosen after the fact, which favours it"
        ),
        columns=("place", "learner", "best without privacy", *(one.label() for one in targets)),
        rows=tuple(rows),
    )


EXPERIMENT = Experiment(
    name=NAME,
    title="Every private bandit in one table",
    question=(
        "How do other people's private bandits do beside ours, under one exact accounting? Linear "
        "ones with a trusted curator, a shuffler or nobody to trust, multi-armed ones, ours, and "
        "rules that promise nothing play the same worlds: 25 new actions a round (sphere), 25 "
        "that stay (fixed), five arms (basis), groups of people with uneven features (clusters), "
        "all with 5 features, and real records (patients: tumours to be called benign or "
        "malignant, 10 features, 2 actions, from scikit-learn; played only if the extra data is "
        "installed). Everybody knows the number of rounds and is calibrated for it. This "
        "experiment and its statements are ours, not the paper's."
    ),
    sizes=SIZES,
    cells=cells,
    seeded=seeded,
    claims=claims,
    figures=show,
    tables=tables,
    reading=(
        (
            "Unlike should not be compared: whoever protects rewards only may use decision sets "
            "and actions as they are, and whoever trusts nobody adds noise to every single row. "
            "Statements compare learners that protect the same and trust a curator."
        ),
        (
            "Noise scales are ours, the least that the exact Gaussian curve, or Laplace's, allows "
            "under replacement of one round; except those of gaussian, which are the paper's and "
            "larger. rare-switching is the paper's tree with our scales. Confidence widths of the "
            "baselines are those of their proofs, with sharper tails where we have them; most of "
            "them are far wider than what is needed, which is what proofs cost. windows, "
            "batched-ts, nonprivate and LinTS play at the rewards' scale, by posterior deviations "
            "or draws; there is no regret theorem here for that. LinTS (as in its proof) makes "
            "draws as wide as a confidence ellipsoid, at the level that LinUCB has."
        ),
        (
            "Some learners have heavy tails: a few seeds never find the best action and make the "
            "mean, so medians stand beside means. Statements are about means. Where that of a "
            "rival cannot be told from 0, there is no interval for a ratio to it, and nothing is "
            "decided."
        ),
        (
            "dp-se-joint has smaller batches than dp-se: just large enough for the widths of "
            "sampling and noise together. That is what joint means there; it has nothing to do "
            "with joint privacy, and both protect rewards."
        ),
        (
            "In patients the same 569 records come over and over, in one random order for each "
            "seed, and no linear rule is always right, so that everybody's regret grows for ever. "
            "The guarantee is about one round, as everywhere."
        ),
    ),
)
