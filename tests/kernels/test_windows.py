"""Decaying windows and their filter, against matrices written out in NumPy."""

import itertools
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.kernels import _schedule as timings
from discreet.kernels import _sums as sums
from discreet.kernels import _windows as windows
from discreet.kernels._windows import Filter, Step
from discreet.mechanism.schedules import Schedule, batches, every_round, geometric, hybrid
from discreet.mechanism.strategies import Windows

F64 = NDArray[np.float64]

SCHEDULES = {
    "every round": every_round(),
    "batches": batches(7),
    "geometric": geometric(start=4, ratio=0.3),
    "hybrid": hybrid(start=30, ratio=0.1, root=1.0),
    "late, then every round": Schedule(start=50, batch=1),
    "doubling": Schedule(start=1, ratio=1.0),
}
# Rewards' noise that hardly matters, that matters most, and both; the profile falls early or late.
FILTERS = {
    "mixed": Filter(variance=1.0, draw=90.0, share=0.25, full=1500.0),
    "little noise": Filter(variance=2.0, draw=0.05, share=0.5, full=3.0),
    "much noise": Filter(variance=0.3, draw=1e5, share=1.0, full=1e6),
    "falling at once": Filter(variance=1.0, draw=20.0, share=0.2, full=1.0),
}
COUNT = 40
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
each_filter = pytest.mark.parametrize("known", FILTERS.values(), ids=FILTERS)


def strategy(schedule: Schedule, known: Filter) -> Windows:
    return Windows(schedule=schedule, **{**known._asdict(), "memory": None})


def times(schedule: Schedule, count: int = COUNT) -> list[int]:
    """Rows at the first releases, and at the one after them."""
    found = [schedule.after(0)]
    while len(found) <= count:
        found.append(schedule.after(found[-1]))
    return found


def batch_sizes(schedule: Schedule, count: int = COUNT) -> F64:
    return np.diff(np.array(times(schedule, count)[:count], dtype=float), prepend=0.0)


def encoder(schedule: Schedule, count: int = COUNT) -> F64:
    """C, from the recurrence as it is written down: a window is a_b times the last, plus a batch.

    Release b shows it with noise 1 / gamma_b, so that gamma_b times the release has one draw.
    """
    ends = times(schedule, count)
    found, window = np.zeros((count, count)), np.zeros(count)
    for b in range(count):
        kept = ends[b - 1] / ends[b] if b else 0.0
        window = kept * window
        window[b] += 1.0
        found[b] = math.sqrt(1 - (ends[b] / ends[b + 1]) ** 2) * window
    return found


def profiles(schedule: Schedule, known: Filter, count: int = COUNT) -> F64:
    """Each batch's information, by adding up over its rows as a fine integral."""
    ends = [0, *times(schedule, count)[:count]]
    found = []
    for before, rows in itertools.pairwise(ends):
        edges = np.linspace(before, rows, 20_001)
        middle = 0.5 * (edges[1:] + edges[:-1])
        rate = known.share * np.minimum(1.0, known.full / middle)
        found.append(rate.mean() * (rows - before))
    return np.array(found)


def gls_weights(schedule: Schedule, known: Filter, number: int) -> F64:
    """Weights of batches in release ``number``: generalised least squares, dense.

    What can be had from all windows are the batches with noise of covariance draw (C^T C)^-1.
    Batch k holds profile_k times the rate, and reward noise of variance * profile_k. The weights
    are scaled so that reward noise in the weighted sum is variance times the information in it.
    """
    matrix = encoder(schedule, number)
    profile = np.array(
        [
            windows.profile(known, before, rows)
            for before, rows in zip(
                [0, *times(schedule, number)], times(schedule, number)[:number], strict=False
            )
        ]
    )
    covariance = known.variance * np.diag(profile) + known.draw * np.linalg.inv(matrix.T @ matrix)
    found = np.linalg.solve(covariance, profile)
    return np.asarray(found * (found @ profile) / (found**2 @ profile))


def filtered(schedule: Schedule, known: Filter, seen: F64) -> tuple[F64, F64]:
    """What the filter shows after each row of ``seen``, and its figures then."""
    ends = [0, *times(schedule, len(seen))]
    public, figures = np.zeros((windows.ESTIMATES, seen.shape[1])), np.zeros(windows.FIGURES)
    shown, known_figures = [], []
    for b, noisy in enumerate(seen):
        windows.follow(known, Step(*ends[b : b + 3]), public, figures, noisy)
        shown.append(public[windows.SHOWN].copy())
        known_figures.append(figures.copy())
    return np.array(shown), np.array(known_figures)


# What a row costs


@each_schedule
def test_no_column_of_the_encoder_is_longer_than_one_however_many_releases(
    schedule: Schedule,
) -> None:
    ends = times(schedule, 300)
    for count in (1, 2, 3, COUNT, 300):
        matrix = encoder(schedule, count)
        columns = np.linalg.norm(matrix, axis=0)
        assert columns.max() <= 1 + 1e-12
        # It telescopes: what is missing is what later releases will show of the batch.
        missing = [(ends[k] / ends[count]) ** 2 for k in range(count)]
        np.testing.assert_allclose(columns**2, 1 - np.array(missing), rtol=1e-9)
        found = strategy(schedule, FILTERS["mixed"])
        # Near the largest number of rows the reference above loses digits.
        np.testing.assert_allclose(found.encoder(count), matrix, rtol=1e-9, atol=1e-8)
        assert found.column_norm(count) == 1.0


@each_schedule
def test_the_cost_of_one_row_adds_up_over_all_releases_to_less_than_one(
    schedule: Schedule,
) -> None:
    # In exact fractions, by brute force: the change of each release over its noise, squared.
    ends = times(schedule, 60)
    for batch in (0, 1, 7, 59):
        share, cost = Fraction(1), Fraction(0)
        for b in range(batch, 60):
            if b > batch:
                share *= Fraction(ends[b - 1], ends[b])
            cost += share**2 * (1 - Fraction(ends[b], ends[b + 1]) ** 2)
            assert cost < 1
        assert cost == 1 - Fraction(ends[batch], ends[60]) ** 2


@pytest.mark.parametrize("schedule", [every_round(), batches(2), hybrid(start=17)])
def test_a_draw_is_enlarged_by_one_over_gamma(schedule: Schedule) -> None:
    ends = times(schedule, 200)
    for rows, after in itertools.pairwise(ends):
        square = 1 / (1 - Fraction(rows, after) ** 2)
        assert windows.enlarged(rows, after) == pytest.approx(math.sqrt(square), rel=1e-14)
        assert windows.enlarged(rows, after) > 1
    largest = max(windows.enlarged(a, b) for a, b in itertools.pairwise(ends))
    assert windows.widest(schedule.timing, 200) == largest


def test_a_draw_is_enlarged_rightly_where_squares_of_rows_have_too_many_digits() -> None:
    for rows, after in ((10**12, 10**12 + 10**6), (10**15, 10**15 + 1), (2**60, 2**60 + 2**30)):
        exact = Fraction(after * after, (after - rows) * (after + rows))
        assert windows.enlarged(rows, after) ** 2 == pytest.approx(float(exact), rel=1e-13)


# The filter


@each_schedule
@each_filter
def test_the_profile_is_the_sum_over_rows(schedule: Schedule, known: Filter) -> None:
    ends = [0, *times(schedule)[:COUNT]]
    found = [windows.profile(known, a, b) for a, b in itertools.pairwise(ends)]
    np.testing.assert_allclose(found, profiles(schedule, known), rtol=1e-3)
    # A batch in two parts brings as much as the whole.
    whole = windows.profile(known, 0, 5000)
    for middle in (1, 3, 1499, 1500, 1501, 4999):
        parts = windows.profile(known, 0, middle), windows.profile(known, middle, 5000)
        assert sum(parts) == pytest.approx(whole, rel=1e-12)


@each_schedule
@each_filter
def test_the_filter_is_generalised_least_squares_over_all_windows(
    schedule: Schedule, known: Filter
) -> None:
    # Column k of the windows is what they hold of batch k, so the filter shows its weight.
    ends = times(schedule)
    matrix = encoder(schedule)
    gammas = np.sqrt(1 - (np.array(ends[:-1]) / ends[1:]) ** 2)
    shown, figures = filtered(schedule, known, matrix / gammas[:, None])
    sizes = batch_sizes(schedule)
    for number in (1, 2, 3, 10, COUNT):
        weights = gls_weights(schedule, known, number)
        assert (weights >= 0).all()
        np.testing.assert_allclose(
            shown[number - 1, :number], weights, rtol=1e-6, atol=1e-9 * weights.max()
        )
        assert not shown[number - 1, number:].any()
        total = figures[number - 1, windows.WEIGHT]
        assert total == pytest.approx(weights @ sizes[:number], rel=1e-7)
        found = strategy(schedule, known).heaviest(number)
        assert found == pytest.approx(weights.max(), rel=1e-7)
        # Its noise: the weights, taken back to draws.
        draws = np.linalg.solve(matrix[:number, :number].T, weights)
        spread = figures[number - 1, windows.SPREAD]
        assert spread == pytest.approx(np.linalg.norm(draws), rel=1e-7)


@each_schedule
@each_filter
def test_no_other_weights_say_more(schedule: Schedule, known: Filter) -> None:
    # Information over noise, of what is shown, is the largest there is.
    number = 25
    weights, profile = gls_weights(schedule, known, number), profiles(schedule, known, number)
    matrix = encoder(schedule, number)

    def worth(tried: F64) -> float:
        draws = np.linalg.solve(matrix.T, tried)
        noise = known.variance * (tried**2 @ profile) + known.draw * (draws @ draws)
        return float((tried @ profile) ** 2 / noise)

    rng = np.random.default_rng(1)
    best = worth(weights)
    for size in (1e-2, 0.3, 2.0):
        for _ in range(20):
            tried = weights * (1 + size * rng.standard_normal(number))
            assert worth(tried) < best * (1 + 1e-6)


@each_schedule
@each_filter
def test_the_norms_are_those_of_the_decoder_and_the_figures_those_of_the_stream(
    schedule: Schedule, known: Filter
) -> None:
    found = strategy(schedule, known)
    decoder, numbers = found.decoder(COUNT), np.arange(1, COUNT + 1)
    assert not np.triu(decoder, 1).any()
    lengths = np.linalg.norm(decoder, axis=1)
    np.testing.assert_allclose(found.row_norms(COUNT, numbers), lengths, rtol=1e-7)
    some = np.array([1, 3, COUNT])
    # Of several releases at once the largest, so that none is said to have less than it has.
    largest = [lengths[0], lengths[1:3].max(), lengths[3:].max()]
    np.testing.assert_allclose(found.row_norms(COUNT, some), largest, rtol=1e-7)
    _, figures = filtered(schedule, known, np.zeros((COUNT, 2)))
    np.testing.assert_allclose(found.figures(numbers), figures, rtol=1e-12)


def test_without_draws_that_matter_the_filter_shows_the_plain_sum() -> None:
    quiet = Filter(variance=1.0, draw=1e-9, share=0.2, full=1e9)
    schedule = hybrid(start=10)
    assert gls_weights(schedule, quiet, COUNT) == pytest.approx(np.ones(COUNT), rel=1e-6)
    figures = strategy(schedule, quiet).figures(np.array([COUNT]))[0]
    assert figures[windows.WEIGHT] == pytest.approx(times(schedule)[COUNT - 1], rel=1e-5)


# In floating point, as the learner and the simulator use it


@each_schedule
@each_filter
def test_a_step_is_the_plain_loop(schedule: Schedule, known: Filter) -> None:
    rng, size = np.random.default_rng(3), 5
    sharing = strategy(schedule, known).sharing(COUNT)
    arrays = strategy(schedule, known).float_arrays(COUNT, size)
    state = sums.empty(arrays, np.zeros(size))
    ends = [0, *times(schedule)]
    window, seen = np.zeros(size), np.zeros((COUNT, size))
    for b in range(COUNT):
        batch, draw = 10 * rng.standard_normal(size), 50 * rng.standard_normal(size)
        window = ends[b] / ends[b + 1] * window + batch
        gamma = math.sqrt(1 - (ends[b + 1] / ends[b + 2]) ** 2)
        seen[b] = window + draw / gamma
        sums.absorb(sharing, Step(*ends[b : b + 3]), state, batch, draw[None].copy(), COUNT)
        np.testing.assert_allclose(state.nodes[0], window, rtol=1e-12, atol=1e-12)
        # Generalised least squares of what was seen: batches are differences of windows.
        number = b + 1
        parts = seen[:number].copy()
        for k in range(1, number):
            parts[k] -= ends[k] / ends[k + 1] * seen[k - 1]
        expected = gls_weights(schedule, known, number) @ parts
        scale = np.abs(gls_weights(schedule, known, number)) @ np.abs(parts)
        assert (np.abs(state.totals[0] - expected) <= 1e-7 * scale).all()
        assert state.number[0] == number


def test_there_is_one_draw_for_each_release_and_none_before() -> None:
    sharing = strategy(hybrid(start=5), FILTERS["mixed"]).sharing(9)
    assert sums.first_draws(sharing) == 0
    assert [sums.draws(sharing, number) for number in (1, 2, 8, 1000)] == [1] * 4


@pytest.mark.parametrize("rows", [10**6, 10**12])
def test_figures_stay_sensible_for_as_many_rows_as_there_may_be(rows: int) -> None:
    schedule = hybrid(start=100, ratio=0.1, root=1.0)
    known = FILTERS["mixed"]
    found, releases = strategy(schedule, known), schedule.count(rows)
    numbers = np.unique(np.geomspace(1, releases, 200).astype(np.int64))
    figures = found.figures(numbers)
    assert np.isfinite(figures).all()
    spreads, weights = figures[:, windows.SPREAD], figures[:, windows.WEIGHT]
    ends = np.array([timings.time_of(schedule.timing, int(number)) for number in numbers[:150]])
    assert (spreads < 5).all()
    assert (np.diff(spreads[100:]) > 0).all()  # at first there are few windows to average over
    assert (np.diff(weights) > 0).all()
    # No more rows are in a release than there are; nor so few that most were lost.
    assert (weights[:150] <= ends * (1 + 1e-9)).all()
    assert weights[-1] <= rows
    assert weights[-1] > 0.02 * rows
    # Its noise stays small beside what is in it.
    assert (np.diff(spreads / weights) < 0).all()
    heaviest = found.heaviest(int(numbers[-1]))
    assert 1.0 <= heaviest < 20


@pytest.mark.parametrize("draw", [20.0, 1e5, 1e9])
def test_between_two_numbers_no_release_has_more_noise_than_is_said_of_the_later(
    draw: float,
) -> None:
    # Noise shrinks over many releases where there is much of it, and grows where there is little.
    known = Filter(variance=1.0, draw=draw, share=0.5, full=4 * draw / 0.5)
    found = strategy(hybrid(start=max(2, int(4 * math.sqrt(2 * draw))), ratio=0.1), known)
    every, some = np.arange(1, 20_001), np.arange(40, 20_001, 40)
    exact = found.figures(every)[:, windows.SPREAD]
    assert (np.diff(exact) < 0).any()
    said = found.row_norms(20_000, some)
    np.testing.assert_array_equal(said, exact.reshape(500, 40).max(axis=1))
    np.testing.assert_array_equal(found.row_norms(20_000, every), exact)


@each_schedule
def test_weights_are_right_where_noise_dwarfs_what_rewards_scatter(schedule: Schedule) -> None:
    found = strategy(schedule, Filter(variance=1e-16, draw=1.0, share=0.25, full=1e9))
    weights = found.decoder(COUNT) @ found.encoder(COUNT)
    for number in (1, 2, 10, COUNT):
        assert weights[number - 1].max() == pytest.approx(found.heaviest(number), rel=1e-6)
        shown = found.figures(np.array([number]))[0]
        total = weights[number - 1] @ batch_sizes(schedule)
        assert shown[windows.WEIGHT] == pytest.approx(total, rel=1e-6)
        assert shown[windows.SPREAD] > 0


_DIGEST = """
import hashlib
import numpy as np
from discreet.kernels import _windows as windows
from discreet.kernels._compiling import kernel
ever = windows.Filter(variance=1.0, draw=37.3, share=0.2, full=1119.0)
forgetting = windows.Filter(variance=1.0, draw=37.3, share=0.2, full=119.0, memory=700)

@kernel
def calls(known, step, public, figures, seen):
    windows.follow(known, step, public, figures, seen)

def digest(known, size, step):
    public, figures = np.zeros((3, 20)), np.zeros(size)
    # The filter is compiled by a caller that may fuse. What it makes is put away again.
    calls(known, windows.Step(0, 1, 2), public, figures, np.zeros(20))
    public[:], figures[:] = 0.0, 0.0
    seen, before, rows = np.random.default_rng(0).normal(size=(400, 20)), 0, 60
    for row in seen:
        after = rows + step(rows)
        windows.follow(known, windows.Step(before, rows, after), public, figures, rows * row)
        before, rows = rows, after
    print(hashlib.sha256(public.tobytes() + figures.tobytes()).hexdigest())

digest(ever, windows.FIGURES, lambda rows: min(rows // 10, int(rows**0.5)))
digest(forgetting, windows.FORGETTING, lambda rows: min(rows // 10, 26))
"""


_KNOWN = "16a2f92d7d948ced36c00c92a20e3cf1043621fca9924062279d0c0980a7e925"


def test_the_filter_is_the_same_to_the_last_bit_on_another_processor(tmp_path: Path) -> None:
    """One without fused multiply-add, say: a learner may be loaded there after a crash."""
    here = {"NUMBA_CACHE_DIR": str(tmp_path / "here")}
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path / "plain"),
    }
    found = {
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", _DIGEST],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **settings},
            capture_output=True,
            check=True,
            timeout=600,
        ).stdout
        for settings in (here, plain)
    }
    assert len(found) == 1  # with a memory and without one
    # As it was before windows could have a memory: stored learners depend on every bit of it.
    assert found.pop().split()[0] == _KNOWN.encode()


@pytest.mark.parametrize("ratio", [1.0, 1.0001, 1.5, 2.0, 2.0001, 777.7, 1e12])
def test_its_logarithm_is_one(ratio: float) -> None:
    assert windows._logarithm(ratio) == pytest.approx(math.log(ratio), rel=1e-14, abs=1e-16)
