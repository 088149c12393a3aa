"""Decision sets of nobody: what a map makes of contexts and actions that are made up.

They follow from the map's public specification alone. Values are drawn evenly from what a part
takes: a number between its bounds, one of its categories, some text where any text will do.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.features._map import FeatureMap
from discreet.features._parts import Category
from discreet.features._rows import ACTION, CONTEXT, Part

F64 = NDArray[np.float64]

_ID = f"{ACTION}.id"


def made_up_sets(features: FeatureMap, *, count: int, n_actions: int, seed: int = 0) -> list[F64]:
    """Decision sets of made-up contexts and actions.

    Args:
        features: the map.
        count: how many sets.
        n_actions: actions in each, if the map does not list their ids.
        seed: of the generator.

    Returns:
        The sets, shape (K, d) each.
    """
    rng = np.random.default_rng(seed)
    leaves = [leaf for part in features.parts for leaf in _leaves(part)]
    ids = _ids(features, leaves) or [f"action {number}" for number in range(n_actions)]
    return [
        features(
            _record(leaves, CONTEXT, rng),
            [{**_record(leaves, ACTION, rng), "id": one} for one in ids],
        )
        for _ in range(count)
    ]


def _ids(features: FeatureMap, leaves: list[Part]) -> Sequence[str]:
    """The ids of all actions, if the map lists them."""
    listed = [one.values for one in leaves if isinstance(one, Category) and one.path == _ID]
    return features.actions or (listed[0] if listed else ())


def _leaves(part: Part) -> Iterator[Part]:
    """The parts in it that are made of no others."""
    if not part.inputs:
        yield part
    for one in part.inputs:
        yield from _leaves(one)


def _record(leaves: list[Part], side: str, rng: np.random.Generator) -> dict[str, Any]:
    """A context or an action with a value at every path that is read."""
    record: dict[str, Any] = {}
    for leaf in leaves:
        for path, value in leaf.example(rng).items():
            first, *fields = path.split(".")
            if first != side:
                continue
            inner = record
            for name in fields[:-1]:
                inner = inner.setdefault(name, {})
            if fields:
                inner[fields[-1]] = value
            else:
                inner["made_up"] = value
    return record
