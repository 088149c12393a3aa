"""One event, one row, in event order, at its deadline: whatever came, and whenever."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from discreet import Release
from discreet.curator._changes import ROW
from discreet.errors import StoreError
from discreet.service import _events as events
from discreet.service._bodies import Erased
from discreet.service._joiner import KEEP_IDS
from service.serving import Service


def test_an_event_is_closed_at_its_deadline_and_not_before(any_service: Service) -> None:
    any_service.make()
    any_service.rank(event_id="e1")
    any_service.pass_time(9.9)
    any_service.settle()
    assert any_service.learner().rows == 0
    any_service.pass_time(0.2)
    any_service.settle()
    assert any_service.learner().rows == 1
    found = any_service.get("/v1/bandits/news").json()
    assert (found["events"], found["closed"], found["open"]) == (1, 1, 0)


def test_a_reward_does_not_close_its_event(any_service: Service) -> None:
    any_service.make()
    any_service.rank(event_id="e1")
    assert any_service.rewards(("e1", 1.0))[0]["verdict"] == "accepted"
    any_service.pass_time(5)
    any_service.settle()
    assert any_service.learner().rows == 0


def rows_of(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """What the learner is told from now on: action, reward, whether there is a subject."""
    seen: list[tuple] = []
    learner = service.learner()
    observe = learner.observe

    def noted(actions, rewards, *, subjects):  # noqa: ANN001, ANN202
        rows = zip(actions.copy(), rewards, subjects, strict=True)
        seen.extend((tuple(one), reward, subject) for one, reward, subject in rows)
        observe(actions, rewards, subjects=subjects)

    monkeypatch.setattr(learner, "observe", noted)
    return seen


def test_rows_are_in_event_order_with_rewards_defaults_and_zeros(
    any_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = any_service
    service.make(reward={"default": 0.25})
    service.settle()
    seen = rows_of(service, monkeypatch)
    for number in range(5):
        service.rank(event_id=f"e{number}", defer=number in {2, 3})
    service.post("/v1/bandits/news/events/e3/activate")
    service.rewards(("e4", 1.0), ("e2", 1.0), ("e0", 0.5), ("e3", 0.75))  # in another order
    service.pass_time(11)
    service.settle()
    assert [reward for _, reward, _ in seen] == [0.5, 0.25, 0.5, 0.75, 1.0]  # e2: the centre
    lengths = [np.linalg.norm(action) for action, _, _ in seen]
    assert lengths[2] == 0.0
    assert min(lengths[0], lengths[1], lengths[3], lengths[4]) > 0.5


def test_late_rewards_are_not_counted(
    any_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = any_service
    service.make()
    service.settle()
    seen = rows_of(service, monkeypatch)
    service.rank(event_id="e1")
    service.pass_time(10)  # the deadline itself is late
    assert service.rewards(("e1", 1.0)) == [{"event_id": "e1", "status": 204, "verdict": "late"}]
    service.settle()
    assert [reward for _, reward, _ in seen] == [0.0]
    assert service.rewards(("e1", 1.0))[0]["verdict"] == "late"


def test_the_first_reward_counts_or_their_sum(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, aggregation in (("first", "earliest"), ("sum", "sum")):
        service.make(name, reward={"aggregation": aggregation})
    service.settle()
    totals = {}
    for bandit, name in enumerate(("first", "sum"), 1):
        learner, seen = service.learner(bandit), []
        monkeypatch.setattr(learner, "observe", lambda _, y, seen=seen, **__: seen.extend(y))
        service.rank(name, event_id="e")
        verdicts = service.rewards(("e", 0.75), ("e", 0.5), name=name)
        totals[name] = ([one["verdict"] for one in verdicts], seen)
    service.pass_time(11)
    service.writer.turn()
    assert totals["first"] == (["accepted", "duplicate"], [0.75])
    assert totals["sum"] == (["accepted", "accepted"], [1.0])


def test_an_event_that_waits_longer_holds_up_those_after_it(any_service: Service) -> None:
    service = any_service
    service.make()
    service.rank(event_id="slow")
    service.loop.run(service.core.configure("news", wait_seconds=1.0, who="test"))
    service.rank(event_id="quick")
    service.pass_time(5)
    service.settle()
    assert service.learner().rows == 0
    service.pass_time(6)
    service.settle()
    assert service.learner().rows == 2


def test_a_person_over_the_cap_brings_rows_of_zeros(any_service: Service) -> None:
    service = any_service
    service.make(contributions_per_user=2)
    for _ in range(5):
        service.rank(subject="ann")
    service.rank(subject="bob")
    service.pass_time(11)
    service.settle()
    assert service.learner().rows == 6
    assert service.learner().over_cap == 3


def test_names_of_people_are_nowhere_on_the_disk(service: Service) -> None:
    service.make()
    service.rank(subject="somebody-special", event_id="e1")
    service.pass_time(11)
    service.settle()
    files = [path for path in service.folder.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert not any(b"somebody-special" in path.read_bytes() for path in files)


def test_erasing_a_person_makes_zeros_of_what_waits_and_of_the_open_batch(
    any_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = any_service
    service.make(contributions_per_user=9)
    service.rank(subject="ann")
    service.pass_time(11)
    service.settle()
    seen = rows_of(service, monkeypatch)
    for number in range(3):
        service.rank(subject="ann", event_id=f"e{number}")
    service.rank(subject="bob", event_id="other")

    async def erase() -> Erased:  # the writer's turn comes while the request waits
        task = asyncio.create_task(service.core.erase("news", "ann", who="test"))
        while not task.done():
            await asyncio.to_thread(service.writer.turn)
        return task.result()

    found = service.loop.run(erase())
    assert (found.open, found.in_batch, found.released) == (3, 1, 0)
    assert service.rewards(("e0", 1.0))[0]["status"] == 204  # says nothing of the erasure
    service.pass_time(11)
    service.settle()
    assert [np.linalg.norm(action) > 0 for action, _, _ in seen] == [False, False, False, True]
    assert service.learner().rows == 5


@pytest.mark.parametrize("how", ["erased", "long past"])
def test_nothing_private_stays_of_an_event_that_is_erased_or_long_past(
    any_service: Service, how: str
) -> None:
    service = any_service
    service.make()
    for number in range(30):
        service.rank(event_id=f"e{number}", subject="ann", context={"age": 77}, defer=True)
    service.rewards(("e0", 1.0))
    connection = service.database.connect()

    def left() -> set[tuple]:
        rows = connection.execute(
            "SELECT active, choice, features, reward, subject, request FROM service_pending"
        )
        return {(*row[:5], bytes(row[5])) for row in rows}

    assert {row[:2] for row in left()} == {(0, 0), (0, 1), (0, 2)}
    with connection.transaction():
        if how == "erased":
            events.erase(connection, 1, service.core._hashes.subject("news", "ann"), 0)
        else:
            events.blank(connection, 1, service.clock.now + 100)
    assert left() == {(1, 0, None, None, None, b"")}
    connection.close()


def test_payloads_are_removed_once_they_are_learned_from(any_service: Service) -> None:
    service = any_service
    service.make()
    for _ in range(10):
        service.rank()
    connection = service.database.connect()
    count = "SELECT COUNT(*) FROM service_pending"
    assert connection.execute(count) == [(10,)]
    service.pass_time(11)
    service.settle()
    assert connection.execute(count) == [(0,)]
    connection.close()


@pytest.mark.parametrize("when", ["quiet", "finished", "busy"])
def test_rows_of_a_release_are_soon_on_the_disk_as_sums_alone(
    service: Service, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    for name in ("_QUIET", "_SUMS", "_TIDY"):
        monkeypatch.setattr(f"discreet.service._joiner.{name}", 1e9)
    service.make(horizon=35 if when == "finished" else None)
    service.settle()
    seen = rows_of(service, monkeypatch)
    for number in range(35):
        service.rank(event_id=f"e{number}", context={"age": 77})
    service.rewards(*((f"e{number}", 0.123456789) for number in range(35)))
    service.pass_time(11)
    if when == "finished":
        service.settle()
    else:
        service.settle()
        assert stored_rows(service)
        limit = {"quiet": "_QUIET", "busy": "_SUMS"}[when]
        monkeypatch.setattr(f"discreet.service._joiner.{limit}", 0.0)
        service.settle()
    released = service.learner().release.rows
    assert released > 0
    assert min(stored_rows(service), default=released + 1) > released
    assert len(seen) == 35


def stored_rows(service: Service) -> list[int]:
    """The numbers of the rows that a learner's file has one by one."""
    (place,) = (file.with_suffix("") for file in service.folder.glob("learners/*.ledger"))
    connection = sqlite3.connect(place.as_uri() + "?mode=ro", uri=True)
    try:
        return [
            row[0] for row in connection.execute("SELECT number FROM item WHERE kind = ?", (ROW,))
        ]
    finally:
        connection.close()


def test_releases_are_published_one_by_one_and_agree_with_the_ledger(
    any_service: Service,
) -> None:
    service = any_service
    service.make()
    for _ in range(120):
        service.rank()
    service.pass_time(11)
    service.settle()
    releases = service.get("/v1/bandits/news/releases").json()["releases"]
    assert [one["number"] for one in releases] == list(range(len(releases)))
    assert len(releases) > 3
    ledger = service.get("/v1/bandits/news/ledger").json()
    assert [one["sha256"] for one in ledger["entries"]] == [one["digest"] for one in releases[1:]]
    assert service.learner().ledger.head == ledger["head"]


def test_after_a_crash_between_learning_and_closing_nothing_is_learned_twice(
    any_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = any_service
    service.make()
    for _ in range(30):
        service.rank()
    service.pass_time(11)
    monkeypatch.setattr(events, "close", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        service.settle()
    monkeypatch.undo()
    service.writer.close()
    service.writer = service.new_writer()
    for _ in range(7):
        service.rank()
    service.pass_time(11)
    service.settle()
    assert service.learner().rows == 37
    found = service.get("/v1/bandits/news").json()
    assert (found["events"], found["closed"]) == (37, 37)


def test_a_second_writer_waits_until_the_first_one_is_gone(any_service: Service) -> None:
    service = any_service
    service.make()
    service.rank()
    service.pass_time(11)
    service.settle()
    second = service.new_writer()
    service.rank()
    service.pass_time(11)
    second.turn()
    assert not second._joiners
    assert service.get("/v1/bandits/news").json()["closed"] == 1
    service.writer.close()
    second._after.clear()
    second.turn()
    service.writer = second
    service.settle()
    assert service.get("/v1/bandits/news").json()["closed"] == 2


def test_a_reserve_opens_and_makes_nothing_and_takes_over_everything(any_service: Service) -> None:
    service = any_service
    service.settle()  # it is the writer from now on, although there is no bandit yet
    reserve = service.new_writer()
    service.make("one")
    reserve.turn()
    query = "SELECT learner FROM service_bandit"
    assert reserve._connection.execute(query) == [(None,)]
    service.settle()
    service.make("two")
    service.rank("two")
    service.pass_time(11)
    for _ in range(3):
        reserve.turn()
    assert not reserve._joiners
    service.settle()
    assert service.get("/v1/bandits/two").json()["closed"] == 1
    reserve.close()  # which takes nothing down
    assert service.rank("two").status_code == 201
    service.settle()
    assert service.get("/v1/bandits/two").json()["state"] == "running"


def test_the_writer_gives_a_sign_of_life_whatever_reserves_there_are(any_service: Service) -> None:
    service = any_service
    reserve = service.new_writer()
    service.make("one")
    stop = threading.Event()
    threads = [threading.Thread(target=one.run, args=(stop,)) for one in (service.writer, reserve)]
    try:
        for one in threads:
            one.start()
        end = time.monotonic() + 60.0
        while service.core.health()["writer"] != "ok":
            service.make(f"another-{time.monotonic_ns()}")
            assert time.monotonic() < end
            service.loop.run(service.core.look())
    finally:
        stop.set()
        for one in threads:
            one.join()
        service.writer = service.new_writer()


def test_a_writer_whose_session_at_the_server_ends_is_the_writer_again(
    empty_postgres: str, tmp_path: Path
) -> None:
    service = Service(empty_postgres, tmp_path)
    try:
        service.make()
        service.settle()
        lease = service.writer._lease
        lease._looked_at = 0.0
        session = lease._connection.execute("SELECT pg_backend_pid()")[0][0]
        connection = service.database.connect()
        connection.execute("SELECT pg_terminate_backend(?)", (session,))
        reserve = service.new_writer()
        while not reserve.turn() and not reserve._leads:  # the server takes a moment
            time.sleep(0.01)
        with pytest.raises(StoreError):
            service.writer.turn()
        assert not service.writer.turn()
        assert not service.writer._joiners  # a reserve now
        reserve.close()
        service.rank()
        service.pass_time(11)
        service.settle()
        assert service.get("/v1/bandits/news").json()["closed"] == 1
        connection.close()
    finally:
        service.close()


def test_events_that_are_not_the_next_ones_are_refused(service: Service) -> None:
    service.make()
    service.rank()
    service.rank()
    connection = service.database.connect()
    connection.execute("DELETE FROM service_pending WHERE number = 1")
    connection.close()
    service.pass_time(11)
    service.settle()
    found = service.get("/v1/bandits/news").json()
    assert found["state"] == "rewound"
    assert service.rank().status_code == 503


@pytest.mark.parametrize("activated", [True, False])
def test_events_that_were_not_activated_use_up_the_cap(
    service: Service, *, activated: bool
) -> None:
    service.make(contributions_per_user=2)
    service.settle()
    for number in range(3):
        service.rank(event_id=f"e{number}", subject="ann", defer=number == 0)
    if activated:
        service.post("/v1/bandits/news/events/e0/activate")
    service.pass_time(11)
    service.settle()
    assert service.learner().over_cap == 1  # the last one, whether the first was activated or not


@pytest.mark.parametrize("crash", range(1, 6))
def test_no_release_is_missing_after_a_crash_at_any_write(
    service: Service, monkeypatch: pytest.MonkeyPatch, crash: int
) -> None:
    service.make()
    service.settle()
    for _ in range(40):
        service.rank()
    service.pass_time(11)
    commit, left = type(service.writer._connection).transaction, [crash]

    def once(self: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return commit(self)

    with monkeypatch.context() as patched:
        patched.setattr(type(service.writer._connection), "transaction", once)
        with pytest.raises(KeyboardInterrupt):
            service.writer.turn()
    service.writer.close()
    service.writer = service.new_writer()
    service.settle()
    shown = [one["number"] for one in service.get("/v1/bandits/news/releases").json()["releases"]]
    assert shown == [0, 1, 2, 3]
    assert service.learner().release.number == shown[-1]
    assert service.learner().rows == 40


def test_where_rewards_alone_are_protected_the_gram_matrix_shows_actions_and_no_reward(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = service.make(protects="rewards")
    service.settle()
    assert made["protects"] == "rewards"
    card = service.get("/v1/bandits/news/card").json()
    assert card["protects"] == "rewards"
    assert "who came how often, is public here" in card["joiner"]
    seen = rows_of(service, monkeypatch)
    learner = service.learner()
    due = learner.mechanism.schedule.after(0)
    for number in range(due):  # rewards come, are out of bounds, or never come
        service.rank(event_id=f"e{number}", subject="ann" if number in {0, 1} else f"p{number}")
    service.rewards(("e0", 1.0), ("e2", 7.0), ("e3", 0.0))
    service.pass_time(11)
    service.settle()
    assert learner.rows == due
    assert learner.over_cap == 1
    assert [reward for _, reward, _ in seen[:4]] == [1.0, 0.0, 0.0, 0.0]
    # All rows count alike in the first release, but for the one over the cap, which is zeros.
    shown = Release.from_json(learner.release.to_json())
    rows = np.array([row for at, (row, _, _) in enumerate(seen) if at != 1])
    exact = shown.weight / due * rows.T @ rows
    np.testing.assert_allclose(shown.gram, exact, rtol=0, atol=1e-3)  # rows are rounded to a grid


def fill(service: Service, count: int, *, since: float) -> None:
    """Events that are closed, with a deadline every second."""
    connection = service.database.connect()
    rows = [(1, f"event {number}", number, since + number) for number in range(1, count + 1)]
    with connection.transaction():
        connection.insert("service_event", ("bandit", "event_id", "number", "deadline"), rows)
    connection.close()


def ids_left(service: Service) -> int:
    connection = service.database.connect()
    found = connection.execute("SELECT COUNT(*) FROM service_event WHERE bandit = 1")
    connection.close()
    return int(found[0][0])


def test_ids_of_long_ago_are_forgotten_some_at_a_time_and_no_others(any_service: Service) -> None:
    fill(any_service, 5_000, since=0.0)
    connection = any_service.database.connect()
    left = []
    for closed, before in ((4_500, 4_300.0), (4_500, 9_999.0), (5_000, 9_999.0)):
        more = True
        while more:
            with connection.transaction():
                more = events.purge(connection, 1, closed, before)
            left.append(ids_left(any_service))
    with connection.transaction():
        assert not events.purge(connection, 1, 5_000, 9_999.0)  # there is nothing left
    connection.close()
    # Deadlines before 4,300 first; then all that is closed; then all.
    assert left == [3_000, 1_000, 701, 500, 0]


def test_a_writer_that_has_nothing_to_forget_does_not_look_through_the_ids_of_a_week(
    service: Service,
) -> None:
    steps = []
    for count in (1_000, 10_000):
        connection = service.database.connect()
        with connection.transaction():
            connection.execute("DELETE FROM service_event")
        fill(service, count, since=1e9)
        taken: list[int] = []
        connection._open().set_progress_handler(lambda taken=taken: taken.append(1), 10)
        with connection.transaction():
            assert not events.purge(connection, 1, count, 1e9)
        steps.append(len(taken))
        connection.close()
    assert steps[1] <= steps[0] + 2


def test_what_one_turn_does_not_forget_the_next_one_does(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.service._events._FORGOTTEN", 2)
    service.make()
    for _ in range(5):
        service.rank()
    service.pass_time(11)
    service.settle()
    service.pass_time(KEEP_IDS + 1)
    joiner = service.writer._joiners[1]
    joiner._must_wipe = True  # as after a minute
    left = []
    for _ in range(4):
        service.writer.turn()
        left.append(ids_left(service))
    assert left == [3, 1, 0, 0]
