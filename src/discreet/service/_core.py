"""What the service does, without HTTP: it decides, and takes in rewards. It never sees the curator.

A `Core` lives in a ranker's process and event loop. `Catalogue` is what it knows, `Administration`
what administrators do with it.
"""

import asyncio
import contextlib
import hmac
import time
import uuid
from collections.abc import Callable
from typing import NamedTuple

from discreet.errors import StoreError
from discreet.release._ranker import Ranker
from discreet.service import _keys as keys
from discreet.service._administration import Administration
from discreet.service._bandit import Bandit, Scored
from discreet.service._bodies import RankAnswer, RankRequest, Reward, ServiceError, Verdict
from discreet.service._committer import Committer
from discreet.service._database import Database
from discreet.service._events import Decided, Full, Repeated
from discreet.service._hashes import hashes
from discreet.service._witness import Witness
from discreet.service._worker import Worker

_AGAIN = 0.5  # seconds after which a database that did not answer at the start is tried again


class Decision(NamedTuple):
    """An action that was chosen, and is not written down yet."""

    bandit: Bandit
    request: RankRequest
    scored: Scored
    decided: Decided

    def answer(self) -> RankAnswer:
        """The answer to the rank request."""
        return self.scored.answer(self.request, self.decided.event_id, self.decided.choice)

    def unlearned(self) -> RankAnswer:
        """The answer when the commit's outcome is unknown.

        Its event id must never collect a reward for another action. An id of the service's own is
        safe: if it was stored, it was with this action. An id of the client's may belong to an
        earlier try with another action, so the answer gets a new id that belongs to no event.
        """
        known = self.decided.event_id if self.decided.fresh else uuid.uuid4().hex
        return self.scored.answer(self.request, known, self.decided.choice)


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
        self._given_secret = secret

    async def start(self, patience: float = 0.0) -> str | None:
        """Connect, and look for the first time.

        Args:
            patience: seconds in which a database that does not answer is tried again.

        Returns:
            The text of a new administrator's key, if there was none; it is not stored.
        """
        self._committer = Committer(self._database, self._clock)
        self._reader = Worker("reader", self._handle_reads)
        await self._first_look(time.monotonic() + patience)
        shown = None
        if not self.still_valid("environment") and not any(
            "admin" in key.scopes and key.bandit is None for key in await self.keys()
        ):
            _, shown = await self.create_key(
                name="administrator", scopes=["admin"], bandit=None, who="first start"
            )
        self._looking = asyncio.create_task(self._keep_looking())
        return shown

    async def _first_look(self, deadline: float) -> None:
        """Read what a ranker has to know, from a database that may come up later than this."""
        secret = self._given_secret
        while True:
            try:
                self._hashes = await self._committer.work(lambda one: hashes(one, secret))
                return await self.look()
            except StoreError:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_AGAIN)

    async def close(self) -> None:
        """Finish what was acknowledged, and let go of the database."""
        self._looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._looking
        await self._committer.close()
        await self._reader.close()

    async def rank(self, name: str, request: RankRequest, caller: str) -> RankAnswer:
        """Choose an action, and write that down before saying so.

        Args:
            name: of the bandit.
            request: the person, and what there is to choose from.
            caller: the id of the key that asks. It alone is answered again.

        Raises:
            ServiceError: the request cannot be answered; nothing was written then.
            StoreError: the database does not answer; the event may be there or not. A client that
                gave an ``event_id`` asks again.
        """
        return await self.write_down(self.decide(name, request, caller))

    def decide(self, name: str, request: RankRequest, caller: str) -> "Decision":
        """Choose an action. Nobody may be told before it is written down; see `write_down`."""
        bandit = self.bandit(name)
        bandit.require_running()
        scored = bandit.scored(request)
        return Decision(bandit, request, scored, self._decided(bandit, request, scored, caller))

    async def write_down(self, decision: "Decision") -> RankAnswer:
        """Make a decision durable; what to answer. It raises what `rank` does."""
        outcome = await self._committer.rank(decision.bandit.number, decision.decided)
        if isinstance(outcome, Full):
            raise ServiceError(
                409,
                "HorizonReached",
                "This bandit has had as many events as its horizon; its guarantee covers no more.",
            )
        if isinstance(outcome, Repeated):
            return await self._again(decision, outcome)
        return decision.answer()

    def _decided(
        self, bandit: Bandit, request: RankRequest, scored: Scored, caller: str
    ) -> Decided:
        rule, choice = bandit.spec.reward, scored.drawn()
        subject, fresh = request.subject, request.event_id is None
        return Decided(
            event_id=request.event_id or uuid.uuid4().hex,
            fresh=fresh,
            wait=rule.wait_seconds,
            active=not request.defer,
            features=scored.rows[choice].astype("<f8", copy=False).tobytes(),
            otherwise=rule.default,
            subject=None if subject is None else self._hashes.subject(bandit.name, subject),
            request=b"" if fresh else self._hashes.request(request, caller),
            choice=choice,
            release=scored.number,
        )

    async def _again(self, decision: "Decision", before: Repeated) -> RankAnswer:
        """The answer to a request that was answered before."""
        bandit, request, decided = decision.bandit, decision.request, decision.decided
        if before.request is None or not hmac.compare_digest(before.request, decided.request):
            raise ServiceError(
                409,
                "EventExists",
                "There is an event with this id already, of another request or key, or closed; "
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
        bandit.require_running()
        rule = bandit.spec.reward
        return await self._committer.rewards(
            bandit.number, rewards, (rule.low, rule.high), adding=rule.aggregation == "sum"
        )

    async def activate(self, name: str, event_id: str) -> None:
        """Let a deferred event count; ServiceError 404 if there is none."""
        bandit = self.bandit(name)
        bandit.require_running()
        if not await self._committer.activate(bandit.number, event_id):
            raise ServiceError(404, "EventNotFound", "There is no event with this id.")
