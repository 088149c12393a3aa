"""How often somebody may ask."""

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST = 10_000  # names that are remembered


class Buckets:
    """A bucket of tokens for each name: it fills at a rate, and holds two seconds' worth.

    Args:
        rate: tokens a second; 0 for no limit.
        clock: any clock that goes forward.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with full buckets."""
        self._rate = rate
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> bool:
        """Take a token of this name; whether there was one."""
        if self._rate <= 0.0:
            return True
        held, now = self._now(name)
        enough = held >= 1.0
        self._held.pop(name, None)
        self._held[name] = (held - 1.0 if enough else held, now)
        if len(self._held) > _MOST:
            self._held.popitem(last=False)
        return enough

    def has(self, name: str) -> bool:
        """Whether there is a token of this name, which stays there."""
        return self._rate <= 0.0 or self._now(name)[0] >= 1.0

    def _now(self, name: str) -> tuple[float, float]:
        """How many tokens there are, and the time."""
        now, most = self._clock(), max(1.0, 2.0 * self._rate)
        held, at = self._held.get(name, (most, now))
        return min(most, held + (now - at) * self._rate), now
