"""The service for tests, on either database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.serving import Service


@pytest.fixture(params=["sqlite", "postgresql"])
def any_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """The service on either database."""
    if request.param == "sqlite":
        place: str | Path = tmp_path / "service.sqlite"
    else:
        place = request.getfixturevalue("empty_postgres")
    made = Service(place, tmp_path)
    yield made
    made.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The service on SQLite."""
    made = Service(tmp_path / "service.sqlite", tmp_path)
    yield made
    made.close()


@pytest.fixture
def empty_postgres(postgres: str) -> str:
    """A PostgreSQL database without tables."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgres
