"""What rules are worth, from choices that were made by lot."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from benchmarks.real_data.data import F64, I64, Logged


class Value(NamedTuple):
    """An estimated mean reward, and its standard error."""

    value: float
    error: float


def snips(probabilities: F64, data: Logged, shares: F64) -> Value:
    """The mean reward that a rule would have had, by self-normalised inverse propensities.

    The error is by the delta method, and rows of one person count together.

    Args:
        probabilities: with which the rule chooses each action for each row, shape (n, K).
        data: the rows.
        shares: the propensities, shape (K,).
    """
    at = np.arange(len(data.chosen))
    weights = probabilities[at, data.chosen] / shares[data.chosen]
    value = float(weights @ data.rewards / weights.sum())
    _, persons = np.unique(data.persons, return_inverse=True)
    residuals = np.bincount(persons.ravel(), weights * (data.rewards - value))
    return Value(value, float(np.linalg.norm(residuals) / weights.sum()))


class Paired(NamedTuple):
    """Differences over splits: their mean, its standard error, and t = mean / error."""

    mean: float
    error: float
    t: float


def paired(values: Sequence[float], others: Sequence[float]) -> Paired:
    """How far values lie above others of the same splits.

    Splits share rows, so t says how steady a difference is on this data set, and more than a
    fresh data set would.

    Args:
        values: one for each split.
        others: the same.
    """
    differences = np.subtract(values, others)
    mean = float(differences.mean())
    error = float(differences.std(ddof=1) / math.sqrt(differences.size))
    return Paired(mean, error, mean / error if error > 0 else math.copysign(0.0, mean))


def over_seeds(played: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    """The last quarter over seeds, with a 95% interval for its mean by Student's t.

    Args:
        played: for each seed the figure of the last quarter, and that of all rounds.
    """
    last, overall = np.array(played).T
    mean, error, reach = float(last.mean()), None, None
    if last.size > 1:
        error = float(last.std(ddof=1) / math.sqrt(last.size))
        reach = error * float(stdtrit(last.size - 1, 0.975))
    return {
        "last_quarter": mean,
        "low": None if reach is None else mean - reach,
        "high": None if reach is None else mean + reach,
        "error": error,
        "lowest": float(last.min()),
        "all_rounds": float(overall.mean()),
    }


def best_single(data: Logged, actions: int) -> int:
    """The action with the best mean reward."""
    totals = np.bincount(data.chosen, data.rewards, minlength=actions)
    return int((totals / np.maximum(1, np.bincount(data.chosen, minlength=actions))).argmax())


def ridge(rows: F64, rewards: F64, penalty: float) -> F64:
    """The ridge regression's parameter; with several columns of rewards, one for each."""
    return np.linalg.solve(rows.T @ rows + penalty * np.eye(rows.shape[1]), rows.T @ rewards)


def taken(indices: I64, actions: int) -> F64:
    """Probabilities of a rule that makes these choices, shape (n, K)."""
    return np.eye(actions)[indices]
