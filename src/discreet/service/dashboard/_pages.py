"""Pages for everybody who is signed in: overview, and what is known of one bandit."""

from typing import Any

from starlette.responses import Response

from discreet.errors import BrokenLedgerError, FileVersionError
from discreet.release import Release
from discreet.release.ledger import Ledger
from discreet.service._bodies import ServiceError
from discreet.service.dashboard import _learning as learning
from discreet.service.dashboard import _live as live
from discreet.service.dashboard._site import SECURE, Visit, in_thread

_LONGEST_NUMBER = 12


async def overview(visit: Visit) -> Response:
    """All bandits."""
    return visit.html("overview.html", **await live.overview(visit))


async def learned(visit: Visit) -> Response:
    """The page that shows how much a bandit has learned."""
    return visit.html("learning.html", tab="learning", **await live.learned(visit))


async def releases(visit: Visit) -> Response:
    """All releases."""
    return visit.html("releases.html", tab="releases", **await live.releases(visit))


async def release(visit: Visit) -> Response:
    """One release, with what it says."""
    found = await live.frame(visit)
    bandit = found["bandit"]
    document, made = await _document(visit), await _facts(visit)
    lines = await visit.core.ledger_lines(bandit.name)

    def work() -> dict[str, Any]:
        shown = Release.from_json(document)
        listed = learning.coordinates(shown, bandit.features)
        try:
            held = bool(lines) and Ledger.parse(lines).holds(shown)
        except (BrokenLedgerError, FileVersionError):
            held = False
        where = visit.site.histories.layout(bandit)
        return {
            "release": shown,
            "coordinates": listed,
            "reach": live.reach(listed),
            "point": learning.read(shown, where) if shown.number else None,
            "layout": where,
            "held": held,
        }

    return visit.html("release.html", tab="releases", made=made, **found, **await in_thread(work))


async def release_json(visit: Visit) -> Response:
    """A release as it was published. What has a number never changes."""
    document, facts = await _document(visit), await _facts(visit)
    headers = {**SECURE, "ETag": f'"{facts["digest"]}"', "Cache-Control": "private, no-cache"}
    if facts["digest"] in visit.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(document, 200, headers, "application/json")


async def privacy(visit: Visit) -> Response:
    """The card and the ledger; with ``?verify`` the ledger is checked, line by line."""
    found = await live.privacy(visit)
    asked = visit.request.query_params
    verdict = None
    if "verify" in asked:
        verdict = await _verified(visit, asked.get("head", "").strip().lower())
    return visit.html("privacy.html", tab="privacy", verdict=verdict, **found)


async def features(visit: Visit) -> Response:
    """What is known of each coordinate."""
    return visit.html("features.html", tab="features", **await live.features(visit))


async def events(visit: Visit) -> Response:
    """Public counts, and the form to erase somebody."""
    return visit.html("events.html", tab="events", **await live.events(visit))


async def ledger_lines(visit: Visit) -> Response:
    """The ledger's lines as they are, to keep."""
    name = live.bandit_of(visit).name
    headers = {**SECURE, "Content-Disposition": 'attachment; filename="ledger.jsonl"'}
    return Response(await visit.core.ledger_lines(name), 200, headers, "application/jsonl")


async def _verified(visit: Visit, kept: str) -> dict[str, Any]:
    """What a check of the ledger finds: the chain, and that published releases are those in it."""
    name = live.bandit_of(visit).name
    lines, listed = await visit.core.ledger_lines(name), await visit.core.releases(name)
    published = {one["number"]: one for one in listed if one["number"] > 0}

    def work() -> dict[str, Any]:
        if not lines:
            return {"intact": True, "empty": True, "kept": None}
        try:
            ledger = Ledger.parse(lines)
        except (BrokenLedgerError, FileVersionError) as error:
            return {"intact": False, "empty": False, "reason": str(error), "kept": None}
        other = [
            number
            for number, one in published.items()
            if number > len(ledger)
            or (ledger.entries[number - 1].rows, ledger.entries[number - 1].sha256)
            != (one["rows"], one["digest"])
        ]
        return {
            "intact": not other,
            "empty": False,
            "reason": f"Release {other[0]} is not the one in the ledger." if other else "",
            "ledger": ledger,
            "kept": _kept(ledger, kept) if kept else None,
        }

    found: dict[str, Any] = await in_thread(work)
    return found


def _kept(ledger: Ledger, head: str) -> dict[str, Any]:
    """Whether a head that somebody wrote down earlier is in the chain, and where."""
    if head == ledger.root:
        return {"found": True, "number": 0}
    for entry in ledger.entries:
        if entry.chain == head:
            return {"found": True, "number": entry.number}
    return {"found": False, "number": None}


def _number(visit: Visit) -> int:
    text = visit.request.path_params["number"]
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise ServiceError(404, "ReleaseNotFound", "There is no release of this number.")
    return int(text)


async def _document(visit: Visit) -> bytes:
    return await visit.core.release_document(live.bandit_of(visit).name, _number(visit))


async def _facts(visit: Visit) -> dict[str, Any]:
    number = _number(visit)
    for one in await visit.core.releases(live.bandit_of(visit).name):
        if one["number"] == number:
            return one
    raise ServiceError(404, "ReleaseNotFound", "There is no release of this number.")
