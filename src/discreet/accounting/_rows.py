"""What one row costs when the Gram matrix and the moment vector have Gaussian noise of their own.

Released with noise are G = sum x x^T, symmetric, with standard deviation ``gram_std`` off the
diagonal and sqrt(2) times that on it, and u = sum x y with ``moment_std``. A row (x, y) has
||x|| <= ``action_norm`` and |y| <= ``reward_bound``. The whitened distance of two neighbours is
sqrt(||dG||_F^2 / (2 gram_std^2) + ||du||^2 / moment_std^2), and releasing both is mu-GDP with mu
its largest value. Where rewards alone are protected, G is exact and u alone has noise. Proofs:
docs/accounting.md.
"""

import math
from enum import StrEnum
from typing import NamedTuple

from discreet import _checks as checks
from discreet.accounting._search import upwards
from discreet.errors import ParameterError
from discreet.problem import Problem


class Neighbours(StrEnum):
    """Which two streams are to be hard to tell apart.

    Attributes:
        REPLACEMENT: one row is any other within the bounds.
        ADD_REMOVE: one row is a row of zeros, as if the person had stayed away. The number of
            rows, and in which batch each falls, is the same on both sides.
    """

    REPLACEMENT = "replacement"
    ADD_REMOVE = "add-remove"

    @classmethod
    def named(cls, name: str) -> "Neighbours":
        """The relation of this name.

        Args:
            name: 'replacement' or 'add-remove'.

        Returns:
            The relation.

        Raises:
            ParameterError: there is none of this name.
        """
        if name not in list(cls):
            raise ParameterError(
                "neighbours", f"is {name!r}; give one of {', '.join(map(repr, map(str, cls)))}"
            )
        return cls(name)


class RowScales(NamedTuple):
    """Standard deviations of the noise on the Gram matrix and on the moment.

    Attributes:
        gram_std: s_G, of the Gram matrix off its diagonal.
        moment_std: s_u, of the moment.
    """

    gram_std: float
    moment_std: float


def row_cost(
    *,
    action_norm: float,
    reward_bound: float,
    gram_std: float,
    moment_std: float,
    neighbours: str = Neighbours.REPLACEMENT,
) -> float:
    """The largest whitened distance that changing one row causes: mu_1, rounded up.

    With L the action norm, B the reward bound, s_G and s_u the deviations:
    replacement costs L^2/s_G + B^2 s_G/s_u^2 if s_u >= (B/L) s_G, and 2 L B/s_u otherwise;
    add-remove costs sqrt(L^4/(2 s_G^2) + L^2 B^2/s_u^2). Both are reached by some pair of rows,
    replacement in two or more dimensions; in one dimension it may cost less.

    Args:
        action_norm: L, the bound on the norm of an action.
        reward_bound: B, the bound on a reward's distance from the centre.
        gram_std: s_G, the standard deviation of the Gram matrix's noise off its diagonal.
        moment_std: s_u, the standard deviation of the moment's noise.
        neighbours: the neighbour relation, 'replacement' or 'add-remove'.

    Returns:
        mu_1.

    Raises:
        ParameterError: a number is out of range, or the relation is unknown.
    """
    checks.positive("gram_std", gram_std)
    checks.positive("moment_std", moment_std)
    action = checks.magnitude("action_norm", action_norm) / math.sqrt(gram_std)
    reward = checks.magnitude("reward_bound", reward_bound) * (math.sqrt(gram_std) / moment_std)
    if Neighbours.named(neighbours) is Neighbours.ADD_REMOVE:
        return upwards(math.hypot(action * action / math.sqrt(2), action * reward))
    if reward <= action:
        return upwards(action * action + reward * reward)
    return upwards(2 * action * reward)


def row_scales(
    problem: Problem,
    *,
    mu_one: float = 1.0,
    neighbours: str = Neighbours.REPLACEMENT,
    ratio: float | None = None,
) -> RowScales:
    """Noise for which one row costs ``mu_one``: at most, and to a relative 1e-13.

    Of all such pairs the one with the least s_u^2 + 2 S^2 s_G^2, the bound on the variance, in any
    direction, of the noise in u - G theta for a theta of norm up to S = ``theta_norm``; or the
    pair with a given ``ratio`` s_u / s_G.

    Args:
        problem: the stated bounds.
        mu_one: what one row may cost in one sum.
        neighbours: the neighbour relation, 'replacement' or 'add-remove'.
        ratio: s_u / s_G; None for the best, `best_ratio`.

    Returns:
        s_G and s_u.

    Raises:
        ParameterError: a number is out of range, or the relation is unknown.
    """
    checks.magnitude("mu_one", mu_one)
    if ratio is None:
        ratio = best_ratio(problem, neighbours=neighbours)
    checks.positive("ratio", ratio)
    bounds = {"action_norm": problem.action_norm, "reward_bound": problem.reward_bound}
    unit = row_cost(**bounds, gram_std=1.0, moment_std=ratio, neighbours=neighbours)
    gram_std = upwards(upwards(upwards(unit / mu_one)))  # the cost is rounded up again below
    return RowScales(gram_std, gram_std * ratio)


def reward_cost(
    *,
    action_norm: float,
    reward_bound: float,
    moment_std: float,
    neighbours: str = Neighbours.REPLACEMENT,
) -> float:
    """The largest whitened distance that changing one reward causes, rounded up.

    The action stays as it is, and so does the Gram matrix, which needs no noise. The moment moves
    by ||x|| |y - y'|: replacement costs 2 L B/s_u; add-remove, where a reward that does not count
    is at the centre, costs L B/s_u. Both are reached in every dimension.

    Args:
        action_norm: L, the bound on the norm of an action.
        reward_bound: B, the bound on a reward's distance from the centre.
        moment_std: s_u, the deviation of the moment's noise.
        neighbours: the neighbour relation.

    Returns:
        mu_1.

    Raises:
        ParameterError: a number is out of range, or the relation is unknown.
    """
    farthest = 1.0 if Neighbours.named(neighbours) is Neighbours.ADD_REMOVE else 2.0
    moved = checks.magnitude("action_norm", action_norm) * (
        checks.magnitude("reward_bound", reward_bound) / checks.positive("moment_std", moment_std)
    )
    return upwards(farthest * moved)


def reward_std(
    problem: Problem, *, mu_one: float = 1.0, neighbours: str = Neighbours.REPLACEMENT
) -> float:
    """Noise of the moment for which one reward costs ``mu_one``: at most, and to a relative 1e-13.

    Args:
        problem: the stated bounds.
        mu_one: what one reward may cost in one sum.
        neighbours: the neighbour relation.

    Returns:
        s_u, the standard deviation.

    Raises:
        ParameterError: a number is out of range, or the relation is unknown.
    """
    checks.magnitude("mu_one", mu_one)
    bounds = {"action_norm": problem.action_norm, "reward_bound": problem.reward_bound}
    unit = reward_cost(**bounds, moment_std=1.0, neighbours=neighbours)
    return upwards(upwards(upwards(unit / mu_one)))


def best_ratio(problem: Problem, *, neighbours: str = Neighbours.REPLACEMENT) -> float:
    """The ratio s_u / s_G with the least s_u^2 + 2 S^2 s_G^2 at a given cost of a row.

    With q = L S / B: (B/L) sqrt((1 + sqrt(1 + 16 q^2)) / 2) under replacement, the positive root
    of L^2 a^2 - B^2 a - 4 B^2 S^2 = 0 for a = ratio^2; sqrt(2 B S / L) under add-remove.

    Args:
        problem: the stated bounds, L, B and S among them.
        neighbours: the neighbour relation, 'replacement' or 'add-remove'.

    Returns:
        s_u / s_G.

    Raises:
        ParameterError: the relation is unknown.
    """
    slope = problem.reward_bound / problem.action_norm
    if Neighbours.named(neighbours) is Neighbours.ADD_REMOVE:
        return math.sqrt(2 * slope * problem.theta_norm)
    root = math.hypot(1.0, 4 * problem.theta_norm / slope)
    return slope * math.sqrt((1 + root) / 2)
