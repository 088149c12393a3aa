"""Noisy prefix sums in whole numbers: `sums`, without floating point.

Formal guarantee: a row is rounded towards zero to whole steps of the mechanism's grid and, should
its action then still be too long, shortened in whole numbers, so every row keeps the bounds
exactly. Sums of rows are exact. Each release adds one exact discrete Gaussian draw for each entry
(`noise.feedback` says how draws are shared), and floating point comes after that. The cost of one
row is that of the discrete Gaussian on the whole numbers (`accounting.lattice`).

The state is secret, as in `sums`. No sum can overflow: the grid was chosen so that all rows of a
64-bit sum fit into it, with the largest noise that can be drawn (`noise.exact`); what is not
64-bit are Python's own whole numbers.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.sums import PrefixSums
from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.kernels import _rounding as rounding
from discreet.kernels import _sums as kernel
from discreet.kernels import _tree as tree
from discreet.mechanism import Mechanism
from discreet.mechanism._grid import ROOM
from discreet.mechanism.noise import _feedback as feedback
from discreet.mechanism.noise import _sampler as lattice
from discreet.mechanism.noise._discrete import ExactNoise
from discreet.mechanism.noise.sources import NoiseSource

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class ExactSums(PrefixSums):
    """Sums in whole numbers.

    A row costs O(d^2); a release O(d^2) draws, and as much arithmetic for each buffer or level.
    """

    def __init__(self, mechanism: Mechanism, source: NoiseSource, state: kernel.Sums) -> None:
        """Use `begin` or `resume` instead."""
        super().__init__(mechanism, source, state)
        if not isinstance(mechanism.noise, ExactNoise) or mechanism.strategy is None:
            raise ParameterError("noise", "is not on a grid")  # pragma: no cover  # see `Curator`
        problem, grid = mechanism.setting.problem, mechanism.noise.grid
        self._noise = mechanism.noise
        self._feedback = feedback.of(mechanism.strategy, mechanism.releases)
        self._stds = self._noise.parameters_packed(problem.dim)
        self._per_action, self._per_reward = 1.0 / grid.action_step, 1.0 / grid.reward_step
        self._largest_square = grid.largest_square(problem)
        self._largest_reward = grid.largest_reward(problem)
        self._units = grid.steps(problem.dim)
        for held in (state.nodes, state.idle, state.totals, state.batch):
            if held.dtype == np.int64 and (np.abs(held) > ROOM).any():
                raise ValueError("the sums are larger than any rows make them")

    def add(self, action: F64, reward: float, fresh: I64) -> bool:
        """Add one row; see `PrefixSums`."""
        state = self._state
        row = self._rounded(action, reward)
        if self._plain:
            last = self._mechanism.releases
            tree.step(state.nodes, state.idle, state.totals, state.number, row, fresh, last)
            return True
        if not self._leads_to_a_release():
            kernel.gather(state.batch, state.rows, row)
            return False
        self._state = self._after(row, fresh)  # all of it at once
        return True

    def _after(self, row: I64, fresh: I64) -> kernel.Sums:
        """What is held after a release with this row in it. Changes nothing."""
        state = self._state
        batch = state.batch + row
        number = state.number.copy()
        if self._feedback is None:
            nodes, idle, totals = state.nodes.copy(), state.idle.copy(), state.totals.copy()
            tree.step(nodes, idle, totals, number, batch, fresh, self._mechanism.releases)
        else:
            noise, nodes = self._feedback.follow(state.nodes, fresh[0].astype(object))
            idle, totals = state.idle, state.totals + batch.astype(object) + noise
            number += 1
        rows = state.rows + 1
        return kernel.Sums(nodes, idle, totals, np.zeros_like(batch), rows, rows.copy(), number)

    def _rounded(self, action: F64, reward: float) -> I64:
        """The packed row in whole steps, within the bounds exactly."""
        row = np.empty(self._stds.size, dtype=np.int64)
        units, most = (self._per_action, self._per_reward), self._largest_reward
        if rounding.packed(action, reward, *units, self._largest_square, most, row):
            return row
        # Too long by a trace: `rows` has seen it before.
        steps = np.empty(action.size + 1, dtype=np.int64)
        rounding.towards_zero(action, reward, *units, steps)
        steps[:-1] = shortened(steps[:-1], self._largest_square)
        steps[-1] = min(most, max(-most, int(steps[-1])))
        linalg.pack_row(steps[:-1], steps[-1], row)
        return row

    def unpack(self, shift: float, gram: F64, moment: F64) -> None:
        """Write out the release; see `PrefixSums`. Here floating point begins."""
        total = self._state.totals[0].astype(np.float64) * self._units
        linalg.unpack(total, shift, gram, moment)

    def _fresh(self, draws: int) -> I64:
        if draws == 0:
            return np.empty((0, self._stds.size), dtype=np.int64)
        stds = self._stds
        if self._feedback is not None and (spread := self._feedback.spread(self.number + 1)) != 1.0:
            stds = self._noise.parameters_packed(self._mechanism.setting.problem.dim, spread)
        return lattice.draw(self._source, stds, draws)

    @classmethod
    def _empty(cls, mechanism: Mechanism, number: int = 0) -> kernel.Sums:
        dim, sharing = mechanism.setting.problem.dim, mechanism.sharing
        held = kernel.empty(sharing, dim)
        whole: dict[str, NDArray[Any]] = {
            name: getattr(held, name).astype(np.int64)
            for name in ("nodes", "idle", "totals", "batch")
        }
        if sharing.kind == kernel.BUFFERS:
            whole["nodes"] = np.full(held.nodes.shape, 0, dtype=object)
        if sharing.kind == kernel.MATRIX:
            whole["nodes"] = np.full((number, held.batch.size), 0, dtype=object)
            whole["idle"] = np.empty((0, held.batch.size), dtype=np.int64)
        if sharing.kind != kernel.TREE:
            whole["totals"] = np.full(held.totals.shape, 0, dtype=object)
        return held._replace(**whole)


def shortened(steps: I64, largest_square: int) -> I64:
    """A vector of whole numbers scaled to a squared norm within the bound, towards zero."""
    entries = [int(step) for step in steps]
    square = sum(step * step for step in entries)
    if square <= largest_square:
        return steps
    length = math.isqrt(square - 1) + 1  # rounded up
    limit = math.isqrt(largest_square)
    scaled = [abs(step) * limit // length for step in entries]
    return np.array(scaled, dtype=np.int64) * np.sign(steps)
