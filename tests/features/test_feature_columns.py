"""Many rows at once are, to the last bit, the rows that are made one at a time."""

import numpy as np
import pytest
from feature_specs import FIELDS, contexts, known_actions, known_ids, maps
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import features
from discreet.errors import EmptyDecisionSetError, ParameterError, ShapeError
from discreet.features import FeatureMap

people = st.lists(contexts, min_size=1, max_size=5)

MAP = FeatureMap(
    [
        features.intercept(),
        features.numeric("context.age", 0, 100, knots=4),
        features.category("context.device", ["phone", "desktop"]),
        features.hashed("context", 7, digits=3),
        features.category("action.topic", ["sport", "art"]),
        features.cross(features.hashed("context.device", 64), features.action_id(["a", 7]), 5),
        features.random_fourier(features.numeric("context.age", 0, 100), 2, scale=1, seed=1),
        features.projected("context.vector", 3, 2, seed=2),
    ]
)
CATALOGUE = [{"id": "a", "features": {"topic": "art"}}, {"id": 7, "features": {"topic": "sport"}}]
AGES, DEVICES = [20.0, 101.5, float("nan"), 7.0], ["phone", None, "fridge", "desktop"]
VECTORS = [[1.0, 2.0, 3.0], [0.1, 0.0, 0.2], [0.0, 0.0, 0.0], [1e300, 1.0, 1.0]]
CHOSEN = ["a", 7, 7.0, "a"]
PEOPLE = [
    {"age": age, "device": device, "vector": vector}
    for age, device, vector in zip(AGES, DEVICES, VECTORS, strict=True)
]
TABLE = {"age": np.array(AGES), "device": DEVICES, "vector": np.array(VECTORS)}
EXPECTED = np.concatenate(
    [
        MAP(person, [CATALOGUE[one == 7]])
        for person, one in zip(PEOPLE, [7 if one != "a" else "a" for one in CHOSEN], strict=True)
    ]
)


def one_by_one(feature_map: FeatureMap, found: list, chosen: list) -> np.ndarray:
    rows = [feature_map(one, [action]) for one, action in zip(found, chosen, strict=True)]
    return np.concatenate(rows)


@settings(max_examples=80, deadline=None)
@given(feature_map=maps, found=people, actions=known_actions)
def test_candidates_are_the_decision_sets_of_each_person(
    feature_map: FeatureMap, found: list, actions: list
) -> None:
    sets = feature_map.candidates(found, actions)
    assert sets.shape == (len(found), len(actions), feature_map.dim)
    for one, rows in zip(found, sets, strict=True):
        assert rows.tobytes() == feature_map(one, actions).tobytes()


@settings(max_examples=80, deadline=None)
@given(feature_map=maps, found=people, data=st.data())
def test_columns_are_the_rows_of_each_choice(
    feature_map: FeatureMap, found: list, data: st.DataObject
) -> None:
    flat = [{name: one.get(name) for name in FIELDS} for one in found]
    columns = {name: [one[name] for one in flat] for name in FIELDS}
    chosen = data.draw(st.lists(known_ids, min_size=len(found), max_size=len(found)))
    rows = feature_map.columns(columns, chosen)
    assert rows.tobytes() == one_by_one(feature_map, flat, chosen).tobytes()
    assert rows.tobytes() == feature_map.columns(flat, chosen).tobytes()
    sets = feature_map.candidates(columns, chosen)
    assert sets.tobytes() == feature_map.candidates(flat, chosen).tobytes()
    explained = feature_map.explain_columns(columns, chosen)
    assert explained.rows.tobytes() == rows.tobytes()
    single = [feature_map.explain(*one) for one in zip(flat, [[c] for c in chosen], strict=True)]
    for label, counts in explained.counts.items():
        for what, number in counts.items():
            assert number == sum(one.counts.get(label, {}).get(what, 0) for one in single)


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 0, 3]),
        np.array([1, 0, 3], np.uint8),
        np.array([37, -40, 2**62 + 1]),
        np.array([37.5, 5e-324, -1.7e308]),
        np.array([0.1, 3.0, -0.0], np.float32),
        np.array([0.1, np.nan, np.inf]),
        np.array([True, False, True]),
        np.array(["x", "3", ""]),
        np.array([1, "x", None], dtype=object),
        [1, True, 1.0],
        ["1", 1, None],
        (1, 1.0, "a"),
        np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]),
        np.array([[1.0, 2.0], [3.0, 0.0], [0.5, 0.5]]),
        [["a", "b"], {"a"}, ()],
        [(1,), (True,), (1.0,)],
        np.array(["2020-01-01"] * 3, dtype="datetime64[D]"),
    ],
    ids=str,
)
def test_any_kind_of_column_is_read_as_its_values_are(column: object) -> None:
    feature_map = FeatureMap(
        [
            features.numeric("context.v", 0, 2, knots=3),
            features.category("context.v", [1, True, "x"], other=True),
            features.hashed("context.v", 11),
            features.hashed("context", 11, digits=3),
            features.hashed("context.v", 1009, digits=2),
            features.hashed("context.v", 1009, digits=53),
            features.projected("context.v", 2, 1, seed=1),
        ]
    )
    listed = column.tolist() if isinstance(column, np.ma.MaskedArray) else list(column)
    expected = one_by_one(feature_map, [{"v": one} for one in listed], ["x"] * 3)
    assert feature_map.columns({"v": column}, ["x"] * 3).tobytes() == expected.tobytes()


@pytest.mark.parametrize("chosen", [CHOSEN, np.array(CHOSEN, dtype=object), tuple(CHOSEN)])
def test_a_catalogue_says_what_is_known_of_the_chosen_actions(chosen: object) -> None:
    assert MAP.columns(TABLE, chosen, actions=CATALOGUE).tobytes() == EXPECTED.tobytes()
    assert MAP.columns(PEOPLE, chosen, actions=CATALOGUE).tobytes() == EXPECTED.tobytes()
    columns = {"id": ["a", 7], "topic": ["art", "sport"]}
    assert MAP.columns(TABLE, chosen, actions=columns).tobytes() == EXPECTED.tobytes()
    described = [CATALOGUE[one != "a"] for one in CHOSEN]
    assert MAP.columns(TABLE, described).tobytes() == EXPECTED.tobytes()
    topics = {"id": CHOSEN, "topic": ["art", "sport", "sport", "art"]}
    assert MAP.columns(TABLE, topics).tobytes() == EXPECTED.tobytes()
    assert MAP.columns(TABLE, chosen).tobytes() != EXPECTED.tobytes()  # no topics


def test_actions_may_be_columns_or_an_array_with_named_columns() -> None:
    expected = MAP(PEOPLE[0], CATALOGUE)
    assert (expected[0] != expected[1]).any()
    named = np.array([("a", "art"), ("7", "sport")], dtype=[("id", "U1"), ("topic", "U9")])
    for actions in ({"id": ["a", 7], "topic": ["art", "sport"]}, named, named.view(np.recarray)):
        assert MAP(PEOPLE[0], actions).tobytes() == expected.tobytes()
    contexts_named = np.array([(20.0, "phone")], dtype=[("age", float), ("device", "U9")])
    plain = MAP.candidates([{"age": 20.0, "device": "phone"}], CATALOGUE)
    assert MAP.candidates(contexts_named, CATALOGUE).tobytes() == plain.tobytes()


def frames() -> list:
    return [("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")]


@pytest.mark.parametrize(("library", "make"), frames())
def test_a_frame_is_read_as_its_rows_are(library: str, make: str) -> None:
    made = getattr(pytest.importorskip(library), make)
    table = {"age": AGES, "device": DEVICES, "vector": VECTORS}
    frame = made(table)
    assert MAP.columns(frame, CHOSEN, actions=CATALOGUE).tobytes() == EXPECTED.tobytes()
    sets = MAP.candidates(frame, CATALOGUE)
    assert sets.tobytes() == MAP.candidates(PEOPLE, CATALOGUE).tobytes()
    actions = made({"id": ["a", "7"], "topic": ["art", "sport"]})
    assert MAP(PEOPLE[0], actions).tobytes() == MAP(PEOPLE[0], CATALOGUE).tobytes()
    chosen = made({"id": ["a", "7", "7", "a"]})["id"]
    assert MAP.columns(frame, chosen, actions=actions).tobytes() == EXPECTED.tobytes()
    whole = FeatureMap([features.numeric("context.n", 0, 9), features.hashed("context", 9)])
    counts = made({"n": [1, None, 3]})
    expected = one_by_one(whole, [{"n": 1}, {}, {"n": 3}], ["x"] * 3)
    assert whole.columns(counts, ["x"] * 3).tobytes() == expected.tobytes()


class Frame:
    """What frames have in common, without any library."""

    def __init__(self, columns: dict) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> list:
        return self._columns[name]


def test_anything_with_columns_is_a_frame() -> None:
    assert MAP.columns(Frame(TABLE), CHOSEN, actions=CATALOGUE).tobytes() == EXPECTED.tobytes()


def test_more_rows_than_are_made_at_a_time() -> None:
    ages = np.linspace(0, 100, 70_001)
    chosen = np.arange(70_001) % 2
    part = features.cross(features.numeric("context.age", 0, 100), features.action_id([0, 1]))
    rows = FeatureMap([part]).columns({"age": ages}, chosen) / (1 - 2**-36)
    expected = np.zeros((70_001, 2))
    expected[np.arange(70_001), chosen] = ages / 50 - 1
    assert rows == pytest.approx(expected, abs=1e-12)


def test_no_rows_are_no_rows() -> None:
    assert MAP.columns({"age": []}, []).shape == (0, MAP.dim)
    assert MAP.candidates([], ["a"]).shape == (0, 1, MAP.dim)
    assert MAP.columns({}, ["a", "a"]).shape == (2, MAP.dim)


@pytest.mark.parametrize(
    ("error", "parameter", "call"),
    [
        (ShapeError, "columns", lambda: MAP.columns({"age": [1, 2], "x": [1]}, ["a", "a"])),
        (ShapeError, "action", lambda: MAP.columns({"age": [1, 2]}, ["a"])),
        (ParameterError, "columns", lambda: MAP.columns("age", ["a"])),
        (ParameterError, "columns", lambda: MAP.columns({"age": 3}, ["a"])),
        (ParameterError, "columns", lambda: MAP.columns({"age": np.array(3.0)}, ["a"])),
        (ParameterError, "columns", lambda: MAP.columns({"age": "ab"}, ["a", "a"])),
        (ParameterError, "columns", lambda: MAP.columns({3: [1]}, ["a"])),
        (ParameterError, "columns", lambda: MAP.columns([3], ["a"])),
        (ParameterError, "columns", lambda: MAP.candidates({}, ["a"])),
        (ParameterError, "action", lambda: MAP.columns({"age": [1]}, "a")),
        (ParameterError, "action", lambda: MAP.columns({"age": [1]}, 3)),
        (ParameterError, "action", lambda: MAP.columns({"age": [1]}, [None])),
        (ParameterError, "action", lambda: MAP.columns({"age": [1]}, np.array("a"))),
        (ParameterError, "context", lambda: MAP([1], ["a"])),
        (ParameterError, "actions", lambda: MAP({}, "a")),
        (ParameterError, "actions", lambda: MAP({}, {"a", "b"})),
        (ParameterError, "actions", lambda: MAP({}, [object()])),
        (ParameterError, "actions", lambda: MAP({}, [{"id": 1, "features": [1]}])),
        (ParameterError, "actions", lambda: MAP({}, [{"id": 1, "features": {}, "x": 1}])),
        (EmptyDecisionSetError, "actions", lambda: MAP({}, [])),
        (EmptyDecisionSetError, "actions", lambda: MAP.candidates([{}], {"id": []})),
    ],
)
def test_what_is_no_input_is_refused_by_name(
    error: type[Exception], parameter: str, call: object
) -> None:
    with pytest.raises(error, match=f"^{parameter}: ") as caught:
        call()
    assert type(caught.value) is error
