"""`discreet demo`: the variants experiment at a size of its own, with the theory beside it.

The cells, and how they are run, are the experiment's; here are the demo's words, tables and JSON.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _checks as checks
from discreet import theory
from discreet.experiments import _run as running
from discreet.experiments import _variants as variants
from discreet.experiments._experiment import Results
from discreet.experiments._play import (
    CONTENDERS,
    DELTA,
    DIM,
    EPSILON,
    HORIZON,
    LINUCB,
    N_ACTIONS,
    Contender,
    Play,
)
from discreet.experiments._variants import GAPS, VariantsSizes
from discreet.mechanism.variants import VARIANTS
from discreet.privacy import Privacy
from discreet.release.policies import RULES, UCB
from discreet.report._curves import Curve, Panel
from discreet.report._figures import Exhibit, regret_drawings
from discreet.report._numbers import IN_A_TERMINAL, ON_A_PAGE, Measured, Wording, grouped
from discreet.report._page import Facts, Page, PageSection, Prose, Provenance, Table
from discreet.simulation import Outcome
from discreet.simulation.environments import Sphere

BASELINE = "nonprivate"
DEFAULT = "windows"
COMMAND = "discreet demo"
COLUMNS = ("who", "pseudo-regret", "worst seed", "ratio", "rho_min", "bound")


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One contender's numbers.

    Attributes:
        label: its name.
        regret: pseudo-regret at the last round.
        worst: the largest of any seed.
        ratio: that over the baseline's; None if the baseline has no regret.
        rho_min: the lower bound on its regularizer; None if it has none.
        bound: the theorems' bound on its regret over the whole horizon; None if they do not apply.
    """

    label: str
    regret: Measured
    worst: float
    ratio: Measured | None
    rho_min: float | None
    bound: float | None

    def cells(self, wording: Wording) -> tuple[str, ...]:
        """As text, in the order of ``COLUMNS``."""
        return (
            self.label,
            self.regret.text(sign=wording.sign),
            grouped(self.worst),
            "" if self.ratio is None else self.ratio.text(sign=wording.sign),
            "" if self.rho_min is None else wording.large(self.rho_min),
            "" if self.bound is None else wording.large(self.bound),
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Contenders that played the same seeds in the same environment.

    Attributes:
        gap: the suboptimality gap, for headings and for the gap-dependent bound.
        outcomes: one for each of them.
    """

    gap: float
    outcomes: tuple[Outcome, ...]

    @classmethod
    def of(cls, results: Results, gap: float, *, workers: int) -> "Comparison":
        """From the cells of the variants experiment at one gap, which so many workers ran."""
        played = (results.where(**who._asdict(), gap=gap) for who in CONTENDERS.values())
        return cls(gap=gap, outcomes=tuple(_outcome(own, workers) for own in played))

    @property
    def title(self) -> str:
        """What sets this comparison apart."""
        return f"Gap {self.gap:g}"

    def rows(self) -> list[ComparisonRow]:
        """One for each outcome, in their order."""
        base = next(one for one in self.outcomes if _name(one) == BASELINE)
        return [
            ComparisonRow(
                label=_name(outcome),
                regret=Measured.over_seeds(outcome.final),
                worst=float(outcome.final.max()),
                ratio=Measured.ratio(outcome.final, base.final),
                rho_min=_rho_min(outcome),
                bound=self._bound(outcome),
            )
            for outcome in self.outcomes
        ]

    def table(self, wording: Wording = ON_A_PAGE) -> Table:
        """Pseudo-regret with its uncertainty, and the theory beside it."""
        first = self.outcomes[0]
        title = (
            f"{self.title}: pseudo-regret after {first.simulation.rounds:,} rounds, mean "
            f"{wording.sign} standard error over {_seeds(first)}"
        )
        cells = tuple(row.cells(wording) for row in self.rows())
        return Table(title=title, columns=COLUMNS, rows=cells)

    def sentence(self) -> str:
        """The baseline, the default, the least and the largest mean among the others."""
        rows = {row.label: row for row in self.rows()}
        base, default = rows[BASELINE], rows.get(DEFAULT)
        text = f"{self.title}: {base.label} lost {base.regret.text()}"
        if default is not None and default.ratio is not None:
            text += (
                f", and {default.label}, the same with privacy, {default.regret.text()}: "
                f"{default.ratio.text()} times as much"
            )
        others = [row for row in rows.values() if row not in (base, default)]
        if not others:
            return f"{text}."
        ordered = sorted(others, key=lambda row: row.regret.mean)
        least, most = ordered[0], ordered[-1]
        return (
            f"{text}; of the others, {least.label} has the smallest mean, "
            f"{least.regret.text()}, and {most.label} the largest, {most.regret.text()}."
        )

    def least_slack(self) -> float:
        """The smallest factor by which a bound exceeds what was measured."""
        slacks = (
            row.bound / row.regret.mean
            for row in self.rows()
            if row.bound is not None and row.regret.mean > 0.0
        )
        return min(slacks, default=math.inf)

    def panel(self) -> Panel:
        """Regret over time, a curve for each contender."""
        curves = (
            Curve.over_seeds(_name(one), one.rounds.astype(np.float64), one.regrets)
            for one in self.outcomes
        )
        return Panel(title=self.title, curves=tuple(curves))

    def to_json(self) -> dict[str, Any]:
        """Everything that was measured, and the theory beside it."""
        entries = [
            {
                "label": row.label,
                **outcome.to_json(),
                "ratio": None if row.ratio is None else row.ratio.to_json(),
                "rho_min": row.rho_min,
                "regret_bound": row.bound,
            }
            for outcome, row in zip(self.outcomes, self.rows(), strict=True)
        ]
        return {"gap": self.gap, "baseline": BASELINE, "variants": entries}

    def _bound(self, outcome: Outcome) -> float | None:
        """The smaller of the two theorems' bounds, where both apply."""
        mechanism = outcome.simulation.mechanism
        if mechanism.bounds is None or not _by_confidence(outcome):
            return None
        bound = theory.regret_bound(mechanism.setting, mechanism.bounds)
        if self.gap == 0.0:
            return bound
        return min(
            bound, theory.gap_regret_bound(mechanism.setting, mechanism.bounds, gap=self.gap)
        )


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """What was played, and the results."""

    sizes: VariantsSizes
    comparisons: tuple[Comparison, ...]
    provenance: Provenance

    def tables(self) -> list[tuple[str, list[str], list[tuple[str, ...]]]]:
        """Title, columns and rows of each table, for a terminal."""
        tables = [one.table(IN_A_TERMINAL) for one in self.comparisons]
        return [(table.title, list(table.columns), list(table.rows)) for table in tables]

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        settings = {
            "dim": DIM,
            "n_actions": N_ACTIONS,
            "gaps": list(GAPS),
            "privacy": asdict(Privacy(epsilon=EPSILON, delta=DELTA)),
            "horizon": HORIZON,
            "rounds": self.sizes.rounds,
            "seeds": self.sizes.seeds,
        }
        return {
            "settings": settings,
            "comparisons": [one.to_json() for one in self.comparisons],
            "provenance": self.provenance.to_json(),
        }


def sizes(*, quick: bool) -> VariantsSizes:
    """How much is played."""
    return variants.DEMO_QUICK if quick else variants.DEMO


def steps(*, quick: bool) -> int:
    """How many runs that is."""
    return len(variants.cells(sizes(quick=quick)))


def run(
    *,
    jobs: int,
    on_step: Callable[[int], None] | None = None,
    sizes: VariantsSizes = variants.DEMO,
) -> DemoResult:
    """Play all of it on ``jobs`` processes.

    ``on_step`` is called with the number of finished runs.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    kept = running.InMemory()
    with running.BACKENDS["loky"](checks.count("jobs", jobs), None) as workers:
        running.run(variants.EXPERIMENT.tasks_of(sizes), kept, workers, on_cell=on_step)
    results = Results.of(kept.finished.values(), variants.NAME)
    return DemoResult(
        sizes=sizes,
        comparisons=tuple(Comparison.of(results, gap, workers=jobs) for gap in GAPS),
        provenance=Provenance.gathered(
            command=f"{COMMAND} --quick" if sizes == variants.DEMO_QUICK else COMMAND,
            started=started,
            seconds=time.perf_counter() - clock,
            workers=jobs,
        ),
    )


def write_page(result: DemoResult, out: Path) -> Path:
    """Write ``report.html`` into a folder, which is made if need be, and say where it is."""
    return _page(result).write(out / "report.html")


def _outcome(results: Results, workers: int) -> Outcome:
    """All seeds of one contender, as `discreet simulate` reports them."""
    sample = results.sample()
    play = Play(**results.cells[0].settings)  # type: ignore[arg-type]  # its own fields
    return Outcome(
        simulation=play.simulation(),
        asked=len(sample.seeds),
        seeds=list(sample.seeds),
        rounds=sample.rounds.astype(np.int64),
        regrets=sample.values,
        seconds=sum(cell.seconds for cell in results.cells) / workers,
    )


def _page(result: DemoResult) -> Page:
    comparisons, sizes = result.comparisons, result.sizes
    outcomes = comparisons[0].outcomes
    kinds = Table(
        title="The table of variants, as the command discreet variants lists it",
        columns=("variant", "what it is"),
        rows=tuple((row.name, row.summary) for row in VARIANTS.values()),
        numeric=False,
    )
    return Page(
        title="What privacy costs a bandit",
        lead=tuple(Prose(text) for text in (WHAT_IT_IS, _what_was_played(sizes))),
        sections=(
            PageSection(
                heading="Regret over time",
                blocks=(
                    *(Prose(one.sentence()) for one in comparisons),
                    logarithmic_curves(comparisons).block(),
                    plain_curves(comparisons).block(),
                ),
            ),
            PageSection(
                heading="The numbers, and the theory beside them",
                blocks=(*(one.table() for one in comparisons), Prose(_how_to_read(result))),
            ),
            PageSection(heading="The variants", blocks=(kinds,)),
            PageSection(
                heading="What is promised",
                blocks=(guarantees(outcomes), Prose(A_CAUTION)),
            ),
        ),
        provenance=result.provenance.facts(*_facts(sizes)),
    )


WHAT_IT_IS = (
    "A contextual bandit learner picks one of several actions for each person who comes by, and "
    "learns from the reward; a private one adds noise to the statistics it learns from, which "
    "limits how much of what everyone else is shown can depend on any one person. Pseudo-regret "
    "is what its choices cost: in each round, the mean reward of the best action less that of "
    f"the action chosen, summed up. The variant {DEFAULT} is what LinUCB uses unless another is "
    f"named; {BASELINE} is the same learner without noise, which promises nothing, so the two "
    f"together say what privacy costs. {LINUCB} is the paper's learner without privacy; it and "
    "all others play by upper confidence bounds, as in the paper. The variant tight is ours, and "
    "the rest are the paper's."
)


def _what_was_played(sizes: VariantsSizes) -> str:
    return (
        f"Each learner played {sizes.rounds:,} rounds in the setting of Experiment "
        "2 of “Differentially Private Contextual Linear Bandits” (Shariff and Sheffet, 2018): "
        f"{N_ACTIONS} fresh unit vectors in {DIM} dimensions every round, "
        f"rewards of plus or minus one, epsilon {EPSILON:g} and delta "
        f"{DELTA:g}. The gap is the least by which the best action's mean reward "
        "exceeds every other's. Noise and confidence are calibrated for the paper's horizon of "
        f"{HORIZON:,} rounds, of which these are the first. All of them play the same "
        f"{sizes.seeds} worlds."
    )


A_CAUTION = (
    f"A delta of {DELTA:g} is the paper's, kept so that results can be compared. It promises "
    "little to real people: take one well below one over their number."
)


def _how_to_read(result: DemoResult) -> str:
    sizes = result.sizes
    slack = min(one.least_slack() for one in result.comparisons)
    worst = 2 * Sphere.best_mean  # from the best mean to minus that
    return (
        f"Ratio is the mean pseudo-regret over that of {BASELINE}. rho_min is the lower bound on "
        "the eigenvalues of the regularizer that a variant's noise and shift amount to; "
        f"{DEFAULT}, {BASELINE} and tight have no such bound. Bound is what "
        "the paper's theorems "
        f"promise about the regret over all {HORIZON:,} rounds with high probability: "
        "thm:linucb-regret, or thm:linucb-gap-regret where there is a gap "
        f"and it is smaller. Every bound is at least {slack:,.0f} times what was measured, in "
        f"{sizes.rounds:,} rounds. As no action here costs more than {worst:g} a round, "
        f"a bound above {worst * HORIZON:,.0f} says nothing. With {sizes.seeds} seeds the standard "
        "errors themselves are rough."
    )


def _facts(sizes: VariantsSizes) -> tuple[tuple[str, str], ...]:
    gaps = " and ".join(f"{gap:g}" for gap in GAPS)
    played = (
        f"sphere environment, dim {DIM}, {N_ACTIONS} actions, gap {gaps}, "
        f"epsilon {EPSILON:g}, delta {DELTA:g}, horizon "
        f"{HORIZON:,}, failure probability 1/horizon, {sizes.rounds:,} rounds"
    )
    return (
        ("settings", played),
        ("seeds", f"0 to {sizes.seeds - 1}"),
    )


def logarithmic_curves(comparisons: Sequence[Comparison]) -> Exhibit:
    """The regret curves on logarithmic axes, which hold small and large regrets alike."""
    means = [row.regret.mean for one in comparisons for row in one.rows()]
    least, most = min(means), max(means)
    reason = ""
    if least > 0.0:
        reason = f", because the largest regret here is {most / least:,.0f} times the smallest"
    return Exhibit(
        name="demo-log",
        drawings=regret_drawings([one.panel() for one in comparisons], prefix="log"),
        caption=(
            f"{_what_is_drawn(comparisons)} Both axes are logarithmic (equal steps multiply by "
            f"equal factors){reason}. Where a curve is flat, regret hardly "
            "grows any more."
        ),
    )


def plain_curves(comparisons: Sequence[Comparison]) -> Exhibit:
    """The regret curves on plain axes, which show differences among the largest."""
    return Exhibit(
        name="demo-plain",
        drawings=regret_drawings(
            [one.panel() for one in comparisons], logarithmic=False, prefix="plain"
        ),
        caption=(
            "The same curves on plain axes, which show the differences among the largest. "
            f"{_what_is_drawn(comparisons)} Where bands overlap, read nothing into the order."
        ),
    )


def guarantees(outcomes: Sequence[Outcome]) -> Facts:
    """What each variant promises; variants that promise the same, for the same reason, together."""
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        sentence = str(outcome.simulation.mechanism.guarantee)
        names.setdefault(sentence, []).append(_name(outcome))
    return Facts(tuple((", ".join(who), sentence) for sentence, who in names.items()))


def _what_is_drawn(comparisons: Sequence[Comparison]) -> str:
    count = _seeds(comparisons[0].outcomes[0])
    return f"Lines are means over {count}; shaded bands reach one standard error either side."


def _rho_min(outcome: Outcome) -> float | None:
    bounds = outcome.simulation.mechanism.bounds
    return None if bounds is None or not _by_confidence(outcome) else bounds.rho_min


def _by_confidence(outcome: Outcome) -> bool:
    """Whether it plays by upper confidence bounds: nothing else in the paper has theorems."""
    return isinstance(outcome.simulation.policy, UCB)


def _name(outcome: Outcome) -> str:
    """The label of who played; the variant's name for one without a label."""
    variant = outcome.simulation.mechanism.variant
    rule = next(name for name, kind in RULES.items() if type(outcome.simulation.policy) is kind)
    labels = {own: label for label, own in CONTENDERS.items()}
    return labels.get(Contender(variant, rule), variant)


def _seeds(outcome: Outcome) -> str:
    count = len(outcome.seeds)
    return f"{count} seed{'' if count == 1 else 's'}"
