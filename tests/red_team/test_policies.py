"""Policies that try to get something into the sums that the bounds do not allow."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.errors import ParameterError
from helpers import whole_state

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
OFFERED = np.array([(0.3, 0.4), (-0.5, 0.1)])


class Mischief:
    """A policy that does something, and that may be told to behave."""

    optimism = 1.0
    sampling = False

    def __init__(self) -> None:
        self.do: Callable[[Any], Any] = lambda _: 0

    def choose(self, region: object, actions: Any) -> Any:  # noqa: ANN401
        del region
        return self.do(actions)


def overwriting(value: float) -> Callable[[Any], int]:
    def do(actions: Any) -> int:  # noqa: ANN401
        actions.setflags(write=True)
        actions[:] = value
        return 1

    return do


def overwriting_below(value: float) -> Callable[[Any], int]:
    """The same through the array's base, or through its memory, if there is a way."""

    def do(actions: Any) -> int:  # noqa: ANN401
        if actions.base is not None:
            actions.base.setflags(write=True)
            actions.base[...] = value
        else:
            actions.setflags(write=True)
            np.frombuffer(actions.data, dtype=np.float64).reshape(actions.shape)[1] = value
        return 1

    return do


TRICKS: dict[str, Callable[[Any], Any]] = {
    "huge values": overwriting(1e300),
    "values beyond the bound": overwriting(0.8),
    "infinity": overwriting(np.inf),
    "minus infinity": overwriting(-np.inf),
    "nan": overwriting(np.nan),
    "huge values below": overwriting_below(1e10),
    "True": lambda _: True,
    "numpy's True": lambda _: np.True_,
    "0.0": lambda _: 0.0,
    "numpy's 1.0": lambda _: np.float64(1.0),
    "nothing": lambda _: None,
    "text": lambda _: "1",
    "a list": lambda _: [0],
    "an array of two": lambda _: np.array([0, 1]),
    "too large an index": lambda _: 2,
    "a huge index": lambda _: 2**70,
    "a negative index": lambda _: -1,
    "numpy's negative index": lambda _: np.int64(-1),
}


@pytest.fixture(params=["in memory", "stored"])
def learner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[discreet.LinUCB]:
    found = discreet.LinUCB(
        PROBLEM,
        horizon=100,
        privacy=TARGET,
        policy=Mischief(),
        path=tmp_path / "state" if request.param == "stored" else None,
    )
    yield found
    found.close()


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("many", [False, True])
def test_a_policy_that_breaks_the_rules_is_refused_and_does_no_harm(
    learner: discreet.LinUCB, trick: str, *, many: bool, tmp_path: Path
) -> None:
    learner.learn(learner.choose(OFFERED), 0.5)
    before, offered = whole_state(learner), OFFERED.copy()
    learner.policy.do = TRICKS[trick]
    call = learner.choose_many if many else learner.choose
    with pytest.raises(ParameterError, match="policy"):
        call([offered, offered] if many else offered)
    np.testing.assert_array_equal(offered, OFFERED)
    assert whole_state(learner) == before
    learner.policy.do = lambda _: np.int64(1)
    decision = learner.choose(offered)
    assert decision.index == 1
    assert type(decision.index) is int
    np.testing.assert_array_equal(learner._curator._held.waiting[1], OFFERED[1])
    learner.learn(decision, 0.25)
    learner.save(learner.path or tmp_path / "saved")
    held, place = whole_state(learner), learner.path
    learner.close()
    with discreet.load(place, policy=Mischief()) as again:
        assert whole_state(again) == held


def test_what_a_policy_keeps_of_a_decision_set_is_not_what_the_learner_keeps(
    learner: discreet.LinUCB,
) -> None:
    seen: list[Any] = []

    def keep(actions: Any) -> int:  # noqa: ANN401
        seen.append(actions)
        return 0

    learner.policy.do = keep
    decision = learner.choose(OFFERED)
    seen[0].setflags(write=True)
    seen[0][:] = 1e6
    np.testing.assert_array_equal(learner._curator._held.waiting[0], OFFERED[0])
    learner.learn(decision, 0.5)
