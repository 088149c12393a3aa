"""Gaussian differential privacy: mu against (epsilon, delta), exactly and rounded towards privacy.

A mechanism is mu-GDP if telling its outputs on two neighbours apart is at least as hard as
telling N(0, 1) from N(mu, 1) (Dong, Roth & Su 2022). Gaussian noise is mu-GDP for mu the largest
distance between neighbours, measured in standard deviations. Nothing here knows of rows or of
trees. Derivations: docs/accounting.md.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from discreet import _checks as checks
from discreet.accounting._search import first_true, last_true
from discreet.privacy import Privacy

MARGIN = 1e-11
"""Relative safety of a computed delta: over ten times the largest error seen at 50 digits."""

_FARTHEST = 39.0  # a normal tail beyond this is below the smallest positive number
_TINY = math.nextafter(0.0, 1.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def gaussian_delta(*, epsilon: float, mu: float) -> float:
    """The delta of a mu-GDP mechanism at this epsilon (Balle & Wang 2018; Dong et al. 2022).

    delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu). What is returned is never less than
    this (so never 0), also where the two terms nearly cancel. It is more by 2e-11 of it at most,
    unless epsilon is so large (beyond 1e5) that the arguments themselves round.

    Args:
        epsilon: at least 0.
        mu: above 0.

    Returns:
        The delta, above 0 and at most 1.

    Raises:
        ParameterError: a number is out of range.
    """
    epsilon, mu = checks.at_least("epsilon", epsilon, 0.0), checks.positive("mu", mu)
    # The formula falls in eps/mu - mu/2 at a fixed mu, so rounding that down is safe.
    ratio = math.nextafter(epsilon / mu, -math.inf)
    start = math.nextafter(ratio - mu / 2, -math.inf)
    if start > _FARTHEST:
        return _TINY
    return min(1.0, math.nextafter(_tail(start, mu) * (1 + MARGIN), math.inf))


def _tail(start: float, mu: float) -> float:
    """The delta as a function of x = eps/mu - mu/2 and mu: phi(x) (R(x) - R(x + mu)).

    R is Mills' ratio, of the normal tail to the normal density phi, and R'(t) = t R(t) - 1. A
    small difference is computed as the integral of -R', which does not cancel.
    """
    density = math.exp(-start * start / 2) / math.sqrt(2 * math.pi)
    if mu >= max(1.0, start) / 2:
        return float(ndtr(-start)) - density * float(_mills(np.array(start + mu)))
    points = start + mu * (1 + _NODES) / 2
    return density * mu / 2 * float(_WEIGHTS @ (1 - points * _mills(points)))


def _mills(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mills' ratio R(t), the normal tail above t over the density at t."""
    ratios: NDArray[np.float64] = erfcx(points / math.sqrt(2))
    return math.sqrt(math.pi / 2) * ratios


def gaussian_mu(privacy: Privacy) -> float:
    """The largest mu such that every mu-GDP mechanism is (epsilon, delta)-DP.

    Rounded down: the exact delta of the result is below the target's.

    Args:
        privacy: the target (epsilon, delta).

    Returns:
        The mu, above 0.
    """
    epsilon, delta = privacy.epsilon, privacy.delta
    return last_true(lambda mu: gaussian_delta(epsilon=epsilon, mu=mu) <= delta)


def gaussian_epsilon(*, delta: float, mu: float) -> float:
    """The smallest epsilon such that every mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    Args:
        delta: strictly between 0 and 1.
        mu: from 1e-50 to 1e50.

    Returns:
        The epsilon, at least 0.

    Raises:
        ParameterError: a number is out of range.
    """
    delta, mu = checks.probability("delta", delta), checks.magnitude("mu", mu)
    if gaussian_delta(epsilon=0.0, mu=mu) <= delta:
        return 0.0
    return first_true(lambda epsilon: gaussian_delta(epsilon=epsilon, mu=mu) <= delta)
