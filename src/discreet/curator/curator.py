"""The owner of the raw state."""

import os
import secrets
import threading
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import checks, perturbations
from discreet.curator import description, rows, storage
from discreet.curator.sums import NoisySums
from discreet.errors import (
    DecisionClosedError,
    HorizonReachedError,
    UnknownDecisionError,
    WrongProcessError,
)
from discreet.kernels import linalg
from discreet.mechanism import Mechanism
from discreet.noise.source import NoiseSource, SystemNoise
from discreet.release import Release

F64 = NDArray[np.float64]

DEFAULT_MAX_PENDING = 10_000


class Curator:
    """Holds actions that wait for their reward and noisy sums of those that have had it.

    Formal guarantee: under replacement of one round's decision set and reward, within the stated
    bounds (enforced here), the sequence of all releases has the mechanism's guarantee, also when
    later rows depend on earlier releases. Which decisions get a reward, and in which order, is
    taken to be public.

    State: O(d^2) for each buffer or level of the sums and O(d) for each action that waits, at most
    ``max_pending`` of them; beyond that the oldest is given up.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        sums: NoisySums,
        *,
        supplied: perturbations.Perturbations | None,
        on_violation: str,
        max_pending: int,
    ) -> None:
        """Use `begin` or `resume` instead."""
        self.mechanism = mechanism
        self.on_violation = rows.checked_choice(on_violation)
        self.max_pending = checks.count("max_pending", max_pending)
        self._supplied = supplied
        self._sums = sums
        self._pending: dict[str, F64] = {}
        self._rounds = 0
        self._name = secrets.token_hex(4)
        self._sessions: dict[str, int] = {}
        self._process = os.getpid()
        self._release: Release | None = None
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
        mechanism = _honest(mechanism, source)
        return cls(
            mechanism,
            NoisySums.begin(mechanism, source),
            supplied=supplied,
            on_violation=on_violation,
            max_pending=max_pending,
        )

    @classmethod
    def resume(
        cls,
        document: dict[str, Any],
        *,
        source: NoiseSource | None = None,
        supplied: perturbations.Perturbations | None = None,
    ) -> Self:
        """Continue from `document`; ValueError, TypeError or KeyError if it does not fit."""
        source = SystemNoise() if source is None else source
        mechanism = _honest(description.from_json(document["mechanism"]), source)
        state = document["state"]
        rounds = checks.count("rounds", state["rounds"], least=0)
        done = checks.count("rows", state["rows"], least=0)
        waiting = [str(decision) for decision in state["waiting"]]
        sessions = {str(name): checks.count("sessions", end) for name, end in state["sessions"]}
        actions = storage.decode(state["actions"])
        if len(set(waiting)) != len(waiting):
            raise ValueError("a decision waits twice")
        if done > rounds - len(waiting) or rounds > mechanism.setting.horizon:
            raise ValueError("the counters do not fit together")
        if actions.shape != (len(waiting), mechanism.setting.problem.dim):
            raise ValueError("the waiting actions have another shape")
        if waiting:
            actions = rows.bounded_actions(mechanism.setting.problem, actions, "error")
        arrays = {name: storage.decode(part) for name, part in state["sums"].items()}
        curator = cls(
            mechanism,
            NoisySums.resume(
                mechanism,
                source,
                rows=done,
                released=checks.count("released", state["released"], least=0),
                number=checks.count("releases", state["releases"], least=0),
                arrays=arrays,
            ),
            supplied=supplied,
            on_violation=document["on_violation"],
            max_pending=document["max_pending"],
        )
        if len(waiting) > curator.max_pending:
            raise ValueError("more decisions wait than may")
        curator._sessions = sessions
        curator._pending = dict(zip(waiting, actions, strict=True))
        curator._rounds = rounds
        return curator

    def document(self) -> dict[str, Any]:
        """All that a save file has to hold. Secret: it contains the actions that wait."""
        self._require_own_process()
        with self._lock:
            dim = self.mechanism.setting.problem.dim
            past = {**self._sessions, **({self._name: self._rounds} if self._rounds else {})}
            return {
                "mechanism": description.to_json(self.mechanism),
                "supplied": self._supplied is not None,
                "on_violation": self.on_violation,
                "max_pending": self.max_pending,
                "state": {
                    "sessions": [list(item) for item in past.items()],
                    "rounds": self._rounds,
                    "rows": self.rows,
                    "released": self._sums.released,
                    "releases": self._sums.number,
                    "waiting": list(self._pending),
                    "actions": storage.encode(np.reshape(list(self._pending.values()), (-1, dim))),
                    "sums": {
                        name: storage.encode(part) for name, part in self._sums.state().items()
                    },
                },
            }

    @property
    def rounds(self) -> int:
        """How many decisions have been opened."""
        return self._rounds

    @property
    def rows(self) -> int:
        """How many of them have had their reward."""
        return self._sums.rows

    @property
    def waiting(self) -> int:
        """How many still wait for one."""
        return len(self._pending)

    def admit(self, actions: ArrayLike) -> F64:
        """A bounded copy of a decision set, if there is a round left to play."""
        self._require_own_process()
        self._require_a_round()
        return rows.bounded_actions(self.mechanism.setting.problem, actions, self.on_violation)

    def open(self, action: F64) -> str:
        """Remember a chosen action until its reward comes; the decision's id."""
        self._require_own_process()
        with self._lock:
            self._require_a_round()
            if len(self._pending) >= self.max_pending:
                del self._pending[next(iter(self._pending))]
            decision = f"{self._name}-{self._rounds}"
            self._pending[decision] = action
            self._rounds += 1
            return decision

    def learn(self, decision: object, reward: object) -> None:
        """Close a decision with its reward.

        Noise is drawn first. Then the action is taken off the waiting list, and only then is the
        row added: an interrupt in between loses a row rather than count it twice.
        """
        problem = self.mechanism.setting.problem
        self._require_own_process()
        with self._lock:
            waiting = self._waiting(decision)
            action = self._pending[waiting]
            value = rows.bounded_reward(problem, reward, self.on_violation)
            row = np.empty(linalg.packed_size(problem.dim))
            linalg.pack_row(action, value, row)
            fresh = self._sums.prepared()
            before = self._release
            self._release = None
            del self._pending[waiting]
            if not self._sums.add(row, fresh):
                self._release = before  # the row waits in its batch for the next release

    def forget(self, decision: object) -> None:
        """Give up a decision whose reward will not come, and erase its action."""
        self._require_own_process()
        with self._lock:
            del self._pending[self._waiting(decision)]

    def release(self) -> Release:
        """The current release; the same object until there is a new one."""
        self._require_own_process()
        with self._lock:
            if self._release is None:
                self._release = self._make_release()
            return self._release

    def _make_release(self) -> Release:
        dim = self.mechanism.setting.problem.dim
        gram, moment = np.empty((dim, dim)), np.empty(dim)
        self._sums.unpack(self.mechanism.shift, gram, moment)
        if self._supplied is not None:
            extra = perturbations.checked(self._supplied, self.rows + 1, dim)
            gram += extra[0]
            moment += extra[1]
        return Release(
            number=self._sums.number,
            rows=self._sums.released,
            gram=gram,
            moment=moment,
            mechanism=self.mechanism,
        )

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise WrongProcessError(
                "process",
                "is not the one this learner was made in; a fork would show the same noise on "
                "other data, so keep the learner in one process",
            )

    def _require_a_round(self) -> None:
        horizon = self.mechanism.setting.horizon
        if self._rounds >= horizon:
            raise HorizonReachedError(
                "horizon",
                f"all {horizon} rounds have been played; the guarantee covers no more, so start a "
                "new learner with a longer horizon",
            )

    def _waiting(self, decision: object) -> str:
        """A decision's id, if it waits for its reward.

        Ids start with a name that is drawn anew whenever a learner is made or restored, so that a
        decision lost in a crash cannot be mistaken for a later one.
        """
        given = decision if isinstance(decision, str) else ""
        if given in self._pending:
            return given
        name, _, number = given.rpartition("-")
        end = self._rounds if name == self._name else self._sessions.get(name, 0)
        digits = number.isdecimal() and len(number) <= len(str(end))
        if not digits or int(number) >= end:
            raise UnknownDecisionError(
                "decision", "was not made by this learner; pass what its `choose` returned"
            )
        raise DecisionClosedError(
            "decision",
            "has had its reward, was forgotten, or was given up because more than "
            f"max_pending={self.max_pending} decisions waited; each decision takes one reward",
        )

    def __repr__(self) -> str:
        return (
            f"Curator(variant={self.mechanism.variant!r}, rounds={self.rounds}, "
            f"rows={self.rows}, waiting={self.waiting})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: two copies would show the same noise on other data."""
        raise TypeError("a learner cannot be copied or pickled; use save and load")


def _honest(mechanism: Mechanism, source: NoiseSource) -> Mechanism:
    """Withdraw the promise if the noise could be repeated."""
    if mechanism.noise is None or source.secret:
        return mechanism
    reason = "its noise comes from a seed and can be repeated"
    return replace(mechanism, guarantee=mechanism.guarantee.voided(reason))
