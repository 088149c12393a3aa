"""The price of privacy: its settings, and verdicts that can go either way."""

from collections.abc import Iterable

import numpy as np
import pytest

from discreet.experiments import _price as price
from discreet.experiments import _price_shown as shown
from discreet.experiments._claims import Verdict
from discreet.experiments._experiment import REGRET, Finished, Reading, Results, Scale, Task
from discreet.experiments._play import Play
from discreet.experiments._price_cells import (
    MAIN,
    SIZES,
    TELLING,
    PriceTarget,
    PriceWorld,
    price_of,
)
from discreet.experiments._reproduce import EXPERIMENTS

PLACES = ("sphere", "sphere-gap", "fixed", "basis", "clusters")
AIMS = {f"price-{place}" for place in PLACES}
BASE, TIGHT, PAPER = 100.0, 500.0, 10_000.0
SPHERE = PriceWorld(environment="sphere", dim=5)
SCENES = [("sphere", 0.0), ("sphere", 0.1), ("fixed", 0.0), ("basis", 0.0), ("clusters", 0.0)]
TWIN = ("nonprivate", "posterior")


def made_up(
    cells: Iterable[Play], *, power: float = -0.1, factor: float = 1.5, paper: float = PAPER
) -> Results:
    """Regret without privacy of 100 or so, and ``factor`` times epsilon to ``power`` of it with."""

    def regret(cell: Play) -> float:
        scatter = 1.0 + 0.01 * (cell.seed % 3)
        if cell.variant == "gaussian":
            return paper * scatter
        if cell.variant == "tight":
            return TIGHT * scatter
        if cell.epsilon is None:  # the paper's learner is not the one to compare with
            return BASE * scatter if cell.policy == "posterior" else 20 * BASE
        return BASE * scatter**1.1 * factor * cell.epsilon**power

    return Results(
        tuple(
            Finished(
                experiment=price.NAME,
                settings=Task(price.NAME, cell).settings,
                readings=(Reading(REGRET, cell.rounds, regret(cell)),),
                seconds=0.0,
            )
            for cell in cells
        )
    )


def verdicts(results: Results) -> dict[str, Verdict]:
    return {claim.name: claim.verdict for claim in price.claims(results)}


@pytest.fixture(scope="module")
def full() -> list[Play]:
    return price.cells(SIZES[Scale.FULL])


def test_it_is_in_the_table() -> None:
    assert EXPERIMENTS["price"] is price.EXPERIMENT


@pytest.mark.parametrize("scale", [Scale.QUICK, Scale.FULL])
def test_every_epsilon_delta_dimension_and_environment_is_played(scale: Scale) -> None:
    played = {
        (cell.environment, cell.gap, cell.dim, cell.epsilon, cell.delta)
        for cell in price.cells(SIZES[scale])
        if cell.variant == "windows"
    }
    assert played == {
        (*place, dim, epsilon, delta)
        for place in SCENES
        for dim in (5, 20)
        for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0)
        for delta in (0.1, 1e-6)
    }


@pytest.mark.parametrize("scale", list(Scale))
def test_whatever_is_private_has_twins_without_privacy_in_the_same_world(scale: Scale) -> None:
    def world(cell: Play) -> tuple[object, ...]:
        shape = (cell.environment, cell.dim, cell.n_actions, cell.gap)
        return (*shape, cell.horizon, cell.rounds, cell.seed)

    cells = price.cells(SIZES[scale])
    played: dict[tuple[str, str], list[tuple[object, ...]]] = {}
    for cell in cells:
        played.setdefault((cell.variant, cell.policy), []).append(world(cell))
    policies = {"windows": "posterior", "tight": "ucb", "gaussian": "ucb"}
    twins = {("nonprivate", "posterior"), ("nonprivate", "ucb")}
    assert set(played) == {*policies.items(), *twins}
    for twin in twins:
        assert len(played[twin]) == len(set(played[twin]))
        assert set(played[twin]) == set(played["windows", "posterior"])
    assert set(played["tight", "ucb"]) == set(played["windows", "posterior"])
    assert set(played["gaussian", "ucb"]) < set(played["windows", "posterior"])


def test_the_twin_plays_by_the_same_policy_with_the_same_numbers() -> None:
    cells = price.cells(SIZES[Scale.SMOKE])
    ours = next(cell for cell in cells if cell.variant == "windows").simulation()
    twin = next(cell for cell in cells if (cell.variant, cell.policy) == TWIN).simulation()
    assert ours.policy == twin.policy
    assert twin.mechanism.noise is None


def test_the_full_scale_is_that_of_the_aims(full: list[Play]) -> None:
    assert {cell.rounds for cell in full} == {TELLING}
    assert {cell.horizon for cell in full} == {50_000_000}
    assert len({cell.seed for cell in full if cell.dim == 5}) >= 16
    assert all(cell.n_actions == (cell.dim if cell.environment == "basis" else 25) for cell in full)
    assert (MAIN.epsilon, MAIN.delta) == (1.0, 0.1)
    assert [(scene.environment, scene.gap) for scene in price.MOST] == SCENES
    assert {world.gap: least for world, least in price.SAVED.items()} == {0.0: 50.0, 0.1: 60.0}


def test_a_price_is_a_ratio_of_means_over_the_seeds_that_both_have(full: list[Play]) -> None:
    target = PriceTarget(epsilon=0.1, delta=1e-6)
    results = made_up(full, power=-1.0, factor=2.0)
    assert price_of(results, SPHERE, target).mean == pytest.approx(20.0, rel=0.01)
    alone = results.only(
        lambda cell: cell.settings["epsilon"] is None or cell.settings["seed"] == 0
    )
    assert price_of(alone, SPHERE, target).mean == pytest.approx(20.0, rel=1e-12)
    assert price_of(alone, SPHERE, target).stderr is None


def test_everything_holds_where_it_should(full: list[Play]) -> None:
    assert set(verdicts(made_up(full)).values()) == {Verdict.HOLDS}


def test_a_high_price_fails_the_aims_and_nothing_else(full: list[Play]) -> None:
    found = verdicts(made_up(full, factor=4.0, power=-0.6, paper=10 * PAPER))
    assert all(most < 4.0 for most in price.MOST.values())
    assert {name for name, verdict in found.items() if verdict == Verdict.FAILS} == AIMS


def test_a_bar_lies_between_two_prices(full: list[Play]) -> None:
    bars = [price.MOST[scene] for scene in price.MOST]
    for share, verdict in ((0.9, Verdict.HOLDS), (1.1, Verdict.FAILS)):
        cells: list[Finished] = []
        for scene, most in zip(SCENES, bars, strict=True):
            here = [cell for cell in full if (cell.environment, cell.gap) == scene]
            cells += made_up(here, factor=share * most).cells
        found = verdicts(Results(tuple(cells)))
        assert {found[f"price-{place}"] for place in PLACES} == {verdict}


def test_more_regret_than_tight_fails_the_claims_about_it(full: list[Play]) -> None:
    found = verdicts(made_up(full, factor=1.1 * TIGHT / BASE))
    assert {found[f"better-{place}"] for place in PLACES} == {Verdict.FAILS}


def test_a_paper_variant_that_is_nearly_as_good_fails_the_claims_on_savings(
    full: list[Play],
) -> None:
    found = verdicts(made_up(full, paper=8_000.0))
    assert found["saved-sphere"] == Verdict.HOLDS
    assert found["saved-sphere-gap"] == Verdict.FAILS


def test_a_price_that_grows_with_epsilon_fails(full: list[Play]) -> None:
    found = verdicts(made_up(full, power=0.1, factor=1.0))
    assert found["price-falls"] == Verdict.FAILS


def test_a_price_that_grows_in_one_setting_only_fails(full: list[Play]) -> None:
    odd = [
        cell
        for cell in full
        if (cell.environment, cell.dim, cell.delta) == ("basis", 20, 1e-6) and cell.epsilon
    ]
    rest = made_up([cell for cell in full if cell not in set(odd)])
    mixed = Results((*rest.cells, *made_up(odd, power=0.2).cells))
    found = verdicts(mixed)
    assert found.pop("price-falls") == Verdict.FAILS
    assert set(found.values()) == {Verdict.HOLDS}


def test_a_price_that_stays_high_at_epsilon_10_fails(full: list[Play]) -> None:
    found = verdicts(made_up(full, power=-0.01, factor=1.8))
    assert found["price-at-epsilon-10"] == Verdict.FAILS


@pytest.mark.parametrize("scale", [Scale.SMOKE, Scale.QUICK])
def test_fewer_rounds_than_the_aims_speak_of_decide_nothing(scale: Scale) -> None:
    for factor in (0.5, 50.0):
        found = verdicts(made_up(price.cells(SIZES[scale]), factor=factor))
        assert set(found.values()) == {Verdict.OPEN}


def test_the_figure_has_a_panel_for_each_environment_and_a_curve_for_each_setting(
    full: list[Play],
) -> None:
    (exhibit,) = shown.show(made_up(full))
    assert len(exhibit.drawings) == 5
    for drawing in exhibit.drawings:
        for label in ("d 5, δ 0.1", "d 5, δ 1e-6", "d 20, δ 0.1", "d 20, δ 1e-6"):
            assert label in drawing.svg


def test_the_tables_have_the_price_of_every_setting(full: list[Play]) -> None:
    few, many, *by_scene, paper = shown.tables(made_up(full))
    assert [len(table.rows) for table in by_scene] == [4] * 5
    assert sum(name.startswith("ε") for name in by_scene[0].columns) == 5
    assert all("±" in cell for row in by_scene[0].rows for cell in row[1:6])
    assert [row[0] for row in paper.rows] == ["0", "0.1"]
    for beside in (few, many):
        assert [row[0] for row in beside.rows] == list(PLACES)
        assert beside.columns[:6] == (
            "world", "nonprivate", "windows", "price", "LinUCB (paper)", "tight"
        )  # fmt: skip
        assert all(row[3].startswith("1.5") for row in beside.rows)
        assert all(row[4].startswith("2,000") for row in beside.rows)


def test_the_paper_s_learner_does_not_count_as_the_baseline(full: list[Play]) -> None:
    rest = [cell for cell in full if (cell.variant, cell.policy) != ("nonprivate", "ucb")]
    assert len(rest) < len(full)
    for world in (SPHERE, PriceWorld(environment="clusters", dim=20)):
        assert price_of(made_up(full), world, MAIN) == price_of(made_up(rest), world, MAIN)


def test_the_smallest_scale_runs_and_is_judged_drawn_and_tabulated() -> None:
    cells = price.cells(SIZES[Scale.SMOKE])
    cells[0].prepare()
    results = Results(tuple(Task(price.NAME, cell).run() for cell in cells))
    assert set(verdicts(results).values()) == {Verdict.OPEN}
    assert shown.show(results)
    assert all(table.rows for table in shown.tables(results))
    assert np.isfinite(price_of(results, SPHERE, MAIN).mean)
