"""`windows`: calibrated to the last digit, in whole numbers and out of them.

How the kernels follow the formulas is in kernels/test_windows.py; its noise and its privacy as an
observer finds them in test_tight.py, beside those of `tight`.
"""

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet import LinUCB, Privacy, Problem, Setting, accounting
from discreet.curator.sums import FloatSums, IntegerSums
from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.kernels import _windows as kernel
from discreet.kernels._sums import Arrays
from discreet.kernels._windows import Step
from discreet.mechanism import JointWidth, _codec
from discreet.mechanism import _feedback as feedback
from discreet.mechanism.noise._discrete_gaussian import DiscreteGaussianNoise
from discreet.mechanism.planning import plan
from discreet.mechanism.schedules import Schedule, batches, every_round, hybrid
from discreet.mechanism.strategies import Windows
from discreet.mechanism.variants import Windowed, named
from discreet.problem import OPEN_HORIZON
from discreet.release._card import privacy_card
from discreet.release.ledger import Ledger
from helpers import EARLY, TARGET, restarted, seeded, unit_rows

F64 = NDArray[np.float64]

UNIT = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
OTHER = Problem(dim=2, action_norm=2.0, reward_bound=0.5, theta_norm=3.0)
PAPER = Privacy(epsilon=1.0, delta=0.1)
TARGETS = [
    PAPER,
    Privacy(epsilon=0.1, delta=1e-6),
    Privacy(epsilon=1.0, delta=1e-6, neighbours="add-remove"),
    Privacy(epsilon=5.0, delta=1e-9, contributions_per_user=3),
    Privacy(epsilon=2.0, delta=1e-6, neighbours="add-remove", contributions_per_user=7),
]
WINDOWS = named("windows")


def setting(problem: Problem = UNIT, horizon: int = 20_000) -> Setting:
    return Setting(problem=problem, horizon=horizon)


# What it costs


@pytest.mark.parametrize("problem", [UNIT, OTHER], ids=["unit", "other bounds"])
@pytest.mark.parametrize("privacy", TARGETS, ids=str)
@pytest.mark.parametrize("noise", ["float", "exact"])
def test_the_noise_costs_what_the_target_allows_and_never_more(
    problem: Problem, privacy: Privacy, noise: str
) -> None:
    mechanism = WINDOWS.mechanism(setting(problem), privacy, noise=noise)
    allowed = accounting.gaussian_mu(privacy)
    one = accounting.row_cost(
        action_norm=problem.action_norm,
        reward_bound=problem.reward_bound,
        gram_std=mechanism.noise.std,
        moment_std=mechanism.noise.moment_std,
        neighbours=privacy.neighbours,
    )
    # The encoder written out, over so many releases that what is missing is a trace.
    columns = np.linalg.norm(mechanism.strategy.encoder(300), axis=0)
    ends = [mechanism.schedule.start]
    for _ in range(300):
        ends.append(mechanism.schedule.after(ends[-1]))
    assert columns[0] == pytest.approx(math.sqrt(1 - (ends[0] / ends[-1]) ** 2), rel=1e-9)
    assert one * privacy.contributions_per_user <= mechanism.cost <= allowed
    assert one * privacy.contributions_per_user == pytest.approx(allowed, rel=1e-3)
    assert mechanism.cost == pytest.approx(allowed, rel=1e-6)
    assert accounting.gaussian_delta(epsilon=privacy.epsilon, mu=mechanism.cost) <= privacy.delta


def test_one_draw_has_the_scale_of_a_single_release_whatever_the_horizon() -> None:
    one = named("tight").with_schedule(batches(1000)).mechanism(setting(horizon=1000), PAPER)
    scales = accounting.row_scales(UNIT, mu_one=accounting.gaussian_mu(PAPER), ratio=WINDOWS.ratio)
    for horizon in (100, 10_000, 10**9):
        found = WINDOWS.mechanism(setting(horizon=horizon), PAPER).noise
        assert found.std == pytest.approx(scales.gram_std, rel=1e-9)
        assert found.moment_std == pytest.approx(scales.moment_std, rel=1e-9)
    # A single release of `tight` has another ratio, and about as much noise.
    assert found.std == pytest.approx(one.noise.std, rel=0.3)


def test_an_open_end_costs_no_more_than_rounding() -> None:
    known = WINDOWS.mechanism(setting(), PAPER, noise="exact").noise
    unknown = LinUCB(UNIT, horizon=None, privacy=PAPER).mechanism
    assert unknown.setting.horizon == OPEN_HORIZON
    assert unknown.noise.std == pytest.approx(known.std, rel=1e-3)
    assert unknown.cost <= accounting.gaussian_mu(PAPER)
    assert unknown.schedule == WINDOWS.mechanism(setting(), PAPER).schedule


def test_half_the_noise_would_cost_twice_as_much() -> None:
    mechanism = WINDOWS.mechanism(setting(), PAPER)
    law = mechanism.noise
    quiet = replace(mechanism, noise=replace(law, std=law.std / 2, moment_std=law.moment_std / 2))
    assert quiet.cost == pytest.approx(2 * mechanism.cost, rel=1e-9)
    assert quiet.cost > accounting.gaussian_mu(PAPER)


def test_the_ratio_of_the_two_kinds_of_noise_can_be_chosen() -> None:
    for ratio in (0.5, 1.0, 3.0):
        found = Windowed(ratio=ratio).mechanism(setting(OTHER), PAPER)
        slope = OTHER.reward_bound / OTHER.action_norm
        assert found.noise.moment_std / found.noise.std == pytest.approx(ratio * slope, rel=1e-9)
        assert found.cost <= accounting.gaussian_mu(PAPER)


# When it releases


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_the_first_release_waits_for_as_many_rows_as_the_noise_asks_for(epsilon: float) -> None:
    for problem in (UNIT, OTHER, replace(UNIT, dim=30, blocks=(10, 20))):
        mechanism = WINDOWS.mechanism(setting(problem), Privacy(epsilon=epsilon, delta=1e-6))
        law, dim = mechanism.noise, problem.dim
        square = problem.theta_norm**2 * (1 + 1 / dim) * law.std**2 + law.moment_std**2
        unit = math.sqrt(square) / (problem.action_norm * problem.reward_bound)
        first = mechanism.schedule.start
        assert first == max(dim, int(WINDOWS.start * math.sqrt(dim) * unit))
        assert mechanism.schedule == hybrid(start=first, ratio=WINDOWS.growth, root=WINDOWS.root)
        assert mechanism.strategy.schedule == mechanism.schedule
        assert mechanism.strategy.draw == pytest.approx(square, rel=1e-9)
        assert mechanism.strategy.variance == problem.reward_subgaussian**2


def test_what_it_does_not_have_cannot_be_set() -> None:
    for change in (
        lambda: WINDOWS.with_tree("covering"),
        lambda: WINDOWS.with_shift(1.0),
        lambda: WINDOWS.with_rho_min(1.0),
        lambda: WINDOWS.with_calibration("paper"),
        lambda: Windowed(start=0.0),
        lambda: Windowed(growth=math.nan),
        lambda: Windowed(root=-1.0),
        lambda: Windowed(ratio=1e9),
    ):
        with pytest.raises(ParameterError):
            change()
    assert WINDOWS.with_calibration("gdp") is WINDOWS


def test_windows_for_another_schedule_are_refused() -> None:
    mechanism = WINDOWS.mechanism(setting(), PAPER)
    with pytest.raises(ParameterError, match="strategy: has windows for another schedule"):
        replace(mechanism, schedule=every_round())
    with pytest.raises(ParameterError, match="policy: "):
        replace(mechanism, policy="luck")


@pytest.mark.parametrize("noise", ["float", "exact"])
def test_a_mechanism_survives_a_save_file(noise: str) -> None:
    problem = replace(UNIT, blocks=(1, 2))
    mechanism = WINDOWS.mechanism(setting(problem), PAPER, noise=noise)
    entry = json.loads(json.dumps(_codec.to_json(mechanism), allow_nan=False))
    assert _codec.from_json(entry) == mechanism
    assert entry["policy"] == "posterior"
    for missing in ("draw", "schedule"):
        broken = json.loads(json.dumps(entry))
        del broken["strategy"][missing]
        with pytest.raises((KeyError, TypeError, ValueError)):
            _codec.from_json(broken)


def test_a_plan_and_a_card_say_what_the_mechanism_has() -> None:
    found = plan(WINDOWS, UNIT, horizon=20_000, privacy=PAPER)
    mechanism = WINDOWS.mechanism(setting(), PAPER)
    assert found["releases"] == mechanism.releases == mechanism.schedule.count(20_000)
    card = privacy_card(mechanism)
    assert card["strategy"]["kind"] == "windows"
    assert card["mu"] == mechanism.cost <= accounting.gaussian_mu(PAPER)
    assert (card["epsilon"], card["delta"]) == (1.0, 0.1)
    assert "drawn afresh for each of a series of sums" in card["argument"]
    assert Ledger(card).card == card
    exact = privacy_card(WINDOWS.mechanism(setting(), PAPER, noise="exact"))
    assert exact["noise"]["exact"]
    assert exact["mu"] <= accounting.gaussian_mu(PAPER)


def test_the_confidence_set_is_the_joint_one_with_the_filters_noise() -> None:
    mechanism = WINDOWS.mechanism(setting(), PAPER)
    assert mechanism.confidence == JointWidth()
    count = mechanism.releases
    lengths = np.linalg.norm(mechanism.strategy.decoder(count), axis=1)
    np.testing.assert_allclose(mechanism.noise_table.norms, lengths, rtol=1e-7)


def test_the_table_of_many_releases_is_never_below_the_noise_that_stands() -> None:
    # There is so much noise that it still shrinks where the table has gaps.
    mechanism = Windowed(start=0.1, growth=1e-3, root=0.3).mechanism(
        setting(horizon=10**7), Privacy(epsilon=0.05, delta=1e-6)
    )
    every = np.arange(1, mechanism.releases + 1)
    table = mechanism.noise_table
    assert len(table.numbers) < len(every)
    exact = mechanism.strategy.figures(every)[:, kernel.SPREAD]
    assert (np.diff(exact)[4096:] < 0).any()
    stated = table.norms[np.searchsorted(table.numbers, every)]
    assert (stated >= exact).all()
    assert (stated <= exact * 1.01).all()


# In whole numbers


def strategy(schedule: Schedule) -> Windows:
    return Windows.fitted(schedule, UNIT, gram_std=20.0, moment_std=30.0)


def whole(values: list[int]) -> NDArray[np.object_]:
    return np.array(values, dtype=object)


def released(
    schedule: Schedule, rows: list[list[int]], draws: list[list[int]]
) -> tuple[list[Arrays], list[list[int]]]:
    """What is held after each release, and the noisy windows that the filter saw."""
    shared = strategy(schedule).feedback(len(rows))
    held = strategy(schedule).integer_arrays(len(rows), len(rows[0]), 0)
    before, states, seen = 0, [], []
    for batch, draw in zip(rows, draws, strict=True):
        now = schedule.after(before)
        step = Step(before, now, schedule.after(now))
        kept = held.nodes.copy(), held.idle.copy(), held.totals.copy()
        after = shared.release(held, whole(batch), whole(draw), step)
        for then, part in zip(kept, held, strict=True):  # nothing that was there has changed
            np.testing.assert_array_equal(then, part)
        held = after
        states.append(held)
        seen.append(
            [int(x) + z for x, z in zip(held.nodes[0] >> feedback._GUARD, draw, strict=True)]
        )
        before = now
    return states, seen


SCHEDULES = {
    "every round": every_round(),
    "batches": batches(7),
    "hybrid": hybrid(start=30, ratio=0.1),
    "doubling": Schedule(start=1, ratio=1.0),
}
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
RELEASES = 40
entries = st.integers(-(2**45), 2**45)


@each_schedule
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_release_shows_the_exact_window_rounded_down_plus_its_draw(
    schedule: Schedule, data: st.DataObject
) -> None:
    rows = data.draw(
        st.lists(st.lists(entries, min_size=2, max_size=2), min_size=RELEASES, max_size=RELEASES)
    )
    draws = [[100 * b, -7 * b] for b in range(RELEASES)]
    states, seen = released(schedule, rows, draws)
    windows, before = [Fraction(0)] * 2, 0
    for b, batch in enumerate(rows):
        now = schedule.after(before)
        windows = [w * Fraction(before, now) + x for w, x in zip(windows, batch, strict=True)]
        for window, shown, draw in zip(windows, seen[b], draws[b], strict=True):
            # What decays is rounded down far behind the point: only a window that is whole, or as
            # good as, can be rounded to the number below.
            below = math.floor(window - Fraction(b, 2**40))
            assert shown - draw in {math.floor(window), below}
        before = now
    # The filter sees exactly that.
    public, figures = np.zeros((kernel.ESTIMATES, 2)), np.zeros(kernel.FIGURES)
    before = 0
    for shown, held in zip(seen, states, strict=True):
        now = schedule.after(before)
        step = Step(before, now, schedule.after(now))
        kernel.follow(strategy(schedule).filter, step, public, figures, np.array(shown, float))
        np.testing.assert_array_equal(held.totals, public)
        np.testing.assert_array_equal(held.idle[0], figures)
        before = now


@each_schedule
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_neighbours_differ_at_each_release_by_the_faded_row_and_one_rounding(
    schedule: Schedule, data: st.DataObject
) -> None:
    """What the accounting assumes of every release."""
    rows = data.draw(st.lists(entries, min_size=RELEASES, max_size=RELEASES))
    place = data.draw(st.integers(0, RELEASES - 1))
    change = data.draw(st.integers(-(2**41), 2**41))
    other = list(rows)
    other[place] += change
    nothing = [[0]] * RELEASES
    streams = [released(schedule, [[x] for x in one], nothing)[1] for one in (rows, other)]
    ends = [schedule.after(0)]
    while len(ends) < RELEASES:
        ends.append(schedule.after(ends[-1]))
    rounding = strategy(schedule).feedback(RELEASES).rounding
    assert 1.0 < rounding < 1.0 + 1e-9
    for b in range(RELEASES):
        ideal = change * Fraction(ends[place], ends[b]) if b >= place else Fraction(0)
        moved = streams[1][b][0] - streams[0][b][0]
        assert abs(moved - ideal) <= rounding
        if b < place:
            assert moved == 0


@each_schedule
def test_draws_are_enlarged_by_at_least_one_over_gamma(schedule: Schedule) -> None:
    shared, before = strategy(schedule).feedback(500), 0
    law = DiscreteGaussianNoise(
        gram_steps=12_345,
        moment_steps=23_456,
        grid=WINDOWS.mechanism(setting(), PAPER, noise="exact").grid,
    )
    base = law.parameters_packed(linalg.firsts_of((3,)))
    for number in range(1, 61 if schedule.ratio == 1.0 else 501):
        now = schedule.after(before)
        step = Step(before, now, schedule.after(now))
        square = 1 / (1 - Fraction(now, step.after) ** 2)
        spread = shared.spread(number, step)
        assert Fraction(spread) ** 2 >= square
        assert spread == pytest.approx(math.sqrt(square), rel=1e-12)
        assert shared.narrowest <= spread <= shared.widest
        if number % 50 == 1:
            for large, small in zip(
                law.parameters_packed(linalg.firsts_of((3,)), spread), base, strict=True
            ):
                assert Fraction(int(large)) ** 2 >= int(small) ** 2 * square
                assert large <= math.ceil(small * spread * (1 + 1e-12))
        before = now


def test_rounding_is_paid_for_at_each_release() -> None:
    mechanism = WINDOWS.mechanism(setting(), PAPER, noise="exact")
    law, count = mechanism.noise, mechanism.releases
    one = accounting.row_cost(
        action_norm=1.0,
        reward_bound=1.0,
        gram_std=law.std,
        moment_std=law.moment_std,
        neighbours="replacement",
    )
    lost = math.sqrt(count * 9) / law.least_steps
    assert mechanism.cost == pytest.approx(one + lost, rel=1e-9)
    assert mechanism.cost >= one + lost


def sums_of(noise: str, seed: int, horizon: int = 200) -> FloatSums | IntegerSums:
    mechanism = EARLY.mechanism(setting(horizon=horizon), TARGET, noise=noise)
    kind = IntegerSums if noise == "exact" else FloatSums
    return kind.begin(mechanism, seeded(seed))


@pytest.mark.parametrize("noise", ["exact", "float"])
def test_sums_that_are_resumed_continue_to_the_bit(noise: str) -> None:
    rng = np.random.default_rng(8)
    straight, resumed = sums_of(noise, 1), sums_of(noise, 1)
    rows = zip(unit_rows(rng, 200, 3), rng.uniform(-1, 1, 200), strict=True)
    for turn, row in enumerate(rows):
        if turn % 5 == 0:
            resumed = type(resumed).resume(
                resumed._mechanism,
                resumed._source,
                rows=resumed.position.rows,
                released=resumed.position.released,
                number=resumed.position.number,
                arrays={part: array.copy() for part, array in resumed.arrays().items()},
            )
        for held in (straight, resumed):
            held.add(turn + 1, *row, held.draw(held.position))
        assert resumed.position == straight.position
        assert resumed.amounts() == straight.amounts()
        for part, array in straight.arrays().items():
            np.testing.assert_array_equal(array, resumed.arrays()[part])
    assert straight.number > 30


def test_noise_for_another_step_is_refused() -> None:
    held = sums_of("exact", 2)
    row = (np.zeros(3), 0.0)
    for number in (1, 2):
        held.add(number, *row, held.draw(held.position))
    position = held.position
    right = held.draw(position)
    assert right.shape == (1, linalg.packed_size(linalg.firsts_of((3,))))
    for wrong in (held.no_draws, np.vstack([right, right]), right.astype(float)):
        with pytest.raises(ParameterError, match="noise: was drawn for another step"):
            held.add(3, *row, wrong)
    with pytest.raises(ParameterError, match="noise: was drawn for another step"):
        held.add(5, *row, right)
    assert held.position == position
    held.add(3, *row, right)
    assert held.position.number == 1
    held.add(3, *row, right)  # it is in already
    assert held.position.number == 1


@pytest.mark.parametrize("noise", ["exact", "float"])
def test_a_release_says_how_much_noise_it_has_and_what_its_rows_weigh(
    noise: str, tmp_path: Path
) -> None:
    learner = LinUCB(UNIT, horizon=200, privacy=TARGET, variant=EARLY, noise=noise)
    assert (learner.release.spread, learner.release.weight) == (0.0, 0.0)
    for _ in range(60):
        learner.learn(learner.choose(np.eye(3)), 0.5)
    release, chosen = learner.release, learner.mechanism.strategy
    figures = chosen.figures(np.array([release.number]))[0]
    assert release.spread == pytest.approx(figures[kernel.SPREAD], rel=1e-12)
    assert release.weight == pytest.approx(figures[kernel.WEIGHT], rel=1e-12)
    assert 0 < release.weight <= release.rows
    assert np.isfinite(release.gram).all()
    restored = restarted(learner, tmp_path / "file").release
    assert (restored.spread, restored.weight) == (release.spread, release.weight)
    np.testing.assert_array_equal(restored.gram, release.gram)
    np.testing.assert_array_equal(restored.posterior.centre, release.posterior.centre)


@pytest.mark.parametrize("noise", ["exact", "float"])
def test_a_release_is_the_weighted_sum_of_rows_and_noise_that_is_not_worth_the_name(
    noise: str,
) -> None:
    mechanism = EARLY.mechanism(setting(horizon=120), Privacy(epsilon=1e7, delta=0.1), noise=noise)
    learner = LinUCB.from_mechanism(mechanism, noise_source=seeded(1))
    count = mechanism.releases
    weights = mechanism.strategy.decoder(count) @ mechanism.strategy.encoder(count)
    rng = np.random.default_rng(2)
    grams, moments = np.zeros((count + 1, 3, 3)), np.zeros((count + 1, 3))
    for _ in range(120):
        actions, reward, number = (
            unit_rows(rng, 1, 3),
            float(rng.uniform(-1, 1)),
            len(learner.ledger),
        )
        learner.learn(learner.choose(actions), reward)
        grams[number] += np.outer(actions[0], actions[0])
        moments[number] += reward * actions[0]
        if len(learner.ledger) > number:
            share = weights[number, : number + 1]
            gram = np.tensordot(share, grams[: number + 1], 1)
            np.testing.assert_allclose(learner.release.gram, gram, atol=0.05)
            np.testing.assert_allclose(
                learner.release.moment, share @ moments[: number + 1], atol=0.05
            )
            assert learner.release.weight == pytest.approx(np.trace(gram), rel=1e-6)
    assert len(learner.ledger) == count > 25
