"""Learners are judged on real data in the right way: shown with made-up data of the same shape."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from benchmarks.real_data import data, learners, suite, values
from benchmarks.real_data.__main__ import app
from benchmarks.real_data.clicks import clicks
from benchmarks.real_data.coverage import WORLDS, coverage, held
from benchmarks.real_data.data import MODELS, Labelled, Logged
from benchmarks.real_data.insurance import insurance
from benchmarks.real_data.records import cancer, digits, norms
from benchmarks.real_data.sizes import Sizes
from benchmarks.speed.results import BenchSection
from discreet.errors import ParameterError
from discreet.release.policies import PosteriorUCB

F64 = NDArray[np.float64]

TINY = Sizes(
    splits=2,
    learned=300,
    theta_norms=(1.0,),
    epsilons=(5.0,),
    players=2,
    rounds=300,
    drawings=300,
    stated_norms=(0.5, 2.0),
    norm_rounds=400,
    views=2_000,
    worlds=3,
    world_rounds=400,
    sets=2,
    factors=(1, 2),
    samples=2,
)


def logged(seed: int = 1, rows: int = 500) -> Logged:
    """Two years of each person; the last of three plans is best for all."""
    rng = np.random.default_rng(seed)
    persons = np.arange(rows) // 2
    health = np.eye(4)[rng.integers(0, 4, rows // 2)][:, :3]
    own = np.column_stack([np.ones(rows // 2), rng.random((rows // 2, 2)), health])
    chosen = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    means = np.array([-0.5, 0.0, 0.8])[chosen]
    return Logged(
        people=own[persons],
        persons=persons,
        chosen=chosen,
        rewards=np.where(rng.random(rows) < 0.5 * (1 + means), 1.0, -1.0),
        offers=np.array([[0.0, 0.0], [0.5, 1.0], [1.0, 0.0]]),
    )


def records(seed: int = 2, count: int = 60) -> Labelled:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((count, 3))
    return data.labelled(values, (values[:, 0] > 0).astype(np.int64))


def check(section: BenchSection) -> None:
    """Rows agree on their columns, and all of it is JSON."""
    json.dumps(section.to_json(), allow_nan=False)
    assert len({tuple(row) for row in section.rows}) == 1
    _, columns, cells = section.table()
    assert all(len(row) == len(columns) for row in cells)
    assert {bar.figure for bar in suite.BARS if bar.section == section.name} == set(section.figures)


def test_nobody_is_on_both_sides_of_a_split() -> None:
    found = logged()
    first, second = found.split(0, 301)
    assert len(first) == 301
    assert len(second) == 500 - 302  # the other row of the last person counts on neither side
    assert not set(found.persons[first]) & set(found.persons[second])
    assert not np.array_equal(first, found.split(1, 301)[0])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_actions_have_norm_at_most_one_and_keep_to_their_blocks(model: data.Model) -> None:
    found = logged()
    sets = model.sets(found)
    sizes = model.sizes(found)
    assert sets.shape == (500, 3, sum(sizes))
    assert 0.7 < np.linalg.norm(sets, axis=2).max() <= 1.0
    learners.unit_problem(sizes, 1.0)  # accepts the blocks
    edges = np.cumsum((0, *sizes))
    parts = [np.any(sets[:, :, a:b] != 0, axis=2) for a, b in pairwise(edges)]
    assert (np.sum(parts, axis=0) == 1).all()


def test_standardised_records_are_cut_to_norm_one() -> None:
    cut = data.labelled(np.array([[3.0, 0.0], [300.0, 0.0]]), np.array([0, 1]))
    np.testing.assert_allclose(cut.records[0], [0.1, 0.3, 0.0])
    assert 0.999 < np.linalg.norm(cut.records[1]) <= 1.0
    sets = cut.sets(np.array([1, 0, 1]))
    assert sets.shape == (3, 2, 6)
    np.testing.assert_array_equal(sets[:, 0, :3], cut.records[[1, 0, 1]])
    np.testing.assert_array_equal(sets[:, 1, 3:], cut.records[[1, 0, 1]])
    assert not sets[:, 0, 3:].any()
    assert not sets[:, 1, :3].any()


@pytest.mark.data
def test_the_real_data_sets_are_what_their_page_says() -> None:
    pytest.importorskip("statsmodels")
    pytest.importorskip("sklearn")
    plans = data.insurance()
    assert plans.people.shape == (20_190, 6)
    assert len(plans.offers) == 6
    assert abs(plans.rewards).max() <= 1.0
    for model in MODELS:
        assert np.linalg.norm(model.sets(plans.subset(np.arange(500))), axis=2).max() <= 1.0
    tumours, images = data.cancer(), data.digits()
    assert (tumours.records.shape, tumours.actions) == ((569, 31), 2)
    assert (images.records.shape, images.actions) == ((1_797, 17), 10)
    for found in (tumours, images):
        assert 0.8 < np.linalg.norm(found.records, axis=1).max() <= 1.0 + 1e-12
        learners.unit_problem((found.records.shape[1],) * found.actions, 1.0)


@pytest.mark.data
def test_the_learner_finds_a_better_plan_than_chance_on_the_insurance_data() -> None:
    pytest.importorskip("statsmodels")
    plans = data.insurance()
    section = insurance(replace(TINY, learned=14_000, theta_norms=(3.0,), epsilons=(1.0,)), plans)
    worth = {(row["model"], row["rule"]): row["value"] for row in section.rows}
    own = worth["one per plan, blocks", "learner"]  # with fixed seeds: 0.43
    assert own > worth["any", "uniform"] + 0.05
    assert own > worth["any", "best single plan"] - 0.1


def test_the_value_of_the_rule_that_made_the_log_is_its_mean_reward() -> None:
    found = logged()
    rule = np.tile(found.shares, (500, 1))
    assert values.snips(rule, found, found.shares).value == pytest.approx(found.rewards.mean())


def test_the_value_of_one_action_is_its_mean_reward_with_an_error_by_person() -> None:
    found = logged()
    value, error = values.snips(values.taken(np.full(500, 2), 3), found, found.shares)
    own = found.rewards[found.chosen == 2]
    assert value == pytest.approx(own.mean())
    alone = replace(found, persons=np.arange(500))
    _, single = values.snips(values.taken(np.full(500, 2), 3), alone, found.shares)
    assert single == pytest.approx(own.std() / math.sqrt(own.size))
    doubled = Logged(
        *(np.repeat(part, 2, axis=0) for part in (found.people, np.arange(500), found.chosen)),
        np.repeat(found.rewards, 2),
        found.offers,
    )
    _, twice = values.snips(values.taken(np.full(1000, 2), 3), doubled, found.shares)
    assert twice == pytest.approx(single)  # the same people again tell nothing new
    assert error != pytest.approx(single)
    assert values.best_single(found, 3) == 2


def test_paired_differences_are_students_t() -> None:
    found = values.paired([1.0, 2.0, 4.0], [0.0, 1.0, 1.0])
    assert found.mean == pytest.approx(5 / 3)
    assert found.t == pytest.approx((5 / 3) / (math.sqrt(4 / 3) / math.sqrt(3)))
    assert values.paired([1.0, 2.0], [1.0, 2.0]).t == 0.0


def test_a_warm_start_has_the_rows_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "_TOGETHER", 7)
    rng = np.random.default_rng(3)
    rows, rewards = rng.random((30, 2)) / 2, rng.random(30)
    bandit = learners.learner(
        learners.unit_problem((2,), 1.0),
        variant="nonprivate",
        horizon=30,
        privacy=None,
        noise="float",
        seed=(1,),
    )
    release = learners.warm_start(bandit, rows, rewards).release
    assert release.rows == 30
    np.testing.assert_allclose(release.moment, rows.T @ rewards)


@pytest.mark.parametrize("noise", ["float", "exact"])
def test_the_insurance_section_has_every_rule_and_finds_the_best_plan(noise: str) -> None:
    section = insurance(replace(TINY, noise=noise), logged())
    check(section)
    worth = {(row["model"], row["rule"]): row["value"] for row in section.rows}
    assert {model for model, _ in worth} == {"any", *(model.name for model in MODELS)}
    assert {rule for _, rule in worth} == {
        "uniform",
        "best single plan",
        "ridge",
        "learner",
        "greedy",
        "tight, UCB",
        "nonprivate",
    }
    # The seeds are fixed. The best plan is worth 0.8 and a uniform choice 0.1.
    assert worth["any", "best single plan"] > 0.6
    assert abs(worth["any", "uniform"] - 0.1) < 0.2
    assert worth["one per plan", "nonprivate"] > 0.6
    (own,) = [row for row in section.rows if (row["model"], row["rule"]) == ("any", "uniform")]
    assert own["above_uniform"] == own["t"] == 0.0


def test_the_cancer_section_beats_a_coin_without_noise_and_repeats_itself() -> None:
    sizes = replace(TINY, rounds=1_000)
    section = cancer(sizes, records())
    check(section)
    assert cancer(sizes, records()).rows == section.rows
    plain = [row["last_quarter"] for row in section.rows if row["rule"] == "nonprivate"]
    assert min(plain) > 0.8  # with fixed seeds; a coin is right half of the time
    fixed = {row["rule"]: row["last_quarter"] for row in section.rows if row["error"] is None}
    found = records()
    assert fixed["uniform"] == 0.5
    assert fixed["best fixed answer"] == max(found.labels.mean(), 1 - found.labels.mean())
    assert fixed["linear fit, labels known"] > 0.9


def test_the_digits_section_learns_three_labels_without_noise() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 90)
    found = Labelled(np.eye(3)[labels] * 0.9, labels)
    section = digits(replace(TINY, drawings=1_000), found)
    check(section)
    worth = {row["rule"]: row for row in section.rows}
    assert worth["uniform"]["last_quarter"] == pytest.approx(1 / 3)
    assert worth["linear fit, labels known"]["last_quarter"] == 1.0
    plain = worth["nonprivate"]
    assert plain["last_quarter"] > 0.9  # with fixed seeds; a guess is right a third of the time
    assert plain["low"] <= plain["last_quarter"] <= plain["high"]


def test_intervals_over_seeds_are_students_t() -> None:
    found = values.over_seeds([(0.1, 0.0), (0.2, 0.1), (0.4, 0.2)])
    mean, error = 0.7 / 3, np.std([0.1, 0.2, 0.4], ddof=1) / math.sqrt(3)
    assert found["last_quarter"] == pytest.approx(mean)
    assert found["high"] == pytest.approx(mean + 4.302653 * error, rel=1e-6)  # of a table
    assert found["low"] == pytest.approx(mean - 4.302653 * error, rel=1e-6)
    assert values.over_seeds([(0.1, 0.0)])["high"] is None


def test_the_clicks_section_finds_the_better_article_without_noise_and_repeats_itself() -> None:
    sizes = replace(TINY, views=20_000)
    section = clicks(sizes)
    check(section)
    assert clicks(TINY).rows == clicks(TINY).rows
    (plain,) = [row for row in section.rows if row["rule"] == "nonprivate"]
    assert plain["lowest"] > 0.04  # with fixed seeds; a uniform choice has 0.023
    assert plain["last_quarter"] > plain["all_rounds"] > 0.023
    fixed = {row["rule"]: row["last_quarter"] for row in section.rows}
    assert fixed["uniform"] == pytest.approx(0.023)
    assert fixed["best fixed article"] == 0.05


def test_the_norms_section_states_every_norm_beside_that_of_the_fit() -> None:
    section = norms(replace(TINY, epsilons=(5.0, 1.0)), records())
    check(section)
    assert [(row["epsilon"], row["theta_norm"]) for row in section.rows] == [
        (5.0, 0.5),
        (5.0, 2.0),
        (1.0, 0.5),
        (1.0, 2.0),
    ]
    small, large = (row["of_the_fit"] for row in section.rows[:2])
    assert large == pytest.approx(4 * small)


def test_the_coverage_section_has_every_world_and_time() -> None:
    section = coverage(TINY, logged())
    check(section)
    assert {row["world"] for row in section.rows} >= set(WORLDS)
    assert sum(str(row["world"]).startswith("insurance") for row in section.rows) == (
        3 * (len(TINY.theta_norms) + 1) * len(TINY.factors)
    )


def test_coverage_counts_intervals_that_hold_the_truth() -> None:
    bandit = learners.learner(
        learners.unit_problem((2,), 1.0),
        variant="nonprivate",
        horizon=10,
        privacy=None,
        noise="float",
        seed=(1,),
    )
    sets = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    prior = 2 / 2  # the variance of a direction before any release
    truth = math.sqrt(prior) * np.array([1.0, 1.5])  # 80% reach to 1.28 deviations, 95% to 1.96
    found = held(bandit.release, PosteriorUCB(), sets, truth)
    np.testing.assert_allclose(found.every, [0.5, 1.0])
    np.testing.assert_allclose(found.chosen, [0.5, 1.0])


def test_the_command_prints_tables_or_json_and_draws(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = replace(TINY, theta_norms=(3.0,))
    monkeypatch.setitem(suite.SECTIONS, "cancer", (lambda _, *rest: cancer(sizes, *rest), records))
    shown = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["--only", "cancer"])
    assert shown.exit_code == 0, shown.output
    assert "last quarter" in " ".join(shown.output.split())
    found = json.loads(
        CliRunner()
        .invoke(app, ["--only", "cancer", "--json", "--folder", str(tmp_path / "kept")])
        .output
    )
    kept = json.loads((tmp_path / "kept" / "results.json").read_text("utf-8"))
    assert kept == found["sections"]
    drawn = (tmp_path / "kept" / "real-data.svg").read_text("utf-8")
    assert all(words in drawn for words in ("Breast cancer records", "best fixed", "no privacy"))
    assert list(found["sections"]) == ["cancer"]
    assert next(bar["verdict"] for bar in found["bars"]) in {"met", "missed"}


def test_unknown_sections_and_noise_are_refused() -> None:
    with pytest.raises(ParameterError, match="only"):
        suite.run(TINY, only=["nothing"])
    refused = CliRunner().invoke(app, ["--noise", "loud"])
    assert isinstance(refused.exception, ParameterError)
