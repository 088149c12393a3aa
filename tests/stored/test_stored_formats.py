"""Files of every released version can be read, and go on; nothing of them is lost."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import discreet

VERSIONS = sorted(path.name for path in Path(__file__).parent.iterdir() if path.name[0].isdigit())


@pytest.fixture(params=VERSIONS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a version's files: what is read may be written to."""
    return Path(shutil.copytree(Path(__file__).parent / request.param, tmp_path / "stored"))


def test_there_are_files_of_this_version() -> None:
    assert discreet.__version__ in VERSIONS


def test_a_stored_learner_of_an_older_version_goes_on(stored: Path) -> None:
    head = (stored / "head.txt").read_text()
    budget = discreet.Budget.load(stored / "budget")
    with discreet.load(stored / "learner", ledger_head=head, budget=budget) as bandit:
        rows = int((stored / "rows.txt").read_text())
        assert bandit.rows == rows
        assert bandit.ledger.head == head
        assert bandit.ledger.holds(bandit.release)
        assert bandit.release.number > 0
        assert (bandit.guarantee.epsilon, bandit.guarantee.delta) == (1.0, 1e-6)
        bandit.learn((stored / "waiting.txt").read_text(), 0.5)  # a decision that waited
        bandit.learn(bandit.choose(np.eye(2)), 0.5)
        assert bandit.rows == rows + 2
    with discreet.load(stored / "learner") as bandit:
        assert bandit.rows == rows + 2


def test_a_ledger_of_an_older_version_can_be_read_without_the_learner(stored: Path) -> None:
    ledger = discreet.read_ledger(stored / "learner")
    assert ledger.head == (stored / "head.txt").read_text()
    assert ledger.card["contributions_per_user"] == 2
