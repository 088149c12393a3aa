"""Azure Personalizer's JSON in our terms, and back. Knows no HTTP and keeps nothing.

Personalizer describes a context and an action by *lists of objects* (it calls them namespaces);
a feature map reads one object of each. The list is merged from left to right: objects under the
same key are merged in the same way, and where two values meet that are not both objects, all of
them are kept, in order, as one list. An equal value changes nothing. So ``[{"user": {"age":
"young"}}, {"device": "phone"}]`` has the paths ``context.user.age`` and ``context.device``.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from discreet.service._bodies import (
    Action,
    ActionId,
    EventId,
    RankAnswer,
    RankRequest,
    RewardRule,
    ServiceError,
)

_DEEPEST = 32  # objects inside objects that are merged
_ISO = re.compile(
    r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?\Z",
    re.ASCII,
)
_CLOCK = re.compile(r"(?:(\d{1,9})\.)?(\d{1,2}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)\Z", re.ASCII)
_LONGEST_WAIT = 86400.0 * 30  # seconds
_UNITS = (604800.0, 86400.0, 3600.0, 60.0, 1.0)  # of weeks, days, hours, minutes, seconds

Namespaces = list[dict[str, Any] | None]


class RankableAction(Struct, frozen=True):
    """One of the things to choose from, as Personalizer's clients send it."""

    id: ActionId
    features: Namespaces | None = None


class RankBody(Struct, frozen=True, rename="camel"):
    """A rank request, as Personalizer's clients send it. Fields that we do not know are ignored."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=1000)]
    context_features: Namespaces | None = None
    excluded_actions: Annotated[list[ActionId], Meta(max_length=1000)] | None = None
    event_id: EventId | None = None
    defer_activation: bool | None = None


class RewardBody(Struct, frozen=True):
    """A reward, as Personalizer's clients send it."""

    value: float


class ConfigurationBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A service configuration, as Personalizer's clients send it.

    The first three are applied. The others have no meaning here: they may be sent back as
    `configuration` gives them, null, or left out; anything else is refused.
    """

    reward_wait_time: str | None = None
    default_reward: float | None = None
    reward_aggregation: str | None = None
    exploration_percentage: float | None = None
    model_export_frequency: str | None = None
    log_retention_days: int | None = None
    learning_mode: str | None = None
    is_auto_optimization_enabled: bool | None = None
    log_mirror_enabled: bool | None = None
    last_configuration_edit_date: str | None = None  # read-only there: ignored


_CONSTANT = {
    "explorationPercentage": 0.0,  # no share is set aside: the policy explores as it sees fit
    "modelExportFrequency": "PT0S",  # a release is used as soon as it is made
    "logRetentionDays": 0,  # nothing is kept once it is in a release
    "learningMode": "Online",
    "isAutoOptimizationEnabled": False,
    "logMirrorEnabled": False,
}


class TargetedError(ServiceError):
    """A refusal that names the field at fault."""

    def __init__(self, message: str, target: str) -> None:
        """Say what is wrong with the field."""
        super().__init__(400, "BadRequest", message)
        self.target = target


def rank_request(body: RankBody) -> RankRequest:
    """What a Personalizer client asks, as our own clients would ask it.

    Args:
        body: the request, checked.

    Returns:
        The same request: equal bodies give equal requests, so that a repeated one is found.

    Raises:
        ServiceError: features are nested too deeply to be merged.
    """
    actions = [
        Action(one.id, merged(one.features or (), f"actions[{place}].features"))
        for place, one in enumerate(body.actions)
    ]
    return RankRequest(
        actions=actions,
        context=merged(body.context_features or (), "contextFeatures"),
        exclude=body.excluded_actions,
        event_id=body.event_id,
        defer=bool(body.defer_activation),
    )


def merged(namespaces: Sequence[Mapping[str, Any] | None], where: str) -> dict[str, Any]:
    """One object of several; see above.

    Args:
        namespaces: the objects; null is as if it were not there.
        where: they were found, for errors.

    Returns:
        A new object; what was given is left as it was.

    Raises:
        ServiceError: two objects under one key are nested too deeply.
    """
    into: dict[str, Any] = {}
    collected: set[int] = set()  # lists that were made here, and may grow
    for one in namespaces:
        _merge(into, one or {}, collected, where, _DEEPEST)
    return into


def _merge(
    into: dict[str, Any], one: Mapping[str, Any], collected: set[int], where: str, depth: int
) -> None:
    if not depth:
        raise TargetedError("Objects are nested too deeply to be merged.", where)
    for key, value in one.items():
        there = into.get(key)
        if isinstance(value, dict) and (there is None or isinstance(there, dict)):
            into[key] = {} if there is None else there
            _merge(into[key], value, collected, where, depth - 1)
        elif there is None:
            into[key] = value
        elif value is not None and not (type(there) is type(value) and there == value):
            if id(there) not in collected:
                into[key] = there = list(there) if isinstance(there, list) else [there]
                collected.add(id(there))
            there.extend(value if isinstance(value, list) else [value])


def rank_response(body: RankBody, answer: RankAnswer) -> dict[str, Any]:
    """Our answer as Personalizer gives it.

    Excluded actions stay where they were in the request, with probability 0. In the other places
    are first the action to show, then the rest, the most probable first.

    Args:
        body: what was asked.
        answer: what was decided.

    Returns:
        Personalizer's JSON.
    """
    probability = {one.id: one.probability for one in answer.ranking}
    others = [one.id for one in answer.ranking if one.id != answer.action_id]
    offered = iter([answer.action_id, *others])
    places = [one.id if one.id not in probability else next(offered) for one in body.actions]
    return {
        "ranking": [{"id": one, "probability": probability.get(one, 0.0)} for one in places],
        "eventId": answer.event_id,
        "rewardActionId": answer.action_id,
    }


def configuration(rule: RewardRule) -> dict[str, Any]:
    """How rewards are waited for, as Personalizer's service configuration.

    Args:
        rule: the bandit's.

    Returns:
        Personalizer's JSON. What has no meaning here is constant.
    """
    return {
        "rewardWaitTime": duration(rule.wait_seconds),
        "defaultReward": rule.default,
        "rewardAggregation": rule.aggregation,
        **_CONSTANT,
    }


def changes(body: ConfigurationBody) -> dict[str, Any]:
    """What a configuration changes, as arguments of `Core.configure`.

    Args:
        body: what was sent.

    Returns:
        Only what was said.

    Raises:
        ServiceError: it would change what cannot be changed, or is not a duration.
    """
    sent = {name: getattr(body, field) for field, name in _WIRE.items()}
    for name, constant in _CONSTANT.items():
        value = sent[name]
        if name == "modelExportFrequency" and value is not None:
            value = duration(seconds(value, name))
        if value is not None and value != constant:
            raise TargetedError(
                f"{name} cannot be changed here; send {constant!r} or leave it out.", name
            )
    given, aggregation = body.reward_wait_time, body.reward_aggregation
    wait = None if given is None else seconds(given, "rewardWaitTime")
    if wait is not None and wait > _LONGEST_WAIT:
        raise TargetedError("rewardWaitTime must be from PT0S to P30D.", "rewardWaitTime")
    if aggregation not in {None, "earliest", "sum"}:
        raise TargetedError("rewardAggregation must be earliest or sum.", "rewardAggregation")
    return {
        "wait_seconds": wait,
        "default": body.default_reward,
        "aggregation": aggregation,
    }


_WIRE = dict(
    zip(
        ConfigurationBody.__struct_fields__,
        ConfigurationBody.__struct_encode_fields__,
        strict=True,
    )
)


def duration(number: float) -> str:
    """Seconds as an ISO 8601 duration, such as PT10M.

    Args:
        number: the seconds, from 0.

    Returns:
        Hours, minutes and seconds, without those that are 0.
    """
    minutes, left = divmod(round(number, 6), 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{left:.6f}".rstrip("0").rstrip(".")
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else ""]
    shown = "".join([*parts, f"{text}S" if text != "0" else ""])
    return f"PT{shown or '0S'}"


def seconds(text: str, name: str) -> float:
    """The seconds of a duration in ISO 8601 (PT10M), or as .NET writes it (00:10:00).

    Args:
        text: the duration.
        name: of the field, for errors.

    Returns:
        The seconds. Years and months are no fixed time, and are refused.

    Raises:
        ServiceError: it is none.
    """
    found = _ISO.match(text)
    if found and any(found.groups()) and not text.endswith("T"):
        return math.fsum(
            float(one or 0) * unit for one, unit in zip(found.groups(), _UNITS, strict=True)
        )
    found = _CLOCK.match(text)
    if found:
        return math.fsum(
            float(one or 0) * unit for one, unit in zip(found.groups(), _UNITS[1:], strict=True)
        )
    raise TargetedError(f"{name} is no duration; give one such as PT10M.", name)
