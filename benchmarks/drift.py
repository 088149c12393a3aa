"""What forgetting costs in a world that stands still, and buys in worlds that change.

`python -m benchmarks.drift` plays the default variant without a memory and with several; a fresh
learner every so many rows instead, which costs the same privacy because every row is in one of
them; and the same memories without noise. Three worlds: one that stands still, one in which the
parameter changes its sign, one in which it slowly turns. Regret is against what is best in each
round. It prints a table for docs/drift.md.
"""

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import joblib
import numpy as np
import typer
from numpy.typing import NDArray

from discreet.cli import _console as console
from discreet.cli._options import AsJson
from discreet.errors import DiscreetError
from discreet.kernels import _random as random
from discreet.mechanism import Mechanism
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.strategies import Windows
from discreet.mechanism.variants import calibrate
from discreet.privacy import Guarantee, Privacy
from discreet.release.policies import usual
from discreet.simulation import Simulation
from discreet.simulation._simulate import play_on, run_seed, streams
from discreet.simulation.environments import Drifting, Environment, Sphere

F64 = NDArray[np.float64]

DELTA = 1e-6
QUIET = 1e-6  # the deviation of one draw where there should be none, in rows
MEMORIES = (5_000, 20_000, 100_000)
SPHERE = Sphere(dim=5, n_actions=25)


class Contender(NamedTuple):
    """A learner, by what makes it differ from the default."""

    label: str
    memory: int | None = None
    restart: int | None = None
    private: bool = True


CONTENDERS = (
    Contender("no memory"),
    *(Contender(f"memory {m:,}", memory=m) for m in MEMORIES),
    *(Contender(f"fresh every {m:,}", restart=m) for m in MEMORIES),
)
TWINS = (
    Contender("no noise, no memory", private=False),
    *(Contender(f"no noise, memory {m:,}", memory=m, private=False) for m in MEMORIES),
)


class Cell(NamedTuple):
    """The regret of a learner in a world, over seeds."""

    mean: float
    stderr: float
    worst: float

    def __str__(self) -> str:
        return f"{self.mean:,.0f} ± {self.stderr:,.0f} ({self.worst:,.0f})"


def worlds(rounds: int) -> dict[str, Environment]:
    """By name: still, a flip after a quarter of the rounds, and one full turn in all of them."""
    return {
        "still": SPHERE,
        "flip": Drifting(world=SPHERE, flip=rounds // 4),
        "turn": Drifting(world=SPHERE, turn=rounds),
    }


def mechanism(wanted: Contender, epsilon: float) -> Mechanism:
    """The noise of a contender. Without privacy the releases are the same, and noise is a trace."""
    if not wanted.private and wanted.memory is None:
        return calibrate("nonprivate", SPHERE.problem, horizon=10**9, privacy=None)
    target = Privacy(epsilon=epsilon, delta=DELTA)
    found = calibrate("windows", SPHERE.problem, horizon=None, privacy=target, memory=wanted.memory)
    if wanted.private or not isinstance(found.strategy, Windows):
        return found
    return replace(
        found,
        strategy=replace(found.strategy, draw=QUIET**2),
        noise=GaussianNoise(std=QUIET, moment_std=QUIET),
        guarantee=Guarantee.nothing("there is no noise to speak of"),
    )


def policy(wanted: Contender, played: Mechanism) -> Any:  # noqa: ANN401
    """The rule that is usual with noise, or without."""
    if wanted.private or wanted.memory is None:
        return usual(played)
    return usual(calibrate("nonprivate", SPHERE.problem, horizon=1, privacy=None))


def regret(simulation: Simulation, seed: int, restart: int | None) -> float:
    """The regret of one seed at the end, with a fresh learner every ``restart`` rows.

    The first of them lives half as long, so that no change falls together with a fresh start.
    """
    rounds = simulation.rounds
    if restart is None:
        return float(run_seed(simulation, seed, np.array([rounds]))[-1])
    world_seed, noise_seed, policy_seed = streams(seed)
    world = simulation.environment.start(world_seed)
    noise, draws = random.seed_state(noise_seed), random.seed_state(policy_seed)
    total = 0.0
    starts = [0, *range(restart // 2, rounds, restart), rounds]
    for start, end in itertools.pairwise(starts):
        total += float(play_on(simulation, world, noise, draws, np.array([end - start]))[0][-1])
    return total


def measured(
    epsilon: float,
    contenders: tuple[Contender, ...],
    *,
    rounds: int,
    seeds: range,
    jobs: int,
    on_cell: Callable[[str], None],
) -> Iterator[tuple[str, dict[str, Cell]]]:
    """A row of the table for each contender."""
    pool = joblib.Parallel(n_jobs=jobs)
    for wanted in contenders:
        noise = mechanism(wanted, epsilon)
        cells = {}
        for name, environment in worlds(rounds).items():
            simulation = Simulation(
                environment=environment,
                mechanism=noise,
                rounds=rounds,
                policy=policy(wanted, noise),
            )
            found = np.array(
                pool(joblib.delayed(regret)(simulation, seed, wanted.restart) for seed in seeds)
            )
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
            cells[name] = Cell(float(found.mean()), float(error), float(found.max()))
            on_cell(f"{wanted.label}, {name}: {cells[name]}")
        yield wanted.label, cells


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def drift(
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Give it again for another. 1 and 0.1 if not.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="How many to play.")] = 400_000,
    seeds: Annotated[int, typer.Option(help="How many worlds.")] = 16,
    first_seed: Annotated[int, typer.Option(help="The first of them.")] = 60_000,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Regret with and without a memory, in worlds that change and in one that does not."""
    chosen = {
        "rounds": rounds,
        "seeds": range(first_seed, first_seed + seeds),
        "jobs": jobs,
        "on_cell": console.note,
    }
    sections = {f"epsilon {value:g}": (value, CONTENDERS) for value in epsilon or (1.0, 0.1)}
    sections["without noise"] = (1.0, TWINS)
    result = {
        title: dict(measured(value, contenders, **chosen))  # type: ignore[arg-type]
        for title, (value, contenders) in sections.items()
    }
    if as_json:
        plain = {
            title: {
                label: {k: c._asdict() for k, c in cells.items()} for label, cells in rows.items()
            }
            for title, rows in result.items()
        }
        console.print_json(plain)
        return
    for title, rows in result.items():
        print(f"\n| {title} | " + " | ".join(worlds(rounds)) + " |")
        print("|---|" + "---|" * len(worlds(rounds)))
        for label, cells in rows.items():
            print(f"| {label} | " + " | ".join(map(str, cells.values())) + " |")


if __name__ == "__main__":
    try:
        app(prog_name="python -m benchmarks.drift")
    except DiscreetError as error:
        console.note(str(error))
        sys.exit(2)
