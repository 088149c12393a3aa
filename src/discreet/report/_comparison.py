"""Outcomes side by side: rows with uncertainty, tables, curves, and a sentence about them.

It takes outcomes as they are and knows neither who played them nor which variants exist.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet import theory
from discreet.report import _figures as figures
from discreet.report._curves import Curve, Panel
from discreet.report._numbers import ON_A_PAGE, Measured, Wording
from discreet.report._page import Drawings, Facts, Table
from discreet.simulation import Outcome

COLUMNS = ("variant", "pseudo-regret", "ratio", "rho_min", "bound")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One variant's numbers.

    Attributes:
        variant: its name.
        regret: pseudo-regret at the last round.
        ratio: that over the baseline's; None if the baseline has no regret.
        rho_min: the lower bound on its regularizer; None if it has none.
        bound: the theorems' bound on its regret over the whole horizon; None if they do not apply.
    """

    variant: str
    regret: Measured
    ratio: Measured | None
    rho_min: float | None
    bound: float | None

    def cells(self, wording: Wording) -> tuple[str, ...]:
        """As text, in the order of ``COLUMNS``."""
        return (
            self.variant,
            self.regret.text(sign=wording.sign),
            "" if self.ratio is None else self.ratio.text(sign=wording.sign),
            "" if self.rho_min is None else wording.large(self.rho_min),
            "" if self.bound is None else wording.large(self.bound),
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Variants that played the same seeds in the same environment.

    Attributes:
        title: what sets this comparison apart, for headings.
        gap: the suboptimality gap, for the gap-dependent bound; 0 if there is none.
        outcomes: one for each variant.
        baseline: the variant that the others are compared with.
    """

    title: str
    gap: float
    outcomes: tuple[Outcome, ...]
    baseline: str

    def rows(self) -> list[Row]:
        """One for each outcome, in their order."""
        base = next(one for one in self.outcomes if _name(one) == self.baseline)
        return [
            Row(
                variant=_name(outcome),
                regret=Measured.over_seeds(outcome.final),
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
        """The baseline, the least and the largest mean among the others."""
        rows = {row.variant: row for row in self.rows()}
        base = rows.pop(self.baseline)
        text = f"{self.title}: {base.variant} lost {base.regret.text()}"
        if not rows:
            return f"{text}."
        ordered = sorted(rows.values(), key=lambda row: row.regret.mean)
        least, most = ordered[0], ordered[-1]
        return (
            f"{text}; of the others, {least.variant} has the smallest mean, "
            f"{least.regret.text()}, and {most.variant} the largest, {most.regret.text()}."
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
        """The curves."""
        return Panel(title=self.title, curves=tuple(Curve.of(one) for one in self.outcomes))

    def to_json(self) -> dict[str, Any]:
        """Everything that was measured, and the theory beside it."""
        entries = [
            {
                **outcome.to_json(),
                "ratio": None if row.ratio is None else row.ratio.to_json(),
                "rho_min": row.rho_min,
                "regret_bound": row.bound,
            }
            for outcome, row in zip(self.outcomes, self.rows(), strict=True)
        ]
        return {"gap": self.gap, "baseline": self.baseline, "variants": entries}

    def _bound(self, outcome: Outcome) -> float | None:
        """The smaller of the two theorems' bounds, where both apply."""
        mechanism = outcome.simulation.mechanism
        if mechanism.bounds is None:
            return None
        bound = theory.regret_bound(mechanism.setting, mechanism.bounds)
        if self.gap == 0.0:
            return bound
        return min(
            bound, theory.gap_regret_bound(mechanism.setting, mechanism.bounds, gap=self.gap)
        )


def logarithmic_curves(comparisons: Sequence[Comparison]) -> Drawings:
    """The regret curves on logarithmic axes, which hold small and large regrets alike."""
    means = [row.regret.mean for one in comparisons for row in one.rows()]
    least, most = min(means), max(means)
    reason = ""
    if least > 0.0:
        reason = f", because the largest regret here is {most / least:,.0f} times the smallest"
    return Drawings(
        drawings=figures.regret_panels([one.panel() for one in comparisons], prefix="log"),
        caption=(
            f"{_what_is_drawn(comparisons)} Both axes are logarithmic (equal steps multiply by "
            f"equal factors){reason}. Where a curve is flat, regret hardly "
            "grows any more."
        ),
    )


def plain_curves(comparisons: Sequence[Comparison]) -> Drawings:
    """The regret curves on plain axes, which show differences among the largest."""
    return Drawings(
        drawings=figures.regret_panels(
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
    return None if bounds is None else bounds.rho_min


def _name(outcome: Outcome) -> str:
    return outcome.simulation.mechanism.variant


def _seeds(outcome: Outcome) -> str:
    count = len(outcome.seeds)
    return f"{count} seed{'' if count == 1 else 's'}"
