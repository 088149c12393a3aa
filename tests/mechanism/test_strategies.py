"""How noise is shared between releases: every claim against the matrices written out."""

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gamma

from discreet import accounting
from discreet.errors import ParameterError
from discreet.mechanism import _codec
from discreet.mechanism._codec import strategy_from_json as restored
from discreet.mechanism._matrices import MOST_WRITTEN_OUT
from discreet.mechanism.schedules import hybrid
from discreet.mechanism.strategies import (
    Buffered,
    Optimised,
    SquareRoot,
    Strategy,
    Tree,
    Windows,
    independent,
)

F64 = NDArray[np.float64]

SIZES = [1, 2, 3, 7, 64, 200]


def weighing(releases: int) -> F64:
    """Weights that fall as the root: early releases matter more."""
    return 1 / np.sqrt(np.arange(1, releases + 1))


def triangular(releases: int) -> dict[str, Strategy]:
    """All that have one draw for each release."""
    return {
        "independent": independent(),
        "buffered": Buffered(),
        "buffered, 0.5": Buffered(exponent=0.5),
        "buffered, few": Buffered(exponent=0.3, spacing=4.0),
        "square root": SquareRoot(),
        "optimised": Optimised(weighing(releases), turns=12),  # a better one takes longer
    }


TREES = {"covering": Tree(pan_private=False), "pan-private": Tree(pan_private=True)}
TRIANGULAR = list(triangular(1))
ALL = [*TRIANGULAR, *TREES]
# Not prefix sums: what sets it apart is in kernels/test_windows.py.
WINDOWS = Windows(schedule=hybrid(start=9), variance=0.5, draw=30.0, share=0.25, full=200.0)


def strategy(name: str, releases: int) -> Strategy:
    if name == "windows":
        return WINDOWS
    return TREES[name] if name in TREES else triangular(releases)[name]


def ones(releases: int) -> F64:
    return np.tril(np.ones((releases, releases)))


def norms(matrix: F64, axis: int) -> F64:
    return np.asarray(np.linalg.norm(matrix, axis=axis))


each_size = pytest.mark.parametrize("releases", SIZES)


@each_size
@pytest.mark.parametrize("name", ALL)
def test_decoding_what_is_encoded_gives_prefix_sums(name: str, releases: int) -> None:
    found = strategy(name, releases)
    encoder, decoder = found.encoder(releases), found.decoder(releases)
    assert encoder.shape[1] == decoder.shape[0] == releases
    assert encoder.shape[0] == decoder.shape[1]
    np.testing.assert_allclose(decoder @ encoder, ones(releases), atol=1e-9)


@each_size
@pytest.mark.parametrize("name", [*TRIANGULAR, "windows"])
def test_later_batches_may_depend_on_earlier_releases(name: str, releases: int) -> None:
    # Release i has draws up to i, and what draw i hides are batches up to i: both lower triangular.
    found = strategy(name, releases)
    for matrix in (found.encoder(releases), found.decoder(releases)):
        assert matrix.shape == (releases, releases)
        assert not np.triu(matrix, 1).any()
        assert (np.diag(matrix) > 0).all()


@each_size
@pytest.mark.parametrize("name", TREES)
def test_a_node_of_a_tree_shows_only_when_its_batches_are_over(name: str, releases: int) -> None:
    encoder, decoder = TREES[name].encoder(releases), TREES[name].decoder(releases)
    for batches, shown in zip(encoder, decoder.T, strict=True):
        assert set(np.unique(batches)) | set(np.unique(shown)) <= {0.0, 1.0}
        first = int(shown.argmax())
        assert shown.any()
        assert not batches[first + 1 :].any()
        width = int(batches.sum())
        assert width == 0 or (width & (width - 1)) == 0
        # One stretch, so that a draw that has left a release never comes back.
        assert np.abs(np.diff(shown, prepend=0, append=0)).sum() == 2


@each_size
@pytest.mark.parametrize("name", TRIANGULAR)
def test_the_column_norm_is_the_longest_column_rounded_up(name: str, releases: int) -> None:
    found = strategy(name, releases)
    longest = norms(found.encoder(releases), 0).max()
    assert longest <= found.column_norm(releases) <= longest * (1 + 2e-7)


@each_size
@pytest.mark.parametrize("name", TREES)
def test_a_tree_charges_for_as_many_nodes_as_it_has_levels(name: str, releases: int) -> None:
    # The paper's m; a node of the highest level shows only if releases are a power of two.
    levels = 1 + math.ceil(math.log2(releases))
    found, longest = TREES[name].column_norm(releases), norms(TREES[name].encoder(releases), 0)
    assert found == math.sqrt(levels)
    assert longest.max() <= found
    shown = levels if releases & (releases - 1) == 0 else levels - 1
    assert longest.max() == pytest.approx(math.sqrt(shown), rel=1e-12)


@each_size
@pytest.mark.parametrize("name", [*TRIANGULAR, "pan-private"])
def test_the_row_norms_are_the_lengths_of_the_decoders_rows(name: str, releases: int) -> None:
    found = strategy(name, releases)
    numbers = np.arange(1, releases + 1)
    lengths = norms(found.decoder(releases), 1)
    np.testing.assert_allclose(found.row_norms(releases, numbers), lengths, rtol=1e-9)
    some = np.unique([1, (releases + 1) // 2, releases])
    np.testing.assert_allclose(found.row_norms(releases, some), lengths[some - 1], rtol=1e-9)


@each_size
def test_the_row_norms_of_the_covering_tree_are_the_most_so_far(releases: int) -> None:
    lengths = norms(TREES["covering"].decoder(releases), 1)
    found = TREES["covering"].row_norms(releases, np.arange(1, releases + 1))
    np.testing.assert_allclose(found, np.maximum.accumulate(lengths), rtol=1e-12)


@each_size
@pytest.mark.parametrize("name", [name for name in ALL if name != "optimised"])
def test_noise_does_not_shrink_from_release_to_release(name: str, releases: int) -> None:
    # A table of norms at some of the releases is read on the assumption that it does not.
    found = strategy(name, releases).row_norms(releases, np.arange(1, releases + 1))
    assert (np.diff(found) >= -1e-12).all()


@pytest.mark.parametrize("releases", [1, 3, 16, 64])
@pytest.mark.parametrize("name", [*ALL, "windows"])
def test_one_row_costs_no_more_than_the_column_norm_and_the_worst_row_costs_it(
    name: str, releases: int
) -> None:
    # Neighbouring batch sums differ in one batch by at most 1 in the whitened norm. What an
    # observer can learn is the encoded sums plus standard normals, so that the distance of two
    # neighbours is that of their encoded sums; by `accounting` no more than mu.
    found = strategy(name, releases)
    encoder, longest = found.encoder(releases), found.column_norm(releases)
    rng = np.random.default_rng(releases)
    reached = 0.0
    for batch in range(releases):
        change = rng.standard_normal(4)
        change *= rng.uniform() / np.linalg.norm(change)
        sums, other = (rng.standard_normal((releases, 4)) for _ in range(2))
        other = sums.copy()
        other[batch] += change
        distance = np.linalg.norm(encoder @ sums - encoder @ other)
        assert distance <= longest * np.linalg.norm(change) * (1 + 1e-9)
        reached = max(reached, distance / np.linalg.norm(change))
    exact = accounting.strategy_cost(encoder, row_cost=1.0)
    assert reached == pytest.approx(exact, rel=1e-9)
    assert exact <= longest * (1 + 1e-9)


@pytest.mark.parametrize("name", TRIANGULAR)
def test_what_an_observer_sees_is_no_more_than_the_encoded_sums(name: str) -> None:
    # The whitened distance of the releases themselves, with their covariance D D^T, is the same.
    releases = 64
    found = strategy(name, releases)
    encoder, decoder = found.encoder(releases), found.decoder(releases)
    change = np.zeros(releases)
    worst = int(norms(encoder, 0).argmax())
    change[worst] = 1.0
    shown = ones(releases) @ change
    distance = math.sqrt(shown @ np.linalg.solve(decoder @ decoder.T, shown))
    assert distance == pytest.approx(found.column_norm(releases), rel=1e-6)


# The square root


def test_the_square_root_is_one() -> None:
    factor = SquareRoot().encoder(50)
    np.testing.assert_allclose(factor @ factor, ones(50), atol=1e-12)
    column = [1.0]
    for k in range(1, 50):
        column.append(column[-1] * (2 * k - 1) / (2 * k))
    np.testing.assert_allclose(factor[:, 0], column, rtol=1e-12)


@pytest.mark.parametrize("releases", [1, 66, 1000])
def test_both_norms_of_the_square_root_are_those_of_its_coefficients(releases: int) -> None:
    coefficients = [math.comb(2 * k, k) / 4**k for k in range(releases)]
    expected = math.sqrt(sum(entry**2 for entry in coefficients))
    found = SquareRoot()
    assert found.column_norm(releases) == pytest.approx(expected, rel=2e-11)
    assert found.row_norms(releases, np.array([releases])) == pytest.approx([expected], rel=1e-11)
    # Each is sqrt(1.0663 + ln(J)/pi) for large J.
    assert expected**2 == pytest.approx(1.0663 + math.log(releases) / math.pi, abs=0.07)


# Optimised


def objective(found: Strategy, weights: F64) -> float:
    """The weighted sum of variances at a cost of 1."""
    releases = len(weights)
    squares = norms(found.decoder(releases), 1) ** 2
    return float(weights @ squares) * found.column_norm(releases) ** 2


@pytest.mark.parametrize(("releases", "power"), [(2, 0.0), (7, -0.5), (64, -1.0), (64, 0.0)])
def test_the_optimised_strategy_beats_all_others_by_its_own_measure(
    releases: int, power: float
) -> None:
    weights = np.arange(1.0, releases + 1) ** power
    reached = objective(Optimised(weights), weights)
    others = [found for name, found in triangular(releases).items() if name != "optimised"] + list(
        TREES.values()
    )
    for other in others:
        assert reached < objective(other, weights) * (1 - 1e-6)


def test_the_optimised_strategy_cannot_be_improved_by_small_changes() -> None:
    weights = weighing(12)
    best = Optimised(weights, turns=500)
    encoder, reached = best.encoder(12), objective(best, weights)
    rng = np.random.default_rng(3)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(50):
            changed = np.tril(encoder + size * rng.standard_normal(encoder.shape))
            decoder = ones(12) @ np.linalg.inv(changed)
            found = weights @ norms(decoder, 1) ** 2 * norms(changed, 0).max() ** 2
            assert found > reached * (1 - 1e-7)


def test_at_the_optimum_all_columns_are_equally_long() -> None:
    columns = norms(Optimised(weighing(40), turns=400).encoder(40), 0)
    np.testing.assert_allclose(columns, 1.0, rtol=1e-6)


@pytest.mark.parametrize("weights", [[], [1.0, 0.0], [1.0, -1.0], [math.nan], [math.inf], [[1.0]]])
def test_weights_that_are_not_positive_numbers_are_refused(weights: list) -> None:
    with pytest.raises(ParameterError, match="weights: must be a list of positive numbers"):
        Optimised(weights)


@pytest.mark.parametrize("turns", [0, -1, 2.5])
def test_turns_that_do_not_count_are_refused(turns: float) -> None:
    with pytest.raises(ParameterError, match="turns: "):
        Optimised([1.0], turns=turns)


def test_weights_for_another_number_of_releases_are_refused() -> None:
    for call in (Optimised([1.0, 2.0]).encoder, Optimised([1.0, 2.0]).column_norm):
        with pytest.raises(ParameterError, match="weights: has 2 entries for 3 releases"):
            call(3)


# Buffers


@pytest.mark.parametrize("exponent", [0.1, 0.25, 0.4])
def test_below_one_half_the_columns_stay_bounded_however_many_releases(exponent: float) -> None:
    # The coefficients of (1 - x)^(-a) have the sum of squares G(1 - 2a) / G(1 - a)^2. Far less
    # than a tenth is missing at 1e6 releases for small a; the sum converges as J^(2a - 1).
    limit = math.sqrt(gamma(1 - 2 * exponent)) / gamma(1 - exponent)
    found = Buffered(exponent=exponent).column_norm(10**6)
    assert found == pytest.approx(limit, rel=0.1)
    assert found / Buffered(exponent=exponent).column_norm(10**4) < 1.1


def test_at_one_half_the_columns_grow() -> None:
    found = Buffered(exponent=0.5)
    assert found.column_norm(10**6) / found.column_norm(10**4) > 1.15


@pytest.mark.parametrize("releases", [64, 500, 2000])
def test_buffers_with_one_half_are_about_as_good_as_the_square_root(releases: int) -> None:
    last = np.array([releases])
    product = {
        found.kind: found.column_norm(releases) * found.row_norms(releases, last)[0]
        for found in (Buffered(exponent=0.5), SquareRoot())
    }
    assert product["buffered"] == pytest.approx(product["square-root"], rel=0.1)


def test_buffers_take_memory_that_hardly_grows() -> None:
    decays, weights = Buffered().mixture(10**6)
    assert decays.size == weights.size < 12
    assert ((decays > 0) & (decays < 1) & (weights > 0)).all()


@pytest.mark.parametrize("exponent", [0.2, 0.4, 0.5])
def test_buffers_follow_their_power_series_far_from_both_ends(exponent: float) -> None:
    # (1 - x)^(-a) has coefficients (1 - (1-a)/1) (1 - (1-a)/2) ... (1 - (1-a)/k). Buffers that
    # decay at once are left out, and those slower than all releases.
    decays, weights = Buffered(exponent=exponent, spacing=1.0).mixture(10**6)
    places = np.array([30, 100, 300, 1000])
    column = (weights * decays ** (places[:, None] - 1)).sum(axis=1)
    expected = np.cumprod(1 - (1 - exponent) / np.arange(1, 1001))[places - 1]
    np.testing.assert_allclose(column, expected, rtol=0.03)


def test_independent_noise_is_the_identity() -> None:
    np.testing.assert_array_equal(independent().encoder(9), np.eye(9))
    assert independent().column_norm(10**9) == pytest.approx(1.0, abs=2e-11)
    found = independent().row_norms(9, np.arange(1, 10))
    np.testing.assert_allclose(found, np.sqrt(np.arange(1, 10)), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"exponent": -0.1}, "exponent"),
        ({"exponent": 1.0}, "exponent"),
        ({"exponent": math.nan}, "exponent"),
        ({"spacing": 0.0}, "spacing"),
        ({"spacing": 6.0}, "spacing"),
    ],
)
def test_buffers_outside_the_family_are_refused_by_name(
    change: dict[str, float], parameter: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        Buffered(**change)
    assert refused.value.parameter == parameter


# All of them


@pytest.mark.parametrize(
    "found", [SquareRoot(), Optimised(np.ones(MOST_WRITTEN_OUT + 1))], ids=lambda found: found.kind
)
def test_too_many_releases_for_a_matrix_are_refused(found: Strategy) -> None:
    for call in (found.encoder, found.decoder, found.column_norm, found.sharing):
        with pytest.raises(ParameterError, match=r"strategy: .* 4097 releases are too many"):
            call(MOST_WRITTEN_OUT + 1)


def test_trees_and_buffers_have_no_such_limit() -> None:
    for found in (*TREES.values(), Buffered(), independent(), WINDOWS):
        assert found.column_norm(10**6) > 0
        assert found.row_norms(10**6, np.array([1, 10**6])).shape == (2,)
        assert found.sharing(10**6).decoder.size == 0
    for found in (*TREES.values(), WINDOWS):  # but they are not written out either
        with pytest.raises(ParameterError, match="too many"):
            found.encoder(MOST_WRITTEN_OUT + 1)


@pytest.mark.parametrize("name", [*ALL, "windows"])
def test_a_strategy_survives_a_save_file(name: str) -> None:
    found = strategy(name, 5)
    assert (
        restored(json.loads(json.dumps(_codec.strategy_to_json(found), allow_nan=False))) == found
    )
    assert restored(None) is None
    assert _codec.strategy_to_json(None) is None


@pytest.mark.parametrize(
    "entry", [{}, {"kind": "luck"}, {"kind": "tree", "leaves": 3}, {"kind": "optimised"}]
)
def test_an_entry_that_is_no_strategy_is_refused(entry: dict) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        restored(entry)
