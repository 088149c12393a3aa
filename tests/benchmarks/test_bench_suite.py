"""Everything that is measured runs, at tiny sizes. No test here looks at a clock."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.speed import batches, calls, libraries, simulation, store, suite, workload
from benchmarks.speed.__main__ import app
from benchmarks.speed.results import BARS, BenchSection
from benchmarks.speed.workload import BenchSizes
from discreet.errors import ParameterError
from discreet.mechanism.variants import VARIANTS

TINY = BenchSizes(
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
    stored_pairs=8,
    waiting=1_500,
    waiting_calls=6,
    batch=50,
)


def check(section: BenchSection) -> None:
    """Rows agree on their columns, figures are positive, and all of it is JSON."""
    json.dumps(section.to_json(), allow_nan=False)
    assert len({tuple(row) for row in section.rows}) == 1
    assert all(value > 0 for value in section.figures.values())
    _, columns, cells = section.table()
    assert all(len(row) == len(columns) for row in cells)


def test_the_simulator_section_has_every_variant_and_the_baselines() -> None:
    section = simulation.simulator(TINY)
    check(section)
    loops = [row["loop"] for row in section.rows]
    assert loops[: len(VARIANTS)] == list(VARIANTS)
    assert "NumPy nonprivate" in loops
    assert {f"{name}_rounds_per_second" for name in VARIANTS} <= set(section.figures)


def test_without_a_compiler_the_simulator_section_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation.loops, "compiler", lambda: None)
    section = simulation.simulator(TINY)
    check(section)
    assert "gaussian_over_cpp" not in section.figures
    assert any("no working C++ compiler" in note for note in section.notes)


def test_every_multi_armed_learner_is_measured_and_held_to_a_bar() -> None:
    section = simulation.pulls(replace(TINY, rounds=100))
    check(section)
    assert [row["learner"] for row in section.rows] == ["ucb1", "dpucb", "dpse"]
    assert {bar.figure for bar in BARS if bar.section == "pulls"} == set(section.figures)


def test_the_store_section_has_every_way_to_share_a_commit_and_the_waiting_decisions() -> None:
    section = store.store(TINY)
    check(section)
    what = [row["what"] for row in section.rows]
    assert what[:3] == ["append and fsync", "in memory", "stored, 1 thread"]
    assert [f"stored, {count} threads" for count in (2, 4, 8)] == what[3:6]
    assert sum("1,500" in name for name in what) == 4
    assert "stored_over_baseline" not in section.figures
    assert not list(workload.ROOT.glob(".bench-store-*"))


def test_another_checkout_is_measured_beside_this_one() -> None:
    section = store.store(replace(TINY, waiting=10, baseline=workload.ROOT))
    check(section)
    assert section.figures["stored_over_baseline"] > 0
    assert any("times as many pairs" in note for note in section.notes)


def test_what_was_measured_is_the_other_checkout_and_not_this_one(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no src/discreet"):
        store._play_baseline(tmp_path, tmp_path, 1, 0)


def test_the_decisions_of_the_store_section_wait_while_calls_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(
        store, "_longest_call", lambda bandit, _: seen.append(bandit.waiting) or 1.0
    )
    store._crowded(tmp_path / "one", TINY)
    assert seen == [1_500]


def test_batches_are_measured_in_memory_and_stored_and_nothing_is_lost() -> None:
    section = batches.batches(TINY)
    check(section)
    assert [row["features"] for row in section.rows] == list(batches.DIMS)
    assert section.figures["stored_5_over_memory"] > 0


def test_exactness_has_a_row_for_each_size_and_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        workload, "in_own_process", lambda _, name, **given: here(calls, name, given)
    )
    section = calls.exactness(TINY)
    assert len(section.rows) == len(calls.EXACTNESS_DIMS) * len(calls.EXACTNESS_VARIANTS)
    assert section.figures["tight_5_row_ratio"] > 0
    assert section.figures["gaussian_50_release_ms"] > 0


def test_latency_has_a_row_for_each_size_and_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        workload, "in_own_process", lambda _, name, **given: here(calls, name, given)
    )
    section = calls.latency(TINY)
    check(section)
    assert len(section.rows) == len(calls.LATENCY_SIZES) * len(calls.LATENCY_VARIANTS)


def here(module, name: str, given: dict):  # noqa: ANN001, ANN201
    """Call in this process what would have one of its own, to save its start."""
    return getattr(module, name)(**given)


def test_scaling_measures_horizons_and_large_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        simulation, "in_own_process", lambda _, name, **given: here(simulation, name, given)
    )
    monkeypatch.setattr(simulation, "cores", lambda: 1)
    section = simulation.scaling(TINY)
    check(section)
    assert set(section.figures) == {"horizon_ratio", "large_ratio"}


def test_memory_is_that_of_a_process_of_its_own() -> None:
    section = simulation.memory(TINY)
    check(section)
    assert set(section.figures) == {"peak_mib", "peak_growth"}


def test_startup_times_imports_and_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_compilation", lambda: (2.0, 1.0))  # many seconds
    monkeypatch.setattr(calls, "_cold_import", lambda _: 1.0)
    section = calls.startup(TINY)
    check(section)
    assert set(section.figures) >= {"import_seconds", "first_use_seconds", "help_seconds"}


@pytest.mark.parametrize("library", libraries.LIBRARIES, ids=lambda library: library.name)
def test_a_library_is_measured_or_said_to_be_missing(library: libraries.Library) -> None:
    found = libraries.library_row(name=library.name, rounds=5, seconds=0.5)
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
        workload, "in_own_process", lambda _, function, **given: here(libraries, function, given)
    )
    section = libraries.libraries(TINY)
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
    found = libraries.library_row(name="broken", rounds=5, seconds=0.5)
    assert found["status"] == "failed: RuntimeError: changed"
    assert found["median_us"] is None


def test_the_suite_refuses_a_section_that_does_not_exist() -> None:
    with pytest.raises(ParameterError, match="only"):
        suite.run(TINY, only=["nonsense"])


def test_the_command_prints_one_json_object_or_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = BenchSection(
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


def test_a_baseline_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["--only=store", f"--baseline={tmp_path}"])
    assert isinstance(outcome.exception, ParameterError)
    assert "src/discreet" in str(outcome.exception)


def test_full_plays_the_papers_length_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    fake = BenchSection(name="memory", title="", rows=({"what": "x"},))
    monkeypatch.setattr(suite, "SECTIONS", {"memory": lambda sizes: seen.append(sizes) or fake})
    CliRunner().invoke(app, ["--full", "--json"])
    assert seen[0].memory_rounds[1] == workload.HORIZON
