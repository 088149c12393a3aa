"""A service in processes of its own, started as a user starts it, for clients by socket."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ADMINISTRATOR = "a-key-of-the-administrator-for-tests"
PATIENCE = 120.0  # seconds for what takes a moment; far more than it needs


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[str]:
    """Start a service, give its address, and stop it: it must end with exit code 0."""
    said = folder / "errors.txt"
    command = [sys.executable, "-m", "discreet", "serve", "--data", str(folder / "data")]
    environment = {**os.environ, "DISCREET_ADMIN_KEY": ADMINISTRATOR}
    with said.open("wb") as stream:
        process = subprocess.Popen(  # our own command
            [*command, "--port", "0", *options], stderr=stream, env=environment
        )
    try:
        yield _address(process, said)
    finally:
        process.terminate()
        code = process.wait(PATIENCE)
    assert code == 0, said.read_text("utf-8")


def _address(process: "subprocess.Popen[bytes]", said: Path) -> str:
    """Where it says that it is."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"discreet serves at (http://\S+)\n", said.read_text("utf-8"))
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(said.read_text("utf-8"))
