"""Calibration: golden numbers, brute-force sensitivity, and refusals at their exact place."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from discreet import accounting
from discreet.errors import ParameterError
from discreet.kernels import linalg
from discreet.privacy import Privacy

F64 = NDArray[np.float64]


# The tree


def test_the_tree_is_as_deep_as_the_papers() -> None:
    for horizon in range(1, 5_001):
        assert accounting.tree_depth(horizon) == 1 + math.ceil(math.log2(horizon))


@pytest.mark.parametrize("power", [10, 26, 53, 60, 200])
def test_the_tree_is_exact_around_large_powers_of_two(power: int) -> None:
    assert accounting.tree_depth(2**power - 1) == 1 + power
    assert accounting.tree_depth(2**power) == 1 + power
    assert accounting.tree_depth(2**power + 1) == 2 + power


@pytest.mark.parametrize(("horizon", "depth"), [(1, 1), (2, 2), (1_000_000, 21), (50_000_000, 27)])
def test_the_tree_has_its_golden_depths(horizon: int, depth: int) -> None:
    assert accounting.tree_depth(horizon) == depth


# Exact accounting of Gaussian noise


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [(1.0, 0.1, 0.9209139666), (1.0, 1e-6, 0.2367043807), (0.1, 1e-6, 0.0275446502)],
)
def test_the_exact_delta_inverts_to_the_golden_mu(epsilon: float, delta: float, mu: float) -> None:
    found = optimize.brentq(
        lambda m: accounting.gaussian_delta(epsilon=epsilon, mu=m) - delta, mu / 3, 3 * mu,
        xtol=1e-14,
    )  # fmt: skip
    assert found == pytest.approx(mu, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
def test_the_exact_delta_is_the_hockey_stick_divergence(epsilon: float, mu: float) -> None:
    # The privacy loss is N(mu^2/2, mu^2); delta is the mean of (1 - e^(eps - loss)) above eps.
    loss = stats.norm(mu**2 / 2, mu)
    start, stop = epsilon, max(epsilon, mu**2 / 2) + 40 * mu
    delta, error = integrate.quad(
        lambda x: -math.expm1(epsilon - x) * loss.pdf(x), start, stop, limit=500, epsabs=0,
        points=[min(stop, max(start, mu**2 / 2)), min(stop, start + 3 * mu)],
    )  # fmt: skip
    assert accounting.gaussian_delta(epsilon=epsilon, mu=mu) == pytest.approx(
        delta, rel=1e-7, abs=max(error, 1e-15)
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 10.0, 1_000.0])
def test_the_exact_delta_grows_with_mu_and_stays_a_probability(epsilon: float) -> None:
    deltas = np.array(
        [accounting.gaussian_delta(epsilon=epsilon, mu=mu) for mu in np.geomspace(0.01, 200, 300)]
    )
    assert deltas.min() >= 0.0
    assert deltas.max() <= 1.0
    assert (np.diff(deltas) >= 0).all()
    inside = (deltas > 1e-12) & (deltas < 1 - 1e-12)
    assert (np.diff(deltas[inside]) > 0).all()


def test_the_exact_delta_shrinks_as_epsilon_grows() -> None:
    deltas = [accounting.gaussian_delta(epsilon=e, mu=1.0) for e in np.linspace(0, 8, 50)]
    assert (np.diff(deltas) < 0).all()
    assert deltas[0] == pytest.approx(2 * stats.norm.cdf(0.5) - 1)  # total variation


# Sensitivity


def whitened_distance(first: F64, second: F64, std: float) -> float:
    """How far replacing one row moves a node, in units of its noise.

    Straight from the packed form: off-diagonal and moment entries have deviation ``std``,
    diagonal ones sqrt(2) times that, and the last diagonal entry is not released.
    """
    dim = first.size - 1
    change, other = np.empty(linalg.packed_size(dim)), np.empty(linalg.packed_size(dim))
    linalg.pack_row(first[:-1], float(first[-1]), change)
    linalg.pack_row(second[:-1], float(second[-1]), other)
    rows, columns = (index[:-1] for index in np.tril_indices(dim + 1))
    deviations = np.where(rows == columns, math.sqrt(2) * std, std)
    return float(np.linalg.norm((change - other) / deviations))


def row(parameters: F64, action_norm: float, reward_bound: float) -> F64:
    """Any row within the bounds, from unbounded numbers: direction, length, reward."""
    *direction, length, reward = parameters
    size = max(float(np.linalg.norm(direction)), 1e-12)
    action = np.array(direction) / size * action_norm * abs(math.sin(length))
    return np.append(action, reward_bound * math.sin(reward))


def worst_distance(dim: int, action_norm: float, reward_bound: float, std: float) -> float:
    """Random search over pairs of rows, the best of them improved by local search."""
    rng = np.random.default_rng(dim)

    def distance(parameters: F64) -> float:
        first, second = np.split(parameters, 2)
        return whitened_distance(
            row(first, action_norm, reward_bound), row(second, action_norm, reward_bound), std
        )

    starts = rng.standard_normal((1_000, 2 * (dim + 2)))
    values = np.array([distance(start) for start in starts])
    refined = [
        -optimize.minimize(lambda p: -distance(p), starts[i], method="BFGS").fun
        for i in np.argsort(values)[-4:]
    ]
    return max(values.max(), *refined)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize(
    ("action_norm", "reward_bound"), [(1.0, 1.0), (2.0, 1.5), (1.0, 0.2), (1.0, 3.0)]
)
def test_replacing_a_row_moves_a_node_by_at_most_the_squared_row_norm(
    dim: int, action_norm: float, reward_bound: float
) -> None:
    std = 0.7
    # MATH.md 5.1 with equal noise on both parts. In one dimension the actions cannot take the
    # worst angle, so there the bound need not be reached.
    promised = (action_norm**2 + reward_bound**2) / std
    if reward_bound <= action_norm:
        reached = (action_norm**2 + reward_bound**2) / std
    else:
        reached = 2 * action_norm * reward_bound / std
    worst = worst_distance(dim, action_norm, reward_bound, std)
    assert worst <= promised * (1 + 1e-12)
    assert worst <= reached * (1 + 1e-12)
    if dim > 1:
        assert worst >= reached * (1 - 1e-6)


def test_the_worst_pair_of_rows_is_the_one_of_the_proof() -> None:
    # Angle with cosine -(B/L)^2 between the actions, same reward.
    norm, bound, std = 2.0, 1.5, 0.7
    cosine = -((bound / norm) ** 2)
    first = np.array([norm, 0.0, bound])
    second = np.array([norm * cosine, norm * math.sqrt(1 - cosine**2), bound])
    assert whitened_distance(first, second, std) == pytest.approx((norm**2 + bound**2) / std)


def test_without_the_doubled_diagonal_the_distance_would_be_larger() -> None:
    # Erratum E1: the Frobenius norm itself reaches sqrt(2) L~^2.
    first, second = np.array([2.0, 0.0, 1.5]), np.array([-1.125, math.sqrt(4 - 1.125**2), 1.5])
    moved = np.outer(first, first) - np.outer(second, second)
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(2) * 6.25)
    assert whitened_distance(first, second, 1.0) == pytest.approx(6.25)


# The paper's Gaussian scale

DELTAS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9]


def exact_delta(epsilon: float, std: float, depth: int, row_norm: float) -> float:
    """The delta of m nodes of this scale, from the sensitivity L~^2 of each."""
    mu = math.sqrt(depth) * row_norm**2 / std
    return float(
        stats.norm.cdf(mu / 2 - epsilon / mu)
        - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    )


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0])
@pytest.mark.parametrize(("depth", "row_norm"), [(1, 1.0), (27, math.sqrt(2)), (40, 5.0)])
def test_the_papers_gaussian_scale_is_private_by_exact_accounting(
    epsilon: float, delta: float, depth: int, row_norm: float
) -> None:
    privacy = Privacy(epsilon=epsilon, delta=delta)
    std = accounting.gaussian_node_std(privacy=privacy, depth=depth, row_norm=row_norm)
    assert exact_delta(epsilon, std, depth, row_norm) <= delta


def test_the_papers_gaussian_scale_has_its_golden_value_and_its_proportions() -> None:
    def std(
        *, epsilon: float = 1.0, delta: float = 0.1, depth: int = 27, row_norm: float = 2**0.5
    ) -> float:
        privacy = Privacy(epsilon=epsilon, delta=delta)
        return accounting.gaussian_node_std(privacy=privacy, depth=depth, row_norm=row_norm)

    golden = 153.3438393005348
    assert std() == pytest.approx(golden, rel=1e-12)
    assert std(depth=4 * 27) == pytest.approx(2 * golden)
    assert std(row_norm=2 * 2**0.5) == pytest.approx(4 * golden)
    assert std(epsilon=0.5) == pytest.approx(2 * golden)
    assert std(delta=4 / 40**2) == pytest.approx(2 * golden)


def bisect(refused: object, low: float, high: float) -> float:
    """Where a predicate turns true."""
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refused(middle) else (middle, high)
    return math.sqrt(low * high)


@pytest.mark.parametrize("delta", DELTAS)
def test_the_gaussian_calibration_is_refused_exactly_where_it_stops_being_private(
    delta: float,
) -> None:
    def not_private(epsilon: float) -> bool:
        mu = epsilon / (4 * math.log(4 / delta))
        log_second = epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu)
        return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(log_second) > delta

    limit = bisect(not_private, 1.0, 1e6)
    assert 10 < limit < 1e5
    allowed = Privacy(epsilon=limit * (1 - 1e-6), delta=delta)
    assert accounting.gaussian_node_std(privacy=allowed, depth=3, row_norm=1.0) > 0.0
    for factor in (1 + 1e-6, 2.0, 100.0):
        beyond = Privacy(epsilon=limit * factor, delta=delta)
        with pytest.raises(ParameterError) as refused:
            accounting.gaussian_node_std(privacy=beyond, depth=3, row_norm=1.0)
        assert refused.value.parameter == "epsilon"


# The paper's Wishart degrees of freedom


def wishart_dof(epsilon: float, delta: float, depth: int = 27, dim: int = 5) -> int:
    privacy = Privacy(epsilon=epsilon, delta=delta)
    return accounting.wishart_node_dof(privacy=privacy, depth=depth, dim=dim)


def test_the_wishart_degrees_of_freedom_have_their_golden_value() -> None:
    assert wishart_dof(1.0, 0.1) == 139_115
    assert wishart_dof(1.0, 0.1, dim=50) == 139_115 + 45


GRID = list(itertools.product([0.01, 0.3, 1.0, 5.0], [1e-9, 1e-3, 0.1], [2, 27]))


@pytest.mark.parametrize(("epsilon", "delta", "depth"), GRID)
def test_the_wishart_degrees_of_freedom_are_the_fewest_that_the_theorem_allows(
    epsilon: float, delta: float, depth: int
) -> None:
    node_epsilon = epsilon / math.sqrt(8 * depth * math.log(2 / delta))
    node_delta = delta / (2 * depth)
    needed = 5 + 1 + 28 / node_epsilon**2 * math.log(4 / node_delta)
    dof = wishart_dof(epsilon, delta, depth)
    assert needed * (1 - 1e-12) <= dof < needed * (1 + 1e-12) + 1


@pytest.mark.parametrize(("epsilon", "delta", "depth"), GRID)
def test_wishart_nodes_compose_to_the_target(epsilon: float, delta: float, depth: int) -> None:
    # Kairouz, Oh & Viswanath (2015), theorem 3.4, with slack delta/2.
    wishart_dof(epsilon, delta, depth)
    node = epsilon / math.sqrt(8 * depth * math.log(2 / delta))
    drift = depth * node * (math.exp(node) - 1) / (math.exp(node) + 1)
    composed = drift + node * math.sqrt(2 * depth * math.log(2 / delta))
    assert node < 1
    assert composed <= epsilon * (1 + 1e-12)
    nodes_hold = depth * math.log1p(-delta / (2 * depth))
    assert -math.expm1(nodes_hold + math.log1p(-delta / 2)) <= delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("depth", [2, 27, 40])
def test_the_wishart_calibration_is_refused_exactly_where_its_proof_ends(
    delta: float, depth: int
) -> None:
    def unproven(epsilon: float) -> bool:
        node = epsilon / math.sqrt(8 * depth * math.log(2 / delta))
        return node >= 1 or depth * node * math.tanh(node / 2) > epsilon / 2

    limit = bisect(unproven, 1e-3, 1e6)
    assert wishart_dof(limit * (1 - 1e-9), delta, depth) > 5
    for factor in (1 + 1e-9, 2.0, 100.0):
        with pytest.raises(ParameterError) as refused:
            wishart_dof(limit * factor, delta, depth)
        assert refused.value.parameter == "epsilon"


def test_the_wishart_calibration_is_refused_where_a_nodes_delta_is_too_large() -> None:
    assert wishart_dof(0.1, 1.99 / math.e, depth=1) > 5
    with pytest.raises(ParameterError):
        wishart_dof(0.1, 2.01 / math.e, depth=1)
