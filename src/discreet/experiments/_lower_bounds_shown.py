"""What the lower bounds look like: fits, figures and tables of that experiment."""

import math
from dataclasses import dataclass

import numpy as np

from discreet import theory
from discreet.experiments._experiment import F64, Results
from discreet.experiments._pulling import (
    CONTEXTS,
    NOISELESS,
    PRIVATE,
    RESPONSE,
    Key,
    Tally,
    tallies,
)
from discreet.report import _figures as figures
from discreet.report._curves import LOGARITHMIC, Curve, Guide, Panel
from discreet.report._numbers import grouped, short
from discreet.report._page import Table

READING = (
    (
        "What privacy adds is measured against the same learner without its noise: UCB1 for the "
        "tree, noiseless elimination with the same batches for elimination. Settings whose regret "
        "is above n^(3/4) are left out of the fits, because there the horizon ends the game before "
        "the arms are told apart, and the claim does not speak of them."
    ),
    (
        "With the printed batches an epoch's length is the larger of a sampling term and a privacy "
        "term, so privacy costs nothing until epsilon is about a quarter of the epoch's target gap "
        "(itself at most 1/2, for rewards in [0, 1]), and then all of 1/epsilon. That is no "
        "straight line over epsilon in [0.05, 1], whatever c is. Joint batches solve for the sum "
        "of both errors, and what privacy adds is then within a factor of 2 of proportional to "
        "1/epsilon everywhere. Epochs double, so c depends on where a gap falls between them."
    ),
    (
        "The lower bound's constants are those of its proof and were not made to be tight: "
        "learners lie far above them."
    ),
)


@dataclass(frozen=True)
class Fit:
    """Additional regret = slope * k ln(n) / epsilon.

    Attributes:
        slope: by least squares through the origin.
        r_squared: 1 - (squared misfit) / (squared distance from the mean).
        points: how many settings.
        over_ucb1: R squared of a line with intercept for the regret over UCB1's instead.
        onset: the median epsilon at which privacy has doubled the noiseless regret.
    """

    slope: float
    r_squared: float
    points: int
    over_ucb1: float
    onset: float


def gaps_of(found: dict[Key, Tally]) -> list[float]:
    """The gaps that were played."""
    return sorted({key.gap for key in found})


def _own(found: dict[Key, Tally], learner: str, gap: float) -> list[Tally]:
    return [
        tally
        for key, tally in found.items()
        if key.learner == learner and key.gap == gap and tally.learns
    ]


def _added(found: dict[Key, Tally], own: list[Tally], baseline: str) -> F64:
    bases = [found[one.key._replace(learner=baseline, epsilon=None)] for one in own]
    return np.array(
        [one.regrets.mean() - base.regrets.mean() for one, base in zip(own, bases, strict=True)]
    )


def fitted(found: dict[Key, Tally], learner: str, gap: float) -> Fit | None:
    """The fit for one learner and gap; None if fewer than three settings can be used."""
    own = _own(found, learner, gap)
    if len(own) < 3:
        return None
    size = np.array([one.size for one in own])
    added = _added(found, own, NOISELESS[learner])
    slope = float(size @ added / (size @ size))
    line = np.polyfit(size, over := _added(found, own, "ucb1"), 1)
    noiseless = np.array([one.regrets.mean() for one in own]) - added
    onset = slope * size * np.array([one.epsilon for one in own]) / noiseless
    return Fit(
        slope=slope,
        r_squared=_r_squared(added, slope * size),
        points=len(own),
        over_ucb1=_r_squared(over, np.polyval(line, size)),
        onset=float(np.median(onset)),
    )


def _r_squared(values: F64, fit: F64) -> float:
    around = float(((values - values.mean()) ** 2).sum())
    return 1.0 - float(((values - fit) ** 2).sum()) / around if around > 0.0 else math.nan


def show(results: Results) -> list[figures.Exhibit]:
    """Regret against two contexts; pulls of arms, and what privacy adds to their regret."""
    found = tallies(results)
    return [_contexts(results), _pulls(found), _price(found)]


def _contexts(results: Results) -> figures.Exhibit:
    games = results.where(game=CONTEXTS)
    targets = sorted(
        {(float(c.settings["epsilon"] or 0), float(c.settings["delta"] or 0)) for c in games.cells}
    )
    panels = []
    for epsilon, delta in dict.fromkeys((targets[0], targets[-1])):
        samples = {
            learner: games.sample(learner=learner, epsilon=epsilon, delta=delta)
            for learner in games.values("learner")
        }
        rounds = samples[RESPONSE].rounds
        panels.append(
            Panel(
                title=f"epsilon {epsilon:.3g}, delta {delta:g}",
                curves=tuple(
                    sample.curve("standard" if learner == RESPONSE else f"joint: {learner}")
                    for learner, sample in sorted(samples.items())
                ),
                guides=(Guide(across=rounds, up=rounds / 4, like=1, dotted=True),),
            )
        )
    return figures.Exhibit(
        name="lower-bounds-contexts",
        drawings=figures.regret_drawings(panels, prefix="lower-bounds-contexts"),
        caption=(
            "Two contexts, two arms: the best learner under standard privacy, and LinUCB under "
            "joint privacy with the same epsilon and delta, on the same contexts. Dotted: n/4. "
            f"Lines are means over {len(samples[RESPONSE].seeds)} seeds; bands reach one standard "
            "error either side."
        ),
    )


def _middle(values: list[int]) -> int:
    return values[len(values) // 2]


def _pulls(found: dict[Key, Tally]) -> figures.Exhibit:
    horizon = max(key.horizon for key in found)
    n_arms = _middle(sorted({key.n_arms for key in found}))
    seeds = len(next(iter(found.values())).regrets)
    panels = [_pulls_panel(found, Key("", n_arms, gap, horizon, None)) for gap in gaps_of(found)]
    return figures.Exhibit(
        name="lower-bounds-pulls",
        drawings=figures.drawings(
            panels, across=LOGARITHMIC, up=LOGARITHMIC, prefix="lower-bounds-pulls"
        ),
        caption=(
            f"Pulls of an arm that is not best, mean over arms and {seeds} seeds with one standard "
            f"error, for k = {n_arms} arms and n = {horizon:,}; and the lower bound "
            "ln(n)/(100 epsilon gap)."
        ),
    )


def _pulls_panel(found: dict[Key, Tally], place: Key) -> Panel:
    curves = []
    for learner in PRIVATE:
        own = [
            tally
            for key, tally in found.items()
            if key._replace(learner="", epsilon=None) == place and key.learner == learner
        ]
        per_seed = np.array([one.pulls.mean(axis=1) for one in own]).T
        across = np.array([one.epsilon for one in own])
        curves.append(Curve.over_seeds(learner, across, per_seed))
    bound = np.array([one.pulls_bound for one in own])
    curves.append(Curve(label="bound", rounds=across, mean=bound, stderr=np.zeros(len(bound))))
    return Panel(
        title=f"gap {place.gap:g}", curves=tuple(curves), across="epsilon", up="pulls of one arm"
    )


def _price(found: dict[Key, Tally]) -> figures.Exhibit:
    panels = [panel for gap in gaps_of(found) if (panel := _price_panel(found, gap)).curves]
    return figures.Exhibit(
        name="lower-bounds-price",
        drawings=figures.drawings(
            panels, across=LOGARITHMIC, up=LOGARITHMIC, prefix="lower-bounds-price"
        )
        if panels
        else (),
        caption=(
            "What privacy adds to the regret of each learner, over k ln(n)/epsilon: one point for "
            "each k, n and epsilon with regret at most n^(3/4), mean over seeds. Dashed: the fit "
            "through the origin for joint batches. Where the printed batches' sampling term is the "
            "larger one, privacy adds nothing, and nothing is drawn."
        ),
    )


def _price_panel(found: dict[Key, Tally], gap: float) -> Panel:
    curves: list[Curve] = []
    guides: tuple[Guide, ...] = ()
    for learner in PRIVATE:
        own = sorted(_own(found, learner, gap), key=lambda one: one.size)
        added = _added(found, own, NOISELESS[learner])
        keep = added >= 1.0
        if not keep.any():
            continue
        size = np.array([one.size for one in own])
        fit = fitted(found, learner, gap)
        if learner == "dpse-joint" and fit is not None:
            guides = (Guide(across=size, up=fit.slope * size, like=len(curves)),)
        nothing = np.full(int(keep.sum()), np.nan)
        curves.append(Curve(label=learner, rounds=size[keep], mean=added[keep], stderr=nothing))
    return Panel(
        title=f"gap {gap:g}",
        curves=tuple(curves),
        guides=guides,
        across="k ln(n) / epsilon",
        up="added regret",
        joined=False,
    )


def tables(results: Results) -> list[Table]:
    """Standard privacy; the distance from the bounds; the fits."""
    found = tallies(results)
    return [_contexts_table(results), _distance_table(found), _fits_table(found)]


def _contexts_table(results: Results) -> Table:
    games = results.where(game=CONTEXTS)
    rounds = int(games.numbers("horizon")[0])
    joint = [name for name in games.values("learner") if name != RESPONSE]
    rows = []
    for epsilon in games.numbers("epsilon"):
        for delta in games.where(epsilon=epsilon).numbers("delta"):
            own = games.where(epsilon=epsilon, delta=delta)
            exact = theory.standard_dp_regret(horizon=rounds, epsilon=epsilon, delta=delta)
            measured = [own.sample(learner=name).measured().text() for name in (RESPONSE, *joint)]
            rows.append((f"{epsilon:.3g}, {delta:g}", grouped(exact, digits=6), *measured))
    return Table(
        title=f"Two contexts: pseudo-regret after {rounds:,} rounds, mean ± standard error",
        columns=(
            "epsilon, delta",
            "standard, exact",
            "standard, measured",
            *(f"joint: {name}" for name in joint),
        ),
        rows=tuple(rows),
    )


def _distance_table(found: dict[Key, Tally]) -> Table:
    rows = []
    for learner in PRIVATE:
        for epsilon in sorted({key.epsilon for key in found if key.epsilon is not None}):
            own = [
                one
                for key, one in found.items()
                if key.learner == learner and key.epsilon == epsilon
            ]
            pulls = np.array([float(one.pulls.mean()) / one.pulls_bound for one in own])
            regret = np.array([one.regrets.mean() / one.regret_bound for one in own])
            within = sum(one.premise for one in own)
            spans = (f"{short(v.min())} / {short(float(np.median(v)))}" for v in (pulls, regret))
            rows.append((f"{learner}, {epsilon:g}", *spans, f"{within} of {len(own)}"))
    return Table(
        title=(
            "How far above the bounds, over all k, gaps and n: least and median of mean pulls of "
            "an arm over ln(n)/(100 epsilon gap), and of mean regret over (k-1) ln(n)/(200 "
            "epsilon); and how many settings meet the claim's premises"
        ),
        columns=("learner, epsilon", "pulls over bound", "regret over bound", "premises met"),
        rows=tuple(rows),
    )


def _fits_table(found: dict[Key, Tally]) -> Table:
    rows = []
    for learner in PRIVATE:
        for gap in gaps_of(found):
            fit = fitted(found, learner, gap)
            if fit is None:
                continue
            own = _own(found, learner, gap)
            above = float(np.mean([one.regrets.mean() / one.regret_bound for one in own]))
            rows.append(
                (
                    f"{learner}, {gap:g}",
                    grouped(fit.slope),
                    f"{fit.r_squared:.3f}",
                    f"{fit.over_ucb1:.3f}",
                    grouped(fit.onset, digits=2),
                    grouped(above, digits=2),
                    f"{fit.points}",
                )
            )
    return Table(
        title=(
            "Added regret = c k ln(n)/epsilon: c and R² against the same learner without noise; R² "
            "of a line with intercept against UCB1; the epsilon below which privacy more than "
            "doubles the regret (median); mean regret over its bound; settings used"
        ),
        columns=(
            "learner, gap",
            "c",
            "R²",
            "R², over UCB1",
            "doubles at",
            "over bound",
            "settings",
        ),
        rows=tuple(rows),
    )
