"""Draws of discrete Gaussians: the right law from both sources, and in every scale.

The operating system's and OpenDP's numbers differ from run to run. Each comparison with them is
made at `FLAKE`, and there are fewer than thirty in this file, so that right samplers fail it with
probability below 3e-6. Wrong laws differ by so much that each passes with probability below 1e-6.
Everything else has a fixed seed.
"""

import math
import os
from collections.abc import Callable

import numpy as np
import opendp.prelude as opendp
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import ParameterError
from discreet.kernels import _discrete_gaussian as kernel
from discreet.kernels import _random as random
from discreet.mechanism.noise import _sampler as sampler
from discreet.mechanism.noise import sources as source
from discreet.mechanism.noise.sources import NoiseSource, SeededNoise, SystemNoise

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

FLAKE = 1e-7
SIGMAS = 5.5  # two-sided probability 4e-8
SIZE = 100_000
STDS = [1, 3, 20]


def seeded(seed: int = 1) -> SeededNoise:
    return SeededNoise(np.random.SeedSequence(seed))


SOURCES: list[Callable[[], NoiseSource]] = [SystemNoise, seeded]


def drawn(noise: NoiseSource, std: int, count: int = SIZE) -> I64:
    return sampler.draw(noise, np.array([std], dtype=np.int64), count)[:, 0]


def probabilities(std: float, reach: int) -> F64:
    """Of -reach ... reach, the ends with all that is beyond; 12 stds hold all but 1e-31."""
    n = np.arange(-math.ceil(12 * std), math.ceil(12 * std) + 1)
    weights = np.exp(-(n**2) / (2 * std**2))
    return np.bincount(np.clip(n, -reach, reach) + reach, weights / weights.sum())


def counts(sample: I64, reach: int) -> I64:
    return np.bincount(np.clip(sample, -reach, reach) + reach, minlength=2 * reach + 1)


def exact_p_value(sample: I64, std: float, reach: int) -> float:
    expected = sample.size * probabilities(std, reach)
    return float(stats.chisquare(counts(sample, reach), expected).pvalue)


@pytest.mark.parametrize("std", STDS)
@pytest.mark.parametrize("make", SOURCES)
def test_draws_have_the_probabilities_of_the_discrete_gaussian_and_of_no_other_scale(
    make: Callable[[], NoiseSource], std: int
) -> None:
    sample = drawn(make(), std)
    assert exact_p_value(sample, std, 3 * std) > FLAKE
    assert exact_p_value(sample, 1.06 * std, 3 * std) < FLAKE
    assert exact_p_value(sample, std / 1.06, 3 * std) < FLAKE


def test_rounded_normals_are_told_apart_from_discrete_gaussians() -> None:
    # Their variance is 1 + 1/12, not 1.
    rounded = np.rint(seeded().normals(SIZE)).astype(np.int64)
    assert exact_p_value(rounded, 1, 3) < FLAKE


def opendp_draws(scale: float, count: int) -> I64:
    """The same law, made by others (Canonne, Kamath & Steinke's own method)."""
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="f64")
    return np.array(opendp.m.make_gaussian(*space, scale=scale)([0] * count))


@pytest.mark.parametrize("std", STDS)
def test_draws_cannot_be_told_from_those_of_opendp(std: int) -> None:
    def p_value(other: I64) -> float:
        return float(stats.chi2_contingency([counts(s, 3 * std) for s in (ours, other)]).pvalue)

    ours = drawn(SystemNoise(), std, 50_000)
    assert p_value(opendp_draws(float(std), 50_000)) > FLAKE
    assert p_value(opendp_draws(1.15 * std, 50_000)) < FLAKE
    assert p_value(opendp_draws(std / 1.15, 50_000)) < FLAKE


def test_neighbouring_draws_are_independent() -> None:
    def p_value(first: I64, second: I64) -> float:
        pairs = np.zeros((5, 5))
        np.add.at(pairs, (np.clip(first, -2, 2) + 2, np.clip(second, -2, 2) + 2), 1)
        return float(stats.chi2_contingency(pairs).pvalue)

    sample = drawn(seeded(2), 1, 400_000)
    for lag in (1, 2, 3):
        assert p_value(sample[lag:], sample[:-lag]) > FLAKE
    linked = np.where(np.arange(sample.size) % 20 == 0, np.roll(sample, 1), sample)
    assert p_value(linked[1:], linked[:-1]) < FLAKE


@pytest.mark.parametrize("std", [2**36, 2**36 + 12_345, kernel.LARGEST_STD - 1, kernel.LARGEST_STD])
def test_draws_of_a_large_scale_are_normal_in_shape_and_uniform_in_their_last_digits(
    std: int,
) -> None:
    sample = drawn(seeded(3), std)
    scaled = sample / std
    means, variances = np.array([0.0, 1.0, 0.0, 3.0]), np.array([1.0, 2.0, 15.0, 96.0])

    def scores(values: F64) -> F64:
        powers = np.array([(values**power).mean() for power in (1, 2, 3, 4)])
        return np.abs(powers - means) / np.sqrt(variances / values.size)

    assert scores(scaled).max() < SIGMAS
    assert scores(1.03 * scaled)[1] > SIGMAS
    assert scores(scaled / 1.03)[1] > SIGMAS
    assert stats.kstest(scaled, stats.norm.cdf).pvalue > FLAKE
    for digits in (np.abs(sample) % 7, sample & 15):  # std is far larger than 15: uniform to 1e-15
        assert stats.chisquare(np.bincount(digits)).pvalue > FLAKE
    assert np.abs(scaled).max() < 8  # probability of more: 1e-10


def test_each_column_has_its_own_scale_and_no_link_to_the_others() -> None:
    stds = np.array([1, 50, 2**36, 7], dtype=np.int64)
    sample = sampler.draw(seeded(4), stds, SIZE)
    assert sample.shape == (SIZE, 4)
    assert sample.dtype == np.int64
    scaled = sample / stds
    squares = (scaled**2).mean(axis=0)
    assert np.abs(squares - 1).max() < SIGMAS * math.sqrt(2 / SIZE)
    links = np.corrcoef(scaled.T) - np.eye(4)
    assert np.abs(links).max() < SIGMAS / math.sqrt(SIZE)


@pytest.mark.parametrize(("count", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_drawing_nothing_gives_nothing(count: int, columns: int) -> None:
    stds = np.full(columns, 5, dtype=np.int64)
    assert sampler.draw(seeded(), stds, count).shape == (count, columns)


def test_draws_do_not_depend_on_how_many_words_are_asked_for_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stds = np.array([1, 2**36 + 1, 2**50], dtype=np.int64)
    plenty = sampler.draw(seeded(5), stds, 50)
    monkeypatch.setattr(sampler, "_WORDS_EACH", 0)
    monkeypatch.setattr(sampler, "_WORDS_MORE", 1)
    assert (sampler.draw(seeded(5), stds, 50) == plenty).all()


def test_the_same_seed_gives_the_same_draws_and_another_seed_others() -> None:
    assert (drawn(seeded(6), 2**40, 100) == drawn(seeded(6), 2**40, 100)).all()
    assert not np.isin(drawn(seeded(6), 2**40, 100), drawn(seeded(7), 2**40, 100)).any()


def test_two_draws_of_the_systems_noise_differ() -> None:
    noise = SystemNoise()  # two equal ones among a million pairs: probability below 1e-8
    assert not np.isin(drawn(noise, 2**50, 1_000), drawn(noise, 2**50, 1_000)).any()


def test_a_scale_of_zero_draws_nothing_and_takes_no_words() -> None:
    mixed = sampler.draw(seeded(), np.array([0, 4, 0, 9], dtype=np.int64), 50)
    plain = sampler.draw(seeded(), np.array([4, 9], dtype=np.int64), 50)
    assert np.array_equal(mixed[:, [1, 3]], plain)
    assert not mixed[:, [0, 2]].any()


@pytest.mark.parametrize("std", [-3, 2**50 + 1])
def test_a_scale_out_of_range_is_refused(std: int) -> None:
    with pytest.raises(ParameterError, match=r"^stds: hold one out of range; give whole numbers"):
        sampler.draw(seeded(), np.array([4, std], dtype=np.int64), 2)


class Far:
    """Words of a draw beyond reach: 65 successes, one failure, and ones for ever."""

    secret = False

    def words(self, count: int) -> U64:
        words = np.full(count, 2**64 - 1, dtype=np.uint64)
        words[1] = 2**64 - 3
        return words


def test_a_draw_beyond_reach_is_an_error() -> None:
    with pytest.raises(OverflowError, match="beyond 65 standard deviations; draw again"):
        sampler.draw(Far(), np.array([9], dtype=np.int64), 200)


# The sources' words.


@pytest.mark.parametrize("make", SOURCES)
def test_words_are_uniform_fresh_and_the_callers_own(make: Callable[[], NoiseSource]) -> None:
    used = make()
    words = used.words(SIZE)
    assert (words.shape, words.dtype) == ((SIZE,), np.uint64)
    assert words.flags.writeable
    assert words.flags.c_contiguous
    bits = np.unpackbits(words.view(np.uint8)).reshape(SIZE, 64)
    scores = (bits.mean(axis=0) - 0.5) * 2 * math.sqrt(SIZE)
    assert np.abs(scores).max() < 6.5  # 64 bits at 8e-11
    assert stats.chisquare(np.bincount(words.view(np.uint8), minlength=256)).pvalue > FLAKE
    # Two equal words among a hundred thousand and a thousand more: probability below 1e-9.
    assert np.unique(np.concatenate((words, used.words(1_000)))).size == SIZE + 1_000
    assert used.words(0).shape == (0,)


def test_the_systems_words_are_the_operating_systems_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bytes] = []
    genuine = os.urandom

    def urandom(size: int) -> bytes:
        given.append(genuine(size))
        return given[-1]

    monkeypatch.setattr(source.os, "urandom", urandom)
    noise = SystemNoise()
    words = [noise.words(count) for count in (3, 100)]
    assert [part.tobytes() for part in words] == given
    assert [len(part) for part in given] == [24, 800]


def test_seeded_words_are_the_next_of_the_seeded_stream() -> None:
    state = random.seed_state(np.random.SeedSequence(8))
    expected = [random.next_word(state) for _ in range(30)]
    noise = seeded(8)
    assert [*noise.words(10), *noise.words(20)] == expected
