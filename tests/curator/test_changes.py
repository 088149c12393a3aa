"""The codec between memory and bytes: seals, heads and arrays of every kind."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import LinUCB, Problem
from discreet.curator import _arrays, _stored
from discreet.curator import _changes as changes
from discreet.curator._changes import Closing, Opening, Records, Row
from discreet.curator._storage import everything
from discreet.curator.store import Item
from discreet.errors import CorruptFileError, FileVersionError, StateFileError
from helpers import TARGET, played

NAME = "0123456789abcdef" * 2
CODEC = Records(NAME)


# Seals


@given(st.integers(0, 5), st.integers(0, 2**62), st.binary(max_size=200))
def test_what_is_sealed_is_found_again(kind: int, number: int, contents: bytes) -> None:
    item, seal = CODEC.seal(kind, number, contents)
    assert item[:2] == (kind, number)
    assert CODEC.unseal(item) == (contents, seal)
    assert Records(NAME).seal(kind, number, contents) == (item, seal)


@given(st.binary(min_size=1, max_size=40), st.data())
def test_a_seal_finds_every_flipped_bit(contents: bytes, data: st.DataObject) -> None:
    (kind, number, value), _ = CODEC.seal(3, 7, contents)
    place = data.draw(st.integers(0, 8 * len(value) - 1))
    altered = bytearray(value)
    altered[place // 8] ^= 1 << place % 8
    with pytest.raises(ValueError, match="a seal is broken"):
        CODEC.unseal((kind, number, bytes(altered)))


@pytest.mark.parametrize("change", [(4, 7), (3, 8), (2, 7), (3, -7)])
def test_a_seal_covers_where_an_item_belongs(change: tuple[int, int]) -> None:
    item, _ = CODEC.seal(3, 7, b"contents")
    with pytest.raises(ValueError, match="a seal is broken"):
        CODEC.unseal((*change, item[2]))
    with pytest.raises(ValueError, match="a seal is broken"):
        Records(NAME[::-1]).unseal(item)


@pytest.mark.parametrize("value", [b"", b"short", "text" * 10, None, 7, bytearray(40)])
def test_what_was_never_sealed_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="no seal"):
        CODEC.unseal((3, 7, value))  # type: ignore[arg-type]


# Items of a whole learner


@pytest.fixture
def items(problem: Problem) -> list[Item]:
    """All items of a learner with rows of its own, decisions that wait and two sessions."""
    learner = played(LinUCB(problem, horizon=60, privacy=TARGET), 5)
    learner.choose(np.eye(3))
    curator = learner._curator
    codec = curator._storage.records
    held = curator._held
    held.sessions, held.first = [(0, "first")], 4
    found, head = everything(codec, curator._document(), held, held.all_sessions())
    batch = [Opening(6, np.array([0.5, 0.0, 0.0]), 0), Closing(5)]
    puts, drops, _ = codec.encoded(head, batch, held)
    by_key = {item[:2]: item for item in [*found, *puts]}
    for key in drops:
        del by_key[key]
    return list(by_key.values())


def test_items_in_any_order_are_read_the_same(items: list[Item]) -> None:
    stored = _stored.read(items)
    again = _stored.read(reversed(items))
    for name in ("document", "head", "rows", "waiting", "sessions"):
        assert getattr(again, name) == getattr(stored, name)
    assert (stored.head.rounds, stored.head.rows, stored.head.waiting) == (7, 5, 1)
    assert list(stored.waiting) == [6]
    assert [first for first, _ in stored.sessions] == [0, 4]
    np.testing.assert_array_equal(_stored.action_of(stored.waiting[6], 3), [0.5, 0, 0])


def test_an_item_too_few_too_many_or_twice_is_found_out(items: list[Item]) -> None:
    for place in range(len(items)):
        with pytest.raises(CorruptFileError, match="path: was truncated or altered"):
            _stored.read(items[:place] + items[place + 1 :])
        with pytest.raises(CorruptFileError):
            _stored.read([*items, items[place]])
    with pytest.raises(CorruptFileError):
        _stored.read([*items, (6, 0, items[0][2])])
    with pytest.raises(CorruptFileError):
        _stored.read([])


@given(st.binary(max_size=60), st.integers(0, 5))
def test_no_bytes_escape_as_another_error(data: bytes, kind: int) -> None:
    for value in (data, CODEC.seal(kind, 0, data)[0][2], Records("").seal(kind, 0, data)[0][2]):
        with pytest.raises(StateFileError):
            _stored.read([(kind, 0, value)])


@pytest.mark.parametrize(
    "body",
    [
        "[" * 10**5,
        "[" * 10**5 + "]" * 10**5,
        '{"a":' * 500 + "1" + "}" * 500,
        '{"format":"discreet-learner","format":"discreet-learner"}',
        f'{{"a":1{"0" * 5000}}}',
        '{"a":"\\ud800"}',
        '{"a":NaN}',
        '{"a":1e999}',
        "null",
        "{}",
        '{"format":"something else","version":1}',
        '{"format":"discreet-learner"}',
        '{"format":"discreet-learner","version":1,"learner":7}',
        '{"format":"discreet-learner","version":1,"learner":"\u00e9"}',
    ],
    ids=lambda body: body[:24],
)
def test_absurd_documents_are_corrupt(body: str, items: list[Item]) -> None:
    first = Records("").seal(changes.LEARNER, 0, body.encode("utf-8", "surrogatepass"))[0]
    others = [item for item in items if item[0] != changes.LEARNER]
    with pytest.raises(CorruptFileError, match="path: "):
        _stored.read([first, *others])


def test_a_version_of_the_future_says_so(items: list[Item]) -> None:
    others = [item for item in items if item[0] != changes.LEARNER]
    for version, error in (
        ("7", FileVersionError),
        *[(wrong, CorruptFileError) for wrong in ("true", "0", "-1", "1.0", '"1"', "null")],
    ):
        body = f'{{"format":"discreet-learner","version":{version}}}'.encode()
        with pytest.raises(error, match="path: "):
            _stored.read([Records("").seal(changes.LEARNER, 0, body)[0], *others])


def test_a_head_that_counts_something_else_is_found_out(items: list[Item]) -> None:
    stored = _stored.read(items)
    codec = Records(stored.document["learner"])
    others = [item for item in items if item[0] != changes.HEAD]
    assert _stored.read([*others, codec.head(stored.head)]).head == stored.head
    for name in ("waiting", "decisions", "since", "sessions", "sums", "rows"):
        other = replace(stored.head, **{name: getattr(stored.head, name) + 1})
        with pytest.raises(CorruptFileError):
            _stored.read([*others, codec.head(other)])
    body = json.dumps({**vars(stored.head), "more": 1}).encode()
    with pytest.raises(CorruptFileError):
        _stored.read([*others, codec.seal(changes.HEAD, 0, body)[0]])


# Rows


@given(
    st.integers(0, 2**40),
    st.floats(-1, 1),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.integers(0, 3),
    st.sampled_from([np.float64, np.int64]),
)
def test_a_row_is_found_again_to_the_bit(
    decision: int, reward: float, action: list[float], draws: int, dtype: type
) -> None:
    noise = np.arange(9 * draws, dtype=dtype).reshape(draws, 9) - 7
    change = Row(decision, np.array(action), 12, reward, noise)
    item, _ = CODEC.row(change)
    found = _stored.row_of(12, CODEC.unseal(item)[0], 3, np.empty((0, 9), dtype))
    assert (found.number, found.row, found.reward) == (decision, 12, reward)
    np.testing.assert_array_equal(found.action, action)
    np.testing.assert_array_equal(found.noise, noise)
    assert found.noise is not None
    assert (found.noise.dtype, found.noise.shape) == (dtype, (draws, 9))


@pytest.mark.parametrize("size", [0, 1, 15, 16, 39, 41, 40 + 8, 40 + 71, 40 + 73])
def test_a_row_of_another_length_is_malformed(size: int) -> None:
    whole = bytes(size)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one it is does not matter
        _stored.row_of(1, whole, 3, np.empty((0, 9)))
    assert isinstance(caught.value, changes.MALFORMED)


@pytest.mark.parametrize("size", [0, 8, 23, 25, 32])
def test_an_action_of_another_length_is_malformed(size: int) -> None:
    with pytest.raises(ValueError, match="an action of another length"):
        _stored.action_of(bytes(size), 3)


# Arrays


def again(array: np.ndarray) -> np.ndarray:
    return _arrays.decode(json.loads(json.dumps(_arrays.encode(array))))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_whole_numbers_survive_exactly(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64).reshape(-1, 1)
    found = again(array)
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (np.int64, array.shape)
    assert found.flags.writeable


@given(st.lists(st.integers(-(10**100), 10**100), max_size=20))
def test_integers_of_any_size_survive_exactly(values: list[int]) -> None:
    array = np.array([*values, 0], dtype=object).reshape(1, -1)
    found = again(array)
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()
    assert all(type(number) is int for number in found.ravel())


def test_small_integers_stay_python_integers() -> None:
    found = again(np.array([1, -2, 2**70], dtype=object))
    assert found.dtype == object
    assert _arrays.encode(np.array([255, -16], dtype=object))["integers"] == ["ff", "-10"]


@pytest.mark.parametrize("dtype", [np.uint64, np.complex128, np.bool_, "U3"])
def test_arrays_of_other_kinds_are_not_stored(dtype: object) -> None:
    with pytest.raises(KeyError):
        _arrays.encode(np.zeros(2, dtype=dtype))


@pytest.mark.parametrize("kind", ["float64", "int64", "integers"])
@pytest.mark.parametrize(
    "shape",
    [
        [10**30],
        [2**31, 2**31, 0],
        [-1],
        [-1, -1],
        [1.0],
        [True],
        ["1"],
        [[1]],
        1,
        None,
        "1",
        {},
        [1] * 9,
        [2],
        [0],
        [10**9, 10**9],
    ],
    ids=str,
)
def test_a_shape_that_does_not_fit_is_refused_before_anything_is_allocated(
    kind: str, shape: object
) -> None:
    number = ["1"] if kind == "integers" else "AAAAAAAAAAA="
    assert _arrays.decode({"shape": [1], kind: number}).shape == (1,)
    assert _arrays.decode({"shape": [], kind: number}).shape == ()
    with pytest.raises(ValueError, match=r"shape"):
        _arrays.decode({"shape": shape, kind: number})


@pytest.mark.parametrize(
    "number",
    ["", "-", "-0", "01", "+1", "0x1", "1_0", " 1", "1 ", "FF", "1.0", "g", 1, None, "1\n"],
)
def test_an_integer_has_one_spelling(number: object) -> None:
    with pytest.raises(ValueError, match="not integers"):
        _arrays.decode({"shape": [1], "integers": [number]})


@pytest.mark.parametrize(
    "data", ["AAAAAAAAAAA", "AAAAAAAAAAAA", "AAAAAAAAAA==", "AAAAAAAAAA!=", 1, None, []]
)
def test_what_is_not_eight_bytes_in_base64_is_refused(data: object) -> None:
    for kind in ("float64", "int64"):
        with pytest.raises(ValueError, match=r"shape|base64"):
            _arrays.decode({"shape": [1], kind: data})


@pytest.mark.parametrize(
    "entry",
    [
        None,
        1,
        [],
        {},
        {"shape": [1]},
        {"float64": ""},
        "float64",
        {"shape": [1], "float32": "AAAA"},
        {"float64": "", "int64": ""},
    ],
)
def test_what_is_no_array_is_malformed(entry: object) -> None:
    with pytest.raises((ValueError, KeyError)) as caught:
        _arrays.decode(entry)
    assert isinstance(caught.value, changes.MALFORMED)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        again(np.array([1.0, value]))
