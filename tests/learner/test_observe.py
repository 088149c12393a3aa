"""Rows that were decided elsewhere: a warm start under the same guarantee."""

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import LinUCB, Privacy, Problem
from discreet.curator import (
    _changes,
    _observed,
    _releases,
    _state,
    curator,
    sums,
)
from discreet.curator.sums import IntegerSums
from discreet.errors import (
    DiscreetError,
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    ShapeError,
)
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.variants import Variant as Named
from helpers import learner_for, unit_rows
from interrupting import Interrupting

DIM = 3
PROBLEM = Problem(dim=DIM, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
CURATOR = [curator, sums, _changes, _observed, _releases, _state]
TARGET = Privacy(epsilon=2.0, delta=1e-3)


def learner(path: Path | None = None, horizon: int = 1_000, variant: str = "windows") -> LinUCB:
    source = SeededNoise(np.random.SeedSequence(5))
    return LinUCB(
        PROBLEM, horizon=horizon, privacy=TARGET, variant=variant, noise_source=source, path=path
    )


def log(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    actions = rng.standard_normal((rows, DIM))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True) * 1.001
    return actions, rng.uniform(-1, 1, rows)


@pytest.mark.parametrize("name", ["windows", "tight", "gaussian"])
@pytest.mark.parametrize("parts", [1, 7])
def test_it_is_what_choosing_from_one_action_and_learning_would_be(name: str, parts: int) -> None:
    actions, rewards = log(400)
    one, other = learner(variant=name), learner(variant=name)
    for action, reward in zip(actions, rewards, strict=True):
        one.learn(one.choose(action[None]), reward)
    for part in np.array_split(np.arange(400), parts):
        other.observe(actions[part], rewards[part])
    assert (other.rounds, other.rows, other.waiting) == (400, 400, 0)
    assert one.release.number == other.release.number > 3
    np.testing.assert_array_equal(one.release.gram, other.release.gram)
    np.testing.assert_array_equal(one.release.moment, other.release.moment)
    assert [entry.sha256 for entry in one.ledger.entries] == [
        entry.sha256 for entry in other.ledger.entries
    ]


def test_a_stored_learner_has_what_it_observed(tmp_path: Path) -> None:
    actions, rewards = log(300)
    kept = learner(tmp_path / "state")
    waits = kept.choose(np.eye(DIM))
    kept.observe(actions, rewards)
    release = kept.release
    del kept
    again = discreet.load(tmp_path / "state", noise_source=SeededNoise(np.random.SeedSequence(6)))
    assert (again.rounds, again.rows, again.waiting) == (301, 300, 1)
    np.testing.assert_array_equal(again.release.moment, release.moment)
    again.learn(waits.id, 0.5)
    again.observe(actions[:2], rewards[:2])
    assert (again.rounds, again.rows, again.waiting) == (303, 303, 0)


@pytest.mark.parametrize(
    ("actions", "rewards", "kind", "parameter"),
    [
        (np.eye(DIM), [0.1, 0.2], ShapeError, "rewards"),
        (np.eye(DIM), 0.1, ShapeError, "rewards"),
        (np.eye(DIM), [[0.1], [0.2], [0.3]], ShapeError, "rewards"),
        (np.eye(DIM), [0.1, float("nan"), 0.2], NotFiniteError, "reward"),
        (np.eye(DIM), [0.1, 0.2, 3.0], OutOfBoundsError, "reward"),
        (np.eye(DIM), [0.1, "x", 0.2], ShapeError, "reward"),
        (2 * np.eye(DIM), [0.1, 0.2, 0.3], OutOfBoundsError, "actions"),
        (np.eye(2), [0.1, 0.2], ShapeError, "actions"),
        (np.zeros((11, DIM)), [0.0] * 11, HorizonReachedError, "horizon"),
    ],
)
def test_what_cannot_be_used_is_refused_as_a_whole(
    actions: object, rewards: object, kind: type[DiscreetError], parameter: str
) -> None:
    bandit = learner(horizon=10)
    with pytest.raises(kind) as caught:
        bandit.observe(actions, rewards)
    assert caught.value.parameter == parameter
    assert (bandit.rounds, bandit.rows, bandit.waiting) == (0, 0, 0)
    bandit.observe(np.eye(DIM), [0.1, 0.2, 0.3])
    assert (bandit.rounds, bandit.rows) == (3, 3)


def test_nothing_observed_is_nothing_done() -> None:
    bandit = learner()
    bandit.observe(np.empty((0, DIM)), [])
    assert (bandit.rounds, bandit.rows) == (0, 0)


def test_it_gives_up_no_decision_that_waits() -> None:
    bandit = LinUCB(PROBLEM, horizon=100, privacy=TARGET, max_pending=2)
    waiting = bandit.choose_many([np.eye(DIM)] * 2)
    bandit.observe(*log(20))
    assert (bandit.waiting, bandit.given_up) == (2, 0)
    bandit.learn_many([(one, 0.5) for one in waiting])
    assert bandit.rows == 22


def assert_same(found: LinUCB, other: LinUCB) -> None:
    """All releases of two learners, and what they hold."""
    assert (found.rounds, found.rows, found.waiting) == (other.rounds, other.rows, other.waiting)
    assert [entry.sha256 for entry in found.ledger.entries] == [
        entry.sha256 for entry in other.ledger.entries
    ]
    one, two = found._curator._held.sums, other._curator._held.sums
    assert one.position == two.position
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name])


@pytest.mark.parametrize("parts", [[300], [1, 2, 150, 147], [37] * 8])
def test_rows_taken_together_are_to_the_last_bit_what_they_are_one_at_a_time(
    variant: Named, parts: list[int]
) -> None:
    rng = np.random.default_rng(2)
    # Rows of length 1 on the dot, some of which have to be shortened in whole numbers.
    actions = unit_rows(rng, 300, DIM)
    actions[::3] = np.sign(actions[::3]) / np.sqrt(DIM)
    rewards = rng.choice([-1.0, 1.0, 0.3], 300)
    together, one_by_one = (learner_for(variant, PROBLEM, horizon=1_000) for _ in range(2))
    start = 0
    for part in parts:
        together.observe(actions[start : start + part], rewards[start : start + part])
        start += part
    for action, reward in zip(actions[:start], rewards[:start], strict=True):
        one_by_one.learn(one_by_one.choose(action[None]), reward)
    assert_same(together, one_by_one)


def test_most_rows_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = []
    original = IntegerSums._gather

    def counted(sums: IntegerSums, actions: np.ndarray, rewards: np.ndarray) -> None:
        gathered.append(len(rewards))
        original(sums, actions, rewards)

    monkeypatch.setattr(IntegerSums, "_gather", counted)
    bandit = learner()
    bandit.observe(*log(400))
    assert sum(gathered) == 400 - bandit.release.number


def test_rows_taken_together_are_stored_as_they_are_one_at_a_time(tmp_path: Path) -> None:
    actions, rewards = log(60)
    together, one_by_one = learner(tmp_path / "together"), learner(tmp_path / "one by one")
    together.observe(actions, rewards)
    for action, reward in zip(actions, rewards, strict=True):
        one_by_one.learn(one_by_one.choose(action[None]), reward)
    stored = []  # while they are open: to close one stores sums instead
    for name in ("together", "one by one"):
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as database:
            rows = database.execute(
                "SELECT number, substr(value, 17) FROM item WHERE kind = ? ORDER BY number",
                (_changes.ROW,),  # without its seal, which names the learner
            ).fetchall()
        stored.append(rows)
    assert stored[0] == stored[1]
    assert len(stored[0]) == 60


def test_rows_too_long_by_a_trace_are_shortened_in_both_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    original = IntegerSums._rounded

    def counted(sums: IntegerSums, action: np.ndarray, reward: float) -> np.ndarray:
        calls.append(reward)
        return original(sums, action, reward)

    monkeypatch.setattr(IntegerSums, "_rounded", counted)
    together, one_by_one = learner(), learner()
    square = one_by_one._curator._held.sums._largest_square
    monkeypatch.setattr(together._curator._held.sums, "_largest_square", square // 2)
    monkeypatch.setattr(one_by_one._curator._held.sums, "_largest_square", square // 2)
    actions, rewards = log(200)
    actions[::2] *= 0.5  # within the narrower bound, and the others are not
    together.observe(actions, rewards)
    assert 100 <= len(calls) <= 100 + together.release.number
    for action, reward in zip(actions, rewards, strict=True):
        one_by_one.learn(one_by_one.choose(action[None]), reward)
    assert_same(together, one_by_one)


@pytest.mark.parametrize("step", range(2))
def test_an_interrupt_at_any_place_leaves_all_rows_or_none(step: int) -> None:
    actions, rewards = log(60)
    expected = learner()
    expected.observe(actions, rewards)
    assert expected.release.number > 1
    states, at = set(), 1 + step
    while True:
        bandit = learner()
        with contextlib.suppress(KeyboardInterrupt), Interrupting(at, CURATOR) as interrupting:
            bandit.observe(actions, rewards)
        if not interrupting.happened:
            break
        states.add(bandit.rows)
        assert bandit.rounds == bandit.rows
        assert bandit.rows in {0, 60}
        if bandit.rows:
            assert_same(bandit, expected)
        bandit.observe(actions[:5], rewards[:5])
        assert bandit.rounds == bandit.rows
        assert bandit.rows in {5, 65}
        at += 11
    assert states == {0, 60}


def test_a_learner_that_is_stored_later_has_what_it_observed(tmp_path: Path) -> None:
    actions, rewards = log(250)
    bandit = learner()
    bandit.observe(actions[:130], rewards[:130])
    bandit.save(tmp_path / "state")
    bandit.observe(actions[130:], rewards[130:])
    expected = learner()
    expected.observe(actions, rewards)
    np.testing.assert_array_equal(bandit.release.gram, expected.release.gram)
    bandit.close()
    again = discreet.load(tmp_path / "state", noise_source=SeededNoise(np.random.SeedSequence(6)))
    assert (again.rounds, again.rows) == (250, 250)
    np.testing.assert_array_equal(again.release.moment, expected.release.moment)
    again.close()
