"""Clients that send byte by byte, or nothing at all: everybody else is served all the same."""

import contextlib
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from service.chaos.living import ADMIN, Service, Unreachable, until

BANDIT = {
    "name": "slow",
    "epsilon": 5.0,
    "delta": 0.01,
    "horizon": 100_000,
    "reward": {"wait_seconds": 0.5},
}
RANK = {"actions": [{"id": "a"}, {"id": "b"}]}
QUICK = {"DISCREET_BODY_SECONDS": "1"}  # in which a body must have arrived
HEAD = f"POST /v1/bandits/slow/rank HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("slow") / "data", environment=QUICK) as one:
        line = one.line()
        assert line.ask("POST", "/v1/bandits", BANDIT)[0] == 201
        line.close()
        yield one


def served(service: Service) -> None:
    """A decision for somebody who is not slow."""
    line = service.line(timeout=60)
    for _ in range(5):
        assert line.ask("POST", "/v1/bandits/slow/rank", RANK)[0] == 201
    line.close()


def connection(service: Service, data: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    made.sendall(data)
    return made


def test_a_body_that_never_ends_is_refused_and_hinders_nobody(service: Service) -> None:
    head = f"{HEAD}Content-Length: 1000\r\n\r\n".encode()
    with contextlib.ExitStack() as open_ones:
        slow = [open_ones.enter_context(connection(service, head + b'{"a')) for _ in range(100)]
        served(service)
        for one in slow:
            assert b" 408 " in one.recv(4096).split(b"\r\n")[0]


def test_a_body_that_trickles_in_is_refused_in_the_end(service: Service) -> None:
    head = f"{HEAD}Content-Length: 1000\r\n\r\n".encode()
    with connection(service, head) as one:
        one.settimeout(0.0)
        found = b""

        def refused() -> bool:
            nonlocal found
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                one.send(b" ")
            with contextlib.suppress(BlockingIOError, ConnectionResetError):
                found += one.recv(4096)
            time.sleep(0.05)
            return b"RequestTimeout" in found

        until(refused, "a slow body is waited for without end")
    served(service)


def test_heads_that_never_end_hinder_nobody(service: Service) -> None:
    with contextlib.ExitStack() as open_ones:
        for _ in range(300):
            open_ones.enter_context(connection(service, HEAD.encode()[:40]))
        served(service)


def test_clients_who_go_away_in_the_middle_hinder_nobody(service: Service) -> None:
    whole = f"{HEAD}Content-Length: {len(b'{}')}\r\n\r\n{{}}".encode()
    for cut in range(0, len(whole), 7):
        connection(service, whole[:cut]).close()
    served(service)


def idle(service: Service, count: int) -> None:
    with contextlib.ExitStack() as open_ones:
        for _ in range(count):
            open_ones.enter_context(connection(service))
        served(service)
        health = service.line()
        assert health.ask("GET", "/readyz")[0] == 200
        health.close()

    def back() -> bool:
        with contextlib.suppress(Unreachable, AssertionError):
            served(service)
            return True
        return False

    until(back, "it does not recover", service.said)


def test_idle_connections_hinder_nobody(service: Service) -> None:
    idle(service, 400)


@pytest.mark.nightly
def test_ten_thousand_idle_connections_hinder_nobody(service: Service) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 10_500:
        pytest.skip("needs a limit of more than 10,500 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        idle(service, 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
