"""Whatever is given, it is taken or refused by name, and never half of it."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import Privacy
from discreet.errors import DiscreetError
from discreet.evaluation import PrivateValues, Values, accept

PRIVACY = Privacy(epsilon=1.0, delta=1e-6)
GOOD = {"rewards": [0.0, 1.0, 0.5], "propensities": 0.5, "targets": [0.1, 0.9, 1.0]}
FULL = np.array([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]])


class Unreadable:
    """What does not convert itself."""

    def __array__(self, *_: object, **__: object) -> None:
        raise KeyError("a secret value: 4711")


def makers() -> list[Callable[..., Values | PrivateValues]]:
    return [Values, lambda *a, **k: PrivateValues(*a, **{"clip": 2, "privacy": PRIVACY, **k})]


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"rewards": [0.0, 1.0, 1.5]}, "rewards"),
        ({"rewards": [0.0, -1.0, 1.0]}, "rewards"),
        ({"rewards": [0.0, math.nan, 1.0]}, "rewards"),
        ({"rewards": [[0.0, 0.5, 1.0]]}, "rewards"),
        ({"rewards": 0.5}, "rewards"),
        ({"rewards": ["4711", "b", "c"]}, "rewards"),
        ({"rewards": [None, 0.5, 1.0]}, "rewards"),
        ({"rewards": [1j, 0.5, 1.0]}, "rewards"),
        ({"rewards": Unreadable()}, "rewards"),
        ({"rewards": [[1.0], [1.0, 2.0]]}, "rewards"),
        ({"rewards": np.ma.masked_array([0.0, 1.0, 0.5], [0, 1, 0])}, "rewards"),
        ({"propensities": [0.5, 0.5]}, "propensities"),
        ({"propensities": 1.5}, "propensities"),
        ({"propensities": -0.5}, "propensities"),
        ({"propensities": math.inf}, "propensities"),
        ({"targets": [0.1, 0.9, 1.1]}, "targets"),
        ({"targets": [0.1, 0.9]}, "targets"),
        ({"targets": {"nobody": 0.5}}, "targets"),
        ({"targets": FULL[:2], "actions": [0, 1, 1]}, "targets"),
        ({"targets": 2 * FULL, "actions": [0, 1, 1]}, "targets"),
        ({"targets": FULL / 2, "actions": [0, 1, 1]}, "targets"),
        ({"targets": np.zeros((3, 0)), "actions": [0, 1, 1]}, "targets"),
        ({"targets": FULL}, "actions"),
        ({"targets": FULL, "actions": [0, 1, 2]}, "actions"),
        ({"targets": FULL, "actions": [0, 1, -1]}, "actions"),
        ({"targets": FULL, "actions": [0, 1, 0.5]}, "actions"),
        ({"targets": FULL, "actions": [0, 1]}, "actions"),
        ({"subjects": [1, 2]}, "subjects"),
        ({"subjects": [1.5, 2.5, 3.5]}, "subjects"),
        ({"subjects": [True, False, True]}, "subjects"),
        ({"subjects": np.array([1, "a", 2], dtype=object)}, "subjects"),
    ],
)
@pytest.mark.parametrize("make", makers())
def test_what_is_refused_is_named_and_changes_nothing(
    make: Callable[..., Values | PrivateValues], changed: dict[str, object], parameter: str
) -> None:
    values = make(low=0, high=1)
    with pytest.raises(DiscreetError) as raised:
        values.add(**{**GOOD, **changed})
    assert raised.value.parameter == parameter
    assert "4711" not in str(raised.value)
    assert values.rows == 0
    values.add(**GOOD)  # type: ignore[arg-type]
    assert values.rows == 3


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"predictions": FULL}, "predictions"),
        ({"predictions": FULL[:2], "targets": FULL, "actions": [0, 1, 1]}, "predictions"),
        ({"predictions": FULL[:, :1], "targets": FULL, "actions": [0, 1, 1]}, "predictions"),
        ({"predictions": 1e300 * FULL, "targets": FULL, "actions": [0, 1, 1]}, "predictions"),
        ({"predictions": math.nan * FULL, "targets": FULL, "actions": [0, 1, 1]}, "predictions"),
        ({"accepted": [0.5, 1, 0]}, "accepted"),
        ({"accepted": [True, False]}, "accepted"),
        ({"accepted": {"nobody": [True, False, True]}}, "accepted"),
        ({"propensities": [0.5, 0.0, 0.5]}, "propensities"),  # without a clip
        ({"propensities": [0.5, 1e-60, 0.5]}, "propensities"),
    ],
)
def test_what_only_exact_values_take_is_refused_by_name(
    changed: dict[str, object], parameter: str
) -> None:
    values = Values(low=0, high=1)
    with pytest.raises(DiscreetError) as raised:
        values.add(**{**GOOD, **changed})  # type: ignore[arg-type]
    assert raised.value.parameter == parameter
    assert values.rows == 0


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"low": 1, "high": 1}, "high"),
        ({"low": math.nan}, "low"),
        ({"high": 1e300}, "high"),
        ({"low": 0, "high": 1e-60}, "high"),
        ({"clip": 0}, "clip"),
        ({"clip": "2"}, "clip"),
        ({"on_violation": "ignore"}, "on_violation"),
        ({"policies": []}, "policies"),
        ({"policies": "abc"}, "policies"),
        ({"policies": ["a", "a"]}, "policies"),
        ({"policies": ["a", ""]}, "policies"),
        ({"policies": [1]}, "policies"),
        ({"policies": None}, "policies"),
        ({"policies": [str(at) for at in range(1001)]}, "policies"),
    ],
)
@pytest.mark.parametrize("make", makers())
def test_bad_settings_are_refused_by_name(
    make: Callable[..., Values | PrivateValues], changed: dict[str, object], parameter: str
) -> None:
    with pytest.raises(DiscreetError) as raised:
        make(**{"low": 0, "high": 1, **changed})
    assert raised.value.parameter == parameter


def test_chunks_of_one_log_have_the_same_columns() -> None:
    optional = {
        "predictions": {"predictions": FULL, "targets": FULL, "actions": [0, 1, 1]},
        "accepted": {"accepted": [True, False, True]},
        "subjects": {"subjects": [1, 2, 3]},
    }
    for name, more in optional.items():
        for first, second in (({}, more), (more, {})):
            values = Values(low=0, high=1)
            values.add(**{**GOOD, **first})  # type: ignore[arg-type]
            before = str(values.result())
            with pytest.raises(DiscreetError, match=name):
                values.add(**{**GOOD, **second})  # type: ignore[arg-type]
            assert str(values.result()) == before


def test_results_and_merges_are_refused_by_name() -> None:
    values = Values(low=0, high=1)
    with pytest.raises(DiscreetError, match="rows"):
        values.result()
    values.add(**GOOD)  # type: ignore[arg-type]
    for level in (0, 1, "x", math.nan):
        with pytest.raises(DiscreetError, match="level"):
            values.result(level=level)  # type: ignore[arg-type]
    for other in (values, None, Values(low=0, high=2), Values(low=0, high=1, clip=3)):
        with pytest.raises(DiscreetError, match="other"):
            values.merge(other)  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="estimator"):
        values.difference("policy", "policy", estimator="dr")
    with pytest.raises(DiscreetError, match="not among"):
        values.difference("policy", "nobody")
    by_text, by_number = Values(low=0, high=1), Values(low=0, high=1)
    by_text.add(**GOOD, subjects=["1", "2", "3"])  # type: ignore[arg-type]
    by_number.add(**GOOD, subjects=[1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="subjects"):
        by_text.merge(by_number)
    with pytest.raises(DiscreetError, match="privacy"):
        PrivateValues(low=0, high=1, clip=2, privacy=(1, 1e-6))  # type: ignore[arg-type]


def test_an_empty_chunk_changes_nothing() -> None:
    for make in makers():
        values = make(low=0, high=1)
        values.add([], propensities=0.5, targets=0.5)
        assert values.rows == 0
        values.add(**GOOD)  # type: ignore[arg-type]
        values.add([], propensities=[], targets=[])
        assert values.rows == 3


def test_bad_acceptance_is_refused_by_name() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(DiscreetError, match="ceiling"):
        accept([0.5, 1.0], 0.25, ceiling=3, generator=rng)
    with pytest.raises(DiscreetError, match="ceiling"):
        accept([0.5], 0.0, ceiling=3, generator=rng)
    with pytest.raises(DiscreetError, match="generator"):
        accept([0.5], 0.5, ceiling=3, generator=1)  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="targets"):
        accept([[0.5]], 0.5, ceiling=3, generator=rng)
    assert not accept([0.0], 0.0, ceiling=3, generator=rng).any()


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.floats(), st.integers(), st.text(max_size=2), st.none()), max_size=4),
    hnp.arrays(
        st.sampled_from([np.float64, np.int64, np.bool_, np.uint8, "U2", "M8[s]", np.complex128]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    st.dictionaries(st.text(max_size=3), st.floats(), max_size=2),
    st.just(Unreadable()),
)
OPTIONAL = ("actions", "subjects", "predictions", "accepted")


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_nothing_but_our_own_errors_comes_out(data: st.DataObject) -> None:
    for make in makers():
        arguments: dict[str, object] = dict(GOOD)
        if data.draw(st.booleans()):
            arguments |= {"targets": FULL, "actions": [0, 1, 0]}
        for name in ("rewards", "propensities", "targets", *OPTIONAL[: 4 if make is Values else 2]):
            if data.draw(st.integers(0, 2)) == 0:
                arguments[name] = data.draw(ANYTHING)
        clip = data.draw(st.sampled_from([2.0, 1e9, None])) if make is Values else 2.0
        violation = data.draw(st.sampled_from(["error", "clip"]))
        values = make(low=0, high=1, clip=clip, on_violation=violation)
        try:
            values.add(**arguments)  # type: ignore[arg-type]
        except DiscreetError:
            assert values.rows == 0
            continue
        if values.rows and isinstance(values, Values):
            for one in values.result():
                assert one.estimate is None or math.isfinite(one.estimate)
        elif values.rows and isinstance(values, PrivateValues):
            values.release()
