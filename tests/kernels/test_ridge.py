"""Private ridge regression: sums, estimates and widths, against the same with dense matrices."""

import math

import numpy as np
import pytest

from discreet.kernels import _ridge as ridge
from discreet.kernels._noise import Noise
from discreet.kernels._schedule import Timing

EVERY = Timing(1, 1e18, 1e18, 1.0)
DIM, SIZE = 3, 9


def spec_of(**changed: object) -> ridge.RidgeSpec:
    usual = {
        "kind": ridge.BATCHES,
        "law": Noise(0.5, 0.7, 0.0),
        "timing": EVERY,
        "growth": 0.0,
        "levels": 0,
        "last": 64,
        "ridge": 1.0,
        "eigenvalue": 4.0,
        "length": 5.0,
        "noise_scale": 1.0,
        "log_offset": 9.0,
        "theta_norm": 1.5,
        "gram_step": 2.0**-24,
        "moment_step": 2.0**-24,
        "sampling": 0.0,
        "spread": 0.0,
    }
    return ridge.RidgeSpec(**{**usual, **changed})


def matrix(packed: np.ndarray) -> np.ndarray:
    full = np.zeros((DIM, DIM))
    full[np.tril_indices(DIM)] = packed[:-DIM]
    return full + np.tril(full, -1).T


def packed_noise(normals: np.ndarray, law: Noise) -> np.ndarray:
    scales = np.full(SIZE, law.scale)
    scales[[0, 2, 5]] *= math.sqrt(2)
    scales[-DIM:] = law.moment_scale
    return scales * normals


def played(spec: ridge.RidgeSpec, rows: int) -> tuple[ridge.RidgeState, np.ndarray, int]:
    """The state, the exact packed sum, and the sum of all normals used, one draw at a time."""
    rng = np.random.default_rng(1)
    state = ridge.empty(DIM, spec.levels)
    normals = rng.normal(size=1000)
    at = ridge.begin(spec, state, normals)
    exact, used = np.zeros(SIZE), []
    for _ in range(rows):
        action, reward = rng.normal(size=DIM) / 3, rng.choice([-1.0, 1.0])
        after = ridge.learn(spec, state, action, reward, normals, at)
        if spec.kind != ridge.TREE:
            used += [normals[k : k + SIZE] for k in range(at, after, SIZE)]
        at = after
        exact += [*np.outer(action, action)[np.tril_indices(DIM)], *(reward * action)]
    return state, exact, used


@pytest.mark.parametrize("kind", [ridge.BATCHES, ridge.ROWS])
@pytest.mark.parametrize("batch", [1, 4])
def test_what_is_shown_is_all_rows_and_all_draws(kind: int, batch: int) -> None:
    spec = spec_of(kind=kind, timing=Timing(batch, 1e18, 1e18, float(batch)))
    state, exact, used = played(spec, 12)
    assert len(used) == (12 if kind == ridge.ROWS else 12 // batch)
    assert state.counts[ridge.RENEWALS] == 12 // batch
    wanted = exact + sum(packed_noise(draw, spec.law) for draw in used)
    assert state.shown == pytest.approx(wanted, abs=1e-5)
    assert state.shown == pytest.approx(np.round(state.shown * 2**24) / 2**24, abs=0)


def test_a_tree_shows_as_many_draws_as_the_rows_have_ones_in_binary() -> None:
    runs = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        spec = spec_of(kind=ridge.TREE, levels=4, growth=1e9)
        state = ridge.empty(DIM, 4)
        normals = rng.normal(size=1000)
        at = ridge.begin(spec, state, normals)
        for _ in range(7):
            at = ridge.learn(spec, state, np.zeros(DIM), 0.0, normals, at)
        runs.append(state.shown[-DIM:].copy())
    variance = np.var(runs) / 0.7**2
    assert 2.4 < variance < 3.6  # 7 is 111; 1200 numbers, five deviations either way


def test_the_estimate_and_its_radius_are_those_of_the_formula() -> None:
    spec = spec_of()
    state, _, used = played(spec, 6)
    norm = 0.5 * math.sqrt(len(used)) * 4.0
    regularised = matrix(state.shown) + (1 + 2 * norm) * np.eye(DIM)
    theta = np.linalg.solve(regularised, state.shown[-DIM:])
    log_det = np.linalg.slogdet(regularised)[1]
    radius = math.sqrt(log_det - DIM * math.log(1 + norm) + 9.0)
    radius += 1.5 * math.sqrt(1 + 3 * norm) + 0.7 * math.sqrt(6) * 5 / math.sqrt(1 + norm)
    assert state.figures[ridge.BONUS] == pytest.approx(radius)
    actions, scores = np.random.default_rng(2).normal(size=(DIM, 20)), np.empty(20)
    chosen = ridge.choose(spec, state, actions, 0, np.empty(0), scores)
    widths = np.sqrt(np.einsum("ik,ij,jk->k", actions, np.linalg.inv(regularised), actions))
    assert scores == pytest.approx(actions.T @ theta + radius * widths)
    assert chosen == scores.argmax()


def test_without_noise_on_the_gram_matrix_its_own_smallest_eigenvalue_counts() -> None:
    spec = spec_of(law=Noise(0.0, 0.7, 0.0), eigenvalue=0.0)
    state, _, _ = played(spec, 30)
    regularised = matrix(state.shown) + np.eye(DIM)
    values = np.linalg.eigvalsh(regularised)
    radius = math.sqrt(np.log(values).sum() + 9.0) + 1.5
    radius += 0.7 * math.sqrt(30) * 5 / math.sqrt(values[0])
    assert state.figures[ridge.BONUS] == pytest.approx(radius)


def test_sampled_parameters_have_the_posterior_and_the_noise_in_their_spread() -> None:
    """Means and variances of 4,000 scores, within five deviations."""
    spec = spec_of(sampling=0.8, spread=0.6)
    state, _, used = played(spec, 6)
    norm = 0.5 * math.sqrt(len(used)) * 4.0
    inverse = np.linalg.inv(matrix(state.shown) + (1 + 2 * norm) * np.eye(DIM))
    theta = inverse @ state.shown[-DIM:]
    spread = 0.8**2 * inverse + 0.6**2 * len(used) * inverse @ inverse
    action, scores = np.array([[0.3], [-0.2], [0.5]]), np.empty(1)
    rng, found = np.random.default_rng(3), []
    for _ in range(4000):
        ridge.choose(spec, state, action, 0, rng.normal(size=2 * DIM), scores)
        found.append(scores[0])
    x = action[:, 0]
    deviation = math.sqrt(x @ spread @ x)
    assert np.mean(found) == pytest.approx(theta @ x, abs=5 * deviation / math.sqrt(4000))
    assert np.var(found) == pytest.approx(deviation**2, rel=5 * math.sqrt(2 / 4000))


def test_before_the_first_estimate_choices_are_random() -> None:
    spec = spec_of(timing=Timing(100, 1e18, 1e18, 100.0))
    state, _, _ = played(spec, 10)
    rng, scores = np.random.default_rng(4), np.empty(DIM)
    chosen = {
        int(ridge.choose(spec, state, np.eye(DIM), 0, rng.normal(size=2 * DIM), scores))
        for _ in range(60)
    }
    assert chosen == {0, 1, 2}
