"""Binomial numbers, exactly distributed, in a time that does not grow with the number of trials.

A batch of rewards of one arm is one such number. Few expected successes: inversion, adding up
probabilities from 0. Otherwise: the transformed rejection of Hoermann (1993), with logarithms of
factorials instead of his table.
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _random as random
from discreet.kernels._compiling import kernel

U64 = NDArray[np.uint64]

_FEW = 10.0  # expected successes from which the rejection's constants are valid


@kernel
def binomial(state: U64, trials: int, chance: float) -> int:
    """How many of ``trials`` independent trials succeed, each with probability ``chance``."""
    if chance > 0.5:
        return trials - _binomial(state, trials, 1.0 - chance)
    return _binomial(state, trials, chance)


@kernel
def _binomial(state: U64, trials: int, chance: float) -> int:
    """The same for a chance of at most one half."""
    if chance <= 0.0 or trials <= 0:
        return 0
    if trials * chance < _FEW:
        return _inverted(state, trials, chance)
    return _rejected(state, trials, chance)


@kernel
def _inverted(state: U64, trials: int, chance: float) -> int:
    """The first count at which the distribution function passes a uniform number."""
    odds = chance / (1.0 - chance)
    weight = math.exp(trials * math.log1p(-chance))
    rest = random.uniform(state) - weight
    count = 0
    while rest > 0.0 and count < trials:
        weight *= odds * (trials - count) / (count + 1)
        count += 1
        rest -= weight
    return count


@kernel
def _rejected(state: U64, trials: int, chance: float) -> int:
    """Transformed rejection (BTRS): a ratio of uniforms bent towards the binomial's shape."""
    std = math.sqrt(trials * chance * (1.0 - chance))
    b = 1.15 + 2.53 * std
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    centre = trials * chance + 0.5
    inside = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * std
    mode = math.floor((trials + 1) * chance)
    log_odds = math.log(chance / (1.0 - chance))
    at_mode = math.lgamma(mode + 1.0) + math.lgamma(trials - mode + 1.0)
    while True:
        level = random.uniform(state)
        u = random.uniform(state) - 0.5
        slack = 0.5 - abs(u)
        count = math.floor((2.0 * a / slack + b) * u + centre)
        if slack >= 0.07 and level <= inside:
            return int(count)
        if count < 0 or count > trials:
            continue
        scaled = math.log(level * alpha / (a / (slack * slack) + b))
        ratio = at_mode - math.lgamma(count + 1.0) - math.lgamma(trials - count + 1.0)
        if scaled <= ratio + (count - mode) * log_odds:
            return int(count)
