"""What is finished stays, what is torn is cut off, what is not ours is left alone."""

import errno
import json
import os
from pathlib import Path

import pytest

from discreet.errors import CorruptFileError, RunFolderError
from discreet.experiments._folder import JOURNAL, MANIFEST, Plan, opened
from experiment_cells import Square, plan_of

PLAN = plan_of([Square(seed=seed) for seed in range(4)])
ONE = [Square(seed=0)]


def fill(folder: Path, count: int) -> None:
    with opened(folder, PLAN) as kept:
        for task in PLAN.tasks[:count]:
            kept.add(task.run())


def test_finished_cells_are_there_again(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    with opened(tmp_path, PLAN) as kept:
        found = list(kept.finished.values())
    assert [cell.key for cell in found] == [task.key for task in PLAN.tasks[:2]]
    assert [cell.readings for cell in found] == [task.run().readings for task in PLAN.tasks[:2]]


@pytest.mark.parametrize("torn", [b"{", b'{"cell": {"experiment": "test", "sett', b"\x00\x00"])
def test_a_torn_last_line_costs_only_itself(tmp_path: Path, torn: bytes) -> None:
    fill(tmp_path, 2)
    with (tmp_path / JOURNAL).open("ab") as journal:
        journal.write(torn)
    with opened(tmp_path, PLAN) as kept:
        assert len(kept.finished) == 2
        kept.add(PLAN.tasks[2].run())
    with opened(tmp_path, PLAN) as kept:
        assert len(kept.finished) == 3


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / JOURNAL).write_bytes(lines[0] + b"{damaged\n" + lines[2])
    with pytest.raises(CorruptFileError, match="line 2"), opened(tmp_path, PLAN):
        pass


def test_a_full_disk_is_one_clear_line_and_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 2)
    before = (tmp_path / JOURNAL).read_bytes()
    whole = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) > 10:
            return whole(file, bytes(data[:10]))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with opened(tmp_path, PLAN) as kept:
        monkeypatch.setattr(os, "write", full)
        for _ in range(2):
            with pytest.raises(RunFolderError, match=r"No space left.*2 finished cells are kept"):
                kept.add(PLAN.tasks[2].run())
        monkeypatch.undo()
    assert (tmp_path / JOURNAL).read_bytes() == before
    fill(tmp_path, 4)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (plan_of(ONE, name="another"), "another at scale smoke"),
        (plan_of(ONE, scale="full"), "test at scale full"),
        (plan_of(ONE), "with other settings"),
        (plan_of([Square(seed=seed) for seed in range(1, 5)]), "with other settings"),
    ],
)
def test_the_folder_of_another_run_is_refused_and_left_alone(
    tmp_path: Path,
    other: Plan,
    what: str,
) -> None:
    with opened(tmp_path, other):
        pass
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RunFolderError, match=what), opened(tmp_path, PLAN):
        pass
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_of_another_version_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "discreet": "0.0.1"}))
    with pytest.raises(RunFolderError, match=r"by discreet 0\.0\.1"), opened(tmp_path, PLAN):
        pass


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(RunFolderError, match="not from a run"), opened(tmp_path, PLAN):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(RunFolderError, match="is a file"), opened(tmp_path / "out", PLAN):
        pass


def test_an_unreadable_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("not json")
    with pytest.raises(CorruptFileError, match="cannot be read"), opened(tmp_path, PLAN):
        pass


def test_two_runs_do_not_share_a_folder_at_the_same_time(tmp_path: Path) -> None:
    with (
        opened(tmp_path, PLAN),
        pytest.raises(RunFolderError, match="another process"),
        opened(tmp_path, PLAN),
    ):
        pass
