"""What a connection may do before there is a request: heads, upgrades, how many there may be."""

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from running import running

MOST = 3


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of a service, and what it says on standard error."""
    folder = tmp_path_factory.mktemp("connections")
    with running(folder) as address:
        yield urlsplit(address).port or 0, folder / "errors.txt"


def answered(port: int, head: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
        one.sendall(head)
        found = b""
        while part := one.recv(65536):
            found += part
            if b"\r\n\r\n" in found and b"connection: close" not in found.lower():
                break
        return found


HEAD = b"GET /healthz HTTP/1.1\r\nHost: here\r\n"


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
        HEAD + b"".join(b"x%d: 1\r\n" % place for place in range(8_000)) + b"\r\n",
        b"GET /healthz?" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
    ids=["one field", "many fields", "a path"],
)
def test_a_head_that_is_too_long_is_refused_although_it_arrives_at_once(
    place: tuple[int, Path], head: bytes
) -> None:
    found = answered(place[0], head)
    assert found.startswith(b"HTTP/1.1 431 ")
    assert json.loads(found.split(b"\r\n\r\n")[1])["error"]["code"] == "RequestTooLarge"


def test_a_head_that_is_long_and_not_too_long_is_answered(place: tuple[int, Path]) -> None:
    assert answered(place[0], HEAD + b"X: " + b"a" * 60_000 + b"\r\n\r\n").startswith(
        b"HTTP/1.1 200 "
    )


def test_who_asks_for_a_websocket_is_answered_without_one_and_without_a_log(
    place: tuple[int, Path],
) -> None:
    port, said = place
    before = said.read_bytes()
    head = HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    found = answered(port, head + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 200 ")
    assert said.read_bytes() == before


def test_as_many_connections_as_were_said_are_answered_and_not_one_more(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text(f"most_connections = {MOST}\n", "utf-8")
    with (
        running(tmp_path, "--config", str(tmp_path / "service.toml")) as address,
        contextlib.ExitStack() as held,
    ):
        place = ("127.0.0.1", urlsplit(address).port)
        codes = []
        for _ in range(MOST + 1):
            one = held.enter_context(socket.create_connection(place, timeout=60))
            one.sendall(HEAD + b"\r\n")
            codes.append(one.recv(65536).split()[1])
        assert codes == [b"200"] * MOST + [b"503"]
