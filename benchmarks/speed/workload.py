"""What is played: the setting of the paper's second experiment, and how much of it."""

from dataclasses import dataclass

from benchmarks.speed.timing import Run
from discreet.mechanism import Mechanism
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.simulation import Simulation, simulate
from discreet.simulation.environments import Sphere

DIM = 5
N_ACTIONS = 25
HORIZON = 50_000_000
PRIVACY = Privacy(epsilon=1.0, delta=0.1)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How long each measurement is.

    Attributes:
        rounds: of the compiled simulator, in one run.
        plain_rounds: of the NumPy loop, in one run.
        repeats: runs of each.
        scaling_repeats: runs of each horizon; these are short.
        worker_rounds: for each of four seeds, on one worker and on two.
        large_rounds: with 64 features and 4096 actions.
        calls: of the library at 5 features and 25 actions; a tenth of that at 50 and 1000.
        library_rounds: of the other bandit libraries, at most.
        library_seconds: for each of them, at most.
        starts: of the interpreter.
        memory_rounds: two lengths of a simulation.
    """

    rounds: int
    plain_rounds: int
    repeats: int
    scaling_repeats: int
    worker_rounds: int
    large_rounds: int
    calls: int
    library_rounds: int
    library_seconds: float
    starts: int
    memory_rounds: tuple[int, int]


DEFAULT = Sizes(
    rounds=700_000,
    plain_rounds=30_000,
    repeats=5,
    scaling_repeats=15,
    worker_rounds=700_000,
    large_rounds=150,
    calls=10_000,
    library_rounds=2_000,
    library_seconds=8.0,
    starts=7,
    memory_rounds=(100_000, 5_000_000),
)
QUICK = Sizes(
    rounds=300_000,
    plain_rounds=8_000,
    repeats=3,
    scaling_repeats=5,
    worker_rounds=250_000,
    large_rounds=40,
    calls=2_000,
    library_rounds=300,
    library_seconds=2.0,
    starts=3,
    memory_rounds=(100_000, 1_000_000),
)


def mechanism(
    variant: str, *, horizon: int = HORIZON, dim: int = DIM, n_actions: int = N_ACTIONS
) -> Mechanism:
    """A variant, calibrated for the sphere."""
    row = named(variant)
    problem = Sphere(dim=dim, n_actions=n_actions).problem
    return calibrate(row, problem, horizon=horizon, privacy=PRIVACY if row.private else None)


def simulation(
    variant: str,
    *,
    rounds: int,
    horizon: int = HORIZON,
    dim: int = DIM,
    n_actions: int = N_ACTIONS,
) -> Simulation:
    """A variant on the sphere, without a gap."""
    return Simulation(
        environment=Sphere(dim=dim, n_actions=n_actions),
        mechanism=mechanism(variant, horizon=horizon, dim=dim, n_actions=n_actions),
        rounds=rounds,
    )


def played(what: Simulation, seed: int) -> Run:
    """One seed of the compiled simulator, on this core. Compilation does not count."""
    outcome = simulate(what, seeds=[seed], jobs=1)
    return Run(rounds=what.rounds, seconds=outcome.seconds, regret=float(outcome.final[0]))
