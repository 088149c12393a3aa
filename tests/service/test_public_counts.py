"""What can be seen without a key, or with one that reads, does not tell who was rewarded.

Two worlds: people come, and in one of them they activate what was deferred and send rewards. See
docs/privacy.md, "The service".
"""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from discreet.service._metrics import SILENT, Metrics

# How long something took, when it was, and whether that is long ago: different in every run.
_TIMES = re.compile(r"_(created|sum|bucket|up)\b|release_made")
_PUBLIC = ("/readyz", "/v1/bandits", "/v1/bandits/news")


def _played(kind: type[Any], folder: Path, *, rewarded: bool) -> dict[str, Any]:
    """What is public after people came; in one world they did more than that."""
    folder.mkdir()
    service = kind(folder / "service.sqlite", folder)
    try:
        service.make()
        for place in range(4):
            decided = service.rank(event_id=f"e{place}", defer=place == 3, subject="somebody")
            assert decided.status_code == 201, decided.text
        if rewarded:
            _react(service)
        before = _seen(service)
        service.pass_time(11)
        service.settle()
        return {"before": before, "after": _seen(service)}
    finally:
        service.close()


def _react(service: Any) -> None:
    """Rewards and activations, by both interfaces, right and wrong."""
    old = "/bandits/news/personalizer/v1.0/events"
    service.rewards(("e0", 1.0), ("e1", 7.0), ("nobody", 1.0))
    assert service.post(f"{old}/e2/reward", {"value": 1.0}).status_code == 204
    assert service.post(f"{old}/e2/reward", {"value": 9.0}).status_code == 400
    assert service.post("/v1/bandits/news/events/e3/activate").status_code == 204
    assert service.post(f"{old}/e3/activate").status_code == 204
    assert service.post("/v1/bandits/news/rewards", {"not": "a list"}).status_code == 400


def _seen(service: Any) -> dict[str, Any]:
    service.loop.run(service.core.look())  # or counts are as of the last look, a moment ago
    metrics = service.get("/metrics", key=None).text.splitlines()
    found: dict[str, Any] = {path: _known(service.get(path).json()) for path in _PUBLIC}
    found["metrics"] = [line for line in metrics if not _TIMES.search(line)]
    return found


def _known(value: Any) -> Any:
    """The same without digests and times, which are different in every world."""
    if isinstance(value, dict):
        hidden = {"digest", "made", "created", "writer", "database", "ready"}
        return {name: _known(one) for name, one in value.items() if name not in hidden}
    return [_known(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("status", [204, 207, 400, 404, 429, 500, 503])
def test_no_reward_and_no_activation_is_counted_whatever_became_of_it(
    service: Any, status: int
) -> None:
    metrics = Metrics()
    before = metrics.text(service.core)
    for route in SILENT:
        metrics.count(route, "POST", status, 0.1)
    assert metrics.text(service.core) == before
    metrics.count("rank", "POST", status, 0.1)
    assert metrics.text(service.core) != before


def test_public_counts_are_the_same_whether_rewards_came_or_not(
    service: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs, seen = [], []
    for name in ("rewarded", "silent"):
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="discreet"):
            played = _played(type(service), tmp_path / name, rewarded=name == "rewarded")
        seen.append(played)
        logs.append([record.getMessage() for record in caplog.records if "discreet" in record.name])
    assert json.dumps(seen[0], indent=1) == json.dumps(seen[1], indent=1)
    assert logs[0] == logs[1]
    assert seen[0]["after"]["/v1/bandits/news"]["closed"] == 4
    assert any(line.startswith("discreet_requests_total") for line in seen[0]["after"]["metrics"])


def test_nobody_sees_in_public_that_somebody_was_erased(
    service: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("discreet.service._administration._PATIENCE", 0.0)
    service.make()
    service.rank(subject="ann")
    for path in _PUBLIC:  # they are counted themselves
        service.get(path)
    service.loop.run(service.core.look())

    def shown() -> list[str]:
        service.get("/metrics", key=None)
        lines = service.get("/metrics", key=None).text.splitlines()
        return [line for line in lines if not _TIMES.search(line) and '"metrics"' not in line]

    before = shown()
    with caplog.at_level(logging.DEBUG, logger="discreet"):
        found = service.request("DELETE", "/v1/bandits/news/subjects/ann")
    assert found.status_code == 202
    assert shown() == before
    assert not [one for one in caplog.records if getattr(one, "route", "") == "erase"]
