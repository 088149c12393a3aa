"""What several tests need: seeded noise, random unit rows, the learner's whole state."""

import numpy as np

from discreet import LinUCB, Privacy, Problem
from discreet.noise.source import SeededNoise
from discreet.variants import Named

TARGET = Privacy(epsilon=1.0, delta=1e-6)


def target(variant: Named) -> Privacy | None:
    """A privacy target, for variants that take one."""
    return TARGET if variant.private else None


def seeded(seed: int) -> SeededNoise:
    return SeededNoise(np.random.SeedSequence(seed))


def unit_rows(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    rows = rng.normal(size=(count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def learner_for(
    variant: Named,
    problem: Problem,
    *,
    horizon: int = 64,
    seed: int = 0,
    **more: object,
) -> LinUCB:
    """A learner with repeatable noise."""
    return LinUCB(
        problem,
        horizon=horizon,
        privacy=target(variant),
        variant=variant,
        noise_source=seeded(seed),
        **more,
    )


def whole_state(learner: LinUCB) -> dict:
    """Everything a save file would hold, for comparing before and after."""
    return learner._curator.document()
