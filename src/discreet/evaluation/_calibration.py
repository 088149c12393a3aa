"""How much noise a released value needs: formulas, no rows.

For each policy four sums are released, in whole steps of a grid with M = 2^bits steps: of
(A, T, E, F) with T the clipped weight as a share of the clip, A = T y, F = T^2, E = F y and
y in -1 ... 1 the reward. So |A| <= T <= M and |E| <= F <= M: a row is a point of one triangle, with
corners 0 and (+-M, M), twice.

Formal guarantee: with the parameters of `calibrated`, all sums of all policies together are
(epsilon, delta)-DP, with up to ``contributions_per_user`` rows of one person replaced, or turned
into zeros. Sensitivity: `row_cost`. Proof: docs/evaluation.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from discreet import accounting
from discreet.accounting import Neighbours
from discreet.errors import ParameterError
from discreet.mechanism._grid import LARGEST_STD
from discreet.privacy import Privacy

FINEST, COARSEST = 24, 8  # bits: the largest entry of a row has 2^bits steps
SQUARES_SHARE = 1 / 20  # of the squared budget, for the sums of squares: they make intervals

ARGUMENT = (
    "for each policy, sums of clipped weights and of weighted rewards and of their squares are "
    "released once, with the least Gaussian noise that exact accounting allows for one person's "
    "rows in all of them; noise is drawn exactly, as whole multiples of a grid's steps, and added "
    "to exact sums of rows rounded to that grid; it is taken that a policy's probabilities do not "
    "depend on these rows, unless through releases with a guarantee of their own"
)


@dataclass(frozen=True, kw_only=True)
class Law:
    """Discrete Gaussian noise on the four sums of each policy.

    Attributes:
        bits: the grid: the largest entry of a row has 2^bits steps.
        value_std: the parameter for sums of A, in steps.
        weight_std: that for sums of T.
        square_value_std: that for sums of E.
        square_weight_std: that for sums of F.
    """

    bits: int
    value_std: int
    weight_std: int
    square_value_std: int
    square_weight_std: int

    @property
    def steps(self) -> int:
        """How many steps the largest entry of a row has: M."""
        return 1 << self.bits

    @property
    def stds(self) -> tuple[int, int, int, int]:
        """The four parameters, in the order of the sums."""
        return self.value_std, self.weight_std, self.square_value_std, self.square_weight_std


def pair_cost(steps: int, first: int, second: int, neighbours: str) -> float:
    """How far one row can move one noisy pair of sums, in standard deviations; rounded up.

    The largest whitened distance of two points of the triangle |a| <= t <= M, which two of its
    corners have: 2M/s_a or M sqrt(1/s_a^2 + 1/s_t^2); of a point and 0, only the latter.
    """
    aside = steps * math.hypot(1 / first, 1 / second)
    if Neighbours.named(neighbours) is Neighbours.ADD_REMOVE:
        return accounting.upwards(aside)
    return accounting.upwards(max(aside, 2 * steps / first))


def person_cost(law: Law, privacy: Privacy, policies: int) -> float:
    """How far one person can move everything that is released; rounded up.

    A person's rows can all move in the same direction, and all policies and both pairs with them.
    """
    pairs = [law.stds[:2], law.stds[2:]]
    row = math.hypot(*(pair_cost(law.steps, *pair, privacy.neighbours) for pair in pairs))
    return accounting.upwards(privacy.contributions_per_user * math.sqrt(policies) * row)


def total_trace(law: Law, policies: int) -> float:
    """K: how far all draws together are from rounded Gaussian ones; rounded up."""
    return accounting.discrete_gaussian_trace(draws=4 * policies, std=float(min(law.stds)))


@lru_cache(maxsize=64)
def calibrated(privacy: Privacy, policies: int) -> Law:
    """The least noise, on the finest grid whose noise can be drawn.

    Args:
        privacy: the target.
        policies: how many policies are evaluated at once.

    Returns:
        The noise.

    Raises:
        ParameterError: It is more than can be drawn.
    """
    budget = accounting.gaussian_mu(privacy)
    for bits in range(FINEST, COARSEST - 1, -1):
        law = _scaled(privacy, policies, bits, budget)
        for margin in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
            if law is None:
                break
            allowed = accounting.discrete_gaussian_mu(
                privacy, draws=4 * policies, std=float(min(law.stds))
            )
            if person_cost(law, privacy, policies) <= allowed:
                return law
            law = _scaled(privacy, policies, bits, min(budget, allowed) * (1 - margin))
    raise ParameterError(
        "privacy", "asks for more noise than whole numbers hold; ask for more epsilon"
    )


def _scaled(privacy: Privacy, policies: int, bits: int, budget: float) -> Law | None:
    """Noise of which a person's rows cost ``budget``; None if it is too large to draw.

    Of all pairs (s_a, s_t) the one with the least s_a^2 + s_t^2, the variance of a ratio's noise
    at the worst ratio, +-1: under replacement s_a = 2M/mu and s_t = 2M/(sqrt(3) mu), the noise on
    weights is free; under add-remove both are sqrt(2) M/mu.
    """
    row = budget / (privacy.contributions_per_user * math.sqrt(policies))
    if Neighbours.named(privacy.neighbours) is Neighbours.ADD_REMOVE:
        shape = (math.sqrt(2), math.sqrt(2))
    else:
        shape = (2.0, 2 / math.sqrt(3))
    stds = []
    for share in (1 - SQUARES_SHARE, SQUARES_SHARE):
        unit = 2.0**bits / (row * math.sqrt(share))
        stds += [math.ceil(accounting.upwards(factor * unit)) for factor in shape]
    if max(stds) > LARGEST_STD:
        return None
    return Law(
        bits=bits,
        value_std=stds[0],
        weight_std=stds[1],
        square_value_std=stds[2],
        square_weight_std=stds[3],
    )
