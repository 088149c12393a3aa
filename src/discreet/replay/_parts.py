"""Which part of a log a row is in: for learning, for evaluation, or left out.

That depends on the row's number, or on whose row it is, and on nothing that the row says.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import OutOfBoundsError, ParameterError
from discreet.features._rows import key_of
from discreet.replay._log import Flags, Reader

LEARN, EVALUATE, LEFT_OUT = range(3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """The parts of a log.

    Attributes:
        rows: how many rows it has.
        cut: the first row that is not for learning, where rows are taken in order.
        assigned: the part of each row, where people are assigned to parts, shape (n,).
        people: a number for the person of each row, as far as 64 bits tell people apart.
        ids: the actions that occur, if they were asked for.
    """

    rows: int
    cut: int
    assigned: NDArray[np.uint8] | None
    people: NDArray[np.int64] | None
    ids: tuple[str, ...]

    def size(self, part: int) -> int:
        """How many rows are in a part."""
        if self.assigned is not None:
            return int(np.count_nonzero(self.assigned == part))
        return {LEARN: self.cut, EVALUATE: self.rows - self.cut}.get(part, 0)

    def mask(self, part: int, start: int, count: int) -> Flags:
        """Which of some rows are in a part."""
        if self.assigned is not None:
            found: Flags = self.assigned[start : start + count] == part
            return found
        rows = np.arange(start, start + count)
        return rows < self.cut if part == LEARN else rows >= self.cut

    def last(self, part: int) -> int:
        """No row from this one on is in a part."""
        return self.cut if self.assigned is None and part == LEARN else self.rows


def parts_of(
    reader: Reader, *, train: float, seed: int, most: int, clip: bool, ids: bool, chunk: int
) -> Parts:
    """Read a log once, and say which part each of its rows is in.

    Args:
        reader: of the log.
        train: the share of rows, or of people, to learn from.
        seed: the public key by which people are assigned to parts.
        most: how many rows a person may have.
        clip: whether rows beyond are left out; they are an error otherwise.
        ids: whether the different actions are asked for.
        chunk: how many rows are read at a time.

    Returns:
        The parts.

    Raises:
        OutOfBoundsError: A person has too many rows.
        ParameterError: A part would be empty, or it is not known whose a row is.
    """
    log, key = reader.log, key_of("replay", str(seed))
    found: dict[str, None] = {}
    words: list[NDArray[np.uint64]] = []
    wanted = [log.action] * ids + ([] if log.subject is None else [log.subject])
    rows = 0
    for count, columns in reader.table.chunks(wanted or [log.action], chunk):
        if ids:
            distinct = columns[log.action].factored().names
            if None in distinct:
                reader.known(columns[log.action].texts(), "action", rows)
            found |= dict.fromkeys(name for name in distinct if name is not None)
        if log.subject is not None:
            names = reader.known(columns[log.subject].texts(), "subject", rows)
            words.append(hashed(names, key))
        rows += count
    assigned = people = None
    if words:
        together = np.concatenate(words)
        words.clear()
        threshold = min(int(train * 2.0**64), 2**64 - 1)
        assigned = np.where(together < np.uint64(threshold), LEARN, EVALUATE).astype(np.uint8)
        beyond = ranks(together) >= most
        if beyond.any() and not clip:
            raise OutOfBoundsError(
                "subject",
                f"has somebody with more than {most} rows; state a larger "
                "contributions_per_user, or pass on_violation='clip' to leave out what is beyond",
            )
        assigned[beyond] = LEFT_OUT
        people = together.view(np.int64)
    parts = Parts(
        rows=rows, cut=int(train * rows), assigned=assigned, people=people, ids=tuple(found)
    )
    if not rows:
        raise ParameterError("log", "has no rows; give one with some")
    if not (parts.size(LEARN) and parts.size(EVALUATE)):
        raise ParameterError(
            "train", "leaves no rows to learn from, or none to evaluate on; give another share"
        )
    return parts


def hashed(names: Sequence[str], key: bytes) -> NDArray[np.uint64]:
    """64 bits of each name, by a public key."""
    begun = hashlib.blake2b(digest_size=8, key=key)
    digests = []
    for name in names:
        one = begun.copy()
        one.update(name.encode("utf-8", "surrogatepass"))
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)


def ranks(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many earlier rows are of the same person, for each row."""
    order = np.argsort(words, kind="stable")
    sorted_words = words[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_words[1:] != sorted_words[:-1])))
    sizes = np.diff(np.concatenate((starts, [words.size])))
    found = np.empty(words.size, dtype=np.int64)
    found[order] = np.arange(words.size) - np.repeat(starts, sizes)
    return found
