"""Personalizer's JSON in our terms, and back: namespaces, rankings, configurations, durations."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from discreet.features import FeatureMap, category, cross
from discreet.service import _translation as translation
from discreet.service._bodies import RankAnswer, Ranked, ReleaseName, RewardRule, ServiceError
from discreet.service._translation import ConfigurationBody, RankBody

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text("ab", max_size=2))
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
        ),
        max_leaves=6,
    ),
    max_size=3,
)


def body(**fields: object) -> RankBody:
    return msgspec.json.decode(json.dumps(fields), type=RankBody)


def configuration(**fields: object) -> ConfigurationBody:
    return msgspec.json.decode(json.dumps(fields), type=ConfigurationBody)


def test_namespaces_become_one_object_with_nested_ones_merged() -> None:
    found = translation.merged(
        [
            {"user": {"age": "young", "home": {"city": "Ghent"}}},
            {"device": "phone"},
            None,
            {"user": {"home": {"country": "be"}, "paying": True}},
        ],
        "contextFeatures",
    )
    assert found == {
        "user": {"age": "young", "home": {"city": "Ghent", "country": "be"}, "paying": True},
        "device": "phone",
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["x", "y"], ["x", "y"]),
        (["x", "x"], "x"),
        (["x", "y", "x"], ["x", "y", "x"]),
        ([["x", "y"], "z"], ["x", "y", "z"]),
        (["x", ["y", "z"], ["w"]], ["x", "y", "z", "w"]),
        ([["x"], ["x"]], ["x"]),
        ([1, True], [1, True]),
        ([{"a": 1}, "x"], [{"a": 1}, "x"]),
        (["x", {"a": 1}, {"a": 2}], ["x", {"a": 1}, {"a": 2}]),
        ([None, "x"], "x"),
        (["x", None], "x"),
    ],
)
def test_values_that_meet_are_all_kept_in_order_and_an_equal_one_changes_nothing(
    values: list[object], expected: object
) -> None:
    assert translation.merged([{"k": value} for value in values], "w") == {"k": expected}


@given(st.lists(OBJECTS, max_size=5))
def test_merging_leaves_what_was_given_as_it_was(objects: list[dict[str, object]]) -> None:
    before = json.dumps(objects)
    first = translation.merged(objects, "w")
    assert json.dumps(objects) == before
    assert json.dumps(translation.merged(objects, "w")) == json.dumps(first)
    assert set(first) == {key for one in objects for key in one}


@given(OBJECTS)
def test_one_namespace_is_the_object_itself_and_twice_the_same_is_once(
    found: dict[str, object],
) -> None:
    assert translation.merged([found], "w") == found
    assert translation.merged([found, found], "w") == found


@given(st.lists(OBJECTS, max_size=4), OBJECTS)
def test_a_key_that_only_one_namespace_has_keeps_its_value(
    others: list[dict[str, object]], one: dict[str, object]
) -> None:
    own = {f"own-{key}": value for key, value in one.items()}
    found = translation.merged([*others, own], "w")
    assert {key: found[key] for key in own} == own


def test_namespaces_nested_too_deeply_are_refused_and_name_the_field() -> None:
    deep: dict[str, object] = {}
    for _ in range(200):
        deep = {"a": deep}
    asked = body(actions=[{"id": "x", "features": [{"b": 1}, deep]}])
    with pytest.raises(ServiceError, match="nested too deeply") as caught:
        translation.rank_request(asked)
    assert caught.value.status == 400
    assert caught.value.target == "actions[0].features"


def test_a_rank_request_is_ours_in_other_words() -> None:
    found = translation.rank_request(
        body(
            contextFeatures=[{"timeOfDay": "Morning"}, {"device": {"kind": "phone"}}],
            actions=[
                {"id": "News", "features": [{"type": "news"}, {"tags": ["a", "b"]}]},
                {"id": "Sports", "features": []},
                {"id": "Bare"},
            ],
            excludedActions=["Sports"],
            eventId="75269AD0-BFEE-4598-8196-C57383D38E10",
            deferActivation=True,
            somethingNewer=1,
        )
    )
    assert found.context == {"timeOfDay": "Morning", "device": {"kind": "phone"}}
    assert [(one.id, one.features) for one in found.actions] == [
        ("News", {"type": "news", "tags": ["a", "b"]}),
        ("Sports", {}),
        ("Bare", {}),
    ]
    assert found.exclude == ["Sports"]
    assert found.event_id == "75269AD0-BFEE-4598-8196-C57383D38E10"
    assert found.defer
    assert not translation.rank_request(body(actions=[{"id": "a"}], deferActivation=None)).defer


def test_a_translated_request_can_be_read_by_a_feature_map() -> None:
    asked = translation.rank_request(
        body(
            contextFeatures=[{"user": {"age": "young"}}, {"user": {"device": "phone"}}],
            actions=[{"id": "a", "features": [{"topic": "arts"}]}, {"id": "b", "features": []}],
        )
    )
    actions = [{"id": one.id, "features": one.features} for one in asked.actions]
    user = category("context.user.age", ["young", "old"])
    topics = category("action.topic", ["sport", "arts"])
    rows = FeatureMap([cross(user, topics)])(asked.context, actions)
    assert rows.astype(bool).tolist() == [[False, True, False, False], [False] * 4]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"actions": []},
        {"actions": [{"id": ""}]},
        {"actions": [{"features": []}]},
        {"actions": [{"id": "a", "features": {"not": "a list"}}]},
        {"actions": [{"id": "a", "features": ["text"]}]},
        {"actions": [{"id": "a"}], "contextFeatures": {"not": "a list"}},
        {"actions": [{"id": "a"}], "eventId": "has a space"},
        {"actions": [{"id": "a"}], "deferActivation": "yes"},
    ],
)
def test_what_is_no_rank_request_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        body(**wrong)


def ranked(*pairs: tuple[str, float], chosen: str) -> RankAnswer:
    return RankAnswer(
        event_id="e1",
        action_id=chosen,
        ranking=[Ranked(*pair) for pair in pairs],
        release=ReleaseName(1, "ab"),
    )


def test_the_action_to_show_comes_first_and_excluded_ones_stay_where_they_were() -> None:
    asked = body(
        actions=[{"id": one} for one in ("a", "out", "b", "c")], excludedActions=["out", "nobody"]
    )
    found = translation.rank_response(asked, ranked(("c", 0.7), ("a", 0.2), ("b", 0.1), chosen="a"))
    assert found == {
        "ranking": [
            {"id": "a", "probability": 0.2},
            {"id": "out", "probability": 0.0},
            {"id": "c", "probability": 0.7},
            {"id": "b", "probability": 0.1},
        ],
        "eventId": "e1",
        "rewardActionId": "a",
    }


def test_an_excluded_action_in_the_first_place_stays_there() -> None:
    asked = body(actions=[{"id": one} for one in ("out", "a", "b")], excludedActions=["out"])
    found = translation.rank_response(asked, ranked(("b", 0.9), ("a", 0.1), chosen="b"))
    assert [one["id"] for one in found["ranking"]] == ["out", "b", "a"]
    assert found["rewardActionId"] == "b"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT10M", 600.0),
        ("PT600S", 600.0),
        ("PT0S", 0.0),
        ("PT2.5S", 2.5),
        ("P1D", 86400.0),
        ("P1W", 604800.0),
        ("P1DT2H3M4S", 93784.0),
        ("00:10:00", 600.0),
        ("1.02:03:04", 93784.0),
        ("00:00:00.25", 0.25),
    ],
)
def test_durations_are_read_as_iso_8601_and_as_dotnet_writes_them(
    text: str, seconds: float
) -> None:
    assert translation.seconds(text, "rewardWaitTime") == seconds


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1DT", "P1M", "P1Y", "10M", "PT-1S", "-PT1S", "10:00", "PT1٣S", "PT1S\n"],
)
def test_what_is_no_duration_is_refused_and_named(text: str) -> None:
    with pytest.raises(ServiceError, match="rewardWaitTime is no duration") as caught:
        translation.seconds(text, "rewardWaitTime")
    assert caught.value.target == "rewardWaitTime"


@given(st.integers(0, 86400 * 30 * 1000))
def test_a_duration_that_was_written_is_read_again(milliseconds: int) -> None:
    number = milliseconds / 1000
    assert translation.seconds(translation.duration(number), "x") == pytest.approx(number, abs=1e-6)


def test_durations_are_written_briefly() -> None:
    shown = [translation.duration(one) for one in (0.0, 2.5, 59.9999999, 600.0, 3601.0, 90000.0)]
    assert shown == ["PT0S", "PT2.5S", "PT1M", "PT10M", "PT1H1S", "PT25H"]


def test_a_configuration_that_is_sent_back_as_it_was_changes_nothing_else() -> None:
    rule = RewardRule(wait_seconds=90.0, default=0.25, aggregation="sum")
    shown = translation.configuration(rule)
    assert shown["rewardWaitTime"] == "PT1M30S"
    assert shown["logRetentionDays"] == 0
    assert translation.changes(configuration(**shown)) == {
        "wait_seconds": 90.0,
        "default": 0.25,
        "aggregation": "sum",
    }


def test_what_is_left_out_of_a_configuration_stays() -> None:
    nothing = {"wait_seconds": None, "default": None, "aggregation": None}
    assert translation.changes(configuration()) == nothing
    unread = configuration(explorationPercentage=None, lastConfigurationEditDate="2024-01-01")
    assert translation.changes(unread) == nothing
    assert translation.changes(configuration(modelExportFrequency="00:00:00")) == nothing


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("explorationPercentage", 0.2),
        ("modelExportFrequency", "PT5M"),
        ("modelExportFrequency", "soon"),
        ("logRetentionDays", 90),
        ("learningMode", "Apprentice"),
        ("isAutoOptimizationEnabled", True),
        ("logMirrorEnabled", True),
        ("rewardAggregation", "mean"),
        ("rewardWaitTime", "a while"),
    ],
)
def test_what_cannot_be_set_is_refused_and_named(name: str, value: object) -> None:
    with pytest.raises(ServiceError, match=name) as caught:
        translation.changes(configuration(**{name: value}))
    assert (caught.value.status, caught.value.target) == (400, name)
