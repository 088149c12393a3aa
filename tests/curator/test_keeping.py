"""Kept learners: what is on the disk is never behind what was shown, whatever happens."""

import copy
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.curator import keeping, places, storage
from discreet.curator.keeping import Keeper
from discreet.errors import (
    CorruptFileError,
    MissingFileError,
    ReloadNeededError,
    RewoundStateError,
    StateExistsError,
    StateFileError,
)
from discreet.release.ledger import Ledger
from kept import BODY, CARD, begun, contents, on_disk, sha


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bandit"


def test_a_new_learner_is_found_again(path: Path) -> None:
    keeper, ledger = begun(path)
    assert (keeper.path, keeper.records, keeper.noted, keeper.generation) == (path, 0, 0, 1)
    keeper.close()
    again, body, records, found = Keeper.open(path)
    assert (body, records) == (BODY, [])
    assert (found.learner, found.card, len(found)) == (ledger.learner, CARD, 0)
    assert repr(again) == f"Keeper(path={str(path)!r}, records=0, noted=0)"


def test_records_and_releases_are_found_again_in_order(path: Path) -> None:
    keeper, ledger = begun(path, records=5, releases=2)
    assert (keeper.records, keeper.noted) == (5, 2)
    keeper.close()
    again, _, records, found = Keeper.open(path)
    assert records == [{"n": number} for number in range(1, 6)]
    assert found.head == ledger.head
    again.record({"n": 6})
    again.settle()
    again.note(found.append(3, 3, sha(3)))
    again.close()
    assert on_disk(path)[1:] == ([{"n": number} for number in range(1, 7)], 3)


def test_all_files_are_for_their_owner_only(path: Path) -> None:
    before = os.umask(0)
    try:
        keeper, _ = begun(path, records=1)
        keeper.compact(BODY)
    finally:
        os.umask(before)
    files = {place.name: stat.S_IMODE(place.stat().st_mode) for place in path.parent.iterdir()}
    names = ["bandit", "bandit.journal", "bandit.ledger", "bandit.lock"]
    assert files == dict.fromkeys(names, 0o600)


def test_a_snapshot_is_a_save_file_that_says_it_is_kept(path: Path) -> None:
    keeper, ledger = begun(path)
    body = storage.read(path)
    assert body.pop(keeping.KEPT) == {"generation": 1, "ledger": ledger.root, "journal": None}
    assert body == BODY
    assert keeper.generation == 1


def test_a_plain_save_file_is_not_a_kept_learner(path: Path) -> None:
    path.write_bytes(storage.render(BODY))
    with pytest.raises(StateFileError, match="without the mark of a learner that is kept"):
        Keeper.open(path)
    assert list(contents(path.parent)) == ["bandit"]
    assert not (path.parent / "bandit.lock").exists()


def test_a_link_to_a_kept_learner_opens_the_same_files(path: Path) -> None:
    begun(path, records=1)[0].close()
    link = path.parent / "link"
    link.symlink_to(path)
    keeper = Keeper.open(link)[0]
    assert keeper.path == path
    keeper.compact(BODY)
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["bandit", "bandit.journal", "bandit.ledger"])
def test_nothing_that_exists_is_overwritten(path: Path, name: str) -> None:
    (path.parent / name).write_bytes(b"mine")
    with pytest.raises(StateExistsError, match=rf"{name} exists already") as caught:
        begun(path)
    assert len(str(caught.value).splitlines()) == 1
    assert contents(path.parent) == {name: b"mine"}


@pytest.mark.parametrize("name", ["journal", "ledger"])
def test_a_missing_file_is_named(path: Path, name: str) -> None:
    begun(path, records=1)[0].close()
    keeping.companion(path, name).unlink()
    before = contents(path.parent)
    with pytest.raises(MissingFileError, match=rf"bandit\.{name} is missing.*restore that file"):
        Keeper.open(path)
    assert contents(path.parent) == before


def test_a_start_that_fails_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.fsync, []

    def fails_at(number: int) -> Callable[[int], None]:
        def fsync(file: int) -> None:
            calls.append(file)
            if len(calls) == number:
                raise OSError(28, "No space left on device")
            real(file)

        return fsync

    for number in range(1, 100):
        calls.clear()
        monkeypatch.setattr(os, "fsync", fails_at(number))
        try:
            begun(path)[0].close()
        except OSError:
            assert contents(path.parent) == {}
        else:
            break
    assert number > 4
    assert on_disk(path) == (BODY, [], 0)


# Errors while writing.


def failing(monkeypatch: pytest.MonkeyPatch, name: str, times: int = 1) -> None:
    real, left = getattr(os, name), [times]

    def fails(*arguments: object) -> object:
        if left[0]:
            left[0] -= 1
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, name, fails)


@pytest.mark.parametrize("name", ["write", "fsync"])
def test_a_record_that_cannot_be_written_is_taken_back(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, _ = begun(path, records=2)
    before = contents(path.parent)
    failing(monkeypatch, name)
    with pytest.raises(OSError, match="No space left"):
        keeper.record({"n": 3})
    assert contents(path.parent) == before
    assert keeper.records == 2
    keeper.record({"n": 4})
    keeper.settle()
    keeper.close()
    assert on_disk(path)[1] == [{"n": 1}, {"n": 2}, {"n": 4}]


@pytest.mark.parametrize("name", ["write", "fsync"])
def test_a_release_that_cannot_be_noted_is_taken_back(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, ledger = begun(path, releases=2)
    before = contents(path.parent)
    entry = ledger.append(3, 3, sha(3))
    failing(monkeypatch, name)
    with pytest.raises(OSError, match="No space left"):
        keeper.note(entry)
    assert contents(path.parent) == before
    assert keeper.noted == 2
    keeper.note(entry)
    keeper.close()
    assert on_disk(path)[2] == 3


def test_half_a_write_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, _ = begun(path, records=1)
    before, real, calls = contents(path.parent), os.write, []

    def short(file: int, data: memoryview) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(file, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space left"):
        keeper.record({"n": 2})
    assert len(calls) == 2
    assert contents(path.parent) == before


def test_what_cannot_even_be_taken_back_has_to_be_reloaded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, ledger = begun(path, records=1)
    with monkeypatch.context() as patch:
        failing(patch, "fsync", times=2)
        with pytest.raises(OSError, match="No space left"):
            keeper.record({"n": 2})
    for call in (
        lambda: keeper.record({"n": 3}),
        lambda: keeper.note(ledger.append(1, 1, sha(1))),
        lambda: keeper.compact(BODY),
        keeper.withdraw,
    ):
        with pytest.raises(ReloadNeededError, match="reload it from the file"):
            call()
    keeper.close()
    assert on_disk(path) == (BODY, [{"n": 1}], 0)


def test_what_is_not_json_is_refused_before_anything_is_written(path: Path) -> None:
    keeper, _ = begun(path, records=1)
    before = contents(path.parent)
    for entry in ({"n": float("nan")}, {"n": object()}):
        with pytest.raises((TypeError, ValueError)):
            keeper.record(entry)
        with pytest.raises((TypeError, ValueError)):
            keeper.compact(entry)
    assert contents(path.parent) == before
    keeper.record({"n": 2})


def test_a_release_out_of_order_is_not_noted(path: Path) -> None:
    keeper, ledger = begun(path, releases=2)
    entries = [ledger.append(number, number, sha(number)) for number in (3, 4)]
    for entry in (ledger.entries[1], entries[1]):
        with pytest.raises(StateFileError, match="3 comes next"):
            keeper.note(entry)
    for entry in ledger.entries[keeper.noted :]:
        keeper.note(entry)
    keeper.close()
    assert on_disk(path)[2] == 4


# Changes in memory that do not follow.


def test_a_record_can_be_withdrawn(path: Path) -> None:
    keeper, _ = begun(path, records=2)
    before = contents(path.parent)
    keeper.record({"n": 3})
    assert contents(path.parent) != before
    keeper.withdraw()
    assert contents(path.parent) == before
    assert keeper.records == 2
    keeper.record({"n": 4})
    keeper.settle()
    keeper.close()
    assert on_disk(path)[1] == [{"n": 1}, {"n": 2}, {"n": 4}]


def test_only_the_last_record_can_be_withdrawn_and_only_once(path: Path) -> None:
    keeper, _ = begun(path, records=2)
    with pytest.raises(ReloadNeededError, match="no change that could be taken back"):
        keeper.withdraw()
    keeper.record({"n": 3})
    keeper.withdraw()
    with pytest.raises(ReloadNeededError, match="no change that could be taken back"):
        keeper.withdraw()
    assert keeper.records == 2


def test_a_change_that_was_never_settled_stops_the_learner(path: Path) -> None:
    keeper, _ = begun(path, records=1)
    keeper.record({"n": 2})
    for call in (lambda: keeper.record({"n": 3}), lambda: keeper.compact(BODY)):
        with pytest.raises(ReloadNeededError, match="reload it from the file"):
            call()
    keeper.close()
    assert on_disk(path)[1] == [{"n": 1}, {"n": 2}]


def test_a_withdrawal_that_fails_stops_the_learner(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, _ = begun(path, records=1)
    keeper.record({"n": 2})
    failing(monkeypatch, "ftruncate")
    with pytest.raises(OSError, match="No space left"):
        keeper.withdraw()
    with pytest.raises(ReloadNeededError):
        keeper.record({"n": 3})


# Snapshots and journals that go together, or do not.


def test_compacting_empties_the_journal_and_keeps_the_ledger(path: Path) -> None:
    keeper, _ = begun(path, records=3, releases=2)
    keeper.compact({"rows": 3})
    assert (keeper.records, keeper.generation, keeper.noted) == (0, 2, 2)
    keeper.record({"n": 4})
    keeper.settle()
    keeper.close()
    assert on_disk(path) == ({"rows": 3}, [{"n": 4}], 2)


@pytest.mark.parametrize("step", ["prepared", "replace"])
def test_a_snapshot_that_cannot_be_written_leaves_the_old_one(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, _ = begun(path, records=2)
    before = contents(path.parent)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if step == "prepared":
            patch.setattr(os, "fsync", full)
        else:
            patch.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            keeper.compact({"rows": 2})
    assert contents(path.parent) == before
    keeper.record({"n": 3})
    keeper.settle()
    keeper.compact({"rows": 3})
    keeper.close()
    assert on_disk(path) == ({"rows": 3}, [], 0)


def kept_versions(path: Path) -> list[dict[str, bytes]]:
    """The files after the first, second and third snapshot, each followed by a record."""
    keeper, ledger = begun(path, records=1)
    versions = [contents(path.parent)]
    for number in (1, 2):
        keeper.note(ledger.append(number, number, sha(number)))
        keeper.compact({"rows": number})
        keeper.record({"n": number + 1})
        keeper.settle()
        versions.append(contents(path.parent))
    keeper.close()
    return versions


def restored(path: Path, **versions: dict[str, bytes]) -> None:
    for name, version in versions.items():
        file = "bandit" if name == "snapshot" else f"bandit.{name}"
        (path.parent / file).write_bytes(version[file])


def test_a_snapshot_older_than_its_journal_is_rewound(path: Path) -> None:
    versions = kept_versions(path)
    for old in versions[:2]:
        restored(path, snapshot=old)
        with pytest.raises(RewoundStateError, match="older snapshot than its journal"):
            Keeper.open(path)


def test_a_journal_that_is_too_old_is_not_taken_for_what_a_crash_left(path: Path) -> None:
    versions = kept_versions(path)
    keeper, _, records, _ = Keeper.open(path)
    assert records == [{"n": 3}]
    keeper.close()
    restored(path, journal=versions[0])
    with pytest.raises(CorruptFileError, match="goes on from another snapshot"):
        Keeper.open(path)
    # The journal of the snapshot before, but without its last record.
    lines = versions[1]["bandit.journal"].splitlines(keepends=True)
    (path.parent / "bandit.journal").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(CorruptFileError, match="goes on from another snapshot"):
        Keeper.open(path)


def test_a_state_restored_without_its_ledger_is_rewound(path: Path) -> None:
    versions = kept_versions(path)
    restored(path, snapshot=versions[0], journal=versions[0])
    keeper, _, _, ledger = Keeper.open(path)
    with pytest.raises(RewoundStateError, match="2 releases were made and this state knows 0"):
        ledger.reconcile(0, 0, None)
    keeper.close()


@pytest.mark.parametrize("name", ["journal", "ledger"])
def test_files_of_another_learner_are_refused(path: Path, tmp_path: Path, name: str) -> None:
    begun(path, records=1)[0].close()
    other = tmp_path / "other"
    begun(other, records=1)[0].close()
    shutil.copy(keeping.companion(other, name), keeping.companion(path, name))
    with pytest.raises(CorruptFileError, match=f"has a {name} that does not belong"):
        Keeper.open(path)


@pytest.mark.parametrize(
    "kept",
    [
        None,
        {},
        {"generation": 1},
        {"generation": True, "ledger": "a", "journal": None},
        {"generation": 0, "ledger": "a", "journal": None},
        {"generation": 1, "ledger": "a", "journal": None},
        {"generation": 10**300, "ledger": [], "journal": {}},
    ],
)
def test_a_snapshot_that_says_nonsense_is_refused(path: Path, kept: object) -> None:
    begun(path)[0].close()
    path.write_bytes(storage.render({**BODY, keeping.KEPT: kept}))
    with pytest.raises(CorruptFileError, match="does not belong"):
        Keeper.open(path)


def test_nothing_is_changed_by_an_open_that_is_refused(path: Path) -> None:
    keeper, ledger = begun(path, records=2)
    keeper.close()
    file = path.parent / "bandit.journal"
    file.write_bytes(file.read_bytes() + b"torn")
    (path.parent / "bandit.ledger").write_bytes(Ledger(CARD).header_line() + b"torn")
    for name in ("bandit", "bandit.journal"):
        places.fresh(path.parent / name, ledger.learner).write_bytes(b"left by a crash")
    before = contents(path.parent)
    with pytest.raises(CorruptFileError):
        Keeper.open(path)
    assert contents(path.parent) == before


def test_every_torn_length_of_the_last_record_is_dropped_and_cut_off(path: Path) -> None:
    begun(path, records=3)[0].close()
    file = path.parent / "bandit.journal"
    whole = file.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for size in range(last, len(whole)):
        file.write_bytes(whole[:size])
        assert on_disk(path)[1] == [{"n": 1}, {"n": 2}]
        assert file.read_bytes() == whole[:last]


def test_every_torn_length_of_the_last_release_is_dropped_and_cut_off(path: Path) -> None:
    begun(path, releases=3)[0].close()
    file = path.parent / "bandit.ledger"
    whole = file.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for size in range(last, len(whole)):
        file.write_bytes(whole[:size])
        keeper, _, _, ledger = Keeper.open(path)
        assert file.read_bytes() == whole[:last]
        entry = ledger.reconcile(3, 3, sha(3))
        assert entry is not None
        keeper.note(entry)
        keeper.close()
        assert file.read_bytes() == whole


@pytest.mark.parametrize("name", ["bandit", "bandit.journal", "bandit.ledger"])
def test_flipped_bytes_are_refused_or_part_of_a_torn_line(path: Path, name: str) -> None:
    begun(path, records=3, releases=3)[0].close()
    file = path.parent / name
    whole = file.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    # The tests of journal and ledger flip every byte; here every seventh, and the last line's end.
    for place in [*range(0, len(whole), 7), last - 1, len(whole) - 1]:
        altered = bytearray(whole)
        altered[place] ^= 1
        file.write_bytes(altered)
        try:
            body, records, releases = on_disk(path)
        except StateFileError:
            continue
        if name == "bandit":  # a change without meaning, such as of a space
            assert (body, len(records), releases) == (BODY, 3, 3)
        else:
            assert place == len(whole) - 1
            assert len(records) + releases == 5


def test_a_keeper_cannot_be_copied_and_closes_twice(path: Path) -> None:
    keeper, _ = begun(path)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(keeper)
    keeper.close()
    keeper.close()
    assert keeper.closed
    for call in (lambda: keeper.record({}), keeper.settle, lambda: keeper.compact({})):
        with pytest.raises(ReloadNeededError, match="was closed"):
            call()
