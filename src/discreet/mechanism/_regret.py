"""The regret theorem of the joint-noise confidence set: a bound with explicit constants.

For a learner that plays `UCB` with optimism 1 on sums in which every row counts alike, such as
`tight`. Theorem, proof and names of the numbers: docs/regret.md. No data.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _schedule as schedule
from discreet.kernels import _width as width
from discreet.mechanism._confidence import JointWidth
from discreet.mechanism._mechanism import Mechanism
from discreet.problem import Problem

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_WIDEST = 30.0  # how far the best price is searched for, in its logarithm


class Batches(NamedTuple):
    """Batches of rounds, several alike to an entry: rounds that are played from one release each.

    Attributes:
        first: rounds before the first release.
        counts: how many batches an entry stands for.
        sizes: the most rounds in one of them.
        slopes: C, half the regret of a round over the length of its action in the release's metric.
    """

    first: int
    counts: F64
    sizes: F64
    slopes: F64


class Ingredients(NamedTuple):
    """What the theorem adds up.

    Attributes:
        batches: what is played from which release.
        potential: Gamma, the most that the logarithm of the determinant can grow by.
        mean_bound: B, the bound on the absolute value of a mean reward.
    """

    batches: Batches
    potential: float
    mean_bound: float


def regret_bound(mechanism: Mechanism, *, rounds: int | None = None) -> float:
    """A bound on the pseudo-regret of `UCB` that needs no gap (docs/regret.md).

    It holds for all numbers of rounds up to the horizon at once, with probability at least
    1 - 5/4 alpha, whatever the decision sets are, also if each is chosen in view of all that
    happened before. It is never above 2 B rounds, which is trivially true.

    Args:
        mechanism: the noise, the bounds and the release times of the learner.
        rounds: after how many rounds; the horizon if left out.

    Returns:
        The bound.

    Raises:
        ParameterError: if rows do not count alike, or the confidence set is another.
    """
    known = ingredients(mechanism, rounds=rounds)
    most = _most(mechanism, rounds)
    return min(most, _dual(known, lambda price: gains(known, price)))


def gap_regret_bound(mechanism: Mechanism, *, gap: float, rounds: int | None = None) -> float:
    """The same where in every round all but the best actions are worse by at least ``gap``.

    Never above `regret_bound`.

    Args:
        mechanism: the noise, the bounds and the release times of the learner.
        gap: the suboptimality gap.
        rounds: after how many rounds; the horizon if left out.

    Returns:
        The bound.

    Raises:
        ParameterError: if the gap is not positive, or as for `regret_bound`.
    """
    gap = checks.positive("gap", gap)
    known = ingredients(mechanism, rounds=rounds)
    found = _dual(known, lambda price: gap_gains(known, price, gap=gap))
    return min(found, regret_bound(mechanism, rounds=rounds))


def _most(mechanism: Mechanism, rounds: int | None) -> float:
    """2 B rounds. Sums over batches can be above it: one entry may stand for several sizes."""
    setting = mechanism.setting
    return 2.0 * setting.problem.mean_reward_bound * (setting.horizon if rounds is None else rounds)


def ingredients(mechanism: Mechanism, *, rounds: int | None = None) -> Ingredients:
    """All numbers that the bounds are made of.

    Args:
        mechanism: the noise, the bounds and the release times of the learner.
        rounds: after how many rounds; the horizon if left out.

    Returns:
        The numbers.

    Raises:
        ParameterError: if rows do not count alike, or the confidence set is another.
    """
    _require_covered(mechanism)
    horizon, problem = mechanism.setting.horizon, mechanism.setting.problem
    last = horizon if rounds is None else checks.count("rounds", rounds)
    checks.within("rounds", last, 1, horizon)
    first = min(last, mechanism.schedule.after(0))
    played = mechanism.schedule.count(last - 1)  # a release after the last round is not played
    if played == 0:
        return Ingredients(Batches(first, *np.zeros((3, 0))), 0.0, float(problem.mean_reward_bound))
    numbers = _entries(mechanism.noise_table.numbers, played)
    counts = np.diff(numbers, prepend=0).astype(np.float64)
    starts, ends = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
    schedule.rows_at(mechanism.schedule.timing, numbers, starts, ends)
    sizes = np.minimum(ends, last) - starts  # steps only grow, so none before is larger
    slopes, regularizer = _slopes(mechanism, numbers, starts)
    growth = last * problem.action_norm**2 / (problem.dim * regularizer)
    return Ingredients(
        batches=Batches(first, counts, sizes.astype(np.float64), slopes),
        potential=problem.dim * math.log1p(growth),
        mean_bound=float(problem.mean_reward_bound),
    )


def _require_covered(mechanism: Mechanism) -> None:
    """Refuse what the proof does not speak of."""
    if not isinstance(mechanism.confidence, JointWidth) or mechanism.strategy is None:
        raise ParameterError("variant", f"{mechanism.variant!r} has no joint-noise width")
    if not np.array_equal(mechanism.strategy.batch_weights(2), np.tril(np.ones((2, 2)))):
        raise ParameterError(
            "variant",
            f"{mechanism.variant!r} weighs rows by their age, which the regret theorem does not "
            "cover; use 'tight'",
        )


def _entries(numbers: I64, played: int) -> I64:
    """The entries of a table of noise up to release ``played``, which has one of its own.

    It is the last that is played, and its batch may be cut short by the end.
    """
    last = [played - 1, played] if played > 1 else [played]
    return np.append(numbers[numbers < played - 1], last).astype(np.int64)


def _slopes(mechanism: Mechanism, numbers: I64, rows: I64) -> tuple[F64, float]:
    """(C of each release, the common regularizer e).

    ``rows`` are the rows of the releases ``numbers``, which stand for those before them as well.
    """
    problem, terms = mechanism.setting.problem, mechanism.width_terms
    slopes, regularizer = np.empty(len(numbers)), math.inf
    for at, (number, count) in enumerate(zip(numbers.tolist(), rows.tolist(), strict=True)):
        held = release_noise(mechanism, number)
        smallest = width.smallest_shift(held, terms, problem.dim)
        radius = radius_bound(held, terms, problem, rows=count)
        ends = (smallest - held.reach, width.SPAN * smallest - held.reach)
        slopes[at] = max(slope(held, terms, radius=radius, regularizer=end) for end in ends)
        regularizer = min(regularizer, ends[0])
    return slopes, regularizer


def release_noise(mechanism: Mechanism, number: int) -> width.ReleaseNoise:
    """The noise in one release, as its confidence set has it.

    Args:
        mechanism: the mechanism, whose rows count alike.
        number: the release's number, from 1.

    Returns:
        Its deviations, a bound on its eigenvalues, and the probability that this is passed.
    """
    table, law = mechanism.noise_table, mechanism.law
    at = min(int(np.searchsorted(table.numbers, number)), len(table.numbers) - 1)
    norm = float(table.norms[at])
    gram_std = norm * law.scale
    return width.ReleaseNoise(
        gram_std=gram_std,
        moment_std=norm * law.moment_scale,
        reach=gram_std * float(table.reaches[at]),
        log_tail=float(table.log_tails[at]),
    )


def radius_bound(
    held: width.ReleaseNoise, terms: width.Terms, problem: Problem, *, rows: int
) -> float:
    """An upper bound on beta of a release: inequality (7) of docs/regret.md.

    Args:
        held: the noise in the release.
        terms: what the width is made of besides.
        problem: the stated bounds.
        rows: how many rows are in the release.

    Returns:
        The bound.
    """
    dim = problem.dim
    floor, prior = width.without_data(held, terms)
    trace = rows * problem.action_norm**2 + 2 * held.gram_std * math.sqrt(dim * held.log_tail)
    average = terms.variance * (trace / dim + held.reach) + floor
    return math.sqrt(2 * held.log_tail + dim * math.log(average / prior))


def slope(
    held: width.ReleaseNoise, terms: width.Terms, *, radius: float, regularizer: float
) -> float:
    """How wide a width can be, over the action's length: inequality (5) of docs/regret.md.

    Args:
        held: the noise in the release.
        terms: what the width is made of besides.
        radius: beta, or a bound on it.
        regularizer: e, the shift less upsilon.

    Returns:
        beta max(sigma, sqrt(omega/e)) + S (e + upsilon) / sqrt(e).
    """
    floor, _ = width.without_data(held, terms)
    noise = radius * math.sqrt(max(terms.variance, floor / regularizer))
    return noise + terms.theta_norm * (regularizer + held.reach) / math.sqrt(regularizer)


def gains(known: Ingredients, price: float) -> float:
    """The most that all batches can cost, less ``price`` for each unit of potential they use.

    Inequality (11) of docs/regret.md: over y with potential ln(1 + y^2), the largest value of
    2 C sqrt(b) y - price ln(1 + y^2) up to y = sqrt(b) B / C is at the first zero of its slope or
    at the end.

    Args:
        known: the numbers of the theorem.
        price: mu, not negative.

    Returns:
        The sum over batches of D_i(mu).
    """
    _, counts, sizes, slopes = known.batches
    rate = slopes * np.sqrt(sizes)
    end = np.sqrt(sizes) * known.mean_bound / slopes
    half = price / (2.0 * rate)  # zeros of the slope are those of y^2 - 2 half y + 1
    root = np.sqrt(np.maximum(half**2 - 1.0, 0.0))
    flat = np.where(half >= 1.0, 1.0 / np.maximum(half + root, 1.0), end)

    def value(at: F64) -> F64:
        return np.asarray(2.0 * rate * at - price * np.log1p(at**2))

    return float(counts @ np.maximum(value(np.minimum(flat, end)), value(end)))


def gap_gains(known: Ingredients, price: float, *, gap: float) -> float:
    """The same with a gap: inequality (13) of docs/regret.md.

    Args:
        known: the numbers of the theorem.
        price: mu, not negative.
        gap: the suboptimality gap.

    Returns:
        The sum over batches.
    """
    _, counts, sizes, slopes = known.batches
    most = 2.0 * known.mean_bound * sizes
    uses = np.log1p(known.mean_bound * gap * sizes / (2.0 * slopes**2))
    return float(counts @ np.maximum(0.0, most - price * uses))


def _dual(known: Ingredients, total: Callable[[float], float]) -> float:
    """2 B t_1 and the least of price * potential + total(price): every price gives a bound."""
    first = 2.0 * known.mean_bound * known.batches.first
    if known.batches.counts.size == 0:
        return first
    trivial = total(0.0)

    def bound(log_price: float) -> float:
        price = math.exp(log_price)
        return price * known.potential + total(price)

    highest = math.log(trivial / known.potential)  # from there on it is above the trivial bound
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to import

    found = minimize_scalar(bound, bounds=(highest - _WIDEST, highest), method="bounded")
    return first + min(trivial, float(found.fun))
