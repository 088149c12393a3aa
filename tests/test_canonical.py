"""JSON with one reading: what two readers could take differently is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import _canonical as canonical

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_dumped_is_parsed_again(value: object) -> None:
    data = canonical.dump(value)
    assert canonical.parse(data) == value
    assert canonical.dump(canonical.parse(data)) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 10**5,
        b"[" * 10**5 + b"]" * 10**5,
        b'{"a":' * 10**5 + b"1" + b"}" * 10**5,
        b'{"a":1,"a":1}',
        b'{"b":{"a":1,"a":2}}',
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"1" * 10**6,
        b"-" + b"1" * 5000,
        b"0." + b"1" * 10**6,
        b'"\\ud800"',
        b'"\\uDC00"',
        b'{"\\ud800":1}',
        b"\xff\xfe",
        '{"a":1}'.encode("utf-16"),
        b"\xed\xa0\x80",
    ],
    ids=lambda data: repr(data[:12]),
)
def test_what_has_no_one_reading_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical.parse(data)


@given(st.binary(max_size=60))
def test_no_bytes_escape_as_another_error(data: bytes) -> None:
    try:
        value = canonical.parse(data)
    except ValueError:
        return
    assert json.loads(data) == value


def test_an_escaped_pair_of_surrogates_is_one_letter() -> None:
    assert canonical.parse(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def test_what_is_nested_too_deeply_has_no_spelling() -> None:
    deep: list = []
    for _ in range(10**5):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        canonical.dump(deep)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"", 0),
        (b"a", 0),
        (b"\n", 1),
        (b"a\nb", 2),
        (b"a\nb\n", 4),
        (b"a\nb\0\n", 2),
        (b"{}\0{}\n", 6),  # two lines, and the end of the first was altered
        (b"a\nb\nc\0", 4),
        (b"\0\n", 0),
        (b"a\0\nb\n", 5),  # not the last line, so no crash: whoever reads it will refuse it
    ],
)
def test_only_the_last_line_can_be_unfinished(data: bytes, size: int) -> None:
    assert canonical.whole(data) == size
