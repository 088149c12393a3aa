"""Files with errors in them are refused, and in no other way than by an error of this package."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import mutation
import pytest

from discreet.curator import journal, storage
from discreet.release.ledger import Ledger

SCRIPT = Path(mutation.__file__)
IN_ALL = 1_000_000


def test_a_few_thousand_files_with_errors_are_read_or_refused() -> None:
    found = mutation.play(3000, first=0)
    assert found.wrong == []
    assert found.ends.total() == 3000
    assert len(found.kinds) == 12
    # Some are harmless, and some with a digest that fits get past the first check.
    assert found.ends["read"] > 50
    assert found.ends["CorruptFileError"] > 1000
    assert found.ends["BrokenLedgerError"] > 100


def test_a_case_is_the_same_every_time() -> None:
    one, other = mutation.specimens(), mutation.specimens()
    assert one == other
    for number in range(50):
        assert mutation.case(number, one) == mutation.case(number, other)


def test_files_sealed_without_a_change_are_read() -> None:
    for files in mutation.specimens():
        snapshot = mutation.sealed_snapshot(mutation._body(files.snapshot))
        assert storage.parse(snapshot) == storage.parse(files.snapshot)
        header = files.journal[: files.journal.index(b"\n")]
        entries = [mutation.spelled(one) for one in json.loads(mutation._entries(files.journal))]
        assert mutation.sealed_journal(header, entries) == files.journal
        assert len(journal.parse(files.journal).records) > 3
        facts, *lines = json.loads(mutation._unchained(files.ledger))
        assert mutation.sealed_ledger(mutation.spelled(facts), lines) == files.ledger
        assert mutation.read(files) == "read"
    assert max(len(Ledger.parse(files.ledger)) for files in mutation.specimens()) > 5


@pytest.mark.parametrize("wrong", [RuntimeWarning("a"), MemoryError(), RecursionError(), OSError()])
def test_another_exception_is_noticed(
    wrong: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise wrong

    monkeypatch.setattr(mutation, "read", failing)
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
def test_a_million_files_with_errors_are_read_or_refused() -> None:
    half = IN_ALL // 2
    running = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, str(SCRIPT), str(half), str(10**6 + part * half)],
            stdout=subprocess.PIPE,
            text=True,
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
