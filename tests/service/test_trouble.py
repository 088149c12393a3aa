"""What goes wrong stays where it is: a silent database, one bad bandit, a wrong key for hashes."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import ParameterError, StoreError
from discreet.release._ranker import Ranker
from discreet.service import _events as events
from discreet.service._bodies import Action, RankRequest, ServiceError
from discreet.service._committer import Committer, _Rank, _Rewards, _Work
from discreet.service._configuration import administrator_of, secret_of
from discreet.service._core import Core
from discreet.service._database import Database
from discreet.service._events import Decided
from discreet.service._hashes import Hashes
from discreet.service._keys import Keyring, administrator
from discreet.service._witness import Witness
from service.serving import ADMIN, Service


def kind_of(service: Service) -> type:
    return type(service.core._reading)


def test_a_database_that_says_nothing_is_given_up_and_nothing_is_written_later(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.make()
    speak = threading.Event()
    kind = kind_of(service)
    commit = kind.transaction

    @contextlib.contextmanager
    def silent(self: object) -> Iterator[None]:
        speak.wait()
        with commit(self):
            yield

    monkeypatch.setattr("discreet.service._worker._PATIENCE", 0.2)
    monkeypatch.setattr(kind, "transaction", silent)
    assert service.rank(event_id="under-way").status_code == 503
    assert service.rank(event_id="waiting").status_code == 503  # and it is given up
    speak.set()
    assert service.rank(event_id="after").status_code == 201
    counts = service.get("/v1/bandits/news").json()
    assert counts["events"] == 2  # the one that was under way, of which nobody knew, and the last
    assert service.rewards(("waiting", 1.0))[0]["verdict"] == "unknown"


def test_a_service_ends_although_its_database_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(tmp_path / "service.sqlite", tmp_path)
    service.make()
    speak = threading.Event()
    monkeypatch.setattr("discreet.service._worker._PATIENCE", 0.2)
    monkeypatch.setattr(kind_of(service), "execute", lambda *_: speak.wait())
    with pytest.raises(StoreError):
        service.loop.run(service.core.look())
    service.loop.run(service.core.close())
    service.loop.close()
    monkeypatch.undo()
    speak.set()
    service.writer.close()


@pytest.fixture
def unlearned(tmp_path: Path) -> Iterator[Service]:
    """A service that decides without its database."""
    made = Service(tmp_path / "service.sqlite", tmp_path, without_database="unlearned")
    made.make()
    yield made
    made.close()


@contextlib.contextmanager
def ambiguous(written: list[Decided] | None = None) -> Iterator[None]:
    """The database goes away in the middle of every commit, which is made."""
    rank = Committer.rank

    async def lost(self: Committer, bandit: int, decided: Decided) -> None:
        await rank(self, bandit, decided)
        if written is not None:
            written.append(decided)
        raise StoreError("database", "went away in the middle of its commit")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Committer, "rank", lost)
        yield


def test_an_unlearned_answer_is_the_decision_that_may_have_been_written_down(
    unlearned: Service,
) -> None:
    written: list[Decided] = []
    with ambiguous(written):
        shown = [unlearned.rank().json() for _ in range(30)]
    assert [one["event_id"] for one in shown] == [one.event_id for one in written]
    assert ["abc".index(one["action_id"]) for one in shown] == [one.choice for one in written]
    event = shown[0]["event_id"]
    assert unlearned.rewards((event, 1.0))[0]["verdict"] == "accepted"


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        (
            "/v1/bandits/news/rank",
            {"event_id": "e1", "actions": [{"id": "a"}, {"id": "b"}]},
            ("event_id", "action_id"),
        ),
        (
            "/bandits/news/personalizer/v1.0/rank",
            {
                "eventId": "e1",
                "actions": [{"id": "a", "features": [{}]}, {"id": "b", "features": [{}]}],
            },
            ("eventId", "rewardActionId"),
        ),
    ],
)
def test_a_repeated_request_that_is_answered_unlearned_teaches_nothing_about_another_action(
    unlearned: Service, path: str, body: dict[str, Any], fields: tuple[str, str]
) -> None:
    event, action = fields
    first = unlearned.post(path, body)
    assert (first.status_code, first.json()[event]) == (201, "e1")
    assert "discreet-learned" not in first.headers
    with ambiguous():
        answers = [unlearned.post(path, body) for _ in range(30)]
    assert {one.json()[action] for one in answers} == {"a", "b"}  # not by chance once in 2 ** 29
    for one in answers:
        assert (one.status_code, one.headers["discreet-learned"]) == (201, "false")
        reward = unlearned.rewards((one.json()[event], 1.0))[0]
        assert reward["verdict"] == "unknown"
    assert unlearned.rewards(("e1", 1.0))[0]["verdict"] == "accepted"
    assert len({one.json()[event] for one in answers}) == len(answers)


def handled(service: Service, *jobs: Any) -> list[Any]:
    """What becomes of jobs that came together."""
    return service.core._committer._handle(list(jobs))


def decided(event_id: str) -> Decided:
    return Decided(
        event_id=event_id, fresh=False, wait=10.0, active=True, features=b"", otherwise=0.0,
        subject=None, request=b"", choice=0, release=0,
    )  # fmt: skip


def test_a_bandit_that_is_gone_is_refused_and_the_others_go_on(any_service: Service) -> None:
    service = any_service
    service.make("one")
    service.make("two")
    connection = service.database.connect()
    connection.execute("DELETE FROM service_bandit WHERE name = 'one'")
    found = service.rank("one")
    assert (found.status_code, found.json()["error"]["code"]) == (404, "BanditNotFound")
    gone, written = handled(service, _Rank(1, decided("e1")), _Rank(2, decided("e1")))
    assert isinstance(gone, ServiceError)
    assert written is None
    assert connection.execute("SELECT bandit FROM service_event") == [(2,)]
    connection.close()


def test_an_error_is_that_of_its_transaction_of_which_nothing_is_there(
    any_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = any_service
    service.make()
    monkeypatch.setattr(events, "reward", lambda *_, **__: {}["what nobody thought of"])
    answers = handled(
        service,
        _Rank(1, decided("e1")),
        _Rewards(1, [], (0.0, 1.0), adding=False),
        _Work(lambda one: one.execute("SELECT 1 FROM service_bandit")),
    )
    assert [type(one) for one in answers] == [KeyError, KeyError, list]
    connection = service.database.connect()
    assert connection.execute("SELECT events FROM service_bandit") == [(0,)]
    assert connection.execute("SELECT 1 FROM service_event") == []
    connection.close()


def test_a_bad_witness_file_stops_its_own_bandit_only(service: Service) -> None:
    service.make("one")
    service.make("two")
    service.settle()
    (service.folder / "witness" / "1.json").write_bytes(b"")
    service.writer.close()
    service.writer = service.new_writer()
    made = service.post("/v1/keys", {"name": "k", "scopes": ["read"]}).json()
    service.rank("two")
    service.pass_time(11)
    service.settle()
    assert service.rank("one").status_code == 503
    assert "witness" in service.get("/v1/bandits/one").json()["state_reason"]
    assert service.get("/v1/bandits/two").json()["closed"] == 1
    service.request("DELETE", f"/v1/keys/{made['id']}")
    assert service.get("/v1/bandits/two", key=made["key"]).status_code == 401
    service.pass_time(1)
    seen = service.get("/readyz", key=None).text
    assert "1.json" not in seen  # paths are for those who may read the bandit


def test_whatever_a_bandit_makes_the_writer_stumble_over_the_others_go_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.make("one")
    service.make("two")
    service.settle()
    monkeypatch.setattr(
        service.learner(1), "observe", lambda *_, **__: (_ for _ in ()).throw(KeyError("secret"))
    )
    for name in ("one", "two"):
        service.rank(name)
    service.pass_time(11)
    service.settle()
    found = service.get("/v1/bandits/one").json()
    assert (found["state"], "secret" in found["state_reason"]) == ("failed", False)
    assert service.get("/v1/bandits/two").json()["closed"] == 1
    service.writer._after.clear()  # its next turn goes well
    service.settle()
    found = service.get("/v1/bandits/one").json()
    assert (found["state"], found["closed"]) == ("running", 1)


def rewound(service: Service) -> None:
    """Make the witness remember more than there is."""
    service.settle()
    service.writer.close()
    testimony = service.witness.of(1)
    assert testimony is not None
    more = type(testimony)(testimony.learner, testimony.releases, testimony.head, 10**6)
    service.witness.remember(1, more)
    service.writer = service.new_writer()
    service.settle()


def test_a_rewound_bandit_takes_no_rewards_and_keeps_no_raw_data_for_ever(
    any_service: Service,
) -> None:
    service = any_service
    service.make()
    service.rank(event_id="ann", subject="ann")
    service.rank(event_id="bob", subject="bob")
    rewound(service)
    found = service.post("/v1/bandits/news/rewards", [{"event_id": "bob", "value": 1.0}])
    assert (found.status_code, found.json()["error"]["code"]) == (503, "Rewound")
    assert service.post("/v1/bandits/news/events/bob/activate").status_code == 503
    connection = service.database.connect()
    digest = service.core._hashes.subject("news", "ann")
    connection.execute(
        "INSERT INTO service_erasure (id, bandit, subject, asked, done) VALUES ('x', 1, ?, 0, 0)",
        (digest,),
    )

    def raw() -> list[int]:
        service.writer._after.clear()
        service.settle()
        query = "SELECT number FROM service_pending WHERE features IS NOT NULL ORDER BY number"
        return [row[0] for row in connection.execute(query)]

    assert raw() == [2]  # ann's is gone at once, although the learner's part waits
    service.pass_time(10 + 86000)
    assert raw() == [2]
    service.pass_time(500)  # a day after the deadline
    assert raw() == []
    connection.close()


def test_all_that_waits_for_a_bandit_that_fails_is_not_looked_through_at_every_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.make()
    service.rank()
    rewound(service)
    plain, times = events.blank, []

    def noted(*arguments: Any) -> None:
        times.append(service.clock.now)
        plain(*arguments)

    monkeypatch.setattr(events, "blank", noted)
    began = service.clock.now
    for seconds in (0, 100, 100, 100, 100, -1000, 0):
        service.pass_time(seconds)
        service.writer._after.clear()
        service.writer.turn()
    assert times == [began + 300, began - 600]  # the clock was put back


def test_data_is_not_opened_with_another_key_for_hashes(service: Service, tmp_path: Path) -> None:
    async def start(secret: bytes | None, place: Path) -> None:
        core = Core(
            Database(place), administrator=ADMIN, secret=secret, witness=Witness(tmp_path / "w")
        )
        try:
            await core.start()
            await core.close()
        except ParameterError:
            await core._committer.close()
            raise

    for_hashes = {tmp_path / "service.sqlite": None, tmp_path / "given.sqlite": b"k" * 20}
    service.loop.run(start(b"k" * 20, tmp_path / "given.sqlite"))
    for place, right in for_hashes.items():
        service.loop.run(start(right, place))
        for wrong in {None, b"k" * 20, b"l" * 20} - {right}:
            with pytest.raises(ParameterError, match="DISCREET_SECRET"):
                service.loop.run(start(wrong, place))


def test_a_context_that_is_too_deep_to_be_hashed_is_a_request_that_cannot_be() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    request = RankRequest(actions=[Action(id="a")], context=deep)
    with pytest.raises(ServiceError, match="nested too deeply") as caught:
        Hashes(b"k" * 20).request(request, "a key")
    assert caught.value.status == 400


def test_an_empty_key_opens_nothing() -> None:
    assert administrator_of({"DISCREET_ADMIN_KEY": ""}) is None
    assert administrator_of({}) is None
    assert Keyring(administrator("")).find("") is None
    for text in (" key", "key\n", "k\x00y", "schlüssel"):
        with pytest.raises(ParameterError, match="DISCREET_ADMIN_KEY"):
            administrator_of({"DISCREET_ADMIN_KEY": text})


def test_a_service_is_never_without_a_key_that_administers_all_of_it(service: Service) -> None:
    async def start() -> tuple[str | None, Core]:
        core = Core(service.database, witness=service.witness, clock=service.clock)
        return await core.start(), core

    service.make("one")
    body = {"name": "k", "scopes": ["admin"], "bandit": "one"}
    assert service.post("/v1/keys", body).status_code == 201
    for first in (True, False):  # a key for one bandit is none for all of them
        shown, core = service.loop.run(start())
        service.loop.run(core.close())
        assert (shown is not None) == first


@pytest.mark.parametrize("text", ["", "short", "x" * 65])
def test_a_key_for_hashes_has_a_length(text: str) -> None:
    with pytest.raises(ParameterError, match="DISCREET_SECRET"):
        secret_of({"DISCREET_SECRET": text})


@pytest.mark.parametrize("policy", ["posterior", "ucb"])
def test_nobody_waits_while_the_first_decision_of_a_release_is_made_ready(
    service: Service, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """It may compile for many seconds. The event loop, which has all requests, is not kept."""
    plain, seen = Ranker.rank, {}

    def noted(self: Ranker, *arguments: Any, **more: Any) -> Any:
        seen.setdefault(self.release.number, threading.current_thread())
        return plain(self, *arguments, **more)

    monkeypatch.setattr(Ranker, "rank", noted)
    service.make(policy={"rule": policy})
    for _ in range(2):
        for _ in range(100):
            assert service.rank().status_code == 201
        service.pass_time(11)
        service.settle()
    assert service.rank().json()["release"]["number"] == max(seen) > 1
    assert service.loop._thread not in seen.values()


def test_two_changes_of_a_bandit_at_once_are_both_made(service: Service) -> None:
    service.make()
    other = Service(service.place, service.folder)  # another ranker, which has not looked since
    try:
        service.loop.run(service.core.configure("news", wait_seconds=77, who="a"))
        other.loop.run(other.core.configure("news", default=0.5, who="b"))
        other.settle()
        rule = other.get("/v1/bandits/news").json()["reward"]
        assert (rule["wait_seconds"], rule["default"]) == (77, 0.5)
    finally:
        other.close()


def test_characters_that_a_database_cannot_hold_are_refused(any_service: Service) -> None:
    service = any_service
    service.make()
    found = service.post("/v1/keys", {"name": "a\x00b", "scopes": ["read"]})
    assert (found.status_code, found.json()["error"]["code"]) == (400, "BadRequest")
    assert service.post("/v1/bandits/news/events/%00x/activate").status_code == 404
    assert service.request("DELETE", "/v1/keys/%00").status_code == 404


def test_two_rankers_that_make_one_bandit_at_once_make_one(any_service: Service) -> None:
    service = any_service
    other = Service(service.place, service.folder)
    try:
        body = {"name": "news", "epsilon": 1, "delta": 1e-6, "horizon": 100}
        found: list[int] = []

        def make(ranker: Service) -> None:
            found.append(ranker.post("/v1/bandits", body).status_code)

        threads = [threading.Thread(target=make, args=(one,)) for one in (service, other)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert sorted(found) == [201, 409]
    finally:
        other.close()
