"""Standard differential privacy: the adversary with two contexts, the best reply, and the cost."""

import math
from collections import Counter

import numpy as np
import pytest

from discreet import LinUCB, Privacy, errors, theory
from discreet.baselines.standard import RandomisedResponse, TwoContexts, play_response
from discreet.simulation.environments import play
from helpers import seeded

MILLION = 1_000_000


def test_the_two_actions_are_the_parameter_and_its_opposite() -> None:
    world = TwoContexts().start(np.random.SeedSequence(1))
    assert math.isclose(np.linalg.norm(world.theta), 1.0)
    for _ in range(2000):  # several batches
        actions = world.decision_set()
        better = int((actions @ world.theta).argmax())
        np.testing.assert_allclose(actions[better], world.theta, atol=1e-15)
        np.testing.assert_allclose(actions[1 - better], -world.theta, atol=1e-7)
        assert (np.linalg.norm(actions, axis=1) <= 1 + 1e-12).all()


def test_contexts_are_fair_coins_and_a_wrong_action_costs_two() -> None:
    # 10,000 coins: 5 deviations are 250, with probability 6e-7.
    world = TwoContexts().start(np.random.SeedSequence(2))
    seen: Counter[int] = Counter()
    for _ in range(10_000):
        actions = world.decision_set()
        better = int((actions @ world.theta).argmax())
        seen[better] += 1
        assert world.pull(better) == (1.0, 0.0)
        reward, regret = world.pull(1 - better)
        assert reward == -1.0
        assert math.isclose(regret, 2.0)
    assert abs(seen[0] - 5000) < 250


@pytest.mark.parametrize(("epsilon", "delta"), [(math.log(2), 0.25), (0.1, 1e-6), (0.5, 0.1)])
def test_measured_regret_is_within_a_percent_of_its_closed_form(
    epsilon: float, delta: float
) -> None:
    # One percent is more than 5.7 deviations at a million rounds: flake probability 2e-8.
    checkpoints = np.array([MILLION // 4, MILLION // 2, MILLION])
    regrets = play_response(epsilon=epsilon, delta=delta, seed=1, checkpoints=checkpoints)
    exact = [
        theory.standard_dp_regret(horizon=int(at), epsilon=epsilon, delta=delta)
        for at in checkpoints
    ]
    assert regrets[-1] == pytest.approx(exact[-1], rel=0.01)
    # Linear growth: 2 percent at a quarter of the rounds is as many deviations.
    np.testing.assert_allclose(regrets, exact, rtol=0.02)
    assert (regrets >= checkpoints / 4).all()


def test_a_coin_for_another_target_is_noticed() -> None:
    regret = play_response(epsilon=0.5, delta=0.1, seed=1, checkpoints=np.array([MILLION]))
    other = theory.standard_dp_regret(horizon=MILLION, epsilon=0.55, delta=0.1)
    assert abs(regret[0] / other - 1) > 0.01


def test_the_learner_is_right_as_often_as_its_target_allows() -> None:
    # 20,000 rounds: 5 deviations of the frequency, with probability 6e-7; half or twice the
    # epsilon is more than 9 deviations off.
    world = TwoContexts().start(np.random.SeedSequence(3))
    learner = RandomisedResponse(world.theta, epsilon=0.5, delta=0.05, noise_source=seeded(4))
    right = 1 - play(learner, world, rounds=20_000).mean() / 2
    chance = theory.right_action_chance(epsilon=0.5, delta=0.05)
    assert abs(right - chance) < 5 * math.sqrt(chance * (1 - chance) / 20_000)


def test_its_guarantee_covers_the_action_itself_and_is_void_with_a_seed() -> None:
    target = {"epsilon": 0.5, "delta": 0.05}
    guarantee = RandomisedResponse([1.0, 0.0], **target).guarantee
    assert (guarantee.epsilon, guarantee.delta) == (0.5, 0.05)
    assert "own action" in guarantee.argument
    void = RandomisedResponse([1.0, 0.0], noise_source=seeded(1), **target).guarantee
    assert not void.private


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 1.0), (1.0, -0.1)])
def test_bad_targets_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(errors.ParameterError):
        RandomisedResponse([1.0, 0.0], epsilon=epsilon, delta=delta)


def test_it_refuses_anything_but_two_actions_of_the_right_size() -> None:
    learner = RandomisedResponse([1.0, 0.0], epsilon=0.5, delta=0.0)
    for actions in (np.eye(2)[:1], np.eye(3), np.zeros((3, 2))):
        with pytest.raises(errors.ShapeError, match="actions"):
            learner.choose(actions)


def test_the_joint_learner_meets_the_same_contexts_and_stops_paying() -> None:
    # Rounds 6,001 to 12,000: standard privacy pays about 0.6 a round; the joint learner, whose
    # noise is that of the weaker guarantee, has found the direction by then and pays nothing.
    privacy = Privacy(epsilon=math.log(2), delta=0.1)
    world = TwoContexts().start(np.random.SeedSequence(5).spawn(3)[0])
    learner = LinUCB(TwoContexts().problem, horizon=12_000, privacy=privacy, noise_source=seeded(6))
    joint = play(learner, world, rounds=12_000)
    standard = play_response(
        epsilon=math.log(2), delta=0.1, seed=5, checkpoints=np.array([6000, 12_000])
    )
    assert standard[1] - standard[0] > 0.5 * 6000
    assert joint[6000:].sum() < 0.01 * 6000
