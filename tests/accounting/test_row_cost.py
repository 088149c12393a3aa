"""What one row costs: the formulas beside a search over all pairs of rows."""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from discreet import accounting
from discreet.accounting import Neighbours
from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.problem import Problem

F64 = NDArray[np.float64]


class Case(NamedTuple):
    """Bounds on rows, and scales of noise."""

    action_norm: float
    reward_bound: float
    gram_std: float
    moment_std: float


CASES = [
    Case(1.0, 1.0, 1.0, 1.0),
    Case(1.0, 1.0, 1.0, 1.6),
    Case(1.0, 1.0, 1.0, 0.4),
    Case(2.0, 1.5, 0.7, 0.7),
    Case(1.0, 0.2, 0.5, 3.0),
    Case(1.0, 3.0, 2.0, 2.0),
]


def whitened_distance(first: F64, second: F64, case: Case) -> float:
    """How far replacing one row moves the released numbers, in units of their noise.

    Straight from the packed form: the lower triangle of the augmented Gram matrix without its
    last entry; the moment vector is its last row.
    """
    dim = first.size - 1
    firsts = linalg.firsts_of((dim,))
    change, other = (np.empty(linalg.packed_size(firsts)) for _ in range(2))
    linalg.pack_row(first[:-1], float(first[-1]), firsts, change)
    linalg.pack_row(second[:-1], float(second[-1]), firsts, other)
    rows, columns = (index[:-1] for index in np.tril_indices(dim + 1))
    deviations = np.where(rows == columns, math.sqrt(2) * case.gram_std, case.gram_std)
    deviations = np.where(rows == dim, case.moment_std, deviations)
    return float(np.linalg.norm((change - other) / deviations))


def row(parameters: F64, case: Case) -> F64:
    """Any row within the bounds, from any numbers: a direction, a length, a reward."""
    *direction, length, reward = parameters
    unit = np.array(direction) / max(float(np.linalg.norm(direction)), 1e-12)
    action = case.action_norm * math.sin(length) * unit
    return np.append(action, case.reward_bound * math.sin(reward))


def largest(distance: Callable[[F64], float], size: int) -> float:
    """Global search, then uphill from the best that was found."""
    found = optimize.differential_evolution(
        lambda parameters: -distance(parameters), [(-2.0, 2.0)] * size, rng=size, maxiter=25,
        popsize=8, polish=False,
    )  # fmt: skip
    uphill = optimize.minimize(
        lambda parameters: -distance(parameters), found.x, method="BFGS", options={"gtol": 1e-8}
    )
    return -float(uphill.fun)


def worst_replacement(dim: int, case: Case) -> float:
    def distance(parameters: F64) -> float:
        first, second = np.split(parameters, 2)
        return whitened_distance(row(first, case), row(second, case), case)

    return largest(distance, 2 * (dim + 2))


def worst_removal(dim: int, case: Case) -> float:
    nothing = np.zeros(dim + 1)
    return largest(lambda p: whitened_distance(row(p, case), nothing, case), dim + 2)


def worst_replacement_on_a_line(case: Case) -> float:
    """The exact cost in one dimension, from docs/accounting.md."""
    norm = case.action_norm
    slope = (case.reward_bound * case.gram_std / case.moment_std) ** 2
    others = [norm]
    if 4 * slope < norm**2:
        others.append((norm - math.sqrt(norm**2 - 4 * slope)) / 2)
    return max(
        math.hypot(
            (norm**2 - other**2) / (math.sqrt(2) * case.gram_std),
            case.reward_bound * (norm + other) / case.moment_std,
        )
        for other in others
    )


# The cost


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dim", [2, 3])
def test_no_replacement_costs_more_and_one_costs_as_much(dim: int, case: Case) -> None:
    promised = accounting.row_cost(**case._asdict())
    found = worst_replacement(dim, case)
    assert found <= promised
    assert found >= promised * (1 - 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_in_one_dimension_a_replacement_may_cost_less(case: Case) -> None:
    promised, exact = accounting.row_cost(**case._asdict()), worst_replacement_on_a_line(case)
    assert exact <= promised
    assert worst_replacement(1, case) == pytest.approx(exact, rel=1e-6)
    if case.moment_std < case.reward_bound / case.action_norm * case.gram_std:
        assert exact == pytest.approx(promised)
    else:
        assert exact < promised or case == CASES[0]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_removal_costs_more_and_one_costs_as_much(dim: int, case: Case) -> None:
    promised = accounting.row_cost(**case._asdict(), neighbours=Neighbours.ADD_REMOVE)
    found = worst_removal(dim, case)
    assert found <= promised
    assert found >= promised * (1 - 1e-6)


NUMBERS = st.floats(-2, 2)
POSITIVE = st.floats(-5, 5).map(math.exp)


@settings(deadline=None, max_examples=300)
@given(
    case=st.builds(Case, POSITIVE, POSITIVE, POSITIVE, POSITIVE),
    pair=st.tuples(*[st.tuples(*[NUMBERS] * 5)] * 2),
)
def test_no_pair_of_rows_costs_more(case: Case, pair: tuple[tuple[float, ...], ...]) -> None:
    first, second = (row(np.array(parameters), case) for parameters in pair)
    replaced = whitened_distance(first, second, case)
    removed = whitened_distance(first, np.zeros(4), case)
    assert replaced <= accounting.row_cost(**case._asdict())
    assert removed <= accounting.row_cost(**case._asdict(), neighbours="add-remove")


@pytest.mark.parametrize("case", [c for c in CASES if c.moment_std >= c.gram_std * c[1] / c[0]])
def test_the_worst_pair_of_rows_is_the_one_of_the_proof(case: Case) -> None:
    # Both at full length with the same reward, and the cosine of the proof between the actions.
    norm, bound = case.action_norm, case.reward_bound
    cosine = -((bound * case.gram_std / (norm * case.moment_std)) ** 2)
    first = np.array([norm, 0.0, bound])
    second = np.array([norm * cosine, norm * math.sqrt(1 - cosine**2), bound])
    promised = accounting.row_cost(**case._asdict())
    assert whitened_distance(first, second, case) == pytest.approx(promised, rel=1e-12)


def test_equal_scales_cost_at_most_the_squared_row_norm() -> None:
    # What the paper's calibration assumes: exact for B <= L, and an upper bound otherwise.
    for norm, bound in itertools.product([0.5, 1.0, 2.0], [0.3, 1.0, 3.0]):
        cost = accounting.row_cost(
            action_norm=norm, reward_bound=bound, gram_std=0.7, moment_std=0.7
        )
        expected = norm**2 + bound**2 if bound <= norm else 2 * norm * bound
        assert cost == pytest.approx(expected / 0.7, rel=1e-12)
        assert cost <= (norm**2 + bound**2) / 0.7 * (1 + 1e-12)


def test_without_the_doubled_diagonal_the_distance_would_be_larger() -> None:
    # Erratum E1: the Frobenius norm itself reaches sqrt(2) L~^2.
    first, second = np.array([2.0, 0.0, 1.5]), np.array([-1.125, math.sqrt(4 - 1.125**2), 1.5])
    moved = np.outer(first, first) - np.outer(second, second)
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(2) * 6.25)
    assert whitened_distance(first, second, Case(2.0, 1.5, 1.0, 1.0)) == pytest.approx(6.25)


@settings(deadline=None)
@given(case=st.builds(Case, POSITIVE, POSITIVE, POSITIVE, POSITIVE), factor=st.floats(1.01, 5))
def test_more_noise_costs_no_more_and_wider_bounds_cost_more(case: Case, factor: float) -> None:
    for neighbours in Neighbours:
        cost = accounting.row_cost(**case._asdict(), neighbours=neighbours)
        for name in ("gram_std", "moment_std"):
            more = case._replace(**{name: getattr(case, name) * factor})
            rounding = 1 + 1e-13  # the branch 2 L B / s_u does not depend on s_G
            assert accounting.row_cost(**more._asdict(), neighbours=neighbours) <= cost * rounding
        for name in ("action_norm", "reward_bound"):
            wider = case._replace(**{name: getattr(case, name) * factor})
            assert accounting.row_cost(**wider._asdict(), neighbours=neighbours) >= cost


def test_an_unknown_relation_is_refused() -> None:
    with pytest.raises(ParameterError, match="'replacement', 'add-remove'"):
        accounting.row_cost(**CASES[0]._asdict(), neighbours="swap")


# The scales


def problem(action_norm: float, reward_bound: float, theta_norm: float) -> Problem:
    return Problem(dim=3, action_norm=action_norm, reward_bound=reward_bound, theta_norm=theta_norm)


WIDE = st.floats(math.log(1.01e-50), math.log(0.99e50)).map(math.exp)
RATIOS = st.none() | st.floats(-10, 10).map(math.exp)


@settings(deadline=None, max_examples=300)
@given(norm=WIDE, bound=WIDE, theta=WIDE, mu_one=WIDE, ratio=RATIOS)
@example(norm=1e50, bound=1e-50, theta=1e50, mu_one=1.0, ratio=None)
@example(norm=1e-50, bound=1e50, theta=1e-50, mu_one=1.0, ratio=None)
def test_a_row_costs_what_was_asked_and_never_more(
    norm: float, bound: float, theta: float, mu_one: float, ratio: float | None
) -> None:
    for neighbours in Neighbours:
        scales = accounting.row_scales(
            problem(norm, bound, theta), mu_one=mu_one, neighbours=neighbours, ratio=ratio
        )
        cost = accounting.row_cost(
            action_norm=norm, reward_bound=bound, **scales._asdict(), neighbours=neighbours
        )
        assert mu_one * (1 - 1e-13) <= cost <= mu_one
        if ratio is not None:
            assert scales.moment_std / scales.gram_std == pytest.approx(ratio)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(
    "bounds", list(itertools.product([0.5, 1.0, 4.0], [0.2, 1.0, 3.0], [0.1, 1.0, 10.0]))
)
def test_no_other_ratio_makes_less_noise(
    bounds: tuple[float, float, float], neighbours: Neighbours
) -> None:
    stated = problem(*bounds)

    def variance(ratio: float | None) -> float:
        scales = accounting.row_scales(stated, neighbours=neighbours, ratio=ratio)
        return scales.moment_std**2 + 2 * stated.theta_norm**2 * scales.gram_std**2

    best = variance(None)
    grid = np.geomspace(1e-3, 1e3, 301)
    assert min(variance(float(ratio)) for ratio in grid) >= best * (1 - 1e-12)
    found = optimize.minimize_scalar(
        lambda logarithm: variance(math.exp(logarithm)), bracket=(-7, 0, 7), tol=1e-10
    )
    assert found.fun == pytest.approx(best, rel=1e-10)
    ratio = accounting.best_ratio(stated, neighbours=neighbours)
    assert math.exp(found.x) == pytest.approx(ratio, rel=1e-4)


def test_the_scales_have_their_golden_values() -> None:
    stated = problem(1.0, 1.0, 1.0)
    assert accounting.best_ratio(stated) == pytest.approx(math.sqrt((1 + math.sqrt(17)) / 2))
    scales = accounting.row_scales(stated)
    assert scales == pytest.approx((1.390388203202, 2.225295714284), rel=1e-11)
    removal = accounting.row_scales(stated, neighbours="add-remove")
    assert removal == pytest.approx((1.0, math.sqrt(2)), rel=1e-11)


def test_the_variance_that_is_minimised_bounds_that_of_the_estimates_noise() -> None:
    # Noise in u - G theta in direction v: s_u^2 |v|^2 + s_G^2 (|v|^2 |theta|^2 + <v, theta>^2).
    gram_std, theta = 0.7, np.array([1.0, -2.0, 0.5])
    for direction in (np.array([1.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.0]), theta):
        unit = direction / np.linalg.norm(direction)
        pairs = np.outer(unit, theta)
        entries = pairs + pairs.T - np.diag(np.diag(pairs))  # what Z_ij, i <= j, is multiplied by
        deviations = np.where(np.eye(3) > 0, math.sqrt(2) * gram_std, gram_std)
        variance = float((np.triu(entries * deviations) ** 2).sum())
        along = float(unit @ theta) ** 2
        assert variance == pytest.approx(gram_std**2 * (theta @ theta + along))
        assert variance <= 2 * gram_std**2 * float(theta @ theta) * (1 + 1e-12)
