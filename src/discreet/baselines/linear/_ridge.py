"""Rules that are private ridge regression: what turns a target and a problem into compiled numbers.

`RidgeRule` is everything that AdaC-OFUL, batched Thompson sampling, rare switching on a tree, and
the local and shuffled learners have in common. Each says in a module of its own where noise is
added, how much, and why that keeps the promise.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.baselines.linear._learner import CENTRAL, checked_target
from discreet.errors import ParameterError
from discreet.kernels import _ridge as kernels
from discreet.kernels._noise import Noise
from discreet.kernels._schedule import NEVER, Timing
from discreet.mechanism import _tails as tails
from discreet.privacy import Privacy
from discreet.problem import Problem
from discreet.simulation import _interruptible as interruptible
from discreet.simulation.environments import World

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

RIDGE = 1.0  # the regularizer of the paper's non-private learner
GRID = 2.0**-24  # the steps that rows and noise are rounded to, for bounds of 1
MOST_ROWS = 26 * 10**7  # of at most 2^25 steps each: below 2^53, with room for noise
MOST_FEATURES = 200  # with more of them, rounding would use up the margin of the noise
_SHARES = 4.0  # equal ones of failure_prob: rewards, the moment's noise, two ends of a spectrum


def every(rows: int) -> Timing:
    """A renewal after every so many rows."""
    return Timing(rows, float(NEVER), float(NEVER), float(rows))


def doubling(first: int) -> Timing:
    """Renewals after ``first`` rows, and whenever there are twice as many."""
    return Timing(first, 1.0, float(NEVER), float(NEVER))


class RidgeSteps:
    """The memory of a learner that plays by private ridge regression."""

    def __init__(self, spec: kernels.RidgeSpec, dim: int) -> None:
        """Start with room for everything. The first noise comes with `refill`."""
        self._spec = spec
        self._state = kernels.empty(dim, spec.levels)
        self._normals = np.empty(kernels.stock_size(spec, self._state))
        self._room = self._normals.size - int(kernels.most_normals(spec, self._state))
        self._at: int | None = None  # nothing is in stock

    @property
    def released(self) -> F64:
        """The noisy sums: the Gram matrix, packed, and the moment."""
        return self._state.shown

    @property
    def radius(self) -> float:
        """The radius of the confidence set that choices are made from."""
        return float(self._state.figures[kernels.BONUS])

    @property
    def renewals(self) -> int:
        """How often the estimate was renewed."""
        return int(self._state.counts[kernels.RENEWALS])

    def normals_to_choose(self) -> int:
        """Two for each feature, where a choice is random."""
        return 2 * self._state.weights.size * bool(kernels.undecided(self._spec, self._state))

    def choose(self, actions: F64, normals: F64) -> int:
        """The place of the action to take."""
        columns, scores = np.ascontiguousarray(actions.T), np.empty(len(actions))
        return int(kernels.choose(self._spec, self._state, columns, 0, normals, scores))

    def stock(self) -> int:
        """All of it, once what is left would not do for another row."""
        return 0 if self._at is not None and self._at <= self._room else self._normals.size

    def refill(self, normals: F64) -> None:
        """Take new normals; the first ones also start a tree."""
        self._normals = normals
        first = self._at is None
        self._at = int(kernels.begin(self._spec, self._state, normals)) if first else 0

    def learn(self, action: F64, reward: float) -> None:
        """Take in a row."""
        at = self._at or 0
        self._at = int(kernels.learn(self._spec, self._state, action, reward, self._normals, at))


class RidgePlay:
    """What plays by ridge regression in a simulated world, whether it is private or not."""

    @property
    def compiled(self) -> kernels.RidgeSpec:
        """The rule for the kernels. Each has its own."""
        raise NotImplementedError

    def play(
        self,
        world: World,
        noise_state: U64,
        policy_state: U64,
        checkpoints: I64,
        regrets: F64,
    ) -> None:
        """Play to the last checkpoint with a new learner.

        Args:
            world: where; moved on.
            noise_state: state of the generator of the noise; moved on.
            policy_state: state of the generator of the policy's draws; moved on.
            checkpoints: rounds at which the regret is recorded, growing, shape (C,).
            regrets: filled with the pseudo-regret so far, shape (C,).
        """
        spec, states = self.compiled, (noise_state, policy_state)
        state = kernels.empty(world.arrays.theta.size, spec.levels)
        interruptible.call(
            kernels.play,
            world.arrays,
            spec,
            state,
            world.state,
            *states,
            rounds=int(checkpoints[-1]),
            checkpoints=checkpoints,
            records=regrets,
        )


@dataclass(frozen=True, kw_only=True)
class RidgeRule(RidgePlay):
    """Settings that all private ridge rules share.

    Attributes:
        problem: the stated bounds.
        horizon: the most rounds there will be.
        privacy: the target, for replacement of one round.
        failure_prob: alpha, for all confidence statements together; 1/horizon if left out.
    """

    problem: Problem
    horizon: int
    privacy: Privacy
    failure_prob: float = None  # type: ignore[assignment]  # 1/horizon if left out

    def __post_init__(self) -> None:
        """Check the sizes and the targets."""
        fix = object.__setattr__
        if len(self.problem.blocks) != 1:
            raise ParameterError(
                "problem", "has blocks, which baselines do not know; leave them out"
            )
        fix(self, "horizon", checks.count("horizon", self.horizon))
        checks.within("horizon", self.horizon, 1, MOST_ROWS)
        checks.within("dim", self.problem.dim, 1, MOST_FEATURES)
        checked_target(self.privacy, self.protects)
        given: float | None = self.failure_prob
        alpha = 1.0 / max(2, self.horizon) if given is None else given
        fix(self, "failure_prob", checks.probability("failure_prob", alpha))

    @property
    def protects(self) -> str:
        """What is protected. Each rule has its own."""
        raise NotImplementedError

    def _spec(
        self,
        *,
        kind: int,
        gram_std: float,
        moment_std: float,
        timing: Timing,
        growth: float = 0.0,
        levels: int = 0,
        sampling: bool = False,
        regularizers: int = 1,
    ) -> kernels.RidgeSpec:
        """Everything that follows from the noise and from when estimates are renewed.

        The bound on rewards holds at all times together for one regularizer that stays, and is
        taken as often as there are ``regularizers``: those that grow with the number of draws
        are as many as the renewals. The noise is bounded at all of at most ``horizon`` renewals.
        All that can fail adds up to ``failure_prob``.

        A rule that samples has no confidence set, so that a bound on the noise is of no use to it.
        Its shift is a prior: the more of it there is, the closer to zero is all that is not known.
        With 2 sqrt(d) s for a noise of deviation s, what is not known is drawn with a deviation of
        about S / (2 sqrt(d)) at least. A matrix that is not positive definite then is lifted.
        """
        problem, alpha = self.problem, self.failure_prob
        log_tail = math.log(_SHARES * self.horizon / alpha)
        eigenvalue = float(tails.largest_eigenvalue(problem.dim, np.array(log_tail)))
        if sampling:  # twice that is the largest eigenvalue's usual size
            eigenvalue = math.sqrt(problem.dim)
        squares = moment_std**2 + (1 + 1 / problem.dim) * (problem.theta_norm * gram_std) ** 2
        return kernels.RidgeSpec(
            kind=kind,
            law=Noise(scale=gram_std, moment_scale=moment_std, dof=0.0),
            timing=timing,
            growth=growth,
            levels=levels,
            last=self.horizon,
            ridge=RIDGE,
            eigenvalue=eigenvalue if gram_std > 0.0 else 0.0,
            length=math.sqrt(problem.dim) + math.sqrt(2 * log_tail),
            noise_scale=problem.reward_subgaussian,
            log_offset=2 * math.log(_SHARES * regularizers / alpha),
            theta_norm=problem.theta_norm,
            gram_step=step(problem.action_norm**2),
            moment_step=step(problem.action_norm * problem.reward_bound),
            sampling=problem.reward_subgaussian if sampling else 0.0,
            spread=math.sqrt(squares),
        )

    def steps(self) -> RidgeSteps:
        """A learner's memory before its first row."""
        return RidgeSteps(self.compiled, self.problem.dim)


def step(bound: float) -> float:
    """A power of two, for entries up to a bound: 2^-24 for a bound of 1."""
    return GRID * 2.0 ** math.floor(math.log2(bound))


@dataclass(frozen=True, kw_only=True)
class GrowingRule(RidgeRule):
    """A rule that renews its estimate once the determinant of its matrix has grown enough.

    Attributes:
        growth: the factor by which the determinant grows between two estimates.
    """

    growth: float = 2.0
    trust = CENTRAL

    def __post_init__(self) -> None:
        """Check the factor too."""
        super().__post_init__()
        growth = checks.within("growth", checks.finite("growth", self.growth), 1.01, 1e6)
        object.__setattr__(self, "growth", growth)


def moment_std(problem: Problem, mu: float) -> float:
    """The noise that hides one reward in a sum of action times reward: 2 L B / mu.

    Replacing a reward y by y' moves the sum by (y - y') x, which is at most 2 B L long.
    """
    return 2 * problem.action_norm * problem.reward_bound / mu
