"""What moves on a page: shown by the page, and sent to its script every two seconds."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from discreet.service._bandit import Bandit
from discreet.service.dashboard import learning
from discreet.service.dashboard._history import chart, ordered
from discreet.service.dashboard._site import SECURE, Visit, as_json, bandit_path, in_thread
from discreet.service.dashboard.learning import Coordinate

_RECENT = 50  # releases on a page


class Live(NamedTuple):
    """A page that moves.

    Attributes:
        collect: all that it shows.
        parts: templates in ``parts/`` of what is replaced when it changes.
    """

    collect: Callable[[Visit], Awaitable[dict[str, Any]]]
    parts: tuple[str, ...]


def bandit_of(visit: Visit) -> Bandit:
    """The bandit of the path."""
    return visit.core.bandit(visit.request.path_params["bandit"])


async def overview(visit: Visit) -> dict[str, Any]:
    """All bandits that the key may see."""
    cards = []
    for bandit in visit.core.bandits():
        if not visit.key.allows("read", bandit.name):
            continue
        points = await visit.site.histories.points(bandit)
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
    known = before.isascii() and before.isdecimal() and len(before) <= 12  # noqa: PLR2004
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
    card = await in_thread(lambda: visit.core.card(found["bandit"].name))
    return {**found, "card": card}


async def features(visit: Visit) -> dict[str, Any]:
    """Each coordinate with its estimate and width."""
    found = await frame(visit)
    bandit: Bandit = found["bandit"]
    release, named = bandit.ranker.release, bandit.features
    listed: list[Coordinate] = await in_thread(lambda: learning.coordinates(release, named))
    return {**found, "coordinates": listed, "reach": reach(listed), "map": named}


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
    "events": Live(events, ("head", "events_counts")),
}
OVERVIEW = Live(overview, ("overview",))


async def send(visit: Visit, live: Live) -> Response:
    """What changed since the stamp that the script has; 204 if nothing did."""
    context = await live.collect(visit)
    templates = visit.site.templates
    parts = {
        name: templates.get_template(f"parts/{name}.html").render(visit=visit, **context)
        for name in live.parts
    }
    body = {"parts": parts, "chart": context.get("chart")}
    stamp = hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:16]
    if visit.request.query_params.get("stamp") == stamp:
        return Response(status_code=204, headers=SECURE)
    return as_json({"stamp": stamp, **body})
