"""Mechanisms as plain data, and back: the only place where their pieces become JSON.

Every piece is a frozen dataclass, and its entry holds what its constructor takes, with a name that
says which class it is where there are several.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

from discreet.errors import ParameterError
from discreet.mechanism._confidence import Confidence, JointWidth, PaperConfidence
from discreet.mechanism._grid import Grid
from discreet.mechanism._mechanism import Mechanism, NodeNoise
from discreet.mechanism.noise._discrete_gaussian import DiscreteGaussianNoise
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.noise._wishart import WishartNoise
from discreet.mechanism.schedules import Schedule
from discreet.mechanism.strategies import (
    Buffered,
    Optimised,
    SquareRoot,
    Strategy,
    Tree,
    Windows,
)
from discreet.privacy import Guarantee
from discreet.problem import Problem, Setting
from discreet.theory import NoiseBounds

_Entry = dict[str, Any]
_Piece = TypeVar("_Piece")


def to_json(mechanism: Mechanism) -> _Entry:
    """Everything about the noise but its draws."""
    setting = mechanism.setting
    return {
        "variant": mechanism.variant,
        "setting": {**asdict(setting), "problem": _problem(setting.problem)},
        "schedule": schedule_to_json(mechanism.schedule),
        "strategy": strategy_to_json(mechanism.strategy),
        "noise": noise_to_json(mechanism.noise),
        "confidence": _named("kind", mechanism.confidence),
        "guarantee": asdict(mechanism.guarantee),
        "policy": mechanism.policy,
    }


def from_json(entry: _Entry) -> Mechanism:
    """The mechanism of an entry, with every number checked as at its first construction.

    KeyError, TypeError or ValueError if it is no entry of `to_json`.
    """
    setting, guarantee = dict(entry["setting"]), dict(entry["guarantee"])
    if any(isinstance(part, dict | list) for part in guarantee.values()):
        raise ValueError("no such guarantee")
    setting["problem"] = Problem(**setting["problem"])
    return Mechanism(
        variant=str(entry["variant"]),
        setting=Setting(**setting),
        schedule=Schedule(**entry["schedule"]),
        strategy=strategy_from_json(entry["strategy"]),
        noise=noise_from_json(entry["noise"]),
        confidence=_CONFIDENCES[entry["confidence"]["kind"]](entry["confidence"]),
        guarantee=Guarantee(**guarantee),
        policy=str(entry.get("policy", "ucb")),  # the only one when it was not stored
    )


def schedule_to_json(schedule: Schedule) -> _Entry:
    """The numbers of a schedule that are set, as its constructor takes them."""
    return _set(asdict(schedule))


def strategy_to_json(strategy: Strategy | None) -> _Entry | None:
    """The kind of a strategy and what its constructor takes; None for none."""
    entry = _named("kind", strategy)
    if entry is not None and entry.get("memory", 0) is None:  # older files have none
        del entry["memory"]
    return entry


def strategy_from_json(entry: _Entry | None) -> Strategy | None:
    """The strategy of an entry; KeyError, TypeError or ValueError if there is none such."""
    return _made("kind", entry, _STRATEGIES)


def noise_to_json(noise: NodeNoise | None) -> _Entry | None:
    """The family of a noise law and what its constructor takes; None for no noise."""
    return _named("family", noise)


def noise_from_json(entry: _Entry | None) -> NodeNoise | None:
    """The noise law of an entry; KeyError, TypeError or ValueError if there is none such."""
    return _made("family", entry, _NOISES)


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


def _discrete_gaussian(*, grid: dict[str, int], **steps: int) -> DiscreteGaussianNoise:
    return DiscreteGaussianNoise(grid=Grid(**grid), **steps)


def _windows(*, schedule: dict[str, float], **numbers: float) -> Windows:
    return Windows(schedule=Schedule(**schedule), **numbers)  # type: ignore[arg-type]  # the memory is a whole number


def _paper_confidence(entry: _Entry) -> PaperConfidence:
    return PaperConfidence(shift=entry["shift"], bounds=NoiseBounds(**entry["bounds"]))


def _joint_width(entry: _Entry) -> JointWidth:
    return JointWidth(prior=entry["prior"])


_STRATEGIES: dict[str, Callable[..., Strategy]] = {
    Windows.kind: _windows,
    **{made.kind: made for made in (Tree, Buffered, SquareRoot, Optimised)},
}
_NOISES: dict[str, Callable[..., NodeNoise]] = {
    GaussianNoise.family: GaussianNoise,
    WishartNoise.family: WishartNoise,
    DiscreteGaussianNoise.family: _discrete_gaussian,
}
_CONFIDENCES: dict[str, Callable[[_Entry], Confidence]] = {
    PaperConfidence.kind: _paper_confidence,
    JointWidth.kind: _joint_width,
}


def _fields(piece: Any) -> _Entry:  # noqa: ANN401  # any dataclass
    """What the constructor takes; nothing is known of a class of the caller's own."""
    if not is_dataclass(piece) or isinstance(piece, type):
        return {}
    found: _Entry = {}
    for name, value in asdict(piece).items():
        if isinstance(value, tuple):
            found[name] = list(value)
        elif isinstance(value, dict):
            found[name] = _set(value)
        else:
            found[name] = value
    return found


def _problem(problem: Problem) -> _Entry:
    """Its bounds, with the digest of its feature map only if it has one: older files have none."""
    entry = _fields(problem)
    if problem.features is None:
        del entry["features"]
    if not problem.reward_centre:
        del entry["reward_centre"]
    return entry


def _set(numbers: _Entry) -> _Entry:
    """The numbers that are set: JSON has no infinity."""
    return {name: value for name, value in numbers.items() if value != math.inf}


def _named(name: str, piece: object) -> _Entry | None:
    """A piece with the attribute that names its class; None if there is no piece."""
    return None if piece is None else {name: getattr(piece, name), **_fields(piece)}


def _made(
    name: str, entry: _Entry | None, makers: dict[str, Callable[..., _Piece]]
) -> _Piece | None:
    """The piece of an entry of `_named`."""
    if entry is None:
        return None
    parameters = dict(entry)
    return makers[parameters.pop(name)](**parameters)
