"""Where noise comes from: the right laws, and a secret that stays one.

The operating system's numbers differ from run to run. Each law is tested at `FLAKE`, and fewer
than twenty such comparisons are made in this file, so that a right source fails it with
probability below 2e-6. The wrong laws differ by so much that passing is less likely still.
"""

import inspect
import os
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.mechanism.noise import sources as source
from discreet.mechanism.noise.sources import NoiseSource, SeededNoise, SystemNoise

F64 = NDArray[np.float64]

FLAKE = 1e-7
SIZE = 200_000


def seeded() -> SeededNoise:
    return SeededNoise(np.random.SeedSequence(1))


SOURCES: list[Callable[[], NoiseSource]] = [SystemNoise, seeded]
DOFS = [0.7, 1.0, 3.0, 30.0, 139_115.0]


def p_value(sample: F64, law: object) -> float:
    return float(stats.kstest(sample, law.cdf).pvalue)


@pytest.mark.parametrize("make", SOURCES)
def test_normals_pass_a_kolmogorov_smirnov_test_that_a_wrong_scale_fails(
    make: Callable[[], NoiseSource],
) -> None:
    drawn = make().normals(SIZE)
    assert drawn.shape == (SIZE,)
    assert p_value(drawn, stats.norm) > FLAKE
    assert p_value(1.06 * drawn, stats.norm) < FLAKE
    assert p_value(drawn / 1.06, stats.norm) < FLAKE
    assert p_value(np.abs(drawn), stats.norm) < FLAKE


@pytest.mark.parametrize("dof", DOFS)
@pytest.mark.parametrize("make", SOURCES)
def test_chi_squares_pass_a_kolmogorov_smirnov_test_that_a_wrong_dof_fails(
    make: Callable[[], NoiseSource], dof: float
) -> None:
    size = 50_000
    drawn = make().chi_squares(np.full(size, dof))
    assert p_value(drawn, stats.chi2(dof)) > FLAKE
    for wrong in (dof - 0.2 * dof**0.5, dof + 0.2 * dof**0.5):
        assert p_value(drawn, stats.chi2(wrong)) < FLAKE


@pytest.mark.parametrize("make", SOURCES)
def test_each_chi_square_has_its_own_degrees_of_freedom(make: Callable[[], NoiseSource]) -> None:
    dofs = np.tile([2.0, 50.0], 20_000)
    drawn = make().chi_squares(dofs)
    assert p_value(drawn[0::2], stats.chi2(2)) > FLAKE
    assert p_value(drawn[1::2], stats.chi2(50)) > FLAKE
    assert p_value(drawn, stats.chi2(2)) < FLAKE


@pytest.mark.parametrize("make", SOURCES)
def test_two_draws_from_one_source_differ(make: Callable[[], NoiseSource]) -> None:
    # Two equal doubles among a million pairs: probability below 1e-9.
    used = make()
    assert not np.isin(used.normals(1_000), used.normals(1_000)).any()
    dofs = np.full(1_000, 3.0)
    assert not np.isin(used.chi_squares(dofs), used.chi_squares(dofs)).any()


@pytest.mark.parametrize("make", SOURCES)
def test_asking_for_nothing_gives_nothing(make: Callable[[], NoiseSource]) -> None:
    assert make().normals(0).shape == (0,)
    assert make().chi_squares(np.empty(0)).shape == (0,)


def test_the_systems_noise_is_secret_and_seeded_noise_is_not() -> None:
    assert SystemNoise().secret is True
    assert seeded().secret is False


def test_the_systems_noise_takes_no_seed() -> None:
    assert not inspect.signature(SystemNoise).parameters
    with pytest.raises(TypeError):
        SystemNoise(1)
    with pytest.raises(TypeError):
        SystemNoise(seed=1)


def test_two_system_sources_give_different_numbers() -> None:
    assert not np.isin(SystemNoise().normals(1_000), SystemNoise().normals(1_000)).any()


def test_the_systems_noise_comes_from_the_operating_system_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, genuine = [], os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return genuine(size)

    monkeypatch.setattr(source.os, "urandom", urandom)
    SystemNoise().normals(1000)
    SystemNoise().chi_squares(np.full(7, 3.0))
    assert asked == [8000, 56]  # 64 bits for each number, none of them twice


def test_each_normal_in_stock_is_handed_out_once() -> None:
    noise = SystemNoise()
    numbers = np.concatenate([noise.normals(count) for count in (3, 500, 40, 7, 600, 1, 511)])
    # Two equal doubles among 1,662 independent normals have probability below 1e-9.
    assert np.unique(numbers).size == numbers.size == 1662


# The words that give the most extreme numbers: 63 bits of tail probability, one bit of side.
LOWEST, HIGHEST, BELOW_MIDDLE, ABOVE_MIDDLE = 0, 1, 2**64 - 2, 2**64 - 1
WORDS = np.array([LOWEST, HIGHEST, BELOW_MIDDLE, ABOVE_MIDDLE], dtype=np.uint64)


@pytest.fixture
def extreme(monkeypatch: pytest.MonkeyPatch) -> SystemNoise:
    monkeypatch.setattr(source.os, "urandom", lambda _: WORDS.tobytes())
    return SystemNoise()


def test_the_most_extreme_normals_are_finite_and_symmetric(extreme: SystemNoise) -> None:
    lowest, highest, below, above = extreme.normals(4)
    assert lowest == -highest
    assert highest == pytest.approx(stats.norm.isf(2.0**-65), rel=1e-12)
    assert below == pytest.approx(0.0, abs=1e-15)
    assert above == -below


@pytest.mark.parametrize("dof", DOFS)
def test_the_most_extreme_chi_squares_are_finite_and_positive(
    extreme: SystemNoise, dof: float
) -> None:
    lowest, highest, below, above = extreme.chi_squares(np.full(4, dof))
    law = stats.chi2(dof)
    assert 0.0 < lowest < below
    assert law.logcdf(lowest) == pytest.approx(-65 * np.log(2), rel=1e-9)
    assert law.logsf(highest) == pytest.approx(-65 * np.log(2), rel=1e-9)
    assert below == pytest.approx(law.median(), rel=1e-9)
    assert above == pytest.approx(law.median(), rel=1e-9)


def test_seeded_noise_repeats_itself() -> None:
    first, second = seeded(), seeded()
    dofs = np.linspace(1.0, 40.0, 100)
    for _ in range(3):
        assert (first.normals(100) == second.normals(100)).all()
        assert (first.chi_squares(dofs) == second.chi_squares(dofs)).all()
    other = SeededNoise(np.random.SeedSequence(2))
    assert not np.isin(seeded().normals(100), other.normals(100)).any()
