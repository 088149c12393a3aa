"""Pages as a browser gets them: what is on them, and who sees what."""

import json
import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest
from visiting import EVENTS, IDS, Browser, World, spec, world_in

from discreet.release import Release
from discreet.release.ledger import Ledger
from discreet.service import dashboard
from discreet.service._bodies import Action, RankRequest, Reward

NEWS = "/dashboard/bandits/news"
FOR_READERS = [
    "/",
    NEWS,
    f"{NEWS}/releases",
    f"{NEWS}/releases/3",
    f"{NEWS}/privacy",
    f"{NEWS}/privacy?verify=1",
    f"{NEWS}/features",
    f"{NEWS}/events",
    "/dashboard/bandits/young",
    "/dashboard/bandits/young/releases",
    "/dashboard/bandits/young/releases/0",
    "/dashboard/bandits/young/privacy?verify=1",
    "/dashboard/bandits/young/features",
    "/dashboard/bandits/young/events",
]
FOR_ADMINISTRATORS = ["/dashboard/new-bandit", "/dashboard/keys", "/dashboard/audit-log"]
DATA = [
    "/dashboard/data/overview",
    *(
        f"/dashboard/data/bandits/news/{name}"
        for name in ("learning", "releases", "privacy", "features", "events", "releases/3")
    ),
]


class Markup(HTMLParser):
    """What a page must not have, and what its fields are called."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.addresses: list[str] = []
        self.fields: set[str] = set()
        self.labels: set[str] = set()
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.inline += [f"{tag} {name}" for name in found if name == "style" or name[:2] == "on"]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in found) else []
        self.addresses += [str(found[name]) for name in ("src", "href", "action") if name in found]
        self.ids += [str(found["id"])] if "id" in found else []
        hidden = found.get("type") in {"hidden", "checkbox"} or "hidden" in found
        if tag in {"input", "select", "textarea"} and not hidden and "aria-label" not in found:
            self.fields.add(str(found.get("id")))
        if tag == "label" and "for" in found:
            self.labels.add(str(found["for"]))


@pytest.mark.parametrize("path", [*FOR_READERS, *FOR_ADMINISTRATORS, "/sign-in"])
def test_a_page_loads_nothing_from_elsewhere_and_has_nothing_inline(
    world: World, admin: Browser, path: str
) -> None:
    answer = world.browser().get(path) if path == "/sign-in" else admin.get(path)
    assert answer.status_code == 200
    page = Markup(answer.text)
    assert page.inline == []
    assert all(re.match(r"/(?!/)|#", address) for address in page.addresses), page.addresses
    assert page.fields <= page.labels
    assert len(set(page.ids)) == len(page.ids)


@pytest.mark.parametrize("path", [*FOR_READERS, *FOR_ADMINISTRATORS, *DATA, "/sign-in"])
def test_every_answer_has_a_strict_policy_and_is_not_stored(
    world: World, admin: Browser, path: str
) -> None:
    answer = world.browser().get(path) if path == "/sign-in" else admin.get(path)
    policy = answer.headers["content-security-policy"]
    assert policy == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    stored = "private, no-cache" if "data/bandits/news/releases/" in path else "no-store"
    assert answer.headers["cache-control"] == stored


@pytest.mark.parametrize("path", [*FOR_READERS, *FOR_ADMINISTRATORS])
def test_strangers_are_sent_to_sign_in(world: World, path: str) -> None:
    answer = world.browser().get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.parametrize("path", DATA)
def test_strangers_get_no_data(world: World, path: str) -> None:
    answer = world.browser().get(path)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "Unauthorized"


def test_readers_see_all_but_the_administrators_pages(reader: Browser) -> None:
    for path in [*FOR_READERS, *DATA]:
        assert reader.get(path).status_code == 200
    for path in FOR_ADMINISTRATORS:
        assert reader.get(path).status_code == 403
    front = reader.get("/").text
    assert "/dashboard/keys" not in front
    assert "/dashboard/new-bandit" not in front
    assert "Erase" not in reader.get(f"{NEWS}/events").text


@pytest.mark.parametrize("scope", ["read", "admin"])
def test_a_key_for_one_bandit_sees_that_one_alone(world: World, scope: str) -> None:
    browser = world.signed_in(world.key(scope, bandit="young")[1])
    front = browser.get("/").text
    assert "/dashboard/bandits/young" in front
    assert "news" not in front
    for path in (NEWS, f"{NEWS}/privacy", f"{NEWS}/events"):
        answer = browser.get(path)
        assert answer.status_code == 404
        assert answer.text == browser.get(path.replace("news", "nobody")).text
    for path in DATA[1:]:
        assert browser.get(path).status_code == 404
    for path in FOR_ADMINISTRATORS:
        assert browser.get(path).status_code == 403
    events = browser.get("/dashboard/bandits/young/events").text
    assert ("Erase" in events) == (scope == "admin")


def test_learning_shows_means_and_shares_with_bands(world: World, reader: Browser) -> None:
    page = reader.get(NEWS).text
    number = world.core.bandit("news").ranker.release.number
    assert number > 5
    assert f"Actions in release {number}" in page
    for name in IDS:
        assert name in page
    assert page.count('class="interval"') == len(IDS)
    news = reader.get("/dashboard/data/bandits/news/learning").json()
    chart = news["chart"]
    assert chart["number"] == list(range(1, number + 1))
    assert len(chart["mean"]["estimate"]) == number
    assert {one["name"] for one in chart["actions"]} == set(IDS)
    assert all(0 <= low <= high <= 1 for low, high in zip(*_ends(chart["mean"]), strict=True))


def _ends(curve: dict[str, list[float]]) -> tuple[list[float], list[float]]:
    return curve["low"], curve["high"]


def test_a_script_that_knows_what_there_is_gets_nothing(world: World, reader: Browser) -> None:
    path = "/dashboard/data/bandits/news/learning"
    news = reader.get(path).json()
    assert set(news["parts"]) == {"head", "health", "learning_stats", "learning_table"}
    page = reader.get(NEWS).text
    for name, part in news["parts"].items():
        assert f'id="part-{name}"' in page
        assert part in page
    again = reader.get(f"{path}?stamp={news['stamp']}")
    assert (again.status_code, again.content) == (204, b"")
    assert reader.get(f"{path}?stamp=other").json() == news
    assert world.core.bandit("news").closed == EVENTS


def test_before_the_first_release_a_page_says_how_long_it_takes(reader: Browser) -> None:
    page = reader.get("/dashboard/bandits/young").text
    assert "Nothing has been released yet" in page
    assert "<progress" in page


def test_a_release_is_shown_with_its_digest_and_document(world: World, reader: Browser) -> None:
    listed = world.do(world.core.releases("news"))
    third = next(one for one in listed if one["number"] == 3)
    page = reader.get(f"{NEWS}/releases/3").text
    assert third["digest"] in page
    assert "yes, with these values" in page
    assert "action.<wbr>id=<wbr>red" in page
    answer = reader.get("/dashboard/data/bandits/news/releases/3")
    assert answer.headers["etag"] == f'"{third["digest"]}"'
    assert Release.from_json(answer.content).number == 3
    same = {"If-None-Match": answer.headers["etag"]}
    unchanged = reader.get("/dashboard/data/bandits/news/releases/3", headers=same)
    assert unchanged.status_code == 304


@pytest.mark.parametrize("number", ["99999", "-1", "x", "1" * 30, "%C2%B2"])
def test_what_is_no_release_is_not_found(reader: Browser, number: str) -> None:
    assert reader.get(f"{NEWS}/releases/{number}").status_code == 404


def test_long_lists_of_releases_have_pages(tmp_path: Path) -> None:
    with world_in(tmp_path) as world:
        world.do(world.core.create_bandit(spec("busy", epsilon=100.0), who="a test"))
        world.play("busy", 400)
        browser = world.signed_in()
        total = world.core.bandit("busy").ranker.release.number
        assert total > 50
        first = browser.get("/dashboard/bandits/busy/releases").text
        assert f'releases/{total}"' in first
        assert f"before={total - 49}" in first
        older = browser.get(f"/dashboard/bandits/busy/releases?before={total - 49}").text
        assert f'releases/{total - 50}"' in older
        assert f'releases/{total - 49}"' not in older
        assert browser.get("/dashboard/bandits/busy/releases?before=x").status_code == 200


def test_the_ledger_is_verified_and_an_old_head_is_found_in_it(
    world: World, reader: Browser
) -> None:
    ledger = Ledger.parse(world.do(world.core.ledger_lines("news")))
    page = reader.get(f"{NEWS}/privacy?verify=1").text
    assert "Intact" in page
    assert ledger.head in page
    kept = ledger.entries[1].chain
    assert "that of release 2" in reader.get(f"{NEWS}/privacy?verify=1&head={kept}").text
    strange = reader.get(f"{NEWS}/privacy?verify=1&head={'0' * 64}").text
    assert "Another history" in strange
    assert "Intact" not in reader.get(f"{NEWS}/privacy").text
    lines = reader.get(f"{NEWS}/ledger.jsonl")
    assert Ledger.parse(lines.content).head == ledger.head


def test_an_altered_ledger_or_release_is_found_out(tmp_path: Path) -> None:
    with world_in(tmp_path) as world:
        world.do(world.core.create_bandit(spec("news"), who="a test"))
        world.play("news")
        browser = world.signed_in()
        assert "Intact" in browser.get(f"{NEWS}/privacy?verify=1").text
        with sqlite3.connect(tmp_path / "service.sqlite") as tables:
            tables.execute("UPDATE service_release SET held = held + 1 WHERE number = 2")
        tables.close()
        page = browser.get(f"{NEWS}/privacy?verify=1").text
        assert "Release 2 is not the one in the ledger" in page
        with sqlite3.connect(tmp_path / "service.sqlite") as tables:
            (line,) = tables.execute("SELECT line FROM service_ledger WHERE number = 1").fetchone()
            altered = json.dumps(json.loads(line)).encode() + b"\n"
            tables.execute("UPDATE service_ledger SET line = ? WHERE number = 1", (altered,))
        tables.close()
        page = browser.get(f"{NEWS}/privacy?verify=1").text
        assert "Not intact" in page
        assert "Intact</h3>" not in page


def test_a_bandit_that_was_rewound_still_has_pages_that_say_so(tmp_path: Path) -> None:
    with world_in(tmp_path) as world:
        world.do(world.core.create_bandit(spec("news"), who="a test"))
        world.play("news")
        bandit = world.core.bandit("news")
        with sqlite3.connect(tmp_path / "service.sqlite") as tables:
            tables.execute("UPDATE service_bandit SET state = 'rewound', reason = '<b>restored'")
        tables.close()
        world.do(world.core.look())
        assert bandit.state == "rewound"
        browser = world.signed_in()
        for path in ("/", NEWS, f"{NEWS}/releases", f"{NEWS}/features", f"{NEWS}/events"):
            answer = browser.get(path)
            assert answer.status_code == 200
            assert "rewound" in answer.text
            assert "<b>" not in answer.text
        assert browser.get(f"{NEWS}/releases/3").status_code == 503


def test_what_people_wrote_is_escaped(tmp_path: Path) -> None:
    with world_in(tmp_path) as world:
        hostile = '<script>alert("x")</script>'
        from_hostile = {
            "format": "discreet-features",
            "version": 1,
            "parts": [{"kind": "intercept"}, {"kind": "action_id", "ids": [hostile, "b"]}],
        }
        made = spec("news", features=from_hostile, epsilon=1000.0)
        world.do(world.core.create_bandit(made, who=hostile))
        world.do(world.core.create_key(name=hostile, scopes=["read"], bandit=None, who="a test"))
        browser = world.signed_in()
        pages = ["/dashboard/keys", "/dashboard/audit-log", f"{NEWS}/features", NEWS]
        for path in pages:
            assert "<script>alert" not in browser.get(path).text, path
        assert "&lt;script&gt;" in browser.get("/dashboard/keys").text
        parts = browser.get("/dashboard/data/bandits/news/features").json()["parts"]
        assert "<script>" not in parts["features_table"]


def test_static_files_are_kept_and_others_are_not_there(world: World) -> None:
    browser = world.browser()
    page = browser.get("/sign-in").text
    for address in re.findall(r'"(/dashboard/static/[^"]+)"', page):
        answer = browser.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    base = re.search(r"/dashboard/static/[0-9a-f]{12}", page)[0]
    for name in ("nothing.js", "../_site.py", "%2e%2e/_site.py", "uplot"):
        assert browser.get(f"{base}/{name}").status_code == 404
    licence = browser.get(f"{base}/uplot/LICENSE.txt").text
    assert "uPlot 1.6.32" in licence
    assert "The MIT License" in licence


def test_of_an_event_nothing_is_shown_but_that_there_is_one_more(
    world: World, admin: Browser
) -> None:
    secret = "what-nobody-may-see"
    context = {"device": secret}
    actions = [Action("red"), Action("blue")]
    request = RankRequest(actions=actions, context=context, event_id=secret, subject=secret)
    before = admin.get("/dashboard/data/bandits/young/events").json()["parts"]["events_counts"]
    world.do(world.core.rank("young", request, "a key"))
    world.do(world.core.rewards("young", [Reward(secret, 1.0)]))
    world.do(world.core.look())
    after = admin.get("/dashboard/data/bandits/young/events").json()["parts"]["events_counts"]
    assert before != after
    young = [path.replace("news", "young") for path in (*FOR_READERS, *DATA)]
    for path in [*FOR_READERS, *FOR_ADMINISTRATORS, *DATA, *young]:
        assert secret not in admin.get(path).text


def test_the_dashboard_is_in_the_package() -> None:
    here = Path(dashboard.__file__).parent
    assert (here / "templates" / "base.html").is_file()
    assert (here / "static" / "uplot" / "LICENSE.txt").is_file()
