"""`CoreSetElimination`: phases of pulls of a core set, for one decision set that stays."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.baselines.linear import _design as design
from discreet.baselines.linear._learner import CENTRAL, MARGIN, REWARDS, checked_target
from discreet.errors import ParameterError
from discreet.kernels import _arms as arms
from discreet.kernels import _fixed_pulls as pulls
from discreet.kernels import _random as random
from discreet.kernels._pulls import GRID, PER_DRAW, noise
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem
from discreet.simulation import _interruptible as interruptible
from discreet.simulation.environments import World

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

_STEEPEST = 0.5  # of (v c)^2 in the bound on a sum of Laplace numbers
_LOG_SLOPE = 2 * math.log(2)  # -ln(1 - y) <= this times y, for y up to 1/2


@dataclass(frozen=True, kw_only=True)
class CoreSetElimination:
    """Elimination on a core set, for one public decision set that stays; protects rewards, delta 0.

    After Hanna, Girgis, Fragouli and Diggavi ("Differentially private stochastic linear bandits:
    (almost) for free", arXiv:2207.03445). Phase i plays the few actions of a G-optimal design of
    those that remain, about q^i times in all with q = (2T)^(1/ln T). Each action's sum of rewards
    in the phase gets Laplace noise; least squares on the noisy sums estimates every action's mean;
    actions that are certainly not best are dropped, and the phase is forgotten.

    Guarantee. Neighbours: one person's reward is replaced. Assumption: the noise is secret and the
    decision set public. Argument: given what was shown before, both neighbours play the same
    actions, so they differ in one sum of one phase, by at most 2 B, which Laplace noise of scale 2
    B / epsilon hides up to e^epsilon. That is pure privacy: delta is 0 whatever the target allows.

    What is ours: the widths. The paper's are stated up to constants as we know them; here an action
    is dropped if its upper bound is below somebody's lower bound, where the bounds are those of
    sub-Gaussian rewards and of weighted sums of Laplace numbers (Chernoff), at every action by
    itself.

    Attributes:
        problem: the stated bounds.
        horizon: the most rounds there will be.
        privacy: the target; its delta is not used.
        failure_prob: the chance that the best action is dropped; 1/horizon if left out.
    """

    problem: Problem
    horizon: int
    privacy: Privacy
    failure_prob: float = None  # type: ignore[assignment]  # 1/horizon if left out
    protects = REWARDS
    trust = CENTRAL

    def __post_init__(self) -> None:
        """Check the sizes and the targets."""
        fix = object.__setattr__
        fix(self, "horizon", checks.count("horizon", self.horizon, least=2))
        checked_target(self.privacy, REWARDS)
        given: float | None = self.failure_prob
        alpha = 1.0 / self.horizon if given is None else given
        fix(self, "failure_prob", checks.probability("failure_prob", alpha))

    @property
    def noise_scale(self) -> float:
        """The Laplace scale of the noise on one action's sum: 2 B / epsilon, and a little more.

        Rewards and noise are rounded to multiples of `unit` / 2^20.
        """
        return MARGIN * 2 * self.problem.reward_bound / self.privacy.epsilon

    @property
    def unit(self) -> float:
        """The largest power of two up to the bound on rewards."""
        return float(2.0 ** math.floor(math.log2(self.problem.reward_bound)))

    @property
    def ratio(self) -> float:
        """How many times as many pulls a phase has as the one before: q."""
        return float((2 * self.horizon) ** (1 / math.log(self.horizon)))

    @property
    def guarantee(self) -> Guarantee:
        """Pure differential privacy of the rewards."""
        met = Guarantee.meeting(
            self.privacy,
            "the decision set is public and stays; a reward is in one action's sum of one phase, "
            "moves it by at most 2 B, and the sum has Laplace noise of scale 2 B / epsilon; what "
            "is played follows from noisy sums alone",
        )
        return replace(met, delta=0.0)

    def steps(self) -> "CoreSetSteps":
        """A learner's memory before its first row."""
        return CoreSetSteps(self)

    def play(
        self,
        world: World,
        noise_state: U64,
        policy_state: U64,  # noqa: ARG002  # this rule draws nothing else
        checkpoints: I64,
        regrets: F64,
    ) -> None:
        """Play to the last checkpoint with a new learner.

        Args:
            world: where, with a decision set that stays; moved on.
            noise_state: state of the generator of the noise; moved on.
            policy_state: not used.
            checkpoints: rounds at which the regret is recorded, growing, shape (C,).
            regrets: filled with the pseudo-regret so far, shape (C,).

        Raises:
            ParameterError: if decision sets change from round to round.
        """
        arrays = world.arrays
        if arrays.kind != arms.SAME:
            raise ParameterError(
                "environment",
                "has decision sets that change; core-set elimination is for one that stays, so "
                "play it in fixed or basis",
            )
        steps = CoreSetSteps(self)
        steps.begin(np.ascontiguousarray(arrays.actions.T))
        counts, regret = np.zeros(2, np.int64), np.zeros(1)
        so_far = (counts, regret)
        while counts[pulls.RECORDED] < checkpoints.size:
            if steps.stock():
                normals = np.empty(steps.stock())
                random.fill_normals(noise_state, normals)
                steps.refill(normals)
            arm, left = steps.current()
            most = min(left, self.horizon)
            total = interruptible.call(
                pulls.pull,
                arrays,
                world.state,
                arm,
                most,
                *so_far,
                rounds=most,
                checkpoints=checkpoints,
                records=regrets,
            )
            if counts[pulls.RECORDED] < checkpoints.size:
                steps.add(total, left)


class CoreSetSteps:
    """The memory of a learner that eliminates: the phase, its sums, and the actions that remain."""

    def __init__(self, rule: CoreSetElimination) -> None:
        """Nothing is known, not even the decision set."""
        self._rule = rule
        self._actions: F64 | None = None
        self._normals: F64 | None = None
        self._estimates = np.empty(0)
        self._phase = 0
        self._alive = np.arange(0)

    @property
    def released(self) -> F64:
        """The noisy sums of the last phase that ended, by action; zeros before."""
        return self._estimates

    @property
    def remaining(self) -> tuple[int, ...]:
        """The places of the actions that have not been dropped."""
        return tuple(int(place) for place in self._alive)

    def begin(self, actions: F64) -> None:
        """Start with a decision set, shape (K, d).

        Raises:
            ParameterError: if all actions are zeros; then nothing has begun.
        """
        if not actions.any():
            raise ParameterError(
                "actions", "are all zeros, so no reward tells them apart; give one that is not"
            )
        self._next_phase(actions, np.arange(len(actions)))
        self._actions = actions.copy()
        self._estimates = np.zeros(len(actions))

    def normals_to_choose(self) -> int:
        """How many standard normals a choice takes: none."""
        return 0

    def choose(self, actions: F64, normals: F64) -> int:  # noqa: ARG002  # nothing is drawn
        """The place of the action whose turn it is."""
        if self._actions is None:
            self.begin(actions)
        elif actions.shape != self._actions.shape or (actions != self._actions).any():
            raise ParameterError(
                "actions",
                "is not the decision set of the first round; core-set elimination is for one that "
                "stays, so pass the same one or use another rule",
            )
        return self.current()[0]

    def stock(self) -> int:
        """The noise of one phase: four normals for each action, until it is used."""
        if self._actions is None or self._normals is not None or len(self._alive) == 1:
            return 0
        return PER_DRAW * len(self._actions)

    def refill(self, normals: F64) -> None:
        """Take in the normals for this phase's noise."""
        self._normals = normals

    def learn(self, action: F64, reward: float) -> None:  # noqa: ARG002  # its turn is known
        """Take in the reward of the action whose turn it is."""
        grid = self._rule.unit * GRID
        self.add(grid * round(reward / grid), 1)

    def current(self) -> tuple[int, int]:
        """Whose turn it is, and for how many rounds still."""
        if len(self._alive) == 1:
            return int(self._alive[0]), self._rule.horizon
        return int(np.argmax(self._left > 0)), int(self._left[np.argmax(self._left > 0)])

    def add(self, total: float, count: int) -> None:
        """Take in the rewards of ``count`` rounds of the action whose turn it is.

        Raises:
            ParameterError: if the noise of this phase was not handed in: sums would be shown as
                they are.
        """
        self._known_actions()
        if len(self._alive) == 1:
            return  # nothing is left to decide, so nothing is remembered
        if self._normals is None or len(self._normals) < PER_DRAW * len(self._sums):
            raise ParameterError(
                "normals", "for the noise of this phase are missing; hand in `stock` of them first"
            )
        arm = self.current()[0]
        self._sums[arm] += total
        self._left[arm] -= count
        if not self._left.any():
            self._end_phase(self._normals)

    def _next_phase(self, actions: F64, alive: I64) -> None:
        """Plan a phase for the actions at these places, and move on to it if that worked."""
        if not actions[alive].any():
            alive = alive[:1]  # all that remain are zeros, hence alike
        left = np.zeros(len(actions), np.int64)
        if len(alive) > 1:
            found = design.g_optimal(actions[alive])
            wanted = np.ceil(found.weights * self._rule.ratio ** (self._phase + 1))
            left[alive] = wanted.astype(np.int64)
            self._points, self._wanted = found.coordinates, left[alive]
        self._alive, self._left, self._sums = alive, left, np.zeros(len(actions))
        self._phase += 1

    def _end_phase(self, normals: F64) -> None:
        """Release the sums, estimate every action's mean, and drop those that cannot be best."""
        played = self._wanted > 0
        unit, scale = self._rule.unit, self._rule.noise_scale
        noisy = self._sums.copy()
        for place, arm in enumerate(self._alive):
            if played[place]:
                noisy[arm] += unit * noise(normals, PER_DRAW * int(arm), scale / unit)
        self._normals = None  # used, whatever comes next
        points, pulled = self._points, self._wanted.astype(float)
        gram = (points * pulled[:, None]).T @ points
        lifted = np.linalg.solve(gram, points.T).T  # row x is V^-1 x
        means = lifted @ (points.T @ noisy[self._alive])
        widths = self._widths(lifted, points)
        kept = self._alive[means + widths >= (means - widths).max()]
        self._next_phase(self._known_actions(), kept)
        self._estimates = noisy

    def _widths(self, lifted: F64, points: F64) -> F64:
        """How far an estimate may be off, for each action that remains."""
        rule = self._rule
        failing = 4 * len(self._known_actions()) * self._phase * (self._phase + 1)
        level = math.log(failing / rule.failure_prob)
        squares = (lifted * points).sum(axis=1)
        sampling = rule.problem.reward_subgaussian * np.sqrt(2 * level * squares)
        shares = (lifted @ points.T)[:, self._wanted > 0]
        return np.asarray(sampling + rule.noise_scale * laplace_width(shares, level))

    def _known_actions(self) -> F64:
        if self._actions is None:
            raise ParameterError("actions", "are not known yet; choose first")
        return self._actions


def laplace_width(weights: F64, level: float) -> F64:
    """X that a weighted sum of standard Laplace numbers exceeds with probability <= e^-level.

    Chernoff: ln E exp(v sum) = -sum ln(1 - v^2 c^2) <= 2 ln 2 v^2 sum c^2 for v^2 c^2 <= 1/2; so
    the probability is at most e^-level at x = (level + 2 ln 2 v^2 sum c^2) / v, for every such v.

    Args:
        weights: c, one sum a row, shape (n, m).
        level: minus the logarithm of the probability.

    Returns:
        The widths, shape (n,), 0 for a sum of zeros.
    """
    squares = (weights**2).sum(axis=1)
    largest = np.abs(weights).max(axis=1)
    found = np.zeros(len(weights))
    some = largest > 0
    best = np.sqrt(level / (_LOG_SLOPE * squares[some]))
    slopes = np.minimum(best, math.sqrt(_STEEPEST) / largest[some])
    found[some] = (level + _LOG_SLOPE * slopes**2 * squares[some]) / slopes
    return found
