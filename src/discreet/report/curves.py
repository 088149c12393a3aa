"""Curves with their uncertainty, as plain data. Knows nothing of how they are drawn or made."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.simulate import Outcome

F64 = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A mean over time and its standard error.

    Attributes:
        label: the name that stands beside the curve.
        rounds: when it was recorded, shape (C,).
        mean: the mean over seeds, shape (C,).
        stderr: its standard error, shape (C,); NaN for a single seed.
    """

    label: str
    rounds: F64
    mean: F64
    stderr: F64

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
        return Curve(
            label=self.label,
            rounds=self.rounds[keep],
            mean=self.mean[keep],
            stderr=self.stderr[keep],
        )


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves that share one pair of axes."""

    title: str
    curves: tuple[Curve, ...]

    def since(self, first_round: float) -> "Panel":
        """What a logarithmic axis can show, from a round on."""
        shown = (curve.drawable(first_round=first_round) for curve in self.curves)
        return Panel(title=self.title, curves=tuple(shown))
