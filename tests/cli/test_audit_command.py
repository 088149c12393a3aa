"""`discreet audit`: options, output and exit codes."""

import json

import pytest
import typer
from typer.testing import CliRunner, Result

from discreet.cli.audit import audit


def called(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(audit)
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def test_a_table_shows_each_bound_beside_the_claim() -> None:
    result = called("--attack", "threshold", "--trials", "100", "--jobs", "1")
    assert result.exit_code == 0
    line = next(line for line in result.stdout.splitlines() if "threshold" in line)
    assert "consistent" in line
    assert "99.9%" in result.stdout
    assert "(1, 1e-06)-joint differential privacy" in result.stdout


def test_json_holds_the_same_and_nothing_else() -> None:
    result = called("--attack", "one-run", "--attack", "rewind", "--trials", "1e2", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert [finding["attack"] for finding in found["findings"]] == ["one-run", "rewind"]
    assert found["findings"][1]["verdict"] == "refused"
    assert found["findings"][0]["claimed"] == 1.0
    assert found["violated"] is False


def test_a_violation_is_exit_code_one() -> None:
    # The low bits of the moment give floating-point noise away; the rates are those of the test
    # of broken mechanisms, to miss has a probability below 1e-6.
    options = ["--variant", "gaussian", "--calibration", "exact", "--noise", "float"]
    result = called(*options, "--attack", "low-bits", "--trials", "3000", "--jobs", "1")
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout


def test_a_variant_that_promises_nothing_cannot_be_violated() -> None:
    result = called("--variant", "nonprivate", "--attack", "threshold", "--trials", "100")
    assert result.exit_code == 0
    assert "no claim" in result.stdout


@pytest.mark.parametrize("arguments", [["--trials", "1.5"], ["--epsilon", "much"]])
def test_nonsense_is_a_usage_error(arguments: list[str]) -> None:
    assert called(*arguments).exit_code == 2
