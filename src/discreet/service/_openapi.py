"""The OpenAPI 3.1 description, made from the types of requests and answers."""

from functools import cache
from typing import Any

import msgspec

from discreet.service import _bodies as bodies
from discreet.version import __version__

_TYPES = {
    "BanditSpec": bodies.BanditSpec,
    "RankRequest": bodies.RankRequest,
    "RankAnswer": bodies.RankAnswer,
    "Rewards": bodies.Rewards,
    "Verdict": bodies.Verdict,
    "Erased": bodies.Erased,
    "Health": bodies.Health,
    "KeyRequest": bodies.KeyRequest,
    "ErrorAnswer": bodies.ErrorAnswer,
}
_JSON = "application/json"
_NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"}
_BANDIT = {"name": "bandit", "in": "path", "required": True, "schema": _NAME}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _operation(
    summary: str,
    scope: str | None,
    *,
    status: int = 200,
    answer: dict[str, Any] | None = None,
    body: str | None = None,
    refusals: tuple[int, ...] = (),
    tagged: bool = False,
) -> dict[str, Any]:
    """One operation; every one that needs a key may be refused for want of it."""
    said: dict[str, Any] = {"description": summary}
    if answer is not None:
        said["content"] = {_JSON: {"schema": answer}}
    refused = {"description": "Refused.", "content": {_JSON: {"schema": _ref("ErrorAnswer")}}}
    codes = {*refusals, *((401, 403, 429) if scope else ()), 503}
    codes |= {400, 408, 413} if body else set()
    responses = {str(status): said, **{str(code): refused for code in sorted(codes)}}
    if tagged:
        responses["304"] = {"description": "What `If-None-Match` names, or `*`: it is unchanged."}
    found: dict[str, Any] = {"summary": summary, "responses": dict(sorted(responses.items()))}
    if scope is not None:
        found["security"] = [{"bearer": []}, {"subscriptionKey": []}]
        found["description"] = f"Needs a key with the scope `{scope}`."
    if body is not None:
        found["requestBody"] = {"required": True, "content": {_JSON: {"schema": _ref(body)}}}
    return found


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_OBJECT = {"type": "object"}


def _paths() -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    one = "/v1/bandits/{bandit}"
    number = {"type": "string", "pattern": "^(latest|[0-9]{1,12})$"}
    return {
        "/v1/bandits": {
            "get": _operation("All bandits that the key may read.", "read", answer=_OBJECT),
            "post": _operation(
                "Make a bandit.",
                "admin",
                status=201,
                answer=_OBJECT,
                body="BanditSpec",
                refusals=(409,),
            ),
        },
        one: {
            "parameters": [_BANDIT],
            "get": _operation("One bandit.", "read", answer=_OBJECT, refusals=(404,)),
        },
        f"{one}/rank": {
            "parameters": [_BANDIT],
            "post": _operation(
                "Choose an action for a person; the event is on the disk before the answer.",
                "rank",
                status=201,
                answer=_ref("RankAnswer"),
                body="RankRequest",
                refusals=(404, 409),
            ),
        },
        f"{one}/rewards": {
            "parameters": [_BANDIT],
            "post": _operation(
                "Take in rewards; one verdict each, in order.",
                "reward",
                status=207,
                answer={"type": "array", "items": _ref("Verdict")},
                body="Rewards",
                refusals=(404,),
            ),
        },
        f"{one}/events/{{event}}/activate": {
            "parameters": [_BANDIT, _parameter("event", text)],
            "post": _operation("Let a deferred event count.", "rank", status=204, refusals=(404,)),
        },
        f"{one}/releases": {
            "parameters": [_BANDIT],
            "get": _operation("All releases by digest.", "read", answer=_OBJECT, refusals=(404,)),
        },
        f"{one}/releases/{{number}}": {
            "parameters": [_BANDIT, _parameter("number", number)],
            "get": _operation("A release.", "read", answer=_OBJECT, refusals=(404,), tagged=True),
        },
        f"{one}/card": {
            "parameters": [_BANDIT],
            "get": _operation(
                "The privacy card.", "read", answer=_OBJECT, refusals=(404,), tagged=True
            ),
        },
        f"{one}/ledger": {
            "parameters": [_BANDIT],
            "get": _with_lines(
                _operation(
                    "The ledger, checked line by line; as it is with `?format=lines`.",
                    "read",
                    answer=_OBJECT,
                    refusals=(404,),
                    tagged=True,
                )
            ),
        },
        f"{one}/subjects/{{subject}}": {
            "parameters": [_BANDIT, _parameter("subject", {**text, "maxLength": 500})],
            "delete": _operation(
                "Erase all that is a person's and not released yet.",
                "admin",
                status=202,
                answer=_ref("Erased"),
                refusals=(400, 404),
            ),
        },
        "/v1/keys": {
            "get": _operation("All keys, without their secrets.", "admin", answer=_OBJECT),
            "post": _operation(
                "Make a key; its text is shown once.",
                "admin",
                status=201,
                answer=_OBJECT,
                body="KeyRequest",
                refusals=(404,),
            ),
        },
        "/v1/keys/{key}": {
            "parameters": [_parameter("key", text)],
            "delete": _operation("End a key.", "admin", status=204, refusals=(404,)),
        },
        "/v1/audit-log": {
            "get": _operation("The last administrative calls.", "admin", answer=_OBJECT)
        },
        "/healthz": {"get": _operation("Whether the process answers.", None, answer=_OBJECT)},
        "/readyz": {"get": _ready()},
        "/metrics": {"get": _metrics()},
        "/openapi.json": {"get": _operation("This description.", None, answer=_OBJECT)},
    }


def _with_lines(operation: dict[str, Any]) -> dict[str, Any]:
    """The ledger may be had as lines of JSON, and then it is not tagged."""
    operation["responses"]["200"]["content"]["application/jsonl"] = {"schema": {"type": "string"}}
    lines = {"type": "string", "enum": ["lines"]}
    operation["parameters"] = [
        {"name": "format", "in": "query", "required": False, "schema": lines}
    ]
    return operation


def _ready() -> dict[str, Any]:
    """It is answered with the same object whatever its status is."""
    found = _operation("What is stale, if anything.", None, answer=_ref("Health"))
    found["responses"]["503"] = {
        **found["responses"]["200"],
        "description": "It cannot decide now.",
    }
    return found


def _metrics() -> dict[str, Any]:
    found = _operation("Public counts, as Prometheus reads them.", None)
    found["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    return found


@cache
def document() -> dict[str, Any]:
    """The description, as JSON."""
    made, components = msgspec.json.schema_components(
        list(_TYPES.values()), ref_template="#/components/schemas/{name}"
    )
    names = dict(zip(_TYPES, made, strict=True))
    for name, schema in names.items():
        components.setdefault(name, schema)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "discreet",
            "version": __version__,
            "description": (
                "Private personalisation: decisions under differential privacy. Left out here are "
                "the dashboard's pages, and the paths below `/bandits/{bandit}/personalizer/`, "
                "which are those of Azure Personalizer's own description."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _paths(),
        "components": {
            "schemas": _portable(components),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "subscriptionKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Ocp-Apim-Subscription-Key",
                },
            },
        },
    }


def _portable(schema: Any) -> Any:  # noqa: ANN401  # any part of a schema
    r"""The same with Python's `\Z` as the `$` of other dialects of regular expressions."""
    if isinstance(schema, dict):
        return {
            key: value.replace(r"\Z", "$") if key == "pattern" else _portable(value)
            for key, value in schema.items()
        }
    return [_portable(one) for one in schema] if isinstance(schema, list) else schema
