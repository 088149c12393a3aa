"""Wishart node noise, which keeps matrices positive definite by itself. Paper: sec:dp-wishart.

Formal guarantee: with ``dof`` from `accounting.wishart_node_dof` and scale L~^2 I (E3),
releasing all nodes of the tree is (epsilon, delta)-DP under replacement of one row of norm at
most L~, also when rows are chosen in view of earlier releases. The bounds hold only if every
release holds exactly m draws (E2), so the tree must be the pan-private one.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet import accounting
from discreet.errors import ParameterError
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
    "Wishart noise on every node of a binary tree over the rows, with the degrees of freedom of "
    "Shariff & Sheffet (2018), section 4.1; a policy sees releases only"
)


@dataclass(frozen=True, kw_only=True)
class WishartNoise:
    """The Gram matrix of ``dof`` normal vectors with covariance ``scale`` times the identity."""

    dof: int
    scale: float
    family = "wishart"
    needs_all_draws = True

    def __post_init__(self) -> None:
        """Check the law."""
        checks.count("dof", self.dof)
        checks.positive("scale", self.scale)

    @classmethod
    def calibrated(cls, setting: Setting, privacy: Privacy) -> Self:
        """The paper's degrees of freedom for a privacy target."""
        depth, dim = setting.tree_depth, setting.problem.dim
        dof = accounting.wishart_node_dof(privacy=privacy, depth=depth, dim=dim)
        return cls(dof=dof, scale=setting.problem.row_norm**2)

    def law(self) -> Noise:
        """This noise as arguments of the compiled kernels."""
        return Noise(scale=self.scale, moment_scale=self.scale, dof=float(self.dof))

    def _roots(self, setting: Setting) -> tuple[float, float]:
        """sqrt(mk), and how far a singular value strays from it (over the square root of scale)."""
        centre = math.sqrt(setting.tree_depth * self.dof)
        return centre, math.sqrt(setting.problem.dim) + math.sqrt(2 * setting.log_tail(8))

    def eigenvalues(self, setting: Setting) -> tuple[float, float]:
        """L~^2 (sqrt(mk) -+ (sqrt d + sqrt(2 ln(8n/alpha))))^2. Paper: claim:wishart-tails (E6)."""
        centre, stray = self._roots(setting)
        if not centre > stray:
            raise ParameterError(
                "failure_prob", "is too small for this much Wishart noise; give a larger one"
            )
        return self.scale * (centre - stray) ** 2, self.scale * (centre + stray) ** 2

    def bounds(self, setting: Setting, shift: float) -> NoiseBounds:
        """Paper: pro:accurate_bounds_for_Wishart (unshifted), claim:shifted-matrix-norm.

        gamma = L~ (sqrt d + sqrt(2 ln(2n/alpha))) without a shift; a negative shift multiplies
        it by sqrt(rho_min before / rho_min after).
        """
        low, high = self.eigenvalues(setting)
        rho_min = lowest_eigenvalue(shift, low)
        stretch = math.sqrt(max(1.0, low / rho_min))
        return NoiseBounds(
            rho_min=rho_min,
            rho_max=shift + high,
            gamma=math.sqrt(self.scale) * setting.normal_length * stretch,
        )

    def draw(self, source: NoiseSource, firsts: I64, count: int) -> F64:
        """Independent noise for ``count`` nodes, by Bartlett's decomposition.

        Where there are blocks, what is outside them is dropped.
        """
        dim = firsts.size
        if self.dof <= dim:
            raise ParameterError("dof", f"is {self.dof}; give more than the dimension {dim}")
        nodes = np.empty((count, linalg.packed_size(firsts)))
        dofs = self.dof - np.arange(dim, dtype=np.float64)
        normals = source.normals(count * dim * (dim + 1) // 2).reshape(count, -1)
        squares = source.chi_squares(np.tile(dofs, count)).reshape(count, dim)
        for at in range(count):
            kernel.wishart(normals[at], squares[at], self.scale, firsts, nodes[at])
        return nodes

    def describe(self, setting: Setting) -> dict[str, float]:  # noqa: ARG002  # one shape for all
        """The node's degrees of freedom."""
        return {"wishart_dof": self.dof}


def paper_shift(noise: WishartNoise, setting: Setting) -> tuple[float, NoiseBounds]:
    """Shift by -c of eq:c: rho_min becomes the width of the spectrum, rho_max twice that.

    gamma is the closed bound of pro:accurate_bounds_for_Wishart, about twice what
    `WishartNoise.bounds` gives for the same shift.
    """
    centre, stray = noise._roots(setting)  # noqa: SLF001  # one module, one formula
    width = 4 * noise.scale * centre * stray
    low, _ = noise.eigenvalues(setting)
    gamma = math.sqrt(noise.scale * centre * setting.normal_length)
    return width - low, NoiseBounds(rho_min=width, rho_max=2 * width, gamma=gamma)


def no_shift(noise: WishartNoise, setting: Setting) -> tuple[float, NoiseBounds]:
    """Leave the noise as it is drawn."""
    return 0.0, noise.bounds(setting, 0.0)
