"""Input that numpy turns into numbers that nobody gave: what a mask hides, lengths of time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.errors import ShapeError
from helpers import whole_state

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)

ACTIONS: dict[str, Any] = {
    "a hidden entry": np.ma.masked_array([[0.3, 0.4], [0.1, 0.7]], mask=[[0, 0], [0, 1]]),
    "a hidden entry out of bounds": np.ma.masked_array([[0.3, 99.0]], mask=[[0, 1]]),
    "nothing but hidden entries": np.ma.masked_array([[0.3, 0.4]], mask=True),
    "lengths of time": np.array([[0, 1]], dtype="timedelta64[s]"),
    "dates": np.array([["2020-01-01", "2020-01-02"]], dtype="datetime64[D]"),
}
REWARDS: dict[str, Any] = {
    "a hidden reward": np.ma.masked,
    "a hidden reward in an array": np.ma.masked_array(0.5, mask=True),
    "a length of time": np.timedelta64(1, "s"),
    "no length of time": np.timedelta64(0, "ns"),
    "not a time": np.timedelta64("NaT"),
    "a date": np.datetime64("1970-01-01"),
}


@pytest.fixture(params=["in memory", "stored"])
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[discreet.LinUCB]:
    path = tmp_path / "state" if request.param == "stored" else None
    with discreet.LinUCB(PROBLEM, horizon=9, variant="nonprivate", path=path) as found:
        yield found


@pytest.mark.parametrize("kind", ACTIONS)
def test_actions_that_are_no_numbers_are_refused(learner: discreet.LinUCB, kind: str) -> None:
    before = whole_state(learner)
    with pytest.raises(ShapeError, match="actions"):
        learner.choose(ACTIONS[kind])
    with pytest.raises(ShapeError, match="actions"):
        learner.choose_many([[(0.1, 0.2)], ACTIONS[kind]])
    assert whole_state(learner) == before


@pytest.mark.parametrize("kind", REWARDS)
def test_rewards_that_are_no_numbers_are_refused(learner: discreet.LinUCB, kind: str) -> None:
    decisions = learner.choose_many([[(0.1, 0.2)], [(0.3, 0.4)]])
    before = whole_state(learner)
    with pytest.raises(ShapeError, match="reward"):
        learner.learn(decisions[0], REWARDS[kind])
    with pytest.raises(ShapeError, match="reward"):
        learner.learn_many([(decisions[0], 0.5), (decisions[1], REWARDS[kind])])
    assert whole_state(learner) == before
    learner.learn_many([(one, 0.5) for one in decisions])
