"""A service inside the test's own process: requests go straight to its ASGI application."""

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from discreet.service._application import application
from discreet.service._configuration import Configuration
from discreet.service._core import Core
from discreet.service._database import Database
from discreet.service._witness import Witness
from discreet.service._writer import Writer

ADMIN = "dk_fuzz_" + "f" * 43
Headers = dict[str, str]
JSON = {"authorization": f"Bearer {ADMIN}", "content-type": "application/json"}


class Within:
    """The application, and what it logged.

    Attributes:
        app: the ASGI application.
        core: what does the work.
        writer: closes events, in a thread of its own.
        logged: everything that was logged, as text.
    """

    def __init__(self, folder: Path) -> None:
        configuration = Configuration(data=str(folder), wrong_keys_per_second=0.0)
        database = Database(folder / "service.sqlite")
        witness = Witness(folder.with_name(f"{folder.name}.witness"))
        (folder / "learners").mkdir()
        self.core = Core(database, administrator=ADMIN, witness=witness)
        self.app = application(self.core, configuration)
        self.writer = Writer(database, learners=folder / "learners", witness=witness)
        self.logged: list[str] = []

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Headers | None = None
    ) -> tuple[int, Headers, bytes]:
        """Status, headers and body of the answer to a request of any bytes."""
        given = JSON if headers is None else headers
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "surrogatepass"),
            "query_string": b"",
            "root_path": "",
            "headers": [(k.encode(), v.encode("latin-1", "replace")) for k, v in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        parts = [{"type": "http.request", "body": body, "more_body": False}]
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if parts:
                return parts.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        await self.app(scope, receive, send)
        assert said, "there was no answer"
        text = b"".join(one.get("body", b"") for one in said[1:])
        head = {name.decode(): value.decode() for name, value in said[0]["headers"]}
        return said[0]["status"], head, text

    async def json(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        status, _, text = await self.ask(method, path, content)
        return status, json.loads(text) if text else None


class _Listener(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        trouble = record.exc_info[1] if record.exc_info else None
        self._heard.append(f"{record.levelname} {record.getMessage()} {record.__dict__} {trouble}")


@contextlib.asynccontextmanager
async def within(folder: Path) -> AsyncIterator[Within]:
    """A service in this process, while it is used."""
    made = Within(folder)
    listener, logger = _Listener(made.logged), logging.getLogger("discreet")
    before = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    await made.core.start()
    stop = threading.Event()
    writing = threading.Thread(target=made.writer.run, args=(stop,))
    writing.start()
    try:
        yield made
    finally:
        stop.set()
        await asyncio.to_thread(writing.join)
        await made.core.close()
        logger.setLevel(before)
        logger.removeHandler(listener)
