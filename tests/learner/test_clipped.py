"""What was clipped is counted for the curator, and is in nothing that is shown."""

from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import LinUCB, Privacy, Problem
from discreet.errors import OutOfBoundsError

PROBLEM = Problem.between(0, 1, dim=2, action_norm=1, theta_norm=1)
PRIVACY = Privacy(epsilon=1, delta=1e-6)


def clipping(**more: object) -> LinUCB:
    return LinUCB(PROBLEM, horizon=10_000, privacy=PRIVACY, on_violation="clip", **more)


def test_actions_and_rewards_beyond_the_bounds_are_counted() -> None:
    bandit = clipping()
    decision = bandit.choose(2 * np.eye(2))
    assert bandit.clipped == (2, 0)
    bandit.learn(decision, 1.5)
    bandit.learn(bandit.choose(np.eye(2)), 1.0)  # at the bound, not beyond it
    assert bandit.clipped == (2, 1)
    many = bandit.choose_many([np.eye(2), [[3.0, 0.0], [0.0, 1.0]]])
    bandit.learn_many([(many[0], -1), (many[1].id, 0.5)])
    assert bandit.clipped == (3, 2)
    bandit.observe([[0.0, 5.0], [1.0, 0.0], [0.0, 1.0 + 1e-12]], [2.0, 0.0, 7.0])
    assert bandit.clipped == (4, 4)
    bandit.estimate([[9.0, 0.0]])  # nobody was offered this
    assert bandit.clipped == (4, 4)


def test_what_is_refused_is_not_counted() -> None:
    bandit = clipping()
    decision = bandit.choose(np.eye(2))
    with pytest.raises(discreet.errors.NotFiniteError):
        bandit.learn_many([(decision, 5.0), (bandit.choose(np.eye(2)), float("nan"))])
    with pytest.raises(discreet.errors.ShapeError):
        bandit.observe([[5.0, 0.0]], [1.0, 2.0])
    assert bandit.clipped == (0, 0)
    strict = LinUCB(PROBLEM, horizon=100, privacy=PRIVACY)
    with pytest.raises(OutOfBoundsError):
        strict.choose(2 * np.eye(2))
    assert strict.clipped == (0, 0)


def test_counts_are_for_the_curator_and_in_nothing_that_is_shown(tmp_path: Path) -> None:
    clipped, plain = clipping(path=tmp_path / "file"), clipping()
    clipped.observe([[7.0, 0.0]] * 5, [3.0] * 5)
    plain.observe([[1.0, 0.0]] * 5, [1.0] * 5)
    assert clipped.clipped == (5, 5)
    assert "curator only" in str(clipped.clipped)
    assert "curator only" in clipped.clipped._repr_html_()
    assert str(clipped.diagnosis) == str(plain.diagnosis)
    assert repr(clipped) == repr(plain)
    clipped.close()
    assert discreet.load(tmp_path / "file").clipped == (0, 0)  # in memory only
