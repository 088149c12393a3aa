"""Input of the wrong kind, and what numpy turns into numbers that nobody gave.

Such as what a mask hides, and lengths of time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet.errors import ParameterError, ShapeError
from discreet.mechanism.variants import calibrate
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


@pytest.mark.parametrize(
    "wrong",
    [5, None, object(), discreet.Supplied, [1]],
    ids=["a number", "nothing", "an object", "a class", "a list"],
)
def test_what_is_no_variant_is_refused_by_name(wrong: Any) -> None:  # noqa: ANN401
    advice = "variant: is of type .*; give a name, such as 'windows'"
    with pytest.raises(ParameterError, match=advice):
        discreet.LinUCB(PROBLEM, horizon=9, variant=wrong)
    with pytest.raises(ParameterError, match=advice):
        calibrate(wrong, PROBLEM, horizon=9, privacy=None)


@pytest.mark.parametrize(
    "wrong",
    [5, "seed", np.random.default_rng(0), type],
    ids=["a number", "a text", "a generator of numpy", "a class"],
)
def test_what_is_no_source_of_noise_is_refused_by_name(wrong: Any, tmp_path: Path) -> None:  # noqa: ANN401
    advice = r"noise_source: is of type .*; give SeededNoise\(\.\.\.\), or leave it out"
    with pytest.raises(ParameterError, match=advice):
        discreet.LinUCB(PROBLEM, horizon=9, variant="nonprivate", noise_source=wrong)
    mechanism = calibrate("nonprivate", PROBLEM, horizon=9, privacy=None)
    with pytest.raises(ParameterError, match=advice):
        discreet.LinUCB.from_mechanism(mechanism, noise_source=wrong)
    path = tmp_path / "state"
    discreet.LinUCB(PROBLEM, horizon=9, variant="nonprivate", path=path).close()
    with pytest.raises(ParameterError, match=advice):
        discreet.load(path, noise_source=wrong)


@pytest.mark.parametrize("wrong", [5, 0.5, list], ids=repr)
def test_what_is_no_list_is_refused_by_name(learner: discreet.LinUCB, wrong: Any) -> None:  # noqa: ANN401
    decision, sets = learner.choose([[0.1, 0.2]]), [[(0.1, 0.2)]]
    before = whole_state(learner)
    for call, parameter in (
        (lambda: learner.learn_many(wrong), "pairs"),
        (lambda: learner.learn_many([(decision, 0.5)], subjects=wrong), "subjects"),
        (lambda: learner.choose_many(wrong), "sets"),
        (lambda: learner.choose_many(sets, subjects=wrong), "subjects"),
        (lambda: learner.observe(sets[0], [0.5], subjects=wrong), "subjects"),
        (lambda: learner.diagnose(wrong), "sets"),
    ):
        with pytest.raises(ParameterError, match=f"^{parameter}: is of type .*; give a list"):
            call()
    with pytest.raises(ParameterError, match=r"^pairs: is of type NoneType; give a list of pairs"):
        learner.learn_many(None)  # type: ignore[arg-type]
    assert whole_state(learner) == before
    learner.learn(decision, 0.5)
