"""Made-up decision sets follow from the map alone and look like real ones."""

import numpy as np

from discreet import features
from discreet.features._made_up import made_up_sets

AGES, TOPICS = ["young", "old"], ["sport", "arts", "science"]
MAP = features.FeatureMap(
    [
        features.intercept(),
        features.category("action.topic", TOPICS),
        features.cross(features.category("context.who.age", AGES), features.hashed("action", 16)),
        features.numeric("context.hour", 0, 24, knots=3),
        features.projected("action.vector", 6, 3, seed=1),
        features.random_fourier([features.numeric("context.hour", 0, 24)], 4, scale=1.0, seed=2),
    ]
)


def test_they_are_the_same_each_time_and_have_bounded_rows() -> None:
    sets = made_up_sets(MAP, count=20, n_actions=7)
    for one, other in zip(sets, made_up_sets(MAP, count=20, n_actions=7), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.shape == (7, MAP.dim)
        assert np.linalg.norm(one, axis=1).max() <= 1 + 1e-12
    assert len({one.tobytes() for one in sets}) == 20


def test_every_part_gets_a_value_that_it_takes() -> None:
    rows = np.concatenate(made_up_sets(MAP, count=200, n_actions=5))
    taken = np.abs(rows).max(axis=0) > 0.0
    assert taken.all(), np.array(MAP.names)[~taken]
    np.testing.assert_allclose(rows[:, 0], rows[0, 0])  # the intercept


def test_actions_of_a_set_share_their_context() -> None:
    age = [name.startswith("context.hour") for name in MAP.names]
    for one in made_up_sets(MAP, count=20, n_actions=4):
        assert np.ptp(one[:, age], axis=0).max() < 1e-12


def test_ids_that_a_map_lists_are_the_actions() -> None:
    listed = features.FeatureMap([features.intercept(), features.action_id(["a", "b", "c"])])
    assert {one.shape for one in made_up_sets(listed, count=3, n_actions=9)} == {(3, 4)}
    own = features.disjoint([features.numeric("context.hour", 0, 24)], actions=["a", "b"])
    assert {one.shape for one in made_up_sets(own, count=3, n_actions=9)} == {(2, own.dim)}
    assert len(made_up_sets(features.default(), count=3, n_actions=9)[0]) == 9
