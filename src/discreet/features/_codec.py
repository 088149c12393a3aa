"""Specifications as plain JSON, and back. Whatever is wrong with one is a `ParameterError`."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from discreet import _canonical
from discreet.errors import ParameterError
from discreet.features._combined import Cross, RandomFourier
from discreet.features._parts import Category, Hashed, Intercept, Numeric, Projected
from discreet.features._rows import ACTION, Part

FORMAT = "discreet-features"
VERSION = 1

_KINDS: dict[str, type[Part]] = {
    one.kind: one for one in (Intercept, Numeric, Category, Hashed, Cross, RandomFourier, Projected)
}
_SHORT = "action_id"  # {"kind": "action_id", "ids": [...]} is short for a category
_DEEPEST = 8  # parts inside parts that are looked at before they are made
_MOST = 65536


def entry_of(parts: list[dict[str, Any]], actions: Sequence[str] | None) -> dict[str, Any]:
    """The JSON of a map with these parts."""
    listed = None if actions is None else list(actions)
    return {"format": FORMAT, "version": VERSION, "parts": parts, "actions": listed}


def map_fields(specification: object) -> tuple[list[Part], list[object] | None]:
    """The parts and the actions of a specification; ParameterError if it is none."""
    entry = specification
    if isinstance(entry, str | bytes):
        try:
            data = entry.encode("utf-8") if isinstance(entry, str) else entry
            entry = _canonical.parse(data)
        except ValueError as error:
            raise ParameterError("specification", f"is no JSON: {error}") from None
    found = _object("specification", entry, {"format", "version", "parts"}, {"actions"})
    if found["format"] != FORMAT:
        raise ParameterError("format", f"is another one; give {FORMAT!r}")
    if type(found["version"]) is not int or found["version"] != VERSION:
        raise ParameterError("version", f"is not one that this release reads; give {VERSION}")
    parts, actions = found["parts"], found.get("actions")
    if not isinstance(parts, list | tuple) or len(parts) > _MOST:
        raise ParameterError("parts", f"must be a list of at most {_MOST} parts")
    if actions is not None and not isinstance(actions, list | tuple):
        raise ParameterError("actions", "must be a list of ids")
    made = []
    for number, one in enumerate(parts):
        try:
            made.append(_part(one))
        except ParameterError as error:
            raise ParameterError(f"parts[{number}].{error.parameter}", error.advice) from None
    return made, None if actions is None else list(actions)


def _part(entry: object, depth: int = _DEEPEST) -> Part:
    if not isinstance(entry, Mapping):
        raise ParameterError("part", "must be an object with a `kind`")
    kind = entry.get("kind")
    if kind == _SHORT:
        short = _object("part", entry, {"kind", "ids"}, {"weight"})
        entry = {**short, "kind": Category.kind, "path": f"{ACTION}.id", "values": short["ids"]}
        del entry["ids"]
        kind = Category.kind
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ParameterError("kind", f"must be one of {', '.join([*_KINDS, _SHORT])}")
    if not depth:
        raise ParameterError(kind, "has too many parts inside parts")
    made = _KINDS[kind]
    needed = {"kind", *(one.name for one in fields(made) if one.default is MISSING)}
    found = _object(kind, entry, needed, {one.name for one in fields(made)})
    del found["kind"]
    for name in {"a", "b"} & set(found):
        found[name] = _part(found[name], depth - 1)
    if "of" in found:
        listed = found["of"] if isinstance(found["of"], list | tuple) else [found["of"]]
        found["of"] = tuple(_part(one, depth - 1) for one in listed[:_MOST])
    return made(**found)


def _object(name: str, entry: object, needed: set[str], more: set[str]) -> dict[str, Any]:
    """A JSON object with entries of these names and no others."""
    if not isinstance(entry, Mapping) or not all(isinstance(key, str) for key in entry):
        raise ParameterError(name, "must be a JSON object")
    missing = sorted(needed - set(entry))
    if missing:
        raise ParameterError(name, f"has no {missing[0]!r}; it needs {', '.join(sorted(needed))}")
    if not set(entry) <= needed | more:
        raise ParameterError(
            name, f"has an entry of another name than {', '.join(sorted(needed | more))}"
        )
    return dict(entry)
