"""How soon choices are better than chance, foretold from public numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Privacy, Problem
from discreet.errors import ParameterError
from discreet.kernels import _schedule as schedule
from discreet.mechanism import Mechanism
from discreet.mechanism._prospects import MOST_ROWS, Choices
from discreet.mechanism.planning import half_gain_rows
from discreet.mechanism.schedules import Schedule, batches, geometric, hybrid
from discreet.mechanism.variants import calibrate, named
from helpers import unit_rows

UNIT = Problem(dim=8, action_norm=1, reward_bound=1, theta_norm=1)


def mechanism(problem: Problem = UNIT, epsilon: float = 1.0, variant: str = "windows") -> Mechanism:
    row = named(variant)
    privacy = Privacy(epsilon=epsilon, delta=1e-6) if row.private else None
    return calibrate(row, problem, horizon=10**6, privacy=privacy)


def played(dim: int, n_actions: int, cosine: float, sets: int) -> tuple[float, float]:
    """The gain, and the mean squared cosine of what is chosen: by making decision sets."""
    rng, best = np.random.default_rng(5), 0.75
    theta, across = np.eye(dim)[:2]
    along = cosine * theta + math.sqrt(1 - cosine**2) * across
    found = []
    for _ in range(sets):
        others = unit_rows(rng, 8 * n_actions, dim)
        others = others[np.abs(others[:, 0]) <= best][: n_actions - 1]
        assert len(others) == n_actions - 1
        rest = unit_rows(rng, 1, dim - 1)[0]
        actions = np.vstack([[best, *(math.sqrt(1 - best**2) * rest)], others])
        found.append(actions[np.argmax(actions @ along), 0])
    means, chance = np.array(found), best / n_actions
    return (means.mean() - chance) / (best - chance), float((means**2).mean())


@pytest.mark.parametrize("cosine", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize(("dim", "n_actions"), [(5, 25), (20, 25), (50, 25), (20, 3)])
def test_what_choices_gain_is_what_made_up_decision_sets_say(
    dim: int, n_actions: int, cosine: float
) -> None:
    # The seed is fixed. Means of 2,000 sets have errors of at most 0.015; the formulas take
    # cosines of random directions to be normal, which is roughest in few dimensions.
    gain, square = played(dim, n_actions, cosine, sets=2_000)
    found = Choices(dim, n_actions).made(cosine)
    assert found[0] == pytest.approx(gain, abs=0.12 if dim == 5 else 0.06)
    assert found[1] == pytest.approx(square, abs=0.06)


def test_nothing_is_gained_along_no_direction_and_all_along_the_parameter() -> None:
    choices = Choices(20)
    assert choices.made(0.0)[0] == pytest.approx(0.0, abs=0.05)
    assert choices.made(1.0)[0] == pytest.approx(1.0, abs=0.05)
    gains = [choices.made(float(cosine))[0] for cosine in np.linspace(0, 1, 21)]
    assert gains == sorted(gains)


def test_less_noise_and_fewer_features_need_fewer_rows() -> None:
    by_epsilon = [half_gain_rows(mechanism(epsilon=epsilon)) for epsilon in (10, 1, 0.1, 0.01)]
    assert by_epsilon == sorted(set(by_epsilon))
    by_dim = [half_gain_rows(mechanism(replace(UNIT, dim=dim, blocks=None))) for dim in (4, 16, 64)]
    assert by_dim == sorted(set(by_dim))
    assert half_gain_rows(mechanism(variant="nonprivate")) < by_epsilon[0]
    assert half_gain_rows(mechanism(variant="tight")) > by_epsilon[1]
    assert half_gain_rows(mechanism(), best=0.4) > half_gain_rows(mechanism())
    assert mechanism().half_gain_rows == half_gain_rows(mechanism()) == by_epsilon[1]


def test_blocks_need_no_more_rows() -> None:
    wide = replace(UNIT, dim=60, blocks=None)
    blocks = replace(wide, blocks=(6,) * 10)
    assert half_gain_rows(mechanism(blocks)) <= half_gain_rows(mechanism(wide))


@pytest.mark.parametrize("scale", [1 / 64, 4.0])
def test_units_do_not_matter(scale: float) -> None:
    expected = half_gain_rows(mechanism())
    longer = replace(UNIT, action_norm=scale, theta_norm=1 / scale)
    assert half_gain_rows(mechanism(longer)) == pytest.approx(expected, rel=0.03)
    dearer = replace(UNIT, reward_bound=scale, theta_norm=scale, reward_subgaussian=scale)
    assert half_gain_rows(mechanism(dearer)) == pytest.approx(expected, rel=0.03)
    clicks = Problem.between(0, 1, dim=8, action_norm=1, theta_norm=0.5)
    assert half_gain_rows(mechanism(clicks)) == pytest.approx(expected, rel=0.03)


def test_it_is_a_release_or_beyond_what_is_looked_at() -> None:
    found = mechanism()
    rows = half_gain_rows(found)
    assert rows in found.schedule.times(rows)
    wide = replace(UNIT, dim=200, blocks=None)
    harsh = Privacy(epsilon=1e-6, delta=1e-6, contributions_per_user=10_000)
    assert half_gain_rows(calibrate(named("windows"), wide, horizon=None, privacy=harsh)) is None
    far = half_gain_rows(mechanism(wide, epsilon=1e-6))
    assert 10**6 < far < MOST_ROWS  # it looked twice


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"n_actions": 1}, "n_actions"),
        ({"best": 0.0}, "best"),
        ({"best": 1.5}, "best"),
        ({"best": math.nan}, "best"),
    ],
)
def test_wrong_numbers_are_refused(wrong: dict[str, float], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        half_gain_rows(mechanism(), **wrong)


def test_noise_of_another_law_is_refused() -> None:
    with pytest.raises(ParameterError, match="variant"):
        half_gain_rows(mechanism(variant="wishart"))


@given(
    when=st.sampled_from([batches(7), geometric(), hybrid(start=30), Schedule(start=3, root=2.0)]),
    ratio=st.floats(0.0, 1.0),
    most=st.integers(1, 60),
    room=st.integers(1, 40),
)
def test_milestones_are_releases_that_are_far_enough_apart(
    when: Schedule, ratio: float, most: int, room: int
) -> None:
    numbers, rows = np.zeros(room, np.int64), np.zeros(room, np.int64)
    count = schedule.milestones(when.timing, ratio, most, numbers, rows)
    times = [when.after(0)]
    while len(times) < most:
        times.append(when.after(times[-1]))
    expected: list[tuple[int, int]] = []
    for number, time in enumerate(times, start=1):
        if not expected or time >= expected[-1][1] * (1 + ratio):
            expected.append((number, time))
    assert list(zip(numbers[:count], rows[:count], strict=True)) == expected[:room]
