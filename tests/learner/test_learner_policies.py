"""Policies in a learner: those of a user's own, and what a restart keeps of them."""

from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import UCB, LinUCB, Problem, load
from discreet.errors import ParameterError
from helpers import TARGET, restarted


@pytest.mark.parametrize(
    "policy", [UCB(optimism=0.5), discreet.greedy(), discreet.Thompson(optimism=0.1)], ids=repr
)
def test_the_policy_survives_a_restart(policy: UCB, problem: Problem, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=5, variant="nonprivate", policy=policy)
    assert restarted(learner, tmp_path / "file").policy == policy


def test_another_policy_can_be_given_at_a_restart(problem: Problem, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=5, variant="nonprivate", policy=UCB(optimism=0.5))
    restored = restarted(learner, tmp_path / "file", policy=discreet.greedy())
    assert restored.policy == discreet.greedy()
    restored.save()
    restored.close()
    assert load(tmp_path / "file").policy == discreet.greedy()


class Last:
    """A policy of a user's own."""

    optimism = 0.0
    sampling = False

    def choose(self, _: object, actions: np.ndarray) -> int:
        return len(actions) - 1


def test_a_policy_of_ones_own_must_be_given_again(problem: Problem, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=5, variant="nonprivate", policy=Last())
    assert learner.choose(np.eye(3)).index == 2
    with pytest.raises(ParameterError, match="policy: must be given again"):
        restarted(learner, tmp_path / "file")
    assert load(tmp_path / "file", policy=Last()).choose(np.eye(3)).index == 2


@pytest.mark.parametrize("index", [-1, 3])
def test_a_policy_that_chooses_nothing_is_refused(problem: Problem, index: int) -> None:
    policy = Last()
    policy.choose = lambda *_: index
    learner = LinUCB(problem, horizon=5, variant="nonprivate", policy=policy)
    with pytest.raises(ParameterError, match="policy: chose no action"):
        learner.choose(np.eye(3))
    assert learner.rounds == 0


def test_a_policy_cannot_undo_the_bounds(problem: Problem) -> None:
    class Stretching(Last):
        def choose(self, _: object, actions: np.ndarray) -> int:
            actions *= 100.0
            return 0

    learner = LinUCB(problem, horizon=5, privacy=TARGET, policy=Stretching())
    with pytest.raises(ValueError, match="read-only"):
        learner.choose(np.eye(3))
    assert learner.rounds == 0


def test_a_policy_for_a_restart_must_be_one(problem: Problem, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=5, privacy=TARGET)
    with pytest.raises(ParameterError, match=r"^policy: is of type str"):
        restarted(learner, tmp_path / "file", policy="ucb")
