"""What administrators do: bandits, keys, erasures. Each call is a line of the audit log."""

import asyncio
import time
import uuid
from typing import Any

import msgspec

from discreet.release._release import fingerprint
from discreet.service import _keys as keys
from discreet.service._bandit import Bandit
from discreet.service._bodies import BanditSpec, Erased, ServiceError
from discreet.service._catalogue import Catalogue, key_of
from discreet.service._committer import Committer
from discreet.service._database import Connection
from discreet.service._hashes import Hashes
from discreet.service._keys import Key
from discreet.service._spec import checked

_PATIENCE = 10.0  # seconds for which an erasure waits for the writer


class Administration(Catalogue):
    """A catalogue that can be changed."""

    _committer: Committer
    _hashes: Hashes

    async def create_bandit(self, spec: BanditSpec, *, who: str) -> Bandit:
        """Make a bandit. It can be asked at once; the writer makes its learner meanwhile.

        Args:
            spec: what it should be.
            who: is asking, for the audit log.

        Raises:
            ServiceError: it cannot be, or there is one of this name.
        """
        full, release = await asyncio.to_thread(checked, spec)
        now, document = self._clock(), msgspec.json.encode(release.to_json())
        digest = fingerprint(release)
        room = release.mechanism.setting.horizon

        def work(connection: Connection) -> None:
            connection.lock_all()
            if connection.execute("SELECT 1 FROM service_bandit WHERE name = ?", (spec.name,)):
                raise ServiceError(409, "BanditExists", "There is a bandit of this name already.")
            found = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM service_bandit")
            connection.execute(
                "INSERT INTO service_bandit (id, name, spec, created, room, events, closed, state, "
                "reason) VALUES (?, ?, ?, ?, ?, 0, 0, 'running', '')",
                (found[0][0], spec.name, msgspec.json.encode(full), now, room),
            )
            connection.execute(
                "INSERT INTO service_release (bandit, number, held, digest, made, document) "
                "VALUES (?, 0, 0, ?, ?, ?)",
                (found[0][0], digest, now, document),
            )
            _note(connection, now, who, "create bandit", spec.name)

        await self._committer.work(work)
        await self.look()
        return self.bandit(spec.name)

    async def configure(
        self,
        name: str,
        *,
        wait_seconds: float | None = None,
        default: float | None = None,
        aggregation: str | None = None,
        who: str,
    ) -> Bandit:
        """Change how rewards are waited for.

        Events that wait keep their deadline and their default; aggregation counts at once.

        Args:
            name: of the bandit.
            wait_seconds: how long after its rank an event is closed.
            default: the reward of an event for which none came.
            aggregation: which of several rewards counts.
            who: is asking, for the audit log.
        """
        bandit = self.bandit(name)
        asked = {"wait_seconds": wait_seconds, "default": default, "aggregation": aggregation}
        changes = {key: value for key, value in asked.items() if value is not None}
        now = self._clock()

        def work(connection: Connection) -> None:
            connection.lock([bandit.number])
            found = connection.execute(
                "SELECT spec FROM service_bandit WHERE id = ?", (bandit.number,)
            )
            connection.execute(
                "UPDATE service_bandit SET spec = ? WHERE id = ?",
                (msgspec.json.encode(_changed(bytes(found[0][0]), changes)), bandit.number),
            )
            _note(connection, now, who, f"configure {', '.join(sorted(changes))}", name)

        await self._committer.work(work)
        await self.look()
        return self.bandit(name)

    async def erase(self, name: str, subject: str, *, who: str) -> Erased:
        """Have the writer erase all that is a person's and not released yet.

        Args:
            name: of the bandit.
            subject: who, as given with ranks.
            who: is asking, for the audit log, which does not name the person.

        Returns:
            What was erased; nulls if the writer did not answer in a while. It will be done then.
        """
        bandit = self.bandit(name)
        identity, digest, now = uuid.uuid4().hex, self._hashes.subject(name, subject), self._clock()

        def work(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO service_erasure (id, bandit, subject, asked, done) "
                "VALUES (?, ?, ?, ?, 0)",
                (identity, bandit.number, digest, now),
            )
            _note(connection, now, who, "erase a subject", name)

        await self._committer.work(work)
        waited = time.monotonic() + _PATIENCE
        while time.monotonic() < waited:
            found = await self._read(
                "SELECT waiting, in_batch, released FROM service_erasure WHERE id = ? AND done = 1",
                (identity,),
            )
            if found:
                return Erased(open=found[0][0], in_batch=found[0][1], released=found[0][2])
            await asyncio.sleep(0.05)
        return Erased(open=None, in_batch=None, released=None)

    def authenticate(self, text: str, *, generated: bool = False) -> Key | None:
        """Whose key this is.

        Args:
            text: of the key.
            generated: whether the administrator's, which may be one to guess, does not count.
        """
        return self._keyring.find(text, generated=generated)

    def still_valid(self, identity: str) -> Key | None:
        """The key of an id, if it was not revoked."""
        return self._keyring.still(identity)

    async def keys(self) -> list[Key]:
        """All keys, without their secrets."""
        rows = await self._read(
            "SELECT id, name, scopes, bandit, digest, created FROM service_key ORDER BY created"
        )
        return [key_of(*row) for row in rows]

    async def create_key(
        self, *, name: str, scopes: list[str], bandit: str | None, who: str
    ) -> tuple[Key, str]:
        """A new key and its text, which is shown once.

        Args:
            name: for people.
            scopes: what it may do.
            bandit: the only bandit that it is for.
            who: is asking, for the audit log.
        """
        if not name.isprintable():
            raise ServiceError(400, "BadRequest", "name: give printable characters.")
        if bandit is not None:
            if not self.knows(bandit):
                await self.look_again()
            self.bandit(bandit)
        now = self._clock()
        key, text = keys.made(name, scopes, bandit, now)

        def work(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO service_key (id, name, scopes, bandit, digest, created) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (key.id, key.name, " ".join(key.scopes), key.bandit, key.digest, now),
            )
            _note(connection, now, who, f"create key ({' '.join(key.scopes)})", key.id)

        await self._committer.work(work)
        await self.look()
        return key, text

    def lend_key(self, *, name: str, scopes: list[str]) -> str:
        """The text of a key that is stored nowhere, and valid as long as this process lives.

        Args:
            name: for people.
            scopes: what it may do.
        """
        key, text = keys.made(name, scopes, None, self._clock())
        self._keyring.lend(key)
        return text

    async def revoke_key(self, identity: str, *, who: str) -> None:
        """End a key; ServiceError 404 if there is none."""
        missing = ServiceError(404, "KeyNotFound", "There is no key of this id.")
        if not keys.is_id(identity):
            raise missing

        def work(connection: Connection) -> None:
            if not connection.execute("SELECT 1 FROM service_key WHERE id = ?", (identity,)):
                raise missing
            connection.execute("DELETE FROM service_key WHERE id = ?", (identity,))
            _note(connection, self._clock(), who, "revoke key", identity)

        await self._committer.work(work)
        await self.look()

    async def audit_log(self, limit: int = 200) -> list[dict[str, Any]]:
        """The last administrative calls, the newest first."""
        rows = await self._read(
            "SELECT at, who, what, about FROM service_audit ORDER BY at DESC LIMIT ?", (limit,)
        )
        return [dict(zip(("at", "who", "what", "about"), row, strict=True)) for row in rows]


def _changed(document: bytes, changes: dict[str, Any]) -> BanditSpec:
    """A specification with other reward rules."""
    changed = msgspec.json.decode(document)
    changed["reward"] |= changes
    try:
        full = msgspec.convert(changed, BanditSpec)
    except msgspec.ValidationError as error:
        raise ServiceError(400, "BadRequest", f"{error}.") from None
    if not full.reward.low <= full.reward.default <= full.reward.high:
        raise ServiceError(400, "BadRequest", "default must be from low to high.")
    return full


def _note(connection: Connection, at: float, who: str, what: str, about: str) -> None:
    """A line of the audit log."""
    connection.execute(
        "INSERT INTO service_audit (at, who, what, about) VALUES (?, ?, ?, ?)",
        (at, who, what, about),
    )
