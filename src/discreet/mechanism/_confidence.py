"""How a release becomes a confidence set around the private estimate: the paper's way, and ours.

Paper: eq:def-ellip and prop:calc-beta. Ours: docs/width.md.

A set covers the true parameter with probability 1 - alpha if rewards are linear in the actions up
to sub-Gaussian noise. Clipping rows or rewards that are really outside the bounds, or losing
rewards depending on their value, takes that away; the privacy guarantee does not depend on it.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet import _blas
from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _score as score
from discreet.kernels import _width as width
from discreet.mechanism import _tails as tails
from discreet.mechanism._cost import HasTwoScales
from discreet.mechanism._read_only import read_only
from discreet.mechanism.schedules import Schedule
from discreet.problem import Setting
from discreet.theory import NoiseBounds

if TYPE_CHECKING:
    from discreet.mechanism._mechanism import Mechanism

F64 = NDArray[np.float64]


class Region(Protocol):
    """A confidence set, as policies use it."""

    @property
    def centre(self) -> F64:
        """The private estimate, shape (d,)."""

    def widths(self, actions: F64) -> F64:
        """How far the estimate of each action's mean reward may be off, shape (K,).

        Args:
            actions: the decision set, shape (K, d), an action a row.

        Returns:
            A width for each action, at least 0.
        """

    def best(self, actions: F64, optimism: float) -> int:
        """The first action with the largest estimate plus ``optimism`` widths.

        Args:
            actions: the decision set, shape (K, d), an action a row.
            optimism: how many widths are added to an estimate.

        Returns:
            The action's index.
        """

    def best_of_a_draw(self, actions: F64, optimism: float, normals: F64) -> int:
        """The first best action for the parameter that d standard normals stand for.

        Args:
            actions: the decision set, shape (K, d), an action a row.
            optimism: how much wider than the set the draw is.
            normals: standard normals, shape (d,): public randomness.

        Returns:
            The action's index.
        """


@runtime_checkable
class Confidence(Protocol):
    """A way to make a confidence set of a release."""

    @property
    def kind(self) -> str:
        """The name under which it is saved."""

    @property
    def shift(self) -> float:
        """The multiple of the identity in every released Gram matrix."""

    @property
    def bounds(self) -> NoiseBounds | None:
        """Accurate bounds on the perturbations, where the set is made of them."""

    @property
    def prior(self) -> float | None:
        """The share of the mixing prior, where the set has one."""

    def require_fitting(self, mechanism: "Mechanism") -> None:
        """Refuse a schedule, a strategy or noise that the set does not hold for.

        Args:
            mechanism: what the set is to be a part of.

        Raises:
            ParameterError: the set does not hold for its schedule, its strategy or its noise.
        """

    def most_releases(self, schedule: Schedule, horizon: int) -> int:
        """How many releases there are, if the set can be made for so many.

        Args:
            schedule: when there is a release.
            horizon: the most rows there will be.

        Returns:
            The number of releases.

        Raises:
            ParameterError: there are too many.
        """

    def noise_table(
        self, setting: Setting, numbers: NDArray[np.int64], norms: F64
    ) -> width.NoiseTable:
        """How much noise each release holds, as far as the set needs to know it.

        Args:
            setting: problem, horizon and failure probability.
            numbers: of some releases, ascending, the last there can be included.
            norms: how much noise they hold, in multiples of one draw.

        Returns:
            The table; the entry for a release that is not in it is the next one.
        """

    def region(self, mechanism: "Mechanism", number: int, gram: F64, moment: F64) -> Region:
        """The confidence set of release ``number``: a function of the release alone.

        Args:
            mechanism: the noise of the release, and the setting; public.
            number: the release's number, 0 before any row.
            gram: the released Gram matrix, symmetric, shape (d, d).
            moment: the released moment, shape (d,).

        Returns:
            The set.
        """


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """All theta with ||theta - centre||_V <= radius.

    Attributes:
        centre: the private estimate V^-1 u, shape (d,).
        weights: D^-1 L^-1 u, with V = L D L^T, shape (d,).
        factor: L below the diagonal and the reciprocals of D on it, shape (d, d).
        radius: beta_t.

    Examples:
        >>> import numpy as np
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=None, variant="nonprivate")
        >>> bandit.learn(bandit.choose([[1.0, 0.0]]), reward=1.0)
        >>> region = bandit.confidence
        >>> narrow, wide = region.widths(np.eye(2))
        >>> bool(narrow < wide)  # more is known of the action that was tried
        True
    """

    centre: F64
    weights: F64
    factor: F64
    radius: float

    def __post_init__(self) -> None:
        """Make the arrays read-only: the set is a fact about a release."""
        for name in ("centre", "weights", "factor"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def lower(self) -> F64:
        """The Cholesky factor of V, L D^(1/2), shape (d, d)."""
        unit = np.tril(self.factor, -1) + np.eye(len(self.factor))
        return np.asarray(unit / np.sqrt(np.diag(self.factor)))

    def distance(self, theta: F64) -> float:
        """How far theta is from the centre, ||theta - centre||_V.

        Args:
            theta: a parameter, shape (d,).

        Returns:
            The distance; at most ``radius`` inside the set.
        """
        return float(np.linalg.norm(self.lower.T @ (theta - self.centre)))

    def __contains__(self, theta: F64) -> bool:
        return self.distance(theta) <= self.radius

    def widths(self, actions: F64) -> F64:
        """The width beta_t ||x||_{V^-1} of each action, shape (K,).

        Args:
            actions: the decision set, shape (K, d).

        Returns:
            How far the estimate of each mean reward may be off.
        """
        whitened = np.linalg.solve(self.lower, actions.T)
        return np.asarray(self.radius * np.linalg.norm(whitened, axis=0))

    def best(self, actions: F64, optimism: float) -> int:
        """The first action with the largest estimate plus ``optimism`` widths.

        Args:
            actions: the decision set, shape (K, d).
            optimism: how many widths are added to an estimate.

        Returns:
            The action's index.
        """
        return self._best(self.weights, optimism * self.radius, actions)

    def best_of_a_draw(self, actions: F64, optimism: float, normals: F64) -> int:
        """The first best action for the parameter that d standard normals stand for.

        A draw of the parameter is a draw of its weights, with covariance D^-1 times a square.

        Args:
            actions: the decision set, shape (K, d).
            optimism: how much wider than the set the draw is.
            normals: standard normals, shape (d,).

        Returns:
            The action's index.
        """
        scales = optimism * self.radius * np.sqrt(np.diag(self.factor))
        return self._best(self.weights + scales * normals, 0.0, actions)

    def _best(self, weights: F64, bonus: float, actions: F64) -> int:
        scores, one_block = np.empty(len(actions)), np.zeros(weights.size, np.int64)
        features = _feature_major(actions)
        return score.best(features, 0, weights, self.factor, one_block, bonus, scores)


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

    Examples:
        >>> import numpy as np
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> bandit.observe([[1.0, 0.0]] * 200, [1.0] * 200)
        >>> bandit.confidence.widths(np.eye(2)).shape
        (2,)
    """

    centre: F64
    basis: F64
    weights: F64
    noise: F64
    bias: F64
    shift: float

    def __post_init__(self) -> None:
        """Make the arrays read-only: the set is a fact about a release."""
        for name in ("centre", "basis", "weights", "noise", "bias"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def widths(self, actions: F64) -> F64:
        """How far the estimate of each action's mean reward may be off, shape (K,).

        Args:
            actions: the decision set, shape (K, d).

        Returns:
            A width for each action.
        """
        squares = (actions @ self.basis) ** 2
        return np.asarray(np.sqrt(squares @ self.noise) + np.sqrt(squares @ self.bias))

    def best(self, actions: F64, optimism: float) -> int:
        """The first action with the largest estimate plus ``optimism`` widths.

        Args:
            actions: the decision set, shape (K, d).
            optimism: how many widths are added to an estimate.

        Returns:
            The action's index.
        """
        return self._best(self.weights, optimism, actions)

    def best_of_a_draw(self, actions: F64, optimism: float, normals: F64) -> int:
        """The first best action for the parameter that d standard normals stand for.

        Args:
            actions: the decision set, shape (K, d).
            optimism: how much wider than the set the draw is.
            normals: standard normals, shape (d,).

        Returns:
            The action's index.
        """
        scales = optimism * (np.sqrt(self.noise) + np.sqrt(self.bias))
        return self._best(self.weights + scales * normals, 0.0, actions)

    def _best(self, weights: F64, optimism: float, actions: F64) -> int:
        scores = np.empty(len(actions))
        return width.best(
            _feature_major(actions), 0, self.basis, weights, self.noise, self.bias, optimism, scores
        )


def _feature_major(actions: F64) -> F64:
    """A copy with a feature a row, as kernels take decision sets."""
    return actions.T.copy()


@dataclass(frozen=True, kw_only=True)
class PaperConfidence:
    """The paper's confidence set: an ellipsoid around the estimate. Paper: prop:calc-beta.

    Attributes:
        shift: the signed multiple of the identity added to every released Gram matrix.
        bounds: accurate bounds on the perturbations, shift included.
    """

    shift: float
    bounds: NoiseBounds
    kind: ClassVar[str] = "radius"
    prior: ClassVar[None] = None

    def __post_init__(self) -> None:
        """Check the shift."""
        checks.finite("shift", self.shift)

    def require_fitting(self, mechanism: "Mechanism") -> None:
        """Refuse all but a release after every row, through a tree if there is noise.

        Args:
            mechanism: what the set is to be a part of.

        Raises:
            ParameterError: there is a release less often, or noise that no tree shares.
        """
        if not mechanism.schedule.every_round:
            raise ParameterError("schedule", "must be every round for the paper's confidence set")
        if mechanism.strategy is not None and not mechanism.strategy.nodes_hold_sums:
            raise ParameterError("strategy", "must be a tree for the paper's confidence set")

    def most_releases(self, schedule: Schedule, horizon: int) -> int:
        """All releases: the bounds are about all of them alike, however many there are.

        Args:
            schedule: when there is a release.
            horizon: the most rows there will be.

        Returns:
            The number of releases.
        """
        return schedule.count(horizon)

    def noise_table(
        self,
        setting: Setting,  # noqa: ARG002  # one shape for all
        numbers: NDArray[np.int64],  # noqa: ARG002  # as above
        norms: F64,  # noqa: ARG002  # as above
    ) -> width.NoiseTable:
        """An empty table: the paper's bounds hold for every release alike.

        Args:
            setting: problem, horizon and failure probability.
            numbers: of some releases, ascending, the last there can be included.
            norms: how much noise they hold, in multiples of one draw.

        Returns:
            The table.
        """
        return no_table()

    def region(self, mechanism: "Mechanism", number: int, gram: F64, moment: F64) -> Ellipsoid:
        """The ellipsoid with the paper's radius.

        Args:
            mechanism: the noise of the release, and the setting; public.
            number: the release's number.
            gram: the released Gram matrix, symmetric, shape (d, d).
            moment: the released moment, shape (d,).

        Returns:
            The ellipsoid.
        """
        del number
        dim = moment.size
        factor, weights, centre = np.zeros((dim, dim)), np.empty(dim), np.empty(dim)
        floor = self.bounds.rho_min
        log_det = score.region(gram, moment, floor, mechanism.firsts, factor, weights, centre)
        radius = score.radius(log_det, *mechanism.radius_terms)
        return Ellipsoid(centre, weights, factor, radius)


@dataclass(frozen=True, kw_only=True)
class JointWidth:
    """The confidence set that adds reward noise and privacy noise in quadrature (docs/width.md).

    Attributes:
        prior: the share of the mixing prior, lambda_0 over the noise there is without data; the
            width is flat in it.
    """

    prior: float = 0.1
    kind: ClassVar[str] = "joint-width"
    shift: ClassVar[float] = 0.0
    bounds: ClassVar[None] = None

    def __post_init__(self) -> None:
        """Check the share."""
        checks.within("prior", checks.positive("prior", self.prior), 1e-6, 1e6)

    def require_fitting(self, mechanism: "Mechanism") -> None:
        """Refuse noise that is not Gaussian.

        Args:
            mechanism: what the set is to be a part of.

        Raises:
            ParameterError: its noise is not Gaussian.
        """
        if not isinstance(mechanism.noise, HasTwoScales):
            raise ParameterError("confidence", "of the joint-noise kind needs Gaussian noise")

    def most_releases(self, schedule: Schedule, horizon: int) -> int:
        """All releases, if they are few enough to work out the noise of each.

        Args:
            schedule: when there is a release.
            horizon: the most rows there will be.

        Returns:
            The number of releases.

        Raises:
            ParameterError: there are more than 10^8.
        """
        return schedule.require_few(horizon)

    def noise_table(
        self, setting: Setting, numbers: NDArray[np.int64], norms: F64
    ) -> width.NoiseTable:
        """The noise of every release, or of so many that the others are hardly below.

        Release i may fail in two ways, each with probability p_i = alpha / (2 i H_J), where H_J is
        the J-th harmonic number: together alpha. For many releases this is a table at some of
        them, and the next entry is an upper bound.

        Args:
            setting: problem, horizon and failure probability.
            numbers: of some releases, ascending, the last there can be included.
            norms: how much noise they hold, in multiples of one draw.

        Returns:
            For each of these numbers: the norm, the largest eigenvalue that noise of one draw has
            at most, and the logarithm of 1/p_i.
        """
        releases = int(numbers[-1])
        blocks = setting.problem.blocks  # the norm of the noise is that of one of them
        harmonic = math.log(releases) + 0.5772156649 + 1 / (2 * releases)
        log_tails = np.log(2 * harmonic * numbers) - math.log(setting.failure_prob)
        return width.NoiseTable(
            numbers,
            norms,
            tails.largest_eigenvalue(max(blocks), log_tails + math.log(len(blocks))),
            log_tails,
        )

    def region(self, mechanism: "Mechanism", number: int, gram: F64, moment: F64) -> JointRegion:
        """The set with both kinds of noise in its widths; before any release, all there may be.

        Args:
            mechanism: the noise of the release, and the setting; public.
            number: the release's number, 0 before any row.
            gram: the released Gram matrix, symmetric, shape (d, d).
            moment: the released moment, shape (d,).

        Returns:
            The set.
        """
        dim = moment.size
        basis, weights = np.empty((dim, dim)), np.empty(dim)
        noise, bias = np.empty(dim), np.empty(dim)
        terms = mechanism.width_terms
        shift = math.inf
        if number == 0:
            width.nothing(terms.theta_norm, basis, weights, noise, bias)
        else:
            heaviest = 1.0 if mechanism.strategy is None else mechanism.strategy.heaviest(number)
            known = (number, heaviest, mechanism.noise_table, mechanism.law, terms)
            with _blas.one_thread():
                shift = width.region(gram, moment, *known, basis, weights, noise, bias)
        return JointRegion(basis @ weights, basis, weights, noise, bias, shift)


def no_table() -> width.NoiseTable:
    """The table where no release needs one."""
    nothing = np.zeros(1)
    return width.NoiseTable(np.array([2**62]), nothing, nothing, nothing)


def some_numbers(releases: int) -> NDArray[np.int64]:
    """All numbers up to a few thousand, and then one in 500: ascending, the last included."""
    few = np.arange(1, min(releases, 4096) + 1)
    more = np.exp(np.arange(math.log(4096), math.log(max(4097, releases)), 1 / 500))
    later = more[more < releases].astype(np.int64)
    return np.unique(np.concatenate([few, later, [releases]])).astype(np.int64)
