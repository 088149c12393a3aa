"""What the dashboard says of releases, and how often its noise bands hold.

Coverage is tested on 400 learners with seeded noise that saw the same rows, so that a right band of
level 0.5, which is z = 1.18 deviations to each side, holds 76.1 times in 100. A count that 400 such
trials give with a probability below 1e-6 fails; there are seven for a map, so that a test of right
bands with another seed fails with probability below 1e-5. Bands that are a third too narrow (56.7
in 100) or half too wide (92.3) fail. For rows that a policy chose see test_adaptive_bands.py.
"""

import dataclasses
import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, norm

from discreet import LinUCB, Privacy, Problem, features
from discreet.errors import ParameterError
from discreet.mechanism import Mechanism
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.variants import calibrate
from discreet.release import Release
from discreet.service.dashboard import _learning as learning

TRIALS = 400
LEVEL = 0.5
HOLDS = 2 * norm.cdf(math.sqrt(-2 * math.log(1 - LEVEL))) - 1  # if rows are fixed
FLAKE = 1e-6
ROWS = 200
HORIZON = 1_000  # noise is the same with an open one, whose learners take longer to begin
IDS = ("red", "green", "blue")
MEANS = {"red": 0.2, "green": 0.5, "blue": 0.9}
SHARES = (0.5, 0.3, 0.2)

MAPS = {
    "action ids": features.FeatureMap(
        [features.intercept(), features.action_id(IDS), features.numeric("context.age", 0, 1)]
    ),
    "weights": features.FeatureMap(
        [features.intercept(weight=0.5), features.action_id(IDS, weight=2.0)]
    ),
    "no intercept": features.FeatureMap([features.action_id(IDS)]),
    "disjoint": features.disjoint(
        [features.numeric("context.age", 0, 1), features.intercept()], actions=IDS
    ),
}


class NoNoise:
    """A source of zeros, so that a release is the exact sums."""

    secret = False

    def normals(self, count: int) -> np.ndarray:
        return np.zeros(count)


def mechanism_of(made: features.FeatureMap, noise: str) -> Mechanism:
    problem = Problem.between(
        0, 1, dim=made.dim, action_norm=1, theta_norm=1, blocks=made.blocks, features=made.digest
    )
    return calibrate(
        "windows", problem, horizon=HORIZON, privacy=Privacy(epsilon=8, delta=1e-6), noise=noise
    )


@cache
def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and rewards; each twentieth is a row of zeros, as of an event nobody activated."""
    rng = np.random.default_rng(5)
    chosen = rng.choice(IDS, ROWS, p=SHARES)
    rows = MAPS[name].columns({"age": rng.random(ROWS)}, chosen)
    rewards = np.array([MEANS[one] for one in chosen])
    rows[::20], rewards[::20] = 0.0, 0.5
    return rows, rewards


def released(name: str, mechanism: Mechanism, source: object) -> Release:
    learner = LinUCB.from_mechanism(mechanism, noise_source=source)
    learner.observe(*rows_of(name))
    return learner.release


def exact(name: str) -> Release:
    """The same sums without noise, and said to have none."""
    release = released(name, mechanism_of(MAPS[name], "float"), NoNoise())
    return dataclasses.replace(release, spread=0.0)


def values(point: learning.Point) -> dict[str, learning.Band]:
    found = {"mean": point.mean}
    for one in point.actions:
        found[f"share of {one.name}"] = one.share
        found[f"mean of {one.name}"] = one.mean
    return found


def held(name: str, *, factor: float = 1.0) -> dict[str, int]:
    """How often each band holds the truth, with noise taken to be ``factor`` times what it is."""
    where = learning.layout(MAPS[name])
    truth = values(learning.read(exact(name), where))
    counts = dict.fromkeys(truth, 0)
    for release in seeded(name):
        shown = dataclasses.replace(release, spread=factor * release.spread)
        for key, band in values(learning.read(shown, where, level=LEVEL)).items():
            counts[key] += band.low <= truth[key].estimate <= band.high
    return counts


@cache
def seeded(name: str) -> list[Release]:
    """A release of each learner, with noise in whole numbers as the service has it."""
    mechanism = mechanism_of(MAPS[name], "exact")
    seeds = np.random.SeedSequence(2026).spawn(TRIALS)
    return [released(name, mechanism, SeededNoise(seed)) for seed in seeds]


def accepted(count: int) -> bool:
    few, many = binom.ppf([FLAKE / 2, 1 - FLAKE / 2], TRIALS, HOLDS)
    return few <= count <= many


@pytest.mark.parametrize("name", MAPS)
def test_a_band_holds_the_truth_as_often_as_it_says(name: str) -> None:
    for key, count in held(name).items():
        assert accepted(count), (key, count)


def test_bands_that_are_too_narrow_or_too_wide_would_be_found_out() -> None:
    for factor in (2 / 3, 3 / 2):
        assert not any(accepted(count) for count in held("action ids", factor=factor).values())


@pytest.mark.parametrize("name", MAPS)
def test_without_noise_shares_and_means_are_those_of_the_rows(name: str) -> None:
    rows, rewards = rows_of(name)
    point = learning.read(exact(name), learning.layout(MAPS[name]))
    assert [one.name for one in point.actions] == list(IDS)
    for one in point.actions:
        assert one.mean.estimate == pytest.approx(MEANS[one.name], abs=1e-6)
        assert one.mean.low == pytest.approx(one.mean.high)
    assert sum(one.share.estimate for one in point.actions) == pytest.approx(1.0)
    counted = rows.any(axis=1)
    assert point.mean.estimate == pytest.approx(rewards[counted].mean(), abs=0.03)  # by weight
    assert 0 < point.number < point.rows <= ROWS


def test_what_noise_hides_has_no_estimate_and_all_of_the_range() -> None:
    release = dataclasses.replace(exact("action ids"), spread=1e9)
    point = learning.read(release, learning.layout(MAPS["action ids"]))
    assert point.mean == learning.Band(estimate=None, low=0.0, high=1.0)
    assert all(one.share == point.mean for one in point.actions)


def test_bands_stay_within_what_is_possible() -> None:
    mechanism = mechanism_of(MAPS["action ids"], "exact")
    where = learning.layout(MAPS["action ids"])
    for seed in np.random.SeedSequence(3).spawn(20):
        release = released("action ids", mechanism, SeededNoise(seed))
        for band in values(learning.read(release, where, level=0.999999)).values():
            assert 0.0 <= band.low <= band.high <= 1.0


def test_hashed_actions_have_no_shares_and_the_note_says_so() -> None:
    where = learning.layout(features.default())
    assert where.names == ()
    assert "cannot be told" in where.note
    assert where.everybody == (0,)


def test_the_default_map_with_known_actions_has_shares() -> None:
    where = learning.layout(features.default(actions=IDS))
    assert where.names == IDS
    assert where.places == (1, 2, 3)
    assert where.note == ""
    assert where.everybody_scale == pytest.approx(1 / math.sqrt(3))


def test_a_category_of_actions_has_shares_but_no_means_since_an_action_may_have_several() -> None:
    topic = features.category("action.topic", ["arts", "sport"], other=True)
    where = learning.layout(features.FeatureMap([topic, features.intercept()]))
    assert where.names == ("arts", "sport", "other")
    assert (where.means, where.of) == (False, "action.topic")
    assert where.everybody == (3,)


def test_ids_come_before_other_categories_and_contexts_never_count() -> None:
    parts = [
        features.category("context.device", ["phone"]),
        features.category("action.topic", ["arts"]),
        features.action_id(IDS),
    ]
    assert learning.layout(features.FeatureMap(parts)).names == IDS
    assert learning.layout(features.FeatureMap(parts[:1])).names == ()


def test_models_without_an_intercept_tell_nothing() -> None:
    made = features.disjoint([features.numeric("context.age", 0, 1)], actions=IDS)
    where = learning.layout(made)
    assert (where.names, where.everybody) == ((), ())
    assert "intercept" in where.note


def test_a_category_without_an_intercept_has_shares_of_listed_values() -> None:
    where = learning.layout(features.FeatureMap([features.category("action.topic", ["a", "b"])]))
    assert where.everybody == ()
    assert "listed value" in where.note


def test_coordinates_have_names_and_intervals_of_the_cautious_posterior() -> None:
    made = MAPS["action ids"]
    release = released(
        "action ids", mechanism_of(made, "exact"), SeededNoise(np.random.SeedSequence(1))
    )
    found = learning.coordinates(release, made, level=0.9)
    assert [one.name for one in found] == list(made.names)
    entries = release.cautious.estimate(np.eye(made.dim), level=0.9)
    for at, one in enumerate(found):
        assert one.estimate + 0.5 == pytest.approx(entries.estimate[at])
        assert one.high + 0.5 == pytest.approx(entries.high[at])
        assert 0.0 <= one.known <= 1.0
    assert found[0].known > 0.5


def test_noise_of_another_law_is_refused() -> None:
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
    learner = LinUCB(
        problem,
        horizon=8,
        privacy=Privacy(epsilon=1, delta=1e-6),
        variant="wishart",
        noise="float",
    )
    learner.observe([[1.0, 0.0]], [1.0])
    with pytest.raises(ParameterError, match="noise of another law"):
        learning.read(learner.release, learning.layout(MAPS["action ids"]))
