"""Processes that die in the middle of learn, release and save: nothing acknowledged is lost.

After each death the learner is loaded again (twice). Every call that had returned is there, the
state and its noise are what they were to the bit, no release number ever has two contents, and the
ledger's chain is whole and agrees with everything that was shown.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NURSERY = Path(__file__).with_name("nursery.py")


def deaths(folder: Path, name: str, noise: str, how: str, count: int) -> dict[str, int]:
    command = [sys.executable, str(NURSERY), str(folder), name, noise, how, str(count), "11"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)  # noqa: S603
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("name", "noise"), [("tight", "exact"), ("gaussian", "exact"), ("wishart", "float")]
)
def test_killed_at_random_instants(tmp_path: Path, name: str, noise: str) -> None:
    deaths(tmp_path, name, noise, "random", 25)


@pytest.mark.parametrize(("name", "noise"), [("tight", "exact"), ("nonprivate", "exact")])
def test_killed_at_every_call_that_touches_a_file(tmp_path: Path, name: str, noise: str) -> None:
    found = deaths(tmp_path, name, noise, "every", 4)
    assert found["points"] > 20
    assert found["exactly"] > 0
    assert found["one call further"] > 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "noise"),
    [("tight", "exact"), ("tight", "float"), ("gaussian", "exact"), ("wishart", "float")],
)
def test_killed_at_random_instants_many_times(tmp_path: Path, name: str, noise: str) -> None:
    found = deaths(tmp_path, name, noise, "random", 150)
    assert found["releases"] > 3


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "noise"), [("tight", "exact"), ("gaussian", "float")])
def test_killed_at_every_call_of_a_long_life(tmp_path: Path, name: str, noise: str) -> None:
    assert deaths(tmp_path, name, noise, "every", 20)["points"] > 100
