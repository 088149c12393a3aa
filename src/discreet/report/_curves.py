"""Curves with their uncertainty, as plain data. Knows nothing of how they are drawn or made."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.simulation import Outcome

F64 = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A mean over time and its standard error.

    Attributes:
        label: the name that stands beside the curve.
        rounds: when it was recorded, or whatever else the panel has across, shape (C,).
        mean: the mean over seeds, shape (C,).
        stderr: its standard error, shape (C,); NaN for a single seed.
    """

    label: str
    rounds: F64
    mean: F64
    stderr: F64

    @classmethod
    def over_seeds(cls, label: str, rounds: F64, values: F64) -> "Curve":
        """From one row of values per seed, shape (S, C)."""
        count = len(values)
        unknown = np.full(values.shape[1], np.nan)
        spread = unknown if count == 1 else values.std(axis=0, ddof=1) / np.sqrt(count)
        return cls(label=label, rounds=rounds, mean=values.mean(axis=0), stderr=spread)

    @classmethod
    def of(cls, outcome: Outcome) -> "Curve":
        """The pseudo-regret of an outcome, under its variant's name."""
        return cls(
            label=outcome.simulation.mechanism.variant,
            rounds=outcome.rounds.astype(np.float64),
            mean=outcome.mean(),
            stderr=outcome.stderr(),
        )

    def band(self) -> tuple[F64, F64]:
        """One standard error below and above the mean; the mean itself for a single seed."""
        spread = np.nan_to_num(self.stderr, nan=0.0)
        return self.mean - spread, self.mean + spread

    def drawable(self, *, first_round: float = 1.0) -> "Curve":
        """The part that a logarithmic axis can show: positive means, from a round on.

        It starts at the last checkpoint up to that round, so that the line reaches the axis.
        """
        start = max(0, int(np.searchsorted(self.rounds, first_round, side="right")) - 1)
        keep = (self.mean > 0.0) & (np.arange(len(self.rounds)) >= start)
        return replace(
            self, rounds=self.rounds[keep], mean=self.mean[keep], stderr=self.stderr[keep]
        )


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A place on the horizontal axis, drawn as a dotted vertical line with a name."""

    label: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Guide:
    """A line that was not measured, such as a fit, drawn thin.

    Attributes:
        across: shape (C,).
        up: shape (C,).
        like: the place of the curve whose colour it takes.
        dotted: or dashed.
    """

    across: F64
    up: F64
    like: int
    dotted: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves that share one pair of axes.

    Attributes:
        title: what sets this panel apart.
        curves: what was measured.
        across: what the horizontal axis shows.
        up: what the vertical axis shows.
        ordered: whether the curves' order means something, and shows in their colours.
        joined: whether a curve's points are joined by a line, or stand for themselves.
        marks: places on the horizontal axis.
        guides: lines that were not measured.
    """

    title: str
    curves: tuple[Curve, ...]
    across: str = "round"
    up: str = "pseudo-regret"
    ordered: bool = False
    joined: bool = True
    marks: tuple[Mark, ...] = ()
    guides: tuple[Guide, ...] = ()

    def since(self, first_round: float) -> "Panel":
        """What a logarithmic axis can show, from a round on."""
        shown = (curve.drawable(first_round=first_round) for curve in self.curves)
        return replace(self, curves=tuple(shown))
