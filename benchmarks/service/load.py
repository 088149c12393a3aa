"""A process that asks: as fast as answers come, or at a fixed rate whatever comes back.

At a fixed rate a request's latency counts from the moment at which it was due, so that a server
that stands still is charged for all the requests that it kept waiting. It reads what to do from
standard input, as JSON, and prints what it measured: python -m benchmarks.service.load
"""

import asyncio
import json
import math
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import cycle
from typing import Any

import uvloop

from benchmarks.service import workload

_DIFFERENT = 512  # requests that are made beforehand, and asked in turn
_PATIENCE = 30.0  # seconds after the end for answers that are still to come
_EVENT = b'"event_id":"'
_ACCEPTED = b'"accepted"'


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What to ask, and of whom.

    Attributes:
        kind: 'rank', 'rewards' or 'vw'.
        port: on 127.0.0.1.
        connections: how many are open.
        seconds: for how long.
        warmup: seconds before that, which do not count.
        rate: requests a second; None for as many as are answered.
        path: of the request.
        key: of the service; none if empty.
        events: ids of the events that rewards are for; each is asked for once.
        collect: whether to report the ids of the events that were made.
    """

    kind: str
    port: int
    connections: int
    seconds: float
    warmup: float = 0.0
    rate: float | None = None
    path: str = ""
    key: str = ""
    events: list[str] = field(default_factory=list)
    collect: bool = False


def play(asked: Asked) -> dict[str, Any]:
    """Run this load in a process of its own; what it measured."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.service.load"],
        input=json.dumps(asdict(asked)).encode(),
        stdout=subprocess.PIPE,
        timeout=asked.warmup + asked.seconds + 2 * _PATIENCE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class _Client(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, on_answer: Callable[["_Client", float, int, bytes], None]) -> None:
        self._on_answer = on_answer
        self._transport: Any = None
        self._data = b""
        self.since = 0.0
        self.busy = False

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401
        self._transport = transport

    def ask(self, request: bytes, since: float) -> None:
        self.since, self._data, self.busy = since, b"", True
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        found = self._parsed(self._data)
        if found is not None:
            self.busy = False
            self._on_answer(self, self.since, *found)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's name
        if self.busy:
            self.busy = False
            self._on_answer(self, self.since, 0, b"")

    def close(self) -> None:
        self._transport.close()

    def _parsed(self, data: bytes) -> tuple[int, bytes] | None:
        """Status and body of an HTTP answer, if it is all there."""
        head, found, body = data.partition(b"\r\n\r\n")
        if not found:
            return None
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if len(body) < int(length or 0):
            return None
        return int(data[9:12]), body


class _LineClient(_Client):
    """An answer ends with an empty line, as Vowpal Wabbit's does."""

    def _parsed(self, data: bytes) -> tuple[int, bytes] | None:
        return (200, data) if data.endswith(b"\n\n") else None


def _requests(asked: Asked) -> Iterator[bytes]:
    """What is written to the socket, again and again; rewards once."""
    if asked.kind == "vw":
        return cycle(workload.vw_examples(_DIFFERENT, 1))
    if asked.kind == "rewards":
        return iter([_http(asked, body) for body in workload.reward_bodies(asked.events, 1)])
    return cycle([_http(asked, body) for body in workload.rank_bodies(_DIFFERENT, 1)])


def _http(asked: Asked, body: bytes) -> bytes:
    key = f"Authorization: Bearer {asked.key}\r\n" if asked.key else ""
    head = (
        f"POST {asked.path} HTTP/1.1\r\nHost: 127.0.0.1:{asked.port}\r\n{key}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Load:
    """Asks, and writes down when answers came."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._requests = _requests(asked)
        self._idle: deque[_Client] = deque()  # used in turn, so that none idles for long
        self._due: deque[float] = deque()  # requests for which no connection is free
        self._clients: list[_Client] = []
        self.latencies: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.events: list[str] = []
        self.accepted = 0
        self.last = 0.0

    async def run(self) -> dict[str, Any]:
        loop, asked = asyncio.get_running_loop(), self._asked
        kind = _LineClient if asked.kind == "vw" else _Client
        for _ in range(asked.connections):
            made = loop.create_connection(lambda: kind(self._answered), "127.0.0.1", asked.port)
            self._clients.append((await made)[1])
        self._begin = time.perf_counter() + asked.warmup
        self._end = self._begin + asked.seconds
        worked = time.process_time()
        if asked.rate is None:
            for client in self._clients:
                self._ask(client, time.perf_counter())
        else:
            self._idle.extend(self._clients)
            await self._at_rate(asked.rate)
        await self._until_quiet()
        used = time.process_time() - worked
        for client in self._clients:
            client.close()
        return self._report(used / (time.perf_counter() - self._begin + asked.warmup))

    async def _at_rate(self, rate: float) -> None:
        first = time.perf_counter()
        number = 0
        while (due := first + number / rate) < self._end:
            pause = due - time.perf_counter()
            if pause > 0.0:
                await asyncio.sleep(pause)
            number += 1
            if self._idle:
                self._ask(self._idle.popleft(), due)
            else:
                self._due.append(due)

    async def _until_quiet(self) -> None:
        deadline = self._end + _PATIENCE
        while any(one.busy for one in self._clients) and time.perf_counter() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _ask(self, client: _Client, since: float) -> None:
        request = next(self._requests, None)
        if request is not None:
            client.ask(request, since)

    def _answered(self, client: _Client, since: float, status: int, body: bytes) -> None:
        now = time.perf_counter()
        if since >= self._begin:
            self.latencies.append(now - since)
            self.statuses[status] += 1
            self.last = now
        self.accepted += body.count(_ACCEPTED)
        if self._asked.collect and (at := body.find(_EVENT)) >= 0:
            start = at + len(_EVENT)
            self.events.append(body[start : body.index(b'"', start)].decode())
        if not status:
            return
        if self._asked.rate is None:
            if now < self._end:
                self._ask(client, now)
        elif self._due:
            self._ask(client, self._due.popleft())
        else:
            self._idle.append(client)

    def _report(self, share: float) -> dict[str, Any]:
        ordered = sorted(self.latencies)

        def quantile(level: float) -> float:
            return 1e3 * ordered[max(0, math.ceil(level * len(ordered)) - 1)] if ordered else 0.0

        return {
            "count": len(ordered),
            "rate": len(ordered) / max(1e-9, self.last - self._begin),
            "statuses": dict(self.statuses),
            "p50_ms": quantile(0.5),
            "p99_ms": quantile(0.99),
            "max_ms": quantile(1.0),
            "share_of_a_core": share,
            "accepted": self.accepted,
            "events": self.events,
        }


def _main() -> None:
    asked = Asked(**json.load(sys.stdin))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        json.dump(runner.run(_Load(asked).run()), sys.stdout)


if __name__ == "__main__":
    _main()
