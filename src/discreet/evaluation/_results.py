"""What an evaluation says, as plain data, and for whose eyes it is. No rows come here.

An `ExactValue` is computed from people's rewards as they are: it is for the curator alone. A
`PrivateValue` is computed from sums that noise has been added to, and from nothing else, and
carries the guarantee of that noise. A `Comparison` holds values of one kind only.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from discreet import _tables
from discreet.errors import ParameterError
from discreet.privacy import Guarantee

_FOR_THE_CURATOR = "For the curator only: computed from the rewards as they are, not private."
_HEAD = ("policy", "estimator", "value", "interval", "policy's value", "effective rows", "note")


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How well a log covers a policy. For the curator only.

    Attributes:
        rows: how many rounds there were.
        effective_rows: (sum of weights)^2 over the sum of their squares: as many rounds of the
            policy's own would tell about as much.
        mean_weight: about 1 if the log covers the policy, propensities are right and nothing is
            clipped; less if some of what the policy does was never logged, or is clipped.
        largest_weight: before clipping; infinite if a propensity is 0.
        clipped_share: the share of rounds whose weight was clipped.
        smallest_propensity: among rounds where the policy might have acted so; None if none.
        zero_propensities: rounds with propensity 0 where the policy might have acted so.
        warning: what is wrong with the overlap, or None.
    """

    rows: int
    effective_rows: float
    mean_weight: float
    largest_weight: float
    clipped_share: float
    smallest_propensity: float | None
    zero_propensities: int
    warning: str | None

    def to_json(self) -> dict[str, Any]:
        """All fields; null for an infinite weight."""
        return _finite(asdict(self))


class _Value:
    """What both kinds of value have in common: how they are shown."""

    policy: str
    estimator: str
    estimate: float | None
    low: float | None
    high: float | None
    level: float
    bounds: tuple[float, float] | None
    method: str

    def _sentence(self) -> str:
        if self.estimate is None:
            return f"{self.policy}, {self.estimator}: no value, nothing in the log speaks for it."
        said = f"{self.policy}, {self.estimator}: {self.estimate:.6g}"
        if self.low is not None and self.high is not None:
            said += f", {100 * self.level:g}% interval {self.low:.6g} to {self.high:.6g}"
        return f"{said} ({self.method})."

    def _cells(self) -> list[str]:
        """Policy, estimator, value and both intervals, for a table."""
        value = "none" if self.estimate is None else f"{self.estimate:.5g}"
        ends = None if self.low is None or self.high is None else (self.low, self.high)
        return [self.policy, self.estimator, value, _ends(ends), _ends(self.bounds)]


@dataclass(frozen=True, kw_only=True, repr=False)
class ExactValue(_Value):
    """A policy's value by one estimator, from the rewards as they are. For the curator only.

    Attributes:
        policy: the policy's name.
        estimator: 'replay', 'ips', 'snips' or 'dr', or two policies' difference by one of them.
        estimate: the value; None if the log says nothing, because all weights are 0.
        std_error: its standard error; None if there are too few rows to say.
        low: the lower end of its interval; None as above.
        high: the upper end; None as above.
        level: the probability with which the interval is to hold what is estimated.
        method: why it should: the interval's kind, in words.
        bounds: an interval for the policy's own value, whatever clipping hides and whatever was
            never logged, at the same level and for any number of rows; with estimator 'ips' and
            clipped weights only.
        overlap: how well the log covers the policy; None for a difference.
        chosen: the policy that was the best of several, where this is the best of several.
    """

    audience: ClassVar[str] = "curator"

    policy: str
    estimator: str
    estimate: float | None
    std_error: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    bounds: tuple[float, float] | None = None
    overlap: Overlap | None = None
    chosen: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields, and for whose eyes they are."""
        found = {**asdict(self), "audience": self.audience}
        found["overlap"] = None if self.overlap is None else self.overlap.to_json()
        return found

    @property
    def note(self) -> str:
        """What a reader should know besides: the chosen policy, a warning."""
        parts = [] if self.chosen is None else [f"the best of several: {self.chosen}"]
        if self.overlap is not None and self.overlap.warning is not None:
            parts.append(self.overlap.warning)
        return "; ".join(parts)

    def __str__(self) -> str:
        warned = (
            f" Warning: {self.overlap.warning}." if self.overlap and self.overlap.warning else ""
        )
        return f"{self._sentence()}{warned} {_FOR_THE_CURATOR}"

    def __repr__(self) -> str:
        return f"<ExactValue, for the curator only: {self._sentence()}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class PrivateValue(_Value):
    """A policy's value by one estimator, from noisy sums and nothing else.

    Attributes:
        policy: the policy's name.
        estimator: 'ips', centred on the middle of the bounds, or 'snips'.
        estimate: the value, within the stated bounds of rewards.
        low: the lower end of its interval, which accounts for privacy noise.
        high: the upper end.
        level: the probability with which the interval is to hold what is estimated.
        method: why it should: the interval's kind, in words.
        bounds: an interval for the policy's own value, whatever clipping hides and whatever was
            never logged, at the same level.
        noise_std: the standard deviation of the privacy noise in the estimate; for 'snips' to
            first order.
        mean_weight: the noisy mean of clipped weights. Well below 1, clipping or missing overlap
            hides a part of the policy.
        rows: how many rounds there were, which is public.
        clip: the largest weight that counts.
        released: the noisy sums, in whole steps of the grid: of weight times reward, of weights,
            of squared weight times reward, of squared weights. All else here follows from them.
        steps: how many steps the largest entry of one row has.
        guarantee: what is promised about all that was released together, and why.
    """

    policy: str
    estimator: str
    estimate: float
    low: float
    high: float
    level: float
    method: str
    bounds: tuple[float, float]
    noise_std: float
    mean_weight: float
    rows: int
    clip: float
    released: tuple[int, int, int, int]
    steps: int
    guarantee: Guarantee

    @property
    def audience(self) -> str:
        """For whose eyes it is: 'everybody', or 'curator' if nothing is promised."""
        return "everybody" if self.guarantee.private else "curator"

    @property
    def note(self) -> str:
        """What a reader should know besides."""
        return f"privacy noise {self.noise_std:.3g}"

    def to_json(self) -> dict[str, Any]:
        """All fields, and for whose eyes they are."""
        return {**asdict(self), "guarantee": self.guarantee.to_json(), "audience": self.audience}

    def __str__(self) -> str:
        return f"{self._sentence()} {self.guarantee}"

    def __repr__(self) -> str:
        return f"<PrivateValue: {self._sentence()}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """Policies beside each other on one log: a table of values, all exact or all private.

    ``comparison["uniform", "snips"]`` is one value, iterating gives them all. It prints as a table,
    and as an HTML table in notebooks.

    Attributes:
        values: the values, policy by policy.
    """

    values: tuple[ExactValue, ...] | tuple[PrivateValue, ...]

    def __post_init__(self) -> None:
        """Check that all values are for the same eyes."""
        if not self.values:
            raise ParameterError("values", "are missing; give at least one")
        if not isinstance(self.values[0], ExactValue | PrivateValue) or any(
            type(value) is not type(self.values[0]) for value in self.values
        ):
            raise ParameterError(
                "values", "must be all ExactValue or all PrivateValue: they are for other eyes"
            )
        if len({(value.policy, value.estimator) for value in self.values}) < len(self.values):
            raise ParameterError("values", "has a policy's value twice; give each its own name")
        if len({self._guarantee_of(value) for value in self.values}) > 1:
            raise ParameterError("values", "were released apart: show each with its guarantee")

    @staticmethod
    def _guarantee_of(value: ExactValue | PrivateValue) -> Guarantee | None:
        return value.guarantee if isinstance(value, PrivateValue) else None

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about the whole table."""
        found = self._guarantee_of(self.values[0])
        return Guarantee.nothing("these values are exact") if found is None else found

    @property
    def audience(self) -> str:
        """For whose eyes it is: 'everybody' or 'curator'."""
        return self.values[0].audience

    def __getitem__(self, key: tuple[str, str]) -> ExactValue | PrivateValue:
        for value in self.values:
            if (value.policy, value.estimator) == key:
                return value
        raise ParameterError("key", "is no policy and estimator of this table; see its rows")

    def __iter__(self) -> Iterator[ExactValue | PrivateValue]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def to_json(self) -> dict[str, Any]:
        """All values, and for whose eyes they are."""
        return {
            "audience": self.audience,
            "guarantee": self.guarantee.to_json(),
            "values": [value.to_json() for value in self.values],
        }

    def _rows(self) -> list[list[str]]:
        """The table, its head first, without columns in which nothing stands."""
        rows = [list(_HEAD)]
        for value in self.values:
            overlap = value.overlap if isinstance(value, ExactValue) else None
            rows_said = "" if overlap is None else f"{overlap.effective_rows:,.0f}"
            rows.append([*value._cells(), rows_said, value.note])  # noqa: SLF001  # one module
        kept = [at for at in range(len(_HEAD)) if any(row[at] for row in rows[1:])]
        return [[row[at] for at in kept] for row in rows]

    @property
    def _foot(self) -> str:
        if isinstance(self.values[0], PrivateValue):
            return str(self.guarantee)
        return _FOR_THE_CURATOR

    def __str__(self) -> str:
        head, *rows = self._rows()
        level = 100 * self.values[0].level
        return "\n".join(
            [_tables.as_text(head, rows), f"Intervals are at {level:g}%. {self._foot}"]
        )

    def __repr__(self) -> str:
        kind = "for the curator only" if self.audience == "curator" else "private"
        return f"<Comparison of {len(self.values)} values, {kind}>"

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        level = 100 * self.values[0].level
        return _tables.as_html(head, rows, notes=[f"Intervals are at {level:g}%. {self._foot}"])


def _ends(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.5g} to {interval[1]:.5g}"


def _finite(found: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in found.items()
    }
