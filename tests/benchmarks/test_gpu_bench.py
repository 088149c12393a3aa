"""What the GPU's benchmark says of a run, on a processor in the place of a GPU."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import agreement, experiments, speed
from benchmarks.gpu.__main__ import COMMANDS, main, part
from benchmarks.gpu.clock import Clocked, OutOfTimeError, covered, named
from benchmarks.gpu.compiling import beforehand
from benchmarks.gpu.settings import simulation
from discreet.simulation._cuda._batch import macros
from discreet.simulation._cuda._plan import plan
from discreet.simulation.environments import Sphere

sys.path.insert(0, str(Path(__file__).parent.parent / "simulation"))
from host_device import Host


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def play(out: Path, part_: tuple[int, int] = (1, 1), limit: float = 1e9) -> None:
    wanted = {"names": ["dimension"], "seeds": 3, "part": part_, "scale": "smoke"}
    experiments.play(out, Host(), limit=limit, **wanted)  # type: ignore[arg-type]


def test_parts_of_the_experiments_are_put_together_without_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    play(tmp_path, (1, 2))
    experiments.report(tmp_path, names=["dimension"], seeds=3, scale="smoke")
    *_, first, missing = told(capsys)
    every = experiments.tasks_of(["dimension"], 3, scale="smoke")
    assert first["left"] == 0
    assert missing["missing"] == len(every) - first["finished"] > 0
    play(tmp_path, (2, 2))
    experiments.report(tmp_path, names=["dimension"], seeds=3, scale="smoke")
    assert told(capsys)[-1]["cells"] == len(every)
    journal = (tmp_path / "dimension" / "cells.jsonl").read_text().splitlines()
    assert sum('"start"' in line for line in journal) == 2


def test_a_run_says_how_long_kernels_and_compilation_took_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(tmp_path)
    planned, found = told(capsys)
    assert planned["cells"] == found["finished"] > 0
    assert set(found["compiled"]) == {name.split(",")[0] for name in found["kernels"]}
    for facts in found["kernels"].values():
        assert facts["share"] == 1.0
        assert facts["expected_end"] == facts["ended"] == 1.0
        assert facts["seconds"] == facts["launches"]  # the clock of `Host`
    assert found["kernel_seconds"] == 1.0  # where all launches begin together
    play(tmp_path)
    assert told(capsys)[0]["cells"] == 0


def test_no_launch_begins_after_the_time_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(tmp_path, limit=0.0)
    *_, interrupted, found = told(capsys)
    assert interrupted == {"interrupted": True}
    assert found["finished"] == 0
    assert found["left"] > 0
    assert found["kernels"] == {}


def test_each_shape_is_compiled_beforehand_once(capsys: pytest.CaptureFixture[str]) -> None:
    shape = macros(plan(simulation("tight", Sphere(dim=5, n_actions=25)), np.array([5])).shape, 1)
    beforehand(Host(), [shape, {**shape, "LANES": 4}, dict(shape)], 0)
    assert told(capsys) == []
    beforehand(Host(), [shape, {**shape, "LANES": 4}, dict(shape)], 2)
    (found,) = told(capsys)
    assert set(found["compiled_beforehand"]) == {named(shape), named({**shape, "LANES": 4})}


def test_overlapping_kernels_count_once() -> None:
    assert covered([(0.0, 2.0), (1.0, 3.0), (1.5, 2.5), (5.0, 6.0)]) == 4.0
    assert covered([]) == 0.0


def test_a_reference_is_played_once_and_again_where_the_setting_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, names = tmp_path / "ref.json", ["windows, basis", "LinUCB, 2 features"]
    for expected in (2, 0):
        agreement.reference(path, jobs=1, seeds=4, names=names)
        assert len(told(capsys)) == expected
    stored = json.loads(path.read_text())
    stored["windows, basis"]["of"]["numbers"][3] += 0.5
    path.write_text(json.dumps(stored))
    agreement.agreement(path, Host(), lanes=[1], names=names, limit=0.0)
    found = told(capsys)[-1]
    assert found["not_in_reference"] == ["windows, basis"]
    assert found["not_reached"] == ["LinUCB, 2 features"]
    agreement.reference(path, jobs=1, seeds=4, names=names)
    assert [one["setting"] for one in told(capsys)] == ["windows, basis"]


def test_settings_are_compared_at_every_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, names = tmp_path / "ref.json", ["windows, basis"]
    agreement.reference(path, jobs=1, seeds=20, names=names)
    monkeypatch.setattr(agreement, "GPU_SEEDS", 20)
    agreement.agreement(path, Host(), lanes=[1], names=names, limit=1e9)
    *_, one, found = told(capsys)
    assert len(one["z"]) == len(agreement.CHECKPOINTS)
    assert found["settings"] == 1
    assert 0.0 < found["largest"] < 6.0
    assert found["agrees"] is False  # 20 seeds are too few
    assert found["not_in_reference"] == found["not_reached"] == []


def test_agreement_needs_small_differences_and_enough_seeds() -> None:
    close, far = np.full((3, 4), 0.5), np.array([[0.1, 4.1]])
    assert agreement.verdict(close, 600)["agrees"]
    assert not agreement.verdict(close, 400)["agrees"]
    assert not agreement.verdict(far, 600)["agrees"]
    assert not agreement.verdict(np.full((3, 4), 1.3), 600)["agrees"]
    assert agreement.verdict(np.array([]), 600)["agrees"] is None


def test_speed_is_told_for_each_number_of_replicates(capsys: pytest.CaptureFixture[str]) -> None:
    grid = ((2, 1), (3, 1))
    speed.speed(Host(), budget=1.0, names=["tight"], limit=1e9, early=40, grid=grid)
    *rows, last = told(capsys)
    assert [row["replicates"] for row in rows] == [2, 3]
    assert [row["rounds_per_second"] for row in rows] == [80, 120]  # a launch takes a second
    assert set(last["bars"].values()) == {None}


def test_bars_are_reached_missed_or_not_measured() -> None:
    found = {("tight", 132): 132e6 / 1.5, ("tight", 64_000): 2.4e9, ("windows", 64_000): 2.5e9}
    reached = list(speed.bars(found).values())
    assert reached == [True, False, None, None, None, True]


def test_every_kind_of_shape_is_played_a_little(capsys: pytest.CaptureFixture[str]) -> None:
    speed.small(Host(), names=["tight, thompson"], limit=1e9)
    assert [one.get("lanes") for one in told(capsys)] == [1, 2, 4, 8, 16, 32, None]


def test_a_part_is_one_of_some() -> None:
    assert part("2/3") == (2, 3)
    for text in ("0/2", "3/2"):
        with pytest.raises(ValueError, match=text):
            part(text)


def test_time_over_is_found_before_a_launch() -> None:
    clocked = Clocked(Host(), limit=-1.0)
    with pytest.raises(OutOfTimeError):
        clocked.stream(0).launch(None, 1, 1, (1, 1))


def test_the_command_line_has_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"benchmarks.gpu {name}" in text for name in COMMANDS)
