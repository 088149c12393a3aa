"""Private values: the noise's scale, one person's reach, exactness, and what is never shown.

Seeds are fixed where noise is drawn for a comparison. Each statistical comparison is made at a
probability of 1e-6 or less, so that a right implementation would fail with another seed about as
rarely.
"""

import copy
import itertools
import json
import math
import pickle
import sys
from dataclasses import replace
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np
import pytest
from logged_world import CONTEXTS, F64, HIGH, LOW, MEANS, OTHER, TARGET, World
from scipy import optimize, stats

from discreet import Privacy, evaluation
from discreet.audit import _statistics as statistics
from discreet.errors import DiscreetError, OutOfBoundsError, ParameterError, ShapeError
from discreet.evaluation import Comparison, PrivateValue, PrivateValues, Values, _private
from discreet.evaluation._calibration import SQUARES_SHARE, Law, calibrated, pair_cost, person_cost
from discreet.evaluation._log import Chunk
from discreet.mechanism.noise.sources import NoiseSource, SeededNoise

PRIVACY = Privacy(epsilon=1.0, delta=1e-6)
RISK = 1e-6
TARGETS = [
    PRIVACY,
    Privacy(epsilon=0.1, delta=1e-9),
    Privacy(epsilon=1.0, delta=1e-6, neighbours="add-remove"),
    Privacy(epsilon=5.0, delta=1e-3, contributions_per_user=7),
]


def seeded(seed: int = 1) -> SeededNoise:
    return SeededNoise(np.random.SeedSequence(seed))


def private(comparison: Comparison, policy: str, estimator: str) -> PrivateValue:
    found = comparison[policy, estimator]
    assert isinstance(found, PrivateValue)
    return found


def made(
    privacy: Privacy = PRIVACY, *, clip: float = 4.0, source: NoiseSource | None = None
) -> PrivateValues:
    return PrivateValues(low=LOW, high=HIGH, clip=clip, privacy=privacy, noise_source=source)


def gdp(privacy: Privacy) -> float:
    """The mu of Gaussian noise for a target, from the formula and a root finder."""

    def excess(mu: float) -> float:
        eps = privacy.epsilon
        tails = stats.norm.cdf([mu / 2 - eps / mu, -mu / 2 - eps / mu])
        return float(tails[0] - math.exp(eps) * tails[1]) / privacy.delta - 1

    return float(optimize.brentq(excess, 1e-3, 20, xtol=1e-14))


@pytest.mark.parametrize("privacy", TARGETS)
@pytest.mark.parametrize("policies", [1, 3])
def test_noise_is_as_large_as_the_target_needs_and_no_larger(
    privacy: Privacy, policies: int
) -> None:
    law = calibrated(privacy, policies)
    row = gdp(privacy) / privacy.contributions_per_user / math.sqrt(policies)
    first, second = (math.sqrt(2),) * 2
    if privacy.neighbours == "replacement":
        first, second = 2.0, 2 / math.sqrt(3)
    for share, value_std, weight_std in (
        (1 - SQUARES_SHARE, law.value_std, law.weight_std),
        (SQUARES_SHARE, law.square_value_std, law.square_weight_std),
    ):
        unit = law.steps / (row * math.sqrt(share))
        assert value_std == pytest.approx(first * unit, rel=1e-5)
        assert weight_std == pytest.approx(second * unit, rel=1e-5)
    cost = person_cost(law, privacy, policies)
    assert cost <= gdp(privacy) * (1 + 1e-9)
    assert cost >= gdp(privacy) * (1 - 1e-5)


@pytest.mark.parametrize("neighbours", ["replacement", "add-remove"])
def test_no_other_split_has_less_noise_in_the_worst_ratio(neighbours: str) -> None:
    law = calibrated(replace(PRIVACY, neighbours=neighbours), 1)
    budget = pair_cost(law.steps, law.value_std, law.weight_std, neighbours)
    ours = law.value_std**2 + law.weight_std**2
    for angle in np.linspace(0.05, math.pi / 2 - 0.05, 400):
        first, second = (round(1e9 * part(angle)) for part in (math.cos, math.sin))
        scale = pair_cost(law.steps, first, second, neighbours) / budget
        assert scale**2 * (first**2 + second**2) >= ours * (1 - 1e-6)


@pytest.mark.parametrize("neighbours", ["replacement", "add-remove"])
@pytest.mark.parametrize("stds", [(16, 16), (5, 40), (40, 5), (20, 12)])
def test_the_cost_of_a_row_is_the_largest_over_all_pairs_of_rows(
    neighbours: str, stds: tuple[int, int]
) -> None:
    steps = 8
    rows = [(a, t) for t in range(steps + 1) for a in range(-t, t + 1)]
    others = rows if neighbours == "replacement" else [(0, 0)]
    largest = max(
        Fraction((a - b) ** 2, stds[0] ** 2) + Fraction((t - u) ** 2, stds[1] ** 2)
        for (a, t), (b, u) in itertools.product(rows, others)
    )
    cost = pair_cost(steps, *stds, neighbours)
    assert Fraction(cost) ** 2 >= largest
    assert cost == pytest.approx(math.sqrt(largest), rel=1e-12)


def chunk(rewards: F64, weights: F64) -> Chunk:
    return Chunk(rewards, weights[None], np.ones_like(rewards), None, None, None, None)


def test_rows_stay_in_the_triangle_whatever_floating_point_does() -> None:
    law = calibrated(PRIVACY, 1)
    rng = np.random.default_rng(1)
    edges = np.array([0.0, 5e-324, 2**-53, 1 / 3, 0.5, np.nextafter(1, 0), 1.0])
    rewards = np.r_[np.repeat(edges, 9), rng.random(20_000)]
    weights = np.r_[
        np.tile([0, 5e-324, 1e-9, 1 / 3, 3.3, np.nextafter(3.3, 9), 7, 1e300, np.inf], 7),
        rng.exponential(3, 20_000),
    ]
    value, weight, square_value, square = _private.whole_rows(chunk(rewards, weights), 3.3, law)[0]
    assert weight.min() >= 0
    assert weight.max() == law.steps
    assert square.max() == law.steps
    assert (np.abs(value) <= weight).all()
    assert (np.abs(square_value) <= square).all()
    shares = np.minimum(weights, 3.3) / 3.3
    np.testing.assert_allclose(weight / law.steps, shares, atol=1 / law.steps)
    np.testing.assert_allclose(value / law.steps, shares * (2 * rewards - 1), atol=2 / law.steps)
    np.testing.assert_allclose(square / law.steps, shares**2, atol=2 / law.steps)
    np.testing.assert_allclose(
        square_value / law.steps, shares**2 * (2 * rewards - 1), atol=3 / law.steps
    )


@pytest.mark.parametrize("privacy", TARGETS)
def test_neighbouring_logs_are_never_further_apart_than_accounted_for(privacy: Privacy) -> None:
    # All pairs of rows at the edges, as a caller would give them, and the person's other rows the
    # same: every row of one person moves in the same direction. The distance is reached.
    law = calibrated(privacy, 1)
    stds = np.array(law.stds, dtype=float)
    edges = list(itertools.product([LOW, 0.3, HIGH], [0.0, 0.2, 1.0], [1.0, 0.25, 0.01]))

    def sums(reward: float, target: float, propensity: float) -> F64:
        values = made(privacy)
        rows = privacy.contributions_per_user
        values.add(np.full(rows, reward), propensities=propensity, targets=target)
        assert values._held.sums is not None
        return values._held.sums[0] / stds

    points = [sums(*edge) for edge in edges]
    others = points if privacy.neighbours == "replacement" else [np.zeros(4)]
    largest = max(
        float(np.linalg.norm(one - other)) for one, other in itertools.product(points, others)
    )
    cost = person_cost(law, privacy, 1)
    assert largest <= cost
    assert largest > 0.999 * cost


def test_released_sums_are_whole_steps_away_from_the_exact_ones_with_the_stated_noise() -> None:
    # 4,000 releases of one log. The variance of the noise is compared at 1e-6, both ways.
    law = calibrated(PRIVACY, 1)
    log = World().play(np.random.default_rng(2), 50)
    source, noise = seeded(), []
    chances = TARGET[log.contexts, log.actions]
    exact = made()
    exact.add(log.rewards, propensities=log.propensities, targets=chances)
    assert exact._held.sums is not None
    before = exact._held.sums[0].tolist()
    for _ in range(4_000):
        values = made(source=source)
        values.add(log.rewards, propensities=log.propensities, targets=chances)
        released = private(values.release(), "policy", "ips").released
        assert all(type(part) is int for part in released)
        noise.append([after - one for after, one in zip(released, before, strict=True)])
    drawn = np.array(noise, dtype=float) / law.stds
    squares = (drawn**2).sum(axis=0)
    low, high = stats.chi2.ppf([RISK / 2, 1 - RISK / 2], 4_000)
    assert ((low < squares) & (squares < high)).all()
    assert not ((low < 1.15**2 * squares) & (1.15**2 * squares < high)).any()
    assert not ((low < squares / 1.15**2) & (squares / 1.15**2 < high)).any()
    apart = np.corrcoef(drawn.T)[np.triu_indices(4, 1)]
    assert np.abs(apart).max() < 5.5 / math.sqrt(4_000)


def test_almost_without_noise_they_are_the_exact_values() -> None:
    log = World().play(np.random.default_rng(3), 3_000)
    little, clip = Privacy(epsilon=1e6, delta=0.5), 2.0
    names = {"target": TARGET, "other": OTHER}
    targets = {name: table[log.contexts] for name, table in names.items()}
    arrays = {"propensities": log.propensities, "targets": targets, "actions": log.actions}
    values = PrivateValues(list(names), low=LOW, high=HIGH, clip=clip, privacy=little)
    beside = Values(list(names), low=LOW, high=HIGH, clip=clip)
    for half in (slice(0, 1_100), slice(1_100, None)):
        rest = {
            "propensities": log.propensities[half],
            "targets": {name: table[half] for name, table in targets.items()},
            "actions": log.actions[half],
        }
        values.add(log.rewards[half], **rest)
    beside.add(log.rewards, **arrays)  # type: ignore[arg-type]
    found, middle = values.release(), (LOW + HIGH) / 2
    for name, table in names.items():
        weights = np.minimum(table[log.contexts, log.actions] / log.propensities, clip)
        ips = middle + (weights * (log.rewards - middle)).mean()
        assert private(found, name, "ips").estimate == pytest.approx(ips, abs=1e-4)
        snips = beside.result()[name, "snips"].estimate
        assert private(found, name, "snips").estimate == pytest.approx(snips, abs=1e-4)
        assert private(found, name, "ips").mean_weight == pytest.approx(weights.mean(), abs=1e-4)


class Coverage:
    """How often private intervals hold what they should, over many logs with fresh noise."""

    def __init__(self, *, privacy: Privacy, rows: int, clip: float, copies: int = 1) -> None:
        rng, source, world = np.random.default_rng(4), seeded(5), World()
        weights = world.weights(TARGET, clip)
        scaled = 2 * (MEANS - LOW) / (HIGH - LOW) - 1
        centred, weight = world.mean(weights * scaled), world.mean(weights)
        half, middle = (HIGH - LOW) / 2, (HIGH + LOW) / 2
        self.truths = {"ips": middle + half * centred, "snips": middle + half * centred / weight}
        self.value = float((CONTEXTS[:, None] * TARGET * MEANS).sum())
        self.found: list[Comparison] = []
        self.logs = 600
        for _ in range(self.logs):
            log = world.play(rng, rows)
            values = made(privacy, clip=clip, source=source)
            chances = TARGET[log.contexts, log.actions]
            for _ in range(copies):  # a person's rows are copies of one
                values.add(log.rewards, propensities=log.propensities, targets=chances)
            self.found.append(values.release(level=0.9))

    def hits(self, estimator: str, *, shrink: float = 1.0) -> int:
        count, truth = 0, self.truths[estimator]
        for one in self.found:
            value = private(one, "policy", estimator)
            low = value.estimate - shrink * (value.estimate - value.low)
            count += low <= truth <= value.estimate + shrink * (value.high - value.estimate)
        return count

    def bounds_hits(self) -> int:
        pairs = [private(one, "policy", "ips").bounds for one in self.found]
        return sum(low <= self.value <= high for low, high in pairs)

    def width(self, estimator: str) -> float:
        values = [private(one, "policy", estimator) for one in self.found]
        return float(np.mean([value.high - value.low for value in values]))


@pytest.mark.parametrize(
    ("privacy", "rows", "clip", "copies"),
    [
        (PRIVACY, 4_000, 4.0, 1),  # the noise is smaller than the sampling error
        (Privacy(epsilon=0.2, delta=1e-6), 1_000, 4.0, 1),  # and larger
        (Privacy(epsilon=0.05, delta=1e-6), 200, 4.0, 1),  # a denominator that may be anything
        (PRIVACY, 4_000, 1.5, 1),  # much is clipped
        (replace(PRIVACY, contributions_per_user=5), 1_500, 4.0, 5),
        (replace(PRIVACY, neighbours="add-remove"), 4_000, 4.0, 1),
    ],
)
def test_private_intervals_hold_at_least_as_often_as_they_say(
    privacy: Privacy, rows: int, clip: float, copies: int
) -> None:
    play = Coverage(privacy=privacy, rows=rows, clip=clip, copies=copies)
    least = stats.binom.ppf(RISK, play.logs, 0.9)
    for estimator in ("ips", "snips"):
        assert play.hits(estimator) >= least
    assert play.bounds_hits() >= least
    if rows >= 1_000 and privacy.epsilon < 1:  # noise decides: no more cautious than need be
        assert play.hits("ips", shrink=0.6) < least


def test_intervals_that_forget_the_noise_or_a_persons_rows_would_miss() -> None:
    noisy = Coverage(privacy=Privacy(epsilon=0.2, delta=1e-6), rows=1_000, clip=4.0)
    sampled = 0.0
    for one in noisy.found:
        value = private(one, "policy", "ips")
        sampled += 1 - (1.6449 * value.noise_std / ((value.high - value.low) / 2)) ** 2
    share = math.sqrt(sampled / noisy.logs)  # of the width that is sampling error
    assert noisy.hits("ips", shrink=share) < 0.7 * noisy.logs
    people = Coverage(
        privacy=Privacy(epsilon=50, delta=1e-3, contributions_per_user=5),
        rows=1_500,
        clip=4.0,
        copies=5,
    )
    assert people.hits("snips", shrink=1 / math.sqrt(5)) < 0.7 * people.logs


def test_with_many_rows_private_intervals_are_nearly_as_narrow_as_exact_ones() -> None:
    log = World().play(np.random.default_rng(6), 300_000)
    arrays = {"propensities": log.propensities, "targets": TARGET[log.contexts, log.actions]}
    exact = Values(low=LOW, high=HIGH)
    exact.add(log.rewards, **arrays)  # type: ignore[arg-type]
    values = made(clip=20.0, source=seeded())  # clipped far above any weight
    values.add(log.rewards, **arrays)  # type: ignore[arg-type]
    wide = private(values.release(), "policy", "snips")
    narrow = exact.result()["policy", "snips"]
    assert narrow.high is not None
    assert narrow.low is not None
    assert wide.high - wide.low < 1.25 * (narrow.high - narrow.low)


def test_values_stay_within_the_bounds_however_large_the_noise_is() -> None:
    source = seeded(8)
    for _ in range(50):
        values = made(Privacy(epsilon=1e-4, delta=1e-9), source=source)
        values.add([LOW, HIGH], propensities=0.5, targets=0.5)
        for one in values.release():
            assert LOW <= (one.low or 0) <= (one.estimate or 0) <= (one.high or 0) <= HIGH
            assert one.bounds is not None
            assert LOW <= one.bounds[0] <= one.bounds[1] <= HIGH
            json.dumps(one.to_json(), allow_nan=False)


# --- what is promised and what is never shown ---------------------------------------------------


def test_a_private_value_says_what_is_promised_and_a_seed_takes_it_back() -> None:
    values = made()
    values.add([LOW, HIGH], propensities=0.5, targets=0.5)
    found = values.release()
    one = private(found, "policy", "snips")
    assert found.audience == one.audience == "everybody"
    assert one.guarantee == found.guarantee == values.guarantee
    assert (one.guarantee.epsilon, one.guarantee.delta) == (1.0, 1e-6)
    for text in (str(one), str(found), found._repr_html_()):
        assert "(1, 1e-06)-differential privacy" in text
        assert "replacing one person" in text
    assert "joint" not in str(one.guarantee)
    voided = made(source=seeded())
    voided.add([LOW, HIGH], propensities=0.5, targets=0.5)
    shown = voided.release()
    assert shown.audience == "curator"
    assert not shown.guarantee.private
    assert "seed" in str(shown)
    assert "No privacy is promised" in str(shown.values[0])


def test_nothing_exact_is_in_what_is_released_nor_left_behind() -> None:
    # The exact figures of this log are whole numbers of steps that noise of a billion steps hits
    # with a probability below 1e-8 each.
    values = made(Privacy(epsilon=0.1, delta=1e-9), clip=2.0)
    values.add(np.full(1_000, HIGH), propensities=0.5, targets=0.5)
    assert values._held.sums is not None
    exact = set(values._held.sums.ravel().tolist())
    found = values.release()
    for one in found:
        assert isinstance(one, PrivateValue)
        assert not exact & set(one.released)
        assert set(vars(one)) == set(PrivateValue.__dataclass_fields__)
        again = pickle.loads(pickle.dumps(one))  # noqa: S301  # our own
        assert again == one
        assert "released" not in repr(one)
    assert values._held.sums is None
    held = [value for name, value in vars(values).items() if name not in {"_released", "_law"}]
    assert not any(isinstance(value, np.ndarray) for value in held)


def test_noise_is_drawn_once_and_a_released_one_takes_no_more() -> None:
    values = made()
    values.add([LOW, HIGH] * 50, propensities=0.5, targets=0.5)
    first, second = values.release(), values.release(level=0.5)
    assert private(first, "policy", "ips").released == private(second, "policy", "ips").released
    assert private(second, "policy", "ips").low > private(first, "policy", "ips").low
    with pytest.raises(ParameterError, match="released"):
        values.add([LOW], propensities=0.5, targets=0.5)
    again = made()
    again.add([LOW, HIGH] * 50, propensities=0.5, targets=0.5)
    # Two draws of a deviation of billions are the same with a probability below 1e-8.
    assert (
        private(again.release(), "policy", "ips").released
        != private(first, "policy", "ips").released
    )


def test_raw_sums_cannot_be_copied_pickled_or_released_by_a_child() -> None:
    values = made()
    values.add([HIGH, HIGH], propensities=0.5, targets=0.5)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="released twice"):
            attempt(values)
    values._process += 1  # as it would be in a forked process
    with pytest.raises(DiscreetError, match="another process"):
        values.release()
    assert "2" in repr(values)
    assert "secret" in repr(values)


def test_exact_and_private_values_cannot_be_shown_in_one_table() -> None:
    exact, values = Values(low=LOW, high=HIGH), made()
    for one in (exact, values):
        one.add([LOW, HIGH], propensities=0.5, targets=0.5)
    mixed = (*values.release().values, *exact.result().values)
    with pytest.raises(ParameterError, match="other eyes"):
        Comparison(values=mixed)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        Comparison(values=())
    twice = (*values.release().values, values.release().values[0])
    with pytest.raises(ParameterError, match="twice"):
        Comparison(values=twice)  # type: ignore[arg-type]


# --- at most so many rows of one person ---------------------------------------------------------


def test_rows_beyond_a_persons_cap_are_refused_or_count_as_zeros() -> None:
    privacy = replace(PRIVACY, contributions_per_user=2)
    subjects = np.array(["a", "b", "a", "c", "a", "b"])
    rows = {"propensities": 0.5, "targets": 0.5}
    strict = made(privacy)
    strict.add(np.full(4, HIGH), subjects=subjects[:4], **rows)  # type: ignore[arg-type]
    before = strict._held.sums
    with pytest.raises(OutOfBoundsError, match="contributions_per_user=2"):
        strict.add(np.full(2, HIGH), subjects=subjects[4:], **rows)  # type: ignore[arg-type]
    assert strict._held.sums is before
    assert strict.rows == 4
    strict.add(np.full(1, HIGH), subjects=["b"], **rows)  # type: ignore[arg-type]
    for cut in (0, 3, 6):
        values = PrivateValues(low=LOW, high=HIGH, clip=4, privacy=privacy, on_violation="clip")
        for half in (slice(0, cut), slice(cut, 6)):
            size = len(subjects[half])
            values.add(np.full(size, HIGH), subjects=subjects[half], **rows)  # type: ignore[arg-type]
        assert values.rows == 6
        assert values._held.sums is not None
        assert values._held.sums[0, 0] == 5 * values._law.steps // 4
    with pytest.raises(ParameterError, match="subjects"):
        values.add([HIGH], **rows)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="subjects"):
        values.add([HIGH], subjects=[1], **rows)  # type: ignore[arg-type]


def test_too_much_noise_is_refused() -> None:
    greedy = Privacy(epsilon=1e-6, delta=1e-100, contributions_per_user=10**9)
    with pytest.raises(ParameterError, match="privacy"):
        made(greedy)
    coarse = calibrated(Privacy(epsilon=1e-5, delta=1e-9, contributions_per_user=1_000), 1)
    assert coarse.bits < 24


# --- an audit -----------------------------------------------------------------------------------

LOOSE = Privacy(epsilon=3.0, delta=1e-3)
WORLDS = [
    (LOOSE, 1),
    (replace(LOOSE, neighbours="add-remove"), 1),
    (replace(LOOSE, contributions_per_user=3), 2),
]


def shown(privacy: Privacy, policies: int, *, one: bool, trials: int, seed: int) -> tuple[F64, F64]:
    """What is released of a log with, or without, one person's rows of the worst kind.

    And the exact sums, in which an attacker knows all but that person.
    """
    source, names = seeded(seed), [str(at) for at in range(policies)]
    target = 0.0 if privacy.neighbours == "add-remove" and not one else 1.0
    rewards = np.full(privacy.contributions_per_user, HIGH if one else LOW)
    found = []
    for _ in range(trials):
        values = PrivateValues(
            names, low=LOW, high=HIGH, clip=2, privacy=privacy, noise_source=source
        )
        values.add([LOW, HIGH, HIGH], propensities=0.5, targets=dict.fromkeys(names, 0.5))
        values.add(rewards, propensities=0.5, targets=dict.fromkeys(names, target))
        exact = values._held.sums
        table = values.release()
        found.append(np.concatenate([private(table, name, "ips").released for name in names]))
    assert exact is not None
    return np.array(found, dtype=float), exact.ravel().astype(float)


def empirical(privacy: Privacy, policies: int, trials: int) -> tuple[float, float]:
    """Lower bounds on epsilon: by counts alone, and by counts and the shape of Gaussian noise."""
    one, with_one = shown(privacy, policies, one=True, trials=trials, seed=1)
    other, without = shown(privacy, policies, one=False, trials=trials, seed=2)
    half, scales = trials // 2, one.std(axis=0)
    parts = [
        statistics.Samples(one[rows] / scales, other[rows] / scales)
        for rows in (slice(0, half), slice(half, None))
    ]
    first, second = statistics.linear_statistic(*parts, (with_one - without) / scales)
    rates = statistics.median_rates(first, second, risk=RISK)
    counted = statistics.rates_epsilon(*rates, delta=privacy.delta)
    shaped = statistics.mu_epsilon(float(statistics.rates_mu(*rates)), delta=privacy.delta)
    return float(counted), shaped


@pytest.mark.parametrize(("privacy", "policies"), WORLDS)
def test_an_attack_finds_no_more_than_is_claimed(privacy: Privacy, policies: int) -> None:
    # Clopper-Pearson at 1e-6. Both bounds are valid; the second knows the noise's shape.
    counted, shaped = empirical(privacy, policies, 6_000)
    assert counted <= privacy.epsilon
    assert 0.5 * privacy.epsilon < shaped <= privacy.epsilon


@pytest.mark.parametrize(("privacy", "policies"), WORLDS)
def test_the_same_attack_refutes_noise_that_is_too_small_by_half(
    privacy: Privacy, policies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = calibrated(privacy, policies)
    halved = Law(
        bits=law.bits,
        value_std=law.value_std // 2,
        weight_std=law.weight_std // 2,
        square_value_std=law.square_value_std // 2,
        square_weight_std=law.square_weight_std // 2,
    )
    monkeypatch.setattr(_private, "calibrated", lambda *_: halved)
    _, shaped = empirical(privacy, policies, 6_000)
    assert shaped > privacy.epsilon


def test_the_public_names_are_few() -> None:
    assert len(evaluation.__all__) == 7


def test_after_an_interrupt_a_chunk_is_in_as_a_whole_or_not_at_all() -> None:
    """An interrupt at every line of `add`: `rows` says which, and a retry never counts twice."""
    chunk: dict[str, Any] = {"propensities": 0.5, "targets": {"policy": 0.5}}
    seen = set()
    for wanted in itertools.count(1):
        values = PrivateValues(low=0, high=1, clip=2, privacy=PRIVACY)
        values.add([1.0, 0.0], **chunk)
        passed = 0

        def interrupt(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401
            nonlocal passed
            if frame.f_code.co_filename != _private.__file__:
                return None
            passed += event == "line"
            if passed == wanted:  # noqa: B023
                raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            values.add([1.0, 1.0, 1.0], **chunk)
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(None)
        seen.add(values.rows)
        if values.rows == 2:  # not in yet: so it may be added again
            values.add([1.0, 1.0, 1.0], **chunk)
        assert values.rows == 5
        assert values._held.sums is not None
        steps = values._law.steps
        assert values._held.sums[0, :2].tolist() == [3 * steps // 2, 5 * steps // 2]
    assert seen in ({2}, {2, 5})
