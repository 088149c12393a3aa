"""The journal's lines: a chain that no change goes unnoticed in, but a last line cut short."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import journal
from discreet.curator.journal import Header
from discreet.errors import CorruptFileError, FileVersionError, StateFileError

HEADER = Header(generation=3, snapshot="ab" * 32, ledger="cd" * 32)
ENTRIES = [{"learn": "a-1", "noise": {"shape": [1], "int64": "AAAAAAAAAAA="}}, {}, {"open": 2.5}]


def written(entries: list[dict]) -> bytes:
    lines, chain = [HEADER.line()], HEADER.chain
    for entry in entries:
        line, chain = journal.record(chain, entry)
        lines.append(line)
    return b"".join(lines)


def test_records_survive_exactly() -> None:
    data = written(ENTRIES)
    found = journal.parse(data)
    assert (found.header, found.records, found.size) == (HEADER, ENTRIES, len(data))
    assert journal.parse(HEADER.line()).records == []


def test_the_chain_can_be_recomputed_from_its_description() -> None:
    header, *lines = written(ENTRIES).splitlines()
    facts = json.loads(header)
    chain = facts.pop("chain")
    assert facts.pop("format") == "discreet-journal"
    assert facts == {"version": 1, "generation": 3, "snapshot": "ab" * 32, "ledger": "cd" * 32}
    for line in lines:
        found = json.loads(line)
        entry = json.dumps(found["entry"], sort_keys=True, separators=(",", ":"))
        chain = hashlib.sha256(f"{chain}\n{entry}".encode()).hexdigest()
        assert found["chain"] == chain
    assert journal.parse(written(ENTRIES)).chain == chain


@given(
    st.lists(
        st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
            st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
        ),
        max_size=5,
    )
)
def test_any_record_survives(entries: list[dict]) -> None:
    assert journal.parse(written(entries)).records == entries


def test_every_torn_length_of_the_last_line_is_dropped() -> None:
    data = written(ENTRIES)
    last = data.rindex(b"\n", 0, -1) + 1
    for size in range(last, len(data)):
        found = journal.parse(data[:size])
        assert (found.records, found.size) == (ENTRIES[:-1], last)


def test_every_flipped_byte_is_refused_or_part_of_a_torn_line() -> None:
    data = written(ENTRIES)
    last = data.rindex(b"\n", 0, -1) + 1
    dropped = 0
    for place in range(len(data)):
        for mask in (1, 2, 4, 128, data[place]):
            altered = bytearray(data)
            altered[place] ^= mask
            try:
                found = journal.parse(bytes(altered))
            except StateFileError:
                continue
            dropped += 1
            assert place >= last
            # Without its end the line was never finished; zeros are blocks that never arrived.
            assert place == len(data) - 1 or altered[place] == 0
            assert found.records == ENTRIES[:-1]
    assert dropped


def test_lines_left_out_swapped_or_added_are_refused() -> None:
    header, *lines = written(ENTRIES).splitlines(keepends=True)
    for wrong in (
        [header, *lines[1:]],
        [header, lines[1], lines[0], lines[2]],
        [header, *lines, lines[2]],
        [header, lines[0], *lines],
        lines,
        [header, header],
        [header, b"\n"],
        [header.replace(b"3", b"4", 1), *lines],
    ):
        with pytest.raises(CorruptFileError, match=r"path: has a journal .* line \d"):
            journal.parse(b"".join(wrong))


def test_a_valid_chain_over_something_else_is_refused() -> None:
    for content in (b"[]", b'{"a":1,"a":2}', b'{"a":NaN}', b"1}{", b'{"a":' * 10**5):
        chain = hashlib.sha256(HEADER.chain.encode() + b"\n" + content).hexdigest()
        line = b'{"chain":"%s","entry":%s}\n' % (chain.encode(), content)
        with pytest.raises(CorruptFileError, match="line 2"):
            journal.parse(HEADER.line() + line)


def test_a_journal_from_the_future_says_so() -> None:
    with pytest.raises(FileVersionError, match="journal of format version 2"):
        journal.parse(HEADER.line().replace(b'"version":1', b'"version":2'))


@pytest.mark.parametrize(
    "change",
    [{"generation": True}, {"generation": "3"}, {"snapshot": None}, {"ledger": 1}, {"more": 1}],
)
def test_a_header_with_other_facts_is_refused(change: dict) -> None:
    header = json.dumps({**json.loads(HEADER.line()), **change}).encode() + b"\n"
    with pytest.raises(CorruptFileError, match="line 1"):
        journal.parse(header)


@given(st.binary(max_size=200))
def test_no_bytes_escape_as_another_error(data: bytes) -> None:
    with pytest.raises(StateFileError):
        journal.parse(data)
    try:
        found = journal.parse(HEADER.line() + data)
    except StateFileError:
        return
    assert found.records == []
