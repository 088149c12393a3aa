"""Attacks on linear baselines find nothing above the claim, and half the noise is found out.

Each honest audit errs with probability 1e-6, by its confidence.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import ArrayLike

from discreet import Privacy, Problem
from discreet.audit import Audit, run_linear
from discreet.audit._linear import worst_rows
from discreet.baselines import (
    LINEAR_BASELINES,
    LinearDecision,
    LinearLearner,
    LinearRule,
    linear_rule,
)

PROBLEM = Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
LOOSE = 8.0  # few trials tell twice this from this
# Rows until the person's row is in a release, or in all that it will ever be in.
ROWS = {"batched-ts": 2, "batched-ts-joint": 2, "ldp-linucb": 1, "shuffle-linucb": 1}


def rule_of(name: str, epsilon: float = LOOSE) -> LinearRule:
    privacy = Privacy(epsilon=epsilon, delta=1e-6, protects=LINEAR_BASELINES[name].protects)
    horizon = 64 if name == "core-set" else 4
    rule = linear_rule(name, problem=PROBLEM, horizon=horizon, privacy=privacy)
    return replace(rule, batch=1) if name == "shuffle-linucb" else rule


def with_noise(rule: LinearRule, factor: float) -> LinearRule:
    """The same with a multiple of its noise, and the same promise."""
    other = replace(rule)
    if hasattr(rule, "noise_scale"):
        kind = type("Broken", (type(rule),), {"noise_scale": factor * rule.noise_scale})
        return kind(problem=PROBLEM, horizon=rule.horizon, privacy=rule.privacy)
    spec = rule.compiled
    law = spec.law._replace(
        scale=factor * spec.law.scale, moment_scale=factor * spec.law.moment_scale
    )
    other.__dict__["compiled"] = spec._replace(law=law)
    return other


def audited(name: str, factor: float, trials: int, epsilon: float = LOOSE) -> Audit:
    rule = rule_of(name, epsilon)
    scales = (0.0, 1.0) if rule.protects == "rewards" else rule.noise_stds
    return run_linear(
        partial(LinearLearner, with_noise(rule, factor)),
        gram_std=scales[0],
        moment_std=scales[1],
        rows=ROWS.get(name, 4),
        trials=trials,
        confidence=1 - 1e-6,
    )


@pytest.mark.parametrize("name", LINEAR_BASELINES)
def test_nothing_above_the_claim_is_found(name: str) -> None:
    found = audited(name, 1.0, 400)
    assert not found.violated
    assert found.epsilon_lower > 0.5  # it does see something


@pytest.mark.parametrize("name", ["rare-switching", "adac-oful", "ldp-linucb"])
def test_half_the_noise_is_found_out_in_each_family(name: str) -> None:
    assert audited(name, 0.5, 800).violated


@pytest.mark.nightly
@pytest.mark.parametrize("name", LINEAR_BASELINES)
def test_nothing_is_found_with_many_trials_and_two_thirds_of_the_noise_is(name: str) -> None:
    assert not audited(name, 1.0, 20_000).violated
    if name != "core-set":  # Laplace noise needs more trials than that
        assert audited(name, 2 / 3, 20_000).violated


def test_elimination_with_a_quarter_of_its_noise_is_found_out() -> None:
    assert not audited("core-set", 1.0, 1_000, epsilon=1.0).violated
    assert audited("core-set", 0.25, 1_000, epsilon=1.0).violated


class Peeking(LinearLearner):
    """Releases honest sums, and chooses by the rewards as they are."""

    def __init__(self, rule: LinearRule) -> None:
        super().__init__(rule)
        self._raw = np.zeros(2)

    def choose(self, actions: ArrayLike) -> LinearDecision:
        offered = np.asarray(actions)
        super().choose(offered)
        decision = LinearDecision(index=int(np.argmax(offered @ self._raw)), round=self.rounds)
        self._held = self._held._replace(last=(decision, offered[decision.index]))
        return decision

    def learn(self, decision: LinearDecision, reward: float) -> None:
        last = self._held.last
        assert last is not None
        self._raw += reward * last[1]
        super().learn(decision, reward)


@pytest.mark.parametrize("name", ["adac-oful", "rare-switching"])
def test_choices_by_raw_rewards_are_found_out_behind_honest_sums(name: str) -> None:
    rule = rule_of(name, epsilon=1.0)
    scales = (0.0, 1.0) if rule.protects == "rewards" else rule.noise_stds
    found = run_linear(
        partial(Peeking, rule),
        gram_std=scales[0],
        moment_std=scales[1],
        rows=4,
        trials=400,
        confidence=1 - 1e-6,
    )
    verdicts = {one.attack: one.verdict for one in found.findings}
    assert {name for name, verdict in verdicts.items() if verdict == "VIOLATED"} == {"choices"}


def test_the_worst_rows_cost_what_the_accounting_says() -> None:
    rule = rule_of("ldp-linucb")
    gram_std, moment_std = rule.noise_stds
    one, other = worst_rows(PROBLEM, gram_std=gram_std, moment_std=moment_std)
    assert one.reward == -other.reward == 1.0
    angle = math.atan2(other.action[1], other.action[0])
    assert 0.0 < angle < math.pi
