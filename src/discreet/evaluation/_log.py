"""Checks of a chunk of logged rounds, and what is kept of it: rewards and weights.

What passes has rewards in 0 ... 1 (scaled from the stated bounds) and weights of at least 0, one
row for each logged round. A row's numbers depend on that row alone. Messages say what is wrong,
never with which contents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.errors import NotFiniteError, OutOfBoundsError, ParameterError, ShapeError

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

_NUMBERS = "biuf"  # kinds of numpy's types: bool, whole and floating-point numbers
_MOST_POLICIES = 1000
_SUM_TOLERANCE = 1e-6  # how far from 1 a caller's probabilities may sum up to
_TOLERANCE = 1e-9  # a caller's own arithmetic may have added this much
_LARGEST = 1e50  # of a weight: its square and sums of squares stay inside floating point

Targets = ArrayLike | Mapping[str, ArrayLike]


class Subjects(NamedTuple):
    """Whose rows these are: distinct names, and for each row the place of its name."""

    names: list[int | str]
    places: I64


class Chunk(NamedTuple):
    """Logged rounds. P policies; a row of a table is a policy, a column a round.

    Attributes:
        rewards: scaled to 0 ... 1, shape (n,).
        weights: target probability over propensity, shape (P, n); infinity where only the
            propensity is 0. Not clipped.
        propensities: of the logged actions, shape (n,).
        direct: what a reward model expects of each policy, in scaled rewards, shape (P, n).
        predicted: what it expects of the logged action, in scaled rewards, shape (n,).
        accepted: which rounds each policy's replay accepts, shape (P, n).
        subjects: whose rounds these are.
    """

    rewards: F64
    weights: F64
    propensities: F64
    direct: F64 | None
    predicted: F64 | None
    accepted: F64 | None
    subjects: Subjects | None


@dataclass(frozen=True, kw_only=True)
class Log:
    """What is stated about a log and the policies that are evaluated on it. All public.

    Attributes:
        policies: names of the policies.
        low: no reward is below this.
        high: no reward is above this.
        clip: no weight counts more than this; None leaves weights as they are.
        on_violation: what to do with rewards outside the bounds, 'error' or 'clip'.
    """

    policies: tuple[str, ...]
    low: float
    high: float
    clip: float | None
    on_violation: str

    @classmethod
    def stated(
        cls,
        policies: Sequence[str],
        *,
        low: float,
        high: float,
        clip: float | None,
        on_violation: str,
    ) -> "Log":
        """A `Log` with these settings, after checking them."""
        low, high = checks.finite("low", low), checks.finite("high", high)
        if not low < high:
            raise ParameterError("high", "is not above low; give bounds with low < high")
        checks.within("high", high - low, checks.SMALLEST, checks.LARGEST)
        for name, bound in (("low", low), ("high", high)):
            checks.within(name, bound, -checks.LARGEST, checks.LARGEST)
        return cls(
            policies=_names(policies),
            low=low,
            high=high,
            clip=None if clip is None else checks.magnitude("clip", clip),
            on_violation=checks.one_of("on_violation", on_violation, ("error", "clip")),
        )

    @property
    def range(self) -> float:
        """The distance of the bounds."""
        return self.high - self.low

    def read(
        self,
        rewards: ArrayLike,
        *,
        propensities: ArrayLike,
        targets: Targets,
        actions: ArrayLike | None = None,
        predictions: ArrayLike | None = None,
        accepted: Targets | None = None,
        subjects: ArrayLike | None = None,
    ) -> Chunk:
        """A chunk of a caller's arrays; `Values.add` says what they are."""
        scaled = self._rewards(rewards)
        logged = _probabilities("propensities", _column("propensities", propensities, scaled.size))
        chosen = None if actions is None else _places(actions, scaled.size)
        tables = [
            _target(table, scaled.size) for table in self._by_policy("targets", targets).values()
        ]
        chances = np.array([_of_logged(table, chosen, scaled.size) for table in tables])
        direct, predicted = self._modelled(tables, chosen, predictions, scaled.size)
        kept = None
        if accepted is not None:
            masks = self._by_policy("accepted", accepted).values()
            kept = np.array([_mask(mask, scaled.size) for mask in masks])
        return Chunk(
            rewards=scaled,
            weights=self._weights(chances, logged),
            propensities=logged,
            direct=direct,
            predicted=predicted,
            accepted=kept,
            subjects=None if subjects is None else _subjects(subjects, scaled.size),
        )

    def clipped(self, weights: F64) -> F64:
        """Weights no larger than the clip."""
        return weights if self.clip is None else np.minimum(weights, self.clip)

    def _rewards(self, rewards: ArrayLike) -> F64:
        found = numbers("rewards", rewards)
        if found.ndim != 1:
            raise ShapeError("rewards", f"has shape {found.shape}; give one number a round, (n,)")
        slack = _TOLERANCE * self.range
        if self.on_violation == "error" and (
            (found < self.low - slack).any() or (found > self.high + slack).any()
        ):
            raise OutOfBoundsError(
                "rewards",
                f"one is outside {self.low:g} ... {self.high:g}; state wider bounds, or pass "
                "on_violation='clip'",
            )
        with np.errstate(over="ignore"):  # far outside, and clipped
            return np.clip((found - self.low) / self.range, 0.0, 1.0)

    def _by_policy(self, parameter: str, given: Targets) -> dict[str, ArrayLike]:
        """One array for each policy, in order; a single policy's may come without its name."""
        if not isinstance(given, Mapping):
            if len(self.policies) > 1:
                raise ParameterError(
                    parameter,
                    f"must be a dictionary with an array for each of {len(self.policies)} policies",
                )
            return {self.policies[0]: given}
        if set(given) != set(self.policies):
            expected = ", ".join(map(repr, self.policies[:5]))
            raise ParameterError(
                parameter,
                f"has other names than the policies; give exactly {expected}"
                + (" and so on" if len(self.policies) > 5 else ""),
            )
        return {name: given[name] for name in self.policies}

    def _weights(self, chances: F64, logged: F64) -> F64:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            weights = np.where(chances == 0.0, 0.0, chances / logged)
        if self.clip is None and weights.size and weights.max() > _LARGEST:
            raise OutOfBoundsError(
                "propensities",
                "one is zero, or nearly, where a policy may act: its weight is beyond all bounds; "
                "pass clip=..., or drop actions that were never logged",
            )
        return weights

    def _modelled(
        self, tables: list[F64], chosen: I64 | None, predictions: ArrayLike | None, rows: int
    ) -> tuple[F64 | None, F64 | None]:
        """What the reward model expects of each policy and of the logged action, both scaled."""
        if predictions is None:
            return None, None
        found = numbers("predictions", predictions)
        if found.ndim != 2 or found.shape[0] != rows:
            raise ShapeError("predictions", f"has shape {found.shape}; give ({rows}, K)")
        if chosen is None or any(table.ndim != 2 for table in tables):
            raise ParameterError(
                "predictions",
                "need the logged actions, and targets of shape (n, K) or (1, K) for each policy",
            )
        if any(table.shape[1] != found.shape[1] for table in tables):
            raise ShapeError("predictions", "and targets have another number of actions each")
        if chosen.size and chosen.max() >= found.shape[1]:
            raise OutOfBoundsError("actions", f"has one beyond the last, {found.shape[1] - 1}")
        with np.errstate(over="ignore"):
            scaled = (found - self.low) / self.range
        if scaled.size and not np.abs(scaled).max() <= _LARGEST:
            raise OutOfBoundsError(
                "predictions", "are beyond computing; give some near the rewards"
            )
        direct = np.array([(table * scaled).sum(axis=1) for table in tables])
        return direct, scaled[np.arange(rows), chosen]


def numbers(parameter: str, values: ArrayLike) -> F64:
    """A float64 array of finite numbers; whatever goes wrong, the message quotes no contents."""
    found = _array(parameter, values)
    if found.dtype.kind not in _NUMBERS:
        raise ShapeError(parameter, "is not an array of real numbers; give one")
    numeric = found.astype(np.float64, copy=False)
    if not np.isfinite(numeric).all():
        raise NotFiniteError(parameter, "holds NaN or infinity; give finite numbers")
    return numeric


def ratios(targets: ArrayLike, propensities: ArrayLike) -> F64:
    """Target probability over propensity, where both are known for each round, shape (n,)."""
    chances = _probabilities("targets", numbers("targets", targets))
    if chances.ndim != 1:
        raise ShapeError("targets", f"has shape {chances.shape}; give one number a round, (n,)")
    logged = _probabilities("propensities", _column("propensities", propensities, chances.size))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(chances == 0.0, 0.0, chances / logged)


def _array(parameter: str, values: ArrayLike) -> NDArray[np.generic]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ShapeError(parameter, "has masked entries; fill or drop them")
    try:
        return np.asarray(values)
    except Exception:  # noqa: BLE001  # not all that converts itself does it well
        raise ShapeError(parameter, "cannot be read as an array; give numbers") from None


def _names(policies: Sequence[str]) -> tuple[str, ...]:
    if isinstance(policies, str) or not isinstance(policies, Sequence):
        raise ParameterError("policies", "must be a list of names")
    if not 1 <= len(policies) <= _MOST_POLICIES:
        raise ParameterError("policies", f"must be between 1 and {_MOST_POLICIES} names")
    if any(not isinstance(name, str) or not name for name in policies):
        raise ParameterError("policies", "must be names: texts that are not empty")
    if len(set(policies)) < len(policies):
        raise ParameterError("policies", "has a name twice; give each its own")
    return tuple(policies)


def _column(parameter: str, values: ArrayLike, rows: int) -> F64:
    """One number a round; a single one stands for all."""
    found = numbers(parameter, values)
    if found.ndim == 0:
        return np.full(rows, float(found))
    if found.shape != (rows,):
        raise ShapeError(parameter, f"has shape {found.shape}; give ({rows},), or one number")
    return found


def _probabilities(parameter: str, found: F64) -> F64:
    if found.size and (found.min() < 0.0 or found.max() > 1.0 + _TOLERANCE):
        raise OutOfBoundsError(parameter, "has one outside 0 ... 1; give probabilities")
    return found


def _target(values: ArrayLike, rows: int) -> F64:
    """A policy's probabilities: of logged actions, (n,), or of all actions, (n, K) or (1, K)."""
    found = numbers("targets", values)
    if found.ndim != 2:
        return _probabilities("targets", _column("targets", found, rows))
    if found.shape[0] not in {1, rows} or found.shape[1] == 0:
        raise ShapeError(
            "targets", f"has shape {found.shape}; give ({rows},), ({rows}, K) or (1, K)"
        )
    _probabilities("targets", found)
    if found.size and np.abs(found.sum(axis=1) - 1.0).max() > _SUM_TOLERANCE:
        raise OutOfBoundsError("targets", "has rows that do not sum up to 1; give probabilities")
    return found


def _of_logged(table: F64, chosen: I64 | None, rows: int) -> F64:
    """A policy's probabilities of the logged actions, shape (n,)."""
    if table.ndim == 1:
        return table
    if chosen is None:
        raise ParameterError("actions", "are missing; targets of all actions need the logged ones")
    if chosen.size and chosen.max() >= table.shape[1]:
        raise OutOfBoundsError("actions", f"has one beyond the last, {table.shape[1] - 1}")
    found: F64 = table[np.arange(rows) if len(table) == rows else 0, chosen]
    return found


def _places(actions: ArrayLike, rows: int) -> I64:
    """The logged actions as places from 0."""
    found = numbers("actions", actions)
    if found.shape != (rows,):
        raise ShapeError("actions", f"has shape {found.shape}; give ({rows},), one a round")
    if found.size and (found.min() < 0.0 or found.max() >= 2**53 or (found % 1.0).any()):
        raise OutOfBoundsError("actions", "has one that is no place; give whole numbers from 0")
    return found.astype(np.int64)


def _mask(values: ArrayLike, rows: int) -> F64:
    found = numbers("accepted", values)
    if found.shape != (rows,) or not np.isin(found, (0.0, 1.0)).all():
        raise ShapeError("accepted", f"must be yes or no for each round, shape ({rows},)")
    return found


def _subjects(values: ArrayLike, rows: int) -> Subjects:
    found = _array("subjects", values)
    if found.shape != (rows,):
        raise ShapeError("subjects", f"has shape {found.shape}; give ({rows},), one a round")
    if found.dtype.kind == "O":
        listed = found.tolist()
        for kind in (str, int):
            if all(isinstance(name, kind) and not isinstance(name, bool) for name in listed):
                break
        else:
            raise ShapeError("subjects", "must be whole numbers or texts, all of one kind")
    elif found.dtype.kind not in "iuU" and rows:
        raise ShapeError("subjects", "must be whole numbers or texts, all of one kind")
    names, places = np.unique(found, return_inverse=True)
    return Subjects(names.tolist(), places.astype(np.int64, copy=False))
