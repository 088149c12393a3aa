"""What one person's rounds cost over all releases of Gaussian noise. Knows no rows, only laws."""

import math
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
        """The deviation of the Gram matrix off its diagonal; 0 if the matrix is exact."""

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


def _one_sum(noise: HasTwoScales, problem: Problem, *, neighbours: str, protects: str) -> float:
    """What one round costs in one sum, in standard deviations of its noise, rounded up."""
    bounds = {"action_norm": problem.action_norm, "reward_bound": problem.reward_bound}
    if protects == "rewards":
        return accounting.reward_cost(**bounds, moment_std=noise.moment_std, neighbours=neighbours)
    return accounting.row_cost(
        **bounds, gram_std=noise.std, moment_std=noise.moment_std, neighbours=neighbours
    )


def total_cost(
    noise: HasTwoScales,
    problem: Problem,
    *,
    schedule: Schedule,
    strategy: Strategy,
    releases: int,
    neighbours: str,
    contributions: int,
    protects: str = "rows",
) -> float:
    """mu: how far one person's rounds move all releases, in standard deviations, rounded up.

    For discrete Gaussian noise that includes what the rounding of shared noise adds.
    """
    one = _one_sum(noise, problem, neighbours=neighbours, protects=protects)
    lost = 0.0
    if isinstance(noise, HasSteps):
        size, shared = _protected_size(problem, protects), strategy.feedback(releases)
        lost = feedback.slack(shared, releases=releases, size=size, std=noise.least_steps)
    rounds = strategy.person_cost(releases, contributions, every_round=schedule.every_round)
    return accounting.upwards(accounting.upwards(rounds) * one + lost)


def most_draws(
    problem: Problem, *, strategy: Strategy, releases: int, protects: str = "rows"
) -> int:
    """No more draws than this are ever shown; a tree has two nodes a row, with idle draws."""
    size = _protected_size(problem, protects)
    return size * releases * (4 if strategy.nodes_hold_sums else 1)


def least_draw(noise: HasSteps, *, strategy: Strategy, releases: int) -> int:
    """The smallest parameter of a draw in steps, also where a strategy makes it smaller."""
    narrowest = feedback.narrowest(strategy.feedback(releases))
    return max(1, math.floor(noise.least_steps * narrowest))


def total_trace(
    noise: HasTwoScales,
    problem: Problem,
    *,
    strategy: Strategy,
    releases: int,
    protects: str = "rows",
) -> float:
    """K: how far all draws together are from rounded Gaussian ones; 0 for continuous noise.

    See `accounting.discrete_gaussian_trace`.
    """
    if not isinstance(noise, HasSteps):
        return 0.0
    return accounting.discrete_gaussian_trace(
        draws=most_draws(problem, strategy=strategy, releases=releases, protects=protects),
        std=least_draw(noise, strategy=strategy, releases=releases),
    )


def _protected_size(problem: Problem, protects: str) -> int:
    """How many entries of a packed sum depend on what is protected: all, or the moment's."""
    if protects == "rewards":
        return problem.dim
    return int(linalg.packed_size(linalg.firsts_of(problem.blocks)))
