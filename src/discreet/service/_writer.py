"""The writer: one process that owns the learners of all bandits, and gives each its turn.

Several may run. The one that holds the lease works; the others are its reserve: they open and make
nothing, and wait until it is gone.
"""

import contextlib
import logging
import secrets
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from discreet.errors import (
    DiscreetError,
    ReloadNeededError,
    RewoundStateError,
    StateFileError,
    StateInUseError,
    StoreError,
    UninformedWarning,
)
from discreet.learner import LinUCB, load
from discreet.release import Release
from discreet.release.policies import from_json
from discreet.service import _events as events
from discreet.service._database import Database
from discreet.service._joiner import MOST_ROWS, Joiner
from discreet.service._lease import writer_lease
from discreet.service._spec import policy_of, read_spec
from discreet.service._witness import Testimony, Witness

_IDLE = 0.1  # seconds between two looks at the deadlines
_KEEP = 86400.0  # seconds after its deadline for which a bandit that fails keeps an event's data
_THROUGH = 300.0  # seconds between two times at which it is looked for
_FEW, _ANALYZE = 500, 60.0  # events, and seconds, after which the database counts its rows again
_RETRY = 2.0  # seconds after which a bandit that failed gets another turn
_RESERVE = 0.5  # seconds after which a reserve looks whether the writer is gone
_log = logging.getLogger("discreet.writer")


class Writer:
    """Closes the events of all bandits in a database.

    Of several, the one that holds the lease works. The others are its reserve. Should two ever
    believe that they hold it, the learners' own stores fence one of them.

    Args:
        database: the service's tables.
        learners: the folder of the learners' files; None if they are in PostgreSQL as well.
        witness: what remembers what was shown.
        clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        database: Database,
        *,
        learners: Path | None,
        witness: Witness,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Connect."""
        self._database = database
        self._connection = database.connect()
        self._learners = learners
        self._witness = witness
        self._clock = clock
        self._joiners: dict[int, Joiner] = {}
        self._after: dict[int, float] = {}  # when a bandit that failed gets another turn
        self._said: dict[int, str] = {}  # what was last logged about a bandit
        self._looked_through: dict[int, float] = {}  # when, for old data of a bandit that fails
        self._must_wipe = False  # something was removed, and copies of it may be left
        self._lease = writer_lease(database)
        self._leads: bool | None = None
        self._beaten = self._analyzed_at = 0.0
        self._analyzed_rows = 0
        warnings.simplefilter("ignore", UninformedWarning)  # the dashboard says it

    def run(self, stop: threading.Event) -> None:
        """Give every bandit its turn until somebody says stop."""
        said = ""
        while not stop.is_set():
            pause = _RETRY
            try:
                busy = self.turn()
                if self._leads:
                    self._beat()
                    pause = 0.0 if busy else _IDLE
                else:
                    pause = _RESERVE
                said = ""
            except StoreError as error:
                if said != str(error):
                    said = str(error)
                    _log.warning("database", extra={"reason": said})
            stop.wait(pause)
        self.close()

    def turn(self) -> bool:
        """One turn of every bandit, if this is the writer and no reserve.

        Returns:
            Whether one of them has more to do at once.
        """
        if not self._lead():
            return False
        busy = False
        rows = self._connection.execute(
            "SELECT id, learner, state, events FROM service_bandit ORDER BY id"
        )
        self._analyze(sum(row[3] for row in rows))
        for bandit, place, state, _ in rows:
            if self._after.get(bandit, 0.0) > time.monotonic():
                continue
            busy |= self._turn_of(bandit, place, state) >= MOST_ROWS
        return busy

    def _lead(self) -> bool:
        """Whether this process is the writer now. A reserve lets go of all that it has."""
        leads = self._lease.held()
        if leads != self._leads:
            self._leads = leads
            _log.info("works" if leads else "waits as a reserve: another process is the writer")
        if not leads:
            self._let_go_of_all()
        return leads

    def _let_go_of_all(self) -> None:
        for joiner in self._joiners.values():
            joiner.close()
        for held in (self._joiners, self._after, self._said):
            held.clear()

    def _turn_of(self, bandit: int, place: str | None, state: str) -> int:
        try:
            joiner = self._joiners.get(bandit)
            if joiner is None:
                joiner = self._joiners[bandit] = self._open(bandit, place)
            closed = joiner.turn()
        except StateInUseError:
            self._give_up(bandit, "another process has its learner open")
        except StoreError as error:  # nothing is lost: the next turn goes on
            self._say(bandit, str(error))
            self._after[bandit] = time.monotonic() + _RETRY
        except ReloadNeededError as error:  # another writer went on with it, or it was closed
            self._give_up(bandit, str(error))
        except RewoundStateError as error:
            self._fail(bandit, "rewound", str(error))
        except (DiscreetError, StateFileError) as error:
            self._fail(bandit, "failed", str(error))
        except Exception as error:  # noqa: BLE001  # of this bandit; the others go on
            self._fail(bandit, "failed", f"the writer stumbled over it ({type(error).__name__})")
        else:
            self._said.pop(bandit, None)
            if state != "running":
                self._set_state(bandit, "running", "")
            return closed
        return 0

    def _open(self, bandit: int, place: str | None) -> Joiner:
        if place is None:
            place = self._make(bandit)
        testimony = self._witness.of(bandit)
        learner = load(
            self._address(place),
            ledger_head=None if testimony is None or not testimony.releases else testimony.head,
        )
        try:
            self._witness.require(bandit)  # after `load`: another writer may remember it elsewhere
            if testimony is not None and testimony.learner != learner.ledger.learner:
                raise RewoundStateError("learner", "is another one than the witness remembers")
            return Joiner(
                self._connection, bandit, learner, witness=self._witness, clock=self._clock
            )
        except BaseException:
            learner.close()
            raise

    def _make(self, bandit: int) -> str:
        """A learner for a bandit that has none; of two writers who make one, one is taken.

        It is remembered before it is taken: a learner that nobody remembers came from elsewhere.
        """
        self._require_nothing_learned(bandit)
        spec, document = self._connection.execute(
            "SELECT b.spec, r.document FROM service_bandit b JOIN service_release r "
            "ON r.bandit = b.id AND r.number = 0 WHERE b.id = ?",
            (bandit,),
        )[0]
        first = Release.from_json(bytes(document))
        place = f"bandit-{bandit}-{secrets.token_hex(6)}"
        policy = from_json(policy_of(read_spec(bytes(spec)), first.mechanism))
        with LinUCB.from_mechanism(
            first.mechanism, policy=policy, path=self._address(place)
        ) as learner:
            empty = Testimony(learner.ledger.learner, 0, learner.ledger.head, 0)
        query = "SELECT learner FROM service_bandit WHERE id = ?"
        with self._connection.transaction():
            self._connection.lock([bandit])
            if self._connection.execute(query, (bandit,))[0][0] is None:
                self._witness.remember(bandit, empty)
                self._connection.execute(
                    "UPDATE service_bandit SET learner = ? WHERE id = ?", (place, bandit)
                )
        return str(self._connection.execute(query, (bandit,))[0][0])

    def _require_nothing_learned(self, bandit: int) -> None:
        """Refuse a bandit without a learner of which the witness remembers one that had learned."""
        testimony = self._witness.of(bandit)
        if testimony is not None and testimony.rows:
            raise RewoundStateError(
                "database", "has no learner, and the witness remembers one: it was restored"
            )

    def _address(self, place: str) -> str | Path:
        if self._learners is None:
            return f"{self._database.server}#{quote(place)}"
        return self._learners / place

    def _say(self, bandit: int, reason: str) -> None:
        """Log what is wrong with a bandit, once."""
        if self._said.get(bandit) != reason:
            self._said[bandit] = reason
            _log.warning("bandit", extra={"bandit": bandit, "reason": reason})

    def _give_up(self, bandit: int, reason: str) -> None:
        """Let go of a bandit for a while."""
        self._say(bandit, reason)
        joiner = self._joiners.pop(bandit, None)
        if joiner is not None:
            joiner.close()
        self._after[bandit] = time.monotonic() + _RETRY

    def _fail(self, bandit: int, state: str, reason: str) -> None:
        """Mark a bandit as failed or rewound, and delete raw data ``_KEEP`` after its deadline.

        Raw data of people whose erasure was asked for is deleted at once.
        """
        self._give_up(bandit, reason)
        with contextlib.suppress(StoreError):
            self._set_state(bandit, state, reason)
            self._remove_raw(bandit)

    def _remove_raw(self, bandit: int) -> None:
        """Delete what a bandit that fails may not keep.

        Turns come every few seconds, and all that waits may be much: so it is looked through now
        and then, and what is asked for is found by its index.
        """
        now = self._clock()
        due = not 0.0 <= now - self._looked_through.get(bandit, -_THROUGH) < _THROUGH
        with self._connection.transaction():
            self._connection.lock([bandit])
            asked = self._connection.execute(
                "SELECT subject FROM service_erasure WHERE bandit = ? AND done = 0", (bandit,)
            )
            for (subject,) in asked:  # the learner's part is done when it is back
                if events.erase(self._connection, bandit, bytes(subject), 0):
                    self._must_wipe = True
            if due:
                events.blank(self._connection, bandit, now - _KEEP)
                self._must_wipe = True
        if due:
            self._looked_through[bandit] = now
        if self._must_wipe:
            self._must_wipe = not self._connection.wipe()

    def _set_state(self, bandit: int, state: str, reason: str) -> None:
        with self._connection.transaction():
            self._connection.execute(
                "UPDATE service_bandit SET state = ?, reason = ? WHERE id = ?",
                (state, reason, bandit),
            )

    def _beat(self) -> None:
        """Say about once a second that there is a writer."""
        if time.monotonic() - self._beaten < 1.0:
            return
        self._beaten = time.monotonic()
        with self._connection.transaction():
            self._connection.execute(
                "INSERT INTO service_setting (name, value) VALUES ('writer', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (repr(self._clock()).encode(),),
            )

    def _analyze(self, rows: int) -> None:
        """Have the database count its rows again, now and then and when there are twice as many.

        PostgreSQL plans for empty tables until somebody tells it otherwise.
        """
        now = time.monotonic()
        grown = rows >= max(_FEW, 2 * self._analyzed_rows)
        if grown or (rows > self._analyzed_rows and now - self._analyzed_at > _ANALYZE):
            self._analyzed_at, self._analyzed_rows = now, rows
            self._connection.analyze()

    def close(self) -> None:
        """Give up all learners, then the lease and the connection."""
        self._let_go_of_all()
        self._lease.close()
        with contextlib.suppress(StoreError):
            self._connection.wipe()
        self._connection.close()
