"""What a release says about the parameter: a normal distribution, given the law of its noise.

This is a model and no theorem: rewards are taken to be normal, the parameter to be normal
beforehand, and the Gram matrix to be what it likely is without its noise (docs/estimate.md). So
its intervals are Bayesian. What is proven of the parameter is in `confidence`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from discreet import _blas
from discreet import _checks as checks
from discreet.errors import NotFiniteError, ShapeError
from discreet.kernels import _posterior as kernel
from discreet.mechanism._read_only import read_only
from discreet.release import _views

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.release._release import Release

__all__ = ["Estimate", "Posterior", "posterior"]

_F64 = NDArray[np.float64]
_I64 = NDArray[np.int64]


class Estimate(NamedTuple):
    """What is thought of actions' mean rewards, an entry for each.

    Attributes:
        estimate: the posterior's mean.
        low: the lower end of a Bayesian interval.
        high: its upper end.
    """

    estimate: _F64
    low: _F64
    high: _F64

    def plot(self, ax: "Axes | None" = None, labels: Sequence[str] | None = None) -> "Axes":
        """Draw the estimates with their intervals, the first on top.

        Args:
            ax: matplotlib axes to draw on; a figure of its own if left out.
            labels: a name for each action; its place if left out.

        Returns:
            The axes; their figure is ``.figure``.

        Raises:
            ParameterError: There are not as many labels as actions.
        """
        return _views.draw_intervals(
            self.estimate, self.low, self.high, ax=ax, labels=labels, name="mean reward"
        )

    def _repr_html_(self) -> str:
        return _views.intervals_html("action", *self)


@dataclass(frozen=True, eq=False)
class Posterior:
    """A normal distribution of the parameter.

    Attributes:
        centre: its mean, shape (d,).
        weights: D^-1 L^-1 P centre, where P = L D L^T is its precision, shape (d,).
        factor: L below the diagonal and the reciprocals of D on it, shape (d, d).
        firsts: the first feature of the block that each feature is in, shape (d,): features of
            different blocks are independent.
        number: of the release, 0 before the first.
        rows: how many rows are in the release.
        prior: the variance that a direction is taken to have had before the release.
        stated: the same by the stated bounds; ``prior`` is below it if the release says so.
        known: how much is known of the direction of which most is: 0 nothing, 1 everything.
        offset: what is added to estimates, the stated ``reward_centre``.
        memory: how many rows are remembered; None if nothing is forgotten.
    """

    centre: _F64
    weights: _F64
    factor: _F64
    firsts: _I64
    number: int
    rows: int
    prior: float
    stated: float
    known: float
    offset: float = 0.0
    memory: int | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only: this is a fact about a release."""
        for name in ("centre", "weights", "factor", "firsts"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def covariance(self) -> _F64:
        """The covariance of the parameter, shape (d, d)."""
        unit = np.tril(self.factor, -1) + np.eye(len(self.factor))
        solved = np.linalg.solve(unit, np.eye(len(self.factor)))
        return np.asarray(solved.T @ (np.diag(self.factor)[:, None] * solved))

    def deviations(self, actions: _F64) -> _F64:
        """The standard deviation of each action's mean reward, shape (K,)."""
        unit = np.tril(self.factor, -1) + np.eye(len(self.factor))
        whitened = np.linalg.solve(unit, actions.T)
        return np.asarray(np.sqrt(np.diag(self.factor) @ whitened**2))

    def estimate(self, actions: ArrayLike, *, level: float = 0.95) -> Estimate:
        """The mean reward of each action, with an interval.

        Args:
            actions: shape (K, d).
            level: the probability that the posterior gives an interval.

        Returns:
            Estimates and the ends of the intervals, shape (K,) each.

        Raises:
            ShapeError, NotFiniteError: these are no actions.
        """
        try:
            sets = np.asarray(actions, dtype=np.float64)
        except (TypeError, ValueError):
            sets = np.empty(0)
        if sets.ndim != 2 or sets.shape[1] != self.centre.size:
            raise ShapeError("actions", f"must be numbers of the shape (K, {self.centre.size})")
        if not np.isfinite(sets).all():
            raise NotFiniteError("actions", "must be finite")
        reach = float(-ndtri((1 - checks.probability("level", level)) / 2))
        middle, widths = self.offset + sets @ self.centre, reach * self.deviations(sets)
        return Estimate(middle, middle - widths, middle + widths)

    def plot(
        self,
        ax: "Axes | None" = None,
        labels: Sequence[str] | None = None,
        *,
        level: float = 0.95,
    ) -> "Axes":
        """Draw the parameter's entries with intervals, the first on top.

        Args:
            ax: matplotlib axes to draw on; a figure of its own if left out.
            labels: a name for each feature; its place if left out.
            level: the probability that the posterior gives an interval.

        Returns:
            The axes; their figure is ``.figure``.

        Raises:
            ParameterError: There are not as many labels as features.
        """
        entries = self.estimate(np.eye(self.centre.size), level=level)
        return _views.draw_intervals(*entries, ax=ax, labels=labels, name="parameter")

    def _repr_html_(self) -> str:
        entries = self.estimate(np.eye(self.centre.size))
        title = f"Posterior of release {self.number:,}, {self.rows:,} rows"
        note = (
            "Bayesian intervals at 95%. Of the best-known direction "
            f"{100 * self.known:.0f}% of the prior variance is gone."
        )
        return _views.intervals_html("feature", *entries, title=title, note=note)

    @property
    def distinguishes(self) -> bool:
        """Whether it can tell actions apart at all."""
        return self.share(0.0) < 1.0

    def share(self, wanted: float) -> float:
        """The share of choices to be made uniformly: ``wanted``, or all of them."""
        if self.number == 0:
            return 1.0
        return float(kernel.uniform_share(wanted, self._figures))

    def drawn(self, actions: _F64, rule: kernel.PosteriorRule, coin: float, found: _F64) -> int:
        """The action that a uniform number stands for, under the rule of `policies.PosteriorUCB`.

        Args:
            actions: the decision set, shape (K, d).
            rule: deviations that are added to an estimate, how many more for each unit of
                sqrt(ln(rows) / d), how far tilts go, and the share of uniform choices.
            coin: uniform between 0 and 1.
            found: filled with the probability of each action, shape (K,).

        Returns:
            Its index.
        """
        known = self._plans.get(rule) or self._plan(rule)
        shape = (self.weights, self.factor, self.firsts)
        return int(kernel.drawn(actions, *shape, *known, coin, found))

    def probabilities(self, sets: _F64, rule: kernel.PosteriorRule) -> _F64:
        """How probable each action of many decision sets is, under such a rule.

        Args:
            sets: decision sets of the same size, shape (n, K, d).
            rule: as for `drawn`.

        Returns:
            Probabilities, shape (n, K): those that `drawn` gives for one set after the other.
        """
        known = self._plans.get(rule) or self._plan(rule)
        found = np.empty(sets.shape[:2])
        kernel.probabilities(sets, self.weights, self.factor, self.firsts, *known, found)
        return found

    def _plan(self, rule: kernel.PosteriorRule) -> tuple[float, _F64, float]:
        """What a rule comes to with this release: optimism, tilts and the uniform share."""
        deviations, growth, dither, uniform = rule
        counted = self.rows if self.memory is None else min(self.rows, self.memory)
        bonus = float(kernel.bonus(deviations, growth, counted, self.centre.size))
        scale = kernel.dither(dither, self._figures)
        shifts = kernel.tilts(self.number, self.factor, self.firsts, scale)
        self._plans[rule] = (bonus, shifts, self.share(uniform))
        return self._plans[rule]

    @cached_property
    def _plans(self) -> dict[tuple[float, float, float, float], tuple[float, _F64, float]]:
        return {}

    @cached_property
    def _figures(self) -> _F64:
        return np.array([self.prior, self.known])


def posterior(release: "Release", *, halvings: int = kernel.HALVINGS) -> Posterior:
    """What a release says about the parameter: a function of the release alone.

    Args:
        release: any release whose noise is known.
        halvings: how often the stated variance of the prior may be halved if the release says so;
            0 to take it as it is stated.

    Returns:
        The posterior; before the first release the prior.

    Raises:
        ParameterError: the noise was supplied by the caller, so its law is not known.
    """
    mechanism = release.mechanism
    dim = release.moment.size
    known = mechanism.posterior_terms._replace(halvings=halvings)
    lower, weights, centre = np.zeros((dim, dim)), np.zeros(dim), np.zeros(dim)
    figures = np.array([known.prior, 0.0])
    if release.number == 0:
        np.fill_diagonal(lower, known.prior)
    else:
        law = mechanism.law
        noise = kernel.Noise(
            release.spread * law.scale, release.spread * law.moment_scale, release.weight
        )
        gram = release.gram
        if mechanism.shift:
            gram = gram - mechanism.shift * np.eye(dim)
        with _blas.one_thread():
            kernel.fill(gram, release.moment, noise, known, lower, weights, centre, figures)
    return Posterior(
        centre,
        weights,
        lower,
        mechanism.firsts,
        number=release.number,
        rows=release.rows,
        prior=float(figures[kernel.PRIOR]),
        stated=known.prior,
        known=float(figures[kernel.KNOWN]),
        offset=mechanism.setting.problem.reward_centre,
        memory=mechanism.memory,
    )
