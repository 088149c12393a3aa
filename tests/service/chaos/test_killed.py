"""Processes killed at random instants under load: nothing acknowledged is lost or done twice.

Visitors rank, reward, activate, repeat requests and have people erased, and note what was
acknowledged. Afterwards every event is closed and is one row of the learner: with the action that
was answered, the reward that was accepted, zeros if it was never activated, in the order of
events. No release that was ever seen has another digest later.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crash.database import Server, running
from service.chaos.campaign import Campaign


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as one:
        yield one


def killed(
    campaign: Campaign, victims: tuple[str, ...], count: int, *, pause: float = 1.5, seed: int = 1
) -> dict[str, Any]:
    """Kill so many processes, and check what is left."""
    kills = {name: getattr(campaign, f"kill_{name}") for name in victims}
    with campaign:
        campaign.rage(kills, count, random.Random(seed), pause)
        found = campaign.finish()
    print(found)  # noqa: T201  # for the record, with pytest -s
    assert found["events"] > 0
    assert sum(campaign.kills.values()) >= count
    return found


def test_a_service_and_its_writer_are_killed(tmp_path: Path) -> None:
    killed(Campaign(tmp_path), ("service", "writer"), 2)


def test_a_ranker_a_writer_and_the_server_of_a_database_are_killed(
    tmp_path: Path, server: Server
) -> None:
    killed(Campaign(tmp_path, server=server, rankers=1), ("service", "writer", "server"), 3)


@pytest.mark.nightly
def test_a_service_and_its_writer_are_killed_many_times(tmp_path: Path) -> None:
    killed(Campaign(tmp_path), ("service", "service", "writer"), 300, seed=2)


@pytest.mark.nightly
def test_a_ranker_and_a_writer_on_one_file_are_killed_many_times(tmp_path: Path) -> None:
    killed(Campaign(tmp_path, rankers=1), ("service", "writer", "writer"), 350, seed=3)


@pytest.mark.nightly
def test_two_rankers_a_writer_and_a_server_are_killed_many_times(
    tmp_path: Path, server: Server
) -> None:
    victims = ("service", "writer", "server")
    killed(Campaign(tmp_path, server=server, rankers=2), victims, 400, seed=4)
