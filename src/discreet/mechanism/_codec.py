"""A mechanism and its noise as plain data, for save files."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.mechanism import strategies
from discreet.mechanism._mechanism import JointWidth, Mechanism, NodeNoise, Radius
from discreet.mechanism.noise._discrete import ExactNoise
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.noise._wishart import WishartNoise
from discreet.mechanism.schedules import Schedule
from discreet.privacy import Guarantee
from discreet.problem import Problem, Setting
from discreet.theory import NoiseBounds

FAMILIES: dict[str, Callable[..., NodeNoise]] = {
    GaussianNoise.family: GaussianNoise,
    WishartNoise.family: WishartNoise,
    ExactNoise.family: ExactNoise.again,
}

_KINDS: dict[type, str] = {Radius: "radius", JointWidth: "joint-width"}


def to_json(mechanism: Mechanism) -> dict[str, Any]:
    """Everything about the noise but its draws."""
    strategy = mechanism.strategy
    return {
        "variant": mechanism.variant,
        "setting": asdict(mechanism.setting),
        "schedule": mechanism.schedule.to_json(),
        "strategy": None if strategy is None else strategy.to_json(),
        "noise": noise_to_json(mechanism.noise),
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
        noise=noise_from_json(entry["noise"]),
        confidence=_confidence_again(entry["confidence"]),
        guarantee=Guarantee(**guarantee),
    )


def noise_to_json(noise: NodeNoise | None) -> dict[str, Any] | None:
    """A noise law as plain data."""
    return None if noise is None else {"family": noise.family, **noise.parameters()}


def noise_from_json(entry: dict[str, Any] | None) -> NodeNoise | None:
    """The same law again; KeyError, TypeError or ValueError if there is none such."""
    if entry is None:
        return None
    parameters = dict(entry)
    return FAMILIES[parameters.pop("family")](**parameters)


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
