"""The joiner: from events to rows of the learner. This is where the service's privacy is made.

Formal guarantee: row n of the learner is event n. When it is closed, and how many rows there are
at any moment, depends on the times of ranks and on the stated wait alone. What the row holds
depends on that event alone: its own action and reward, the default reward if none came, or zeros if
it was not activated, was erased, or is beyond its subject's cap. Whether an event counts towards
the cap depends on its place alone, not on what came for it. So replacing all that one person brings
to at most ``contributions_per_user`` events (what they could choose from, their rewards, whether
and when these came, whether an action was activated) replaces that many rows, and nothing else that
anybody sees. The learner's guarantee is about just that. See docs/privacy.md.

It sees raw rows, and runs in the writer's process only.
"""

import contextlib
import time
from collections.abc import Callable

import msgspec
import numpy as np

from discreet.errors import RewoundStateError
from discreet.learner import LinUCB
from discreet.release import Release
from discreet.release.ledger import Ledger
from discreet.service import _events as events
from discreet.service._database import Connection
from discreet.service._events import Pending
from discreet.service._witness import Testimony, Witness

MOST_ROWS = 2000  # in one turn, after which others get theirs
_TIDY = 60.0  # seconds between two times at which what was removed is overwritten
_QUIET, _SUMS = 5.0, 60.0  # seconds without a row, and at most, until a release's rows are not kept
KEEP_IDS = 7 * 86400.0  # seconds for which ids of closed events are known


class Joiner:
    """One bandit's events, and the learner that they are rows of.

    Args:
        connection: to the service's tables.
        bandit: its number there.
        learner: which it owns while it lives.
        witness: what remembers what was shown.
        clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        connection: Connection,
        bandit: int,
        learner: LinUCB,
        *,
        witness: Witness,
        clock: Callable[[], float],
    ) -> None:
        """Refuse tables that are older than the learner."""
        self._connection = connection
        self._bandit = bandit
        self._learner = learner
        self._witness = witness
        self._clock = clock
        self._published: Release | None = None
        self._remembered: Testimony | None = None
        self._wiped_at = time.monotonic()
        self._must_wipe = False  # something was erased, and copies of it may be left
        self._must_forget = False  # there are more ids of long ago: some are forgotten in a turn
        self._summed = 0  # rows of the last release when the learner's sums were stored last
        self._summed_at = self._closed_at = self._wiped_at
        self._dirty = True
        self._require_events()

    @property
    def learner(self) -> LinUCB:
        """The learner."""
        return self._learner

    def turn(self) -> int:
        """One pass over a bandit: erase requested subjects, close due events, publish releases.

        After an error, or a crash at any instant, the next turn goes on where this one stopped.

        Returns:
            How many rows were learned.
        """
        self._publish()  # what an error or a crash left unpublished
        self._erase()
        closed = self._close_due()
        if closed or self._dirty:
            self._remember()  # before the payloads go
            with self._connection.transaction():
                self._connection.lock([self._bandit])
                events.close(self._connection, self._bandit, self._learner.rows)
            self._dirty = False
        self._store_sums(closed)
        self._tidy(closed)
        return closed

    def _require_events(self) -> None:
        rows = self._connection.execute(
            "SELECT events FROM service_bandit WHERE id = ?", (self._bandit,)
        )
        testimony = self._witness.of(self._bandit)
        known = self._learner.rows
        if testimony is not None and testimony.rows > known:
            raise RewoundStateError(
                "learner",
                "has fewer rows than the witness remembers: it was restored from an older state",
            )
        if rows[0][0] < known:
            raise RewoundStateError(
                "database",
                "has fewer events than the learner has rows: it was restored from an older state",
            )

    def _close_due(self) -> int:
        learner, before = self._learner, self._learner.rows
        found = self._due(before)
        if found:
            self._dirty = True
        if any(one.number != before + place for place, one in enumerate(found, 1)):
            raise RewoundStateError(
                "database", "does not have the events that come after the learner's last row"
            )
        while found:
            # Up to the next release, and publish it: so after a crash one is missing at most, and
            # that is the learner's last, which the next turn publishes.
            due = learner.mechanism.schedule.after(learner.release.rows)
            some = max(1, min(len(found), due - learner.rows))
            self._learn(found[:some])
            self._publish()
            found = found[some:]
        return learner.rows - before

    def _due(self, after: int) -> list[Pending]:
        """The next events to close, with all rewards that were taken in before their deadlines."""
        connection = self._connection
        if not events.due(connection, self._bandit, after, self._clock(), 1):
            return []
        # A reward that is being written holds the lock, and took its time inside it: so does this.
        with connection.transaction():
            connection.lock([self._bandit])
            return events.due(connection, self._bandit, after, self._clock(), MOST_ROWS)

    def _learn(self, some: list[Pending]) -> None:
        problem = self._learner.problem
        actions = np.zeros((len(some), problem.dim))
        rewards, subjects = [], []
        for place, one in enumerate(some):
            counts = one.active and one.features is not None
            if counts:
                actions[place] = np.frombuffer(one.features or b"", dtype="<f8")
            given = one.otherwise if one.reward is None else one.reward
            rewards.append(given if counts else problem.reward_centre)
            # One that was not activated uses up the cap like any other: whether it was is private.
            subjects.append(None if one.subject is None else bytes(one.subject))
        self._learner.observe(actions, rewards, subjects=subjects)

    def _publish(self) -> None:
        """Show the last release, if it was not shown yet: first the witness, then everybody."""
        learner = self._learner
        release, ledger = learner.release, learner.ledger
        if release is self._published:
            return
        self._remember()
        document = msgspec.json.encode(release.to_json())
        with self._connection.transaction():
            self._connection.lock([self._bandit])
            self._put_ledger(ledger)
            self._put(release, document)
        self._published = release

    def _remember(self) -> None:
        ledger = self._learner.ledger
        seen = Testimony(ledger.learner, len(ledger), ledger.head, self._learner.rows)
        if seen != self._remembered:
            self._witness.remember(self._bandit, seen)
            self._remembered = seen

    def _put(self, release: Release, document: bytes) -> None:
        digest = msgspec.json.decode(document)["digest"]
        there = self._connection.execute(
            "SELECT digest FROM service_release WHERE bandit = ? AND number = ?",
            (self._bandit, release.number),
        )
        if there and there[0][0] != digest:
            raise RewoundStateError(
                "release", f"number {release.number} was published before, and was another"
            )
        if not there:
            self._connection.execute(
                "INSERT INTO service_release (bandit, number, held, digest, made, document) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (self._bandit, release.number, release.rows, digest, self._clock(), document),
            )

    def _put_ledger(self, ledger: Ledger) -> None:
        """Copy the lines that are new; the learner's own ledger is the one that counts."""
        found = self._connection.execute(
            "SELECT COALESCE(MAX(number), -1) FROM service_ledger WHERE bandit = ?", (self._bandit,)
        )
        have = int(found[0][0])
        lines = [] if have >= 0 else [(self._bandit, 0, ledger.header_line())]
        fresh = ledger.entries[max(0, have) :]
        lines += [(self._bandit, entry.number, entry.line()) for entry in fresh]
        if lines:
            self._connection.many(
                "INSERT INTO service_ledger (bandit, number, line) VALUES (?, ?, ?)", lines
            )

    def _erase(self) -> None:
        asked = self._connection.execute(
            "SELECT id, subject FROM service_erasure WHERE bandit = ? AND done = 0 ORDER BY asked",
            (self._bandit,),
        )
        for identity, subject in asked:
            forgotten = self._learner.forget_subject(bytes(subject))
            with self._connection.transaction():
                self._connection.lock([self._bandit])
                waiting = events.erase(
                    self._connection, self._bandit, bytes(subject), self._learner.rows
                )
                self._connection.execute(
                    "UPDATE service_erasure SET done = 1, subject = ?, waiting = ?, in_batch = ?, "
                    "released = ? WHERE id = ?",
                    (b"", waiting, forgotten.in_batch, forgotten.released, identity),
                )
            self._must_wipe = True

    def _store_sums(self, closed: int) -> None:
        """Have the learner store sums instead of rows that are in a release: soon, not every time.

        While there is much to do it does so by itself, every thousand rows.
        """
        learner, now = self._learner, time.monotonic()
        if learner.path is None:  # nothing is on a disk
            return
        if closed:
            self._closed_at = now
        released = learner.release.rows
        if released == self._summed:
            return
        finished = learner.rows == learner.mechanism.setting.horizon
        if finished or now - self._closed_at >= _QUIET or now - self._summed_at >= _SUMS:
            learner.save()
            self._summed, self._summed_at = released, now

    def _tidy(self, closed: int) -> None:
        """From time to time: overwrite what was removed, and forget ids of long ago."""
        waited = time.monotonic() - self._wiped_at
        often = _TIDY if closed < MOST_ROWS else 10 * _TIDY  # less often while there is much to do
        if waited < often and not (self._must_wipe or self._must_forget):
            return
        before = self._clock() - KEEP_IDS
        with self._connection.transaction():
            self._connection.lock([self._bandit])
            rows = self._learner.rows
            self._must_forget = events.purge(self._connection, self._bandit, rows, before)
            self._connection.execute(
                "DELETE FROM service_erasure WHERE bandit = ? AND done = 1 AND asked < ?",
                (self._bandit, before),
            )
        self._must_wipe = not self._connection.wipe()
        self._wiped_at = time.monotonic()

    def close(self) -> None:
        """Close the learner, so that another process may open it."""
        with contextlib.suppress(Exception):
            self._learner.close()
