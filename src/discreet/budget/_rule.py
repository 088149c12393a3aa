"""When items fit into a budget: a bound for each of four sums, fixed when the budget is made.

The four are the squares of mu and the traces of Gaussian noise, and the epsilons and deltas of all
else, for which a share is set apart. As the bounds do not depend on what is registered, items may
be chosen in view of what earlier ones showed. Proof: docs/accounting.md.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet import _checks as checks
from discreet import accounting
from discreet.accounting import Neighbours
from discreet.budget import _rounding as rounding
from discreet.budget._items import Item
from discreet.errors import ParameterError
from discreet.privacy import Privacy

_TRACES_SHARE = 1e-6  # of delta, for what discrete noise costs beyond Gaussian noise
_BEYOND_COUNTING = Fraction(10) ** 400, Fraction(1)

Items = Sequence[Item]


class Rule:
    """The bounds of one budget.

    Args:
        total: for everything together.
        apart: the epsilon and the delta set apart for mechanisms without a mu.
    """

    def __init__(self, total: Privacy, apart: tuple[float, float]) -> None:
        """Fix the bounds."""
        self.total = total
        self.apart = (
            checks.at_least("apart_epsilon", apart[0], 0.0),
            checks.at_least("apart_delta", apart[1], 0.0),
        )
        epsilon = rounding.less(total.epsilon, self.apart[0])
        delta = rounding.less(total.delta, self.apart[1])
        if epsilon < rounding.LEAST_EPSILON or delta < rounding.LEAST_DELTA:
            raise ParameterError(
                "apart_epsilon" if epsilon < rounding.LEAST_EPSILON else "apart_delta",
                "leaves nothing for Gaussian noise; set less apart",
            )
        self.gaussian = Privacy(epsilon=epsilon, delta=delta)
        # Underflows to 0 for absurd epsilons: then there is no room for discrete noise.
        self.most_trace = _TRACES_SHARE * delta * math.exp(-epsilon)
        self.most_mu = accounting.traced_mu(self.gaussian, trace=self.most_trace)

    def is_gaussian(self, item: Item) -> bool:
        """Whether it counts by its mu: it has one, and its noise is fine enough."""
        return item.mu is not None and item.trace <= self.most_trace

    def is_weaker(self, item: Item) -> bool:
        """Whether one change of the budget's kind is two of the kind that it promises about.

        Its own promise is about leaving something out, and the budget's about replacing; or its own
        is about leaving whole rows out, and the budget's about rewards.
        """
        if item.neighbours != Neighbours.ADD_REMOVE:
            return False
        return self.total.neighbours == Neighbours.REPLACEMENT or not self.alike(item)

    def alike(self, item: Item) -> bool:
        """Whether the item protects what the budget does, and nothing else."""
        return item.protects == self.total.protects

    def covers(self, item: Item) -> bool:
        """Whether the item protects all that the budget does: rewards are part of rows."""
        return self.alike(item) or item.protects == "rows"

    def mu_of(self, item: Item) -> float:
        """The mu that counts under the budget's neighbours: a replacement is two changes."""
        return (item.mu or 0.0) * (2 if self.is_weaker(item) else 1)

    def pair_of(self, item: Item) -> tuple[float, float]:
        """The epsilon and the delta that count under the budget's neighbours."""
        if self.is_weaker(item):
            return accounting.group_of_two(epsilon=item.epsilon, delta=item.delta)
        return item.epsilon, item.delta

    def fits(self, items: Items) -> bool:
        """Whether items fit into the budget: all four sums are within their bounds."""
        mu, trace = self._gaussian_sums(items)
        epsilon, delta = self._other_sums(items)
        gaussian = mu <= self.most_mu and trace <= self.most_trace
        return gaussian and epsilon <= self.apart[0] and delta <= self.apart[1]

    def filled_by_one(self, items: Items) -> bool:
        """Whether the first item takes all there is, to the last digit, by its own guarantee.

        It was chosen before anything was shown, and nothing comes after it.
        """
        if len(items) != 1 or not self.is_gaussian(items[0]) or self.fits(items):
            return False
        epsilon, delta = self.pair_of(items[0])
        return epsilon <= self.total.epsilon and delta <= self.total.delta

    def left(self, items: Items) -> float:
        """The largest mu that one more Gaussian mechanism may have, rounded down."""
        if not self.fits(items):  # filled by one
            return 0.0
        used, _ = self._gaussian_sums(items)
        limit = self.most_mu * (1 - 4e-14)  # what rounding adds when the next one is counted
        if used >= limit:
            return 0.0
        room = math.sqrt(float(Fraction(limit) ** 2 - Fraction(used) ** 2)) * (1 - 1e-15)
        fits = accounting.composed_mu([used, room] if used else [room]) <= self.most_mu
        return room if fits else 0.0

    def left_apart(self, items: Items) -> tuple[float, float]:
        """What one more mechanism without a mu may have, rounded down."""
        used = self._other_sums(items)
        return (
            rounding.downwards(Fraction(self.apart[0]) - used[0]),
            rounding.downwards(Fraction(self.apart[1]) - used[1]),
        )

    def cost(self, items: Items) -> tuple[float, float]:
        """The smallest epsilon of items that fit, at the budget's delta; (0, 0) for nothing."""
        if self.filled_by_one(items):
            return self.pair_of(items[0])
        mu, trace = self._gaussian_sums(items)
        epsilon, delta = map(rounding.upwards, self._other_sums(items))
        if mu == 0.0:
            return epsilon, delta
        room, most = rounding.less(self.total.delta, delta), self.gaussian.epsilon

        def enough(one: float) -> bool:
            return one >= most or accounting.traced_delta(epsilon=one, mu=mu, trace=trace) <= room

        gaussian = 0.0 if enough(0.0) else rounding.first_true(enough, most)
        return rounding.upwards(Fraction(epsilon) + Fraction(gaussian)), self.total.delta

    def _gaussian_sums(self, items: Items) -> tuple[float, float]:
        """The mu and the trace of all Gaussian noise, rounded up."""
        parts = [item for item in items if self.is_gaussian(item)]
        trace = math.fsum(item.trace for item in parts)
        mu = accounting.composed_mu(self.mu_of(item) for item in parts)
        return mu, accounting.upwards(trace) if trace else 0.0

    def _other_sums(self, items: Items) -> tuple[Fraction, Fraction]:
        """Epsilons and deltas of all else, exactly."""
        parts = [self.pair_of(item) for item in items if not self.is_gaussian(item)]
        if any(math.isinf(delta) for _, delta in parts):
            return _BEYOND_COUNTING
        return (
            sum((Fraction(epsilon) for epsilon, _ in parts), Fraction(0)),
            sum((Fraction(delta) for _, delta in parts), Fraction(0)),
        )
