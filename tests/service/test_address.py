"""A PostgreSQL URL that cannot be right is found out at once; a database that is away is not."""

import logging
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from discreet.errors import ParameterError, StoreError
from discreet.service import _run as run
from discreet.service._address import named, refusal_of
from discreet.service._configuration import Configuration
from discreet.service._database import Database

pytest.importorskip("psycopg")
SECRET = "not-for-logs"


@pytest.mark.parametrize(
    "rest",
    ["h:99999/x", "h:abc/x", "h:0/x", "[h/x", "h/x?sslmode=never&foo=1", "h1:1,h2:70000/x"],
)
def test_a_url_that_is_none_is_refused_without_repeating_its_password(rest: str) -> None:
    with pytest.raises(ParameterError, match="database") as caught:
        Database(f"postgresql://ann:{SECRET}@{rest}")
    assert SECRET not in str(caught.value)


def test_a_password_that_is_not_encoded_is_not_repeated() -> None:
    with pytest.raises(ParameterError) as caught:
        Database(f"postgresql://ann:{SECRET}%zz@h/x")
    assert SECRET not in str(caught.value)


def test_a_database_has_a_name_without_its_password() -> None:
    assert named(f"postgresql://ann:{SECRET}@db:6000/news") == (
        "database 'news' as 'ann' at db, port 6000"
    )
    assert named("postgresql:///news?host=/run/pg") == "database 'news' at /run/pg, port 5432"
    assert named("postgresql://") == "the default database at the local socket, port 5432"


def waited(address: str) -> Database:
    made = Configuration(database=address)
    return run._once_it_answers(lambda: Database(address), made)


@pytest.mark.parametrize("what", ["role", "database"])
def test_a_role_or_a_database_that_does_not_exist_is_not_waited_for(
    postgres: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(run, "_AGAIN", 1e9)
    parts = urlsplit(postgres)
    wrong = f"nobody:{SECRET}@{parts.netloc.rpartition('@')[2]}" if what == "role" else parts.netloc
    place = parts._replace(netloc=wrong, path="/none" if what == "database" else parts.path)
    with pytest.raises(StoreError, match=f"there is no such {what}") as caught:
        waited(place.geturl())
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('FATAL:  password authentication failed for user "ann"', "password is wrong"),
        ("FATAL:  no password supplied", "password is wrong or missing"),
        ('FATAL:  Peer authentication failed for user "ann"', "may not come in"),
        ('FATAL:  no pg_hba.conf entry for host "1.2.3.4"', "may not come in"),
        ("FATAL:  the database system is starting up", None),
        ("FATAL:  sorry, too many clients already", None),
        ("Connection refused", None),
    ],
)
def test_what_waiting_does_not_help_is_told_from_what_it_does(said: str, why: str | None) -> None:
    found = refusal_of(Exception(said))
    assert (found is None) == (why is None)
    assert found is None or (why is not None and why in found.why)


def test_a_database_that_is_away_is_waited_for_and_that_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run, "_START", 0.5)
    monkeypatch.setattr(run, "_AGAIN", 0.05)
    with caplog.at_level(logging.WARNING), pytest.raises(StoreError) as caught:
        waited(f"postgresql://ann:{SECRET}@127.0.0.1:1/news")
    assert "database 'news' as 'ann' at 127.0.0.1, port 1" in str(caught.value)
    lines = [record for record in caplog.records if record.getMessage() == "database"]
    assert len(lines) == 1
    assert "nobody listens there" in lines[0].reason  # type: ignore[attr-defined]
    assert "127.0.0.1, port 1" in lines[0].at_start  # type: ignore[attr-defined]
    assert SECRET not in caplog.text + str(caught.value) + str(vars(lines[0]))


def test_a_file_is_not_waited_for(tmp_path: Path) -> None:
    made = Configuration(data=str(tmp_path))
    with pytest.raises(StoreError):
        run._once_it_answers(lambda: Database(tmp_path / "none" / "service.sqlite"), made)
