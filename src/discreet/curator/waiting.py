"""Decisions that wait for their reward. Secret: it holds their actions as they are."""

import secrets
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.curator import rows, storage
from discreet.errors import DecisionClosedError, UnknownDecisionError
from discreet.problem import Problem

F64 = NDArray[np.float64]


class Waiting:
    """The chosen actions of decisions that may still get a reward, by id.

    Ids start with a name that is drawn anew whenever a learner is made or restored, so that a
    decision lost in a crash cannot be mistaken for a later one.
    """

    def __init__(self, most: int) -> None:
        """Nothing waits yet, and at most ``most`` will."""
        self.most = checks.count("max_pending", most)
        self.rounds = 0
        self._actions: dict[str, F64] = {}
        self._name = secrets.token_hex(4)
        self._sessions: dict[str, int] = {}

    @classmethod
    def resume(cls, state: dict[str, Any], most: int, problem: Problem) -> Self:
        """Continue from `state`; ValueError, TypeError or KeyError if it does not fit."""
        self = cls(most)
        self.rounds = checks.count("rounds", state["rounds"], least=0)
        ids = [str(decision) for decision in state["waiting"]]
        sessions = {str(name): checks.count("sessions", end) for name, end in state["sessions"]}
        actions = storage.decode(state["actions"])
        if len(set(ids)) != len(ids):
            raise ValueError("a decision waits twice")
        if actions.shape != (len(ids), problem.dim):
            raise ValueError("the waiting actions have another shape")
        if len(ids) > self.most:
            raise ValueError("more decisions wait than may")
        if ids:
            actions = rows.bounded_actions(problem, actions, "error")
        self._sessions = sessions
        self._actions = dict(zip(ids, actions, strict=True))
        return self

    def state(self, dim: int) -> dict[str, Any]:
        """What `resume` takes."""
        past = {**self._sessions, **({self._name: self.rounds} if self.rounds else {})}
        return {
            "sessions": [list(item) for item in past.items()],
            "rounds": self.rounds,
            "waiting": list(self._actions),
            "actions": storage.encode(np.reshape(list(self._actions.values()), (-1, dim))),
        }

    def __len__(self) -> int:
        return len(self._actions)

    def next_id(self) -> str:
        """The id of the next decision."""
        return f"{self._name}-{self.rounds}"

    def open(self, decision: str, action: F64) -> None:
        """Remember an action; if too many wait, the oldest is given up."""
        self.rounds += 1  # first, so that an interrupt that comes after any change shows
        if len(self._actions) >= self.most:
            del self._actions[next(iter(self._actions))]
        self._actions[decision] = action

    def open_again(self, decision: str, action: F64) -> None:
        """The same for a decision of a learner before this one; ValueError if it cannot be."""
        name, _, number = decision.rpartition("-")
        if number != str(self.rounds) or decision in self._actions:
            raise ValueError("the decision is not the next one")
        self.open(decision, action)
        self._sessions[name] = self.rounds

    def __getitem__(self, decision: str) -> F64:
        return self._actions[decision]

    def take(self, decision: str) -> F64:
        """The action of a decision, which then waits no longer."""
        return self._actions.pop(decision)

    def put_back(self, decision: str, action: F64) -> None:
        """It does wait, after all, in the place it had: the order says who is given up first."""
        places = {**self._actions, decision: action}
        order = sorted(places, key=lambda name: int(name.rpartition("-")[2]))
        self._actions = {name: places[name] for name in order}

    def require(self, decision: object) -> str:
        """A decision's id, if it waits for its reward."""
        given = decision if isinstance(decision, str) else ""
        if given in self._actions:
            return given
        name, _, number = given.rpartition("-")
        end = self.rounds if name == self._name else self._sessions.get(name, 0)
        digits = number.isdecimal() and len(number) <= len(str(end))
        if not digits or int(number) >= end:
            raise UnknownDecisionError(
                "decision", "was not made by this learner; pass what its `choose` returned"
            )
        raise DecisionClosedError(
            "decision",
            "has had its reward, was forgotten, or was given up because more than "
            f"max_pending={self.most} decisions waited; each decision takes one reward",
        )
