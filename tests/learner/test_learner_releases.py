"""What a learner shows: when there is a release, which noise is in it, and its ledger."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from discreet import LinUCB, Problem
from discreet.errors import HorizonReachedError
from discreet.mechanism.noise import _sampler as sampler
from discreet.mechanism.noise.sources import SystemNoise
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import Named, named
from discreet.release.ledger import fingerprint
from helpers import EARLY, TARGET, learner_for, noise_of, seeded, whole_state

if TYPE_CHECKING:
    from discreet.release import Release


each_of_ours = pytest.mark.parametrize("row", [EARLY, named("tight")], ids=lambda row: row.name)


def test_a_release_is_the_same_object_until_the_next_one(variant: Named, problem: Problem) -> None:
    learner = learner_for(variant, problem)
    schedule = learner.mechanism.schedule
    assert schedule.after(0) == {"tight": 20, "windows": 3}.get(variant.name, 1)
    before = learner.release
    assert (before.number, before.rows) == (0, 0)
    for rows in range(1, 50):
        decision = learner.choose(np.eye(3))
        assert learner.release is before
        learner.learn(decision, 1)
        release = learner.release
        assert (release is before) == (rows != schedule.after(before.rows))
        if release is not before:
            assert (release.number, release.rows) == (before.number + 1, rows)
        before = release


def test_a_release_cannot_be_altered(problem: Problem) -> None:
    release = LinUCB(problem, horizon=9, privacy=TARGET).release
    with pytest.raises(ValueError, match="read-only"):
        release.gram[0, 0] = 0.0
    with pytest.raises(AttributeError):
        release.rows = 7


def test_the_ledger_has_every_release_as_it_was_shown(variant: Named, problem: Problem) -> None:
    learner = learner_for(variant, problem)
    assert len(learner.ledger) == 0
    shown: list[Release] = []
    for turn in range(64):
        learner.learn(learner.choose(np.eye(3)), turn / 64)
        if learner.release.number > len(shown):
            shown.append(learner.release)
        assert len(learner.ledger) == len(shown)
    assert len(shown) == learner.mechanism.releases
    for release, entry in zip(shown, learner.ledger.entries, strict=True):
        assert learner.ledger.holds(release)
        assert (entry.number, entry.rows) == (release.number, release.rows)
        assert entry.sha256 == fingerprint(release)
    assert not learner.ledger.holds(learner_for(variant, problem).release)


@each_of_ours
def test_the_ledger_knows_a_release_with_one_other_bit(problem: Problem, row: Named) -> None:
    learner = LinUCB(problem, horizon=20, privacy=TARGET, variant=row)
    for _ in range(20):
        learner.learn(learner.choose(np.eye(3)), 1)
    release = learner.release
    assert learner.ledger.holds(release)
    moment = release.moment.copy()
    moment[0] = np.nextafter(moment[0], math.inf)
    other = replace(release, moment=moment)
    assert not learner.ledger.holds(other)


@each_of_ours
def test_rewards_after_the_last_round_still_make_releases(problem: Problem, row: Named) -> None:
    learner = LinUCB(problem, horizon=20, privacy=TARGET, variant=row)
    decisions = [learner.choose(np.eye(3)) for _ in range(20)]
    with pytest.raises(HorizonReachedError):
        learner.choose(np.eye(3))
    for decision in reversed(decisions):
        learner.learn(decision, 1)
    assert learner.ledger.holds(learner.release)
    assert len(learner.ledger) == learner.mechanism.releases


class Interrupting:
    """Seeded noise that can be stopped."""

    secret = False

    def __init__(self) -> None:
        self.noise, self.armed = seeded(0), False

    def normals(self, count: int) -> np.ndarray:
        return self.checked().normals(count)

    def words(self, count: int) -> np.ndarray:
        return self.checked().words(count)

    def chi_squares(self, dofs: np.ndarray) -> np.ndarray:
        return self.checked().chi_squares(dofs)

    def checked(self) -> object:
        if self.armed:
            raise KeyboardInterrupt
        return self.noise


@pytest.mark.parametrize("noise", ["exact", "float"])
@pytest.mark.parametrize(
    "form", [named("gaussian"), named("tight").with_schedule(batches(2))], ids=["row", "batch"]
)
def test_an_interrupt_while_noise_is_drawn_changes_nothing(
    form: Named, noise: str, problem: Problem
) -> None:
    # The second row draws noise: every row does, or it is the last of a batch.
    source = Interrupting()
    learner = LinUCB(
        problem, horizon=8, privacy=TARGET, variant=form, noise=noise, noise_source=source
    )
    learner.learn(learner.choose(np.eye(3)), 1)
    decision = learner.choose(np.eye(3))
    before = whole_state(learner)
    source.armed = True
    with pytest.raises(KeyboardInterrupt):
        learner.learn(decision, 1)
    assert whole_state(learner) == before
    source.armed = False
    learner.learn(decision, 1)
    assert learner.rows == learner.release.rows == 2


class Ones:
    """Noise that counts itself."""

    secret = False

    def normals(self, count: int) -> np.ndarray:
        return np.ones(count)

    def chi_squares(self, dofs: np.ndarray) -> np.ndarray:
        return np.ones(dofs.size)


@pytest.mark.parametrize("noise", ["exact", "float"])
@pytest.mark.parametrize("tree", ["pan-private", "covering"])
def test_a_release_holds_as_many_draws_as_its_tree_promises(
    problem: Problem, tree: str, noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every draw is one standard deviation: in floating point by its source, in whole numbers here.
    monkeypatch.setattr(sampler, "draw", lambda _, stds, count: np.tile(stds, (count, 1)))
    variant = named("gaussian").with_tree(tree)
    learner = LinUCB(
        problem, horizon=64, privacy=TARGET, variant=variant, noise=noise, noise_source=Ones()
    )
    std, shift = learner.mechanism.noise.std, learner.mechanism.shift
    gram = np.zeros((3, 3))
    for rows in range(65):
        draws = 7 if tree == "pan-private" else rows.bit_count()
        found = learner.release.gram - gram - shift * np.eye(3)
        expected = draws * std * (np.ones((3, 3)) + (math.sqrt(2) - 1) * np.eye(3))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)
        if rows < 64:
            action = np.eye(3)[rows % 3]
            learner.learn(learner.choose([action]), 1)
            gram += np.outer(action, action)


def test_the_difference_of_releases_never_shows_their_rows(
    private_variant: Named, problem: Problem
) -> None:
    # Subtracting the rows between two releases from their difference must leave noise of the size
    # of a draw, in every entry; one entry below a thousandth of it has probability below 1e-3, and
    # all of the six below it in any of 64 steps below 1e-16.
    learner = LinUCB(
        problem,
        horizon=64,
        privacy=TARGET,
        variant=private_variant,
        noise=noise_of(private_variant),
    )
    drawn = learner.mechanism.noise.draw(SystemNoise(), learner.mechanism.firsts, 200)
    grid = learner.mechanism.grid
    node = (drawn if grid is None else drawn * grid.steps(problem)).std(axis=0).min()
    action = np.array([0.6, 0.8, 0.0])
    for _ in range(64):
        before = learner.release
        learner.learn(learner.choose([action]), 1)
        now = learner.release
        if now is not before:
            rows = now.rows - before.rows
            left = now.gram - before.gram - rows * np.outer(action, action)
            assert np.abs(left).max() > 1e-3 * node
    assert learner.release.number == learner.mechanism.releases
