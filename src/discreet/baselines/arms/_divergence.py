"""`KLUCB` and `IMED`, and `DPKLUCB` and `DPIMED`, which have the same indices under privacy.

Sources: Garivier & Cappe, "The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond", COLT
2011; Honda & Takemura, "Non-Asymptotic Analysis of a New Bandit Algorithm for Semi-Bounded
Rewards", JMLR 2015; and for the private ones Azize, Wu, Honda, Orabona, Ito & Basu, "Optimal
Regret of Bandits under Differential Privacy", NeurIPS 2025 (arXiv 2505.05613).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from discreet import _checks as checks
from discreet.baselines.arms._learner import checked_epsilon
from discreet.baselines.arms._phases import PhasedLearner, PhasedRule
from discreet.errors import ParameterError
from discreet.kernels import _phases as kernels
from discreet.mechanism.noise.sources import NoiseSource

_GROWTH = 1.5
_LARGEST_GROWTH = 1e6
_NOISE_SHARE = 32.0  # rewards in a first batch for each unit of 1/epsilon
_FIRST_SHARE = 10  # first batches of all arms take at most one part in ten of the horizon


@dataclass(frozen=True, kw_only=True)
class DivergenceIndex(PhasedRule):
    """The rule of `DPKLUCB` and `DPIMED`; without epsilon, that of `KLUCB` and `IMED`.

    Attributes:
        epsilon: the privacy target; None for none: then batches have one reward.
        minimum: whether the arm with the least evidence against it is pulled (IMED); otherwise
            the arm with the largest upper bound (KL-UCB).
        growth: an arm's pulls after a batch over those before, above 1.
        first_batch: rewards in an arm's first batch. If left out, 32/epsilon, but for all arms
            together no more than a tenth of the horizon.
    """

    epsilon: float | None = None
    minimum: bool = False
    growth: float = _GROWTH
    first_batch: int | None = None

    def __post_init__(self) -> None:
        """Check the sizes, the target and the batches."""
        super().__post_init__()
        growth = checks.within("growth", checks.finite("growth", self.growth), 1, _LARGEST_GROWTH)
        if growth == 1.0:
            raise ParameterError("growth", "is 1; batches have to grow, so give more than 1")
        object.__setattr__(self, "growth", growth)
        first = self._usual_first() if self.first_batch is None else self.first_batch
        first = checks.count("first_batch", first)
        checks.within("first_batch", first, 1, self.horizon)
        object.__setattr__(self, "first_batch", first)

    def _usual_first(self) -> int:
        """As many rewards as make the noise in the first mean small, if there are enough."""
        if self.epsilon is None:
            return 1
        most = max(1, self.horizon // (_FIRST_SHARE * self.n_arms))
        return min(math.ceil(_NOISE_SHARE / self.epsilon), most)

    @property
    def compiled(self) -> kernels.Rule:
        """The rule as arguments of the compiled kernels."""
        return kernels.Rule(
            chooses=kernels.MINIMUM if self.minimum else kernels.DIVERGENCE,
            epsilon=self._epsilon(),
            noise_scale=self.noise_scale,
            exploration=1.0,
            log_factor=1.0,
            first=self.first_batch or 1,
            growth=1.0 if self.epsilon is None else self.growth,
            doubling=False,
            forgetting=False,
            staying=True,
        )


class KLUCB(PhasedLearner):
    """KL-UCB of Garivier & Cappe (2011). It promises nothing.

    The index of an arm with mean x of n rewards, on the scale of [0, 1], is the largest y with
    n kl(x, y) at most ln t. Their proof adds 3 ln ln t; they advise to leave it out, as here.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
    """

    def __init__(self, *, n_arms: int, horizon: int) -> None:
        """Start with nothing pulled."""
        super().__init__(DivergenceIndex(n_arms=n_arms, horizon=horizon), None)


class IMED(PhasedLearner):
    """Indexed minimum empirical divergence, Honda & Takemura (2015). It promises nothing.

    Pulls the arm with the smallest n kl(x, best) + ln n, for means x of n rewards on the scale of
    [0, 1] and the largest mean best. That is for rewards of two values; for others in the same
    range the Bernoulli divergence is smaller than theirs, so it explores more.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm.
    """

    def __init__(self, *, n_arms: int, horizon: int) -> None:
        """Start with nothing pulled."""
        super().__init__(DivergenceIndex(n_arms=n_arms, horizon=horizon, minimum=True), None)


class _ByDivergence(PhasedLearner):
    """What DP-KLUCB and DP-IMED have in common: all but the index."""

    _minimum: ClassVar[bool]

    def __init__(
        self,
        *,
        n_arms: int,
        horizon: int,
        epsilon: float,
        growth: float = _GROWTH,
        first_batch: int | None = None,
        noise_source: NoiseSource | None = None,
    ) -> None:
        """Start with nothing pulled."""
        rule = DivergenceIndex(
            n_arms=n_arms,
            horizon=horizon,
            epsilon=checked_epsilon(epsilon),
            minimum=self._minimum,
            growth=growth,
            first_batch=first_batch,
        )
        super().__init__(rule, noise_source)


class DPKLUCB(_ByDivergence):
    """DP-KLUCB of Azize et al. (2025); epsilon-differentially private, with delta 0.

    The arm with the largest index is pulled until its pulls have grown by the factor ``growth``.
    Then the sum of the new rewards gets Laplace noise and is added to the arm's noisy sum: nothing
    is forgotten. With mean x of n rewards, on the scale of [0, 1] and clipped to it, the index is
    the largest y with n d(x, y) at most ln t. d is the divergence under privacy
    (`kernels/_divergence.py`), which their lower bound is about.

    Guarantee: that of all batched rules (`baselines/arms/_phases.py`). The noisy sum of all rewards
    is a function of the noisy sums of batches, and a reward is in one of those.

    Changed: rewards lie in [-1, 1] here, so the noise on a sum has scale 2/epsilon; that is their
    algorithm on (reward + 1) / 2. A mean of n rewards in m batches has the sum of m Laplace
    numbers in it, and the proof needs m to be small beside n. If first batches have one reward, it
    is not: in simulations with epsilon 0.1, 7 runs in 1,000, and 71 of `DPIMED`, then stay with a
    wrong arm for most of a million rounds. With first batches of 32/epsilon rewards it is none,
    and one of `DPIMED` (docs/baselines.md), and nothing changes in what is proven for long
    horizons. The paper's own first batch could not be checked.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm. It limits the first batch.
        epsilon: the privacy target.
        growth: an arm's pulls after a batch over those before, above 1.
        first_batch: rewards in an arm's first batch. If left out, 32/epsilon, but for all arms
            together no more than a tenth of the horizon.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    _minimum = False


class DPIMED(_ByDivergence):
    """DP-IMED of Azize et al. (2025); epsilon-differentially private, with delta 0.

    The batches and the noise of `DPKLUCB`. The next batch is that of the arm with the smallest
    n d(x, best) + ln n, where best is the largest of all noisy means, clipped to [0, 1].

    Guarantee and changes: those of `DPKLUCB`.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm. It limits the first batch.
        epsilon: the privacy target.
        growth: an arm's pulls after a batch over those before, above 1.
        first_batch: rewards in an arm's first batch. If left out, 32/epsilon, but for all arms
            together no more than a tenth of the horizon.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    _minimum = True
