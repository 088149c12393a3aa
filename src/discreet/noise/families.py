"""The families of node noise by name, for save files."""

from typing import Any

from discreet.mechanism import NodeNoise
from discreet.noise.gaussian import GaussianNoise
from discreet.noise.wishart import WishartNoise

FAMILIES: dict[str, type[GaussianNoise] | type[WishartNoise]] = {
    cls.family: cls for cls in (GaussianNoise, WishartNoise)
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
