"""One process and one learner at a time."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.curator.keeping import Keeper
from discreet.errors import ReloadNeededError, StateInUseError
from kept import begun, on_disk

HOLDER = """
import sys
from discreet.curator.keeping import Keeper
from discreet.errors import StateInUseError

try:
    keeper = Keeper.open(sys.argv[1])
except StateInUseError as error:
    print("refused", error, flush=True)
else:
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bandit"


def holder(path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603  # our own script
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_learner_is_open_once_in_a_process(path: Path) -> None:
    keeper, ledger = begun(path)
    with pytest.raises(StateInUseError, match="open already, here or in another process"):
        Keeper.open(path)
    with pytest.raises(StateInUseError):
        Keeper.create(path, {}, ledger)
    keeper.record({"n": 1})
    keeper.close()
    assert on_disk(path)[1] == [{"n": 1}]


def test_a_learner_is_open_in_one_process(path: Path) -> None:
    keeper, _ = begun(path)
    with holder(path) as refused:
        assert said(refused).startswith("refused path: holds a learner that is open already")
    keeper.close()
    with holder(path) as process:
        assert said(process) == "open"
        with pytest.raises(StateInUseError):
            Keeper.open(path)
        process.communicate("")
    on_disk(path)


def test_a_process_that_is_killed_frees_its_lock(path: Path) -> None:
    begun(path)[0].close()
    with holder(path) as process:
        assert said(process) == "open"
        process.send_signal(signal.SIGKILL)
        process.wait()
        on_disk(path)


def test_a_learner_that_is_dropped_frees_its_lock(path: Path) -> None:
    keeper, _ = begun(path)
    del keeper
    gc.collect()
    on_disk(path)


def test_a_lock_file_that_is_deleted_does_not_let_a_second_one_in(path: Path) -> None:
    keeper, _ = begun(path)
    (path.parent / "bandit.lock").unlink()
    with pytest.raises(StateInUseError):
        Keeper.open(path)
    keeper.close()
    on_disk(path)


def test_a_child_process_does_not_keep_the_lock(path: Path) -> None:
    keeper, _ = begun(path)
    with subprocess.Popen(  # our own script
        [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
        text=True,
    ) as child:
        assert said(child) == "up"
        keeper.close()
        on_disk(path)
        child.communicate("")


FORKING = """
import os, sys
from discreet.curator.keeping import Keeper
from discreet.errors import ReloadNeededError

keeper = Keeper.open(sys.argv[1])[0]
hold, release = os.pipe()
child = os.fork()
if child == 0:
    try:
        keeper.record({"n": 1})
    except ReloadNeededError as error:
        os.write(1, f"child {error}\\n".encode())
    os.close(release)
    os.read(hold, 1)
    os._exit(0)
os.close(hold)
keeper.record({"n": 2})
keeper.close()
os.write(1, f"free {len(Keeper.open(sys.argv[1])[2])}\\n".encode())
os.close(release)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_can_neither_write_nor_keep_the_lock(path: Path) -> None:
    begun(path)[0].close()
    found = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", FORKING, str(path)], capture_output=True, text=True, check=True
    )
    lines = sorted(found.stdout.splitlines())
    assert lines[0].startswith("child path: was closed")
    assert lines[1] == "free 1"


def test_a_closed_keeper_says_so(path: Path) -> None:
    keeper, _ = begun(path)
    keeper.close()
    with pytest.raises(ReloadNeededError, match="was closed; reload the learner"):
        keeper.record({"n": 1})
