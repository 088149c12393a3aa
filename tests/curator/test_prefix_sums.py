"""Noisy sums of rows: in whole numbers within their bounds exactly, and in floating point."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import LinUCB, Privacy, Problem, accounting
from discreet.curator.sums import FloatSums, IntegerSums, PrefixSums, shortened, sums_of
from discreet.errors import ParameterError
from discreet.mechanism import Mechanism
from discreet.mechanism._grid import COARSEST, FINEST, ROOM, Grid
from discreet.mechanism.noise._discrete_gaussian import DiscreteGaussianNoise
from discreet.mechanism.noise.sources import SystemNoise
from discreet.mechanism.schedules import batches, every_round, hybrid
from discreet.mechanism.strategies import (
    Buffered,
    Optimised,
    SquareRoot,
    Strategy,
    Tree,
    independent,
)
from discreet.mechanism.variants import named
from discreet.problem import Setting
from helpers import EARLY

TARGET = Privacy(epsilon=1.0, delta=1e-6)
PROBLEM = Problem(dim=3, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
RULES = {
    "default": named("tight"),
    "gaussian": named("gaussian"),
    "covering": named("gaussian").with_tree("covering"),
    "exact calibration": named("gaussian").with_calibration("gdp"),
    "tree of batches": named("tight").with_strategy(Tree()).with_schedule(batches(3)),
    "square root": named("tight").with_strategy(SquareRoot()).with_schedule(batches(4)),
    "optimised": named("tight")
    .with_strategy(Optimised(1 / np.arange(1, 16)))
    .with_schedule(batches(4)),
    "independent": named("tight").with_strategy(independent()).with_schedule(hybrid(start=5)),
    "every round": named("tight").with_schedule(every_round()),
    "windows": EARLY,
}


def made(name: str, problem: Problem = PROBLEM, horizon: int = 60) -> Mechanism:
    setting = Setting(problem=problem, horizon=horizon)
    return RULES[name].mechanism(setting, TARGET, noise="exact")


class Quiet(IntegerSums):
    """The same sums with draws of zero: what is left is data."""

    def _draw(self, draws: int, release: int) -> np.ndarray:
        return np.zeros_like(super()._draw(draws, release))


def added(sums: PrefixSums, action: np.ndarray, reward: float) -> bool:
    """Add a row with the noise of its step; whether that made a release."""
    before = sums.position
    sums.add(before.rows + 1, action, reward, sums.draw(before))
    return sums.number > before.number


def rows_in(mechanism: Mechanism, count: int, seed: int = 0) -> list[tuple[np.ndarray, float]]:
    rng = np.random.default_rng(seed)
    problem = mechanism.setting.problem
    actions = rng.normal(size=(count, problem.dim))
    actions *= problem.action_norm / np.linalg.norm(actions, axis=1, keepdims=True)
    return list(zip(actions, rng.uniform(-1, 1, count) * problem.reward_bound, strict=True))


def exactly(grid: Grid, action: np.ndarray, reward: float) -> list[Fraction]:
    """A row rounded towards zero and packed, by fractions."""
    step, unit = Fraction(grid.action_step), Fraction(grid.reward_step)
    x = [math.trunc(Fraction(float(v)) / step) * step for v in action]
    y = math.trunc(Fraction(reward) / unit) * unit
    pairs = [x[i] * x[j] for i in range(len(x)) for j in range(i + 1)]
    return pairs + [y * v for v in x]


@pytest.mark.parametrize("name", [name for name in RULES if name != "windows"])
def test_without_noise_what_is_released_is_the_sum_of_rounded_rows_to_the_last_bit(
    name: str,
) -> None:
    mechanism = made(name)
    assert mechanism.grid is not None
    held = Quiet.begin(mechanism, SystemNoise())
    totals = [Fraction(0)] * 9
    waiting = [Fraction(0)] * 9
    seen = 0
    for action, reward in rows_in(mechanism, 60):
        row = exactly(mechanism.grid, action, reward)
        waiting = [a + b for a, b in zip(waiting, row, strict=True)]
        if added(held, action, reward):
            totals = [a + b for a, b in zip(totals, waiting, strict=True)]
            waiting = [Fraction(0)] * 9
            seen += 1
            gram, moment = np.empty((3, 3)), np.empty(3)
            held.unpack(0.0, gram, moment)
            found = [gram[i, j] for i in range(3) for j in range(i + 1)] + list(moment)
            assert found == [float(total) for total in totals]
    assert seen == held.number > 2


def test_a_window_is_the_faded_sum_of_rounded_rows_far_beyond_the_last_bit() -> None:
    mechanism = made("windows")
    held = Quiet.begin(mechanism, SystemNoise())
    window, waiting, last = [Fraction(0)] * 9, [Fraction(0)] * 9, 0
    for turn, (action, reward) in enumerate(rows_in(mechanism, 60), 1):
        row = exactly(mechanism.grid, action, reward)
        waiting = [a + b for a, b in zip(waiting, row, strict=True)]
        if added(held, action, reward):
            kept = Fraction(last, turn)
            window = [kept * a + b for a, b in zip(window, waiting, strict=True)]
            waiting, last = [Fraction(0)] * 9, turn
            steps = [
                Fraction(step) for step in mechanism.grid.steps(mechanism.setting.problem).tolist()
            ]
            found = [Fraction(int(w), 2**40) for w in held.arrays()["nodes"][0]]
            for value, exact, step in zip(found, window, steps, strict=True):
                assert 0 <= exact / step - value <= held.number * Fraction(1, 2**40)
    assert held.number > 20


KINDS = pytest.mark.parametrize("noise", ["exact", "float"])


def sums_for(name: str, noise: str, horizon: int = 60) -> tuple[Mechanism, PrefixSums]:
    setting = Setting(problem=PROBLEM, horizon=horizon)
    mechanism = RULES[name].mechanism(setting, TARGET, noise=noise)
    assert sums_of(mechanism) is (IntegerSums if noise == "exact" else FloatSums)
    return mechanism, sums_of(mechanism).begin(mechanism, SystemNoise())


@KINDS
@pytest.mark.parametrize("name", RULES)
def test_sums_that_are_resumed_continue_to_the_bit(name: str, noise: str) -> None:
    mechanism, straight = sums_for(name, noise)
    resumed = resumption(mechanism, straight)
    for action, reward in rows_in(mechanism, 40):
        position = straight.position
        fresh = straight.draw(position)
        assert resumed.position == position
        assert resumed.fits(fresh, position)
        straight.add(position.rows + 1, action, reward, fresh.copy())
        resumed.add(position.rows + 1, action, reward, fresh)
        resumed = resumption(mechanism, resumed)
    assert straight.rows == resumed.rows == 40
    for name_of, part in straight.arrays().items():
        assert (part == resumed.arrays()[name_of]).all()


def resumption(mechanism: Mechanism, sums: PrefixSums, **changed: object) -> PrefixSums:
    position = sums.position
    known = {
        "rows": position.rows,
        "released": position.released,
        "number": position.number,
        "arrays": {name: part.copy() for name, part in sums.arrays().items()},
    }
    return type(sums).resume(mechanism, SystemNoise(), **{**known, **changed})


@KINDS
@pytest.mark.parametrize("name", RULES)
def test_a_position_says_in_advance_where_the_sums_will_be(name: str, noise: str) -> None:
    mechanism, sums = sums_for(name, noise)
    ahead = [sums.position]
    for _ in range(60):
        ahead.append(sums.next(ahead[-1]))
    times = mechanism.schedule.times(60)
    for place, (action, reward) in enumerate(rows_in(mechanism, 60), 1):
        assert added(sums, action, reward) == (place in set(times))
        assert sums.position == ahead[place]
        assert sums.position.rows == sums.rows == place
        assert sums.position.number == sums.number == mechanism.schedule.count(place)
        assert sums.position.due == mechanism.schedule.after(sums.position.released)


@KINDS
@pytest.mark.parametrize("name", RULES)
def test_noise_for_another_step_is_refused_and_changes_nothing(name: str, noise: str) -> None:
    mechanism, sums = sums_for(name, noise)
    rows = rows_in(mechanism, 12)
    for action, reward in rows[:7]:
        added(sums, action, reward)
    position = sums.position
    right = sums.draw(position)
    before = {part: values.copy() for part, values in sums.arrays().items()}
    width = right.shape[1]
    action, reward = rows[7]
    wrong = [
        (9, right),
        (8, np.zeros((len(right) + 1, width), right.dtype)),
        (8, np.zeros((len(right), width + 1), right.dtype)),
        (8, np.zeros(width, right.dtype)),
        (8, right.astype(np.float32)),
    ]
    for number, noise_of in wrong:
        with pytest.raises(ParameterError, match="noise: was drawn for another step"):
            sums.add(number, action, reward, noise_of)
        assert sums.position == position
        for part, values in sums.arrays().items():
            assert (values == before[part]).all()
    sums.add(8, action, reward, right)
    assert sums.rows == 8
    after = {part: values.copy() for part, values in sums.arrays().items()}
    sums.add(8, action, reward, right)  # once more does no harm
    assert sums.rows == 8
    for part, values in sums.arrays().items():
        assert (values == after[part]).all()


@KINDS
@pytest.mark.parametrize(
    "name", ["default", "gaussian", "square root", "tree of batches", "windows"]
)
def test_sums_that_do_not_fit_their_mechanism_are_not_resumed(name: str, noise: str) -> None:
    mechanism, sums = sums_for(name, noise)
    for action, reward in rows_in(mechanism, 30):
        added(sums, action, reward)
    assert resumption(mechanism, sums).position == sums.position
    position = sums.position
    for changed in (
        {"rows": position.released - 1},
        {"rows": position.due},
        {"released": position.released + 1},
        {"released": position.released - 1},
        {"number": position.number + 1},
        {"number": position.number - 1},
    ):
        with pytest.raises(ValueError, match=r"do not fit|at another time"):
            resumption(mechanism, sums, **changed)
    for part, values in sums.arrays().items():
        for wrong in (values[..., :-1], values.astype(np.float32)):
            if wrong.shape == values.shape and wrong.dtype == values.dtype:
                continue
            arrays = {**sums.arrays(), part: wrong}
            with pytest.raises(ValueError, match="another shape than their mechanism"):
                resumption(mechanism, sums, arrays=arrays)


def test_whole_numbers_larger_than_any_rows_make_are_not_resumed() -> None:
    mechanism, sums = sums_for("gaussian", "exact")
    for value in (ROOM + 1, -ROOM - 1):
        arrays = {name: part.copy() for name, part in sums.arrays().items()}
        arrays["totals"][0, 0] = value
        with pytest.raises(ValueError, match="larger than any rows make them"):
            resumption(mechanism, sums, arrays=arrays)
    mechanism, sums = sums_for("windows", "exact")
    for value in (10**1000, -(10**1000)):  # too large for a floating-point number, later on
        arrays = {name: part.copy() for name, part in sums.arrays().items()}
        arrays["nodes"][0, 0] = value
        with pytest.raises(ValueError, match="larger than any rows make them"):
            resumption(mechanism, sums, arrays=arrays)


@KINDS
@pytest.mark.parametrize("rows", [0, 30])
def test_public_figures_that_are_not_what_they_must_be_are_not_resumed(
    rows: int, noise: str
) -> None:
    mechanism, sums = sums_for("windows", noise)
    for action, reward in rows_in(mechanism, rows):
        added(sums, action, reward)
    assert resumption(mechanism, sums).position == sums.position
    for at in range(sums.arrays()["idle"].size):
        arrays = {name: part.copy() for name, part in sums.arrays().items()}
        arrays["idle"][0, at] = 1.001 * arrays["idle"][0, at] + 1e-3
        with pytest.raises(ValueError, match="figures are of another release"):
            resumption(mechanism, sums, arrays=arrays)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.floats(-1, 1),
    st.sampled_from([1.0, 0.3, 7.5, 2.0**-40, 1e30, 1 + 2**-52]),
)
def test_a_row_on_the_grid_keeps_its_bounds_exactly(
    direction: list[float], share: float, scale: float
) -> None:
    problem = Problem(dim=3, action_norm=scale, reward_bound=3 * scale, theta_norm=1.0)
    length = math.hypot(*direction)
    if length == 0:
        return
    action = np.array(direction) / length * scale  # as long as it may be, and a trace more
    held = IntegerSums.begin(made("default", problem), SystemNoise())
    row = [int(value) for value in held._rounded(action, share * 3 * scale)]
    grid = held._mechanism.grid
    assert grid is not None
    diagonal = [row[0], row[2], row[5]]
    assert sum(diagonal) * Fraction(grid.action_step) ** 2 <= Fraction(problem.action_norm) ** 2
    reward = math.trunc(Fraction(share * 3 * scale) / Fraction(grid.reward_step))
    assert abs(reward) * Fraction(grid.reward_step) <= Fraction(problem.reward_bound)
    assert all(abs(value) <= grid.largest_row(problem) for value in row)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(-(2**21), 2**21), min_size=1, max_size=6), st.integers(1, 2**40))
def test_what_is_too_long_is_shortened_in_whole_numbers(steps: list[int], limit: int) -> None:
    if sum(step * step for step in steps) <= limit:
        return
    found = [int(step) for step in shortened(np.array(steps), limit)]
    assert sum(step * step for step in found) <= limit
    assert all(abs(a) <= abs(b) and a * b >= 0 for a, b in zip(found, steps, strict=True))


@pytest.mark.parametrize("strategy", [Buffered(), Tree()])
@pytest.mark.parametrize("horizon", [10, 10**6, 5 * 10**7, 10**12])
def test_the_largest_rows_and_the_largest_noise_fit(strategy: Strategy, horizon: int) -> None:
    variant = named("tight").with_strategy(strategy)
    mechanism = variant.mechanism(
        Setting(problem=PROBLEM, horizon=horizon, failure_prob=0.01), TARGET, noise="exact"
    )
    noise = mechanism.noise
    assert isinstance(noise, DiscreteGaussianNoise)
    together = horizon
    if not isinstance(strategy, Tree):
        together = mechanism.schedule.largest_batch(horizon)
    largest = together * noise.grid.largest_row(PROBLEM)
    stand = mechanism.sharing.levels * 65 * noise.most_steps
    assert largest + 2 * stand <= ROOM < 2**63
    bits = -noise.grid.action_exponent
    assert COARSEST <= bits <= FINEST
    if not isinstance(strategy, Tree):
        assert bits == FINEST


def test_a_horizon_that_does_not_fit_is_refused_and_the_largest_that_does_is_named() -> None:
    variant = named("gaussian").with_calibration("gdp")
    with pytest.raises(ParameterError, match=r"horizon: .* at most [\d,]+") as caught:
        variant.mechanism(Setting(problem=PROBLEM, horizon=10**17), TARGET, noise="exact")
    fits = int(str(caught.value).split("at most ")[1].split(", or")[0].replace(",", ""))
    variant.mechanism(Setting(problem=PROBLEM, horizon=fits), TARGET, noise="exact")
    with pytest.raises(ParameterError):
        variant.mechanism(Setting(problem=PROBLEM, horizon=2 * fits), TARGET, noise="exact")


def test_batches_that_do_not_fit_are_refused() -> None:
    variant = named("tight").with_schedule(batches(10**17))
    with pytest.raises(ParameterError, match="schedule: has batches of more than"):
        variant.mechanism(Setting(problem=PROBLEM, horizon=10**18), TARGET, noise="exact")


@pytest.mark.parametrize("name", RULES)
def test_what_it_costs_is_within_the_target_by_an_accountant_of_its_own(name: str) -> None:
    mechanism = made(name)
    assert mechanism.cost is not None
    delta = accounting.gaussian_delta(epsilon=TARGET.epsilon, mu=mechanism.cost)
    assert delta <= TARGET.delta
    drawn, plain = mechanism.noise, RULES[name].mechanism(mechanism.setting, TARGET).noise
    assert plain.std <= drawn.std <= plain.std * (1 + 1e-6)  # type: ignore[union-attr]
    assert 0.9999 * math.sqrt(2) <= drawn.diagonal_steps / drawn.gram_steps  # type: ignore[union-attr]
    assert drawn.diagonal_steps**2 >= 2 * drawn.gram_steps**2  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["wishart", "wishart-opt", "wishart-unshifted"])
def test_noise_without_an_exact_sampler_has_to_be_asked_for(name: str) -> None:
    with pytest.raises(ParameterError, match="noise: is 'exact', but wishart noise"):
        LinUCB(PROBLEM, horizon=10, privacy=TARGET, variant=name)
    learner = LinUCB(PROBLEM, horizon=10, privacy=TARGET, variant=name, noise="float")
    assert learner.mechanism.grid is None


@pytest.mark.parametrize("noise", ["", "Exact", "double"])
@pytest.mark.parametrize("name", ["windows", "tight", "gaussian", "nonprivate"])
def test_another_kind_of_noise_is_refused(noise: str, name: str) -> None:
    privacy = TARGET if named(name).private else None
    with pytest.raises(ParameterError, match="noise: "):
        LinUCB(PROBLEM, horizon=10, privacy=privacy, variant=name, noise=noise)


def test_exact_noise_is_what_one_gets_and_the_guarantee_says_so() -> None:
    learner = LinUCB(PROBLEM, horizon=100, privacy=TARGET)
    assert isinstance(learner.mechanism.noise, DiscreteGaussianNoise)
    assert "whole multiples of a grid" in str(learner.guarantee)
    assert "whole multiples" not in str(
        LinUCB(PROBLEM, horizon=100, privacy=TARGET, noise="float").guarantee
    )


@pytest.mark.parametrize("name", ["default", "gaussian"])
def test_every_released_number_is_a_whole_multiple_of_a_step(name: str) -> None:
    learner = LinUCB(PROBLEM, horizon=60, privacy=TARGET, variant=RULES[name])
    grid = learner.mechanism.grid
    assert grid is not None
    for action, reward in rows_in(learner.mechanism, 25):
        learner.learn(learner.choose([action]), reward)
    gram = learner.release.gram - learner.mechanism.shift * np.eye(3)
    off = [gram[i, j] for i, j in itertools.combinations(range(3), 2)]
    for value, step in [(v, grid.gram_step) for v in off] + [
        (v, grid.moment_step) for v in learner.release.moment
    ]:
        assert (float(value) / step).is_integer()


@pytest.mark.parametrize("name", ["default", "gaussian", "square root", "windows"])
def test_the_noise_has_the_stated_spread(name: str) -> None:
    """Two hundred learners, first release, no data: 18 variances of 200 draws.

    Each is within a factor exp(+-0.75) with probability 1 - 1e-8 (chi-square, 200 degrees).
    """
    mechanism = made(name)
    found = []
    zero = np.zeros(3)
    for _ in range(200):
        held = IntegerSums.begin(mechanism, SystemNoise())
        while not added(held, zero, 0.0):
            pass
        gram, moment = np.empty((3, 3)), np.empty(3)
        held.unpack(0.0, gram, moment)
        found.append([*gram[np.tril_indices(3)], *moment])
    spread = math.sqrt(mechanism.sharing.levels or 1)
    if name == "windows":  # the first has nothing to be averaged with
        spread, weight = held.amounts()
        assert weight == pytest.approx(3.0)
        assert spread == pytest.approx(4 / math.sqrt(7), rel=1e-9)  # t = 3, and 4 the next time
    std, moment_std = mechanism.noise.std, mechanism.noise.moment_std  # type: ignore[union-attr]
    on, off = math.sqrt(2) * std, std
    expected = np.array([on, off, on, off, off, on, *[moment_std] * 3]) * spread
    ratio = np.array(found).var(axis=0) / expected**2
    assert np.abs(np.log(ratio)).max() < 0.75
