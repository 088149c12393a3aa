"""What a store holds of a learner, as items: the codec between memory and bytes. Secret.

Every value is sealed: it starts with a digest of the learner's id, the item's kind and number, and
its contents, so that a flipped bit or an item in the wrong place is found out. The *head* counts
what there should be and combines the seals of the decisions and of the rows, so that an item too
few or too many is found out as well. There is no code in any of it and no pickle.

| kind | number | contents |
|---|---|---|
| `LEARNER` | 0 | JSON: mechanism, policy, settings |
| `HEAD` | 0 | JSON: a `Head` |
| `SUMS` | 0 | JSON: the sums with their noise, after the first rows |
| `ROW` | of the row | decision, reward, action and noise of a row that came after |
| `DECISION` | of the decision | the action of a decision that waits |
| `SESSION` | of its first decision | the name that starts its decisions' ids |
"""

import base64
import binascii
import hashlib
import json
import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _canonical as canonical
from discreet.curator.store import Item, Key
from discreet.curator.sums import PrefixSums
from discreet.errors import CorruptFileError, DiscreetError, FileVersionError

_F64 = NDArray[np.float64]

LEARNER, HEAD, SUMS, ROW, DECISION, SESSION = range(6)
FORMAT = "discreet-learner"
VERSION = 1
MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)
"""What code that expects a good file raises at a bad one."""

_SEAL = 16  # bytes
_KEY = struct.Struct("<qq")
_ROW = struct.Struct("<qd")  # decision and reward
_F8 = np.dtype("<f8")
_DTYPES = {"float64": _F8, "int64": np.dtype("<i8")}
_INTEGERS = "integers"  # of any size, in hexadecimal
_INTEGER = re.compile(r"0|-?[1-9a-f][0-9a-f]*")
_MOST_AXES = 8
_LONGEST_AXIS = 2**31


class Change:
    """What one call changes: it opens a decision, turns one into a row, or closes one."""

    __slots__ = (
        "action",
        "done",
        "error",
        "given_up",
        "lost",
        "noise",
        "number",
        "opens",
        "reward",
        "row",
    )

    def __init__(  # noqa: PLR0917  # one for each decision and each row, so it should be quick
        self,
        number: int,
        action: _F64 | None = None,
        row: int = 0,
        reward: float = 0.0,
        noise: NDArray[Any] | None = None,
        given_up: int | None = None,
        lost: int = 0,
    ) -> None:
        """Say which decision, and what becomes of it.

        Args:
            number: the decision's number.
            action: its action, if it is opened or becomes a row.
            row: the number of the row that it becomes; 0 if it becomes none.
            reward: the row's reward.
            noise: what was drawn for that row.
            given_up: for a new decision, the number of another that is given up for it.
            lost: and how many have been given up by then.
        """
        self.number = number
        self.action = action
        self.row = row
        self.reward = reward
        self.noise = noise
        self.given_up = given_up
        self.lost = lost
        self.opens = action is not None and not row  # whether the decision is a new one
        self.done = False  # on the disk, if anything is
        self.error: DiscreetError | None = None  # why it will not be


@dataclass(frozen=True, kw_only=True)
class Head:
    """What there should be besides the head itself.

    Attributes:
        rounds: decisions made.
        given_up: decisions that were given up because too many waited.
        rows: rewards taken in.
        summed: how many of the rows are in the stored sums; the others are stored one by one.
        waiting: decisions that wait.
        decisions: the seals of the waiting decisions, combined.
        since: the seals of the rows that are not in the stored sums, combined.
        sessions: the seals of the sessions, combined.
        sums: the seal of the stored sums.
    """

    rounds: int = 0
    given_up: int = 0
    rows: int = 0
    summed: int = 0
    waiting: int = 0
    decisions: int = 0
    since: int = 0
    sessions: int = 0
    sums: int = 0


class Records:
    """Turns one learner's state and its changes into items."""

    def __init__(self, learner: str) -> None:
        """Take the learner's id, which every seal covers."""
        self._keyed = hashlib.blake2b(digest_size=_SEAL, key=learner.encode("ascii"))

    def seal(self, kind: int, number: int, contents: bytes) -> tuple[Item, int]:
        """An item, and its seal as a number."""
        digest = self._keyed.copy()  # quicker than one made anew with the key
        digest.update(_KEY.pack(kind, number) + contents)
        seal = digest.digest()
        return (kind, number, seal + contents), int.from_bytes(seal, "big")

    def unseal(self, item: Item) -> tuple[bytes, int]:
        """An item's contents and its seal; ValueError if they do not go together."""
        kind, number, value = item
        if type(value) is not bytes or len(value) < _SEAL:
            raise ValueError("no seal")
        again, seal = self.seal(kind, number, value[_SEAL:])
        if again[2] != value:
            raise ValueError("a seal is broken")
        return value[_SEAL:], seal

    def encoded(
        self,
        head: Head,
        batch: Sequence[Change],
        waiting: Mapping[int, _F64],
        session: tuple[int, str],
    ) -> tuple[list[Item], list[Key], Head]:
        """Changes as items to write and to remove.

        Args:
            head: what is stored before them.
            batch: the changes, in order.
            waiting: the actions of decisions that wait before them.
            session: the first decision and the name of the running session.

        Returns:
            What to write, what to remove, and the head after it.
        """
        puts, drops = list[Item](), list[Key]()
        opened: dict[int, _F64] = {}
        new: dict[int, Item] = {}  # decisions that are opened and not closed again
        closed = 0
        rounds, given_up, rows, sessions = head.rounds, head.given_up, head.rows, head.sessions
        decisions, since = head.decisions, head.since
        for change in batch:
            closes: int | None = change.number
            if change.opens:
                closes, opened[change.number] = change.given_up, change.action  # type: ignore[assignment]
                new[change.number], seal = self._decision(change.number, opened[change.number])
                decisions ^= seal
                if rounds == session[0]:
                    item, seal = self._session(*session)
                    puts.append(item)
                    sessions ^= seal
                rounds, given_up = change.number + 1, change.lost
            if closes is not None:
                action = opened[closes] if closes in opened else waiting[closes]
                if new.pop(closes, None) is None:
                    drops.append((DECISION, closes))
                closed += 1
                decisions ^= self._decision(closes, action)[1]
            if change.row:
                item, seal = self._row(change)
                puts.append(item)
                since ^= seal
                rows = change.row
        after = replace(
            head,
            rounds=rounds,
            given_up=given_up,
            rows=rows,
            waiting=head.waiting + len(opened) - closed,
            decisions=decisions,
            since=since,
            sessions=sessions,
        )
        return [*new.values(), *puts, self._head(after)], drops, after

    def compacted(
        self, head: Head, document: dict[str, Any], sums: PrefixSums
    ) -> tuple[list[Item], list[Key], Head]:
        """The same for storing the sums instead of the rows that are in them.

        Args:
            head: what is stored.
            document: what is stored of the learner besides its data.
            sums: with all rows in them.
        """
        if sums.rows != head.rows:
            raise ValueError("not all rows are in the sums")
        item, seal = self._sums(sums)
        after = replace(head, summed=head.rows, since=0, sums=seal)
        drops = [(ROW, number) for number in range(head.summed + 1, head.rows + 1)]
        return [_learner(document), item, self._head(after)], drops, after

    def everything(
        self,
        document: dict[str, Any],
        sums: PrefixSums,
        waiting: Mapping[int, _F64],
        sessions: Iterable[tuple[int, str]],
        counts: Head,
    ) -> tuple[list[Item], Head]:
        """All items of a learner.

        Args:
            document: what is stored of the learner besides its data.
            sums: the sums.
            waiting: the actions of decisions that wait.
            sessions: the first decision and the name of each session.
            counts: a head that has the rounds and what was given up.
        """
        item, seal = self._sums(sums)
        items, decisions, names = [_learner(document), item], 0, 0
        for number, action in waiting.items():
            item, one = self._decision(number, action)
            items.append(item)
            decisions ^= one
        for first, name in sessions:
            item, one = self._session(first, name)
            items.append(item)
            names ^= one
        head = replace(
            counts,
            rows=sums.rows,
            summed=sums.rows,
            waiting=len(waiting),
            decisions=decisions,
            sessions=names,
            sums=seal,
        )
        return [*items, self._head(head)], head

    def _head(self, head: Head) -> Item:
        return self.seal(HEAD, 0, _dump(vars(head)))[0]

    def _decision(self, number: int, action: _F64) -> tuple[Item, int]:
        return self.seal(DECISION, number, action.astype(_F8, copy=False).tobytes())

    def _row(self, change: Change) -> tuple[Item, int]:
        """A row. How long its noise is says how many draws there are."""
        action: _F64 = change.action  # type: ignore[assignment]  # a row has one, and noise
        noise: NDArray[Any] = change.noise  # type: ignore[assignment]
        contents = (
            _ROW.pack(change.number, change.reward) + action.astype(_F8, copy=False).tobytes()
        )
        if noise.size:
            contents += noise.astype(_DTYPES[noise.dtype.name], copy=False).tobytes()
        return self.seal(ROW, change.row, contents)

    def _session(self, first: int, name: str) -> tuple[Item, int]:
        return self.seal(SESSION, first, name.encode("ascii"))

    def _sums(self, sums: PrefixSums) -> tuple[Item, int]:
        position = sums.position
        body = {
            "rows": position.rows,
            "released": position.released,
            "number": position.number,
            "arrays": {name: encode(part) for name, part in sums.arrays().items()},
        }
        return self.seal(SUMS, 0, _dump(body))


def _learner(document: dict[str, Any]) -> Item:
    """The item that says which learner this is; its seal does without the id."""
    body = {"format": FORMAT, "version": VERSION, **document}
    return Records("").seal(LEARNER, 0, _dump(body))[0]


class Stored(NamedTuple):
    """All that a store held, checked for damage but not yet for sense.

    Attributes:
        document: what is stored besides the data.
        head: the counts.
        sums: the counters and the arrays of the sums.
        rows: the contents of the rows since then, in order.
        waiting: the actions that wait, by decision, in order.
        sessions: the first decision and the name of each session, in order.
    """

    document: dict[str, Any]
    head: Head
    sums: dict[str, Any]
    rows: list[tuple[int, bytes]]
    waiting: dict[int, bytes]
    sessions: list[tuple[int, str]]


def read(items: Iterable[Item]) -> Stored:
    """What the items say; CorruptFileError or FileVersionError if they are not a learner's."""
    try:
        return _read(sorted(items, key=lambda item: item[:2]))
    except FileVersionError:
        raise
    except MALFORMED:
        raise CorruptFileError(
            "path", "was truncated or altered; restore it from a backup"
        ) from None


def _read(items: list[Item]) -> Stored:
    by_kind: dict[int, list[Item]] = {kind: [] for kind in range(6)}
    for item in items:
        by_kind[item[0]].append(item)
    ((first,), (second,), (third,)) = (by_kind[kind] for kind in (LEARNER, HEAD, SUMS))
    document = _document(first)
    codec = Records(document["learner"])
    head = Head(**_json(codec.unseal(second)[0]))
    body, seal = codec.unseal(third)
    rows, since = _unsealed(codec, by_kind[ROW])
    waiting, decisions = _unsealed(codec, by_kind[DECISION])
    sessions, names = _unsealed(codec, by_kind[SESSION])
    found = replace(
        head,
        waiting=len(waiting),
        decisions=decisions,
        since=since,
        sessions=names,
        sums=seal,
    )
    wanted = range(head.summed + 1, head.rows + 1)  # a list could be of any length
    if found != head or len(rows) != len(wanted):
        raise ValueError("the head counts something else")
    if any(number != one for (number, _), one in zip(rows, wanted, strict=True)):
        raise ValueError("the head counts something else")
    sums = _json(body)
    sums["arrays"] = {name: decode(part) for name, part in sums["arrays"].items()}
    named = [(number, name.decode("ascii")) for number, name in sessions]
    return Stored(document, head, sums, rows, dict(waiting), named)


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
    return np.frombuffer(contents, dtype=_F8).astype(np.float64)


def row_of(number: int, contents: bytes, dim: int, like: NDArray[Any]) -> Change:
    """A stored row, with noise of the width and type of ``like``; ValueError if it is none."""
    decision, reward = _ROW.unpack_from(contents)
    at = _ROW.size + 8 * dim
    action = action_of(contents[_ROW.size : at], dim)
    noise = np.frombuffer(contents[at:], dtype=_DTYPES[like.dtype.name]).astype(like.dtype)
    return Change(decision, action, number, reward, noise.reshape(-1, like.shape[1]))


def encode(array: NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: 64-bit numbers in base64, or integers of any size (dtype object)."""
    shape = list(array.shape)
    if array.dtype == object:
        return {"shape": shape, _INTEGERS: [f"{int(number):x}" for number in array.ravel()]}
    kind = array.dtype.name
    data = base64.b64encode(np.ascontiguousarray(array, dtype=_DTYPES[kind]).tobytes())
    return {"shape": shape, kind: data.decode("ascii")}


def decode(entry: Any) -> NDArray[Any]:  # noqa: ANN401  # whatever a file holds
    """The array again; ValueError if there is none such, or one that is not finite."""
    if not isinstance(entry, dict) or len(entry) != 2:  # noqa: PLR2004  # shape and numbers
        raise ValueError("not an array")
    shape = _shape(entry["shape"])
    ((kind, numbers),) = ((name, part) for name, part in entry.items() if name != "shape")
    if kind == _INTEGERS:
        return _integers(numbers, shape)
    data = _from_base64(numbers, 8 * math.prod(shape))
    native = _DTYPES[kind].newbyteorder("=")
    array = np.frombuffer(data, dtype=_DTYPES[kind]).astype(native).reshape(shape)
    if not np.isfinite(array).all():
        raise ValueError("not finite")
    return array


def _shape(found: object) -> tuple[int, ...]:
    """A shape that an array may have. Sizes are compared before anything is allocated."""
    if not isinstance(found, list) or len(found) > _MOST_AXES:
        raise ValueError("not a shape")
    if not all(type(axis) is int and 0 <= axis < _LONGEST_AXIS for axis in found):
        raise ValueError("not a shape")
    return tuple(found)


def _from_base64(text: object, size: int) -> bytes:
    if not isinstance(text, str) or len(text) != 4 * math.ceil(size / 3):
        raise ValueError("not as many numbers as the shape says")
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if len(data) != size:
        raise ValueError("not as many numbers as the shape says")
    return data


def _integers(texts: object, shape: tuple[int, ...]) -> NDArray[Any]:
    if not isinstance(texts, list) or len(texts) != math.prod(shape):
        raise ValueError("not as many numbers as the shape says")
    if not all(isinstance(text, str) and _INTEGER.fullmatch(text) for text in texts):
        raise ValueError("not integers")
    array = np.empty(len(texts), dtype=object)
    array[:] = [int(text, 16) for text in texts]
    return array.reshape(shape)


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def _json(contents: bytes) -> dict[str, Any]:
    found = canonical.parse(contents)
    if not isinstance(found, dict):
        raise TypeError("not an object")
    return found
