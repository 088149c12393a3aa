"""Systems without locks, and systems with a stronger sync."""

import errno
import os
from pathlib import Path

import pytest

from discreet.curator import disk, locking
from discreet.errors import ParameterError
from kept import BODY, begun, on_disk, sha


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bandit"


class Elsewhere:
    """Another system's `fcntl`."""

    LOCK_EX, LOCK_NB, F_FULLFSYNC = 2, 4, 51

    def __init__(self, error: int | None = None) -> None:
        self.error = error
        self.flushed: list[int] = []

    def fcntl(self, file: int, command: int) -> None:
        assert command == self.F_FULLFSYNC
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        self.flushed.append(file)

    def flock(self, _: int, __: int) -> None:
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))


@pytest.mark.parametrize("absent", ["fcntl", "locks"])
def test_without_locks_a_learner_stays_in_memory(
    path: Path, absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_NOFOLLOW")
    other = None if absent == "fcntl" else Elsewhere(errno.ENOLCK)
    monkeypatch.setattr(disk, "FCNTL", other)
    with pytest.raises(ParameterError, match=r"cannot be locked here.*keep the learner in memory"):
        begun(path)
    if absent == "fcntl":
        assert list(path.parent.iterdir()) == []
        with pytest.raises(ParameterError, match="cannot be locked here"):
            locking.hold(0)


def test_a_lock_file_needs_no_flag_that_a_system_lacks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_NOFOLLOW")
    begun(path, records=1)[0].close()
    assert on_disk(path)[1] == [{"n": 1}]


def test_where_there_is_a_stronger_sync_it_is_used_for_every_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, plain = Elsewhere(), []
    monkeypatch.setattr(disk, "FCNTL", other)
    monkeypatch.setattr(os, "fsync", plain.append)
    keeper, ledger = begun(path)
    assert len(other.flushed) == 5  # ledger, journal, folder, snapshot, folder
    keeper.record({"n": 1})
    keeper.withdraw()
    keeper.note(ledger.append(1, 1, sha(1)))
    assert len(other.flushed) == 8
    keeper.compact(BODY)
    assert len(other.flushed) == 12
    assert plain == []


@pytest.mark.parametrize(
    ("error", "hidden"), [(errno.ENOTSUP, True), (errno.EINVAL, True), (errno.EIO, False)]
)
def test_a_stronger_sync_that_is_not_known_is_made_up_for_and_one_that_fails_is_not(
    error: int, *, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: list[int] = []
    monkeypatch.setattr(disk, "FCNTL", Elsewhere(error))
    monkeypatch.setattr(os, "fsync", plain.append)
    if hidden:
        disk.sync(7)
        assert plain == [7]
    else:
        with pytest.raises(OSError, match="Input/output"):
            disk.sync(7)
        assert plain == []
