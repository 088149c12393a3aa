"""SQLite's write-ahead log, read without SQLite: the pages that its commits left. Secret.

SQLite cannot look at a database with a log without a file for its locks beside it, which it makes
or writes to. Here nothing is made, locked or written. The format is public: see "WAL File Format"
in SQLite's documentation of its database file format.

A log is a header and frames, each of them a page with a header of its own. A frame counts if it
has the log's salt, if the checksum that runs through all frames holds up to it, and if a frame that
ends a commit follows, or it is that frame itself.
"""

import struct
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.curator.store import damaged

_U64 = NDArray[np.uint64]

_HEADER = struct.Struct(">8I")  # magic, format, page size, number, two salts, two checksums
_FRAME = 24  # bytes before each page: its number, pages after a commit, two salts, two checksums
_MAGIC, _BIG_ENDIAN = 0x377F0682, 1  # the last bit says how the words of checksums are read
_MASK = np.uint64(0xFFFFFFFF)
_LEAST_PAGE, _LARGEST_PAGE = 512, 65536
_MODES = slice(18, 20)  # of a database's header: how it is written and read
_NO_LOG = b"\1\1"


class _Committed(NamedTuple):
    """What a log holds.

    Attributes:
        size: bytes of a page.
        total: pages of the database after the last commit.
        pages: the newest contents of each page that is in the log, by number from 1.
    """

    size: int
    total: int
    pages: dict[int, bytes]


def image(database: bytes, log: bytes | None) -> bytes:
    """A database with everything in it that is committed, as one that has no log.

    Args:
        database: its file.
        log: the file of its log; None if there is none.

    Returns:
        What SQLite can deserialize.
    """
    found = None if log is None else _committed(log)
    pages = bytearray(database)
    if found is not None:
        pages = pages[: found.size * found.total]
        pages.extend(bytes(found.size * found.total - len(pages)))
        for number, contents in found.pages.items():
            if number <= found.total:
                pages[(number - 1) * found.size : number * found.size] = contents
    if len(pages) >= _MODES.stop:
        pages[_MODES] = _NO_LOG
    return bytes(pages)


def _committed(log: bytes) -> _Committed | None:
    """The pages of all whole commits; None if there is no commit."""
    if len(log) < _HEADER.size:
        return None
    magic, _, size, _, *salts, first, second = _HEADER.unpack_from(log)
    if magic & ~_BIG_ENDIAN != _MAGIC or not _LEAST_PAGE <= size <= _LARGEST_PAGE:
        return None  # as SQLite does: a header that never was one
    words = np.dtype(">u4" if magic & _BIG_ENDIAN else "<u4")
    head = np.frombuffer(log[: _HEADER.size - 8], words)
    if _carried(_sums(head[None])[0], (0, 0), head.size // 2) != (first, second):
        return None
    count = (len(log) - _HEADER.size) // (_FRAME + size)
    frames = np.frombuffer(log, np.uint8, count * (_FRAME + size), _HEADER.size)
    frames = frames.reshape(count, _FRAME + size)
    headers = np.ascontiguousarray(frames[:, :_FRAME]).view(">u4").reshape(count, 6)
    same = (headers[:, 2:4] == np.array(salts)).all(axis=1)
    count = count if same.all() else int(same.argmin())
    if not count:
        return None
    covered = np.concatenate([frames[:count, :8], frames[:count, _FRAME:]], axis=1)
    sums = _sums(np.ascontiguousarray(covered).view(words).reshape(count, -1))
    running, last = (first, second), -1
    for place in range(count):
        running = _carried(sums[place], running, (size + 8) // 8)
        if running != (int(headers[place, 4]), int(headers[place, 5])):
            break
        if headers[place, 1]:
            last = place
    if last < 0:
        return None
    newest = {int(number): place for place, number in enumerate(headers[: last + 1, 0])}
    if 0 in newest:
        raise damaged()
    pages = {number: frames[place, _FRAME:].tobytes() for number, place in newest.items()}
    return _Committed(int(size), int(headers[last, 1]), pages)


def _sums(words: NDArray[np.uint32]) -> _U64:
    """The checksums of rows of words, each as if it stood at the start, shape (n, 2).

    SQLite adds word after word: s += x + t and then t += y + s, modulo 2^32, for each pair (x, y).
    That is a linear map of (s, t) for each pair, so all of them can be added up at once.
    """
    wide = words.astype(np.uint64)
    first, both = wide[:, 0::2], wide[:, 0::2] + wide[:, 1::2]
    powers = _powers(first.shape[1] + 1)[-2::-1]  # the last pair goes through no further step
    return (
        np.stack(
            [first @ powers[:, row, 0] + (both & _MASK) @ powers[:, row, 1] for row in (0, 1)],
            axis=1,
        )
        & _MASK
    )


def _carried(own: _U64, before: tuple[int, int], pairs: int) -> tuple[int, int]:
    """The checksum after some pairs, if one came before them."""
    step = _powers(pairs + 1)[pairs]
    s, t = (
        (int(own[row]) + int(step[row, 0]) * before[0] + int(step[row, 1]) * before[1]) & 0xFFFFFFFF
        for row in (0, 1)
    )
    return s, t


@cache
def _powers(count: int) -> _U64:
    """The first powers of the map of one pair, [[1, 1], [1, 2]], modulo 2^32."""
    found, power = np.empty((count, 2, 2), dtype=np.uint64), ((1, 0), (0, 1))
    for place in range(count):
        found[place] = power
        (a, b), (c, d) = power
        rows = ((a + c, b + d), (a + 2 * c, b + 2 * d))
        power = tuple(tuple(one & 0xFFFFFFFF for one in row) for row in rows)  # type: ignore[assignment]  # a pair of pairs
    return found
