"""The grid of discrete Gaussian noise: what a row is rounded to, and how large a row gets.

A row is rounded towards zero to whole multiples of a step, one step for features and one for
rewards, both powers of two. Products of a row's entries are then whole multiples of products of
steps, and sums of rows are sums of whole numbers: nothing rounds until noise has been added.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.kernels import _linalg as linalg
from discreet.problem import Problem

F64 = NDArray[np.float64]

FINEST, COARSEST = 20, 8  # bits: the longest feature is at most 2^bits steps
ROOM = 2**62  # no whole number in a 64-bit sum gets beyond this
LARGEST_STD = 2**50  # in steps, of what can be drawn


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Steps of 2^``action_exponent`` for features and 2^``reward_exponent`` for rewards.

    Attributes:
        action_exponent: of the step of features.
        reward_exponent: of the step of rewards.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> bandit.mechanism.noise.grid.action_exponent < 0  # features are rounded to fine steps
        True
    """

    action_exponent: int
    reward_exponent: int

    def __post_init__(self) -> None:
        """Check that all steps and their products are ordinary numbers."""
        for name in ("action_exponent", "reward_exponent"):
            exponent = checks.count(name, getattr(self, name), least=-300)
            checks.within(name, exponent, -300, 300)
            object.__setattr__(self, name, exponent)

    @classmethod
    def of(cls, problem: Problem, bits: int) -> Self:
        """The grid on which the largest feature and the largest reward are about 2^bits steps.

        Args:
            problem: the stated bounds.
            bits: how fine the grid is.

        Returns:
            The grid.
        """
        return cls(
            action_exponent=_exponent(problem.action_norm) - bits,
            reward_exponent=_exponent(problem.reward_bound) - bits,
        )

    @property
    def action_step(self) -> float:
        """The step of a feature, in the data's units."""
        return math.ldexp(1.0, self.action_exponent)

    @property
    def reward_step(self) -> float:
        """The step of a reward, in the data's units."""
        return math.ldexp(1.0, self.reward_exponent)

    @property
    def gram_step(self) -> float:
        """The step of an entry of the Gram matrix."""
        return math.ldexp(1.0, 2 * self.action_exponent)

    @property
    def moment_step(self) -> float:
        """The step of an entry of the moment."""
        return math.ldexp(1.0, self.action_exponent + self.reward_exponent)

    def largest_square(self, problem: Problem) -> int:
        """The largest squared norm of an action, in whole steps: floor((L / step)^2), exactly.

        Args:
            problem: the stated bounds.

        Returns:
            A number of squared steps.
        """
        return math.floor((Fraction(problem.action_norm) / Fraction(self.action_step)) ** 2)

    def largest_reward(self, problem: Problem) -> int:
        """The largest reward in whole steps, exactly.

        Args:
            problem: the stated bounds.

        Returns:
            A number of steps.
        """
        return math.floor(Fraction(problem.reward_bound) / Fraction(self.reward_step))

    def largest_row(self, problem: Problem) -> int:
        """No entry of one packed row is larger than this many steps.

        Args:
            problem: the stated bounds.

        Returns:
            A number of steps.
        """
        square = self.largest_square(problem)
        return max(square, (math.isqrt(square) + 1) * self.largest_reward(problem))

    def steps(self, problem: Problem) -> F64:
        """The step of every entry of a packed row.

        Args:
            problem: the stated bounds.

        Returns:
            The steps, in the order of a packed row.
        """
        size = int(linalg.packed_size(linalg.firsts_of(problem.blocks)))
        found = np.full(size, self.gram_step)
        found[-problem.dim :] = self.moment_step
        return found


def _exponent(bound: float) -> int:
    """The smallest e with bound <= 2^e."""
    mantissa, exponent = math.frexp(bound)
    return exponent - 1 if mantissa == 0.5 else exponent  # a power of two
