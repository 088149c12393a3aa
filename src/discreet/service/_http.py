"""HTTP: routes, keys, limits, errors. Thin: everything is done by the `Core`.

No body, action, reward, subject or key is ever logged or repeated in an error.
"""

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from discreet.errors import BrokenLedgerError, DiscreetError, StoreError
from discreet.service import _openapi
from discreet.service._bodies import (
    BanditSpec,
    ErrorAnswer,
    ErrorBody,
    KeyRequest,
    RankRequest,
    Rewards,
    ServiceError,
)
from discreet.service._configuration import Configuration
from discreet.service._core import Core, ledger_summary
from discreet.service._keys import Key
from discreet.service._limits import Buckets
from discreet.service._metrics import Metrics

Handler = Callable[[Core, Request], Awaitable[Response]]
T = TypeVar("T")
_encode = msgspec.json.Encoder().encode
_rank = msgspec.json.Decoder(RankRequest)
_rewards: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Rewards)
_bandit = msgspec.json.Decoder(BanditSpec)
_key = msgspec.json.Decoder(KeyRequest)
_log = logging.getLogger("discreet.http")
_CODES = {404: "NotFound", 405: "MethodNotAllowed"}


def answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(_encode(value), status, headers, "application/json")


def refusal(error: ServiceError) -> Response:
    """An error as JSON."""
    headers = {"Retry-After": "1"} if error.status in {429, 503} else {}
    if error.status == 401:  # noqa: PLR2004
        headers["WWW-Authenticate"] = "Bearer"
    return answer(ErrorAnswer(ErrorBody(error.code, error.message)), error.status, headers)


def refused(error: Exception) -> ServiceError:
    """Any error as one that may be shown."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, StoreError):
        return ServiceError(
            503, "StoreUnavailable", "The database does not answer now; try again in a moment."
        )
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "BadRequest")
        return ServiceError(error.status_code, code, f"{error.detail}.")
    _log.error("internal", extra={"kind": type(error).__name__})  # its message may hold data
    return ServiceError(500, "InternalError", "Something went wrong here; it was logged.")


async def body_of(request: Request) -> bytes:
    """The whole body, if it is not too long and does not take too long to arrive."""
    limits: Configuration = request.app.state.configuration
    too_large = ServiceError(
        413, "RequestTooLarge", f"The body has more than {limits.largest_body} bytes."
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limits.largest_body:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limits.largest_body:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise ServiceError(408, "RequestTimeout", "The body took too long to arrive.") from None
    except ClientDisconnect:
        raise ServiceError(400, "BadRequest", "The client went away.") from None
    return b"".join(parts)


async def decoded(request: Request, decoder: "msgspec.json.Decoder[T]") -> T:
    """The body as what it should be. Messages name fields, never values."""
    content = await body_of(request)
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        raise ServiceError(400, "BadRequest", f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ServiceError(400, "BadRequest", "The body is not JSON, in UTF-8.") from None


def key_text(request: Request) -> str | None:
    """The key of a request, from either of its headers."""
    given = request.headers.get("authorization")
    if given is not None and given[:7].lower() == "bearer ":
        return given[7:].strip()
    return request.headers.get("ocp-apim-subscription-key")


def authorized(request: Request, scope: str, bandit: str | None) -> Key:
    """Whose key it is, if it may do this. ServiceError 401, 403 or 429 if not."""
    state = request.app.state
    text = key_text(request)
    key = None if text is None else state.core.authenticate(text)
    if key is None:
        client = request.client.host if request.client else "?"
        if not state.strangers.take(client):
            raise ServiceError(429, "RateLimited", "Too many requests without a valid key.")
        raise ServiceError(401, "Unauthorized", "Give a valid key: `Authorization: Bearer KEY`.")
    if not state.buckets.take(key.id):
        raise ServiceError(429, "RateLimited", "Too many requests with this key; wait a little.")
    if not key.allows(scope, bandit):
        raise ServiceError(403, "Forbidden", f"This key may not do that: it needs {scope!r}.")
    return key


def who(request: Request) -> str:
    """Who is asking, for the audit log."""
    key: Key = request.state.key
    return f"{key.name} ({key.id})"


def endpoint(scope: str) -> Callable[[Handler], Callable[[Request], Awaitable[Response]]]:
    """A route for which a key with this scope is needed, for the bandit of its path if it has one.

    Args:
        scope: rank, reward, read or admin.
    """

    def decorate(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            key = authorized(request, scope, request.path_params.get("bandit"))
            request.state.key = key
            return await handler(request.app.state.core, request)

        handle.__name__ = getattr(handler, "__name__", "handle")
        return handle

    return decorate


@endpoint("rank")
async def rank(core: Core, request: Request) -> Response:
    """Choose an action for a person."""
    asked = await decoded(request, _rank)
    return answer(await core.rank(request.path_params["bandit"], asked), 201)


@endpoint("reward")
async def rewards(core: Core, request: Request) -> Response:
    """Take in rewards."""
    given = await decoded(request, _rewards)
    return answer(await core.rewards(request.path_params["bandit"], given), 207)


@endpoint("rank")
async def activate(core: Core, request: Request) -> Response:
    """Let a deferred event count."""
    await core.activate(request.path_params["bandit"], request.path_params["event"])
    return Response(status_code=204)


@endpoint("admin")
async def create_bandit(core: Core, request: Request) -> Response:
    """Make a bandit."""
    if request.state.key.bandit is not None:
        raise ServiceError(403, "Forbidden", "This key is for one bandit only.")
    spec = await decoded(request, _bandit)
    made = await core.create_bandit(spec, who=who(request))
    return answer(made.as_json(), 201, {"Location": f"/v1/bandits/{made.name}"})


async def list_bandits(request: Request) -> Response:
    """The bandits that the key may read."""
    core, text = request.app.state.core, key_text(request)
    key = None if text is None else core.authenticate(text)
    only = None if key is None else key.bandit
    authorized(request, "read", only)
    found = [one.as_json() for one in core.bandits() if only in {None, one.name}]
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
    if text != "latest" and not (text.isascii() and text.isdecimal() and len(text) <= 12):  # noqa: PLR2004
        raise ServiceError(404, "ReleaseNotFound", "There is no release of this number.")
    number = None if text == "latest" else int(text)
    document = await core.release_document(request.path_params["bandit"], number)
    digest = msgspec.json.decode(document, type=_Digest).digest
    lasting = "private, max-age=31536000, immutable" if number is not None else "no-cache"
    headers = {"ETag": f'"{digest}"', "Cache-Control": lasting}
    if digest in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(document, 200, headers, "application/json")


class _Digest(msgspec.Struct):
    digest: str


@endpoint("read")
async def card(core: Core, request: Request) -> Response:
    """The privacy card."""
    return _tagged(request, core.card(request.path_params["bandit"]))


@endpoint("read")
async def ledger(core: Core, request: Request) -> Response:
    """The ledger, checked; its lines as they are with ``?format=lines``."""
    lines = await core.ledger_lines(request.path_params["bandit"])
    if request.query_params.get("format") == "lines":
        return Response(lines, 200, media_type="application/jsonl")
    try:
        return _tagged(request, await asyncio.to_thread(ledger_summary, lines))
    except BrokenLedgerError as error:
        raise ServiceError(503, "BrokenLedger", str(error)) from None


def _tagged(request: Request, value: object) -> Response:
    """A JSON answer with an ETag."""
    content = _encode(value)
    tag = f'"{uuid.uuid5(uuid.NAMESPACE_OID, content.hex()).hex}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, "application/json")


@endpoint("admin")
async def erase(core: Core, request: Request) -> Response:
    """Erase a person."""
    path = request.path_params
    return answer(await core.erase(path["bandit"], path["subject"], who=who(request)), 202)


def _all_bandits(request: Request) -> None:
    """Refuse keys for one bandit where all of them are concerned."""
    if request.state.key.bandit is not None:
        raise ServiceError(403, "Forbidden", "This key is for one bandit only.")


@endpoint("admin")
async def create_key(core: Core, request: Request) -> Response:
    """Make a key."""
    _all_bandits(request)
    asked = await decoded(request, _key)
    key, text = await core.create_key(
        name=asked.name, scopes=asked.scopes, bandit=asked.bandit, who=who(request)
    )
    return answer({**_shown(key), "key": text}, 201)


@endpoint("admin")
async def list_keys(core: Core, request: Request) -> Response:
    """All keys, without their secrets."""
    _all_bandits(request)
    return answer({"keys": [_shown(key) for key in await core.keys()]})


@endpoint("admin")
async def revoke_key(core: Core, request: Request) -> Response:
    """End a key."""
    _all_bandits(request)
    await core.revoke_key(request.path_params["key"], who=who(request))
    return Response(status_code=204)


@endpoint("admin")
async def audit_log(core: Core, request: Request) -> Response:
    """The last administrative calls."""
    _all_bandits(request)
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
    Route("/v1/bandits/{bandit}/events/{event}/activate", activate, methods=["POST"]),
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


async def _on_error(request: Request, error: Exception) -> Response:
    del request
    return refusal(refused(error))


class _Outermost:
    """Counts, logs and secures every answer; nothing that goes wrong inside gets past it."""

    def __init__(self, app: Any, metrics: Metrics) -> None:  # noqa: ANN401  # an ASGI application
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_on(message: Any) -> None:  # noqa: ANN401
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_SECURE]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception as error:  # noqa: BLE001
            if not status:
                await refusal(refused(error))(scope, receive, send_on)
        finally:
            route = getattr(scope.get("endpoint"), "__name__", "other")
            seconds = time.perf_counter() - began
            self._metrics.count(route, scope["method"], status, seconds)
            if _log.isEnabledFor(logging.DEBUG):
                facts = {"route": route, "status": status, "ms": round(seconds * 1000, 2)}
                _log.debug("request", extra=facts)


_SECURE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"server", b"discreet"),
]


def application(core: Core, configuration: Configuration) -> Any:  # noqa: ANN401
    """The service as an ASGI application.

    Args:
        core: what does the work.
        configuration: limits, and whether clients come by HTTPS.
    """
    routes = [*ROUTES]
    with contextlib.suppress(ImportError):  # until they are there
        from discreet.service import personalizer

        routes += personalizer.routes(core)
    with contextlib.suppress(ImportError, AttributeError):
        from discreet.service import dashboard

        routes += dashboard.routes(core, configuration)
    handlers: dict[Any, Any] = {
        kind: _on_error for kind in (ServiceError, DiscreetError, HTTPException)
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.core = core
    app.state.configuration = configuration
    app.state.metrics = Metrics()
    app.state.buckets = Buckets(configuration.requests_per_second)
    app.state.strangers = Buckets(configuration.wrong_keys_per_second)
    return _Outermost(app, app.state.metrics)
