import numpy as np
import pytest

from discreet.report._numbers import Measured, grouped, short


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.0, "1"), (0.12345, "0.123"), (91545.5, "91,500"), (54774956.5, "54,800,000")],
)
def test_a_grouped_number_has_three_significant_digits(value: float, text: str) -> None:
    assert grouped(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.1, "0.1"), (10.0, "10"), (1e3, "1k"), (91545.5, "91.5k"), (1.15e8, "115M")],
)
def test_a_short_number_carries_a_letter_for_its_size(value: float, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize(
    ("mean", "stderr", "text"),
    [
        (12980.6, 2241.6, "13,000 ± 2,200"),
        (100.406, 12.447, "100 ± 12"),
        (52.1575, 0.3893, "52.16 ± 0.39"),
        (1.0, 0.0, "1"),
        (12345.0, None, "12,300 (one seed)"),
    ],
)
def test_a_mean_is_rounded_like_its_standard_error(
    mean: float, stderr: float | None, text: str
) -> None:
    assert Measured(mean=mean, stderr=stderr).text() == text


def test_the_standard_error_is_that_of_the_mean_over_seeds() -> None:
    measured = Measured.over_seeds(np.array([1.0, 2.0, 3.0, 6.0]))
    assert measured.mean == 3.0
    assert measured.stderr == pytest.approx(np.sqrt((4 + 1 + 0 + 9) / 3 / 4))


def test_one_seed_has_no_standard_error() -> None:
    assert Measured.over_seeds(np.array([5.0])).stderr is None


def test_a_ratio_of_proportional_values_is_certain() -> None:
    base = np.array([1.0, 2.0, 4.0])
    ratio = Measured.ratio(3.0 * base, base)
    assert ratio is not None
    assert ratio.mean == pytest.approx(3.0)
    assert ratio.stderr == pytest.approx(0.0, abs=1e-12)


def test_a_ratio_s_standard_error_is_that_of_many_repetitions() -> None:
    source = np.random.default_rng(7)
    shared = source.normal(size=(4000, 50))
    base = 20.0 + shared + source.normal(size=shared.shape)
    values = 60.0 + 3.0 * shared + 2.0 * source.normal(size=shared.shape)
    ratios = [Measured.ratio(*pair) for pair in zip(values, base, strict=True)]
    means = np.array([ratio.mean for ratio in ratios if ratio is not None])
    claimed = np.mean([ratio.stderr for ratio in ratios if ratio is not None])
    # 4000 repetitions know the spread to about 1%: six times that, and the unpaired formula
    # (53% too wide) would not pass.
    assert claimed == pytest.approx(means.std(), rel=0.06)


def test_there_is_no_ratio_to_nothing() -> None:
    assert Measured.ratio(np.array([1.0, 2.0]), np.zeros(2)) is None
