"""Rows at the door: shape, finiteness and bounds, before anything else sees them.

Formal guarantee: what passes has norm at most ``action_norm`` and absolute reward at most
``reward_bound`` (to within rounding), so that one row's outer product has the sensitivity the
accounting assumes. Messages name the place of a bad row, never its contents.
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
from discreet.problem import Problem

F64 = NDArray[np.float64]

OnViolation = Literal["error", "clip"]
_CHOICES = ("error", "clip")

ROUNDING = 1e-9  # a unit vector computed in floating point may be longer than 1 by this much


def checked_choice(on_violation: str) -> OnViolation:
    """'error' or 'clip'."""
    if on_violation not in _CHOICES:
        raise ParameterError("on_violation", f"is {on_violation!r}; give 'error' or 'clip'")
    return on_violation  # type: ignore[return-value]


def bounded_actions(problem: Problem, actions: ArrayLike, on_violation: OnViolation) -> F64:
    """A copy of the decision set, shape (K, d), with no row longer than ``action_norm``.

    Rows that are too long by rounding alone are scaled back without a word.
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
    if not np.isfinite(rows).all():
        raise NotFiniteError("actions", "holds NaN or infinity; give finite features")
    peaks = np.abs(rows).max(axis=1)
    scaled = rows / np.where(peaks > 0.0, peaks, 1.0)[:, None]
    norms = peaks * np.sqrt(np.einsum("kd,kd->k", scaled, scaled))
    limit = problem.action_norm
    if norms.max() <= limit:
        return rows
    if on_violation == "error" and norms.max() > limit * (1.0 + ROUNDING):
        raise OutOfBoundsError(
            "actions",
            f"row {int(norms.argmax())} is longer than action_norm={limit:g}; scale your features, "
            "state a larger action_norm, or pass on_violation='clip'",
        )
    long = norms > limit
    # A hair below the bound, so that rounding in the product cannot exceed it.
    rows[long] = scaled[long] * (peaks * (limit * (1.0 - 1e-15) / norms))[long, None]
    return rows


def bounded_reward(problem: Problem, reward: object, on_violation: OnViolation) -> float:
    """The reward as a float within ``+-reward_bound``."""
    if isinstance(reward, np.ndarray) and reward.ndim == 0:
        reward = reward.item()
    if not isinstance(reward, Real | np.bool_):
        raise ShapeError("reward", "is not a number; give one finite number")
    value = float(reward)
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


def _numbers(values: ArrayLike) -> F64:
    """A fresh float64 array; whatever goes wrong, the message does not quote the input."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "biuf":
        raise ShapeError("actions", "is not an array of real numbers; give a (K, d) array")
    return np.array(found, dtype=np.float64, order="C")
