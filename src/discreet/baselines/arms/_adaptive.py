"""`AdaPUCB` and `AdaPKLUCB` of Azize & Basu (2022): episodes that double, and forget.

Source: "When Privacy Meets Partial Information: A Refined Analysis of Differentially Private
Bandits", NeurIPS 2022: algorithm 1, the two indices after it, and alpha = 3.1 in its experiments.
"""

from dataclasses import dataclass
from typing import ClassVar

from discreet import _checks as checks
from discreet.baselines.arms._learner import checked_epsilon
from discreet.baselines.arms._phases import PhasedLearner, PhasedRule
from discreet.errors import ParameterError
from discreet.kernels import _phases as kernels
from discreet.mechanism.noise.sources import NoiseSource

_ALPHA = 3.1
_LEAST_ALPHA = 3.0


@dataclass(frozen=True, kw_only=True)
class AdaptiveEpisodes(PhasedRule):
    """The rule of `AdaPUCB` and `AdaPKLUCB`.

    Attributes:
        epsilon: the privacy target.
        alpha: how wide the indices are; above 3.
        divergence: whether the index inverts a divergence; otherwise it adds two widths.
    """

    epsilon: float
    alpha: float = _ALPHA
    divergence: bool = False

    def __post_init__(self) -> None:
        """Check the sizes, the target and the width."""
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        super().__post_init__()
        alpha = checks.finite("alpha", self.alpha)
        if alpha <= _LEAST_ALPHA:
            raise ParameterError("alpha", f"is {alpha:g}; the regret bounds hold above 3")
        object.__setattr__(self, "alpha", alpha)

    @property
    def compiled(self) -> kernels.Rule:
        """The rule as arguments of the compiled kernels."""
        return kernels.Rule(
            chooses=kernels.SHIFTED_KL if self.divergence else kernels.OPTIMISTIC,
            epsilon=self.epsilon,
            noise_scale=self.noise_scale,
            exploration=self.alpha,
            log_factor=2.0,
            first=1,
            growth=2.0,
            doubling=False,
            forgetting=True,
            staying=True,
        )


class _ByEpisodes(PhasedLearner):
    """What AdaP-UCB and AdaP-KLUCB have in common: all but the index."""

    _divergence: ClassVar[bool]

    def __init__(
        self,
        *,
        n_arms: int,
        horizon: int,
        epsilon: float,
        alpha: float = _ALPHA,
        noise_source: NoiseSource | None = None,
    ) -> None:
        """Start with nothing pulled."""
        rule = AdaptiveEpisodes(
            n_arms=n_arms,
            horizon=horizon,
            epsilon=epsilon,
            alpha=alpha,
            divergence=self._divergence,
        )
        super().__init__(rule, noise_source)


class AdaPUCB(_ByEpisodes):
    """AdaP-UCB of Azize & Basu (2022); epsilon-differentially private, with delta 0.

    Every arm is pulled once. Then the arm with the largest index is pulled until its pulls have
    doubled, and the mean of that episode alone, with Laplace noise, takes the place of its older
    one. With n rewards in it, on the scale of [0, 1], the index is

        mean + sqrt(alpha ln(2t) / 2n) + alpha ln t / (epsilon n).

    Guarantee: that of all batched rules (`baselines/arms/_phases.py`).

    Changed: rewards lie in [-1, 1] here, so the noise on a sum has scale 2/epsilon; that is their
    algorithm on (reward + 1) / 2. They write n as half of the arm's pulls, which is one half after
    the first pull, where the mean has one reward; n is the number of rewards in the mean here.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm. Nothing depends on it.
        epsilon: the privacy target.
        alpha: how wide the index is, above 3.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    _divergence = False


class AdaPKLUCB(_ByEpisodes):
    """AdaP-KLUCB of Azize & Basu (2022); epsilon-differentially private, with delta 0.

    The episodes and the noise of `AdaPUCB`. The index is the largest y with kl(m, y) at most
    alpha ln t / n, where m is the noisy mean plus alpha ln t / (epsilon n), clipped to [0, 1].

    Guarantee and changes: those of `AdaPUCB`.

    Args:
        n_arms: how many arms there are, at least 2.
        horizon: the most pulls there will be, at least one for each arm. Nothing depends on it.
        epsilon: the privacy target.
        alpha: how wide the index is, above 3.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
    """

    _divergence = True
