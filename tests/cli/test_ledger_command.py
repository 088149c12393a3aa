"""`discreet ledger`: it checks, compares and shows, and changes nothing."""

import hashlib
import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from discreet import LinUCB
from discreet.cli.ledger import ledger as command
from discreet.curator.growing_ledger import GrowingLedger
from discreet.errors import MissingFileError
from discreet.mechanism.variants import named
from discreet.privacy import Privacy
from discreet.problem import Problem, Setting
from discreet.release._card import privacy_card
from discreet.release.ledger import Ledger


def sha(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


def stored(path: Path, rounds: int) -> LinUCB:
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    privacy = Privacy(epsilon=1, delta=1e-6)
    bandit = LinUCB(problem, horizon=100, privacy=privacy, variant="tight", path=path)
    for _ in range(rounds):
        bandit.learn(bandit.choose([[1.0, 0.0]]), 1.0)
    return bandit


def run(*arguments: object) -> Result:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path: Path, setting: Setting) -> Path:
    mechanism = named("tight").mechanism(setting, Privacy(epsilon=1, delta=1e-6))
    found = GrowingLedger(privacy_card(mechanism))
    for number in range(1, 11):
        found.append(number, 10 * number, sha(number))
    path = tmp_path / "bandit.ledger"
    path.write_bytes(b"".join(found.lines()))
    return path


def test_it_shows_the_promise_the_releases_and_the_verdict(file: Path) -> None:
    outcome = run(file)
    assert outcome.exit_code == 0, outcome.output
    words = " ".join(outcome.output.split())
    found = Ledger.parse(file.read_bytes())
    assert "(1, 1e-06)-joint differential privacy" in words
    assert found.learner in words
    assert "The chain is intact." in words
    assert "4 more" in words
    for number in (1, 2, 3, 8, 9, 10):
        assert sha(number)[:20] in words
    assert sha(5)[:20] not in words


def test_it_takes_the_learner_or_its_ledger(file: Path) -> None:
    assert run(file.with_suffix("")).output == run(file).output
    assert run(file, "--json").exit_code == 0


def test_json_has_everything(file: Path) -> None:
    found = json.loads(run(file, "--json").stdout)
    assert (found["releases"], found["rows"], found["intact"], found["torn_bytes"]) == (
        10,
        100,
        True,
        0,
    )
    assert found["against"] is None
    assert found["head"] == Ledger.parse(file.read_bytes()).head
    assert found["entries"][4] == {"number": 5, "rows": 50, "sha256": sha(5)}


def test_the_card_comes_alone_and_up_to_date(file: Path) -> None:
    card = json.loads(run(file, "--card").stdout)
    original = Ledger.parse(file.read_bytes())
    known = {"learner": original.learner, "releases": 10, "rows": 100}
    assert card == {**original.card, **known}


def test_a_broken_ledger_is_one_line_and_exit_code_1(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"rows":50', b'"rows":51'))
    for options in ([], ["--json"], ["--card"]):
        outcome = run(file, *options)
        assert outcome.exit_code == 1
        assert outcome.stdout == ""
        assert len(outcome.stderr.splitlines()) == 1
        assert f"{file}: ledger: line 6 was altered" in outcome.stderr


def test_a_torn_tail_is_told_and_is_no_error(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5])
    outcome = run(file)
    assert outcome.exit_code == 0
    assert "The last line is not finished" in outcome.output
    found = json.loads(run(file, "--json").stdout)
    assert found["releases"] == 9
    assert found["torn_bytes"] > 100


def test_two_ledgers_that_agree_are_said_to(file: Path, tmp_path: Path) -> None:
    shorter = tmp_path / "older"
    shorter.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:5]))
    outcome = run(file, "--against", shorter)
    assert outcome.exit_code == 0
    words = " ".join(outcome.output.split())
    assert "agree on the 4 releases that they share; this one has 10 and the other 4" in words
    found = json.loads(run(file, "--against", shorter, "--json").stdout)
    assert found["against"] == {"releases": 4, "shared": 4, "agrees": True}


def test_a_fork_is_one_line_and_exit_code_1(file: Path, tmp_path: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    other = GrowingLedger.parse(b"".join(lines[:5]))
    other.append(5, 50, sha(0))
    forked = tmp_path / "forked"
    forked.write_bytes(b"".join(other.lines()))
    outcome = run(file, "--against", forked)
    assert outcome.exit_code == 1
    assert len(outcome.stderr.splitlines()) == 1
    assert "has another release 5" in outcome.stderr


def test_it_needs_no_lock_and_changes_nothing(tmp_path: Path) -> None:
    bandit = stored(tmp_path / "bandit", rounds=50)
    ledger = tmp_path / "bandit.ledger"
    ledger.write_bytes(ledger.read_bytes() + b"torn")
    ledger.chmod(0o400)
    before = {place: (place.read_bytes(), place.stat().st_mtime_ns) for place in tmp_path.iterdir()}
    outcome = run(tmp_path / "bandit")
    assert outcome.exit_code == 0, outcome.output
    after = {place: (place.read_bytes(), place.stat().st_mtime_ns) for place in tmp_path.iterdir()}
    assert before == after
    assert (
        json.loads(run(tmp_path / "bandit", "--json").stdout)["releases"] == len(bandit.ledger) > 2
    )
    bandit.close()


def test_an_empty_ledger_is_shown(tmp_path: Path) -> None:
    stored(tmp_path / "bandit", rounds=0).close()
    outcome = run(tmp_path / "bandit")
    assert outcome.exit_code == 0
    assert "The chain is intact." in outcome.output


def test_a_file_that_is_missing_is_an_ordinary_error(tmp_path: Path) -> None:
    outcome = run(tmp_path / "nowhere")
    assert isinstance(outcome.exception, MissingFileError)
    assert os.listdir(tmp_path) == []  # noqa: PTH208  # the names are what is tested
