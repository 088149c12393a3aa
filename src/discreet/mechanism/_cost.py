"""What one person's rounds cost over all releases of Gaussian noise. Knows no rows, only laws."""

from typing import Protocol, runtime_checkable

from discreet import accounting
from discreet.kernels import _linalg as linalg
from discreet.mechanism._grid import Grid
from discreet.mechanism.noise import _feedback as feedback
from discreet.mechanism.schedules import Schedule
from discreet.mechanism.strategies import Strategy, Tree
from discreet.problem import Problem


@runtime_checkable
class HasTwoScales(Protocol):
    """Gaussian noise: a deviation for the Gram matrix and one for the moment."""

    @property
    def std(self) -> float:
        """Of the Gram matrix, off its diagonal."""

    @property
    def moment_std(self) -> float:
        """Of the moment."""


@runtime_checkable
class OnGrid(HasTwoScales, Protocol):
    """Gaussian noise in whole multiples of a grid's steps."""

    @property
    def grid(self) -> Grid:
        """The steps."""

    @property
    def least_steps(self) -> int:
        """The smallest parameter of a draw, in steps."""


def person_cost(strategy: Strategy, schedule: Schedule, releases: int, contributions: int) -> float:
    """What one person's rounds cost over all releases, as a multiple of one row in one sum."""
    if isinstance(strategy, Tree) and schedule.every_round:
        depth = accounting.tree_depth(releases)
        return accounting.tree_cost(row_cost=1.0, depth=depth, contributions=contributions)
    return accounting.upwards(contributions * strategy.column_norm(releases))


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

    On a grid that includes what the rounding of shared noise adds.
    """
    one = accounting.row_cost(
        action_norm=problem.action_norm,
        reward_bound=problem.reward_bound,
        gram_std=noise.std,
        moment_std=noise.moment_std,
        neighbours=neighbours,
    )
    lost = 0.0
    if isinstance(noise, OnGrid):
        size = int(linalg.packed_size(problem.dim))
        lost = feedback.slack(strategy, releases=releases, size=size, std=noise.least_steps)
    rounds = person_cost(strategy, schedule, releases, contributions)
    return accounting.upwards(rounds * one + lost)
