"""A full disk, and a database that is away: the service says so, and recovers by itself."""

import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.database import Server, running
from service.chaos.living import Line, Service, Unreachable, until

BANDIT = {
    "name": "hard",
    "epsilon": 5.0,
    "delta": 0.01,
    "horizon": 100_000,
    "reward": {"wait_seconds": 0.5},
}
RANK = {"actions": [{"id": "a"}, {"id": "b"}]}
HERE = "/v1/bandits/hard"
REFUSED = (503, "StoreUnavailable")
LONG = 60.0  # seconds for which a database is away


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as one:
        yield one


def ranked(line: Line) -> tuple[int, str]:
    """Status and code of a rank; (0, '') if there was no answer."""
    try:
        status, body = line.ask("POST", f"{HERE}/rank", RANK)
    except Unreachable:
        return 0, ""
    return status, "" if status == 201 else body["error"]["code"]


def recovered(service: Service, line: Line, acknowledged: int) -> None:
    """It ranks again, and closes all that it has acknowledged; nothing was lost."""
    until(lambda: ranked(line) == (201, ""), "it does not recover", service.said)

    def closed() -> bool:
        with contextlib.suppress(Unreachable):
            status, body = line.ask("GET", HERE)
            return status == 200 and body["closed"] == body["events"] > acknowledged
        return False

    until(closed, "events stay open", service.said)
    assert "Traceback" not in service.said()


def limited(service: Service, largest: int) -> None:
    """No file of its processes may become longer than this, as on a disk that is full."""
    for process in (service.pid, *service.writers()):
        _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (largest, most))


def test_a_disk_that_is_full_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    with Service(tmp_path / "data") as service, contextlib.closing(service.line()) as line:
        assert line.ask("POST", "/v1/bandits", BANDIT)[0] == 201
        acknowledged = 0
        for _ in range(20):
            acknowledged += ranked(line)[0] == 201
        assert acknowledged == 20
        limited(service, 4096)
        answers = [ranked(line) for _ in range(10)]
        assert REFUSED in answers, answers
        assert {*answers} <= {REFUSED, (201, "")}
        acknowledged += answers.count((201, ""))
        assert line.ask("GET", "/healthz")[0] == 200
        limited(service, resource.RLIM_INFINITY)
        recovered(service, line, acknowledged)


def test_a_service_that_starts_before_its_database_waits_for_it(
    tmp_path: Path, server: Server
) -> None:
    server.kill()
    started = [
        Service(tmp_path / role / "data", role=role, database=server.address)
        for role in ("writer", "ranker")
    ]
    try:
        for one in started:
            one.log.parent.mkdir()
            one.start(wait=False)
        until(lambda: all("database" in one.said() for one in started), "nobody says so")
        assert all(one.alive for one in started)
        server.start()
        started[1].wait()
        with contextlib.closing(started[1].line()) as line:
            assert line.ask("POST", "/v1/bandits", BANDIT)[0] == 201
            recovered(started[1], line, 0)
        assert [one.stop() for one in started] == [0, 0]
    finally:
        for one in started:
            one.end()


@pytest.mark.nightly
def test_a_database_that_is_away_for_a_minute_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    with running() as server:
        away(Service(tmp_path / "data", database=server.address), server)


def away(service: Service, server: Server) -> None:
    with service, contextlib.closing(service.line(timeout=40)) as line:
        assert line.ask("POST", "/v1/bandits", BANDIT)[0] == 201
        assert [ranked(line)[0] for _ in range(20)] == [201] * 20
        server.kill()
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            assert ranked(line) == REFUSED
            assert line.ask("GET", "/healthz")[0] == 200
            time.sleep(0.5)
        status, said = line.ask("GET", "/readyz")
        assert (status, said["ready"]) == (503, False)
        server.start()
        recovered(service, line, 20)
