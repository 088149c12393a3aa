"""The files of a learner that is kept: snapshot, journal, ledger and lock. Secret, but the ledger.

A call is recorded in the journal and synced before it takes effect, and a release is in the ledger
and synced before it is shown. So the state on disk is never behind what was shown, whenever the
process dies, and a state that is older than its ledger is found out. All files are for their owner
only.
"""

import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self

from discreet.curator import disk, journal, places, storage
from discreet.curator.growing import GrowingLedger
from discreet.curator.journal import Header, Journal, Tail
from discreet.curator.locking import Handles, hold, take
from discreet.curator.places import companion, fresh
from discreet.errors import (
    CorruptFileError,
    ReloadNeededError,
    RewoundStateError,
    StateFileError,
)
from discreet.release.ledger import Entry, Ledger

KEPT = "kept"  # the key of a snapshot's body that says where in the order of things it is


class Keeper:
    """Owns the files of one learner, and the lock on them.

    Use `create` or `open`. A change of the learner is three calls, in this order: `record`, then
    the change in memory, then `settle`; or `withdraw` if memory could not follow. A change that
    was never settled, for instance because of an interrupt, makes all further calls refuse: the
    learner has to be opened again from its files, which hold the change as a whole or not at all.
    Not safe for several threads at once.
    """

    def __init__(
        self, path: Path, files: Handles, past: Journal, *, ledger: Ledger, size: int
    ) -> None:
        """Use `create` or `open`."""
        self._path = path
        self._learner = ledger.learner
        self._files = files
        self._close = weakref.finalize(self, files.close)
        self._header = past.header
        self._journal = Tail(files["journal"], past.size)
        self._chain = past.chain
        self._records = len(past.records)
        self._ledger = Tail(files["ledger"], size)
        self._noted = len(ledger)
        self._last: tuple[int, str] | None = None  # what `withdraw` goes back to
        self._busy = False
        self._patience = 0  # records that a journal has to have before `compact` is due again
        self._known = {str(path): places.identity(path)}
        for name in places.COMPANIONS:
            self._known[str(companion(path, name))] = places.identity(files[name])

    @classmethod
    def create(cls, path: str | os.PathLike[str], body: dict[str, Any], ledger: Ledger) -> Self:
        """Keep a new learner here; nothing is overwritten. The snapshot is written last."""
        target = places.new(path)
        lines = b"".join(ledger.lines())
        marked, header = _next(body, generation=1, ledger=ledger.root, before=None)
        snapshot = storage.render(marked)
        files, made = Handles(), list[Path]()
        try:
            if not companion(target, "lock").exists():
                places.require_nothing(target)  # so that no lock is left behind
            files.put("lock", take(companion(target, "lock")))
            places.require_nothing(target)
            for name, data in (("ledger", lines), ("journal", header.line())):
                files.put(name, disk.written(companion(target, name), data))
                made.append(companion(target, name))
            hold(files["ledger"])
            disk.sync_folder(target.parent)
            coming = fresh(target, ledger.learner)
            os.close(disk.written(coming, snapshot))
            made.append(coming)
            coming.replace(target)
            made.append(target)
            disk.sync_folder(target.parent)
            return cls(target, files, _empty(header), ledger=ledger, size=len(lines))
        except BaseException:
            for place in made:
                place.unlink(missing_ok=True)
            files.close()
            raise

    @classmethod
    def open(
        cls, path: str | os.PathLike[str]
    ) -> tuple[Self, dict[str, Any], list[dict[str, Any]], GrowingLedger]:
        """The keeper, the snapshot's body, the records since, and the ledger.

        What a crash leaves is cleared away: an unfinished last line, and the journal of the
        snapshot before. Everything is checked before anything is changed. The caller has to
        compare what it then knows with the ledger (`GrowingLedger.reconcile`).
        """
        target = places.old(path)
        _require_companions(target)
        files = Handles()
        try:
            files.put("lock", take(companion(target, "lock")))
            body = storage.read(target)
            kept = _kept(body)
            for name in ("journal", "ledger"):
                files.put(name, disk.growing(companion(target, name)))
            hold(files["ledger"])
            ledger = GrowingLedger.parse(disk.contents(files["ledger"]), torn="drop")
            found = journal.parse(disk.contents(files["journal"]))
            past = _past(found, body, kept, ledger)
            whole = _tidied(target, files, found, past, ledger)
            keeper = cls(target, files, past, ledger=ledger, size=whole)
        except BaseException:
            files.close()
            raise
        del body[KEPT]
        return keeper, body, past.records, ledger

    @property
    def path(self) -> Path:
        """Where the snapshot is."""
        return self._path

    @property
    def records(self) -> int:
        """How many records the journal holds."""
        return self._records

    @property
    def noted(self) -> int:
        """How many releases the ledger file holds."""
        return self._noted

    @property
    def generation(self) -> int:
        """How many snapshots there have been."""
        return self._header.generation

    def due(self, most: int) -> bool:
        """Whether the journal has so many records that it is time to `compact`.

        After a try that failed it has to get twice as long first: a try takes time.
        """
        return self._records >= max(most, self._patience)

    @property
    def closed(self) -> bool:
        """Whether the files were given up."""
        return self._files.closed

    def record(self, entry: dict[str, Any]) -> None:
        """Write down a change before it is made; it is on the disk when this returns."""
        line, chain = journal.record(self._chain, entry)
        self._begin()
        before = self._journal.size
        self._append(self._journal, line)
        self._last = (before, self._chain)
        self._chain = chain
        self._records += 1
        self._busy = False

    def settle(self) -> None:
        """The last change was made in memory too."""
        self._require_open()
        self._last = None

    def withdraw(self) -> None:
        """Take the last record back: memory is as it was before it."""
        self._begin(settled=False, unmoved=False)
        if self._last is None:
            self._busy = False
            raise ReloadNeededError("path", "has no change that could be taken back; reload it")
        size, chain = self._last
        self._journal.cut(size)  # if this fails, all later calls are refused
        self._chain = chain
        self._records -= 1
        self._last = None
        self._busy = False

    def note(self, entry: Entry) -> None:
        """Write a release to the ledger; it is on the disk when this returns."""
        if entry.number != self._noted + 1:
            raise StateFileError(
                "entry", f"is of release {entry.number}, and {self._noted + 1} comes next"
            )
        self._begin(settled=False)
        self._append(self._ledger, entry.line())
        self._noted += 1
        self._busy = False

    def compact(self, body: dict[str, Any]) -> None:
        """Replace the snapshot by a newer one, and the journal by an empty one.

        A crash in between leaves the new snapshot with the old journal, all of which it contains.
        """
        marked, header = _next(
            body,
            generation=self.generation + 1,
            ledger=self._header.ledger,
            before=self._chain,
        )
        data = storage.render(marked)
        self._begin()
        beside = companion(self._path, "journal")
        try:
            self._files.put("next", self._prepared(beside, header.line()))
            os.close(self._prepared(self._path, data))
        except BaseException:
            self._go_on()
            raise
        try:
            fresh(self._path, self._learner).replace(self._path)
        except OSError:
            self._go_on()
            raise
        disk.sync_folder(self._path.parent)  # before the journal: the order matters
        fresh(beside, self._learner).replace(beside)
        self._files.rename("next", "journal")
        disk.sync_folder(self._path.parent)
        self._header, self._chain, self._records = header, header.chain, 0
        self._journal = Tail(self._files["journal"], len(header.line()))
        self._known[str(beside)] = places.identity(self._files["journal"])
        self._known[str(self._path)] = places.identity(self._path)
        self._patience = 0
        self._busy = False

    def close(self) -> None:
        """Give up the files and the lock; more than once does no harm."""
        self._close()

    def _begin(self, *, settled: bool = True, unmoved: bool = True) -> None:
        """Refuse if file and memory may have lost step; otherwise say that they may."""
        self._require_open()
        if self._busy or (settled and self._last is not None):
            raise ReloadNeededError(
                "path",
                "may be ahead of this learner, because a write or a call was interrupted; reload "
                "it from the file",
            )
        if unmoved:
            places.require_unmoved(self._known)
        self._busy = True

    def _require_open(self) -> None:
        if self._files.closed:
            raise ReloadNeededError("path", "was closed; reload the learner from the file")

    def _append(self, tail: Tail, line: bytes) -> None:
        before = tail.size
        try:
            tail.append(line)
        except BaseException:
            if tail.sound and tail.size == before:
                self._busy = False
            raise

    def _prepared(self, path: Path, data: bytes) -> int:
        """The next version of a file, ready to take its place."""
        coming = fresh(path, self._learner)
        coming.unlink(missing_ok=True)
        return disk.written(coming, data)

    def _go_on(self) -> None:
        """Nothing was replaced: clear up, and go on as before."""
        self._patience = 2 * self._records
        self._files.drop("next")
        for place in (self._path, companion(self._path, "journal")):
            with suppress(OSError):  # it is removed before the next one is made
                fresh(place, self._learner).unlink(missing_ok=True)
        self._busy = False

    def __repr__(self) -> str:
        return f"Keeper(path={str(self._path)!r}, records={self._records}, noted={self._noted})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: a lock has one holder."""
        raise TypeError("a kept learner cannot be copied or pickled; open it again")


def _next(
    body: dict[str, Any], *, generation: int, ledger: str, before: str | None
) -> tuple[dict[str, Any], Header]:
    """A snapshot's body with its place in the order of things, and its journal's header."""
    marked = {**body, KEPT: {"generation": generation, "ledger": ledger, "journal": before}}
    snapshot = storage.digest(marked)
    return marked, Header(generation=generation, snapshot=snapshot, ledger=ledger)


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    """What `_next` added."""
    if KEPT not in body:
        raise StateFileError(
            "path",
            "is a snapshot without the mark of a learner that is kept, so nobody can tell whether "
            "it is the newest; start a new learner",
        )
    kept = body[KEPT]
    if not isinstance(kept, dict) or kept.keys() != {"generation", "ledger", "journal"}:
        raise _stranger("snapshot")
    if type(kept["generation"]) is not int or kept["generation"] < 1:
        raise _stranger("snapshot")
    return kept


def _empty(header: Header) -> Journal:
    return Journal(header, [], header.chain, len(header.line()))


def _past(found: Journal, body: dict[str, Any], kept: dict[str, Any], ledger: Ledger) -> Journal:
    """The journal, if it goes on from this snapshot; an empty one if the snapshot contains it."""
    if ledger.root != kept["ledger"]:
        raise _stranger("ledger")
    if found.header.ledger != ledger.root:
        raise _stranger("journal")
    header = Header(
        generation=kept["generation"], snapshot=storage.digest(body), ledger=ledger.root
    )
    if found.header == header:
        return found
    if found.header.generation > header.generation:
        raise RewoundStateError(
            "path",
            "is an older snapshot than its journal goes on from; restore the newest one, or start "
            "a new learner",
        )
    # A crash between the two steps of `compact` leaves the journal of the snapshot before, whose
    # last digest the new snapshot names.
    if found.header.generation == header.generation - 1 and found.chain == kept["journal"]:
        return _empty(header)
    raise CorruptFileError(
        "path",
        "has a journal that goes on from another snapshot; restore the newest journal, or start a "
        "new learner",
    )


def _tidied(target: Path, files: Handles, found: Journal, past: Journal, ledger: Ledger) -> int:
    """Clear away what a crash left; the size of the ledger's file after that."""
    beside = companion(target, "journal")
    places.tighten(target)
    for place in (target, beside):
        fresh(place, ledger.learner).unlink(missing_ok=True)
    if past is not found:
        coming = fresh(beside, ledger.learner)
        files.put("journal", disk.written(coming, past.header.line()))
        coming.replace(beside)
        disk.sync_folder(target.parent)
    whole = os.fstat(files["ledger"]).st_size - ledger.torn
    for name, size in (("journal", past.size), ("ledger", whole)):
        if os.fstat(files[name]).st_size > size:
            Tail(files[name], size).cut(size)
    return whole


def _require_companions(target: Path) -> None:
    """Say which file is missing, before a lock is made beside a file that is no kept learner."""
    for name in ("journal", "ledger"):
        place = companion(target, name)
        if not place.exists():
            _kept(storage.read(target))
            raise places.missing(place)


def _stranger(what: str) -> CorruptFileError:
    return CorruptFileError(
        "path",
        f"has a {what} that does not belong to its other files; restore the right one, or start "
        "a new learner",
    )
