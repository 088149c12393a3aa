"""Other threads during a first save: they wait or go on, and get no error."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import discreet
from discreet.curator import store
from discreet.curator.store.sqlite import SqliteStore
from discreet.errors import StoreError
from helpers import whole_state

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)


class Crowd:
    """Threads that use a learner until they are told to stop.

    Attributes:
        errors: what went wrong in any of them.
        rounds: decisions that were acknowledged.
        rows: rewards that were acknowledged.
    """

    def __init__(self, learner: discreet.LinUCB, size: int) -> None:
        self._learner = learner
        self._over = threading.Event()
        self.errors: list[BaseException] = []
        self.rounds: list[str] = []
        self.rows: list[str] = []
        works = [self._learn, self._look, self._forget, self._many]
        self._threads = [
            threading.Thread(target=self._repeat, args=(works[number % len(works)],))
            for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread hangs"

    def _repeat(self, work: Callable[[], None]) -> None:
        try:
            while not self._over.is_set():
                work()
        except BaseException as error:  # noqa: BLE001  # the test reports it
            self.errors.append(error)

    def _learn(self) -> None:
        one = self._learner.choose([(0.3, 0.4), (0.1, 0.2)]).id
        self.rounds.append(one)
        self._learner.learn(one, 0.5)
        self.rows.append(one)

    def _forget(self) -> None:
        one = self._learner.choose([(0.3, 0.4)]).id
        self.rounds.append(one)
        self._learner.forget(one)

    def _many(self) -> None:
        made = [one.id for one in self._learner.choose_many([[(0.3, 0.4)], [(0.2, 0.2)]])]
        self.rounds += made
        self._learner.learn_many([(one, -0.5) for one in made])
        self.rows += made

    def _look(self) -> None:
        learner = self._learner
        release = learner.release
        assert release.number == 0 or learner.ledger.holds(release)
        assert learner.confidence.centre.shape == (2,)
        assert learner.rows + learner.waiting <= learner.rounds + 8  # each read at its own moment
        repr(learner)


def begun() -> discreet.LinUCB:
    return discreet.LinUCB(PROBLEM, horizon=10**6, privacy=TARGET)


def slowed(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A first save takes its time, in the middle and at its end."""
    create, commit = store.create, SqliteStore.commit

    def slow_create(*some: object, **more: object) -> object:
        time.sleep(seconds)
        found = create(*some, **more)
        time.sleep(seconds)
        return found

    def slow_commit(self: SqliteStore, change: store.Commit) -> None:
        commit(self, change)
        if change.before == store.UNFINISHED:
            time.sleep(seconds)

    monkeypatch.setattr(store, "create", slow_create)
    monkeypatch.setattr(SqliteStore, "commit", slow_commit)


def test_no_thread_gets_an_error_during_anothers_first_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, 0.1)
    for turn in range(3):
        learner = begun()
        crowd = Crowd(learner, 5)
        time.sleep(0.05)
        learner.save(tmp_path / f"state {turn}")
        time.sleep(0.1)
        crowd.stop()
        assert crowd.errors == []
        assert (learner.rounds, learner.rows) == (len(crowd.rounds), len(crowd.rows))
        assert learner.waiting == 0
        held = whole_state(learner)
        learner.close()
        with discreet.load(tmp_path / f"state {turn}") as again:
            assert whole_state(again) == held


def test_no_thread_gets_an_error_during_anothers_first_save_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = SqliteStore.commit

    def fails(self: SqliteStore, change: store.Commit) -> None:
        if change.before == store.UNFINISHED:
            time.sleep(0.1)
            raise StoreError("path", "has no room")
        commit(self, change)

    monkeypatch.setattr(SqliteStore, "commit", fails)
    learner = begun()
    crowd = Crowd(learner, 5)
    for _ in range(3):
        with pytest.raises(StoreError, match="no room"):
            learner.save(tmp_path / "state")
    crowd.stop()
    assert crowd.errors == []
    assert learner.path is None
    assert (learner.rounds, learner.rows) == (len(crowd.rounds), len(crowd.rows))


def test_two_threads_that_save_for_the_first_time_make_one_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, 0.05)
    learner = begun()
    errors: list[BaseException] = []

    def save() -> None:
        try:
            learner.save(tmp_path / "state")
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    learner.learn(learner.choose([(0.3, 0.4)]), 0.5)
    learner.close()
    with discreet.load(tmp_path / "state") as again:
        assert again.rows == 1
