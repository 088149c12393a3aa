"""Forked children: they may do nothing, must not hang, and leave the parent's store alone.

The tests fork in a script of their own: a child of the test process would have all of it.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BEGINNING = """
import ctypes, os, signal, sys, threading, time
import discreet
from discreet.curator.store.sqlite import SqliteStore
from discreet.errors import StateInUseError, WrongProcessError

problem = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
path = sys.argv[1] or None
learner = discreet.LinUCB(problem, horizon=1000, variant="nonprivate", path=path)

def learn():
    learner.learn(learner.choose([(0.3, 0.4)]), 0.5)

def refused(call):
    try:
        call()
    except WrongProcessError:
        return
    raise AssertionError("a child was let in")

def ended(child, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, status
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("a child hangs")

def still_held():
    try:
        discreet.load(path)
    except StateInUseError:
        return
    raise AssertionError("a child gave away its parent's lock")

def everything_is_there(rows):
    assert (learner.rows, len(learner.ledger)) == (rows, rows), learner
    learn()
    if path:
        learner.save()
        learner.close()
        with discreet.load(path) as again:
            assert again.rows == len(again.ledger) == rows + 1

learn()
"""


def play(tmp_path: Path, script: str, *, stored: bool = True) -> None:
    """Run a script; it must not hang, and print nothing."""
    script = BEGINNING + textwrap.dedent(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    place = str(tmp_path / "state") if stored else ""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, place],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


either = pytest.mark.parametrize("stored", [True, False])


@either
def test_a_child_with_its_parents_number_is_refused_all_the_same(
    tmp_path: Path, *, stored: bool
) -> None:
    """A container may give a child the number that its parent has in another one."""
    script = """
        parent = os.getpid()
        waiting = learner.choose([(0.3, 0.4)])
        child = os.fork()
        if child == 0:
            os.getpid = lambda: parent
            refused(lambda: learner.choose([(0.3, 0.4)]))
            refused(lambda: learner.choose_many([[(0.3, 0.4)]]))
            refused(lambda: learner.learn(waiting, 0.5))
            refused(lambda: learner.forget(waiting))
            refused(lambda: learner.save(path))
            refused(lambda: learner.release)
            refused(lambda: learner.ledger)
            refused(lambda: learner.confidence)
            learner.close()
            os._exit(0)
        ended(child)
        learner.forget(waiting)
        everything_is_there(1)
    """
    play(tmp_path, script, stored=stored)


def test_a_child_of_a_child_is_refused(tmp_path: Path) -> None:
    script = """
        child = os.fork()
        if child == 0:
            grandchild = os.fork()
            if grandchild == 0:
                refused(lambda: learner.choose([(0.3, 0.4)]))
                learner.close()
                os._exit(0)
            ended(grandchild)
            os._exit(0)
        ended(child)
        everything_is_there(1)
    """
    play(tmp_path, script)


@pytest.mark.parametrize("lock", ["_leading", "_staging"])
def test_close_in_a_child_does_not_wait_for_a_lock_that_nobody_will_release(
    tmp_path: Path, lock: str
) -> None:
    script = f"""
        held, over = threading.Event(), threading.Event()

        def hold():
            with learner._curator.{lock}:
                held.set()
                over.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            learner.close()
            refused(lambda: learner.choose([(0.3, 0.4)]))
            refused(lambda: learner.release)
            learner.rounds, learner.rows, repr(learner)
            with discreet.LinUCB(problem, horizon=9, variant="nonprivate") as other:
                other.choose([(0.3, 0.4)])
            os._exit(0)
        over.set()
        thread.join()
        ended(child)
        everything_is_there(1)
    """
    play(tmp_path, script)


def test_a_child_made_while_another_thread_commits_does_not_hang_or_undo(tmp_path: Path) -> None:
    script = """
        inside, over = threading.Event(), threading.Event()
        real = SqliteStore.commit

        def slow(self, change):
            inside.set()
            over.wait()
            real(self, change)

        SqliteStore.commit = slow
        thread = threading.Thread(target=learn)
        thread.start()
        inside.wait()
        child = os.fork()
        if child == 0:
            learner.close()
            refused(lambda: learner.choose([(0.3, 0.4)]))
            sys.exit(0)
        ended(child)
        over.set()
        thread.join()
        everything_is_there(2)
    """
    play(tmp_path, script)


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)"])
def test_a_child_that_ends_leaves_the_store_to_its_parent(tmp_path: Path, end: str) -> None:
    script = f"""
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            os.getpid = lambda: parent
            {end}
        ended(child)
        learn()
        child = os.fork()
        if child == 0:
            os.getpid = lambda: parent
            learner.close()
            del learner
            import gc
            gc.collect()
            {end}
        ended(child)
        still_held()
        everything_is_there(2)
    """
    play(tmp_path, script)


def test_a_child_made_in_the_middle_of_a_transaction_does_not_roll_it_back(tmp_path: Path) -> None:
    """The fork comes inside the commit, and the child leaves through all that is on the stack."""
    script = """
        import sqlite3
        from discreet.curator.store import sqlite
        connect, forks, parent = sqlite3.connect, [], os.getpid()

        class Forking(sqlite3.Connection):
            def execute(self, statement, *more):
                if statement == "COMMIT" and forks == [None]:
                    forks[0] = os.fork()
                    if forks[0] == 0:
                        os.getpid = lambda: parent
                        sys.exit(0)
                    ended(forks[0])
                return super().execute(statement, *more)

        sqlite3.connect = lambda *some, **more: connect(*some, factory=Forking, **more)
        learner.close()
        learner = discreet.load(path)
        for turn in range(5):
            forks[:] = [None]
            learn()
            assert forks != [None]
            still_held()
        forks.clear()
        everything_is_there(6)
    """
    play(tmp_path, script)


def test_a_child_that_never_heard_of_the_fork_does_not_keep_the_learner_locked(
    tmp_path: Path,
) -> None:
    """Made in C, behind Python's back, it holds the ledger's open file as long as it lives."""
    script = """
        child = ctypes.PyDLL(None).fork()
        if child == 0:
            while True:
                signal.pause()
        try:
            learner.close()
            again = discreet.load(path)
            assert again.rows == 1
            again.close()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    """
    play(tmp_path, script)


def test_a_child_that_lives_on_does_not_keep_the_learner_locked(tmp_path: Path) -> None:
    script = """
        child = os.fork()
        if child == 0:
            while True:
                signal.pause()
        try:
            learner.close()
            again = discreet.load(path)
            assert again.rows == 1
            again.close()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    """
    play(tmp_path, script)
