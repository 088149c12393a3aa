"""The demo: every variant in the setting of the paper's second experiment, made short.

It chooses what is played and says what it means; `simulate` plays, `report` draws and writes.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.mechanism.variants import VARIANTS, calibrate
from discreet.privacy import Privacy
from discreet.report import _comparison as comparison
from discreet.report._comparison import Comparison
from discreet.report._numbers import IN_A_TERMINAL
from discreet.report._page import Page, Prose, Section, Table
from discreet.report._provenance import Provenance
from discreet.simulation import Outcome, Simulation, simulate
from discreet.simulation.environments import TOP_MEAN, Sphere

BASELINE = "nonprivate"
DEFAULT = "tight"
COMMAND = "discreet demo"


@dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """What is played.

    Attributes:
        dim: features of an action.
        n_actions: actions in a decision set.
        gaps: one comparison of all variants for each suboptimality gap.
        privacy: the target of every private variant.
        horizon: the rounds that noise and bounds are calibrated for.
        rounds: the rounds that are played.
        seeds: how many worlds, each with a learner of every variant.
    """

    dim: int
    n_actions: int
    gaps: tuple[float, ...]
    privacy: Privacy
    horizon: int
    rounds: int
    seeds: int

    @property
    def steps(self) -> int:
        """How many runs that is."""
        return len(VARIANTS) * len(self.gaps) * self.seeds


# Paper: sec:expt-regret-time, cut short: a fiftieth of its horizon, a minute or two on two cores.
SETTINGS = DemoSettings(
    dim=5,
    n_actions=25,
    gaps=(0.0, 0.1),
    privacy=Privacy(epsilon=1.0, delta=0.1),
    horizon=50_000_000,
    rounds=1_000_000,
    seeds=8,
)
STEPS = SETTINGS.steps


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """What was played, and what came of it."""

    settings: DemoSettings
    comparisons: tuple[Comparison, ...]
    provenance: Provenance

    def tables(self) -> list[tuple[str, list[str], list[tuple[str, ...]]]]:
        """Title, columns and rows of each table, for a terminal."""
        tables = [one.table(IN_A_TERMINAL) for one in self.comparisons]
        return [(table.title, list(table.columns), list(table.rows)) for table in tables]

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        settings = {**asdict(self.settings), "gaps": list(self.settings.gaps)}
        return {
            "settings": settings,
            "comparisons": [one.to_json() for one in self.comparisons],
            "provenance": self.provenance.to_json(),
        }


def run(
    *,
    jobs: int,
    on_step: Callable[[int], None] | None = None,
    settings: DemoSettings = SETTINGS,
) -> DemoResult:
    """Play all of it on ``jobs`` processes; ``on_step`` hears the number of runs done."""
    started, clock = datetime.now(UTC), time.perf_counter()
    comparisons = []
    for place, gap in enumerate(settings.gaps):
        outcomes: list[Outcome] = []
        for simulation in _simulations(settings, gap):
            done = (place * len(VARIANTS) + len(outcomes)) * settings.seeds
            outcomes.append(_play(simulation, settings, jobs=jobs, done=done, on_step=on_step))
        comparisons.append(
            Comparison(title=f"Gap {gap:g}", gap=gap, outcomes=tuple(outcomes), baseline=BASELINE)
        )
    seconds = time.perf_counter() - clock
    return DemoResult(
        settings=settings,
        comparisons=tuple(comparisons),
        provenance=Provenance.gathered(
            command=COMMAND, started=started, seconds=seconds, workers=jobs
        ),
    )


def write_report(result: DemoResult, out: Path) -> Path:
    """Write ``report.html`` into a folder, which is made if need be, and say where it is."""
    return _page(result).write(out / "report.html")


def _simulations(settings: DemoSettings, gap: float) -> Iterator[Simulation]:
    environment = Sphere(dim=settings.dim, n_actions=settings.n_actions, gap=gap)
    for variant in VARIANTS.values():
        mechanism = calibrate(
            variant,
            environment.problem,
            horizon=settings.horizon,
            privacy=settings.privacy if variant.private else None,
        )
        yield Simulation(environment=environment, mechanism=mechanism, rounds=settings.rounds)


def _play(
    simulation: Simulation,
    settings: DemoSettings,
    *,
    jobs: int,
    done: int,
    on_step: Callable[[int], None] | None,
) -> Outcome:
    def on_seed(count: int) -> None:
        if on_step is not None:
            on_step(done + count)

    return simulate(simulation, seeds=range(settings.seeds), jobs=jobs, on_seed=on_seed)


def _page(result: DemoResult) -> Page:
    comparisons, settings = result.comparisons, result.settings
    outcomes = comparisons[0].outcomes
    kinds = Table(
        title="The table of variants, as the command discreet variants lists it",
        columns=("variant", "what it is"),
        rows=tuple((row.name, row.summary) for row in VARIANTS.values()),
        numeric=False,
    )
    return Page(
        title="What privacy costs a bandit",
        lead=tuple(Prose(text) for text in (WHAT_IT_IS, _what_was_played(settings))),
        sections=(
            Section(
                heading="Regret over time",
                blocks=(
                    *(Prose(one.sentence()) for one in comparisons),
                    comparison.logarithmic_curves(comparisons),
                    comparison.plain_curves(comparisons),
                ),
            ),
            Section(
                heading="The numbers, and the theory beside them",
                blocks=(*(one.table() for one in comparisons), Prose(_how_to_read(result))),
            ),
            Section(heading="The variants", blocks=(kinds,)),
            Section(
                heading="What is promised",
                blocks=(comparison.guarantees(outcomes), Prose(_a_caution(settings))),
            ),
        ),
        provenance=result.provenance.facts(*_facts(settings)),
    )


WHAT_IT_IS = (
    "A contextual bandit learner picks one of several actions for each person who comes by, and "
    "learns from the reward; a private one adds noise to the statistics it learns from, which "
    "limits how much of what everyone else is shown can depend on any one person. Pseudo-regret "
    "is what its choices cost: in each round, the mean reward of the best action less that of "
    f"the action chosen, summed up. The variant {DEFAULT} is what LinUCB uses unless another is "
    f"named; {BASELINE} promises nothing; all others are the paper's."
)


def _what_was_played(settings: DemoSettings) -> str:
    return (
        f"Each variant of LinUCB played {settings.rounds:,} rounds in the setting of Experiment "
        "2 of “Differentially Private Contextual Linear Bandits” (Shariff and Sheffet, 2018): "
        f"{settings.n_actions} fresh unit vectors in {settings.dim} dimensions every round, "
        f"rewards of plus or minus one, epsilon {settings.privacy.epsilon:g} and delta "
        f"{settings.privacy.delta:g}. The gap is the least by which the best action's mean reward "
        "exceeds every other's. Noise and confidence are calibrated for the paper's horizon of "
        f"{settings.horizon:,} rounds, of which these are the first. All variants play the same "
        f"{settings.seeds} worlds."
    )


def _a_caution(settings: DemoSettings) -> str:
    return (
        f"A delta of {settings.privacy.delta:g} is the paper's, kept so that results can be "
        "compared. It promises little to real people: take one well below one over their number."
    )


def _how_to_read(result: DemoResult) -> str:
    settings = result.settings
    slack = min(one.least_slack() for one in result.comparisons)
    most = 2 * TOP_MEAN * settings.horizon
    return (
        f"Ratio is the mean pseudo-regret over that of {BASELINE}. rho_min is the lower bound on "
        "the eigenvalues of the regularizer that a variant's noise and shift amount to; "
        f"{DEFAULT} has neither that nor a regret theorem. Bound is what the paper's theorems "
        f"promise about the regret over all {settings.horizon:,} rounds with high probability: "
        "thm:linucb-regret, or thm:linucb-gap-regret where there is a gap "
        f"and it is smaller. Every bound is at least {slack:,.0f} times what was measured, in "
        f"{settings.rounds:,} rounds. As no action here costs more than {2 * TOP_MEAN:g} a round, "
        f"a bound above {most:,.0f} says nothing. With {settings.seeds} seeds the standard errors "
        "themselves are rough."
    )


def _facts(settings: DemoSettings) -> tuple[tuple[str, str], ...]:
    gaps = " and ".join(f"{gap:g}" for gap in settings.gaps)
    played = (
        f"sphere environment, dim {settings.dim}, {settings.n_actions} actions, gap {gaps}, "
        f"epsilon {settings.privacy.epsilon:g}, delta {settings.privacy.delta:g}, horizon "
        f"{settings.horizon:,}, failure probability 1/horizon, {settings.rounds:,} rounds"
    )
    return (
        ("settings", played),
        ("seeds", f"0 to {settings.seeds - 1}"),
    )
