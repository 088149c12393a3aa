"""How many rows each person has given, under a keyed hash of their id. Secret.

Formal guarantee: of the rows of one subject at most ``cap`` are more than zeros. A row beyond that
keeps its place in the order of rows, so that the times of releases stay public, and is one of zeros
whatever the person brings: replacing all that one person brings changes at most ``cap`` rows.

An id is only ever hashed, with a key of the learner's own that the operating system made and that
is stored with the learner's state and nowhere else. Whoever has the state can try out ids that they
guess; whoever has a digest alone cannot.
"""

import operator
import secrets
import struct
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError, ShapeError

_F64 = NDArray[np.float64]

Subject = str | bytes | int
"""Who somebody is, in the caller's own words. The same in any of these types: 7, "7" and b"7"."""

DIGEST = 16  # bytes
KEY = 32  # bytes
ERASED = b""  # in place of a digest: a decision whose person was forgotten
UNCAPPED = 10**9  # the largest cap: where nothing is promised nothing is capped

_COUNTED = 30  # bits; the cap fits into them
_ARRIVAL = 2 * _COUNTED
_MASK = (1 << _COUNTED) - 1
_CONTENTS = struct.Struct(f"<{DIGEST}sII")  # digest, rows counted, rows withdrawn


_KEPT = {
    "rows": "the noise in it goes on protecting them",
    "rewards": "the noise in it goes on protecting their rewards, while their actions are public",
    "nothing": "this learner promises no privacy",
}


@dataclass(frozen=True)
class Forgotten:
    """What became of the rows of a person who was forgotten.

    Attributes:
        open: decisions that waited for a reward. Their actions are erased; a reward that comes
            later is not used, and its row is one of zeros.
        in_batch: rows that had not been released. They are withdrawn: rows of zeros stand in their
            place, and no release will ever know of them.
        released: rows that are in a release already. They stay in the sums: what was shown cannot
            be taken back, and the noise in it is what protects them.
        protects: what that noise protects: 'rows'; 'rewards' alone, where actions are in releases
            as they are; or 'nothing', where no privacy is promised.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> bandit.learn(bandit.choose([[1.0, 0.0]], subject="ann"), reward=0.5)
        >>> bandit.forget_subject("ann").in_batch
        1
    """

    open: int
    in_batch: int
    released: int
    protects: str = field(default="rows", compare=False)

    def __str__(self) -> str:
        said = (
            f"Erased: {_many(self.open, 'decision')} that waited for a reward, and "
            f"{_many(self.in_batch, 'row')} that had not been released."
        )
        if self.released:
            kept = _KEPT[self.protects]
            said += (
                f" {_many(self.released, 'row')} had been released before: what was shown cannot "
                f"be taken back, and {kept}."
            )
        return said


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class Count(NamedTuple):
    """How many rows of a person there are after a change.

    Attributes:
        digest: who.
        record: how many, as `pack` writes it.
    """

    digest: bytes
    record: int


class OpenRow(NamedTuple):
    """A row of a person in the open batch. It is added to the sums with the release.

    Attributes:
        digest: who.
        decision: the number of its decision.
        action: what was chosen.
        reward: what came of it.
    """

    digest: bytes
    decision: int
    action: _F64
    reward: float


def pack(arrival: int, counted: int, withdrawn: int) -> int:
    """A record in one number, which takes a third of the memory of three.

    Args:
        arrival: of the person, in the order in which people came: 0 for the first.
        counted: rows that were taken in.
        withdrawn: how many of them were taken out again, before any release.
    """
    return arrival << _ARRIVAL | withdrawn << _COUNTED | counted


def unpack(record: int) -> tuple[int, int, int]:
    """Arrival, rows counted and rows withdrawn of a record."""
    return record >> _ARRIVAL, record & _MASK, record >> _COUNTED & _MASK


def arrival_of(record: int) -> int:
    """How many people came before the one whose record it is."""
    return record >> _ARRIVAL


def contents_of(count: Count) -> tuple[int, bytes]:
    """The number and the contents of the item that a count is stored as."""
    arrival, counted, withdrawn = unpack(count.record)
    return arrival, _CONTENTS.pack(count.digest, counted, withdrawn)


def count_of(arrival: int, contents: bytes, cap: int) -> Count:
    """A stored count; ValueError if it is none."""
    digest, counted, withdrawn = _CONTENTS.unpack(contents)
    if not 0 <= withdrawn <= counted <= cap or counted < 1:
        raise ValueError("more rows of a person than there may be")
    return Count(digest, pack(arrival, counted, withdrawn))


@dataclass
class Book:
    """What is known of people: applied changes only.

    Memory: about 160 bytes for each person who has given a row.

    Attributes:
        cap: how many rows of one person may count.
        key: of the hash.
        counts: a record for each person, by digest.
        owners: whom decisions that wait were made for, by number, as far as that was said.
        over: rows that came beyond the cap.
    """

    cap: int
    key: bytes = field(default_factory=lambda: secrets.token_bytes(KEY), repr=False)
    counts: dict[bytes, int] = field(default_factory=dict, repr=False)
    owners: dict[int, bytes] = field(default_factory=dict, repr=False)
    over: int = 0

    def digest(self, subject: object) -> bytes:
        """The keyed hash of an id."""
        kind = type(subject)
        if kind is str:
            data = subject.encode("utf-8", "surrogatepass")  # type: ignore[attr-defined]  # a str
        elif kind is int:
            data = b"%d" % subject  # type: ignore[str-format]  # an int
        else:
            data = _bytes_of(subject)
        if not data:
            raise ParameterError("subject", "is empty; give an id, or None if it is not known")
        return blake2b(data, digest_size=DIGEST, key=self.key).digest()

    def digests(self, subjects: Iterable[object] | None, count: int) -> list[bytes | None] | None:
        """Keyed hashes of several ids, some of which may be None; None if there is none at all.

        Args:
            subjects: what a caller gave.
            count: how many there should be.
        """
        if subjects is None:
            return None
        if isinstance(subjects, str | bytes | Mapping | AbstractSet):
            raise ParameterError(
                "subjects", "is one id, a mapping or a set; give a list with an id for each row"
            )
        found = subjects.tolist() if isinstance(subjects, np.ndarray) else list(subjects)
        if not isinstance(found, list) or len(found) != count:
            many = len(found) if isinstance(found, list) else "no"
            raise ShapeError("subjects", f"has {many} entries for {count} rows; give one for each")
        digest = self.digest
        digests = [None if subject is None else digest(subject) for subject in found]
        return digests if any(one is not None for one in digests) else None

    def counted(self, digest: bytes, ahead: Mapping[bytes, int], people: int) -> int | None:
        """The record after one more row of a person; None if that would be beyond the cap.

        Args:
            digest: who.
            ahead: records that are staged.
            people: how many there are, with those that are staged.
        """
        record = ahead.get(digest)
        if record is None:
            record = self.counts.get(digest)
        if record is None:
            record = people << _ARRIVAL
        elif record & _MASK >= self.cap:
            return None
        return record + 1

    def withdrawn(self, digest: bytes, rows: int) -> tuple[Count | None, int]:
        """The count after rows are taken out, if there is one, and how many rows stay in."""
        record = self.counts.get(digest)
        if record is None:
            return None, 0
        _, counted, before = unpack(record)
        return Count(digest, record + (rows << _COUNTED)), counted - before - rows


def _bytes_of(subject: object) -> bytes:
    """The bytes of an id of a kind that is less usual; a refusal does not quote it."""
    # What it is and not what it prints as: a member of an enumeration of texts is that text.
    if isinstance(subject, str):
        return str.encode(subject, "utf-8", "surrogatepass")
    if isinstance(subject, bytes):
        return memoryview(subject).tobytes()
    try:
        if isinstance(subject, bool | np.bool_):
            raise TypeError
        return b"%d" % operator.index(subject)  # type: ignore[arg-type]  # that is tried
    except TypeError:
        raise ParameterError(
            "subject",
            f"is of type {type(subject).__name__}; give a str, bytes or int, or None if it is not "
            "known",
        ) from None
