"""How soon a learner chooses better than chance: what public numbers say before there is any data.

The posterior's mean is the truth seen through noise whose size is known at every release
(docs/estimate.md). How near its direction is to the parameter's says how often the best action of
a decision set has the highest score; the actions that are chosen then say how much the next rows
tell about the parameter. This is followed from release to release, on averages: no data and no
random numbers. Derivation, and how it compares with simulations: docs/prospects.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import ndtr

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _posterior as posterior
from discreet.kernels import _schedule as schedule
from discreet.kernels import _windows as windows
from discreet.mechanism.strategies import Windows

if TYPE_CHECKING:
    from discreet.mechanism._mechanism import Mechanism

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

ACTIONS = 25  # in a decision set, unless stated
BEST = 0.75  # the best action's mean reward, as a share of the largest there can be
HALF = 0.5  # of what the best choices gain over chance
MOST_ROWS = 10**12  # more are not looked at
_MOST_RELEASES = 10**7
_RATIO = 0.02  # by how much rows grow between the releases that are looked at, at least
_REACHES = (10**6, MOST_ROWS)  # how far to look: first not far, because most answers are near
_NODES, _WEIGHTS = hermegauss(81)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_LINE = np.linspace(-9.0, 9.0, 2001)


@dataclass(frozen=True)
class Choices:
    """Decision sets of a kind: one action is best, and the others point anywhere.

    All actions are as long as they may be. The best has the cosine ``best`` with the parameter;
    the others are uniform on the part of the sphere where theirs is within plus or minus that.

    Attributes:
        dim: features of an action.
        n_actions: actions in a set.
        best: the cosine.
    """

    dim: int
    n_actions: int = ACTIONS
    best: float = BEST

    def __post_init__(self) -> None:
        """Check the numbers."""
        checks.count("n_actions", self.n_actions, least=2)
        if not 0.0 < checks.finite("best", self.best) <= 1.0:
            raise ParameterError("best", f"is {self.best:g}; give a number above 0, at most 1")

    @cached_property
    def others(self) -> float:
        """The mean squared cosine of the other actions with the parameter."""
        reach = self.best * math.sqrt(self.dim)  # a cosine is about normal with variance 1/d
        density = math.exp(-0.5 * reach**2) / math.sqrt(2 * math.pi)
        return (1 - 2 * reach * density / float(2 * ndtr(reach) - 1)) / self.dim

    @property
    def uniform(self) -> float:
        """The mean squared cosine of an action that is chosen at random with the parameter."""
        return (self.best**2 + (self.n_actions - 1) * self.others) / self.n_actions

    @cached_property
    def _largest(self) -> tuple[float, float]:
        """The mean of the largest of K - 1 standard normals, and of its square."""
        count = self.n_actions - 1
        density = np.exp(-0.5 * _LINE**2) * ndtr(_LINE) ** (count - 1)
        density /= density.sum()
        return float(density @ _LINE), float(density @ _LINE**2)

    def made(self, cosine: float) -> tuple[float, float]:
        """What comes of choosing the highest score along a direction.

        Args:
            cosine: of that direction with the parameter.

        Returns:
            The gain over chance, as a share of what the best choices gain, and the mean squared
            cosine of the chosen actions with the parameter.
        """
        across = (1 - cosine**2) / max(1, self.dim - 1)  # what is not along the parameter
        spread = math.sqrt(cosine**2 * self.others + (1 - self.others) * across)
        own = cosine * self.best + math.sqrt((1 - self.best**2) * across) * _NODES
        found = float(_WEIGHTS @ ndtr(own / spread) ** (self.n_actions - 1))
        slope = cosine * self.others / spread  # of another action's cosine, in its score
        mean, square = self._largest
        other = min(self.best, slope * mean)
        other_square = min(self.best**2, self.others + slope**2 * (square - 1))
        chance = self.best / self.n_actions
        gain = (found * self.best + (1 - found) * other - chance) / (self.best - chance)
        return gain, found * self.best**2 + (1 - found) * other_square


def half_gain_rows(mechanism: "Mechanism", choices: Choices) -> int | None:
    """After about how many rows choices gain half of what the best choices gain over chance.

    Args:
        mechanism: the noise, the bounds and the release times; its noise must have a known law.
        choices: what decision sets are like.

    Returns:
        The number of rows, that of a release; None if it is beyond `MOST_ROWS`.
    """
    for reach in _REACHES:
        for rows, gain in _followed(mechanism, choices, reach):
            if gain >= HALF:
                return rows
    return None


def _followed(mechanism: "Mechanism", choices: Choices, reach: int) -> Iterator[tuple[int, float]]:
    """From release to release: rows, and the gain of choices from there on."""
    numbers, rows = _milestones(mechanism, reach)
    square = mechanism.setting.problem.action_norm**2
    before, total, now = 0, 0.0, choices.uniform
    for at, (spread, weight) in enumerate(zip(*amounts_at(mechanism, numbers, rows), strict=True)):
        held = int(rows[at])
        total += now * (held - before)
        information = float(weight) * square
        cosine = _cosine(mechanism, float(spread), information, total / held)
        gain, now = choices.made(cosine) if cosine > 0.0 else (0.0, choices.uniform)
        yield held, gain
        before = held


def _milestones(mechanism: "Mechanism", reach: int) -> tuple[I64, I64]:
    """Numbers and rows of the releases that are looked at."""
    timing = mechanism.schedule.timing
    room = 2 + int(math.log(max(2.0, reach / timing.start)) / math.log1p(_RATIO))
    numbers, rows = np.empty(room, np.int64), np.empty(room, np.int64)
    count = schedule.milestones(timing, _RATIO, _MOST_RELEASES, numbers, rows)
    kept = int(np.searchsorted(rows[:count], reach, side="right"))
    return numbers[:kept], rows[:kept]


def amounts_at(mechanism: "Mechanism", numbers: I64, rows: I64) -> tuple[F64, F64]:
    """How much noise releases hold, in multiples of one draw, and what their rows weigh.

    Noise after the horizon is taken to be as large as at its end.
    """
    strategy = mechanism.strategy
    if strategy is None or not len(numbers):
        return np.zeros(len(numbers)), rows.astype(np.float64)
    if isinstance(strategy, Windows):
        figures = strategy.figures(numbers)
        return figures[:, windows.SPREAD], figures[:, windows.WEIGHT]
    known, spreads = mechanism.spreads
    places = np.searchsorted(known, numbers).clip(max=len(known) - 1)
    return spreads[places], rows.astype(np.float64)


def _cosine(mechanism: "Mechanism", spread: float, information: float, share: float) -> float:
    """The cosine of the posterior's tilted mean with the parameter; 0 if choices are uniform.

    Args:
        mechanism: the noise and the bounds.
        spread: the noise in the release, in multiples of one draw.
        information: the sum of squared lengths of its actions.
        share: which share of that is along the parameter.
    """
    known, problem, law = mechanism.posterior_terms, mechanism.setting.problem, mechanism.law
    dim, variance = problem.dim, known.variance
    noise = posterior.Noise(spread * law.scale, spread * law.moment_scale, 0.0)
    floors = [posterior.floor_of(noise, known, known.prior, size) for size in problem.blocks]
    floor = float(np.average(floors, weights=problem.blocks))
    length = min(problem.theta_norm, problem.reward_bound / problem.action_norm)
    along, level = share * information, information / dim
    signal = (along * length) ** 2
    scatter = variance * information + dim * floor  # of the moment, in all directions together
    weight = level / (variance * level + floor)  # of the moment, over the posterior's precision
    gained = known.prior * weight * level
    if posterior.uniform_share(0.0, np.array([known.prior, posterior.share_known(gained)])) == 1.0:
        return 0.0
    # The tilt has deviation DITHER / (precision sqrt(prior)) in each direction, and the mean is
    # weight / precision times the moment.
    tilt = dim * posterior.DITHER**2 / (known.prior * weight**2)
    return math.sqrt(signal / (signal + scatter + tilt))
