"""The typed client against a scripted server: what it sends, what it repeats, what it refuses.

The server is made of the standard library, as the client is; the last test has the real one.
"""

import inspect
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import ADMINISTRATOR, PATIENCE, running

import discreet
from discreet import errors
from discreet.client import Client, ClientError, Erased, NewKey, RankedAction, Retries
from discreet.client import _transport as transport

KEY = "dk_0123456789ab_a-secret-that-nobody-may-see"
RANKED = {
    "event_id": "e1",
    "action_id": "a2",
    "ranking": [{"id": "a2", "probability": 0.75}, {"id": "a1", "probability": 0.25}],
    "release": {"number": 3, "digest": "ab"},
}
BANDIT = {"name": "news", "epsilon": 1.0, "delta": 1e-6, "horizon": None, "something": "newer"}


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class Script:
    """What the server answers: (status, body, headers), or 'hang up'. The last one is repeated."""

    answers: list[Any]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    def next(self) -> Any:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        self.script.seen.append(
            Seen(self.command, self.path, dict(self.headers), body, id(self.connection))
        )
        given = self.script.next()
        if callable(given):
            given = given(body)
        if given == "hang up":
            self.close_connection = True
            return
        status, content, headers = given
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        if headers.get("X-Then") == "hang up":  # without saying so, as an idle server does
            self.close_connection = True

    do_GET = do_POST = do_DELETE = answer  # noqa: N815  # names of the standard library

    def log_message(self, *_: object) -> None:
        """Say nothing."""


Serve = Callable[..., Script]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server with answers; give its script."""
    servers: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(*answers: Any) -> Script:
        script = Script(list(answers))
        handler = type("Scripted", (Handler,), {"script": script})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        return script

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client would have slept; it does not."""
    found: list[float] = []
    monkeypatch.setattr(transport.time, "sleep", found.append)
    return found


def ok(body: Any = None, status: int = 200, **headers: str) -> tuple[int, Any, dict[str, str]]:
    return (
        status,
        b"" if body is None else body,
        {k.replace("_", "-"): v for k, v in headers.items()},
    )


def refusal(status: int, code: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
    return ok({"error": {"code": code, "message": "Says what to do."}}, status, **headers)


OPEN: list[Client] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close the clients of each test."""
    yield
    while OPEN:
        OPEN.pop().close()


def client(script: Script, **settings: Any) -> Client:
    OPEN.append(Client(script.url, KEY, bandit="news", timeout=10.0, **settings))
    return OPEN[-1]


def test_a_rank_sends_what_was_given_and_nothing_else_and_reads_the_answer(serve: Serve) -> None:
    script = serve(ok(RANKED, 201))
    with client(script) as service:
        shown = service.rank(
            ["a1", {"id": "a2", "features": {"topic": "arts"}}],
            context={"device": "phone"},
            exclude=["a3"],
            event_id="e1",
            subject="somebody",
            defer=True,
        )
        service.rank(["a1"], bandit="an other/one")
    first, second = script.seen
    assert (first.method, first.path) == ("POST", "/v1/bandits/news/rank")
    assert first.headers["Authorization"] == f"Bearer {KEY}"
    assert first.body == {
        "event_id": "e1",
        "actions": [{"id": "a1"}, {"id": "a2", "features": {"topic": "arts"}}],
        "context": {"device": "phone"},
        "exclude": ["a3"],
        "subject": "somebody",
        "defer": True,
    }
    assert second.path == "/v1/bandits/an%20other%2Fone/rank"
    assert set(second.body) == {"event_id", "actions"}
    assert len(second.body["event_id"]) == 32
    assert (shown.event_id, shown.action_id, shown.release.number) == ("e1", "a2", 3)
    assert shown.ranking[0] == RankedAction(id="a2", probability=0.75)


def test_one_connection_serves_many_calls(serve: Serve) -> None:
    script = serve(ok(RANKED, 201))
    with client(script) as service:
        for _ in range(5):
            service.rank(["a1", "a2"])
    assert len({one.connection for one in script.seen}) == 1


def test_a_repeated_rank_has_the_event_id_of_the_first_attempt(
    serve: Serve, waits: list[float]
) -> None:
    busy = refusal(503, "StoreUnavailable")
    script = serve("hang up", busy, ok(b"<html>", 502), ok(RANKED, 201))
    assert client(script).rank(["a1", "a2"]).action_id == "a2"
    assert len(script.seen) == 4
    assert len({one.body["event_id"] for one in script.seen}) == 1
    assert len(waits) == 3


def test_waits_double_and_are_shortened_at_random_by_at_most_a_half(
    serve: Serve, waits: list[float]
) -> None:
    script = serve(refusal(503, "StoreUnavailable"))
    with pytest.raises(ClientError) as caught:
        client(script, retries=Retries(attempts=6, first=1.0, longest=6.0)).bandit()
    assert (caught.value.status, caught.value.code) == (503, "StoreUnavailable")
    assert len(script.seen) == 6
    for wait, most in zip(waits, [1.0, 2.0, 4.0, 6.0, 6.0], strict=True):
        assert most / 2 <= wait <= most or wait == 6.0
    assert len(set(waits[:3])) == 3


def test_clients_that_fail_together_do_not_return_together() -> None:
    waits = [Retries(first=1.0).wait(1, None) for _ in range(100)]
    assert min(waits) >= 0.5
    assert max(waits) <= 1.0
    assert len(set(waits)) > 50


def test_a_wait_is_as_long_as_the_service_asks_for_but_not_longer_than_is_allowed(
    serve: Serve, waits: list[float]
) -> None:
    script = serve(
        refusal(429, "RateLimited", Retry_After="3"),
        refusal(429, "RateLimited", Retry_After="3600"),
        refusal(429, "RateLimited", Retry_After="Wed, 21 Oct 2099 07:28:00 GMT"),
        ok(BANDIT),
    )
    client(script, retries=Retries(first=0.001, longest=7.0)).bandit()
    assert waits[:2] == [3.0, 7.0]
    assert waits[2] < 0.01


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 500])
def test_a_refusal_is_an_error_with_the_services_own_words_and_is_not_repeated(
    serve: Serve, waits: list[float], status: int
) -> None:
    script = serve(refusal(status, "SomeCode"))
    with pytest.raises(ClientError, match=r"rank: Says what to do\.") as caught:
        client(script).rank(["a1"])
    assert (caught.value.status, caught.value.code) == (status, "SomeCode")
    assert caught.value.message.startswith("Says what to do.")
    assert isinstance(caught.value, errors.DiscreetError)
    assert len(script.seen) == 1
    assert waits == []


def test_what_must_not_be_done_twice_is_not_repeated_after_a_lost_answer(
    serve: Serve, waits: list[float]
) -> None:
    for lost in ("hang up", ok(b"", 502), ok(b"", 504)):
        script = serve(lost, ok(BANDIT, 201))
        with pytest.raises(ClientError):
            client(script).create_bandit("news", epsilon=1.0, delta=1e-6, horizon=None)
        assert len(script.seen) == 1
        script = serve(lost, ok({"id": "k", "name": "n", "scopes": []}, 201))
        with pytest.raises(ClientError):
            client(script).create_key("n", ["rank"])
        assert len(script.seen) == 1
    assert waits == []


def test_what_must_not_be_done_twice_is_repeated_if_it_was_not_done(
    serve: Serve, waits: list[float]
) -> None:
    script = serve(refusal(429, "RateLimited"), refusal(503, "StoreUnavailable"), ok(BANDIT, 201))
    made = client(script).create_bandit(
        "news", epsilon=1.0, delta=1e-6, horizon=None, theta_norm=1.0, policy=None
    )
    assert made.name == "news"
    assert len(waits) == 2
    assert script.seen[0].body == {
        "name": "news",
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": None,
        "theta_norm": 1.0,
    }


def test_a_connection_that_the_service_closed_meanwhile_costs_no_attempt(
    serve: Serve, waits: list[float]
) -> None:
    script = serve(ok(BANDIT, X_Then="hang up"))
    service = client(script, retries=Retries(attempts=1))
    for _ in range(3):
        assert service.bandit().name == "news"
    assert waits == []


def test_a_service_that_is_not_there_is_an_error_without_a_status(
    serve: Serve, waits: list[float]
) -> None:
    script = serve(ok())
    nowhere = Client("http://127.0.0.1:1", KEY, retries=Retries(attempts=3))
    with pytest.raises(ClientError, match="is the service up") as caught:
        nowhere.bandits()
    assert (caught.value.status, caught.value.code) == (0, "Unreachable")
    assert len(waits) == 2
    assert script.seen == []


def test_rewards_go_in_batches_and_verdicts_come_in_order(serve: Serve) -> None:
    def verdicts(body: list[dict[str, Any]]) -> Any:
        assert len(body) <= 1_000
        return ok(
            [
                {"event_id": one["event_id"], "status": 204, "verdict": "accepted"}
                if one["value"] <= 1
                else {"event_id": one["event_id"], "status": 400, "verdict": "invalid"}
                for one in body
            ],
            207,
        )

    script = serve(verdicts)
    service = client(script)
    found = service.rewards((f"e{n}", float(n % 3)) for n in range(2_500))
    assert [one.event_id for one in found] == [f"e{n}" for n in range(2_500)]
    assert [one.status for one in found[:3]] == [204, 204, 400]
    assert [len(one.body) for one in script.seen] == [1_000, 1_000, 500]
    assert service.rewards({"e1": 0.5})[0].verdict == "accepted"
    assert service.rewards([]) == []
    assert service.reward("e1", 1.0).verdict == "accepted"
    with pytest.raises(ClientError, match="invalid") as caught:
        service.reward("e1", 7.0)
    assert caught.value.status == 400


def test_what_cannot_be_an_events_id_is_the_verdict_of_that_one_alone(serve: Serve) -> None:
    verdict = {"event_id": "", "status": 400, "verdict": "invalid"}
    sound = {"event_id": "e1", "status": 204, "verdict": "accepted"}
    service = client(serve(ok([sound, verdict], 207), ok([verdict], 207), ok([sound], 207)))
    found = service.rewards([("e1", 1.0), ("e 2", 1.0)])
    assert [(one.event_id, one.verdict) for one in found] == [
        ("e1", "accepted"),
        ("e 2", "invalid"),
    ]
    with pytest.raises(ClientError, match="invalid") as caught:
        service.reward("e 2", 1.0)
    assert (caught.value.status, caught.value.code) == (400, "BadRequest")
    with pytest.raises(ClientError, match="something else"):
        service.reward("e3", 1.0)  # whose verdict is about another event


def test_a_client_is_more_patient_than_the_service() -> None:
    """That gives up a database, or a writer that should erase somebody, and then says so."""
    pytest.importorskip("starlette", reason="the extra `serve` is not installed")
    from discreet.service import _administration, _worker  # noqa: PLC0415  # it needs the extra

    patience = inspect.signature(Client).parameters["timeout"].default
    assert patience > 2.0 * max(_worker._PATIENCE, _administration._PATIENCE)


def test_a_reward_of_an_unknown_event_is_an_error(serve: Serve) -> None:
    script = serve(ok([{"event_id": "e1", "status": 404, "verdict": "unknown"}], 207))
    with pytest.raises(ClientError) as caught:
        client(script).reward("e1", 1.0)
    assert (caught.value.status, caught.value.code) == (404, "EventNotFound")


@pytest.mark.parametrize("content", [b"", b"<html>", b"[1]", b"{}", b"null", b"\xff", b"[" * 9999])
def test_an_answer_of_something_else_is_said_to_be_one(serve: Serve, content: bytes) -> None:
    script = serve(ok(content))
    service = client(script)
    for call in (lambda: service.rank(["a"]), lambda: service.reward("e", 1.0), service.bandits):
        with pytest.raises(ClientError, match="something else"):
            call()
    script.answers = [ok(content, 418)]
    with pytest.raises(ClientError, match="is the address right"):
        service.rank(["a"])


def test_calls_have_the_paths_and_methods_of_the_service(serve: Serve) -> None:
    key = {"id": "k1", "name": "n", "scopes": ["rank"], "bandit": None, "created": 1.0}
    script = serve(ok())
    service = client(script)

    def asked(answer: Any, call: Callable[[], Any]) -> tuple[Any, str]:
        script.answers = [answer]
        found = call()
        return found, f"{script.seen[-1].method} {script.seen[-1].path}"

    assert asked(ok(status=204), lambda: service.activate("e/1"))[1] == (
        "POST /v1/bandits/news/events/e%2F1/activate"
    )
    assert asked(ok({"bandits": [BANDIT]}), service.bandits)[0][0].name == "news"
    assert asked(ok(BANDIT), lambda: service.bandit("b"))[1] == "GET /v1/bandits/b"
    assert asked(ok({"epsilon": 1}), service.card) == (
        {"epsilon": 1},
        "GET /v1/bandits/news/card",
    )
    erased, where = asked(
        ok({"open": 1, "in_batch": 2, "released": None}, 202), lambda: service.erase("a b?")
    )
    assert (erased.open, erased.in_batch, erased.released) == (1, 2, None)
    assert where == "DELETE /v1/bandits/news/subjects/a%20b%3F"
    assert asked(ok({"keys": [key]}), service.keys)[0][0].scopes == ("rank",)
    assert asked(ok(status=204), lambda: service.revoke_key("k1"))[1] == "DELETE /v1/keys/k1"
    made, where = asked(ok({**key, "key": KEY}, 201), lambda: service.create_key("n", ["rank"]))
    assert (made.key, where) == (KEY, "POST /v1/keys")
    assert script.seen[-1].body == {"name": "n", "scopes": ["rank"]}
    service.create_key("n", ["rank"], bandit="b")
    assert script.seen[-1].body == {"name": "n", "scopes": ["rank"], "bandit": "b"}


def learner() -> discreet.LinUCB:
    problem = discreet.Problem.between(0, 1, dim=2, action_norm=1, theta_norm=0.5)
    bandit = discreet.LinUCB(
        problem, horizon=10_000, privacy=discreet.Privacy(epsilon=1, delta=1e-6)
    )
    bandit.observe(np.tile(np.eye(2), (500, 1)), np.tile([0.8, 0.3], 500))
    return bandit


def test_a_release_and_a_ledger_are_checked_and_an_altered_one_is_refused(serve: Serve) -> None:
    bandit = learner()
    document = bandit.release.to_json()
    script = serve(ok(document))
    service = client(script)
    number = bandit.release.number
    assert service.release().number == number
    assert script.seen[-1].path == "/v1/bandits/news/releases/latest"
    assert service.release(number).rows == bandit.release.rows
    assert script.seen[-1].path == f"/v1/bandits/news/releases/{number}"
    with pytest.raises(ClientError, match="something else"):
        service.release(number + 1)
    moment = [document["moment"][0] + 1.0, *document["moment"][1:]]
    script.answers = [ok({**document, "moment": moment})]
    with pytest.raises(errors.ParameterError, match="altered"):
        service.release()

    lines = b"".join(bandit.ledger.lines())
    script.answers = [ok(lines)]
    ledger = service.ledger()
    assert ledger.holds(bandit.release)
    assert script.seen[-1].path == "/v1/bandits/news/ledger?format=lines"
    script.answers = [ok(lines.replace(b'"rows":', b'"rows":1', 1))]
    with pytest.raises(errors.BrokenLedgerError):
        service.ledger()


def test_threads_share_a_client(serve: Serve) -> None:
    def verdict(body: list[dict[str, Any]]) -> Any:
        return ok([{"event_id": body[0]["event_id"], "status": 204, "verdict": "accepted"}], 207)

    script = serve(verdict)
    service = client(script)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: service.reward(f"e{n}", 1.0), range(200)))
    assert [one.event_id for one in found] == [f"e{n}" for n in range(200)]
    service.close()


def test_the_key_is_in_no_repr_and_in_no_error(serve: Serve, waits: list[float]) -> None:
    script = serve(refusal(401, "Unauthorized"), "hang up")
    service = client(script)
    shown = [repr(service), repr(NewKey(id="k", name="n", scopes=(), key=KEY))]
    for _ in range(2):
        with pytest.raises(ClientError) as caught:
            service.rank(["a1"])
        shown += [str(caught.value), repr(caught.value), repr(vars(caught.value))]
    for wrong in ("", KEY + "\n", "kéy", "a b"):
        with pytest.raises(errors.ParameterError) as refused:
            Client(script.url, wrong)
        shown += [str(refused.value), repr(refused.value)]
    assert not any("secret" in one or "kéy" in one for one in shown)
    assert len(waits) == 4


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://localhost",
        "http://",
        "http://localhost:port",
        "http://localhost:99999",
        "http://localhost/?key=1",
        "http://somebody:secret@localhost",
        "http://local host",
        "http://[::1",
        "http://h/\r\nX: y",
    ],
)
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(errors.ParameterError, match="url") as caught:
        Client(url, KEY)
    assert "secret" not in str(caught.value)


def test_an_address_may_have_a_path_of_its_own(serve: Serve) -> None:
    script = serve(ok(BANDIT))
    with Client(script.url + "/below/", KEY, bandit="news") as service:
        service.bandit()
    assert script.seen[0].path == "/below/v1/bandits/news"


def test_calls_that_cannot_be_meant_are_refused_before_anything_is_sent(serve: Serve) -> None:
    script = serve(ok())
    nameless = Client(script.url, KEY)
    with pytest.raises(errors.ParameterError, match="bandit"):
        nameless.rank(["a1"])
    with pytest.raises(errors.ParameterError, match="not plain JSON"):
        client(script).rank(["a1"], context={"x": float("nan")})
    with pytest.raises(errors.ParameterError, match="not plain JSON"):
        client(script).rank(["a1"], context={"x": {1, 2}})
    with pytest.raises(errors.ParameterError, match="empty"):
        client(script).activate("")
    with pytest.raises(errors.ParameterError, match="half a character"):
        client(script).erase("\ud800")
    with pytest.raises(errors.ParameterError, match="attempt"):
        client(script, retries=Retries(attempts=0))
    assert script.seen == []


def test_importing_the_client_imports_neither_a_number_library_nor_the_service() -> None:
    watched = "{'numpy', 'numba', 'scipy', 'starlette', 'msgspec'}"
    program = f"import sys, discreet.client; print({watched} & set(sys.modules))"
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, check=True, text=True)
    assert found.stdout.strip() == "set()"


def test_every_call_works_against_a_service_that_runs(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the extra `serve` is not installed")
    ids = ["red", "green"]
    features = discreet.features.FeatureMap((discreet.features.action_id(ids),))
    with running(tmp_path) as url, Client(url, ADMINISTRATOR, bandit="banners") as service:
        made = service.create_bandit(
            "banners",
            epsilon=50.0,
            delta=0.01,
            horizon=10_000,
            contributions_per_user=5,
            reward={"low": 0, "high": 1, "wait_seconds": 0.5, "default": 0},
            features=features.to_json(),
        )
        assert (made.name, made.dim, made.state, made.release["number"]) == (
            "banners",
            2,
            "running",
            0,
        )
        with pytest.raises(ClientError) as caught:
            service.create_bandit("banners", epsilon=1.0, delta=1e-6, horizon=None)
        assert (caught.value.status, caught.value.code) == (409, "BanditExists")
        service.create_bandit("patient", epsilon=1.0, delta=1e-6, horizon=None)
        assert [one.name for one in service.bandits()] == ["banners", "patient"]
        first = service.rank(ids, event_id="mine", bandit="patient")
        assert service.rank(ids, event_id="mine", bandit="patient") == first

        key = service.create_key("loop", ["rank", "reward"], bandit="banners")
        with Client(url, key.key, bandit="banners") as loop:
            shown = [loop.rank(ids, subject=f"person {n}") for n in range(200)]
            late = loop.rank(ids, exclude=["red"], defer=True)
            assert late.action_id == "green"
            loop.activate(late.event_id)
            assert loop.rewards([("no id", 1.0)])[0].verdict == "invalid"
            verdicts = loop.rewards({one.event_id: 1.0 for one in shown})
            assert {one.status for one in verdicts} == {204}
            with pytest.raises(ClientError) as caught:
                loop.reward("nobody's", 1.0)
            assert caught.value.code == "EventNotFound"
            with pytest.raises(ClientError) as caught:
                loop.card()
            assert caught.value.code == "Forbidden"

        until = time.monotonic() + PATIENCE
        while not service.bandit().release["number"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        release = service.release()
        ledger = service.ledger()  # after the release: others may have been made since
        assert ledger.holds(release)
        assert service.release(release.number).rows == release.rows
        assert service.card()["epsilon"] == 50.0
        with pytest.raises(ClientError) as caught:
            service.release(10_000)
        assert caught.value.code == "ReleaseNotFound"
        assert isinstance(service.erase("person 1"), Erased)
        assert key.id in [one.id for one in service.keys()]  # noqa: SIM118  # no dictionary
        service.revoke_key(key.id)
        assert key.id not in [one.id for one in service.keys()]  # noqa: SIM118
