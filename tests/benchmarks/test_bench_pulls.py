"""The section on multi-armed learners runs at a tiny size. Nothing here looks at a clock."""

import json
from dataclasses import replace

from benchmarks.speed import bars, pulls, suite
from benchmarks.speed.workload import QUICK


def test_every_multi_armed_learner_is_measured_and_held_to_a_bar() -> None:
    section = pulls.measure(replace(QUICK, rounds=100, repeats=1))
    json.dumps(section.to_json(), allow_nan=False)
    assert [row["learner"] for row in section.rows] == ["ucb1", "dpucb", "dpse"]
    assert all(value > 0 for value in section.figures.values())
    held = {bar.figure for bar in bars.BARS if bar.section == pulls.NAME}
    assert held == set(section.figures)
    assert pulls.NAME in suite.SECTIONS
