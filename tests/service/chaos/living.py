"""Processes of `discreet serve` that a test starts, kills at any moment and starts again."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import psutil

ADMIN = "dk_chaos_" + "c" * 43
PATIENCE = 120.0  # seconds until something that has to happen by itself is given up
INSIDE = Path(__file__).parent / "inside"
_UNREACHABLE = (OSError, http.client.HTTPException, ValueError)

Answer = tuple[int, Any]


class Unreachable(Exception):  # noqa: N818
    """There was no answer, so nobody knows whether the request was carried out."""


class Line:
    """One connection to a service, made again whenever it breaks."""

    def __init__(self, port: int, key: str = ADMIN, timeout: float = 20.0) -> None:
        self._port, self._key, self._timeout = port, key, timeout
        self._open: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Status and JSON of the answer; Unreachable if there is none."""
        made = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            if self._open is None:
                self._open = http.client.HTTPConnection(
                    "127.0.0.1", self._port, timeout=self._timeout
                )
            self._open.request(method, path, made, headers)
            answer = self._open.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except _UNREACHABLE as error:
            self.close()
            raise Unreachable(type(error).__name__) from None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


class Service:
    """One `discreet serve` and the processes below it.

    Attributes:
        port: where it listens.
        log: what it wrote on standard error, over all its lives.
    """

    def __init__(
        self,
        folder: Path,
        *,
        role: str = "all",
        database: str | None = None,
        environment: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        self.port = free_port()
        self.log = folder.parent / f"{folder.name}-{role}-{self.port}.log"
        self._command = [sys.executable, "-m", "discreet", "serve", "--data", str(folder)]
        self._command += ["--port", str(self.port), *options]
        self._command += ["--role", role] if role != "all" else []
        self._command += ["--database", database] if database else []
        self._role = role
        self._environment = {**os.environ, "DISCREET_ADMIN_KEY": ADMIN, **(environment or {})}
        self._environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        self._process: subprocess.Popen[bytes] | None = None
        self._seen: set[int] = set()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def answers(self) -> bool:
        """Whether it is one that listens for visitors."""
        return self._role != "writer"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def line(self, **options: Any) -> Line:
        return Line(self.port, **options)

    def start(self, *, wait: bool = True) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until it says that it lives."""
        line = self.line(timeout=5.0)

        def lives() -> bool:
            assert self.alive, f"the service ended by itself:\n{self.said()}"
            with contextlib.suppress(Unreachable):
                return line.ask("GET", "/healthz")[0] == 200
            return False

        until(lives, "the service does not come up", self.said)
        line.close()

    def writers(self) -> list[int]:
        """Processes below the one that listens: its writer, and what that one started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [one.pid for one in psutil.Process(self.pid).children(recursive=True)]
        return []

    def kill(self) -> None:
        """SIGKILL to the process that listens and to nobody else: a writer has to notice."""
        self._seen.update(self.writers())
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill_writer(self) -> bool:
        """SIGKILL to the writer alone; whether there was one at this moment."""
        found = self.writers()
        for victim in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        return bool(found)

    def stop(self) -> int:
        """SIGTERM, and wait for its end: the exit status."""
        assert self._process is not None
        self._seen.update(self.writers())
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def end(self) -> None:
        """Whatever still runs of it ends now."""
        if self._process is None:
            return
        self.kill()
        for one in self._seen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(one)
                if "discreet" in " ".join(process.cmdline()):
                    process.kill()

    def orphans(self) -> list[int]:
        """Writers of former lives that still run."""
        ours = set(self.writers()) if self.alive else set()
        found = []
        for one in self._seen - ours:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(one)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(one)
        return found

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until(
    happened: Callable[[], bool], otherwise: str, more: Callable[[], str] = lambda: ""
) -> None:
    """Wait until something has happened by itself."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"{otherwise}\n{more()}"
        time.sleep(0.02)
