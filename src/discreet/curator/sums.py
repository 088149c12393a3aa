"""Noisy prefix sums of packed rows: the state that learning changes.

Formal guarantee: neighbours are streams that differ in one row. A row is added to at most one
open node at each of the m levels, and each node starts from noise drawn for it alone, so all
prefix sums ever shown are a function of nodes of which one replacement changes at most m. A node
keeps its noise for as long as it stands. With no levels the sums are exact and nothing is
promised.

At rest the state holds noisy nodes only. To an outsider who sees it once, the rows already in it
stay as protected as the releases leave them; rows that come after the look do not, because a
later release minus what was seen is their exact sum.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import linalg, tree
from discreet.mechanism import Mechanism
from discreet.noise.source import NoiseSource

F64 = NDArray[np.float64]


class NoisySums:
    """The tree of a mechanism, advanced one row at a time.

    A row costs O(d^2 log n) at worst, and Wishart noise O(d^3) more for each fresh draw.
    """

    def __init__(
        self, mechanism: Mechanism, source: NoiseSource, *, rows: int, nodes: F64, idle: F64
    ) -> None:
        """Stand on the given levels; with no levels, ``nodes`` is the exact sum, shape (1, p)."""
        mechanism.require_playable()
        levels, size = mechanism.levels, linalg.packed_size(mechanism.setting.problem.dim)
        if nodes.shape != (max(levels, 1), size) or idle.shape != (levels, size):
            raise ValueError("the tree has another shape than its mechanism")
        self._mechanism = mechanism
        self._source = source
        self._nodes = nodes[:levels]
        self._idle = idle
        self._totals = np.zeros((levels + 1, size)) if levels else nodes
        self._clock = np.array([rows], dtype=np.int64)
        tree.stand(self._nodes, self._idle, self._totals, rows, levels - 1)

    @classmethod
    def empty(cls, mechanism: Mechanism, source: NoiseSource) -> Self:
        """Before any row: every level holds its first noise."""
        levels, size = mechanism.levels, linalg.packed_size(mechanism.setting.problem.dim)
        nodes, idle = np.zeros((max(levels, 1), size)), np.zeros((levels, size))
        sums = cls(mechanism, source, rows=0, nodes=nodes, idle=idle)
        tree.begin(sums._nodes, sums._idle, sums._totals, sums._fresh(levels))
        return sums

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return int(self._clock[0])

    def prepared(self) -> F64:
        """Draw the noise that the next row will need. Changes nothing."""
        return self._fresh(tree.carry(self.rows + 1, len(self._nodes)))

    def add(self, row: F64, fresh: F64) -> None:
        """Add one packed row, with noise from :meth:`prepared`. Cannot stop half-way."""
        last = self._mechanism.setting.horizon
        tree.step(self._nodes, self._idle, self._totals, self._clock, row, fresh, last)

    def unpack(self, shift: float, gram: F64, moment: F64) -> None:
        """Write out the noisy sum of all rows so far, with a multiple of the identity added."""
        linalg.unpack(self._totals[0], shift, gram, moment)

    def state(self) -> dict[str, F64]:
        """The arrays that the constructor takes; the totals follow from them."""
        return {"nodes": self._nodes if len(self._nodes) else self._totals, "idle": self._idle}

    def _fresh(self, starting: int) -> F64:
        noise = self._mechanism.noise
        if noise is None or starting == 0:
            return np.empty((0, self._totals.shape[1]))
        draws = starting * (2 if self._mechanism.idle_draws else 1)
        return noise.draw(self._source, self._mechanism.setting.problem.dim, draws)
