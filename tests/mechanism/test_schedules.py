"""When there is a release: a function of the number of rows alone."""

import itertools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.kernels import _schedule as kernel
from discreet.mechanism import _codec
from discreet.mechanism.schedules import Schedule, batches, every_round, geometric, hybrid
from discreet.problem import OPEN_HORIZON

EXAMPLES = settings(max_examples=150, deadline=None, derandomize=True)

HORIZONS = st.integers(0, 3000)


@st.composite
def any_schedule(draw: st.DrawFn) -> Schedule:
    """Every kind, with any of the three steps given or left out, but not all left out."""
    steps = {
        "ratio": st.floats(1e-3, 3.0),
        "root": st.floats(1e-2, 10.0),
        "batch": st.floats(0.3, 100.0) | st.integers(1, 100),
    }
    given_ones = draw(st.sets(st.sampled_from(sorted(steps)), min_size=1))
    return Schedule(
        start=draw(st.integers(1, 60)), **{name: draw(steps[name]) for name in sorted(given_ones)}
    )


def by_the_definition(schedule: Schedule, horizon: int) -> list[int]:
    """The docstring, word for word."""
    times, rows = [], schedule.start
    while rows <= horizon:
        times.append(rows)
        step = min(schedule.ratio * rows, schedule.root * math.sqrt(rows), schedule.batch)
        rows += max(1, math.floor(step))
    return times


@EXAMPLES
@given(schedule=any_schedule(), horizon=HORIZONS)
def test_the_times_are_those_of_the_definition(schedule: Schedule, horizon: int) -> None:
    assert schedule.times(horizon) == by_the_definition(schedule, horizon)


@EXAMPLES
@given(schedule=any_schedule(), horizon=HORIZONS)
def test_the_count_is_the_number_of_times(schedule: Schedule, horizon: int) -> None:
    assert schedule.count(horizon) == len(schedule.times(horizon))


@EXAMPLES
@given(schedule=any_schedule(), horizon=HORIZONS)
def test_after_leads_from_each_time_to_the_next(schedule: Schedule, horizon: int) -> None:
    times = [0, *schedule.times(horizon)]
    for before, now in itertools.pairwise(times):
        assert schedule.after(before) == now > before
    assert schedule.after(times[-1]) > horizon


@EXAMPLES
@given(schedule=any_schedule(), horizon=HORIZONS, more=HORIZONS)
def test_a_longer_horizon_continues_the_times_of_a_shorter(
    schedule: Schedule, horizon: int, more: int
) -> None:
    times = schedule.times(horizon + more)
    assert [rows for rows in times if rows <= horizon] == schedule.times(horizon)
    assert all(isinstance(rows, int) for rows in times)


@EXAMPLES
@given(schedule=any_schedule())
def test_a_schedule_survives_a_save_file(schedule: Schedule) -> None:
    entry = _codec.schedule_to_json(schedule)
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry
    assert Schedule(**json.loads(json.dumps(entry))) == schedule


def test_every_round_is_every_round() -> None:
    assert every_round().times(7) == [1, 2, 3, 4, 5, 6, 7]
    assert every_round().every_round
    assert every_round().count(10**18) == 10**18
    assert _codec.schedule_to_json(every_round()) == {"start": 1, "batch": 1}


@pytest.mark.parametrize("size", [1, 2, 7, 30.0])
def test_batches_are_all_of_one_size(size: int) -> None:
    times = batches(size).times(100)
    assert times == list(range(int(size), 101, int(size)))
    assert batches(size).count(100) == len(times)
    assert batches(size).every_round is (size == 1)


def test_a_late_start_is_not_every_round_even_with_steps_of_one() -> None:
    late = Schedule(start=4, batch=1)
    assert not late.every_round
    assert late.times(7) == [4, 5, 6, 7]


def test_geometric_times_grow_by_their_share_rounded_down() -> None:
    assert geometric().times(30) == [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]
    assert geometric(start=10, ratio=0.5).times(100) == [10, 15, 22, 33, 49, 73]
    # ln(5e7 / 20) / ln 1.05 = 301.9 without rounding; steps at the start are rounded down by more.
    assert 300 < geometric().count(50_000_000) < 330


def test_hybrid_is_geometric_first_and_then_goes_by_the_root() -> None:
    times = hybrid(start=20, ratio=0.2, root=2.0).times(1_000_000)
    assert times[:4] == [20, 24, 28, 33]
    for before, now in itertools.pairwise(times):
        if before < 100:  # where 0.2 t = 2 sqrt(t)
            assert now - before == math.floor(0.2 * before)
        else:
            assert now - before == math.floor(2 * math.sqrt(before))
    # sqrt(t) grows by one a step, so that there are about sqrt(n) releases.
    assert 0.95 * 1000 < len(times) < 1.1 * 1000


def test_a_hybrid_schedule_can_be_counted_to_the_horizon_that_stands_for_none() -> None:
    schedule = hybrid()
    # A step of c sqrt(t) lets sqrt(t) grow by c/2.
    expected = 2 * math.sqrt(OPEN_HORIZON) / schedule.root
    assert schedule.count(OPEN_HORIZON) == pytest.approx(expected, rel=0.01)


def test_nothing_is_released_before_the_start() -> None:
    for schedule in (batches(5), geometric(start=5), hybrid(start=5)):
        assert [schedule.count(rows) for rows in (0, 4, 5)] == [0, 0, 1]
        assert schedule.times(4) == []
        assert [schedule.after(rows) for rows in (0, 1, 4)] == [5, 5, 5]


def test_times_far_out_do_not_overflow() -> None:
    for schedule in (geometric(ratio=1e30), hybrid(), batches(2**61)):
        assert kernel.NEVER >= schedule.after(2**61) > 2**61
    assert geometric(ratio=1e30).times(10**15) == [20]


@pytest.mark.parametrize(
    ("schedule", "horizon"),
    [
        (hybrid(), 10**17),
        (geometric(ratio=1e-9), 10**15),
        (Schedule(ratio=1e-9, batch=1e9), 10**15),
    ],
)
def test_more_releases_than_can_be_counted_are_refused_at_once(
    schedule: Schedule, horizon: int
) -> None:
    with pytest.raises(
        ParameterError, match="the schedule makes more than 100,000,000 releases"
    ) as refused:
        schedule.count(horizon)
    assert refused.value.parameter == "horizon"


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(start=7, ratio=0.1, batch=4),
        Schedule(start=7, ratio=0.1, root=1.0, batch=12.5),
        Schedule(start=90, ratio=0.2, root=0.5, batch=3),
        Schedule(start=3, root=2.0, batch=1),
        hybrid(),
    ],
)
def test_steps_that_grow_no_more_are_counted_as_if_one_by_one(schedule: Schedule) -> None:
    times = schedule.times(3_000)
    for horizon in (1, 6, 7, 89, 90, 500, 2_999, 3_000):
        assert schedule.count(horizon) == sum(time <= horizon for time in times)
    for number in (1, 2, 10, len(times)):
        assert kernel.time_of(schedule.timing, number) == times[number - 1]
    steady = [kernel.steady(schedule.timing, time) for time in times]
    assert steady == sorted(steady)
    alike = {
        b - a for a, b in itertools.pairwise(t for t, s in zip(times, steady, strict=True) if s)
    }
    assert len(alike) <= 1


def test_very_many_alike_are_counted_at_once() -> None:
    schedule = Schedule(start=100, ratio=0.1, root=1.0, batch=100)
    assert schedule.count(10**15) == pytest.approx(10**13, rel=1e-9)
    with pytest.raises(ParameterError, match="the schedule makes more"):
        schedule.require_few(10**15)


def test_more_releases_than_noise_is_worked_out_for_are_refused() -> None:
    assert every_round().count(10**12) == 10**12
    with pytest.raises(ParameterError, match="the schedule makes more"):
        every_round().require_few(10**12)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"start": 0}, "start"),
        ({"start": 2.5}, "start"),
        ({"start": True}, "start"),
        ({"start": "20"}, "start"),
        ({"ratio": 0.0}, "ratio"),
        ({"ratio": -0.1}, "ratio"),
        ({"ratio": math.nan}, "ratio"),
        ({"root": 0.0}, "root"),
        ({"root": "2"}, "root"),
        ({"batch": 0}, "batch"),
        ({"batch": -math.inf}, "batch"),
        ({"batch": math.inf}, "ratio"),  # none of the three is given
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused_by_name(
    change: dict[str, object], parameter: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        Schedule(**{"batch": 5, **change})
    assert refused.value.parameter == parameter


@pytest.mark.parametrize("size", [0, -3, 2.5, math.inf])
def test_batches_of_no_size_are_refused(size: float) -> None:
    with pytest.raises(ParameterError, match="size: "):
        batches(size)


@pytest.mark.parametrize("horizon", [2**62, 10**150])
@pytest.mark.parametrize("schedule", [hybrid(), geometric(), Schedule(start=7, root=1e9)])
def test_a_horizon_that_cannot_be_counted_is_refused_with_the_largest_that_can(
    schedule: Schedule, horizon: int
) -> None:
    with pytest.raises(ParameterError, match=r"horizon: is .* give at most ") as refused:
        schedule.count(horizon)
    largest = int(str(refused.value).rsplit("give at most ", 1)[1].replace(",", ""))
    assert 10**8 < largest < 2**62
    assert schedule.require_few(largest) <= 10**8
    with pytest.raises(ParameterError, match=f"give at most {largest:,}"):
        schedule.require_few(largest + 1)


def test_batches_within_any_horizon_have_a_largest_size() -> None:
    for horizon in (2**62, 10**20, 10**150):
        assert batches(10**15).largest_batch(horizon) == 10**15
        assert batches(2**62).largest_batch(horizon) == 2**62
