"""`run_linear`: attacks on linear baselines, through the noisy statistics that they show.

Two worlds differ in what one person brings, and that is as far apart as the bounds allow: opposite
rewards of one action where rewards are protected, and otherwise the pair of rows that the noise
hides worst. Everybody else brings rewards of zero, so that whatever else differs is noise, and has
the choice between an action and its opposite. What is looked at is all that the learner has
released by then, and what it chose for the others.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from discreet.audit import _statistics as statistics
from discreet.audit._attacks import EpsilonBound
from discreet.audit._audit import Audit, Finding, verdict
from discreet.audit._statistics import Samples
from discreet.audit._trials import Effort
from discreet.baselines.linear._learner import LinearLearner
from discreet.problem import Problem

F64 = NDArray[np.float64]
Make = Callable[[], LinearLearner]

_TUNED = 5  # one trial in so many serves to tune


class _Row(NamedTuple):
    """What one person brings: the only action of her decision set, and its reward."""

    action: F64
    reward: float


def worst_rows(problem: Problem, *, gram_std: float, moment_std: float) -> tuple[_Row, _Row]:
    """The two rows that noise of these deviations hides worst, found by trying angles.

    The rows have full length and opposite rewards; the angle between their actions is what is left.

    Args:
        problem: the bounds; at least two features.
        gram_std: the noise on the Gram matrix, off its diagonal; 0 where actions are public.
        moment_std: the noise on the moment.

    Returns:
        The rows of the two worlds.
    """
    length, reward = problem.action_norm, problem.reward_bound

    def turned(angle: float) -> F64:
        action = np.zeros(problem.dim)
        action[:2] = length * math.cos(angle), length * math.sin(angle)
        return action

    def distance(angle: float) -> float:
        one, other = turned(0.0), turned(angle)
        gram = np.outer(one, one) - np.outer(other, other)
        moment = reward * (one + other)
        return float((gram**2).sum() / (2 * gram_std**2) + (moment**2).sum() / moment_std**2)

    if gram_std == 0.0:
        return _Row(turned(0.0), reward), _Row(turned(0.0), -reward)
    found = minimize_scalar(lambda angle: -distance(angle), bounds=(0.0, math.pi), method="bounded")
    angle = max((0.0, float(found.x), math.pi / 2), key=distance)
    return _Row(turned(0.0), reward), _Row(turned(angle), -reward)


def run_linear(
    make: Callable[[], LinearLearner],
    *,
    gram_std: float,
    moment_std: float,
    rows: int,
    trials: int = 5_000,
    confidence: float = 0.999,
) -> Audit:
    """Attack a linear baseline, and set what is found beside what is claimed.

    Args:
        make: makes a learner whenever it is called.
        gram_std: the noise on a row's Gram matrix that the learner states, 0 for none: it only says
            which rows to try.
        moment_std: the noise on its moment, for the same.
        rows: how many rows are played; the first is the person's.
        trials: learners that are made for each of two worlds, at least 100. A fifth of them serves
            to tune an attack, the others to judge it.
        confidence: the probability that a bound is true, for each attack by itself.

    Returns:
        What a threshold on the best linear statistic of releases proves, what their lowest bits
        do, what choices do, and what the statistic proves if noise is Gaussian.
    """
    effort = Effort(trials=trials, confidence=confidence, jobs=1)
    learner = make()
    claim, problem = learner.guarantee, learner.rule.problem
    start = time.perf_counter()
    pair = worst_rows(problem, gram_std=gram_std, moment_std=moment_std)
    played = [_played(make, row, pair[0].action, rows, effort.trials) for row in pair]
    shown = [world.sums for world in played]
    seconds = time.perf_counter() - start
    delta = claim.delta or 0.0
    found = {
        "threshold": _threshold(shown, effort, delta),
        "low-bits": _low_bits(shown, effort, delta),
        "choices": _choices([world.choices for world in played], effort, delta),
    }
    if delta > 0.0:
        found["gaussian"] = _gaussian(shown, effort, delta)
    findings = tuple(
        Finding(
            attack=name,
            epsilon_lower=one.epsilon,
            claimed=claim.epsilon,
            delta=delta,
            confidence=confidence,
            trials=one.trials,
            seconds=seconds,
            verdict=verdict(one, claim.epsilon),
            note=one.note,
        )
        for name, one in found.items()
    )
    return Audit(variant=type(learner.rule).__name__, guarantee=str(claim), findings=findings)


class _Played(NamedTuple):
    """What learners showed in one world."""

    sums: F64  # after every row, shape (trials, k)
    choices: list[str]  # for everybody but the person, a text a trial


def _played(make: Make, first: _Row, usual: F64, rows: int, trials: int) -> _Played:
    """What learners showed, the person's row and ``rows - 1`` others in."""
    every = [_play(make(), first, usual, rows) for _ in range(trials)]
    return _Played(np.array([sums for sums, _ in every]), [choices for _, choices in every])


def _play(learner: LinearLearner, first: _Row, usual: F64, rows: int) -> tuple[F64, str]:
    """All that a learner shows after each row, and what it chooses for others, one more at the end.

    An action and its opposite are one row where the reward is zero.
    """
    alone = first.action[None] if learner.guarantee.protects == "rows" else _either(first.action)
    shown, choices = [], ""
    for turn in range(rows):
        decision = learner.choose(alone if turn == 0 else _either(usual))
        side = -1.0 if decision.index == 1 else 1.0
        learner.learn(decision, side * first.reward if turn == 0 else 0.0)
        shown.append(learner.released)
        choices += str(decision.index) if turn > 0 else ""
    if learner.rounds < learner.rule.horizon:
        choices += str(learner.choose(_either(usual)).index)
    return np.concatenate(shown), choices


def _either(action: F64) -> F64:
    return np.array([action, -action])


def _parts(shown: list[F64]) -> tuple[Samples, Samples, F64]:
    """A fifth to tune on, the rest to judge by, and by how much the worlds' means differ."""
    tuned = len(shown[0]) // _TUNED
    varying = np.ptp(np.concatenate(shown), axis=0) > 0.0
    tuning = Samples(*(group[:tuned, varying] for group in shown))
    testing = Samples(*(group[tuned:, varying] for group in shown))
    return tuning, testing, tuning.one.mean(axis=0) - tuning.other.mean(axis=0)


def _threshold(shown: list[F64], effort: Effort, delta: float) -> EpsilonBound:
    """The best linear statistic of what is released, and a threshold."""
    score = partial(statistics.rates_epsilon, delta=delta)
    statistic = statistics.linear_statistic(*_parts(shown))
    rates = statistics.threshold_rates(*statistic, risk=effort.risk, score=score)
    return EpsilonBound(float(score(*map(np.asarray, rates))), effort.trials)


def _gaussian(shown: list[F64], effort: Effort, delta: float) -> EpsilonBound:
    """The same with a threshold in the middle, and the epsilon that Gaussian noise has then."""
    statistic = statistics.linear_statistic(*_parts(shown))
    mu = float(statistics.rates_mu(*statistics.median_rates(*statistic, risk=effort.risk)))
    note = f"mu is at least {mu:.4g}; takes noise to be Gaussian"
    return EpsilonBound(statistics.mu_epsilon(mu, delta=delta), effort.trials, note)


def _choices(choices: list[list[str]], effort: Effort, delta: float) -> EpsilonBound:
    """Which sequences of choices speak for which world: what is chosen by more than releases."""
    score = partial(statistics.rates_epsilon, delta=delta)
    rates = statistics.trace_rates(*choices, risk=effort.risk)
    return EpsilonBound(float(score(*map(np.asarray, rates))), effort.trials)


def _low_bits(shown: list[F64], effort: Effort, delta: float) -> EpsilonBound:
    """The lowest bits of what is released: what floating-point sums give away."""
    tuning, testing, _ = _parts(shown)
    score = partial(statistics.rates_epsilon, delta=delta)
    rates = statistics.low_bits_rates(tuning, testing, risk=effort.risk, score=score)
    return EpsilonBound(float(score(*map(np.asarray, rates))), effort.trials)
