"""Rows that were decided elsewhere: a warm start under the same guarantee."""

from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import LinUCB, Privacy, Problem
from discreet.errors import (
    DiscreetError,
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    ShapeError,
)
from discreet.mechanism.noise.sources import SeededNoise

DIM = 3
PROBLEM = Problem(dim=DIM, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
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
