"""The picture of a decision set: 1000 actions in three dimensions.

Paper: section Experiments, Setting, fig:actions. It is drawn from one seeded world, the same at
every scale, and has nothing to average: no cells.
"""

import math

import numpy as np

from discreet.experiments._claims import Claim, Verdict
from discreet.experiments._experiment import F64, Experiment, Results
from discreet.report._figures import Ball, Exhibit
from discreet.simulation.environments import Sphere

NAME = "decision-set"
GAP, N_ACTIONS, SEED = 0.1, 1000, 0
BEST = Sphere.best_mean
ROUNDING = 1e-9


def draw() -> tuple[F64, F64]:
    """The true parameter and one decision set, shapes (3,) and (1000, 3)."""
    world = Sphere(dim=3, n_actions=N_ACTIONS, gap=GAP).start(np.random.SeedSequence(SEED))
    return world.theta.copy(), world.decision_set()


def claims(_results: Results) -> list[Claim]:
    """What the setting promises of every decision set."""
    theta, actions = draw()
    means = np.sort(actions @ theta)
    lengths = np.linalg.norm(actions, axis=1)
    second = BEST - GAP
    holds = (
        math.isclose(means[-1], BEST, abs_tol=ROUNDING)
        and means[-2] <= second + ROUNDING
        and means[0] >= -BEST - ROUNDING
        and bool(np.allclose(lengths, 1.0, atol=ROUNDING))
    )
    return [
        Claim(
            name="decision-set",
            statement=(
                "Unit actions: one with mean reward 0.75, all others between -0.75 and 0.65."
            ),
            source="section Experiments, Setting",
            measured=(
                f"best {means[-1]:.4f}, second {means[-2]:.4f}, least {means[0]:.4f}, "
                f"in one set of {len(means):,}"
            ),
            published="0.75, at most 0.65, at least -0.75",
            verdict=Verdict.HOLDS if holds else Verdict.FAILS,
            rule="exact, up to rounding",
        )
    ]


def show(_results: Results) -> list[Exhibit]:
    """The ball, with the true parameter pointing up."""
    theta, actions = draw()
    ball = Ball(
        title=f"{N_ACTIONS:,} actions in three dimensions",
        pole=theta,
        points=actions,
        chosen=int((actions @ theta).argmax()),
        rings=((BEST, "0.75"), (BEST - GAP, "0.65"), (-BEST, "-0.75")),
    )
    label = (
        f"A ball with {N_ACTIONS} points spread over the band between mean rewards -0.75 and "
        "0.65, and one point, the best action, at 0.75."
    )
    return [
        Exhibit(
            name="decision-set",
            drawings=(ball.drawing(prefix="decision-set", label=label),),
            caption=(
                "One decision set with gap 0.1. Height is mean reward: the best action lies on "
                "the ring at 0.75, all others are spread evenly over the ball between the rings "
                "at -0.75 and 0.65. Light points are on the far side."
            ),
        )
    ]


EXPERIMENT: Experiment[None] = Experiment(
    name=NAME,
    title="The setting: what a person is offered",
    question=(
        "In every round of every experiment a person brings a fresh decision set of unit "
        "vectors. One of them is best, with mean reward 0.75; the others are uniform on the part "
        "of the ball where the mean reward stays below that by the gap, and above -0.75."
    ),
    claims=claims,
    figures=show,
)
