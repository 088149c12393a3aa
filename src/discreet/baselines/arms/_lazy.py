"""`AnytimeLazyUCB` and `LazyDPTS`: batches that double, each dropped after one release.

Sources: Hu, Huang & Mehta, "Near-Optimal Algorithms for Private Online Learning in a Stochastic
Environment" (2021, arXiv 2102.07929), for the UCB form; Hu & Hegde, "Near-Optimal Thompson
Sampling-based Algorithms for Differentially Private Stochastic Bandits", UAI 2022, for the other.
"""

from dataclasses import dataclass

from discreet.baselines.arms._learner import checked_epsilon
from discreet.baselines.arms._phases import PhasedLearner, PhasedRule
from discreet.kernels import _phases as kernels
from discreet.mechanism.noise.sources import NoiseSource

_EXPLORATION = 3.0


@dataclass(frozen=True, kw_only=True)
class LazyBatches(PhasedRule):
    """The rule of `AnytimeLazyUCB` and `LazyDPTS`.

    Attributes:
        epsilon: the privacy target.
        sampling: whether arms are chosen by a draw from a posterior; otherwise by an upper bound.
    """

    epsilon: float
    sampling: bool = False

    def __post_init__(self) -> None:
        """Check the sizes and the target."""
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        super().__post_init__()

    @property
    def compiled(self) -> kernels.Rule:
        """The rule as arguments of the compiled kernels."""
        return kernels.Rule(
            chooses=kernels.THOMPSON if self.sampling else kernels.OPTIMISTIC,
            epsilon=self.epsilon,
            noise_scale=self.noise_scale,
            exploration=_EXPLORATION,
            log_factor=1.0,
            first=1,
            growth=2.0,
            doubling=True,
            forgetting=True,
            staying=False,
        )


class AnytimeLazyUCB(PhasedLearner):
    """Anytime-Lazy-UCB of Hu, Huang & Mehta (2021); epsilon-differentially private, with delta 0.

    Batches of an arm have 1, 2, 4, 8, ... rewards. When one is full, its noisy mean takes the
    place of the older one and its rewards are dropped. In every round the arm with the largest
    index is pulled; with n rewards in the mean, on the scale of [0, 1], the index is

        mean + sqrt(3 ln t / 2n) + 3 ln t / (epsilon n).

    Guarantee: that of all batched rules (`baselines/arms/_phases.py`).

    Changed: rewards lie in [-1, 1] here, so the noise on a sum has scale 2/epsilon. The two widths
    were derived anew, because the printed constants could not be checked: each of them is exceeded
    with probability at most t^-3 (Hoeffding's bound, and the tail of Laplace noise), there are at
    most log2 t values of n in round t, and the sum over all rounds is finite, which is what the
    proof of a logarithmic regret needs.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm. Nothing depends on it.
        epsilon: the privacy target.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    def __init__(
        self, *, n_arms: int, horizon: int, epsilon: float, noise_source: NoiseSource | None = None
    ) -> None:
        """Start with nothing pulled."""
        super().__init__(LazyBatches(n_arms=n_arms, horizon=horizon, epsilon=epsilon), noise_source)


class LazyDPTS(PhasedLearner):
    """Lazy-DP-TS of Hu & Hegde (2022); epsilon-differentially private, with delta 0.

    The batches and the noise of `AnytimeLazyUCB`. In every round each arm draws a number from
    Beta(n m + 1, n (1 - m) + 1), where m is the noisy mean plus 3 ln t / (epsilon n), clipped to
    [0, 1], and the arm with the largest one is pulled. An arm without a release is pulled first.

    Guarantee: that of all batched rules (`baselines/arms/_phases.py`). The draws from posteriors
    protect nobody: the noise on the means alone carries it.

    Changed: rewards lie in [-1, 1] here, so the noise on a sum has scale 2/epsilon; that is their
    algorithm on (reward + 1) / 2.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm. Nothing depends on it.
        epsilon: the privacy target.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    def __init__(
        self, *, n_arms: int, horizon: int, epsilon: float, noise_source: NoiseSource | None = None
    ) -> None:
        """Start with nothing pulled."""
        rule = LazyBatches(n_arms=n_arms, horizon=horizon, epsilon=epsilon, sampling=True)
        super().__init__(rule, noise_source)
