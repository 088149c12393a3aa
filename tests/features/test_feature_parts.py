"""What each part makes of a value, against numbers worked out by hand."""

import hashlib
import math

import numpy as np
import pytest

from discreet import features
from discreet.features import FeatureMap

NAN = float("nan")
PINNED_BUCKETS, PINNED_SIGNS = [373, 265, 935], [-1, -1, 1]
PINNED_CROSSED, PINNED_CROSSED_SIGNS = [724, 664, 597], [1, 1, -1]
PINNED_FREQUENCIES = [-0.69020556181, 0.28442308355, -0.16626645956, 1.63698384694]
PINNED_PROJECTION = [-0.53304840018, -0.42699324028]


def single(part: object, context: object = None, action: object = "x") -> np.ndarray:
    """The row of a map with one part, without the margin for rounding."""
    (row,) = FeatureMap([part])(context, [action])
    return row / (1 - 2**-36)


def what_happened(part: object, context: object = None, action: object = "x") -> set[str]:
    counts = FeatureMap([part]).explain(context, [action]).counts
    return {what for found in counts.values() for what, number in found.items() if number}


@pytest.mark.parametrize(
    ("value", "expected", "happened"),
    [
        (20, -1.0, set()),
        (40, 1.0, set()),
        (25.0, -0.5, set()),
        (np.float32(30), 0.0, set()),
        (np.int8(35), 0.5, set()),
        (True, -1.0, {"clipped"}),
        (19.999, -1.0, {"clipped"}),
        (1e308, 1.0, {"clipped"}),
        (5e-324, -1.0, {"clipped"}),
        (None, 0.0, {"missing"}),
        (NAN, 0.0, {"missing"}),
        (math.inf, 0.0, {"missing"}),
        (10**400, 0.0, {"missing"}),
        ("30", 0.0, {"unknown"}),
        ([30], 0.0, {"unknown"}),
        ({"x": 30}, 0.0, {"unknown"}),
        (np.datetime64(30, "s"), 0.0, {"unknown"}),
        (np.timedelta64(30, "s"), 0.0, {"unknown"}),
    ],
)
def test_a_number_goes_from_minus_one_to_one(
    value: object, expected: float, happened: set[str]
) -> None:
    part = features.numeric("context.age", 20, 40)
    assert single(part, {"age": value}) == pytest.approx([expected], abs=1e-15)
    assert what_happened(part, {"age": value}) == happened


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, [1, 0, 0, 0]),
        (1, [0.5, 0.5, 0, 0]),
        (2, [0, 1, 0, 0]),
        (3, [0, 0.75, 0.25, 0]),
        (6, [0, 0, 1, 0]),
        (9, [0, 0, 0.25, 0.75]),
        (10, [0, 0, 0, 1]),
        (11, [0, 0, 0, 1]),
        (-1, [1, 0, 0, 0]),
        (None, [0, 0, 0, 0]),
    ],
)
def test_a_number_is_divided_between_the_knots_around_it(
    value: object, expected: list[float]
) -> None:
    part = features.numeric("context.v", 0, 10, knots=[2, 6])
    assert single(part, {"v": value}) == pytest.approx(expected, abs=1e-15)


def test_a_number_of_knots_is_evenly_spaced() -> None:
    counted = features.numeric("context.v", -1, 1, knots=5)
    assert counted == features.numeric("context.v", -1, 1, knots=[-0.5, 0, 0.5])
    assert FeatureMap([counted]).names == tuple(
        f"context.v@{knot}" for knot in ("-1", "-0.5", "0", "0.5", "1")
    )
    assert FeatureMap([features.numeric("context.v", 0, 1, knots=2)]).dim == 2


def test_a_category_has_a_coordinate_for_each_value() -> None:
    part = features.category("context.v", ["red", 3, True])
    assert single(part, {"v": "red"}) == pytest.approx([1, 0, 0])
    for same in (3, 3.0, "3", np.int64(3), np.float32(3)):
        assert single(part, {"v": same}) == pytest.approx([0, 1, 0])
    for same in (True, np.bool_(True), "true"):  # noqa: FBT003
        assert single(part, {"v": same}) == pytest.approx([0, 0, 1])
    half = math.sqrt(0.5)
    assert single(part, {"v": ["red", 3]}) == pytest.approx([half, half, 0])
    assert single(part, {"v": {"red", "green"}}) == pytest.approx([1, 0, 0])
    assert what_happened(part, {"v": {"red", "green"}}) == {"unknown"}
    assert single(part, {"v": ["red", "red", 3]}) == pytest.approx(
        [2 / math.sqrt(5), 1 / math.sqrt(5), 0]
    )
    for nothing in (None, NAN, [], ""):
        assert single(part, {"v": nothing}) == pytest.approx([0, 0, 0])
    assert what_happened(part, {"v": 1}) == {"unknown"}  # 1 is not true
    assert what_happened(part, {"v": None}) == {"missing"}
    assert what_happened(part, {"v": []}) == {"missing"}
    assert what_happened(part, {"v": b"red"}) == {"unknown"}


def test_other_values_may_share_a_coordinate() -> None:
    part = features.category("context.v", ["red"], other=True)
    assert single(part, {"v": "green"}) == pytest.approx([0, 1])
    assert single(part, {"v": "red"}) == pytest.approx([1, 0])
    assert single(part, {"v": None}) == pytest.approx([0, 0])
    assert what_happened(part, {"v": "green"}) == set()
    assert FeatureMap([part]).names == ("context.v=red", "context.v=(other)")


def test_an_id_is_a_category_of_the_action() -> None:
    part = features.action_id(["a", 7])
    assert part == features.category("action.id", ["a", "7"])
    found = FeatureMap([part])(None, ["a", 7, {"id": "7", "features": {"id": "a"}}, "b", {"v": 1}])
    assert found / (1 - 2**-36) == pytest.approx(np.array([[1, 0], [0, 1], [0, 1], [0, 0], [0, 0]]))


def expected_place(path: str, token: str, buckets: int) -> tuple[int, int]:
    """The published rule, written out again."""
    key = hashlib.blake2b(f"discreet hashed {path}".encode(), digest_size=32).digest()
    data = token.encode("utf-8", "surrogatepass")
    word = int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "big")
    return (word >> 1) % buckets, 1 if word % 2 else -1


def counted(path: str, tokens: list[str], buckets: int) -> np.ndarray:
    found = np.zeros(buckets)
    for token in tokens:
        bucket, sign = expected_place(path, token, buckets)
        found[bucket] += sign
    length = np.linalg.norm(found)
    return found / length if length else found


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        ("news", ["news"]),
        (["a", "b", "b"], ["a", "b", "b"]),
        ({"é", "\ud800"}, ["é", "\ud800"]),
        (np.array(["a", "b"]), ["a", "b"]),
        (3.0, ["3"]),
        (-0.0, ["0"]),
        (0.1, ["0.1"]),
        (2**60 + 1, ["1152921504606846977"]),
        (1e300, ["1e+300"]),
        (10**300, ["1" + "0" * 300]),
        (False, ["false"]),
        ("", [""]),
        ({"k": 1, "deep": {"l": ["p", "q"], "m": None}}, ["k=1", "deep.l=p", "deep.l=q"]),
        ([{"k": 1}, {"k": 2}], ["k=1", "k=2"]),
        ([], []),
        ([None, NAN], []),
    ],
)
def test_hashing_follows_the_published_rule(value: object, tokens: list[str]) -> None:
    part = features.hashed("context.v", 13)
    assert single(part, {"v": value}) == pytest.approx(counted("context.v", tokens, 13))
    assert what_happened(part, {"v": value}) == (set() if tokens else {"missing"})


def test_hashes_stay_what_they_are() -> None:
    """Constants: stored learners and other processes rely on them."""
    rows = [single(features.hashed("action.topic", 1000), None, {"topic": one}) for one in "abc"]
    assert [int(np.flatnonzero(row)[0]) for row in rows] == PINNED_BUCKETS
    assert [int(np.sign(row.sum())) for row in rows] == PINNED_SIGNS
    crossed = features.cross(
        features.hashed("context.u", 2**20), features.action_id(["x", "y", "z"]), 1000
    )
    rows = [single(crossed, {"u": "someone"}, one) for one in "xyz"]
    assert [int(np.flatnonzero(row)[0]) for row in rows] == PINNED_CROSSED
    assert [int(np.sign(row.sum())) for row in rows] == PINNED_CROSSED_SIGNS


def test_different_paths_hash_differently() -> None:
    buckets = [
        np.flatnonzero(single(features.hashed(f"context.{path}", 60000), {path: "v"}))[0]
        for path in "abcdefgh"
    ]
    assert len(set(buckets)) == 8


@pytest.mark.parametrize(
    ("value", "same", "other"),
    [(37, 39.9, 40), (0.1, 0.0938, 0.13), (-37, -32, -40), (5, 5.0, 6), (1e300, 0.95e300, 2e300)],
)
def test_close_numbers_can_share_a_bucket(value: float, same: float, other: float) -> None:
    part = features.hashed("context.v", 60000, digits=3)
    places = [np.flatnonzero(single(part, {"v": one}))[0] for one in (value, same, other)]
    assert places[0] == places[1] != places[2]


def test_a_whole_context_is_a_bag_of_names_and_values() -> None:
    part = features.hashed("context", 31)
    context = {"age": 30, "tags": ["a", "b"], "home": {"city": "x", "zip": None}, "gone": NAN}
    tokens = ["age=30", "tags=a", "tags=b", "home.city=x"]
    assert single(part, context) == pytest.approx(counted("context", tokens, 31))
    assert what_happened(part, {}) == what_happened(part, None) == {"missing"}
    assert what_happened(part, {"when": object(), "age": 3}) == {"unknown"}


def test_a_whole_action_has_its_id_among_its_features() -> None:
    part = features.hashed("action", 31)
    expected = counted("action", ["id=7", "topic=x"], 31)
    for action in ({"id": 7, "features": {"topic": "x"}}, {"id": "7", "topic": "x"}):
        assert single(part, None, action) == pytest.approx(expected)
    assert single(part, None, 7) == pytest.approx(counted("action", ["id=7"], 31))


def test_nesting_without_end_is_not_followed() -> None:
    context: dict = {"v": "x"}
    context["self"] = context
    assert what_happened(features.hashed("context", 8), context) == {"unknown"}


def test_a_cross_is_every_product() -> None:
    a, b = features.numeric("context.v", 0, 1, knots=2), features.action_id(["x", "y", "z"])
    part = features.cross(a, b)
    row = single(part, {"v": 0.25}, "z")
    assert row == pytest.approx(np.outer([0.75, 0.25], [0, 0, 1]).ravel())
    names = FeatureMap([part]).names
    assert names[2] == "context.v@0*action.id=z"
    assert names[5] == "context.v@1*action.id=z"
    assert np.flatnonzero(row).tolist() == [2, 5]


def test_a_hashed_cross_is_a_signed_sum_of_products() -> None:
    a, b = features.hashed("context.v", 4), features.hashed("action.v", 3)
    exact, sketched = features.cross(a, b), features.cross(a, b, 5)
    signs = np.zeros((5, 12))
    for one in (f"w{i}" for i in range(40)):  # every pair of coordinates, one at a time
        for other in (f"w{i}" for i in range(40)):
            whole = single(exact, {"v": one}, {"v": other})
            (at,) = np.flatnonzero(whole)
            signs[:, at] = single(sketched, {"v": one}, {"v": other}) / whole[at]
    assert np.abs(signs).sum(axis=0) == pytest.approx(np.ones(12))
    assert np.ptp(signs) > 1.9  # both signs
    for size in range(1, 6):
        person, item = {"v": [f"w{i}" for i in range(size)]}, {"v": ["w7", "w8", "w9", "w1"]}
        whole = signs @ single(exact, person, item)
        expected = whole / max(1.0, np.linalg.norm(whole))
        assert single(sketched, person, item) == pytest.approx(expected)


def test_waves_are_close_to_a_gaussian_kernel() -> None:
    """With 20,000 frequencies the error has standard deviation below 0.0071: 5.6 of them."""
    ages = features.numeric("context.v", 0, 1), features.numeric("context.w", 0, 1)
    feature_map = FeatureMap([features.random_fourier(ages, 20000, scale=0.5, seed=5)])
    points = np.array([[0.1, 0.2], [0.3, 0.9], [0.5, 0.25], [0.1, 0.3]])
    rows = np.concatenate([feature_map({"v": v, "w": w}, ["x"]) for v, w in points])
    scaled = 2 * points - 1
    distances = np.sum((scaled[:, None] - scaled[None]) ** 2, axis=2)
    assert rows @ rows.T == pytest.approx(np.exp(-distances / (2 * 0.25)), abs=0.04)


def test_waves_are_cosines_then_sines_and_follow_from_the_seed() -> None:
    def made(seed: int) -> np.ndarray:
        return single(
            features.random_fourier(features.numeric("context.v", 0, 1), 4, scale=1, seed=seed),
            {"v": 0.75},
        )

    row = made(1)
    assert row[:4] ** 2 + row[4:] ** 2 == pytest.approx(np.full(4, 0.25))
    assert np.arctan2(row[4:], row[:4]) / 0.5 == pytest.approx(PINNED_FREQUENCIES, abs=1e-9)
    assert not np.allclose(made(2), row)


def test_waves_are_zero_where_something_is_missing() -> None:
    inputs = [features.numeric("context.v", 0, 1), features.numeric("context.w", 0, 1)]
    part = features.random_fourier(inputs, 3, scale=1, seed=1)
    assert not single(part, {"v": 0.5}).any()
    assert not single(part, {"v": 0.5, "w": "much"}).any()
    assert single(part, {"v": 0.5, "w": 7}).any()
    assert what_happened(part, {"v": 0.5}) == {"missing"}
    assert what_happened(part, {"v": 0.5, "w": 7}) == {"clipped"}


def test_a_projection_is_linear_and_orthonormal_but_for_its_scale() -> None:
    part = features.projected("context.e", 6, 2, seed=9)
    small = 1e-3
    matrix = np.array([single(part, {"e": small * one}) / small for one in np.eye(6)])
    assert matrix.T @ matrix == pytest.approx(3.0 * np.eye(2), abs=1e-9)
    point = np.array([0.1, -0.2, 0.05, 0.0, 0.3, -0.1]) / 10
    assert single(part, {"e": point.tolist()}) == pytest.approx(point @ matrix)
    assert matrix[0] == pytest.approx(PINNED_PROJECTION, abs=1e-9)


def test_a_projection_that_comes_out_too_long_is_shortened() -> None:
    part = features.projected("context.e", 6, 2, seed=9)
    matrix = np.array([single(part, {"e": 1e-3 * one}) * 1e3 for one in np.eye(6)])
    for direction in (matrix[:, 0], matrix[:, 1], matrix[:, 0] - matrix[:, 1]):
        point = direction / np.linalg.norm(direction)
        mapped = point @ matrix
        assert np.linalg.norm(mapped) == pytest.approx(math.sqrt(3))  # along the map's image
        assert single(part, {"e": point}) == pytest.approx(mapped / math.sqrt(3))
        assert single(part, {"e": point / 2}) == pytest.approx(mapped / 2)  # sqrt(3)/2 < 1
        assert what_happened(part, {"e": point}) == set()


def test_a_long_embedding_is_shortened() -> None:
    part = features.projected("context.e", 3, 3, seed=1)
    unit = np.array([2.0, -1.0, 2.0]) / 3.0
    short = single(part, {"e": unit})
    assert np.linalg.norm(short) == pytest.approx(1.0)
    assert what_happened(part, {"e": unit}) == set()
    for factor in (1.01, 1e5, 1e300, 5e307):
        assert single(part, {"e": unit * factor}) == pytest.approx(short)
        assert what_happened(part, {"e": unit * factor}) == {"clipped"}
    assert single(part, {"e": unit / 4}) == pytest.approx(short / 4)
    assert np.linalg.norm(single(part, {"e": [5e-324, 0, 0]})) < 1e-300


@pytest.mark.parametrize(
    ("value", "happened"),
    [
        (None, {"missing"}),
        ([1.0, NAN, 0.0], {"missing"}),
        (np.array([1.0, NAN, 0.0]), {"missing"}),
        ([1.0, 2.0], {"unknown"}),
        ([1.0, "2", 0.0], {"unknown"}),
        ("abc", {"unknown"}),
        (np.eye(3), {"unknown"}),
    ],
)
def test_what_is_no_embedding_makes_zeros(value: object, happened: set[str]) -> None:
    part = features.projected("context.e", 3, 2, seed=1)
    assert not single(part, {"e": value}).any()
    assert what_happened(part, {"e": value}) == happened


def test_paths_go_into_dictionaries_and_keys_may_have_dots() -> None:
    part = features.numeric("context.a.b.c", 0, 2)
    for context in ({"a": {"b": {"c": 2}}}, {"a.b.c": 2}, {"a": {"b.c": 2}}):
        assert single(part, context) == pytest.approx([1.0])
    for nothing in ({"a": {"b": 2}}, {"a": 2}, {"a": {"b": {"d": 2}}}, {"b": {"c": 2}}):
        assert what_happened(part, nothing) == {"missing"}
