"""Processes: one that answers HTTP, and the writer, which it starts and watches over."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import BackendError, ParameterError, StoreError
from discreet.service import _logging
from discreet.service._address import RefusedError, named
from discreet.service._certificate import require_certificate
from discreet.service._configuration import Configuration, administrator_of, secret_of
from discreet.service._database import Database
from discreet.service._lease import Locked
from discreet.service._witness import Witness

if TYPE_CHECKING:
    from discreet.service._core import Core
    from discreet.service._server import Server

T = TypeVar("T")
_PACKAGES = ("starlette", "uvicorn", "jinja2", "prometheus_client")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0  # seconds before a child that died is started again
_GRACE = 20.0  # seconds that a child has to stop
_START, _AGAIN = 90.0, 0.5  # seconds to wait for a database at the start, and between tries
_SHORT = 16  # characters, below which a key can be guessed
_log = logging.getLogger("discreet.service")


def serve(configuration: Configuration) -> int:
    """Run the service until it is told to stop.

    Args:
        configuration: how.

    Returns:
        The exit code: 0 after SIGTERM or SIGINT.

    Raises:
        BackendError: the extra ``discreet[serve]`` is not installed.
        ParameterError: the port is taken, or a folder or a certificate cannot be used.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)  # nothing was promised to anybody yet
    _require_packages()
    if configuration.role != "writer":
        require_certificate(configuration)
        administrator_of()  # what cannot be is said before anything is begun
        secret_of()
    _logging.start(configuration.log_level)
    _prepare_folder(configuration.folder)
    database = _once_it_answers(
        lambda: Database(configuration.database or _file_of(configuration)), configuration
    )
    with _only_one(configuration, database):
        witness = _witness_of(configuration)
        if configuration.role == "writer":
            return _write(configuration, database, witness)
        return _answer(configuration, database, witness)


@contextlib.contextmanager
def _only_one(configuration: Configuration, database: Database) -> Iterator[None]:
    """On a folder with SQLite one process has the writer; another that wants one is refused.

    A process that is killed leaves its writer behind for a moment. That does not count: what is
    locked here belongs to the process that somebody started.
    """
    file = database.file
    if file is None or configuration.role == "ranker" or _has_parent():
        yield
        return
    served = Locked(file.with_name(f"{file.name}.served"))
    alone = configuration.role == "writer"
    if not served.lock(shared=alone) and not alone:
        raise ParameterError(
            "data",
            f"{file.parent} is served by another process; stop it first, or start rankers with "
            "--role ranker",
        )
    try:
        yield
    finally:
        served.unlock()


def _witness_of(configuration: Configuration) -> Witness:
    witness = Witness(configuration.witness_folder, new=configuration.new_witness)
    if witness.folder is None:
        _log.warning(
            "no witness: a database that is restored from a backup will not be noticed by a new "
            "process; give --data or --witness"
        )
    if configuration.new_witness:
        _log.warning(
            "new witness: data of which the witness knows nothing is taken to be the newest; leave "
            "--new-witness out of the next start"
        )
    return witness


def _has_parent() -> bool:
    """Whether this is the child of a process that somebody started."""
    return os.environ.get("DISCREET_PARENT") == "1"


def _once_it_answers(make: Callable[[], T], configuration: Configuration) -> T:
    """What is made with a database that may come up later than this process does.

    Raises:
        StoreError: it did not come up, or it does not let this client in.
    """
    place = configuration.database
    if place is None:
        return make()
    deadline, said = time.monotonic() + _START, ""
    while True:
        try:
            return make()
        except RefusedError as error:
            raise StoreError("database", f"{named(place)}: {error.why}") from None
        except StoreError as error:
            if time.monotonic() > deadline:
                raise StoreError(
                    "database", f"{named(place)}: did not answer for {_START:g} seconds"
                ) from None
            if said != str(error):
                said = str(error)
                _log.warning("database", extra={"reason": said, "at_start": named(place)})
            time.sleep(_AGAIN)


def _end_at_once(*_: object) -> None:
    raise SystemExit(0)


def _require_packages() -> None:
    for name in _PACKAGES:
        try:
            import_module(name)
        except ImportError:
            raise BackendError(
                "serve", f"needs {name}; run pip install 'discreet[serve]'"
            ) from None


def _prepare_folder(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            "data", f"{folder} cannot be made ({error.strerror}); give another folder"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ParameterError("data", f"{folder} cannot be written to; give another folder")
    (folder / "learners").mkdir(mode=0o700, exist_ok=True)


def _file_of(configuration: Configuration) -> Path:
    folder = configuration.folder
    if folder is None:  # the configuration was checked
        raise ParameterError("data", "is missing; say where the data is kept: --data DIR")
    return folder / "service.sqlite"


def _write(configuration: Configuration, database: Database, witness: Witness) -> int:
    """The writer's process."""
    from discreet.service._writer import Writer  # noqa: PLC0415  # rankers never import it

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if _has_parent():
        threading.Thread(target=_until_parent_ends, args=(stop,), daemon=True).start()
    folder = configuration.folder
    learners = None if configuration.database or folder is None else folder / "learners"
    writer = _once_it_answers(
        lambda: Writer(database, learners=learners, witness=witness), configuration
    )
    writer.run(stop)
    return 0


def _until_parent_ends(stop: threading.Event) -> None:
    """Standard input is a pipe from the parent: it ends with the parent, however that ends."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    stop.set()


def _answer(configuration: Configuration, database: Database, witness: Witness) -> int:
    """The process that answers HTTP."""
    from discreet.service._server import bound  # noqa: PLC0415  # it needs the extra

    sockets = [bound(configuration)]  # before a writer begins to work that would have to stop
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    children = []
    if configuration.role == "all":
        # The database's URL may hold a password, and a command line can be read by everybody.
        place = configuration.database
        environment = {} if place is None else {"DISCREET_DATABASE": place}
        children.append(_Child("writer", _writer_command(configuration), environment))
    try:
        return _looped(configuration, database, witness, children, sockets)
    finally:
        for child in children:
            child.stop()


def _looped(
    configuration: Configuration,
    database: Database,
    witness: Witness,
    children: list["_Child"],
    sockets: list[socket.socket],
) -> int:
    uvloop: Any = import_module("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve_http(configuration, database, witness, children, sockets))


async def _serve_http(
    configuration: Configuration,
    database: Database,
    witness: Witness,
    children: list["_Child"],
    sockets: list[socket.socket],
) -> int:
    from discreet.service._application import application  # noqa: PLC0415  # it needs the extra
    from discreet.service._core import Core  # noqa: PLC0415  # it needs the extra
    from discreet.service._server import server_for  # noqa: PLC0415  # it needs the extra

    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    administrator = administrator_of()
    if administrator is not None and len(administrator) < _SHORT:
        _log.warning("DISCREET_ADMIN_KEY is short and can be guessed; give 16 characters or more")
    core = Core(database, administrator=administrator, secret=secret_of(), witness=witness)
    shown = await core.start(patience=_START if configuration.database else 0.0)
    if shown is not None:
        _say(f"admin key: {shown}")
    port = sockets[0].getsockname()[1]
    server = server_for(application(core, configuration), configuration)
    address = (
        f"{'https' if configuration.tls_certificate else 'http'}://{_host(configuration)}:{port}"
    )
    _say(f"discreet serves at {address}")
    visitors = None
    if configuration.demo:
        visitors = _visitors(core, address)
        children.append(visitors)
    gc.collect()
    gc.freeze()  # what is there now stays: looking through it would hold up requests for long
    ending = asyncio.create_task(_stop_when(stopping, server))
    try:
        await server.serve(sockets=sockets)
    finally:
        ending.cancel()
        if visitors is not None:
            await asyncio.to_thread(visitors.stop)
        await core.close()
    return 0


async def _stop_when(stopping: asyncio.Event, server: "Server") -> None:
    await stopping.wait()
    server.stop()


def _say(text: str) -> None:
    """A line for the person who started the service."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _host(configuration: Configuration) -> str:
    host = configuration.host
    if host in {"0.0.0.0", "::"}:  # noqa: S104  # what it means on this machine
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _visitors(core: "Core", address: str) -> "_Child":
    """A process that plays visitors, with a key of its own."""
    text = core.lend_key(name="visitors of the demo", scopes=["admin"])
    command = [sys.executable, "-m", "discreet.service._demo", "--url", address]
    return _Child("visitors", command, {"DISCREET_KEY": text})


def _writer_command(configuration: Configuration) -> list[str]:
    options = {
        "--data": configuration.data,
        "--witness": configuration.witness,
        "--log-level": configuration.log_level,
    }
    given = [part for name, value in options.items() if value is not None for part in (name, value)]
    given += ["--new-witness"] if configuration.new_witness else []
    return [sys.executable, "-m", "discreet", "serve", "--role", "writer", *given]


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """What a child sees of this process's environment.

    What it needs of the configuration it is told. The rest is this process's, which may have been
    given options as well: with a part of it only, a child could refuse what its parent accepted.
    """
    settings = {f"DISCREET_{name.upper()}" for name in Configuration.__struct_fields__}
    hidden = {"DISCREET_ADMIN_KEY", *settings}
    return {name: value for name, value in environment.items() if name not in hidden}


class _Child:
    """A process that is started again when it ends, and ends when this one does."""

    def __init__(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> None:
        self._name = name
        self._command = command
        self._environment = {
            **_inherited(os.environ),
            "DISCREET_PARENT": "1",
            **(environment or {}),
        }
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            ended: dict[str, object]
            try:
                ended = {"code": self._run()}
            except OSError as error:  # there is no process or memory to be had now
                ended = {"reason": error.strerror}
            if self._stopping.is_set():
                return
            pause = (
                _FIRST_PAUSE
                if time.monotonic() - began > _GRACE
                else min(2 * pause, _LONGEST_PAUSE)
            )
            _log.warning("child ended", extra={"child": self._name, **ended})
            self._stopping.wait(pause)

    def _run(self) -> int | None:
        """Start it, unless it should stop, and wait until it ends; its exit code."""
        with self._lock:
            if self._stopping.is_set():
                return None
            process = self._process = subprocess.Popen(  # noqa: S603  # our own command
                self._command,
                stdin=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for this process, which tells them
            )
        try:
            return process.wait()
        finally:
            if process.stdin is not None:
                process.stdin.close()

    def stop(self) -> None:
        """Ask it to finish, and wait; kill it if it does not."""
        with self._lock:
            self._stopping.set()
            process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
