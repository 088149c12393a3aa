"""Numbers as readers see them, with their uncertainty. Knows nothing of bandits."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def grouped(value: float, *, digits: int = 3) -> str:
    """Rounded to so many significant digits, thousands set apart: 91545.5 becomes 91,500."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def short(value: float) -> str:
    """Three significant digits and a letter for the size: 0.1, 10, 91.5k, 1M, 2G."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{float(f'{value:.3g}') / size:g}{letter}"
    return f"{value:.3g}"


@dataclass(frozen=True, kw_only=True)
class Wording:
    """How a table spells its numbers.

    Attributes:
        sign: between a mean and its standard error.
        large: how a number without an uncertainty is written.
    """

    sign: str
    large: Callable[[float], str]


ON_A_PAGE = Wording(sign="±", large=grouped)
# In characters that any terminal has, and narrow enough for eighty of them.
IN_A_TERMINAL = Wording(sign="+-", large=short)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A mean over seeds and its standard error, which a single seed does not have."""

    mean: float
    stderr: float | None

    @classmethod
    def over_seeds(cls, values: F64) -> "Measured":
        """From one value per seed, shape (S,)."""
        return cls(mean=float(values.mean()), stderr=_stderr(values))

    @classmethod
    def ratio(cls, values: F64, baseline: F64) -> "Measured | None":
        """The ratio of two means over the same seeds; None if the baseline's mean is 0.

        The standard error is the delta method's for pairs, so that what the two have in common
        (the same worlds) is not counted as uncertainty.
        """
        base = float(baseline.mean())
        if base == 0.0:
            return None
        ratio = float(values.mean()) / base
        return cls(mean=ratio, stderr=_stderr((values - ratio * baseline) / base))

    def text(self, *, sign: str = "±") -> str:
        """Both rounded to the second significant digit of the standard error."""
        if self.stderr is None:
            return f"{grouped(self.mean)} (one seed)"
        if self.stderr == 0.0:
            return grouped(self.mean)
        decimals = 1 - math.floor(math.log10(self.stderr))
        mean, stderr = (
            f"{round(number, decimals):,.{max(decimals, 0)}f}"
            for number in (self.mean, self.stderr)
        )
        return f"{mean} {sign} {stderr}"

    def to_json(self) -> dict[str, float | None]:
        """Both numbers, in full."""
        return asdict(self)


def _stderr(values: F64) -> float | None:
    if len(values) == 1:
        return None
    return float(values.std(ddof=1) / math.sqrt(len(values)))
