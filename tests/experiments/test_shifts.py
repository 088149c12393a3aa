"""Experiment 3: the two points that are compared without a gap have more seeds than the others."""

from collections import Counter

import numpy as np
import pytest

from discreet.experiments._experiment import Scale
from discreet.experiments._shifts import SIZES, UNSHIFTED, Line, cells


def test_the_points_that_claims_compare_have_more_seeds() -> None:
    found = cells(SIZES[Scale.FULL])
    assert len(set(found)) == len(found)
    seeds = Counter((cell.variant, cell.gap, cell.rho_min) for cell in found)
    more = {point for point, count in seeds.items() if count > SIZES[Scale.FULL].seeds}
    assert {gap for _, gap, _ in more} == {0.0}
    assert Counter(variant for variant, _, _ in more) == {"wishart": 1, UNSHIFTED: 1, "gaussian": 2}
    assert {seeds[point] for point in more} == {SIZES[Scale.FULL].compared}


def test_a_ratio_takes_all_seeds_of_its_two_points_and_a_curve_those_of_all() -> None:
    few, many = np.array([1.0, 2.0, 3.0]), np.array([10.0, 11.0, 12.0, 13.0, 14.0])
    line = Line(rho=np.array([1.0, 2.0, 4.0]), points=(few, many, 2 * many), own=2.1)
    assert line.regrets.shape == (3, 3)
    assert line.excess().estimate == pytest.approx(2.0)
    assert line.excess().high == pytest.approx(2.0)
