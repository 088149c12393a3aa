"""Other threads during a first save: they wait or go on, and get no error."""

import contextlib
import random
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


class Accounts:
    """Threads that choose and learn on a store that fails, and what each was told.

    Attributes:
        made: decisions that were acknowledged.
        closed: those whose reward was.
        unknown: those whose reward was refused by the store; it may be in all the same.
        wrong: errors of any other kind.
    """

    def __init__(self, learner: discreet.LinUCB) -> None:
        self._learner = learner
        self.made: set[str] = set()
        self.closed: set[str] = set()
        self.unknown: set[str] = set()
        self.wrong: list[BaseException] = []

    def work(self, threads: int) -> None:
        running = [threading.Thread(target=self._play) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(120)
            assert not thread.is_alive(), "a thread hangs"

    def _play(self) -> None:
        for _ in range(40):
            try:
                one = self._learner.choose([(0.3, 0.4)]).id
            except StoreError:
                continue
            self.made.add(one)
            try:
                self._learner.learn(one, 0.5)
            except StoreError:
                self.unknown.add(one)
            except BaseException as error:  # noqa: BLE001  # the test reports it
                self.wrong.append(error)
            else:
                self.closed.add(one)


def unreliable(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Commits fail before or after their work, and often the store cannot be asked which."""
    rng = random.Random(seed)
    commit, sequence = SqliteStore.commit, SqliteStore.sequence

    def failing_commit(self: SqliteStore, change: store.Commit) -> None:
        roll = rng.random()
        if roll < 0.2:
            raise StoreError("path", "has no room")
        commit(self, change)
        if roll < 0.4:
            raise StoreError("path", "has no room")

    def failing_sequence(self: SqliteStore) -> int:
        if rng.random() < 0.5:
            raise StoreError("path", "does not answer")
        return sequence(self)

    monkeypatch.setattr(SqliteStore, "commit", failing_commit)
    monkeypatch.setattr(SqliteStore, "sequence", failing_sequence)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_acknowledged_is_lost_when_the_store_fails_under_many_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    learner = begun()
    learner.save(tmp_path / "state")
    accounts = Accounts(learner)
    with monkeypatch.context() as patched:
        unreliable(patched, seed)
        accounts.work(6)
    assert accounts.wrong == []
    assert len(accounts.closed) > 10
    assert len(accounts.unknown) > 5
    learner.release  # noqa: B018  # what is in doubt is found out
    held = {f"{learner._curator._held.name}-{number}" for number in learner._curator._held.waiting}
    assert accounts.made - accounts.closed - accounts.unknown <= held
    assert not accounts.closed & held
    assert 0 <= learner.rows - len(accounts.closed) <= len(accounts.unknown)
    state = whole_state(learner)
    learner.close()
    with discreet.load(tmp_path / "state") as again:
        assert whole_state(again) == state
        assert len(again.ledger) == again.release.number


def test_a_call_that_builds_on_one_that_failed_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is staged after the failure, and before it is known that the first was not committed."""
    learner = begun()
    learner.save(tmp_path / "state")
    sequence, asked = SqliteStore.sequence, threading.Event()

    def failing(*_: object) -> None:
        raise StoreError("path", "has no room")

    def slow(self: SqliteStore) -> int:
        if asked.is_set():
            return sequence(self)
        monkeypatch.undo()
        monkeypatch.setattr(SqliteStore, "sequence", slow)
        asked.set()
        time.sleep(0.3)  # the other thread comes, and waits
        raise StoreError("path", "does not answer")

    def first() -> None:
        with pytest.raises(StoreError):
            learner.choose([(0.1, 0.2)])

    monkeypatch.setattr(SqliteStore, "commit", failing)
    monkeypatch.setattr(SqliteStore, "sequence", slow)
    thread = threading.Thread(target=first)
    thread.start()
    assert asked.wait(60)
    acknowledged = []
    with contextlib.suppress(StoreError):
        acknowledged.append(learner.choose([(0.3, 0.4)]).id)
    thread.join(60)
    for one in acknowledged:
        learner.learn(one, 0.5)
    assert learner.rounds == learner.rows == len(acknowledged)
    learner.learn(learner.choose([(0.3, 0.4)]), 0.5)
    learner.close()
    with discreet.load(tmp_path / "state") as again:
        assert again.rows == len(acknowledged) + 1
