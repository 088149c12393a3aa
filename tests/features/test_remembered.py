"""Rows that are made one by one, or remembered, are to the last bit those made in arrays."""

import copy
import pickle
from unittest import mock

import pytest
from feature_specs import contexts, known_actions, maps
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import features
from discreet.features import FeatureMap, _parts
from discreet.features import _values as read
from discreet.features._remembered import content_of, content_of_list

confusable = st.sampled_from([0, -0.0, 0.0, 1, 1.0, True, False, None, "1", "", "true", 2**60])
nested = st.recursive(
    confusable,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.sampled_from(["a", "b", 1, True]), inner, max_size=3)
    ),
    max_leaves=6,
)


ALIKE = [
    [{"id": "x", "features": {"v": 0}}],
    [{"id": "x", "features": {"v": 0.0}}],
    [{"id": "x", "features": {"v": -0.0}}],
    [{"id": "x", "features": {"v": False}}],
    [{"id": "x", "features": {"v": None}}],
    [{"id": "x", "features": {"v": float("nan")}}],
    [{"id": "x", "features": {"v": "0"}}],
    [{"id": 0, "features": {"v": "x"}}],
    [{"id": "x", "features": {}}, {"id": "v", "features": {"x": 0}}],
    [{"id": "x", "features": {"v": 0, "x": "v"}}],
    [{"id": "x", "features": {"v": 1}}],
    [{"id": "x", "features": {"v": True}}],
    [{"id": "x", "features": {1: "v"}}],
    [{"id": "x", "features": {True: "v"}}],
]


def in_arrays() -> object:
    """Nothing is few enough to be made one by one."""
    return mock.patch.object(_parts, "_FEW", -1)


def remembered(feature_map: FeatureMap) -> list[int]:
    """How many actions each part of the default map remembers."""
    _, action, crossed = feature_map.parts
    return [len(part._remembered) for part in (action, crossed.a, crossed.b)]


@settings(max_examples=100, deadline=None)
@given(feature_map=maps, people=st.lists(contexts, min_size=1, max_size=3), actions=known_actions)
def test_the_quick_way_makes_the_rows_of_the_general_one(
    feature_map: FeatureMap, people: list, actions: list
) -> None:
    for context in [*people, people[0]]:
        quick, rows = feature_map.explain(context, actions), feature_map(context, actions)
        with in_arrays():
            general = feature_map.explain(context, actions)
        assert rows.tobytes() == quick.rows.tobytes() == general.rows.tobytes()
        assert quick.counts == general.counts


@settings(max_examples=50, deadline=None)
@given(context=contexts, actions=known_actions)
def test_a_short_list_of_actions_has_the_rows_that_it_has_in_a_long_one(
    context: dict, actions: list
) -> None:
    feature_map = features.default(16)
    many = feature_map(context, actions * 80)
    for _ in range(2):
        assert feature_map(context, actions).tobytes() == many[: len(actions)].tobytes()


@settings(max_examples=500, deadline=None)
@given(one=nested, other=nested, digits=st.sampled_from([None, 3]))
def test_equal_contents_have_equal_tokens(one: object, other: object, digits: int | None) -> None:
    if content_of(one) is not None and content_of(one) == content_of(other):
        assert read.tokens(one, digits) == read.tokens(other, digits)


described = st.builds(
    lambda one, found: {"id": one, "features": found},
    confusable,
    st.dictionaries(st.sampled_from(["a", "1", 1, True]), confusable, max_size=2),
)
lists = st.lists(described, max_size=3)


@settings(max_examples=500, deadline=None)
@given(one=lists, other=lists)
def test_lists_of_equal_content_are_spelled_the_same(one: list, other: list) -> None:
    if content_of_list(one, 9) is not None and content_of_list(one, 9) == content_of_list(other, 9):
        assert repr(one) == repr(other)


def test_values_that_are_equal_and_spelled_otherwise_are_told_apart() -> None:
    feature_map = features.default()
    rows = [feature_map({"a": "b"}, [{"id": "x", "v": v}]).tobytes() for v in (1, True, "true")]
    assert rows[0] != rows[1]
    assert rows[1] == rows[2]
    alike = [{"v": [1]}, {"v": [True]}, {"v": (1,)}, {"v": (True,)}]
    rows = [feature_map({"a": "b"}, [{"id": "x", **one}]).tobytes() for one in alike]
    assert rows[0] == rows[2]
    assert rows[1] == rows[3] != rows[0]


def test_an_action_that_is_changed_has_another_row() -> None:
    feature_map, action = features.default(), {"id": "x", "features": {"tags": ["a"]}}
    before = feature_map({"v": 1}, [action])
    action["features"]["tags"].append("b")
    after = feature_map({"v": 1}, [action])
    assert after.tobytes() != before.tobytes()
    assert after.tobytes() == features.default()({"v": 1}, [action]).tobytes()


def test_actions_are_remembered_and_contexts_are_not() -> None:
    feature_map = features.default()
    for age in range(10):
        feature_map({"age": age}, [{"id": f"a{n}", "features": {"n": n}} for n in range(3)])
    assert remembered(feature_map) == [3, 0, 3]
    assert len(feature_map._remembered) == 1


def test_what_is_remembered_is_bounded() -> None:
    feature_map = features.default()
    for part in feature_map.parts[1], feature_map.parts[2].b:
        part._remembered._most = 10
    feature_map._remembered._most = 10
    for n in range(25):
        feature_map({}, [{"id": f"a{n}", "features": {}}])
        assert 0 < max(*remembered(feature_map), len(feature_map._remembered)) <= 10
    before = [*remembered(feature_map), len(feature_map._remembered)]
    deep: object = "x"
    for _ in range(6):
        deep = [deep]
    for large in ("x" * 70000, 10**200000, ["x" * 100] * 60, list(range(100)), deep, object()):
        feature_map({}, [{"id": "large", "features": {"v": large}}])
    assert [*remembered(feature_map), len(feature_map._remembered)] == before
    feature_map({}, [{"id": str(n), "features": {}} for n in range(600)])  # many numbers
    feature_map({}, [{"id": "a", "features": {f"f{n}": n for n in range(3000)}}])
    assert [*remembered(feature_map), len(feature_map._remembered)] == before


def test_a_list_is_told_from_every_other_that_a_part_can_tell_from_it() -> None:
    parts = [
        features.numeric("action.v", 0, 1, knots=2),
        features.hashed("action", 1000),
        features.cross(features.numeric("context.c", 0, 1), features.numeric("action.v", 0, 1)),
    ]
    for first in ALIKE:
        for second in ALIKE:
            feature_map = FeatureMap(parts)
            feature_map({"c": 0.3}, first)
            expected = FeatureMap(parts)({"c": 0.3}, second)
            assert feature_map({"c": 0.3}, second).tobytes() == expected.tobytes()


def test_nobody_can_change_what_is_remembered() -> None:
    feature_map, actions = features.default(), [{"id": "a", "features": {"v": 1}}]
    before = feature_map({"c": 1}, actions)
    kept = before.copy()
    before[:] = 9.0
    actions[0]["features"]["v"] = 2
    changed = feature_map({"c": 1}, actions)
    assert changed.tobytes() != kept.tobytes()
    actions[0]["features"]["v"] = 1
    assert feature_map({"c": 1}, actions).tobytes() == kept.tobytes()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301  # its own
def test_a_copy_remembers_nothing(copied: object) -> None:
    feature_map = features.default()
    secret = [{"id": "secret", "features": {}}]
    rows = feature_map({"v": 1}, secret)
    assert len(feature_map._remembered) == 1
    another = copied(feature_map)
    assert remembered(another) == [0, 0, 0]
    assert len(another._remembered) == 0
    assert another == feature_map
    assert another({"v": 1}, secret).tobytes() == rows.tobytes()
    assert b"secret" not in pickle.dumps(feature_map)
