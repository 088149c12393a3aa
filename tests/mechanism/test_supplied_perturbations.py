"""A learner over perturbations that its user supplies."""

import math
from pathlib import Path

import numpy as np
import pytest

from discreet import LinUCB, NoiseBounds, Problem, Supplied, load
from discreet.errors import DiscreetError, NotFiniteError, ParameterError, ShapeError
from discreet.privacy import Guarantee
from helpers import TARGET, restarted, unit_rows

BOUNDS = NoiseBounds(rho_min=1.0, rho_max=1.0, gamma=0.0)


def constant(_: int) -> tuple[np.ndarray, np.ndarray]:
    return np.eye(3), np.zeros(3)


def test_supplied_perturbations_are_added_to_the_exact_statistics(problem: Problem) -> None:
    def perturbations(turn: int) -> tuple[np.ndarray, np.ndarray]:
        return (2.0 + turn) * np.eye(3) + 0.1, np.full(3, 0.01 * turn)

    variant = Supplied(
        perturbations=perturbations, bounds=NoiseBounds(rho_min=2.0, rho_max=80.0, gamma=0.5)
    )
    learner = LinUCB(problem, horizon=50, variant=variant, failure_prob=0.1)
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    rng = np.random.default_rng(2)
    for turn in range(1, 51):
        regularizer, offset = perturbations(turn)
        release = learner.release
        np.testing.assert_allclose(release.gram, gram + regularizer, rtol=1e-13)
        np.testing.assert_allclose(release.moment, moment + offset, rtol=1e-12, atol=1e-15)
        log_det = np.linalg.slogdet(release.gram)[1]
        beta = math.sqrt(2 * math.log(2 / 0.1) + log_det - 3 * math.log(2.0))
        assert learner.confidence.radius == pytest.approx(beta + math.sqrt(80.0) + 0.5, rel=1e-12)
        actions = unit_rows(rng, 4, 3)
        decision = learner.choose(actions)
        learner.learn(decision, 0.5)
        x = actions[decision.index]
        gram += np.outer(x, x)
        moment += 0.5 * x
    assert not learner.guarantee.private
    assert "supplied by the caller" in str(learner.guarantee)


def test_a_callers_own_guarantee_is_passed_on(problem: Problem) -> None:
    mine = Guarantee(epsilon=3.0, delta=1e-9, argument="a proof of my own")
    variant = Supplied(
        perturbations=constant,
        bounds=BOUNDS,
        guarantee=mine,
    )
    assert LinUCB(problem, horizon=5, variant=variant).release.guarantee == mine


@pytest.mark.parametrize(
    ("pair", "error"),
    [
        ((np.eye(2), np.zeros(3)), ShapeError),
        ((np.eye(3), np.zeros(2)), ShapeError),
        ((np.eye(3) * math.nan, np.zeros(3)), NotFiniteError),
        ((np.triu(np.ones((3, 3))), np.zeros(3)), ShapeError),
        ((1.0,), ShapeError),
        (("a", "b"), ShapeError),
        (None, ShapeError),
    ],
)
def test_malformed_perturbations_are_refused(
    problem: Problem, pair: tuple, error: type[DiscreetError]
) -> None:
    variant = Supplied(perturbations=lambda _: pair, bounds=BOUNDS)
    with pytest.raises(error, match="perturbations"):
        LinUCB(problem, horizon=5, variant=variant)


def test_perturbations_that_go_wrong_later_lose_no_row(problem: Problem) -> None:
    broken = [True]

    def perturbations(turn: int) -> tuple[np.ndarray, np.ndarray] | None:
        return None if turn == 2 and broken else constant(turn)

    learner = LinUCB(
        problem, horizon=5, variant=Supplied(perturbations=perturbations, bounds=BOUNDS)
    )
    learner.learn(learner.choose(np.eye(3)), 1)  # the row is in, so this does not fail
    for _ in range(2):
        with pytest.raises(ShapeError, match="in round 2"):
            learner.choose(np.eye(3))
    broken.clear()
    assert (learner.rows, learner.release.rows, learner.waiting) == (1, 1, 0)
    learner.learn(learner.choose(np.eye(3)), 1)
    assert learner.ledger.rows == 2


def test_supplied_perturbations_must_be_given_again_after_a_restart(
    problem: Problem, tmp_path: Path
) -> None:
    learner = LinUCB(problem, horizon=5, variant=Supplied(perturbations=constant, bounds=BOUNDS))
    learner.learn(learner.choose(np.eye(3)), 1)
    release = learner.release
    with pytest.raises(ParameterError, match="perturbations: must be given again"):
        restarted(learner, tmp_path / "file")
    restored = load(tmp_path / "file", perturbations=constant)
    np.testing.assert_array_equal(restored.release.gram, release.gram)
    restored.learn(restored.choose(np.eye(3)), 1)
    assert (restored.rows, len(restored.ledger)) == (2, 2)


def test_perturbations_cannot_be_slipped_in_by_a_restart(problem: Problem, tmp_path: Path) -> None:
    learner = LinUCB(problem, horizon=5, privacy=TARGET)
    with pytest.raises(ParameterError, match="perturbations: were not part"):
        restarted(learner, tmp_path / "file", perturbations=constant)
