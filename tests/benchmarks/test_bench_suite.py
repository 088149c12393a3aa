"""Everything that is measured runs, at tiny sizes. No test here looks at a clock."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from benchmarks.speed import (
    exactness,
    latency,
    libraries,
    memory,
    scaling,
    simulator,
    startup,
    suite,
    workload,
)
from benchmarks.speed.__main__ import app
from benchmarks.speed.results import Section
from benchmarks.speed.workload import Sizes
from discreet.errors import ParameterError
from discreet.mechanism.variants import VARIANTS

TINY = Sizes(
    rounds=500,
    plain_rounds=50,
    repeats=1,
    scaling_repeats=1,
    worker_rounds=500,
    large_rounds=1,
    calls=20,
    library_rounds=5,
    library_seconds=0.5,
    starts=1,
    memory_rounds=(100, 200),
)


def check(section: Section) -> None:
    """Rows agree on their columns, figures are positive, and all of it is JSON."""
    json.dumps(section.to_json(), allow_nan=False)
    assert len({tuple(row) for row in section.rows}) == 1
    assert all(value > 0 for value in section.figures.values())
    _, columns, cells = section.table()
    assert all(len(row) == len(columns) for row in cells)


def test_the_simulator_section_has_every_variant_and_the_baselines() -> None:
    section = simulator.measure(TINY)
    check(section)
    loops = [row["loop"] for row in section.rows]
    assert loops[: len(VARIANTS)] == list(VARIANTS)
    assert "NumPy nonprivate" in loops
    assert {f"{name}_rounds_per_second" for name in VARIANTS} <= set(section.figures)


def test_without_a_compiler_the_simulator_section_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator.reference, "compiler", lambda: None)
    section = simulator.measure(TINY)
    check(section)
    assert "gaussian_over_cpp" not in section.figures
    assert any("no working C++ compiler" in note for note in section.notes)


def test_exactness_has_a_row_for_each_size_and_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        exactness, "in_own_process", lambda _, name, **given: here(exactness, name, given)
    )
    section = exactness.measure(TINY)
    assert len(section.rows) == len(exactness.DIMS) * len(exactness.VARIANTS)
    assert section.figures["tight_5_row_ratio"] > 0
    assert section.figures["gaussian_50_release_ms"] > 0


def test_latency_has_a_row_for_each_size_and_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        latency, "in_own_process", lambda _, name, **given: here(latency, name, given)
    )
    section = latency.measure(TINY)
    check(section)
    assert len(section.rows) == len(latency.SIZES) * len(latency.VARIANTS)


def here(module, name: str, given: dict):  # noqa: ANN001, ANN201
    """Call in this process what would have one of its own, to save its start."""
    return getattr(module, name)(**given)


def test_scaling_measures_horizons_and_large_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        scaling, "in_own_process", lambda _, name, **given: here(scaling, name, given)
    )
    monkeypatch.setattr(scaling, "cores", lambda: 1)
    section = scaling.measure(TINY)
    check(section)
    assert set(section.figures) == {"horizon_ratio", "large_ratio"}


def test_memory_is_that_of_a_process_of_its_own() -> None:
    section = memory.measure(TINY)
    check(section)
    assert set(section.figures) == {"peak_mib", "peak_growth"}


def test_startup_times_imports_and_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "_compilation", lambda: (2.0, 1.0))  # many seconds
    monkeypatch.setattr(startup, "_cold_import", lambda _: 1.0)
    section = startup.measure(TINY)
    check(section)
    assert set(section.figures) >= {"import_seconds", "first_use_seconds", "help_seconds"}


@pytest.mark.parametrize("library", libraries.LIBRARIES, ids=lambda library: library.name)
def test_a_library_is_measured_or_said_to_be_missing(library: libraries.Library) -> None:
    found = libraries.row(name=library.name, rounds=5, seconds=0.5)
    assert found["note"] == library.note
    if found["status"] == libraries.NOT_INSTALLED:
        assert found["median_us"] is None
    else:
        assert not str(found["status"]).startswith("failed")
        assert found["median_us"] > 0


def test_a_missing_library_is_a_row_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(libraries.LIBRARIES[3], name="absent", module="no_such_library")
    monkeypatch.setattr(libraries, "LIBRARIES", (libraries.LIBRARIES[0], absent))
    monkeypatch.setattr(
        libraries, "in_own_process", lambda _, function, **given: here(libraries, function, given)
    )
    section = libraries.measure(TINY)
    check(section)
    assert section.rows[1]["status"] == "not installed (pip install discreet[bench])"
    assert section.rows[1]["times_discreet"] is None
    assert section.figures == {}


def test_a_library_that_fails_is_a_row_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("changed")

    monkeypatch.setattr(
        libraries, "LIBRARIES", (replace(libraries.LIBRARIES[0], name="broken", player=broken),)
    )
    found = libraries.row(name="broken", rounds=5, seconds=0.5)
    assert found["status"] == "failed: RuntimeError: changed"
    assert found["median_us"] is None


def test_the_suite_refuses_a_section_that_does_not_exist() -> None:
    with pytest.raises(ParameterError, match="only"):
        suite.run(TINY, only=["nonsense"])


def test_the_command_prints_one_json_object_or_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Section(
        name="simulator",
        title="made up",
        rows=({"what": "x", "rate": 2.0, "note": "a remark"},),
        figures={"gaussian_over_cpp": 1.5, "wishart_rounds_per_second": 1.0},
    )
    monkeypatch.setattr(suite, "SECTIONS", {"simulator": lambda _: fake})
    found = json.loads(CliRunner().invoke(app, ["--quick", "--json"]).stdout)
    assert set(found) == {"sections", "bars", "load_before", "provenance"}
    assert found["sections"]["simulator"]["rows"] == [
        {"what": "x", "rate": 2.0, "note": "a remark"}
    ]
    verdicts = {bar["name"]: bar["verdict"] for bar in found["bars"]}
    assert verdicts["gaussian beside C++"] == "met"
    assert verdicts["wishart"] == "missed"
    assert verdicts["nonprivate"] == "not measured"
    shown = " ".join(CliRunner().invoke(app, ["--only=simulator"]).stdout.split())
    assert "made up" in shown
    assert "x: a remark" in shown
    assert "missed" in shown


def test_full_plays_the_papers_length_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    fake = Section(name="memory", title="", rows=({"what": "x"},))
    monkeypatch.setattr(suite, "SECTIONS", {"memory": lambda sizes: seen.append(sizes) or fake})
    CliRunner().invoke(app, ["--full", "--json"])
    assert seen[0].memory_rounds[1] == workload.HORIZON
