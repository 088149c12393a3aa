"""What every route needs: bodies, keys, limits, errors.

No body, action, reward, subject or key is ever logged or repeated in an error.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from discreet.errors import BrokenLedgerError, StoreError
from discreet.service._bodies import (
    ErrorAnswer,
    ErrorBody,
    EventId,
    RankAnswer,
    RankRequest,
    ServiceError,
    Subject,
)
from discreet.service._core import Core
from discreet.service._keys import Key

Handler = Callable[[Core, Request], Awaitable[Response]]
T = TypeVar("T")
encode = msgspec.json.Encoder().encode
_log = logging.getLogger("discreet.http")
BODY_IS_THERE = "discreet.body_is_there"  # in a request's scope: nothing of it is still to arrive
_CODES = {404: "NotFound", 405: "MethodNotAllowed"}


def answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(encode(value), status, headers, "application/json")


def refusal(error: ServiceError) -> Response:
    """An error as JSON."""
    headers = {"Retry-After": "1"} if error.status in {429, 503} else {}
    if error.status == 401:
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
    if isinstance(error, BrokenLedgerError):
        return ServiceError(503, "BrokenLedger", str(error))
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "BadRequest")
        return ServiceError(error.status_code, code, f"{error.detail}.")
    _log.error("internal", extra={"kind": type(error).__name__})  # its message may hold data
    return ServiceError(500, "InternalError", "Something went wrong here; it was logged.")


def unchanged(request: Request, tag: str) -> bool:
    """Whether the client has it already: it names the tag, or says that any will do.

    Args:
        request: perhaps with ``If-None-Match``.
        tag: of what there is now, in its quotes.
    """
    given = ",".join(request.headers.getlist("if-none-match")).split(",")
    return bool({"*", tag} & {one.strip().removeprefix("W/") for one in given})


async def body_of(request: Request) -> bytes:
    """The whole body, if it is not too long and does not take too long to arrive."""
    limits = request.app.state.configuration
    too_large = ServiceError(
        413, "RequestTooLarge", f"The body has more than {limits.largest_body} bytes."
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limits.largest_body:
        raise too_large
    parts, size = [], 0
    # A timer for each request costs more than to read what is there already, as it mostly is.
    there = request.scope.get(BODY_IS_THERE, False)
    try:
        async with contextlib.nullcontext() if there else asyncio.timeout(limits.body_seconds):
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


async def decoded(request: Request, decode: Callable[[bytes], T]) -> T:
    """The body as what it should be. Messages name fields, never values.

    Args:
        request: with a body.
        decode: reads JSON; msgspec's errors become refusals.
    """
    content = await body_of(request)
    try:
        return decode(content)
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


async def authorized(request: Request, scope: str, bandit: str | None) -> Key:
    """Whose key it is, if it may do this. ServiceError 401, 403 or 429 if not.

    Args:
        request: with a key.
        scope: what the key must be for.
        bandit: of which bandit; None for all of them.
    """
    key = allowed(await authenticated(request), scope, bandit)
    if bandit is not None and not request.app.state.core.knows(bandit):
        await request.app.state.core.look_again()
    return key


def allowed(key: Key, scope: str, bandit: str | None) -> Key:
    """The key, if it may do this; ServiceError 403 if not."""
    if not key.allows(scope, bandit):
        raise ServiceError(403, "Forbidden", f"This key may not do that: it needs {scope!r}.")
    return key


def client_of(request: Request) -> str:
    """The address that a request comes from."""
    return request.client.host if request.client else "?"


def key_of(request: Request, text: str) -> Key | None:
    """Whose key a text is.

    The administrator's from the environment may be one that can be guessed. So while its address
    has given too many wrong keys, a right guess is answered like a wrong one.
    """
    state = request.app.state
    patient = state.strangers.has(client_of(request))
    key: Key | None = state.core.authenticate(text, generated=not patient)
    return key


async def authenticated(request: Request) -> Key:
    """Whose key it is; ServiceError 401 if it is nobody's, 429 if there are too many requests."""
    state, text = request.app.state, key_text(request)
    key: Key | None = None if text is None else key_of(request, text)
    if key is None:
        if not state.strangers.take(client_of(request)):
            raise ServiceError(429, "RateLimited", "Too many requests without a valid key.")
        if text is not None:
            await state.core.look_again()  # it may be new, and of another ranker
            key = state.core.authenticate(text)
    if key is None:
        raise ServiceError(401, "Unauthorized", "Give a valid key: `Authorization: Bearer KEY`.")
    if not state.buckets.take(key.id):
        raise ServiceError(429, "RateLimited", "Too many requests with this key; wait a little.")
    return key


async def ranked(
    core: Core, request: Request, asked: RankRequest
) -> tuple[RankAnswer, dict[str, str]]:
    """A decision, and the headers of its answer; if it is so configured, without the database too.

    Args:
        core: decides.
        request: of an endpoint, with its key.
        asked: what its body says.
    """
    decision = core.decide(request.path_params["bandit"], asked, request.state.key.id)
    try:
        return await core.write_down(decision), {}
    except StoreError:
        if request.app.state.configuration.without_database != "unlearned":
            raise
    # Better an answer of which nobody knows whether it will be learned from than none.
    return decision.unlearned(), {"Discreet-Learned": "false"}


def event_of(request: Request) -> str:
    """The event of a path; ServiceError 404 if it cannot be the id of one."""
    try:
        return msgspec.convert(request.path_params["event"], EventId)
    except msgspec.ValidationError:
        raise no_event() from None


def subject_of(request: Request) -> str:
    """The subject of a path; ServiceError 400 if nobody can have been given as that with a rank.

    Nobody would be erased then, and whoever asked should not believe that somebody was.
    """
    try:
        unquote_to_bytes(request.scope.get("raw_path") or b"").decode()  # or it was made readable
        return msgspec.convert(request.path_params["subject"], Subject)
    except (UnicodeDecodeError, msgspec.ValidationError):
        raise ServiceError(
            400, "BadRequest", "subject: give text of 1 to 500 characters, in UTF-8."
        ) from None


def no_event() -> ServiceError:
    """The refusal of an event that is not known."""
    return ServiceError(404, "EventNotFound", "There is no event with this id.")


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
            bandit = request.path_params.get("bandit")
            request.state.key = await authorized(request, scope, bandit)
            return await handler(request.app.state.core, request)

        handle.__name__ = getattr(handler, "__name__", "handle")
        return handle

    return decorate
