"""The one type that leaves the trusted side."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet import _tables
from discreet.mechanism import Mechanism
from discreet.mechanism._read_only import read_only
from discreet.privacy import Guarantee
from discreet.release.confidence import Region, region
from discreet.release.posterior import Posterior, posterior

F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """A noisy view of all rows so far: what may be shown, cached, logged or shipped.

    Attributes:
        number: how many releases there have been, this one included; 0 before the first.
        rows: how many rows are in it.
        gram: the noisy Gram matrix, the weighted sum of actions' outer products, with the shift
            included, shape (d, d). V_t in the paper, where all weights are one.
        moment: the noisy sum of weight times action times reward, shape (d,). u~_t in the paper.
        spread: how much larger its noise is than one draw; 0 without noise.
        weight: the total weight of its rows: their number, unless older ones count less.
        mechanism: the noise in it, its bounds and the setting, all public.
    """

    number: int
    rows: int
    gram: F64
    moment: F64
    spread: float
    weight: float
    mechanism: Mechanism

    def __post_init__(self) -> None:
        """Make the arrays read-only: a release is a fact."""
        for name in ("gram", "moment"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def guarantee(self) -> Guarantee:
        """What holds for this release together with all others of the same learner."""
        return self.mechanism.guarantee

    @cached_property
    def posterior(self) -> Posterior:
        """What the release says about the parameter, given the known law of its noise."""
        return posterior(self)

    @cached_property
    def cautious(self) -> Posterior:
        """The same with the prior as it is stated, for intervals.

        The posterior that is played takes the parameter to be small if the best-known directions
        say so; others may be larger.
        """
        return posterior(self, halvings=0)

    @cached_property
    def confidence(self) -> Region:
        """The confidence set that is proven to hold the parameter."""
        return region(self)

    def __repr__(self) -> str:
        return (
            f"Release(number={self.number}, rows={self.rows}, dim={self.moment.size}, "
            f"variant={self.mechanism.variant!r})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("rows", f"{self.rows:,}"),
            ("features", str(self.moment.size)),
            ("total weight of rows", f"{self.weight:,.6g}"),
            ("noise, in multiples of one draw", f"{self.spread:.6g}"),
            ("variant", self.mechanism.variant),
        ]
        return _tables.as_html(
            (), rows, title=f"Release {self.number:,}", notes=[str(self.guarantee)]
        )
