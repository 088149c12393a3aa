"""Whatever is typed: exit code 2 and one line that says what to give, never a traceback."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.cli import _console as console
from discreet.cli import _options as options
from discreet.cli import main
from discreet.kernels import _compiling as compiling

PRIVATE = ("--epsilon=1", "--delta=1e-6")
PLAN = ("plan", "--horizon=1e4", "--dim=3", *PRIVATE)
SIMULATE = ("simulate", "--horizon=50", "--dim=3", *PRIVATE, "--seeds=1", "--jobs=1")
AUDIT = ("audit", "--attack=threshold", "--trials=100", "--jobs=1")
REPRODUCE = ("reproduce", "dimension", "--scale=smoke")

COUNTS = {
    PLAN: ("--horizon", "--dim", "--contributions"),
    SIMULATE: (
        "--horizon",
        "--dim",
        "--actions",
        "--rounds",
        "--seeds",
        "--first-seed",
        "--jobs",
        "--contributions",
    ),
    AUDIT: ("--dim", "--trials", "--horizon", "--jobs", "--contributions"),
}
NO_COUNT = ("2e19", "1e50", "1e400", "9223372036854775808", "-1", "nan", "-inf", "1.5", "many", "")

NUMBERS = {
    PLAN: ("--epsilon", "--delta", "--failure-prob", "--action-norm", "--reward-bound"),
    (*PLAN, "--variant=gaussian"): ("--theta-norm", "--shift", "--rho-min", "--gap"),
    (*PLAN, "--json"): ("--mean-reward-bound", "--reward-subgaussian"),
    SIMULATE: ("--gap", "--deviations", "--dither", "--uniform"),
    (*SIMULATE, "--policy=ucb"): ("--optimism",),
    AUDIT: ("--epsilon", "--delta", "--confidence"),
}
NO_NUMBER = ("nan", "inf", "-1", "much", "")

TOO_LARGE = [
    (*SIMULATE, "--dim=1e9"),
    (*SIMULATE, "--actions=1e15"),
    (*SIMULATE, "--env=fixed", "--dim=1e7"),
    (*SIMULATE, "--env=basis", "--dim=1e7"),
    (*SIMULATE, "--env=clusters", "--dim=1e7"),
    (*SIMULATE, "--dim=1e18", "--actions=1e18"),
    (*SIMULATE, "--variant=gaussian", "--horizon=1e18"),
    (*SIMULATE, "--seeds=1e7"),
    (*SIMULATE, "--jobs=1e6"),
    (*SIMULATE, "--env=fixed", "--gap=1", "--horizon=none"),
    (*AUDIT, "--dim=1e9"),
    (*AUDIT, "--trials=1e12"),
    (*AUDIT, "--horizon=1e9"),
    (*PLAN, "--dim=1e8"),
    (*PLAN, "--json", "--variant=gaussian", "--gap=1e-320"),
    (*PLAN, "--json", "--variant=gaussian", "--mean-reward-bound=1e308"),
]

WORDS = {
    PLAN: ("--variant", "--neighbours", "--calibration", "--tree"),
    SIMULATE: ("--env", "--rewards", "--policy"),
    AUDIT: ("--attack", "--noise"),
    REPRODUCE: ("--scale", "--backend"),
}
NO_WORD = ("", "x" * 1000, "two\nlines", "[red]", "\N{SNOWMAN}")

PLACES = [
    ("ledger", ""),
    ("ledger", "/"),
    ("ledger", "."),
    ("ledger", "/dev/zero"),
    ("ledger", "/dev/null"),
    ("ledger", "\0"),
    ("ledger", "x" * 5000),
    ("ledger", "/no/such/learner"),
    ("ledger", "two\nlines"),
    ("card", ""),
    ("card", "/"),
    ("card", "/dev/null"),
    ("card", "\0"),
    ("card", "/no/such/learner"),
    ("card", "postgresql://nobody@nowhere.invalid/none"),
    ("demo", "--out="),
    ("demo", "--out=\0"),
    ("demo", "--out=/dev/null"),
    ("demo", "--out=/dev/null/demo"),
    ("demo", "--jobs=1e9"),
    ("reproduce", "nothing", "--out=/dev/null/x"),
    (*REPRODUCE, "--out=/dev/null/x"),
    (*REPRODUCE, "--out=/dev/null"),
    (*REPRODUCE, "--out="),
    ("",),
    ("\0",),
    ("variants", "--jsn"),
    ("variants", "more"),
]

ABSURD = [
    *((*command, f"{name}={text}") for command in COUNTS for name in COUNTS[command]
      for text in NO_COUNT),
    *((*command, f"{name}={text}") for command in NUMBERS for name in NUMBERS[command]
      for text in NO_NUMBER if (name, text) != ("--shift", "-1")),
    *((*command, f"{name}={text}") for command in WORDS for name in WORDS[command]
      for text in NO_WORD),
    *TOO_LARGE,
    *PLACES,
]  # fmt: skip


@pytest.mark.parametrize("arguments", ABSURD, ids=lambda arguments: " ".join(arguments)[:100])
def test_absurd_arguments_are_one_line_on_standard_error(
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    # The first run on a machine says so, which is a line of its own.
    monkeypatch.setattr(compiling._FirstCompileNotice, "said", True)
    if arguments[: len(REPRODUCE)] == REPRODUCE and "--out" not in " ".join(arguments):
        arguments = (*arguments, "--out=run")
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("discreet: ")
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("arguments", "place"),
    [(("simulate",), "discreet simulate"), (("plan", "--dm=3"), "discreet plan"),
     (("plann",), "discreet")],
)  # fmt: skip
def test_a_wrong_usage_names_the_help_of_its_own_command(
    arguments: tuple[str, ...],
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err.endswith(f" (see {place} --help)\n")


@pytest.mark.parametrize("command", COUNTS, ids=lambda command: command[0])
def test_a_count_that_is_too_large_is_named_with_what_to_give(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in COUNTS[command]:
        monkeypatch.setattr(sys, "argv", ["discreet", *command, f"{name}=2e19"])
        with pytest.raises(SystemExit):
            main()
        message = capsys.readouterr().err
        assert f"'{name}': '2e19' is too large; give at most 1" in message


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5e7", 50_000_000),
        ("1_000_000", 1_000_000),
        ("9007199254740993", 2**53 + 1),  # which a float cannot hold
        ("1e18", 10**18),
    ],
)
def test_counts_are_read_to_the_last_digit(text: str, number: int) -> None:
    assert options.count(text) == number


def test_characters_that_an_encoding_does_not_have_are_spelled_out() -> None:
    assert "dim², ε…".encode("ascii", console._PLAIN) == b"dim^2, epsilon..."
    assert "dim², ε…".encode("latin-1", console._PLAIN) == b"dim\xb2, epsilon..."
    assert "\N{SNOWMAN}\udcff".encode("utf-8", console._PLAIN) == "\N{SNOWMAN}?".encode()


def discreet(
    *arguments: str, encoding: str = "utf-8", script: str = '"$@"', **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603  # our own command
        ["/bin/bash", "-c", script, "bash", sys.executable, "-m", "discreet", *arguments],
        env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "100", **environment},
        capture_output=True,
        check=False,
        timeout=120,
    )


def without_notices(said: bytes) -> list[bytes]:
    """What stands on standard error besides that kernels are compiled."""
    return [line for line in said.splitlines() if b"compiling" not in line]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> str:
    from discreet import LinUCB, Privacy, Problem  # noqa: PLC0415  # nobody else needs them

    path = tmp_path_factory.mktemp("stored") / "bandit"
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    privacy = Privacy(epsilon=1, delta=1e-6)
    with LinUCB(problem, horizon=40, privacy=privacy, variant="tight", path=path) as bandit:
        for _ in range(40):
            bandit.learn(bandit.choose([[1.0, 0.0]]), 1.0)
    return str(path)


@pytest.mark.parametrize("encoding", ["ascii", "cp437"])
def test_tables_and_help_are_printed_in_any_encoding(
    encoding: str, ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for arguments in (
        ["card", ledger],
        ["variants"],
        [],
        ["simulate", "--help"],
        list(PLAN),
    ):
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
        main()
        printed, said = (one.buffer.getvalue() for one in (out, err))
        assert printed.decode(encoding)
        assert without_notices(said) == []
    # In a process of its own, to which nothing else has happened.
    done = discreet("ledger", ledger, encoding=encoding)
    assert (done.returncode, without_notices(done.stderr)) == (0, [])
    shown = done.stdout.decode(encoding)
    assert "..." in shown
    widths = {
        len(line)
        for line in shown.splitlines()
        if line.startswith(("|", "+", "\N{BOX DRAWINGS LIGHT VERTICAL}"))
    }
    assert len(widths) <= 2  # two tables, each as wide throughout


def test_json_is_ascii_in_any_encoding(ledger: str) -> None:
    for encoding in ("ascii", "utf-8", "utf-16"):
        done = discreet("ledger", ledger, "--json", encoding=encoding)
        assert done.returncode == 0
        text = done.stdout.decode(encoding)
        assert text.isascii()
        assert json.loads(text)["intact"] is True


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_errors_are_one_line_in_any_encoding(encoding: str) -> None:
    done = discreet("ledger", "nowhere-\N{SNOWMAN}", encoding=encoding)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"does not exist" in done.stderr


@pytest.mark.parametrize("arguments", [["variants"], ["variants", "--json"], ["--help"], []])
@pytest.mark.parametrize(
    "script",
    ['"$@" | (exec <&-; sleep 0); exit ${PIPESTATUS[0]}', '"$@" > /dev/full', '"$@" >&-'],
    ids=["closed pipe", "full disk", "closed"],
)
def test_output_that_nobody_takes_is_one_line(arguments: list[str], script: str) -> None:
    # The reader is gone long before the command has started up.
    done = discreet(*arguments, script=script)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"discreet: standard output")


def test_nothing_is_printed_elsewhere_where_standard_error_is_closed() -> None:
    done = discreet("plan", "--horizon=0", "--dim=3", script='"$@" 2>&-')
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = discreet("ledger", str(tmp_path / "pipe"))
    assert done.returncode == 2
    assert b"is not a ledger" in done.stderr


def test_a_file_too_large_for_a_ledger_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)  # takes no room
    done = discreet("ledger", str(tmp_path / "large"))
    assert done.returncode == 2
    assert b"is not a ledger" in done.stderr


def test_no_home_folder_is_needed(tmp_path: Path) -> None:
    done = discreet(*SIMULATE, "--json", HOME=str(tmp_path / "none"), XDG_CACHE_HOME="")
    assert done.returncode == 0
    assert json.loads(done.stdout)["rounds"] == 50
