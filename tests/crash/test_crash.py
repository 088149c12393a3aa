"""Processes that die in the middle of learn, release and save: nothing acknowledged is lost.

After each death the learner is loaded again (twice). Every call that had returned is there, the
state and its noise are what they were to the bit, the call in which the process died has happened
as a whole or not at all, no release number ever has two contents, the ledger's chain is whole and
agrees with everything that was shown, and nobody else gets in while the learner is open.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def deadly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What kills a process in a call that changes a file: SQLite makes those in C."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    library = tmp_path_factory.mktemp("deadly") / "deadly.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(HERE / "deadly.c"), "-ldl"]
    subprocess.run(command, check=True, timeout=60)  # noqa: S603
    return library


def deaths(
    folder: Path, learner: tuple[str, str], how: str, count: int = 1, *, deadly: Path | None = None
) -> dict[str, int]:
    command = [sys.executable, str(HERE / "nursery.py"), str(folder), *learner, how, str(count)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if deadly is not None:
        environment["LD_PRELOAD"] = str(deadly)
    done = subprocess.run(  # noqa: S603
        [*command, "11"], capture_output=True, text=True, check=False, timeout=1800, env=environment
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    print(found)  # noqa: T201  # for the record, with pytest -s
    return found


@pytest.mark.parametrize(
    "learner",
    [
        ("windows", "exact"),
        ("wishart", "float"),
        pytest.param(("forgetting", "exact"), marks=pytest.mark.nightly),
        pytest.param(("tight", "exact"), marks=pytest.mark.nightly),
    ],
)
def test_killed_at_random_instants(tmp_path: Path, learner: tuple[str, str]) -> None:
    found = deaths(tmp_path, learner, "random", 25)
    assert found["exactly"] + found["one call further"] >= 12  # those that had begun to speak


_DIES = """
import os, sys
import discreet
problem = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
privacy = discreet.Privacy(epsilon=5.0, delta=0.1)
learner = discreet.LinUCB(problem, horizon=10_000, privacy=privacy, path=sys.argv[1])
for _ in range(300):
    learner.learn(learner.choose([[0.6, 0.3], [0.1, 0.7]]), 0.25)
assert learner.release.number > 10
print(learner.release.moment.tobytes().hex(), flush=True)
os._exit(1)
"""
_LOADS = """
import sys
import discreet
learner = discreet.load(sys.argv[1])
print(learner.release.moment.tobytes().hex())
learner.learn(learner.choose([[0.6, 0.3], [0.1, 0.7]]), 0.25)
"""


def test_a_learner_that_died_is_loaded_on_another_processor(tmp_path: Path) -> None:
    """Its last releases are made again there, and are the ones that its ledger has."""
    place, environment = str(tmp_path / "state"), {"PYTHONPATH": os.pathsep.join(sys.path)}
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    died, loaded = (
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, place],
            env={**os.environ, **environment, **settings},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        for code, settings in ((_DIES, {}), (_LOADS, plain))
    )
    assert died.returncode == 1, died.stderr
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout == died.stdout


@pytest.mark.parametrize(
    "learner",
    [("windows", "exact"), pytest.param(("tight", "exact"), marks=pytest.mark.nightly)],
)
def test_killed_at_every_call_that_changes_a_file(
    tmp_path: Path, learner: tuple[str, str], deadly: Path
) -> None:
    found = deaths(tmp_path, learner, "every", 0, deadly=deadly)
    assert found["points"] > 100
    assert found["exactly"] > 0
    assert found["one call further"] > 0


def test_killed_while_it_is_stored_for_the_first_time(tmp_path: Path, deadly: Path) -> None:
    found = deaths(tmp_path, ("gaussian", "exact"), "birth", deadly=deadly)
    assert found["points"] > 50
    assert found["begun anew"] > 40
    assert found["loaded"] > 3


@pytest.mark.nightly
@pytest.mark.parametrize(
    "learner",
    [
        ("windows", "exact"),
        ("windows", "float"),
        ("tight", "exact"),
        ("tight", "float"),
        ("gaussian", "exact"),
        ("wishart", "float"),
    ],
)
def test_killed_at_random_instants_many_times(tmp_path: Path, learner: tuple[str, str]) -> None:
    found = deaths(tmp_path, learner, "random", 150)
    assert found["releases"] > 3


@pytest.mark.nightly
@pytest.mark.parametrize(
    "learner", [("windows", "exact"), ("tight", "exact"), ("gaussian", "float")]
)
def test_killed_at_every_call_of_a_long_life(
    tmp_path: Path, learner: tuple[str, str], deadly: Path
) -> None:
    assert deaths(tmp_path, learner, "every", 2, deadly=deadly)["points"] > 400
