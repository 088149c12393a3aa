"""Blocks of features: what is outside them is neither summed nor given noise."""

import numpy as np
import pytest

from discreet import LinUCB, Problem
from discreet.curator.store import Place
from discreet.errors import OutOfBoundsError
from discreet.kernels import _linalg as linalg
from discreet.mechanism.noise.sources import SystemNoise
from discreet.mechanism.variants import Named, named
from helpers import EARLY, TARGET, learner_for, noise_of, restarted, target

BLOCKS = (2, 1, 3)
BOUNDS = {"action_norm": 1, "reward_bound": 1, "theta_norm": 1}
IN_BLOCKS = Problem(dim=6, blocks=BLOCKS, **BOUNDS)
IN_ONE = Problem(dim=6, **BOUNDS)
ROWS = 64


def inside() -> np.ndarray:
    """Which entries of the Gram matrix are in a block."""
    firsts = linalg.firsts_of(BLOCKS)
    return firsts[:, None] == firsts[None, :]


def actions(turn: int) -> np.ndarray:
    """An action in each block."""
    rng = np.random.default_rng(turn)
    found, start = np.zeros((len(BLOCKS), 6)), 0
    for at, size in enumerate(BLOCKS):
        row = rng.standard_normal(size)
        found[at, start : start + size] = row / np.linalg.norm(row)
        start += size
    return found


def played(learner: LinUCB) -> LinUCB:
    """Rows decided elsewhere, so that every learner has the same."""
    rows = np.array([actions(turn)[turn % 3] for turn in range(ROWS)])
    learner.observe(rows, np.linspace(-1, 1, ROWS))
    return learner


def test_every_release_is_zero_outside_the_blocks_and_noisy_inside(variant: Named) -> None:
    learner = played(learner_for(variant, IN_BLOCKS))
    assert learner.release.number > 0
    assert not learner.release.gram[~inside()].any()
    exact = played(learner_for(named("nonprivate"), IN_BLOCKS)).release
    if variant.private:
        apart = learner.release.gram - learner.mechanism.shift * np.eye(6) - exact.gram
        # Continuous, or so many steps wide that a draw of zero has probability below 1e-6; the
        # sum of squares of 10 entries is then below a thousandth of a draw's never in practice.
        assert (apart[inside()] != 0).sum() >= 2
        assert np.abs(learner.release.moment - exact.moment).max() > 0


def test_without_noise_blocks_change_nothing() -> None:
    apart, together = (
        played(learner_for(named("nonprivate"), problem)) for problem in (IN_BLOCKS, IN_ONE)
    )
    np.testing.assert_array_equal(apart.release.gram, together.release.gram)
    np.testing.assert_array_equal(apart.release.moment, together.release.moment)


def test_noise_in_a_block_is_what_it_is_in_a_whole_matrix(private_variant: Named) -> None:
    """Its scale is that of the row's bound, which blocks do not change.

    With 3,000 draws a standard deviation is off by 1.3% of itself; 7 of those, and 21 entries, is
    below 1e-10. Wishart entries have heavier tails: 25% is far more than 7 of theirs.
    """
    stds = []
    for problem in (IN_BLOCKS, IN_ONE):
        mechanism = learner_for(private_variant, problem).mechanism
        draws = mechanism.noise.draw(SystemNoise(), mechanism.firsts, 3_000).astype(float)
        if mechanism.grid is not None:
            draws *= mechanism.grid.steps(problem)
        full, vector = np.zeros((6, 6)), np.zeros(6)
        linalg.unpack(draws.std(axis=0), 0.0, mechanism.firsts, full, vector)
        stds.append((full, vector))
        assert draws.shape[1] == mechanism.packed_size
    (apart, moment), (together, whole) = stds
    np.testing.assert_allclose(apart[inside()], together[inside()], rtol=0.25)
    np.testing.assert_allclose(moment, whole, rtol=0.25)
    assert not apart[~inside()].any()


def test_fewer_numbers_are_drawn_and_the_guarantee_is_the_same(private_variant: Named) -> None:
    apart, together = (
        learner_for(private_variant, problem, noise_source=SystemNoise()).mechanism
        for problem in (IN_BLOCKS, IN_ONE)
    )
    assert (apart.packed_size, together.packed_size) == (16, 27)
    assert (apart.guarantee.epsilon, apart.guarantee.delta) == (TARGET.epsilon, TARGET.delta)
    if not private_variant.name.startswith("wishart"):
        assert apart.noise.std <= together.noise.std


def test_a_row_in_two_blocks_is_refused_and_changes_nothing() -> None:
    learner = played(learner_for(named("windows"), IN_BLOCKS, horizon=100))
    shown = learner.release
    wide = np.zeros((1, 6))
    wide[0, 1] = wide[0, 2] = 0.5
    for call in (lambda: learner.observe(wide, [0.5]), lambda: learner.choose(wide)):
        with pytest.raises(OutOfBoundsError, match="more than one of the 3 stated blocks"):
            call()
    assert learner.release is shown
    assert learner.rows == ROWS


def test_a_stored_learner_with_blocks_goes_on_as_it_was(
    private_variant: Named, place: Place
) -> None:
    learner = LinUCB(
        IN_BLOCKS,
        horizon=200,
        privacy=target(private_variant),
        variant=private_variant,
        noise=noise_of(private_variant),
        path=place,
    )
    shown, head = played(learner).release, learner.ledger.head
    again = restarted(learner, place)
    assert again.ledger.head == head
    np.testing.assert_array_equal(again.release.gram, shown.gram)
    np.testing.assert_array_equal(again.release.moment, shown.moment)
    assert not again.release.gram[~inside()].any()
    again.observe(actions(3), [0.1, 0.2, 0.3])
    assert again.rows == ROWS + 3


def test_the_posterior_knows_blocks_to_be_independent() -> None:
    posterior = played(learner_for(EARLY, IN_BLOCKS)).release.posterior
    assert not posterior.covariance[~inside()].any()
    assert posterior.known > 0
