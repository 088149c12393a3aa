"""What the service does, without HTTP: bandits, ranks, rewards, keys. It never sees the curator.

A `Core` lives in a ranker's process and event loop. It decides from published releases, of which
it remembers the last it saw, and refuses an older or another one.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import secrets
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from random import SystemRandom
from typing import Any

import msgspec
import numpy as np

from discreet import Ranker
from discreet.errors import DiscreetError, RewoundStateError, StoreError
from discreet.features import FeatureMap
from discreet.release import Release
from discreet.release._card import privacy_card
from discreet.release._release import fingerprint
from discreet.service import _events as events
from discreet.service import _keys as keys
from discreet.service._bodies import (
    BanditSpec,
    Erased,
    Ranked,
    RankAnswer,
    RankRequest,
    ReleaseName,
    Reward,
    ServiceError,
    Verdict,
)
from discreet.service._committer import Committer
from discreet.service._database import Connection, Database
from discreet.service._events import Decided, Full, Repeated
from discreet.service._keys import Key
from discreet.service._spec import checked, features_of, policy_from, read_spec
from discreet.service._witness import Witness

_LOOK = 0.25  # seconds between two looks at the database
_PATIENCE = 10.0  # seconds for which an erasure waits for the writer
_STALE = 15.0  # seconds without a sign of the writer, after which it is reported
_coin = SystemRandom().random
_log = logging.getLogger("discreet.service")


class Bandit:
    """A bandit, as a ranker knows it: public data only."""

    def __init__(
        self, number: int, spec: BanditSpec, created: float, room: int, release: Release
    ) -> None:
        """Use `Core.bandit`."""
        self.number = number
        self.created = created
        self.room = room
        self.features: FeatureMap = features_of(spec)
        self.state = "running"
        self.state_reason = ""
        self.ranker = Ranker(release, policy=policy_from(spec.policy or {}))
        self.made = created  # when the release was made
        self.digest: str = fingerprint(release)
        self.events = self.closed = 0
        self.spec = spec

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    def as_json(self) -> dict[str, Any]:
        """What everybody with a read key may know."""
        spec, release = self.spec, self.ranker.release
        return {
            **msgspec.to_builtins(spec),
            "dim": self.features.dim,
            "created": self.created,
            "state": self.state,
            "state_reason": self.state_reason,
            "release": {
                "number": release.number,
                "digest": self.digest,
                "rows": release.rows,
                "made": self.made,
            },
            "events": self.events,
            "closed": self.closed,
            "guarantee": str(release.guarantee),
        }

    def require_running(self) -> None:
        """Refuse to decide from what may be a restored backup."""
        if self.state == "rewound":
            raise ServiceError(
                503, "Rewound", f"This bandit was restored from a backup: {self.state_reason}."
            )


class Core:
    """The service's state in one process. Make it inside its event loop.

    Args:
        database: the service's tables.
        administrator: the text of the administrator's key, if it was given from outside.
        secret: the key for hashes of subjects; one that is in the tables if left out.
        witness: what remembers what was shown.
        clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        database: Database,
        *,
        administrator: str | None = None,
        secret: bytes | None = None,
        witness: Witness | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Use `start` next."""
        self._database = database
        self._clock = clock
        self._witness = witness or Witness(None)
        self._given_secret = secret
        self._keyring = keys.Keyring(
            None if administrator is None else keys.administrator(administrator)
        )
        self._bandits: dict[str, Bandit] = {}
        self._reading: Connection | None = None
        self._read_lock = asyncio.Lock()
        self._old_rankers: dict[tuple[int, int], Ranker] = {}
        self._looked_at = self._writer_seen = 0.0
        self._unreachable = ""
        self._known_keys: dict[str, Key] = {}

    async def start(self) -> str | None:
        """Connect, and look for the first time.

        Returns:
            The text of a new administrator's key, if there was none; it is not stored.
        """
        self._committer = Committer(self._database, self._clock)
        self._secret = self._given_secret or await self._committer.work(_secret)
        await self.look()
        shown = None
        if not self._keyring.still("environment") and not any(
            "admin" in key.scopes for key in await self.keys()
        ):
            _, shown = await self.create_key(
                name="administrator", scopes=["admin"], bandit=None, who="first start"
            )
        self._looking = asyncio.create_task(self._keep_looking())
        return shown

    async def close(self) -> None:
        """Finish what was acknowledged, and let go of the database."""
        self._looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._looking
        await self._committer.close()
        async with self._read_lock:
            if self._reading is not None:
                self._reading.close()

    # Looking at the database

    async def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query, on a connection for reading."""

        def work() -> list[tuple[Any, ...]]:
            if self._reading is None:
                self._reading = self._database.connect()
            return self._reading.execute(query, values)

        async with self._read_lock:
            return await asyncio.to_thread(work)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            try:
                await self.look()
            except StoreError as error:
                self._unreachable = str(error)
            except Exception:
                _log.exception("look")

    async def look(self) -> None:
        """Take in what the database has that is new: bandits, releases, keys, states."""
        rows = await self._read(
            "SELECT b.id, b.name, b.spec, b.created, b.room, b.state, b.reason, b.events, "
            "b.closed, (SELECT MAX(number) FROM service_release r WHERE r.bandit = b.id) "
            "FROM service_bandit b ORDER BY b.id"
        )
        for row in rows:
            await self._look_at(*row)
        names = {row[1] for row in rows}
        for name in self._bandits.keys() - names:
            self._rewind(self._bandits[name], "it is no longer in the database")
        known = await self._read(
            "SELECT id, name, scopes, bandit, digest, created FROM service_key"
        )
        self._keyring.replace(_key(*row) for row in known)
        beat = await self._read("SELECT value FROM service_setting WHERE name = 'writer'")
        self._writer_seen = float(bytes(beat[0][0])) if beat else 0.0
        self._looked_at = time.monotonic()
        self._unreachable = ""

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
    ) -> None:
        bandit = self._bandits.get(name)
        if bandit is None:
            release, made = await self._release(number, last)
            first = read_spec(bytes(spec))
            bandit = await asyncio.to_thread(Bandit, number, first, created, room, release)
            bandit.made = made
            self._bandits[name] = bandit
        bandit.state, bandit.state_reason = state, reason
        testimony = self._witness.of(number)
        if testimony is not None and testimony.rows > count:
            self._rewind(bandit, "the witness remembers more events than there are")
        if count < bandit.events or number != bandit.number:
            self._rewind(bandit, "there were more events before")
            return
        bandit.events, bandit.closed = count, closed
        bandit.spec = read_spec(bytes(spec))
        if last != bandit.ranker.release.number:
            release, made = await self._release(number, last)
            await asyncio.to_thread(lambda: release.posterior)  # worked out once, not in a request
            try:
                bandit.ranker.update(release)
            except (RewoundStateError, DiscreetError) as error:
                self._rewind(bandit, str(error))
                return
            bandit.digest, bandit.made = fingerprint(release), made

    @staticmethod
    def _rewind(bandit: Bandit, reason: str) -> None:
        bandit.state, bandit.state_reason = "rewound", reason

    async def _release(self, bandit: int, number: int) -> tuple[Release, float]:
        rows = await self._read(
            "SELECT document, made FROM service_release WHERE bandit = ? AND number = ?",
            (bandit, number),
        )
        return await asyncio.to_thread(Release.from_json, bytes(rows[0][0])), rows[0][1]

    # Health

    def health(self) -> dict[str, Any]:
        """What is stale: the database, the writer, bandits."""
        found: dict[str, Any] = {"database": self._unreachable or "ok", "writer": "ok"}
        if time.monotonic() - self._looked_at > _STALE:
            found["database"] = self._unreachable or "it has not answered for a while"
        if self._clock() - self._writer_seen > _STALE:
            found["writer"] = (
                "no sign of it for a while; events are kept, and closed when it is back"
            )
        found["bandits"] = {
            one.name: f"{one.state}: {one.state_reason}"
            for one in self._bandits.values()
            if one.state != "running"
        }
        found["ready"] = found["database"] == "ok"
        return found

    # Bandits

    def bandits(self) -> list[Bandit]:
        """All bandits."""
        return list(self._bandits.values())

    def bandit(self, name: str) -> Bandit:
        """The bandit of a name; ServiceError 404 if there is none."""
        try:
            return self._bandits[name]
        except KeyError:
            raise ServiceError(404, "BanditNotFound", "There is no bandit of this name.") from None

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
        """Change how rewards of new events are waited for; events that wait already stay as they are.

        Args:
            name: of the bandit.
            wait_seconds: how long after its rank an event is closed.
            default: the reward of an event for which none came.
            aggregation: which of several rewards counts.
            who: is asking, for the audit log.
        """
        spec = self.bandit(name).spec
        asked = {"wait_seconds": wait_seconds, "default": default, "aggregation": aggregation}
        changes = {key: value for key, value in asked.items() if value is not None}
        changed = msgspec.to_builtins(spec)
        changed["reward"] |= changes
        try:
            full = msgspec.convert(changed, BanditSpec)
        except msgspec.ValidationError as error:
            raise ServiceError(400, "BadRequest", str(error)) from None
        if not full.reward.low <= full.reward.default <= full.reward.high:
            raise ServiceError(400, "BadRequest", "default must be from low to high.")
        now = self._clock()

        def work(connection: Connection) -> None:
            connection.execute(
                "UPDATE service_bandit SET spec = ? WHERE name = ?",
                (msgspec.json.encode(full), name),
            )
            _note(connection, now, who, f"configure {', '.join(sorted(changes))}", name)

        await self._committer.work(work)
        await self.look()
        return self.bandit(name)

    # Decisions and rewards

    async def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Choose an action, and write that down before saying so.

        Args:
            name: of the bandit.
            request: the person, and what there is to choose from.

        Raises:
            ServiceError: the request cannot be answered; nothing was written then.
        """
        bandit = self.bandit(name)
        bandit.require_running()
        ranker = bandit.ranker
        release, digest = ranker.release, bandit.digest
        rows, order, probabilities = _scored(bandit, ranker, request)
        choice = _draw(order, probabilities)
        rule = bandit.spec.reward
        event_id = request.event_id or uuid.uuid4().hex
        decided = Decided(
            event_id=event_id,
            fresh=request.event_id is None,
            wait=rule.wait_seconds,
            active=not request.defer,
            features=rows[choice].astype("<f8", copy=False).tobytes(),
            otherwise=rule.default,
            subject=None if request.subject is None else self.subject_hash(name, request.subject),
            request=b"" if request.event_id is None else self._request_hash(request),
            choice=choice,
            release=release.number,
        )
        outcome = await self._committer.rank(bandit.number, decided)
        if isinstance(outcome, Full):
            raise ServiceError(
                409,
                "HorizonReached",
                "This bandit has had as many events as its horizon; its guarantee covers no more.",
            )
        if isinstance(outcome, Repeated):
            return await self._again(bandit, request, decided, outcome)
        return _answer(request, event_id, choice, order, probabilities, release.number, digest)

    async def _again(
        self, bandit: Bandit, request: RankRequest, decided: Decided, before: Repeated
    ) -> RankAnswer:
        """The answer to a request that was answered before."""
        if before.request is None or not hmac.compare_digest(before.request, decided.request):
            raise ServiceError(
                409,
                "EventExists",
                "There is an event with this id already, of another request or closed; "
                "give a new one.",
            )
        if before.release == bandit.ranker.release.number:
            ranker, digest = bandit.ranker, bandit.digest
        else:
            release, _ = await self._release(bandit.number, before.release)
            ranker = Ranker(release, policy=bandit.ranker.policy)
            digest = fingerprint(release)
        _, order, probabilities = _scored(bandit, ranker, request)
        number = before.release
        return _answer(
            request, decided.event_id, before.choice, order, probabilities, number, digest
        )

    async def rewards(self, name: str, rewards: list[Reward]) -> list[Verdict]:
        """Take in rewards; what became of each, in order."""
        bandit = self.bandit(name)
        rule = bandit.spec.reward
        return await self._committer.rewards(
            bandit.number, rewards, (rule.low, rule.high), adding=rule.aggregation == "sum"
        )

    async def activate(self, name: str, event_id: str) -> None:
        """Let a deferred event count; ServiceError 404 if there is none."""
        bandit = self.bandit(name)

        def work(connection: Connection) -> bool:
            connection.lock([bandit.number])
            return events.activate(connection, bandit.number, event_id, self._clock())

        if not await self._committer.work(work):
            raise ServiceError(404, "EventNotFound", "There is no event with this id.")

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
        identity, digest, now = uuid.uuid4().hex, self.subject_hash(name, subject), self._clock()

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

    def subject_hash(self, name: str, subject: str) -> bytes:
        """The keyed hash under which a person is known to one bandit."""
        text = name.encode() + b"\0" + subject.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._secret, digest_size=32, person=b"subject").digest()

    def _request_hash(self, request: RankRequest) -> bytes:
        text = msgspec.json.encode(request, order="deterministic")
        return hashlib.blake2b(text, key=self._secret, digest_size=16, person=b"request").digest()

    # What was released

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

    def card(self, name: str) -> dict[str, Any]:
        """The privacy card, with what the joiner adds to it."""
        bandit = self.bandit(name)
        release, rule = bandit.ranker.release, bandit.spec.reward
        card = privacy_card(release.mechanism, releases=release.number, rows=release.rows)
        card["joiner"] = (
            "One event is one row, in the order of events, closed at its deadline "
            f"{rule.wait_seconds:g} seconds after its rank, with the reward that came or "
            f"{rule.default:g}; a row of zeros if it was not activated, was erased, or is beyond "
            "its subject's cap. So whether and when a reward came is protected like the reward."
        )
        return card

    async def counts(self, name: str) -> dict[str, int]:
        """How many events there were, are closed, and wait: all of it follows from ranks' times."""
        rows = await self._read(
            "SELECT events, closed FROM service_bandit WHERE id = ?", (self.bandit(name).number,)
        )
        count, closed = rows[0]
        return {"events": count, "closed": closed, "open": count - closed}

    # Keys and the audit log

    def authenticate(self, text: str) -> Key | None:
        """Whose key this is."""
        return self._keyring.find(text)

    def still_valid(self, identity: str) -> Key | None:
        """The key of an id, if it was not revoked."""
        return self._keyring.still(identity)

    async def keys(self) -> list[Key]:
        """All keys, without their secrets."""
        rows = await self._read(
            "SELECT id, name, scopes, bandit, digest, created FROM service_key ORDER BY created"
        )
        return [_key(*row) for row in rows]

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
        if bandit is not None:
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

    async def revoke_key(self, identity: str, *, who: str) -> None:
        """End a key; ServiceError 404 if there is none."""

        def work(connection: Connection) -> None:
            if not connection.execute("SELECT 1 FROM service_key WHERE id = ?", (identity,)):
                raise ServiceError(404, "KeyNotFound", "There is no key of this id.")
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


def _scored(
    bandit: Bandit, ranker: Ranker, request: RankRequest
) -> tuple[np.ndarray[Any, Any], list[int], np.ndarray[Any, Any]]:
    """The rows, the actions on offer in order, and how probable each is."""
    ids = [action.id for action in request.actions]
    if len(set(ids)) < len(ids):
        raise ServiceError(400, "BadRequest", "actions: two have the same id; give each its own.")
    excluded = frozenset(request.exclude or ())
    places = [place for place, one in enumerate(ids) if one not in excluded]
    if not places:
        raise ServiceError(400, "BadRequest", "exclude: leaves no action to choose.")
    actions = [{"id": action.id, "features": action.features or {}} for action in request.actions]
    try:
        rows = bandit.features(request.context, actions)
        ranking = ranker.rank(rows, among=places if excluded else None)
    except DiscreetError as error:
        raise ServiceError(400, "BadRequest", str(error)) from None
    except RecursionError:
        raise ServiceError(400, "BadRequest", "context: is nested too deeply.") from None
    order = [one.index for one in ranking]
    return rows, order, np.array([one.probability for one in ranking])


def _draw(order: list[int], probabilities: np.ndarray[Any, Any]) -> int:
    """An action, drawn with these probabilities."""
    reached = list(accumulate(probabilities.tolist()))
    place = bisect_right(reached, _coin() * reached[-1])
    return order[min(place, int(np.count_nonzero(probabilities)) - 1)]


def _answer(
    request: RankRequest,
    event_id: str,
    choice: int,
    order: list[int],
    probabilities: np.ndarray[Any, Any],
    number: int,
    digest: str,
) -> RankAnswer:
    chances = probabilities.tolist()
    return RankAnswer(
        event_id=event_id,
        action_id=request.actions[choice].id,
        ranking=[
            Ranked(request.actions[place].id, chance)
            for place, chance in zip(order, chances, strict=True)
        ],
        release=ReleaseName(number, digest),
    )


def _key(  # noqa: PLR0917  # the columns in order
    identity: str, name: str, scopes: str, bandit: str | None, digest: bytes, created: float
) -> Key:
    return Key(
        id=identity,
        name=name,
        scopes=tuple(scopes.split()),
        bandit=bandit,
        digest=bytes(digest),
        created=created,
    )


def _note(connection: Connection, at: float, who: str, what: str, about: str) -> None:
    """A line of the audit log."""
    connection.execute(
        "INSERT INTO service_audit (at, who, what, about) VALUES (?, ?, ?, ?)",
        (at, who, what, about),
    )


def _secret(connection: Connection) -> bytes:
    """The key for hashes, made when it is first asked for."""
    connection.execute(
        "INSERT INTO service_setting (name, value) VALUES ('secret', ?) "
        "ON CONFLICT (name) DO NOTHING",
        (secrets.token_bytes(32),),
    )
    return bytes(
        connection.execute("SELECT value FROM service_setting WHERE name = 'secret'")[0][0]
    )


def ledger_summary(lines: bytes) -> dict[str, Any]:
    """What `GET .../ledger` says: every line is checked."""
    from discreet.release.ledger import Ledger  # noqa: PLC0415  # for this one call

    if not lines:
        return {"learner": None, "releases": 0, "rows": 0, "head": None, "intact": True,
                "entries": []}  # fmt: skip
    ledger = Ledger.parse(lines)
    return {
        "learner": ledger.learner,
        "releases": len(ledger),
        "rows": ledger.rows,
        "head": ledger.head,
        "intact": True,
        "entries": [
            {"number": one.number, "rows": one.rows, "sha256": one.sha256} for one in ledger.entries
        ],
    }
