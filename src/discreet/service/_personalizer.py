"""Azure Personalizer's interface, below ``/bandits/{bandit}/personalizer/v1.0/``.

A client of Personalizer works here with ``http://host:port/bandits/{bandit}`` as its endpoint and
one of our keys as its subscription key: scopes rank and reward for the loop, read to look at
the configuration, and admin to change it. Version 1.1-preview is served too, as far as it is the
same. Thin: `_translation` has what means what.

What is answered otherwise than Personalizer did:

- a reward of an unknown event is refused (404), and so is one outside of the bandit's bounds (400);
- settings that have no meaning here are constant, and a change of one is refused;
- model and policy can be looked at and not replaced; logs, evaluations and multi-slot calls do not
  exist (501): raw data is not kept.
"""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from discreet.service._bodies import Reward, ServiceError
from discreet.service._core import Core
from discreet.service._http import (
    Handler,
    answer,
    decoded,
    endpoint,
    event_of,
    no_event,
    ranked,
    refusal,
    refused,
    who,
)
from discreet.service._translation import (
    ConfigurationBody,
    RankBody,
    RewardBody,
    TargetedError,
    changes,
    configuration,
    rank_request,
    rank_response,
)

__all__ = ["routes"]

_PREFIXES = (  # an endpoint may be given with a slash at its end, as Azure shows it
    "/bandits/{bandit}/personalizer/{version}",
    "/bandits/{bandit}//personalizer/{version}",
)
_VERSION = re.compile(r"v1\.0|v1\.1-preview(\.[123])?")
_PATH = re.compile(r"/bandits/[^/]+//?personalizer/")
_FIELD = re.compile(r"`\$\.?([^`]*)`")  # where, in a message of msgspec's
_OWN_CODES = frozenset({401, 403, 405, 429, 501})  # statuses whose code is in no list of theirs
_NOT_SUPPORTED = (
    "/configurations/policy",
    "/evaluations",
    "/evaluations/{rest:path}",
    "/featureImportances",
    "/featureImportances/{rest:path}",
    "/logs",
    "/logs/{rest:path}",
    "/model",
    "/model/{rest:path}",
    "/multislot/{rest:path}",
)
_ANY = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_HEADERS = frozenset({"retry-after", "www-authenticate"})  # of refusals
_RANK = msgspec.json.Decoder(RankBody).decode
_REWARD = msgspec.json.Decoder(RewardBody).decode
_CONFIGURATION = msgspec.json.Decoder(ConfigurationBody).decode


def routes(core: Core) -> list[BaseRoute]:
    """Personalizer's routes, for the application.

    Args:
        core: is found by requests in their application; here to be like other lists of routes.

    Returns:
        The routes, the more special first.
    """
    del core
    return [
        Route(prefix + path, handler, methods=methods)
        for prefix in _PREFIXES
        for path, handler, methods in [
            ("/rank", _rank, ["POST"]),
            ("/events/{event:path}/reward", _reward, ["POST"]),
            ("/events/{event:path}/activate", _activate, ["POST"]),
            ("/configurations/service", _get_configuration, ["GET"]),
            ("/configurations/service", _put_configuration, ["PUT", "PATCH"]),
            ("/configurations/policy", _get_policy, ["GET"]),
            ("/model", _get_model, ["GET"]),
            ("/model/properties", _get_model_properties, ["GET"]),
            *((path, _not_supported, _ANY) for path in _NOT_SUPPORTED),
        ]
    ]


def refusal_at(path: str) -> Callable[[ServiceError], Response] | None:
    """How Personalizer refuses what has no route; None if a path is none of its.

    Args:
        path: that was asked for.
    """
    return (lambda error: _refusal(error, "BadRequest")) if _PATH.match(path) else None


def _personalizer(
    scope: str, wrong: str = "BadRequest"
) -> Callable[[Handler], Callable[[Request], Awaitable[Response]]]:
    """A route whose errors are Personalizer's.

    Args:
        scope: what a key must be for.
        wrong: Personalizer's finer code of a request that cannot be.
    """

    def decorate(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        checked = endpoint(scope)(handler)

        async def handle(request: Request) -> Response:
            try:
                if not _VERSION.fullmatch(request.path_params["version"]):
                    raise ServiceError(404, "NotFound", "This version is not served; use v1.0.")
                return await checked(request)
            except Exception as error:  # noqa: BLE001  # whatever it is, it has their form
                return _refusal(refused(error), wrong)

        handle.__name__ = f"personalizer{handler.__name__}"  # for metrics
        return handle

    return decorate


def _refusal(error: ServiceError, wrong: str) -> Response:
    """An error as Personalizer says it: one of its few codes, and ours as the finer one."""
    status, code, inner = error.status, error.code, error.code
    if status == 404:
        code = "ResourceNotFound"
    elif status not in _OWN_CODES:
        code = "BadRequest" if status < 500 else "InternalServerError"
        inner = wrong if error.code == "BadRequest" else error.code
    found: dict[str, Any] = {"code": code, "message": error.message}
    field = _FIELD.search(error.message)
    target = getattr(error, "target", field[1] if field else "")
    if target:
        found["target"] = target
    if inner != code:
        found["innerError"] = {"code": inner}
    headers = {name: value for name, value in refusal(error).headers.items() if name in _HEADERS}
    return answer({"error": found}, status, headers)


@_personalizer("rank", "InvalidRankRequest")
async def _rank(core: Core, request: Request) -> Response:
    """Choose an action."""
    body = await decoded(request, _RANK)
    found, headers = await ranked(core, request, rank_request(body))
    return answer(rank_response(body, found), 201, headers)


@_personalizer("reward", "InvalidRewardRequest")
async def _reward(core: Core, request: Request) -> Response:
    """Take in the reward of one event."""
    event = event_of(request)
    body = await decoded(request, _REWARD)
    verdict = (await core.rewards(request.path_params["bandit"], [Reward(event, body.value)]))[0]
    if verdict.status == 404:
        raise no_event()
    if verdict.status == 400:
        rule = core.bandit(request.path_params["bandit"]).spec.reward
        raise TargetedError(f"value must be from {rule.low:g} to {rule.high:g}.", "value")
    return Response(status_code=204)


@_personalizer("rank", "InvalidEventIdToActivate")
async def _activate(core: Core, request: Request) -> Response:
    """Let a deferred event count."""
    await core.activate(request.path_params["bandit"], event_of(request))
    return Response(status_code=204)


@_personalizer("read")
async def _get_configuration(core: Core, request: Request) -> Response:
    """How rewards are waited for."""
    return answer(configuration(core.bandit(request.path_params["bandit"]).spec.reward))


@_personalizer("admin", "InvalidServiceConfiguration")
async def _put_configuration(core: Core, request: Request) -> Response:
    """Change how rewards of new events are waited for."""
    asked = changes(await decoded(request, _CONFIGURATION))
    name = request.path_params["bandit"]
    rule, default = core.bandit(name).spec.reward, asked["default"]
    if default is not None and not rule.low <= default <= rule.high:
        raise TargetedError(
            f"defaultReward must be from {rule.low:g} to {rule.high:g}.", "defaultReward"
        )
    changed = await core.configure(name, **asked, who=who(request))
    return answer(configuration(changed.spec.reward))


@_personalizer("read")
async def _get_policy(core: Core, request: Request) -> Response:
    """How a release becomes a choice."""
    policy = dict(core.bandit(request.path_params["bandit"]).spec.policy or {})
    name = policy.pop("rule", "")
    return answer({"name": name, "arguments": msgspec.json.encode(policy).decode()})


@_personalizer("read")
async def _get_model(core: Core, request: Request) -> Response:
    """The latest release: the model is public."""
    document = await core.release_document(request.path_params["bandit"], None)
    return Response(document, 200, media_type="application/octet-stream")


@_personalizer("read")
async def _get_model_properties(core: Core, request: Request) -> Response:
    """When the bandit and its latest release were made."""
    bandit = core.bandit(request.path_params["bandit"])
    times = {"creationTime": bandit.created, "lastModifiedTime": bandit.made}
    return answer(
        {
            name: datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
            for name, at in times.items()
        }
    )


@_personalizer("read")
async def _not_supported(core: Core, request: Request) -> Response:
    """What Personalizer could do and this service does not."""
    core.bandit(request.path_params["bandit"])
    raise ServiceError(
        501,
        "OperationNotAllowed",
        "This service keeps no logs and evaluates no policies, and its model is never replaced; "
        "docs/service.md has what it does instead.",
    )
