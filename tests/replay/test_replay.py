"""A log whose truth is known, replayed: values, parts, chunks, and what the learner has seen."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from replay_world import ACTIONS, BEST, LOGGED, SPEC, UNIFORM, table, written

import discreet
from discreet import LinUCB, Privacy
from discreet.errors import BackendError, OutOfBoundsError, ParameterError, StateExistsError
from discreet.features import FeatureMap
from discreet.replay import Log, Replay, replay
from discreet.replay._log import Reader
from discreet.replay._parts import EVALUATE, LEARN, parts_of, ranks
from discreet.replay._policies import Catalogue, WithoutPrivacy, named_by
from discreet.replay._table import numbers_of, opened
from helpers import seeded, unit_rows

TARGET = Privacy(epsilon=1.0, delta=1e-6)
FEATURES = FeatureMap.from_json(SPEC)
ROWS = 20_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("log") / "log.csv", table(ROWS))


def log_at(path: Path, **columns: str | None) -> Log:
    return Log(
        path=path, **{"action": "shown", "reward": "clicked", "propensity": "chance"} | columns
    )


def replayed(path: Path, **settings: object) -> Replay:
    known = {"privacy": TARGET, "features": FEATURES, "noise_source": seeded(1)}
    return replay(log_at(path), **known | settings)


def test_values_are_the_truth_within_their_errors(path: Path) -> None:
    # 14 comparisons, each beyond 5.2 standard errors with probability 2e-7: 2.8e-6 in all, if
    # the estimators were normal; with 6,000 rows they nearly are. Seeds are fixed.
    found = replayed(path, clip=20, value_privacy=TARGET)
    for policy, truth in (
        ("private", BEST),
        ("private greedy", BEST),
        ("nonprivate", BEST),
        ("uniform", UNIFORM),
    ):
        for estimator in ("ips", "snips", "dr"):
            value = found.exact[policy, estimator]
            assert abs(value.estimate - truth) < 5.2 * value.std_error
            assert value.std_error < 0.03
    logged = found.exact["logged", "ips"]
    assert abs(logged.estimate - LOGGED) < 5.2 * logged.std_error
    assert found.best_fixed in {"red", "blue"}
    assert abs(found.exact["best fixed", "snips"].estimate - 0.5) < 0.1


def test_released_values_are_near_the_exact_ones(path: Path) -> None:
    # A value is moved by noise of the deviation it states; 8 of them beyond 5.5: 3e-7.
    found = replayed(path, clip=20, value_privacy=replace(TARGET, epsilon=4.0))
    assert found.released is not None
    policies = {value.policy for value in found.released}
    assert policies == {"private", "private greedy", "uniform", "logged"}
    for value in found.released:
        if value.estimator == "snips":
            exact = found.exact[value.policy, "snips"].estimate
            assert abs(value.estimate - exact) < 5.5 * value.noise_std
    assert not found.released.guarantee.private  # noise from a seed
    assert found.exact.audience == "curator"
    system = replayed(path, clip=20, value_privacy=TARGET, noise_source=None)
    assert system.released is not None
    assert system.released.audience == "everybody"
    assert system.to_json()["learner"]["audience"] == "everybody"


def test_the_learner_has_seen_the_first_part_and_nothing_else(path: Path) -> None:
    found = replayed(path, train=0.25)
    assert (found.rows, found.learned, found.evaluated) == (ROWS, 5_000, 15_000)
    columns = {name: column[:5_000] for name, column in table(ROWS).items()}
    problem = FEATURES.problem(reward_bound=0.5, theta_norm=2.0)
    alone = LinUCB(problem, horizon=None, privacy=TARGET, noise_source=seeded(1))
    rows = FEATURES.columns({"kind": columns["kind"], "age": columns["age"]}, columns["shown"])
    alone.observe(rows, columns["clicked"] - 0.5)
    np.testing.assert_array_equal(found.learner.release.gram, alone.release.gram)
    np.testing.assert_array_equal(found.learner.release.moment, alone.release.moment)
    assert found.learner.rows == 5_000


def test_values_are_what_the_estimators_say_of_the_second_part(path: Path) -> None:
    found = replayed(path)
    columns = {name: column[14_000:] for name, column in table(ROWS).items()}
    weights = 1 / 3 / columns["chance"]
    expected = float((weights * columns["clicked"]).sum() / weights.sum())
    assert found.exact["uniform", "snips"].estimate == pytest.approx(expected, rel=1e-12)
    assert found.exact["logged", "ips"].estimate == pytest.approx(columns["clicked"].mean())
    contexts = {"kind": columns["kind"], "age": columns["age"]}
    sets = FEATURES.candidates(contexts, list(ACTIONS))
    release, policy = found.learner.release, found.learner.policy
    chances = np.array([policy.probabilities(release, one) for one in sets])
    taken = [ACTIONS.index(one) for one in columns["shown"]]
    weights = chances[np.arange(len(taken)), taken] / columns["chance"]
    expected = float((weights * columns["clicked"]).mean())
    assert found.exact["private", "ips"].estimate == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("chunk", [1, 977, 20_000, 10**6])
def test_chunks_make_no_difference(tmp_path: Path, chunk: int) -> None:
    short = written(tmp_path / "log.csv", table(2_000))
    one, other = (replayed(short, chunk=size) for size in (500, chunk))
    np.testing.assert_array_equal(one.learner.release.gram, other.learner.release.gram)
    for first, second in zip(one.exact, other.exact, strict=True):
        assert first.estimate == pytest.approx(second.estimate, rel=1e-12, abs=1e-12)
        assert first.std_error == pytest.approx(second.std_error, rel=1e-9, abs=1e-12)


def test_many_numbers_are_taken_a_few_at_a_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = replayed(path)
    monkeypatch.setattr("discreet.replay._replay._NUMBERS_AT_ONCE", 1_000)
    parts = replayed(path)
    for first, second in zip(whole.exact, parts.exact, strict=True):
        assert first.estimate == pytest.approx(second.estimate, rel=1e-12)


@pytest.mark.parametrize(
    "options", [{"quoting": csv.QUOTE_ALL}, {"lineterminator": "\n"}, {"lineterminator": "\r"}]
)
def test_spellings_of_csv_make_no_difference(path: Path, tmp_path: Path, options: dict) -> None:
    other = written(tmp_path / "log.csv", table(ROWS), **options)
    assert replayed(other).exact == replayed(path).exact


def test_blank_lines_a_mark_of_order_and_broken_cells_are_read(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8").replace("\r\n", "\n")
    lines = text.splitlines()
    lines[8_000] = lines[8_000].replace("young", '"young"').replace("old", '"old"')
    lines[3:3] = ["", ""]
    other = tmp_path / "log.csv"
    other.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    assert replayed(other).exact == replayed(path).exact


def test_rewards_are_centred_and_values_are_on_their_own_scale(tmp_path: Path) -> None:
    columns = table(6_000)
    plain = replayed(written(tmp_path / "one.csv", columns))
    columns["clicked"] = columns["clicked"] * 6 - 4  # -4 and 2
    other = replayed(written(tmp_path / "two.csv", columns), low=-4, high=2)
    assert (plain.centre, other.centre) == (0.5, -1.0)
    assert other.learner.problem.reward_bound == 3.0
    assert other.learner.problem.theta_norm == 12.0
    for name in ("uniform", "logged"):
        value = plain.exact[name, "snips"].estimate
        assert other.exact[name, "snips"].estimate == pytest.approx(6 * value - 4)


def test_people_are_in_one_part_only(path: Path) -> None:
    log = log_at(path, subject="user")
    target = replace(TARGET, contributions_per_user=2)
    found = replay(log, privacy=target, features=FEATURES, train=0.5)
    assert found.learned + found.evaluated == ROWS
    # A share of 10,000 people; the deviation is 0.005, and 5 of them are exceeded once in 1.7e6.
    assert abs(found.learned / ROWS - 0.5) < 0.025
    parts = parts_of(Reader(log), train=0.5, seed=0, most=2, clip=False, ids=False, chunk=999)
    pairs = parts.assigned.reshape(-1, 2)  # two rows each, one after the other
    assert (pairs[:, 0] == pairs[:, 1]).all()
    assert set(pairs[:, 0]) == {LEARN, EVALUATE}
    others = parts_of(Reader(log), train=0.5, seed=1, most=2, clip=False, ids=False, chunk=50)
    assert (others.assigned != parts.assigned).mean() > 0.4
    by_row = replay(log_at(path), privacy=target, features=FEATURES)
    assert "by person" in found.exact["private", "dr"].method
    assert any("independent" in note for note in by_row.notes)
    assert not any("independent" in note for note in found.notes)


def test_a_person_has_no_more_rows_than_stated(path: Path) -> None:
    log = log_at(path, subject="user")
    with pytest.raises(OutOfBoundsError) as caught:
        replay(log, privacy=TARGET, features=FEATURES)
    assert caught.value.parameter == "subject"
    found = replay(log, privacy=TARGET, features=FEATURES, on_violation="clip")
    assert found.learned + found.evaluated == ROWS // 2
    assert found.to_json()["log"]["left_out"] == ROWS // 2
    words = np.array([3, 5, 3, 3, 7, 5], dtype=np.uint64)
    assert ranks(words).tolist() == [0, 0, 1, 2, 0, 1]


def test_without_propensities_actions_are_taken_to_be_uniform(tmp_path: Path) -> None:
    fair = written(tmp_path / "fair.csv", table(6_000, uniform=True))
    found = replay(log_at(fair, propensity=None), privacy=TARGET, features=FEATURES)
    assert found.warnings == ()
    assert any("equally probable" in note for note in found.notes)
    value = found.exact["nonprivate", "snips"]
    assert abs(value.estimate - BEST) < 5.2 * value.std_error
    skewed = table(6_000)
    skewed["shown"][:] = np.where(skewed["shown"] == "green", "red", skewed["shown"])
    other = written(tmp_path / "skewed.csv", skewed)
    found = replay(log_at(other, propensity=None), privacy=TARGET, features=FEATURES)
    assert found.warnings


def test_actions_are_given_or_named_by_the_map_or_taken_from_the_log(path: Path) -> None:
    assert replayed(path).actions == ACTIONS
    backwards = replayed(path, actions=["blue", "green", "red"])
    assert backwards.actions == ("blue", "green", "red")
    assert backwards.exact["uniform", "dr"].estimate == pytest.approx(
        replayed(path).exact["uniform", "dr"].estimate
    )
    each = discreet.features.disjoint([discreet.features.intercept()], actions=["x", "y"])
    assert named_by(each) == ("x", "y")
    default = replayed(path, features=None)
    assert default.actions == tuple(sorted(ACTIONS))
    assert default.features.dim == 32
    assert any("taken from the log" in note for note in default.notes)
    assert not any("taken from the log" in note for note in replayed(path).notes)
    value = default.exact["nonprivate greedy", "snips"]
    assert value.estimate > UNIFORM + 0.1


def test_actions_may_have_features(path: Path) -> None:
    spec = FeatureMap.from_json(
        {**SPEC, "parts": [{"kind": "category", "path": "action.warm", "values": ["yes", "no"]}]}
    )
    actions = [
        {"id": one, "features": {"warm": "yes" if one == "red" else "no"}} for one in ACTIONS
    ]
    found = replayed(path, features=spec, actions=actions)
    gram = found.learner.release.gram
    assert gram[0, 0] > 1_000  # both values occur among the logged rows
    assert gram[1, 1] > 1_000


def test_the_learner_without_privacy_is_the_one_of_that_variant() -> None:
    rng = np.random.default_rng(3)
    problem = discreet.Problem(dim=4, action_norm=1, reward_bound=0.5, theta_norm=2)
    rows, rewards = unit_rows(rng, 500, 4), rng.choice([-0.5, 0.5], 500)
    bandit = LinUCB(problem, horizon=500, variant="nonprivate")
    bandit.observe(rows, rewards)
    without = WithoutPrivacy(4, 2)
    taken = rng.integers(0, 2, 500)
    for part in np.array_split(np.arange(500), 3):
        without.add(rows[part], rewards[part], taken[part], np.full(part.size, 0.5))
    release = without.release(problem)
    np.testing.assert_allclose(release.gram, bandit.release.gram, rtol=1e-12)
    np.testing.assert_allclose(release.moment, bandit.release.moment, atol=1e-11)
    for name in ("number", "rows", "spread", "weight"):
        assert getattr(release, name) == getattr(bandit.release, name)
    sets = unit_rows(rng, 50 * 5, 4).reshape(50, 5, 4)
    np.testing.assert_array_equal(
        bandit.policy.probabilities(release, sets),
        bandit.policy.probabilities(bandit.release, sets),
    )
    means = [rewards[taken == action].mean() for action in (0, 1)]
    assert without.best() == int(np.argmax(means))


def test_it_can_go_on_from_where_it_was_saved(path: Path, tmp_path: Path) -> None:
    place = tmp_path / "learner"
    found = replayed(path, save=place, noise_source=None)
    found.learner.close()
    again = discreet.load(place)
    assert again.rows == found.learned
    again.learn(again.choose(FEATURES({"kind": "young"}, list(ACTIONS))), 1.0 - found.centre)
    again.close()
    with pytest.raises(StateExistsError):
        replayed(path, save=place)


def test_a_person_of_the_log_is_known_when_it_goes_on(path: Path, tmp_path: Path) -> None:
    log, place = log_at(path, subject="user"), tmp_path / "learner"
    target = replace(TARGET, contributions_per_user=3)
    found = replay(log, privacy=target, features=FEATURES, save=place)
    parts = parts_of(Reader(log), train=0.7, seed=0, most=3, clip=False, ids=False, chunk=999)
    someone = int(np.flatnonzero(parts.assigned == LEARN)[0]) // 2  # has two rows in the log
    found.learner.close()
    with discreet.load(place) as again:
        for beyond in (0, 1, 2):
            offered = again.choose(
                FEATURES({"kind": "young"}, list(ACTIONS)), subject=f"u{someone}"
            )
            again.learn(offered, 0.5)
            assert again.over_cap == beyond


def test_released_values_are_for_as_many_rows_as_people_have(path: Path) -> None:
    two, log = replace(TARGET, contributions_per_user=2), log_at(path, subject="user")
    with pytest.raises(ParameterError, match=r"value_privacy: .* give both the same"):
        replay(log, privacy=two, features=FEATURES, value_privacy=TARGET, clip=5.0)


def test_a_cell_is_read_by_itself() -> None:
    assert numbers_of(["1", "2.5"]).tolist() == [1.0, 2.5]
    with_gap = numbers_of(["1", "", "3"])
    assert np.isnan(with_gap[1])
    assert with_gap[2] == 3.0
    assert numbers_of(["1", "x", ""]) == [1.0, "x", None]


def test_text_in_a_column_of_numbers_changes_its_own_row_only(tmp_path: Path) -> None:
    columns = table(3_000)
    plain = replayed(written(tmp_path / "one.csv", columns), train=0.5)
    ages = columns["age"].astype(object)
    ages[[7, 8, 2_000]] = "unknown", "", "old"
    other = replayed(written(tmp_path / "two.csv", {**columns, "age": ages}), train=0.5)
    one, two = plain.learner._curator._held.sums, other.learner._curator._held.sums
    assert one.position == two.position
    moved = np.abs(plain.learner.release.gram - other.learner.release.gram).max()
    assert 0 < moved < 2.0  # two rows of norm 1 at most


def test_it_prints_without_a_row(path: Path) -> None:
    found = replayed(path, clip=20, value_privacy=TARGET)
    text = str(found)
    assert "For the curator only" in text
    assert "privacy noise" in text
    assert repr(found) == "<Replay of 20,000 rows, 14,000 of them learned from>"
    json.dumps(found.to_json(), allow_nan=False)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log.parquet"
    file.write_bytes(b"PAR1")

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("discreet.replay._table.import_module", missing)
    with pytest.raises(BackendError, match=r"discreet\[parquet\]"):
        opened(file)


def test_parquet_says_the_same_as_csv(path: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = table(ROWS)
    file = tmp_path / "log.parquet"
    parquet.write_table(pa.table(columns), file, row_group_size=3_000)
    one, other = replayed(path), replayed(file)
    np.testing.assert_array_equal(one.learner.release.gram, other.learner.release.gram)
    for first, second in zip(one.exact, other.exact, strict=True):
        assert first.estimate == pytest.approx(second.estimate, rel=1e-12)
    texts = {name: [str(cell) for cell in column] for name, column in columns.items()}
    gaps = {**texts, "age": [None, *texts["age"][1:]], "clicked": columns["clicked"] == 1}
    parquet.write_table(pa.table(gaps), file)
    assert replayed(file).exact["uniform", "ips"] == other.exact["uniform", "ips"]
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 secret PAR1")
    with pytest.raises(ParameterError) as caught:
        replayed(broken)
    assert "secret" not in str(caught.value)
    parquet.write_table(pa.table({**texts, "clicked": ["1"] * 8 + ["secret"] * (ROWS - 8)}), file)
    with pytest.raises(discreet.DiscreetError, match=r"row 9 of the log") as caught:
        replayed(file)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("actions", [[], "red", ["red", "red"], [None], ["red", 3.5, "3.5"], {}])
def test_strange_lists_of_actions_are_refused(actions: object) -> None:
    with pytest.raises(ParameterError):
        Catalogue(actions)
