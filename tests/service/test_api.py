"""The HTTP interface: who may do what, what is answered, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

import discreet
from discreet.release.ledger import Ledger
from discreet.service._api import ROUTES
from discreet.service._bodies import Health
from service.serving import ADMIN, Service


def test_a_decision_has_an_event_a_ranking_and_its_release(any_service: Service) -> None:
    any_service.make()
    found = any_service.rank(context={"device": "phone"})
    assert found.status_code == 201
    body = found.json()
    assert set(body) == {"event_id", "action_id", "ranking", "release"}
    assert {one["id"] for one in body["ranking"]} == {"a", "b", "c"}
    assert sum(one["probability"] for one in body["ranking"]) == pytest.approx(1.0)
    assert body["action_id"] in {"a", "b", "c"}
    assert body["release"]["number"] == 0
    latest = any_service.get("/v1/bandits/news/releases/latest")
    assert latest.json()["digest"] == body["release"]["digest"]


def test_a_repeated_request_is_one_event_with_one_answer(any_service: Service) -> None:
    any_service.make()
    answers = [any_service.rank(event_id="e1", context={"a": 1}).json() for _ in range(12)]
    assert all(one == answers[0] for one in answers)
    assert any_service.get("/v1/bandits/news").json()["events"] == 1
    other = any_service.rank(event_id="e1", context={"a": 2})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "EventExists")


@pytest.mark.parametrize(
    ("path", "features", "fixed"),
    [
        ("/v1/bandits/news/rank", "context", {"event_id": "e1", "actions": [{"id": "a"}]}),
        (
            "/bandits/news/personalizer/v1.0/rank",
            "contextFeatures",
            {"eventId": "e1", "actions": [{"id": "a", "features": [{}]}]},
        ),
    ],
)
def test_a_right_guess_of_what_another_key_asked_is_answered_like_a_wrong_one(
    service: Service, path: str, features: str, fixed: dict[str, object]
) -> None:
    service.make()
    shop, snoop = (
        service.post("/v1/keys", {"name": name, "scopes": ["rank"]}).json()["key"]
        for name in ("shop", "snoop")
    )

    def ask(illness: str, key: str) -> httpx.Response:
        found = {"illness": illness}
        said = found if features == "context" else [found]
        return service.post(path, {**fixed, features: said}, key=key)

    first = ask("flu", shop)
    assert first.status_code == 201
    right, wrong = ask("flu", snoop), ask("gout", snoop)
    assert (right.status_code, right.content) == (409, wrong.content)
    assert ask("flu", ADMIN).status_code == 409  # it is another key, too
    again = ask("flu", shop)
    assert (again.status_code, again.json()) == (201, first.json())


def test_a_repeated_request_is_answered_from_the_release_of_its_first_answer(
    service: Service,
) -> None:
    service.make(reward={"wait_seconds": 1})
    for _ in range(60):
        service.rank()
    service.loop.run(service.core.configure("news", wait_seconds=1000.0, who="test"))
    first = service.rank(event_id="e1", context={"device": "phone"}).json()
    service.pass_time(2)
    service.settle()
    assert service.get("/v1/bandits/news").json()["release"]["number"] > 0
    assert service.rank(event_id="e1", context={"device": "phone"}).json() == first


def test_a_closed_event_cannot_be_asked_for_again(service: Service) -> None:
    service.make()
    service.rank(event_id="e1")
    service.pass_time(11)
    service.settle()
    assert service.rank(event_id="e1").status_code == 409
    assert service.get("/v1/bandits/news").json()["events"] == 1


def test_excluded_actions_are_never_chosen_nor_ranked(service: Service) -> None:
    service.make()
    for _ in range(20):
        body = service.rank(exclude=["a", "c"]).json()
        assert body["action_id"] == "b"
        assert body["ranking"] == [{"id": "b", "probability": 1.0}]
    assert service.rank(exclude=["a", "b", "c"]).status_code == 400


def test_all_events_of_the_horizon_are_had_and_no_more(service: Service) -> None:
    service.make(horizon=5)
    codes = [service.rank().status_code for _ in range(7)]
    assert codes == [201] * 5 + [409] * 2
    assert service.rank().json()["error"]["code"] == "HorizonReached"
    assert service.get("/v1/bandits/news").json()["events"] == 5


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/bandits/news/rank", "rank"),
        ("POST", "/v1/bandits/news/events/e/activate", "rank"),
        ("POST", "/v1/bandits/news/rewards", "reward"),
        ("GET", "/v1/bandits", "read"),
        ("GET", "/v1/bandits/news", "read"),
        ("GET", "/v1/bandits/news/releases", "read"),
        ("GET", "/v1/bandits/news/releases/latest", "read"),
        ("GET", "/v1/bandits/news/releases/0", "read"),
        ("GET", "/v1/bandits/news/card", "read"),
        ("GET", "/v1/bandits/news/ledger", "read"),
        ("POST", "/v1/bandits", "admin"),
        ("DELETE", "/v1/bandits/news/subjects/ann", "admin"),
        ("POST", "/v1/keys", "admin"),
        ("GET", "/v1/keys", "admin"),
        ("DELETE", "/v1/keys/none", "admin"),
        ("GET", "/v1/audit-log", "admin"),
    ],
)
def test_each_route_needs_its_scope(service: Service, method: str, path: str, scope: str) -> None:
    service.make()
    for name in ("rank", "reward", "read"):
        key = service.post("/v1/keys", {"name": name, "scopes": [name]}).json()["key"]
        code = service.request(method, path, key=key).status_code
        assert (code != 403) == (name == scope), name
    assert service.request(method, path, key=None).status_code == 401
    assert service.request(method, path, key="dk_000000000000_" + "x" * 40).status_code == 401


def test_a_key_for_one_bandit_opens_no_other(service: Service) -> None:
    service.make("one")
    service.make("two")
    made = service.post("/v1/keys", {"name": "k", "scopes": ["rank", "read"], "bandit": "one"})
    key = made.json()["key"]
    actions = {"actions": [{"id": "a"}]}
    assert service.post("/v1/bandits/one/rank", actions, key=key).status_code == 201
    assert service.post("/v1/bandits/two/rank", actions, key=key).status_code == 403
    shown = service.get("/v1/bandits", key=key).json()["bandits"]
    assert [one["name"] for one in shown] == ["one"]
    admin = service.post("/v1/keys", {"name": "k", "scopes": ["admin"], "bandit": "one"})
    for path in ("/v1/keys", "/v1/audit-log"):
        assert service.get(path, key=admin.json()["key"]).status_code == 403


def test_a_revoked_key_is_no_key(service: Service) -> None:
    service.make()
    made = service.post("/v1/keys", {"name": "k", "scopes": ["read"]}).json()
    assert service.get("/v1/bandits", key=made["key"]).status_code == 200
    assert service.request("DELETE", f"/v1/keys/{made['id']}").status_code == 204
    assert service.get("/v1/bandits", key=made["key"]).status_code == 401
    assert service.request("DELETE", f"/v1/keys/{made['id']}").status_code == 404


def test_the_text_of_a_key_is_not_stored(service: Service) -> None:
    made = service.post("/v1/keys", {"name": "k", "scopes": ["read"]}).json()
    secret = made["key"].rsplit("_", 1)[-1].encode()
    files = [path for path in service.folder.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in files)
    assert "key" not in service.get("/v1/keys").json()["keys"][0]


def test_both_headers_for_keys_are_read(service: Service) -> None:
    headers = {"Ocp-Apim-Subscription-Key": ADMIN}
    assert service.get("/v1/bandits", key=None, headers=headers).status_code == 200


def test_administrative_calls_are_in_the_audit_log_without_names_of_people(
    service: Service,
) -> None:
    service.make()
    made = service.post("/v1/keys", {"name": "for the app", "scopes": ["rank"]}).json()
    service.request("DELETE", f"/v1/keys/{made['id']}")
    entries = service.get("/v1/audit-log").json()["entries"]
    assert sorted(one["what"] for one in entries) == [
        "create bandit", "create key (rank)", "revoke key",
    ]  # fmt: skip
    assert all(one["who"] == "administrator (environment)" for one in entries)


@pytest.mark.parametrize("subject", ["", "x" * 501, "jos%E9", "%FF"])
def test_nobody_is_said_to_be_erased_whom_no_rank_can_have_named(
    service: Service, subject: str
) -> None:
    service.make()
    found = service.request("DELETE", f"/v1/bandits/news/subjects/{subject}")
    assert found.status_code == 400
    assert found.json()["error"]["message"].startswith("subject: ")
    entries = service.get("/v1/audit-log").json()["entries"]
    assert [one["what"] for one in entries] == ["create bandit"]


@pytest.mark.parametrize("subject", ["x" * 500, "a/b?c#d%", "jos\u00e9", "\ufffd", "  "])
def test_whoever_a_rank_named_can_be_erased(
    service: Service, monkeypatch: pytest.MonkeyPatch, subject: str
) -> None:
    monkeypatch.setattr("discreet.service._administration._PATIENCE", 0.0)
    service.make()
    assert service.rank(subject=subject).status_code == 201
    path = f"/v1/bandits/news/subjects/{quote(subject, safe='')}"
    assert service.request("DELETE", path).status_code == 202
    service.settle()
    connection = service.database.connect()
    found = connection.execute("SELECT waiting FROM service_erasure WHERE done = 1")
    connection.close()
    assert found == [(1,)]


def test_releases_have_digests_that_hold_and_tags_that_last(service: Service) -> None:
    service.make()
    for _ in range(80):
        service.rank()
    service.pass_time(11)
    service.settle()
    latest = service.get("/v1/bandits/news/releases/latest")
    release = discreet.Release.from_json(latest.json())
    assert release.number > 0
    numbered = service.get(f"/v1/bandits/news/releases/{release.number}")
    assert numbered.content == latest.content
    assert "immutable" in numbered.headers["cache-control"]
    tag = {"If-None-Match": numbered.headers["etag"]}
    path = f"/v1/bandits/news/releases/{release.number}"
    assert service.get(path, headers=tag).status_code == 304
    lines = service.get("/v1/bandits/news/ledger?format=lines").content
    assert Ledger.parse(lines).holds(release)
    assert service.get("/v1/bandits/news/releases/999").status_code == 404
    assert service.get("/v1/bandits/news/releases/-1").status_code == 404


@pytest.mark.parametrize("path", ["/v1/bandits/news", "/readyz"])
def test_an_error_that_nobody_thought_of_is_json_and_one_line_without_its_message(
    service: Service,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service.make()
    for name in ("counts", "health"):
        monkeypatch.setattr(service.core, name, lambda *_: {}["a secret"])
    found = service.get(path)
    assert (found.status_code, found.json()["error"]["code"]) == (500, "InternalError")
    assert found.headers["x-content-type-options"] == "nosniff"
    lines = [one for one in caplog.records if one.levelname == "ERROR"]
    assert [(one.getMessage(), one.kind) for one in lines] == [("internal", "KeyError")]
    assert "secret" not in caplog.text + found.text
    assert all(one.exc_info is None for one in lines)


def test_the_card_states_the_promise_and_what_the_joiner_adds(service: Service) -> None:
    service.make()
    card = service.get("/v1/bandits/news/card").json()
    assert card["epsilon"] == 50.0
    assert "whether and when a reward came is protected" in card["joiner"]
    assert "now the wait is 10 seconds, and the default is 0." in card["joiner"]
    assert card["learner"] is None  # the writer has not made it yet
    service.settle()
    card = service.get("/v1/bandits/news/card").json()
    assert card["learner"] == service.get("/v1/bandits/news/ledger").json()["learner"]
    assert card["learner"] == service.learner().ledger.learner


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"horizon": 0}, "horizon"),
        ({"reward": {"low": 1, "high": 0}}, "reward"),
        ({"reward": {"default": 7}}, "reward"),
        ({"reward": {"wait_seconds": -1}}, "wait_seconds"),
        ({"reward": {"aggregation": "median"}}, "aggregation"),
        ({"policy": {"rule": "thompson"}}, "policy"),
        ({"policy": {"rule": "nonsense"}}, "policy"),
        ({"features": {"parts": 3}}, "parts"),
        ({"contributions_per_user": 0}, "contributions_per_user"),
        ({"protects": "contexts"}, "protects"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_bandit_that_cannot_be_is_refused_by_the_name_of_the_field(
    service: Service, change: dict, said: str
) -> None:
    body = {"name": "news", "epsilon": 1, "delta": 1e-6, "horizon": 1000, **change}
    found = service.post("/v1/bandits", body)
    assert found.status_code == 400
    assert said in found.json()["error"]["message"]
    assert service.get("/v1/bandits").json() == {"bandits": []}


def test_what_is_promised_has_no_defaults(service: Service) -> None:
    for name in ("epsilon", "delta", "horizon"):
        body = {"name": "news", "epsilon": 1, "delta": 1e-6, "horizon": None}
        del body[name]
        found = service.post("/v1/bandits", body)
        assert found.status_code == 400
        assert name in found.json()["error"]["message"]


def test_two_bandits_cannot_have_one_name(service: Service) -> None:
    service.make()
    body = {"name": "news", "epsilon": 1, "delta": 1e-6, "horizon": None}
    assert service.post("/v1/bandits", body).status_code == 409


SECRET = "a-very-private-value"
OLD = "/bandits/news/personalizer/v1.0"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense " + SECRET.encode(),
        b'{"actions": [{"id": "' + SECRET.encode() + b'"}, {"id": "' + SECRET.encode() + b'"}]}',
        json.dumps({"actions": []}).encode(),
        json.dumps({"actions": [{"id": SECRET, "features": SECRET}]}).encode(),
        json.dumps({"actions": [{"id": "a", SECRET[:3]: 1}], "context": SECRET}).encode(),
        json.dumps({"actions": [{"id": "a"}], "subject": {"name": SECRET}}).encode(),
        b'{"actions": [{"id": "a"}], "context": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        b'{"actions": [{"id": "a"}], "context": {"x": NaN}}',
        b'\xff\xfe{"actions": [{"id": "a"}]}',
    ],
)
def test_bad_bodies_are_refused_and_not_repeated(service: Service, body: bytes) -> None:
    service.make()
    found = service.request("POST", "/v1/bandits/news/rank", content=body)
    assert found.status_code == 400
    assert set(found.json()["error"]) == {"code", "message"}
    assert SECRET not in found.text
    assert service.get("/v1/bandits/news").json()["events"] == 0


def test_bodies_that_are_too_long_are_refused(tmp_path: Path) -> None:
    service = Service(tmp_path / "service.sqlite", tmp_path, largest_body=1000)
    try:
        service.make()
        found = service.rank(context={"text": "x" * 2000})
        assert (found.status_code, found.json()["error"]["code"]) == (413, "RequestTooLarge")
    finally:
        service.close()


def test_too_many_requests_are_refused(tmp_path: Path) -> None:
    service = Service(
        tmp_path / "service.sqlite", tmp_path, requests_per_second=1e-6, wrong_keys_per_second=1e-6
    )
    try:
        codes = [service.get("/v1/bandits").status_code for _ in range(3)]
        assert codes == [200, 429, 429]
        codes = [service.get("/v1/bandits", key="wrong").status_code for _ in range(3)]
        assert codes == [401, 429, 429]
    finally:
        service.close()


def test_the_administrators_key_cannot_be_guessed_faster_than_wrong_keys_are_answered(
    tmp_path: Path,
) -> None:
    service = Service(tmp_path / "service.sqlite", tmp_path, wrong_keys_per_second=1e-6)
    try:
        made = service.post("/v1/keys", {"name": "k", "scopes": ["read"]}).json()["key"]
        assert service.get("/v1/bandits", key="a guess").status_code == 401
        wrong, right = (service.get("/v1/bandits", key=key) for key in ("another", ADMIN))
        assert (right.status_code, right.json()) == (429, wrong.json())
        assert service.get("/v1/bandits", key=made).status_code == 200  # it has 256 random bits
    finally:
        service.close()


def test_rewards_have_a_verdict_each(any_service: Service) -> None:
    any_service.make()
    any_service.rank(event_id="e1")
    found = any_service.rewards(("e1", 0.5), ("e1", 1.0), ("e1", 1.5), ("nobody", 1.0))
    assert [(one["status"], one["verdict"]) for one in found] == [
        (204, "accepted"), (204, "duplicate"), (400, "invalid"), (404, "unknown"),
    ]  # fmt: skip


def test_what_is_wrong_with_one_reward_is_the_verdict_of_that_one_alone(
    any_service: Service,
) -> None:
    any_service.make()
    any_service.rank(event_id="e1")
    body = [
        {"event_id": "a b", "value": 1},
        {"event_id": "e1", "value": "1"},
        {"event_id": "e1"},
        {"event_id": "e1", "value": 1, "more": 2},
        {"event_id": 7, "value": 1},
        {"event_id": "e1", "value": None},
        {"event_id": "none", "value": 1},
        {},
        {"event_id": "e1", "value": 1},
    ]
    found = any_service.post("/v1/bandits/news/rewards", body)
    assert found.status_code == 207
    assert [(one["event_id"], one["status"], one["verdict"]) for one in found.json()] == [
        ("", 400, "invalid"), ("e1", 400, "invalid"), ("e1", 400, "invalid"),
        ("e1", 400, "invalid"), ("", 400, "invalid"), ("e1", 400, "invalid"),
        ("none", 404, "unknown"), ("", 400, "invalid"), ("e1", 204, "accepted"),
    ]  # fmt: skip
    none = any_service.post("/v1/bandits/news/rewards", [])
    assert (none.status_code, none.json()) == (207, [])


@pytest.mark.parametrize(
    "body",
    [
        b"{}", b'{"event_id": "e1", "value": 1}', b"[null]", b"[[]]", b'["e1"]',
        b'[{"event_id": "e1", "value": NaN}]', b'[{"event_id": "\xff", "value": 1}]', b"[{}",
        b"[" + b"[" * 5000 + b"]" * 5001, b'[{"event_id": "e1", "value": "x"}' + b", {}" * 10_000
        + b"]",
    ],
)  # fmt: skip
def test_what_is_no_list_of_objects_is_refused_as_a_whole(service: Service, body: bytes) -> None:
    service.make()
    service.rank(event_id="e1")
    found = service.request("POST", "/v1/bandits/news/rewards", content=body)
    assert (found.status_code, found.json()["error"]["code"]) == (400, "BadRequest")
    assert service.rewards(("e1", 1.0))[0]["verdict"] == "accepted"


def test_a_null_is_as_if_the_field_were_left_out(service: Service) -> None:
    service.make()
    names = ("context", "exclude", "subject", "defer")
    first = service.rank(event_id="e1", **dict.fromkeys(names))
    assert first.status_code == 201
    assert service.rank(event_id="e1").json() == first.json()
    assert service.rank(event_id="e1", defer=False).json() == first.json()


def test_unknown_places_and_methods_are_refused_in_the_same_words(service: Service) -> None:
    service.make()
    for method, path, status in [
        ("GET", "/v1/nowhere", 404),
        ("GET", "/v1/bandits/none", 404),
        ("POST", "/v1/bandits/none/rank", 404),
        ("POST", "/v1/bandits/news/events/none/activate", 404),
        ("PUT", "/v1/bandits/news", 405),
    ]:
        body = {"actions": [{"id": "a"}]}
        found = service.request(method, path, json=body)
        assert found.status_code == status, path
        assert set(found.json()["error"]) >= {"code", "message"}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/bandits", "GET, HEAD, POST"),
        ("GET", "/v1/bandits/news/rank", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/v1/keys/x", "DELETE"),
        ("POST", f"{OLD}/configurations/service", "GET, HEAD, PATCH, PUT"),
    ],
)  # fmt: skip
def test_a_method_that_is_not_allowed_is_answered_with_those_that_are(
    service: Service, method: str, path: str, allowed: str
) -> None:
    found = service.request(method, path)
    assert (found.status_code, found.headers["allow"]) == (405, allowed)
    assert found.json()["error"]["code"] == "MethodNotAllowed"


@pytest.mark.parametrize(
    "path", ["/nowhere", "/configurations", "/events/e1", "/rank/", "/status?x=1"]
)
@pytest.mark.parametrize("version", ["v1.0", "v2.0"])
def test_what_personalizer_does_not_have_is_refused_in_its_words(
    service: Service, path: str, version: str
) -> None:
    found = service.get(f"/bandits/news/personalizer/{version}{path}")
    assert found.status_code == 404
    assert found.json()["error"]["code"] == "ResourceNotFound"


@pytest.mark.parametrize(
    ("name", "value"),
    [("rewardWaitTime", "P31D"), ("rewardWaitTime", "P5W"), ("defaultReward", 1.5),
     ("defaultReward", -0.5)],
)  # fmt: skip
def test_a_setting_of_personalizer_that_cannot_be_is_named_as_it_was_sent(
    service: Service, name: str, value: object
) -> None:
    service.make()
    place = f"{OLD}/configurations/service"
    before = service.get(place).json()
    found = service.request("PUT", place, json={name: value})
    error = found.json()["error"]
    assert (found.status_code, error["code"], error["target"]) == (400, "BadRequest", name)
    assert error["message"].startswith(f"{name} must be from ")
    assert error["message"].endswith(".")
    assert service.get(place).json() == before


@pytest.mark.parametrize("path", ["releases/latest", "releases/0", "card", "ledger"])
def test_what_a_client_has_already_is_not_sent_again(service: Service, path: str) -> None:
    service.make()
    first = service.get(f"/v1/bandits/news/{path}")
    tag = first.headers["etag"]
    for given, status in [
        (tag, 304), (f"W/{tag}", 304), ("*", 304), (f'"x", {tag}', 304), ('"x"', 200),
        (tag.strip('"'), 200), (f'"x{tag[1:]}', 200), ("", 200),
    ]:  # fmt: skip
        found = service.get(f"/v1/bandits/news/{path}", headers={"If-None-Match": given})
        assert (found.status_code, found.headers["etag"]) == (status, tag), given
        assert (found.content == b"") == (status == 304)


def test_health_and_metrics_need_no_key_and_show_counts_only(service: Service) -> None:
    service.make()
    service.rank(subject="ann", context={"age": 77}, event_id="event-77")
    service.writer.turn()
    service.writer._beat()
    service.loop.run(service.core.look())
    assert service.get("/healthz", key=None).json() == {"status": "ok"}
    ready = service.get("/readyz", key=None)
    assert (ready.status_code, ready.json()["writer"]) == (200, "ok")
    service.pass_time(60)
    assert "no sign" in service.get("/readyz", key=None).json()["writer"]
    text = service.get("/metrics", key=None).text
    assert 'discreet_events{bandit="news"} 1.0' in text
    assert "event-77" not in text
    assert "ann" not in text


def test_the_description_names_every_route(service: Service) -> None:
    described = service.get("/openapi.json", key=None).json()
    assert described["openapi"] == "3.1.0"
    paths = {route.path.replace(":path", "") for route in ROUTES}  # type: ignore[attr-defined]
    assert paths == set(described["paths"])
    assert "personalizer" in described["info"]["description"]


def test_the_description_says_what_is_answered(service: Service) -> None:
    paths = service.get("/openapi.json", key=None).json()["paths"]
    for name in ("card", "ledger", "releases/{number}"):
        assert "content" not in paths[f"/v1/bandits/{{bandit}}/{name}"]["get"]["responses"]["304"]
    answers = paths["/readyz"]["get"]["responses"]
    assert answers["200"]["content"] == answers["503"]["content"]
    assert service.get("/readyz", key=None).json().keys() == set(Health.__struct_fields__)
    lines = paths["/v1/bandits/{bandit}/ledger"]["get"]
    assert lines["parameters"][0]["name"] == "format"
    assert "application/jsonl" in lines["responses"]["200"]["content"]
    assert "text/plain" in paths["/metrics"]["get"]["responses"]["200"]["content"]


def test_rankers_import_no_curator() -> None:
    script = (
        "import sys, discreet.service._application\n"
        "sys.exit(any(name.startswith('discreet.curator') or name == 'discreet.learner' "
        "for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
