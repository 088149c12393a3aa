"""A small world whose values are known exactly: three contexts, four actions, rewards of two kinds.

Everything is a finite sum, so truths are computed by adding up and not by sampling.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LOW, HIGH = -1.0, 3.0
CONTEXTS = np.array([0.5, 0.3, 0.2])
LOGGING = np.array([[0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0.1, 0.1, 0.2, 0.6]])
TARGET = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25] * 4])
OTHER = np.array([[0.2, 0.1, 0.3, 0.4], [0.6, 0.2, 0.1, 0.1], [0.3, 0.2, 0.25, 0.25]])
HIGH_CHANCE = np.array([[0.2, 0.4, 0.5, 0.7], [0.9, 0.3, 0.1, 0.5], [0.6, 0.6, 0.2, 0.3]])
MEANS = LOW + (HIGH - LOW) * HIGH_CHANCE
ACTIONS = 4


class Rounds(NamedTuple):
    """Logged rounds."""

    contexts: I64
    actions: I64
    rewards: F64
    propensities: F64


class World:
    """Rewards are LOW or HIGH; the log is played by ``logging``."""

    def __init__(self, logging: F64 = LOGGING) -> None:
        self.logging = logging

    def play(self, rng: np.random.Generator, rows: int) -> Rounds:
        contexts = rng.choice(len(CONTEXTS), rows, p=CONTEXTS)
        steps = self.logging[contexts].cumsum(axis=1)
        actions = (rng.random(rows)[:, None] > steps[:, :-1]).sum(axis=1)
        chances = HIGH_CHANCE[contexts, actions]
        rewards = np.where(rng.random(rows) < chances, HIGH, LOW)
        return Rounds(contexts, actions, rewards, self.logging[contexts, actions])

    def mean(self, terms: F64) -> float:
        """The expectation, over the log, of a term for each context and action."""
        return float((CONTEXTS[:, None] * self.logging * terms).sum())

    def weights(self, target: F64, clip: float = np.inf) -> F64:
        with np.errstate(divide="ignore"):
            return np.minimum(target / self.logging, clip)


def value(target: F64) -> float:
    """A policy's true value."""
    return float((CONTEXTS[:, None] * target * MEANS).sum())
