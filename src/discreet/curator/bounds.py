"""Checks shape, finiteness and bounds of actions and rewards before anything else uses them.

Formal guarantee: what passes has norm at most ``action_norm`` (to within 1e-14, the rounding of a
norm) and absolute reward at most ``reward_bound``, so that one row's outer product has the
sensitivity the accounting assumes. Messages say what is wrong, never with which contents.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
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

_F64 = NDArray[np.float64]

OnViolation = Literal["error", "clip"]
_CHOICES = ("error", "clip")
_NUMBERS = "biuf"  # kinds of numpy's types: bool, whole and floating-point numbers
_SEQUENCES = (list, tuple)
_FLOAT64 = np.dtype(np.float64)
_Masked = np.ma.MaskedArray

_ROUNDING = 1e-14  # how much too long a unit vector may come out in double precision
_TOLERANCE = 1e-9  # a caller's own arithmetic may have added this much; it is scaled back


def checked_on_violation(on_violation: str) -> OnViolation:
    """The choice, if it is 'error' or 'clip'; ParameterError otherwise."""
    if on_violation not in _CHOICES:
        raise ParameterError("on_violation", f"is {on_violation!r}; give 'error' or 'clip'")
    return on_violation  # type: ignore[return-value]  # one of the two


def bounded_actions(problem: Problem, actions: ArrayLike, on_violation: OnViolation) -> _F64:
    """A copy of the decision set, shape (K, d), with no row longer than ``action_norm``.

    Rows that are too long by a trace of arithmetic are scaled back without a word.

    Args:
        problem: The stated bounds.
        actions: What a caller gave: an array, nested lists, anything that numpy reads as numbers.
        on_violation: 'error', or 'clip' to scale rows that are too long to the bound.

    Returns:
        A float64 array of its own, in C order.

    Raises:
        ShapeError: It is not a (K, d) array of real numbers, or some of them are masked.
        EmptyDecisionSetError: There is no action.
        NotFiniteError: A feature is NaN or infinite.
        OutOfBoundsError: A row is too long, and ``on_violation`` is 'error'; or it has features in
            several of the problem's blocks.
    """
    rows = _numbers(actions)
    if rows.ndim > 0 and rows.size == 0:
        raise EmptyDecisionSetError(
            "actions", f"is empty; give a (K, {problem.dim}) array with at least one action"
        )
    if rows.ndim != 2 or rows.shape[1] != problem.dim:
        raise ShapeError(
            "actions", f"has shape {rows.shape}; give a (K, {problem.dim}) array, an action a row"
        )
    limit = problem.action_norm
    largest = linalg.largest_square(rows)
    if largest <= _largest_allowed(limit):  # also false for NaN
        return _in_blocks(problem, rows)
    if not np.isfinite(rows).all():
        raise NotFiniteError("actions", "holds NaN or infinity; give finite features")
    if on_violation == "error" and largest > (limit * (1.0 + _TOLERANCE)) ** 2:
        raise OutOfBoundsError(
            "actions",
            f"a row is longer than action_norm={limit:g}; scale your features, state a larger "
            "action_norm, or pass on_violation='clip'",
        )
    return _in_blocks(problem, _shortened(rows, limit))


def _in_blocks(problem: Problem, rows: _F64) -> _F64:
    """The rows, if each has features in no more than one of the problem's blocks."""
    if len(problem.blocks) > 1:
        starts = [0, *accumulate(problem.blocks[:-1])]
        touched = np.logical_or.reduceat(rows != 0.0, starts, axis=1).sum(axis=1)
        if touched.max() > 1:
            raise OutOfBoundsError(
                "actions",
                f"a row has features in more than one of the {len(problem.blocks)} stated blocks; "
                "leave `blocks` out of the Problem, or give each action its own block",
            )
    return rows


def bounded_sets(
    problem: Problem, sets: Sequence[ArrayLike], on_violation: OnViolation
) -> list[_F64]:
    """`bounded_actions` of several decision sets.

    Arrays of the right kind are copied and checked together. If that finds anything amiss, or
    something else was given, they are looked at one by one.

    Args:
        problem: The stated bounds.
        sets: What a caller gave, a decision set each.
        on_violation: 'error' or 'clip', as for `bounded_actions`.

    Returns:
        Read-only float64 arrays, in C order.
    """
    found: list[_F64] = []
    if sets and all(_is_plain_set(actions, problem.dim) for actions in sets):
        ends = [0, *accumulate(map(len, sets))]  # type: ignore[arg-type]  # all are arrays
        together = np.concatenate(sets, out=np.empty((ends[-1], problem.dim)))
        if linalg.largest_square(together) <= _largest_allowed(problem.action_norm):
            _in_blocks(problem, together)
            found = [together[start:end] for start, end in pairwise(ends)]
    if not found:
        found = [bounded_actions(problem, actions, on_violation) for actions in sets]
    for actions in found:
        actions.setflags(write=False)
    return found


def _is_plain_set(actions: ArrayLike, dim: int) -> bool:
    """Whether this is a float64 array of shape (K, dim) with an action or more."""
    return (
        type(actions) is np.ndarray
        and actions.dtype == _FLOAT64
        and actions.ndim == 2
        and actions.shape[1] == dim
        and len(actions) > 0
    )


def _largest_allowed(limit: float) -> float:
    """The largest squared norm of an action that is within the limit but for rounding."""
    return (limit * (1.0 + _ROUNDING)) ** 2


def still_bounded(problem: Problem, actions: Sequence[_F64]) -> list[_F64]:
    """Copies of chosen actions, checked again after a policy had the decision sets in its hands.

    Args:
        problem: The stated bounds.
        actions: Rows of what `bounded_actions` returned, shape (d,) each.

    Returns:
        Float64 arrays of their own, shape (d,) each: one of them does not keep the others.

    Raises:
        ParameterError: A row is not one that `bounded_actions` can have returned.
    """
    if not actions:
        return []
    count = len(actions)
    try:  # numpy copies an array more quickly than a list with one array in it
        copies = np.array(actions[0] if count == 1 else actions, _FLOAT64, ndmin=2)
    except ValueError:  # of different shapes
        copies = np.empty((0, 0))
    if copies.shape == (count, problem.dim) and (
        # A square beyond floating point is infinity, and one of NaN is not within anything.
        linalg.largest_square(copies) <= _largest_allowed(problem.action_norm)
    ):
        return [copies[0]] if count == 1 else [row.copy() for row in copies]
    raise ParameterError(
        "policy", "changed the decision set it was given; a policy may only read it"
    )


def _shortened(rows: _F64, limit: float) -> _F64:
    """Scale long rows to the limit; dividing by the largest entry first avoids overflow."""
    peaks = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(peaks > 0.0, peaks, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        long = (peaks * lengths > limit)[:, 0]
    rows[long] = scaled[long] * (limit / lengths[long])
    return rows


def bounded_reward(problem: Problem, reward: object, on_violation: OnViolation) -> float:
    """The reward's distance from ``reward_centre``, within ``+-reward_bound``.

    Args:
        problem: The stated bounds.
        reward: What a caller gave: a number, a bool, or an array of shape () with one in it.
        on_violation: 'error', or 'clip' to take the bound for what is beyond it.

    Returns:
        The number.

    Raises:
        ShapeError: It is not a real number: a text, a length of time, a masked entry, several.
        NotFiniteError: It is NaN or infinite.
        OutOfBoundsError: It is beyond the bound, and ``on_violation`` is 'error'.
    """
    value = reward if type(reward) is float else _real(reward)
    if not math.isfinite(value):
        raise NotFiniteError("reward", "is NaN or infinite; give a finite number")
    distance = value - problem.reward_centre
    if abs(distance) <= problem.reward_bound:
        return distance
    if on_violation == "error":
        stated = f"+-reward_bound={problem.reward_bound:g}"
        if problem.reward_centre:
            low = problem.reward_centre - problem.reward_bound
            high = problem.reward_centre + problem.reward_bound
            stated = f"{low:g} to {high:g}, the stated range"
        raise OutOfBoundsError(
            "reward",
            f"is outside {stated}; scale your rewards, state a larger reward_bound, or pass "
            "on_violation='clip'",
        )
    return math.copysign(problem.reward_bound, distance)


def stored_reward(problem: Problem, distance: float) -> float:
    """A reward's distance from the centre as it was stored; ValueError if it is no such thing."""
    if not abs(distance) <= problem.reward_bound:
        raise ValueError("a reward beyond its bound")
    return distance


def _real(reward: object) -> float:
    _refuse_masked("reward", reward)
    if isinstance(reward, np.ndarray | np.generic):  # numpy counts lengths of time as numbers
        reward = reward.item() if reward.ndim == 0 and reward.dtype.kind in _NUMBERS else None
    if not isinstance(reward, Real):
        raise ShapeError("reward", "is not a number; give one finite number")
    try:
        return float(reward)
    except OverflowError:  # a whole number beyond all floating point
        return math.inf


def _numbers(values: ArrayLike) -> _F64:
    """A fresh float64 array; whatever goes wrong, the message does not quote the input."""
    if type(values) is not np.ndarray:
        _refuse_masked("actions", values)
    try:
        found = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # not all that converts itself does it well
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in _NUMBERS:
        raise ShapeError(
            "actions",
            "is not an array of real numbers; give a (K, d) array of them (a sparse one as "
            "actions.toarray())",
        )
    return np.array(found, dtype=np.float64, order="C")


def _refuse_masked(parameter: str, values: object, depth: int = 3) -> None:
    """Refuse masked entries, also in lists: numpy would take what is behind the mask."""
    if isinstance(values, _Masked):
        if np.ma.is_masked(values):
            raise ShapeError(parameter, "has masked entries; fill or drop them")
    elif depth and isinstance(values, _SEQUENCES):
        for value in values:
            if type(value) is not float:
                _refuse_masked(parameter, value, depth - 1)
