"""A mechanism as plain data, for save files."""

from dataclasses import asdict
from typing import Any

from discreet import checks, strategies
from discreet.errors import ParameterError
from discreet.mechanism import JointWidth, Mechanism, NoiseBounds, Radius, Setting
from discreet.noise import families
from discreet.privacy import Guarantee
from discreet.problem import Problem
from discreet.schedules import Schedule

_KINDS: dict[type, str] = {Radius: "radius", JointWidth: "joint-width"}


def to_json(mechanism: Mechanism) -> dict[str, Any]:
    """Everything about the noise but its draws."""
    strategy = mechanism.strategy
    return {
        "variant": mechanism.variant,
        "setting": asdict(mechanism.setting),
        "schedule": mechanism.schedule.to_json(),
        "strategy": None if strategy is None else strategy.to_json(),
        "noise": families.to_json(mechanism.noise),
        "confidence": _confidence(mechanism.confidence),
        "guarantee": asdict(mechanism.guarantee),
    }


def from_json(entry: dict[str, Any]) -> Mechanism:
    """The mechanism again, with every number checked as at its first construction."""
    setting, guarantee = dict(entry["setting"]), dict(entry["guarantee"])
    if any(isinstance(part, dict | list) for part in guarantee.values()):
        raise ValueError("no such guarantee")
    setting["problem"] = Problem(**setting["problem"])
    return Mechanism(
        variant=str(entry["variant"]),
        setting=Setting(**setting),
        schedule=Schedule(**entry["schedule"]),
        strategy=strategies.from_json(entry["strategy"]),
        noise=families.from_json(entry["noise"]),
        confidence=_confidence_again(entry["confidence"]),
        guarantee=Guarantee(**guarantee),
    )


def require_storable(mechanism: Mechanism) -> None:
    """Refuse to store what could not be restored, such as a strategy of the caller's own."""
    try:
        same = from_json(to_json(mechanism)) == mechanism
    except (LookupError, TypeError, ValueError):
        same = False
    if not same:
        raise ParameterError(
            "variant",
            "has a strategy or noise of your own, which a file cannot hold; keep the learner in "
            "memory",
        )


def _confidence(confidence: Radius | JointWidth) -> dict[str, Any]:
    return {"kind": _KINDS[type(confidence)], **asdict(confidence)}


def _confidence_again(entry: dict[str, Any]) -> Radius | JointWidth:
    if entry["kind"] == _KINDS[JointWidth]:
        return JointWidth(prior=entry["prior"])
    if entry["kind"] != _KINDS[Radius]:
        raise ValueError("no such confidence set")
    return Radius(
        shift=checks.finite("shift", entry["shift"]), bounds=NoiseBounds(**entry["bounds"])
    )
