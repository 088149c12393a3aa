"""A restored backup is refused: by the writer, by rankers, and by a service that starts anew."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from discreet.errors import StoreError
from discreet.service._witness import Witness
from service.serving import Service

if TYPE_CHECKING:
    from discreet.service._database import Connection
    from discreet.service._witness import Testimony


def play(service: Service, rounds: int) -> None:
    for _ in range(rounds):
        service.rank()
    service.pass_time(11)
    service.settle()


def backup(service: Service, to: Path) -> None:
    """All files but the witness, of a service that stands still."""
    service.writer.close()
    connection = service.database.connect()
    connection.wipe()
    connection.close()
    to.mkdir()
    shutil.copy(service.folder / "service.sqlite", to)
    shutil.copytree(service.folder / "learners", to / "learners")
    service.writer = service.new_writer()


def restore(service: Service, source: Path, **settings: bool) -> Service:
    """Put all of it back, and start again."""
    now = service.clock.now
    service.close()
    for path in service.folder.glob("service.sqlite*"):
        path.unlink()
    shutil.rmtree(service.folder / "learners")
    shutil.copy(source / "service.sqlite", service.folder)
    shutil.copytree(source / "learners", service.folder / "learners")
    found = Service(service.folder / "service.sqlite", service.folder, **settings)
    found.clock.now = now
    return found


def test_a_restored_folder_is_refused_from_the_first_request_on(tmp_path: Path) -> None:
    service = Service(tmp_path / "service.sqlite", tmp_path)
    service.make()
    play(service, 100)
    backup(service, tmp_path / "backup")
    play(service, 100)
    service = restore(service, tmp_path / "backup")
    try:
        refused = service.rank()
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "Rewound")
        assert str(tmp_path) not in refused.text  # where the witness is, is for those who may read
        service.settle()
        assert service.get("/v1/bandits/news").json()["state"] == "rewound"
        assert service.rank().status_code == 503
        assert service.get("/v1/bandits/news/releases/latest").status_code == 503
    finally:
        service.close()


def test_events_that_only_look_like_the_old_ones_are_refused_by_the_writer(
    tmp_path: Path,
) -> None:
    service = Service(tmp_path / "service.sqlite", tmp_path)
    service.make()
    play(service, 100)
    backup(service, tmp_path / "backup")
    play(service, 100)
    service.witness._folder = None  # a ranker on another machine, without a witness
    service.close()
    for path in tmp_path.glob("service.sqlite*"):
        path.unlink()
    shutil.copy(tmp_path / "backup" / "service.sqlite", tmp_path)  # but not the learners
    service = Service(tmp_path / "service.sqlite", tmp_path)
    try:
        service.witness._folder = None
        service.settle()
        assert service.get("/v1/bandits/news").json()["state"] == "rewound"
    finally:
        service.close()


def elsewhere(service: Service, source: Path, to: Path, **settings: bool) -> Service:
    """Start a backup in another folder, as on another machine."""
    shutil.copytree(source, to)
    return started(service, to, **settings)


def started(service: Service, to: Path, **settings: bool) -> Service:
    """Start what is in a folder, and let it look around."""
    found = Service(to / "service.sqlite", to, **settings)
    found.clock.now = service.clock.now
    found.settle()
    return found


@pytest.mark.parametrize("rounds", [0, 100])
def test_a_backup_without_its_witness_goes_on_only_if_somebody_vouches_for_it(
    service: Service, tmp_path: Path, rounds: int
) -> None:
    service.make()
    play(service, rounds)
    service.rank()  # waits, and would be learned in both places
    backup(service, tmp_path / "backup")
    service.pass_time(11)
    service.settle()
    moved = elsewhere(service, tmp_path / "backup", tmp_path / "moved")
    try:
        found = moved.get("/v1/bandits/news").json()
        assert (found["state"], found["closed"]) == ("rewound", rounds)
        assert "--new-witness" in found["state_reason"]
        assert moved.rank().json()["error"]["code"] == "Rewound"
    finally:
        moved.close()
    for settings in ({"new_witness": True}, {}):  # once is enough
        moved = started(service, tmp_path / "moved", **settings)
        try:
            assert moved.get("/v1/bandits/news").json()["state"] == "running"
            play(moved, 1)
        finally:
            moved.close()
    assert moved.witness.of(1).rows == rounds + 3


def test_data_that_was_moved_with_its_witness_goes_on(service: Service, tmp_path: Path) -> None:
    service.make()
    play(service, 100)
    backup(service, tmp_path / "backup")
    shutil.copytree(tmp_path / "witness", tmp_path / "backup" / "witness")
    moved = elsewhere(service, tmp_path / "backup", tmp_path / "moved")
    try:
        play(moved, 1)
        found = moved.get("/v1/bandits/news").json()
        assert (found["state"], found["closed"]) == ("running", 101)
    finally:
        moved.close()


def test_nobody_can_vouch_for_data_that_the_witness_contradicts(tmp_path: Path) -> None:
    service = Service(tmp_path / "service.sqlite", tmp_path)
    service.make()
    play(service, 100)
    backup(service, tmp_path / "backup")
    play(service, 100)
    service = restore(service, tmp_path / "backup", new_witness=True)
    try:
        service.settle()
        assert service.get("/v1/bandits/news").json()["state"] == "rewound"
    finally:
        service.close()


def test_an_empty_learner_is_remembered_before_its_first_row(
    any_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = any_service
    service.make()
    service.rank()
    service.pass_time(11)
    with monkeypatch.context() as patched:
        full = StoreError("witness", "is full; a test filled it")
        patched.setattr(service.witness, "remember", lambda *_: (_ for _ in ()).throw(full))
        service.settle()
        assert service.get("/v1/bandits/news").json()["closed"] == 0
        assert service.writer._joiners == {}
    service.writer._after.clear()
    service.settle()
    assert service.get("/v1/bandits/news").json()["closed"] == 1


def test_a_writer_that_died_when_it_had_remembered_a_new_learner_makes_another(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.make()
    remember, learners = Witness.remember, []

    def die(self: Witness, bandit: int, testimony: "Testimony") -> None:
        remember(self, bandit, testimony)
        learners.append(testimony.learner)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Witness, "remember", die)
        with pytest.raises(KeyboardInterrupt):
            service.writer.turn()
    service.writer.close()
    service.writer = service.new_writer()
    play(service, 1)
    assert service.get("/v1/bandits/news").json()["state"] == "running"
    testimony = service.witness.of(1)
    assert testimony is not None
    assert (testimony.rows, testimony.learner not in learners) == (1, True)


def test_a_ranker_that_saw_more_refuses_a_database_that_was_restored_under_it(
    service: Service,
) -> None:
    service.make()
    play(service, 100)
    number = service.get("/v1/bandits/news").json()["release"]["number"]
    connection = service.database.connect()
    connection.execute("DELETE FROM service_release WHERE number >= ?", (number,))
    service.loop.run(service.core.look())
    assert service.rank().json()["error"]["code"] == "Rewound"
    connection.close()


def test_a_ranker_does_not_forget_that_a_database_was_restored_under_it(
    service: Service,
) -> None:
    service.make()
    for _ in range(5):
        service.rank()
    service.loop.run(service.core.look())
    connection = service.database.connect()
    for events in (3, 5, 50):  # others, who have not noticed, go on
        connection.execute("UPDATE service_bandit SET events = ?", (events,))
        service.loop.run(service.core.look())
        assert service.rank().json()["error"]["code"] == "Rewound"
    connection.close()


@pytest.mark.parametrize("later", [0, 1])
def test_a_ranker_notices_another_release_of_the_number_that_it_saw(
    service: Service, later: int
) -> None:
    service.make()
    play(service, 100)
    number = service.get("/v1/bandits/news").json()["release"]["number"]
    connection = service.database.connect()
    connection.execute(
        "INSERT INTO service_release (bandit, number, held, digest, made, document) "
        "SELECT bandit, number + 1, held, digest, made, document FROM service_release "
        "WHERE number = ? AND ? = 1",
        (number, later),
    )
    connection.execute("UPDATE service_release SET digest = 'another' WHERE number = ?", (number,))
    service.loop.run(service.core.look())
    found = service.get("/v1/bandits/news").json()
    assert (found["state"], f"release {number}" in found["state_reason"]) == ("rewound", True)
    connection.close()


def test_a_witness_that_can_be_read_again_is_believed_again(service: Service) -> None:
    service.make()
    service.settle()
    file = service.folder / "witness" / "1.json"
    content = file.read_bytes()
    for text, status in ((b"", 503), (content, 201)):
        file.write_bytes(text)
        service.loop.run(service.core.look())
        assert service.rank().status_code == status


def test_what_a_witness_remembers_since_the_look_is_no_contradiction(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.make()
    service.settle()
    of = service.witness.of

    def late(bandit: int) -> "Testimony | None":
        """A writer that learns one more row between the look's query and its witness."""
        connection = service.database.connect()
        connection.execute("UPDATE service_bandit SET events = 1")
        connection.close()
        found = of(bandit)
        return None if found is None else type(found)(found.learner, 0, found.head, 1)

    with monkeypatch.context() as patched:
        patched.setattr(service.witness, "of", late)
        service.loop.run(service.core.look())
    assert service.get("/v1/bandits/news").json()["state"] == "running"


def test_a_ranker_refuses_fewer_events_than_there_were(service: Service) -> None:
    service.make()
    for _ in range(5):
        service.rank()
    service.loop.run(service.core.look())
    connection = service.database.connect()
    connection.execute("UPDATE service_bandit SET events = 3")
    service.loop.run(service.core.look())
    assert service.rank().json()["error"]["code"] == "Rewound"
    connection.close()


def test_a_service_that_was_stopped_and_started_goes_on(tmp_path: Path) -> None:
    service = Service(tmp_path / "service.sqlite", tmp_path)
    service.make()
    play(service, 50)
    head = service.get("/v1/bandits/news/ledger").json()["head"]
    now = service.clock.now
    service.close()
    service = Service(tmp_path / "service.sqlite", tmp_path)
    try:
        service.clock.now = now
        assert service.get("/v1/bandits/news/ledger").json()["head"] == head
        play(service, 50)
        found = service.get("/v1/bandits/news").json()
        assert (found["state"], found["events"], found["closed"]) == ("running", 100, 100)
    finally:
        service.close()


@pytest.fixture
def broken(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service whose database has just gone away."""
    service.make()
    service.rank(event_id="before")
    kind: type[Connection] = type(service.core._reading)  # type: ignore[assignment]

    def fail(*_: object) -> None:
        raise StoreError("database", "is gone; a test took it")

    monkeypatch.setattr(kind, "transaction", fail)
    return service


def test_without_a_database_a_rank_is_refused_and_nothing_is_lost(
    broken: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = broken.rank(event_id="during")
    assert (found.status_code, found.json()["error"]["code"]) == (503, "StoreUnavailable")
    assert found.headers["retry-after"] == "1"
    monkeypatch.undo()
    assert broken.rank(event_id="during").status_code == 201
    broken.pass_time(11)
    broken.settle()
    assert broken.get("/v1/bandits/news").json()["closed"] == 2


def test_without_a_database_an_unlearned_answer_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(tmp_path / "s.sqlite", tmp_path, without_database="unlearned")
    try:
        service.make()
        kind = type(service.core._reading)
        with monkeypatch.context() as patched:
            gone = StoreError("database", "is gone; a test took it")
            patched.setattr(kind, "transaction", lambda _: (_ for _ in ()).throw(gone))
            found = service.rank()
        assert found.status_code == 201
        assert found.headers["discreet-learned"] == "false"
        assert service.rewards((found.json()["event_id"], 1.0))[0]["verdict"] == "unknown"
        assert service.get("/v1/bandits/news").json()["events"] == 0
    finally:
        service.close()
