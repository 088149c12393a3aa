"""Rewards-only baselines in episodes: `AdaCOFUL`, and `BatchedThompson` for rows as well."""

from dataclasses import dataclass
from functools import cached_property

from discreet import accounting
from discreet.baselines.linear._learner import CENTRAL, MARGIN, REWARDS, ROWS
from discreet.baselines.linear._ridge import (
    GrowingRule,
    RidgeRule,
    doubling,
    every,
    moment_std,
)
from discreet.kernels import _ridge as kernels
from discreet.privacy import Guarantee, Privacy


@dataclass(frozen=True, kw_only=True)
class AdaCOFUL(GrowingRule):
    """Optimism in episodes that end when the determinant has doubled; protects rewards.

    After AdaC-OFUL of Azize and Basu ("Concentrated differential privacy for bandits",
    arXiv:2309.00557). Decision sets and actions are public, so the regularised Gram matrix V is
    exact and may decide when an episode ends: once det V has grown by a factor. At its end the
    episode's sum of action times reward gets Gaussian noise, once, and joins those before; nothing
    is ever released again. So after l episodes the moment has the noise of l draws.

    Guarantee. Neighbours: one person's reward is replaced. Assumption: the noise is secret,
    decision sets are public. Argument: given what was shown before, both neighbours have the same
    actions and the same episodes, so they differ in one episode's sum, by at most 2 L B in length.

    What is ours: the deviation is 2 L B / mu with mu of the exact Gaussian curve at (epsilon,
    delta). The paper states zero-concentrated privacy; its variance 2/z for L = B = 1 is the same
    noise in other units. The noise's part of the radius is divided by the root of V's smallest
    eigenvalue, as it is, where the paper assumes that this grows with the rounds.
    """

    @property
    def protects(self) -> str:
        """Rewards; decision sets and actions are public."""
        return REWARDS

    @property
    def noise_std(self) -> float:
        """The deviation of the noise on one episode's moment."""
        return MARGIN * moment_std(self.problem, accounting.gaussian_mu(self.privacy))

    @property
    def guarantee(self) -> Guarantee:
        """Differential privacy of the rewards."""
        return Guarantee.meeting(
            self.privacy,
            "decision sets, actions and the times of releases are public; a reward is in one "
            "episode's sum, which is released once with Gaussian noise by exact accounting",
        )

    @cached_property
    def compiled(self) -> kernels.RidgeSpec:
        """The rule as arguments of the compiled kernels."""
        return self._spec(
            kind=kernels.BATCHES,
            gram_std=0.0,
            moment_std=self.noise_std,
            timing=every(1),
            growth=self.growth,
        )


@dataclass(frozen=True, kw_only=True)
class BatchedThompson(RidgeRule):
    """Thompson sampling on batched noisy moments, with the noise counted in the posterior.

    After AdaPrivate-TS of Ukwatta and Riyazat (arXiv:2606.21757), of which we know the abstract: a
    parameter is drawn from N(theta, v^2 V^-1 + s^2 V^-2), where s^2 is the variance of the noise in
    the moment. Batches end whenever there are twice as many rows.

    With a target that protects rewards the Gram matrix is exact, which is private only if decision
    sets and actions are public. With one that protects rows it has noise too: joint privacy. V is
    then shifted by 2 sqrt(d) deviations of the noise, about its largest eigenvalue, and s^2 counts
    that noise as well: s_u^2 + (1 + 1/d) S^2 s_G^2. In a direction that nothing is known of, a draw
    then deviates by about as much as the parameter does. A shift that is larger, such as twice a
    bound on the noise, is a prior that is sure of zero: now and then a learner never tries the best
    action.

    Guarantee. Neighbours: one person's reward, or decision set and reward, is replaced. Assumption:
    the noise is secret. Argument: release times depend on the number of rows alone; given what was
    shown before, neighbours differ in one row of one batch, whose sums are released once.

    What is ours: the noise is that of one release by the exact Gaussian curve, where the paper
    counts in zCDP; batches compose in parallel there as well, because a row is in one of them. How
    batches grow, and the noise on the Gram matrix, are ours. The posterior scale v is the rewards'
    sub-Gaussian scale.
    """

    trust = CENTRAL

    @property
    def protects(self) -> str:
        """What the target says."""
        return self.privacy.protects if isinstance(self.privacy, Privacy) else ROWS

    @property
    def noise_stds(self) -> accounting.RowScales:
        """The deviations of the noise on one batch's Gram matrix and moment."""
        mu = accounting.gaussian_mu(self.privacy)
        if self.protects == REWARDS:
            return accounting.RowScales(0.0, MARGIN * moment_std(self.problem, mu))
        gram, moment = accounting.row_scales(self.problem, mu_one=mu)
        return accounting.RowScales(MARGIN * gram, MARGIN * moment)

    @property
    def guarantee(self) -> Guarantee:
        """Differential privacy of the rewards, or joint differential privacy."""
        return Guarantee.meeting(
            self.privacy,
            "release times do not depend on data; a row is in one batch, whose sums are released "
            "once with Gaussian noise by exact accounting; choices are drawn from releases only",
        )

    @cached_property
    def compiled(self) -> kernels.RidgeSpec:
        """The rule as arguments of the compiled kernels."""
        gram, moment = self.noise_stds
        return self._spec(
            kind=kernels.BATCHES,
            gram_std=gram,
            moment_std=moment,
            timing=doubling(self.problem.dim),
            sampling=True,
        )
