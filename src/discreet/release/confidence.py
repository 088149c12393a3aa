"""The confidence set around the private estimate: the paper's, and the joint-noise one.

Paper: eq:def-ellip and prop:calc-beta. Ours: docs/width.md.

It covers the true parameter with probability 1 - alpha if rewards are linear in the actions up to
sub-Gaussian noise. Clipping rows or rewards that are really outside the bounds, or losing rewards
depending on their value, takes that away; the privacy guarantee does not depend on it.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _linalg as linalg
from discreet.kernels import _score as score
from discreet.kernels import _width as width
from discreet.mechanism import Radius
from discreet.release._release import Release

F64 = NDArray[np.float64]


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

    def widths(self, actions: F64) -> F64:
        """beta_t ||x||_{V^-1} of each action, shape (K,)."""
        whitened = np.linalg.solve(self.lower, actions.T)
        return np.asarray(self.radius * np.linalg.norm(whitened, axis=0))

    def best(self, actions: F64, optimism: float) -> int:
        """The first action with the largest estimate plus ``optimism`` widths."""
        return self._best(self.weights, optimism * self.radius, actions)

    def best_of_a_draw(self, actions: F64, optimism: float, normals: F64) -> int:
        """The first best action for the parameter that d standard normals stand for.

        A draw of the parameter is a draw of its weights, with covariance D^-1 times a square.
        """
        scales = optimism * self.radius * np.sqrt(np.diag(self.factor))
        return self._best(self.weights + scales * normals, 0.0, actions)

    def _best(self, weights: F64, bonus: float, actions: F64) -> int:
        scores = np.empty(len(actions))
        return score.best(feature_major(actions), 0, weights, self.factor, bonus, scores)


@dataclass(frozen=True, eq=False)
class JointRegion:
    """Widths that add reward noise and privacy noise in quadrature, in the release's eigenbasis.

    Attributes:
        centre: the private estimate, shape (d,).
        basis: the eigenvectors of the released Gram matrix, as columns, shape (d, d).
        weights: the estimate in that basis, shape (d,).
        noise: the squared width in each direction that is due to noise, shape (d,).
        bias: the squared width in each direction that is due to the shift, shape (d,).
        shift: c, chosen from the release.
    """

    centre: F64
    basis: F64
    weights: F64
    noise: F64
    bias: F64
    shift: float

    def widths(self, actions: F64) -> F64:
        """How far the estimate of each action's mean reward may be off, shape (K,)."""
        squares = (actions @ self.basis) ** 2
        return np.asarray(np.sqrt(squares @ self.noise) + np.sqrt(squares @ self.bias))

    def best(self, actions: F64, optimism: float) -> int:
        """The first action with the largest estimate plus ``optimism`` widths."""
        return self._best(self.weights, optimism, actions)

    def best_of_a_draw(self, actions: F64, optimism: float, normals: F64) -> int:
        """The first best action for the parameter that d standard normals stand for."""
        scales = optimism * (np.sqrt(self.noise) + np.sqrt(self.bias))
        return self._best(self.weights + scales * normals, 0.0, actions)

    def _best(self, weights: F64, optimism: float, actions: F64) -> int:
        scores = np.empty(len(actions))
        return width.best(
            feature_major(actions), 0, self.basis, weights, self.noise, self.bias, optimism, scores
        )


Region = Ellipsoid | JointRegion


def feature_major(actions: F64) -> F64:
    """A copy with a feature a row, as kernels take decision sets."""
    return np.array(actions.T, order="C")


def region(release: Release) -> Region:
    """The confidence set that a release supports: a function of the release alone."""
    if isinstance(release.mechanism.confidence, Radius):
        return ellipsoid(release)
    return joint_region(release)


def ellipsoid(release: Release) -> Ellipsoid:
    """The paper's confidence set."""
    mechanism = release.mechanism
    dim = release.moment.size
    factor, weights, centre = np.zeros((dim, dim)), np.empty(dim), np.empty(dim)
    packed = np.empty(linalg.packed_size(dim))
    terms = mechanism.radius_terms
    floor = 1.0 if mechanism.bounds is None else mechanism.bounds.rho_min
    log_det = score.region(release.gram, release.moment, floor, packed, factor, weights, centre)
    return Ellipsoid(centre, weights, factor, score.radius(log_det, *terms))


def joint_region(release: Release) -> JointRegion:
    """The joint-noise confidence set; before the first release, all there may be."""
    mechanism, dim = release.mechanism, release.moment.size
    basis, weights = np.empty((dim, dim)), np.empty(dim)
    noise, bias = np.empty(dim), np.empty(dim)
    terms, law = mechanism.width_terms, mechanism.noise
    shift = math.inf
    if release.number == 0 or law is None:
        width.nothing(terms.theta_norm, basis, weights, noise, bias)
    else:
        known = (release.number, mechanism.noise_table, law.law(), terms)
        shift = width.region(release.gram, release.moment, *known, basis, weights, noise, bias)
    return JointRegion(basis @ weights, basis, weights, noise, bias, shift)
