"""A service inside the test's process: the core in an event loop of its own, a writer by hand."""

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx

from discreet.service._application import application
from discreet.service._configuration import Configuration
from discreet.service._core import Core
from discreet.service._database import Database
from discreet.service._witness import Witness
from discreet.service._writer import Writer

T = TypeVar("T")
ADMIN = "the administrator's key"


class Clock:
    """A clock that stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Service:
    """What a test sees of it: requests, a clock, and a writer whose turns it gives itself."""

    def __init__(self, place: str | Path, folder: Path, **settings: Any) -> None:
        self.clock = Clock()
        self.folder = folder
        self.place = place
        self.database = Database(place)
        self.witness = Witness(folder / "witness", new=settings.get("new_witness", False))
        self.learners = None if self.database.server else folder / "learners"
        if self.learners is not None:
            self.learners.mkdir(exist_ok=True)
        self.settings = settings
        self.loop = Loop()
        self.core = self.loop.run(self._core())
        self.app = application(self.core, Configuration(data=str(folder), **settings))
        self.writer = self.new_writer()

    async def _core(self) -> Core:
        core = Core(self.database, administrator=ADMIN, witness=self.witness, clock=self.clock)
        await core.start()
        return core

    def new_writer(self) -> Writer:
        return Writer(self.database, learners=self.learners, witness=self.witness, clock=self.clock)

    def request(
        self, method: str, path: str, *, key: str | None = ADMIN, **more: Any
    ) -> httpx.Response:
        async def work() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            headers |= more.pop("headers", {})
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers, **more)

        return self.loop.run(work())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **more)

    def make(self, name: str = "news", **more: Any) -> dict[str, Any]:
        reward = {"low": 0, "high": 1, "wait_seconds": 10, "default": 0} | more.pop("reward", {})
        body = {"name": name, "epsilon": 50.0, "delta": 0.01, "horizon": 100_000}
        found = self.post("/v1/bandits", {**body, "reward": reward, **more})
        assert found.status_code == 201, found.text
        return found.json()

    def rank(self, name: str = "news", **more: Any) -> httpx.Response:
        actions = [{"id": "a"}, {"id": "b", "features": {"topic": "arts"}}, {"id": "c"}]
        return self.post(f"/v1/bandits/{name}/rank", {"actions": actions, **more})

    def rewards(self, *pairs: tuple[str, float], name: str = "news") -> list[dict[str, Any]]:
        body = [{"event_id": event, "value": value} for event, value in pairs]
        found = self.post(f"/v1/bandits/{name}/rewards", body)
        assert found.status_code == 207, found.text
        return found.json()

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds

    def settle(self) -> None:
        """Let the writer do all there is to do, and the ranker look at it."""
        while self.writer.turn():
            pass
        self.loop.run(self.core.look())

    def learner(self, bandit: int = 1) -> Any:
        return self.writer._joiners[bandit].learner

    def close(self) -> None:
        self.writer.close()
        self.loop.run(self.core.close())
        self.loop.close()
