"""Zero-concentrated differential privacy against (epsilon, delta), rounded towards privacy.

A mechanism is z-zCDP if its Renyi divergence of every order a > 1 between neighbours is at most
z a (Bun & Steinke 2016). The literature calls the parameter rho; here that letter means an
eigenvalue. zCDP serves noise that is not exactly Gaussian, such as discrete Gaussian noise; for
Gaussian noise `gdp` is sharper. Derivations: docs/accounting.md.
"""

import math

from discreet import _checks as checks
from discreet.accounting._search import ROUNDING, first_true, last_true, upwards
from discreet.privacy import Privacy

_LOWEST_ORDER = 1e-300  # minus 1; here delta is 1


def zcdp_of_gdp(mu: float) -> float:
    """The zCDP parameter of a mu-GDP mechanism, mu^2/2, rounded up.

    Args:
        mu: from 1e-50 to 1e50.

    Returns:
        The zCDP parameter z.

    Raises:
        ParameterError: ``mu`` is out of range.
    """
    return upwards(checks.magnitude("mu", mu) ** 2 / 2)


def zcdp_delta(*, zcdp: float, epsilon: float) -> float:
    """A delta that every z-zCDP mechanism has at this epsilon, rounded up.

    Canonne, Kamath & Steinke (2020), proposition 12: the least over orders a > 1 of
    e^((a-1)(a z - eps)) (1 - 1/a)^a / (a - 1).

    Args:
        zcdp: z, from 1e-50 to 1e50.
        epsilon: at least 0.

    Returns:
        The delta, above 0 and at most 1.

    Raises:
        ParameterError: a number is out of range.
    """
    zcdp = checks.magnitude("zcdp", zcdp)
    epsilon = checks.at_least("epsilon", epsilon, 0.0)
    order = _best_order(zcdp, epsilon)
    return min(1.0, math.nextafter(math.exp(_log_delta(zcdp, epsilon, order)), math.inf))


def _best_order(zcdp: float, epsilon: float) -> float:
    """The order of the least delta, as b = a - 1, or nearly: every order gives a valid delta.

    The logarithm of the formula is convex in b; its slope is (2b + 1) z - eps - ln(1 + 1/b).
    """
    return last_true(
        lambda b: b <= _LOWEST_ORDER or (2 * b + 1) * zcdp - math.log1p(1 / b) <= epsilon
    )


def _log_delta(zcdp: float, epsilon: float, b: float) -> float:
    """The logarithm, b ((1 + b) z - eps) - b ln(1 + 1/b) - ln(1 + b), rounded up."""
    gain, cost = b * epsilon, b * (1 + b) * zcdp
    entropy = b * math.log1p(1 / b) + math.log1p(b)
    # Each term is wrong by at most a few units in its last place, so their sum by this much:
    slack = ROUNDING * (gain + cost + entropy)
    return min(0.0, cost - gain - entropy + slack)


def zcdp_epsilon(*, zcdp: float, delta: float) -> float:
    """The smallest epsilon that `zcdp_delta` allows at this delta, rounded up.

    Args:
        zcdp: z, from 1e-50 to 1e50.
        delta: strictly between 0 and 1.

    Returns:
        The epsilon, at least 0.

    Raises:
        ParameterError: a number is out of range.
    """
    delta = checks.probability("delta", delta)
    if zcdp_delta(zcdp=zcdp, epsilon=0.0) <= delta:
        return 0.0
    return first_true(lambda epsilon: zcdp_delta(zcdp=zcdp, epsilon=epsilon) <= delta)


def zcdp_parameter(privacy: Privacy) -> float:
    """The largest z such that `zcdp_delta` keeps the target, rounded down.

    Args:
        privacy: the target (epsilon, delta).

    Returns:
        z, above 0.
    """
    epsilon, delta = privacy.epsilon, privacy.delta
    return last_true(lambda zcdp: zcdp_delta(zcdp=zcdp, epsilon=epsilon) <= delta)
