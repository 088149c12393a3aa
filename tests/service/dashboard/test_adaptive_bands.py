"""Noise bands hold as often as they say for rows that a policy chose from earlier releases.

Rows, caps and zeros are as in the service; see adaptive.py. Of a band that holds the truth with a
probability of 95% the number of 300 learners for whom it holds falls below what is asked for here
with a probability below 1e-7. At most 28 bands are looked at, so that a test of right bands with
another seed fails with probability below 1e-5. What is asked for is 262 of 300 (87.3%): a band that
holds 80 times in 100 fails nearly always.
"""

import dataclasses

import numpy as np
import pytest
from adaptive import Case, Tally, play, tallies
from scipy.stats import binom

from discreet.service.dashboard import _learning as learning

RUNS = 300
LEVEL = 0.95
ASKED = int(binom.ppf(1e-7, RUNS, LEVEL))
CASES = {
    "an intercept and ids": Case(3, 16.0, 250),
    "a model each": Case(3, 16.0, 250, disjoint=True),
}


def test_so_many_are_asked_for() -> None:
    assert ASKED == 262
    assert binom.cdf(ASKED - 1, RUNS, LEVEL) < 1e-7
    assert binom.cdf(ASKED - 1, RUNS, 0.80) > 0.99


@pytest.mark.parametrize("name", CASES)
def test_a_band_holds_at_least_as_often_as_it_says_if_a_policy_chose_the_rows(name: str) -> None:
    case = CASES[name]
    middle = len(case.ends) // 2
    found = tallies(case, runs=RUNS, seed=2027, places=(middle, -1), level=LEVEL)
    assert len(found) == 14
    for band, tally in found.items():
        assert tally.held + (RUNS - tally.trials) >= ASKED, (band, tally)


def found_out(found: dict[str, Tally]) -> bool:
    """Whether too few of 300 learners are held already."""
    return all(tally.held + (RUNS - tally.trials) < ASKED for tally in found.values())


def test_a_band_that_takes_the_noise_for_half_of_what_it_is_would_be_found_out() -> None:
    case = CASES["an intercept and ids"]
    found = {name: Tally() for name in ("mean", "share of action 0")}
    for seed in np.random.SeedSequence(2028).spawn(RUNS):
        run = play(case, seed)
        last = run.releases[-1]
        run.releases[-1] = dataclasses.replace(last, spread=last.spread / 2)
        truth, bands = run.truth(len(case.ends) - 1), run.bands(-1, LEVEL)
        for name, tally in found.items():
            tally.add(bands[name], truth[name])
        if found_out(found):  # whatever the other learners say
            break
    assert found_out(found), found


def test_the_truth_is_what_a_release_without_noise_says() -> None:
    """The rows, the weights and the zeros of adaptive.py are those of the learner."""
    for case in CASES.values():
        run = play(case, np.random.SeedSequence(3), noisy=False)
        assert run.rows.any(axis=1).mean() < 0.9
        for place in (0, len(case.ends) - 1):
            exact = dataclasses.replace(run.releases[place], spread=0.0)
            point = learning.read(exact, case.layout)
            truth = run.truth(place)
            assert point.mean.estimate == pytest.approx(truth["mean"], abs=1e-3)
            for one in point.actions:
                assert one.share.estimate == pytest.approx(truth[f"share of {one.name}"], abs=1e-3)
