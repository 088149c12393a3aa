"""Moments of doubt: what a learner does when it cannot be known what happened, or who looked."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.curator import _stored
from discreet.curator.store import _sqlite_database
from discreet.curator.store.sqlite import SqliteStore
from discreet.errors import MissingFileError, StateExistsError, StoreError
from discreet.release import policies

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)

CRASHING = """
import os, sys
sys.path.insert(0, {folder!r})
from test_doubt import begun, row
learner = begun({path!r})
for _ in range(5):
    row(learner)
os._exit(0)
"""


def begun(path: Path | str | None, **more: object) -> discreet.LinUCB:
    return discreet.LinUCB(PROBLEM, horizon=1000, privacy=TARGET, path=path, **more)


def row(learner: discreet.LinUCB) -> None:
    learner.learn(learner.choose(np.eye(2)), 0.5)


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """Where a learner with five rows is stored whose process died."""
    path = tmp_path / "state"
    script = CRASHING.format(folder=str(Path(__file__).parent), path=str(path))
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)  # noqa: S603
    return path


def test_a_first_save_in_doubt_is_settled_before_the_next_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, path = begun(None), tmp_path / "state"
    row(learner)
    commit = SqliteStore.commit

    def lost(store: SqliteStore, change: object) -> None:
        commit(store, change)
        raise StoreError("path", "does not answer")

    def silent(_: SqliteStore) -> int:
        raise StoreError("path", "does not answer")

    monkeypatch.setattr(SqliteStore, "commit", lost)
    monkeypatch.setattr(SqliteStore, "sequence", silent)
    with pytest.raises(StoreError):
        learner.save(path)
    monkeypatch.undo()
    row(learner)
    assert (learner.rows, learner.path) == (2, path)
    learner.close()
    with discreet.load(path) as again:
        assert again.rows == 2


def test_a_commit_that_happened_is_no_error_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = begun(tmp_path / "state")
    decision = learner.choose(np.eye(2))
    commit, sequence = SqliteStore.commit, SqliteStore.sequence
    asked = []

    def lost(store: SqliteStore, change: object) -> None:
        commit(store, change)
        raise StoreError("path", "does not answer")

    def silent_once(store: SqliteStore) -> int:
        asked.append(1)
        if len(asked) == 1:
            raise StoreError("path", "does not answer")
        return sequence(store)

    monkeypatch.setattr(SqliteStore, "commit", lost)
    monkeypatch.setattr(SqliteStore, "sequence", silent_once)
    learner.learn(decision, 0.5)
    assert learner.rows == 1
    assert len(asked) > 1
    monkeypatch.undo()
    learner.close()


def test_a_crashed_learner_that_somebody_looked_at_still_loads(crashed: Path) -> None:
    with pytest.raises(StateExistsError):
        begun(crashed)
    ledger = crashed.with_name("state.ledger")
    ledger.rename(crashed.with_name("elsewhere"))
    with pytest.raises(MissingFileError):
        discreet.load(crashed)
    crashed.with_name("elsewhere").rename(ledger)
    with discreet.load(crashed) as learner:
        assert learner.rows == 5


def test_a_copy_without_its_log_is_refused_however_often(
    crashed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = crashed.with_name("copy")
    shutil.copy(crashed, copy)
    shutil.copy(crashed.with_name("state.ledger"), copy.with_name("copy.ledger"))

    def killed(_: object) -> _stored.Stored:
        os._exit(9)

    with monkeypatch.context() as patched:
        patched.setattr(_stored, "read", killed)
        child = os.fork()
        if child == 0:
            discreet.load(copy)  # dies while it looks
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    for _ in range(2):
        with pytest.raises(MissingFileError, match="copy-wal is missing"):
            discreet.load(copy)


def test_a_database_that_somebody_reads_is_not_opened_half(
    crashed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite_database, "PATIENCE", 50)
    discreet.load(crashed).close()
    reader = sqlite3.connect(crashed, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM item").fetchone()
    with pytest.raises(StoreError, match="is reading"):
        discreet.load(crashed)
    reader.close()
    with discreet.load(crashed) as learner:
        assert learner.rows == 5


def test_a_load_that_is_interrupted_keeps_the_stored_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    with begun(path, policy=discreet.Thompson()) as learner:
        row(learner)

    def stopped(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(policies, "from_json", stopped)
        with pytest.raises(KeyboardInterrupt):
            discreet.load(path)
    with discreet.load(path) as learner:
        assert learner.policy == discreet.Thompson()


def test_what_is_forgotten_was_in_a_file_and_is_in_none(tmp_path: Path) -> None:
    def files_with(numbers: bytes) -> list[str]:
        return [place.name for place in tmp_path.iterdir() if numbers in place.read_bytes()]

    learner = begun(tmp_path / "state")
    action = np.array([[0.123456789, -0.567891234]])
    decision = learner.choose(action)
    assert files_with(action.tobytes())
    learner.forget(decision)
    assert not files_with(action.tobytes())
    learner.close()
