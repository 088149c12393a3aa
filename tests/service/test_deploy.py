"""What is handed to operators: a unit, an image, a configuration, and a page whose commands run."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import ADMINISTRATOR, running

from discreet.client import Client
from discreet.service._configuration import Configuration, configuration

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "service.md"
README = ROOT / "README.md"
SETTINGS = set(Configuration.__struct_fields__)
SHELL = re.compile(r"^```sh\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


# The unit


class _Repeated(dict[str, str]):
    """Settings of a unit may stand several times; then they add up."""

    def __setitem__(self, name: str, value: str) -> None:
        if name in self and isinstance(value, list):
            value = [*self[name], *value]
        super().__setitem__(name, value)


@pytest.fixture(scope="module")
def unit() -> configparser.ConfigParser:
    found = configparser.ConfigParser(
        dict_type=_Repeated, strict=False, interpolation=None, delimiters=("=",)
    )
    found.optionxform = str  # type: ignore[assignment,method-assign]  # names have capitals
    found.read_string((DEPLOY / "discreet.service").read_text("utf-8"))
    return found


def test_the_unit_runs_the_command_line_as_it_is(unit: configparser.ConfigParser) -> None:
    program, command, *options = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, command) == ("discreet", "serve")
    assert options == ["--config", "/etc/discreet/discreet.toml"]


def test_the_unit_is_not_root_and_cannot_become_it(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    assert service["User"] == "discreet"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert service["ProtectSystem"] == "strict"


def test_the_unit_leaves_no_raw_data_in_dumps_or_swap(unit: configparser.ConfigParser) -> None:
    assert unit["Service"]["LimitCORE"] == "0"
    assert unit["Service"]["MemorySwapMax"] == "0"


def test_the_unit_may_write_what_the_configuration_names(unit: configparser.ConfigParser) -> None:
    folders = {f"/var/lib/{name}" for name in unit["Service"]["StateDirectory"].split()}
    example = tomllib.loads((DEPLOY / "discreet.toml").read_text("utf-8"))
    assert {example["data"], example["witness"]} == folders
    assert unit["Service"]["StateDirectoryMode"] == "0700"


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not here")
    text = (DEPLOY / "discreet.service").read_text("utf-8")
    copy = tmp_path / "discreet.service"
    copy.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text), "utf-8")
    found = subprocess.run(  # our own file
        [program, "verify", "--recursive-errors=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "discreet.service" not in found.stderr and found.returncode:
        pytest.skip("systemd-analyze does not work here")
    assert (found.returncode, found.stderr) == (0, "")


# The image


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile with their arguments, lines joined."""
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    lines = re.sub(r"(?m)^\s*#.*\n", "", text).replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]  # type: ignore[misc]


def test_the_image_has_two_stages_and_the_last_is_not_root() -> None:
    found = instructions()
    known = {
        *("ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE"),
        *("STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
    }
    assert {name for name, _ in found} <= known
    stages = [place for place, (name, _) in enumerate(found) if name == "FROM"]
    assert len(stages) == 2
    last = dict(found[stages[1] :])
    assert last["USER"] == "10001:10001"
    assert "gcc" not in " ".join(rest for _, rest in found[stages[1] :])
    assert last["STOPSIGNAL"] == "SIGTERM"


def test_the_image_copies_what_there_is_and_asks_for_extras_that_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            assert all((ROOT / source).exists() for source in rest.split()[:-1])
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    extras = re.search(r"'\.\[([a-z,]+)\]'", text)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])


def test_the_image_starts_the_service_with_options_that_there_are() -> None:
    found = dict(instructions())
    command = json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
    assert command[:2] == ["discreet", "serve"]
    given = dict(zip(command[2::2], command[3::2], strict=True))
    made = configuration(
        {name.removeprefix("--"): value for name, value in given.items()}, environment={}
    )
    assert made.host == "0.0.0.0"  # noqa: S104  # inside its container
    assert {str(made.folder), str(made.witness_folder)} < set(json.loads(found["VOLUME"]))


# The configuration


def test_the_example_is_a_configuration() -> None:
    made = configuration({}, file=DEPLOY / "discreet.toml", environment={})
    assert made.folder == Path("/var/lib/discreet")
    assert made.witness_folder == Path("/var/lib/discreet-witness")
    assert not str(made.witness_folder).startswith(f"{made.folder}/")


def test_what_the_example_leaves_out_could_stand_there_too() -> None:
    text = (DEPLOY / "discreet.toml").read_text("utf-8")
    text = re.sub(r"(?m)^# (?=[a-z_]+ = )", "", text)
    assert set(tomllib.loads(text)) < SETTINGS


def test_the_page_names_every_setting() -> None:
    text = PAGE.read_text("utf-8").partition("## Configuration")[2].partition("\n## ")[0]
    table = "".join(line for line in text.splitlines(keepends=True) if line.startswith("| `"))
    first = [line.split("|")[1] for line in table.splitlines()]
    assert set(re.findall(r"`([a-z_]+)`", " ".join(first))) == SETTINGS


# The pages' commands, as they stand there


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not here")
    with running(tmp_path_factory.mktemp("service")) as found:
        yield found


def answers(page: Path, address: str) -> list[dict]:
    """What the curl commands of a page answer here, with this address and key in place of its."""
    found = []
    for block in SHELL.finditer(page.read_text("utf-8")):
        if not block["body"].startswith("curl"):
            continue
        command = block["body"].replace("http://localhost:8080", address)
        result = subprocess.run(
            ["/bin/sh", "-ec", command.replace("choose-a-long-one", ADMINISTRATOR)],
            capture_output=True,
            env={**os.environ, "URL": address, "KEY": ADMINISTRATOR},
            check=True,
        )
        found.append(json.loads(result.stdout))
    return found


def test_the_commands_of_the_page_do_what_it_says(address: str) -> None:
    made, decided, rewarded, seen, key, erased = answers(PAGE, address)
    assert made["name"] == "articles"
    assert decided["event_id"] == "visit-1"
    assert {one["id"] for one in decided["ranking"]} == {"sport", "arts", "news"}
    assert rewarded == [{"event_id": "visit-1", "status": 204, "verdict": "accepted"}]
    assert seen["events"] == 1
    assert key["scopes"] == ["rank", "reward"]
    assert erased == {"open": 1, "in_batch": 0, "released": 0}


def test_the_readmes_decision_can_be_copied(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not here")
    with running(tmp_path, "--demo") as address, Client(address, ADMINISTRATOR) as client:
        while "news" not in {one.name for one in client.bandits()}:
            time.sleep(0.1)
        (decided,) = answers(README, address)
    assert decided["action_id"] in {"cup-final", "opera-night"}
    assert decided["event_id"]
