"""Visitors who use a service whatever happens to it, and note what was acknowledged to them."""

import contextlib
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from discreet import features
from service.chaos.living import Answer, Line, Unreachable

BANDIT = "chaos"
ACTIONS = ("a", "b", "c")
TOKENS = 2**20
WAIT, DEFAULT, CAP = 1.0, 0.0, 3  # the wait is in seconds
MAP = features.FeatureMap(
    [
        features.intercept(),
        features.action_id(ACTIONS),
        features.numeric("action.token", low=0, high=TOKENS),
    ]
)
SPECIFICATION: dict[str, Any] = {
    "name": BANDIT,
    "epsilon": 100.0,  # so that there are releases after a few rows
    "delta": 0.01,
    "horizon": 1_000_000,
    "contributions_per_user": CAP,
    "reward": {"low": 0.0, "high": 1.0, "wait_seconds": WAIT, "default": DEFAULT},
    "features": MAP.to_json(),
}
HERE = f"/v1/bandits/{BANDIT}"
_AWAY = (429, 503)  # refused for now; as with no answer, it may have been done all the same


@dataclass
class Event:
    """One event, as far as its visitor knows it.

    Attributes:
        token: tells its rows from all others.
        body: of the request.
        sent: when it was asked for first.
        acknowledged: when it was answered; None if it never was.
        action: what was answered.
        reward: what was given, if anything was.
        accepted: whether that was acknowledged.
        activation: 'yes' if it counts for sure, 'no' if for sure it does not, 'maybe' otherwise.
        leaving: whether its subject may have been erased.
    """

    token: int
    body: dict[str, Any]
    sent: float
    acknowledged: float | None = None
    action: str | None = None
    reward: float | None = None
    accepted: bool = False
    activation: str = "yes"
    leaving: bool = False

    @property
    def name(self) -> str:
        return str(self.body["event_id"])


@dataclass
class Notes:
    """What all visitors know together.

    Attributes:
        events: every event that was asked for.
        releases: digests of the releases that were seen.
        faults: answers that should never be given.
        troubled: how many requests had no answer, or the answer that the service is away.
        answered: how many were answered as they should be.
    """

    events: dict[str, Event] = field(default_factory=dict)
    releases: dict[int, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    troubled: int = 0
    answered: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def new(self, rng: random.Random, whose: str) -> Event:
        with self._lock:
            token = len(self.events) + 1
            assert token < TOKENS
            body: dict[str, Any] = {
                "event_id": f"{whose}-{token}",
                "context": {"mood": rng.random()},
                "actions": [{"id": one, "features": {"token": token}} for one in ACTIONS],
            }
            made = Event(token, body, time.time())
            if rng.random() < 0.3:
                body["subject"] = f"person {rng.randrange(40)}"
            elif rng.random() < 0.1:
                body["subject"] = f"leaver {rng.randrange(10)}"
                made.leaving = True
            if rng.random() < 0.25:
                body["defer"] = True
                made.activation = "no"
            self.events[made.name] = made
            return made

    def saw(self, release: dict[str, Any]) -> None:
        number, digest = release["number"], release["digest"]
        with self._lock:
            if self.releases.setdefault(number, digest) != digest:
                self.faults.append(f"release {number} has two digests")

    def count(self, *, troubled: bool) -> None:
        with self._lock:
            self.troubled += troubled
            self.answered += not troubled

    def fault(self, what: str, answer: Answer) -> None:
        with self._lock:
            self.faults.append(f"{what}: {answer}")

    @property
    def acknowledged(self) -> list[Event]:
        return [one for one in self.events.values() if one.acknowledged is not None]


class Visitor(threading.Thread):
    """Ranks, rewards, activates, repeats and leaves, one request after the other."""

    def __init__(self, name: str, line: Line, notes: Notes, *, pause: float = 0.002) -> None:
        super().__init__(name=name, daemon=True)
        self._line, self._notes, self._pause = line, notes, pause
        self._rng = random.Random(name)
        self._mine: list[Event] = []
        self._open: list[Event] = []
        self._going, self._abandoned = threading.Event(), threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        calls = (self.rank, self.reward, self.activate, self.repeat, self.look, self.leave)
        try:
            while not self._going.is_set():
                self._rng.choices(calls, (12, 6, 3, 2, 2, 0.2))[0]()
                time.sleep(self._rng.random() * self._pause * 2)
            while self._open and not self._abandoned.is_set():
                self._send(self._open[0])
        except BaseException as error:  # noqa: BLE001
            self.failure = error
        self._line.close()

    def stop(self) -> None:
        """Every request that had no answer is made again until it has one."""
        self._going.set()

    def abandon(self) -> None:
        """Stop at once."""
        self._abandoned.set()
        self._going.set()

    def rank(self) -> None:
        self._send(self._open[0] if self._open else self._new())

    def _new(self) -> Event:
        made = self._notes.new(self._rng, self.name)
        self._mine.append(made)
        self._open.append(made)
        return made

    def _send(self, event: Event) -> None:
        """Ask for a decision, perhaps again: there is one event however often it is asked for."""
        answer = self._ask("POST", f"{HERE}/rank", event.body)
        if answer is None:
            return
        self._open.remove(event)
        if answer[0] == 201:
            event.acknowledged, event.action = time.time(), answer[1]["action_id"]
            self._notes.saw(answer[1]["release"])
        elif answer[0] == 409:  # an earlier try had come through, and was closed meanwhile
            event.acknowledged = time.time()
        else:
            self._notes.fault(f"rank of {event.name}", answer)

    def repeat(self) -> None:
        """A repeated request has the same answer, or is refused once the event is closed."""
        event = self._one()
        if event is None or event.acknowledged is None or event.action is None:
            return
        answer = self._ask("POST", f"{HERE}/rank", event.body)
        if answer is None or answer[0] == 409:
            return
        if answer[0] != 201 or answer[1]["action_id"] != event.action:
            self._notes.fault(f"rank of {event.name} again, was {event.action}", answer)

    def reward(self) -> None:
        found = [one for one in self._mine[-12:] if self._rng.random() < 0.5]
        if not found:
            return
        for one in found:
            if one.reward is None:
                one.reward = round(self._rng.random(), 9)
        body = [{"event_id": one.name, "value": one.reward} for one in found]
        answer = self._ask("POST", f"{HERE}/rewards", body)
        if answer is None:
            return
        if answer[0] != 207 or [one["event_id"] for one in answer[1]] != [e.name for e in found]:
            self._notes.fault("rewards", answer)
            return
        for event, verdict in zip(found, answer[1], strict=True):
            event.accepted |= verdict["verdict"] == "accepted"
            known = verdict["verdict"] in {"accepted", "late", "duplicate"}
            if not known and event.acknowledged is not None:
                self._notes.fault(f"reward of {event.name}, which was acknowledged", answer)

    def activate(self) -> None:
        event = self._one()
        if event is None or "defer" not in event.body or event.activation == "yes":
            return
        event.activation = "maybe"
        answer = self._ask("POST", f"{HERE}/events/{event.name}/activate")
        if answer is None:
            return
        if answer[0] == 204:
            if time.time() < event.sent + WAIT and event.acknowledged is not None:
                event.activation = "yes"
        elif answer[0] not in {404, 409}:
            self._notes.fault(f"activation of {event.name}", answer)

    def look(self) -> None:
        answer = self._ask("GET", HERE)
        if answer is None:
            return
        if answer[0] != 200 or not 0 <= answer[1]["closed"] <= answer[1]["events"]:
            self._notes.fault("bandit", answer)
        elif answer[1]["release"] is not None:
            self._notes.saw(answer[1]["release"])

    def leave(self) -> None:
        answer = self._ask("DELETE", f"{HERE}/subjects/leaver%20{self._rng.randrange(10)}")
        if answer is not None and answer[0] != 202:
            self._notes.fault("erasure", answer)

    def _one(self) -> Event | None:
        recent = self._mine[-30:]
        return self._rng.choice(recent) if recent else None

    def _ask(self, method: str, path: str, body: object = None) -> Answer | None:
        """The answer; None if there is none, or the service is away for now."""
        answer = None
        with contextlib.suppress(Unreachable):
            answer = self._line.ask(method, path, body)
            if answer[0] == 500:
                self._notes.fault(f"{method} {path}", answer)
            elif answer[0] not in _AWAY:
                self._notes.count(troubled=False)
                return answer
            elif set(answer[1]) != {"error"}:
                self._notes.fault(f"{method} {path}", answer)
        self._notes.count(troubled=True)
        time.sleep(0.05)
        return None
