"""`Curator`: holds raw data, checks every call, and commits each change before it shows a release.

Every change goes the same way. It is *staged*: checked, and given the noise that its step needs.
It is *committed* to the store, together with whatever other threads staged meanwhile. It is
*applied* to memory. If that made a release, the release is written to the ledger, and only then
*shown*. So the store is never behind what was shown, whenever the process dies.

What is staged or committed but not yet applied is in one tuple (`Progress`), which is replaced as
a whole. After an interrupt or an error at any instruction, the next call finds there what was left
unfinished, asks the store whether a commit happened, and applies the change or drops it.
"""

import os
import secrets
import threading
import time
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.curator import bounds
from discreet.curator import store as stores
from discreet.curator._clipped import Clipped
from discreet.curator._progress import Progress, Restored, StagedState, UnconfirmedCommit
from discreet.curator._records import Change, Forget, Head, Records, Rows
from discreet.curator._releases import Releases
from discreet.curator._subjects import ERASED, Book, Count, Forgotten, OpenRow, arrival_of
from discreet.curator.growing_ledger import GrowingLedger
from discreet.curator.store import UNFINISHED, Commit, Item, Key, Store
from discreet.curator.store.memory import MemoryStore
from discreet.curator.sums import PrefixSums
from discreet.errors import (
    DecisionClosedError,
    DiscreetError,
    GivenUpWarning,
    HorizonReachedError,
    ParameterError,
    ReentrantCallError,
    ReloadNeededError,
    SecondWriterError,
    StoreError,
    UnknownDecisionError,
    WrongProcessError,
)
from discreet.mechanism import Mechanism, _codec
from discreet.mechanism import _perturbations as perturbations
from discreet.release import Release
from discreet.release._card import privacy_card
from discreet.release.ledger import Ledger

_F64 = NDArray[np.float64]
_A = TypeVar("_A")
_T = TypeVar("_T")

DEFAULT_MAX_PENDING = 100_000
_LONGEST_NUMBER = 20  # digits; no horizon is longer
_PAUSE = 0.0002  # seconds after which a thread looks again whether a commit is over
_COMPACT_AFTER = 1000  # rows stored one by one, after which the sums are stored instead


_Owners = Sequence[bytes | None] | None
"""The digest of whom each of several rows is from, as far as that is known."""

_Request = tuple[Callable[[Any], list[Change]], Any]
"""What stages changes, and what it takes."""


class Curator:
    """Holds actions that wait for their reward and noisy sums of those that have had it.

    Formal guarantee: under replacement of one round's decision set and reward, within the stated
    bounds (enforced here), the sequence of all releases has the mechanism's guarantee, also when
    later rows depend on earlier releases. With a cap of k rounds of one person it has it under
    replacement of all rounds of one subject: the first k rows of a subject count, and any others
    are rows of zeros (`_subjects`). Rows without a subject are taken to be different people's.
    Which decisions get a reward, in which order, and who comes when, is taken to be public.

    Several threads may call it, and share commits when they do. A thread that is inside a call is
    refused a second one, which a signal handler or a finalizer could make on it: a call that is
    half done must not be built on.

    State: O(d^2) for each buffer or level of the sums and O(d) for each action that waits, at most
    ``max_pending`` of them; beyond that the oldest is given up, with a warning. O(d) for each row
    of a subject in the open batch, and some 160 bytes for each subject. The ledger grows by 72
    bytes for each release.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        sums: PrefixSums,
        book: Book,
        *,
        supplied: perturbations.Perturbations | None = None,
        on_violation: str = "error",
        max_pending: int = DEFAULT_MAX_PENDING,
        restored: Restored | None = None,
    ) -> None:
        """Use `opening.begin` or `opening.open` instead, which make or find the sums."""
        if restored is None:
            restored = Restored(GrowingLedger(privacy_card(mechanism)))
        self.mechanism = mechanism
        self.max_pending = checks.count("max_pending", max_pending)
        self.policy: dict[str, Any] | None = None  # stored with the rest, and not used here
        self._on_violation = bounds.checked_on_violation(on_violation)
        self.clipped = Clipped()  # in memory only
        self._supplied = supplied
        self._records = Records(restored.ledger.learner)
        # What is held: applied changes only.
        self._sums = sums
        self._book = book
        self._waiting = dict(restored.waiting)
        self._rounds = restored.head.rounds
        self._given_up = restored.head.given_up
        self._sessions = list(restored.sessions)
        self._name = secrets.token_hex(4)  # of this session: no id of another is taken for its own
        self._first = self._rounds  # its first decision
        self._oldest = min(self._waiting, default=self._rounds)  # none before this one waits
        self._releases = Releases(mechanism, sums, restored.ledger, supplied)
        # What is under way.
        self._store: Store = MemoryStore() if restored.store is None else restored.store
        self._moving: tuple[Store, Head] | None = None  # a new store: does it count already?
        self._head = restored.head
        self._compact_at = _COMPACT_AFTER
        self._progress = Progress(restored.sequence)
        self._zeros = np.zeros(mechanism.setting.problem.dim)
        self._zeros.setflags(write=False)
        self._staged = StagedState(sums.position, self._rounds, self._given_up, book)
        self._staged_fits = True  # whether `_staged` is what comes of all that is staged
        # Who may.
        self._staging = threading.Lock()  # held for moments: to stage and to apply
        self._leading = threading.Lock()  # held during a commit; always taken before `_staging`
        self._inside: set[int] = set()  # threads that are in a call
        self._process = os.getpid()
        self._forked = self._closed = False
        self._usable = True  # neither of these, and nobody else has continued the learner
        _LIVE.add(self)

    # What is asked of it

    @property
    def rounds(self) -> int:
        """How many decisions have been made."""
        self._finish_interrupted_before_reading()
        return self._rounds

    @property
    def rows(self) -> int:
        """How many of them have had their reward."""
        self._finish_interrupted_before_reading()
        return self._sums.rows

    @property
    def waiting(self) -> int:
        """How many still wait for one."""
        self._finish_interrupted_before_reading()
        return len(self._waiting)

    @property
    def given_up(self) -> int:
        """How many were given up because more than ``max_pending`` waited."""
        self._finish_interrupted_before_reading()
        return self._given_up

    @property
    def over_cap(self) -> int:
        """How many rows came beyond their subject's cap."""
        self._finish_interrupted_before_reading()
        return self._book.over

    @property
    def place(self) -> Path | str | None:
        """Where the learner is stored, if it is."""
        return self._store.place

    @property
    def shown(self) -> Release:
        """The last release that was shown, at once: what a policy may use."""
        return self._releases.shown

    @property
    def release(self) -> Release:
        """The current release, which is in the ledger; the same object until there is a new one."""
        self._require_usable()
        if self._releases.coming or not _idle(self._progress):
            self._enter(self._led, self._show)
        return self._releases.shown

    @property
    def ledger(self) -> Ledger:
        """All releases that were shown."""

        def view() -> Ledger:
            self._show()
            return self._releases.ledger.view()

        return self._enter(self._led, view)

    def admit(self, actions: ArrayLike) -> _F64:
        """A bounded copy of a decision set, if there is a round left to play."""
        self._require_usable()
        self._require_rounds(1, self._rounds)
        found = self.bounded(actions)
        self.count_clipped(sets=[actions])
        return found

    def bounded(self, actions: ArrayLike) -> _F64:
        """A bounded copy of a decision set."""
        return bounds.bounded_actions(self.mechanism.setting.problem, actions, self._on_violation)

    def admit_all(self, sets: Sequence[ArrayLike]) -> list[_F64]:
        """Bounded read-only copies of decision sets, if there is a round left for each."""
        self._require_usable()
        self._require_rounds(len(sets), self._rounds)
        found = bounds.bounded_sets(self.mechanism.setting.problem, sets, self._on_violation)
        self.count_clipped(sets=sets)
        return found

    def count_clipped(
        self, *, sets: Sequence[ArrayLike] = (), rewards: Sequence[object] = ()
    ) -> None:
        """Count what was scaled to its bound; of threads that do so at once one may be left out."""
        if self._on_violation == "clip":
            self.clipped = self.clipped.and_of(self.mechanism.setting.problem, sets, rewards)

    def open_decisions(
        self, actions: Sequence[_F64], subjects: Iterable[object] | None = None
    ) -> list[str]:
        """Remember chosen actions until their rewards come: all of them, or none after an error.

        Args:
            actions: one for each decision, shape (d,) each, as `admit` gave them.
            subjects: whom each is for, if that is known.

        Returns:
            The decisions' ids.
        """
        problem = self.mechanism.setting.problem
        bounded = bounds.still_bounded(problem, actions)
        owners = None if subjects is None else self._book.digests(subjects, len(bounded))
        if len(self._waiting) + len(bounded) > self.max_pending:
            warnings.warn(_too_many_wait(self.max_pending), GivenUpWarning, stacklevel=3)
        changes = self._enter(self._make, (self._openings, (bounded, owners)))
        return [f"{self._name}-{change.number}" for change in changes]

    def learn(
        self, pairs: Sequence[tuple[object, object]], subjects: Iterable[object] | None = None
    ) -> None:
        """Close decisions with their rewards: all of them, or none after an error.

        Noise is drawn first and stored with its row. The rows are in when this returns, and on the
        disk if the learner is stored. If a release cannot be made or the ledger cannot be written
        then, that is tried again before anybody sees the release.

        Args:
            pairs: decision ids and rewards.
            subjects: whose each of them is, if that was not said before.
        """
        owners = None if subjects is None else self._book.digests(subjects, len(pairs))
        self._enter(self._make, (self._rows_of, (pairs, owners)))
        self.count_clipped(rewards=[reward for _, reward in pairs])

    def observe(
        self,
        actions: _F64,
        rewards: Sequence[object],
        subjects: Iterable[object] | None = None,
    ) -> None:
        """Take in rows that were decided elsewhere: all of them, or none after an error.

        Each is a round of its own: a decision that has its reward at once.

        Args:
            actions: what was chosen, shape (n, d), as `bounded` gave it.
            rewards: one for each.
            subjects: whose each of them is, if that is known.
        """
        owners = None if subjects is None else self._book.digests(subjects, len(actions))
        self._enter(self._make, (self._observations, (actions, rewards, owners)))

    def forget(self, decision: object) -> None:
        """Give up a decision whose reward will not come, and erase its action."""
        self._enter(self._make, (self._closings, [decision]))

    def forget_subject(self, subject: object) -> Forgotten:
        """Erase what is a person's and not in a release yet: all of it, or nothing after an error.

        If the learner is stored, its sums are stored first, instead of the rows that are in them;
        so rows of the person that are in a release are not stored one by one any more.
        """
        digest = self._book.digest(subject)
        found: list[Forgotten] = []

        def stage(_: None) -> list[Change]:
            change, counts = self._forgetting(digest)
            found.append(counts)
            return [] if change is None else [change]

        def store_sums() -> None:
            self._show()
            self._compact()

        if self._store.durable:
            self._enter(self._led, store_sums)
        self._enter(lambda request: self._make(request, alone=True), (stage, None))
        if self._store.durable and self._head.summed < self._sums.position.released:
            # Another thread made a release in between, perhaps with a row of this person.
            try:
                self._enter(self._led, store_sums)
            except StoreError:  # the person is forgotten all the same
                self._compact_at = 0  # the next commit tries again
        return found[-1]

    # Where it is stored

    def store_at(self, place: stores.Place | None, policy: dict[str, Any] | None) -> None:
        """Store the learner from now on, or bring what is stored up to date.

        Args:
            place: where to store it; None if it is stored already.
            policy: what is stored with it.
        """

        def work() -> None:
            self._show()
            self.policy = policy
            if self._store.durable:
                self._require_here(place)
                self._compact()
                return
            if place is None:
                raise ParameterError("path", "is missing; say where to store the learner")
            _codec.require_storable(self.mechanism)
            self._move_to(place)

        self._enter(self._led, work)

    def close(self) -> None:
        """Bring the store up to date and give it up; nothing more can be done with it then."""
        if self._is_forked() or not self._store.durable:
            return

        def work() -> None:
            with self._leading:
                if self._closed:  # an interrupt may have come before the store was closed
                    self._store.close()
                    return
                try:
                    with suppress(StoreError, ReloadNeededError):  # the store has everything
                        with self._staging:
                            self._finish_interrupted()
                        self._show()
                        self._compact()
                finally:
                    self._stop(closed=True)
                    self._store.close()

        self._enter(lambda _: work(), None, closed=True)

    # One change, from staging to showing

    def _enter(self, work: Callable[[_A], _T], argument: _A, *, closed: bool = False) -> _T:
        """Do something as the one call of this thread; refuse a second one inside it."""
        me = threading.get_ident()
        if me in self._inside and not self._is_forked():
            raise ReentrantCallError(
                "learner",
                "is in the middle of another call of this thread, which a signal handler or a "
                "finalizer interrupted; call it from somewhere else, such as a queue",
            )
        try:
            self._inside.add(me)
            if not closed:
                self._require_usable()
            return work(argument)
        finally:
            self._inside.discard(me)

    def _led(self, work: Callable[[], _T]) -> _T:
        """Do something while no commit is under way, and everything is applied."""
        with self._leading:
            self._require_usable()
            with self._staging:
                self._finish_interrupted()
            return work()

    def _make(self, request: _Request, *, alone: bool = False) -> list[Change]:
        """Stage changes, see that they are committed and applied, and return them.

        If they are to be ``alone``, whatever else is under way is finished before.
        """
        if not self._store.durable:
            with self._leading:
                if self._moving is not None:
                    with self._staging:
                        self._finish_interrupted()
                if not self._store.durable:  # by now the learner may be stored
                    return self._make_in_memory(request)
        if not _idle(self._progress) or not self._staged_fits:
            self._finish_interrupted_unless_led()
        changes: list[Change] | None = None
        while changes is None:
            with self._staging:
                if not alone or _idle(self._progress):
                    changes = self._staged_changes(request)
                    sequence, unconfirmed, applying, queue = self._progress
                    self._progress = Progress(sequence, unconfirmed, applying, (*queue, *changes))
                    self._staged_fits = True
                    break
            with self._leading:
                self._lead()
        if changes:
            try:
                self._see_through(changes[-1])
            except BaseException as error:
                self._take_back(changes)
                if not isinstance(error, DiscreetError) or not changes[-1].done:
                    raise
        return changes

    def _make_in_memory(self, request: _Request) -> list[Change]:
        """`_make` where nothing is stored: a change is committed by being applied."""
        with self._staging:
            idle = self._progress
            if idle.applying or not self._staged_fits:
                self._finish_interrupted()
                idle = self._progress
            changes = self._staged_changes(request)
            self._progress = Progress(idle.sequence, None, tuple(changes))
            self._staged_fits = True
            try:
                self._apply_all(changes)
                self._progress = idle
                self._show()
            except Exception:  # noqa: BLE001, S110  # it counts, and the next call tries again
                pass
        return changes

    def _staged_changes(self, request: _Request) -> list[Change]:
        """Stage what is asked for; if a part of it is refused, nothing is staged.

        The staged state is ahead until the changes are in `_progress`, so `_staged_fits` stays
        False here.
        """
        if not self._staged_fits:
            self._restage()
        make, arguments = request
        self._staged_fits = False
        try:
            return make(arguments)
        except BaseException:
            self._restage()
            raise

    def _openings(self, chosen: tuple[Sequence[_F64], _Owners]) -> list[Change]:
        """Stage new decisions; the oldest are given up if too many wait."""
        (actions, owners), staged, changes = chosen, self._staged, []
        self._require_rounds(len(actions), staged.rounds)
        for at, action in enumerate(actions):
            if len(self._waiting) + len(staged.opening) - len(staged.closing) < self.max_pending:
                change = Change(staged.rounds, action, lost=staged.given_up)
            else:
                oldest = self._oldest_waiting()
                change = Change(staged.rounds, action, given_up=oldest, lost=staged.given_up + 1)
            if owners is not None:
                change.owner = owners[at]
            self._stage(change)
            changes.append(change)
        return changes

    def _oldest_waiting(self) -> int:
        staged = self._staged
        while self._oldest in staged.closing or not (
            self._oldest in self._waiting or self._oldest in staged.opening
        ):
            self._oldest += 1
        return self._oldest

    def _rows_of(self, closed: tuple[Sequence[tuple[object, object]], _Owners]) -> list[Change]:
        """Stage decisions that become rows, each with the noise of its step."""
        (pairs, owners), sums, known = closed, self._sums, self._book.owners
        changes: list[Change] = []
        for at, (decision, reward) in enumerate(pairs):
            number = self._number(decision)
            value = sums.bounded_reward(reward, self._on_violation)
            owner = None
            if owners is not None or number in known:
                owner = self._owner(number, None if owners is None else owners[at])
            changes.append(self._row(number, self._waiting[number], value, owner))
        return changes

    def _owner(self, number: int, said: bytes | None) -> bytes | None:
        """Whom a decision that waits is for, of what was said at first and what is said now."""
        owner = self._book.owners.get(number, said)
        if owner == ERASED or number in self._staged.erased:
            return ERASED
        if said is not None and said != owner:
            raise ParameterError(
                "subject", "is not the one that this decision was made for; leave it out"
            )
        return owner

    def _row(self, number: int, action: _F64, reward: float, owner: bytes | None) -> Change:
        """Stage a row; it is one of zeros if its person was forgotten or has no more that count."""
        staged = self._staged
        position = staged.position
        row, noise = position.rows + 1, self._sums.draw(position)
        if owner is None:
            change = Change(number, action, row, reward, noise)
        elif owner == ERASED:
            change = Change(number, self._zeros, row, 0.0, noise)
        else:
            record = self._book.counted(owner, staged.counts, staged.people)
            if record is None:
                change = Change(number, self._zeros, row, 0.0, noise, over=staged.over + 1)
            else:
                change = Change(number, action, row, reward, noise, count=Count(owner, record))
        self._stage(change)
        return change

    def _observations(self, observed: tuple[_F64, Sequence[object], _Owners]) -> list[Change]:
        """Stage rows that were decided elsewhere: new decisions that become rows at once.

        Where whole numbers are summed, rows up to the next release are one change together: it
        comes to the same sums, and one row at a time would take several times as long.
        """
        (actions, rewards, owners), sums, staged = observed, self._sums, self._staged
        self._require_rounds(len(actions), staged.rounds)
        values = [sums.bounded_reward(reward, self._on_violation) for reward in rewards]
        together = sums.gathers
        changes: list[Change] = []
        start = 0
        while start < len(values):
            position = staged.position
            count = position.due - position.rows - 1 if together else 0
            if count > 0:
                part = slice(start, start + count)
                block = Rows(
                    staged.rounds, position.rows + 1, actions[part], np.array(values[part])
                )
                if owners is not None:
                    self._enter_owners(block, owners[part])
                self._stage(block)
                changes.append(block)
                start += len(block.rewards)
                continue
            opening = Change(staged.rounds, actions[start], lost=staged.given_up)
            self._stage(opening)
            owner = None if owners is None else owners[start]
            closing = self._row(opening.number, actions[start], values[start], owner)
            changes += [opening, closing]
            start += 1
        return changes

    def _enter_owners(self, block: Rows, owners: Sequence[bytes | None]) -> None:
        """Take the rows of people out of a block: to be open rows, or zeros beyond the cap."""
        staged, book = self._staged, self._book
        actions, rewards = block.actions, block.rewards
        known = [at for at, owner in enumerate(owners) if owner is not None]
        block.actions, block.rewards = actions.copy(), rewards.copy()
        block.actions[known], block.rewards[known] = 0.0, 0.0
        people, over = staged.people, staged.over
        for at in known:
            owner: bytes = owners[at]  # type: ignore[assignment]  # it is known
            record = book.counted(owner, staged.counts, people)
            if record is None:
                over += 1
                continue
            if arrival_of(record) == people:
                people += 1
            staged.counts[owner] = block.counts[owner] = record
            block.open_rows[block.row + at] = OpenRow(
                owner, block.number + at, actions[at], float(rewards[at])
            )
        block.people, block.over = people, over

    def _forgetting(self, digest: bytes) -> tuple[Change | None, Forgotten]:
        """Stage the erasure of all that is a person's and not released. Everything is applied."""
        decisions = [number for number, one in self._book.owners.items() if one == digest]
        open_rows = [number for number, row in self._sums.open_rows.items() if row.digest == digest]
        count, released = self._book.withdrawn(digest, len(open_rows))
        guarantee = self.mechanism.guarantee
        found = Forgotten(
            open=len(decisions),
            in_batch=len(open_rows),
            released=released,
            protects=guarantee.protects if guarantee.private else "nothing",
        )
        if not decisions and not open_rows:
            return None, found
        change = Forget(decisions, open_rows, count if open_rows else None)
        self._stage(change)
        return change, found

    def _closings(self, decisions: Sequence[object]) -> list[Change]:
        """Stage decisions that are given up."""
        changes = []
        for decision in decisions:
            change = Change(self._number(decision))
            self._stage(change)
            changes.append(change)
        return changes

    def _stage(self, change: Change) -> None:
        """Move the staged state past a change."""
        staged = self._staged
        if change.over or change.count is not None or change.several:
            staged.count(change)
        if change.opens:
            staged.opening[change.number] = change.action  # type: ignore[assignment]  # it has one  # it has one
            if change.given_up is not None:
                staged.closing.add(change.given_up)
            staged.rounds, staged.given_up = change.number + 1, change.lost
        elif isinstance(change, Forget):
            staged.erased.update(change.decisions)
        elif isinstance(change, Rows):
            staged.rounds = change.number + len(change.rewards)
            staged.position = self._sums.ahead(staged.position, len(change.rewards))
        else:
            staged.closing.add(change.number)
            if change.row:
                staged.position = self._sums.next(staged.position)

    def _restage(self) -> None:
        """Work out the staged state again, from what is applied and what is still to come."""
        self._staged_fits = False
        self._staged = StagedState(self._sums.position, self._rounds, self._given_up, self._book)
        self._oldest = min(self._waiting, default=self._rounds)
        closing = self._staged.closing
        for change in (*self._progress.applying, *self._progress.queue):
            self._staged.count(change)
            if isinstance(change, Forget):
                self._staged.erased.update(change.decisions)
                continue
            if isinstance(change, Rows):
                count = len(change.rewards)
                self._staged.rounds = max(self._staged.rounds, change.number + count)
                missing = change.row + count - 1 - self._staged.position.rows
                self._staged.position = self._sums.ahead(self._staged.position, max(0, missing))
                continue
            if change.opens and change.number >= self._rounds:
                self._stage(change)
            if change.row > self._sums.rows:
                self._staged.position = self._sums.next(self._staged.position)
            closes = change.given_up if change.opens else change.number
            if closes is not None and (closes in self._waiting or closes in self._staged.opening):
                closing.add(closes)
        self._staged_fits = True

    def _see_through(self, change: Change) -> None:
        """Wait until a change is committed, by another thread or by leading a commit."""
        while not change.done and change.error is None:
            if self._leading.locked():
                time.sleep(_PAUSE)
                continue
            with self._leading:
                if not change.done and change.error is None:
                    self._lead()
        if change.error is not None and not change.done:
            error = change.error
            raise type(error)(error.parameter, error.advice)

    def _lead(self) -> None:
        """Commit all that is staged, and apply it. One thread at a time does."""
        with self._staging:
            self._finish_interrupted()
            before, _, applying, batch = self._progress
        if not batch:
            return
        after = before + len(batch)
        puts, drops, head = self._items(batch)
        with self._staging:
            queue = self._progress.queue
            self._progress = Progress(
                before, UnconfirmedCommit(after, batch, head), applying, queue
            )
        try:
            erases = not all(change.opens or change.row for change in batch)
            self._store.commit(Commit(before, after, puts, drops, wipe=erases))
        except DiscreetError as error:
            self._fail(error)
            return
        with suppress(Exception):  # it is committed, and the next call tries this again
            with self._staging:
                self._note_commit()
                self._apply()
            self._show()
            if self._head.rows - self._head.summed >= self._compact_at:
                self._compact()

    def _fail(self, error: DiscreetError) -> None:
        """After a commit that raised: find out whether it happened, and tell whoever waits."""
        with self._staging:
            with suppress(Exception):  # tried again by the next call
                self._ask_about_commit()
                self._apply()
            for change in self._progress.queue:
                change.error = error
            self._drop_failed()

    def _finish_interrupted(self) -> None:
        """Finish what an interrupt or an error left unfinished. The caller holds both locks."""
        if not self._staged_fits:
            self._restage()
        if self._moving is not None:
            self._finish_move()
        if self._progress.unconfirmed is not None:
            self._ask_about_commit()
            self._drop_failed()
        if self._progress.applying:
            self._apply()

    def _finish_interrupted_unless_led(self) -> None:
        """`_finish_interrupted`, unless somebody leads a commit, who does it then.

        If no other call is under way, nobody waits for what is queued, and it is dropped.
        """
        if _idle(self._progress) and self._moving is None and self._staged_fits:
            return
        if self._leading.locked():
            return
        with self._leading, self._staging:
            self._finish_interrupted()
            if len(self._inside) == 1 and self._progress.queue:
                self._requeue(())

    def _finish_interrupted_before_reading(self) -> None:
        """The same for a call that only reads: it does not wait for a commit, and does not fail."""
        idle = _idle(self._progress) and self._moving is None
        if idle or self._is_forked() or threading.get_ident() in self._inside:
            return
        with suppress(DiscreetError):
            self._enter(lambda _: self._finish_interrupted_unless_led(), None)

    def _take_back(self, changes: list[Change]) -> None:
        """After an interrupt: changes that were not committed are dropped, if nothing follows."""
        with self._leading, self._staging:
            with suppress(DiscreetError):
                self._finish_interrupted()
            queue = self._progress.queue
            if self._progress.unconfirmed is None and queue[-len(changes) :] == tuple(changes):
                self._requeue(queue[: -len(changes)])

    def _drop_failed(self) -> None:
        """Drop changes whose callers were told that they failed, once it is known that they did.

        What was staged after them builds on them, and fails with them.
        """
        queue = self._progress.queue
        error = next((change.error for change in queue if change.error is not None), None)
        if self._progress.unconfirmed is None and error is not None:
            for change in queue:
                change.error = error
            self._requeue(())

    def _requeue(self, queue: tuple[Change, ...]) -> None:
        """Go on with other changes in the queue, and a staged state that fits them."""
        self._staged_fits = False
        self._progress = self._progress._replace(queue=queue)
        self._restage()

    def _ask_about_commit(self) -> None:
        """Ask the store whether the unconfirmed commit happened."""
        unconfirmed = self._progress.unconfirmed
        if unconfirmed is None:
            return
        try:
            found = self._store.sequence()
        except SecondWriterError:
            self._stop(closed=False)
            raise
        if found == unconfirmed.after:
            self._note_commit()
        elif found == self._progress.sequence:
            self._progress = self._progress._replace(unconfirmed=None)
        else:
            self._stop(closed=False)
            self._require_usable()

    def _note_commit(self) -> None:
        """The unconfirmed commit happened: its changes are to be applied."""
        progress = self._progress
        unconfirmed = progress.unconfirmed
        if unconfirmed is None:
            return
        for change in unconfirmed.changes:
            change.done = True
        self._head = unconfirmed.head
        self._progress = Progress(
            unconfirmed.after,
            applying=(*progress.applying, *unconfirmed.changes),
            queue=progress.queue[len(unconfirmed.changes) :],
        )

    def _apply(self) -> None:
        """Bring memory up to what is committed. Doing a part of it twice does no harm."""
        self._apply_all(self._progress.applying)
        self._progress = self._progress._replace(applying=())

    def _apply_all(self, changes: Sequence[Change]) -> None:
        staged, owners, shown = self._staged, self._book.owners, self._releases.shown.number
        for change in changes:
            if change.over or change.count is not None:
                self._apply_counts(change)
            if change.several:
                self._apply_several(change)
                continue
            if change.row:
                open_row = None if change.count is None else change.open_row
                self._sums.add(change.row, change.action, change.reward, change.noise, open_row)  # type: ignore[arg-type]  # a row has them
                if self._sums.number != shown:
                    self._releases.make()
            if change.opens:
                self._waiting[change.number] = change.action  # type: ignore[assignment]  # it has one
                if change.owner is not None:
                    owners[change.number] = change.owner
                if change.number >= self._rounds:
                    self._rounds = change.number + 1
                if change.given_up is not None:
                    self._waiting.pop(change.given_up, None)
                    owners.pop(change.given_up, None)
                    self._given_up = max(self._given_up, change.lost)
                    staged.closing.discard(change.given_up)
                staged.opening.pop(change.number, None)
            else:
                self._waiting.pop(change.number, None)
                owners.pop(change.number, None)
                staged.closing.discard(change.number)

    def _apply_counts(self, change: Change) -> None:
        """Apply a change's counts of people."""
        book = self._book
        book.over = max(book.over, change.over)
        if change.count is not None:
            book.counts[change.count.digest] = change.count.record
        self._staged.counted(change)

    def _apply_several(self, change: Change) -> None:
        """Apply a change that is about several rows or decisions."""
        if isinstance(change, Rows):
            self._sums.gather(change.row, change.actions, change.rewards, change.open_rows)
            self._rounds = max(self._rounds, change.number + len(change.rewards))
            if change.counts:
                self._book.counts.update(change.counts)
                self._staged.counted(change)
        elif isinstance(change, Forget):
            self._sums.withdraw(change.rows)
            for number in change.decisions:
                if number in self._waiting:  # not closed by what was staged after it
                    self._waiting[number] = self._zeros
                    self._book.owners[number] = ERASED
            self._staged.erased.difference_update(change.decisions)

    def _show(self) -> None:
        """Show the releases that were made, once they are in the stored ledger."""
        if self._releases.coming:
            self._releases.show(self._store)

    # What is stored

    def _items(self, batch: Sequence[Change]) -> tuple[list[Item], list[Key], Head]:
        """What a commit of these changes writes and removes, and the head after it."""
        session = (self._first, self._name)
        open_rows = self._sums.open_rows if isinstance(batch[0], Forget) else {}
        return self._records.encoded(
            self._head, batch, self._waiting, session, book=self._book, open_rows=open_rows
        )

    def _document(self) -> dict[str, Any]:
        """What is stored of the learner besides its data."""
        return {
            "learner": self._releases.ledger.learner,
            "ledger": self._releases.ledger.root,
            "mechanism": _codec.to_json(self.mechanism),
            "policy": self.policy,
            "supplied": self._supplied is not None,
            "on_violation": self._on_violation,
            "max_pending": self.max_pending,
            "people": self._book.key.hex(),
        }

    def _compact(self) -> None:
        """Store the sums instead of the rows that went into them. Everything is applied."""
        if not self._store.durable or self._progress.applying:
            return
        sequence = self._progress.sequence
        puts, drops, head = self._records.compacted(self._head, self._document(), self._sums)
        with self._staging:
            self._progress = self._progress._replace(
                unconfirmed=UnconfirmedCommit(sequence + 1, (), head)
            )
        self._compact_at *= 2  # if it fails: a try takes time
        try:
            self._store.commit(Commit(sequence, sequence + 1, puts, drops, wipe=True))
        finally:
            with self._staging:
                self._ask_about_commit()
        self._compact_at = _COMPACT_AFTER

    def _move_to(self, place: stores.Place) -> None:
        """Make a new store, which counts from its first commit on; until then memory does."""
        sessions = list(self._sessions)
        if self._rounds > self._first:
            sessions.append((self._first, self._name))
        counts = Head(rounds=self._rounds, given_up=self._given_up)
        items, head = self._records.everything(
            self._document(), self._sums, self._waiting, sessions, counts, book=self._book
        )
        self._moving = (stores.create(place, items, list(self._releases.ledger.lines())), head)
        try:
            self._moving[0].commit(Commit(UNFINISHED, self._progress.sequence, wipe=True))
        finally:
            self._finish_move()

    def _finish_move(self) -> None:
        """Ask a new store whether its first commit happened; if not, remove it."""
        if self._moving is None:
            return
        store, head = self._moving
        if store.sequence() == UNFINISHED:
            self._moving = None
            store.discard()
        else:
            self._head = head
            self._store = store
            self._moving = None

    # Who may call, and with what

    def _number(self, decision: object) -> int:
        """A decision's number, if it waits for its reward."""
        name, _, digits = decision.rpartition("-") if isinstance(decision, str) else ("", "", "")
        plain = digits.isdecimal() and digits.isascii() and len(digits) <= _LONGEST_NUMBER
        number = int(digits) if plain else self._rounds
        if number >= self._rounds or name != self._session(number) or digits != str(number):
            raise UnknownDecisionError(
                "decision", "was not made by this learner; pass what its `choose` returned"
            )
        if number not in self._waiting or number in self._staged.closing:
            raise DecisionClosedError(
                "decision",
                "has had its reward, was forgotten, or was given up because more than "
                f"max_pending={self.max_pending} decisions waited; each decision takes one reward",
            )
        return number

    def _session(self, number: int) -> str:
        """The name that starts the id of a decision."""
        if number >= self._first:
            return self._name
        place = bisect_right(self._sessions, number, key=lambda session: session[0])
        return self._sessions[place - 1][1]

    def _require_rounds(self, wanted: int, played: int) -> None:
        """Refuse to play more rounds than the guarantee covers."""
        horizon = self.mechanism.setting.horizon
        if played + wanted > horizon:
            raise HorizonReachedError(
                "horizon",
                f"all {horizon} rounds have been played; the guarantee covers no more, so start a "
                "new learner with a longer horizon"
                if played >= horizon
                else f"leaves {horizon - played} rounds; the guarantee covers no more",
            )

    def _require_here(self, place: stores.Place | None) -> None:
        if place is None or self._store.is_at(place):
            return
        raise ParameterError(
            "path",
            "is not where this learner is stored; a second copy could be continued as well, so "
            "leave it out, or close the learner and move its files",
        )

    def _is_forked(self) -> bool:
        return self._forked or os.getpid() != self._process

    def _require_usable(self) -> None:
        if self._usable and os.getpid() == self._process:
            return
        if self._is_forked():
            raise WrongProcessError(
                "process",
                "differs from the one that made this learner; a forked copy would reuse its noise "
                "on other data, so keep the learner in one process",
            )
        if self._closed:
            raise ReloadNeededError("learner", "was closed; load it again")
        raise SecondWriterError(
            "learner", "was continued by another writer; close it and load it again"
        )

    def _stop(self, *, closed: bool) -> None:
        """Refuse all further calls: it was closed, or somebody else has continued the learner."""
        self._usable = False
        self._closed |= closed

    def in_child(self) -> None:
        """In a forked child: refuse everything, and touch nothing that the parent uses."""
        self._forked, self._usable = True, False
        self._store.abandon()
        if self._moving is not None:
            self._moving[0].abandon()

    def __repr__(self) -> str:
        return (
            f"Curator(variant={self.mechanism.variant!r}, rounds={self._rounds}, "
            f"rows={self._sums.rows}, waiting={len(self._waiting)})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: two copies would show the same noise on other data."""
        raise TypeError("a learner cannot be copied or pickled; use save and load")


_LIVE: weakref.WeakSet[Curator] = weakref.WeakSet()


def _in_child() -> None:
    for curator in list(_LIVE):
        curator.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _idle(progress: Progress) -> bool:
    """Whether nothing is under way."""
    return progress.unconfirmed is None and not progress.applying and not progress.queue


def _too_many_wait(most: int) -> str:
    return (
        f"more than max_pending={most} decisions wait for a reward: the oldest are given up and "
        "their rewards will be refused; pass a larger max_pending, or forget decisions whose "
        "reward will not come"
    )
