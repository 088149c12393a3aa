"""uvicorn, with limits on clients that are slow, and without its own handling of signals."""

import contextlib
import errno
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from discreet.errors import ParameterError
from discreet.service._configuration import Configuration
from discreet.service._http import BODY_IS_THERE

_HEAD_SECONDS = 30.0  # in which the head of a request must have arrived
_HEAD_BYTES = 1 << 16  # that it may have
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
    b"connection: close\r\n\r\n"
    b'{"error":{"code":"RequestTooLarge","message":"The head of the request is too long."}}'
)
_IDLE_SECONDS = 75  # after an answer, until the next request
_GRACE = 15  # seconds in which requests that are under way may finish
_BACKLOG = 2048


class _TooLongError(Exception):
    """Ends the parsing of a head."""


class _Protocol(HttpToolsProtocol):
    """Closes connections on which the head of a request does not arrive in time, or is too long."""

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401  # uvicorn and asyncio differ
        super().connection_made(transport)
        self._head_bytes = self._parsed_bytes = 0
        self._in_head = True
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        before = self._in_head
        super().data_received(data)
        if not (before and self._in_head):
            return
        self._head_bytes += len(data)
        if self._head_bytes > _HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes, self._parsed_bytes = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._parsed(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes after a body is left out
            self._parsed(len(name) + len(value) + len(b": \r\n"))
            super().on_header(name, value)

    def _parsed(self, size: int) -> None:
        """Count a part of a head: one that arrives at once is never seen half."""
        self._parsed_bytes += size
        if self._parsed_bytes > _HEAD_BYTES:
            raise _TooLongError

    def send_400_response(self, msg: str) -> None:
        if self._parsed_bytes <= _HEAD_BYTES:
            super().send_400_response(msg)
        elif not self.transport.is_closing():
            self.transport.write(_TOO_LONG)
            self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Whoever asks for a websocket is answered as if they had not; that is not worth a log."""

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_timer.cancel()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.scope[BODY_IS_THERE] = True  # type: ignore[literal-required]  # a key of our own

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._head_timer.cancel()
            self._head_timer = self.loop.call_later(_IDLE_SECONDS + _HEAD_SECONDS, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer.cancel()
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """A server that is told to stop by its owner."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled outside: SIGTERM is an orderly end, with exit code 0."""
        yield

    def stop(self) -> None:
        """Take no new requests, finish those under way, and end."""
        self.should_exit = True


def server_for(app: Callable[..., Any], configuration: Configuration) -> Server:
    """A server for an ASGI application."""
    return Server(
        uvicorn.Config(
            app,
            http=_Protocol,
            loop="none",
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=True,
            proxy_headers=configuration.proxy,
            backlog=_BACKLOG,
            limit_concurrency=configuration.most_connections + 1,  # it refuses at this many
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_GRACE,
            ssl_certfile=configuration.tls_certificate,
            ssl_keyfile=configuration.tls_key,
        )
    )


def bound(configuration: Configuration) -> socket.socket:
    """The socket to listen on; `ParameterError` if it cannot be had."""
    family = socket.AF_INET6 if ":" in configuration.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((configuration.host, configuration.port))
        made.listen(_BACKLOG)  # whoever is told the address may come at once
    except OSError as error:
        made.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ParameterError(
                "host",
                f"{configuration.host} is no address of this machine ({error.strerror}); give "
                "127.0.0.1 for this machine alone, 0.0.0.0 for every interface",
            ) from None
        raise ParameterError(
            "port",
            f"{configuration.port} on {configuration.host} cannot be used "
            f"({error.strerror or error}); give another --port",
        ) from None
    made.set_inheritable(False)
    return made
