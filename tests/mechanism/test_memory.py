"""`windows` with a memory: calibrated as without one, in whole numbers and out of them."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import UCB, LinUCB, Privacy, Problem, Setting, accounting
from discreet.budget._items import stated
from discreet.curator.sums import FloatSums, IntegerSums
from discreet.errors import ParameterError
from discreet.kernels import _windows as kernel
from discreet.kernels._windows import Step
from discreet.mechanism import _codec
from discreet.mechanism import _feedback as feedback
from discreet.mechanism.planning import plan
from discreet.mechanism.schedules import Schedule, batches
from discreet.mechanism.strategies import Windows
from discreet.mechanism.variants import VARIANTS, calibrate, named
from discreet.release._card import privacy_card
from discreet.report._card_page import Card
from helpers import EARLY, TARGET, assert_same, crashed, restarted, seeded, unit_rows

UNIT = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
WINDOWS = named("windows")
FORGETTING = EARLY.with_memory(20)  # full after a few releases


def setting(horizon: int = 20_000) -> Setting:
    return Setting(problem=UNIT, horizon=horizon)


# What it costs


@pytest.mark.parametrize("memory", [5_000, 10**6])
@pytest.mark.parametrize(
    "privacy",
    [TARGET, Privacy(epsilon=0.5, delta=1e-9, neighbours="add-remove", contributions_per_user=3)],
    ids=str,
)
def test_noise_is_that_of_windows_and_the_promise_needs_no_horizon(
    memory: int, privacy: Privacy
) -> None:
    found = calibrate("windows", UNIT, horizon=None, privacy=privacy, memory=memory)
    plain = calibrate("windows", UNIT, horizon=None, privacy=privacy)
    assert found.noise == plain.noise
    assert found.cost == plain.cost <= accounting.gaussian_mu(privacy)
    assert found.memory == memory
    assert plain.memory is None
    assert found.releases > 10**7  # far more than without a memory
    exact = calibrate("windows", UNIT, horizon=None, privacy=privacy, memory=memory, noise="exact")
    assert exact.cost <= accounting.gaussian_mu(privacy)
    assert exact.noise.std == pytest.approx(found.noise.std, rel=1e-4)


def test_an_observer_of_many_releases_sees_no_more_than_is_promised() -> None:
    """The mean of all releases, whitened, moves by no more than mu when one row is another."""
    found = FORGETTING.mechanism(setting(), TARGET)
    law, strategy, count = found.noise, found.strategy, 400
    columns = np.linalg.norm(strategy.encoder(count), axis=0)
    assert columns.max() <= 1.0 + 1e-12
    assert columns[10] == pytest.approx(1.0, rel=1e-9)  # nothing is left for later: it is tight
    one = accounting.row_cost(
        action_norm=1.0,
        reward_bound=1.0,
        gram_std=law.std,
        moment_std=law.moment_std,
        neighbours="replacement",
    )
    assert columns.max() * one <= accounting.gaussian_mu(TARGET) * (1 + 1e-9)


# When it releases, and what it refuses


def test_steps_stay_as_they_are_once_the_memory_is_full() -> None:
    schedule = calibrate("windows", UNIT, horizon=None, privacy=TARGET, memory=10_000).schedule
    plain = calibrate("windows", UNIT, horizon=None, privacy=TARGET).schedule
    assert schedule.times(10_000) == plain.times(10_000)
    assert set(np.diff(schedule.times(50_000)[-300:])) == {100}


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "windows"])
def test_other_variants_have_no_memory(name: str) -> None:
    privacy = TARGET if named(name).private else None
    with pytest.raises(ParameterError, match="which forgets nothing") as refused:
        calibrate(name, UNIT, horizon=1_000, privacy=privacy, memory=100)
    assert refused.value.parameter == "memory"


@pytest.mark.parametrize("memory", [0, -1, 3, 2.5, "long", True, math.nan, 10**16])
def test_what_is_no_memory_is_refused(memory: object) -> None:
    with pytest.raises(ParameterError) as refused:
        LinUCB(UNIT, horizon=None, privacy=TARGET, memory=memory)
    assert refused.value.parameter == "memory"


def test_a_memory_shorter_than_the_first_release_is_told_what_to_give() -> None:
    first = calibrate("windows", UNIT, horizon=None, privacy=TARGET).schedule.start
    with pytest.raises(ParameterError, match=f"give at least {first:,}"):
        calibrate("windows", UNIT, horizon=None, privacy=TARGET, memory=first - 1)
    assert calibrate("windows", UNIT, horizon=None, privacy=TARGET, memory=first).memory == first


# What is said of it


@pytest.mark.parametrize("noise", ["float", "exact"])
def test_a_mechanism_survives_a_save_file(noise: str) -> None:
    found = calibrate("windows", UNIT, horizon=None, privacy=TARGET, memory=7_000, noise=noise)
    entry = json.loads(json.dumps(_codec.to_json(found), allow_nan=False))
    assert entry["strategy"]["memory"] == 7_000
    assert _codec.from_json(entry) == found
    plain = calibrate("windows", UNIT, horizon=None, privacy=TARGET, noise=noise)
    assert "memory" not in _codec.to_json(plain)["strategy"]  # as in files of before
    for wrong in (0, -1, "long", 1e300):
        entry["strategy"]["memory"] = wrong
        with pytest.raises((ParameterError, ValueError, TypeError)):
            _codec.from_json(entry)


def test_the_card_and_the_plan_say_that_it_forgets() -> None:
    learner = LinUCB(UNIT, horizon=None, privacy=TARGET, memory=7_000)
    card = learner.ledger.card
    assert card["memory"] == card["strategy"]["memory"] == 7_000
    assert "The learner forgets: after 7,000 more rows a row counts e times less" in card["text"]
    assert "memory" not in privacy_card(calibrate("windows", UNIT, horizon=None, privacy=TARGET))
    assert ("memory", "7,000 rows") in Card.of(learner.ledger, name="one").facts()
    mu = learner.mechanism.cost
    assert stated(learner.ledger).mu == mu  # worked out from the card alone
    found = plan(WINDOWS.with_memory(7_000), UNIT, horizon=None, privacy=TARGET)
    assert found["memory"] == 7_000


# In whole numbers

entries = st.integers(-(2**45), 2**45)
CASES = {
    "batches": (batches(7), 40),
    "hybrid": (Schedule(start=30, ratio=0.1, root=1.0, batch=6), 50),
    "filled at once": (batches(20), 13),
}
each_case = pytest.mark.parametrize(("schedule", "memory"), CASES.values(), ids=CASES)
RELEASES = 40


def shown(schedule: Schedule, memory: int, rows: list[int]) -> list[int]:
    """The windows of a stream of batches, without noise, in whole numbers."""
    found = Windows.fitted(schedule, UNIT, gram_std=20.0, moment_std=30.0, memory=memory)
    shared, held = found.feedback(len(rows)), found.integer_arrays(len(rows), 1, 0)
    before, seen = 0, []
    for row in rows:
        now = schedule.after(before)
        step = Step(before, now, schedule.after(now))
        spread = shared.spread(1, step)
        kept = Fraction(*map(int, kernel.kept_rows(Step(now, step.after, step.after), memory)))
        assert Fraction(spread) ** 2 >= 1 / (1 - kept**2)  # never less noise than is asked for
        assert spread <= shared.widest
        whole = (np.array([value], dtype=object) for value in (row, 0))
        held = shared.release(held, *whole, step)
        seen.append(int(held.nodes[0, 0] >> feedback._GUARD))
        before = now
    return seen


@each_case
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_neighbours_differ_at_each_release_by_the_faded_row_and_one_rounding(
    schedule: Schedule, memory: int, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(entries, min_size=RELEASES, max_size=RELEASES))
    place = data.draw(st.integers(0, RELEASES - 1))
    change = data.draw(st.integers(-(2**41), 2**41))
    other = list(rows)
    other[place] += change
    first, second = (shown(schedule, memory, one) for one in (rows, other))
    window, share, before = Fraction(0), Fraction(1), 0
    for b in range(RELEASES):
        now = schedule.after(before)
        under = min(now, memory)
        kept = max(Fraction(0), Fraction(under - (now - before), under))
        window = kept * window + rows[b]
        assert first[b] in {math.floor(window), math.floor(window - Fraction(b, 2**40))}
        share *= kept if b > place else 1
        ideal = change * share if b >= place else 0
        assert abs(second[b] - first[b] - ideal) <= 1 + RELEASES * 2.0**-40
        before = now


def test_whole_numbers_and_floating_point_make_the_same_releases() -> None:
    """The same rows, and the same draws but for the grid: sums agree up to what is rounded."""
    rng = np.random.default_rng(4)
    exact = IntegerSums.begin(FORGETTING.mechanism(setting(), TARGET, noise="exact"), seeded(1))
    loose = FloatSums.begin(FORGETTING.mechanism(setting(), TARGET), seeded(2))
    units = exact._units
    for number, (action, reward) in enumerate(
        zip(unit_rows(rng, 300, 3), rng.uniform(-1, 1, 300), strict=True), start=1
    ):
        draw = exact.draw(exact.position)
        same = loose.no_draws
        if len(draw):
            # A draw in whole numbers is enlarged already; in floating point a step does that.
            spread = exact._feedback.spread(exact.number + 1, exact._times(exact.position))
            same = draw * units / spread
        exact.add(number, action, reward, draw)
        loose.add(number, action, reward, same)
        assert exact.position == loose.position
        assert exact.amounts() == loose.amounts()
    grams, moments = np.empty((2, 3, 3)), np.empty((2, 3))
    for at, held in enumerate((exact, loose)):
        held.unpack(0.0, grams[at], moments[at])
    np.testing.assert_allclose(grams[0], grams[1], rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(moments[0], moments[1], rtol=1e-5, atol=1e-3)
    assert exact.position.rows > 10 * 20  # ten memories


# Stored


@pytest.mark.parametrize("noise", ["exact", "float"])
def test_a_stored_learner_that_forgets_goes_on_to_the_bit(noise: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    sets = [unit_rows(rng, 5, 3) for _ in range(240)]
    # By a rule that leaves nothing to chance.
    straight, stopped = (
        LinUCB(
            UNIT,
            horizon=None,
            privacy=TARGET,
            variant=EARLY,
            memory=20,
            noise=noise,
            noise_source=seeded(3),
            policy=UCB(),
        )
        for _ in range(2)
    )
    for turn, actions in enumerate(sets):
        if turn % 60 == 37:
            source = stopped._curator._held.sums._source
            stopped = restarted(stopped, tmp_path / "one", noise_source=source)
            assert stopped.mechanism == straight.mechanism
            assert stopped.mechanism.memory == 20
        for learner in (straight, stopped):
            learner.learn(learner.choose(actions), 0.25)
    np.testing.assert_array_equal(straight.release.gram, stopped.release.gram)
    np.testing.assert_array_equal(straight.release.moment, stopped.release.moment)
    assert straight.release.weight == stopped.release.weight < 100


def test_a_learner_that_forgets_and_died_is_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    learner = LinUCB(
        UNIT, horizon=None, privacy=TARGET, variant=EARLY, memory=20, path=tmp_path / "a" / "one"
    )
    learner.observe(np.tile(np.eye(3), (40, 1)), np.full(120, 0.5))
    for _ in range(25):
        learner.learn(learner.choose(np.eye(3)), 0.5)
    found = crashed(learner, tmp_path / "b")
    assert_same(found, learner)
    assert found.release.posterior.memory == 20


def test_it_is_loaded_long_after_everything_settled() -> None:
    """By then the figures are not worked out release by release, and some have vanished."""
    mechanism = FORGETTING.mechanism(setting(), TARGET)
    held = FloatSums.begin(mechanism, seeded(0))
    end = int(kernel.settled(mechanism.schedule.timing, 20))
    row, number = (np.zeros(3), 0.0), 0
    while held.number < end + 200:
        number += 1
        held.add(number, *row, held.draw(held.position))
    position, arrays = held.position, held.arrays()
    stored = {"rows": position.rows, "released": position.released, "number": position.number}
    again = FloatSums.resume(mechanism, seeded(0), arrays=arrays, **stored)
    assert again.position == position
    for at in (kernel.SPREAD, kernel.WEIGHT, 0, 1, 4, 12):
        wrong = {name: array.copy() for name, array in arrays.items()}
        wrong["idle"][0, at] *= 1.001
        with pytest.raises(ValueError, match="figures are of another release"):
            FloatSums.resume(mechanism, seeded(0), arrays=wrong, **stored)


def test_sums_of_another_memory_are_refused() -> None:
    """The figures of a filter belong to its memory: what is stored cannot be read with another."""
    mechanism = FORGETTING.mechanism(setting(), TARGET)
    other = replace(EARLY, memory=30).mechanism(setting(), TARGET)
    held = FloatSums.begin(mechanism, seeded(0))
    for number in range(1, 80):
        held.add(number, np.zeros(3), 0.0, held.draw(held.position))
    position = held.position
    stored = {"rows": position.rows, "released": position.released, "number": position.number}
    with pytest.raises(ValueError):  # noqa: PT011  # times or figures, whichever is found first
        FloatSums.resume(other, seeded(0), arrays=held.arrays(), **stored)
