"""Variants side by side in the demo: numbers with their uncertainty, and the theory."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from discreet import theory
from discreet.experiments import _demo as demo
from discreet.experiments._demo import Comparison
from discreet.experiments._play import LINUCB, contender
from discreet.report._numbers import IN_A_TERMINAL
from discreet.simulation import Outcome

MakeOutcome = Callable[[str, list[list[float]]], Outcome]


@pytest.fixture
def make_outcome() -> MakeOutcome:
    """An outcome with regrets of our own, one list for each seed, at rounds 1, 10 and 100."""

    def make(label: str, regrets: list[list[float]]) -> Outcome:
        play = contender(label, horizon=1_000_000, rounds=100, seed=0)
        return Outcome(
            simulation=play.simulation(),
            asked=len(regrets),
            seeds=list(range(len(regrets))),
            rounds=np.array([1, 10, 100]),
            regrets=np.array(regrets),
            seconds=1.0,
        )

    return make


@pytest.fixture
def compared(make_outcome: MakeOutcome) -> Comparison:
    outcomes = (
        make_outcome("nonprivate", [[1.0, 5.0, 10.0], [1.0, 6.0, 14.0]]),
        make_outcome("gaussian", [[1.0, 9.0, 100.0], [1.0, 9.0, 140.0]]),
        make_outcome("gaussian-opt", [[1.0, 9.0, 90.0], [1.0, 9.0, 94.0]]),
        make_outcome("wishart", [[1.0, 9.0, 300.0], [1.0, 9.0, 340.0]]),
    )
    return Comparison(gap=0.0, outcomes=outcomes)


def test_the_table_holds_each_variant_with_its_own_numbers(compared: Comparison) -> None:
    table = compared.table()
    assert [row[:4] for row in table.rows] == [
        ("nonprivate", "12.0 ± 2.0", "14", "1"),
        ("gaussian", "120 ± 20", "140", "10"),
        ("gaussian-opt", "92.0 ± 2.0", "94", "7.7 ± 1.1"),
        ("wishart", "320 ± 20", "340", "26.7 ± 2.8"),
    ]
    assert "100 rounds" in table.title
    assert "standard error over 2 seeds" in table.title


def test_a_terminal_gets_plain_characters(compared: Comparison) -> None:
    table = compared.table(IN_A_TERMINAL)
    assert "".join([table.title, *table.columns, *sum(table.rows, ())]).isascii()
    assert table.rows[1][1] == "120 +- 20"


def test_the_bound_is_the_smaller_of_the_theorems_that_apply(
    compared: Comparison, make_outcome: MakeOutcome
) -> None:
    paper = make_outcome(LINUCB, [[1.0, 5.0, 10.0], [1.0, 6.0, 14.0]])
    both = replace(compared, outcomes=(compared.outcomes[0], paper))
    mechanism = paper.simulation.mechanism
    general = theory.regret_bound(mechanism.setting, mechanism.bounds)
    wide = theory.gap_regret_bound(mechanism.setting, mechanism.bounds, gap=1.4)
    assert wide < general
    assert both.rows()[1].bound == general
    assert replace(both, gap=1.4).rows()[1].bound == wide
    assert replace(both, gap=1e-3).rows()[1].bound == general


def test_theorems_are_about_upper_confidence_bounds_alone(
    compared: Comparison, make_outcome: MakeOutcome
) -> None:
    paper = make_outcome(LINUCB, [[1.0, 5.0, 10.0], [1.0, 6.0, 14.0]])
    same, other = replace(compared, outcomes=(compared.outcomes[0], paper)).rows()
    assert (same.label, other.label) == ("nonprivate", LINUCB)
    assert (same.bound, same.rho_min) == (None, None)
    assert other.bound > 0
    assert other.rho_min == 1.0


def test_the_default_stands_beside_the_same_without_noise(
    compared: Comparison, make_outcome: MakeOutcome
) -> None:
    default = make_outcome("windows", [[1.0, 9.0, 20.0], [1.0, 9.0, 28.0]])
    sentence = replace(compared, outcomes=(default, *compared.outcomes)).sentence()
    assert "nonprivate lost 12.0 ± 2.0, and windows, the same with privacy, 24.0 ± 4.0" in sentence
    assert "2 times as much; of the others, gaussian-opt has the smallest mean" in sentence


def test_no_bound_is_closer_to_its_regret_than_the_least_slack(compared: Comparison) -> None:
    factors = [row.bound / row.regret.mean for row in compared.rows() if row.bound]
    assert len(factors) == 3
    assert compared.least_slack() == min(factors)


def test_the_sentence_names_the_least_and_the_largest(compared: Comparison) -> None:
    sentence = compared.sentence()
    assert "nonprivate lost 12.0 ± 2.0" in sentence
    assert "gaussian-opt has the smallest mean, 92.0 ± 2.0" in sentence
    assert "wishart the largest, 320 ± 20" in sentence


def test_a_baseline_alone_makes_a_sentence(compared: Comparison) -> None:
    alone = replace(compared, outcomes=compared.outcomes[:1])
    assert alone.sentence() == "Gap 0: nonprivate lost 12.0 ± 2.0."


def test_a_baseline_without_regret_leaves_the_ratio_open(
    compared: Comparison, make_outcome: MakeOutcome
) -> None:
    perfect = make_outcome("nonprivate", [[0.0, 0.0, 0.0]] * 2)
    one = replace(compared, outcomes=(perfect, *compared.outcomes[1:]))
    assert [row[3] for row in one.table().rows] == ["", "", "", ""]
    assert "times the smallest" not in demo.logarithmic_curves([one]).caption
    json.dumps(one.to_json(), allow_nan=False)


def test_the_caption_says_what_the_band_is_and_why_the_axes_are_logarithmic(
    compared: Comparison,
) -> None:
    caption = demo.logarithmic_curves([compared]).caption
    assert "one standard error either side" in caption
    assert "the largest regret here is 27 times the smallest" in caption


def test_json_survives_a_round_trip(compared: Comparison) -> None:
    found = compared.to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    gaussian = found["variants"][1]
    assert gaussian["label"] == gaussian["variant"] == "gaussian"
    assert gaussian["pseudo_regret"]["per_seed"] == [100.0, 140.0]
    assert gaussian["ratio"]["mean"] == pytest.approx(10.0)


def test_a_single_seed_is_told_as_one(make_outcome: MakeOutcome) -> None:
    outcomes = tuple(make_outcome(name, [[1.0, 5.0, 10.0]]) for name in ("nonprivate", "wishart"))
    one = Comparison(gap=0.0, outcomes=outcomes)
    assert one.table().rows[1][1] == "10 (one seed)"
    assert "over 1 seed" in one.table().title
    json.dumps(one.to_json(), allow_nan=False)


def test_every_variant_has_its_guarantee_and_equal_ones_stand_together(
    compared: Comparison,
) -> None:
    items = dict(demo.guarantees(compared.outcomes).items)
    assert list(items) == ["nonprivate", "gaussian, gaussian-opt", "wishart"]
    for outcome in compared.outcomes:
        assert str(outcome.simulation.mechanism.guarantee) in items.values()


def test_curves_end_where_the_table_says(compared: Comparison) -> None:
    ends = [float(curve.mean[-1]) for curve in compared.panel().curves]
    np.testing.assert_allclose(ends, [row.regret.mean for row in compared.rows()])
