"""How often Bayesian intervals for mean rewards hold the truth."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.real_data import learners, values
from benchmarks.real_data.data import BLOCKS, CENTRED, F64, SHARED, Logged, Model
from benchmarks.real_data.sizes import Sizes
from benchmarks.speed.results import BenchSection, Cell
from discreet import LinUCB
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.release import Release
from discreet.release.policies import PosteriorUCB
from discreet.simulation import Simulation, release_after
from discreet.simulation.environments import Basis, Environment, Fixed, Sphere

LEVELS = (0.8, 0.95)
SYNTHETIC = Privacy(epsilon=1.0, delta=0.1)
WORLDS: dict[str, Environment] = {
    "sphere": Sphere(dim=5, n_actions=25),
    "sphere, gap 0.1": Sphere(dim=5, n_actions=25, gap=0.1),
    "fixed": Fixed(dim=5, n_actions=25),
    "basis": Basis(dim=5),
}
ENOUGH = 8.0  # a theta norm that holds for the insurance data, under every model

Step = Callable[[], None]


class Shares(NamedTuple):
    """The share of intervals that hold the truth, at each of `LEVELS`, shape (2,) each."""

    every: F64  # of all actions
    chosen: F64  # of the action that is chosen, by the policy's probabilities


def held(release: Release, policy: PosteriorUCB, sets: F64, truth: F64) -> Shares:
    """How often intervals of a release hold the truth.

    Args:
        release: of any learner whose noise is known.
        policy: which action it chooses.
        sets: decision sets, shape (n, K, d).
        truth: the parameter.
    """
    n, actions, dim = sets.shape
    flat = sets.reshape(-1, dim)
    means = flat @ truth
    weights = learners.probabilities(policy, release, sets)
    every, chosen = np.empty(len(LEVELS)), np.empty(len(LEVELS))
    for at, level in enumerate(LEVELS):
        found = release.cautious.estimate(flat, level=level)
        inside = ((found.low <= means) & (means <= found.high)).reshape(n, actions)
        every[at] = inside.mean()
        chosen[at] = (weights * inside).sum(axis=1).mean()
    return Shares(every, chosen)


def coverage(sizes: Sizes, data: Logged, on_step: Step = lambda: None) -> BenchSection:
    """The share of intervals that hold the truth, in synthetic worlds and on insurance data.

    Args:
        sizes: how much is measured.
        data: the insurance data, or a stand-in.
        on_step: called after each kind of world.
    """
    rows = []
    for name, environment in WORLDS.items():
        rows += [_row(name, None, *found) for found in _synthetic(environment, sizes)]
        on_step()
    for model in (SHARED, CENTRED, BLOCKS):
        for theta_norm in (*sizes.theta_norms, ENOUGH):
            found = _sampled(data, model, theta_norm, sizes)
            rows += [_row(f"insurance, {model.name}", theta_norm, *one) for one in found]
        on_step()
    least = {
        f"least_{level:.0%}".rstrip("%"): min(
            float(row[f"{which}_{level:.0%}"])  # type: ignore[arg-type]
            - level
            + 2 * float(row["error"])  # type: ignore[arg-type]
            for row in rows
            if row["theta_norm"] in {None, ENOUGH}
            for which in ("all", "chosen")
        )
        for level in LEVELS
    }
    return BenchSection(
        name="coverage",
        title="share of Bayesian intervals that hold the mean reward",
        rows=tuple(rows),
        notes=(
            (
                f"Synthetic worlds: {sizes.worlds} seeds (from 0), d=5, epsilon "
                f"{SYNTHETIC.epsilon:g}, delta {SYNTHETIC.delta:g}, {sizes.world_rounds:,} rounds."
            ),
            (
                f"Insurance: {sizes.samples} learners (seeds from 0), epsilon "
                f"{sizes.epsilons[0]:g}, delta {sizes.delta:g}, fed with rows drawn with "
                "replacement; the truth is the least-squares fit to all rows, around "
                "which those rows scatter."
            ),
            (
                "chosen: of the actions that the learner's own rule chooses. error: the largest "
                "standard error in the row, between seeds."
            ),
        ),
        figures=least,
    )


def _synthetic(environment: Environment, sizes: Sizes) -> Iterator[tuple[int, list[Shares]]]:
    mechanism = calibrate(
        named("windows"), environment.problem, horizon=sizes.world_rounds, privacy=SYNTHETIC
    )
    what = Simulation(environment=environment, mechanism=mechanism, rounds=sizes.world_rounds)
    first = mechanism.schedule.after(0)
    fresh = sizes.sets if isinstance(environment, Sphere) else 1  # others offer one set for ever
    for time in sorted(
        {min(first * factor, what.rounds) for factor in sizes.factors} | {what.rounds}
    ):
        found = []
        for seed in range(sizes.worlds):
            release, world = release_after(what, seed, time)
            sets = np.array([world.decision_set() for _ in range(fresh)])
            found.append(held(release, PosteriorUCB(), sets, world.theta))
        yield time, found


def _sampled(
    data: Logged, model: Model, theta_norm: float, sizes: Sizes
) -> Iterator[tuple[int, list[Shares]]]:
    """Learners that start from rows of other people's choices, drawn with replacement."""
    sets = model.sets(data)
    rows = sets[np.arange(len(sets)), data.chosen]
    truth = values.ridge(rows, data.rewards, 1e-6)
    found: dict[int, list[Shares]] = {}
    for seed in range(sizes.samples):
        rng = np.random.default_rng((seed, 4))
        bandit = _bandit(learners.unit_problem(model.sizes(data), theta_norm), sizes, seed)
        first = bandit.mechanism.schedule.after(0)
        for factor in sizes.factors:
            drawn = rng.integers(0, len(rows), first * factor - bandit.rows)
            learners.warm_start(bandit, rows[drawn], data.rewards[drawn])
            people = sets[rng.integers(0, len(sets), sizes.sets)]
            shares = held(bandit.release, PosteriorUCB(), people, truth)
            found.setdefault(first * factor, []).append(shares)
    yield from found.items()


def _bandit(problem: learners.Problem, sizes: Sizes, seed: int) -> LinUCB:
    return learners.learner(
        problem,
        variant="windows",
        horizon=10**6,
        privacy=Privacy(epsilon=sizes.epsilons[0], delta=sizes.delta),
        noise=sizes.noise,
        seed=(seed, 5),
    )


def _row(world: str, theta_norm: float | None, time: int, found: list[Shares]) -> dict[str, Cell]:
    every, chosen = (np.array(part) for part in zip(*found, strict=True))
    spread = max(float(part.std(axis=0).max()) for part in (every, chosen))
    row: dict[str, Cell] = {"world": world, "theta_norm": theta_norm, "rows": time}
    for name, part in (("all", every), ("chosen", chosen)):
        for at, level in enumerate(LEVELS):
            row[f"{name}_{level:.0%}"] = float(part[:, at].mean())
    row["error"] = spread / math.sqrt(len(found))
    return row
