"""`discreet replay`: its JSON, its tables, and one line for each kind of bad input."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from discreet.cli import app, main

LINES = ["who,age,shown,chance,clicked"]
LINES += [
    f"u{number},{20 + number % 50},{'ab'[number % 2]},0.5,{(number // 2) % 2}"
    for number in range(400)
]
CONTENTS = "sesame"
OPTIONS = ["--action=shown", "--reward=clicked", "--epsilon=5", "--delta=0.1"]
FULL = [*OPTIONS, "--propensity=chance", "--actions=a,b"]
SPEC = {
    "format": "discreet-features",
    "version": 1,
    "parts": [{"kind": "action_id", "ids": ["a", "b"]}],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "log.csv"
    file.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return file


class Outcome(NamedTuple):
    returncode: object
    stdout: str
    stderr: str


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """The whole command, in this process."""

    def ran(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["discreet", "replay", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        return Outcome(code, *capfd.readouterr())

    return ran


def as_json(*arguments: object) -> dict:
    outcome = CliRunner().invoke(app, ["replay", *map(str, arguments), "--json"])
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_the_json_keeps_its_contract(path: Path) -> None:
    found = as_json(path, *FULL, "--clip=4", "--value-epsilon=5", "--value-delta=0.1")
    assert set(found) == {"log", "learner", "exact", "released", "notes", "rows_per_second"}
    assert found["log"] == {
        "rows": 400,
        "learned": 280,
        "evaluated": 120,
        "left_out": 0,
        "actions": ["a", "b"],
    }
    assert set(found["learner"]) == {
        "audience",
        "guarantee",
        "variant",
        "dim",
        "features",
        "theta_norm",
        "reward_centre",
        "release",
        "diagnosis",
    }
    assert found["learner"]["audience"] == "everybody"
    assert found["learner"]["guarantee"]["epsilon"] == 5.0
    exact = found["exact"]
    assert set(exact) == {
        "audience",
        "guarantee",
        "values",
        "differences",
        "best_fixed",
        "warnings",
    }
    assert exact["audience"] == "curator"
    assert exact["guarantee"]["epsilon"] is None
    assert [(one["policy"], one["estimator"]) for one in exact["values"]] == [
        *(
            (policy, estimator)
            for policy in (
                "private",
                "private greedy",
                "nonprivate",
                "nonprivate greedy",
                "uniform",
                "best fixed",
            )
            for estimator in ("ips", "snips", "dr")
        ),
        ("logged", "ips"),
        ("logged", "snips"),
    ]
    assert [one["policy"] for one in exact["differences"]][::2] == [
        "private - uniform",
        "private - nonprivate",
        "private - best fixed",
    ]
    released = found["released"]
    assert released["audience"] == "everybody"
    assert {one["policy"] for one in released["values"]} == {
        "private",
        "private greedy",
        "uniform",
        "logged",
    }
    assert found["rows_per_second"] > 0


def test_nothing_is_released_unless_it_is_asked_for(path: Path) -> None:
    assert as_json(path, *FULL)["released"] is None


def test_options_reach_the_work(path: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(SPEC), encoding="utf-8")
    listed = tmp_path / "actions.json"
    listed.write_text(json.dumps(["b", {"id": "a", "features": {}}]), encoding="utf-8")
    found = as_json(
        path,
        *OPTIONS,
        f"--features={spec}",
        f"--actions={listed}",
        "--subject=who",
        "--train=0.5",
        "--seed=3",
        "--reward-low=-1",
        "--reward-high=2",
        "--theta-norm=7",
        "--contributions-per-user=2",
        "--neighbours=add-remove",
        "--chunk=17",
        "--level=0.5",
        f"--save={tmp_path / 'learner'}",
    )
    assert found["log"]["actions"] == ["b", "a"]
    assert found["log"]["learned"] + found["log"]["evaluated"] == 400
    assert found["learner"]["dim"] == 2
    assert found["learner"]["theta_norm"] == 7.0
    assert found["learner"]["reward_centre"] == 0.5
    assert found["learner"]["guarantee"]["contributions_per_user"] == 2
    assert found["learner"]["guarantee"]["neighbours"] == "add-remove"
    assert found["exact"]["values"][0]["level"] == 0.5
    assert (tmp_path / "learner").exists()
    others = as_json(path, *FULL, "--subject=who", "--train=0.5", "--seed=4")
    assert others["log"]["learned"] != found["log"]["learned"]


def test_a_table_says_for_whose_eyes_it_is(path: Path) -> None:
    released = ["--clip=4", "--value-epsilon=5", "--value-delta=0.1"]
    outcome = CliRunner().invoke(app, ["replay", str(path), *OPTIONS, *released])
    assert outcome.exit_code == 0, outcome.output
    assert "for the curator's eyes only" in outcome.stdout
    assert "for the eyes of everybody" in outcome.stdout
    assert "taken from the log" in " ".join(outcome.stderr.split())


def changed(line: int, cell: int, value: str) -> list[str]:
    """The log with another cell in a line, counted from 1."""
    lines = list(LINES)
    cells = lines[line - 1].split(",")
    cells[cell] = value
    lines[line - 1] = ",".join(cells)
    return lines


BAD = {
    "a reward that is missing": (changed(7, 4, ""), [], "correct it, or leave", "line 7 "),
    "a reward that is text": (changed(7, 4, CONTENTS), [], "reward: is missing", "line 7 "),
    "a reward that is NaN": (changed(8, 4, "nan"), [], "reward: is missing", "line 8 "),
    "a reward that is infinite": (changed(9, 4, "inf"), [], "reward: is missing", "line 9 "),
    "a reward out of bounds": (changed(300, 4, "2"), [], "pass --on-violation clip", "line 300 "),
    "a propensity of 0": (changed(10, 3, "0"), [], "propensity: is not above 0", "line 10 "),
    "a propensity above 1": (changed(401, 3, "1.5"), [], "propensity: is not above", "line 401 "),
    "a propensity that is text": (changed(5, 3, CONTENTS), [], "propensity: is missing", "line 5 "),
    "an unknown action": (changed(6, 2, CONTENTS), [], "action: is missing or none", "line 6 "),
    "a missing action": (changed(6, 2, ""), [], "action: is missing or none", "line 6 "),
    "a missing subject": (changed(6, 0, ""), ["--subject=who"], "subject: is missing", "line 6 "),
    "a person with two rows": (changed(6, 0, "u9"), ["--subject=who"], "subject: has somebody", ""),
    "too few cells": ([*LINES[:20], CONTENTS, *LINES[20:]], [], "more or fewer cells", "line 21 "),
    "too many cells": (changed(4, 1, f"3,{CONTENTS}"), [], "more or fewer cells", "line 4 "),
    "a cell over two lines": (
        [*changed(4, 0, '"u\n2"')[:8], *changed(9, 4, "")[8:]],
        [],
        "reward: is missing",
        "line 10 ",
    ),
    "a quotation mark that stays open": (changed(4, 0, f'"{CONTENTS}'), [], "quotation mark", ""),
    "only names": (LINES[:1], [], "log: has no rows", ""),
    "nothing": ([], [], "log: is empty", ""),
    "two columns of one name": (["a,a", "1,2"], [], "two columns of the same name", ""),
    "no such column": (LINES, ["--reward=won"], "reward: is 'won', and the log has no", ""),
    "one column twice": (LINES, ["--reward=shown"], "must be different ones", ""),
    "one row": (LINES[:2], [], "train: leaves no rows", ""),
    "no share to learn from": (LINES, ["--train=0"], "train: is 0", ""),
    "a share above one": (LINES, ["--train=1.5"], "train: is 1.5", ""),
    "bounds the wrong way round": (LINES, ["--reward-low=2"], "high: is not above low", ""),
    "a clip of 0": (LINES, ["--clip=0"], "clip: is 0", ""),
    "values without a clip": (
        LINES,
        ["--value-epsilon=1", "--value-delta=0.1"],
        "clip: is missing",
        "",
    ),
    "half a target": (LINES, ["--value-epsilon=1"], "go together", ""),
    "epsilon of 0": (LINES, ["--epsilon=0"], "epsilon: is 0", ""),
    "a chunk of 0": (LINES, ["--chunk=0"], "chunk: is 0", ""),
    "a level of 1": (LINES, ["--level=1"], "level: is 1", ""),
    "a seed below 0": (LINES, ["--seed=-1"], "seed: is -1", ""),
    "an unknown violation": (LINES, ["--on-violation=drop"], "on_violation: is 'drop'", ""),
    "a parameter of no length": (LINES, ["--theta-norm=0"], "theta_norm: is 0", ""),
    "actions twice": (LINES, ["--actions=a,a"], "actions: must be one or more", ""),
    "no actions": (LINES, ["--actions="], "actions: must be one or more", ""),
    "no file of features": (LINES, ["--features=nowhere.json"], "nowhere.json", ""),
    "no file of actions": (LINES, ["--actions=nowhere.json"], "nowhere.json", ""),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_without_what_it_holds(
    name: str, tmp_path: Path, run: Callable[..., Outcome]
) -> None:
    lines, options, said, where = BAD[name]
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    outcome = run(file, *FULL, *options)
    assert outcome.returncode == 2, outcome.stderr
    assert outcome.stdout == ""
    (line,) = [one for one in outcome.stderr.splitlines() if "compiling" not in one]
    assert line.startswith("discreet: ")
    assert said in line
    assert where in f"{line} ".replace(";", " ")  # the end of the number
    assert CONTENTS not in line


@pytest.mark.parametrize(
    ("name", "contents", "said"),
    [
        ("log.csv", b"shown;clicked;chance\na;1;0.5\n", "with commas between"),
        ("log.txt", b"a,b\n1,2\n", "must be one of .csv, .parquet, .pq"),
        ("missing.csv", None, "is no file that can be read"),
        ("log.csv", b"shown,clicked,chance\na,1,0.5\n\xff\xfe,1,0.5\n", "is not text in UTF-8"),
        ("log.parquet", b"sesame", "Parquet"),
    ],
)
def test_files_of_other_kinds_are_refused(
    name: str, contents: bytes | None, said: str, tmp_path: Path, run: Callable[..., Outcome]
) -> None:
    if contents is not None:
        (tmp_path / name).write_bytes(contents)
    outcome = run(tmp_path / name, *FULL)
    assert outcome.returncode == 2
    assert said in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert CONTENTS not in outcome.stderr


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ("{", "features: "),
        ("{", "spec.json is no JSON"),
        (
            json.dumps(
                {
                    **SPEC,
                    "parts": [{"kind": "numeric", "path": "context.clicked", "low": 0, "high": 1}],
                }
            ),
            "read the reward",
        ),
        (json.dumps({**SPEC, "parts": [{"kind": "wrong"}]}), "parts[0].kind"),
    ],
)
def test_strange_features_are_refused(
    path: Path, tmp_path: Path, contents: str, said: str, run: Callable[..., Outcome]
) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(contents, encoding="utf-8")
    outcome = run(path, *FULL, f"--features={spec}")
    assert outcome.returncode == 2
    assert said in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_column_that_is_not_there_is_a_note(path: Path, tmp_path: Path) -> None:
    part = {"kind": "numeric", "path": "context.height", "low": 0, "high": 2}
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**SPEC, "parts": [*SPEC["parts"], part]}), encoding="utf-8")
    found = as_json(path, *FULL, f"--features={spec}")
    assert any("context.height" in note for note in found["notes"])


def test_with_rewards_alone_protected_a_note_says_that_actions_must_not_tell_them(
    path: Path, run: Callable[..., Outcome]
) -> None:
    outcome = run(path, *FULL, "--protects=rewards", "--json")
    assert outcome.returncode == 0
    assert "the logged actions are public" in outcome.stderr
    assert "protect rows instead" in outcome.stderr
    found = json.loads(outcome.stdout)  # nothing but the object
    assert "only through what is shown" in json.dumps(found)
    assert "are public" not in run(path, *FULL, "--json").stderr


def test_a_warning_is_under_the_table_once_for_each_policy(
    path: Path, run: Callable[..., Outcome]
) -> None:
    outcome = run(path, *OPTIONS, "--propensity=chance", "--actions=a,b,never")
    assert outcome.returncode == 0, outcome.stderr
    told = " ".join(outcome.stdout.split())
    assert told.count("uniform (ips, snips, dr): weights average") == 1
    assert "wrong propensities or actions never logged." in told
    assert "clipping" not in told  # nothing was clipped


def test_rows_beyond_the_cap_are_counted(tmp_path: Path, run: Callable[..., Outcome]) -> None:
    lines = [LINES[0], *(f"u{number % 300},{line.partition(',')[2]}"
             for number, line in enumerate(LINES[1:]))]  # fmt: skip
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    outcome = run(file, *FULL, "--subject=who", "--on-violation=clip")
    assert outcome.returncode == 0, outcome.stderr
    assert "; 100 are beyond the cap and left out." in " ".join(outcome.stdout.split())
