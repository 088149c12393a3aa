"""The owner of the raw state: who may do what with it, and in which order things are written."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.curator import rows
from discreet.curator.growing import GrowingLedger
from discreet.curator.keeping import Keeper
from discreet.curator.state import State
from discreet.errors import (
    CorruptFileError,
    DiscreetError,
    ParameterError,
    ReloadNeededError,
    WrongProcessError,
)
from discreet.mechanism import Mechanism
from discreet.mechanism import _codec as codec
from discreet.mechanism import _perturbations as perturbations
from discreet.mechanism.noise.sources import NoiseSource, SystemNoise
from discreet.release import Release
from discreet.release._card import privacy_card
from discreet.release.ledger import Ledger, fingerprint

F64 = NDArray[np.float64]

DEFAULT_MAX_PENDING = 10_000
_LONG = 1000  # records in a journal after which a snapshot replaces it
_BAD = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


class Curator:
    """Holds actions that wait for their reward and noisy sums of those that have had it.

    Formal guarantee: under replacement of one round's decision set and reward, within the stated
    bounds (enforced here), the sequence of all releases has the mechanism's guarantee, also when
    later rows depend on earlier releases. Which decisions get a reward, and in which order, is
    taken to be public.

    A curator that is *kept* in files (`save`, `open`) writes each change down before it makes it,
    and each release into the ledger before anybody sees it: state first, release second. After a
    crash it continues from where its last call returned, with the same noise.

    State: O(d^2) for each buffer or level of the sums and O(d) for each action that waits, at most
    ``max_pending`` of them; beyond that the oldest is given up. The ledger grows by 72 bytes for
    each release.
    """

    def __init__(self, state: State, ledger: GrowingLedger | None = None) -> None:
        """Use `begin` or `open` instead."""
        self.mechanism = state.mechanism
        self._state = state
        self._ledger = GrowingLedger(privacy_card(state.mechanism)) if ledger is None else ledger
        self._keeper: Keeper | None = None
        self._astray = False  # whether files of this learner may stand that it does not know of
        self._extra: dict[str, Any] = {}
        self._release: Release | None = None
        self._process = os.getpid()
        self._lock = threading.RLock()

    @classmethod
    def begin(
        cls,
        mechanism: Mechanism,
        *,
        source: NoiseSource | None = None,
        supplied: perturbations.Perturbations | None = None,
        on_violation: str = "error",
        max_pending: int = DEFAULT_MAX_PENDING,
    ) -> Self:
        """Draw the first noise: the operating system's, unless a test names another source."""
        source = SystemNoise() if source is None else source
        return cls(
            State.begin(
                mechanism,
                source,
                max_pending=max_pending,
                supplied=supplied,
                on_violation=on_violation,
            )
        )

    @classmethod
    def open(
        cls,
        keeper: Keeper,
        document: dict[str, Any],
        records: list[dict[str, Any]],
        ledger: GrowingLedger,
        *,
        extra: dict[str, Any],
        source: NoiseSource | None = None,
        supplied: perturbations.Perturbations | None = None,
    ) -> Self:
        """Continue from what `Keeper.open` found, where the last call returned.

        A state older than its ledger is refused: something was shown that it does not know of.
        """
        state = restored(document, records, source=source, supplied=supplied)
        if state.mechanism.guarantee.epsilon != document["mechanism"]["guarantee"]["epsilon"]:
            raise ParameterError(
                "noise_source",
                "can be repeated, and this learner promises privacy; leave it out",
            )
        release = state.release()
        digest = fingerprint(release) if release.number else None
        if supplied is not None and 0 < release.number == len(ledger):
            digest = ledger.entries[-1].sha256  # what was supplied need not come out the same
        missing = ledger.reconcile(release.number, release.rows, digest)
        if missing is not None:
            keeper.note(missing)
        self = cls(state, ledger)
        self._release = release
        self._keeper = keeper
        self._extra = extra
        return self

    def save(self, path: str | os.PathLike[str] | None, extra: dict[str, Any]) -> None:
        """Keep the curator in files from now on, or bring its snapshot up to date."""
        self._require_usable()
        with self._lock:
            self._show()
            body = {**extra, **self._state.document()}
            if self._keeper is None:
                if path is None:
                    raise ParameterError("path", "is missing; say where to keep the learner")
                codec.require_storable(self.mechanism)
                self._keeper = self._created(path, body)
                self._astray = False
            elif path is not None and Path(path).resolve() != self._keeper.path:
                raise ParameterError(
                    "path",
                    "is not where this learner is kept; a second file could be continued as well, "
                    "so leave it out, or close the learner and move its files",
                )
            else:
                self._keeper.compact(body)
            self._extra = extra

    def _created(self, path: str | os.PathLike[str], body: dict[str, Any]) -> Keeper:
        """New files; if an interrupt comes when they stand, only they may continue."""
        self._astray = True
        try:
            return Keeper.create(path, body, self._ledger)
        except (OSError, DiscreetError):
            self._astray = False
            raise
        except BaseException:
            self._astray = Path(path).exists()
            raise

    def close(self) -> None:
        """Bring the files up to date and give them up; nothing more can be done with it then."""
        with self._lock:
            if self._keeper is None or self._keeper.closed:
                return
            try:
                with suppress(OSError):  # the journal has everything
                    self.save(None, self._extra)
            finally:
                self._keeper.close()

    @property
    def ledger(self) -> Ledger:
        """All releases so far."""
        self._require_usable()
        with self._lock:
            self._show()
            return self._ledger.view()

    @property
    def path(self) -> Path | None:
        """Where the curator is kept, if it is."""
        return None if self._keeper is None else self._keeper.path

    @property
    def rounds(self) -> int:
        """How many decisions have been opened."""
        return self._state.waiting.rounds

    @property
    def rows(self) -> int:
        """How many of them have had their reward."""
        return self._state.sums.rows

    @property
    def waiting(self) -> int:
        """How many still wait for one."""
        return len(self._state.waiting)

    def admit(self, actions: ArrayLike) -> F64:
        """A bounded copy of a decision set, if there is a round left to play."""
        self._require_usable()
        self._state.require_a_round()
        problem = self.mechanism.setting.problem
        return rows.bounded_actions(problem, actions, self._state.on_violation)

    def remember(self, action: F64) -> str:
        """Remember a chosen action until its reward comes; the decision's id."""
        self._require_usable()
        state = self._state
        with self._lock:
            state.require_a_round()
            decision = state.waiting.next_id()
            self._change(
                lambda: state.opened(decision, action),
                lambda: state.waiting.open(decision, action),
            )
            return decision

    def learn(self, decision: object, reward: object) -> None:
        """Close a decision with its reward.

        Noise is drawn first and written down with the row. The row is in when this returns, and
        on the disk if the curator is kept. If the release cannot be made or the ledger cannot be
        written then, that is tried again before anybody sees the release.
        """
        self._require_usable()
        state = self._state
        with self._lock:
            self._show()
            waiting = state.waiting.require(decision)
            value = rows.bounded_reward(self.mechanism.setting.problem, reward, state.on_violation)
            fresh = state.sums.prepared()
            self._change(
                lambda: state.learned(waiting, value, fresh),
                lambda: state.take_in(waiting, value, fresh),
            )
            with suppress(Exception):  # the row is in, and this is tried again before it is shown
                self._show()

    def forget(self, decision: object) -> None:
        """Give up a decision whose reward will not come, and erase its action."""
        self._require_usable()
        state = self._state
        with self._lock:
            waiting = state.waiting.require(decision)
            self._change(lambda: state.forgotten(waiting), lambda: state.waiting.take(waiting))

    def _change(self, record: Callable[[], dict[str, Any]], make: Callable[[], object]) -> None:
        """Write a change down, if the curator is kept, and make it.

        If it cannot be made, it is taken back. An interrupt that comes when it has been made in
        part or in whole makes all later calls refuse: the files have it, and it is to be reloaded.
        """
        keeper = self._keeper
        if keeper is None:
            make()
            return
        before = self._state.counters()
        keeper.record(record())
        try:
            make()
            keeper.settle()
        except BaseException:
            if self._state.counters() == before:
                keeper.withdraw()
            raise
        if keeper.due(_LONG):
            with suppress(Exception):  # the change is made; the journal only gets longer
                self.save(None, self._extra)

    def release(self) -> Release:
        """The current release; the same object until there is a new one."""
        self._require_usable()
        with self._lock:
            return self._show()

    def _show(self) -> Release:
        """The current release, which is in the ledger before anybody sees it."""
        release, number = self._release, self._state.sums.number
        if release is not None and release.number == number:
            return release
        release = self._state.release()
        if len(self._ledger) < number:
            self._ledger.add(number, release.rows, fingerprint(release))
        if self._keeper is not None and self._keeper.noted < number:
            self._keeper.note(self._ledger.entries[number - 1])
        self._release = release
        return release

    def _require_usable(self) -> None:
        if os.getpid() != self._process:
            raise WrongProcessError(
                "process",
                "is not the one this learner was made in; a fork would show the same noise on "
                "other data, so keep the learner in one process",
            )
        if self._astray:
            raise ReloadNeededError(
                "learner", "was interrupted while its files were made; load it from there"
            )
        if self._keeper is not None and self._keeper.closed:
            raise ReloadNeededError("learner", "was closed; load it again from its file")

    def __repr__(self) -> str:
        return (
            f"Curator(variant={self.mechanism.variant!r}, rounds={self.rounds}, "
            f"rows={self.rows}, waiting={self.waiting})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: two copies would show the same noise on other data."""
        raise TypeError("a learner cannot be copied or pickled; use save and load")


def restored(
    document: dict[str, Any],
    records: list[dict[str, Any]],
    *,
    source: NoiseSource | None = None,
    supplied: perturbations.Perturbations | None = None,
) -> State:
    """The state that a snapshot and the records since lead to; CorruptFileError if to none."""
    try:
        state = State.resume(document, SystemNoise() if source is None else source, supplied)
        for record in records:
            state.again(record)
    except _BAD:
        raise CorruptFileError(
            "path", "holds settings that do not fit together; restore it from a backup"
        ) from None
    return state
