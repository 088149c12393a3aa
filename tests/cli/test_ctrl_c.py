"""Ctrl-C: one line on standard error and exit code 130, whatever runs and however long."""

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time

import pytest

from discreet.cli import _interrupts as interrupts
from discreet.cli import main

LONG = ("--horizon=1e12", "--epsilon=1", "--delta=1e-6", "--seeds=2", "--jobs=1")
PATIENCE = 300  # seconds, for a machine that has much else to do

# The command line, which says so when a compiled loop starts in a thread of its own.
TELLING = """
import sys
from discreet.cli import main
from discreet.simulation import _interruptible as interruptible

play = interruptible._Played.run

def told(played):
    print("playing", file=sys.stderr, flush=True)
    play(played)

interruptible._Played.run = told
main()
"""


def interrupted(command: list[str], *, after: str) -> tuple[int, str]:
    """The exit code and standard error of a command that gets SIGINT once it has said something."""
    process = subprocess.Popen(  # noqa: S603  # our own command
        [sys.executable, *command],
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": "100"},  # a bar, without a terminal
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = b""
    try:
        with selectors.DefaultSelector() as watch:
            watch.register(process.stderr, selectors.EVENT_READ)
            until = time.monotonic() + PATIENCE
            while after.encode() not in said:
                assert watch.select(until - time.monotonic()), f"nothing but {said!r}"
                some = os.read(process.stderr.fileno(), 4096)
                assert some, f"it ended with {said!r}"
                said += some
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=PATIENCE)[1]
    finally:
        process.kill()
        process.communicate()
    return process.returncode, said.decode()


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", *LONG],
        ["audit", "--variant=gaussian", "--trials=1e8", "--jobs=1"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_that_is_interrupted_says_so_and_fails(command: list[str]) -> None:
    code, said = interrupted(["-m", "discreet", *command], after=" of ")
    assert code == 130
    assert said.endswith("discreet: interrupted\n")
    assert "Traceback" not in said


@pytest.mark.parametrize("player", ["--variant=windows", "--baseline=rare-switching"])
def test_a_compiled_loop_on_one_process_can_be_interrupted(player: str) -> None:
    horizon = "--horizon=2e8" if player.startswith("--baseline") else LONG[0]
    command = ["-c", TELLING, "simulate", *LONG[1:], horizon, player]
    code, said = interrupted(command, after="playing")
    assert code == 130
    assert said.endswith("discreet: interrupted\n")


def test_any_other_exit_code_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Command:
        def main(self, **_: object) -> int:
            return 3

    monkeypatch.setattr("typer.main.get_command", lambda _: Command())
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 3


def test_an_interrupt_in_a_callback_of_compiled_code_is_not_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        raise KeyboardInterrupt

    def wait() -> None:
        until = time.monotonic() + PATIENCE
        callback()
        while time.monotonic() < until:
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), interrupts.kept():
        wait()
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_other_errors_in_callbacks_are_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    @ctypes.CFUNCTYPE(None)
    def callback() -> None:
        raise ZeroDivisionError

    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_type))
    with interrupts.kept():
        callback()
    assert told == [ZeroDivisionError]
