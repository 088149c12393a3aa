"""Save files from anywhere: bytes without a file, and arrays of every kind."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import storage
from discreet.errors import CorruptFileError, FileVersionError, StateFileError

BODY = {"rows": 5, "sums": [1.5, "a"]}


def forged(body: str) -> bytes:
    """A file with a valid digest of what Python makes of a body."""
    digest = "0" * 64
    return f'{{"format":"discreet-learner","version":1,"sha256":"{digest}","body":{body}}}'.encode()


def test_a_file_is_what_is_rendered(tmp_path: Path) -> None:
    data = storage.render(BODY)
    (tmp_path / "file").write_bytes(data)
    assert storage.parse(data) == storage.read(tmp_path / "file") == BODY
    assert json.loads(data)["sha256"] == storage.digest(BODY)


@given(st.binary(max_size=100))
def test_no_bytes_escape_as_another_error(data: bytes) -> None:
    for content in (data, forged("0").replace(b"0}", data + b"}")):
        with pytest.raises(StateFileError):
            storage.parse(content)


@pytest.mark.parametrize(
    "body",
    [
        "[" * 10**5,
        "[" * 10**5 + "]" * 10**5,
        '{"a":' * 500 + "1" + "}" * 500,
        '{"a":1,"a":1}',
        f'{{"a":1{"0" * 5000}}}',
        f'{{"a":-1{"0" * 5000}}}',
        '{"a":"\\ud800"}',
        '{"\\udfff":1}',
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":1e999}',
        "null",
        "{}",
    ],
    ids=lambda body: body[:12],
)
def test_absurd_bodies_are_corrupt(body: str) -> None:
    with pytest.raises(CorruptFileError, match="path: "):
        storage.parse(forged(body))


def test_a_version_that_is_not_one_is_corrupt() -> None:
    whole = storage.render(BODY).decode()
    for version in ("true", "0", "-1", "1.0", '"1"', "null", "[]"):
        with pytest.raises(CorruptFileError, match="no valid format version"):
            storage.parse(whole.replace('"version": 1', f'"version": {version}').encode())
    with pytest.raises(FileVersionError, match="format version 7"):
        storage.parse(whole.replace('"version": 1', '"version": 7').encode())


def again(array: np.ndarray, kind: str) -> np.ndarray:
    return storage.decode(json.loads(json.dumps(storage.encode(array))), kind)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_whole_numbers_survive_exactly(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64).reshape(-1, 1)
    found = again(array, storage.WHOLE)
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (np.int64, array.shape)
    assert found.flags.writeable


@given(st.lists(st.integers(-(10**100), 10**100), max_size=20))
def test_integers_of_any_size_survive_exactly(values: list[int]) -> None:
    array = np.array([*values, 0], dtype=object).reshape(1, -1)
    found = again(array, storage.INTEGERS)
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()
    assert all(type(number) is int for number in found.ravel())


def test_small_integers_stay_python_integers() -> None:
    found = again(np.array([1, -2, 2**70], dtype=object), storage.INTEGERS)
    assert found.dtype == object
    assert storage.encode(np.array([255, -16], dtype=object))["integers"] == ["ff", "-10"]


def test_an_array_is_read_as_the_kind_that_it_should_be() -> None:
    for array in (np.ones(2), np.ones(2, dtype=np.int64), np.ones(2, dtype=object)):
        entry = storage.encode(array)
        kinds = {storage.FLOATS, storage.WHOLE, storage.INTEGERS}
        (own,) = kinds & entry.keys()
        storage.decode(entry, own)
        for other in kinds - {own}:
            with pytest.raises(ValueError, match="not an array of"):
                storage.decode(entry, other)


@pytest.mark.parametrize("dtype", [np.uint64, np.complex128, np.bool_, "U3"])
def test_arrays_of_other_kinds_are_not_stored(dtype: object) -> None:
    with pytest.raises(KeyError):
        storage.encode(np.zeros(2, dtype=dtype))


@pytest.mark.parametrize("kind", [storage.FLOATS, storage.WHOLE, storage.INTEGERS])
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
    number = ["1"] if kind == storage.INTEGERS else "AAAAAAAAAAA="
    assert storage.decode({"shape": [1], kind: number}, kind).shape == (1,)
    assert storage.decode({"shape": [], kind: number}, kind).shape == ()
    with pytest.raises(ValueError, match=r"shape"):
        storage.decode({"shape": shape, kind: number}, kind)


@pytest.mark.parametrize(
    "number",
    ["", "-", "-0", "01", "+1", "0x1", "1_0", " 1", "1 ", "FF", "1.0", "g", 1, None, "1\n"],
)
def test_an_integer_has_one_spelling(number: object) -> None:
    with pytest.raises(ValueError, match="not integers"):
        storage.decode({"shape": [1], storage.INTEGERS: [number]}, storage.INTEGERS)


@pytest.mark.parametrize(
    "data", ["AAAAAAAAAAA", "AAAAAAAAAAAA", "AAAAAAAAAA==", "AAAAAAAAAA!=", 1, None, []]
)
def test_what_is_not_eight_bytes_in_base64_is_refused(data: object) -> None:
    for kind in (storage.FLOATS, storage.WHOLE):
        with pytest.raises(ValueError, match=r"shape|base64"):
            storage.decode({"shape": [1], kind: data}, kind)


@pytest.mark.parametrize("entry", [None, 1, [], {}, {"shape": [1]}, {"float64": ""}, "float64"])
def test_what_is_no_array_is_a_value_error(entry: object) -> None:
    with pytest.raises(ValueError, match="not an array"):
        storage.decode(entry)
