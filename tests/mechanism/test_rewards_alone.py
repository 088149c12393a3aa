"""Mechanisms that protect rewards alone: an exact Gram matrix, and noise on the moment."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from discreet import LinUCB, Privacy, Problem, Setting, accounting
from discreet.errors import ParameterError
from discreet.kernels import _posterior as posterior
from discreet.mechanism import Mechanism, _codec
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.schedules import every_round
from discreet.mechanism.strategies import SquareRoot, Tree
from discreet.mechanism.variants import Named, Tight, TreeVariant, Windowed, calibrate
from discreet.simulation import Simulation, release_after, run_seed
from discreet.simulation._simulate import streams
from discreet.simulation.environments import Basis, Environment, Fixed, Sphere, play
from helpers import EARLY, AsSimulated, seeded, unit_rows

TARGET = Privacy(epsilon=1.0, delta=1e-6, protects="rewards")
OWN = {
    "windows": EARLY,
    "windows with a memory": EARLY.with_memory(500),
    "tight": Tight(),
    "tight with a tree": Tight(strategy=Tree(pan_private=False)),
    "tight with a matrix": Tight(strategy=SquareRoot()),
}


def made(
    variant: Windowed | Tight = EARLY,
    privacy: Privacy = TARGET,
    noise: str = "exact",
    dim: int = 3,
    horizon: int = 2000,
) -> Mechanism:
    problem = Problem(dim=dim, action_norm=2.0, reward_bound=0.5, theta_norm=1.0)
    return variant.mechanism(Setting(problem=problem, horizon=horizon), privacy, noise=noise)


def smallest_epsilon_cost(privacy: Privacy) -> float:
    """The mu of (epsilon, delta) by bisection of the textbook curve, by itself."""
    low, high = 1e-3, 100.0
    for _ in range(200):
        mu = (low + high) / 2
        spent = ndtr(mu / 2 - privacy.epsilon / mu)
        spent -= math.exp(privacy.epsilon) * ndtr(-mu / 2 - privacy.epsilon / mu)
        low, high = (mu, high) if spent <= privacy.delta else (low, mu)
    return low


@pytest.mark.parametrize("neighbours", ["replacement", "add-remove"])
@pytest.mark.parametrize("contributions", [1, 4])
@pytest.mark.parametrize("noise", ["exact", "float"])
def test_one_window_has_the_noise_that_a_single_release_needs(
    neighbours: str, contributions: int, noise: str
) -> None:
    target = replace(TARGET, neighbours=neighbours, contributions_per_user=contributions)
    mechanism = made(privacy=target, noise=noise)
    most = (2 if neighbours == "replacement" else 1) * contributions * 2.0 * 0.5
    assert mechanism.noise.std == 0.0
    assert mechanism.noise.moment_std == pytest.approx(
        most / smallest_epsilon_cost(target), rel=1e-5
    )
    assert mechanism.cost <= accounting.gaussian_mu(target) * (1 + 1e-9)
    assert mechanism.protects == "rewards"


@pytest.mark.parametrize("form", OWN)
def test_the_cost_is_that_of_the_moment_over_all_releases(form: str) -> None:
    mechanism = made(OWN[form], noise="float")
    strategy, count = mechanism.strategy, min(24, mechanism.releases)
    longest = np.linalg.norm(strategy.encoder(count), axis=0).max()
    least = 2 * 2.0 * 0.5 * longest / mechanism.noise.moment_std
    assert least <= mechanism.cost
    assert mechanism.cost <= smallest_epsilon_cost(TARGET) * (1 + 1e-9)


def test_the_papers_variants_refuse(paper_variant: TreeVariant, setting: Setting) -> None:
    with pytest.raises(ParameterError, match=r"^protects: .*use 'windows' or 'tight'"):
        paper_variant.mechanism(setting, TARGET)


def test_a_variant_without_noise_refuses_any_target(variant: Named, setting: Setting) -> None:
    if variant.private:
        return
    with pytest.raises(ParameterError, match="privacy"):
        variant.mechanism(setting, TARGET)


def test_an_exact_gram_matrix_is_refused_where_rows_are_promised() -> None:
    mechanism = made(noise="float")
    promised = made(privacy=replace(TARGET, protects="rows"), noise="float").guarantee
    with pytest.raises(ParameterError, match="must be of rewards alone"):
        replace(mechanism, guarantee=promised)
    with pytest.raises(ParameterError, match="must be of rewards alone"):
        replace(mechanism, guarantee=promised.voided("a seed"))


@pytest.mark.parametrize("form", OWN)
@pytest.mark.parametrize("noise", ["exact", "float"])
def test_it_is_the_same_after_storing(form: str, noise: str) -> None:
    mechanism = made(OWN[form], noise=noise)
    again = _codec.from_json(_codec.to_json(mechanism))
    assert again == mechanism
    assert (again.cost, again.trace, again.protects) == (
        mechanism.cost,
        mechanism.trace,
        "rewards",
    )


def test_an_entry_from_before_there_was_a_choice_protects_rows() -> None:
    entry = _codec.to_json(made(privacy=replace(TARGET, protects="rows")))
    assert "protects" not in entry["guarantee"]  # nothing was added to files
    assert _codec.from_json(entry).protects == "rows"


def test_an_unknown_thing_to_protect_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^protects: "):
        Privacy(epsilon=1, delta=1e-6, protects="contexts")


@pytest.mark.parametrize("noise", ["exact", "float"])
@pytest.mark.parametrize("own", [EARLY, Tight(schedule=every_round())], ids=["windows", "tight"])
def test_the_moments_noise_is_as_large_as_stated_and_the_gram_has_none(
    own: Windowed | Tight, noise: str
) -> None:
    """Two-sided. With 4,000 entries of a fixed seed: 1e-6 on either side by the chi-square law."""
    mechanism = made(own, noise=noise, dim=40, horizon=64)
    rows = np.zeros((mechanism.schedule.after(0), 40))
    rows[:, 0] = 2.0
    shown = []
    for trial in range(100):
        learner = LinUCB.from_mechanism(mechanism, noise_source=seeded(trial))
        learner.observe(rows, np.zeros(len(rows)))
        assert np.count_nonzero(learner.release.gram) == 1
        shown.append(learner.release.moment)
    found = np.array(shown).ravel() / (learner.release.spread * mechanism.noise.moment_std)
    square, count = float(found @ found), found.size
    assert chi2.ppf(1e-6, count) < square < chi2.ppf(1 - 1e-6, count)
    assert abs(found.mean()) < 5 / math.sqrt(count)


@pytest.mark.parametrize("form", OWN)
@pytest.mark.parametrize(
    "environment", [Sphere(dim=3, n_actions=7), Fixed(dim=4, n_actions=5), Basis(dim=3)]
)
def test_learner_and_simulator_take_the_same_path(form: str, environment: Environment) -> None:
    horizon, seed = 600, 11
    world_seed, noise_seed, policy_seed = streams(seed)
    mechanism = calibrate(
        OWN[form],
        environment.problem,
        horizon=horizon,
        privacy=Privacy(epsilon=2.0, delta=0.1, protects="rewards"),
    )
    simulation = Simulation(environment=environment, mechanism=mechanism, rounds=horizon)
    rule = simulation.policy
    own = AsSimulated(rule, policy_seed) if mechanism.policy == "posterior" else rule
    learner = LinUCB.from_mechanism(mechanism, noise_source=SeededNoise(noise_seed), policy=own)
    plain = np.cumsum(play(learner, environment.start(world_seed), rounds=horizon))
    compiled = run_seed(simulation, seed)
    np.testing.assert_allclose(plain[simulation.checkpoints() - 1], compiled, rtol=1e-12)


def test_the_posterior_is_the_one_of_a_known_gram_matrix() -> None:
    """Beside the textbook formula: given theta, u is normal around G theta."""
    rng, dim = np.random.default_rng(4), 4
    rows = unit_rows(rng, 60, dim)
    gram, moment = rows.T @ rows, rng.normal(size=dim) * 9
    noise = posterior.Noise(0.0, 3.0, 60.0)
    known = posterior.Known(1.5, 1.0, 1.0, 0.7, np.zeros(dim, np.int64), 0)
    lower, weights, centre = np.zeros((dim, dim)), np.empty(dim), np.empty(dim)
    figures = np.zeros(2)
    posterior.fill(gram, moment, noise, known, lower, weights, centre, figures)
    inverse = np.linalg.inv(1.5 * gram + 9.0 * np.eye(dim))
    precision = gram @ inverse @ gram + np.eye(dim) / 0.7
    np.testing.assert_allclose(centre, np.linalg.solve(precision, gram @ inverse @ moment))
    unit = np.tril(lower, -1) + np.eye(dim)
    np.testing.assert_allclose(unit @ np.diag(1 / np.diag(lower)) @ unit.T, precision)


def test_a_gram_matrix_of_lower_rank_leaves_the_rest_as_it_was_beforehand() -> None:
    noise = posterior.Noise(0.0, 1.0, 5.0)
    known = posterior.Known(1.0, 1.0, 1.0, 0.5, np.zeros(2, np.int64), 0)
    lower, weights, centre = np.zeros((2, 2)), np.empty(2), np.empty(2)
    gram = np.array([[5.0, 0.0], [0.0, 0.0]])
    posterior.fill(gram, np.array([4.0, 1.0]), noise, known, lower, weights, centre, np.zeros(2))
    assert lower[1, 1] == pytest.approx(0.5)
    assert centre[1] == pytest.approx(0.0)


@pytest.mark.parametrize("form", ["windows", "tight"])
def test_the_proven_set_holds_the_parameter_and_says_something(form: str) -> None:
    """For each of 40 fixed seeds it fails with a probability of at most 1e-7."""
    world = Fixed(dim=3, n_actions=6)
    mechanism = calibrate(
        OWN[form],
        world.problem,
        horizon=20_000,
        privacy=Privacy(epsilon=1.0, delta=0.1, protects="rewards"),
        failure_prob=1e-7,
    )
    simulation = Simulation(environment=world, mechanism=mechanism, rounds=20_000)
    for seed in range(40):
        release, played = release_after(simulation, seed, 20_000)
        actions = played.arrays.actions.T[:6]
        off = np.abs(actions @ (release.confidence.centre - played.theta))
        widths = release.confidence.widths(actions)
        assert (off <= widths).all()
        assert widths.min() < 0.2  # rewards are plus or minus one
        assert np.isfinite(widths).all()


def test_a_set_from_an_exact_matrix_needs_no_shift() -> None:
    world = Sphere(dim=3, n_actions=6)
    mechanism = calibrate(
        "tight",
        world.problem,
        horizon=5000,
        privacy=Privacy(epsilon=1.0, delta=0.1, protects="rewards"),
    )
    release, _ = release_after(
        Simulation(environment=world, mechanism=mechanism, rounds=5000), 1, 5000
    )
    smallest = np.linalg.eigvalsh(release.gram)[0]
    assert smallest > 10
    assert release.confidence.shift < 0.2 * smallest


def test_less_is_needed_than_for_rows() -> None:
    alone, rows = (
        made(Windowed(), privacy=replace(TARGET, protects=what), noise="float")
        for what in ("rewards", "rows")
    )
    assert alone.noise.moment_std < rows.noise.moment_std
    assert alone.schedule.after(0) < rows.schedule.after(0)
    assert alone.half_gain_rows < rows.half_gain_rows


def test_noise_without_a_moment_is_refused() -> None:
    with pytest.raises(ParameterError, match="moment_std"):
        GaussianNoise(std=0.0)
