"""Rows at the door: shape, finiteness and bounds, before anything else sees them.

Formal guarantee: what passes has norm at most ``action_norm`` (to within 1e-14, the rounding of a
norm) and absolute reward at most ``reward_bound``, so that one row's outer product has the
sensitivity the accounting assumes. Messages say what is wrong, never with which contents.
"""

import math
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import (
    EmptyDecisionSetError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
)
from discreet.kernels import _linalg as linalg
from discreet.problem import Problem

F64 = NDArray[np.float64]

OnViolation = Literal["error", "clip"]
_CHOICES = ("error", "clip")

ROUNDING = 1e-14  # how much too long a unit vector may come out in double precision
TOLERANCE = 1e-9  # a caller's own arithmetic may have added this much; it is scaled back


def checked_choice(on_violation: str) -> OnViolation:
    """'error' or 'clip'."""
    if on_violation not in _CHOICES:
        raise ParameterError("on_violation", f"is {on_violation!r}; give 'error' or 'clip'")
    return on_violation  # type: ignore[return-value]


def bounded_actions(problem: Problem, actions: ArrayLike, on_violation: OnViolation) -> F64:
    """A copy of the decision set, shape (K, d), with no row longer than ``action_norm``.

    Rows that are too long by a trace of arithmetic are scaled back without a word.
    """
    rows = _numbers(actions)
    if rows.ndim == 0 or rows.size == 0:
        raise EmptyDecisionSetError(
            "actions", f"is empty; give a (K, {problem.dim}) array with at least one action"
        )
    if rows.ndim != 2 or rows.shape[1] != problem.dim:  # noqa: PLR2004
        raise ShapeError(
            "actions", f"has shape {rows.shape}; give a (K, {problem.dim}) array, an action a row"
        )
    limit = problem.action_norm
    largest = linalg.largest_square(rows)
    if largest <= (limit * (1.0 + ROUNDING)) ** 2:  # also false for NaN
        return rows
    if not np.isfinite(rows).all():
        raise NotFiniteError("actions", "holds NaN or infinity; give finite features")
    if on_violation == "error" and largest > (limit * (1.0 + TOLERANCE)) ** 2:
        raise OutOfBoundsError(
            "actions",
            f"a row is longer than action_norm={limit:g}; scale your features, state a larger "
            "action_norm, or pass on_violation='clip'",
        )
    return _shortened(rows, limit)


def still_bounded(problem: Problem, action: F64) -> F64:
    """A copy of a chosen action, checked again: a policy has had its hands on it."""
    copy = np.array(action, dtype=np.float64, ndmin=2)
    limit = problem.action_norm * (1.0 + ROUNDING)
    if copy.shape != (1, problem.dim) or not linalg.largest_square(copy) <= limit * limit:
        raise ParameterError(
            "policy", "changed the decision set it was given; a policy may only read it"
        )
    return np.asarray(copy[0])


def _shortened(rows: F64, limit: float) -> F64:
    """Scale long rows to the limit; dividing by the largest entry first avoids overflow."""
    peaks = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(peaks > 0.0, peaks, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        long = (peaks * lengths > limit)[:, 0]
    rows[long] = scaled[long] * (limit / lengths[long])
    return rows


def bounded_reward(problem: Problem, reward: object, on_violation: OnViolation) -> float:
    """The reward as a float within ``+-reward_bound``."""
    value = reward if type(reward) is float else _real(reward)
    if not math.isfinite(value):
        raise NotFiniteError("reward", "is NaN or infinite; give a finite number")
    if abs(value) <= problem.reward_bound:
        return value
    if on_violation == "error":
        raise OutOfBoundsError(
            "reward",
            f"is outside +-reward_bound={problem.reward_bound:g}; scale your rewards, state a "
            "larger reward_bound, or pass on_violation='clip'",
        )
    return math.copysign(problem.reward_bound, value)


def _real(reward: object) -> float:
    if isinstance(reward, np.ndarray) and reward.ndim == 0:
        reward = reward.item()
    if not isinstance(reward, Real | np.bool_):
        raise ShapeError("reward", "is not a number; give one finite number")
    try:
        return float(reward)
    except OverflowError:  # a whole number beyond all floating point
        return math.inf


def _numbers(values: ArrayLike) -> F64:
    """A fresh float64 array; whatever goes wrong, the message does not quote the input."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "biuf":
        raise ShapeError("actions", "is not an array of real numbers; give a (K, d) array")
    return np.array(found, dtype=np.float64, order="C")
