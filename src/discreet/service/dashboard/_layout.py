"""Which coordinates of a feature map count rows: from the public specification alone."""

import math
from dataclasses import dataclass

from discreet.features import FeatureMap

_ACTION_ID = "action.id"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which coordinates of a map count rows, and which count an action's rows.

    Attributes:
        everybody: coordinates of which each row has exactly one; empty if there are none.
        everybody_scale: what such a coordinate is in a row that has it.
        names: of actions, or of values of a category; empty if they cannot be told apart.
        places: the coordinate of each name.
        places_scale: what such a coordinate is in a row that has it.
        means: whether the mean reward of each name can be told.
        of: what the names are, such as ``action.id``.
        note: why something cannot be told; empty if all can.
    """

    everybody: tuple[int, ...]
    everybody_scale: float
    names: tuple[str, ...]
    places: tuple[int, ...]
    places_scale: float
    means: bool
    of: str
    note: str


def layout(features: FeatureMap) -> Layout:
    """Which coordinates of a map tell mean rewards and shares: from the specification alone."""
    parts = features.to_json()["parts"]
    total = math.sqrt(math.fsum(part["weight"] ** 2 for part in parts))
    scales = [part["weight"] / total for part in parts]
    sizes = [part.size for part in features.parts]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    constant = next((at for at, part in enumerate(parts) if part["kind"] == "intercept"), None)
    if features.actions is not None:
        return _disjoint(features.actions, sum(sizes), starts, scales, constant)
    named = _category(parts)
    everybody: tuple[int, ...] = () if constant is None else (starts[constant],)
    scale = 1.0 if constant is None else scales[constant]
    if named is None:
        note = (
            "In this feature map no action has a coordinate of its own: they are hashed, or "
            "described by numbers. So the share of each action cannot be told from releases. The "
            "Features page has what is known of each coordinate."
        )
        return _nothing(everybody, scale, note)
    values = tuple(parts[named]["values"]) + (("other",) if parts[named]["other"] else ())
    places = tuple(range(starts[named], starts[named] + len(values)))
    path, note = parts[named]["path"], ""
    if constant is None and path == _ACTION_ID:
        everybody, scale = places, scales[named]
        note = "Without an intercept, shares and the mean reward are of rows with a listed id."
    elif constant is None:
        note = "Without an intercept, shares are of rows with a listed value."
    return Layout(
        everybody=everybody,
        everybody_scale=scale,
        names=values,
        places=places,
        places_scale=scales[named],
        means=path == _ACTION_ID,
        of=path,
        note=note,
    )


def _disjoint(
    actions: tuple[str, ...],
    width: int,
    starts: list[int],
    scales: list[float],
    constant: int | None,
) -> Layout:
    if constant is None:
        note = (
            "The models of this feature map have no intercept, so neither the mean reward nor the "
            "share of each action can be told from releases."
        )
        return _nothing((), 1.0, note)
    places = tuple(number * width + starts[constant] for number in range(len(actions)))
    return Layout(
        everybody=places,
        everybody_scale=scales[constant],
        names=actions,
        places=places,
        places_scale=scales[constant],
        means=True,
        of=_ACTION_ID,
        note="",
    )


def _category(parts: list[dict[str, object]]) -> int | None:
    """The part with a coordinate for each action, or else for each value of something of it."""
    found = [
        number
        for number, part in enumerate(parts)
        if part["kind"] == "category" and str(part["path"]).startswith("action.")
    ]
    by_id = [number for number in found if parts[number]["path"] == _ACTION_ID]
    return next(iter(by_id or found), None)


def _nothing(everybody: tuple[int, ...], scale: float, note: str) -> Layout:
    if not everybody:
        note += " It has no intercept either, so the mean reward cannot be told."
    return Layout(
        everybody=everybody,
        everybody_scale=scale,
        names=(),
        places=(),
        places_scale=1.0,
        means=False,
        of="",
        note=note,
    )
