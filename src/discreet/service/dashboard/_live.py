"""What moves on a page: shown by the page, and sent to its script every two seconds."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from discreet.service._bandit import Bandit
from discreet.service.dashboard._history import chart, ordered
from discreet.service.dashboard._learning import Coordinate
from discreet.service.dashboard._site import SECURE, Visit, as_json, bandit_path, in_thread

_RECENT = 50  # releases on a page
_ON_A_CARD = 48  # releases in a small drawing


class Live(NamedTuple):
    """A page that moves.

    Attributes:
        collect: all that it shows.
        parts: templates in ``parts/`` of what is replaced when it changes.
        counts: whether it shows how many events there are.
    """

    collect: Callable[[Visit], Awaitable[dict[str, Any]]]
    parts: tuple[str, ...]
    counts: bool = False


def bandit_of(visit: Visit) -> Bandit:
    """The bandit of the path."""
    return visit.core.bandit(visit.request.path_params["bandit"])


async def overview(visit: Visit) -> dict[str, Any]:
    """All bandits that the key may see."""
    cards = []
    for bandit in visit.core.bandits():
        if not visit.key.allows("read", bandit.name):
            continue
        points = await visit.site.histories.points(bandit, _ON_A_CARD)
        cards.append(
            {
                "bandit": bandit,
                "facts": bandit.as_json(),
                "path": bandit_path(bandit.name),
                "bands": [point.mean for _, point in points],
                "last": points[-1][1] if points else None,
                "first": bandit.ranker.mechanism.schedule.after(0),
            }
        )
    return {"cards": sorted(cards, key=lambda card: str(card["facts"]["name"]))}


async def frame(visit: Visit) -> dict[str, Any]:
    """What the head of every page of a bandit shows."""
    bandit = bandit_of(visit)
    return {
        "bandit": bandit,
        "facts": bandit.as_json(),
        "base": bandit_path(bandit.name),
        "may_change": visit.key.allows("admin", bandit.name),
    }


async def learned(visit: Visit) -> dict[str, Any]:
    """Mean reward and shares, from releases alone."""
    found = await frame(visit)
    bandit: Bandit = found["bandit"]
    points = await visit.site.histories.points(bandit)
    last = points[-1][1] if points else None
    return {
        **found,
        "points": points,
        "last": last,
        "actions": [] if last is None else [last.actions[place] for place in ordered(last)],
        "layout": visit.site.histories.layout(bandit),
        "diagnosis": await visit.site.histories.diagnosis(bandit),
        "chart": chart(points),
    }


async def releases(visit: Visit) -> dict[str, Any]:
    """All releases, the newest first, some on a page."""
    found = await frame(visit)
    listed = [one for one in await visit.core.releases(found["bandit"].name) if one["number"] > 0]
    before = visit.request.query_params.get("before", "")
    known = before.isascii() and before.isdecimal() and len(before) <= 12
    bound = int(before) if known else None
    older = [one for one in listed if bound is None or one["number"] < bound]
    shown = older[-_RECENT:][::-1]
    return {
        **found,
        "releases": shown,
        "total": len(listed),
        "older": shown[-1]["number"] if len(older) > len(shown) else None,
        "newer": bound is not None,
        "chart": {"made": [one["made"] for one in listed], "rows": [one["rows"] for one in listed]},
    }


async def privacy(visit: Visit) -> dict[str, Any]:
    """The card, and how long the ledger is."""
    found = await frame(visit)
    card = await visit.core.card(found["bandit"].name)
    return {**found, "card": card}


async def features(visit: Visit) -> dict[str, Any]:
    """Each coordinate with its estimate and width."""
    found = await frame(visit)
    bandit: Bandit = found["bandit"]
    listed = await visit.site.histories.coordinates(bandit)
    return {**found, "coordinates": listed, "reach": reach(listed), "map": bandit.features}


async def events(visit: Visit) -> dict[str, Any]:
    """Public counts."""
    found = await frame(visit)
    return {**found, "counts": await visit.core.counts(found["bandit"].name)}


def reach(listed: list[Coordinate]) -> tuple[float, float]:
    """The same line for all coordinates, with 0 in its middle."""
    most = max(max(abs(one.low), abs(one.high)) for one in listed)
    return -most, most


PAGES = {
    "learning": Live(learned, ("head", "learning_stats", "learning_table")),
    "releases": Live(releases, ("head", "releases_table")),
    "privacy": Live(privacy, ("head", "privacy_counts")),
    "features": Live(features, ("head", "features_table")),
    "events": Live(events, ("head", "events_counts"), counts=True),
}
OVERVIEW = Live(overview, ("overview",), counts=True)


async def send(visit: Visit, live: Live) -> Response:
    """The page's parts, if anything changed since the stamp that the script has; 204 if not."""
    stamp = _stamp(visit, live)
    if visit.request.query_params.get("stamp") == stamp:
        return Response(status_code=204, headers=SECURE)
    context = await live.collect(visit)

    def rendered() -> dict[str, str]:
        templates = visit.site.templates
        return {
            name: templates.get_template(f"parts/{name}.html").render(
                visit=visit, health=visit.health, **context
            )
            for name in ("health", *live.parts)
        }

    parts = await in_thread(rendered)
    return as_json({"stamp": stamp, "parts": parts, "chart": context.get("chart")})


def _stamp(visit: Visit, live: Live) -> str:
    """A digest of all that a page depends on, which is cheap: pages are asked for often."""
    path = visit.request.path_params
    bandits = [bandit_of(visit)] if "bandit" in path else visit.core.bandits()
    facts: list[object] = [visit.key.id, visit.request.query_params.get("before")]
    facts += visit.health
    for one in bandits:
        facts += [one.name, one.state, one.state_reason, one.digest]
        if live.counts or one.ranker.release.number == 0:
            facts += [one.events, one.closed]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:16]
