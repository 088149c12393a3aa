"""What people send: signing in and out, bandits, keys, erasure. And what is refused."""

import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from visiting import ADMIN, Browser, World, world_in

from discreet.service._bodies import Action, RankRequest
from discreet.service.dashboard import _forms as forms
from discreet.service.dashboard._sessions import LIFETIME, Sessions

BANDIT = {**forms.DEFAULTS, "name": "made", "epsilon": "8"}
POSTS = [
    "/sign-out",
    "/dashboard/bandits",
    "/dashboard/bandits/news/erase",
    "/dashboard/keys",
    "/dashboard/keys/000000000000/revoke",
]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[World]:
    """A service without bandits."""
    with world_in(tmp_path) as world:
        yield world


# Signing in and out


def test_signing_in_gives_a_cookie_that_scripts_and_other_sites_cannot_use(world: World) -> None:
    browser = world.browser()
    answer = browser.send("/sign-in", "/sign-in", key=ADMIN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = next(
        one for one in answer.headers.get_list("set-cookie") if "discreet_session=" in one
    )
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie
    assert browser.get("/").status_code == 200


def test_over_tls_cookies_are_secure(tmp_path: Path) -> None:
    with world_in(tmp_path, proxy=True) as world:
        answer = world.browser().get("/sign-in")
        assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("key", ["", "wrong", "dk_0123456789ab_" + "x" * 43, "ключ"])
def test_a_wrong_key_is_refused_and_not_repeated(world: World, key: str) -> None:
    answer = world.browser().send("/sign-in", "/sign-in", key=key)
    assert answer.status_code == 401
    assert "not valid" in answer.text
    assert not key or key not in answer.text
    assert "discreet_session" not in str(answer.headers.get_list("set-cookie"))


def test_a_key_that_may_not_read_cannot_sign_in(world: World) -> None:
    _, text = world.key("rank", "reward")
    assert world.browser().send("/sign-in", "/sign-in", key=text).status_code == 401


def test_too_many_wrong_keys_are_slowed_down(tmp_path: Path) -> None:
    with world_in(tmp_path, wrong_keys_per_second=0.001) as world:
        browser = world.browser()
        codes = [browser.send("/sign-in", "/sign-in", key="x").status_code for _ in range(3)]
        assert codes == [401, 429, 429]
        # A right guess is not found out; a key that nobody can guess still opens.
        assert browser.send("/sign-in", "/sign-in", key=ADMIN).status_code == 429
        key = world.loop.do(
            world.core.create_key(name="k", scopes=["read"], bandit=None, who="a test")
        )[1]
        assert browser.send("/sign-in", "/sign-in", key=key).status_code == 303


def test_signing_in_needs_the_form_of_this_browser(world: World) -> None:
    browser, other = world.browser(), world.browser()
    assert browser.post("/sign-in", {"key": ADMIN}).status_code == 403
    browser.get("/sign-in")
    stolen = {"key": ADMIN, "form_token": other.token("/sign-in")}
    assert browser.post("/sign-in", stolen).status_code == 403
    assert browser.get("/").status_code == 303


def test_after_signing_in_one_is_where_one_wanted_to_be(world: World) -> None:
    browser = world.browser()
    away = browser.get("/dashboard/bandits/news/privacy").headers["location"]
    page = browser.get(away).text
    wanted = re.search(r'name="next" value="([^"]*)"', page)[1]
    answer = browser.send("/sign-in", away, key=ADMIN, next=wanted)
    assert answer.headers["location"] == "/dashboard/bandits/news/privacy"


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/dashboard/\\..",
        "javascript:1",
        "/dashboard/data/overview",
        "/dashboard/\nSet-Cookie: a=b",
    ],
)
def test_nobody_is_sent_elsewhere_after_signing_in(world: World, target: str) -> None:
    answer = world.browser().send("/sign-in", "/sign-in", key=ADMIN, next=target)
    assert answer.headers["location"] == "/"


def test_signing_out_ends_the_session_for_good(world: World) -> None:
    browser = world.signed_in()
    kept = dict(browser.cookies)
    answer = browser.send("/sign-out")
    assert answer.headers["location"] == "/sign-in?out"
    assert "You are signed out" in browser.get("/sign-in?out").text
    assert browser.get("/").status_code == 303
    thief = world.browser()
    thief.cookies.update(kept)
    assert thief.get("/").status_code == 303


def test_whoever_is_signed_in_is_not_asked_again(admin: Browser) -> None:
    assert admin.get("/sign-in").headers["location"] == "/"


def test_a_revoked_key_ends_its_sessions_at_once(world: World) -> None:
    identity, text = world.key("read")
    browser = world.signed_in(text)
    assert browser.get("/").status_code == 200
    world.do(world.core.revoke_key(identity, who="a test"))
    assert browser.get("/").status_code == 303
    assert browser.get("/dashboard/data/overview").status_code == 401


def test_sessions_end_by_themselves_and_are_found_by_hashes_alone() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    token = sessions.open("a key")
    assert sessions.find(token).key == "a key"
    assert token not in repr(vars(sessions))
    assert sessions.find("other") is None
    assert sessions.find(None) is None
    now[0] = LIFETIME
    assert sessions.find(token) is None


def test_form_tokens_belong_to_one_cookie() -> None:
    sessions = Sessions()
    assert sessions.is_form_token(sessions.form_token("a"), "a")
    assert not sessions.is_form_token(sessions.form_token("a"), "b")
    assert not sessions.is_form_token(Sessions().form_token("a"), "a")
    assert not sessions.is_form_token("", None)
    assert not sessions.is_form_token("é", "a")


# Forms that came from elsewhere


@pytest.mark.parametrize("path", POSTS)
def test_a_form_without_its_token_changes_nothing(world: World, path: str) -> None:
    browser, other = world.signed_in(), world.signed_in()
    before = world.do(world.core.audit_log())
    for token in ("", "0" * 64, other.token()):
        answer = browser.post(
            path, {**BANDIT, "scopes": "read", "subject": "x", "form_token": token}
        )
        assert answer.status_code == 403
    assert world.do(world.core.audit_log()) == before
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_form_from_another_site_is_refused_even_with_a_token(world: World, site: str) -> None:
    browser = world.signed_in()
    given = {"form_token": browser.token()}
    answer = browser.post("/sign-out", given, headers={"Sec-Fetch-Site": site})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", POSTS)
def test_forms_are_for_people_who_are_signed_in(world: World, path: str) -> None:
    assert world.browser().post(path, BANDIT).headers["location"] == "/sign-in"


@pytest.mark.parametrize("path", POSTS[1:])
def test_readers_change_nothing(world: World, reader: Browser, path: str) -> None:
    before = len(world.do(world.core.audit_log()))
    assert reader.send(path, **BANDIT, scopes="read", subject="x").status_code == 403
    assert len(world.do(world.core.audit_log())) == before


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{}", "application/json"),
        (b"a=%ff", "application/x-www-form-urlencoded"),
        (b"\xff", "application/x-www-form-urlencoded"),
        (b"&".join(b"a=1" for _ in range(200)), "application/x-www-form-urlencoded"),
    ],
)
def test_what_is_no_form_is_refused(world: World, content: bytes, kind: str) -> None:
    browser = world.signed_in()
    for path in (*POSTS, "/sign-in"):
        answer = browser._loop.do(
            browser._client.post(path, content=content, headers={"Content-Type": kind})
        )
        assert answer.status_code in {400, 403}, path


# Bandits


def test_a_bandit_is_made_by_a_form_and_the_page_moves_on(fresh: World) -> None:
    browser = fresh.signed_in()
    given = {**BANDIT, "actions": "red\n green \n\nblue", "horizon": "1,000,000", "high": "2"}
    answer = browser.send("/dashboard/bandits", "/dashboard/new-bandit", **given)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/dashboard/bandits/made"
    assert "Bandit made is there" in browser.get("/dashboard/bandits/made").text
    assert "Bandit made is there" not in browser.get("/dashboard/bandits/made").text
    bandit = fresh.core.bandit("made")
    assert bandit.spec.horizon == 1_000_000
    assert bandit.spec.reward.high == 2.0
    assert bandit.features.names[1:4] == ("action.id=red", "action.id=green", "action.id=blue")
    who = fresh.do(fresh.core.audit_log())[0]
    assert (who["who"], who["what"]) == ("administrator (environment)", "create bandit")


def test_a_horizon_that_is_left_out_is_open(fresh: World) -> None:
    browser = fresh.signed_in()
    assert browser.send("/dashboard/bandits", **BANDIT).status_code == 303
    assert fresh.core.bandit("made").spec.horizon is None
    again = browser.send("/dashboard/bandits", **BANDIT)
    assert again.status_code == 400
    assert 'id="name-error">There is a bandit of this name already' in again.text


@pytest.mark.parametrize(
    ("field", "value", "advice"),
    [
        ("name", "a b", "Use letters"),
        ("name", "", "Use letters"),
        ("epsilon", "", "Give a number"),
        ("epsilon", "much", "not a number"),
        ("epsilon", "-1", "above 0"),
        ("epsilon", "nan", "above 0"),
        ("epsilon", "1e-9", "1e-06"),
        ("delta", "1", "between 0 and 1"),
        ("horizon", "many", "not a whole number"),
        ("horizon", "0", "1"),
        ("contributions_per_user", "0", "1"),
        ("contributions_per_user", "", "Give a whole number"),
        ("high", "0", "above the lowest"),
        ("default", "7", "from the lowest to the highest"),
        ("wait_seconds", "-1", "0.0"),
        ("wait_seconds", "", "Give a number"),
        ("aggregation", "all", ""),
        ("protects", "contexts", ""),
        ("features", "{", "no JSON"),
        ("features", '{"format": "discreet-features", "version": 1, "parts": []}', "parts"),
        ("actions", "a\na", "twice"),
        ("theta_norm", "-3", "-3"),
        ("memory", "1", "give at least"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(
    world: World, admin: Browser, field: str, value: str, advice: str
) -> None:
    before = len(world.core.bandits())
    answer = admin.send("/dashboard/bandits", **{**BANDIT, field: value})
    assert answer.status_code == 400
    if field != "aggregation":
        said = re.search(rf'id="{field}-error">([^<]*)<', answer.text)
        assert said is not None, re.findall(r'class="error"[^<]*<', answer.text)
        assert advice in said[1]
        assert re.search(rf'id="{field}"[^>]*aria-invalid="true"', answer.text)
    assert 'value="made"' in answer.text or field == "name"
    assert len(world.core.bandits()) == before


def test_all_fields_that_are_wrong_are_marked_at_once(admin: Browser) -> None:
    wrong = {**BANDIT, "name": "?", "epsilon": "x", "delta": "2", "default": "9"}
    page = admin.send("/dashboard/bandits", **wrong).text
    assert page.count('aria-invalid="true"') == 4


def test_actions_and_a_map_exclude_each_other(admin: Browser) -> None:
    given = {**BANDIT, "actions": "a\nb", "features": "{}"}
    answer = admin.send("/dashboard/bandits", **given)
    assert 'id="actions-error"' in answer.text


def test_a_bandit_for_rewards_alone_is_made_and_its_pages_say_so(
    world: World, admin: Browser
) -> None:
    answer = admin.send("/dashboard/bandits", **{**BANDIT, "name": "open", "protects": "rewards"})
    assert answer.status_code == 303
    assert world.core.bandit("open").spec.protects == "rewards"
    page = admin.get("/dashboard/bandits/open/privacy").text
    assert "decision sets, actions and which rounds count are public" in page
    assert "none in the Gram matrix, which is exact" in page
    assert "what was activated and who came how often are public" in page
    assert "the differential privacy of rewards" in page


# Keys


def test_a_key_is_shown_once_and_then_works(world: World, admin: Browser) -> None:
    answer = admin.send(
        "/dashboard/keys", "/dashboard/keys", name="app", scopes=["rank", "read"], bandit="news"
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/keys")
    page = admin.get("/dashboard/keys").text
    text = re.search(r'value="(dk_[^"]+)"', page)[1]
    key = world.core.authenticate(text)
    assert (key.name, key.scopes, key.bandit) == ("app", ("rank", "read"), "news")
    assert text not in admin.get("/dashboard/keys").text
    gone = admin.send(f"/dashboard/keys/{key.id}/revoke", "/dashboard/keys")
    assert gone.status_code == 303
    assert world.core.authenticate(text) is None
    assert "is revoked" in admin.get("/dashboard/keys").text


@pytest.mark.parametrize(
    ("given", "error"),
    [({"scopes": "read"}, "name-error"), ({"name": "app"}, "scopes-error"),
     ({"name": "app", "scopes": "fly"}, "scopes-error"),
     ({"name": "x" * 101, "scopes": "read"}, "name-error")],
)  # fmt: skip
def test_a_key_that_cannot_be_is_said_beside_the_field(
    world: World, admin: Browser, given: dict[str, str], error: str
) -> None:
    before = len(world.do(world.core.keys()))
    answer = admin.send("/dashboard/keys", **given)
    assert answer.status_code == 400
    assert f'id="{error}"' in answer.text
    assert len(world.do(world.core.keys())) == before


def test_a_key_of_an_unknown_bandit_or_id_is_not_found(admin: Browser) -> None:
    given = {"name": "app", "scopes": "read", "bandit": "nobody"}
    assert admin.send("/dashboard/keys", **given).status_code == 404
    assert admin.send("/dashboard/keys/000000000000/revoke").status_code == 404


def test_whoever_revokes_their_own_key_is_signed_out(world: World) -> None:
    identity, text = world.key("admin")
    browser = world.signed_in(text)
    assert browser.send(f"/dashboard/keys/{identity}/revoke").status_code == 303
    assert browser.get("/dashboard/keys").status_code == 303


# Erasure


def test_erasing_somebody_says_how_much_and_never_who(fresh: World) -> None:
    browser = fresh.signed_in()
    assert browser.send("/dashboard/bandits", **BANDIT).status_code == 303
    request = RankRequest(actions=[Action("a"), Action("b")], subject="a-person")
    fresh.do(fresh.core.rank("made", request, "a key"))
    given = {"subject": "a-person", "form_token": browser.token()}
    with ThreadPoolExecutor(1) as elsewhere:
        asked = elsewhere.submit(browser.post, "/dashboard/bandits/made/erase", given)
        while not asked.done():
            fresh.writer.turn()
        answer = asked.result()
    assert answer.headers["location"] == "/dashboard/bandits/made/events"
    page = browser.get("/dashboard/bandits/made/events").text
    assert "Erased: 1 open events" in page
    assert "a-person" not in page
    assert "a-person" not in browser.get("/dashboard/audit-log").text
    with sqlite3.connect(fresh.folder / "service.sqlite") as tables:
        assert "a-person" not in "\n".join(tables.iterdump())
    tables.close()


@pytest.mark.parametrize("subject", ["", "x" * 501])
def test_no_subject_is_erased_by_mistake(world: World, admin: Browser, subject: str) -> None:
    before = len(world.do(world.core.audit_log()))
    answer = admin.send("/dashboard/bandits/news/erase", subject=subject)
    assert answer.status_code == 303
    assert "Give the subject" in admin.get("/dashboard/bandits/news/events").text
    assert len(world.do(world.core.audit_log())) == before
