"""How hard it is to mistake one mean for another: Bernoulli divergences and their inverses.

All means are on the scale of [0, 1]. Without privacy the measure is the Kullback-Leibler
divergence kl(x, y) of Bernoulli distributions. Under epsilon-differential privacy it is

    d(x, y) = min over z between x and y of  epsilon |z - x| + kl(z, y)

(Azize, Wu, Honda, Orabona, Ito & Basu 2025): some of the way may be covered by noise, which costs
epsilon a unit, and the rest by chance. For x <= y the minimum has a closed form. The derivative in
z is zero where the odds of z are e^-epsilon times those of y. If that z lies below x, the best z
is x and d = kl(x, y). Otherwise the two terms add up to -epsilon x - ln(1 - y (1 - e^-epsilon)).
An infinite epsilon gives kl.
"""

import math

from discreet.kernels._compiling import kernel

_STEPS = 60  # of Newton's method; a dozen suffice
_CLOSE = 1e-14  # relative to the distance from 1, where the method stops


@kernel
def clip(mean: float) -> float:
    """The nearest number in [0, 1]."""
    return min(max(mean, 0.0), 1.0)


@kernel
def kl(x: float, y: float) -> float:
    """The divergence of Bernoulli distributions with means x and y; infinite if y excludes x."""
    value = 0.0
    if x > 0.0:
        value += x * math.log(x / y) if y > 0.0 else math.inf
    if x < 1.0:
        value += (1.0 - x) * math.log((1.0 - x) / (1.0 - y)) if y < 1.0 else math.inf
    return max(value, 0.0)


@kernel
def kl_upper(x: float, level: float) -> float:
    """The largest y in [x, 1] with kl(x, y) <= level.

    kl is convex and grows in y, so Newton's method from above goes down to the solution and never
    past it. It starts from the smaller of two upper bounds: x + sqrt(level / 2), by Pinsker, and
    1 - exp(-(level + h) / (1 - x)) with h the entropy of x, since kl >= -h - (1 - x) ln(1 - y).
    """
    if x >= 1.0 or level <= 0.0:
        return min(x, 1.0)
    rest = 1.0 - x
    entropy = -rest * math.log(rest) - (x * math.log(x) if x > 0.0 else 0.0)
    y = min(x + math.sqrt(0.5 * level), -math.expm1(-(level + entropy) / rest))
    for _ in range(_STEPS):
        if y >= 1.0:
            return 1.0
        slope = (y - x) / (y * (1.0 - y))
        step = (kl(x, y) - level) / slope
        y -= step
        if not step > _CLOSE * (1.0 - y):
            break
    return min(max(y, x), 1.0)


@kernel
def private_divergence(x: float, y: float, epsilon: float) -> float:
    """d(x, y) for x <= y; 0 if y is below x."""
    if y <= x:
        return 0.0
    if y < _border(x, epsilon):
        return kl(x, y)
    if math.isinf(epsilon):
        return kl(x, y)
    return max(-epsilon * x - math.log1p(y * math.expm1(-epsilon)), 0.0)


@kernel
def private_upper(x: float, level: float, epsilon: float) -> float:
    """The largest y in [x, 1] with d(x, y) <= level."""
    border = _border(x, epsilon)
    if math.isinf(epsilon) or (border > x and kl(x, border) >= level):
        return kl_upper(x, level)
    y = math.expm1(-epsilon * x - level) / math.expm1(-epsilon)
    return min(max(y, x), 1.0)


@kernel
def _border(x: float, epsilon: float) -> float:
    """The y from which on part of the way is covered by noise: its odds are e^epsilon times x's."""
    if x <= 0.0 or x >= 1.0:
        return x
    return x / (x + (1.0 - x) * math.exp(-epsilon))
