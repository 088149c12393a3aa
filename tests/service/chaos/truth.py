"""What has to be true of a service that was killed over and over, once it has come to rest."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import psycopg

import discreet
from discreet.release.ledger import fingerprint
from service.chaos.living import Line, Service, Unreachable, until
from service.chaos.visits import ACTIONS, DEFAULT, HERE, MAP, TOKENS, Event, Notes

Learned = dict[int, tuple[int, int, float]]  # token -> number of the row, action, reward
_NOTHING = 0.5  # the middle of the rewards, which is nothing to the learner
_SCALE = abs(float(MAP(None, [{"id": "a", "token": TOKENS}])[0, -1]))


def at_rest(service: Service, notes: Notes) -> dict[str, Any]:
    """Wait until every event is closed; the bandit then."""
    line, found = service.line(), {}

    def closed() -> bool:
        try:
            status, body = line.ask("GET", HERE)
        except Unreachable:
            return False
        found.update(body if status == 200 else {})
        return status == 200 and body["closed"] >= body["events"]

    until(closed, "events stay open", lambda: f"{found}\n{service.said()}")
    line.close()
    least, most = len(notes.acknowledged), len(notes.events)
    assert least <= found["events"] <= most, f"{found['events']} events, not {least} to {most}"
    assert found["closed"] == found["events"], f"{found['closed']} closed of {found['events']}"
    assert not notes.faults, notes.faults[:5]
    return found


def releases(line: Line, notes: Notes) -> int:
    """Every release of the ledger is listed; what was ever seen is there with the same digest."""
    status, ledger = line.ask("GET", f"{HERE}/ledger")
    assert status == 200
    assert ledger["intact"]
    written = {one["number"]: one["sha256"] for one in ledger["entries"]}
    status, listed = line.ask("GET", f"{HERE}/releases")
    assert status == 200, listed
    shown = {one["number"]: one["digest"] for one in listed["releases"] if one["number"]}
    missing = sorted(set(written) - set(shown))
    assert not missing, f"releases {missing[:5]} of the ledger are not listed"
    assert shown == written, "the list of releases is not the ledger's"
    for number, digest in notes.releases.items():
        if not number:
            continue
        assert written[number] == digest, f"the ledger has another release {number}"
        status, document = line.ask("GET", f"{HERE}/releases/{number}")
        assert status == 200, f"release {number} is gone: {document}"
        assert fingerprint(discreet.Release.from_json(document)) == digest, f"release {number}"
    return len(written)


def stored(data: Path, address: str | None) -> discreet.LinUCB:
    """The learner of the only bandit, which nobody has open."""
    query = "SELECT learner FROM service_bandit"
    if address is None:
        with contextlib.closing(sqlite3.connect(data / "service.sqlite")) as connection:
            ((name,),) = connection.execute(query).fetchall()
        return discreet.load(data / "learners" / name)
    with psycopg.connect(address) as connected:
        ((name,),) = connected.execute(query).fetchall()
    return discreet.load(f"{address}#{quote(name)}")


def rows(notes: Notes, record: Path, learner_rows: int) -> dict[str, int]:
    """Every event is one row, with the reward that was acknowledged, in the order of events."""
    learned, zeros, total = _read(record)
    assert total == learner_rows, f"the learner has {learner_rows} rows and was given {total}"
    tokens = {one.token: one for one in notes.events.values()}
    for token, (number, action, reward) in learned.items():
        assert token in tokens, f"row {number} is no event's"
        _as_answered(tokens[token], action, reward)
    lost = [one.name for one in notes.acknowledged if _counts(one) and one.token not in learned]
    assert not lost, f"{len(lost)} acknowledged events were not learned: {lost[:5]}"
    _in_order(tokens, learned)
    return {"events": total, "zeros": zeros, "acknowledged": len(notes.acknowledged)}


def _counts(event: Event) -> bool:
    """Whether an acknowledged event has to be a row that is not of zeros."""
    return event.activation == "yes" and not event.leaving


def _as_answered(event: Event, action: int, reward: float) -> None:
    assert event.activation != "no", f"{event.name} was never activated, and was learned"
    assert event.action in {None, ACTIONS[action]}, f"{event.name} was learned with another action"
    allowed = {DEFAULT if event.reward is None else event.reward}
    if not event.accepted:
        allowed.add(DEFAULT)
    assert reward in allowed, f"{event.name} has the reward {reward}, not one of {allowed}"


def _in_order(tokens: dict[int, Event], learned: Learned) -> None:
    """An event that was acknowledged before another one was asked for is an earlier row."""
    latest, whose = 0.0, ""
    for token in sorted(learned, key=lambda one: learned[one][0]):
        event = tokens[token]
        if event.acknowledged is not None:
            assert event.acknowledged >= latest, f"{event.name} was learned after {whose}"
        if event.sent > latest:
            latest, whose = event.sent, event.name


def _read(record: Path) -> tuple[Learned, int, int]:
    """What the learner was given: rows by token, how many zeros, how many in all."""
    given: dict[int, tuple[list[float], float]] = {}
    for start, chosen, values in _lines(record):
        for offset, (row, value) in enumerate(zip(chosen, values, strict=True)):
            given[start + offset] = (row, value)
    assert sorted(given) == list(range(len(given))), "some row was never given"
    learned: Learned = {}
    for number, (row, value) in given.items():
        if not np.any(row):
            assert value == _NOTHING, f"row {number} is of zeros and has a reward"
            continue
        token = round((row[-1] / _SCALE + 1) / 2 * TOKENS)
        assert token not in learned, f"an event is rows {learned[token][0]} and {number}"
        learned[token] = (number, int(np.argmax(row[1:4])), value)
    return learned, len(given) - len(learned), len(given)


def _lines(record: Path) -> Iterator[tuple[int, list[list[float]], list[float]]]:
    for line in record.read_text().splitlines():
        try:
            start, chosen, values = json.loads(line)
        except ValueError:  # its writer was killed before it had written all of it
            continue
        yield start, chosen, values
