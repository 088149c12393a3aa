"""Noise that was drawn for another step: adding it would leave a release without its own."""

import numpy as np
import pytest

from discreet import VARIANTS, Privacy, Problem, Setting
from discreet.curator.sums import PrefixSums, sums_of
from discreet.errors import ParameterError
from discreet.mechanism.noise.sources import SystemNoise
from discreet.mechanism.schedules import batches
from helpers import EARLY

PROBLEM = Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
SETTING = Setting(problem=PROBLEM, horizon=64, failure_prob=0.05)
ACTION = np.array([0.3, 0.4])


def begun(name: str, noise: str) -> PrefixSums:
    variant = EARLY if name == "windows" else VARIANTS[name]
    if name == "tight":
        variant = variant.with_schedule(batches(3))
    mechanism = variant.mechanism(SETTING, Privacy(epsilon=1.0, delta=1e-6), noise=noise)
    return sums_of(mechanism).begin(mechanism, SystemNoise())


def contents(sums: PrefixSums) -> list[object]:
    return [sums.position, *(part.tolist() for part in sums.arrays().values())]


LEARNERS = [
    ("windows", "exact"),
    ("windows", "float"),
    ("tight", "exact"),
    ("tight", "float"),
    ("gaussian", "exact"),
    ("gaussian", "float"),
]


@pytest.mark.parametrize(("name", "noise"), LEARNERS)
def test_noise_of_another_step_is_refused(name: str, noise: str) -> None:
    sums = begun(name, noise)
    for number in range(1, 13):
        position = sums.position
        fitting = sums.draw(position)
        before = contents(sums)
        after, width = sums.next(position), fitting.shape[1]
        wrong = {
            "a later row": (number + 1, fitting),
            "a draw too many": (number, np.zeros((len(fitting) + 1, width), fitting.dtype)),
            "of another width": (number, np.zeros((len(fitting), width - 1), fitting.dtype)),
            "of another kind": (number, np.zeros(fitting.shape, np.float32)),
        }
        if len(fitting):
            wrong["a draw too few"] = (number, fitting[1:])
            wrong["none"] = (number, sums.no_draws)
        if len(other := sums.draw(after)) != len(fitting):
            wrong["of the next step"] = (number, other)
        for row, draws in wrong.values():
            with pytest.raises(ParameterError, match="noise"):
                sums.add(row, ACTION, 0.5, draws)
            assert contents(sums) == before
        sums.add(number, ACTION, 0.5, fitting)
        assert sums.position == after


@pytest.mark.parametrize(("name", "noise"), LEARNERS)
def test_a_row_that_is_in_already_is_not_added_again(name: str, noise: str) -> None:
    sums = begun(name, noise)
    for number in range(1, 8):
        draws = sums.draw(sums.position)
        sums.add(number, ACTION, 0.5, draws)
        before = contents(sums)
        sums.add(number, ACTION, 0.5, draws)
        assert contents(sums) == before
