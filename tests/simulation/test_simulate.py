"""Many rounds times many seeds."""

import math

import numpy as np
import pytest

from discreet import UCB, Privacy, Setting, Thompson, greedy
from discreet.errors import ParameterError
from discreet.mechanism.variants import Named, named
from discreet.release.policies import Policy, PosteriorUCB
from discreet.simulation import Simulation, run_seed, simulate
from discreet.simulation.environments import GAUSSIAN, Basis, Fixed, Sphere
from helpers import TARGET

PAPER = Privacy(epsilon=1.0, delta=0.1)


def simulation(
    name: str = "gaussian",
    environment: Sphere | Fixed | Basis | None = None,
    *,
    horizon: int = 1000,
    rounds: int | None = None,
    policy: Policy | None = None,
) -> Simulation:
    environment = Sphere(dim=5, n_actions=25) if environment is None else environment
    row = named(name)
    setting = Setting(problem=environment.problem, horizon=horizon)
    return Simulation(
        environment=environment,
        mechanism=row.mechanism(setting, PAPER if row.private else None),
        rounds=horizon if rounds is None else rounds,
        policy=policy,
    )


@pytest.mark.parametrize("name", ["gaussian", "tight", "windows"])
@pytest.mark.parametrize("policy", [UCB(), greedy(), Thompson(), PosteriorUCB(uniform=0.1)])
def test_results_do_not_depend_on_the_number_of_workers(name: str, policy: Policy) -> None:
    played = simulation(name, policy=policy)
    one = simulate(played, seeds=range(3), jobs=1)
    two = simulate(played, seeds=range(3), jobs=2)
    np.testing.assert_array_equal(one.regrets, two.regrets)


def test_each_seed_stands_alone(variant: Named) -> None:
    played = simulation(variant.name)
    together = simulate(played, seeds=[4, 2, 9])
    for place, seed in enumerate([4, 2, 9]):
        np.testing.assert_array_equal(together.regrets[place], run_seed(played, seed))
    assert len({*together.final}) == 3


def test_stopping_early_gives_the_beginning_of_the_longer_run(variant: Named) -> None:
    # The horizon fixes the noise; how many rounds are played must not change their course.
    short, long = (simulation(variant.name, rounds=rounds) for rounds in (100, 1000))
    at = list(long.checkpoints()).index(100)
    assert run_seed(short, 5)[-1] == run_seed(long, 5)[at]


def test_checkpoints_are_dense_early_and_even_late() -> None:
    marks = simulation(horizon=100_000).checkpoints()
    assert marks[0] == 1
    assert marks[-1] == 100_000
    assert (np.diff(marks) > 0).all()
    assert set(range(1000, 100_001, 1000)) <= set(marks.tolist())
    assert (marks < 100).sum() >= 15


def test_a_single_round_can_be_played() -> None:
    outcome = simulate(simulation(rounds=1), seeds=[0])
    assert outcome.rounds.tolist() == [1]
    assert math.isnan(outcome.stderr()[-1])
    assert outcome.to_json()["pseudo_regret"]["stderr"] is None


def test_mean_and_standard_error_are_over_seeds() -> None:
    outcome = simulate(simulation(), seeds=range(4))
    found = outcome.to_json()["pseudo_regret"]
    final = outcome.regrets[:, -1]
    assert found["mean"] == pytest.approx(final.mean())
    assert found["stderr"] == pytest.approx(final.std(ddof=1) / 2)
    assert found["per_seed"] == final.tolist()
    assert found["curve"][-1] == [1000, pytest.approx(final.mean())]


@pytest.mark.parametrize(
    ("change", "parameter"),
    [({"rounds": 1001}, "rounds"), ({"rounds": 0}, "rounds"), ({"rounds": 1.5}, "rounds")],
)
def test_impossible_lengths_are_refused_by_name(change: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        simulation(**change)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("change", "parameter"),
    [({"seeds": []}, "seeds"), ({"seeds": [-1]}, "seeds"), ({"jobs": 0}, "jobs")],
)
def test_impossible_runs_are_refused_by_name(change: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        simulate(simulation(), **{"seeds": [0], **change})
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("environment", [Fixed(dim=5, n_actions=25), Basis(dim=5)])
def test_the_nonprivate_learner_learns_in_every_environment(environment: Fixed | Basis) -> None:
    outcome = simulate(simulation("nonprivate", environment, horizon=20_000), seeds=range(16))
    usual = np.median(outcome.regrets, axis=0)  # an unlucky run may take longer
    half = list(outcome.rounds).index(10_000)
    assert usual[-1] - usual[half] < 0.7 * usual[half]


def test_gaussian_rewards_cost_more_than_signs() -> None:
    # Paper, Experiment 1: rewards of plus or minus one scatter less.
    cost = {}
    for rewards in (GAUSSIAN, None):
        world = Sphere(dim=8, n_actions=64, gap=0.1, **({"rewards": rewards} if rewards else {}))
        outcome = simulate(simulation("nonprivate", world, horizon=20_000), seeds=range(40), jobs=2)
        cost[rewards is None] = outcome.final
    noisy, signs = cost[False], cost[True]
    spread = math.hypot(noisy.std(ddof=1), signs.std(ddof=1)) / math.sqrt(40)
    # About seven standard errors apart; below 2.5 with probability below 1e-5.
    assert noisy.mean() - signs.mean() > 2.5 * spread


@pytest.mark.parametrize(
    ("name", "gap", "mean", "stderr"),
    [
        pytest.param("nonprivate", 0.0, 114, 8, marks=pytest.mark.nightly),
        ("nonprivate", 0.1, 58, 3),
        pytest.param("gaussian", 0.0, 11547, 1009, marks=pytest.mark.nightly),
        pytest.param("gaussian", 0.1, 10417, 985, marks=pytest.mark.nightly),
    ],
)
def test_regret_at_a_million_rounds_agrees_with_the_authors_own_code(
    name: str, gap: float, mean: float, stderr: float
) -> None:
    # Figures of the authors' public code: horizon 5e7, 1e6 rounds, 8 seeds. Ours must agree
    # within four standard errors of the difference; the seeds are fixed, so the verdict is too.
    played = simulation(
        name, Sphere(dim=5, n_actions=25, gap=gap), horizon=50_000_000, rounds=1_000_000
    )
    ours = simulate(played, seeds=range(8), jobs=2)
    spread = math.hypot(stderr, ours.stderr()[-1])
    assert abs(ours.mean()[-1] - mean) < 4 * spread


def test_an_interrupt_keeps_the_seeds_that_are_finished() -> None:
    def interrupt(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    whole = simulate(simulation(), seeds=range(5))
    partial = simulate(simulation(), seeds=range(5), on_seed=interrupt)
    assert partial.seeds == [0, 1]
    np.testing.assert_array_equal(partial.regrets, whole.regrets[:2])
    assert (partial.to_json()["complete"], whole.to_json()["complete"]) == (False, True)
    assert partial.to_json()["seeds"] == 2


def test_an_interrupt_before_the_first_seed_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.simulation._simulate.run_seed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate(simulation(), seeds=range(2))


@pytest.mark.parametrize("checkpoints", [[], [0, 5], [5, 5], [7, 3], [10, 101], [1.5], [[1, 2]]])
def test_checkpoints_that_cannot_be_reached_are_refused(checkpoints: list) -> None:
    environment = Sphere(dim=3, n_actions=4)
    setting = Setting(problem=environment.problem, horizon=100)
    simulation = Simulation(
        environment=environment, mechanism=named("tight").mechanism(setting, TARGET), rounds=50
    )
    with pytest.raises(ParameterError, match="checkpoints: must be growing whole numbers"):
        run_seed(simulation, 0, np.array(checkpoints))
