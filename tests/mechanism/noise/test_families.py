"""Node noise: the law of every entry, and bounds that hold.

Both sources go through the same tests. The operating system's numbers differ from run to run: all
comparisons with them in this file together (about a hundred, each at `FLAKE` or at 6.5 standard
deviations or more, and the bounds' own promises) fail a right implementation with probability
below 3e-6. Wrong laws differ by so much that none passes with a larger one.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.mechanism import NodeNoise
from discreet.mechanism._codec import noise_from_json, noise_to_json
from discreet.mechanism.noise import _gaussian as gaussian
from discreet.mechanism.noise import _wishart as wishart
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.noise._wishart import WishartNoise
from discreet.mechanism.noise.sources import NoiseSource, SeededNoise, SystemNoise
from discreet.mechanism.strategies import Tree
from discreet.mechanism.variants import VARIANTS
from discreet.privacy import Privacy
from discreet.problem import Problem, Setting
from discreet.theory import NoiseBounds

F64 = NDArray[np.float64]

FLAKE = 1e-8


def seeded() -> SeededNoise:
    return SeededNoise(np.random.SeedSequence(7))


SOURCES: list[Callable[[], NoiseSource]] = [SystemNoise, seeded]
each_source = pytest.mark.parametrize("make", SOURCES)


def one_block(dim: int) -> NDArray[np.int64]:
    return linalg.firsts_of((dim,))


def positions(dim: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which packed entries are on the diagonal, and which belong to the moment vector."""
    rows, columns = (index[:-1] for index in np.tril_indices(dim + 1))
    return rows == columns, rows == dim


def unpacked(packed: F64, dim: int) -> tuple[F64, F64]:
    """Packed nodes as Gram noise (count, d, d) and moment noise (count, d)."""
    grams, moments = np.empty((len(packed), dim, dim)), np.empty((len(packed), dim))
    for node, gram, moment in zip(packed, grams, moments, strict=True):
        linalg.unpack(node, 0.0, one_block(moment.size), gram, moment)
    return grams, moments


# Gaussian


def has_deviation(entries: F64, std: float) -> bool:
    """Whether the sum of squares is that of centred normals of this standard deviation."""
    total = float(((entries / std) ** 2).sum())
    law = stats.chi2(entries.size)
    return 2 * min(law.cdf(total), law.sf(total)) > FLAKE


@each_source
@pytest.mark.parametrize("dim", [1, 3])
def test_gaussian_entries_have_their_standard_deviation_and_no_other(
    make: Callable[[], NoiseSource], dim: int
) -> None:
    std = 2.5
    nodes = GaussianNoise(std=std).draw(make(), one_block(dim), 5_000)
    assert nodes.shape == (5_000, linalg.packed_size(one_block(dim)))
    diagonal, _ = positions(dim)
    for entries, on_diagonal in zip(nodes.T, diagonal, strict=True):
        expected = math.sqrt(2) * std if on_diagonal else std
        assert has_deviation(entries, expected)
        for wrong in (2 / 3, 1 / math.sqrt(2), math.sqrt(2), 3 / 2):
            assert not has_deviation(entries, wrong * expected)


@each_source
def test_the_moment_may_have_a_standard_deviation_of_its_own(
    make: Callable[[], NoiseSource],
) -> None:
    nodes = GaussianNoise(std=2.5, moment_std=4.0).draw(make(), one_block(3), 5_000)
    diagonal, moment = positions(3)
    for entries, on_diagonal, in_moment in zip(nodes.T, diagonal, moment, strict=True):
        expected = 4.0 if in_moment else math.sqrt(2) * 2.5 if on_diagonal else 2.5
        assert has_deviation(entries, expected)
        for wrong in (2.5 / 4.0, 1 / math.sqrt(2), math.sqrt(2), 4.0 / 2.5):
            assert not has_deviation(entries, wrong * expected)


@each_source
def test_gaussian_entries_are_normal_and_independent(make: Callable[[], NoiseSource]) -> None:
    nodes = GaussianNoise(std=1.0).draw(make(), one_block(3), 10_000)
    diagonal, _ = positions(3)
    standard = nodes / np.where(diagonal, math.sqrt(2), 1.0)
    assert stats.kstest(standard.ravel(), stats.norm.cdf).pvalue > FLAKE
    assert stats.kstest(nodes.ravel(), stats.norm.cdf).pvalue < FLAKE
    scores = np.corrcoef(standard.T)[np.tril_indices(9, -1)] * math.sqrt(len(nodes))
    assert np.abs(scores).max() < 7.0  # 36 pairs: 1e-10 in all


# Wishart


def brute_force(rng: np.random.Generator, noise: WishartNoise, dim: int, count: int) -> F64:
    """Packed Gram matrices of dof normal vectors of dimension d + 1: the definition."""
    rows = math.sqrt(noise.scale) * rng.standard_normal((count, noise.dof, dim + 1))
    grams = np.einsum("nki,nkj->nij", rows, rows)
    lower = np.tril_indices(dim + 1)
    return grams[:, lower[0], lower[1]][:, :-1]


def features(packed: F64, dim: int) -> F64:
    """Every entry, and the log-determinant and trace of the d x d block, shape (features, n)."""
    grams, moments = unpacked(packed, dim)
    sign, log_det = np.linalg.slogdet(grams)
    assert (sign > 0).all()
    whitened = np.einsum("ni,ni->n", moments, np.linalg.solve(grams, moments[..., None])[..., 0])
    return np.vstack([packed.T, log_det, np.trace(grams, axis1=1, axis2=2), whitened])


def smallest_p_value(first: F64, second: F64) -> float:
    return min(
        float(stats.ks_2samp(a, b, method="asymp").pvalue)
        for a, b in zip(first, second, strict=True)
    )


@each_source
@pytest.mark.parametrize(("dim", "dof"), [(1, 2), (2, 10), (3, 4), (3, 10)])
def test_bartletts_wishart_matches_the_definition_and_rejects_another_dof(
    make: Callable[[], NoiseSource], dim: int, dof: int
) -> None:
    noise = WishartNoise(dof=dof, scale=1.7)
    wrong = WishartNoise(dof=dof + 1, scale=1.7)  # 10% for ten degrees of freedom
    rng, count = np.random.default_rng(8), 15_000
    drawn = features(noise.draw(make(), one_block(dim), count), dim)
    assert smallest_p_value(drawn, features(brute_force(rng, noise, dim, count), dim)) > FLAKE
    assert smallest_p_value(drawn, features(brute_force(rng, wrong, dim, count), dim)) < FLAKE


def moment_scores(packed: F64, dim: int, *, dof: float, scale: float) -> tuple[F64, F64]:
    """Standard scores of each entry's mean and variance.

    E W = k s I and Var W_ij = k s^2 (1 + [i = j]).
    """
    diagonal, _ = positions(dim)
    mean = np.where(diagonal, dof * scale, 0.0)
    variance = dof * scale**2 * (1.0 + diagonal)
    squares = (packed - mean) ** 2
    mean_scores = (packed.mean(axis=0) - mean) / np.sqrt(variance / len(packed))
    spread = squares.std(axis=0) / math.sqrt(len(packed))
    return mean_scores, (squares.mean(axis=0) - variance) / spread


@each_source
@pytest.mark.parametrize("dof", [50, 139_115])
def test_wishart_entries_have_the_mean_and_variance_of_theory(
    make: Callable[[], NoiseSource], dof: int
) -> None:
    dim, scale = 3, 6.25
    packed = WishartNoise(dof=dof, scale=scale).draw(make(), one_block(dim), 20_000)
    diagonal, _ = positions(dim)
    means, variances = moment_scores(packed, dim, dof=dof, scale=scale)
    assert np.abs(means).max() < 6.5
    assert np.abs(variances).max() < 6.5
    for wrong in (0.9 * dof, 1.1 * dof):
        means, _ = moment_scores(packed, dim, dof=wrong, scale=scale)
        assert np.abs(means[diagonal]).min() > 6.5
    for factor in (math.sqrt(0.8), math.sqrt(1.2)):  # a fifth less or more variance
        _, variances = moment_scores(factor * packed, dim, dof=dof, scale=scale)
        assert np.abs(variances[~diagonal]).min() > 6.5


def test_wishart_noise_is_positive_definite_by_itself() -> None:
    grams, _ = unpacked(WishartNoise(dof=7, scale=0.5).draw(seeded(), one_block(6), 2_000), 6)
    assert np.linalg.eigvalsh(grams).min() > 0.0


@pytest.mark.parametrize("noise", [GaussianNoise(std=1.0), WishartNoise(dof=9, scale=2.0)])
def test_the_same_seed_draws_the_same_noise_and_no_two_nodes_are_equal(noise: NodeNoise) -> None:
    first, again = noise.draw(seeded(), one_block(4), 50), noise.draw(seeded(), one_block(4), 50)
    assert (first == again).all()
    assert np.unique(first).size == first.size


# Bounds

PROBLEM = Problem(dim=3, action_norm=2.0, reward_bound=1.5, theta_norm=1.0)
TARGET = Privacy(epsilon=1.0, delta=1e-3)
ROW_NORM = 2.5
ALPHA = 1e-10


def small_setting(horizon: int = 8) -> Setting:
    return Setting(problem=PROBLEM, horizon=horizon, failure_prob=ALPHA)


ShiftRule = Callable[[NodeNoise, Setting], tuple[float, NoiseBounds]]


def own_shift(factor: float) -> ShiftRule:
    """A shift that makes rho_min this multiple of the spectrum's width."""

    def rule(noise: NodeNoise, setting: Setting) -> tuple[float, NoiseBounds]:
        low, high = noise.eigenvalues(setting)
        shift = factor * (high - low) - low
        return shift, noise.bounds(setting, shift)

    return rule


class Case(NamedTuple):
    """A family, a shift, and fractions of its spectrum and of gamma that are too little."""

    family: type[GaussianNoise] | type[WishartNoise]
    rule: ShiftRule
    short: float
    small: float


CASES = {
    "gaussian": Case(GaussianNoise, gaussian.paper_shift, 1 / 25, 1 / 5),
    "gaussian, less shift": Case(GaussianNoise, own_shift(0.05), 1 / 25, 1 / 20),
    "wishart": Case(WishartNoise, wishart.paper_shift, 1 / 5, 1 / 10),
    "wishart, less shift": Case(WishartNoise, own_shift(0.1), 1 / 5, 1 / 10),
    "wishart, no shift": Case(WishartNoise, wishart.no_shift, 1 / 5, 1 / 4),
}


# The bounds promise each of 2,000 draws a failure probability of 1e-10 / (2 n): over all cases
# together 6e-7.
@each_source
@pytest.mark.parametrize("horizon", [1, 8, 64])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_bounds_hold_for_all_of_two_thousand_sums_and_are_not_vacuous(
    make: Callable[[], NoiseSource], horizon: int, case: Case
) -> None:
    setting, count = small_setting(horizon), 2_000
    depth, dim = setting.tree_depth, PROBLEM.dim
    noise = case.family.calibrated(setting, TARGET)
    shift, bounds = case.rule(noise, setting)
    packed = noise.draw(make(), one_block(dim), depth * count).reshape(count, depth, -1).sum(axis=1)
    grams, moments = unpacked(packed, dim)

    low, high = noise.eigenvalues(setting)
    spectra = np.linalg.eigvalsh(grams)
    stray = np.abs(spectra - 0.5 * (low + high)) / (0.5 * (high - low))
    assert stray.max() <= 1.0
    assert stray.max() > case.short

    shifted = grams + shift * np.eye(dim)
    spectra = np.linalg.eigvalsh(shifted)
    assert bounds.rho_min <= spectra.min()
    assert spectra.max() <= bounds.rho_max
    solved = np.linalg.solve(shifted, moments[..., None])[..., 0]
    lengths = np.sqrt(np.einsum("ni,ni->n", moments, solved))
    assert lengths.max() <= bounds.gamma
    assert lengths.max() > case.small * bounds.gamma


@pytest.mark.parametrize("family", [GaussianNoise, WishartNoise])
def test_a_larger_shift_moves_the_spectrum_up_and_never_enlarges_gamma(
    family: type[GaussianNoise] | type[WishartNoise],
) -> None:
    setting = small_setting()
    noise = family.calibrated(setting, TARGET)
    low, high = noise.eigenvalues(setting)
    shifts = np.geomspace(1e-6, 10.0, 50) * (high - low) - low
    found = [noise.bounds(setting, float(shift)) for shift in shifts]
    for bounds, shift in zip(found, shifts, strict=True):
        assert bounds.rho_min == pytest.approx(low + shift)
        assert bounds.rho_max == pytest.approx(high + shift)
    assert (np.diff([bounds.gamma for bounds in found]) <= 0).all()
    assert found[0].gamma > 100 * found[-1].gamma


def test_gaussian_bounds_are_the_papers() -> None:
    setting = small_setting(1_000)
    noise = GaussianNoise.calibrated(setting, TARGET)
    depth, ratio = 11, 2 * 1_000 / ALPHA
    std = 4 * np.sqrt(depth) * ROW_NORM**2 * np.log(4 / 1e-3) / 1.0
    reach = std * np.sqrt(2 * depth) * (4 * np.sqrt(3) + 2 * np.log(ratio))
    gamma = std * np.sqrt(depth / reach) * (np.sqrt(3) + np.sqrt(2 * np.log(ratio)))
    shift, bounds = gaussian.paper_shift(noise, setting)
    assert noise.std == pytest.approx(std)
    assert noise.eigenvalues(setting) == pytest.approx((-reach, reach))
    assert shift == pytest.approx(2 * reach)
    assert (bounds.rho_min, bounds.rho_max) == pytest.approx((reach, 3 * reach))
    assert bounds.gamma == pytest.approx(gamma)
    assert noise.bounds(setting, 5 * reach).gamma == pytest.approx(gamma / 2)


def test_wishart_bounds_are_the_papers() -> None:
    setting = small_setting(1_000)
    noise = WishartNoise.calibrated(setting, TARGET)
    root = np.sqrt(11 * noise.dof)
    stray = np.sqrt(3) + np.sqrt(2 * np.log(8 * 1_000 / ALPHA))
    length = np.sqrt(3) + np.sqrt(2 * np.log(2 * 1_000 / ALPHA))
    low, high = ROW_NORM**2 * (root - stray) ** 2, ROW_NORM**2 * (root + stray) ** 2
    assert noise.scale == pytest.approx(ROW_NORM**2)
    assert noise.eigenvalues(setting) == pytest.approx((low, high))

    shift, bounds = wishart.no_shift(noise, setting)
    assert shift == 0.0
    assert (bounds.rho_min, bounds.rho_max) == pytest.approx((low, high))
    assert bounds.gamma == pytest.approx(ROW_NORM * length)

    width = 4 * ROW_NORM**2 * root * stray
    shift, bounds = wishart.paper_shift(noise, setting)
    assert shift == pytest.approx(width - low)
    assert (bounds.rho_min, bounds.rho_max) == pytest.approx((width, 2 * width))
    assert bounds.gamma == pytest.approx(ROW_NORM * np.sqrt(root * length))
    exact = noise.bounds(setting, shift)
    assert exact.gamma == pytest.approx(ROW_NORM * length * np.sqrt(low / width))
    assert exact.gamma <= bounds.gamma
    assert noise.bounds(setting, low).gamma == pytest.approx(ROW_NORM * length)


@pytest.mark.parametrize("family", [GaussianNoise, WishartNoise])
@pytest.mark.parametrize("missing", [0.0, 1e-6, 0.5])
def test_a_shift_that_may_leave_the_matrix_indefinite_is_refused(
    family: type[GaussianNoise] | type[WishartNoise], missing: float
) -> None:
    setting = small_setting()
    noise = family.calibrated(setting, TARGET)
    low, high = noise.eigenvalues(setting)
    with pytest.raises(ParameterError, match="shift") as refused:
        noise.bounds(setting, -low - missing * (high - low))
    assert refused.value.parameter == "shift"
    noise.bounds(setting, -low + 1e-6 * (high - low))


def test_too_little_wishart_noise_for_the_failure_probability_is_refused() -> None:
    with pytest.raises(ParameterError) as refused:
        WishartNoise(dof=4, scale=1.0).eigenvalues(small_setting())
    assert refused.value.parameter == "failure_prob"


@pytest.mark.parametrize("name", ["wishart", "wishart-opt", "wishart-unshifted"])
def test_wishart_noise_refuses_the_covering_tree(name: str) -> None:
    with pytest.raises(ParameterError, match="pan-private") as refused:
        VARIANTS[name].with_tree("covering").mechanism(small_setting(), TARGET)
    assert refused.value.parameter == "tree"
    VARIANTS[name].with_tree("pan-private").mechanism(small_setting(), TARGET)


@pytest.mark.parametrize("name", ["gaussian", "gaussian-opt"])
def test_gaussian_noise_takes_the_covering_tree(name: str) -> None:
    mechanism = VARIANTS[name].with_tree("covering").mechanism(small_setting(), TARGET)
    assert mechanism.strategy == Tree(pan_private=False)


# Plain data


LAWS = [
    None,
    GaussianNoise(std=1.5),
    GaussianNoise(std=1.5, moment_std=2.25),
    WishartNoise(dof=9, scale=2.0),
]


@pytest.mark.parametrize("noise", LAWS)
def test_a_law_survives_a_save_file(noise: NodeNoise | None) -> None:
    assert noise_from_json(noise_to_json(noise)) == noise


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: GaussianNoise(std=-1.0), "std"),
        (lambda: GaussianNoise(std=0.0), "moment_std"),
        (lambda: GaussianNoise(std=math.nan), "std"),
        (lambda: GaussianNoise(std=1.0, moment_std=0.0), "moment_std"),
        (lambda: WishartNoise(dof=0, scale=1.0), "dof"),
        (lambda: WishartNoise(dof=5.5, scale=1.0), "dof"),
        (lambda: WishartNoise(dof=5, scale=-1.0), "scale"),
    ],
)
def test_a_law_that_makes_no_sense_is_refused(make: Callable[[], object], parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        make()
    assert refused.value.parameter == parameter
