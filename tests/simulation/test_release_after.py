"""What a simulated learner has released."""

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.mechanism.variants import calibrate, named
from discreet.privacy import Privacy
from discreet.simulation import Simulation, release_after, run_seed
from discreet.simulation.environments import Fixed

ROUNDS = 2_000


def simulation(variant: str) -> Simulation:
    world, row = Fixed(dim=3, n_actions=4), named(variant)
    privacy = Privacy(epsilon=1.0, delta=0.1) if row.private else None
    mechanism = calibrate(row, world.problem, horizon=ROUNDS, privacy=privacy)
    return Simulation(environment=world, mechanism=mechanism, rounds=ROUNDS)


@pytest.mark.parametrize("rounds", [1, 77, ROUNDS])
def test_without_noise_it_is_the_sum_of_all_rows(rounds: int) -> None:
    what = simulation("nonprivate")
    release, world = release_after(what, 3, rounds)
    assert release.number == release.rows == rounds
    gram = release.gram - what.mechanism.shift * np.eye(3)
    assert np.trace(gram) == pytest.approx(rounds)  # actions are unit vectors
    assert world.decision_set().shape == (4, 3)


@pytest.mark.parametrize("name", ["windows", "tight"])
def test_it_is_the_last_release_before_that_round(name: str) -> None:
    what = simulation(name)
    schedule = what.mechanism.schedule
    first = schedule.after(0)
    assert release_after(what, 3, first - 1)[0].number == 0
    number = schedule.count(ROUNDS)
    release, _ = release_after(what, 3, ROUNDS)
    assert release.number == number
    assert release.rows <= ROUNDS < schedule.after(release.rows)
    numbers = np.arange(1, number + 1)
    spreads = what.mechanism.strategy.row_norms(what.mechanism.releases, numbers)
    assert release.spread == pytest.approx(spreads[-1])


def test_it_says_much_of_the_parameter_in_the_end() -> None:
    """With a fixed seed. Before anything is known the error is about 1."""
    release, world = release_after(simulation("windows"), 3, ROUNDS)
    assert np.linalg.norm(release.posterior.centre - world.theta) < 0.5


def test_looking_does_not_change_what_is_played() -> None:
    what = simulation("windows")
    before = run_seed(what, 3)
    release_after(what, 3, ROUNDS)
    np.testing.assert_array_equal(run_seed(what, 3), before)


@pytest.mark.parametrize("rounds", [0, ROUNDS + 1])
def test_rounds_outside_the_horizon_are_refused(rounds: int) -> None:
    with pytest.raises(ParameterError, match="rounds"):
        release_after(simulation("windows"), 3, rounds)
