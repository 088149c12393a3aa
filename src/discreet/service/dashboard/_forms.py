"""Forms: from what a person typed to what the service understands, or advice beside a field."""

import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from discreet import features
from discreet.errors import ParameterError
from discreet.service._bodies import BanditSpec, KeyRequest, ServiceError
from discreet.service._http import body_of

_MOST_FIELDS = 100
_MAP_ERRORS = ("features", "parts", "specification", "format", "version", "actions", "dim")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SAYS_NAME = "Use letters, digits, “_”, “.” and “-”, at most 64, beginning with a letter or digit."
DEFAULTS = {
    "name": "",
    "epsilon": "1",
    "delta": "1e-6",
    "horizon": "",
    "contributions_per_user": "1",
    "protects": "rows",
    "low": "0",
    "high": "1",
    "wait_seconds": "600",
    "default": "0",
    "aggregation": "earliest",
    "actions": "",
    "features": "",
    "theta_norm": "",
    "memory": "",
}


class FormError(Exception):
    """What is wrong, by field; the empty name is the whole form."""

    def __init__(self, errors: dict[str, str]) -> None:
        """Give advice for each field."""
        super().__init__("a form was not filled in rightly")
        self.errors = errors


async def form_of(request: Request) -> dict[str, list[str]]:
    """The fields of a posted form; ServiceError 400 if it is none."""
    content = await body_of(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise ServiceError(400, "BadRequest", "This is not a form.")
    try:
        pairs = parse_qsl(
            content.decode("utf-8"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise ServiceError(400, "BadRequest", "This is not a form.") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def first(form: Mapping[str, list[str]], name: str) -> str:
    """The value of a field, without spaces around it."""
    return form.get(name, [""])[0].strip()


def bandit_of(form: Mapping[str, list[str]]) -> BanditSpec:
    """The bandit that a form asks for; FormError if it does not say."""
    given = {name: first(form, name) for name in DEFAULTS}
    errors: dict[str, str] = {}
    entry: dict[str, Any] = {"name": given["name"]}
    for name in ("epsilon", "delta"):
        entry[name] = _number(given, name, errors, needed=True)
    entry["horizon"] = _whole(given, "horizon", errors)
    for name, needed in (("contributions_per_user", True), ("memory", False)):
        entry[name] = _whole(given, name, errors, needed=needed)
    entry["protects"] = given["protects"] or "rows"
    entry["theta_norm"] = _number(given, "theta_norm", errors)
    rule = {
        name: _number(given, name, errors, needed=True)
        for name in ("low", "high", "wait_seconds", "default")
    }
    entry["reward"] = {**rule, "aggregation": given["aggregation"]}
    entry["features"] = _features(given, errors)
    _compare(given["name"], entry, rule, errors)
    if errors:
        raise FormError(errors)
    try:
        return msgspec.convert(entry, BanditSpec)
    except msgspec.ValidationError as error:
        raise FormError(by_field(str(error))) from None


def key_of(form: Mapping[str, list[str]]) -> KeyRequest:
    """The key that a form asks for; FormError if it does not say."""
    errors = {}
    name, scopes = first(form, "name"), form.get("scopes", [])
    if not name:
        errors["name"] = "Say what it is for, so that you know which to revoke."
    if not scopes:
        errors["scopes"] = "Choose at least one."
    if errors:
        raise FormError(errors)
    entry = {"name": name, "scopes": scopes, "bandit": first(form, "bandit") or None}
    try:
        return msgspec.convert(entry, KeyRequest)
    except msgspec.ValidationError as error:
        raise FormError(by_field(str(error))) from None


def by_field(message: str) -> dict[str, str]:
    """Advice of the service, which names a parameter, beside the field that it is about."""
    if " - at `$." in message:
        advice, _, path = message.rpartition(" - at `$.")
        field = path.rstrip("`").split(".")[-1].split("[")[0]
        return {field: _SAYS_NAME if field == "name" else f"{advice.replace('`', '')}."}
    parameter, colon, advice = message.partition(": ")
    field = parameter.split("[")[0].split(".")[0]
    if field == "reward":
        field = "default" if advice.startswith("default") else "high"
    if field in _MAP_ERRORS:
        return {"features": message}
    if colon and field in DEFAULTS:
        return {field: f"It {advice}." if advice.startswith(("is ", "must ")) else f"{advice}."}
    return {"": message}


def _number(
    given: Mapping[str, str], name: str, errors: dict[str, str], *, needed: bool = False
) -> float | None:
    text = given[name]
    if not text:
        if needed:
            errors[name] = "Give a number."
        return None
    try:
        return float(text)
    except ValueError:
        errors[name] = "This is not a number."
        return None


def _whole(
    given: Mapping[str, str], name: str, errors: dict[str, str], *, needed: bool = False
) -> int | None:
    text = given[name].replace(",", "").replace("_", "").replace(" ", "")
    if not text:
        if needed:
            errors[name] = "Give a whole number."
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        errors[name] = "This is not a whole number."
        return None
    return int(text)


def _features(given: Mapping[str, str], errors: dict[str, str]) -> dict[str, Any] | None:
    ids = [line.strip() for line in given["actions"].splitlines() if line.strip()]
    if given["features"] and ids:
        errors["actions"] = "The feature map below says what the actions are; give one of the two."
        return None
    try:
        if ids:
            dim = max(32, 2 * len(ids) + 2)
            return features.default(dim, actions=ids).to_json()
        if given["features"]:
            return features.FeatureMap.from_json(given["features"]).to_json()
    except ParameterError as error:
        errors["actions" if ids else "features"] = f"{error}."
    return None


def _compare(
    name: str,
    entry: Mapping[str, Any],
    rule: Mapping[str, float | None],
    errors: dict[str, str],
) -> None:
    """Check values that were read and add a message for each wrong one to ``errors``."""
    if not _NAME.fullmatch(name):
        errors["name"] = _SAYS_NAME
    if entry["epsilon"] is not None and not 0.0 < entry["epsilon"] < math.inf:
        errors["epsilon"] = "It must be above 0."
    if entry["delta"] is not None and not 0.0 < entry["delta"] < 1.0:
        errors["delta"] = "It must be between 0 and 1."
    low, high, otherwise = (rule[name] for name in ("low", "high", "default"))
    if low is None or high is None or otherwise is None:
        return
    if not low < high:
        errors["high"] = "It must be above the lowest reward."
    elif not low <= otherwise <= high:
        errors["default"] = "It must be from the lowest to the highest reward."
