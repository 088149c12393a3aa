"""A mechanism as plain data, for save files."""

from dataclasses import asdict
from typing import Any

from discreet import checks
from discreet.mechanism import Mechanism, NoiseBounds, Setting
from discreet.noise import families
from discreet.privacy import Guarantee
from discreet.problem import Problem


def to_json(mechanism: Mechanism) -> dict[str, Any]:
    """Everything about the noise but its draws."""
    return {
        "variant": mechanism.variant,
        "setting": asdict(mechanism.setting),
        "noise": families.to_json(mechanism.noise),
        "idle_draws": mechanism.idle_draws,
        "shift": mechanism.shift,
        "bounds": asdict(mechanism.bounds),
        "guarantee": asdict(mechanism.guarantee),
    }


def from_json(entry: dict[str, Any]) -> Mechanism:
    """The mechanism again, with every number checked as at its first construction."""
    setting = dict(entry["setting"])
    setting["problem"] = Problem(**setting["problem"])
    return Mechanism(
        variant=str(entry["variant"]),
        setting=Setting(**setting),
        noise=families.from_json(entry["noise"]),
        idle_draws=bool(entry["idle_draws"]),
        shift=checks.finite("shift", entry["shift"]),
        bounds=NoiseBounds(**entry["bounds"]),
        guarantee=Guarantee(**entry["guarantee"]),
    )
