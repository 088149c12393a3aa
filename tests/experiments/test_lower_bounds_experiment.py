"""The experiment on lower bounds: its cells, its fits, and verdicts that can go either way."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.experiments import _lower_bounds as lower_bounds
from discreet.experiments._claims import Verdict
from discreet.experiments._experiment import REGRET, Finished, Reading, Results, Scale, Task
from discreet.experiments._lower_bounds_shown import fitted, show, tables
from discreet.experiments._pulling import (
    ARMS,
    CONTEXTS,
    JOINT,
    NOISELESS,
    PRIVATE,
    RESPONSE,
    Pulling,
    tallies,
)

HORIZON = 10_000_000
CELL = Pulling(
    game=ARMS,
    learner="dpse",
    n_arms=3,
    gap=0.8,
    epsilon=1.0,
    delta=None,
    horizon=2000,
    points=5,
    seed=1,
)


@pytest.fixture(scope="module")
def smoke() -> Results:
    """Everything at the smallest scale."""
    cells = lower_bounds.cells(lower_bounds.SIZES[Scale.SMOKE])
    cells[0].prepare()
    return Results(tuple(Task("lower-bounds", cell).run() for cell in cells))


def verdicts(results: Results) -> dict[str, Verdict]:
    return {claim.name: claim.verdict for claim in lower_bounds.claims(results)}


def altered(results: Results, change: dict[str, float], **where: object) -> Results:
    """The readings of a quantity multiplied, in the cells with these settings."""

    def touched(cell: Finished) -> Finished:
        if any(cell.settings[name] != value for name, value in where.items()):
            return cell
        readings = tuple(
            Reading(name, at, value * change.get(name, 1.0)) for name, at, value in cell.readings
        )
        return replace(cell, readings=readings)

    return Results(tuple(touched(cell) for cell in results.cells))


def test_a_cell_gives_the_same_readings_twice_and_every_arm_is_counted() -> None:
    readings = CELL.run()
    assert readings == CELL.run()
    regret = next(value for name, at, value in readings if name == REGRET and at == 2000)
    pulls = [value for name, _, value in readings if name.startswith("pulls_")]
    assert len(pulls) == 2
    assert math.isclose(regret, 0.8 * sum(pulls))


@pytest.mark.parametrize("learner", [*PRIVATE, *NOISELESS.values()])
def test_every_learner_against_arms_can_be_played(learner: str) -> None:
    epsilon = 1.0 if learner in PRIVATE else None
    assert replace(CELL, learner=learner, epsilon=epsilon).run()


@pytest.mark.parametrize("learner", [RESPONSE, *JOINT])
def test_every_learner_against_contexts_can_be_played(learner: str) -> None:
    cell = replace(CELL, game=CONTEXTS, learner=learner, n_arms=2, gap=2.0, epsilon=0.5, delta=0.1)
    readings = cell.run()
    assert readings[-1].round == 2000
    assert {name for name, _, _ in readings} == {REGRET}


@pytest.mark.parametrize("scale", list(Scale))
def test_cells_differ_and_cover_all_private_learners(scale: Scale) -> None:
    cells = lower_bounds.cells(lower_bounds.SIZES[scale])
    assert len(set(cells)) == len(cells)
    assert {cell.learner for cell in cells if cell.game == ARMS and cell.epsilon} == set(PRIVATE)


def test_the_smallest_scale_is_judged_drawn_and_tabulated(smoke: Results) -> None:
    found = verdicts(smoke)
    assert found["pulls"] == found["regret"] == Verdict.HOLDS
    assert found["standard-privacy-is-linear"] == Verdict.HOLDS
    assert found["standard-privacy-closed-form"] == Verdict.OPEN
    assert len(show(smoke)) == 3
    assert all(table.rows for table in tables(smoke)[:2])


def test_too_few_pulls_of_one_arm_by_one_learner_fail_the_claim(smoke: Results) -> None:
    few = altered(smoke, {"pulls_2": 1e-6}, learner="dpucb", n_arms=3, epsilon=0.2)
    assert verdicts(few)["pulls"] == Verdict.FAILS


def test_too_little_regret_fails_the_corollary(smoke: Results) -> None:
    low = altered(smoke, {REGRET: 1e-6}, learner="dpse", epsilon=1.0)
    assert verdicts(low)["regret"] == Verdict.FAILS


def test_less_than_a_quarter_a_round_fails_the_claim_on_standard_privacy(smoke: Results) -> None:
    low = altered(smoke, {REGRET: 0.4}, learner=RESPONSE)
    assert verdicts(low)["standard-privacy-is-linear"] == Verdict.FAILS


def made_up(*, bent: bool) -> Results:
    """Regret of exactly 30 + 5 k ln(n) / epsilon, or bent for large epsilon."""
    cells = []
    for n_arms in (5, 10):
        size = n_arms * math.log(HORIZON)
        for learner, epsilon in [
            *((name, None) for name in NOISELESS.values()),
            *((name, eps) for name in PRIVATE for eps in (0.05, 0.1, 0.2, 0.5, 1.0)),
        ]:
            price = 0.0 if epsilon is None else size * (5 / epsilon if not bent else epsilon)
            settings = {
                **{name: getattr(CELL, name) for name in ("game", "gap", "delta", "points")},
                "learner": learner,
                "n_arms": n_arms,
                "epsilon": epsilon,
                "horizon": HORIZON,
                "seed": 0,
            }
            pulls = [Reading(f"pulls_{arm}", HORIZON, 1e6) for arm in range(1, n_arms)]
            readings = (Reading(REGRET, HORIZON, 30.0 + price), *pulls)
            cells.append(
                Finished(experiment="x", settings=settings, readings=readings, seconds=0.0)
            )
    return Results(tuple(cells))


def test_a_fit_finds_the_slope_and_rejects_another_shape() -> None:
    fit = fitted(tallies(made_up(bent=False)), "dpse", 0.8)
    assert fit is not None
    assert math.isclose(fit.slope, 5.0, rel_tol=1e-9)
    assert math.isclose(fit.r_squared, 1.0, rel_tol=1e-9)
    # Privacy doubles the regret of 30 where 5 k ln(n) / epsilon is 30.
    sizes = [5 * n_arms * math.log(HORIZON) / 30 for n_arms in (5, 10)]
    assert math.isclose(fit.onset, float(np.median(sizes * 5)), rel_tol=1e-9)
    bent = fitted(tallies(made_up(bent=True)), "dpse", 0.8)
    assert bent is not None
    assert bent.r_squared < 0.5


def test_settings_that_the_claim_does_not_speak_of_are_left_out_of_fits() -> None:
    lost = altered(made_up(bent=False), {REGRET: 1e6}, learner="dpse", n_arms=5)
    fit = fitted(tallies(lost), "dpse", 0.8)
    assert fit is not None
    assert fit.points == 5
