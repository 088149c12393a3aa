"""How well `half_gain_rows` is foretold, and what a wrong `theta_norm` costs: `make prospects`.

For each case many seeds are played in a synthetic world. The gain at some time is what choices
between two checkpoints gained over uniform ones, on the average of seeds, as a share of what the
best choices would have gained. What is measured is when the gain first reaches one half, in two
stretches one after the other. Docs: docs/prospects.md.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.speed.results import BenchSection, Cell
from discreet.cli import _console as console
from discreet.cli._options import AsJson
from discreet.errors import DiscreetError
from discreet.mechanism import Mechanism
from discreet.mechanism.planning import half_gain_rows
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.simulation import Simulation
from discreet.simulation import environments as worlds
from discreet.simulation._simulate import run_seed, streams

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

DELTA = 1e-6
STEP = 1.1  # between checkpoints
SETS = 400  # decision sets of each seed, from which the gain of the best choices is worked out
NORMS = (0.5, 1.0, 2.0, 4.0)  # stated, in multiples of the truth

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Lower(worlds.Sphere):
    """The sphere with best actions that hardly stand out."""

    best_mean = 0.3


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is played.

    Attributes:
        world: its name, for readers.
        environment: where.
        epsilon: the target, with `DELTA`; None without privacy.
        variant: the learner's.
        theta_norm: as stated, in multiples of the truth.
        best: what `half_gain_rows` is told of the best action.
    """

    world: str
    environment: worlds.Environment
    epsilon: float | None
    variant: str = "windows"
    theta_norm: float = 1.0
    best: float = 0.75

    @property
    def mechanism(self) -> Mechanism:
        """The learner's noise, for a horizon that nothing depends on."""
        problem = self.environment.problem
        problem = replace(problem, theta_norm=self.theta_norm * problem.theta_norm)
        privacy = None if self.epsilon is None else Privacy(epsilon=self.epsilon, delta=DELTA)
        return calibrate(named(self.variant), problem, horizon=10**8, privacy=privacy)

    @property
    def predicted(self) -> int:
        """After how many rows half of the gain is foretold."""
        found = half_gain_rows(self.mechanism, n_actions=self.environment.n_actions, best=self.best)
        return sys.maxsize if found is None else found

    def simulation(self, rounds: int) -> Simulation:
        """The learner in its world."""
        return Simulation(environment=self.environment, mechanism=self.mechanism, rounds=rounds)


def gains(case: Case, seeds: range, last: int) -> tuple[F64, F64]:
    """The gain over chance between checkpoints, and where the middles of these stretches are."""
    least = max(10, min(last // 2, case.predicted // 8))
    count = 2 + int(np.log(last / least) / np.log(STEP))
    points = np.unique(np.geomspace(least, last, count).round().astype(np.int64))
    simulation = case.simulation(last)
    regrets = np.array([run_seed(simulation, seed, points) for seed in seeds])
    lost = np.diff(regrets, axis=1) / np.diff(points)
    chance = np.mean([_lost_by_chance(case.environment, seed) for seed in seeds])
    return 1 - lost / chance, np.sqrt(points[1:] * points[:-1])


def _lost_by_chance(environment: worlds.Environment, seed: int) -> float:
    """How far below the best action's mean reward a uniform choice is, on the average."""
    world = environment.start(streams(seed)[0])
    sets = (world.decision_set() @ world.theta for _ in range(SETS))
    return float(np.mean([means.max() - means.mean() for means in sets]))


def reached(gain: F64, times: F64) -> float | None:
    """When the gain, on the average of seeds, first is one half in two stretches; None if never."""
    mean = gain.mean(axis=0)
    both = (mean[:-1] >= 0.5) & (mean[1:] >= 0.5)
    return float(times[int(np.argmax(both))]) if both.any() else None


def row_of(case: Case, seeds: range, reach: float) -> dict[str, Cell]:
    """Foretold and measured, with what either half of the seeds would have said."""
    predicted = case.predicted
    gain, times = gains(case, seeds, int(reach * predicted))
    half = len(seeds) // 2
    measured, first, second = (reached(part, times) for part in (gain, gain[:half], gain[half:]))
    return {
        "world": case.world,
        "dim": case.environment.problem.dim,
        "actions": case.environment.n_actions,
        "epsilon": case.epsilon,
        "variant": case.variant,
        "predicted": predicted,
        "measured": None if measured is None else round(measured),
        "halves_of_seeds": "-".join("?" if x is None else f"{x:,.0f}" for x in (first, second)),
        "ratio": None if measured is None else predicted / measured,
    }


def _bar_cases(dims: tuple[int, ...]) -> Iterator[Case]:
    for dim in dims:
        for epsilon in (0.1, 1.0):
            world = worlds.Sphere(dim=dim, n_actions=25)
            yield Case(world="sphere", environment=world, epsilon=epsilon)


def _other_cases(dims: tuple[int, ...]) -> Iterator[Case]:
    for dim in dims:
        sphere = worlds.Sphere(dim=dim, n_actions=25)
        few, lower = worlds.Sphere(dim=dim, n_actions=5), Lower(dim=dim, n_actions=25)
        yield Case(world="sphere", environment=few, epsilon=1.0)
        yield Case(world="sphere, best 0.3", environment=lower, epsilon=1.0, best=0.3)
        yield Case(world="sphere", environment=sphere, epsilon=1.0, variant="tight")
        yield Case(world="sphere", environment=sphere, epsilon=None, variant="nonprivate")
        yield Case(world="fixed", environment=worlds.Fixed(dim=dim, n_actions=25), epsilon=1.0)
        yield Case(world="basis", environment=worlds.Basis(dim=dim), epsilon=1.0, best=0.4)
        clusters = worlds.Clusters(dim=dim, n_actions=25)
        yield Case(world="clusters", environment=clusters, epsilon=1.0)


def foretold(
    name: str, title: str, cases: Iterator[Case], seeds: range, on_step: Callable[[], None]
) -> BenchSection:
    """A table of predictions and measurements.

    Args:
        name: of the section.
        title: a line above the table.
        cases: what is played.
        seeds: of every case.
        on_step: called after each case.
    """
    rows = []
    for case in cases:
        rows.append(row_of(case, seeds, reach=6.0))
        on_step()
    ratios = [float(row["ratio"]) for row in rows if row["ratio"] is not None]  # type: ignore[arg-type]
    missing = sum(row["ratio"] is None for row in rows)
    return BenchSection(
        name=name,
        title=title,
        rows=tuple(rows),
        notes=(f"{len(seeds)} seeds (from 0), delta {DELTA:g}; a ratio is predicted / measured.",),
        figures={"lowest": min(ratios), "highest": max(ratios), "not_reached": float(missing)},
    )


def stated_norms(dims: tuple[int, ...], seeds: range, rounds: int) -> BenchSection:
    """What comes of a `theta_norm` that is stated too small or too large.

    Args:
        dims: of the spheres.
        seeds: of every case.
        rounds: that are played.
    """
    rows: list[dict[str, Cell]] = []
    for dim in dims:
        for norm in NORMS:
            world = worlds.Sphere(dim=dim, n_actions=25)
            case = Case(world="sphere", environment=world, epsilon=1.0, theta_norm=norm)
            found = row_of(case, seeds, reach=6.0)
            points = np.array([rounds // 10, rounds])
            simulation = case.simulation(rounds)
            regret = np.array([run_seed(simulation, seed, points) for seed in seeds])
            rows.append(
                {
                    "dim": dim,
                    "theta_norm": norm,
                    "first_release": case.mechanism.schedule.after(0),
                    "predicted": found["predicted"],
                    "measured": found["measured"],
                    "regret_early": float(regret[:, 0].mean()),
                    "regret": float(regret[:, 1].mean()),
                    "error": float(regret[:, 1].std(ddof=1) / np.sqrt(len(seeds))),
                }
            )
    return BenchSection(
        name="norms",
        title="theta_norm as stated, in multiples of the true norm",
        rows=tuple(rows),
        notes=(
            (
                f"Sphere, 25 actions, epsilon 1; pseudo-regret after {rounds // 10:,} and "
                f"{rounds:,} rounds; {len(seeds)} seeds."
            ),
        ),
    )


@app.command()
def prospects(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and features.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare when half of the gain is foretold with when it comes. A quarter of an hour."""
    seeds = range(4 if quick else 16)
    dims = (5,) if quick else (5, 20, 50)
    few = (5,) if quick else (5, 20)
    sections = [
        foretold("bar", "the default learner", _bar_cases(dims), seeds, lambda: None),
        foretold("others", "other worlds and learners", _other_cases(few), seeds, lambda: None),
        stated_norms(few, seeds, 10_000 if quick else 100_000),
    ]
    if as_json:
        console.print_json({section.name: section.to_json() for section in sections})
        return
    for section in sections:
        console.print_table(*section.table())
        for remark in section.remarks():
            console.print_text(f"- {remark}")


if __name__ == "__main__":
    try:
        app(prog_name="make prospects")
    except DiscreetError as error:
        console.note(str(error))
        sys.exit(2)
