"""Several decisions in one call, and several threads in one commit."""

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from discreet import UCB, LinUCB, Problem, load
from discreet.curator.store import Place
from discreet.errors import (
    DecisionClosedError,
    DiscreetError,
    GivenUpWarning,
    HorizonReachedError,
    OutOfBoundsError,
    ParameterError,
    StoreError,
    UnknownDecisionError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import Named, named
from helpers import (
    TARGET,
    assert_same,
    crashed,
    full_disk,
    learner_for,
    played,
    restarted,
    seeded,
    unit_rows,
    watched,
    whole_state,
)

BATCHED = named("tight").with_schedule(batches(3))


# choose_many and learn_many


def test_many_at_once_is_what_one_after_the_other_is(variant: Named, problem: Problem) -> None:
    rng = np.random.default_rng(0)
    # By a rule that leaves nothing to chance.
    one, many = (learner_for(variant, problem, seed=3, policy=UCB()) for _ in range(2))
    for _ in range(4):
        sets = [unit_rows(rng, 4, 3) for _ in range(5)]
        rewards = rng.uniform(-1, 1, 5).tolist()
        first = [one.choose(actions) for actions in sets]  # from one release, as rewards come later
        second = many.choose_many(sets)
        assert [made.index for made in first] == [made.index for made in second]
        for made, reward in zip(first, rewards, strict=True):
            one.learn(made, reward)
        many.learn_many(zip(second, rewards, strict=True))
    assert_same_sums(one, many)
    assert (many.rounds, many.rows, many.waiting) == (20, 20, 0)
    assert len(many.ledger) == len(one.ledger)


def assert_same_sums(one: LinUCB, many: LinUCB) -> None:
    np.testing.assert_array_equal(one.release.gram, many.release.gram)
    np.testing.assert_array_equal(one.release.moment, many.release.moment)
    assert one.release.number == many.release.number


def test_many_at_once_are_one_commit(problem: Problem, place: Place, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=99, privacy=TARGET, variant=BATCHED, path=place)
    store = watched(learner)
    made = learner.choose_many([np.eye(3)] * 10)
    assert len(store.commits) == 1
    learner.learn_many((decision.id, 0.5) for decision in made)
    assert len(store.commits) == 2
    assert store.appends == 1  # three releases in one go
    assert (learner.rows, learner.release.number, len(learner.ledger)) == (10, 3, 3)
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


def test_nothing_at_all_is_no_change(problem: Problem, place: Place) -> None:
    learner = played(LinUCB(problem, horizon=99, privacy=TARGET, path=place), 1)
    store, state = watched(learner), whole_state(learner)
    assert learner.choose_many([]) == []
    learner.learn_many([])
    learner.learn_many(iter(()))
    assert whole_state(learner) == state
    assert store.commits == []


BAD_SETS: dict[str, tuple[list[object], type[DiscreetError]]] = {
    "a long row": ([np.eye(3), [[9.0, 0, 0]]], OutOfBoundsError),
    "no set": ([np.eye(3), None], DiscreetError),
    "beyond the horizon": ([np.eye(3)] * 8, HorizonReachedError),
}


@pytest.mark.parametrize("name", BAD_SETS)
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "memory"])
def test_after_an_error_no_decision_was_made(
    name: str, *, stored: bool, problem: Problem, tmp_path: Path
) -> None:
    path = tmp_path / "bandit" if stored else None
    learner = played(LinUCB(problem, horizon=10, privacy=TARGET, path=path), 3)
    state = whole_state(learner)
    sets, error = BAD_SETS[name]
    with pytest.raises(error):
        learner.choose_many(sets)
    assert whole_state(learner) == state
    assert len(learner.choose_many([np.eye(3)] * 7)) == 7


def pairs_with(wrong: object) -> Callable[[list[str]], list[object]]:
    return lambda made: [(made[0], 1.0), (made[1], 0.5), wrong]


BAD_PAIRS: dict[str, tuple[Callable[[list[str]], object], type[DiscreetError]]] = {
    "twice": (lambda made: [(made[0], 1), (made[1], 1), (made[0], 1)], DecisionClosedError),
    "unknown": (pairs_with(("00000000-0", 1.0)), UnknownDecisionError),
    "a large reward": (lambda made: [(made[0], 1), (made[1], 7)], OutOfBoundsError),
    "no pair": (pairs_with("ab"), ParameterError),
    "three": (pairs_with(("a", 1, 2)), ParameterError),
    "a number": (pairs_with(7), ParameterError),
}


@pytest.mark.parametrize("name", BAD_PAIRS)
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "memory"])
def test_after_an_error_no_reward_was_taken_in(
    name: str, *, stored: bool, problem: Problem, tmp_path: Path
) -> None:
    path = tmp_path / "bandit" if stored else None
    learner = LinUCB(problem, horizon=99, privacy=TARGET, variant=BATCHED, path=path)
    made = [decision.id for decision in learner.choose_many([np.eye(3)] * 4)]
    state, release = whole_state(learner), learner.release
    pairs, error = BAD_PAIRS[name]
    with pytest.raises(error):
        learner.learn_many(pairs(made))
    assert whole_state(learner) == state
    assert learner.release is release
    learner.learn_many([(each, 1) for each in made])
    assert (learner.rows, learner.release.rows) == (4, 3)


def test_pairs_that_fail_while_they_are_made_change_nothing(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=99, privacy=TARGET)
    made = learner.choose_many([np.eye(3)] * 2)
    state = whole_state(learner)

    def failing() -> Iterator[tuple[object, float]]:
        yield made[0], 1.0
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        learner.learn_many(failing())
    assert whole_state(learner) == state


@pytest.mark.parametrize("call", ["choose_many", "learn_many"])
def test_many_at_once_on_a_full_disk_change_nothing(
    call: str, problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=99, privacy=TARGET, variant=BATCHED, path=place)
    made = learner.choose_many([np.eye(3)] * 5)
    state, store = whole_state(learner), watched(learner)
    store.before = full_disk("commit", times=1)

    def play() -> None:
        if call == "choose_many":
            learner.choose_many([np.eye(3)] * 3)
        else:
            learner.learn_many([(decision, 1) for decision in made])

    with pytest.raises(StoreError):
        play()
    assert whole_state(learner) == state
    play()
    assert (learner.rounds, learner.rows) == ((8, 0) if call == "choose_many" else (5, 5))
    assert_same(crashed(learner, tmp_path / "crashed"), learner)


# Decisions that are given up


def test_a_warning_comes_before_anything_is_given_up(problem: Problem, place: Place) -> None:
    learner = LinUCB(problem, horizon=99, privacy=TARGET, max_pending=3, path=place)
    learner.choose_many([np.eye(3)] * 2)
    state = whole_state(learner)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GivenUpWarning, match="pass a larger max_pending, or forget decisions"):
            learner.choose_many([np.eye(3)] * 2)
        assert whole_state(learner) == state
        assert learner.given_up == 0
        learner.choose(np.eye(3))  # the third is no trouble
    with pytest.warns(GivenUpWarning) as caught:
        learner.choose_many([np.eye(3)] * 2)
    assert caught[0].filename == __file__  # the caller's line, not ours
    assert (learner.rounds, learner.waiting, learner.given_up) == (5, 3, 2)


def test_what_was_given_up_is_counted_across_restarts(problem: Problem, place: Place) -> None:
    learner = LinUCB(problem, horizon=99, privacy=TARGET, max_pending=2, path=place)
    made = learner.choose_many([np.eye(3)] * 2)
    with pytest.warns(GivenUpWarning):
        made += learner.choose_many([np.eye(3)] * 3)
    assert (learner.waiting, learner.given_up) == (2, 3)
    learner.close()
    learner = load(place)
    assert (learner.waiting, learner.given_up) == (2, 3)
    for decision in made[:3]:
        with pytest.raises(DecisionClosedError, match="given up because more than max_pending=2"):
            learner.learn(decision, 1)
    learner.learn_many([(decision, 1) for decision in made[3:]])
    assert (learner.rows, learner.waiting, learner.given_up) == (2, 0, 3)


def test_more_at_once_than_may_wait_leave_the_last(problem: Problem, place: Place) -> None:
    learner = LinUCB(problem, horizon=99, privacy=TARGET, max_pending=2, path=place)
    with pytest.warns(GivenUpWarning):
        made = learner.choose_many([np.eye(3)] * 6)
    assert (learner.rounds, learner.waiting, learner.given_up) == (6, 2, 4)
    with pytest.raises(DecisionClosedError):
        learner.learn(made[3], 1)
    learner.learn_many([(decision, 1) for decision in made[4:]])
    learner.close()
    again = load(place)
    assert (again.rounds, again.rows, again.given_up) == (6, 2, 4)


def test_a_decision_that_was_forgotten_is_not_given_up(problem: Problem) -> None:
    learner = LinUCB(problem, horizon=99, privacy=TARGET, max_pending=2)
    made = learner.choose_many([np.eye(3)] * 2)
    learner.forget(made[0])
    made += [learner.choose(np.eye(3))]  # no warning: there is room
    assert learner.given_up == 0
    learner.learn_many([(decision, 1) for decision in made[1:]])


# from_mechanism


def test_a_mechanism_makes_the_same_learner(variant: Named, problem: Problem) -> None:
    made = learner_for(variant, problem, seed=5, policy=UCB())
    again = LinUCB.from_mechanism(made.mechanism, noise_source=seeded(5), policy=UCB())
    assert again.mechanism == made.mechanism
    assert again.guarantee == made.guarantee
    assert_same_sums(played(made, 25), played(again, 25))


def test_a_learner_from_a_mechanism_is_stored_and_found_again(
    problem: Problem, place: Place
) -> None:
    mechanism = LinUCB(problem, horizon=99, privacy=TARGET).mechanism
    learner = LinUCB.from_mechanism(mechanism, max_pending=4, on_violation="clip", path=place)
    assert learner.guarantee.private
    assert learner.ledger.learner != LinUCB.from_mechanism(mechanism).ledger.learner
    learner.learn(learner.choose([[9.0, 0, 0]]), 9)
    learner.close()
    again = load(place)
    assert again.mechanism == mechanism
    assert (again._curator.max_pending, again.rows) == (4, 1)


@pytest.mark.parametrize("wrong", [None, "tight", LinUCB, 3])
def test_what_is_no_mechanism_is_refused(wrong: object) -> None:
    with pytest.raises(ParameterError, match=r"^mechanism: is of type"):
        LinUCB.from_mechanism(wrong)


def test_a_mechanism_with_seeded_noise_promises_nothing(problem: Problem, tmp_path: Path) -> None:
    mechanism = LinUCB(problem, horizon=99, privacy=TARGET).mechanism
    learner = LinUCB.from_mechanism(mechanism, noise_source=seeded(1))
    assert mechanism.guarantee.private
    assert not learner.guarantee.private
    assert not restarted(learner, tmp_path / "bandit").guarantee.private


# Threads that share a commit


def test_threads_share_commits_and_nothing_acknowledged_is_lost(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=10**4, privacy=TARGET, variant=BATCHED, path=place)
    store = watched(learner)
    store.before = lambda kind: time.sleep(0.01) if kind == "commit" else None
    done: list[str] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(8):
                decision = learner.choose(np.eye(3))
                learner.learn(decision, 1)
                done.append(decision.id)
        except BaseException as error:  # noqa: BLE001  # all of them are looked at
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(done) < 20 and not failed:
        time.sleep(0.001)
    with learner._curator._leading:  # between two commits: as if the process died here
        acknowledged = list(done)
        found = crashed(learner, tmp_path / "crashed")
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(done) == len(set(done)) == 64
    assert len(store.commits) < 0.6 * 128  # of 128 calls; about a quarter as a rule
    for decision in acknowledged:
        with pytest.raises(DecisionClosedError):
            found.learn(decision, 1)
    assert found.rows >= len(acknowledged)
    assert (learner.rounds, learner.rows, learner.waiting) == (64, 64, 0)
    assert len(learner.ledger) == learner.release.number == 21
    assert_same(crashed(learner, tmp_path / "whole"), learner)


def test_a_shared_commit_that_fails_is_told_to_everybody(
    problem: Problem, place: Place, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=10**4, privacy=TARGET, path=place)
    store = watched(learner)
    waiting = learner.choose_many([np.eye(3)] * 8)
    fails = full_disk("commit", times=1)

    def slow(kind: str) -> None:
        time.sleep(0.05)
        fails(kind)

    store.before = slow
    outcomes: list[str] = []

    def work(decision: object) -> None:
        try:
            learner.learn(decision, 1)
            outcomes.append("in")
        except StoreError:
            outcomes.append("refused")

    threads = [threading.Thread(target=work, args=(decision,)) for decision in waiting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8
    assert outcomes.count("refused") >= 1
    assert learner.rows == outcomes.count("in") == 8 - learner.waiting
    assert_same(crashed(learner, tmp_path / "crashed"), learner)
    played(learner, 3)


def test_ten_thousand_decisions_of_one_call_outlive_a_crash_and_all_can_be_learned_from(
    tmp_path: Path, problem: Problem
) -> None:
    (tmp_path / "stored").mkdir()
    with LinUCB(problem, horizon=None, privacy=TARGET, path=tmp_path / "stored" / "a") as bandit:
        decisions = bandit.choose_many([np.eye(3)] * 10_000)
        again = crashed(bandit, tmp_path / "crashed")
    assert again.waiting == again.rounds == 10_000
    again.learn_many([(one.id, 0.5) for one in decisions])
    assert (again.rows, again.waiting) == (10_000, 0)
    again.close()
    with load(tmp_path / "crashed" / "a") as last:
        assert last.rows == 10_000
