"""`RareSwitching`: LinUCB on a private tree, with an estimate that changes rarely."""

from dataclasses import dataclass
from functools import cached_property

from discreet import accounting
from discreet.baselines.linear._learner import MARGIN, ROWS
from discreet.baselines.linear._ridge import GrowingRule, every
from discreet.kernels import _ridge as kernels
from discreet.privacy import Guarantee
from discreet.problem import tree_depth


@dataclass(frozen=True, kw_only=True)
class RareSwitching(GrowingRule):
    """LinUCB on a Gaussian tree that renews its estimate when the determinant has doubled.

    The tree is Shariff and Sheffet's (NeurIPS 2018); rare switching is of Abbasi-Yadkori, Pal and
    Szepesvari (2011, section 5.1). The determinant is that of the *noisy*, shifted matrix: a
    function of what is released, so that when the estimate changes tells nothing more. The shape is
    that of the learner whose regret the open problem of Azize and Basu (COLT 2024) takes as the
    best known for joint privacy with adversarial contexts.

    Guarantee. Neighbours: one person's decision set and reward are replaced. Assumption: the noise
    is secret. Argument: one row is in at most one node of each of the tree's m levels; all nodes
    together are mu-GDP for mu = sqrt(m) times the cost of a row in one noisy sum; choices are made
    from nodes.

    What is ours: the deviations are the least that the exact Gaussian curve allows, with one for
    the Gram matrix and one for the moment, and the bound on the noise's norm is the tail of its
    largest eigenvalue instead of 4 sqrt(d) + 2 ln(2n/alpha). The tree is in its covering form.
    """

    @property
    def protects(self) -> str:
        """Decision sets and rewards."""
        return ROWS

    @property
    def levels(self) -> int:
        """The levels of the tree, m."""
        return tree_depth(self.horizon)

    @property
    def noise_stds(self) -> accounting.RowScales:
        """The deviations of the noise on one node's Gram matrix and moment."""
        mu = accounting.gaussian_mu(self.privacy)
        length = accounting.tree_length(depth=self.levels, contributions=1)
        gram, moment = accounting.row_scales(self.problem, mu_one=mu / length)
        return accounting.RowScales(MARGIN * gram, MARGIN * moment)

    @property
    def guarantee(self) -> Guarantee:
        """Joint differential privacy."""
        return Guarantee.meeting(
            self.privacy,
            f"Gaussian noise on every node of a binary tree of {self.levels} levels, by exact "
            "accounting; a row is in at most one node of each; when the estimate changes, and "
            "every choice, follow from noisy nodes",
        )

    @cached_property
    def compiled(self) -> kernels.RidgeSpec:
        """The rule as arguments of the compiled kernels."""
        gram, moment = self.noise_stds
        return self._spec(
            kind=kernels.TREE,
            gram_std=gram,
            moment_std=moment,
            timing=every(1),
            growth=self.growth,
            levels=self.levels,
        )
