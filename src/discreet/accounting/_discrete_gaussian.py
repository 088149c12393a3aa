"""What discrete Gaussian noise on the whole numbers is worth.

A discrete Gaussian with parameter s has P(k) proportional to exp(-k^2/(2 s^2)). Shifted by a whole
number it costs as much zCDP as its continuous sibling (Canonne, Kamath & Steinke 2020), and up to
a trace as much GDP: it is within a factor e^(1/(24 s^2)) of a rounded Gaussian, whose guarantee is
that of the Gaussian itself. `discrete_gaussian_mu` takes the better of the two.

Proof: docs/accounting.md.
"""

import math
from functools import lru_cache

from discreet import _checks as checks
from discreet.accounting._gdp import gaussian_delta
from discreet.accounting._search import last_true, upwards
from discreet.accounting._zcdp import zcdp_parameter
from discreet.privacy import Privacy


def discrete_gaussian_trace(*, draws: int, std: float) -> float:
    """K = draws / (24 std^2), rounded up.

    The joint probability of ``draws`` discrete Gaussians, each with a parameter of at least
    ``std``, is nowhere more than e^K times that of rounded Gaussians.

    Args:
        draws: how many draws there are in all, at most.
        std: the smallest parameter of any of them, in steps: noise is on the whole numbers.

    Returns:
        The trace K.

    Raises:
        ParameterError: a number is out of range.
    """
    checks.count("draws", draws)
    return upwards(draws / (24 * checks.positive("std", std) ** 2))


@lru_cache(maxsize=256)
def discrete_gaussian_mu(privacy: Privacy, *, draws: int, std: float) -> float:
    """The largest whitened distance that meets the target, rounded down.

    For whole-number shifts of ``draws`` discrete Gaussians with parameters of at least ``std``,
    adaptively: the better of zCDP, mu^2/2 <= z, and of GDP at (eps - K, e^-K (delta - e^eps K)).

    Args:
        privacy: the target (epsilon, delta).
        draws: how many draws there are in all, at most.
        std: the smallest parameter of any of them, in steps: noise is on the whole numbers.

    Returns:
        The distance between neighbours over all draws, each entry divided by its draw's parameter.

    Raises:
        ParameterError: a number is out of range.
    """
    concentrated = math.nextafter(math.sqrt(2 * zcdp_parameter(privacy)) * (1 - 1e-15), 0.0)
    trace = discrete_gaussian_trace(draws=draws, std=std)
    epsilon = math.nextafter(privacy.epsilon - trace, -math.inf)
    lost = upwards(math.exp(privacy.epsilon) * trace) if privacy.epsilon < 700 else math.inf
    delta = (privacy.delta - lost) * math.exp(-trace) * (1 - 1e-15)
    if epsilon < 0 or delta <= 0:
        return concentrated
    rounded = last_true(lambda mu: gaussian_delta(epsilon=epsilon, mu=mu) <= delta)
    return max(concentrated, rounded)
