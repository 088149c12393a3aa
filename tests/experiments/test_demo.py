import inspect
import json
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.experiments import _demo as demo
from discreet.experiments import _variants as variants
from discreet.experiments._play import CONTENDERS, POLICIES
from discreet.learner import LinUCB
from discreet.mechanism.variants import VARIANTS
from discreet.release.policies import UCB, PosteriorUCB
from discreet.report._numbers import ON_A_PAGE, Measured
from discreet.simulation import Outcome, simulate

TINY = replace(variants.DEMO, rounds=300, seeds=2)


@pytest.fixture(scope="module")
def steps() -> list[int]:
    return []


@pytest.fixture(scope="module")
def result(steps: list[int]) -> demo.DemoResult:
    return demo.run(jobs=1, on_step=steps.append, sizes=TINY)


@pytest.fixture(scope="module")
def page(result: demo.DemoResult, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = demo.write_page(result, tmp_path_factory.mktemp("demo") / "new")
    assert path.name == "report.html"
    return path.read_text(encoding="utf-8")


def _outcomes(result: demo.DemoResult) -> Iterator[Outcome]:
    return (outcome for one in result.comparisons for outcome in one.outcomes)


def test_the_demo_plays_the_paper_s_second_experiment() -> None:
    cells = variants.cells(variants.DEMO)
    assert {(cell.dim, cell.n_actions, cell.horizon) for cell in cells} == {(5, 25, 50_000_000)}
    assert {cell.gap for cell in cells} == {0.0, 0.1}
    private = [cell for cell in cells if VARIANTS[cell.variant].private]
    assert {(cell.epsilon, cell.delta) for cell in private} == {(1.0, 0.1)}
    assert len({cell.seed for cell in cells}) > 1
    assert len(cells) == demo.steps(quick=False)


def test_the_default_plays_by_its_own_policy_and_the_paper_s_variants_by_theirs(
    result: demo.DemoResult,
) -> None:
    for played, label in zip(result.comparisons[0].outcomes, CONTENDERS, strict=True):
        own = label in {"windows", "nonprivate"}
        assert isinstance(played.simulation.policy, PosteriorUCB if own else UCB)
        assert played.simulation.policy == (POLICIES["posterior"] if own else UCB())


def test_every_variant_plays_every_seed_at_every_gap(result: demo.DemoResult) -> None:
    for one, gap in zip(result.comparisons, (0.0, 0.1), strict=True):
        assert one.gap == gap
        assert {played.simulation.mechanism.variant for played in one.outcomes} == set(VARIANTS)
        assert [row.label for row in one.rows()] == list(CONTENDERS)
        assert all(played.simulation.environment.gap == gap for played in one.outcomes)
    for played in _outcomes(result):
        setting = played.simulation.mechanism.setting
        assert played.seeds == [0, 1]
        assert played.simulation.rounds == 300
        assert setting.horizon == 50_000_000
        assert setting.failure_prob == 1 / 50_000_000


def test_the_regret_of_a_variant_is_what_simulate_gives(result: demo.DemoResult) -> None:
    for played in _outcomes(result):
        same = simulate(played.simulation, seeds=[0, 1])
        np.testing.assert_array_equal(played.rounds, same.rounds)
        np.testing.assert_array_equal(played.regrets, same.regrets)


def test_there_is_at_least_one_worker() -> None:
    with pytest.raises(ParameterError, match="jobs"):
        demo.run(jobs=0, sizes=TINY)


def test_progress_counts_every_run_once(result: demo.DemoResult, steps: list[int]) -> None:
    assert result.sizes == TINY
    assert steps == list(range(1, len(variants.cells(TINY)) + 1))
    assert len(CONTENDERS) * 2 * variants.DEMO.seeds == demo.steps(quick=False)


def test_the_tables_hold_the_outcomes_numbers(result: demo.DemoResult) -> None:
    tables = result.tables()
    assert len(tables) == 2
    for (_, columns, rows), one in zip(tables, result.comparisons, strict=True):
        assert [row[0] for row in rows] == list(CONTENDERS)
        assert all(len(row) == len(columns) for row in rows)
        for row, played in zip(rows, one.outcomes, strict=True):
            assert row[1] == Measured.over_seeds(played.final).text(sign="+-")


def test_json_survives_a_round_trip(result: demo.DemoResult) -> None:
    found = result.to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["settings"]["privacy"] == {
        "epsilon": 1.0,
        "delta": 0.1,
        "contributions_per_user": 1,
        "neighbours": "replacement",
        "protects": "rows",
    }
    for entry, one in zip(found["comparisons"], result.comparisons, strict=True):
        for variant, played in zip(entry["variants"], one.outcomes, strict=True):
            assert variant["pseudo_regret"]["per_seed"] == played.final.tolist()


def test_the_page_shows_every_number_and_every_guarantee(
    result: demo.DemoResult, page: str
) -> None:
    for one in result.comparisons:
        for row in one.rows():
            name, *cells = row.cells(ON_A_PAGE)
            shown = "".join(f"<td>{cell}</td>" for cell in cells)
            assert f'<th scope="row">{name}</th>{shown}' in page
    for played in _outcomes(result):
        assert escape(str(played.simulation.mechanism.guarantee)) in page


def test_the_page_names_the_learner_s_default(page: str) -> None:
    default = inspect.signature(LinUCB).parameters["variant"].default
    assert default == demo.DEFAULT
    assert f"The variant {default} is what LinUCB uses" in page


def test_the_page_says_where_it_comes_from(page: str) -> None:
    for words in ("discreet demo", "0 to 1", "300 rounds", "numba", "UTC", "cores"):
        assert words in page


def test_the_page_refers_to_nothing_outside_itself(page: str) -> None:
    found: list[str] = []

    class References(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in {"script", "link", "img", "iframe", "object", "base"}
            found.extend(value or "" for name, value in attrs if "href" in name or name == "src")

    References().feed(page)
    assert found
    assert all(reference.startswith("#") for reference in found)


def test_a_report_cannot_go_where_a_file_is(result: demo.DemoResult, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(OSError, match="taken"):
        demo.write_page(result, taken)


def test_a_report_replaces_the_one_before(result: demo.DemoResult, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    path = demo.write_page(result, tmp_path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [path]
