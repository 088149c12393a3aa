"""The command: what it writes, how it goes on, and one line for everything that goes wrong."""

import csv
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli import app, main
from discreet.errors import RunFolderError
from discreet.experiments import _folder as folder
from discreet.experiments import _reproduce as reproduce
from discreet.experiments import _run as running
from discreet.experiments._experiment import Scale
from discreet.experiments._reproduce import Request

SMOKE = ["reproduce", "shifts", "--scale=smoke", "--jobs=1"]


def request(out: Path, *, jobs: int = 1, name: str = "shifts") -> Request:
    return Request(name=name, scale=Scale.SMOKE, out=out, jobs=jobs)


def discreet(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "discreet", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the smallest scale."""
    out = tmp_path_factory.mktemp("run") / "out"
    reproduce.reproduce(request(out))
    return out


def test_results_are_tidy(done: Path) -> None:
    with (done / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"experiment", "variant", "rho_min", "gap", "seed", "quantity", "round", "value"} <= set(
        rows[0]
    )
    cells = {tuple(row[name] for name in ("variant", "rho_min", "gap", "seed")) for row in rows}
    assert len(cells) == len(request(done).plan().tasks)
    assert all(float(row["value"]) >= 0 for row in rows)


def test_numbers_in_the_table_are_the_readings_to_the_last_bit(done: Path) -> None:
    tasks = request(done).plan().tasks
    with folder.opened(done, request(done).plan()) as kept:
        readings = [reading for task in tasks for reading in kept.finished[task.key].readings]
    with (done / "results.csv").open(newline="") as file:
        written = sorted(float(row["value"]) for row in csv.DictReader(file))
    assert written == sorted(reading.value for reading in readings)


def test_provenance_says_what_ran_where_and_for_how_long(done: Path) -> None:
    found = json.loads((done / "provenance.json").read_text())
    assert found["run"]["experiment"] == "shifts"
    assert found["starts"][0]["versions"]["discreet"]
    assert found["starts"][0]["backend"] == "loky"
    assert all(cell["seconds"] > 0 for cell in found["cells"])
    assert len(found["cells"]) == found["run"]["cells"]


def test_the_page_stands_alone_and_says_how_to_run_it_again(done: Path) -> None:
    page = (done / "report.html").read_text()
    assert "discreet reproduce shifts --scale smoke" in page
    assert "<script" not in page
    assert "not decided" in page
    assert {path.suffix for path in (done / "figures").iterdir()} == {".svg", ".png"}


def test_two_workers_give_the_same_bytes_as_one(done: Path, tmp_path: Path) -> None:
    reproduce.reproduce(request(tmp_path / "out", jobs=2))
    assert (tmp_path / "out" / "results.csv").read_bytes() == (done / "results.csv").read_bytes()


def test_an_interrupted_run_goes_on_to_the_same_bytes(done: Path, tmp_path: Path) -> None:
    def interrupt(count: int) -> None:
        if count == 3:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        reproduce.reproduce(request(out), on_cell=interrupt)
    with (out / folder.JOURNAL).open("ab") as journal:
        journal.write(b'{"cell": {"exper')
    counts: list[int] = []
    reproduce.reproduce(request(out), on_cell=counts.append)
    assert counts[0] == 3
    assert (out / "results.csv").read_bytes() == (done / "results.csv").read_bytes()
    assert len(json.loads((out / "provenance.json").read_text())["starts"]) == 2


def test_a_finished_run_is_not_run_again(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "run", None)
    reproduce.reproduce(request(done))


def test_json_has_every_claim_and_file(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, [*SMOKE, f"--out={tmp_path / 'out'}", "--json"])
    found = json.loads(outcome.stdout)
    assert {claim["verdict"] for claim in found["claims"]["shifts"]} == {
        "not decided at this scale"
    }
    assert all(Path(file).exists() for file in found["files"])


def test_a_disk_that_is_full_when_the_report_is_written_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Path, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "out"
    with folder.opened(out, request(out).plan()):
        pass
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunFolderError, match=r"No space left.*finished cells are kept"):
        reproduce.reproduce(request(out))
    monkeypatch.undo()
    counts: list[int] = []
    reproduce.reproduce(request(out), on_cell=counts.append)
    assert counts == [len(request(out).plan().tasks)]


def test_the_picture_alone_can_be_asked_for(tmp_path: Path) -> None:
    found = reproduce.reproduce(request(tmp_path / "out", name="decision-set"))
    assert [claim.verdict for claim in found.claims["decision-set"]] == ["holds"]


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = folder.RunFolder.add

    def interrupted(self: folder.RunFolder, cell: object) -> None:
        add(self, cell)
        if len(self.finished) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(folder.RunFolder, "add", interrupted)
    outcome = CliRunner().invoke(app, [*SMOKE, f"--out={tmp_path / 'out'}"])
    assert outcome.exit_code == 130
    assert "run the same command again" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "nonsense", "--out=x"], "experiment: is 'nonsense'; give one of"),
        ([*SMOKE, "--out=x", "--scale=huge"], "scale: is 'huge'; give one of smoke, quick, full"),
        ([*SMOKE, "--out=x", "--backend=threads"], "backend: is 'threads'; give one of loky"),
        ([*SMOKE, "--out=x", "--jobs=0"], "jobs: is 0"),
        ([*SMOKE, "--out=x", "--address=here:1"], "address: has no meaning for loky"),
        (SMOKE, "Missing option '--out'"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert message in printed.err


def test_a_folder_with_other_files_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    outcome = discreet(*SMOKE, f"--out={tmp_path}")
    assert outcome.returncode == 2
    assert len(outcome.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
