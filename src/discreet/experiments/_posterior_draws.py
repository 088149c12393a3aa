"""Linear Thompson sampling at the rewards' scale, without privacy: what the comparison measures by.

The parameter is drawn from N(theta, sigma^2 V^-1) before every choice, where sigma is the rewards'
sub-Gaussian scale and V the regularised Gram matrix: the posterior itself. The analysis of Agrawal
& Goyal (2013, arXiv:1209.3352) needs draws about as wide as a confidence ellipsoid, which is what
`discreet.Thompson` makes; those explore far more than is needed. Knows nothing of the comparison.
"""

from dataclasses import dataclass

from discreet.baselines.linear._learner import CENTRAL
from discreet.baselines.linear._ridge import RIDGE, RidgePlay, every, step
from discreet.kernels import _ridge as kernels
from discreet.kernels._noise import Noise
from discreet.privacy import Guarantee
from discreet.problem import Problem

_NO_NOISE = Noise(scale=0.0, moment_scale=0.0, dof=0.0)


@dataclass(frozen=True, kw_only=True)
class PosteriorDraws(RidgePlay):
    """A rule for `run_linear_seed` that promises nothing: one posterior draw for each choice.

    It is `BatchedThompson` without noise, with an estimate that is renewed after every row.

    Attributes:
        problem: the stated bounds. The deviation of a draw is its ``reward_subgaussian``.
        horizon: the most rounds there will be.
    """

    problem: Problem
    horizon: int
    protects = "nothing"
    trust = CENTRAL

    @property
    def guarantee(self) -> Guarantee:
        """None: this rule promises no privacy."""
        return Guarantee.nothing("sums are exact, and choices are made from them")

    @property
    def compiled(self) -> kernels.RidgeSpec:
        """This rule as arguments of the compiled kernels.

        What belongs to upper confidence bounds is not used.
        """
        problem = self.problem
        return kernels.RidgeSpec(
            kind=kernels.BATCHES,
            law=_NO_NOISE,
            timing=every(1),
            growth=0.0,
            levels=0,
            last=self.horizon,
            ridge=RIDGE,
            eigenvalue=0.0,
            length=0.0,
            noise_scale=problem.reward_subgaussian,
            log_offset=0.0,
            theta_norm=problem.theta_norm,
            gram_step=step(problem.action_norm**2),
            moment_step=step(problem.action_norm * problem.reward_bound),
            sampling=problem.reward_subgaussian,
            spread=0.0,
        )
