"""The ledger: it grows by one entry a release, and no other change goes unnoticed."""

import hashlib
import json
import sys
import threading
from types import SimpleNamespace

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from hypothesis import given
from hypothesis import strategies as st

from discreet import LinUCB, Problem, privacy_card, variants
from discreet import _canonical as canonical
from discreet.curator import growing_ledger
from discreet.curator.growing_ledger import GrowingLedger
from discreet.errors import (
    BrokenLedgerError,
    FileVersionError,
    ForkedStateError,
    ParameterError,
    RewoundStateError,
    StateFileError,
)
from discreet.release import ledger as ledger_module
from discreet.release.ledger import Entry, Ledger, fingerprint
from helpers import TARGET, Interrupting, played, sha

CARD = {"variant": "tight", "epsilon": 1.0, "delta": 1e-6, "mu": 0.25}
NAME = "0123456789abcdef" * 2


def filled(releases: int = 3, card: dict | None = None) -> GrowingLedger:
    ledger = GrowingLedger(CARD if card is None else card, learner=NAME)
    for number in range(1, releases + 1):
        ledger.append(number, 10 * number, sha(number))
    return ledger


def text(ledger: Ledger) -> bytes:
    return b"".join(ledger.lines())


def test_a_ledger_survives_its_file() -> None:
    ledger = filled(5)
    again = Ledger.parse(text(ledger))
    assert list(again.entries) == list(ledger.entries)
    assert (again.learner, again.card, again.head) == (ledger.learner, CARD, ledger.head)
    assert (len(again), again.rows, again.torn) == (5, 50, 0)
    assert text(again) == text(ledger)
    assert Ledger.parse(text(ledger).decode()).head == ledger.head


def test_the_chain_can_be_recomputed_from_its_description() -> None:
    header, first, second = text(filled(2)).splitlines()
    facts = json.loads(header)
    chain = facts.pop("chain")
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    assert chain == hashlib.sha256(canonical.encode()).hexdigest()
    for line in (first, second):
        facts = json.loads(line)
        found = facts.pop("chain")
        canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        chain = hashlib.sha256(f"{chain}\n{canonical}".encode()).hexdigest()
        assert found == chain


def test_a_learner_gets_an_id_of_its_own() -> None:
    one, two = Ledger(CARD), Ledger(CARD)
    assert one.learner != two.learner
    assert len(bytes.fromhex(one.learner)) == 16
    assert one.root != two.root


def test_entries_are_a_sequence() -> None:
    entries = filled(5).entries
    assert entries[-1] == entries[4]
    assert [entry.number for entry in entries[1:4]] == [2, 3, 4]
    assert entries[0] == Entry(number=1, rows=10, sha256=sha(1), chain=entries[0].chain)
    assert next(reversed(entries)).number == 5
    with pytest.raises(IndexError):
        entries[5]


def test_an_entry_takes_72_bytes() -> None:
    ledger = filled(100)
    assert len(ledger._store._packed) + len(ledger._store._chains) == 7200


@pytest.mark.parametrize(
    ("entry", "parameter"),
    [
        ((3, 20, sha(3)), "number"),
        ((5, 20, sha(3)), "number"),
        ((4, 29, sha(3)), "rows"),
        ((4, -1, sha(3)), "rows"),
        ((4, 2**62, sha(3)), "rows"),
        ((4, 30, "abc"), "sha256"),
        ((4, 30, sha(3).upper()), "sha256"),
        ((4, 30, None), "sha256"),
    ],
)
def test_an_entry_out_of_order_is_refused(entry: tuple, parameter: str) -> None:
    ledger = filled(3)
    before = ledger.head
    with pytest.raises(ParameterError) as caught:
        ledger.append(*entry)
    assert caught.value.parameter == parameter
    assert (len(ledger), ledger.head) == (3, before)


def test_an_interrupt_anywhere_leaves_an_entry_or_nothing() -> None:
    whole = [filled(2), filled(3)]
    for at in range(1, 10**4):
        ledger = filled(2)
        try:
            with Interrupting(at, [ledger_module, growing_ledger, canonical]):
                ledger.append(3, 30, sha(3))
        except KeyboardInterrupt:
            assert text(ledger) in map(text, whole)
            assert ledger.head in {each.head for each in whole}
            assert Ledger.parse(text(ledger)).head == ledger.head
        else:
            break
    assert at > 50


def test_threads_that_read_the_chain_do_not_spoil_it() -> None:
    # Without care about places nearly every one of these trials leaves a chain too long.
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            ledger = filled(0)
            for number in range(1, 51):
                ledger.add(number, 10 * number, sha(number))
            heads: list[str] = []
            readers = [
                threading.Thread(
                    target=lambda heads=heads, ledger=ledger: heads.append(ledger.head)
                )
                for _ in range(4)
            ]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            assert heads == [filled(50).head] * 4
            assert len(ledger._store._chains) == 50 * 32
            assert Ledger.parse(text(ledger)).head == heads[0]
    finally:
        sys.setswitchinterval(before)


def test_what_users_get_does_not_grow_and_cannot_be_added_to() -> None:
    ledger = filled(3)
    view, head = ledger.view(), ledger.head
    assert type(view) is Ledger
    for changing in ("add", "append", "reconcile", "view"):
        assert not hasattr(view, changing)
        assert not hasattr(view.entries, changing)
    assert not [name for name in dir(view.entries) if "add" in name or "append" in name]
    ledger.append(4, 40, sha(4))
    assert (len(view), view.rows, view.head, len(view.entries)) == (3, 30, head, 3)
    assert text(view) == text(filled(3))
    assert (view.learner, view.card, view.root) == (ledger.learner, CARD, ledger.root)
    assert ledger.view().head == ledger.head == filled(4).head
    assert ledger.view().agrees(view) == 3
    for index in (3, -4):
        with pytest.raises(IndexError):
            view.entries[index]


def test_the_card_cannot_be_changed_from_outside() -> None:
    ledger = filled(0)
    ledger.card["epsilon"] = 0.1
    assert ledger.card == CARD


def test_a_learner_shows_a_ledger_that_nobody_can_forge(problem: Problem) -> None:
    learner = played(LinUCB(problem, horizon=40, privacy=TARGET, variant="gaussian"), 3)
    early = learner.ledger
    assert type(early) is Ledger
    played(learner, 2)
    assert (len(early), len(learner.ledger)) == (3, 5)
    assert learner.ledger.holds(learner.release)
    assert not early.holds(learner.release)
    assert early.head == learner.ledger.entries[2].chain


@pytest.mark.parametrize("card", [{"a": np.float64}, {"a": float("nan")}, {"a": "\ud800"}, 3])
def test_a_card_that_is_not_json_is_refused(card: object) -> None:
    with pytest.raises(ParameterError, match="card: is not plain JSON"):
        Ledger(card)


def test_every_torn_length_of_the_last_line_is_dropped_or_refused() -> None:
    whole = text(filled(3))
    last = whole.rindex(b"\n", 0, -1) + 1
    for size in range(last + 1, len(whole)):
        ledger = Ledger.parse(whole[:size], torn="drop")
        assert (len(ledger), ledger.torn) == (2, size - last)
        with pytest.raises(BrokenLedgerError, match="line 4 is not finished") as caught:
            Ledger.parse(whole[:size])
        assert caught.value.line == 4
    assert Ledger.parse(whole[:last]).torn == 0


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_blocks_of_zeros_that_a_crash_leaves_are_a_torn_line(end: bytes) -> None:
    whole = text(filled(3))
    last = whole.rindex(b"\n", 0, -1) + 1
    torn = whole[: last + 20] + b"\0" * 30 + whole[last + 50 : -1] + end
    ledger = Ledger.parse(torn, torn="drop")
    assert (len(ledger), ledger.torn) == (2, len(torn) - last)


def test_a_header_that_is_torn_is_not_a_ledger() -> None:
    header = filled(0).header_line()
    for size in range(len(header)):
        with pytest.raises(BrokenLedgerError, match="line 1"):
            Ledger.parse(header[:size], torn="drop")


def test_every_flipped_byte_is_found() -> None:
    whole = text(filled(3))
    last = whole.rindex(b"\n", 0, -1) + 1
    for place in range(len(whole)):
        for mask in (1, 2, 128, whole[place]):
            altered = bytearray(whole)
            altered[place] ^= mask
            try:
                found = Ledger.parse(bytes(altered), torn="drop")
            except (BrokenLedgerError, FileVersionError):
                continue
            # What is left of the last line may pass for one that was never finished.
            assert place >= last
            assert (len(found), found.torn) == (2, len(whole) - last)


def test_a_line_that_is_left_out_swapped_or_added_is_found() -> None:
    lines = list(filled(4).lines())
    other = list(filled(5).lines())[5]
    for wrong in (
        [*lines[:2], *lines[3:]],
        [lines[0], lines[2], lines[1], *lines[3:]],
        [*lines, lines[4]],
        [*lines[:2], lines[1], *lines[2:]],
        [*list(Ledger({}, learner=NAME).lines()), *lines[1:]],
        [*lines, b"\n"],
        [*lines, b" "],
    ):
        with pytest.raises(BrokenLedgerError):
            Ledger.parse(b"".join(wrong))
    assert len(Ledger.parse(b"".join([*lines, other]))) == 5


def test_the_line_at_fault_is_named() -> None:
    lines = list(filled(4).lines())
    lines[2] = lines[2].replace(b'"rows":20', b'"rows":21')
    with pytest.raises(BrokenLedgerError, match=r"ledger: line 3 was altered.*restore") as caught:
        Ledger.parse(b"".join(lines))
    assert caught.value.line == 3


def test_a_ledger_from_the_future_says_so() -> None:
    header = filled(0).header_line().replace(b'"version":1', b'"version":2')
    with pytest.raises(FileVersionError, match=r"format version 2 .* update discreet"):
        Ledger.parse(header)


@given(st.binary(max_size=200))
def test_no_bytes_escape_as_another_error(data: bytes) -> None:
    with pytest.raises(StateFileError):
        Ledger.parse(data, torn="drop")


@given(st.text(max_size=50), st.integers(0, 400))
def test_no_altered_header_escapes_as_another_error(text_: str, place: int) -> None:
    whole = text(filled(1)).decode()
    altered = whole[:place] + text_ + whole[place:]
    try:
        ledger = Ledger.parse(altered, torn="drop")
    except StateFileError:
        return
    assert list(filled(1).entries)[: len(ledger)] == list(ledger.entries)


def test_a_state_that_fits_its_ledger_is_accepted() -> None:
    ledger = filled(3)
    assert ledger.reconcile(3, 30, sha(3)) is None
    assert filled(0).reconcile(0, 0, None) is None
    assert len(ledger) == 3


def test_one_missing_entry_is_appended_and_has_to_be_written() -> None:
    ledger, whole = filled(3), filled(4)
    entry = ledger.reconcile(4, 40, sha(4))
    assert entry == whole.entries[3]
    assert ledger.head == whole.head


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((2, 20, sha(2)), "3 releases were made and this state knows 2"),
        ((0, 0, None), "3 releases were made and this state knows 0"),
        ((3, 30, sha(4)), "another release 3"),
        ((3, 29, sha(3)), "another release 3"),
    ],
)
def test_a_rewound_state_is_refused(state: tuple, message: str) -> None:
    ledger = filled(3)
    with pytest.raises(RewoundStateError, match=message):
        ledger.reconcile(*state)
    assert len(ledger) == 3


def test_a_head_that_was_kept_elsewhere_must_come_up_in_the_ledger() -> None:
    ledger = filled(3)
    for head in (ledger.root, ledger.head, *(entry.chain for entry in ledger.entries)):
        ledger.require_head(head)
    for head in (filled(4).head, Ledger(CARD).head, "", "0" * 64, None, 3):
        with pytest.raises(RewoundStateError, match="ledger_head: is not in the ledger"):
            ledger.require_head(head)


def test_a_ledger_that_is_far_behind_does_not_belong() -> None:
    with pytest.raises(StateFileError, match="do not belong together") as caught:
        filled(3).reconcile(5, 50, sha(5))
    assert not isinstance(caught.value, RewoundStateError)


def test_the_shorter_of_two_ledgers_may_begin_the_longer() -> None:
    assert filled(3).agrees(filled(7)) == 3
    assert filled(7).agrees(filled(3)) == 3
    assert filled(7).agrees(filled(0)) == 0
    assert filled(4).agrees(filled(4)) == 4


@given(st.integers(0, 20), st.integers(1, 10), st.integers(1, 10))
def test_a_fork_is_found_at_its_first_release(common: int, left: int, right: int) -> None:
    one, two = filled(common), filled(common)
    for number in range(common + 1, common + left + 1):
        one.append(number, 10 * number, sha(number))
    two.append(common + 1, 10 * common + 1, sha(0))
    for number in range(common + 2, common + right + 1):
        two.append(number, 10 * number, sha(number))
    with pytest.raises(ForkedStateError, match=f"another release {common + 1}:") as caught:
        one.agrees(two)
    assert caught.value.number == common + 1


def test_ledgers_of_other_learners_or_cards_are_not_compared() -> None:
    with pytest.raises(ParameterError, match="another learner"):
        filled(3).agrees(Ledger(CARD))
    with pytest.raises(ForkedStateError, match="another privacy card"):
        filled(3).agrees(filled(3, {**CARD, "epsilon": 0.1}))


def test_a_release_is_known_by_its_values() -> None:
    gram, moment = np.eye(2), np.array([0.5, -0.0])
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    mechanism = variants.calibrate("tight", problem, horizon=64, privacy=TARGET)
    release = SimpleNamespace(number=1, rows=4, gram=gram, moment=moment, mechanism=mechanism)
    ledger = GrowingLedger(privacy_card(mechanism))
    ledger.append(1, 4, fingerprint(release))
    assert ledger.holds(release)
    for change in (
        {"number": 2},
        {"number": 0},
        {"rows": 5},
        {"gram": np.nextafter(gram, 2)},
        {"moment": np.array([0.5, 0.0])},
    ):
        assert not ledger.holds(SimpleNamespace(**{**vars(release), **change}))


def test_all_releases_together_are_one_event() -> None:
    event = filled(5).dp_event()
    assert event == dp_accounting.GaussianDpEvent(noise_multiplier=4.0)
    accountant = rdp.RdpAccountant(orders=[2.0])
    accountant.compose(event)
    # The Renyi divergence of order a is a mu^2/2 = a times the card's zCDP.
    assert accountant._rdp[0] == pytest.approx(2 * 0.25**2 / 2)


def test_nothing_released_and_nothing_promised_are_events_too() -> None:
    assert filled(0).dp_event() == dp_accounting.NoOpDpEvent()
    nothing = filled(1, {**CARD, "epsilon": None, "mu": None})
    assert nothing.dp_event() == dp_accounting.NonPrivateDpEvent()
    with pytest.raises(ParameterError, match="Wishart noise, which no event describes"):
        filled(1, {**CARD, "mu": None}).dp_event()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ParameterError, match="pip install dp-accounting"):
        filled(1).dp_event()


def test_it_prints_as_a_short_table() -> None:
    ledger = filled(10)
    assert repr(ledger) == f"Ledger(learner={NAME!r}, releases=10, rows=100)"
    lines = str(ledger).splitlines()
    assert lines[0] == f"learner {NAME}: 10 releases, 100 rows"
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3", "...", "8", "9", "10"]
    for releases in range(7):
        assert len(str(filled(releases)).splitlines()) == 1 + releases
