"""Noisy prefix sums of packed rows: the state that learning changes.

Formal guarantee: neighbours are streams that differ in one row. A row is in one batch, whose place
does not depend on data. All sums ever shown are a function of the encoder applied to the batch
sums, plus one independent draw for each of its rows, drawn once: by `accounting` the cost of one
row is that of the encoder's longest column. Where rows depend on earlier releases this still holds,
because the encoder is lower triangular. Without noise the sums are exact and nothing is promised.

The state is secret, and how secret depends on the strategy. A tree keeps noisy nodes only: one look
at it reveals no more of the rows in it than the releases do, but a later release minus what was
seen is the exact sum of the rows in between. Buffers and written-out matrices keep noise of the
past: with it, one look undoes the noise of releases already shown; rows that come after the look
stay protected, because noise is drawn when a release is made. In all of them the open batch, if
rows wait in one, is an exact sum.
"""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _linalg as linalg
from discreet.kernels import _sums as kernel
from discreet.kernels import _tree as tree
from discreet.mechanism import Mechanism
from discreet.mechanism.noise.sources import NoiseSource

F64 = NDArray[np.float64]

_ARRAYS = ("nodes", "idle", "totals", "batch")


class PrefixSums(ABC):
    """The sums of a mechanism, advanced one row at a time: counters, and when to release."""

    def __init__(self, mechanism: Mechanism, source: NoiseSource, state: kernel.Sums) -> None:
        """Use `begin` or `resume` instead."""
        mechanism.require_playable()
        self._mechanism = mechanism
        self._source = source
        self._state = state
        sharing = mechanism.sharing
        # The paper's learner: every row goes straight into the tree, or into an exact sum, and
        # is its own release. The tree's counter then counts rows as well.
        self._plain = mechanism.schedule.every_round and sharing.kind in (kernel.EXACT, kernel.TREE)
        self._draws = 2 if sharing.idle else 1
        self._due = mechanism.schedule.after(self.released)
        self._nothing = np.empty((0, state.batch.size), state.batch.dtype)

    @classmethod
    def begin(cls, mechanism: Mechanism, source: NoiseSource) -> Self:
        """Before any row: every level of a tree holds its first noise."""
        state = cls._empty(mechanism)
        sums = cls(mechanism, source, state)
        first = sums._fresh(kernel.first_draws(mechanism.sharing))
        if mechanism.sharing.kind == kernel.TREE:
            tree.begin(state.nodes, state.idle, state.totals, first)
        return sums

    @classmethod
    def resume(
        cls,
        mechanism: Mechanism,
        source: NoiseSource,
        *,
        rows: int,
        released: int,
        number: int,
        arrays: dict[str, NDArray[Any]],
    ) -> Self:
        """Continue from saved arrays; ValueError if they do not fit the mechanism."""
        timing = mechanism.schedule
        if not 0 <= released <= rows or number != timing.count(released):
            raise ValueError("the counters do not fit together")
        if (released and timing.count(released - 1) == number) or rows >= timing.after(released):
            raise ValueError("the last release was at another time")
        # Before anything is allocated: it is then no larger than what the file holds.
        if arrays["batch"].size != linalg.packed_size(mechanism.setting.problem.dim):
            raise ValueError("the sums have another shape than their mechanism")
        state = cls._empty(mechanism, number)
        for name in _ARRAYS:
            held: NDArray[Any] = getattr(state, name)
            if arrays[name].shape != held.shape or arrays[name].dtype != held.dtype:
                raise ValueError("the sums have another shape than their mechanism")
            held[...] = arrays[name]
        state.rows[0], state.released[0], state.number[0] = rows, released, number
        return cls(mechanism, source, state)

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return self.number if self._plain else int(self._state.rows[0])

    @property
    def released(self) -> int:
        """How many of them are in the current release."""
        return self.number if self._plain else int(self._state.released[0])

    @property
    def number(self) -> int:
        """How many releases there have been."""
        return int(self._state.number[0])

    def prepared(self) -> NDArray[Any]:
        """Draw the noise that the next row will need. Changes nothing."""
        return self._fresh(self._needed())

    def fits(self, fresh: NDArray[Any]) -> bool:
        """Whether this could be noise for the next row."""
        shape = (0 if self._mechanism.noise is None else self._needed(), self._nothing.shape[1])
        return fresh.shape == shape and fresh.dtype == self._nothing.dtype

    def _needed(self) -> int:
        """How many nodes draw noise with the next row."""
        if self._plain:
            return self._draws * int(tree.carry(self.number + 1, len(self._state.nodes)))
        if not self._leads_to_a_release():
            return 0
        return int(kernel.draws(self._mechanism.sharing, self.number + 1))

    @abstractmethod
    def add(self, action: F64, reward: float, fresh: NDArray[Any]) -> bool:
        """Add one row, with noise from :meth:`prepared`; whether there is a new release.

        Cannot stop half-way.
        """

    @abstractmethod
    def unpack(self, shift: float, gram: F64, moment: F64) -> None:
        """Write out the noisy sum in the release, with a multiple of the identity added."""

    @abstractmethod
    def _fresh(self, draws: int) -> NDArray[Any]:
        """Noise for this many nodes."""

    @classmethod
    @abstractmethod
    def _empty(cls, mechanism: Mechanism, number: int = 0) -> kernel.Sums:
        """What is held before the first row, or room for what is held after some releases."""

    def _leads_to_a_release(self) -> bool:
        """Whether the next row does. When is worked out anew after each release, from its rows.

        Nothing is left to do after a step, so an interrupt right behind it cannot lose a date.
        """
        if self._due <= self.rows:
            self._due = self._mechanism.schedule.after(self.released)
        return self.rows + 1 == self._due

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that `resume` takes."""
        return {name: getattr(self._state, name) for name in _ARRAYS}


class NoisySums(PrefixSums):
    """Sums in floating point.

    A row costs O(d^2), a release O(d^2) for each buffer or level, and Wishart noise O(d^3) more
    for each fresh draw.
    """

    def add(self, action: F64, reward: float, fresh: F64) -> bool:
        """Add one row; see `PrefixSums`."""
        mechanism, state = self._mechanism, self._state
        row = np.empty(state.batch.size)
        linalg.pack_row(action, reward, row)
        if self._plain:
            last = mechanism.releases
            tree.step(state.nodes, state.idle, state.totals, state.number, row, fresh, last)
            return True
        if not self._leads_to_a_release():
            kernel.gather(state.batch, state.rows, row)
            return False
        kernel.step(
            mechanism.sharing, mechanism.schedule.timing, state, row, fresh, mechanism.releases
        )
        return True

    def unpack(self, shift: float, gram: F64, moment: F64) -> None:
        """Write out the release; see `PrefixSums`."""
        linalg.unpack(self._state.totals[0], shift, gram, moment)

    def _fresh(self, draws: int) -> F64:
        noise = self._mechanism.noise
        if noise is None or draws == 0:
            return self._nothing
        return noise.draw(self._source, self._mechanism.setting.problem.dim, draws)

    @classmethod
    def _empty(cls, mechanism: Mechanism, number: int = 0) -> kernel.Sums:
        del number
        return kernel.empty(mechanism.sharing, mechanism.setting.problem.dim)
