"""Fuzzed bodies: no 500, no lost event, and nothing that was sent is repeated in an error."""

import asyncio
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from service.fuzz.mutations import PLAIN, SECRET, bodies
from service.fuzz.within import JSON, Within, within

BANDIT: dict[str, Any] = {
    "name": "fuzz",
    "epsilon": 5.0,
    "delta": 0.01,
    "horizon": 10_000_000,
    "contributions_per_user": 3,
    "reward": {"low": 0.0, "high": 1.0, "wait_seconds": 0.2, "default": 0.0},
}
ACTIONS = [
    {"id": "a", "features": {"topic": SECRET, "size": 3, "tags": [SECRET, "b"]}},
    {"id": "b", "features": {"topic": "other", "size": PLAIN}},
    {"id": "c"},
]
RANK = {
    "context": {"who": SECRET, "age": 44, "deep": {"er": [SECRET, PLAIN]}},
    "actions": ACTIONS,
    "exclude": ["c"],
    "event_id": "fuzz-1",
    "subject": SECRET,
    "defer": False,
}
MICROSOFT = {
    "contextFeatures": [{"who": SECRET}, {"age": 44}],
    "actions": [
        {"id": "a", "features": [{"topic": SECRET}, {"size": PLAIN}]},
        {"id": "b", "features": [{"topic": "x"}]},
    ],
    "excludedActions": ["b"],
    "eventId": "fuzz-2",
    "deferActivation": False,
}
OLD = "/bandits/fuzz/personalizer/v1.0"
TARGETS: list[tuple[int, str, str, object]] = [
    (30, "POST", "/v1/bandits/fuzz/rank", RANK),
    (20, "POST", "/v1/bandits/fuzz/rewards", [{"event_id": "fuzz-1", "value": PLAIN}] * 3),
    (4, "POST", "/v1/bandits", BANDIT),
    (4, "POST", "/v1/keys", {"name": "k", "scopes": ["rank", "read"], "bandit": "fuzz"}),
    (15, "POST", f"{OLD}/rank", MICROSOFT),
    (10, "POST", f"{OLD}/events/fuzz-2/reward", {"value": PLAIN}),
    (5, "PUT", f"{OLD}/configurations/service", {"rewardWaitTime": "PT0S", "defaultReward": PLAIN}),
    (2, "POST", "/v1/bandits/fuzz/events/fuzz-1/activate", {}),
    (1, "DELETE", "/v1/bandits/fuzz/subjects/nobody", {}),
    (1, "GET", "/v1/bandits/fuzz/releases/latest", {}),
]
TOGETHER = 64


class Fuzzing:
    """Sends bodies, many at a time, and looks at every answer."""

    def __init__(self, service: Within, seed: int) -> None:
        self._service, self._rng = service, random.Random(seed)
        self._streams = [bodies(base, self._rng) for *_, base in TARGETS]
        self._numbers = itertools.count()
        self.events: set[str] = set()
        self.statuses: dict[int, int] = {}

    async def send(self, count: int) -> None:
        for start in range(0, count, TOGETHER):
            await asyncio.gather(*(self._one() for _ in range(min(TOGETHER, count - start))))

    async def _one(self) -> None:
        target = self._rng.choices(range(len(TARGETS)), [one[0] for one in TARGETS])[0]
        _, method, path, _ = TARGETS[target]
        data = self._own_id(next(self._streams[target]))
        status, headers, text = await self._service.ask(method, path, data, self._headers())
        self.statuses[status] = self.statuses.get(status, 0) + 1
        where = f"{method} {path} {data[:2000]!r} -> {status} {text[:500]!r}"
        assert status < 500, where
        if status >= 400:
            require_refusal(headers, text, where)
        elif path.endswith("/rank"):
            found = json.loads(text)
            self.events.add(found.get("event_id") or found["eventId"])

    def _own_id(self, data: bytes) -> bytes:
        """Mostly another event each time."""
        if self._rng.random() < 0.8:
            number = str(next(self._numbers)).encode()
            return data.replace(b"fuzz-1", b"one" + number).replace(b"fuzz-2", b"two" + number)
        return data

    def _headers(self) -> dict[str, str]:
        kind = self._rng.random()
        if kind < 0.9:
            return JSON
        strange = {"content-type": self._rng.choice(("text/plain", "application/xml", "", "a;b;c"))}
        if kind < 0.95:
            return {**JSON, **strange}
        strange["content-length"] = self._rng.choice(("-1", "0", "9" * 30, "zero", "1"))
        return {**JSON, **strange, "if-none-match": "\xff", "accept": "nothing/else"}


def require_refusal(headers: dict[str, str], text: bytes, where: str) -> None:
    """The one form of errors, which says nothing of what was sent."""
    assert headers["content-type"].startswith("application/json"), where
    error = json.loads(text)["error"]
    assert isinstance(error["code"], str), where
    assert isinstance(error["message"], str), where
    for secret in (SECRET, str(PLAIN), "Traceback", 'File "'):
        assert secret.encode() not in text, where


async def _fuzz(folder: Path, count: int, seed: int) -> dict[int, int]:
    async with within(folder) as service:
        status, made = await service.json("POST", "/v1/bandits", BANDIT)
        assert status == 201, made
        fuzzing = Fuzzing(service, seed)
        await fuzzing.send(count)
        await _nothing_lost(service, len(fuzzing.events))
        for line in service.logged:
            assert SECRET not in line
            assert str(PLAIN) not in line
            assert not line.startswith(("ERROR", "CRITICAL")), line
    return fuzzing.statuses


async def _nothing_lost(service: Within, events: int) -> None:
    """Every event that was acknowledged is there, and is closed in the end."""
    for _ in range(3000):
        _, found = await service.json("GET", "/v1/bandits/fuzz")
        assert found["events"] == events
        assert found["state"] == "running", found["state_reason"]
        if found["closed"] == events:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{found['closed']} of {events} events are closed")


def fuzz(folder: Path, count: int, seed: int) -> dict[int, int]:
    """How often each status was answered."""
    data = folder / "data"
    data.mkdir()
    found = asyncio.run(_fuzz(data, count, seed))
    print(f"seed {seed}: {dict(sorted(found.items()))}")  # noqa: T201  # seen with pytest -s
    return found


def test_fuzzed_bodies_are_answered_or_refused(tmp_path: Path) -> None:
    found = fuzz(tmp_path, 2500, seed=1)
    assert min(found.get(code, 0) for code in (201, 207, 400)) > 50


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_hundred_thousand_fuzzed_bodies_are_answered_or_refused(
    tmp_path: Path, seed: int
) -> None:
    assert sum(fuzz(tmp_path, 25_000, seed).values()) == 25_000
