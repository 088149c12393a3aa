"""Discrete Gaussian noise: the same noise as `_gaussian`, in whole steps of a grid.

Formal guarantee: rows are whole multiples of the grid's steps within the bounds (the curator sees
to that in whole numbers), sums of them are exact, and the law of every draw is a discrete Gaussian,
not an approximation of one. So the cost of a row is that of the discrete Gaussian on the whole
numbers, and no floating-point operation touches data before noise has been added to it.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet import accounting
from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.kernels._discrete_gaussian import REACH
from discreet.kernels._noise import Noise
from discreet.mechanism import _feedback as feedback
from discreet.mechanism._cost import least_draw, most_draws, total_cost
from discreet.mechanism._grid import COARSEST, FINEST, LARGEST_STD, ROOM, Grid
from discreet.mechanism._mechanism import NodeNoise
from discreet.mechanism.noise import _sampler as sampler
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.noise.sources import NoiseSource
from discreet.mechanism.schedules import Schedule
from discreet.mechanism.strategies import Strategy
from discreet.privacy import Privacy
from discreet.problem import Setting
from discreet.theory import NoiseBounds

I64 = NDArray[np.int64]

_ARGUMENT = (
    "noise is drawn exactly, as whole multiples of a grid's steps, and added to exact sums of rows "
    "rounded to that grid"
)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianNoise:
    """Discrete Gaussian entries.

    Attributes:
        gram_steps: the parameter off the Gram matrix's diagonal, in steps of the grid; on it
            sqrt(2) times that, rounded up. 0 leaves the Gram matrix exact, for rewards alone.
        moment_steps: that of the moment's entries.
        grid: the steps.
    """

    gram_steps: int
    moment_steps: int
    grid: Grid
    family = "discrete-gaussian"
    needs_all_draws = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name, least in (("gram_steps", 0), ("moment_steps", 1)):
            steps = checks.count(name, getattr(self, name), least=least)
            checks.within(name, steps, least, LARGEST_STD)
            object.__setattr__(self, name, steps)

    @property
    def diagonal_steps(self) -> int:
        """The parameter on the diagonal: the least whole number of at least sqrt(2) gram_steps."""
        return math.isqrt(2 * self.gram_steps**2 - 1) + 1 if self.gram_steps else 0

    @property
    def least_steps(self) -> int:
        """The smallest parameter of a draw, in steps."""
        return min(self.gram_steps or self.moment_steps, self.moment_steps)

    @property
    def most_steps(self) -> int:
        """The largest parameter of a draw, in steps."""
        return max(self.diagonal_steps, self.moment_steps)

    @property
    def std(self) -> float:
        """The deviation of the Gram matrix off its diagonal, in the data's units."""
        return self.gram_steps * self.grid.gram_step

    @property
    def moment_std(self) -> float:
        """The deviation of the moment, in the data's units."""
        return self.moment_steps * self.grid.moment_step

    @cached_property
    def continuous(self) -> GaussianNoise:
        """The Gaussian noise of the same scales, for bounds and simulations."""
        return GaussianNoise(std=self.std, moment_std=self.moment_std)

    def law(self) -> Noise:
        """The law of the continuous noise, which simulations draw."""
        return self.continuous.law()

    def eigenvalues(self, setting: Setting) -> tuple[float, float]:
        """The eigenvalue range of the continuous noise."""
        return self.continuous.eigenvalues(setting)

    def bounds(self, setting: Setting, shift: float) -> NoiseBounds:
        """The bounds of the continuous noise: discrete tails are no longer."""
        return self.continuous.bounds(setting, shift)

    def opnorm_bound(self, setting: Setting) -> float:
        """The norm bound of the continuous noise."""
        return self.continuous.opnorm_bound(setting)

    def parameters_packed(self, firsts: I64, spread: float = 1.0) -> I64:
        """The parameter of every packed entry, ``spread`` times as large, rounded up."""
        stds = np.full(linalg.packed_size(firsts), _times(self.gram_steps, spread), dtype=np.int64)
        stds[linalg.diagonal(firsts)] = _times(self.diagonal_steps, spread)
        stds[-firsts.size :] = _times(self.moment_steps, spread)
        return stds

    def draw(self, source: NoiseSource, firsts: I64, count: int) -> I64:
        """Independent noise for ``count`` nodes, in whole steps, a packed node a row."""
        return sampler.draw(source, self.parameters_packed(firsts), count)

    def describe(self, setting: Setting) -> dict[str, float]:
        """The same figures as for the continuous noise."""
        return self.continuous.describe(setting)


class Use(NamedTuple):
    """What noise is for: all that decides how much of it there must be, and on which grid."""

    setting: Setting
    schedule: Schedule
    strategy: Strategy
    privacy: Privacy

    @property
    def releases(self) -> int:
        """How many releases there can be, at least one."""
        return max(1, self.schedule.count(self.setting.horizon))

    @property
    def draws(self) -> int:
        """No more draws than this are ever shown."""
        return most_draws(
            self.setting.problem,
            strategy=self.strategy,
            releases=self.releases,
            protects=self.privacy.protects,
        )

    @property
    def feedback(self) -> feedback.Feedback | None:
        """How the strategy makes noise of earlier noise."""
        return self.strategy.feedback(self.releases)

    @property
    def rows(self) -> int:
        """How many rows may come together in one 64-bit sum: all in a tree, otherwise a batch."""
        if self.strategy.nodes_hold_sums:
            return self.setting.horizon
        return self.schedule.largest_batch(self.setting.horizon)


def checked(noise: str) -> str:
    """How noise is drawn, 'exact' or 'float', if it is one of these."""
    return checks.one_of("noise", noise, ("exact", "float"))


def drawn(law: NodeNoise, noise: str, use: Use) -> NodeNoise:
    """A law as it is drawn: 'float' leaves it as it is, 'exact' makes it `discrete`."""
    return law if checked(noise) == "float" else discrete(law, use)


def argument(reason: str, noise: str) -> str:
    """Why the guarantee holds for noise drawn in this way."""
    return reason if noise == "float" else f"{reason}; {_ARGUMENT}"


def discrete(noise: NodeNoise, use: Use) -> DiscreteGaussianNoise:
    """The same noise in whole steps of the finest grid that fits, a trace larger if need be."""
    if not isinstance(noise, GaussianNoise):
        raise ParameterError(
            "noise",
            f"is 'exact', but {noise.family} noise has no exact sampler; pass noise='float', or "
            "use another variant",
        )
    for bits in range(FINEST, COARSEST - 1, -1):
        found = _scaled(noise, Grid.of(use.setting.problem, bits), 1.0)
        if found is not None and _holds(found, use):
            return _certified(noise, found, use)
    raise _too_long(noise, use)


def _certified(
    noise: GaussianNoise, found: DiscreteGaussianNoise, use: Use
) -> DiscreteGaussianNoise:
    """Enlarge the noise until the accounting of the discrete Gaussian meets the target."""
    least = least_draw(found, strategy=use.strategy, releases=use.releases)
    budget = accounting.discrete_gaussian_mu(use.privacy, draws=use.draws, std=least)
    for margin in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6):
        cost = _cost(found, use)
        if cost <= budget:
            return found
        larger = cost / budget * (1.0 + margin)
        enlarged = _scaled(noise, found.grid, max(1.0, larger * _size(found) / _size(noise)))
        if enlarged is None or not _holds(enlarged, use):
            break
        found = enlarged
    raise ParameterError(
        "privacy",
        "cannot be met by discrete Gaussian noise; pass noise='float', or ask for more epsilon",
    )


def _cost(law: DiscreteGaussianNoise, use: Use) -> float:
    return total_cost(
        law,
        use.setting.problem,
        schedule=use.schedule,
        strategy=use.strategy,
        releases=use.releases,
        neighbours=use.privacy.neighbours,
        contributions=use.privacy.contributions_per_user,
        protects=use.privacy.protects,
    )


def _size(noise: GaussianNoise | DiscreteGaussianNoise) -> float:
    """The deviation that noise is scaled by: the Gram matrix's, if it has noise."""
    return noise.std or noise.moment_std


def _scaled(noise: GaussianNoise, grid: Grid, scale: float) -> DiscreteGaussianNoise | None:
    """At least ``scale`` times the noise, in whole steps; None if that is too large to draw."""
    gram = math.ceil(accounting.upwards(noise.std * scale) / grid.gram_step) if noise.std else 0
    moment = math.ceil(accounting.upwards(noise.moment_std * scale) / grid.moment_step)
    if 2 * max(gram, moment) > LARGEST_STD:
        return None
    return DiscreteGaussianNoise(gram_steps=gram, moment_steps=moment, grid=grid)


def _holds(found: DiscreteGaussianNoise, use: Use) -> bool:
    """Whether all draws can be made, and no sum can overflow."""
    return _can_be_drawn(found, use) and _fitting(found, use) >= use.rows


def _can_be_drawn(found: DiscreteGaussianNoise, use: Use) -> bool:
    """Whether every draw is small enough for the sampler, also where a strategy enlarges it."""
    shared = use.feedback
    return shared is None or found.most_steps * shared.widest * (1 + 1e-9) < LARGEST_STD


def _fitting(found: DiscreteGaussianNoise, use: Use) -> int:
    """How many rows fit into a 64-bit sum, next to the largest noise there can be."""
    levels = use.strategy.sharing(use.releases).levels
    # A total is a sum of what each level shows. Twice that, for good measure.
    noise = 4 * levels * REACH * found.most_steps
    return int(max(0, ROOM - noise)) // found.grid.largest_row(use.setting.problem)


def _too_long(noise: GaussianNoise, use: Use) -> ParameterError:
    found = _scaled(noise, Grid.of(use.setting.problem, COARSEST), 1.0)
    fits = 0 if found is None or not _can_be_drawn(found, use) else _fitting(found, use)
    if not fits:
        return ParameterError(
            "privacy",
            "asks for more noise than whole numbers hold; pass noise='float', or ask for more "
            "epsilon",
        )
    if not use.strategy.nodes_hold_sums:
        return ParameterError(
            "schedule",
            f"has batches of more than {fits:,} rows, whose sums could overflow; give a schedule "
            "with smaller ones, or pass noise='float'",
        )
    return ParameterError(
        "horizon",
        f"is {use.setting.horizon:,}, in which whole-number sums could overflow; give one of at "
        f"most {fits:,}, or pass noise='float'",
    )


def _times(steps: int, spread: float) -> int:
    if spread == 1.0 or steps == 0:
        return steps
    return math.ceil(accounting.upwards(steps * spread))
