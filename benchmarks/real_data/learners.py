"""Learners as a user makes them, and how they are fed."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.real_data.data import F64, I64
from discreet import LinUCB, Problem
from discreet.errors import UninformedWarning
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.variants import calibrate
from discreet.privacy import Privacy
from discreet.release import Release
from discreet.release.policies import Choice, Policy, PosteriorUCB, usual

GREEDY = PosteriorUCB(deviations=0.0, growth=0.0, dither=0.0)  # the highest posterior mean
_TOGETHER = 20_000  # rows are taken in so many at a time


class Repeatable:
    """The posterior's rule, with draws that a seed decides: what a learner draws cannot be."""

    def __init__(self, rule: PosteriorUCB, seed: tuple[int, ...]) -> None:
        """Take the rule and the seed."""
        self._rule, self._rng = rule, np.random.default_rng(seed)

    def probabilities(self, release: Release, actions: F64) -> F64:
        """The rule's own."""
        return self._rule.probabilities(release, actions)

    def choose(self, release: Release, actions: F64) -> Choice:
        """Draw an action with these probabilities."""
        found = self.probabilities(release, actions)
        index = int(np.searchsorted(found.cumsum(), self._rng.random(), side="right"))
        index = min(index, len(found) - 1)
        return Choice(index, float(found[index]))


@contextmanager
def quietly() -> Iterator[None]:
    """Do not warn of releases that cannot tell actions apart: here they are counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformedWarning)
        yield


def unit_problem(blocks: tuple[int, ...], theta_norm: float) -> Problem:
    """Actions of norm at most 1 and rewards within [-1, 1]."""
    return Problem(
        dim=sum(blocks), action_norm=1.0, reward_bound=1.0, theta_norm=theta_norm, blocks=blocks
    )


def learner(
    problem: Problem,
    *,
    variant: str,
    horizon: int,
    privacy: Privacy | None,
    noise: str,
    seed: tuple[int, ...],
) -> LinUCB:
    """A learner whose noise and choices have a seed, so that a run can be repeated.

    Args:
        problem: the stated bounds.
        variant: by name.
        horizon: the most rounds.
        privacy: the target; None for 'nonprivate'.
        noise: 'exact' or 'float'.
        seed: of both.
    """
    mechanism = calibrate(variant, problem, horizon=horizon, privacy=privacy, noise=noise)
    rule = usual(mechanism)
    return LinUCB.from_mechanism(
        mechanism,
        policy=Repeatable(rule, (*seed, 0)) if isinstance(rule, PosteriorUCB) else rule,
        noise_source=SeededNoise(np.random.SeedSequence(seed)),
    )


def warm_start(bandit: LinUCB, actions: F64, rewards: F64) -> LinUCB:
    """Learn from choices that others made.

    Args:
        bandit: the learner, which is returned.
        actions: a row each, shape (n, d).
        rewards: shape (n,).
    """
    for start in range(0, len(actions), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        bandit.observe(actions[part], rewards[part])
    return bandit


def play(
    bandit: LinUCB,
    rounds: int,
    offered: Callable[[int, int], F64],
    rewarded: Callable[[int, int, I64], F64],
) -> None:
    """Let a learner serve people, all of a release together.

    Args:
        bandit: the learner.
        rounds: how many people there are.
        offered: the decision sets of the people from one number to before another.
        rewarded: what they answer to the actions that were chosen for them.
    """
    start = 0
    while start < rounds:
        stop = min(bandit.mechanism.schedule.after(start), rounds)
        with quietly():
            decisions = bandit.choose_many(offered(start, stop))
        rewards = rewarded(start, stop, np.array([one.index for one in decisions]))
        bandit.learn_many(zip(decisions, rewards.tolist(), strict=True))
        start = stop


def probabilities(policy: Policy, release: Release, sets: F64) -> F64:
    """With which the policy chooses each action of each set, shape (n, K)."""
    return np.array([policy.probabilities(release, actions) for actions in sets])  # type: ignore[attr-defined]
