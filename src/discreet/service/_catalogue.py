"""What a ranker knows: bandits, their releases, keys. It looks at the database now and then.

It remembers the last release that it saw of every bandit and refuses an older or another one, and
fewer events than there were: then the database was restored from a backup. It never forgets that.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

from discreet.errors import DiscreetError, RewoundStateError, StoreError
from discreet.release import Release
from discreet.release._release import fingerprint
from discreet.service._bandit import Bandit, make_ready
from discreet.service._bodies import ServiceError
from discreet.service._cards import joined_card
from discreet.service._database import Connection, Database
from discreet.service._keys import Key, Keyring
from discreet.service._spec import read_spec
from discreet.service._witness import Witness
from discreet.service._worker import Worker

_LOOK = 0.25  # seconds between two looks at the database
_AGAIN = 0.1  # seconds from one look to the next, for something that was not there
_STALE = 15.0  # seconds without a sign of the writer, after which it is reported
_log = logging.getLogger("discreet.service")


class Catalogue:
    """All that is public, as one process knows it.

    Args:
        database: the service's tables.
        keyring: the keys that are valid.
        witness: what remembers what was shown.
        clock: the time, in seconds since 1970.
    """

    _reader: Worker

    def __init__(
        self,
        database: Database,
        *,
        keyring: Keyring,
        witness: Witness,
        clock: Callable[[], float],
    ) -> None:
        """Use `Core`."""
        self._database = database
        self._keyring = keyring
        self._witness = witness
        self._clock = clock
        self._bandits: dict[str, Bandit] = {}
        self._reading: Connection | None = None
        self._look_lock = asyncio.Lock()
        self._looked_at = self._writer_seen = 0.0
        self._began_at = -_AGAIN  # when the last look began, whatever came of it
        self._unreachable = ""

    async def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query, on a connection for reading."""
        rows: list[tuple[Any, ...]] = await self._reader.ask((query, values))
        return rows

    def _handle_reads(self, queries: list[Any] | None) -> list[Any]:
        """What the reader's thread does."""
        if queries is None:
            if self._reading is not None:
                self._reading.close()
            return []
        if self._reading is None:
            self._reading = self._database.connect()
        return [self._reading.execute(*query) for query in queries]

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            try:
                await self.look()
            except StoreError as error:
                self._unreachable = str(error)
            except Exception as error:  # noqa: BLE001  # it looks again, whatever it was
                _log.error("look", extra={"kind": type(error).__name__})

    async def look(self) -> None:
        """Take in what the database has that is new: bandits, releases, keys, states.

        One look at a time: what an earlier one read must not be taken in after a later one, and
        be mistaken for a database that was restored from a backup.
        """
        async with self._look_lock:
            await self._look()

    async def _look(self) -> None:
        self._began_at = time.monotonic()
        # Keys first: one that was revoked must not stay valid because of trouble further down.
        known = await self._read(
            "SELECT id, name, scopes, bandit, digest, created FROM service_key"
        )
        self._keyring.replace(key_of(*row) for row in known)
        rows = await self._read(
            "SELECT b.id, b.name, b.spec, b.created, b.room, b.state, b.reason, b.events, "
            "b.closed, r.number, r.digest FROM service_bandit b "
            "LEFT JOIN service_release r ON r.bandit = b.id AND r.number = "
            "(SELECT MAX(number) FROM service_release l WHERE l.bandit = b.id) ORDER BY b.id"
        )
        for row in rows:
            try:
                await self._look_at(*row)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001  # of this bandit; the others go on
                _log.error("look", extra={"bandit": row[0], "kind": type(error).__name__})
        names = {row[1] for row in rows}
        for name in self._bandits.keys() - names:
            self._rewind(self._bandits[name], "it is no longer in the database")
        beat = await self._read("SELECT value FROM service_setting WHERE name = 'writer'")
        self._writer_seen = float(bytes(beat[0][0])) if beat else 0.0
        self._looked_at = time.monotonic()
        self._unreachable = ""

    async def look_again(self) -> None:
        """Look now for what is not known here: another ranker may have made it a moment ago.

        So the look must begin after this call. However many ask at the same time, there is one look
        every tenth of a second, and it answers all of them, also if the database does not answer.
        """
        asked = time.monotonic()
        async with self._look_lock:
            if self._began_at >= asked:
                return
            await asyncio.sleep(self._began_at + _AGAIN - time.monotonic())
            with contextlib.suppress(StoreError):
                await self._look()

    async def _look_at(  # noqa: PLR0917  # the columns in order
        self,
        number: int,
        name: str,
        spec: bytes,
        created: float,
        room: int,
        state: str,
        reason: str,
        count: int,
        closed: int,
        last: int,
        digest: str,
    ) -> None:
        bandit = self._bandits.get(name)
        if bandit is None:
            release, made = await self._release(number, last)
            first = read_spec(bytes(spec))
            bandit = await asyncio.to_thread(Bandit, number, first, created, room, release)
            bandit.made = made
            self._bandits[name] = bandit
        if bandit.rewound:
            return
        try:
            before = await self._contradiction(bandit, number, count)
        except RewoundStateError as error:  # the witness cannot be read now; it may be again
            bandit.state, bandit.state_reason = "rewound", str(error)
            return
        before = before or await self._another_release(bandit, last, digest)
        if before is None and last != bandit.ranker.release.number:
            release, made = await self._release(number, last)
            await asyncio.to_thread(make_ready, release, bandit.ranker.policy)
            try:
                bandit.ranker.update(release)
            except DiscreetError as error:
                before = str(error)
            else:
                bandit.digest, bandit.made = fingerprint(release), made
        if before is not None:
            self._rewind(bandit, before)
            return
        bandit.state, bandit.state_reason = state, reason
        bandit.events, bandit.closed = count, closed
        bandit.spec = read_spec(bytes(spec))

    async def _contradiction(self, bandit: Bandit, number: int, count: int) -> str | None:
        """Why the database must be older than what was seen before, if it must be.

        Raises:
            RewoundStateError: the witness cannot be read.
        """
        testimony = self._witness.of(number)
        if testimony is not None and testimony.rows > count:
            # It may have been written since the count was read, and what is found is for ever.
            rows = await self._read("SELECT events FROM service_bandit WHERE id = ?", (number,))
            if not rows or testimony.rows > rows[0][0]:
                folder = self._witness.folder
                return f"there are fewer events than the witness in {folder} remembers"
        if count < bandit.events or number != bandit.number:
            return "there were more events before"
        return None

    async def _another_release(self, bandit: Bandit, last: int, digest: str) -> str | None:
        """Why the release that was seen last is not the one that is stored under its number now.

        A database that was restored, and went on from there, has others of the same numbers.
        """
        seen = bandit.ranker.release.number
        if last != seen:
            rows = await self._read(
                "SELECT digest FROM service_release WHERE bandit = ? AND number = ?",
                (bandit.number, seen),
            )
            digest = rows[0][0] if rows else ""
        return None if digest == bandit.digest else f"release {seen} was another one before"

    @staticmethod
    def _rewind(bandit: Bandit, reason: str) -> None:
        """Refuse a bandit for as long as this process lives: what it saw cannot be unseen."""
        bandit.rewound = True
        bandit.state, bandit.state_reason = "rewound", reason

    async def _release(self, bandit: int, number: int) -> tuple[Release, float]:
        rows = await self._read(
            "SELECT document, made FROM service_release WHERE bandit = ? AND number = ?",
            (bandit, number),
        )
        return await asyncio.to_thread(Release.from_json, bytes(rows[0][0])), rows[0][1]

    def health(self) -> dict[str, Any]:
        """What is stale: the database, the writer, bandits."""
        found: dict[str, Any] = {"database": self._unreachable or "ok", "writer": "ok"}
        if time.monotonic() - self._looked_at > _STALE:
            found["database"] = self._unreachable or "it has not answered for a while"
        if self._clock() - self._writer_seen > _STALE:
            found["writer"] = (
                "no sign of it for a while; events are kept, and closed when it is back"
            )
        found["bandits"] = {  # why is for those who may read them
            one.name: one.state for one in self._bandits.values() if one.state != "running"
        }
        found["ready"] = found["database"] == "ok"
        return found

    def bandits(self) -> list[Bandit]:
        """All bandits."""
        return list(self._bandits.values())

    def knows(self, name: str) -> bool:
        """Whether there is a bandit of this name, as far as this process has seen."""
        return name in self._bandits

    def bandit(self, name: str) -> Bandit:
        """The bandit of a name; ServiceError 404 if there is none."""
        try:
            return self._bandits[name]
        except KeyError:
            raise ServiceError(404, "BanditNotFound", "There is no bandit of this name.") from None

    async def releases(self, name: str) -> list[dict[str, Any]]:
        """All releases in order: number, rows, digest, and when they were made."""
        rows = await self._read(
            "SELECT number, held, digest, made FROM service_release WHERE bandit = ? "
            "ORDER BY number",
            (self.bandit(name).number,),
        )
        columns = ("number", "rows", "digest", "made")
        return [dict(zip(columns, row, strict=True)) for row in rows]

    async def release_document(self, name: str, number: int | None) -> bytes:
        """A release as JSON; the last one this process knows of if no number is given."""
        bandit = self.bandit(name)
        bandit.require_running()
        wanted = bandit.ranker.release.number if number is None else number
        rows = await self._read(
            "SELECT document FROM service_release WHERE bandit = ? AND number = ?",
            (bandit.number, wanted),
        )
        if not rows:
            raise ServiceError(404, "ReleaseNotFound", "There is no release of this number.")
        return bytes(rows[0][0])

    async def ledger_lines(self, name: str) -> bytes:
        """The learner's ledger, line by line, as `discreet.Ledger.parse` checks it."""
        rows = await self._read(
            "SELECT line FROM service_ledger WHERE bandit = ? ORDER BY number",
            (self.bandit(name).number,),
        )
        return b"".join(bytes(row[0]) for row in rows)

    async def card(self, name: str) -> dict[str, Any]:
        """The privacy card, with what the joiner adds to it."""
        bandit = self.bandit(name)
        rows = await self._read(
            "SELECT line FROM service_ledger WHERE bandit = ? AND number = 0", (bandit.number,)
        )
        first = bytes(rows[0][0]) if rows else b""
        return await asyncio.to_thread(joined_card, bandit, first)

    async def counts(self, name: str) -> dict[str, int]:
        """How many events there were, are closed, and wait: all of it follows from ranks' times."""
        rows = await self._read(
            "SELECT events, closed FROM service_bandit WHERE id = ?", (self.bandit(name).number,)
        )
        count, closed = rows[0]
        return {"events": count, "closed": closed, "open": count - closed}


def key_of(  # noqa: PLR0917  # the columns in order
    identity: str, name: str, scopes: str, bandit: str | None, digest: bytes, created: float
) -> Key:
    """A key as it is stored."""
    return Key(
        id=identity,
        name=name,
        scopes=tuple(scopes.split()),
        bandit=bandit,
        digest=bytes(digest),
        created=created,
    )
