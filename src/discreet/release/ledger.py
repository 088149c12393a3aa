"""The ledger: a list of all releases a learner ever made, which only grows. Public data only.

A file of JSON lines. The first names the learner and holds its privacy card; each other line is
one release: its number, how many rows are in it, the digest of its values, and a digest that
chains it to the line before. Nothing here holds or sees a row, or imports what does.
"""

import re
import secrets
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self, overload

from discreet import _canonical as canonical
from discreet import _checks as checks
from discreet import _tables
from discreet.errors import (
    BrokenLedgerError,
    FileVersionError,
    ForkedStateError,
    ParameterError,
)
from discreet.release._card import privacy_card
from discreet.release._release import Release, fingerprint

__all__ = ["Entry", "Ledger", "fingerprint"]

FORMAT = "discreet-ledger"
VERSION = 1
_OF_ONE_MOMENT = {"discreet", "learner", "releases", "rows"}  # on a card, and not of a mechanism
MOST_ROWS = 2**62  # a release has fewer

_PACKED = struct.Struct("<Q32s")  # rows and sha256; the number is the place
_CHAIN = 32  # bytes of a digest
_LINE = re.compile(
    rb'\{"chain":"([0-9a-f]{64})","number":([1-9][0-9]{0,18}),"rows":(0|[1-9][0-9]{0,18}),'
    rb'"sha256":"([0-9a-f]{64})"\}'
)
_NAME = re.compile(r"[0-9a-f]{32}")
_SHOWN = 3  # entries at either end in a summary


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One release.

    Attributes:
        number: of the release, from 1.
        rows: how many rows are in it.
        sha256: the digest of its values, see `fingerprint`.
        chain: the digest of this entry and of all before it.
    """

    number: int
    rows: int
    sha256: str
    chain: str

    def line(self) -> bytes:
        """The entry as it stands in a file."""
        facts = {"number": self.number, "rows": self.rows, "sha256": self.sha256}
        return canonical.dump({"chain": self.chain, **facts}) + b"\n"


class _Store:
    """The releases in order, 72 bytes for each. The chain is worked out when somebody asks.

    It only grows, so several ledgers may look at one store, each at as much as it knows of.
    """

    def __init__(self, root: str) -> None:
        """Start empty, with the digest that the chain starts from."""
        self._root = bytes.fromhex(root)
        self._packed = bytearray()  # rows and digest of each
        self._chains = bytearray()  # of as many as somebody asked for

    def __len__(self) -> int:
        return len(self._packed) // _PACKED.size

    def facts(self, place: int) -> tuple[int, bytes]:
        """Rows and digest of an entry."""
        rows, sha256 = _PACKED.unpack_from(self._packed, place * _PACKED.size)
        return rows, sha256

    def chain(self, count: int) -> str:
        """The digest of the first ``count`` entries.

        Safe for several threads without a lock: a digest is written to its own place, as a whole,
        and whoever writes it writes the same.
        """
        for place in range(len(self._chains) // _CHAIN, count):
            rows, sha256 = self.facts(place)
            # What canonical.dump makes of these three, at a tenth of its time.
            content = f'{{"number":{place + 1},"rows":{rows},"sha256":"{sha256.hex()}"}}'
            chain = canonical.link(self._link(place).hex(), content.encode("ascii"))
            self._chains[place * _CHAIN : (place + 1) * _CHAIN] = bytes.fromhex(chain)
        return self._link(count).hex()

    def _link(self, count: int) -> bytes:
        return bytes(self._chains[(count - 1) * _CHAIN : count * _CHAIN]) if count else self._root

    def add(self, rows: int, sha256: str) -> None:
        """One more, in one step: an interrupt leaves all of it or nothing."""
        self._packed += _PACKED.pack(rows, bytes.fromhex(sha256))


class Entries(Sequence[Entry]):
    """The releases of a ledger in order. It does not change."""

    def __init__(self, store: _Store, count: int) -> None:
        """Use `Ledger.entries`."""
        self._store = store
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self._entry(place) for place in range(*index.indices(self._count))]
        return self._entry(range(self._count)[index])

    def _entry(self, place: int) -> Entry:
        rows, sha256 = self._store.facts(place)
        chain = self._store.chain(place + 1)
        return Entry(number=place + 1, rows=rows, sha256=sha256.hex(), chain=chain)


class Ledger:
    """All releases of one learner, up to some moment. It does not change.

    Args:
        card: the learner's privacy card (`discreet.privacy_card`), or any JSON object.
        learner: its id, 32 hexadecimal digits; drawn if left out.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> bandit.observe([[1.0, 0.0]] * 200, [1.0] * 200)
        >>> bandit.ledger.holds(bandit.release)
        True
    """

    def __init__(self, card: dict[str, Any], *, learner: str | None = None) -> None:
        """Start without a release."""
        self._learner = secrets.token_hex(16) if learner is None else learner
        if not isinstance(self._learner, str) or not _NAME.fullmatch(self._learner):
            raise ParameterError("learner", "is not an id of 32 hexadecimal digits; leave it out")
        try:
            self._card = canonical.dump(dict(card))
            self._root = canonical.digest(self._facts())
        except (TypeError, ValueError):
            raise ParameterError(
                "card", "is not plain JSON; give what privacy_card makes"
            ) from None
        self._store = _Store(self._root)
        self._count = 0
        self._torn = 0

    def _facts(self) -> dict[str, Any]:
        """What the first line says."""
        card = canonical.parse(self._card)
        return {"format": FORMAT, "version": VERSION, "learner": self._learner, "card": card}

    @property
    def learner(self) -> str:
        """The learner's id."""
        return self._learner

    @property
    def card(self) -> dict[str, Any]:
        """A copy of the learner's privacy card."""
        card: dict[str, Any] = canonical.parse(self._card)
        return card

    @property
    def entries(self) -> Entries:
        """The releases in order."""
        return Entries(self._store, len(self))

    @property
    def root(self) -> str:
        """The digest of the first line, from which the chain starts."""
        return self._root

    @property
    def head(self) -> str:
        """The digest of everything so far: whoever keeps it can tell that nothing was altered."""
        return self._store.chain(len(self))

    @property
    def rows(self) -> int:
        """How many rows are in the last release."""
        return self._store.facts(len(self) - 1)[0] if len(self) else 0

    @property
    def torn(self) -> int:
        """How many bytes of an unfinished last line `parse` dropped."""
        return self._torn

    def __len__(self) -> int:
        return self._count

    def header_line(self) -> bytes:
        """The first line of a file."""
        return canonical.dump({**self._facts(), "chain": self._root}) + b"\n"

    def lines(self) -> Iterator[bytes]:
        """The whole file, line by line."""
        yield self.header_line()
        for entry in self.entries:
            yield entry.line()

    @classmethod
    def parse(cls, data: bytes | str, *, torn: str = "refuse") -> Self:
        """The ledger of a file's contents, with every line checked.

        Args:
            data: the contents.
            torn: what to do with an unfinished last line, which a crash leaves: 'refuse' or
                'drop'.

        Returns:
            The ledger.

        Raises:
            ParameterError: ``torn`` is neither of the two.
            BrokenLedgerError: a line is damaged, or no ledger's; it names which.
        """
        checks.one_of("torn", torn, ("refuse", "drop"))
        content = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
        size = canonical.whole(content)
        lines = content[:size].split(b"\n")[:-1]
        if size < len(content) and (torn == "refuse" or not lines):
            raise _broken(len(lines) + 1, "is not finished; a crash may have left it so")
        self = cls._headed(lines[0] if lines else b"")
        for number, line in enumerate(lines[1:], 1):
            self._take(number, line)
        self._torn = len(content) - size
        return self

    @classmethod
    def _headed(cls, line: bytes) -> Self:
        try:
            facts = canonical.parse(line)
        except ValueError:
            facts = None
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise _broken(1, "is not the head of a ledger")
        version = facts.get("version")
        if type(version) is int and version > VERSION:
            raise FileVersionError(
                "ledger",
                f"has format version {version} and this release reads up to {VERSION}; "
                "update discreet to open it",
            )
        try:
            self = cls(facts["card"], learner=facts["learner"])
        except (KeyError, ParameterError):
            raise _broken(1, "was altered") from None
        if self.header_line() != line + b"\n":
            raise _broken(1, "was altered")
        return self

    def _take(self, number: int, line: bytes) -> None:
        found = _LINE.fullmatch(line)
        if found is None:
            raise _broken(number + 1, "is not an entry")
        chain, place, rows, sha256 = (group.decode("ascii") for group in found.groups())
        if int(place) != number or not self.rows <= int(rows) < MOST_ROWS:
            raise _broken(number + 1, "is out of order")
        self._store.add(int(rows), sha256)
        self._count = number
        if self.head != chain:
            raise _broken(number + 1, "was altered, or the line before it")

    def agrees(self, other: "Ledger") -> int:
        """How many releases both ledgers of one learner hold; the shorter one begins the longer.

        If a release is in both with different contents, the learner's state was copied or rewound
        and continued twice: `ForkedStateError` names the first such release.

        Args:
            other: another copy, earlier or later.

        Returns:
            How many releases there are in both.

        Raises:
            ForkedStateError: a release was made twice, with other contents.
            ParameterError: the other is of another learner.
        """
        if self.learner != other.learner:
            raise ParameterError("other", "is the ledger of another learner; give one of the same")
        if self.root != other.root:
            raise ForkedStateError(
                "other", "names the same learner with another privacy card; one is forged", number=0
            )
        shared = min(len(self), len(other))
        same, differs = 0, shared + 1  # entries up to `same` agree, `differs` does not
        while differs - same > 1:
            middle = (same + differs) // 2
            if self.entries[middle - 1] == other.entries[middle - 1]:
                same = middle
            else:
                differs = middle
        if differs <= shared:
            raise ForkedStateError(
                "other",
                f"has another release {differs}: the learner's state was continued twice, so the "
                "guarantee does not hold. Stop both and start a new learner",
                number=differs,
            )
        return shared

    def holds(self, release: Release) -> bool:
        """Whether the ledger has this release, with these values and this mechanism.

        Args:
            release: what somebody was shown.

        Returns:
            True if it is one of those that are listed.
        """
        if not 1 <= release.number <= len(self):
            return False
        entry = self.entries[release.number - 1]
        if (entry.rows, entry.sha256) != (release.rows, fingerprint(release)):
            return False
        own, stated = privacy_card(release.mechanism), self.card
        shared = (own.keys() & stated.keys()) - _OF_ONE_MOMENT
        return all(canonical.dump(own[key]) == canonical.dump(stated[key]) for key in shared)

    def dp_event(self) -> Any:  # noqa: ANN401  # an optional library's type
        """Everything released, as one event of the dp_accounting library.

        Releases share their noise, so they are together one Gaussian mechanism with sensitivity mu
        in standard deviations, and not as many independent ones as there are releases. The cost is
        that of all releases the learner may ever make. mu counts for the card's neighbours and
        contributions already: leave the accountant's neighbouring relation at its default. For
        noise on a grid the event's Renyi divergences hold as they are; its exact privacy loss
        holds up to the trace that docs/accounting.md works out.

        Returns:
            A GaussianDpEvent; NonPrivateDpEvent without a promise, NoOpDpEvent without a release.

        Raises:
            ParameterError: the library is missing, or no event describes the noise (Wishart).
        """
        try:
            dp_accounting = import_module("dp_accounting")  # optional, and slow to import
        except ImportError:
            raise ParameterError(
                "dp_accounting", "is not installed; run `pip install dp-accounting`"
            ) from None
        card = self.card
        if not len(self):
            return dp_accounting.NoOpDpEvent()
        if card.get("epsilon") is None:
            return dp_accounting.NonPrivateDpEvent()
        if card.get("mu") is None:
            raise ParameterError(
                "ledger", "is of Wishart noise, which no event describes; use its epsilon and delta"
            )
        return dp_accounting.GaussianDpEvent(1 / checks.positive("mu", card["mu"]))

    def __repr__(self) -> str:
        return f"Ledger(learner={self.learner!r}, releases={len(self)}, rows={self.rows})"

    def _ends(self) -> list[Entry]:
        """The first and the last few entries."""
        return [*self.entries[:_SHOWN], *self.entries[max(_SHOWN, len(self) - _SHOWN) :]]

    def _repr_html_(self) -> str:
        shown = self._ends()
        rows = [(f"{one.number:,}", f"{one.rows:,}", one.sha256) for one in shown]
        if len(shown) < len(self):
            rows.insert(_SHOWN, ("...", "...", f"{len(self) - len(shown):,} more"))
        notes = [f"Head: {self.head}", str(self.card.get("text", "The card promises nothing."))]
        title = f"Learner {self.learner}: {len(self):,} releases, {self.rows:,} rows"
        return _tables.as_html(("release", "rows", "SHA-256"), rows, title=title, notes=notes)

    def __str__(self) -> str:
        shown = self._ends()
        lines = [f"learner {self.learner}: {len(self)} releases, {self.rows} rows"]
        lines += [f"{entry.number:>10} {entry.rows:>14} {entry.sha256}" for entry in shown]
        if len(shown) < len(self):
            lines.insert(1 + _SHOWN, f"{'...':>10}")
        return "\n".join(lines)


def _broken(line: int, what: str) -> BrokenLedgerError:
    return BrokenLedgerError("ledger", f"line {line} {what}; restore it from a copy", line=line)
