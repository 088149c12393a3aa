"""`UCB1` and its private relative `DPUCB`: the arm with the largest upper confidence bound."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.baselines.arms._learner import ArmLearner, ArmSettings, checked_epsilon
from discreet.kernels import _pulls as kernels
from discreet.mechanism.noise.sources import NoiseSource
from discreet.simulation import _interruptible as interruptible

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

_MOST_NODES = 64
_SENSITIVITY = 2.0  # how far one reward in [-1, 1] can move a sum


def laplace_sum_width(terms: int, log_inverse_prob: float) -> float:
    """X such that a sum of ``terms`` standard Laplace numbers exceeds x with probability <= p.

    Chernoff's bound: for 0 < v < 1, E exp(v sum) = (1 - v^2)^(-terms), so the probability is at
    most exp(-v x) (1 - v^2)^(-terms). The best v is (sqrt(q^2 + x^2) - q) / x with q = terms, and
    x solves v x + q ln(1 - v^2) = ln(1/p).
    """

    def excess(x: float) -> float:
        v = x / (math.hypot(terms, x) + terms)
        return v * x + terms * math.log1p(-v * v) - log_inverse_prob

    # v >= 1/2 once x >= 4q/3; from there the exponent grows by at least 1/2 with every unit of x.
    upper = 2.0 * (terms + log_inverse_prob)
    while excess(upper) < 0.0:
        upper *= 2.0
    from scipy.optimize import brentq  # noqa: PLC0415  # slow to import

    return float(brentq(excess, 1e-12, upper, xtol=1e-9, rtol=1e-12))


@dataclass(frozen=True, kw_only=True)
class UpperConfidence(ArmSettings):
    """The rule of `UCB1` (no epsilon) and `DPUCB`.

    Attributes:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
        epsilon: the privacy target; None for none.
    """

    epsilon: float | None = None

    no_noise = "UCB1 adds no noise"

    @property
    def levels(self) -> int:
        """Levels of each arm's tree: as many as the horizon has binary digits."""
        return 0 if self.epsilon is None else self.horizon.bit_length()

    @property
    def noise_scale(self) -> float:
        """The Laplace scale of one node: the sensitivity times the levels, over epsilon."""
        return 0.0 if self.epsilon is None else _SENSITIVITY * self.levels / self.epsilon

    @cached_property
    def widths(self) -> F64:
        """By how many nodes stand: a bound on their noise that fails with probability 1/n^2."""
        if self.epsilon is None:
            return np.zeros(_MOST_NODES)
        level = 2.0 * math.log(self.horizon)
        terms = range(1, self.levels + 1)
        widths = [0.0, *(self.noise_scale * laplace_sum_width(q, level) for q in terms)]
        return np.pad(widths, (0, _MOST_NODES - len(widths)), mode="edge")

    def _why(self) -> str:
        return (
            "Laplace noise on every node of a binary tree over each arm's rewards; a reward "
            f"is in one tree and in at most {self.levels} of its nodes, and moves each by at "
            "most 2; arms are named from noisy nodes alone"
        )

    def play(
        self, means: F64, reward_state: U64, noise_state: U64, checkpoints: I64, pulls: I64
    ) -> None:
        """Play to the last checkpoint, for rewards of plus or minus one.

        Args:
            means: mean reward of each arm, shape (n_arms,).
            reward_state: state of the generator of the rewards; moved on.
            noise_state: state of the generator of the noise; moved on.
            checkpoints: rounds at which pulls are recorded, growing, shape (C,).
            pulls: filled with the pulls of each arm so far, shape (C, n_arms).
        """
        interruptible.call(
            kernels.play,
            means,
            self.widths,
            self.levels,
            self.noise_scale,
            self.horizon,
            reward_state,
            noise_state,
            rounds=int(checkpoints[-1]),
            checkpoints=checkpoints,
            records=pulls,
        )


class _UpperConfidenceLearner(ArmLearner):
    """A board of indices that is brought up to date with every reward."""

    def __init__(self, rule: UpperConfidence, noise_source: NoiseSource | None) -> None:
        """Draw the first noise of every tree."""
        super().__init__(rule, noise_source)
        self._widths, self._scale, self._levels = rule.widths, rule.noise_scale, rule.levels
        self._board = kernels.empty_board(rule.n_arms, rule.levels)
        first = self._normals(kernels.PER_DRAW * rule.levels * rule.n_arms)
        kernels.begin(self._board, rule.levels, rule.noise_scale, first, 0)
        self._stock, self._at = np.empty(kernels.STOCK), kernels.STOCK

    @property
    def pulls(self) -> I64:
        """How often each arm was pulled, shape (n_arms,)."""
        return self._board[:, kernels.PULLS].astype(np.int64)

    @property
    def released_means(self) -> F64:
        """The mean of each arm's released sum, shape (n_arms,); NaN for arms not pulled yet.

        All sums ever released are covered by the guarantee, and arms are named from them alone.
        """
        return np.asarray(kernels.released_means(self._board))

    def _chosen(self) -> int:
        return int(kernels.choose(self._board, kernels.growth(self._rounds)))

    def _take(self, arm: int, reward: float) -> None:
        if self._at > kernels.STOCK - kernels.PER_DRAW * self._levels:
            self._stock, self._at = self._normals(kernels.STOCK), 0
        self._at = kernels.learn(
            self._board,
            self._widths,
            arm,
            reward,
            self.horizon,
            self._scale,
            self._stock,
            self._at,
        )

    def _normals(self, count: int) -> F64:
        return np.empty(0) if count == 0 else np.ascontiguousarray(self._source.normals(count))


class UCB1(_UpperConfidenceLearner):
    """UCB1 of Auer, Cesa-Bianchi & Fischer (2002), for rewards in [-1, 1]. It promises nothing.

    The index of an arm is its mean reward plus sqrt(8 ln t / N): their sqrt(2 ln t / N) for
    rewards in [0, 1], on a scale twice as wide.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
    """

    def __init__(self, *, n_arms: int, horizon: int) -> None:
        """Start with nothing pulled."""
        super().__init__(UpperConfidence(n_arms=n_arms, horizon=horizon), None)


class DPUCB(_UpperConfidenceLearner):
    """UCB1 on noisy sums from binary trees; epsilon-differentially private, with delta 0.

    After Mishra & Thakurta (2015) and Tossou & Dimitrakakis (2016): each arm has a tree of its
    own over its own rewards, with Laplace noise of scale 2m/epsilon on every node, m the number
    of binary digits of the horizon. The index is UCB1's with the noisy sum, plus a bound on the
    noise of the nodes that stand, over N.

    Guarantee. Neighbours: one person's reward is replaced by another in [-1, 1] (in the table of
    all rewards: the rewards of one round). Assumption: the noise is secret. Argument: write down
    all noisy nodes in the order in which they are finished. The arms named so far are a function
    of the nodes so far; so, given the same earlier nodes, both neighbours have the same arms in
    the same places, and differ in one reward of one arm's tree. That reward is in at most one node
    of each level; a level of 2^j > n rewards is never finished; so at most m nodes differ, each by
    at most 2. The densities of each of them differ by a factor of at most exp(2 / (2m/epsilon)),
    all of them together by e^epsilon, and the arms are a function of the nodes.

    The bound on the noise fails with probability at most 1/n^2 on either side (Chernoff, see
    `laplace_sum_width`), so with probability 1 - 2/n it never fails in the n sums of an arm. A
    failure costs at most 2n, hence at most 4 in expectation for each arm; the other steps of
    UCB1's proof go through with an index that is wider by twice the bound over N. The papers'
    widths have other constants; this one counts the nodes that stand.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
        epsilon: the privacy target.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    def __init__(
        self, *, n_arms: int, horizon: int, epsilon: float, noise_source: NoiseSource | None = None
    ) -> None:
        """Calibrate the noise and draw its first values."""
        epsilon = checked_epsilon(epsilon)
        rule = UpperConfidence(n_arms=n_arms, horizon=horizon, epsilon=epsilon)
        super().__init__(rule, noise_source)
