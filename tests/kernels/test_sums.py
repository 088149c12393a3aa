"""Noisy prefix sums, streamed: equal to the matrices written out, whatever the schedule."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import LinUCB, Mechanism, Problem, Setting
from discreet.curator.sums import FloatSums
from discreet.kernels import _linalg as linalg
from discreet.kernels import _sums as sums
from discreet.kernels import _tree as tree
from discreet.mechanism.schedules import Schedule, batches, every_round, geometric, hybrid
from discreet.mechanism.strategies import (
    Buffered,
    Optimised,
    SquareRoot,
    Strategy,
    Tree,
    independent,
)
from discreet.mechanism.variants import named
from helpers import TARGET, restarted, seeded, unit_rows

F64 = NDArray[np.float64]

HORIZON, DIM = 90, 2
SIZE = linalg.packed_size(linalg.firsts_of((DIM,)))

SCHEDULES = {
    "every round": every_round(),
    "batches": batches(7),
    "geometric": geometric(start=4, ratio=0.3),
    "hybrid": hybrid(start=3, ratio=0.5, root=1.0),
    "late, then every round": Schedule(start=30, batch=1),
    "once": batches(60),
}
STRATEGIES = {
    "independent": lambda _: independent(),
    "buffered": lambda _: Buffered(),
    "buffered, few": lambda _: Buffered(exponent=0.5, spacing=3.0),
    "square root": lambda _: SquareRoot(),
    "optimised": lambda releases: Optimised(1 / np.arange(1, releases + 1), turns=10),
    "covering": lambda _: Tree(pan_private=False),
    "pan-private": lambda _: Tree(pan_private=True),
}
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
each_strategy = pytest.mark.parametrize("name", STRATEGIES)


class Stream:
    """The kernels, with every draw remembered in the order of the written-out decoder."""

    def __init__(self, schedule: Schedule, name: str, noise: np.random.Generator | None) -> None:
        self.schedule, self.timing = schedule, schedule.timing
        self.releases = schedule.count(HORIZON)
        self.strategy: Strategy = STRATEGIES[name](self.releases)
        self.sharing = self.strategy.sharing(self.releases)
        self.state = sums.empty(self.strategy.float_arrays(self.releases, SIZE), np.zeros(SIZE))
        self.noise = noise
        self.drawn: dict[tuple[int, int, int], F64] = {}
        sums.begin(self.sharing, self.state, self._draw(sums.first_draws(self.sharing)))

    def _draw(self, count: int) -> F64:
        noise = np.zeros((count, SIZE))
        if self.noise is not None:
            noise[:] = 100 * self.noise.standard_normal(noise.shape)
        number = int(self.state.number[0])
        if self.sharing.kind != sums.TREE:
            for draw in noise:
                self.drawn[0, number, 0] = draw.copy()
            return noise
        # A level that starts over at this release draws the node of its next block, and an idle
        # draw that is shown until that node is done.
        release = number if not self.drawn else number + 1
        each = 2 if self.sharing.idle else 1
        for at, draw in enumerate(noise):
            level, idle = divmod(at, each)
            self.drawn[level, release >> level, idle] = draw.copy()
        return noise

    def add(self, row: F64) -> bool:
        noise = self._draw(sums.next_draws(self.sharing, self.timing, self.state))
        return bool(sums.step(self.sharing, self.timing, self.state, row, noise, self.releases))

    @property
    def shown(self) -> F64:
        return self.state.totals[0].copy()

    def noise_of_releases(self) -> F64:
        """The decoder applied to the draws, shape (J, p)."""
        decoder = self.strategy.decoder(self.releases)
        if self.sharing.kind != sums.TREE:
            return decoder @ np.array([self.drawn[0, number, 0] for number in range(self.releases)])
        return decoder @ np.array([self.drawn[key] for key in self._keys()])

    def _keys(self) -> list[tuple[int, int, int]]:
        """The nodes and idle draws that some release shows, in the decoder's order."""
        keys = []
        for level in range(self.sharing.levels):
            for block in range(0, (self.releases >> level) + 1, 2):
                if (block + 1) << level <= self.releases:
                    keys.append((level, block, 0))
                if self.sharing.idle and max(1, block << level) < (block + 1) << level:
                    keys.append((level, block, 1))
        return keys


def some_rows(seed: int) -> F64:
    return np.random.default_rng(seed).standard_normal((HORIZON, SIZE))


@each_strategy
@each_schedule
def test_streaming_equals_the_dense_matrices(schedule: Schedule, name: str) -> None:
    rows = some_rows(1)
    stream = Stream(schedule, name, np.random.default_rng(2))
    shown = [stream.shown for row in rows if stream.add(row)]
    exact = rows.cumsum(axis=0)[np.array(schedule.times(HORIZON)) - 1]
    assert len(shown) == stream.releases == stream.state.number[0]
    np.testing.assert_allclose(shown, exact + stream.noise_of_releases(), rtol=0, atol=1e-9)


@each_strategy
@each_schedule
def test_there_is_a_release_at_the_scheduled_times_and_nothing_changes_in_between(
    schedule: Schedule, name: str
) -> None:
    stream = Stream(schedule, name, np.random.default_rng(3))
    times = schedule.times(HORIZON)
    for turn, row in enumerate(some_rows(4), start=1):
        before = [part.copy() for part in stream.state]
        due = turn in times
        drawn = sums.next_draws(stream.sharing, stream.timing, stream.state)
        if stream.sharing.kind == sums.TREE:  # a node has drawn its noise when it was opened
            number = sum(at <= turn for at in times)
            opened = tree.carry(number, stream.sharing.levels) * (1 + stream.sharing.idle)
            assert drawn == (opened if due else 0)
        else:
            assert drawn == due
        assert stream.add(row) == due
        now = sums.Sums(*stream.state)
        assert now.rows[0] == turn
        assert now.number[0] == sum(at <= turn for at in times)
        assert now.released[0] == max([0, *(at for at in times if at <= turn)])
        if due:
            assert not now.batch.any()
        else:
            for old, new in zip(before[:3], now[:3], strict=True):
                np.testing.assert_array_equal(old, new)
            np.testing.assert_allclose(now.batch, before[3] + row, rtol=1e-15)


@each_strategy
@each_schedule
def test_without_noise_every_row_counts_exactly_once(schedule: Schedule, name: str) -> None:
    rows = np.arange(1.0, HORIZON + 1)[:, None] * np.ones(SIZE)  # whole numbers: no rounding
    stream = Stream(schedule, name, None)
    so_far = 0.0
    for row in rows:
        so_far += row[0]
        if stream.add(row):
            assert (stream.shown == so_far).all()
        assert (stream.state.totals[0] + stream.state.batch == so_far).all()


@each_strategy
@each_schedule
def test_a_replaced_row_changes_releases_from_its_batch_on_by_itself(
    schedule: Schedule, name: str
) -> None:
    rows, change = some_rows(5), np.arange(1.0, SIZE + 1)
    times = schedule.times(HORIZON)
    for replaced in (0, times[0] - 1, HORIZON // 2, times[-1] - 1, HORIZON - 1):
        other_rows = rows.copy()
        other_rows[replaced] += change
        one, other = (Stream(schedule, name, np.random.default_rng(6)) for _ in range(2))
        for turn, (row, other_row) in enumerate(zip(rows, other_rows, strict=True)):
            released = one.add(row)
            assert other.add(other_row) == released
            if released:
                expected = change if turn >= replaced else np.zeros(SIZE)
                np.testing.assert_allclose(other.shown - one.shown, expected, atol=1e-10)
        assert set(one.drawn) == set(other.drawn)
        # Draws that are kept do not know of rows; nodes of a tree hold them.
        if one.sharing.kind != sums.TREE:
            np.testing.assert_array_equal(one.state.nodes, other.state.nodes)


def test_sums_without_noise_draw_nothing() -> None:
    sharing, timing = sums.no_noise(), every_round().timing
    nothing = np.empty((0, SIZE))
    arrays = sums.Arrays(nodes=nothing, idle=nothing, totals=np.zeros((1, SIZE)))
    state = sums.empty(arrays, np.zeros(SIZE))
    assert sums.first_draws(sharing) == 0
    sums.begin(sharing, state, nothing)
    for row in some_rows(7):
        assert sums.next_draws(sharing, timing, state) == 0
        assert sums.step(sharing, timing, state, row, nothing, HORIZON)
    np.testing.assert_allclose(state.totals[0], some_rows(7).sum(axis=0), rtol=1e-12)


# Through the curator


def mechanism(schedule: Schedule, name: str) -> Mechanism:
    problem = Problem(dim=DIM, action_norm=1, reward_bound=1, theta_norm=1)
    strategy = STRATEGIES[name](schedule.count(HORIZON))
    variant = named("tight").with_schedule(schedule).with_strategy(strategy)
    return variant.mechanism(Setting(problem=problem, horizon=HORIZON), TARGET)


@each_strategy
@each_schedule
def test_sums_that_are_resumed_continue_to_the_bit(schedule: Schedule, name: str) -> None:
    chosen, rng = mechanism(schedule, name), np.random.default_rng(8)
    rows = zip(unit_rows(rng, HORIZON, DIM), rng.uniform(-1, 1, HORIZON), strict=True)
    source, other_source = seeded(1), seeded(1)
    straight = FloatSums.begin(chosen, source)
    resumed = FloatSums.begin(chosen, other_source)
    for turn, row in enumerate(rows):
        if turn % 5 == 0:
            resumed = FloatSums.resume(
                chosen,
                other_source,
                rows=resumed.position.rows,
                released=resumed.position.released,
                number=resumed.position.number,
                arrays={part: array.copy() for part, array in resumed.arrays().items()},
            )
        for held in (straight, resumed):
            held.add(turn + 1, *row, held.draw(held.position))
        assert resumed.position == straight.position
        for part, array in straight.arrays().items():
            np.testing.assert_array_equal(array, resumed.arrays()[part])


@pytest.mark.parametrize("noise", ["exact", "float"])
@each_strategy
@pytest.mark.parametrize("schedule", [SCHEDULES["hybrid"], SCHEDULES["batches"]])
def test_a_learner_that_is_saved_continues_to_the_bit(
    schedule: Schedule, name: str, noise: str, tmp_path: Path
) -> None:
    problem = mechanism(schedule, name).setting.problem
    strategy = STRATEGIES[name](schedule.count(HORIZON))
    variant = named("tight").with_schedule(schedule).with_strategy(strategy)
    source, other_source = seeded(2), seeded(2)
    straight, stopped = (
        LinUCB(
            problem,
            horizon=HORIZON,
            privacy=TARGET,
            variant=variant,
            noise=noise,
            noise_source=where,
        )
        for where in (source, other_source)
    )
    rng = np.random.default_rng(9)
    for turn in range(HORIZON):
        if turn % 20 == 6:
            stopped = restarted(stopped, tmp_path / "file", noise_source=other_source)
        actions, reward = unit_rows(rng, 4, DIM), float(rng.uniform(-1, 1))
        made, other = straight.choose(actions), stopped.choose(actions)
        assert made.index == other.index
        straight.learn(made, reward)
        stopped.learn(other, reward)
        np.testing.assert_array_equal(straight.release.gram, stopped.release.gram)
        np.testing.assert_array_equal(straight.release.moment, stopped.release.moment)
    assert straight.release.number == schedule.count(HORIZON)


def test_counters_that_do_not_fit_the_schedule_are_refused() -> None:
    chosen = mechanism(SCHEDULES["batches"], "buffered")
    noise = FloatSums.begin(chosen, seeded(0))
    fitting = {"rows": 16, "released": 14, "number": 2}
    wrong = [{"rows": 13}, {"rows": 21}, {"released": 13}, {"released": 7}, {"number": 1}]
    for change in ({}, *wrong):

        def resume(counters: dict[str, int]) -> FloatSums:
            return FloatSums.resume(chosen, seeded(0), arrays=noise.arrays(), **counters)

        if not change:
            assert resume(fitting).rows == 16
            continue
        with pytest.raises(ValueError, match=r"the (counters|last release)"):
            resume({**fitting, **change})


def test_an_interrupt_right_after_a_release_does_not_lose_the_next_one(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = Setting(problem=problem, horizon=12)
    mechanism = named("tight").with_schedule(batches(3)).mechanism(setting, TARGET)
    held = FloatSums.begin(mechanism, seeded(0))
    row = np.zeros(problem.dim), 0.0
    step = sums.step

    def step_and_stop(*everything: object) -> bool:
        step(*everything)
        raise KeyboardInterrupt

    for number in (1, 2):
        held.add(number, *row, held.draw(held.position))
    monkeypatch.setattr(sums, "step", step_and_stop)
    with pytest.raises(KeyboardInterrupt):
        held.add(3, *row, held.draw(held.position))
    monkeypatch.undo()
    assert held.position == (3, 3, 1, 6)
    releases = []
    for number in range(4, 13):
        held.add(number, *row, held.draw(held.position))
        releases.append(held.position.number)
    assert releases == [1, 1, 2, 2, 2, 3, 3, 3, 4]
    assert held.position == (12, 12, 4, 15)
