"""When to release: a function of the number of rows alone, so it tells nothing about them."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _schedule as schedule

__all__ = ["Schedule", "batches", "every_round", "geometric", "hybrid"]

MOST_RELEASES = 10**8  # more are not counted, nor is their noise worked out one by one


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The first release after ``start`` rows; then each a step after the one before.

    After t rows the step is the smallest of ``ratio`` * t, ``root`` * sqrt(t) and ``batch``,
    rounded down, and at least one row. Use the functions of this module for the usual ones.
    """

    start: int = 1
    ratio: float = math.inf
    root: float = math.inf
    batch: float = math.inf

    def __post_init__(self) -> None:
        """Check that it goes on, and that every number is in range."""
        fix = object.__setattr__
        start = checks.count("start", self.start)
        fix(self, "start", int(checks.within("start", start, 1, schedule.NEVER)))
        for name in ("ratio", "root", "batch"):
            value = getattr(self, name)
            fix(self, name, math.inf if value == math.inf else checks.positive(name, value))
        if self.ratio == self.root == self.batch == math.inf:
            raise ParameterError("ratio", "or root or batch must be given: a schedule goes on")

    @property
    def timing(self) -> schedule.Timing:
        """This schedule as arguments of the compiled kernels."""
        return schedule.Timing(
            start=self.start,
            ratio=float(self.ratio),
            root=float(self.root),
            batch=float(self.batch),
        )

    @property
    def every_round(self) -> bool:
        """Whether every row makes a release."""
        return self.start == 1 and self.batch == 1

    def after(self, rows: int) -> int:
        """How many rows the next release holds, after one with ``rows`` (0 before the first)."""
        return int(schedule.following(self.timing, rows))

    def count(self, horizon: int) -> int:
        """How many releases there are within a horizon."""
        if self.ratio == self.root == math.inf:
            step = max(1, int(self.batch))
            return 0 if horizon < self.start else 1 + (horizon - self.start) // step
        self._require_countable(horizon)
        return _counted(self.timing, horizon)

    def largest_batch(self, horizon: int) -> int:
        """No batch within a horizon has more rows than this: steps only grow."""
        last = min(max(horizon, self.start), schedule.NEVER)
        step = self.after(last) - last
        return min(horizon, max(self.start, step))

    def require_few(self, horizon: int) -> int:
        """`count`, if there are not too many to work out the noise of each."""
        releases = self.count(horizon)
        if releases > MOST_RELEASES:
            raise self._too_many(horizon)
        return releases

    def _require_countable(self, horizon: int) -> None:
        """Refuse what would take for ever: the integral of one over the step is the count."""
        if horizon >= schedule.NEVER:
            raise ParameterError(
                "horizon",
                f"is {checks.shown(horizon)}, more rows than can be counted; give at most "
                f"{self._largest_horizon():,}",
            )
        # From where every step is the batch on, they need not be counted one by one.
        growing = max(self.batch / self.ratio, (self.batch / self.root) ** 2)
        horizon = int(min(horizon, growing))
        if horizon <= self.start:
            return
        rows = np.geomspace(self.start, horizon, 1000)
        with np.errstate(over="ignore"):  # infinity is right then
            step = np.minimum(np.minimum(self.ratio * rows, self.root * np.sqrt(rows)), self.batch)
        pace = 1 / np.maximum(1.0, step)
        if float(np.trapezoid(pace, rows)) > 2 * MOST_RELEASES:
            raise self._too_many(horizon)

    def _too_many(self, horizon: int) -> ParameterError:
        return ParameterError(
            "horizon",
            f"is {checks.shown(horizon)}; in it the schedule makes more than {MOST_RELEASES:,} "
            f"releases; give at most {self._largest_horizon():,}, or a schedule with fewer of them",
        )

    def _largest_horizon(self) -> int:
        """The last row before there is one release too many, or before rows cannot be counted."""
        return _time_of(self.timing, MOST_RELEASES + 1) - 1

    def times(self, horizon: int) -> list[int]:
        """The numbers of rows at which there is a release, up to a horizon."""
        found = []
        rows = self.after(0)
        while rows <= horizon:
            found.append(rows)
            rows = self.after(rows)
        return found


@lru_cache(maxsize=64)
def _counted(timing: schedule.Timing, horizon: int) -> int:
    """One by one, which takes a while for long horizons, so it is remembered."""
    return int(schedule.count(timing, horizon))


@lru_cache(maxsize=64)
def _time_of(timing: schedule.Timing, number: int) -> int:
    """One by one as well."""
    return int(schedule.time_of(timing, number))


def every_round() -> Schedule:
    """A release after every row, as in the paper."""
    return Schedule(start=1, batch=1)


def batches(size: int) -> Schedule:
    """A release after every ``size`` rows."""
    return Schedule(start=checks.count("size", size), batch=size)


def geometric(*, start: int = 20, ratio: float = 0.05) -> Schedule:
    """A release whenever the rows have grown by a share ``ratio``: few, however long it runs.

    Args:
        start: how many rows the first release holds.
        ratio: the share of its rows by which each later release grows.

    Returns:
        The schedule.

    Raises:
        ParameterError: if a number is out of range.
    """
    return Schedule(start=start, ratio=ratio)


def hybrid(*, start: int = 20, ratio: float = 0.2, root: float = 1.0) -> Schedule:
    """Geometric at first, then every ``root`` * sqrt(t) rows.

    Args:
        start: how many rows the first release holds.
        ratio: the share of its rows by which each later release grows.
        root: the most rows between releases, in multiples of sqrt(t).

    Returns:
        The schedule.

    Raises:
        ParameterError: if a number is out of range.
    """
    return Schedule(start=start, ratio=ratio, root=root)
