from collections.abc import Callable

import numpy as np
import pytest

from discreet.mechanism.variants import VARIANTS
from discreet.privacy import Privacy
from discreet.problem import Setting
from discreet.simulation import Outcome, Simulation
from discreet.simulation.environments import Sphere

MakeOutcome = Callable[[str, list[list[float]]], Outcome]


@pytest.fixture
def make_outcome() -> MakeOutcome:
    """An outcome with regrets of our own, one list for each seed, at rounds 1, 10 and 100."""

    def make(variant: str, regrets: list[list[float]]) -> Outcome:
        environment = Sphere(dim=5, n_actions=25)
        setting = Setting(problem=environment.problem, horizon=1_000_000)
        row = VARIANTS[variant]
        target = Privacy(epsilon=1.0, delta=0.1) if row.private else None
        return Outcome(
            simulation=Simulation(
                environment=environment, mechanism=row.mechanism(setting, target), rounds=100
            ),
            asked=len(regrets),
            seeds=list(range(len(regrets))),
            rounds=np.array([1, 10, 100]),
            regrets=np.array(regrets),
            seconds=1.0,
        )

    return make
