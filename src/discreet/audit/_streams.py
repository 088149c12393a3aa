"""The streams that an attack plays: rows of zeros, and among them the rows that differ.

Every decision set has one action, so what is chosen is known. Rows lie in the first two
coordinates, so those are all that an attack looks at: noise elsewhere tells nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import accounting
from discreet.errors import ParameterError
from discreet.mechanism import Mechanism
from discreet.mechanism._cost import HasTwoScales
from discreet.problem import Problem

F64 = NDArray[np.float64]


class PlayedRow(NamedTuple):
    """What one round leaves behind."""

    action: F64  # (d,)
    reward: float  # its distance from the stated centre

    def sums(self) -> F64:
        """What it adds to the part of a release that is looked at."""
        return view(np.outer(self.action, self.action), self.action * self.reward)

    def stretched(self, factor: float) -> "PlayedRow":
        """The same row, longer by a factor."""
        return PlayedRow(self.action * factor, self.reward * factor)


class RowPair(NamedTuple):
    """Two rows that are to be hard to tell apart."""

    one: PlayedRow
    other: PlayedRow

    @property
    def difference(self) -> F64:
        """How far apart they move a release, before noise."""
        return self.one.sums() - self.other.sums()

    def stretched(self, factor: float) -> "RowPair":
        """The same rows, longer by a factor: out of bounds."""
        return RowPair(self.one.stretched(factor), self.other.stretched(factor))


@dataclass(frozen=True)
class Stream:
    """Rows, in as many parts as there are releases to look at.

    Attributes:
        parts: the rows up to each release, each a decision set of one action and its reward.
    """

    parts: tuple[tuple[tuple[F64, float], ...], ...]


@dataclass(frozen=True)
class TwoWorlds:
    """Two neighbouring streams.

    Attributes:
        streams: the two.
        shift: how far apart the releases of the two are before noise, shape (1 + J, p), with the
            one before any row first.
    """

    streams: tuple[Stream, Stream]
    shift: F64


def view(gram: F64, moment: F64) -> F64:
    """The entries of a release that are looked at: of the Gram matrix, then of the moment."""
    if moment.size == 1:
        return np.array([gram[0, 0], moment[0]])
    return np.array([gram[0, 0], gram[1, 0], gram[1, 1], moment[0], moment[1]])


def zeros(dim: int) -> PlayedRow:
    """A row of zeros: what a person contributes who takes no part."""
    return PlayedRow(np.zeros(dim), 0.0)


def longest(problem: Problem) -> PlayedRow:
    """A row at the bounds, along the first coordinate."""
    action = np.zeros(problem.dim)
    action[0] = problem.action_norm
    return PlayedRow(action, problem.reward_bound)


def worst_pair(mechanism: Mechanism) -> RowPair:
    """The two rows that accounting is about: they move a release the farthest apart.

    Where rewards alone are protected both have the same action, and rewards at either bound, or one
    at the centre under add-remove. Otherwise, under replacement both have the largest reward, and
    their actions the cosine -min(1, (B s_G)^2/(L s_u)^2). Where noise does not say its scales they
    are taken to be equal.
    """
    problem, noise = mechanism.setting.problem, mechanism.noise
    row = longest(problem)
    if mechanism.protects == "rewards":
        return _worst_rewards(row, mechanism.guarantee.neighbours)
    if mechanism.guarantee.neighbours == accounting.Neighbours.ADD_REMOVE:
        return RowPair(row, zeros(problem.dim))
    scales = (noise.std, noise.moment_std) if isinstance(noise, HasTwoScales) else (1.0, 1.0)
    slope = (problem.reward_bound * scales[0]) / (problem.action_norm * scales[1])
    if problem.dim == 1:
        return RowPair(row, PlayedRow(-row.action * _opposite(slope * slope), row.reward))
    cosine = -min(1.0, slope * slope)
    turned = row.action * cosine
    turned[1] = problem.action_norm * math.sqrt(1 - cosine * cosine)
    return RowPair(row, PlayedRow(turned, row.reward))


def _worst_rewards(row: PlayedRow, neighbours: str) -> RowPair:
    """The same action with the rewards that are farthest apart."""
    away = neighbours == accounting.Neighbours.ADD_REMOVE
    return RowPair(row, PlayedRow(row.action, 0.0 if away else -row.reward))


def _opposite(slope: float) -> float:
    """In one dimension, how long the other action is as a share of L (docs/accounting.md)."""
    if 4 * slope >= 1:
        return 1.0
    short = (1 - math.sqrt(1 - 4 * slope)) / 2

    def square(share: float) -> float:
        return (1 - share**2) ** 2 / 2 + slope * (1 + share) ** 2

    return short if square(short) > square(1.0) else 1.0


def release_times(mechanism: Mechanism, most: int) -> tuple[int, ...]:
    """After how many rows the first releases are: at least one, within the horizon."""
    found: list[int] = []
    rows = mechanism.schedule.after(0)
    while rows <= mechanism.setting.horizon and len(found) < most:
        found.append(rows)
        rows = mechanism.schedule.after(rows)
    if not found:
        raise ParameterError("horizon", "ends before the first release; give a longer one")
    return tuple(found)


def stream(dim: int, times: tuple[int, ...], special: Mapping[int, PlayedRow]) -> Stream:
    """Rows of zeros but for some, up to the last of the releases."""
    plain = zeros(dim)
    rows = [special.get(at, plain) for at in range(times[-1])]
    played = [(row.action[np.newaxis], row.reward) for row in rows]
    starts = (0, *times[:-1])
    return Stream(tuple(tuple(played[a:b]) for a, b in zip(starts, times, strict=True)))


def worlds(
    mechanism: Mechanism,
    pair: RowPair,
    times: tuple[int, ...],
    *,
    first: int = 0,
    times_too_many: int = 1,
) -> TwoWorlds:
    """Streams that differ in one person's rounds, from row ``first`` (counted from 0) on.

    With ``times_too_many`` the person has that many times as many as stated.
    """
    dim = mechanism.setting.problem.dim
    rounds = times_too_many * mechanism.guarantee.contributions_per_user
    places = range(first, min(first + rounds, times[-1]))
    streams = [stream(dim, times, dict.fromkeys(places, row)) for row in pair]
    batches = np.searchsorted(times, places, side="right")
    counts = batch_weights(mechanism, len(times))[:, batches].sum(axis=1)
    return TwoWorlds((streams[0], streams[1]), np.multiply.outer(counts, pair.difference))


def batch_weights(mechanism: Mechanism, releases: int) -> F64:
    """How much a row of each batch counts in each release, by what is public.

    One, but for windows, where older rows count less and the filter combines all windows so far.

    Returns:
        Shape (1 + releases, releases): the release before any row first.
    """
    strategy = mechanism.strategy
    shown = np.tril(np.ones((releases, releases)))
    if strategy is not None:
        shown = strategy.batch_weights(releases)
    return np.concatenate([np.zeros((1, releases)), shown])


def coin_stream(
    dim: int, pair: RowPair, times: tuple[int, ...], coins: NDArray[np.bool_]
) -> Stream:
    """Rows of zeros but for the first of each part: a coin decides which of the pair that is."""
    starts = (0, *times[:-1])
    special = {at: pair[0 if coin else 1] for at, coin in zip(starts, coins, strict=True)}
    return stream(dim, times, special)
