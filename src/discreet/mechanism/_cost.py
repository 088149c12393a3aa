"""What one person's rounds cost over all releases of Gaussian noise. Knows no rows, only laws."""

from typing import Protocol, runtime_checkable

from discreet import accounting
from discreet.kernels import _linalg as linalg
from discreet.mechanism import _feedback as feedback
from discreet.mechanism._grid import Grid
from discreet.mechanism.schedules import Schedule
from discreet.mechanism.strategies import Strategy
from discreet.problem import Problem


@runtime_checkable
class HasTwoScales(Protocol):
    """Gaussian noise: a deviation for the Gram matrix and one for the moment."""

    @property
    def std(self) -> float:
        """The deviation of the Gram matrix off its diagonal."""

    @property
    def moment_std(self) -> float:
        """The deviation of the moment."""


@runtime_checkable
class HasSteps(HasTwoScales, Protocol):
    """Discrete Gaussian noise: whole multiples of a grid's steps."""

    @property
    def grid(self) -> Grid:
        """The sizes of the steps."""

    @property
    def least_steps(self) -> int:
        """The smallest parameter of a draw, in steps."""


def total_cost(
    noise: HasTwoScales,
    problem: Problem,
    *,
    schedule: Schedule,
    strategy: Strategy,
    releases: int,
    neighbours: str,
    contributions: int,
) -> float:
    """mu: how far one person's rounds move all releases, in standard deviations, rounded up.

    For discrete Gaussian noise that includes what the rounding of shared noise adds.
    """
    one = accounting.row_cost(
        action_norm=problem.action_norm,
        reward_bound=problem.reward_bound,
        gram_std=noise.std,
        moment_std=noise.moment_std,
        neighbours=neighbours,
    )
    lost = 0.0
    if isinstance(noise, HasSteps):
        size, shared = int(linalg.packed_size(problem.dim)), strategy.feedback(releases)
        lost = feedback.slack(shared, releases=releases, size=size, std=noise.least_steps)
    rounds = strategy.person_cost(releases, contributions, every_round=schedule.every_round)
    return accounting.upwards(accounting.upwards(rounds) * one + lost)
