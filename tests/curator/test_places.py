"""Where a learner may be kept, and what becomes of one whose files go away."""

import errno
import gc
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import LinUCB, Problem, load
from discreet.curator import disk, places
from discreet.curator.keeping import Keeper
from discreet.errors import (
    DiscreetError,
    MissingFileError,
    ParameterError,
    ReloadNeededError,
    StateExistsError,
    StateFileError,
)
from helpers import TARGET, played, whole_state
from kept import BODY, begun, contents, on_disk, sha

SUFFIXES = ("", ".journal", ".ledger", ".lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bandit"


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir())


# Names


def test_a_snapshot_spares_the_learner_and_the_file_next_to_it(path: Path) -> None:
    begun(path.with_name("bandit.new"), records=2)[0].close()
    for name in ("bandit.journal.new", ".bandit.new"):
        path.with_name(name).write_bytes(b"mine")
    before = contents(path.parent)
    keeper, _ = begun(path, records=1)
    keeper.compact(BODY)
    keeper.close()
    on_disk(path)
    assert {name: contents(path.parent)[name] for name in before} == before
    assert on_disk(path.with_name("bandit.new"))[1] == [{"n": 1}, {"n": 2}]


def test_what_a_crash_left_is_removed_by_the_learner_that_left_it(path: Path) -> None:
    keeper, ledger = begun(path)
    keeper.close()
    whole = names(path.parent)
    other = places.fresh(path, sha(0)[:32])
    other.write_bytes(b"of another learner")
    for place in (path, places.companion(path, "journal")):
        places.fresh(place, ledger.learner).write_bytes(b"left by a crash")
    on_disk(path)
    assert names(path.parent) == sorted([*whole, other.name])


@pytest.mark.parametrize("name", ["a.journal", "bandit.ledger", "x.lock", "A.JOURNAL", ".lock"])
@pytest.mark.parametrize("make", [begun, Keeper.open])
def test_a_name_that_belongs_to_a_file_beside_a_learner_is_refused(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    with pytest.raises(ParameterError, match=r"path: ends in \.(journal|ledger|lock), .* without"):
        make(tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("make", [begun, Keeper.open])
@pytest.mark.parametrize("path", ["a\0b", None, 3, b"a"])
def test_what_is_no_path_is_refused(path: Any, make: Callable[[Any], object]) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match="path: is not a path; give the name of a file"):
        make(path)


@pytest.mark.parametrize("make", [begun, Keeper.open])
def test_a_folder_is_no_file(tmp_path: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ParameterError, match="folder is a folder; give the name of a file in it"):
        make(tmp_path / "folder")
    assert names(tmp_path) == ["folder"]


def test_a_file_or_a_folder_that_is_missing_is_named_in_one_line(path: Path) -> None:
    with pytest.raises(ParameterError, match="bandit is not a folder; make it first") as new:
        begun(path / "nowhere")
    with pytest.raises(MissingFileError, match="bandit does not exist; give the path") as old:
        Keeper.open(path)
    for caught in (new, old):
        assert len(str(caught.value).splitlines()) == 1
        assert ".lock" not in str(caught.value)
    assert names(path.parent) == []


@pytest.mark.parametrize("name", ["bandit", "bandit.journal", "bandit.ledger"])
def test_a_start_that_is_refused_leaves_no_lock(path: Path, name: str) -> None:
    path.with_name(name).write_bytes(b"mine")
    with pytest.raises(StateExistsError):
        begun(path)
    assert names(path.parent) == [name]


def test_every_refusal_is_of_the_family(path: Path) -> None:
    for wrong in (path / "a" / "b", path.with_name("a.lock"), path.parent):
        with pytest.raises(DiscreetError) as caught:
            begun(wrong)
        assert caught.value.parameter == "path"


# Modes


def test_files_that_others_could_open_are_made_private_again(path: Path) -> None:
    begun(path, records=1)[0].close()
    for suffix in SUFFIXES:
        path.with_name(f"bandit{suffix}").chmod(0o666)
    on_disk(path)
    modes = {stat.S_IMODE(place.stat().st_mode) for place in path.parent.iterdir()}
    assert modes == {0o600}


def test_an_open_that_is_refused_changes_no_mode(path: Path) -> None:
    path.write_bytes(b"something else")
    path.chmod(0o644)
    with pytest.raises(StateFileError):
        Keeper.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("mine", [True, False])
def test_files_that_cannot_be_made_private_are_refused_if_they_are_not_ours(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, mine: bool
) -> None:
    begun(path)[0].close()
    path.chmod(0o640)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    if mine:  # a file system without modes
        on_disk(path)
        return
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(StateFileError, match="can be opened by others and belongs to another user"):
        Keeper.open(path)


# Files that go away under an open learner


def moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def deleted(path: Path) -> None:
    shutil.rmtree(path.parent)


def replaced(path: Path) -> None:
    """By a copy, file by file."""
    for place in list(path.parent.iterdir()):
        content = place.read_bytes()
        place.unlink()
        (path.parent / "placeholder").touch()  # takes the number that was given up
        place.write_bytes(content)


def one(suffix: str) -> Callable[[Path], None]:
    return lambda path: path.with_name(f"bandit{suffix}").unlink()


AWAY = {
    "moved": moved,
    "deleted": deleted,
    "replaced": replaced,
    **{f"without bandit{suffix}": one(suffix) for suffix in SUFFIXES},
}


@pytest.fixture
def lonely(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept" / "bandit"


@pytest.mark.parametrize("away", AWAY.values(), ids=AWAY)
def test_nothing_is_acknowledged_when_the_files_are_gone(
    lonely: Path, away: Callable[[Path], None]
) -> None:
    keeper, ledger = begun(lonely, records=1, releases=1)
    entry = ledger.append(2, 2, sha(2))
    away(lonely)
    before = contents(lonely.parent) if lonely.parent.exists() else None
    for call in (
        lambda: keeper.record({"n": 2}),
        lambda: keeper.note(entry),
        lambda: keeper.compact(BODY),
    ):
        with pytest.raises(
            ReloadNeededError, match=r"moved, deleted or replaced under the open learner.* load it"
        ) as caught:
            call()
        assert len(str(caught.value).splitlines()) == 1
    assert (keeper.records, keeper.noted) == (1, 1)
    assert (contents(lonely.parent) if lonely.parent.exists() else None) == before


def test_files_that_are_put_back_go_on(lonely: Path) -> None:
    keeper, _ = begun(lonely, records=1)
    elsewhere = lonely.parent.with_name("elsewhere")
    moved(lonely)
    with pytest.raises(ReloadNeededError):
        keeper.record({"n": 2})
    elsewhere.rename(lonely.parent)
    keeper.record({"n": 3})
    keeper.settle()
    keeper.compact({"rows": 2})
    keeper.record({"n": 4})  # and a new snapshot is not taken for somebody else's
    keeper.settle()
    keeper.close()
    assert on_disk(lonely) == ({"rows": 2}, [{"n": 4}], 0)


def test_a_record_can_be_withdrawn_from_files_that_were_moved(lonely: Path) -> None:
    keeper, _ = begun(lonely, records=1)
    keeper.record({"n": 2})
    moved(lonely)
    keeper.withdraw()
    keeper.close()
    assert on_disk(lonely.parent.with_name("elsewhere") / "bandit")[1] == [{"n": 1}]


def test_a_learner_whose_files_were_moved_goes_on_where_they_are(
    problem: Problem, lonely: Path
) -> None:
    learner = played(LinUCB(problem, horizon=40, privacy=TARGET, path=lonely), 4)
    waiting = learner.choose(np.eye(3))
    state = whole_state(learner)
    moved(lonely)
    for call in (
        lambda: learner.choose(np.eye(3)),
        lambda: learner.learn(waiting, 1),
        lambda: learner.forget(waiting),
        learner.save,
    ):
        with pytest.raises(ReloadNeededError, match="load it from where its files are now"):
            call()
    assert whole_state(learner) == state
    with pytest.raises(ReloadNeededError, match="load it from where its files are now"):
        learner.close()
    restored = load(lonely.parent.with_name("elsewhere") / "bandit")
    restored.learn(waiting, 1)
    assert restored.rows == 5


# Snapshots that fail


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nothing to count them by")
@pytest.mark.parametrize("step", ["written", "replace"])
def test_a_snapshot_that_fails_leaves_no_file_open(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, _ = begun(path, records=1)
    write, replace = disk.written, Path.replace

    def full(target: Path, *more: Any) -> Any:  # noqa: ANN401
        if "journal" not in target.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return (write if step == "written" else replace)(target, *more)

    monkeypatch.setattr(disk if step == "written" else Path, step, full)
    gc.collect()
    before = descriptors()
    for _ in range(5):
        with pytest.raises(OSError, match="No space left"):
            keeper.compact(BODY)
    assert descriptors() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nothing to count them by")
def test_a_snapshot_that_fails_half_way_closes_all_with_the_learner(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    before = descriptors()
    keeper, _ = begun(path, records=1)

    def failing(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(disk, "sync_folder", failing)
    with pytest.raises(OSError, match="Input/output"):
        keeper.compact(BODY)
    with pytest.raises(ReloadNeededError):
        keeper.record({"n": 2})
    keeper.close()
    assert descriptors() == before


def test_a_snapshot_that_failed_is_due_again_at_twice_the_length(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, _ = begun(path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    tries = []
    monkeypatch.setattr(disk, "written", full)
    for number in range(1, 30):
        keeper.record({"n": number})
        keeper.settle()
        if keeper.due(3):
            tries.append(number)
            with pytest.raises(OSError, match="No space left"):
                keeper.compact(BODY)
    assert tries == [3, 6, 12, 24]
    monkeypatch.undo()
    keeper.compact(BODY)
    for number in range(1, 4):
        assert keeper.due(3) == (number > 3)
        keeper.record({"n": number})
        keeper.settle()
    assert keeper.due(3)
