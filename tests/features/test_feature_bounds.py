"""Every row of every map has norm at most 1, whatever goes in and however norms are computed."""

import math
from functools import reduce

import numpy as np
import pytest
from feature_specs import contexts, known_actions, maps
from hypothesis import given, settings

from discreet import features
from discreet.curator.bounds import bounded_actions
from discreet.features import FeatureMap


def norms(row: np.ndarray) -> list[float]:
    """The norm of a row, in several orders of summation."""
    squares = [float(one) * float(one) for one in row]
    sums = [reduce(float.__add__, order, 0.0) for order in (squares, squares[::-1])]
    sums += [math.fsum(squares), float(row @ row), float(np.sum(row * row))]
    return [*map(math.sqrt, sums), float(np.linalg.norm(row)), math.hypot(*row)]


@settings(max_examples=150, deadline=None)
@given(feature_map=maps, context=contexts, actions=known_actions)
def test_no_row_is_longer_than_one(feature_map: FeatureMap, context: dict, actions: list) -> None:
    rows = feature_map(context, actions)
    assert rows.shape == (len(actions), feature_map.dim)
    assert np.isfinite(rows).all()
    assert max(max(norms(row)) for row in rows) <= 1.0
    problem = feature_map.problem(reward_bound=1, theta_norm=1)
    assert np.array_equal(bounded_actions(problem, rows, "error"), rows)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10, 49, 1000])
def test_the_norm_is_used_up_to_a_trace(count: int) -> None:
    (row,) = FeatureMap([features.intercept()] * count)(None, ["x"])
    assert 1.0 - 1e-10 < min(norms(row)) <= max(norms(row)) <= 1.0


def test_the_bound_holds_at_the_largest_dimension() -> None:
    wave = features.random_fourier(features.intercept(), 32768, scale=0.01, seed=3)
    (row,) = FeatureMap([wave])(None, ["x"])
    assert row.size == 65536
    assert 1.0 - 1e-10 < min(norms(row)) <= max(norms(row)) <= 1.0


def test_weights_share_the_squared_norm() -> None:
    parts = [features.intercept(weight=3.0), features.action_id(["x"], weight=4.0)]
    (row,) = FeatureMap(parts)({}, ["x"])
    assert row == pytest.approx([0.6, 0.8], abs=1e-10)
    (row,) = FeatureMap(parts)({}, ["unknown"])
    assert row == pytest.approx([0.6, 0.0], abs=1e-10)


def test_a_bag_that_falls_into_one_bucket_is_not_longer_than_one() -> None:
    crossed = features.cross(features.hashed("context.w", 64), features.hashed("action.w", 64), 1)
    words = [f"w{i}" for i in range(40)]
    lengths = []
    for first in range(30):
        feature_map = FeatureMap([crossed, features.hashed("context.w", 1)])
        bag = words[first : first + 11]
        (row,) = feature_map({"w": bag}, [{"w": bag[:5]}])
        lengths.append(abs(row) * math.sqrt(2))
    assert np.max(lengths) <= 1.0
    crossings = np.array(lengths)[:, 0]
    assert (crossings > 1 - 1e-9).any()  # some would be longer
    assert (crossings < 0.9).any()  # and what is shorter stays so
    assert np.array(lengths)[:, 1] == pytest.approx(1.0)  # an odd number of signs is never zero
