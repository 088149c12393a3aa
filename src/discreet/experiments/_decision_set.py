"""The picture of a decision set: 1000 actions in three dimensions.

Paper: section Experiments, Setting, fig:actions. It is drawn from one seeded world, at any scale.
"""

import math

import numpy as np

from discreet.experiments._cell import Cell
from discreet.experiments._claims import Claim, Verdict
from discreet.experiments._experiment import Experiment, Scale
from discreet.experiments._results import F64, Results
from discreet.report._exhibit import Exhibit
from discreet.report._sphere import Ball
from discreet.simulation.environments import TOP_MEAN, Sphere

NAME = "decision-set"
GAP, N_ACTIONS, SEED = 0.1, 1000, 0
ROUNDING = 1e-9


def cells(_scale: Scale) -> list[Cell]:
    """None: a picture has nothing to average."""
    return []


def draw() -> tuple[F64, F64]:
    """The true parameter and one decision set, shapes (3,) and (1000, 3)."""
    world = Sphere(dim=3, n_actions=N_ACTIONS, gap=GAP).start(np.random.SeedSequence(SEED))
    return world.theta.copy(), world.decision_set()


def claims(_results: Results) -> list[Claim]:
    """What the setting promises of every decision set."""
    theta, actions = draw()
    means = np.sort(actions @ theta)
    lengths = np.linalg.norm(actions, axis=1)
    second = TOP_MEAN - GAP
    holds = (
        math.isclose(means[-1], TOP_MEAN, abs_tol=ROUNDING)
        and means[-2] <= second + ROUNDING
        and means[0] >= -TOP_MEAN - ROUNDING
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
        rings=((TOP_MEAN, "0.75"), (TOP_MEAN - GAP, "0.65"), (-TOP_MEAN, "-0.75")),
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


EXPERIMENT = Experiment(
    name=NAME,
    title="The setting: what a person is offered",
    question=(
        "In every round of every experiment a person brings a fresh decision set of unit "
        "vectors. One of them is best, with mean reward 0.75; the others are uniform on the part "
        "of the ball where the mean reward stays below that by the gap, and above -0.75."
    ),
    cells=cells,
    claims=claims,
    figures=show,
)
