"""Noisy sums of packed rows: the state that learning changes.

Formal guarantee: neighbours are streams that differ in one row. A row is in one batch, whose place
does not depend on data. All sums ever shown are a function of the encoder applied to the batch
sums, plus one independent draw for each of its rows, drawn once: by `accounting` the cost of one
row is that of the encoder's longest column. Where rows depend on earlier releases this still holds,
because the encoder is lower triangular. Without noise the sums are exact and nothing is promised.

Noise is drawn for one step, named by the number of its row, and refused at any other.

`FloatSums` are in floating point. `IntegerSums` are not: there a row is rounded towards zero to
whole steps of the mechanism's grid and, should its action then still be too long, shortened in
whole numbers, so every row keeps the bounds exactly. Sums of rows are exact, each release adds one
discrete Gaussian draw for each entry, and floating point comes after that. No sum can overflow: the
grid was chosen so that all rows of a 64-bit sum fit into it, with the largest noise that can be
drawn; what is not 64-bit are Python's own whole numbers.

The state is secret, and how secret depends on the strategy. A tree keeps noisy nodes only: one look
at it reveals no more of the rows in it than the releases do, but a later release minus what was
seen is the exact sum of the rows in between. Buffers and written-out matrices keep noise of the
past: with it, one look undoes the noise of releases already shown; rows that come after the look
stay protected, because noise is drawn when a release is made. Windows keep the exact sum of all
rows, each as far as it has faded. In all of them the open batch, if rows wait in one, is an exact
sum.

Rows that are known to be one person's are kept one by one while their batch is open (`OpenRow`),
and a row of zeros takes their place in it. With the release they are added. So one of them can be
withdrawn until then, and what comes out is to the bit what a row of zeros would have led to, in
floating point too.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from discreet.curator import bounds
from discreet.curator._subjects import OpenRow
from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.kernels import _rounding as rounding
from discreet.kernels import _sums as kernel
from discreet.kernels import _tree as tree
from discreet.kernels import _windows as windows
from discreet.mechanism import Mechanism
from discreet.mechanism._grid import ROOM
from discreet.mechanism.noise import _sampler as sampler
from discreet.mechanism.noise._discrete_gaussian import DiscreteGaussianNoise
from discreet.mechanism.noise.sources import NoiseSource

_F64 = NDArray[np.float64]
_I64 = NDArray[np.int64]

_ARRAYS = ("nodes", "idle", "totals", "batch")
_NONE: Mapping[int, OpenRow] = {}
_WIDEST = ROOM << 104  # of Python's own whole numbers: 2^62 sums, with 40 bits behind the point


class Position(NamedTuple):
    """How far the sums are. It is public: it does not depend on what the rows say.

    Attributes:
        rows: rows added.
        released: how many of them are in the last release.
        number: releases made.
        due: how many rows the next release holds.
    """

    rows: int
    released: int
    number: int
    due: int


class PrefixSums(ABC):
    """The sums of a mechanism, advanced one row at a time."""

    def __init__(self, mechanism: Mechanism, source: NoiseSource, state: kernel.Sums) -> None:
        """Use `begin` or `resume` instead."""
        mechanism.require_playable()
        self._mechanism = mechanism
        self._source = source
        self._state = state
        problem = mechanism.setting.problem
        # What a reward may be to be taken as it is; nothing if something is taken off it first.
        self._plain_reward = -1.0 if problem.reward_centre else problem.reward_bound
        sharing = mechanism.sharing
        # The paper's learner: every row goes straight into the tree, or into an exact sum, and
        # is its own release. The tree's counter then counts rows as well.
        self._plain = mechanism.schedule.every_round and (
            mechanism.strategy is None or mechanism.nodes_hold_sums
        )
        self._draws = 2 if sharing.idle else 1
        self._position = Position(-1, 0, 0, 0)  # what was worked out last
        self.no_draws = np.empty((0, state.batch.size), state.batch.dtype)
        self._zeros = np.zeros(problem.dim)
        self._open_rows: dict[int, OpenRow] = {}  # by number, in order

    @classmethod
    def begin(cls, mechanism: Mechanism, source: NoiseSource) -> Self:
        """Before any row: every level of a tree holds its first noise."""
        state = cls._empty(mechanism)
        sums = cls(mechanism, source, state)
        first = sums._draw(kernel.first_draws(mechanism.sharing), sums.position)
        if mechanism.nodes_hold_sums:
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
        """Continue from stored arrays; ValueError if they do not fit the mechanism."""
        timing = mechanism.schedule
        if not 0 <= released <= rows or number != timing.count(released):
            raise ValueError("the counters do not fit together")
        if (released and timing.count(released - 1) == number) or rows >= timing.after(released):
            raise ValueError("the last release was at another time")
        # Before anything is allocated: it is then no larger than what the file holds.
        if arrays["batch"].size != mechanism.packed_size:
            raise ValueError("the sums have another shape than their mechanism")
        state = cls._empty(mechanism, number)
        for name in _ARRAYS:
            array: NDArray[Any] = getattr(state, name)
            if arrays[name].shape != array.shape or arrays[name].dtype != array.dtype:
                raise ValueError("the sums have another shape than their mechanism")
            array[...] = arrays[name]
        if mechanism.strategy is not None:
            mechanism.strategy.require_held(
                kernel.Arrays(state.nodes, state.idle, state.totals), number
            )
        state.rows[0], state.released[0], state.number[0] = rows, released, number
        return cls(mechanism, source, state)

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return (self._state.number if self._plain else self._state.rows).item()

    @property
    def number(self) -> int:
        """How many releases there have been."""
        return self._state.number.item()

    @property
    def position(self) -> Position:
        """How far the sums are, by the counters that change together with them."""
        rows, last = self.rows, self._position
        if last.rows == rows:
            return last
        if self._plain:
            position = Position(rows, rows, self.number, rows + 1)
        elif rows < last.due:  # no release since
            position = Position(rows, last.released, last.number, last.due)
        else:
            released = int(self._state.released[0])
            due = self._mechanism.schedule.after(released)
            position = Position(rows, released, self.number, due)
        self._position = position
        return position

    def next(self, position: Position) -> Position:
        """Where the sums will be one row after a position."""
        rows = position.rows + 1
        if self._plain:
            return Position(rows, rows, rows, rows + 1)
        if rows < position.due:
            return Position(rows, position.released, position.number, position.due)
        return Position(rows, rows, position.number + 1, self._mechanism.schedule.after(rows))

    @property
    def gathers(self) -> bool:
        """Whether `gather` may be called; its result is that of `add` for each row."""
        return False

    def ahead(self, position: Position, count: int) -> Position:
        """Where the sums will be so many rows after a position, none of which makes a release."""
        rows = position.rows + count
        if count and rows >= position.due:
            raise ParameterError("rows", "lead to a release; take those before it")
        return position._replace(rows=rows)

    def gather(
        self, number: int, actions: _F64, rewards: _F64, open_rows: Mapping[int, OpenRow] = _NONE
    ) -> None:
        """Add rows from ``number`` on that make no release; nothing of those that are in already.

        It may stop between two rows, never inside one, and goes on where it stopped if it is
        called again.

        Args:
            number: of the first row.
            actions: shape (n, d), within the bounds.
            rewards: shape (n,), within the bounds.
            open_rows: those of the rows that are known to be a person's, by number; they are zeros
                in the other two.
        """
        position = self.position
        done = min(max(0, position.rows + 1 - number), len(rewards))
        if done == len(rewards):
            return
        if not self.gathers or number > position.rows + 1:
            raise ParameterError("rows", "are for another step than this one")
        self.ahead(position, len(rewards) - done)
        self._open_rows.update(open_rows)
        self._gather(actions[done:], rewards[done:])

    def draw(self, position: Position) -> NDArray[Any]:
        """The noise that the row after a position needs. Changes nothing."""
        return self._draw(self._needed(position), position)

    def fits(self, noise: NDArray[Any], position: Position) -> bool:
        """Whether this could be noise for the row after a position."""
        draws = 0 if self._mechanism.noise is None else self._needed(position)
        if noise is self.no_draws:
            return draws == 0
        return noise.shape == (draws, self.no_draws.shape[1]) and noise.dtype == self.no_draws.dtype

    def bounded_reward(self, reward: object, on_violation: bounds.OnViolation) -> float:
        """The reward's distance from the stated centre, within its bound."""
        if type(reward) is float and -self._plain_reward <= reward <= self._plain_reward:
            return reward
        return bounds.bounded_reward(self._mechanism.setting.problem, reward, on_violation)

    def add(
        self,
        number: int,
        action: _F64,
        reward: float,
        noise: NDArray[Any],
        open_row: OpenRow | None = None,
    ) -> None:
        """Add row ``number``, with the noise that was drawn for it; nothing if it is in already.

        It cannot stop half-way.

        Args:
            number: of the row.
            action: within the bounds.
            reward: within the bounds.
            noise: what `draw` gave for it.
            open_row: the same row, if it is to be kept by itself until its batch is released.
        """
        position = self.position
        if number <= position.rows:
            return
        if number != position.rows + 1 or not self.fits(noise, position):
            raise ParameterError("noise", "was drawn for another step than this one")
        if number == position.due:
            late = self.open_rows if self._open_rows else _NONE
            self._add(position, action, reward, noise, late.values())
            if late:
                self._open_rows = {}  # if this is interrupted, `open_rows` hides them
        elif open_row is None:
            self._add(position, action, reward, noise, ())
        else:
            self._open_rows[number] = open_row
            self._add(position, self._zeros, 0.0, noise, ())

    @property
    def open_rows(self) -> dict[int, OpenRow]:
        """Rows of the open batch that are kept one by one, in order."""
        released = self.position.released
        return {number: row for number, row in self._open_rows.items() if number > released}

    def resume_open_rows(self, open_rows: Mapping[int, OpenRow]) -> None:
        """Take in the open rows that were stored with the sums; ValueError if they cannot be."""
        position = self.position
        if any(not position.released < number <= position.rows for number in open_rows):
            raise ValueError("a row of no open batch")
        self._open_rows.update(open_rows)

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Take open rows out; nothing of those that are out already."""
        for number in numbers:
            self._open_rows.pop(number, None)

    def amounts(self) -> tuple[float, float]:
        """How much noise is in the release, in multiples of one draw, and its rows' weight."""
        arrays = kernel.Arrays(self._state.nodes, self._state.idle, self._state.totals)
        return self._mechanism.amounts(arrays, self.number, self.position.released)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `resume` takes."""
        return {name: getattr(self._state, name) for name in _ARRAYS}

    @abstractmethod
    def unpack(self, shift: float, gram: _F64, moment: _F64) -> None:
        """Write out the noisy sum in the release, with a multiple of the identity added."""

    @abstractmethod
    def _add(
        self,
        position: Position,
        action: _F64,
        reward: float,
        noise: NDArray[Any],
        late: Collection[OpenRow],
    ) -> None:
        """`add`, after its checks; ``late`` are open rows that are added with the release."""

    @abstractmethod
    def _draw(self, draws: int, position: Position) -> NDArray[Any]:
        """Noise for this many nodes, for the release after a position."""

    @classmethod
    @abstractmethod
    def _empty(cls, mechanism: Mechanism, number: int = 0) -> kernel.Sums:
        """What is held before the first row, or room for what is held after some releases."""

    def _gather(self, actions: _F64, rewards: _F64) -> None:
        """`gather`, after its checks."""
        raise NotImplementedError  # pragma: no cover  # only where `gathers` says so

    def _times(self, position: Position) -> windows.Step:
        """The times around the release after a position."""
        after = self._mechanism.schedule.after(position.due)
        return windows.Step(position.released, position.due, after)

    def _needed(self, position: Position) -> int:
        """How many nodes draw noise with the row after a position."""
        if self._plain:
            return self._draws * int(tree.carry(position.number + 1, len(self._state.nodes)))
        if position.rows + 1 < position.due:
            return 0
        return int(kernel.draws(self._mechanism.sharing, position.number + 1))


class FloatSums(PrefixSums):
    """Sums in floating point.

    A row costs O(d^2), a release O(d^2) for each buffer or level, and Wishart noise O(d^3) more
    for each fresh draw.
    """

    def unpack(self, shift: float, gram: _F64, moment: _F64) -> None:
        """Write out the release; see `PrefixSums`."""
        linalg.unpack(self._state.totals[0], shift, self._mechanism.firsts, gram, moment)

    def _add(
        self,
        position: Position,
        action: _F64,
        reward: float,
        noise: _F64,
        late: Collection[OpenRow],
    ) -> None:
        mechanism, state = self._mechanism, self._state
        row = np.empty(state.batch.size)
        linalg.pack_row(action, reward, mechanism.firsts, row)
        if late:
            one = np.empty_like(row)
            for open_row in late:
                linalg.pack_row(open_row.action, open_row.reward, mechanism.firsts, one)
                row += one
        if self._plain:
            last = mechanism.releases
            tree.step(state.nodes, state.idle, state.totals, state.number, row, noise, last)
        elif position.rows + 1 < position.due:
            kernel.gather(state.batch, state.rows, row)
        else:
            timing, last = mechanism.schedule.timing, mechanism.releases
            kernel.step(mechanism.sharing, timing, state, row, noise, last)

    def _draw(self, draws: int, position: Position) -> _F64:
        del position  # all alike
        noise = self._mechanism.noise
        if noise is None or draws == 0:
            return self.no_draws
        return noise.draw(self._source, self._mechanism.firsts, draws)

    @classmethod
    def _empty(cls, mechanism: Mechanism, number: int = 0) -> kernel.Sums:
        del number
        return mechanism.float_sums()


class IntegerSums(PrefixSums):
    """Sums in whole numbers.

    A row costs O(d^2); a release O(d^2) draws, and as much arithmetic for each buffer or level.
    """

    def __init__(self, mechanism: Mechanism, source: NoiseSource, state: kernel.Sums) -> None:
        """Use `begin` or `resume` instead."""
        super().__init__(mechanism, source, state)
        if not isinstance(mechanism.noise, DiscreteGaussianNoise) or mechanism.strategy is None:
            raise ParameterError("noise", "is not on a grid")  # pragma: no cover  # see `sums_of`
        problem, grid = mechanism.setting.problem, mechanism.noise.grid
        self._noise = mechanism.noise
        self._feedback = mechanism.strategy.feedback(mechanism.releases)
        self._stds = self._noise.parameters_packed(mechanism.firsts)
        self._per_action, self._per_reward = 1.0 / grid.action_step, 1.0 / grid.reward_step
        self._largest_square = grid.largest_square(problem)
        self._largest_reward = grid.largest_reward(problem)
        self._units = grid.steps(problem)
        for array in (state.nodes, state.idle, state.totals, state.batch):
            most = {np.dtype(np.int64): ROOM, np.dtype(object): _WIDEST}.get(array.dtype)
            if most is not None and ((array > most) | (array < -most)).any():
                raise ValueError("the sums are larger than any rows make them")

    def unpack(self, shift: float, gram: _F64, moment: _F64) -> None:
        """Write out the release; see `PrefixSums`. Here floating point begins."""
        total = self._state.totals[0].astype(np.float64) * self._units
        linalg.unpack(total, shift, self._mechanism.firsts, gram, moment)

    @property
    def gathers(self) -> bool:
        """Whole numbers add up to the same in any order; see `PrefixSums`."""
        return not self._plain

    def _gather(self, actions: _F64, rewards: _F64) -> None:
        self._gather_into(self._state.batch, self._state.rows, actions, rewards)

    def _gather_into(self, batch: _I64, rows: _I64, actions: _F64, rewards: _F64) -> None:
        largest = (self._largest_square, self._largest_reward)
        units = (self._per_action, self._per_reward)
        done = 0
        while done < len(rewards):
            done += kernel.gather_rounded(
                actions[done:],
                rewards[done:],
                *units,
                *largest,
                self._mechanism.firsts,
                batch,
                rows,
            )
            if done < len(rewards):  # this one is too long by a trace
                kernel.gather(batch, rows, self._rounded(actions[done], float(rewards[done])))
                done += 1

    def _add(
        self,
        position: Position,
        action: _F64,
        reward: float,
        noise: _I64,
        late: Collection[OpenRow],
    ) -> None:
        state = self._state
        row = self._rounded(action, reward)
        if late:
            actions = np.array([open_row.action for open_row in late])
            rewards = np.array([open_row.reward for open_row in late])
            self._gather_into(row, np.zeros(1, np.int64), actions, rewards)
        if self._plain:
            last = self._mechanism.releases
            tree.step(state.nodes, state.idle, state.totals, state.number, row, noise, last)
        elif position.rows + 1 < position.due:
            kernel.gather(state.batch, state.rows, row)
        else:
            self._state = self._after(row, noise)  # all of it at once

    def _after(self, row: _I64, noise: _I64) -> kernel.Sums:
        """What is held after a release with this row in it. Changes nothing."""
        state = self._state
        batch = state.batch + row
        number = state.number.copy()
        if self._feedback is None:
            nodes, idle, totals = state.nodes.copy(), state.idle.copy(), state.totals.copy()
            tree.step(nodes, idle, totals, number, batch, noise, self._mechanism.releases)
        else:
            arrays = kernel.Arrays(state.nodes, state.idle, state.totals)
            times = self._times(self.position)
            nodes, idle, totals = self._feedback.release(
                arrays, batch.astype(object), noise[0].astype(object), times
            )
            number += 1
        rows = state.rows + 1
        return kernel.Sums(nodes, idle, totals, np.zeros_like(batch), rows, rows.copy(), number)

    def _rounded(self, action: _F64, reward: float) -> _I64:
        """The packed row in whole steps, within the bounds exactly."""
        row = np.empty(self._stds.size, dtype=np.int64)
        units, most = (self._per_action, self._per_reward), self._largest_reward
        firsts = self._mechanism.firsts
        if rounding.packed(action, reward, *units, self._largest_square, most, firsts, row):
            return row
        # Too long by a trace of arithmetic, which `bounds` lets pass.
        steps = np.empty(action.size + 1, dtype=np.int64)
        if rounding.towards_zero(action, reward, *units, steps) == rounding.REFUSED:
            raise ParameterError("actions", "or a reward is far outside its bounds")
        steps[:-1] = shortened(steps[:-1], self._largest_square)
        steps[-1] = min(most, max(-most, int(steps[-1])))
        linalg.pack_row(steps[:-1], steps[-1], firsts, row)
        return row

    def _draw(self, draws: int, position: Position) -> _I64:
        if draws == 0:
            return self.no_draws
        stds = self._stds
        spread = 1.0
        if self._feedback is not None:
            spread = self._feedback.spread(position.number + 1, self._times(position))
        if spread != 1.0:
            stds = self._noise.parameters_packed(self._mechanism.firsts, spread)
        return sampler.draw(self._source, stds, draws)

    @classmethod
    def _empty(cls, mechanism: Mechanism, number: int = 0) -> kernel.Sums:
        return mechanism.integer_sums(number)


def sums_of(mechanism: Mechanism) -> type[PrefixSums]:
    """Which sums a mechanism needs."""
    return FloatSums if mechanism.grid is None else IntegerSums


def shortened(steps: _I64, largest_square: int) -> _I64:
    """A vector of whole numbers scaled to a squared norm within the bound, towards zero."""
    entries = [int(step) for step in steps]
    square = sum(step * step for step in entries)
    if square <= largest_square:
        return steps
    length = math.isqrt(square - 1) + 1  # rounded up
    limit = math.isqrt(largest_square)
    scaled = [abs(step) * limit // length for step in entries]
    return np.array(scaled, dtype=np.int64) * np.sign(steps)
