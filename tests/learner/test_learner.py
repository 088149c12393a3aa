"""`LinUCB` as its users meet it: choosing, learning, and what is refused."""

import copy
import math
import os
import pickle
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import UCB, Decision, LinUCB, Privacy, Problem
from discreet.errors import (
    DecisionClosedError,
    GivenUpWarning,
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
    UnknownDecisionError,
    WrongProcessError,
)
from discreet.mechanism.variants import Named, named
from helpers import TARGET, learner_for, unit_rows, whole_state


def test_nonprivate_is_textbook_linucb(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=200, variant="nonprivate", failure_prob=0.1, policy=UCB())
    gram, moment = np.eye(3), np.zeros(3)
    rng = np.random.default_rng(1)
    for _ in range(200):
        actions = 0.9 * rng.random() * unit_rows(rng, 8, 3)
        beta = math.sqrt(2 * math.log(2 / 0.1) + np.linalg.slogdet(gram)[1]) + 1.0
        theta = np.linalg.solve(gram, moment)
        widths = np.sqrt(np.einsum("kd,kd->k", actions, np.linalg.solve(gram, actions.T).T))
        decision = learner.choose(actions)
        assert decision.index == int(np.argmax(actions @ theta + beta * widths))
        assert learner.confidence.radius == pytest.approx(beta, rel=1e-12)
        reward = float(np.clip(actions[decision.index] @ [0.5, -0.2, 0.1] + rng.normal(), -1, 1))
        learner.learn(decision, reward)
        x = actions[decision.index]
        gram += np.outer(x, x)
        moment += reward * x
    np.testing.assert_allclose(learner.release.gram, gram, rtol=1e-12)


def test_rewards_may_come_late_out_of_order_or_never(variant: Named, problem: Problem) -> None:
    rng = np.random.default_rng(0)
    prompt, late = (learner_for(variant, problem, seed=1) for _ in range(2))
    sets = [unit_rows(rng, 5, 3) for _ in range(10)]
    decisions = [late.choose(actions) for actions in sets]
    assert late.waiting == 10
    order = [7, 2, 9, 0, 4]
    for number in order:
        late.learn(decisions[number].id, 0.1 * number)
    for number in order:
        # The same rows in the same order, each chosen from a set of one: the same release.
        x = sets[number][decisions[number].index]
        prompt.learn(prompt.choose(x[None, :]), 0.1 * number)
    assert (late.rows, late.waiting, late.rounds) == (5, 5, 10)
    np.testing.assert_array_equal(late.release.gram, prompt.release.gram)
    np.testing.assert_array_equal(late.release.moment, prompt.release.moment)


def test_state_does_not_grow_with_rounds(variant: Named, problem: Problem) -> None:
    learner = learner_for(variant, problem, horizon=4096)

    def numbers_kept() -> int:
        arrays = learner._curator._held.sums.arrays().values()
        return sum(array.size for array in arrays) + len(whole_state(learner))

    for _ in range(10):
        learner.learn(learner.choose(np.eye(3)), 1)
    early = numbers_kept()
    for _ in range(3000):
        learner.learn(learner.choose(np.eye(3)), 1)
    assert numbers_kept() == early


def test_decisions_beyond_max_pending_are_given_up_oldest_first(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=99, variant="nonprivate", max_pending=3)
    decisions = [learner.choose(np.eye(3)) for _ in range(3)]
    assert learner.given_up == 0
    for number in (1, 2):
        with pytest.warns(GivenUpWarning, match="more than max_pending=3 decisions wait"):
            decisions.append(learner.choose(np.eye(3)))
        assert (learner.waiting, learner.given_up) == (3, number)
    with pytest.raises(DecisionClosedError, match="max_pending=3"):
        learner.learn(decisions[1], 1)
    learner.learn(decisions[2], 1)


def test_a_forgotten_decision_is_erased(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=99, variant="nonprivate")
    decision = learner.choose([[0.123456, 0.0, 0.0]])
    trace = struct.pack("<d", 0.123456)
    assert any(trace in value for value in whole_state(learner).values())
    learner.forget(decision)
    assert not any(trace in value for value in whole_state(learner).values())
    assert not learner._curator._held.waiting
    with pytest.raises(DecisionClosedError):
        learner.learn(decision, 1)


ROW = [0.31415926, 0.2718281, 0.0]


def later(made: Decision, number: int) -> str:
    """The id that the same learner gives to another decision."""
    return f"{made.id.rpartition('-')[0]}-{number}"


BAD_CALLS = {
    "wrong shape": (lambda bandit, _: bandit.choose([[*ROW, 0.0]]), ShapeError),
    "no action": (lambda bandit, _: bandit.choose([]), discreet.errors.EmptyDecisionSetError),
    "NaN feature": (lambda bandit, _: bandit.choose([[math.nan, *ROW[1:]]]), NotFiniteError),
    "long row": (lambda bandit, _: bandit.choose([[3.0, *ROW[1:]]]), OutOfBoundsError),
    "NaN reward": (lambda bandit, made: bandit.learn(made, math.nan), NotFiniteError),
    "infinite reward": (lambda bandit, made: bandit.learn(made, -math.inf), NotFiniteError),
    "large reward": (lambda bandit, made: bandit.learn(made, 31415926), OutOfBoundsError),
    "enormous reward": (lambda bandit, made: bandit.learn(made, 10**400), NotFiniteError),
    "no reward": (lambda bandit, made: bandit.learn(made, None), ShapeError),
    "unknown decision": (
        lambda bandit, made: bandit.learn(Decision(0, later(made, 99)), 1),
        UnknownDecisionError,
    ),
    "negative decision": (
        lambda bandit, made: bandit.learn(later(made, -1), 1),
        UnknownDecisionError,
    ),
    "strange decision": (lambda bandit, _: bandit.learn("0", 1), UnknownDecisionError),
    "a number": (lambda bandit, _: bandit.learn(1, 1), UnknownDecisionError),
    "a list": (lambda bandit, _: bandit.learn([1], 1), UnknownDecisionError),
    "a long number": (
        lambda bandit, made: bandit.learn(later(made, 0) + "9" * 9999, 1),
        UnknownDecisionError,
    ),
    "no decision": (lambda bandit, _: bandit.learn(None, 1), UnknownDecisionError),
    "another learner's": (
        lambda bandit, made: bandit.learn("00000000-1" + made.id[10:], 1),
        UnknownDecisionError,
    ),
    "second reward": (lambda bandit, made: bandit.learn(later(made, 0), 1), DecisionClosedError),
    "forget unknown": (lambda bandit, made: bandit.forget(later(made, 99)), UnknownDecisionError),
    "forget twice": (lambda bandit, made: bandit.forget(later(made, 0)), DecisionClosedError),
}


@pytest.mark.parametrize("call", BAD_CALLS)
def test_a_bad_call_changes_nothing_and_shows_no_row(
    variant: Named, problem: Problem, call: str
) -> None:
    learner = learner_for(variant, problem)
    learner.learn(learner.choose([ROW]), 1)
    made = learner.choose([ROW])
    before, release = whole_state(learner), learner.release
    action, error = BAD_CALLS[call]
    with pytest.raises(error) as caught:
        action(learner, made)
    assert whole_state(learner) == before
    assert learner.release is release
    for digits in ("3141", "2718"):
        assert digits not in str(caught.value)
    learner.learn(made, 1)  # and it goes on


def test_the_horizon_is_the_end(variant: Named, problem: Problem) -> None:
    learner = learner_for(variant, problem, horizon=3)
    for _ in range(3):
        last = learner.choose(np.eye(3))
    before = whole_state(learner)
    with pytest.raises(HorizonReachedError, match="all 3 rounds have been played"):
        learner.choose(np.eye(3))
    assert whole_state(learner) == before
    learner.learn(last, 1)  # rewards may still come in
    assert learner.rows == 1
    assert learner.release.rows == (1 if learner.mechanism.schedule.every_round else 0)
    assert learner.mechanism.schedule.every_round == (variant.name not in {"tight", "windows"})


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2.5}, "horizon"),
        ({"horizon": math.inf}, "horizon"),
        ({"horizon": 2**63}, "horizon"),
        ({"horizon": True}, "horizon"),
        ({"failure_prob": 0.0}, "failure_prob"),
        ({"failure_prob": 1.0}, "failure_prob"),
        ({"variant": "nope"}, "variant"),
        ({"privacy": None}, "privacy"),
        ({"noise": "none"}, "noise"),
        ({"variant": "wishart"}, "noise"),
        ({"on_violation": "ignore"}, "on_violation"),
        ({"max_pending": 0}, "max_pending"),
        ({"variant": named("wishart").with_tree("covering"), "noise": "float"}, "tree"),
        ({"variant": named("gaussian").with_shift(0.0)}, "shift"),
    ],
)
def test_bad_settings_are_refused_by_name(problem: Problem, change: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        LinUCB(problem, **{"horizon": 10, "privacy": TARGET, **change})
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None])
def test_a_bad_epsilon_is_refused(epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon: "):
        Privacy(epsilon=epsilon, delta=0.1)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, math.nan, None])
def test_a_bad_delta_is_refused(delta: object) -> None:
    with pytest.raises(ParameterError, match="delta: "):
        Privacy(epsilon=1, delta=delta)


def test_reprs_and_the_guarantee_show_no_row(variant: Named, problem: Problem) -> None:
    learner = learner_for(variant, problem)
    learner.learn(learner.choose([ROW]), 0.5)
    learner.choose([ROW])
    shown = [repr(learner), repr(learner._curator), repr(learner.release), str(learner.guarantee)]
    shown += [repr(learner.ledger), str(learner.ledger)]
    for text in shown:
        assert "3141" not in text
        assert "array" not in text


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(problem: Problem, copied: object) -> None:
    learner = LinUCB(problem, horizon=5, privacy=TARGET)
    for thing in (learner, learner._curator):
        with pytest.raises(TypeError, match="use save and load"):
            copied(thing)


def test_clipping_is_on_request(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=5, variant="nonprivate", on_violation="clip")
    learner.learn(learner.choose([[30.0, 40.0, 0.0]]), -7)
    np.testing.assert_allclose(
        learner.release.gram, np.eye(3) + np.outer([0.6, 0.8, 0], [0.6, 0.8, 0]), rtol=1e-12
    )
    np.testing.assert_allclose(learner.release.moment, [-0.6, -0.8, 0.0], rtol=1e-12)


def test_threads_do_not_lose_rows(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=4000, privacy=TARGET)

    def work() -> None:
        for _ in range(500):
            learner.learn(learner.choose(np.eye(3)), 1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (learner.rounds, learner.rows, learner.waiting) == (2000, 2000, 0)


def test_decisions_of_another_learner_are_unknown(problem: Problem) -> None:
    first, second = (LinUCB(problem, horizon=5, variant="nonprivate") for _ in range(2))
    foreign = first.choose(np.eye(3))
    second.choose(np.eye(3))
    with pytest.raises(UnknownDecisionError):
        second.learn(foreign, 1)


def test_a_forked_process_is_refused(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = LinUCB(problem, horizon=5, privacy=TARGET)
    decision = learner.choose(np.eye(3))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for call in (
        lambda: learner.choose(np.eye(3)),
        lambda: learner.learn(decision, 1),
        lambda: learner.forget(decision),
        lambda: learner.save(tmp_path / "file"),
        lambda: learner.release,
        lambda: learner.ledger,
    ):
        with pytest.raises(WrongProcessError, match="keep the learner in one process"):
            call()
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"problem": "x"}, "problem"),
        ({"privacy": (1, 1e-6)}, "privacy"),
        ({"policy": "ucb"}, "policy"),
    ],
)
def test_things_of_another_kind_are_refused_by_name(
    problem: Problem, change: dict, parameter: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{parameter}: is of type"):
        LinUCB(**{"problem": problem, "horizon": 5, "privacy": TARGET, **change})


def test_the_public_names_are_all_there() -> None:
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert set(dir(discreet)) >= set(discreet.__all__)
    assert set(discreet.__all__) == {*discreet._HOME, "__version__"}
    assert discreet.errors.DiscreetError is discreet.DiscreetError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing
