"""Reads the items that `_changes` and `_storage` wrote; refuses damaged ones. Secret."""

import operator
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _canonical as canonical
from discreet.curator._arrays import DTYPES, F8, decode
from discreet.curator._changes import (
    DECISION,
    FORMAT,
    HEAD,
    KINDS,
    LEARNER,
    MALFORMED,
    PERSON,
    ROW,
    ROW_START,
    SESSION,
    SUMS,
    VERSION,
    Head,
    Records,
    Row,
)
from discreet.curator._subjects import DIGEST, ERASED, Count
from discreet.curator.store import Item, damaged
from discreet.errors import FileVersionError

_F64 = NDArray[np.float64]


class Stored(NamedTuple):
    """All that a store held, checked for damage but not yet for sense.

    Attributes:
        document: what is stored besides the data.
        head: the counts.
        sums: the counters and the arrays of the sums.
        rows: the contents of the rows since then, in order.
        waiting: the actions that wait, and whom they are for, by decision, in order.
        sessions: the first decision and the name of each session, in order.
        open_rows: the contents of people's rows in the open batch, in order.
        people: the contents of their counts, in order.
    """

    document: dict[str, Any]
    head: Head
    sums: dict[str, Any]
    rows: list[tuple[int, bytes]]
    waiting: dict[int, bytes]
    sessions: list[tuple[int, str]]
    open_rows: list[tuple[int, bytes]]
    people: list[tuple[int, bytes]]


def read(items: Iterable[Item]) -> Stored:
    """What the items say; CorruptFileError or FileVersionError if they are not a learner's."""
    try:
        return _read(sorted(items, key=lambda item: item[:2]))
    except FileVersionError:
        raise
    except MALFORMED:
        raise damaged() from None


def _read(items: list[Item]) -> Stored:
    by_kind: dict[int, list[Item]] = {kind: [] for kind in KINDS}
    for item in items:
        by_kind[item[0]].append(item)
    ((first,), (second,), (third,)) = (by_kind[kind] for kind in (LEARNER, HEAD, SUMS))
    document = _document(first)
    codec = Records(document["learner"])
    head = Head(**_json(codec.unseal(second)[0]))
    body, seal = codec.unseal(third)
    split = bisect_right(by_kind[ROW], head.summed, key=operator.itemgetter(1))
    open_rows, kept = _unsealed(codec, by_kind[ROW][:split])
    rows, since = _unsealed(codec, by_kind[ROW][split:])
    people, counts = _unsealed(codec, by_kind[PERSON])
    waiting, decisions = _unsealed(codec, by_kind[DECISION])
    sessions, names = _unsealed(codec, by_kind[SESSION])
    found = replace(
        head,
        waiting=len(waiting),
        decisions=decisions,
        since=since,
        sessions=names,
        sums=seal,
        held=len(open_rows),
        kept=kept,
        people=len(people),
        counts=counts,
    )
    wanted = range(head.summed + 1, head.rows + 1)  # a list could be of any length
    if found != head or len(rows) != len(wanted):
        raise ValueError("the head counts something else")
    if any(number != one for (number, _), one in zip(rows, wanted, strict=True)):
        raise ValueError("the head counts something else")
    sums = _json(body)
    sums["arrays"] = {name: decode(part) for name, part in sums["arrays"].items()}
    named = [(number, name.decode("ascii")) for number, name in sessions]
    return Stored(document, head, sums, rows, dict(waiting), named, open_rows, people)


def _unsealed(codec: Records, items: list[Item]) -> tuple[list[tuple[int, bytes]], int]:
    """Numbers and contents, and all seals combined."""
    combined, found = 0, []
    for item in items:
        contents, seal = codec.unseal(item)
        combined ^= seal
        found.append((item[1], contents))
    return found, combined


def _document(item: Item) -> dict[str, Any]:
    document = _json(Records("").unseal(item)[0])
    if document.pop("format") != FORMAT:
        raise ValueError("not a learner")
    version = document.pop("version")
    if type(version) is not int or version < 1:
        raise ValueError("no version")
    if version > VERSION:
        raise FileVersionError(
            "path",
            f"has format version {version} and this release reads up to {VERSION}; update discreet "
            "to open it",
        )
    return document


def action_of(contents: bytes, dim: int) -> _F64:
    """The action of a stored decision; ValueError if it is none."""
    if len(contents) != 8 * dim:
        raise ValueError("an action of another length")
    return np.frombuffer(contents, dtype=F8).astype(np.float64)


def decision_of(contents: bytes, dim: int) -> tuple[_F64, bytes | None]:
    """The action of a stored decision and whom it is for; ValueError if it is none."""
    if not contents:
        return np.zeros(dim), ERASED
    owner = contents[8 * dim :]
    if len(owner) not in {0, DIGEST}:
        raise ValueError("an action of another length")
    return action_of(contents[: 8 * dim], dim), owner or None


def row_of(number: int, contents: bytes, dim: int, like: NDArray[Any]) -> Row:
    """A stored row, with noise of the width and type of ``like``; ValueError if it is none."""
    decision, reward = ROW_START.unpack_from(contents)
    start, count = ROW_START.size, None
    if decision < 0:
        decision, start = ~decision, start + DIGEST
        count = Count(contents[ROW_START.size : start], 0)  # the counts are stored elsewhere
    at = start + 8 * dim
    action = action_of(contents[start:at], dim)
    noise = np.frombuffer(contents[at:], dtype=DTYPES[like.dtype.name]).astype(like.dtype)
    return Row(decision, action, number, reward, noise.reshape(-1, like.shape[1]), count)


def _json(contents: bytes) -> dict[str, Any]:
    found = canonical.parse(contents)
    if not isinstance(found, dict):
        raise TypeError("not an object")
    return found
