"""Rows in whole steps: rounded towards zero, and refused where 64-bit numbers would overflow."""

import numpy as np
import pytest

from discreet.kernels import _linalg as linalg
from discreet.kernels import _rounding as rounding

PER = 2.0**20


def rounded(action: list[float], reward: float) -> tuple[int, list[int]]:
    steps = np.full(len(action) + 1, 77, dtype=np.int64)
    square = rounding.towards_zero(np.array(action), reward, PER, PER, steps)
    return square, steps.tolist()


def packed(action: list[float], reward: float) -> bool:
    row = np.empty(linalg.packed_size(linalg.firsts_of((len(action),))), dtype=np.int64)
    largest = 2**40
    firsts = linalg.firsts_of((len(action),))
    return bool(rounding.packed(np.array(action), reward, PER, PER, largest, 2**20, firsts, row))


def test_a_row_is_rounded_towards_zero() -> None:
    step = 1 / PER
    assert rounded([2.9 * step, -2.9 * step], -1.5 * step) == (8, [2, -2, -1])
    assert packed([0.5, -0.5], 1.0)
    assert not packed([1.5, 0.0], 1.0)
    assert not packed([0.5, 0.0], -1.5)


@pytest.mark.parametrize("huge", [1e300, -1e300, 1e19, 1e10, np.inf, np.nan])
@pytest.mark.parametrize("place", ["action", "reward"])
def test_a_row_that_whole_numbers_cannot_hold_is_refused(huge: float, place: str) -> None:
    action, reward = ([0.5, huge], 0.5) if place == "action" else ([0.5, 0.5], huge)
    assert rounded(action, reward) == (rounding.REFUSED, [0, 0, 0])
    assert not packed(action, reward)


def test_many_entries_that_are_too_large_together_are_refused() -> None:
    # Each square is below 2^62; their sum as 64-bit numbers would wrap around to zero.
    assert rounded([2.0**10] * 16, 0.0)[0] == rounding.REFUSED
    assert rounded([2.0**10], 0.0) == (2**60, [2**30, 0])
