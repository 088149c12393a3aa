"""Requests over connections that stay open, tried again where that is safe. Knows no route.

What is sent again: a call that may be repeated (`Request.repeatable`), after any failure of the
connection; any call, if it cannot have been carried out, because no connection was made or the
service said so (429, 503). The key is sent in a header and stored nowhere else.
"""

import contextlib
import http.client
import json
import random
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import ClientError, ParameterError
from discreet.version import __version__

_NOT_DONE = frozenset({429, 503})  # the service says that it did nothing
_IN_BETWEEN = frozenset({502, 504})  # a proxy speaks, and does not know
_LONGEST_ADVICE = 500  # characters of an answer that are shown
_SCHEMES = {"http": 80, "https": 443}
_NO_CONNECTION = "Unreachable"


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How often a call is tried, and how long to wait in between.

    Attributes:
        attempts: the most attempts; 1 to try once.
        first: seconds before the second attempt; twice as long before each further one. Waits are
            shortened at random by up to a half, so that many clients do not return at once.
        longest: the most seconds between two attempts, also if the service asks for more.
    """

    attempts: int = 5
    first: float = 0.1
    longest: float = 10.0

    def wait(self, failures: int, asked: float | None) -> float:
        """Seconds before the next attempt.

        Args:
            failures: how many attempts have failed.
            asked: what the service asked for, if it did.

        Returns:
            At least what was asked for, up to ``longest``.
        """
        backoff = self.first * 2.0 ** min(failures - 1, 30) * random.uniform(0.5, 1.0)
        return min(self.longest, max(backoff, asked or 0.0))


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call.

    Attributes:
        name: of the call, for errors.
        method: of HTTP.
        path: below the service's address, quoted.
        body: what to send, as JSON; None for nothing.
        repeatable: whether doing it twice is the same as doing it once.
    """

    name: str
    method: str
    path: str
    body: Any = None
    repeatable: bool = True


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An HTTP answer as it came."""

    status: int
    content: bytes
    retry_after: float | None


class Transport:
    """Connections to one service. Threads may share it: each call has a connection to itself."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float,
        retries: Retries,
        context: ssl.SSLContext | None,
    ) -> None:
        """Connect at the first call; see `Client` for the parameters."""
        self._secure, self._host, self._port, self._prefix = _address(url)
        if not key or not all("!" <= letter <= "~" for letter in key):
            raise ParameterError("key", "is not printable ASCII without spaces; give an API key")
        if retries.attempts < 1:
            raise ParameterError("retries", "has no attempt; give at least 1")
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Accept": "application/json",
            "User-Agent": f"discreet/{__version__}",
        }
        self._timeout = timeout
        self._retries = retries
        self._context = context
        self._idle: list[http.client.HTTPConnection] = []  # append and pop are atomic

    @property
    def url(self) -> str:
        """Where the service is."""
        scheme = "https" if self._secure else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self._port}{self._prefix}"

    def call(self, request: Request) -> Answer:
        """Send a request until it is answered, as often as is allowed and safe.

        Args:
            request: what to send.

        Returns:
            An answer with a status below 300.

        Raises:
            ClientError: the service refused, or there was no answer.
        """
        payload = None if request.body is None else _encoded(request.body)
        failures = 0
        while True:
            answer, error, again = self._attempt(request, payload)
            if error is None and answer is not None:
                return answer
            failures += 1
            if not again or failures >= self._retries.attempts:
                raise error or ClientError(request.name, "was not answered")
            time.sleep(self._retries.wait(failures, answer.retry_after if answer else None))

    def close(self) -> None:
        """Close all connections that wait for a call."""
        while self._idle:
            self._idle.pop().close()

    def _attempt(
        self, request: Request, payload: bytes | None
    ) -> tuple[Answer | None, ClientError | None, bool]:
        """An answer or an error, and whether to try again."""
        sent = [False]
        try:
            answer = self._exchange(request, payload, sent)
        except (OSError, http.client.HTTPException) as error:
            failure = ClientError(
                request.name,
                f"got no answer from {self.url} ({type(error).__name__}); is the service up?",
                code=_NO_CONNECTION,
            )
            return None, failure, request.repeatable or not sent[0]
        if answer.status < 300:  # HTTP's own number
            return answer, None, False
        again = answer.status in _NOT_DONE or (request.repeatable and answer.status in _IN_BETWEEN)
        return answer, _refusal(request.name, answer), again

    def _exchange(self, request: Request, payload: bytes | None, sent: list[bool]) -> Answer:
        """One request on one connection. A connection that was idle may have gone: try another."""
        headers = self._headers
        if payload is not None:
            headers = {**headers, "Content-Type": "application/json"}
        while request.repeatable and self._idle:
            with contextlib.suppress(IndexError, http.client.HTTPException, ConnectionError):
                return self._on(self._idle.pop(), request, payload, headers)
        connection = self._connection()
        connection.connect()
        sent[0] = True
        return self._on(connection, request, payload, headers)

    def _on(
        self,
        connection: http.client.HTTPConnection,
        request: Request,
        payload: bytes | None,
        headers: dict[str, str],
    ) -> Answer:
        try:
            path = self._prefix + request.path
            connection.request(request.method, path, body=payload, headers=headers)
            response = connection.getresponse()
            content = response.read()
        except BaseException:  # an interrupt too: what was read so far would confuse the next call
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        asked = _seconds(response.getheader("Retry-After"))
        return Answer(status=response.status, content=content, retry_after=asked)

    def _connection(self) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        if self._context is None:
            self._context = ssl.create_default_context()
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=self._timeout, context=self._context
        )


def _address(url: str) -> tuple[bool, str, int, str]:
    """Whether TLS, host, port, and what paths start with."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    known = parts.scheme in _SCHEMES and host and not (parts.query or parts.fragment)
    if not known or not url.isascii() or any(letter <= " " for letter in url):
        raise ParameterError("url", "is no address; give one such as http://localhost:8080")
    if parts.username is not None or parts.password is not None:
        raise ParameterError("url", "has a name or password in it; give the key as `key`")
    prefix = parts.path.rstrip("/")
    return parts.scheme == "https", host or "", port or _SCHEMES[parts.scheme], prefix


def _encoded(body: Any) -> bytes:  # noqa: ANN401  # any JSON
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(
            "body", "is not plain JSON; give dictionaries, lists, texts and finite numbers"
        ) from None


def _seconds(text: str | None) -> float | None:
    """What a Retry-After header asks for; dates are not read, the client's clock may be off."""
    return float(text) if text is not None and text.isdecimal() and text.isascii() else None


def _refusal(name: str, answer: Answer) -> ClientError:
    """The error that an answer tells of, whoever wrote it."""
    try:
        told = json.loads(answer.content)["error"]
        code, message = str(told["code"]), str(told["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        code, message = "", "the answer is not one of discreet serve; is the address right?"
    message = f"{message[:_LONGEST_ADVICE]} (HTTP {answer.status})"
    return ClientError(name, message, status=answer.status, code=code)
