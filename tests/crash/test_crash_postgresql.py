"""The same promises with a learner in PostgreSQL: its clients die, its server dies, both go on."""

import time
from collections.abc import Iterator

import nursery
import pytest
from database import Server, running

LEARNER = ("tight", "exact")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    nursery.warm(*LEARNER)
    with running() as one:
        yield one


@pytest.fixture
def place(server: Server, request: pytest.FixtureRequest) -> str:
    """Where a new learner is stored, closed."""
    found = f"{server.address}#{request.node.name}"
    nursery.make(found, *LEARNER).close()
    return found


def restarted(server: Server) -> None:
    server.kill()
    time.sleep(0.05)
    server.start()


def test_clients_killed_at_random_instants(place: str) -> None:
    found = nursery.random_deaths(place, 12, seed=1)
    assert found["exactly"] + found["one call further"] >= 6  # those that had begun to speak


def test_servers_killed_in_the_middle_of_calls(server: Server, place: str) -> None:
    found = nursery.troubles(place, lambda: restarted(server), 5, seed=2)
    assert 0 < found["failed"] <= found["calls"]


def test_connections_cut_in_the_middle_of_calls(server: Server, place: str) -> None:
    found = nursery.troubles(place, server.cut_off, 15, seed=3)
    assert 0 < found["failed"] < found["calls"]


@pytest.mark.nightly
def test_clients_killed_at_random_instants_many_times(place: str) -> None:
    found = nursery.random_deaths(place, 120, seed=4)
    assert found["releases"] > 3


@pytest.mark.nightly
def test_servers_killed_in_the_middle_of_calls_many_times(server: Server, place: str) -> None:
    found = nursery.troubles(place, lambda: restarted(server), 60, seed=5)
    assert found["failed"] > 15  # of 60; on a busy machine some come between two calls


@pytest.mark.nightly
def test_connections_cut_in_the_middle_of_calls_many_times(server: Server, place: str) -> None:
    found = nursery.troubles(place, server.cut_off, 200, seed=6)
    assert found["failed"] > 30
