"""From counts to lower bounds on epsilon. Knows nothing of learners or of noise.

Two worlds differ in what one person brings, and a test says yes in each with some probability.
Under (epsilon, delta)-privacy a yes in one world is at most e^epsilon times as likely as in the
other, plus delta, and so is a no. Counts bound the two probabilities, and these bound epsilon.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betainccinv, betaincinv, ndtri

from discreet.accounting import gaussian_epsilon

F64 = NDArray[np.float64]

_STEP = 1 / 16  # of the search for the one-run bound
_LARGEST = 64.0  # no count can show more
_ROUNDING = 1e-9  # far more than an accounted delta is raised by


def lower_rate(hits: ArrayLike, trials: int, risk: float) -> F64:
    """A probability that is below the true one but for a chance of ``risk`` (Clopper-Pearson)."""
    hits = np.asarray(hits, dtype=np.float64)
    found = betaincinv(np.maximum(hits, 1.0), trials - hits + 1, risk)
    return np.where(hits > 0, found, 0.0)


def upper_rate(hits: ArrayLike, trials: int, risk: float) -> F64:
    """A probability that is above the true one but for a chance of ``risk`` (Clopper-Pearson)."""
    hits = np.asarray(hits, dtype=np.float64)
    found = betainccinv(hits + 1, np.maximum(trials - hits, 1.0), risk)
    return np.where(hits < trials, found, 1.0)


def rates_epsilon(low: ArrayLike, high: ArrayLike, *, delta: float) -> F64:
    """The epsilon that two rates prove: at least ``low`` in one world, at most ``high`` in another.

    The larger of ln((low - delta)/high), for a yes, and ln((1 - high - delta)/(1 - low)), for a
    no; 0 if neither is positive. Both use the same two bounds, so both hold at once.
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.log(np.maximum(low - delta, 0.0) / high)
        no = np.log(np.maximum(1 - high - delta, 0.0) / (1 - low))
    return np.asarray(np.maximum(0.0, np.nan_to_num(np.maximum(yes, no), nan=0.0)))


def rates_mu(low: ArrayLike, high: ArrayLike) -> F64:
    """The mu that two rates prove: a mu-GDP mechanism has low <= Phi(Phi^-1(high) + mu)."""
    with np.errstate(invalid="ignore"):
        found = ndtri(np.asarray(low, dtype=np.float64)) - ndtri(np.asarray(high, dtype=np.float64))
    return np.maximum(0.0, np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0))


def mu_epsilon(mu: float, *, delta: float) -> float:
    """The epsilon of Gaussian noise with this mu at this delta, rounded down."""
    if mu <= _ROUNDING:
        return 0.0
    return gaussian_epsilon(delta=min(delta * (1 + _ROUNDING), 1 - _ROUNDING), mu=mu)


def one_run_p_value(
    *, epsilon: float, delta: float, canaries: int, guesses: int, correct: int
) -> float:
    """How likely so many correct guesses are, at most, if each secret bit is private.

    With W binomial, of ``guesses`` trials at e^eps/(1 + e^eps), and v ``correct`` ones:
    P(W >= v) + 2 m delta max_i P(v > W >= v - i)/i, for m ``canaries`` (Steinke, Nasr & Jagielski
    2023, theorem 5.2).
    """
    if correct == 0:
        return 1.0
    right = 1 / (1 + math.exp(-epsilon))
    least = np.arange(correct, -1, -1.0)  # P(W >= v), P(W >= v - 1), ..., P(W >= 0)
    tails = betainc(np.maximum(least, 1.0), guesses - least + 1, right)
    tails[-1] = 1.0
    extra = float(np.max((tails[1:] - tails[0]) / np.arange(1, correct + 1)))
    return min(1.0, float(tails[0]) + 2 * canaries * delta * extra)


def one_run_epsilon(
    *, delta: float, canaries: int, guesses: int, correct: int, risk: float
) -> float:
    """The epsilon that the guesses of a run prove, but for a chance of ``risk``.

    Every smaller epsilon is refuted as well: the search goes up from 0 and stops at the first that
    is not, so nothing hangs on the p-value growing with epsilon.
    """

    def refuted(epsilon: float) -> bool:
        p_value = one_run_p_value(
            epsilon=epsilon, delta=delta, canaries=canaries, guesses=guesses, correct=correct
        )
        return p_value <= risk

    low = 0.0
    if not refuted(low):
        return 0.0
    while low < _LARGEST and refuted(low + _STEP):
        low += _STEP
    high = low + _STEP
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
