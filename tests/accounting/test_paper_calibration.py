"""The paper's calibration: golden numbers, and refusals at their exact place."""

import itertools
import math

import pytest
from scipy import stats

from discreet import accounting
from discreet.errors import ParameterError
from discreet.privacy import Privacy

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
