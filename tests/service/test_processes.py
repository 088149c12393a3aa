"""The command line as people start it: processes, signals, keys, configuration."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import ParameterError
from discreet.service import _run
from discreet.service._certificate import require_certificate
from discreet.service._configuration import Configuration, configuration
from discreet.service._run import _Child, _inherited, _writer_command
from discreet.service._server import bound


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(folder: Path, port: int, *more: str, key: str | None = "root") -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if "DISCREET" not in name}
    if key is not None:
        environment["DISCREET_ADMIN_KEY"] = key
    command = [
        sys.executable,
        "-m",
        "discreet",
        "serve",
        "--data",
        str(folder),
        "--port",
        str(port),
    ]
    return subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True, env=environment)


def ask(port: int, path: str, body: object = None, key: str = "root") -> dict:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as found:
        return json.loads(found.read())


def until_ready(port: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        try:
            ask(port, "/readyz")
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"it ended: {process.communicate()[1]}")


def test_sigterm_ends_it_with_0_after_everything_acknowledged_is_written(tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    process = start(data, port)
    until_ready(port, process)
    body = {"name": "b", "epsilon": 1, "delta": 1e-6, "horizon": None}
    ask(port, "/v1/bandits", body)
    ask(port, "/v1/bandits/b/rank", {"actions": [{"id": "a"}], "event_id": "e1"})
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in said
    assert data.stat().st_mode & 0o777 == 0o700
    process = start(data, port)
    until_ready(port, process)
    assert ask(port, "/v1/bandits/b")["events"] == 1
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_a_folder_that_is_served_is_served_by_no_second_process_but_may_have_a_reserve(
    tmp_path: Path,
) -> None:
    port, data = free_port(), tmp_path / "data"
    first = start(data, port)
    until_ready(port, first)
    second = start(data, free_port())
    said = second.communicate(timeout=120)[1]
    assert second.returncode == 2
    assert len(said.strip().splitlines()) == 1
    assert "served by another process; stop it first, or start rankers with --role ranker" in said
    reserve = start(data, free_port(), "--role", "writer")
    ask(port, "/v1/bandits", {"name": "b", "epsilon": 1, "delta": 1e-6, "horizon": None,
                              "reward": {"wait_seconds": 0}})  # fmt: skip
    first.kill()  # its writer ends by itself, and the reserve is the writer
    first.communicate()
    ranker = start(data, port, "--role", "ranker")
    until_ready(port, ranker)
    ask(port, "/v1/bandits/b/rank", {"actions": [{"id": "a"}]})
    end = time.monotonic() + 60.0
    while ask(port, "/v1/bandits/b")["closed"] < 1:
        assert time.monotonic() < end
        time.sleep(0.1)
    for process in (ranker, reserve):
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        assert process.returncode == 0


def test_a_folder_that_a_writer_works_on_is_served_by_rankers_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    writer = start(data, free_port(), "--role", "writer")
    while not (data / "service.sqlite.writer").exists():
        time.sleep(0.01)
    second = start(data, free_port())
    assert "served by another process" in second.communicate(timeout=120)[1]
    assert second.returncode == 2
    writer.send_signal(signal.SIGTERM)
    assert writer.communicate(timeout=120) is not None
    assert writer.returncode == 0


@pytest.mark.parametrize("role", ["all", "ranker", "writer"])
def test_sigterm_during_the_start_ends_it_with_0(tmp_path: Path, role: str) -> None:
    process = start(tmp_path / "data", free_port(), "--role", role)
    while not (tmp_path / "data").exists():  # it has begun, and is not ready yet
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in said) == (0, False)


def test_a_database_password_is_on_no_command_line() -> None:
    made = Configuration(database="postgresql://ann:secret@host/db", data="here")
    assert "secret" not in " ".join(_writer_command(made))


def test_a_writer_accepts_what_the_process_above_it_was_given_in_parts() -> None:
    environment = {
        "DISCREET_TLS_CERTIFICATE": "c",
        "DISCREET_PORT": "70000",
        "DISCREET_SECRET": "s",
    }
    options = {"data": "here", "tls_key": "k", "port": 0}
    assert configuration(options, environment=environment).tls_certificate == "c"
    kept = _inherited({**environment, "DISCREET_ADMIN_KEY": "root", "HOME": "/home/ann"})
    assert kept == {"DISCREET_SECRET": "s", "HOME": "/home/ann"}
    configuration({"data": "here", "role": "writer"}, environment=kept)


@pytest.mark.parametrize("wrong", ["port", "DISCREET_SECRET", "DISCREET_ADMIN_KEY"])
def test_no_writer_begins_to_work_for_a_service_that_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    begun = []
    monkeypatch.setattr(_run, "_Child", lambda *_: begun.append("writer") or 1 / 0)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("discreet.service._logging.start", lambda _: None)
    monkeypatch.setenv("DISCREET_SECRET", "short" if wrong == "DISCREET_SECRET" else "s" * 16)
    monkeypatch.setenv("DISCREET_ADMIN_KEY", " x" if wrong == "DISCREET_ADMIN_KEY" else "x" * 16)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1] if wrong == "port" else 0
        with pytest.raises(ParameterError, match=wrong):
            _run.serve(Configuration(data=str(tmp_path / "data"), port=port))
    assert begun == []


def test_a_writer_that_could_not_be_started_is_started_as_soon_as_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, tries = subprocess.Popen, []

    def scarce(*arguments: Any, **more: Any) -> Any:
        tries.append(arguments)
        if len(tries) < 3:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return plain(*arguments, **more)

    monkeypatch.setattr(subprocess, "Popen", scarce)
    there = tmp_path / "there"
    work = f"import pathlib, sys; pathlib.Path({str(there)!r}).touch(); sys.stdin.read()"
    child = _Child("writer", [sys.executable, "-c", work])
    until = time.monotonic() + 60
    while not there.exists() and time.monotonic() < until:
        time.sleep(0.05)
    child.stop()
    assert there.exists()
    assert len(tries) == 3


def test_the_writer_hears_that_somebody_vouches_for_the_data() -> None:
    for vouched in (True, False):
        command = _writer_command(Configuration(data="here", new_witness=vouched))
        assert ("--new-witness" in command) == vouched


def test_nobody_vouches_for_data_without_a_witness() -> None:
    with pytest.raises(ParameterError, match="new_witness"):
        configuration({"database": "postgresql://host/db", "new_witness": True}, environment={})


def test_without_a_key_one_is_made_and_printed_once(tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    said = []
    for _ in range(2):
        process = start(data, port, key=None)
        until_ready(port, process)
        process.send_signal(signal.SIGTERM)
        said.append(process.communicate(timeout=120)[1])
    keys = [line for line in said[0].splitlines() if line.startswith("admin key: dk_")]
    assert len(keys) == 1
    assert "admin key" not in said[1]
    process = start(data, port, key=None)
    until_ready(port, process)
    assert ask(port, "/v1/bandits", key=keys[0].removeprefix("admin key: ")) == {"bandits": []}
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--data", "/proc/nowhere"],
        ["--data", "DIR", "--port", "70000"],
        ["--data", "DIR", "--role", "king"],
        ["--database", "mysql://x"],
        ["--data", "DIR", "--tls-key", "x"],
        ["--data", "DIR", "--tls-key", "/no/key", "--tls-certificate", "/etc/hostname"],
        ["--data", "DIR", "--tls-key", "/etc/hostname", "--tls-certificate", "/etc/hostname"],
        ["--data", "DIR", "--config", "missing.toml"],
        ["--data", "DIR", "--role", "writer", "--demo"],
        ["--data", "DIR", "--host", "203.0.113.1", "--port", "1"],
        ["--data", "DIR", "--log-level", "loud"],
    ],
)
def test_a_start_that_cannot_be_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: list[str]
) -> None:
    given = [str(tmp_path / "data") if part == "DIR" else part for part in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "serve", *given],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_a_certificate_that_cannot_be_served_with_is_named(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.pem" for name in ("tls_certificate", "tls_key")}
    files["tls_key"].write_text("no key")
    made = Configuration(data="x", **{name: str(file) for name, file in files.items()})
    for content, said in ((None, "cannot be read: No such file"), ("nothing", "PEM files that")):
        if content is not None:
            files["tls_certificate"].write_text(content)
        with pytest.raises(ParameterError, match=said) as caught:
            require_certificate(made)
        assert str(files["tls_certificate"]) in str(caught.value)
        assert "tls_certificate" in str(caught.value)


def test_options_count_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('data = "from-file"\nport = 1\nlargest_body = 7\n')
    environment = {"DISCREET_PORT": "2", "DISCREET_HOST": "::1", "DISCREET_PROXY": "true"}
    made = configuration({"host": "127.0.0.9", "port": None}, file=file, environment=environment)
    found = (made.data, made.port, made.host, made.largest_body, made.proxy)
    assert found == ("from-file", 2, "127.0.0.9", 7, True)


def test_an_empty_variable_counts_as_none(tmp_path: Path) -> None:
    names = [name.upper() for name in Configuration.__struct_fields__]
    environment = dict.fromkeys((f"DISCREET_{name}" for name in names), "")
    made = configuration({"data": str(tmp_path)}, environment=environment | {"DISCREET_HOST": " "})
    assert made == Configuration(data=str(tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", ""),
        ("host", " "),
        ("data", ""),
        ("data", "/"),
        ("data", "x/../../../../../../../../../../../../../../.."),
        ("witness", ""),
        ("witness", "/"),
        ("requests_per_second", float("nan")),
        ("requests_per_second", -1.0),
        ("requests_per_second", float("inf")),
        ("wrong_keys_per_second", float("nan")),
        ("body_seconds", float("nan")),
        ("body_seconds", 0.0),
        ("body_seconds", float("inf")),
    ],
)
def test_what_would_mean_something_else_than_it_says_is_refused(name: str, value: object) -> None:
    with pytest.raises(ParameterError, match=name):
        configuration({"data": "x"} | {name: value}, environment={})


@pytest.mark.parametrize("data", ["/var/data/x/..", "/var/data/.", "/var/./lib/../data/"])
def test_the_witness_is_not_in_the_data_however_that_is_spelled(data: str) -> None:
    made = Configuration(data=data)
    assert made.folder == Path("/var/data")
    assert made.witness_folder == Path("/var/data.witness")


@pytest.mark.parametrize(
    "content", ["port = 'x'", "nonsense = 1", "port = [", "largest_body = 0", "data = 3"]
)
def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "service.toml"
    file.write_text(content)
    with pytest.raises(ParameterError) as caught:
        configuration({"data": None if "data" in content else "x"}, file=file, environment={})
    assert content.partition(" ")[0] in str(caught.value) or "is not TOML" in str(caught.value)


def test_a_database_of_another_kind_is_refused_without_its_password(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('database = ["postgresql://me:hidden@db/x"]')
    with pytest.raises(ParameterError, match="database: is of type list; give text") as caught:
        configuration({"data": "x"}, file=file, environment={})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("PORT", "abc", "port: is 'abc'; give a whole number"),
        ("DEMO", "maybe", "demo: is 'maybe'; give true or false"),
        ("BODY_SECONDS", "long", "body_seconds: is 'long'; give a number"),
    ],
)
def test_a_variable_of_another_kind_is_named(name: str, text: str, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        configuration({"data": "x"}, environment={f"DISCREET_{name}": text})
    assert str(caught.value) == said


def test_a_place_that_cannot_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"config: .*missing.toml cannot be read"):
        configuration({"data": "x"}, file=tmp_path / "missing.toml", environment={})
    with pytest.raises(ParameterError, match="data: /proc/nowhere cannot be made"):
        _run._prepare_folder(Path("/proc/nowhere"))
    with pytest.raises(ParameterError, match=r"host: 203.0.113.1 is no address of this machine"):
        bound(Configuration(data="x", host="203.0.113.1", port=0))


def test_the_witness_is_beside_the_data_and_not_in_it() -> None:
    made = Configuration(data="/var/lib/discreet")
    assert made.witness_folder == Path("/var/lib/discreet.witness")
