"""Regret bounds against the paper's formulas, and a radius bound that bounds the radius."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import theory
from discreet.errors import ParameterError
from discreet.mechanism import Mechanism, PaperConfidence
from discreet.mechanism.variants import VARIANTS
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem, Setting
from discreet.release import Release, confidence
from discreet.theory import NoiseBounds

EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    return Problem(
        dim=draw(st.integers(1, 30)),
        action_norm=draw(st.floats(0.1, 10)),
        reward_bound=draw(st.floats(0.1, 10)),
        theta_norm=draw(st.floats(0.1, 10)),
        mean_reward_bound=draw(st.floats(1, 10)),
        reward_subgaussian=draw(st.floats(0.1, 10)),
    )


@st.composite
def the_settings(draw: st.DrawFn) -> Setting:
    return Setting(
        problem=draw(problems()),
        horizon=draw(st.integers(1, 10**12)),
        failure_prob=draw(st.floats(1e-12, 0.9)),
    )


@st.composite
def noise_bounds(draw: st.DrawFn) -> NoiseBounds:
    rho_min = draw(st.floats(1e-2, 1e7))
    return NoiseBounds(
        rho_min=rho_min,
        rho_max=rho_min * draw(st.floats(1, 1e3)),
        gamma=draw(st.floats(0, 1e4)),
    )


def papers_bracket(setting: Setting, bounds: NoiseBounds) -> float:
    """The bracket of eq:regret_general_formula, written again with NumPy."""
    problem = setting.problem
    d, n, alpha = problem.dim, setting.horizon, setting.failure_prob
    growth = n * np.square(problem.action_norm) / (d * bounds.rho_min)
    return float(
        problem.reward_subgaussian
        * (2 * np.log(2 / alpha) + d * np.log(bounds.rho_max / bounds.rho_min + growth))
        + (problem.theta_norm * np.sqrt(bounds.rho_max) + bounds.gamma)
        * np.sqrt(d * np.log1p(growth))
    )


@EXAMPLES
@given(the_settings(), noise_bounds(), st.floats(1e-3, 2.0))
def test_the_regret_bounds_are_the_papers(
    setting: Setting, bounds: NoiseBounds, gap: float
) -> None:
    bracket = papers_bracket(setting, bounds)
    largest = setting.problem.mean_reward_bound
    general = largest * np.sqrt(8 * setting.horizon) * bracket
    with_gap = 8 * largest / gap * bracket**2
    assert theory.regret_bound(setting, bounds) == pytest.approx(general, rel=1e-9)
    assert theory.gap_regret_bound(setting, bounds, gap=gap) == pytest.approx(with_gap, rel=1e-9)


GOLDEN_SETTING = Setting(
    problem=Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1),
    horizon=50_000_000,
    failure_prob=2e-8,
)


@pytest.mark.parametrize(
    ("name", "radius", "regret", "gap_regret"),
    [
        ("gaussian", 560.1126399389942, 54774956.53083128, 600059172.5908911),
        ("wishart-unshifted", 2777.858545069033, 115282391.41125081, 2658005953.899367),
        ("wishart", 792.9839676251382, 72245328.07779086, 1043877485.8135273),
        ("nonprivate", 11.836597263103226, 2528181.2046605386, 1278340.0407197622),
    ],
)
def test_the_bounds_have_their_golden_values(
    name: str, radius: float, regret: float, gap_regret: float
) -> None:
    variant, setting = VARIANTS[name], GOLDEN_SETTING
    privacy = Privacy(epsilon=1, delta=0.1) if variant.private else None
    bounds = variant.mechanism(setting, privacy).bounds
    found_radius = theory.radius_bound(setting, bounds, rounds=setting.horizon)
    assert found_radius == pytest.approx(radius, rel=1e-9)
    assert theory.regret_bound(setting, bounds) == pytest.approx(regret, rel=1e-9)
    found_gap_regret = theory.gap_regret_bound(setting, bounds, gap=0.1)
    assert found_gap_regret == pytest.approx(gap_regret, rel=1e-9)


def both(setting: Setting, bounds: NoiseBounds) -> np.ndarray:
    return np.array(
        [
            theory.regret_bound(setting, bounds),
            theory.gap_regret_bound(setting, bounds, gap=0.1),
        ]
    )


@EXAMPLES
@given(the_settings(), noise_bounds(), st.floats(1.01, 100))
def test_the_regret_bounds_grow_with_noise_and_with_the_horizon(
    setting: Setting, bounds: NoiseBounds, factor: float
) -> None:
    base = both(setting, bounds)
    wider = NoiseBounds(rho_min=bounds.rho_min, rho_max=factor * bounds.rho_max, gamma=bounds.gamma)
    louder = NoiseBounds(
        rho_min=bounds.rho_min, rho_max=bounds.rho_max, gamma=factor * (bounds.gamma + 1)
    )
    longer = Setting(
        problem=setting.problem,
        horizon=math.ceil(factor * setting.horizon),
        failure_prob=setting.failure_prob,
    )
    assert (both(setting, wider) > base).all()
    assert (both(setting, louder) > base).all()
    assert (both(longer, bounds) > base).all()


def test_the_gap_bound_is_inverse_to_the_gap() -> None:
    bounds = NoiseBounds(rho_min=1.0, rho_max=3.0, gamma=2.0)
    narrow, wide = (theory.gap_regret_bound(GOLDEN_SETTING, bounds, gap=g) for g in (0.1, 0.4))
    assert narrow == pytest.approx(4 * wide)


@pytest.mark.parametrize("gap", [0.0, -0.1, math.nan, math.inf, "0.1", True])
def test_a_gap_that_is_not_a_positive_number_is_refused(gap: object) -> None:
    bounds = NoiseBounds(rho_min=1.0, rho_max=3.0, gamma=2.0)
    with pytest.raises(ParameterError) as refused:
        theory.gap_regret_bound(GOLDEN_SETTING, bounds, gap=gap)
    assert refused.value.parameter == "gap"


# The corollaries


def regret_over_corollary(name: str, dim: int, privacy: Privacy, horizon: int) -> float:
    """The bound of thm:linucb-regret over what the corollary's O(.) holds, with alpha = 1/n."""
    problem = Problem(dim=dim, action_norm=1, reward_bound=1, theta_norm=1)
    setting = Setting(problem=problem, horizon=horizon)
    variant = VARIANTS[name]
    bounds = variant.mechanism(setting, privacy).bounds
    leading = variant.leading_term(setting, privacy)
    ratio = theory.regret_bound(setting, bounds) / (theory.minimax_scale(setting) * leading)
    gap_ratio = theory.gap_regret_bound(setting, bounds, gap=0.1) / (
        theory.gap_scale(setting, gap=0.1) * leading**2
    )
    assert gap_ratio == pytest.approx(ratio**2, rel=1e-9)  # 8 [..]^2 is (sqrt(8) [..])^2
    return ratio


HORIZONS = [10**power for power in (1, 2, 3, 4, 6, 8, 10, 12, 24, 48, 96, 150)]
TARGETS = [
    Privacy(epsilon=0.1, delta=1e-6),
    Privacy(epsilon=1, delta=0.1),
    Privacy(epsilon=1, delta=1e-12),
]


@pytest.mark.parametrize("dim", [2, 5, 50])
@pytest.mark.parametrize("privacy", TARGETS)
def test_the_gaussian_regret_bound_is_of_the_order_of_its_corollary(
    dim: int, privacy: Privacy
) -> None:
    ratios = [regret_over_corollary("gaussian", dim, privacy, horizon) for horizon in HORIZONS]
    assert max(ratios) < 25
    assert ratios[-1] / ratios[-2] < 1.05  # levelling off


@pytest.mark.parametrize("dim", [2, 5, 50])
@pytest.mark.parametrize("privacy", TARGETS)
def test_the_wishart_regret_bound_exceeds_its_corollary_by_a_fourth_root_only(
    dim: int, privacy: Privacy
) -> None:
    # The corollary counts k as if it did not grow with m: k is of the order m ln(8m/delta), so
    # that sqrt(rho_max) carries another (ln(n) ln(8m/delta))^(1/4).
    ratios = [regret_over_corollary("wishart", dim, privacy, horizon) for horizon in HORIZONS]
    missing = [
        (math.log(n) * math.log(8 * (1 + math.ceil(math.log2(n))) / privacy.delta)) ** 0.25
        for n in HORIZONS
    ]
    relative = np.array(ratios) / np.array(missing)
    assert max(ratios[:8]) < 110  # all horizons that anyone will play
    assert relative.max() < 40
    assert relative[-1] / relative[-2] < 1.05  # levelling off
    assert ratios[-1] / ratios[-2] > 1.1  # the corollary as printed is not enough


# The radius


def release_of(gram: np.ndarray, moment: np.ndarray, rows: int, mechanism: Mechanism) -> Release:
    return Release(
        number=rows,
        rows=rows,
        gram=gram,
        moment=moment,
        spread=1.0,
        weight=float(rows),
        mechanism=mechanism,
    )


def mechanism_with(setting: Setting, bounds: NoiseBounds) -> Mechanism:
    return Mechanism(
        variant="test",
        setting=setting,
        confidence=PaperConfidence(shift=0.0, bounds=bounds),
        guarantee=Guarantee.nothing("a test"),
    )


@EXAMPLES
@given(
    setting=the_settings(),
    bounds=noise_bounds(),
    rows=st.integers(0, 60),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_radius_of_any_data_within_the_bounds_is_below_its_bound(
    setting: Setting, bounds: NoiseBounds, rows: int, seed: int
) -> None:
    problem, rng = setting.problem, np.random.default_rng(seed)
    actions = rng.standard_normal((rows, problem.dim))
    lengths = np.linalg.norm(actions, axis=1, keepdims=True)
    actions *= problem.action_norm * rng.uniform(size=(rows, 1)) ** 0.1 / lengths
    basis, _ = np.linalg.qr(rng.standard_normal((problem.dim, problem.dim)))
    noise = (basis * rng.uniform(bounds.rho_min, bounds.rho_max, problem.dim)) @ basis.T
    gram, moment = actions.T @ actions + 0.5 * (noise + noise.T), rng.standard_normal(problem.dim)

    mechanism = mechanism_with(setting, bounds)
    region = confidence.region(release_of(gram, moment, rows, mechanism))
    at_most = theory.radius_bound(setting, bounds, rounds=rows)
    assert region.radius <= at_most * (1 + 1e-12)

    inside = (
        2 * math.log(2 / setting.failure_prob)
        + np.linalg.slogdet(gram)[1]
        - problem.dim * math.log(bounds.rho_min)
    )
    dense = problem.reward_subgaussian * math.sqrt(inside)
    dense += problem.theta_norm * math.sqrt(bounds.rho_max) + bounds.gamma
    assert region.radius == pytest.approx(dense, rel=1e-9)
    np.testing.assert_allclose(region.centre, np.linalg.solve(gram, moment), rtol=1e-6, atol=1e-9)
    lower = np.linalg.cholesky(gram)
    np.testing.assert_allclose(region.lower, lower, rtol=1e-6, atol=1e-9)
    weights = np.linalg.solve(lower, moment) / np.diag(lower)
    np.testing.assert_allclose(region.weights, weights, rtol=1e-6, atol=1e-9)


@EXAMPLES
@given(setting=the_settings(), bounds=noise_bounds(), rows=st.integers(0, 10**6))
def test_the_radius_bound_is_reached_by_data_spread_evenly_under_the_most_noise(
    setting: Setting, bounds: NoiseBounds, rows: int
) -> None:
    problem = setting.problem
    level = bounds.rho_max + rows * problem.action_norm**2 / problem.dim
    released = release_of(
        level * np.eye(problem.dim),
        np.zeros(problem.dim),
        rows,
        mechanism_with(setting, bounds),
    )
    at_most = theory.radius_bound(setting, bounds, rounds=rows)
    assert confidence.region(released).radius == pytest.approx(at_most, rel=1e-9)


def test_an_ellipsoid_holds_its_centre_and_ends_at_its_radius() -> None:
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    setting = Setting(problem=problem, horizon=100)
    bounds = NoiseBounds(rho_min=1.0, rho_max=2.0, gamma=0.5)
    gram, moment = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    region = confidence.region(release_of(gram, moment, 5, mechanism_with(setting, bounds)))
    assert region.centre in region
    for direction in (np.array([1.0, 0.0]), np.array([-0.3, 2.0])):
        unit = direction / math.sqrt(direction @ gram @ direction)
        assert region.distance(region.centre + 0.7 * unit) == pytest.approx(0.7)
        assert region.centre + 0.999 * region.radius * unit in region
        assert region.centre + 1.001 * region.radius * unit not in region
