"""What the service does, without HTTP: it decides, and takes in rewards. It never sees the curator.

A `Core` lives in a ranker's process and event loop. `Catalogue` is what it knows, `Administration`
what administrators do with it.
"""

import asyncio
import contextlib
import hashlib
import hmac
import secrets
import time
import uuid
from collections.abc import Callable

import msgspec

from discreet.release._ranker import Ranker
from discreet.service import _events as events
from discreet.service import _keys as keys
from discreet.service._administration import Administration
from discreet.service._bandit import Bandit, Scored
from discreet.service._bodies import RankAnswer, RankRequest, Reward, ServiceError, Verdict
from discreet.service._committer import Committer
from discreet.service._database import Connection, Database
from discreet.service._events import Decided, Full, Repeated
from discreet.service._witness import Witness


class Core(Administration):
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
        root = None if administrator is None else keys.administrator(administrator)
        super().__init__(
            database,
            keyring=keys.Keyring(root),
            witness=witness or Witness(None),
            clock=clock,
        )
        self._secret = secret or b""

    async def start(self) -> str | None:
        """Connect, and look for the first time.

        Returns:
            The text of a new administrator's key, if there was none; it is not stored.
        """
        self._committer = Committer(self._database, self._clock)
        self._secret = self._secret or await self._committer.work(_secret)
        await self.look()
        shown = None
        if not self.still_valid("environment") and not any(
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

    async def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Choose an action, and write that down before saying so.

        Args:
            name: of the bandit.
            request: the person, and what there is to choose from.

        Raises:
            ServiceError: the request cannot be answered; nothing was written then.
            StoreError: the database does not answer; the event may be there or not. A client that
                gave an ``event_id`` asks again.
        """
        bandit = self.bandit(name)
        bandit.require_running()
        scored = bandit.scored(request)
        decided = self._decided(bandit, request, scored)
        outcome = await self._committer.rank(bandit.number, decided)
        if isinstance(outcome, Full):
            raise ServiceError(
                409,
                "HorizonReached",
                "This bandit has had as many events as its horizon; its guarantee covers no more.",
            )
        if isinstance(outcome, Repeated):
            return await self._again(bandit, request, decided, outcome)
        return scored.answer(request, decided.event_id, decided.choice)

    def unlearned(self, name: str, request: RankRequest) -> RankAnswer:
        """A decision that is not written down, and never learned from."""
        bandit = self.bandit(name)
        bandit.require_running()
        scored = bandit.scored(request)
        return scored.answer(request, request.event_id or uuid.uuid4().hex, scored.drawn())

    def _decided(self, bandit: Bandit, request: RankRequest, scored: Scored) -> Decided:
        rule, choice = bandit.spec.reward, scored.drawn()
        subject, fresh = request.subject, request.event_id is None
        return Decided(
            event_id=request.event_id or uuid.uuid4().hex,
            fresh=fresh,
            wait=rule.wait_seconds,
            active=not request.defer,
            features=scored.rows[choice].astype("<f8", copy=False).tobytes(),
            otherwise=rule.default,
            subject=None if subject is None else self.subject_hash(bandit.name, subject),
            request=b"" if fresh else self._request_hash(request),
            choice=choice,
            release=scored.number,
        )

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
        ranker = None
        if before.release != bandit.ranker.release.number:
            release, _ = await self._release(bandit.number, before.release)
            ranker = Ranker(release, policy=bandit.ranker.policy)
        return bandit.scored(request, ranker).answer(request, decided.event_id, before.choice)

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

    def subject_hash(self, name: str, subject: str) -> bytes:
        """The keyed hash under which a person is known to one bandit."""
        text = name.encode() + b"\0" + subject.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._secret, digest_size=32, person=b"subject").digest()

    def _request_hash(self, request: RankRequest) -> bytes:
        text = msgspec.json.encode(request, order="deterministic")
        return hashlib.blake2b(text, key=self._secret, digest_size=16, person=b"request").digest()


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
