"""Every experiment keeps the contract, whatever it measures."""

import json
import pickle
from xml.etree import ElementTree as ET

import pytest

from discreet.errors import ParameterError
from discreet.experiments._claims import Verdict
from discreet.experiments._experiment import Experiment, Finished, Results, Scale
from discreet.experiments._reproduce import ALL, EXPERIMENTS, named

Found = tuple[Experiment, Results]


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
@pytest.mark.parametrize("scale", Scale)
def test_cells_are_plain_distinct_and_picklable(experiment: Experiment, scale: Scale) -> None:
    tasks = experiment.tasks(scale)
    assert len({task.key for task in tasks}) == len(tasks)
    for task in tasks[:20]:
        assert "seed" in task.settings
        assert json.loads(json.dumps(task.settings)) == task.settings
        assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301  # our own


def test_the_same_cell_gives_the_same_readings_again(
    experiment_and_results: Found,
) -> None:
    experiment, results = experiment_and_results
    for task in experiment.tasks(Scale.SMOKE)[:2]:
        kept = next(cell for cell in results.cells if cell.key == task.key)
        assert task.run().readings == kept.readings


def test_readings_are_finite_numbers_over_rounds(experiment_and_results: Found) -> None:
    for cell in experiment_and_results[1].cells:
        assert cell.readings
        for quantity, at, value in cell.readings:
            assert isinstance(quantity, str)
            assert type(at) is int
            assert type(value) is float
            assert value == value and abs(value) != float("inf")  # noqa: PLR0124, PT018


def test_claims_are_complete_and_have_a_name_each(
    experiment_and_results: Found,
) -> None:
    experiment, results = experiment_and_results
    claims = experiment.claims(results)
    assert len({claim.name for claim in claims}) == len(claims)
    for claim in claims:
        assert all((claim.statement, claim.source, claim.measured, claim.rule))


@pytest.mark.parametrize("name", ["dimension", "variants", "shifts"])
def test_the_papers_claims_are_not_decided_by_a_smoke_test(
    name: str, smoke_cells: list[Finished]
) -> None:
    claims = EXPERIMENTS[name].claims(Results.of(smoke_cells, name))
    assert {claim.verdict for claim in claims} == {Verdict.OPEN}


def test_every_figure_is_well_formed_named_and_captioned(experiment_and_results: Found) -> None:
    experiment, results = experiment_and_results
    exhibits = experiment.figures(results)
    assert exhibits
    for exhibit in exhibits:
        assert exhibit.name.startswith(experiment.name)
        assert exhibit.caption
        for drawing in exhibit.drawings:
            ET.fromstring(drawing.svg)  # noqa: S314  # our own
            ET.fromstring(drawing.file())  # noqa: S314
            assert drawing.png.startswith(b"\x89PNG")


def test_tables_are_rectangular(experiment_and_results: Found) -> None:
    experiment, results = experiment_and_results
    for table in experiment.tables(results):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_all_means_all_and_an_unknown_name_is_refused() -> None:
    assert [row.name for row in named(ALL)] == list(EXPERIMENTS)
    with pytest.raises(ParameterError, match=r"nonsense.*variants"):
        named("nonsense")


def test_a_key_does_not_depend_on_the_order_of_fields() -> None:
    task = EXPERIMENTS["variants"].tasks(Scale.SMOKE)[0]
    kept = task.run().to_json()
    kept["settings"] = dict(reversed(kept["settings"].items()))
    assert type(task.run()).from_json(json.loads(json.dumps(kept))).key == task.key
