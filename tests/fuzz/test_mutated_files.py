"""Stores with errors in them are refused, and in no other way than by an error of this package."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutation
import pytest

import discreet
from discreet.errors import StateFileError
from discreet.mechanism.schedules import batches
from discreet.release.ledger import Ledger

SCRIPT = Path(mutation.__file__)
IN_ALL = 1_000_000


def test_a_thousand_stores_with_errors_are_read_or_refused() -> None:
    found = mutation.play(1000, first=0)
    assert found.wrong == []
    assert found.ends.total() == 1000
    assert len(found.kinds) == 10
    # Some are harmless, and some with seals that fit get past the first checks.
    assert found.ends["read"] > 15
    assert found.ends["CorruptFileError"] > 300
    assert found.ends["BrokenLedgerError"] > 30


def test_a_case_is_the_same_every_time() -> None:
    one, other = mutation.specimens(), mutation.specimens()
    assert one == other
    for number in range(50):
        left, right = mutation.case(number, one), mutation.case(number, other)
        assert left[:3] == right[:3]
        assert left.read.args == right.read.args


def test_stores_sealed_without_a_change_are_read() -> None:
    for one in mutation.specimens():
        document = json.loads(mutation._opened(one.items))
        assert len(document["rows"]) > 3
        assert len(document["decisions"]) > 1
        for fitting in (True, False):
            items = mutation.sealed_items(document, fitting=fitting)
            assert mutation.from_items(one._replace(items=tuple(items))) == one.state
        facts, *lines = json.loads(mutation._unchained(one.ledger))
        assert mutation.sealed_ledger(mutation.spelled(facts), lines) == one.ledger
        assert mutation.from_files(one) == one.state
    assert max(len(Ledger.parse(one.ledger)) for one in mutation.specimens()) > 5


def test_a_log_with_errors_is_refused_or_ends_where_the_error_is(tmp_path: Path) -> None:
    # SQLite takes the rest of a damaged log for one that a crash cut short. What is read then is
    # the learner after an earlier call, and refused if a release was shown since.
    path = tmp_path / "state"
    learner = discreet.LinUCB(
        mutation.PROBLEM,
        horizon=64,
        privacy=mutation.TARGET,
        variant=discreet.VARIANTS["tight"].with_schedule(batches(3)),
        path=path,
    )
    calls = [mutation.digest(learner)]
    for _ in range(5):
        decision = learner.choose([[0.5, 0.25]])
        calls.append(mutation.digest(learner))
        learner.learn(decision, 0.5)
        calls.append(mutation.digest(learner))
    files = {place.name: place.read_bytes() for place in tmp_path.iterdir()}
    learner.close()
    rng, ends = random.Random(0), Counter[str]()
    for number in range(150):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, contents in files.items():
            (folder / name).write_bytes(contents)
        log = bytearray(files["state-wal"])
        log[rng.randrange(len(log))] ^= rng.randrange(1, 256)
        (folder / "state-wal").write_bytes(log)
        try:
            with discreet.load(folder / "state") as found:
                assert mutation.digest(found) in calls[5:]  # after the third row, which was shown
            ends["read"] += 1
        except StateFileError as error:
            ends[type(error).__name__] += 1
    assert ends["read"] > 10
    assert ends["RewoundStateError"] > 10


def hot(database: bytes) -> bytes:
    """A rollback journal that SQLite would play back, to bring back an earlier database."""
    size, sector = mutation.PAGE, 512
    pages = [database[at : at + size] for at in range(0, len(database), size)]
    numbers = (len(pages), 0, len(pages), sector, size)
    header = b"".join(number.to_bytes(4, "big") for number in numbers)
    parts = [(bytes.fromhex("d9d505f920a163d7") + header).ljust(sector, b"\0")]
    for number, page in enumerate(pages, 1):
        check = sum(page[at] for at in range(size - 200, 0, -200))
        parts += (number.to_bytes(4, "big"), page, check.to_bytes(4, "big"))
    return b"".join(parts)


@pytest.mark.parametrize("cases", [100, pytest.param(300, marks=pytest.mark.nightly)])
def test_what_lies_beside_the_files_does_no_harm_or_is_refused(tmp_path: Path, cases: int) -> None:
    # A journal that rewinds, alone or with errors, and strange contents of SQLite's other files.
    path, rng, ends = tmp_path / "state", random.Random(1), Counter[str]()
    known = mutation.specimens()
    for number in range(cases):
        one, foreign = rng.choice(known), rng.choice(known)
        early = hot(rng.choice((one.early, foreign.early)))
        extras = rng.choice(
            (
                {"-journal": early},
                {"-journal": rng.choice(mutation.BYTES)(rng, early, foreign.database)},
                {"-wal": rng.randbytes(9000)},
                {"-shm": rng.randbytes(32768), "-wal": b""},
                {"-shm": b"\xff" * 100},
            )
        )
        for place in tmp_path.iterdir():
            place.unlink()
        for name, contents in ({"": one.database, ".ledger": one.ledger} | extras).items():
            path.with_name(f"state{name}").write_bytes(contents)
        try:
            with discreet.load(path) as found:
                assert mutation.digest(found) == one.state, (number, sorted(extras))
            ends["read"] += 1
        except StateFileError as error:
            ends[type(error).__name__] += 1
    assert ends["read"] > cases // 6
    assert ends["RewoundStateError"] > cases // 15


@pytest.mark.parametrize("shown_since", [True, False])
def test_an_old_log_beside_a_newer_database_is_refused_or_does_no_harm(
    tmp_path: Path, *, shown_since: bool
) -> None:
    path = tmp_path / "state"
    with discreet.LinUCB(
        mutation.PROBLEM,
        horizon=64,
        privacy=mutation.TARGET,
        variant=discreet.VARIANTS["tight"].with_schedule(batches(3)),
        path=path,
    ) as learner:
        for _ in range(4):
            learner.learn(learner.choose([[0.5, 0.25]]), 0.5)
        log = path.with_name("state-wal").read_bytes()
        early = mutation.digest(learner)
        for _ in range(5 if shown_since else 1):
            learner.learn(learner.choose([[0.25, 0.5]]), -0.5)
        learner.save()
        state = mutation.digest(learner)
    path.with_name("state-wal").write_bytes(log)
    try:
        with discreet.load(path) as found:
            # To bring back a log is to bring back a state, which is noticed if anything was shown.
            assert mutation.digest(found) in ({state} if shown_since else {state, early})
    except StateFileError:
        pass


@pytest.mark.parametrize("wrong", [RuntimeWarning("a"), MemoryError(), RecursionError(), OSError()])
def test_another_exception_is_noticed(
    wrong: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise wrong

    monkeypatch.setattr(mutation, "from_files", failing)
    monkeypatch.setattr(mutation, "from_items", failing)
    findings = mutation.Findings()
    findings.play(1, mutation.specimens())
    assert len(findings.wrong) == 1
    assert type(wrong).__name__ in findings.wrong[0]


def test_memory_and_warnings_are_guarded() -> None:
    with mutation.guarded():
        with pytest.raises(MemoryError):
            bytearray(2 * mutation.MEMORY)
        with pytest.raises(mutation.TooSlow):
            _wait_for_the_alarm()


def _wait_for_the_alarm() -> None:
    mutation.signal.setitimer(mutation.signal.ITIMER_REAL, 0.01)
    rng = random.Random(0)
    while True:
        rng.random()


@pytest.mark.nightly
def test_a_million_stores_with_errors_are_read_or_refused() -> None:
    half = IN_ALL // 2
    running = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, str(SCRIPT), str(half), str(10**6 + part * half)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for part in range(2)
    ]
    kinds: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    for process in running:
        found = json.loads(process.communicate(timeout=4 * 3600)[0])
        kinds.update(found["kinds"])
        ends.update(found["ends"])
        wrong += found["wrong"]
    print(f"{dict(kinds)}\n{dict(ends)}")  # noqa: T201  # for the record, with pytest -s
    assert wrong == []
    assert kinds.total() == ends.total() == IN_ALL
    assert min(kinds.values()) > IN_ALL // 200
