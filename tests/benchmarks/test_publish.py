"""What is kept of a run: every final value, and what is said of each setting."""

import csv
import json
import lzma
import statistics
from pathlib import Path

import pytest

from benchmarks.publish import final_rows, main, summary
from discreet.experiments._experiment import Scale
from discreet.experiments._reproduce import Request, reproduce


def test_a_run_is_kept_with_its_final_values_and_a_line_for_each_setting(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    reproduce(Request(name="variants", scale=Scale.SMOKE, out=run, jobs=1))
    main([str(run), str(out)])
    (out / "old.svg").touch()
    main([str(run), str(out)])
    assert not (out / "old.svg").exists()
    assert {path.name for path in out.glob("*.svg")} == {
        path.name for path in (run / "figures").glob("*.svg")
    }
    assert "cells" not in json.loads((out / "provenance.json").read_text())
    with (run / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with lzma.open(out / "final.csv.xz", "rt", newline="") as file:
        kept = list(csv.DictReader(file))
    assert kept == final_rows(rows)
    assert {(row["rounds"], row["round"]) for row in kept} == {
        ("2000", "2000"),
        ("5000", "2000"),
        ("5000", "5000"),
    }
    with (out / "summary.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert sum(int(line["seeds"]) for line in lines) == len(kept)


def test_a_folder_of_anything_else_is_left_as_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "cells.jsonl").touch()
    with pytest.raises(SystemExit, match="left as it is"):
        main([str(run), str(run)])
    assert (run / "cells.jsonl").exists()


def test_a_setting_is_summed_up_over_its_seeds() -> None:
    values = [1.0, 2.0, 6.0]
    rows = [
        {"variant": "tight", "seed": str(seed), "round": "10", "value": str(value)}
        for seed, value in enumerate(values)
    ]
    other = {"variant": "windows", "seed": "0", "round": "10", "value": "5.0"}
    tight, windows = summary([*rows, other])
    assert tight["variant"] == "tight"
    assert [tight[name] for name in ("seeds", "mean", "median", "largest")] == ["3", "3", "2", "6"]
    assert float(tight["stderr"]) == pytest.approx(statistics.stdev(values) / 3**0.5, rel=1e-5)
    assert (windows["seeds"], windows["mean"], windows["stderr"]) == ("1", "5", "nan")
