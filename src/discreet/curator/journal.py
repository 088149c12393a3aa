"""The journal of a kept learner: what happened since its snapshot, one line a call. Secret.

The first line names the snapshot it goes on from and the ledger it belongs to. Every other line
is a record and a digest that chains it to the line before. A line is written and synced as a
whole, or taken back.
"""

import contextlib
import os
import re
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from discreet import _canonical as canonical
from discreet.curator import disk
from discreet.errors import CorruptFileError, FileVersionError

FORMAT = "discreet-journal"
VERSION = 1

_RECORD = re.compile(rb'\{"chain":"([0-9a-f]{64})","entry":(.*)\}', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a journal goes on from.

    Attributes:
        generation: of the snapshot, from 1.
        snapshot: the digest of its body.
        ledger: the digest of the first line of the learner's ledger.
    """

    generation: int
    snapshot: str
    ledger: str

    @property
    def chain(self) -> str:
        """Where the chain of records starts."""
        return canonical.digest({"format": FORMAT, "version": VERSION, **asdict(self)})

    def line(self) -> bytes:
        """The first line."""
        facts = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return canonical.dump({**facts, "chain": self.chain}) + b"\n"


class Journal(NamedTuple):
    """What a file says: its header, its records, the last digest, and the bytes of whole lines."""

    header: Header
    records: list[dict[str, Any]]
    chain: str
    size: int


def record(chain: str, entry: dict[str, Any]) -> tuple[bytes, str]:
    """The next line after the digest ``chain``, and its own digest."""
    content = canonical.dump(entry)
    following = canonical.link(chain, content)
    return b'{"chain":"%s","entry":%s}\n' % (following.encode("ascii"), content), following


def parse(data: bytes) -> Journal:
    """A journal's contents, checked; an unfinished last line, which a crash leaves, is dropped.

    For any other bytes a `StateFileError`, and no other error.
    """
    size = canonical.whole(data)
    lines = data[:size].split(b"\n")[:-1]
    header = _header(lines[0] if lines else b"")
    chain, records = header.chain, []
    for number, line in enumerate(lines[1:], 2):
        found = _RECORD.fullmatch(line)
        if found is None:
            raise _corrupt(number)
        chain = canonical.link(chain, found[2])
        try:
            entry = canonical.parse(found[2])
        except ValueError:
            entry = None
        if chain.encode("ascii") != found[1] or not isinstance(entry, dict):
            raise _corrupt(number)
        records.append(entry)
    return Journal(header, records, chain, size)


def _header(line: bytes) -> Header:
    try:
        facts = canonical.parse(line)
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise _corrupt(1)
    version = facts.get("version")
    if type(version) is int and version > VERSION:
        raise FileVersionError(
            "path",
            f"has a journal of format version {version} and this release reads up to {VERSION}; "
            "update discreet to open it",
        )
    kinds = {"generation": int, "snapshot": str, "ledger": str}
    if any(type(facts.get(name)) is not kind for name, kind in kinds.items()):
        raise _corrupt(1)
    header = Header(**{name: facts[name] for name in kinds})
    if header.line() != line + b"\n":
        raise _corrupt(1)
    return header


def _corrupt(line: int) -> CorruptFileError:
    return CorruptFileError(
        "path",
        f"has a journal that was altered in line {line}; restore that file, or start a new learner",
    )


class Tail:
    """An open file that grows by whole lines or not at all.

    Attributes:
        size: how long the file is.
        sound: whether that is certain. False while a line is being written, and for good if one
            could not be taken back.
    """

    def __init__(self, file: int, size: int) -> None:
        """Go on at the end of an open file."""
        self._file = file
        self.size = size
        self.sound = True

    def append(self, line: bytes) -> None:
        """Write and sync a line; after any error the file is as it was, if at all possible."""
        before = self.size
        self.sound = False
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            disk.sync(self._file)
            self.size = before + len(line)
            self.sound = True
        except BaseException:
            with contextlib.suppress(OSError):
                self.cut(before)
            raise

    def cut(self, size: int) -> None:
        """Shorten the file for good."""
        self.sound = False
        os.ftruncate(self._file, size)
        disk.sync(self._file)
        self.size = size
        self.sound = True
