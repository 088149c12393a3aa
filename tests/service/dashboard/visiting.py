"""The dashboard over a real core and a real writer in one process, with a clock that tests turn."""

import asyncio
import contextlib
import re
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from discreet import features
from discreet.service._application import application
from discreet.service._bodies import Action, BanditSpec, RankRequest, Reward, RewardRule
from discreet.service._configuration import Configuration
from discreet.service._core import Core
from discreet.service._database import Database
from discreet.service._witness import Witness
from discreet.service._writer import Writer

ADMIN = "an-administrator-s-key-from-outside"
IDS = ("red", "green", "blue")
TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')
EVENTS = 150
PATIENCE = 120.0  # seconds; far more than anything here takes


def spec(name: str, **more: Any) -> BanditSpec:
    made = features.FeatureMap([features.intercept(), features.action_id(IDS)])
    settings = {
        "epsilon": 8.0,
        "delta": 1e-6,
        "horizon": None,
        "reward": RewardRule(wait_seconds=60.0),
        "features": made.to_json(),
    }
    return BanditSpec(name=name, **{**settings, **more})


class Loop:
    """An event loop in a thread of its own, in which the service lives.

    Nothing waits for ever: what takes longer than PATIENCE has hung, and a test says so.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="service", daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def close(self) -> None:
        """End the loop, its tasks and the threads that it has for work; each of them is joined."""
        try:
            self.do(self._ended())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self._loop.close()

    async def _ended(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()


class Browser:
    """Somebody's browser, as far as the server sees it: cookies, and no redirect is followed."""

    def __init__(self, loop: Loop, app: Any) -> None:
        self._loop = loop
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://discreet.test")
        self.cookies = self._client.cookies

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self._loop.do(self._client.get(path, **more))

    def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> httpx.Response:
        return self._loop.do(self._client.post(path, data=data, **more))

    def token(self, path: str = "/") -> str:
        """What a form on this page sends back."""
        found = TOKEN.search(self.get(path).text)
        assert found is not None
        return found[1]

    def send(self, path: str, page: str = "/", **fields: Any) -> httpx.Response:
        """A form of a page, filled in and sent."""
        return self.post(path, {**fields, "form_token": self.token(page)})


@dataclass
class World:
    """The service in one process: what tests ask of it from below and from outside."""

    loop: Loop
    core: Core
    app: Any
    writer: Writer
    now: list[float]
    folder: Path

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.do(work)

    def play(self, name: str, count: int = EVENTS) -> None:
        """So many events with rewards, all closed."""
        actions = [Action(one) for one in IDS]

        async def visits() -> None:
            for _ in range(count):
                made = await self.core.rank(name, RankRequest(actions=actions), "a key")
                value = 1.0 if made.action_id == "blue" else 0.0
                await self.core.rewards(name, [Reward(made.event_id, value)])

        self.do(visits())
        self.turn()

    def turn(self) -> None:
        """Let all deadlines pass, and the writer close what is due."""
        self.now[0] += 61.0
        while self.writer.turn():
            pass
        self.do(self.core.look())

    def key(self, *scopes: str, bandit: str | None = None) -> tuple[str, str]:
        """A new key's id and text."""
        key, text = self.do(
            self.core.create_key(name="a test's", scopes=list(scopes), bandit=bandit, who="a test")
        )
        return key.id, text

    def browser(self) -> Browser:
        return Browser(self.loop, self.app)

    def signed_in(self, text: str = ADMIN) -> Browser:
        browser = self.browser()
        assert browser.send("/sign-in", "/sign-in", key=text).status_code == 303
        return browser


@contextlib.contextmanager
def world_in(folder: Path, **settings: Any) -> Iterator[World]:
    now = [1_800_000_000.0]

    def clock() -> float:
        return now[0]

    (folder / "learners").mkdir()
    database, witness = Database(folder / "service.sqlite"), Witness(folder / "witness")
    with contextlib.ExitStack() as ending:
        loop = Loop()
        ending.callback(loop.close)

        async def made() -> Core:
            core = Core(database, administrator=ADMIN, witness=witness, clock=clock)
            await core.start()
            return core

        core = loop.do(made())
        ending.callback(lambda: loop.do(core.close()))
        writer = Writer(database, learners=folder / "learners", witness=witness, clock=clock)
        ending.callback(writer.close)
        app = application(core, Configuration(data=str(folder), **settings))
        yield World(loop, core, app, writer, now, folder)
