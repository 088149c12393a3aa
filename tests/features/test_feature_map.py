"""The specification as a whole: JSON and digest, names, blocks, notes, and the learner."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from feature_specs import IDS, contexts, known_actions, maps
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import Problem, features
from discreet.errors import OutOfBoundsError, ParameterError
from discreet.features import FeatureMap
from discreet.mechanism import _codec
from discreet.mechanism.variants import named

EVERY_KIND = FeatureMap(
    [
        features.intercept(weight=0.5),
        features.numeric("context.age", 18, 90, knots=[30, 50], weight=2),
        features.category("context.device", ["phone", "é"], other=True),
        features.hashed("action.tags", 8, digits=3),
        features.action_id(["a", 7]),
        features.cross(features.hashed("context", 1024), features.action_id(["a", 7]), buckets=6),
        features.random_fourier(features.numeric("context.age", 18, 90), 2, scale=0.5, seed=11),
        features.projected("action.vector", 5, 3, seed=12),
    ]
)
PINNED_DIGEST = "3854feb678faa2159e30331144331be6be1e974b7bf19ad625b1d6cbff75683e"


@settings(max_examples=80, deadline=None)
@given(feature_map=maps, context=contexts, actions=known_actions)
def test_a_map_comes_back_from_json(feature_map: FeatureMap, context: dict, actions: list) -> None:
    entry = feature_map.to_json()
    for written in (entry, json.dumps(entry), json.dumps(entry, indent=2).encode()):
        again = FeatureMap.from_json(written)
        assert again == feature_map
        assert again.digest == feature_map.digest
    assert again(context, actions).tobytes() == feature_map(context, actions).tobytes()


def test_the_digest_stays_what_it_is() -> None:
    assert EVERY_KIND.digest == PINNED_DIGEST
    assert FeatureMap.from_json(EVERY_KIND.to_json()).digest == PINNED_DIGEST


def changed(name: str, value: object, at: int) -> str:
    entry = EVERY_KIND.to_json()
    assert entry["parts"][at][name] != value
    entry["parts"][at][name] = value
    return FeatureMap.from_json(entry).digest


def test_everything_in_a_specification_is_in_its_digest() -> None:
    other = features.action_id(["a", "8"]).to_json()
    digests = [
        EVERY_KIND.digest,
        changed("weight", 2.0, 0),
        changed("path", "context.years", 1),
        changed("low", 17, 1),
        changed("high", 91, 1),
        changed("knots", [30, 51], 1),
        changed("knots", None, 1),
        changed("values", ["é", "phone"], 2),
        changed("other", False, 2),  # noqa: FBT003
        changed("buckets", 9, 3),
        changed("digits", None, 3),
        changed("buckets", 7, 5),
        changed("b", other, 5),
        changed("a", other, 5),
        changed("of", [features.numeric("context.age", 18, 91).to_json()], 6),
        changed("count", 3, 6),
        changed("scale", 0.6, 6),
        changed("seed", 12, 6),
        changed("dim_in", 6, 7),
        changed("dim_out", 2, 7),
        changed("seed", 13, 7),
        FeatureMap(EVERY_KIND.parts[::-1]).digest,
        features.disjoint(EVERY_KIND.parts, actions=["a"]).digest,
        features.disjoint(EVERY_KIND.parts, actions=["a", "b"]).digest,
    ]
    assert len(set(digests)) == len(digests)


def test_a_short_specification_is_the_same_as_a_long_one() -> None:
    written = {
        "format": "discreet-features",
        "version": 1,
        "parts": [
            {"kind": "intercept"},
            {"kind": "numeric", "path": "context.age", "low": 0, "high": 100, "knots": 3},
            {"kind": "action_id", "ids": ["a", 7], "weight": 2},
            {
                "kind": "random_fourier",
                "of": {"kind": "numeric", "path": "context.age", "low": 0, "high": 1},
                "count": 1,
                "scale": 1,
                "seed": 0,
            },
        ],
    }
    expected = FeatureMap(
        [
            features.intercept(),
            features.numeric("context.age", 0, 100, knots=[50]),
            features.action_id(["a", "7"], weight=2),
            features.random_fourier([features.numeric("context.age", 0, 1)], 1, scale=1.0, seed=0),
        ]
    )
    assert FeatureMap.from_json(written) == expected
    assert FeatureMap.from_json(written).digest == expected.digest


JUNK = [None, True, 0, -1, 1.5, 1e308, 10**400, -(10**5000), "", "x", "\ud800", "context", [], {}]
JUNK += [[[]], {"kind": "cross"}, [None], ["a", "a"], {"kind": ["x"]}, float("nan"), float("inf")]


def mutated(value: object, draw: random.Random) -> object:
    """One thing somewhere in a JSON value is left out, added or exchanged."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        found, key = dict(value), draw.choice(sorted(value))
        choice = draw.random()
        if choice < 0.1:
            del found[key]
        elif choice < 0.2:
            found[draw.choice(["more", "a", "b", "of", "weight", "knots"])] = draw.choice(JUNK)
        else:
            found[key] = mutated(found[key], draw)
        return found
    if isinstance(value, list) and value and draw.random() < 0.8:
        found, at = list(value), draw.randrange(len(value))
        found[at] = mutated(found[at], draw)
        return found
    return draw.choice([*JUNK, EVERY_KIND.to_json()["parts"][5]])


def test_a_mutated_specification_is_a_map_or_a_parameter_error() -> None:
    refused = 0
    for seed in range(3000):
        draw = random.Random(seed)
        entry: object = EVERY_KIND.to_json()
        for _ in range(draw.randint(1, 3)):
            entry = mutated(entry, draw)
        try:
            found = FeatureMap.from_json(entry)
        except ParameterError:
            refused += 1
        else:
            assert FeatureMap.from_json(found.to_json()) == found
            assert len(found({}, ["a"])[0]) == found.dim
    assert 1500 < refused < 3000


@settings(max_examples=300, deadline=None)
@given(st.binary() | st.text() | st.from_type(object) | st.integers())
def test_what_is_no_specification_is_a_parameter_error(junk: object) -> None:
    with pytest.raises(ParameterError):
        FeatureMap.from_json(junk)


def deep(levels: int) -> dict:
    entry: dict = {"kind": "intercept"}
    for _ in range(levels):
        entry = {"kind": "cross", "a": entry, "b": {"kind": "intercept"}}
    return {"format": "discreet-features", "version": 1, "parts": [entry]}


def test_parts_inside_parts_have_an_end() -> None:
    assert FeatureMap.from_json(deep(3)).dim == 1
    for levels in (4, 8, 100, 5000):
        with pytest.raises(ParameterError):
            FeatureMap.from_json(deep(levels))
    with pytest.raises(ParameterError):
        FeatureMap.from_json('{"parts":' * 100_000)


def spec(**more: object) -> dict:
    return {"format": "discreet-features", "version": 1, "parts": [{"kind": "intercept"}], **more}


@pytest.mark.parametrize(
    ("entry", "parameter"),
    [
        (spec(format="other"), "format"),
        (spec(version=2), "version"),
        (spec(version=True), "version"),
        (spec(parts={}), "parts"),
        (spec(parts=[]), "parts"),
        (spec(actions="ab"), "actions"),
        (spec(actions=[]), "actions"),
        (spec(more=1), "specification"),
        ({"version": 1, "parts": []}, "specification"),
        ("[", "specification"),
        ('{"version": 1, "version": 1}', "specification"),
        (spec(parts=[{"kind": "intercept"}, {"kind": "x"}]), "parts[1].kind"),
        (spec(parts=[{"kind": "numeric", "path": "context.v", "low": 0}]), "parts[0].numeric"),
        (spec(parts=[{"kind": "intercept", "weight": 0}]), "parts[0].weight"),
        (spec(parts=[3]), "parts[0].part"),
    ],
)
def test_a_bad_specification_is_refused_by_name(entry: object, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        FeatureMap.from_json(entry)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("parameter", "make"),
    [
        ("path", lambda: features.numeric("age", 0, 1)),
        ("path", lambda: features.numeric("context", 0, 1)),
        ("path", lambda: features.numeric("context..v", 0, 1)),
        ("path", lambda: features.numeric("context.", 0, 1)),
        ("path", lambda: features.category("person.v", ["a"])),
        ("path", lambda: features.hashed("", 3)),
        ("path", lambda: features.hashed(3, 3)),
        ("path", lambda: features.hashed("context.\ud800", 3)),
        ("low", lambda: features.numeric("context.v", "0", 1)),
        ("high", lambda: features.numeric("context.v", 0, float("inf"))),
        ("high", lambda: features.numeric("context.v", 0, 10**400)),
        ("high", lambda: features.numeric("context.v", 1, 1)),
        ("high", lambda: features.numeric("context.v", -1.7e308, 1.7e308)),
        ("knots", lambda: features.numeric("context.v", 0, 1, knots=1)),
        ("knots", lambda: features.numeric("context.v", 0, 1, knots=[0.5, 0.5])),
        ("knots", lambda: features.numeric("context.v", 0, 1, knots=[0])),
        ("knots", lambda: features.numeric("context.v", 0, 1, knots=[2])),
        ("knots", lambda: features.numeric("context.v", 0, 1, knots="ab")),
        ("knots", lambda: features.numeric("context.v", 0, 5e-324, knots=3)),
        ("values", lambda: features.category("context.v", [])),
        ("values", lambda: features.category("context.v", "abc")),
        ("values", lambda: features.category("context.v", ["3", 3])),
        ("values", lambda: features.category("context.v", [None])),
        ("other", lambda: features.category("context.v", ["a"], other=1)),
        ("values", lambda: features.action_id(["a", "a"])),
        ("buckets", lambda: features.hashed("context.v", 0)),
        ("buckets", lambda: features.hashed("context.v", 2**25)),
        ("buckets", lambda: features.hashed("context.v", 2.5)),
        ("digits", lambda: features.hashed("context.v", 2, digits=0)),
        ("weight", lambda: features.intercept(weight=0)),
        ("weight", lambda: features.intercept(weight=1e7)),
        ("weight", lambda: features.intercept(weight="1")),
        ("weight", lambda: features.cross(features.intercept(weight=2), features.intercept())),
        ("cross", lambda: features.cross("context.a", "action.b")),
        (
            "buckets",
            lambda: features.cross(
                features.cross(features.hashed("context", 2**24), features.hashed("action", 2**24)),
                features.hashed("context.v", 2**24),
                8,
            ),
        ),
        ("of", lambda: features.random_fourier([], 1, scale=1, seed=1)),
        ("scale", lambda: features.random_fourier(features.intercept(), 1, scale=0, seed=1)),
        ("count", lambda: features.random_fourier(features.intercept(), 0, scale=1, seed=1)),
        ("seed", lambda: features.random_fourier(features.intercept(), 1, scale=1, seed=-1)),
        (
            "count",
            lambda: features.random_fourier(features.hashed("context", 2**22), 2, scale=1, seed=1),
        ),
        ("dim_out", lambda: features.projected("context.v", 2, 3, seed=1)),
        ("dim_out", lambda: features.projected("context.v", 4096, 4096, seed=1)),
        ("seed", lambda: features.projected("context.v", 2, 2, seed=None)),
        ("parts", lambda: FeatureMap([])),
        ("parts", lambda: FeatureMap(features.intercept())),
        ("parts", lambda: FeatureMap(["intercept"])),
        ("parts", lambda: FeatureMap([features.hashed("context", 65537)])),
        (
            "parts",
            lambda: features.disjoint([features.hashed("context", 6554)], actions=list(range(10))),
        ),
        ("actions", lambda: features.disjoint([features.intercept()], actions=[])),
        ("dim", lambda: features.default(7)),
        ("dim", lambda: features.default(8, actions=list(range(7)))),
        ("dim", lambda: EVERY_KIND.problem(dim=3, reward_bound=1, theta_norm=1)),
        ("features", lambda: EVERY_KIND.problem(features=None, reward_bound=1, theta_norm=1)),
        ("actions", lambda: features.disjoint([features.intercept()], actions=["a"])({}, ["b"])),
        ("actions", lambda: features.disjoint([features.intercept()], actions=["a"])({}, [{}])),
    ],
)
def test_a_bad_parameter_is_refused_by_name(parameter: str, make: Callable[[], object]) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.parameter == parameter


@settings(max_examples=80, deadline=None)
@given(feature_map=maps)
def test_every_coordinate_has_a_name_of_its_own(feature_map: FeatureMap) -> None:
    names = feature_map.names
    assert len(names) == len(set(names)) == feature_map.dim == sum(feature_map.blocks)
    assert all(isinstance(name, str) and name for name in names)


def test_names_that_are_taken_get_a_number() -> None:
    twice = features.category("context.v", ["a", "a (2)", "(other)"], other=True)
    assert FeatureMap([twice, twice]).names == (
        "context.v=a",
        "context.v=a (2)",
        "context.v=(other)",
        "context.v=(other) (2)",
        "context.v=a (3)",
        "context.v=a (2) (2)",
        "context.v=(other) (3)",
        "context.v=(other) (4)",
    )


@settings(max_examples=80, deadline=None)
@given(parts=maps.map(lambda found: found.parts), context=contexts, actions=known_actions)
def test_disjoint_rows_are_the_shared_rows_in_a_block_of_their_own(
    parts: tuple, context: dict, actions: list
) -> None:
    shared, apart = FeatureMap(parts), features.disjoint(parts, actions=IDS)
    width = shared.dim
    assert shared.blocks == (width,)
    assert apart.blocks == (width,) * len(IDS)
    for action, row, found in zip(
        actions, shared(context, actions), apart(context, actions), strict=True
    ):
        name = str(action["id"] if isinstance(action, dict) else action)
        at = width * IDS.index(name)
        assert found[at : at + width].tobytes() == row.tobytes()
        assert not np.delete(found, np.s_[at : at + width]).any()
        assert apart.names[at].startswith(f"{name}/")


def test_a_learner_takes_the_blocks_of_a_disjoint_map() -> None:
    parts = [features.intercept(), features.numeric("context.age", 0, 100)]
    apart = features.disjoint(parts, actions=["a", "b", "c"])
    problem = apart.problem(reward_bound=1, theta_norm=2)
    assert problem == Problem(
        dim=6,
        action_norm=1,
        reward_bound=1,
        theta_norm=2,
        blocks=(2, 2, 2),
        features=apart.digest,
    )
    privacy = discreet.Privacy(epsilon=1.0, delta=1e-6)
    bandit = discreet.LinUCB(problem, horizon=100, privacy=privacy)
    decision = bandit.choose(apart({"age": 30}, ["a", "b", "c"]))
    bandit.learn(decision, 0.5)
    with pytest.raises(OutOfBoundsError):
        bandit.choose(np.full((1, 6), 0.1))


def test_what_cannot_change_a_ranking_is_noted() -> None:
    age = features.numeric("context.age", 0, 100)
    crossed = features.cross(age, features.action_id(["a"]))
    both = features.cross(age, features.category("context.v", ["a"]))
    assert FeatureMap([features.intercept(), crossed]).notes == ()
    assert [
        note.split(" is the same for")[0] for note in FeatureMap([age, both, crossed]).notes
    ] == [
        "context.age",
        "context.age*context.v",
    ]
    assert features.disjoint([age], actions=["a"]).notes == ()
    (note,) = FeatureMap([features.action_id(["a"])]).notes
    assert "everybody has the same ranking" in note
    assert "all actions have the same row" in FeatureMap([age]).notes[-1]
    assert features.default().notes == ()


@pytest.mark.parametrize("dim", [8, 32, 100])
def test_the_default_map_needs_nothing_specified(dim: int) -> None:
    feature_map = features.default(dim)
    assert feature_map.dim == dim
    assert features.default().dim == 32
    context = {"age": 37, "device": "phone", "deep": {"x": [1, 2]}, "none": None}
    actions = ["a", {"id": "b", "features": {"topic": "art"}}, {"topic": "sport"}, 4]
    found = feature_map.explain(context, actions)
    assert found.counts == {}
    rows = found.rows
    assert len(np.unique(rows, axis=0)) == 4
    older = feature_map({**context, "age": 60}, actions)
    assert (rows != older).any(axis=1).all()  # the context matters to every action
    assert feature_map({**context, "age": 39.5}, actions).tobytes() == rows.tobytes()
    assert feature_map({}, ["a"]).any()


def test_the_default_map_of_known_actions_keeps_them_apart() -> None:
    feature_map = features.default(32, actions=["a", "b", "c"])
    assert feature_map.dim == 32
    assert feature_map.names[1:4] == ("action.id=a", "action.id=b", "action.id=c")
    rows = feature_map({"age": 37}, ["a", "b", "c"])
    assert rows[:, 1:4] == pytest.approx(np.eye(3) / np.sqrt(3), abs=1e-9)


def test_what_is_printed_is_short_and_holds_no_data() -> None:
    assert repr(EVERY_KIND) == (
        "FeatureMap(intercept, context.age, context.device, action.tags, ...; "
        f"dim={EVERY_KIND.dim}, digest={EVERY_KIND.digest[:12]})"
    )
    tags = FeatureMap([features.category("context.<b>", ["<i>"])])
    page = tags._repr_html_()
    assert "<b>" not in page
    assert "context.&lt;b&gt;" in page
    found = EVERY_KIND.explain({"device": "secret", "age": 200}, [{"id": "a"}, {"id": "b"}])
    assert "secret" not in repr(found) + str(found)
    assert found.counts["context.age"] == {"missing": 0, "unknown": 0, "clipped": 2}
    assert found.counts["action.id"] == {"missing": 0, "unknown": 1, "clipped": 0}
    assert found.counts["action.vector"] == {"missing": 2, "unknown": 0, "clipped": 0}
    assert "context.device" not in found.counts  # there is a coordinate for others
    assert str(found).splitlines()[:2] == ["2 rows; of them", "context.age: 2 clipped"]
    assert str(features.default().explain({"v": 1}, ["a"])) == "1 rows; nothing dropped"


def test_a_map_is_a_value() -> None:
    again = FeatureMap.from_json(EVERY_KIND.to_json())
    assert hash(again) == hash(EVERY_KIND)
    assert again != FeatureMap(EVERY_KIND.parts[:2])
    with pytest.raises(AttributeError):
        again.parts = ()
    assert discreet.features is features


PROBLEM = {"dim": 3, "action_norm": 1, "reward_bound": 1, "theta_norm": 1}


@pytest.mark.parametrize("bad", ["", "ab", "A" * 64, "g" * 64, "a" * 65, 3, ["a" * 64]])
def test_a_problem_takes_digests_only(bad: object) -> None:
    assert Problem(**PROBLEM).features is None
    assert Problem(**PROBLEM, features="a" * 64).features == "a" * 64
    with pytest.raises(ParameterError, match=r"^features: "):
        Problem(**PROBLEM, features=bad)


def test_the_digest_is_stored_and_is_on_the_card(setting: discreet.Setting) -> None:
    privacy = discreet.Privacy(epsilon=1.0, delta=1e-6)
    plain = named("tight").mechanism(setting, privacy)
    entry, card = _codec.to_json(plain), discreet.privacy_card(plain)
    assert "features" not in json.dumps([entry, card])  # as in older files
    assert _codec.from_json(entry) == plain

    stated = replace(setting, problem=replace(setting.problem, features="ab" * 32))
    mechanism = named("tight").mechanism(stated, privacy)
    entry, card = _codec.to_json(mechanism), discreet.privacy_card(mechanism)
    assert entry["setting"]["problem"]["features"] == "ab" * 32
    assert _codec.from_json(json.loads(json.dumps(entry))) == mechanism
    assert card["features"] == "ab" * 32
    assert "ab" * 32 in card["text"]
    assert "features" not in card["bounds"]


def test_a_stored_learner_remembers_its_map(tmp_path: Path) -> None:
    feature_map = features.default(8)
    problem = feature_map.problem(reward_bound=1, theta_norm=1)
    privacy = discreet.Privacy(epsilon=1.0, delta=1e-6)
    with discreet.LinUCB(problem, horizon=100, privacy=privacy, path=tmp_path / "one"):
        pass
    with discreet.load(tmp_path / "one") as bandit:
        assert bandit.problem.features == feature_map.digest
    assert discreet.read_ledger(tmp_path / "one").card["features"] == feature_map.digest


def test_the_page_shows_what_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "features.md").read_text("utf-8")
    code, shown = page.split("```python\n")[1].split("```")[0], page.split("```text\n")[1]
    exec(code, {"__name__": "__main__"})  # noqa: S102  # our own page
    assert capsys.readouterr().out == shown.split("```")[0]
