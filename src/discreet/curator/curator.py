"""`Curator`: holds raw data, checks every call, and commits each change before it shows a release.

Every change goes the same way. It is *staged*: checked, and given the noise that its step needs.
It is *committed* to the store, together with whatever other threads staged meanwhile. It is
*applied* to memory. If that made a release, the release is written to the ledger, and only then
*shown*. So the store is never behind what was shown, whenever the process dies.

What is staged or committed but not yet applied is in one tuple (`Progress`), which is replaced as
a whole. After an interrupt or an error at any instruction, the next call finds there what was left
unfinished, asks the store whether a commit happened, and applies the change or drops it.

What a change is, `_changes` says, and `_state` what is held: here is only what is done with any of
them. This module holds one class.
"""

import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.curator import bounds
from discreet.curator import store as stores
from discreet.curator._changes import Change, staged_closings, staged_openings, staged_rows
from discreet.curator._clipped import Clipped
from discreet.curator._forgetting import staged_forgetting
from discreet.curator._observed import staged_observations
from discreet.curator._progress import Progress, Restored, UnconfirmedCommit
from discreet.curator._releases import Releases
from discreet.curator._state import Held, StagedState
from discreet.curator._storage import Storage
from discreet.curator._subjects import Book, Forgotten
from discreet.curator.growing_ledger import GrowingLedger
from discreet.curator.store import Commit
from discreet.curator.sums import PrefixSums
from discreet.errors import (
    DiscreetError,
    GivenUpWarning,
    ParameterError,
    ReentrantCallError,
    ReloadNeededError,
    SecondWriterError,
    StoreError,
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
_PAUSE = 0.0002  # seconds after which a thread looks again whether a commit is over

_Request = tuple[Callable[..., list[Change]], tuple[Any, ...]]
"""What stages changes, and what it takes besides what is held and staged."""


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
        self.policy: dict[str, Any] | None = None  # stored with the rest, and not used here
        self.clipped = Clipped()  # in memory only
        self._supplied = supplied is not None
        self._held = Held(
            mechanism,
            sums,
            book,
            max_pending=checks.count("max_pending", max_pending),
            on_violation=bounds.checked_on_violation(on_violation),
            waiting=restored.waiting,
            rounds=restored.head.rounds,
            given_up=restored.head.given_up,
            sessions=restored.sessions,
            releases=Releases(mechanism, sums, restored.ledger, supplied),
        )
        self._storage = Storage(restored.ledger.learner, restored.head, restored.store)
        # What is under way.
        self._progress = Progress(restored.sequence)
        self._staged = StagedState(self._held)
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
        return self._held.rounds

    @property
    def rows(self) -> int:
        """How many of them have had their reward."""
        self._finish_interrupted_before_reading()
        return self._held.sums.rows

    @property
    def waiting(self) -> int:
        """How many still wait for one."""
        self._finish_interrupted_before_reading()
        return len(self._held.waiting)

    @property
    def given_up(self) -> int:
        """How many were given up because more than ``max_pending`` waited."""
        self._finish_interrupted_before_reading()
        return self._held.given_up

    @property
    def over_cap(self) -> int:
        """How many rows came beyond their subject's cap."""
        self._finish_interrupted_before_reading()
        return self._held.book.over

    @property
    def max_pending(self) -> int:
        """How many decisions may wait; beyond that the oldest is given up."""
        return self._held.max_pending

    @property
    def place(self) -> Path | str | None:
        """Where the learner is stored, if it is."""
        return self._storage.store.place

    @property
    def shown(self) -> Release:
        """The last release that was shown, at once: what a policy may use."""
        return self._held.releases.shown

    @property
    def release(self) -> Release:
        """The current release, which is in the ledger; the same object until there is a new one."""
        self._require_usable()
        if self._held.releases.coming or not _idle(self._progress):
            self._enter(self._led, self._show)
        return self._held.releases.shown

    @property
    def ledger(self) -> Ledger:
        """All releases that were shown."""

        def view() -> Ledger:
            self._show()
            return self._held.releases.ledger.view()

        return self._enter(self._led, view)

    def admit(self, actions: ArrayLike) -> _F64:
        """A bounded copy of a decision set, if there is a round left to play."""
        self._require_usable()
        self._held.require_rounds(1, self._held.rounds)
        found = self.bounded(actions)
        self.count_clipped(sets=[actions])
        return found

    def bounded(self, actions: ArrayLike) -> _F64:
        """A bounded copy of a decision set."""
        return bounds.bounded_actions(
            self.mechanism.setting.problem, actions, self._held.on_violation
        )

    def admit_all(self, sets: Sequence[ArrayLike]) -> list[_F64]:
        """Bounded read-only copies of decision sets, if there is a round left for each."""
        self._require_usable()
        self._held.require_rounds(len(sets), self._held.rounds)
        found = bounds.bounded_sets(self.mechanism.setting.problem, sets, self._held.on_violation)
        self.count_clipped(sets=sets)
        return found

    def count_clipped(
        self, *, sets: Sequence[ArrayLike] = (), rewards: Sequence[object] = ()
    ) -> None:
        """Count what was scaled to its bound; of threads that do so at once one may be left out."""
        if self._held.on_violation == "clip":
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
        owners = None if subjects is None else self._held.book.digests(subjects, len(bounded))
        if len(self._held.waiting) + len(bounded) > self._held.max_pending:
            warnings.warn(_too_many_wait(self._held.max_pending), GivenUpWarning, stacklevel=3)
        changes = self._enter(self._make, (staged_openings, (bounded, owners)))
        return [f"{self._held.name}-{change.number}" for change in changes]

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
        owners = None if subjects is None else self._held.book.digests(subjects, len(pairs))
        self._enter(self._make, (staged_rows, (pairs, owners)))
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
        owners = None if subjects is None else self._held.book.digests(subjects, len(actions))
        self._enter(self._make, (staged_observations, (actions, rewards, owners)))

    def forget(self, decision: object) -> None:
        """Give up a decision whose reward will not come, and erase its action."""
        self._enter(self._make, (staged_closings, ([decision],)))

    def forget_subject(self, subject: object) -> Forgotten:
        """Erase what is a person's and not in a release yet: all of it, or nothing after an error.

        If the learner is stored, its sums are stored first, instead of the rows that are in them;
        so rows of the person that are in a release are not stored one by one any more.
        """
        digest = self._held.book.digest(subject)
        found: list[Forgotten] = []

        def stage(held: Held, staged: StagedState) -> list[Change]:
            changes, counts = staged_forgetting(held, staged, digest)
            found.append(counts)
            return changes

        def store_sums() -> None:
            self._show()
            self._compact()

        if self._storage.store.durable:
            self._enter(self._led, store_sums)
        self._enter(lambda request: self._make(request, alone=True), (stage, ()))
        if (
            self._storage.store.durable
            and self._storage.head.summed < self._held.sums.position.released
        ):
            # Another thread made a release in between, perhaps with a row of this person.
            try:
                self._enter(self._led, store_sums)
            except StoreError:  # the person is forgotten all the same
                self._storage.compact_at = 0  # the next commit tries again
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
            if self._storage.store.durable:
                self._storage.require_here(place)
                self._compact()
                return
            if place is None:
                raise ParameterError("path", "is missing; say where to store the learner")
            _codec.require_storable(self.mechanism)
            self._storage.move(place, self._document(), self._held, self._progress.sequence)

        self._enter(self._led, work)

    def close(self) -> None:
        """Bring the store up to date and give it up; nothing more can be done with it then."""
        if self._is_forked() or not self._storage.store.durable:
            return

        def work() -> None:
            with self._leading:
                if self._closed:  # an interrupt may have come before the store was closed
                    self._storage.store.close()
                    return
                try:
                    with suppress(StoreError, ReloadNeededError):  # the store has everything
                        with self._staging:
                            self._finish_interrupted()
                        self._show()
                        self._compact()
                finally:
                    self._stop(closed=True)
                    self._storage.store.close()

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
        if not self._storage.store.durable:
            with self._leading:
                if self._storage.moving is not None:
                    with self._staging:
                        self._finish_interrupted()
                if not self._storage.store.durable:  # by now the learner may be stored
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
            return make(self._held, self._staged, *arguments)
        except BaseException:
            self._restage()
            raise

    def _restage(self) -> None:
        """Work out the staged state again, from what is applied and what is still to come."""
        self._staged_fits = False
        self._staged = staged = StagedState(self._held)
        for change in (*self._progress.applying, *self._progress.queue):
            change.stage_again(self._held, staged)
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
        storage = self._storage
        puts, drops, head = storage.records.encoded(storage.head, batch, self._held)
        with self._staging:
            queue = self._progress.queue
            self._progress = Progress(
                before, UnconfirmedCommit(after, batch, head), applying, queue
            )
        try:
            erases = any(change.erases for change in batch)
            storage.store.commit(Commit(before, after, puts, drops, wipe=erases))
        except DiscreetError as error:
            self._fail(error)
            return
        with suppress(Exception):  # it is committed, and the next call tries this again
            with self._staging:
                self._note_commit()
                self._apply()
            self._show()
            if storage.head.rows - storage.head.summed >= storage.compact_at:
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
        if self._storage.moving is not None:
            self._storage.finish_move()
        if self._progress.unconfirmed is not None:
            self._ask_about_commit()
            self._drop_failed()
        if self._progress.applying:
            self._apply()

    def _finish_interrupted_unless_led(self) -> None:
        """`_finish_interrupted`, unless somebody leads a commit, who does it then.

        If no other call is under way, nobody waits for what is queued, and it is dropped.
        """
        if _idle(self._progress) and self._storage.moving is None and self._staged_fits:
            return
        if self._leading.locked():
            return
        with self._leading, self._staging:
            self._finish_interrupted()
            if len(self._inside) == 1 and self._progress.queue:
                self._requeue(())

    def _finish_interrupted_before_reading(self) -> None:
        """The same for a call that only reads: it does not wait for a commit, and does not fail."""
        idle = _idle(self._progress) and self._storage.moving is None
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
            found = self._storage.store.sequence()
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
        self._storage.head = unconfirmed.head
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
        """Apply changes, and make the releases that they lead to."""
        held, staged = self._held, self._staged
        for change in changes:
            change.apply(held, staged)

    def _show(self) -> None:
        """Show the releases that were made, once they are in the stored ledger."""
        if self._held.releases.coming:
            self._held.releases.show(self._storage.store)

    # What is stored

    def _document(self) -> dict[str, Any]:
        """What is stored of the learner besides its data."""
        return {
            "learner": self._held.releases.ledger.learner,
            "ledger": self._held.releases.ledger.root,
            "mechanism": _codec.to_json(self.mechanism),
            "policy": self.policy,
            "supplied": self._supplied,
            "on_violation": self._held.on_violation,
            "max_pending": self._held.max_pending,
            "people": self._held.book.key.hex(),
        }

    def _compact(self) -> None:
        """Store the sums instead of the rows that went into them. Everything is applied."""
        storage, sequence = self._storage, self._progress.sequence
        if not storage.store.durable or self._progress.applying:
            return
        commit, head = storage.compaction(sequence, self._document(), self._held.sums)
        with self._staging:
            self._progress = self._progress._replace(
                unconfirmed=UnconfirmedCommit(commit.after, (), head)
            )
        storage.compact_at *= 2  # if it fails: a try takes time
        try:
            storage.store.commit(commit)
        finally:
            with self._staging:
                self._ask_about_commit()
        storage.compacted()

    # Who may call

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
        self._storage.abandon()

    def __repr__(self) -> str:
        return (
            f"Curator(variant={self.mechanism.variant!r}, rounds={self._held.rounds}, "
            f"rows={self._held.sums.rows}, waiting={len(self._held.waiting)})"
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
