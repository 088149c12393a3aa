"""The map: parts, their weights, and the rows they make together.

Formal guarantee: a map is fixed before there is data, and what it makes of one context and one
action depends on these two and on the map alone. So it is part of how a person's own row is made,
and leaves the neighbours, the sensitivity and the guarantee of a learner as they are. Every row has
Euclidean norm at most 1.0, for every input, whatever the order in which its squares are added up:
part i has norm at most 1 + 1e-12 and is multiplied by (1 - 2^-36) w_i / sqrt(sum w^2), and the
squares of 65,536 numbers at most add up with a relative error below 2^-37.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _canonical
from discreet.errors import ParameterError, ShapeError
from discreet.features import _sources as sources
from discreet.features import _values as read
from discreet.features._codec import entry_of, map_fields
from discreet.features._offered import Offered, of_actions
from discreet.features._parts import MOST_ENTRIES, texts
from discreet.features._remembered import Remembered, content_of_list
from discreet.features._rows import (
    ACTION,
    CONTEXT,
    F64,
    I64,
    Look,
    Part,
    checked_list,
)
from discreet.features._sources import Actions, Contexts
from discreet.features._values import CLIPPED, MISSING, UNKNOWN
from discreet.kernels import _features as kernels
from discreet.problem import Problem

_MARGIN = 1.0 - 2.0**-36
_PIECE = 2**15  # rows that are made at a time, to bound the memory for products
_FEW_NUMBERS = 2**14  # in the rows of a list of actions that is remembered
_WHAT_HAPPENED = {"missing": MISSING, "unknown": UNKNOWN, "clipped": CLIPPED}


@dataclass(frozen=True, eq=False)
class Explanation:
    """Rows, and what happened to the values they were made of.

    The counts are of raw data. They help to find mistakes in a specification, and are no release:
    nothing protects the people they are about.

    Attributes:
        rows: what the map makes, as `FeatureMap` gives it.
        counts: for each part, in how many rows a value was ``missing`` (nothing there, or NaN, or
            infinite), ``unknown`` (nothing the part can read, or a value without a coordinate) or
            ``clipped`` (outside the bounds). Parts with none of these are left out.
    """

    rows: F64
    counts: dict[str, dict[str, int]]

    def __repr__(self) -> str:
        return f"Explanation(rows of shape {self.rows.shape}, counts={self.counts})"

    def __str__(self) -> str:
        total = math.prod(self.rows.shape[:-1])
        lines = [
            f"{label}: {', '.join(f'{number} {what}' for what, number in found.items() if number)}"
            for label, found in self.counts.items()
        ]
        return "\n".join([f"{total} rows; " + ("of them" if lines else "nothing dropped"), *lines])


@dataclass(frozen=True, repr=False)
class FeatureMap:
    """A public specification that turns a context and actions into rows of norm at most 1.

    It is never fitted to data. Call it with a context (a dictionary) and a list of actions for a
    decision set of shape (K, d). Values are found by paths with dots, in the context or in an
    action. What is missing, and NaN and infinity, makes zeros in its part.

    Attributes:
        parts: what the coordinates are made of, as a list or a tuple; a tuple once it is made.
        actions: None, or the ids of actions that have coordinates of their own (see `disjoint`).
    """

    parts: Sequence[Part]
    actions: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check that there are parts, and not too many coordinates."""
        fix = object.__setattr__
        fix(self, "parts", checked_list("parts", self.parts, MOST_ENTRIES))
        if not all(isinstance(part, Part) for part in self.parts):
            raise ParameterError("parts", "must be parts, such as numeric('context.age', 0, 100)")
        if self.actions is not None:
            fix(self, "actions", texts("actions", self.actions))
        if self.dim > MOST_ENTRIES:
            raise ParameterError(
                "parts",
                f"have {self.dim} coordinates; give at most {MOST_ENTRIES} (hashed parts and "
                "crosses can do with fewer buckets)",
            )

    @property
    def dim(self) -> int:
        """How many coordinates, d."""
        return self._width * (1 if self.actions is None else len(self.actions))

    @property
    def blocks(self) -> tuple[int, ...]:
        """Sizes of blocks of coordinates of which an action has only one, for `Problem`."""
        return (self._width,) * (1 if self.actions is None else len(self.actions))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate; no two are the same."""
        found = [name for part in self.parts for name in part.names()]
        if self.actions is not None:
            found = [f"{action}/{name}" for action in self.actions for name in found]
        return _different(found)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the specification, in hexadecimal."""
        return _canonical.digest(self.to_json())

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about this map, a sentence each."""
        found = []
        for part, label in zip(self.parts, self._labels, strict=True):
            if self.actions is None and part.reads == {CONTEXT}:
                found.append(
                    f"{label} is the same for every action, so it cannot change a ranking; "
                    "cross it with the action, or use disjoint."
                )
        reads = frozenset[str]().union(*(part.reads for part in self.parts))
        if CONTEXT not in reads:
            found.append("No part reads the context: everybody has the same ranking.")
        if ACTION not in reads and self.actions is None:
            found.append("No part reads the action: all actions have the same row.")
        return tuple(found)

    def __call__(self, context: Mapping[str, Any] | None, actions: Actions) -> F64:
        """The decision set of one person, shape (K, d).

        Args:
            context: what is known about the person or the moment; None if nothing is.
            actions: a list of ids, of dictionaries with ``id`` and ``features``, or of dictionaries
                of features (with an ``id`` among them); or a frame, or arrays by column name.

        Returns:
            An action a row, each of norm at most 1.

        Raises:
            ParameterError: The context or the actions are nothing of this kind, or an action of a
                disjoint map has an id that the map does not know.
            EmptyDecisionSetError: There is no action.
        """
        person = sources.Records([sources.context_of(context)])
        content = content_of_list(actions, _FEW_NUMBERS // self.dim)
        offered = self._remembered.made(content, actions, self._offered)
        look = Look({CONTEXT: person, ACTION: offered.source}, offered.picks, dict(offered.seen))
        out = offered.rows.copy()
        self._write(look, offered.first, out, of_context=True)
        return out

    def candidates(self, columns: Contexts, actions: Actions) -> NDArray[np.float64]:
        """The decision sets of many people with the same actions, shape (n, K, d).

        Args:
            columns: the contexts: arrays of length n by field, a frame, or a list of dictionaries.
            actions: the actions, as in a call of the map.

        Returns:
            A decision set for each context.

        Raises:
            ParameterError: One of them is nothing of this kind.
            ShapeError: Columns have different lengths.
            EmptyDecisionSetError: There is no action.
        """
        contexts, offered = sources.contexts_of(columns, "columns"), sources.actions_of(actions)
        n, k = contexts.count, offered.count
        pairs = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
        return self._made(_look(contexts, offered, *pairs)).reshape(n, k, self.dim)

    def columns(self, columns: Contexts, action: Actions, *, actions: Actions | None = None) -> F64:
        """The rows of logged choices, shape (n, d).

        Args:
            columns: the contexts: arrays of length n by field, a frame, or a list of dictionaries.
            action: n ids of the chosen actions (numbers are compared as text), or n actions.
            actions: what is known of the actions, as in a call of the map: needed if the map reads
                more of an action than its id, and ``action`` has ids only.

        Returns:
            A row of norm at most 1 for each choice.

        Raises:
            ParameterError: One of them is nothing of this kind, or an action of a disjoint map has
                an id that the map does not know.
            ShapeError: There are not as many actions as contexts.
        """
        return self._made(_logged(columns, action, actions))

    def explain(self, context: Mapping[str, Any] | None, actions: Actions) -> Explanation:
        """The decision set, with counts of what was missing, unknown or clipped.

        Args:
            context: as in a call of the map.
            actions: as in a call of the map.

        Returns:
            The rows, shape (K, d), and the counts, which are of raw data and no release.

        Raises:
            ParameterError, EmptyDecisionSetError: as in a call of the map.
        """
        return self._explained(self._decision(context, actions))

    def explain_columns(
        self,
        columns: Contexts,
        action: Actions,
        *,
        actions: Actions | None = None,
    ) -> Explanation:
        """The rows of logged choices, with counts of what was missing, unknown or clipped.

        Args:
            columns: as in `columns`.
            action: as in `columns`.
            actions: as in `columns`.

        Returns:
            The rows, shape (n, d), and the counts, which are of raw data and no release.

        Raises:
            ParameterError, ShapeError: as in `columns`.
        """
        return self._explained(_logged(columns, action, actions))

    def problem(self, **bounds: Any) -> Problem:  # noqa: ANN401  # whatever Problem takes
        """The problem that a learner of this map's rows solves.

        Args:
            bounds: ``reward_bound`` and ``theta_norm``, and what else `Problem` takes. The number
                of features, their norm, their blocks and the map's digest are filled in.

        Returns:
            The problem.

        Raises:
            ParameterError: A bound follows from the map, or is out of range.
        """
        known = {"dim": self.dim, "action_norm": 1.0, "blocks": self.blocks}
        for name in (*known, "features"):
            if name in bounds:
                raise ParameterError(name, "follows from the map; leave it out")
        return Problem(**known, features=self.digest, **bounds)  # type: ignore[arg-type]  # `known` has values of several types

    def to_json(self) -> dict[str, Any]:
        """The specification as plain JSON, complete: `from_json` makes an equal map of it."""
        return entry_of([part.to_json() for part in self.parts], self.actions)

    @classmethod
    def from_json(cls, specification: Mapping[str, Any] | str | bytes) -> "FeatureMap":
        """The map of a specification, checked as if it were written in Python.

        Args:
            specification: what `to_json` gives, or that as text; defaults can be left out.

        Returns:
            The map.

        Raises:
            ParameterError: It is no specification; the message says why.
        """
        return cls(*map_fields(specification))  # type: ignore[arg-type]  # checked where it is made

    def __repr__(self) -> str:
        kind = "" if self.actions is None else f" for each of {len(self.actions)} actions"
        parts = ", ".join(self._labels[:4]) + (", ..." if len(self.parts) > 4 else "")
        return f"FeatureMap({parts}{kind}; dim={self.dim}, digest={self.digest[:12]})"

    def _repr_html_(self) -> str:
        """A table of the parts, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(label)}</td><td>{part.kind}</td><td>{part.size}</td>"
            f"<td>{scale * scale:.3f}</td></tr>"
            for label, part, scale in zip(self._labels, self.parts, self._scales, strict=True)
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f"<p>{escape(repr(self))}</p><table><tr><th>part</th><th>kind</th><th>coordinates</th>"
            f"<th>share of the squared norm</th></tr>{rows}</table>{notes}"
        )

    @property
    def _width(self) -> int:
        """Coordinates of all parts together."""
        return sum(part.size for part in self.parts)

    @cached_property
    def _scales(self) -> tuple[float, ...]:
        """What each part is multiplied by."""
        total = math.sqrt(math.fsum(part.weight * part.weight for part in self.parts))
        return tuple(_MARGIN * (part.weight / total) for part in self.parts)

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        """A name for each part; no two are the same."""
        return _different([part.label for part in self.parts])

    def _decision(self, context: Mapping[str, Any] | None, actions: Actions) -> Look:
        person = sources.Records([sources.context_of(context)])
        offered = sources.actions_of(actions)
        return _look(person, offered, np.zeros(offered.count, np.int64), np.arange(offered.count))

    @cached_property
    def _remembered(self) -> Remembered[Offered]:
        return Remembered(most=128, largest=2**16)

    def _offered(self, actions: Actions) -> Offered:
        """All that does not depend on a context."""
        look = self._decision(None, actions)
        rows, first = np.zeros((look.count, self.dim)), self._first(look)
        self._write(look, first, rows, of_context=False)
        return Offered(look.sources[ACTION], look.picks, of_actions(self.parts, look), first, rows)

    def _made(self, look: Look) -> F64:
        """The rows that are asked for, shape (N, d)."""
        out = np.zeros((look.count, self.dim))
        first = self._first(look)
        for start in range(0, look.count, _PIECE):
            rows = slice(start, start + _PIECE)
            piece = look.piece(rows)
            for of_context in (False, True):
                self._write(piece, first[rows], out[rows], of_context=of_context)
        return out

    def _write(self, look: Look, first: I64, out: F64, *, of_context: bool) -> None:
        """Fill in the parts that read the context, or the others."""
        for part, scale, offset in zip(self.parts, self._scales, self._offsets, strict=True):
            if (CONTEXT in part.reads) is of_context:
                made = part.made(look)
                kernels.scatter(*made.rows[:3], made.pick, scale, first + offset, out)

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        """The first coordinate of each part."""
        return tuple(accumulate([part.size for part in self.parts], initial=0))[:-1]

    def _first(self, look: Look) -> I64:
        """The first coordinate that each row may use."""
        if self.actions is None:
            return np.zeros(look.count, np.int64)
        place = {action: number for number, action in enumerate(self.actions)}
        distinct, codes = read.factor(look.sources[ACTION].values("id"))
        found = np.array([place.get(read.text(one) or "", -1) for one in distinct], np.int64)
        if (found < 0).any():
            raise ParameterError(
                "actions",
                "has an id that is not among the map's actions; this map has no model of it",
            )
        return found[codes][look.picks[ACTION]] * self._width

    def _explained(self, look: Look) -> Explanation:
        rows, counts = self._made(look), {}
        for part, label in zip(self.parts, self._labels, strict=True):
            flags = part.made(look).flags
            found = {
                what: int(np.count_nonzero(flags & bit)) for what, bit in _WHAT_HAPPENED.items()
            }
            if any(found.values()):
                counts[label] = found
        return Explanation(rows, counts)


def _look(contexts: sources.Source, actions: sources.Source, who: I64, which: I64) -> Look:
    return Look({CONTEXT: contexts, ACTION: actions}, {CONTEXT: who, ACTION: which})


def _logged(columns: Contexts, action: Actions, actions: Actions | None) -> Look:
    chosen, codes = sources.chosen_of(action, actions)
    contexts = sources.contexts_of(columns, "columns", codes.size)
    if contexts.count != codes.size:
        raise ShapeError(
            "action",
            f"has length {codes.size}, and there are {contexts.count} contexts; give one "
            "action for each",
        )
    return _look(contexts, chosen, np.arange(codes.size), codes)


def _different(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with a number behind those that are taken."""
    found: dict[str, None] = {}
    for name in names:
        free, number = name, 1
        while free in found:
            number += 1
            free = f"{name} ({number})"
        found[free] = None
    return tuple(found)
