"""The paper's lower bounds: closed forms, their conditions, and learners that meet them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from discreet import errors, theory
from discreet.baselines import Arms, Elimination, UpperConfidence, simulate


@settings(deadline=None, derandomize=True)
@given(epsilon=st.floats(1e-6, math.log(2)), delta=st.floats(0, 0.25))
def test_standard_dp_costs_a_quarter_a_round_everywhere_in_the_claims_range(
    epsilon: float, delta: float
) -> None:
    regret = theory.standard_dp_regret(horizon=1000, epsilon=epsilon, delta=delta)
    assert regret >= 500 * (1 - 1e-12)
    claim = 1000 * math.exp(-epsilon) * (1 - delta)  # the claim's display, at its smallest (E7)
    assert regret >= claim * (1 - 1e-12) >= 250


def test_at_the_ends_of_the_claims_range_it_costs_half_a_round() -> None:
    regret = theory.standard_dp_regret(horizon=1000, epsilon=math.log(2), delta=0.25)
    assert math.isclose(regret, 500)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, math.log(2), 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.1, 0.25, 0.9])
def test_no_standard_private_choice_is_better_than_the_closed_form(
    epsilon: float, delta: float
) -> None:
    # The unknowns are P(first | context 1) and P(first | context 2); privacy both ways for both
    # actions; the expected cost of a round is P(second | 1) + P(first | 2).
    factor = math.exp(epsilon)
    constraints = [[1, -factor], [-factor, 1], [-1, factor], [factor, -1]]
    limits = [delta, delta, factor - 1 + delta, factor - 1 + delta]
    best = linprog([-1, 1], A_ub=constraints, b_ub=limits, bounds=[(0, 1)] * 2)
    exact = theory.standard_dp_regret(horizon=1, epsilon=epsilon, delta=delta)
    assert math.isclose(1 + best.fun, exact, abs_tol=1e-7)


@settings(deadline=None, derandomize=True)
@given(epsilon=st.floats(1e-6, 50), delta=st.floats(0, 0.999))
def test_the_coin_is_at_the_edge_of_its_budget(epsilon: float, delta: float) -> None:
    chance = theory.right_action_chance(epsilon=epsilon, delta=delta)
    assert 0.5 <= chance <= 1.0
    wrong = 1.0 - chance
    assert math.isclose(chance, math.exp(epsilon) * wrong + delta, rel_tol=1e-3, abs_tol=1e-3) or (
        epsilon > 20
    )


def test_the_bound_on_pulls_is_the_claims() -> None:
    bound = theory.pulls_lower_bound(horizon=10**6, epsilon=0.1, gap=0.5)
    assert math.isclose(bound, math.log(10**6) / 5)


def test_the_bound_on_regret_is_half_the_pulls_at_their_gaps() -> None:
    gaps = [0.1, 0.5, 2.0]
    pulls = [theory.pulls_lower_bound(horizon=10**5, epsilon=0.3, gap=gap) for gap in gaps]
    half = 0.5 * float(np.dot(gaps, pulls))
    assert math.isclose(
        theory.private_regret_lower_bound(horizon=10**5, epsilon=0.3, n_arms=4), half
    )


@pytest.mark.parametrize("gap", [0.05, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0])
def test_from_the_stated_horizon_on_the_proof_goes_through(epsilon: float, gap: float) -> None:
    least = theory.pulls_bound_horizon(epsilon=epsilon, gap=gap)

    def proven(horizon: float) -> bool:
        few = math.log(horizon) / (100 * epsilon * gap)
        return few <= horizon / 2 and 2 * horizon**-0.19 / gap <= 0.5

    assert all(proven(least * factor) for factor in (1.0001, 2, 100))
    assert not proven(least * 0.999) or least == 2.0


@pytest.mark.parametrize(
    ("function", "given", "parameter"),
    [
        (theory.pulls_lower_bound, {"horizon": 100, "epsilon": 0.0, "gap": 0.5}, "epsilon"),
        (theory.pulls_lower_bound, {"horizon": 100, "epsilon": 1.0, "gap": 0.0}, "gap"),
        (theory.pulls_lower_bound, {"horizon": 100, "epsilon": 1.0, "gap": 2.5}, "gap"),
        (theory.pulls_lower_bound, {"horizon": 1, "epsilon": 1.0, "gap": 0.5}, "horizon"),
        (theory.pulls_bound_horizon, {"epsilon": -1.0, "gap": 0.5}, "epsilon"),
        (theory.pulls_bound_horizon, {"epsilon": 1.0, "gap": -0.5}, "gap"),
        (
            theory.private_regret_lower_bound,
            {"horizon": 100, "epsilon": 1.0, "n_arms": 1},
            "n_arms",
        ),
        (
            theory.private_regret_lower_bound,
            {"horizon": 100, "epsilon": 0.0, "n_arms": 2},
            "epsilon",
        ),
        (theory.standard_dp_regret, {"horizon": 0, "epsilon": 1.0, "delta": 0.1}, "horizon"),
        (theory.standard_dp_regret, {"horizon": 10, "epsilon": 0.0, "delta": 0.1}, "epsilon"),
        (theory.standard_dp_regret, {"horizon": 10, "epsilon": 1.0, "delta": 1.0}, "delta"),
        (theory.standard_dp_regret, {"horizon": 10, "epsilon": 1.0, "delta": -0.1}, "delta"),
    ],
)
def test_bad_settings_are_refused_by_name(
    function: object, given: dict[str, float], parameter: str
) -> None:
    with pytest.raises(errors.ParameterError) as caught:
        function(**given)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("rule", [UpperConfidence, Elimination])
def test_private_learners_pull_every_arm_as_often_as_the_claim_says(
    rule: type[UpperConfidence] | type[Elimination], epsilon: float
) -> None:
    # The claim speaks of half of the seeds. Here every arm is far above the bound in all of them:
    # the bound is 2.3 pulls at most, and both learners need hundreds to tell arms apart.
    horizon, gaps = 100_000, [0.5, 0.8]
    arms = Arms.with_gaps(gaps, best_mean=0.0)
    outcome = simulate(rule(n_arms=3, horizon=horizon, epsilon=epsilon), arms, seeds=range(8))
    for arm, gap in enumerate(gaps, start=1):
        bound = theory.pulls_lower_bound(horizon=horizon, epsilon=epsilon, gap=gap)
        assert (outcome.pulls[:, -1, arm] >= bound).mean() >= 0.5
    regret = outcome.regrets[:, -1].mean()
    bound = theory.private_regret_lower_bound(horizon=horizon, epsilon=epsilon, n_arms=3)
    assert regret >= bound
