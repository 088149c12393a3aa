"""The confidence set around the private estimate. Paper: eq:def-ellip and prop:calc-beta.

It covers the true parameter with probability 1 - alpha if rewards are linear in the actions up to
sub-Gaussian noise. Clipping rows or rewards that are really outside the bounds, or losing rewards
depending on their value, takes that away; the privacy guarantee does not depend on it.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import linalg, score
from discreet.mechanism import NoiseBounds, Setting, radius_terms
from discreet.release import Release

F64 = NDArray[np.float64]


def radius_bound(setting: Setting, bounds: NoiseBounds, *, rounds: int) -> float:
    """An upper bound on beta_t at t = ``rounds`` that needs no data. Paper: prop:calc-beta.

    sigma sqrt(2 ln(2/alpha) + d ln(rho_max/rho_min + t L^2/(d rho_min))) + S sqrt(rho_max) + gamma.
    """
    problem = setting.problem
    growth = bounds.rho_max + rounds * problem.action_norm**2 / problem.dim
    terms = radius_terms(setting, bounds)
    return score.radius(problem.dim * math.log(growth), *terms)


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """All theta with ||theta - centre||_V <= radius.

    Attributes:
        centre: the private estimate V^-1 u, shape (d,).
        weights: D^-1 L^-1 u, with V = L D L^T, shape (d,).
        factor: L below the diagonal and the reciprocals of D on it, shape (d, d).
        radius: beta_t.
    """

    centre: F64
    weights: F64
    factor: F64
    radius: float

    @property
    def lower(self) -> F64:
        """The Cholesky factor of V, L D^(1/2), shape (d, d)."""
        unit = np.tril(self.factor, -1) + np.eye(len(self.factor))
        return np.asarray(unit / np.sqrt(np.diag(self.factor)))

    def distance(self, theta: F64) -> float:
        """||theta - centre||_V."""
        return float(np.linalg.norm(self.lower.T @ (theta - self.centre)))

    def __contains__(self, theta: F64) -> bool:
        return self.distance(theta) <= self.radius


def ellipsoid(release: Release) -> Ellipsoid:
    """The confidence set that a release supports: a function of the release alone."""
    mechanism = release.mechanism
    dim = release.moment.size
    factor, weights, centre = np.zeros((dim, dim)), np.empty(dim), np.empty(dim)
    packed = np.empty(linalg.packed_size(dim))
    log_det = score.region(
        release.gram, release.moment, mechanism.bounds.rho_min, packed, factor, weights, centre
    )
    return Ellipsoid(centre, weights, factor, score.radius(log_det, *mechanism.radius_terms))
