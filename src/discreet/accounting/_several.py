"""What several mechanisms cost together if they are about the same people.

Gaussian noise composes in mu, like distances at right angles; the trace by which discrete Gaussian
noise differs adds up. Mechanisms may run side by side, and each may be chosen in view of what the
others showed. Proofs: docs/accounting.md.
"""

import math
from collections.abc import Iterable

from discreet import _checks as checks
from discreet.accounting._gdp import gaussian_delta, gaussian_mu
from discreet.accounting._search import last_true, upwards
from discreet.privacy import Privacy

_LARGEST_EXPONENT = 700.0  # e^ε is a floating-point number up to here, and some more


def composed_mu(mus: Iterable[float]) -> float:
    """The mu of several Gaussian mechanisms together, the root of the sum of squares, rounded up.

    0 without any.

    Args:
        mus: of each mechanism, from 1e-50 to 1e50.

    Returns:
        The mu of all together.

    Raises:
        ParameterError: one of them is out of range.
    """
    known = [checks.magnitude("mus", mu) for mu in mus]
    return upwards(math.hypot(*known)) if known else 0.0


def traced_delta(*, epsilon: float, mu: float, trace: float) -> float:
    """The delta of discrete Gaussian noise of cost mu with trace K, rounded up.

    e^K delta_mu(eps - K) + e^eps K, by `gaussian_delta`; see `discrete_gaussian_trace`.

    Args:
        epsilon: at least 0.
        mu: the cost, above 0.
        trace: K, of all draws together, at least 0.

    Returns:
        The delta, at most 1.

    Raises:
        ParameterError: a number is out of range.
    """
    epsilon, trace = (
        checks.at_least("epsilon", epsilon, 0.0),
        checks.at_least("trace", trace, 0.0),
    )
    if trace == 0.0:
        return gaussian_delta(epsilon=epsilon, mu=mu)
    left = math.nextafter(epsilon - trace, -math.inf)
    if left < 0.0 or epsilon > _LARGEST_EXPONENT:
        return 1.0
    rounded = math.exp(trace) * gaussian_delta(epsilon=left, mu=mu) + math.exp(epsilon) * trace
    return min(1.0, upwards(rounded))


def traced_mu(privacy: Privacy, *, trace: float) -> float:
    """The largest mu that meets the target together with a trace of up to K, rounded down.

    Args:
        privacy: the target.
        trace: K, of all discrete Gaussian noise together; 0 without any.

    Returns:
        The mu; 0 if the trace alone is beyond the target.

    Raises:
        ParameterError: ``trace`` is below 0.
    """
    if checks.at_least("trace", trace, 0.0) == 0.0:
        return gaussian_mu(privacy)
    epsilon = math.nextafter(privacy.epsilon - trace, -math.inf)
    if privacy.epsilon > _LARGEST_EXPONENT or epsilon < 0.0:
        return 0.0
    lost = upwards(math.exp(privacy.epsilon) * trace)
    # Not below by a factor: what is subtracted from here on is rounded by less than this.
    delta = (privacy.delta * (1 - 1e-15) - lost) * math.exp(-trace) * (1 - 1e-14)
    if delta <= 0.0:
        return 0.0
    return last_true(lambda mu: gaussian_delta(epsilon=epsilon, mu=mu) <= delta)


def group_of_two(*, epsilon: float, delta: float) -> tuple[float, float]:
    """What (epsilon, delta) becomes if two rows differ instead of one: both rounded up.

    (2 eps, (1 + e^eps) delta), group privacy; an infinite delta where e^eps is beyond counting.

    Args:
        epsilon: of the guarantee where one row differs, at least 0.
        delta: of the same guarantee.

    Returns:
        (epsilon, delta) if two rows differ.
    """
    if epsilon > _LARGEST_EXPONENT:
        return 2 * epsilon, math.inf
    return 2 * epsilon, upwards((1.0 + math.exp(epsilon)) * delta)
