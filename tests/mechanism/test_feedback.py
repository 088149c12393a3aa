"""Correlated noise in whole numbers: what rounding can add, and that nothing else changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.kernels._windows import Step
from discreet.mechanism import _feedback as feedback
from discreet.mechanism.strategies import (
    Buffered,
    Optimised,
    SquareRoot,
    Strategy,
    Tree,
    independent,
)

RELEASES = 40
NEVER = Step(0, 1, 2)  # release times, which these strategies do not look at
SHARED: list[Strategy] = [
    Buffered(),
    Buffered(exponent=0.8, spacing=0.7),
    independent(),
    SquareRoot(),
    Optimised(1 / np.arange(1, RELEASES + 1)),
]


def whole(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=object)


def explained(shared: feedback.Feedback, noise: list[int]) -> list[int]:
    """The draws z that lead to noise w."""
    memory, draws = shared.memory(1), []
    for value in noise:
        back = -shared.follow(memory, whole([0]))[0][0]
        draws.append(value + back)
        found, memory = shared.follow(memory, whole([value + back]))
        assert found[0] == value
    return draws


@pytest.mark.parametrize("strategy", SHARED, ids=lambda s: s.kind)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_neighbours_need_draws_that_differ_by_a_column_of_the_encoder_and_one_rounding(
    strategy: Strategy, data: st.DataObject
) -> None:
    """What the accounting assumes: releases fixed, the draws behind them move by C Delta + r."""
    noise = data.draw(st.lists(st.integers(-(2**50), 2**50), min_size=RELEASES, max_size=RELEASES))
    place = data.draw(st.integers(0, RELEASES - 1))
    change = data.draw(st.integers(-(2**41), 2**41))
    shared = strategy.feedback(RELEASES)
    assert shared is not None
    other = list(noise)
    other[place] -= change
    moved = np.array(explained(shared, other)) - np.array(explained(shared, noise))
    encoder = strategy.encoder(RELEASES)
    column = encoder[:, place] / np.diag(encoder)
    rest = np.array([float(m) for m in moved]) + column * change
    assert np.abs(rest).max() <= shared.rounding + 1e-12 * abs(change)


@pytest.mark.parametrize("strategy", SHARED, ids=lambda s: s.kind)
def test_whole_noise_is_the_strategys_noise_give_or_take_a_few_steps(strategy: Strategy) -> None:
    shared = strategy.feedback(RELEASES)
    assert shared is not None
    rng = np.random.default_rng(5)
    draws = rng.integers(-(2**45), 2**45, size=(RELEASES, 3))
    memory, total, found = shared.memory(3), whole([0, 0, 0]), []
    for number, draw in enumerate(draws, 1):
        assert shared.spread(number, NEVER) <= shared.widest
        noise, memory = shared.follow(memory, draw.astype(object))
        total = total + noise
        found.append(total.astype(float))
    encoder = strategy.encoder(RELEASES)
    expected = strategy.decoder(RELEASES) @ (np.diag(encoder)[:, None] * draws)
    assert np.abs(np.array(found) - expected).max() < 3 * RELEASES


def test_following_changes_nothing_that_was_there() -> None:
    shared = Buffered().feedback(RELEASES)
    assert shared is not None
    memory = shared.memory(2)
    before, fresh = memory.copy(), whole([5, -9])
    shared.follow(memory, fresh)
    assert (memory == before).all()
    assert list(fresh) == [5, -9]


def test_a_tree_needs_no_feedback_and_pays_nothing_for_rounding() -> None:
    assert Tree().feedback(100) is None
    assert feedback.slack(Tree().feedback(100), releases=100, size=20, std=1.0) == 0.0


def test_the_price_of_rounding_falls_with_the_noise_and_grows_with_the_numbers() -> None:
    price = feedback.slack(Buffered().feedback(100), releases=100, size=20, std=1e6)
    assert price == pytest.approx((100 * 20) ** 0.5 / 1e6, rel=1e-6)
    assert feedback.slack(Buffered().feedback(100), releases=100, size=20, std=2e6) < price
    assert feedback.slack(Buffered().feedback(400), releases=400, size=20, std=1e6) > price
