"""The confidence sets cover, and the noise stays within its promised bounds.

Each of the paper's variants is run 400 times with alpha = 0.05 at a small horizon. A run fails
if in any round the true parameter lies outside the confidence set, an eigenvalue of H_t outside
[rho_min, rho_max], or ||h_t|| in the H_t^-1 norm above gamma. Were the true failure rate exactly
alpha, more failures than `LIMIT` would occur with probability below 1e-5; seeds are fixed, so the
verdict is repeatable. For `tight` see test_tight_coverage.py.
"""

import numpy as np
import pytest
from scipy.stats import binom

from discreet import LinUCB, Mechanism, Problem
from discreet.mechanism.variants import TreeVariant, named
from discreet.simulation.environments import Sphere, World
from discreet.theory import radius_terms
from helpers import learner_for

RUNS, ALPHA, HORIZON, DIM = 400, 0.05, 16, 2
LIMIT = int(binom.isf(1e-5, RUNS, ALPHA))
ENVIRONMENT = Sphere(dim=DIM, n_actions=3)


def stays_covered(learner: LinUCB, world: World, *, shrink: float) -> bool:
    """Play one run beside the exact statistics; whether every promise held in every round."""
    gram, moment = np.zeros((DIM, DIM)), np.zeros(DIM)
    bounds = learner.mechanism.bounds
    centre = 0.5 * (bounds.rho_min + bounds.rho_max)
    reach = 0.5 * (bounds.rho_max - bounds.rho_min) * shrink
    for _ in range(HORIZON):
        region, release = learner.confidence, learner.release
        if region.distance(world.theta) > region.radius * shrink:
            return False
        noise = release.gram - gram
        spectrum = np.linalg.eigvalsh(noise)
        if np.abs(spectrum - centre).max() > reach * (1 + 1e-9):
            return False
        offset = release.moment - moment
        if offset @ np.linalg.solve(noise, offset) > (bounds.gamma * shrink) ** 2:
            return False
        actions = world.decision_set()
        decision = learner.choose(actions)
        reward, _ = world.pull(decision.index)
        learner.learn(decision, reward)
        gram += np.outer(actions[decision.index], actions[decision.index])
        moment += reward * actions[decision.index]
    return True


def failures(variant: TreeVariant, *, runs: int, shrink: float = 1.0) -> int:
    failed = 0
    for seed in range(runs):
        learner = learner_for(
            variant, ENVIRONMENT.problem, horizon=HORIZON, seed=seed, failure_prob=ALPHA
        )
        world = ENVIRONMENT.start(np.random.SeedSequence([seed, 1]))
        failed += not stays_covered(learner, world, shrink=shrink)
    return failed


def test_every_promise_of_the_paper_holds_in_95_percent_of_runs(
    paper_variant: TreeVariant,
) -> None:
    assert failures(paper_variant, runs=RUNS) <= LIMIT


def test_the_covering_tree_keeps_its_promises_too() -> None:
    assert failures(named("gaussian").with_tree("covering"), runs=RUNS) <= LIMIT


def test_bounds_a_tenth_as_wide_would_be_caught(paper_variant: TreeVariant) -> None:
    # The same check must be able to fail: with every bound shrunk tenfold, most runs do.
    assert failures(paper_variant, runs=100, shrink=0.1) > 50


def test_a_radius_without_its_statistical_term_does_not_cover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Non-private LinUCB has no slack from privacy noise: with the statistical term removed, the
    # true parameter falls outside in far more than 5% of runs.
    monkeypatch.setattr(
        Mechanism,
        "radius_terms",
        property(lambda self: radius_terms(self.setting, self.bounds)._replace(noise_scale=0.0)),
    )
    problem = Problem(dim=DIM, action_norm=1, reward_bound=1, theta_norm=1)
    failed = 0
    for seed in range(100):
        learner = LinUCB(problem, horizon=400, variant="nonprivate", failure_prob=ALPHA)
        world = ENVIRONMENT.start(np.random.SeedSequence(seed))
        for _ in range(60):
            if world.theta not in learner.confidence:
                failed += 1
                break
            decision = learner.choose(world.decision_set())
            learner.learn(decision, world.pull(decision.index)[0])
    assert failed > 20
