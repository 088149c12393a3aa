"""Several rankers with one database: what one of them made, every other one knows at once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from discreet.errors import StoreError
from service.serving import Service


@pytest.fixture
def other(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A second ranker, which looks at the database only when it is asked for something."""
    monkeypatch.setattr("discreet.service._catalogue._LOOK", 1e6)
    made = Service(service.place, service.folder)
    yield made
    made.close()


def look(ranker: Service) -> None:
    """Have a ranker see what there is: a moment later something else may be there."""
    ranker.loop.run(ranker.core.look())


def test_a_bandit_of_another_ranker_is_known_at_once(service: Service, other: Service) -> None:
    service.make("another")  # the next one takes no time
    look(other)
    service.make()
    assert other.rank().status_code == 201


def test_a_key_of_another_ranker_is_known_at_once(service: Service, other: Service) -> None:
    service.make()
    look(other)
    made = service.post("/v1/keys", {"name": "k", "scopes": ["read"]}).json()
    assert other.get("/v1/bandits/news", key=made["key"]).status_code == 200
    body = {"name": "k", "scopes": ["read"], "bandit": "news"}
    made = service.post("/v1/keys", body).json()
    found = other.get("/v1/bandits", key=made["key"])  # it may see this one, and not all
    assert [one["name"] for one in found.json()["bandits"]] == ["news"]


def test_a_key_can_be_made_for_a_bandit_of_another_ranker_at_once(
    service: Service, other: Service
) -> None:
    service.make("another")
    look(other)
    service.make()
    body = {"name": "k", "scopes": ["read"], "bandit": "news"}
    assert other.post("/v1/keys", body).status_code == 201


def test_what_was_made_during_a_look_is_known_at_once(
    service: Service, other: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = other.core
    read = core._read
    made = []
    body = {"name": "k", "scopes": ["read"]}

    async def slow(query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        found = await read(query, values)
        if "service_key" in query and not made:  # the look has read all keys, and goes on
            made.append(await asyncio.to_thread(service.post, "/v1/keys", body))
        return found

    monkeypatch.setattr(core, "_read", slow)
    look(other)
    assert other.get("/v1/bandits", key=made[0].json()["key"]).status_code == 200


def test_many_who_ask_for_what_is_not_there_have_one_look_although_the_database_is_silent(
    other: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def silent(query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        del values
        asked.append(query)
        await asyncio.sleep(0.05)
        raise StoreError("database", "does not answer; try again later")

    monkeypatch.setattr(other.core, "_read", silent)

    async def many() -> None:
        await asyncio.sleep(0.15)  # since the look at the start
        await asyncio.gather(*(other.core.look_again() for _ in range(20)))

    other.loop.run(many())
    assert len(asked) == 1
