"""Packed algebra against dense NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.linalg import block_diag, solve_triangular

from discreet.kernels import _linalg as linalg

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

DIMS = st.integers(1, 8)
EXACT = settings(max_examples=150, deadline=None, derandomize=True)


def entries(size: float = 10.0) -> st.SearchStrategy[float]:
    return st.floats(-size, size, allow_nan=False, width=64)


def vectors(dim: int) -> st.SearchStrategy[F64]:
    return arrays(np.float64, dim, elements=entries())


@st.composite
def symmetric_systems(draw: st.DrawFn) -> tuple[F64, F64]:
    """Any symmetric matrix, and a vector."""
    dim = draw(DIMS)
    half = np.tril(draw(arrays(np.float64, (dim, dim), elements=entries())))
    return half + np.tril(half, -1).T, draw(vectors(dim))


@st.composite
def positive_systems(draw: st.DrawFn) -> tuple[F64, F64]:
    """A matrix with eigenvalues from 1 to about 1e4, and a vector."""
    dim = draw(DIMS)
    root = draw(arrays(np.float64, (dim, dim), elements=entries()))
    return root @ root.T + np.eye(dim), draw(vectors(dim))


def one_block(dim: int) -> I64:
    return linalg.firsts_of((dim,))


def packed(gram: F64, moment: F64, firsts: I64 | None = None) -> F64:
    firsts = one_block(moment.size) if firsts is None else firsts
    out = np.full(linalg.packed_size(firsts), np.nan)
    linalg.pack(gram, moment, firsts, out)
    return out


def as_kernels_take_it(cholesky: F64) -> F64:
    """From a Cholesky factor to L below the diagonal and 1/D on it."""
    scale = np.diag(cholesky)
    return np.tril(cholesky / scale, -1) + np.diag(1.0 / scale**2)


def cholesky_of(factor: F64) -> F64:
    """And back."""
    unit = np.tril(factor, -1) + np.eye(len(factor))
    return unit / np.sqrt(np.diag(factor))


def factored(vector: F64, dim: int, *, shift: float = 0.0, floor: float = 1.0) -> tuple[float, F64]:
    """The log-determinant and the Cholesky factor itself."""
    lower = np.zeros((dim, dim))
    log_det = linalg.factor(vector, shift, floor, one_block(dim), lower)
    assert (np.triu(lower, 1) == 0.0).all()
    return log_det, cholesky_of(lower)


@pytest.mark.parametrize("dim", [1, 2, 5, 64])
def test_the_packed_size_counts_the_lower_triangle_without_its_last_entry(dim: int) -> None:
    assert linalg.packed_size(one_block(dim)) == (dim + 1) * (dim + 2) // 2 - 1


@EXACT
@given(symmetric_systems(), entries())
def test_unpacking_inverts_packing_and_shifts_the_diagonal(
    system: tuple[F64, F64], shift: float
) -> None:
    gram, moment = system
    again, vector = np.full_like(gram, np.nan), np.full_like(moment, np.nan)
    linalg.unpack(packed(gram, moment), 0.0, one_block(moment.size), again, vector)
    assert (again == gram).all()
    assert (vector == moment).all()
    linalg.unpack(packed(gram, moment), shift, one_block(moment.size), again, vector)
    assert (again == gram + shift * np.eye(moment.size)).all()


@EXACT
@given(DIMS.flatmap(lambda dim: arrays(np.float64, dim * (dim + 3) // 2, elements=entries())))
def test_packing_inverts_unpacking(vector: F64) -> None:
    dim = (math.isqrt(9 + 8 * vector.size) - 3) // 2
    gram, moment = np.empty((dim, dim)), np.empty(dim)
    linalg.unpack(vector, 0.0, one_block(moment.size), gram, moment)
    assert (gram == gram.T).all()
    assert (packed(gram, moment) == vector).all()


@EXACT
@given(symmetric_systems())
def test_packing_reads_only_the_lower_triangle(system: tuple[F64, F64]) -> None:
    gram, moment = system
    halved = gram.copy()
    halved[np.triu_indices(moment.size, 1)] = np.nan
    assert (packed(halved, moment) == packed(gram, moment)).all()


@EXACT
@given(DIMS.flatmap(vectors), entries())
def test_a_packed_row_is_the_dense_outer_product(action: F64, reward: float) -> None:
    firsts = one_block(action.size)
    out = np.full(linalg.packed_size(firsts), np.nan)
    linalg.pack_row(action, reward, firsts, out)
    row = np.append(action, reward)
    lower_triangle = np.outer(row, row)[np.tril_indices(row.size)]
    assert (out == lower_triangle[:-1]).all()


@EXACT
@given(positive_systems(), st.floats(0.0, 100.0))
def test_the_factor_is_numpys_cholesky_factor_and_log_determinant(
    system: tuple[F64, F64], shift: float
) -> None:
    gram, moment = system
    log_det, lower = factored(packed(gram, moment), moment.size, shift=shift)
    shifted = gram + shift * np.eye(moment.size)
    np.testing.assert_allclose(lower, np.linalg.cholesky(shifted), rtol=1e-9, atol=1e-9)
    sign, expected = np.linalg.slogdet(shifted)
    assert sign == 1.0
    assert log_det == pytest.approx(expected, rel=1e-10, abs=1e-9)


@EXACT
@given(positive_systems())
def test_the_solution_is_numpys_solution(system: tuple[F64, F64]) -> None:
    gram, moment = system
    lower = np.full_like(gram, np.nan)
    linalg.factor(packed(gram, moment), 0.0, 1.0, one_block(moment.size), lower)
    theta = moment.copy()
    linalg.forward(lower, one_block(theta.size), theta)
    linalg.weigh(lower, theta)
    linalg.backward(lower, one_block(theta.size), theta)
    np.testing.assert_allclose(theta, np.linalg.solve(gram, moment), rtol=1e-8, atol=1e-8)


@EXACT
@given(positive_systems())
def test_forward_solves_with_the_unit_factor(system: tuple[F64, F64]) -> None:
    gram, moment = system
    cholesky = np.linalg.cholesky(gram)
    solved = moment.copy()
    linalg.forward(as_kernels_take_it(cholesky), one_block(solved.size), solved)
    expected = solve_triangular(cholesky / np.diag(cholesky), moment, lower=True)
    np.testing.assert_allclose(solved, expected, rtol=1e-9, atol=1e-9)


@EXACT
@given(positive_systems())
def test_backward_solves_with_the_transposed_unit_factor(system: tuple[F64, F64]) -> None:
    gram, moment = system
    cholesky = np.linalg.cholesky(gram)
    solved = moment.copy()
    linalg.backward(as_kernels_take_it(cholesky), one_block(solved.size), solved)
    expected = solve_triangular((cholesky / np.diag(cholesky)).T, moment, lower=False)
    np.testing.assert_allclose(solved, expected, rtol=1e-9, atol=1e-9)


@EXACT
@given(positive_systems())
def test_solved_and_weighed_vectors_give_the_norm_of_the_inverse_matrix(
    system: tuple[F64, F64],
) -> None:
    gram, moment = system
    factor = as_kernels_take_it(np.linalg.cholesky(gram))
    solved = moment.copy()
    linalg.forward(factor, one_block(solved.size), solved)
    weighed = solved.copy()
    linalg.weigh(factor, weighed)
    expected = moment @ np.linalg.solve(gram, moment)
    assert weighed @ solved == pytest.approx(expected, rel=1e-8, abs=1e-8)


@EXACT
@given(positive_systems())
def test_what_the_scratch_matrix_held_before_does_not_matter(system: tuple[F64, F64]) -> None:
    gram, moment = system
    clean, dirty = np.zeros_like(gram), np.full_like(gram, np.nan)
    vector, firsts = packed(gram, moment), one_block(moment.size)
    once = linalg.factor(vector, 0.0, 1.0, firsts, clean)
    assert once == linalg.factor(vector, 0.0, 1.0, firsts, dirty)
    assert (np.tril(clean) == np.tril(dirty)).all()


def rotated(spectrum: F64) -> F64:
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((spectrum.size, spectrum.size)))
    gram = (basis * spectrum) @ basis.T
    return 0.5 * (gram + gram.T)


@pytest.mark.parametrize("eigenvalue", [1e8, 1e-8, 1e40, 1e-40])
@pytest.mark.parametrize("shape", [np.diag, rotated])
def test_the_log_determinant_of_a_large_matrix_neither_overflows_nor_vanishes(
    eigenvalue: float, shape: object
) -> None:
    gram = shape(np.full(200, eigenvalue))
    log_det, lower = factored(packed(gram, np.zeros(200)), 200)
    assert log_det == pytest.approx(200 * math.log(eigenvalue), rel=1e-12)
    np.testing.assert_allclose(lower @ lower.T, gram, rtol=1e-9, atol=1e-9 * eigenvalue)


def test_large_and_small_eigenvalues_together_give_the_right_log_determinant() -> None:
    spectrum = np.geomspace(1e-8, 1e8, 200)
    for diagonal in (spectrum, spectrum[::-1], np.random.default_rng(1).permutation(spectrum)):
        log_det, _ = factored(packed(np.diag(diagonal), np.zeros(200)), 200)
        assert log_det == pytest.approx(0.0, abs=1e-9)
    separate = np.r_[np.full(100, 1e8), np.full(100, 1e-7)]
    log_det, _ = factored(packed(np.diag(separate), np.zeros(200)), 200)
    assert log_det == pytest.approx(100 * math.log(10.0), rel=1e-12)


@EXACT
@given(
    symmetric_systems(),
    st.sampled_from([0.001, 1.0, 64.0]),
)
def test_a_matrix_that_is_not_positive_definite_is_lifted_by_the_first_power_that_helps(
    system: tuple[F64, F64], floor: float
) -> None:
    gram, moment = system
    dim = moment.size
    # With a lowest eigenvalue of -3.3 floors, 1 and 2 floors are too little and 4 are enough.
    gram = gram - (np.linalg.eigvalsh(gram)[0] + 3.3 * floor) * np.eye(dim)
    vector = packed(gram, moment)
    log_det, lower = factored(vector, dim, floor=floor)
    assert math.isfinite(log_det)
    assert np.isfinite(lower).all()
    lifted = gram + 4 * floor * np.eye(dim)
    np.testing.assert_allclose(lower @ lower.T, lifted, rtol=1e-9, atol=1e-9)
    again, same = factored(vector, dim, floor=floor)
    assert again == log_det
    assert (same == lower).all()


@pytest.mark.parametrize("dim", [1, 3, 20])
def test_a_singular_matrix_is_lifted_by_the_floor(dim: int) -> None:
    log_det, lower = factored(np.zeros(linalg.packed_size(one_block(dim))), dim, floor=0.25)
    assert log_det == pytest.approx(dim * math.log(0.25))
    np.testing.assert_array_equal(lower, 0.5 * np.eye(dim))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("floor", [1e-6, 1.0, 1e6])
def test_lifting_is_finite_however_far_the_matrix_is_from_positive(
    scale: float, floor: float
) -> None:
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((10, 10))
    vector = packed(-scale * (noise @ noise.T), rng.standard_normal(10))
    lower, theta = np.zeros((10, 10)), vector[-10:].copy()
    log_det = linalg.factor(vector, 0.0, floor, one_block(10), lower)
    linalg.forward(lower, one_block(theta.size), theta)
    linalg.weigh(lower, theta)
    linalg.backward(lower, one_block(theta.size), theta)
    assert math.isfinite(log_det)
    assert np.isfinite(lower).all()
    assert np.isfinite(theta).all()


def test_a_matrix_that_holds_nan_comes_back_as_nan_and_does_not_hang() -> None:
    vector = np.full(linalg.packed_size(one_block(3)), np.nan)
    assert math.isnan(linalg.factor(vector, 0.0, 1.0, one_block(3), np.zeros((3, 3))))


# Blocks: what is outside them is zero, and is neither held nor worked out.

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def systems_of_blocks(draw: st.DrawFn) -> tuple[list[int], F64, F64]:
    """Sizes, a positive matrix with blocks of them on its diagonal, and a vector."""
    sizes = draw(SIZES)
    grams = []
    for size in sizes:
        root = draw(arrays(np.float64, (size, size), elements=entries()))
        grams.append(root @ root.T + np.eye(size))
    return sizes, block_diag(*grams), draw(vectors(sum(sizes)))


def test_firsts_say_where_the_block_of_each_feature_starts() -> None:
    assert linalg.firsts_of((3,)).tolist() == [0, 0, 0]
    assert linalg.firsts_of((2, 1, 3)).tolist() == [0, 0, 2, 3, 3, 3]
    assert linalg.diagonal(linalg.firsts_of((2, 1, 3))).tolist() == [0, 2, 3, 4, 6, 9]


@EXACT
@given(systems_of_blocks())
def test_blocks_are_packed_one_after_the_other(system: tuple[list[int], F64, F64]) -> None:
    sizes, gram, moment = system
    firsts = linalg.firsts_of(sizes)
    assert linalg.packed_size(firsts) == sum(n * (n + 1) // 2 for n in sizes) + sum(sizes)
    expected, start = [], 0
    for size in sizes:
        block = gram[start : start + size, start : start + size]
        expected.append(block[np.tril_indices(size)])
        start += size
    vector = packed(gram, moment, firsts)
    assert (vector == np.concatenate([*expected, moment])).all()
    assert (vector[linalg.diagonal(firsts)] == np.diag(gram)).all()
    again, same = np.full_like(gram, np.nan), np.full_like(moment, np.nan)
    linalg.unpack(vector, 0.5, firsts, again, same)
    np.testing.assert_array_equal(again, gram + 0.5 * np.eye(len(gram)))
    np.testing.assert_array_equal(same, moment)


@EXACT
@given(SIZES, st.data())
def test_a_row_within_one_block_is_packed_as_its_outer_product(
    sizes: list[int], data: st.DataObject
) -> None:
    which = data.draw(st.integers(0, len(sizes) - 1))
    action, start = np.zeros(sum(sizes)), sum(sizes[:which])
    action[start : start + sizes[which]] = data.draw(vectors(sizes[which]))
    reward, firsts = data.draw(entries()), linalg.firsts_of(sizes)
    out = np.full(linalg.packed_size(firsts), np.nan)
    linalg.pack_row(action, reward, firsts, out)
    assert (out == packed(np.outer(action, action), reward * action, firsts)).all()


@EXACT
@given(systems_of_blocks(), st.floats(0.0, 100.0))
def test_blocks_are_solved_as_the_whole_matrix_is(
    system: tuple[list[int], F64, F64], shift: float
) -> None:
    sizes, gram, moment = system
    firsts, lower, theta = linalg.firsts_of(sizes), np.zeros_like(gram), moment.copy()
    log_det = linalg.factor(packed(gram, moment, firsts), shift, 1.0, firsts, lower)
    linalg.forward(lower, firsts, theta)
    linalg.weigh(lower, theta)
    linalg.backward(lower, firsts, theta)
    shifted = gram + shift * np.eye(len(gram))
    np.testing.assert_allclose(theta, np.linalg.solve(shifted, moment), rtol=1e-8, atol=1e-8)
    assert log_det == pytest.approx(np.linalg.slogdet(shifted)[1], rel=1e-10, abs=1e-9)
    assert (lower[gram == 0.0] == 0.0).all()
