"""Values as the curator sees them, over a stream of logged rounds. Not private.

Every estimator is a smooth function of means of a few columns (`_tally`). Standard errors come from
the columns' covariance by the delta method, over rows or, where subjects are given, over people.
Formulas: docs/evaluation.md.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.errors import OutOfBoundsError, ParameterError
from discreet.evaluation import _intervals as intervals
from discreet.evaluation._log import Log, Targets, ratios
from discreet.evaluation._results import Comparison, ExactValue, Overlap
from discreet.evaluation._tally import Shape, Tally

F64 = NDArray[np.float64]

_FEW = 100  # effective rows: below this the normal approximation is doubtful
_TINY = 1e-4  # a propensity
_SURE = 5.0  # standard errors, for a mean weight that is not 1
_OFF = 0.02  # and this much of it


class _Estimate(NamedTuple):
    """A value, its gradient in the columns' means, and how many units its variance rests on."""

    value: float
    gradient: F64
    units: int


class Values:
    """Values of policies from logged rounds, by several estimators. For the curator only.

    A stream is added chunk by chunk and memory does not grow with it: (2P)^2 numbers for P
    policies, or (5P)^2 with a reward model and replay. Only with ``subjects`` does it also
    grow with the number of people, by 2P + 1 to 5P + 1 numbers each.

    Args:
        policies: names of the policies that are evaluated side by side.
        low: no reward is below this.
        high: no reward is above this.
        clip: no weight counts more than this. Clipping biases the estimators; it makes them
            steadier, and makes `ExactValue.bounds` possible. None leaves weights as they are.
        on_violation: what to do with a reward outside the bounds, 'error' or 'clip'.
    """

    def __init__(
        self,
        policies: Sequence[str] = ("policy",),
        *,
        low: float,
        high: float,
        clip: float | None = None,
        on_violation: str = "error",
    ) -> None:
        """Start without a row."""
        log = Log.stated(policies, low=low, high=high, clip=clip, on_violation=on_violation)
        self._log, self._tally = log, Tally(log)

    @property
    def rows(self) -> int:
        """How many rounds were added."""
        return self._tally.moments.rows

    def __repr__(self) -> str:
        return f"<Values of {len(self._log.policies)} policies, {self.rows:,} rows; secret>"

    def add(
        self,
        rewards: ArrayLike,
        *,
        propensities: ArrayLike,
        targets: Targets,
        actions: ArrayLike | None = None,
        predictions: ArrayLike | None = None,
        accepted: Targets | None = None,
        subjects: ArrayLike | None = None,
    ) -> None:
        """Add a chunk of logged rounds.

        The optional arguments are given with every chunk, or with none.

        Args:
            rewards: shape (n,).
            propensities: how probable each logged action was, shape (n,) or one number for all.
            targets: how probable the policy would have made the logged action, shape (n,) or one
                number; or the probabilities of all actions, shape (n, K), or (1, K) for the same
                in all rounds. A dictionary of these by policy, if there are several.
            actions: the logged actions, as places 0 ... K - 1, shape (n,); needed with
                probabilities of all actions.
            predictions: a model's mean rewards of all actions, shape (n, K), for 'dr'; any finite
                numbers. The model must not have seen these very rounds.
            accepted: which rounds a replay accepted (see `accept`), for 'replay'; a dictionary by
                policy, if there are several.
            subjects: whose rounds they are, whole numbers or texts, shape (n,). Standard errors
                are then by person.

        Raises:
            ShapeError: An array has the wrong shape or kind.
            NotFiniteError: A number is NaN or infinite.
            OutOfBoundsError: A reward or a probability is out of range, or a weight without bound.
            ParameterError: Arguments do not fit each other or those of earlier chunks.
        """
        self._tally.add(
            self._log.read(
                rewards,
                propensities=propensities,
                targets=targets,
                actions=actions,
                predictions=predictions,
                accepted=accepted,
                subjects=subjects,
            )
        )

    def merge(self, other: "Values") -> None:
        """Add all rounds of another one, of the same policies, bounds and clip.

        Args:
            other: stays as it is.

        Raises:
            ParameterError: It has other settings, or other optional arguments were given.
        """
        if not isinstance(other, Values) or other is self:
            raise ParameterError("other", "must be another Values: its rounds are added to these")
        more = other._tally  # noqa: SLF001  # one of its own kind
        if more.log != self._log:
            raise ParameterError(
                "other", "has other policies, bounds or clip; merge like with like"
            )
        self._tally.merge(more)

    def result(
        self, *, level: float = 0.95, best_of: Mapping[str, Sequence[str]] | None = None
    ) -> Comparison:
        """All policies by all estimators for which there was what they need.

        Args:
            level: of the intervals.
            best_of: for each new name, policies of which the best by each estimator is to be
                shown in their stead: ``{"best fixed action": ["always 0", "always 1"]}``. The
                best is picked on this log, so its interval is widened to hold for all of them at
                once; its estimate is optimistic all the same.

        Returns:
            The table, for the curator only.

        Raises:
            ParameterError: There is no row yet, or the settings do not fit.
        """
        level = checks.probability("level", level)
        groups = self._groups(best_of)
        shape = self._used()
        kinds = ["replay"] * shape.accepted + ["ips", "snips"] + ["dr"] * shape.predictions
        covariance, hidden = (
            self._tally.covariance(),
            {one for many in groups.values() for one in many},
        )
        found = [
            self._value(policy, kind, covariance, level)
            for policy in self._log.policies
            if policy not in hidden
            for kind in kinds
        ]
        for name, members in groups.items():
            strict = 1 - (1 - level) / len(members)
            for kind in kinds:
                each = [self._value(policy, kind, covariance, strict) for policy in members]
                found.append(_best(name, each, level))
        return Comparison(values=tuple(found))

    def difference(
        self, policy: str, other: str, *, estimator: str = "snips", level: float = 0.95
    ) -> ExactValue:
        """How much better one policy is than another on the same rounds.

        Its interval knows that both are estimated from the same rounds, and so is often far
        narrower than the two values' own.

        Args:
            policy: the policy.
            other: what it is compared with.
            estimator: 'replay', 'ips', 'snips' or 'dr'.
            level: of the interval.

        Returns:
            The difference, for the curator only.

        Raises:
            ParameterError: There is no such policy, or no such estimator for this log.
        """
        level = checks.probability("level", level)
        for name, given in (("policy", policy), ("other", other)):
            if not _among(given, self._log.policies):
                raise ParameterError(name, "is not among the policies")
        shape = self._used()
        kinds = ["ips", "snips"] + ["dr"] * shape.predictions + ["replay"] * shape.accepted
        checks.one_of("estimator", estimator, kinds)
        first, second = (self._estimate(name, estimator) for name in (policy, other))
        joined = None
        if first is not None and second is not None:
            joined = _Estimate(
                first.value - second.value,
                first.gradient - second.gradient,
                min(first.units, second.units),
            )
        return self._shown(
            f"{policy} - {other}", estimator, joined, self._tally.covariance(), level
        )

    def _used(self) -> Shape:
        if self._tally.shape is None or not self.rows:
            raise ParameterError("rows", "are missing; add logged rounds first")
        return self._tally.shape

    def _estimate(self, policy: str, estimator: str) -> _Estimate | None:
        """An estimator as a function of the columns' means; None where it is 0/0."""
        means, log, shape = self._tally.moments.means, self._log, self._used()
        units = self._tally.units
        gradient = np.zeros(means.size)
        if estimator in {"snips", "replay"}:
            first = 0 if estimator == "snips" else 2 + shape.predictions
            top, bottom = self._tally.column(policy, first), self._tally.column(policy, first + 1)
            if means[bottom] <= 0.0:
                return None
            ratio = float(means[top] / means[bottom])
            gradient[[top, bottom]] = 1.0 / means[bottom], -ratio / means[bottom]
            if estimator == "replay" and self._tally.people is None:
                # As many units as were accepted: then this is the mean of a sample, as usual.
                units = round(means[bottom] * self.rows)
                gradient *= math.sqrt(units / max(units - 1, 1) * ((self.rows - 1) / self.rows))
            return _Estimate(log.low + log.range * ratio, log.range * gradient, units)
        if estimator == "dr":
            at = self._tally.column(policy, 2)
            gradient[at] = log.range
            return _Estimate(log.low + log.range * float(means[at]), gradient, units)
        top, bottom = self._tally.column(policy, 0), self._tally.column(policy, 1)
        gradient[[top, bottom]] = log.range, log.low
        return _Estimate(float(gradient @ means), gradient, units)

    def _value(
        self, policy: str, estimator: str, covariance: F64 | None, level: float
    ) -> ExactValue:
        return self._shown(
            policy,
            estimator,
            self._estimate(policy, estimator),
            covariance,
            level,
            bounds=self._bounds(policy, level) if estimator == "ips" else None,
            overlap=self._overlap(policy),
        )

    def _shown(
        self,
        policy: str,
        estimator: str,
        found: _Estimate | None,
        covariance: F64 | None,
        level: float,
        *,
        bounds: tuple[float, float] | None = None,
        overlap: Overlap | None = None,
    ) -> ExactValue:
        error = reach = None
        if found is not None and covariance is not None and found.units > 1:
            error = math.sqrt(max(0.0, float(found.gradient @ covariance @ found.gradient)))
            reach = error * intervals.student_quantile(level, found.units - 1)
        method = "central limit theorem" if estimator in {"ips", "dr"} else "delta method"
        if self._tally.people is not None:
            method += ", by person"
        return ExactValue(
            policy=policy,
            estimator=estimator,
            estimate=None if found is None else found.value,
            std_error=error,
            low=None if found is None or reach is None else found.value - reach,
            high=None if found is None or reach is None else found.value + reach,
            level=level,
            method=f"asymptotic: {method}",
            bounds=bounds,
            overlap=overlap,
        )

    def _bounds(self, policy: str, level: float) -> tuple[float, float] | None:
        """Bounds on the policy's value for any number of independent rows, by clipped weights.

        E min(w, c) s <= value <= 1 - E min(w, c) (1 - s) in scaled rewards: what is clipped, or
        never logged, has a reward from 0 to 1. Both means are bounded by empirical Bernstein.
        """
        clip, log = self._log.clip, self._log
        if clip is None or self._tally.people is not None or self.rows < 2:
            return None
        places = [self._tally.column(policy, 0), self._tally.column(policy, 1)]
        means = self._tally.moments.means[places]
        spread = self._tally.moments.products[np.ix_(places, places)] / (self.rows - 1)
        ends = []
        for mix in (np.array([1.0, 0.0]), np.array([-1.0, 1.0])):
            least = intervals.bernstein_lower(
                mean=float(mix @ means),
                variance=max(0.0, float(mix @ spread @ mix)),
                width=clip,
                rows=self.rows,
                risk=(1 - level) / 2,
            )
            ends.append(min(max(least, 0.0), 1.0))
        low, high = ends[0], 1.0 - ends[1]
        if low > high:  # possible only if propensities or bounds are wrong, or by bad luck
            low = high = (low + high) / 2
        return log.low + log.range * low, log.low + log.range * high

    def _overlap(self, policy: str) -> Overlap:
        at, place = self._tally.column(policy, 1), self._log.policies.index(policy)
        mean, square = (
            float(self._tally.moments.means[at]),
            float(self._tally.moments.products[at, at]),
        )
        total = square + self.rows * mean * mean
        smallest = float(self._tally.smallest[place])
        found = Overlap(
            rows=self.rows,
            effective_rows=(self.rows * mean) ** 2 / total if total > 0.0 else 0.0,
            mean_weight=mean,
            largest_weight=float(self._tally.largest[place]),
            clipped_share=int(self._tally.clipped[place]) / self.rows,
            smallest_propensity=smallest if math.isfinite(smallest) else None,
            zero_propensities=int(self._tally.zeros[place]),
            warning=None,
        )
        error = math.sqrt(square / max(self.rows - 1, 1) / self.rows)
        return Overlap(**{**vars(found), "warning": _warning(found, error, self._log.clip)})

    def _groups(self, best_of: Mapping[str, Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
        """Names and the policies of which the best is shown under them."""
        if best_of is None:
            return {}
        groups = {}
        for name, members in best_of.items() if isinstance(best_of, Mapping) else [("", ())]:
            listed = isinstance(members, Sequence) and not isinstance(members, str) and members
            if not isinstance(name, str) or name in ("", *self._log.policies) or not listed:
                raise ParameterError(
                    "best_of", "must have new names, and for each a list of policies"
                )
            if any(not _among(one, self._log.policies) for one in members):
                raise ParameterError("best_of", "names a policy that is not evaluated here")
            groups[name] = tuple(members)
        return groups


def accept(
    targets: ArrayLike,
    propensities: ArrayLike,
    *,
    ceiling: float,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which logged rounds a replay by rejection accepts.

    A round is accepted with probability target / (propensity * ceiling). Accepted rounds are then
    as if the policy had acted itself. Where the log is uniform over K actions, and the policy picks
    one, give ceiling=K: a round is accepted if the policy picks the logged action.

    Args:
        targets: how probable the policy would have made each logged action, shape (n,).
        propensities: how probable it was, shape (n,) or one number for all.
        ceiling: no target is more than this many times its propensity. It must not depend on the
            log's contents.
        generator: draws which rounds are accepted.

    Returns:
        Yes or no for each round, shape (n,).

    Raises:
        OutOfBoundsError: A target is more than ``ceiling`` times its propensity.
        ParameterError: ``ceiling`` is out of range, or ``generator`` is no generator.
        DiscreetError: Something else is wrong with what was given.
    """
    ceiling = checks.magnitude("ceiling", ceiling)
    if not isinstance(generator, np.random.Generator):
        raise ParameterError(
            "generator", "must be a numpy Generator: numpy.random.default_rng(...)"
        )
    chances = ratios(targets, propensities) / ceiling
    if chances.size and chances.max() > 1.0 + 1e-9:
        raise OutOfBoundsError(
            "ceiling",
            "is too low: a target is more than so many times its propensity, and accepting such "
            "rounds too rarely would bias the value; give a larger one",
        )
    return generator.random(chances.size) < chances


def _among(name: object, policies: tuple[str, ...]) -> bool:
    return isinstance(name, str) and name in policies


def _best(name: str, each: Sequence[ExactValue], level: float) -> ExactValue:
    """The best of several values whose intervals hold for all of them at once."""
    best = max(each, key=lambda value: -math.inf if value.estimate is None else value.estimate)
    changed = {"policy": name, "chosen": best.policy, "level": level}
    method = f"{best.method}; for all {len(each)} at once"
    return ExactValue(**{**vars(best), **changed, "method": method})


def _warning(found: Overlap, error: float, clip: float | None) -> str | None:
    """What is wrong with the overlap, in a phrase; None if nothing seems to be."""
    parts = []
    if found.zero_propensities:
        parts.append(f"{found.zero_propensities:,} rounds have propensity 0")
    if clip is None and found.smallest_propensity is not None and found.smallest_propensity < _TINY:
        parts.append(f"propensities as small as {found.smallest_propensity:.2g}: clip the weights")
    if found.effective_rows < min(_FEW, found.rows / 2):
        parts.append(f"only {found.effective_rows:.3g} effective rows")
    off = found.mean_weight - 1.0
    if abs(off) > _OFF and abs(off) > _SURE * error:
        why = "wrong propensities" if off > 0 else "wrong propensities or actions never logged"
        if off <= 0 and clip is not None:
            why = f"clipping, {why}"
        parts.append(f"weights average {found.mean_weight:.3g} instead of 1: {why}")
    return "; ".join(parts) if parts else None
