"""The families of node noise by name, for save files."""

from collections.abc import Callable
from typing import Any

from discreet.mechanism import NodeNoise
from discreet.noise.exact import ExactNoise
from discreet.noise.gaussian import GaussianNoise
from discreet.noise.wishart import WishartNoise

FAMILIES: dict[str, Callable[..., NodeNoise]] = {
    GaussianNoise.family: GaussianNoise,
    WishartNoise.family: WishartNoise,
    ExactNoise.family: ExactNoise.again,
}


def to_json(noise: NodeNoise | None) -> dict[str, Any] | None:
    """A noise law as plain data."""
    return None if noise is None else {"family": noise.family, **noise.parameters()}


def from_json(entry: dict[str, Any] | None) -> NodeNoise | None:
    """The same law again; KeyError, TypeError or ValueError if there is none such."""
    if entry is None:
        return None
    parameters = dict(entry)
    return FAMILIES[parameters.pop("family")](**parameters)
