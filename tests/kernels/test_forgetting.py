"""Windows with a memory, and their filter, against matrices written out in NumPy."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.kernels import _windows as windows
from discreet.kernels._windows import Filter, Step
from discreet.mechanism.schedules import Schedule, batches, every_round, geometric, hybrid
from discreet.mechanism.strategies import Windows

F64 = NDArray[np.float64]

COUNT = 60
# The memory fills up after many releases, after a few, and before the first.
CASES = {
    "every round": (every_round(), 12),
    "batches": (batches(7), 45),
    "hybrid": (Schedule(start=30, ratio=0.1, root=1.0, batch=8), 80),
    "steps that go on growing": (hybrid(start=30), 300),
    "filled before the first": (batches(20), 13),
    "steps longer than the memory": (geometric(start=4, ratio=0.3), 50),
}
FILTERS = {
    "mixed": {"variance": 1.0, "draw": 90.0, "share": 0.25, "full": 40.0},
    "little noise": {"variance": 2.0, "draw": 0.05, "share": 0.5, "full": 3.0},
    "much noise": {"variance": 0.3, "draw": 1e5, "share": 1.0, "full": 1e6},
}
each_case = pytest.mark.parametrize(("schedule", "memory"), CASES.values(), ids=CASES)
each_filter = pytest.mark.parametrize("known", FILTERS.values(), ids=FILTERS)


def times(schedule: Schedule, count: int = COUNT) -> list[int]:
    """Zero, the rows at the first releases, and at the one after them."""
    found = [0]
    while len(found) < count + 2:
        found.append(schedule.after(found[-1]))
    return found


def decays(schedule: Schedule, memory: int, count: int = COUNT) -> list[Fraction]:
    """a_1, ..., a_(count + 1): what a window keeps of the one before, from the definition."""
    found = []
    for before, rows in itertools.pairwise(times(schedule, count)):
        counted = min(rows, memory)
        found.append(max(Fraction(0), Fraction(counted - (rows - before), counted)))
    return found


def encoder(schedule: Schedule, memory: int, count: int = COUNT) -> F64:
    """C, from the recurrence as it is written down."""
    kept = decays(schedule, memory, count)
    found, window = np.zeros((count, count)), np.zeros(count)
    for b in range(count):
        window = float(kept[b]) * window
        window[b] += 1.0
        found[b] = math.sqrt(1 - kept[b + 1] ** 2) * window
    return found


def worth(schedule: Schedule, memory: int, number: int) -> F64:
    """L_k: what is still counted of each release, so that the total is min(t, memory)."""
    ends = times(schedule, number)
    lasting = []
    for before, rows in itertools.pairwise(ends[: number + 1]):
        total = min(rows, memory)
        lasting.append(max(0, total - (rows - before)) / min(before, memory) if before else 0.0)
    return np.array([np.prod(lasting[k + 1 :]) for k in range(number)])


def gls_weights(schedule: Schedule, memory: int, known: dict[str, float], number: int) -> F64:
    """Weights of batches: dense least squares with the noise of release k larger by 1 / L_k."""
    ends = times(schedule, number)
    profile = np.array(
        [
            windows.profile(Filter(**known, memory=memory), before, rows)
            for before, rows in itertools.pairwise(ends[: number + 1])
        ]
    )
    inverse = np.linalg.inv(encoder(schedule, memory, number))
    still = worth(schedule, memory, number)
    at = np.flatnonzero(still > 1e-12)  # what is worth nothing has no weight
    larger = 1 / still[at]
    rewards = known["variance"] * np.diag(profile[at] * larger)
    draws = known["draw"] * (inverse[np.ix_(at, at)] * larger) @ inverse[np.ix_(at, at)].T
    found = np.zeros(number)
    found[at] = np.linalg.solve(rewards + draws, profile[at])
    return np.asarray(found * (found @ profile) / (found**2 @ profile))


def filtered(found: Windows, seen: F64) -> tuple[F64, F64]:
    """What the filter shows after each row of ``seen``, and its figures then."""
    ends = times(found.schedule, len(seen))
    public, figures = np.zeros((windows.ESTIMATES, seen.shape[1])), np.zeros(windows.FORGETTING)
    shown, known_figures = [], []
    for b, noisy in enumerate(seen):
        windows.follow(found.filter, Step(*ends[b : b + 3]), public, figures, noisy)
        shown.append(public[windows.SHOWN].copy())
        known_figures.append(figures.copy())
    return np.array(shown), np.array(known_figures)


# What a row costs


@each_case
def test_the_cost_of_one_row_is_in_exact_fractions_one_less_what_is_left(
    schedule: Schedule, memory: int
) -> None:
    kept = decays(schedule, memory)
    for batch in (0, 1, 7, COUNT - 1):
        share, cost = Fraction(1), Fraction(0)
        for b in range(batch, COUNT):
            if b > batch:
                share *= kept[b]
            cost += share**2 * (1 - kept[b + 1] ** 2)
            assert cost <= 1
        left = math.prod(kept[batch + 1 :], start=Fraction(1))
        assert cost == 1 - left**2


@each_case
def test_the_kernel_decays_and_enlarges_by_these_fractions(schedule: Schedule, memory: int) -> None:
    ends, kept = times(schedule), decays(schedule, memory)
    for b in range(COUNT):
        step = Step(*ends[b : b + 3])
        over, under = windows.kept_rows(step, memory)
        assert Fraction(int(over), int(under)) == kept[b]
        assert windows.decay(step, memory) == float(kept[b])
        noise = windows.enlarged(step.rows, step.after, memory)
        assert noise**2 == pytest.approx(float(1 / (1 - kept[b + 1] ** 2)), rel=1e-13)


@each_case
@each_filter
def test_the_encoder_is_the_recurrence_and_no_column_is_longer_than_one(
    schedule: Schedule, memory: int, known: dict[str, float]
) -> None:
    found = Windows(schedule=schedule, memory=memory, **known)
    matrix = found.encoder(COUNT)
    np.testing.assert_allclose(matrix, encoder(schedule, memory), rtol=1e-9, atol=1e-15)
    assert np.linalg.norm(matrix, axis=0).max() <= found.column_norm(COUNT) * (1 + 1e-12)


def test_decays_that_are_too_slow_for_their_noise_would_be_found() -> None:
    """The test above can fail: noise for a memory of 80 does not cover one of 160."""
    schedule, memory = CASES["hybrid"]
    kept, slower = decays(schedule, memory), decays(schedule, 2 * memory)
    cost, share = Fraction(0), Fraction(1)
    for b in range(30, COUNT):
        share *= slower[b] if b > 30 else 1
        cost += share**2 * (1 - kept[b + 1] ** 2)
    assert cost > 1.1


def test_a_row_counts_e_times_less_after_as_many_rows_as_are_remembered() -> None:
    schedule = Schedule(start=100, ratio=0.1, root=1.0, batch=100)
    ends, kept, memory = times(schedule, 500), decays(schedule, 10_000, 500), 10_000
    first = next(b for b, rows in enumerate(ends) if rows > memory)
    last = next(b for b, rows in enumerate(ends) if rows >= ends[first] + memory)
    share = math.prod(float(one) for one in kept[first:last])
    assert share == pytest.approx(math.exp(-1), rel=0.01)


# The filter


@each_case
@each_filter
def test_the_filter_is_least_squares_in_which_old_noise_is_larger(
    schedule: Schedule, memory: int, known: dict[str, float]
) -> None:
    # Column k of the windows is what they hold of batch k, so the filter shows its weight.
    found = Windows(schedule=schedule, memory=memory, **known)
    matrix = encoder(schedule, memory)
    gammas = np.array([math.sqrt(1 - kept**2) for kept in decays(schedule, memory)[1:]])
    shown, figures = filtered(found, matrix / gammas[:, None])
    sizes = np.diff(np.array(times(schedule)[: COUNT + 1], dtype=float))
    for number in (1, 2, 3, 10, 25, COUNT):
        weights = gls_weights(schedule, memory, known, number)
        small = 1e-7 * weights.max()
        assert (weights >= -small).all()
        np.testing.assert_allclose(shown[number - 1, :number], weights, rtol=1e-5, atol=small)
        assert figures[number - 1, windows.WEIGHT] == pytest.approx(
            weights @ sizes[:number], rel=1e-6
        )
        draws = np.linalg.solve(matrix[:number, :number].T, weights)
        assert figures[number - 1, windows.SPREAD] == pytest.approx(np.linalg.norm(draws), rel=1e-6)
        assert found.heaviest(number) == pytest.approx(weights.max(), rel=1e-6)
    np.testing.assert_allclose(found.figures(np.arange(1, COUNT + 1)), figures, rtol=1e-9)
    norms = np.linalg.norm(found.decoder(COUNT), axis=1)
    np.testing.assert_allclose(found.row_norms(COUNT, np.arange(1, COUNT + 1)), norms, rtol=1e-6)


def test_without_noise_that_matters_all_rows_come_to_the_memory() -> None:
    """What is shown is then a discounted sum, twice as large: see the scale in docs/drift.md."""
    schedule = Schedule(start=10, ratio=0.1, root=1.0, batch=3)
    known = {"variance": 1.0, "draw": 1e-9, "share": 0.2, "full": 1e9}
    found = Windows(schedule=schedule, memory=100, **known)
    weights = gls_weights(schedule, 100, known, 400)
    sizes = np.diff(np.array(times(schedule, 400)[:401], dtype=float))
    expected = worth(schedule, 100, 400)
    assert expected @ sizes == pytest.approx(100)
    np.testing.assert_allclose(weights / weights.max(), expected, atol=1e-6)
    scale = (expected @ sizes) / (expected**2 @ sizes)
    figures = found.figures(np.array([400]))[0]
    assert figures[windows.WEIGHT] == pytest.approx(100 * scale, rel=1e-6)
    assert scale == pytest.approx(2, rel=0.02)


@each_filter
def test_until_the_memory_is_full_nothing_is_forgotten(known: dict[str, float]) -> None:
    schedule = hybrid(start=10)
    plain = Windows(schedule=schedule, **known)
    longer = Windows(schedule=schedule, memory=schedule.times(10**4)[COUNT], **known)
    np.testing.assert_array_equal(longer.encoder(COUNT), plain.encoder(COUNT))
    np.testing.assert_allclose(longer.decoder(COUNT), plain.decoder(COUNT), rtol=1e-8, atol=1e-12)
    found, numbers = longer.figures(np.array([COUNT])), np.array([COUNT])
    np.testing.assert_allclose(found[:, : windows.FIGURES], plain.figures(numbers), rtol=1e-9)


def test_without_a_memory_the_filter_is_the_plain_one() -> None:
    """With covariances as matrices, for one entry. To the last bit: see test_windows.py."""
    known, schedule = Filter(variance=1.0, draw=90.0, share=0.25, full=40.0), hybrid(start=10)
    seen = np.random.default_rng(0).normal(size=50)
    ends = times(schedule, 50)
    public, figures = np.zeros((windows.ESTIMATES, 1)), np.zeros(windows.FIGURES)
    profile = held = rate = lag = 0.0
    variances, draws = np.zeros((2, 2)), np.zeros((2, 2))
    for b in range(50):
        step = Step(*ends[b : b + 3])
        windows.follow(known, step, public, figures, seen[b : b + 1])
        kept = step.before / step.rows
        spread = step.after**2 / ((step.after - step.rows) * (step.after + step.rows))
        profile = windows.profile(known, step.before, step.rows)
        held = kept * held + profile
        moved = np.diag([1.0, kept])
        if b == 0:
            gains = np.array([1 / held, 0.0])
            errors = np.array([-1 / held, 1.0])
            variances = known.variance * profile * np.outer(errors, errors)
            draws = spread * np.outer(gains, gains)
        else:
            variances = moved @ variances @ moved + np.diag([0, known.variance * profile])
            draws = moved @ draws @ moved
            seen_by = np.array([held, 1.0])
            both = variances + known.draw * draws
            gains = both @ seen_by / (seen_by @ both @ seen_by + known.draw * spread)
            after = np.eye(2) - np.outer(gains, seen_by)
            variances = after @ variances @ after.T
            draws = after @ draws @ after.T + spread * np.outer(gains, gains)
        surprise = seen[b] - held * rate - kept * lag
        rate, lag = rate + gains[0] * surprise, kept * lag + gains[1] * surprise
        assert public[windows.RATE, 0] == pytest.approx(rate, rel=1e-7)
        assert public[windows.LAG, 0] == pytest.approx(lag, rel=1e-7, abs=1e-12)
    assert windows.decay(Step(10, 30, 40)) == 10 / 30
    assert windows.enlarged(30, 40) == 40 / math.sqrt(10.0 * 70.0)


@each_filter
def test_figures_settle_and_are_then_not_worked_out_again(known: dict[str, float]) -> None:
    schedule = Schedule(start=30, ratio=0.1, root=1.0, batch=10)
    found = Windows(schedule=schedule, memory=200, **known)
    end = windows.settled(schedule.timing, 200)
    assert end == schedule.count(42 * 200) + 1
    # One by one, far beyond.
    numbers = np.arange(1, 2 * end)
    _, figures = filtered(found, np.zeros((2 * end, 1)))
    away = np.abs(found.figures(numbers) - figures[:-1])
    assert (away <= 1e-9 * np.array([windows.sizes(one) for one in figures[:-1]])).all()
    shown = [windows.SPREAD, windows.WEIGHT]
    np.testing.assert_allclose(found.figures(numbers)[:, shown], figures[:-1, shown], rtol=1e-9)
    far = np.array([end - 1, end + 1, 10**10, 10**12])
    np.testing.assert_allclose(
        found.figures(far)[:, windows.SPREAD], figures[-1, windows.SPREAD], rtol=1e-9
    )
    np.testing.assert_allclose(
        found.row_norms(10**12, far)[1:], figures[-1, windows.SPREAD], rtol=1e-9
    )
    assert found.heaviest(10**12) == pytest.approx(found.heaviest(end - 5), rel=1e-9)
    # Noise and weight are bounded for ever.
    assert figures[:, windows.WEIGHT].max() < 4 * 200
    # Where steps go on growing nothing settles.
    assert windows.settled(hybrid(start=30).timing, 200) == windows.NEVER
    assert windows.settled(schedule.timing, windows.NEVER) == windows.NEVER


def test_rows_bring_no_less_information_once_the_memory_is_full() -> None:
    known = Filter(variance=1.0, draw=1.0, share=0.5, full=100.0, memory=1_000)
    assert windows.profile(known, 0, 100) == pytest.approx(50)
    assert windows.profile(known, 0, 1_000) == pytest.approx(50 * (1 + math.log(10)), rel=1e-12)
    for before in (1_000, 5_000, 10**9):
        assert windows.profile(known, before, before + 20) == pytest.approx(0.5 * 0.1 * 20)
    whole = windows.profile(known, 0, 3_000)
    for middle in (1, 99, 100, 101, 999, 1_000, 1_001, 2_500):
        parts = windows.profile(known, 0, middle), windows.profile(known, middle, 3_000)
        assert sum(parts) == pytest.approx(whole, rel=1e-12)
    short = known._replace(memory=50)
    assert windows.profile(short, 10**6, 10**6 + 20) == pytest.approx(0.5 * 20)


@pytest.mark.parametrize("memory", [0, 1, -5, 2.5, "many", True, 10**16])
def test_what_is_no_memory_is_refused(memory: object) -> None:
    with pytest.raises(ParameterError) as refused:
        Windows(schedule=batches(5), memory=memory, **FILTERS["mixed"])
    assert refused.value.parameter == "memory"


def test_a_memory_of_too_many_releases_is_refused() -> None:
    with pytest.raises(ParameterError, match="releases"):
        Windows(schedule=every_round(), memory=10**9, **FILTERS["mixed"])
