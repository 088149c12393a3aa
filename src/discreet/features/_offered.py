"""A list of actions that is offered to one person after the other."""

from collections.abc import Iterable
from typing import NamedTuple

from discreet.features._rows import ACTION, F64, I64, Look, Part, Picked
from discreet.features._sources import Source


class Offered(NamedTuple):
    """The parts of a decision set's rows that do not depend on the context, computed once.

    Read-only.

    Attributes:
        source: the actions.
        picks: one context, and each action.
        seen: what parts make of the actions.
        first: the first coordinate that each row may use, shape (K,).
        rows: with zeros where parts read the context, shape (K, d).
    """

    source: Source
    picks: dict[str, I64]
    seen: dict[Part, Picked]
    first: I64
    rows: F64


def of_actions(parts: Iterable[Part], look: Look) -> dict[Part, Picked]:
    """What parts, and those inside them, make of the actions alone."""
    found: dict[Part, Picked] = {}
    for part in parts:
        if part.reads == {ACTION}:
            part.made(look)
            found[part] = look.seen[part]
        found |= of_actions(part.inputs, look)
    return found
