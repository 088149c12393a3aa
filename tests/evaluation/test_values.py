"""Exact values: cases computed by hand, streams against batches, people, overlap, tables."""

import json
import math
import pickle

import numpy as np
import pytest
from logged_world import ACTIONS, HIGH, LOW, OTHER, TARGET, World
from scipy import stats

from discreet import evaluation
from discreet.errors import ParameterError
from discreet.evaluation import ExactValue, Values

TABLES = {"target": TARGET, "other": OTHER}


def exact(comparison: evaluation.Comparison, policy: str, estimator: str) -> ExactValue:
    found = comparison[policy, estimator]
    assert isinstance(found, ExactValue)
    return found


def full(rows: int = 5_000, seed: int = 1, **settings: float) -> tuple[Values, dict[str, object]]:
    """Values of two policies by all estimators, and the arrays they were made from."""
    rng = np.random.default_rng(seed)
    log = World().play(rng, rows)
    arrays = {
        "rewards": log.rewards,
        "propensities": log.propensities,
        "targets": {name: table[log.contexts] for name, table in TABLES.items()},
        "actions": log.actions,
        "predictions": rng.normal(size=(rows, ACTIONS)),
        "accepted": {name: rng.random(rows) < 0.3 for name in TABLES},
    }
    values = Values(list(TABLES), low=LOW, high=HIGH, **settings)
    values.add(**arrays)  # type: ignore[arg-type]
    return values, arrays


def part(arrays: dict[str, object], rows: slice) -> dict[str, object]:
    return {
        name: {key: each[rows] for key, each in array.items()}
        if isinstance(array, dict)
        else array[rows]  # type: ignore[index]
        for name, array in arrays.items()
    }


def figures(values: Values) -> list[float]:
    found = []
    for one in values.result():
        assert isinstance(one, ExactValue)
        assert one.overlap is not None
        found += [one.estimate, one.std_error, one.low, one.high, *(one.bounds or ())]
        overlap = one.overlap
        found += [overlap.effective_rows, overlap.mean_weight, overlap.largest_weight]
        found += [overlap.clipped_share, overlap.smallest_propensity, overlap.zero_propensities]
    return found


def test_four_rounds_by_hand() -> None:
    # Weights 2, 0, 1, 0.5 and rewards 1, 0, 0, 1; the model says 0.5 of the logged action.
    values = Values(low=0, high=1)
    tables = [[0.8, 0.2], [1.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    values.add(
        [1, 0, 0, 1],
        propensities=[0.4, 0.5, 0.5, 0.5],
        targets=tables,
        actions=[0, 1, 0, 1],
        predictions=[[0.5, 0.0], [0.25, 0.5], [0.5, 1.0], [0.0, 0.5]],
        accepted=[True, False, True, True],
    )
    found = values.result(level=0.9)
    terms = {"ips": [2, 0, 0, 0.5], "dr": [0.4 + 1, 0.25, 0.75 - 0.5, 0.125 + 0.25]}
    for estimator, term in terms.items():
        one = exact(found, "policy", estimator)
        assert one.estimate == pytest.approx(np.mean(term))
        error = np.std(term, ddof=1) / 2
        assert one.std_error == pytest.approx(error)
        assert one.high == pytest.approx(np.mean(term) + stats.t.ppf(0.95, 3) * error)
    assert exact(found, "policy", "snips").estimate == pytest.approx(2.5 / 3.5)
    ratio = 2.5 / 3.5
    spread = np.array([2 * (1 - ratio), 0, -ratio, 0.5 * (1 - ratio)]) / (3.5 / 4)
    assert exact(found, "policy", "snips").std_error == pytest.approx(np.std(spread, ddof=1) / 2)
    replay = exact(found, "policy", "replay")
    assert replay.estimate == pytest.approx(2 / 3)
    assert replay.std_error == pytest.approx(np.std([1, 0, 1], ddof=1) / math.sqrt(3))
    assert replay.low == pytest.approx(2 / 3 - stats.t.ppf(0.95, 2) * replay.std_error)
    assert replay.overlap is not None
    assert replay.overlap.effective_rows == pytest.approx(3.5**2 / 5.25)
    assert replay.overlap.largest_weight == pytest.approx(2)
    assert replay.overlap.smallest_propensity == pytest.approx(0.4)


def test_bounds_by_hand() -> None:
    # Clipped at 1.5: terms w s are 1.5, 0, 0, 0.5 and terms w (1 - s) are 0, 0, 1, 0.
    weights, rewards = np.array([1.5, 0, 1, 0.5] * 50), np.array([1.0, 0, 0, 1] * 50)
    values = Values(low=0, high=1, clip=1.5)
    values.add(rewards, propensities=0.4, targets=np.array([0.8, 0, 0.4, 0.2] * 50))
    tail, rows = math.log(4 / 0.05), 200

    def least(terms: np.ndarray) -> float:
        width = math.sqrt(2 * terms.var(ddof=1) * tail / rows) + 7 * 1.5 * tail / (3 * (rows - 1))
        return float(terms.mean() - width)

    low, high = exact(values.result(), "policy", "ips").bounds or (0, 0)
    assert low == pytest.approx(least(weights * rewards))
    assert high == pytest.approx(1 - least(weights * (1 - rewards)))


def test_the_logged_policy_has_the_mean_reward_by_all_estimators() -> None:
    log = World().play(np.random.default_rng(2), 1_000)
    values = Values(["logged"], low=LOW, high=HIGH)
    values.add(log.rewards, propensities=log.propensities, targets=log.propensities)
    for one in values.result():
        assert one.estimate == pytest.approx(log.rewards.mean(), rel=1e-13)
    one = exact(values.result(), "logged", "ips")
    assert one.std_error == pytest.approx(stats.sem(log.rewards), rel=1e-12)


@pytest.mark.parametrize("clip", [None, 2.5])
@pytest.mark.parametrize("size", [1, 7, 1_000, 20_000])
def test_a_stream_of_chunks_gives_what_one_batch_gives(clip: float | None, size: int) -> None:
    rows = 400 if size == 1 else 30_000
    batch, arrays = full(rows, clip=clip)  # type: ignore[arg-type]
    stream = Values(list(TABLES), low=LOW, high=HIGH, clip=clip)
    for start in range(0, rows, size):
        stream.add(**part(arrays, slice(start, start + size)))  # type: ignore[arg-type]
    assert stream.rows == rows
    np.testing.assert_allclose(figures(stream), figures(batch), rtol=1e-11)


def test_merging_in_any_order_and_pickling_change_nothing() -> None:
    batch, arrays = full(9_000, clip=2.5)
    parts = []
    for start in (0, 1_000, 4_000):
        one = Values(list(TABLES), low=LOW, high=HIGH, clip=2.5)
        one.add(**part(arrays, slice(start, {0: 1_000, 1_000: 4_000}.get(start))))  # type: ignore[arg-type]
        parts.append(pickle.dumps(one))
    for order in ([0, 1, 2], [2, 0, 1]):
        merged = Values(list(TABLES), low=LOW, high=HIGH, clip=2.5)
        for at in order:
            merged.merge(pickle.loads(parts[at]))  # noqa: S301  # our own
        np.testing.assert_allclose(figures(merged), figures(batch), rtol=1e-11)


def test_a_small_spread_around_a_large_reward_is_not_lost() -> None:
    # Rewards near 10^9: naive sums of squares would lose all digits of the variance.
    rng, rows = np.random.default_rng(3), 50_000
    rewards = 1e9 + rng.random(rows)
    values = Values(low=1e9, high=1e9 + 1)
    for start in range(0, rows, 999):
        rest = rewards[start : start + 999]
        values.add(rest, propensities=0.5, targets=0.5)
    one = exact(values.result(), "policy", "snips")
    assert one.std_error == pytest.approx(stats.sem(rewards - 1e9), rel=1e-6)


def test_people_with_one_row_each_are_rows() -> None:
    plain, arrays = full(2_000)
    people = Values(list(TABLES), low=LOW, high=HIGH)
    people.add(**arrays, subjects=np.arange(2_000))  # type: ignore[arg-type]
    for one in people.result():
        assert isinstance(one, ExactValue)
        twin = exact(plain.result(), one.policy, one.estimator)
        assert one.std_error == pytest.approx(
            twin.std_error, rel=1e-3 if one.estimator == "replay" else 1e-11
        )
        assert "by person" in one.method
        assert one.bounds is None


@pytest.mark.parametrize("kind", ["numbers", "texts", "objects"])
def test_copies_of_a_persons_rows_add_no_certainty(kind: str) -> None:
    plain, arrays = full(2_000)
    names = {"numbers": np.arange(2_000), "texts": np.arange(2_000).astype(str)}
    names["objects"] = names["texts"].astype(object)
    people = Values(list(TABLES), low=LOW, high=HIGH)
    for _ in range(3):  # the copies come in other chunks
        people.add(**arrays, subjects=names[kind])  # type: ignore[arg-type]
    naive = Values(list(TABLES), low=LOW, high=HIGH)
    for _ in range(3):
        naive.add(**arrays)  # type: ignore[arg-type]
    for estimator in ("ips", "snips", "dr"):
        once = exact(plain.result(), "target", estimator)
        assert exact(people.result(), "target", estimator).std_error == pytest.approx(
            once.std_error, rel=1e-11
        )
        false = exact(naive.result(), "target", estimator).std_error
        assert false is not None
        assert false < 0.6 * (once.std_error or 0)


def test_people_in_two_parts_are_merged_by_name() -> None:
    _, arrays = full(2_000)
    subjects = np.random.default_rng(4).integers(0, 300, 2_000)
    whole = Values(list(TABLES), low=LOW, high=HIGH)
    whole.add(**arrays, subjects=subjects)  # type: ignore[arg-type]
    halves = []
    for rows in (slice(0, 700), slice(700, None)):
        half = Values(list(TABLES), low=LOW, high=HIGH)
        half.add(**part({**arrays, "subjects": subjects}, rows))  # type: ignore[arg-type]
        halves.append(half)
    halves[1].merge(halves[0])
    np.testing.assert_allclose(figures(halves[1]), figures(whole), rtol=1e-11)


def test_a_difference_knows_that_both_policies_saw_the_same_rounds() -> None:
    values, arrays = full(4_000)
    weights = {
        name: table[np.arange(4_000), arrays["actions"]] / arrays["propensities"]  # type: ignore[index, operator]
        for name, table in arrays["targets"].items()  # type: ignore[attr-defined]
    }
    rewards = arrays["rewards"]
    apart = (weights["target"] - weights["other"]) * rewards
    found = values.difference("target", "other", estimator="ips")
    assert found.estimate == pytest.approx(apart.mean(), rel=1e-10)
    assert found.std_error == pytest.approx(stats.sem(apart), rel=1e-10)
    alone = [exact(values.result(), name, "ips").std_error or 0 for name in TABLES]
    assert found.std_error is not None
    assert found.std_error < 0.5 * math.hypot(*alone)
    assert values.difference("target", "target").std_error == 0.0


def test_the_best_of_several_is_named_and_its_interval_holds_for_all() -> None:
    log = World().play(np.random.default_rng(5), 3_000)
    names = [f"always {action}" for action in range(ACTIONS)]
    values = Values(["uniform", *names], low=LOW, high=HIGH, clip=20)
    targets = {name: np.eye(ACTIONS)[[at]] for at, name in enumerate(names)}
    uniform = np.full((1, ACTIONS), 1 / ACTIONS)
    values.add(
        log.rewards,
        propensities=log.propensities,
        targets={"uniform": uniform, **targets},
        actions=log.actions,
    )
    plain = values.result()
    best = values.result(best_of={"best fixed action": names})
    assert [one.policy for one in best] == ["uniform"] * 2 + ["best fixed action"] * 2
    for estimator in ("ips", "snips"):
        largest = max(names, key=lambda name: exact(plain, name, estimator).estimate or 0)
        found = exact(best, "best fixed action", estimator)
        alone = exact(values.result(level=1 - 0.05 / ACTIONS), largest, estimator)
        assert found.chosen == largest
        assert (found.low, found.high, found.bounds) == (alone.low, alone.high, alone.bounds)
        assert found.level == 0.95
        assert found.high > exact(plain, largest, estimator).high  # type: ignore[operator]
        assert "best of several" in found.note
    wrong = [
        {"uniform": names},
        {"x": []},
        {"x": ["y"]},
        {"x": "always 0"},
        {"": names},
        [1],
        {1: names},
    ]
    for groups in wrong:
        with pytest.raises(ParameterError, match="best_of"):
            values.result(best_of=groups)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("propensities", "targets", "clip", "words"),
    [
        (0.5, 0.5, None, None),
        (np.tile([0.5, 0.0], 500), 0.5, 4.0, "500 rounds have propensity 0"),
        (np.tile([0.5, 1e-5], 500), 0.5, None, "as small as 1e-05"),
        (0.5, np.r_[1.0, np.zeros(999)], None, "only 1 effective rows"),
        (0.5, 1.0, None, "average 2 instead of 1: wrong propensities"),
        (0.5, np.tile([0.5, 0.0], 500), None, "actions never logged"),
        (0.05, np.tile([1.0, *[0.0] * 19], 50), 5.0, "clipping"),
        (0.05, np.tile([1.0, *[0.0] * 19], 100), None, None),  # many actions, and all is well
    ],
)
def test_poor_overlap_is_said(
    propensities: object, targets: object, clip: float | None, words: str | None
) -> None:
    rows = len(targets) if isinstance(targets, np.ndarray) else 1000
    values = Values(low=0, high=1, clip=clip)
    values.add(np.zeros(rows), propensities=propensities, targets=targets)  # type: ignore[arg-type]
    one = exact(values.result(), "policy", "ips")
    assert one.overlap is not None
    if words is None:
        assert one.overlap.warning is None
        assert "Warning" not in str(one)
    else:
        assert words in str(one.overlap.warning)
        assert words in str(one)
        assert words in str(values.result())


def test_clipped_weights_and_zero_propensities_are_counted() -> None:
    values = Values(low=0, high=1, clip=3)
    values.add(np.ones(5), propensities=[0, 0.1, 0.2, 0.5, 0], targets=[0.5, 0.5, 0.5, 0.5, 0.0])
    overlap = exact(values.result(), "policy", "ips").overlap
    assert overlap is not None
    assert overlap.clipped_share == pytest.approx(2 / 5)
    assert overlap.zero_propensities == 1
    assert overlap.largest_weight == math.inf
    assert overlap.to_json()["largest_weight"] is None
    assert overlap.mean_weight == pytest.approx((3 + 3 + 2.5 + 1) / 5)


def test_a_policy_that_was_never_logged_has_no_value() -> None:
    values = Values(low=0, high=1)
    values.add([0.5, 0.5], propensities=1, targets=0.0, accepted=[False, False])
    for estimator in ("snips", "replay"):
        one = exact(values.result(), "policy", estimator)
        assert (one.estimate, one.std_error, one.low) == (None, None, None)
        assert "no value" in str(one)
    assert exact(values.result(), "policy", "ips").estimate == 0.0


def test_one_row_has_a_value_and_no_interval() -> None:
    values = Values(low=0, high=1, clip=2)
    values.add([0.5], propensities=1, targets=1, subjects=["one"])
    one = exact(values.result(), "policy", "ips")
    assert (one.estimate, one.std_error, one.low, one.bounds) == (0.5, None, None, None)
    json.dumps(values.result().to_json(), allow_nan=False)


def test_rewards_beyond_the_bounds_are_clipped_on_request() -> None:
    values = Values(low=0, high=1, on_violation="clip")
    values.add([-5.0, 7.0, 1e300], propensities=1, targets=1)
    assert exact(values.result(), "policy", "ips").estimate == pytest.approx(2 / 3)


def test_a_table_says_for_whose_eyes_it_is() -> None:
    values, _ = full(500, clip=3)
    found = values.result()
    text, html = str(found), found._repr_html_()
    for shown in (text, html):
        assert "For the curator only" in shown
        assert "target" in shown
        assert "95%" in shown
    assert found.audience == "curator"
    assert not found.guarantee.private
    assert html.count("<tr>") == len(found) + 1 == 9
    encoded = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert encoded["audience"] == "curator"
    assert encoded["values"][0]["estimate"] == found.values[0].estimate
    assert "for the curator only" in repr(found)
    assert "for the curator only" in repr(found.values[0])
    assert str(values.rows) in repr(values)
    with pytest.raises(ParameterError):
        found["nobody", "ips"]


def test_names_of_policies_are_escaped_in_html() -> None:
    values = Values(["<b>&"], low=0, high=1)
    values.add([0.5, 1], propensities=1, targets=1)
    assert "&lt;b&gt;&amp;" in values.result()._repr_html_()


def test_a_replay_accepts_what_a_picking_policy_shares_with_a_uniform_log() -> None:
    rng = np.random.default_rng(6)
    logged, picked = rng.integers(0, 5, 1_000), rng.integers(0, 5, 1_000)
    found = evaluation.accept((logged == picked) * 1.0, 0.2, ceiling=5, generator=rng)
    np.testing.assert_array_equal(found, logged == picked)
