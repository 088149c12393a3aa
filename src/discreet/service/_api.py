"""The routes under /v1, and those for operators. Each reads a request, calls the core, answers."""

import asyncio
import uuid
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from discreet.service import _openapi
from discreet.service._bodies import (
    BanditSpec,
    KeyRequest,
    RankRequest,
    Reward,
    ServiceError,
    read_rewards,
)
from discreet.service._cards import ledger_summary
from discreet.service._core import Core
from discreet.service._http import (
    allowed,
    answer,
    authenticated,
    decoded,
    encode,
    endpoint,
    event_of,
    ranked,
    subject_of,
    unchanged,
    who,
)
from discreet.service._keys import Key

_rank = msgspec.json.Decoder(RankRequest).decode
_bandit = msgspec.json.Decoder(BanditSpec).decode
_key = msgspec.json.Decoder(KeyRequest).decode


@endpoint("rank")
async def rank(core: Core, request: Request) -> Response:
    """Choose an action for a person."""
    asked = await decoded(request, _rank)
    found, headers = await ranked(core, request, asked)
    return answer(found, 201, headers)


@endpoint("reward")
async def rewards(core: Core, request: Request) -> Response:
    """Take in rewards; a verdict for each item, in order, whatever is wrong with others."""
    given = await decoded(request, read_rewards)
    sound = [one for one in given if isinstance(one, Reward)]
    verdicts = iter(await core.rewards(request.path_params["bandit"], sound))
    found = [next(verdicts) if isinstance(one, Reward) else one for one in given]
    return answer(found, 207)


@endpoint("rank")
async def activate(core: Core, request: Request) -> Response:
    """Let a deferred event count."""
    await core.activate(request.path_params["bandit"], event_of(request))
    return Response(status_code=204)


@endpoint("admin")
async def create_bandit(core: Core, request: Request) -> Response:
    """Make a bandit."""
    spec = await decoded(request, _bandit)
    made = await core.create_bandit(spec, who=who(request))
    return answer(made.as_json(), 201, {"Location": f"/v1/bandits/{made.name}"})


async def list_bandits(request: Request) -> Response:
    """The bandits that the key may read."""
    key = await authenticated(request)
    allowed(key, "read", key.bandit)
    known = request.app.state.core.bandits()
    found = [one.as_json() for one in known if key.bandit in {None, one.name}]
    return answer({"bandits": found})


@endpoint("read")
async def one_bandit(core: Core, request: Request) -> Response:
    """One bandit."""
    bandit = core.bandit(request.path_params["bandit"])
    counts = await core.counts(bandit.name)
    return answer({**bandit.as_json(), **counts})


@endpoint("read")
async def list_releases(core: Core, request: Request) -> Response:
    """All releases by digest."""
    return answer({"releases": await core.releases(request.path_params["bandit"])})


@endpoint("read")
async def one_release(core: Core, request: Request) -> Response:
    """A release. What has a number never changes."""
    text = request.path_params["number"]
    if text != "latest" and not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise ServiceError(404, "ReleaseNotFound", "There is no release of this number.")
    number = None if text == "latest" else int(text)
    document = await core.release_document(request.path_params["bandit"], number)
    digest = msgspec.json.decode(document, type=_Digest).digest
    lasting = "private, max-age=31536000, immutable" if number is not None else "no-cache"
    headers = {"ETag": f'"{digest}"', "Cache-Control": lasting}
    if unchanged(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(document, 200, headers, "application/json")


class _Digest(msgspec.Struct):
    digest: str


@endpoint("read")
async def card(core: Core, request: Request) -> Response:
    """The privacy card."""
    return _tagged(request, await core.card(request.path_params["bandit"]))


@endpoint("read")
async def ledger(core: Core, request: Request) -> Response:
    """The ledger, checked; its lines as they are with ``?format=lines``."""
    lines = await core.ledger_lines(request.path_params["bandit"])
    if request.query_params.get("format") == "lines":
        return Response(lines, 200, media_type="application/jsonl")
    return _tagged(request, await asyncio.to_thread(ledger_summary, lines))


def _tagged(request: Request, value: object) -> Response:
    """A JSON answer with an ETag."""
    content = encode(value)
    tag = f'"{uuid.uuid5(uuid.NAMESPACE_OID, content.hex()).hex}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if unchanged(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, "application/json")


@endpoint("admin")
async def erase(core: Core, request: Request) -> Response:
    """Erase a person."""
    bandit, subject = request.path_params["bandit"], subject_of(request)
    return answer(await core.erase(bandit, subject, who=who(request)), 202)


@endpoint("admin")
async def create_key(core: Core, request: Request) -> Response:
    """Make a key."""
    asked = await decoded(request, _key)
    key, text = await core.create_key(
        name=asked.name, scopes=asked.scopes, bandit=asked.bandit, who=who(request)
    )
    return answer({**_shown(key), "key": text}, 201)


@endpoint("admin")
async def list_keys(core: Core, request: Request) -> Response:
    """All keys, without their secrets."""
    del request
    return answer({"keys": [_shown(key) for key in await core.keys()]})


@endpoint("admin")
async def revoke_key(core: Core, request: Request) -> Response:
    """End a key."""
    await core.revoke_key(request.path_params["key"], who=who(request))
    return Response(status_code=204)


@endpoint("admin")
async def audit_log(core: Core, request: Request) -> Response:
    """The last administrative calls."""
    del request
    return answer({"entries": await core.audit_log()})


def _shown(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": list(key.scopes),
        "bandit": key.bandit,
        "created": key.created,
    }


async def healthz(request: Request) -> Response:
    """Whether the process answers."""
    del request
    return answer({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Whether it can decide, and what is stale."""
    found = request.app.state.core.health()
    return answer(found, 200 if found["ready"] else 503)


async def metrics(request: Request) -> Response:
    """Public counts, for Prometheus."""
    content, kind = request.app.state.metrics.text(request.app.state.core)
    return Response(content, 200, {"Content-Type": kind})


async def openapi(request: Request) -> Response:
    """The description of this interface."""
    del request
    return answer(_openapi.document())


ROUTES: list[BaseRoute] = [
    Route("/v1/bandits/{bandit}/rank", rank, methods=["POST"]),
    Route("/v1/bandits/{bandit}/rewards", rewards, methods=["POST"]),
    Route("/v1/bandits/{bandit}/events/{event:path}/activate", activate, methods=["POST"]),
    Route("/v1/bandits", create_bandit, methods=["POST"]),
    Route("/v1/bandits", list_bandits),
    Route("/v1/bandits/{bandit}", one_bandit),
    Route("/v1/bandits/{bandit}/releases", list_releases),
    Route("/v1/bandits/{bandit}/releases/{number}", one_release),
    Route("/v1/bandits/{bandit}/card", card),
    Route("/v1/bandits/{bandit}/ledger", ledger),
    Route("/v1/bandits/{bandit}/subjects/{subject:path}", erase, methods=["DELETE"]),
    Route("/v1/keys", create_key, methods=["POST"]),
    Route("/v1/keys", list_keys),
    Route("/v1/keys/{key}", revoke_key, methods=["DELETE"]),
    Route("/v1/audit-log", audit_log),
    Route("/healthz", healthz),
    Route("/readyz", readyz),
    Route("/metrics", metrics),
    Route("/openapi.json", openapi),
]
