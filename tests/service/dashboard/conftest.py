"""Fixtures: a service with a bandit that has learned, and people who are signed in."""

from collections.abc import Iterator

import pytest
from visiting import Browser, World, spec, world_in


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service with a bandit `news` that has learned, and one, `young`, that has not."""
    with world_in(tmp_path_factory.mktemp("dashboard")) as one:
        one.do(one.core.create_bandit(spec("news"), who="a test"))
        one.do(one.core.create_bandit(spec("young", features=None), who="a test"))
        one.play("news")
        yield one


@pytest.fixture
def admin(world: World) -> Browser:
    return world.signed_in()


@pytest.fixture
def reader(world: World) -> Browser:
    return world.signed_in(world.key("read")[1])
