"""`LinUCB` as its users meet it."""

import copy
import math
import os
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import discreet
from discreet import UCB, Decision, LinUCB, NoiseBounds, Privacy, Problem, Supplied, load
from discreet.curator import storage
from discreet.errors import (
    DecisionClosedError,
    DiscreetError,
    HorizonReachedError,
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
    UnknownDecisionError,
    WrongProcessError,
)
from discreet.privacy import Guarantee
from discreet.schedules import batches, hybrid
from discreet.variants import VARIANTS, Named, named
from helpers import TARGET, learner_for, seeded, unit_rows, whole_state


def test_nonprivate_is_textbook_linucb(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=200, variant="nonprivate", failure_prob=0.1)
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


def test_supplied_perturbations_are_added_to_the_exact_statistics(problem: Problem) -> None:
    def perturbations(turn: int) -> tuple[np.ndarray, np.ndarray]:
        return (2.0 + turn) * np.eye(3) + 0.1, np.full(3, 0.01 * turn)

    variant = Supplied(
        perturbations=perturbations, bounds=NoiseBounds(rho_min=2.0, rho_max=80.0, gamma=0.5)
    )
    learner = LinUCB(problem, horizon=50, variant=variant, failure_prob=0.1)
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    rng = np.random.default_rng(2)
    for turn in range(1, 51):
        regularizer, offset = perturbations(turn)
        release = learner.release
        np.testing.assert_allclose(release.gram, gram + regularizer, rtol=1e-13)
        np.testing.assert_allclose(release.moment, moment + offset, rtol=1e-12, atol=1e-15)
        log_det = np.linalg.slogdet(release.gram)[1]
        beta = math.sqrt(2 * math.log(2 / 0.1) + log_det - 3 * math.log(2.0))
        assert learner.confidence.radius == pytest.approx(beta + math.sqrt(80.0) + 0.5, rel=1e-12)
        actions = unit_rows(rng, 4, 3)
        decision = learner.choose(actions)
        learner.learn(decision, 0.5)
        x = actions[decision.index]
        gram += np.outer(x, x)
        moment += 0.5 * x
    assert not learner.guarantee.private
    assert "supplied by the caller" in str(learner.guarantee)


def test_a_callers_own_guarantee_is_passed_on(problem: Problem) -> None:
    mine = Guarantee(epsilon=3.0, delta=1e-9, argument="a proof of my own")
    variant = Supplied(
        perturbations=lambda _: (np.eye(3), np.zeros(3)),
        bounds=NoiseBounds(rho_min=1.0, rho_max=1.0, gamma=0.0),
        guarantee=mine,
    )
    assert LinUCB(problem, horizon=5, variant=variant).release.guarantee == mine


@pytest.mark.parametrize(
    ("pair", "error"),
    [
        ((np.eye(2), np.zeros(3)), ShapeError),
        ((np.eye(3), np.zeros(2)), ShapeError),
        ((np.eye(3) * math.nan, np.zeros(3)), NotFiniteError),
        ((np.triu(np.ones((3, 3))), np.zeros(3)), ShapeError),
        ((1.0,), ShapeError),
        (("a", "b"), ShapeError),
        (None, ShapeError),
    ],
)
def test_malformed_perturbations_are_refused(
    problem: Problem, pair: tuple, error: type[DiscreetError]
) -> None:
    bounds = NoiseBounds(rho_min=1.0, rho_max=1.0, gamma=0.0)
    learner = LinUCB(
        problem, horizon=5, variant=Supplied(perturbations=lambda _: pair, bounds=bounds)
    )
    with pytest.raises(error, match="perturbations"):
        learner.choose(np.eye(3))
    assert learner.rounds == 0


def test_supplied_perturbations_must_be_given_again_after_a_restart(
    problem: Problem, tmp_path: Path
) -> None:
    def perturbations(_: int) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(3), np.zeros(3)

    bounds = NoiseBounds(rho_min=1.0, rho_max=1.0, gamma=0.0)
    learner = LinUCB(
        problem, horizon=5, variant=Supplied(perturbations=perturbations, bounds=bounds)
    )
    learner.learn(learner.choose(np.eye(3)), 1)
    learner.save(tmp_path / "file")
    with pytest.raises(ParameterError, match="perturbations: must be given again"):
        load(tmp_path / "file")
    restored = load(tmp_path / "file", perturbations=perturbations)
    np.testing.assert_array_equal(restored.release.gram, learner.release.gram)


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
        state = whole_state(learner)["state"]
        arrays = [state["actions"], *state["sums"].values()]
        return sum(math.prod(array["shape"]) for array in arrays)

    for _ in range(10):
        learner.learn(learner.choose(np.eye(3)), 1)
    early = numbers_kept()
    for _ in range(3000):
        learner.learn(learner.choose(np.eye(3)), 1)
    assert numbers_kept() == early


def test_decisions_beyond_max_pending_are_given_up_oldest_first(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=99, variant="nonprivate", max_pending=3)
    decisions = [learner.choose(np.eye(3)) for _ in range(5)]
    assert learner.waiting == 3
    with pytest.raises(DecisionClosedError, match="max_pending=3"):
        learner.learn(decisions[1], 1)
    learner.learn(decisions[2], 1)


def test_a_forgotten_decision_is_erased(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=99, variant="nonprivate")
    decision = learner.choose([[0.123456, 0.0, 0.0]])
    learner.forget(decision)
    assert whole_state(learner)["state"]["waiting"] == []
    with pytest.raises(DecisionClosedError):
        learner.learn(decision, 1)


def test_a_release_is_the_same_object_until_the_next_one(variant: Named, problem: Problem) -> None:
    learner = learner_for(variant, problem)
    schedule = learner.mechanism.schedule
    assert schedule.after(0) == (20 if variant.name == "tight" else 1)
    before = learner.release
    assert (before.number, before.rows) == (0, 0)
    for rows in range(1, 50):
        decision = learner.choose(np.eye(3))
        assert learner.release is before
        learner.learn(decision, 1)
        release = learner.release
        assert (release is before) == (rows != schedule.after(before.rows))
        if release is not before:
            assert (release.number, release.rows) == (before.number + 1, rows)
        before = release


def test_a_release_cannot_be_altered(problem: Problem) -> None:
    release = LinUCB(problem, horizon=9, privacy=TARGET).release
    with pytest.raises(ValueError, match="read-only"):
        release.gram[0, 0] = 0.0
    with pytest.raises(AttributeError):
        release.rows = 7


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
    assert learner.release.rows == (0 if variant.name == "tight" else 1)


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
        ({"on_violation": "ignore"}, "on_violation"),
        ({"max_pending": 0}, "max_pending"),
        ({"variant": named("wishart").with_tree("covering")}, "tree"),
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


@pytest.mark.parametrize(
    "form", [named("gaussian"), named("tight").with_schedule(batches(2))], ids=["row", "batch"]
)
def test_an_interrupt_while_noise_is_drawn_changes_nothing(form: Named, problem: Problem) -> None:
    # The second row draws noise: every row does, or it is the last of a batch.
    class Interrupting:
        secret = False
        armed = False

        def normals(self, count: int) -> np.ndarray:
            if self.armed:
                raise KeyboardInterrupt
            return np.zeros(count)

        def chi_squares(self, dofs: np.ndarray) -> np.ndarray:
            raise NotImplementedError

    source = Interrupting()
    learner = LinUCB(problem, horizon=8, privacy=TARGET, variant=form, noise_source=source)
    learner.learn(learner.choose(np.eye(3)), 1)
    decision = learner.choose(np.eye(3))
    before = whole_state(learner)
    source.armed = True
    with pytest.raises(KeyboardInterrupt):
        learner.learn(decision, 1)
    assert whole_state(learner) == before
    source.armed = False
    learner.learn(decision, 1)
    assert learner.rows == learner.release.rows == 2


def test_the_policy_survives_a_restart(problem: Problem, tmp_path: Path) -> None:
    for policy in (UCB(optimism=0.5), discreet.greedy(), discreet.Thompson(optimism=0.1)):
        learner = LinUCB(problem, horizon=5, variant="nonprivate", policy=policy)
        learner.save(tmp_path / "file")
        assert load(tmp_path / "file").policy == policy


class Last:
    """A policy of a user's own."""

    optimism = 0.0
    sampling = False

    def choose(self, _: object, actions: np.ndarray) -> int:
        return len(actions) - 1


def test_a_policy_of_ones_own_must_be_given_again(problem: Problem, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=5, variant="nonprivate", policy=Last())
    assert learner.choose(np.eye(3)).index == 2
    learner.save(tmp_path / "file")
    with pytest.raises(ParameterError, match="policy: must be given again"):
        load(tmp_path / "file")
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
    LinUCB(problem, horizon=5, privacy=TARGET).save(tmp_path / "file")
    with pytest.raises(ParameterError, match=r"^policy: is of type str"):
        load(tmp_path / "file", policy="ucb")


class Ones:
    """Noise that counts itself."""

    secret = False

    def normals(self, count: int) -> np.ndarray:
        return np.ones(count)

    def chi_squares(self, dofs: np.ndarray) -> np.ndarray:
        return np.ones(dofs.size)


@pytest.mark.parametrize("tree", ["pan-private", "covering"])
def test_a_release_holds_as_many_draws_as_its_tree_promises(problem: Problem, tree: str) -> None:
    variant = named("gaussian").with_tree(tree)
    learner = LinUCB(problem, horizon=64, privacy=TARGET, variant=variant, noise_source=Ones())
    std, shift = learner.mechanism.noise.std, learner.mechanism.shift
    gram = np.zeros((3, 3))
    for rows in range(65):
        draws = 7 if tree == "pan-private" else rows.bit_count()
        noise = learner.release.gram - gram - shift * np.eye(3)
        expected = draws * std * (np.ones((3, 3)) + (math.sqrt(2) - 1) * np.eye(3))
        np.testing.assert_allclose(noise, expected, rtol=1e-9, atol=1e-6)
        if rows < 64:
            action = np.eye(3)[rows % 3]
            learner.learn(learner.choose([action]), 1)
            gram += np.outer(action, action)


def test_the_difference_of_releases_never_shows_their_rows(
    private_variant: Named, problem: Problem
) -> None:
    # Subtracting the rows between two releases from their difference must leave noise of the size
    # of a draw, in every entry; one entry below a thousandth of it has probability below 1e-3, and
    # all of the six below it in any of 64 steps below 1e-16.
    learner = LinUCB(problem, horizon=64, privacy=TARGET, variant=private_variant)
    node = learner.mechanism.noise.draw(learner._curator._sums._source, 3, 200).std(axis=0).min()
    action = np.array([0.6, 0.8, 0.0])
    for _ in range(64):
        before = learner.release
        learner.learn(learner.choose([action]), 1)
        now = learner.release
        if now is not before:
            rows = now.rows - before.rows
            left = now.gram - before.gram - rows * np.outer(action, action)
            assert np.abs(left).max() > 1e-3 * node
    assert learner.release.number == learner.mechanism.releases


def test_perturbations_cannot_be_slipped_in_by_a_restart(problem: Problem, tmp_path: Path) -> None:
    LinUCB(problem, horizon=5, privacy=TARGET).save(tmp_path / "file")
    with pytest.raises(ParameterError, match="perturbations: were not part"):
        load(tmp_path / "file", perturbations=lambda _: (np.eye(3), np.zeros(3)))


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
    ):
        with pytest.raises(WrongProcessError, match="keep the learner in one process"):
            call()
    assert not (tmp_path / "file").exists()


def test_a_decision_lost_in_a_crash_is_not_mistaken_for_a_later_one(
    problem: Problem, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=9, privacy=TARGET)
    kept = learner.choose(np.eye(3))
    learner.learn(learner.choose(np.eye(3)), 1)
    learner.save(tmp_path / "file")
    lost = learner.choose(np.eye(3))  # and then the process dies
    restored = load(tmp_path / "file")
    later = restored.choose(np.eye(3))
    assert later.id != lost.id
    with pytest.raises(UnknownDecisionError):
        restored.learn(lost, 1)
    restored.learn(later, 1)
    restored.learn(kept, 1)
    restored.save(tmp_path / "file")
    with pytest.raises(DecisionClosedError):
        load(tmp_path / "file").learn(kept, 1)


def test_a_slow_save_never_replaces_a_newer_one(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = storage.write

    def slow(path: Path, body: dict) -> None:
        time.sleep(0.002 * (body["state"]["rows"] % 3))
        honest(path, body)

    monkeypatch.setattr(storage, "write", slow)
    learner = LinUCB(problem, horizon=500, privacy=TARGET)
    seen = []

    def work() -> None:
        for _ in range(15):
            learner.learn(learner.choose(np.eye(3)), 1)
            before = learner.rows
            learner.save(tmp_path / "file")
            seen.append(storage.read(tmp_path / "file")["state"]["rows"] >= before)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(seen)
    assert load(tmp_path / "file").rows == 60


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
    assert set(discreet.__all__) == set(discreet._HOME)
    assert discreet.errors.DiscreetError is discreet.DiscreetError
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing


ROWS = [*VARIANTS.values(), named("tight").with_schedule(hybrid(start=3, ratio=0.4))]


class AnyOrderOfCalls(RuleBasedStateMachine):
    """Whatever the order of calls, the counts add up and a restart changes nothing."""

    folder: Path

    @initialize(variant=st.sampled_from(ROWS))
    def start(self, variant: Named) -> None:
        problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        self.source = seeded(0)
        self.learner = LinUCB(
            problem,
            horizon=40,
            privacy=TARGET if variant.private else None,
            variant=variant,
            noise_source=self.source,
            max_pending=5,
        )
        self.open: list[str] = []
        self.ids: list[str] = []
        self.rewarded = 0
        self.made = 0

    @rule(angle=st.floats(0, 6.28))
    def choose(self, angle: float) -> None:
        actions = 0.99 * np.array([[math.cos(angle), math.sin(angle)], [0.0, 0.5]])
        if self.made == 40:
            with pytest.raises(HorizonReachedError):
                self.learner.choose(actions)
            return
        made = self.learner.choose(actions)
        self.open = [*self.open, made.id][-5:]
        self.ids.append(made.id)
        self.made += 1

    @rule(pick=st.integers(0, 50), reward=st.floats(-1, 1))
    def learn(self, pick: int, reward: float) -> None:
        if pick >= self.made:
            with pytest.raises(UnknownDecisionError):
                self.learner.learn(f"00000000-{pick}", reward)
        elif self.ids[pick] in self.open:
            self.learner.learn(self.ids[pick], reward)
            self.open.remove(self.ids[pick])
            self.rewarded += 1
        else:
            with pytest.raises(DecisionClosedError):
                self.learner.learn(self.ids[pick], reward)

    @rule()
    def restart(self) -> None:
        path = self.folder / "state"
        self.learner.save(path)
        release = self.learner.release
        self.learner = load(path, noise_source=self.source)
        np.testing.assert_array_equal(self.learner.release.gram, release.gram)
        np.testing.assert_array_equal(self.learner.release.moment, release.moment)

    @invariant()
    def counts_add_up(self) -> None:
        assert self.learner.rounds == self.made
        assert self.learner.rows == self.rewarded
        times = self.learner.mechanism.schedule.times(self.rewarded)
        release = self.learner.release
        assert (release.number, release.rows) == (len(times), max(times, default=0))
        assert self.learner.waiting == len(self.open)


def test_any_order_of_calls_is_safe(tmp_path: Path) -> None:
    AnyOrderOfCalls.folder = tmp_path
    machine = AnyOrderOfCalls.TestCase()
    machine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
    machine.runTest()
