"""Intervals are for the prior as it is stated; what is played may take it to be smaller."""

import numpy as np

from discreet import LinUCB, Problem
from discreet.mechanism.noise.sources import SeededNoise
from discreet.privacy import Privacy


def learner(theta_norm: float) -> LinUCB:
    """Rewards that depend on nothing, with a seed."""
    problem = Problem(dim=3, action_norm=1.0, reward_bound=1.0, theta_norm=theta_norm)
    bandit = LinUCB(
        problem,
        horizon=10_000,
        privacy=Privacy(epsilon=2.0, delta=1e-3),
        noise="float",
        noise_source=SeededNoise(np.random.SeedSequence(5)),
    )
    rng = np.random.default_rng(6)
    actions = np.eye(3)[rng.integers(0, 3, 3_000)]
    decisions = bandit.choose_many(actions[:, None, :])
    bandit.learn_many(zip(decisions, rng.choice([-1.0, 1.0], 3_000).tolist(), strict=True))
    return bandit


def test_intervals_stay_as_wide_as_the_stated_bounds_make_them() -> None:
    bandit = learner(theta_norm=20.0)
    played, cautious = bandit.posterior, bandit.release.cautious
    assert played.prior < played.stated  # the release says that the parameter is small
    assert cautious.prior == cautious.stated == played.stated
    assert (cautious.deviations(np.eye(3)) > played.deviations(np.eye(3))).all()
    np.testing.assert_array_equal(
        bandit.estimate(np.eye(3), level=0.8), cautious.estimate(np.eye(3), level=0.8)
    )


def test_without_a_reason_to_shrink_the_prior_both_are_the_same() -> None:
    bandit = learner(theta_norm=0.01)
    played, cautious = bandit.posterior, bandit.release.cautious
    assert played.prior == played.stated
    np.testing.assert_array_equal(played.centre, cautious.centre)
    np.testing.assert_array_equal(played.factor, cautious.factor)


def test_before_the_first_release_both_are_the_prior() -> None:
    problem = Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
    release = LinUCB(problem, horizon=None, privacy=Privacy(epsilon=1.0, delta=1e-6)).release
    np.testing.assert_array_equal(release.cautious.covariance, release.posterior.covariance)
