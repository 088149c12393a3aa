"""Events: what was decided, until its deadline. Every function is a part of one transaction.

Events of a bandit are numbered 1, 2, 3, ... without a gap, in the order in which they were
committed. Row n of the learner is event n: so how many rows the learner has says which events were
learned from, after any crash. What is raw data (features, reward, subject) is in
``service_pending`` alone, and is removed when the event is closed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from discreet.service._bodies import Reward, ServiceError, Verdict
from discreet.service._database import Connection

_EVENT = ("bandit", "event_id", "number", "deadline")
_PENDING = (
    "bandit", "number", "deadline", "active", "features", "otherwise", "subject", "request",
    "choice", "release",
)  # fmt: skip
_OF_EVENTS = (
    "FROM service_event e "
    "LEFT JOIN service_pending p ON p.bandit = e.bandit AND p.number = e.number "
    "WHERE e.bandit = ? AND e.event_id IN ({})"
)
_KNOWN = f"SELECT e.event_id, p.request, p.choice, p.release {_OF_EVENTS}"
_REWARDED = f"SELECT e.event_id, e.number, e.deadline, p.reward, p.number IS NULL {_OF_EVENTS}"
# Nothing private stays: what was asked and chosen, what came of it, and whether it counted go.
_BLANKED = (
    "UPDATE service_pending SET features = NULL, reward = NULL, subject = NULL, request = ?, "
    "choice = 0, active = 1"
)
_CHUNK = 400  # values in one statement
_FORGOTTEN = 2_000  # events whose ids are forgotten in one transaction


class Decided(NamedTuple):
    """An event to be written down.

    Attributes:
        event_id: its id.
        fresh: whether the id was made up here, so that it cannot be there already.
        wait: how many seconds it waits for a reward.
        active: whether it counts without being activated.
        features: the chosen action's row, 64 bits a number.
        otherwise: its reward if none comes.
        subject: the keyed hash of whom it was for.
        request: the keyed digest of what was asked, and with which key.
        choice: which action was chosen.
        release: from which release.
    """

    event_id: str
    fresh: bool
    wait: float
    active: bool
    features: bytes
    otherwise: float
    subject: bytes | None
    request: bytes
    choice: int
    release: int


class Repeated(NamedTuple):
    """An event with this id was there before.

    Attributes:
        request: the digest of what was asked then; None if the event is closed.
        choice: which action was chosen.
        release: from which release.
    """

    request: bytes | None
    choice: int = 0
    release: int = 0


class Full(NamedTuple):
    """The bandit has had as many events as its horizon allows."""


class Pending(NamedTuple):
    """An event that waits for its deadline, as the writer reads it."""

    number: int
    deadline: float
    active: bool
    features: bytes | None
    reward: float | None
    otherwise: float
    subject: bytes | None


def record(
    connection: Connection, bandit: int, decided: Sequence[Decided], now: float
) -> Sequence[Repeated | Full | ServiceError | None]:
    """Write down decisions, in this order; the bandit is locked.

    Args:
        connection: in a transaction.
        bandit: whose they are.
        decided: the decisions.
        now: the time, from which deadlines are counted.

    Returns:
        For each decision None if it is a new event, or why it is not one: an error if the bandit is
        not there.
    """
    before = _known(connection, bandit, [one.event_id for one in decided if not one.fresh])
    found = connection.execute("SELECT events, room FROM service_bandit WHERE id = ?", (bandit,))
    if not found:  # it was made after the backup that was restored
        gone = ServiceError(404, "BanditNotFound", "There is no bandit of this name any more.")
        return [gone] * len(decided)
    number, room = found[0]
    answers: list[Repeated | Full | ServiceError | None] = []
    events, pending = [], []
    for one in decided:
        if one.event_id in before:
            answers.append(before[one.event_id])
            continue
        if number >= room:
            answers.append(Full())
            continue
        number += 1
        deadline = now + one.wait
        if not one.fresh:
            before[one.event_id] = Repeated(one.request, one.choice, one.release)
        events.append((bandit, one.event_id, number, deadline))
        pending.append(
            (
                bandit, number, deadline, int(one.active), one.features, one.otherwise,
                one.subject, one.request, one.choice, one.release,
            )
        )  # fmt: skip
        answers.append(None)
    if events:
        connection.insert("service_event", _EVENT, events)
        connection.insert("service_pending", _PENDING, pending)
        connection.execute("UPDATE service_bandit SET events = ? WHERE id = ?", (number, bandit))
    return answers


def _known(connection: Connection, bandit: int, ids: Sequence[str]) -> dict[str, Repeated]:
    """Which of these events are there."""
    found: dict[str, Repeated] = {}
    for start in range(0, len(ids), _CHUNK):
        some = ids[start : start + _CHUNK]
        rows = connection.execute(_KNOWN.format(_marks(some)), (bandit, *some))
        for event_id, request, choice, release in rows:
            closed = request is None
            found[event_id] = (
                Repeated(None) if closed else Repeated(bytes(request), choice, release)
            )
    return found


def reward(
    connection: Connection,
    bandit: int,
    rewards: Sequence[Reward],
    *,
    bounds: tuple[float, float],
    adding: bool,
    now: float,
) -> list[Verdict]:
    """Take in rewards, in this order; the bandit is locked.

    Args:
        connection: in a transaction.
        bandit: whose events they are for.
        rewards: events' ids and values.
        bounds: the least and the largest value.
        adding: whether several rewards of an event add up, instead of the first one counting.
        now: the time. What comes after an event's deadline is late.

    Returns:
        What became of each.
    """
    states: dict[str, tuple[int, float, float | None] | None] = {}
    ids = list(dict.fromkeys(one.event_id for one in rewards))
    for start in range(0, len(ids), _CHUNK):
        some = ids[start : start + _CHUNK]
        rows = connection.execute(_REWARDED.format(_marks(some)), (bandit, *some))
        for event_id, number, deadline, value, closed in rows:
            states[event_id] = (number, -1.0 if closed else deadline, value)
    low, high = bounds
    changed: dict[int, float] = {}
    verdicts = []
    for one in rewards:
        state = states.get(one.event_id)
        verdict = _verdict(one.value, state, low, high, now, adding=adding)
        verdicts.append(Verdict(one.event_id, _STATUS[verdict], verdict))
        if verdict == "accepted" and state is not None:
            number, deadline, value = state
            total = one.value if value is None else min(high, max(low, value + one.value))
            states[one.event_id] = (number, deadline, total)
            changed[number] = total
    if changed:
        connection.many(
            "UPDATE service_pending SET reward = ? WHERE bandit = ? AND number = ? "
            "AND features IS NOT NULL",  # not of a person who was erased
            [(value, bandit, number) for number, value in changed.items()],
        )
    return verdicts


_STATUS = {"accepted": 204, "late": 204, "duplicate": 204, "invalid": 400, "unknown": 404}


def _verdict(
    value: float,
    state: tuple[int, float, float | None] | None,
    low: float,
    high: float,
    now: float,
    *,
    adding: bool,
) -> str:
    if not low <= value <= high:
        return "invalid"
    if state is None:
        return "unknown"
    if state[1] <= now:
        return "late"
    return "accepted" if adding or state[2] is None else "duplicate"


def activate(connection: Connection, bandit: int, event_id: str, now: float) -> bool:
    """Let a deferred event count, unless its deadline has passed; whether there is one."""
    found = connection.execute(
        "SELECT number FROM service_event WHERE bandit = ? AND event_id = ?", (bandit, event_id)
    )
    if not found:
        return False
    connection.execute(
        "UPDATE service_pending SET active = 1 WHERE bandit = ? AND number = ? AND deadline > ?",
        (bandit, found[0][0], now),
    )
    return True


def due(connection: Connection, bandit: int, after: int, now: float, most: int) -> list[Pending]:
    """The next events to close: those after a number, up to the first that still waits.

    Args:
        connection: any.
        bandit: whose.
        after: the number of the last event that was learned from.
        now: the time.
        most: how many at most.
    """
    rows = connection.execute(
        "SELECT number, deadline, active, features, reward, otherwise, subject "
        "FROM service_pending WHERE bandit = ? AND number > ? ORDER BY number LIMIT ?",
        (bandit, after, most),
    )
    found = []
    for row in rows:
        if row[1] > now:
            break
        found.append(Pending(row[0], row[1], bool(row[2]), *row[3:]))
    return found


def close(connection: Connection, bandit: int, through: int) -> None:
    """Remove what was learned from, up to an event; its id stays, so that it is known as late."""
    connection.execute(
        "DELETE FROM service_pending WHERE bandit = ? AND number <= ?", (bandit, through)
    )
    connection.execute(
        "UPDATE service_bandit SET closed = ? WHERE id = ? AND closed < ?",
        (through, bandit, through),
    )


def erase(connection: Connection, bandit: int, subject: bytes, after: int) -> int:
    """Make rows of zeros of all that waits of a person; how many events that is.

    Args:
        connection: in a transaction.
        bandit: whose events.
        subject: the keyed hash of the person.
        after: the number of the last event that was learned from.
    """
    found = connection.execute(
        "SELECT number FROM service_pending WHERE bandit = ? AND subject = ? AND number > ? "
        "AND features IS NOT NULL",
        (bandit, subject, after),
    )
    connection.execute(
        f"{_BLANKED} WHERE bandit = ? AND subject = ? AND number > ?", (b"", bandit, subject, after)
    )
    return len(found)


def blank(connection: Connection, bandit: int, before: float) -> None:
    """Remove what is raw from events whose deadlines are long past; they are rows of zeros now."""
    connection.execute(
        f"{_BLANKED} WHERE bandit = ? AND deadline < ? AND features IS NOT NULL",
        (b"", bandit, before),
    )


def purge(connection: Connection, bandit: int, closed: int, before: float) -> bool:
    """Forget the ids of events that were closed long ago; rewards for them are unknown then.

    In their order, up to the first that is not so old, and some at a time: all ids of a week are
    many, and whoever looks through them keeps everybody else waiting.

    Args:
        connection: in a transaction.
        bandit: whose events.
        closed: the number of the last event that was closed.
        before: the time before which deadlines are long ago.

    Returns:
        Whether there may be more.
    """
    found = connection.execute("SELECT MIN(number) FROM service_event WHERE bandit = ?", (bandit,))
    if found[0][0] is None:
        return False
    end = min(found[0][0] + _FORGOTTEN, closed + 1)
    kept = connection.execute(
        "SELECT number FROM service_event WHERE bandit = ? AND number < ? AND deadline >= ? "
        "ORDER BY number LIMIT 1",
        (bandit, end, before),
    )
    connection.execute(
        "DELETE FROM service_event WHERE bandit = ? AND number < ?",
        (bandit, kept[0][0] if kept else end),
    )
    return not kept and end <= closed


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
