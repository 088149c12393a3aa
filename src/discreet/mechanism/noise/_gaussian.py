"""Symmetric Gaussian node noise, shifted to stay positive definite. Paper: sec:dp-gauss.

Formal guarantee: with ``std`` from `accounting.gaussian_node_std`, releasing all nodes of the
tree is (epsilon, delta)-DP under replacement of one row of norm at most L~, also when rows are
chosen in view of earlier releases.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet import accounting
from discreet.kernels import _linalg as linalg
from discreet.kernels import _noise as kernel
from discreet.kernels._noise import Noise
from discreet.mechanism._mechanism import lowest_eigenvalue
from discreet.mechanism.noise.sources import NoiseSource
from discreet.privacy import Privacy
from discreet.problem import Setting
from discreet.theory import NoiseBounds

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

ARGUMENT = (
    "symmetric Gaussian noise on every node of a binary tree over the rows, with the standard "
    "deviation of Shariff & Sheffet (2018), section 4.2; a policy sees releases only"
)

GDP_ARGUMENT = (
    "symmetric Gaussian noise on every node of a binary tree over the rows, with the least "
    "standard deviation that exact Gaussian accounting allows; a policy sees releases only"
)


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """Normal entries: standard deviation ``std`` off the diagonal, sqrt(2) times that on it.

    The moment's entries have ``moment_std``; the same if it is left out. A ``std`` of 0 leaves the
    Gram matrix exact, for rewards alone.
    """

    std: float
    moment_std: float = None  # type: ignore[assignment]  # std if left out
    family = "gaussian"
    needs_all_draws = False

    def __post_init__(self) -> None:
        """Check the scales."""
        checks.at_least("std", self.std, 0.0)
        given: float | None = self.moment_std
        fixed = checks.positive("moment_std", self.std if given is None else given)
        object.__setattr__(self, "moment_std", fixed)

    @classmethod
    def calibrated(cls, setting: Setting, privacy: Privacy) -> Self:
        """The paper's scale for a privacy target."""
        depth, row_norm = setting.tree_depth, setting.problem.row_norm
        std = accounting.gaussian_node_std(privacy=privacy, depth=depth, row_norm=row_norm)
        return cls(std=std)

    @classmethod
    def calibrated_by_gdp(cls, setting: Setting, privacy: Privacy) -> Self:
        """The least scale that meets the target on the paper's tree, by Gaussian accounting."""
        std = accounting.gaussian_node_std_gdp(
            privacy=privacy,
            depth=setting.tree_depth,
            action_norm=setting.problem.action_norm,
            reward_bound=setting.problem.reward_bound,
            neighbours=privacy.neighbours,
            contributions=privacy.contributions_per_user,
        )
        return cls(std=std)

    def law(self) -> Noise:
        """This noise as arguments of the compiled kernels: no degrees of freedom means Gaussian."""
        return Noise(scale=self.std, moment_scale=self.moment_std, dof=0.0)

    def opnorm_bound(self, setting: Setting) -> float:
        """The norm bound Upsilon = sigma_noise sqrt(2m) (4 sqrt(d) + 2 ln(2n/alpha)).

        With k blocks, the norm is that of one of them: d is then the largest, and n is k n.
        """
        blocks = setting.problem.blocks
        spread = 4 * math.sqrt(max(blocks)) + 2 * setting.log_tail(2 * len(blocks))
        return self.std * math.sqrt(2 * setting.tree_depth) * spread

    def eigenvalues(self, setting: Setting) -> tuple[float, float]:
        """The range from -Upsilon to Upsilon."""
        reach = self.opnorm_bound(setting)
        return -reach, reach

    def bounds(self, setting: Setting, shift: float) -> NoiseBounds:
        """Bounds rho = shift -+ Upsilon, gamma = sigma_noise sqrt(m/rho_min) (sqrt d + sqrt(2 l)).

        With l = ln(2n/alpha).

        Paper: pro:accurate_bounds_for_Gaussian, with the exact gamma (E5).
        """
        low, high = self.eigenvalues(setting)
        rho_min = lowest_eigenvalue(shift, low)
        return NoiseBounds(
            rho_min=rho_min,
            rho_max=shift + high,
            gamma=self.moment_std * math.sqrt(setting.tree_depth / rho_min) * setting.normal_length,
        )

    def draw(self, source: NoiseSource, firsts: I64, count: int) -> F64:
        """Independent noise for ``count`` nodes, with blocks as `kernels._linalg` has them."""
        size = linalg.packed_size(firsts)
        nodes = source.normals(count * size).reshape(count, size)
        kernel.symmetric_gaussian(nodes, self.std, self.moment_std, firsts)
        return nodes

    def describe(self, setting: Setting) -> dict[str, float]:
        """The node's standard deviation and the norm bound of all noise in a release."""
        return {
            "node_noise_std": self.std,
            "noise_opnorm_bound": self.opnorm_bound(setting),
        }


def paper_shift(noise: GaussianNoise, setting: Setting) -> tuple[float, NoiseBounds]:
    """Shift by 2 Upsilon, so that rho_min = Upsilon and rho_max = 3 Upsilon."""
    shift = 2 * noise.opnorm_bound(setting)
    return shift, noise.bounds(setting, shift)
