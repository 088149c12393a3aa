"""How noise is shared between releases.

Rows fall into batches, one for each release. With x the batch sums and A the lower triangular
matrix of weights that batches have in releases, the releases are A x plus noise A C^-1 z: C is the
*encoder*, z one independent draw for each release (or for each node of a tree). One row costs as
much as the longest column of C (`column_norm`); the noise in release i is as large as row i of the
*decoder* A C^-1 (`row_norms`), in multiples of one draw. C is lower triangular, so later batches
may depend on earlier releases. A is all ones but for `Windows`, which weigh batches.

Every strategy can also be written out as matrices (`encoder`, `decoder`), which is how tests check
it.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import beta

from discreet import _checks as checks
from discreet.accounting import tree_depth, tree_length
from discreet.errors import ParameterError
from discreet.kernels import _buffers as buffers
from discreet.kernels._sums import BUFFERS, MATRIX, NO_FILTER, TREE, Arrays, Sharing
from discreet.mechanism._feedback import BufferFeedback, Feedback, HistoryFeedback
from discreet.mechanism._matrices import (
    decoder,
    few,
    lower_toeplitz,
    optimised,
    tree_matrices,
)
from discreet.mechanism._windows import Windows
from discreet.mechanism.schedules import Schedule

__all__ = [
    "Buffered",
    "Optimised",
    "SquareRoot",
    "Strategy",
    "Tree",
    "Windows",
    "independent",
    "tree",
]

_F64 = NDArray[np.float64]
_I64 = NDArray[np.int64]

_WIDEST = 1e12  # how far apart weights may be
_NOTHING = np.empty(0)
_NO_MATRIX = np.empty((0, 0))


@runtime_checkable
class Strategy(Protocol):
    """A way to share noise between up to J releases.

    The module's description has the terms. What is promised rests on `person_cost`, which must not
    be too small, and on `sharing` and `feedback` doing what `encoder` says; all are public, and
    see no row. The short way to a strategy of your own is a subclass of `SquareRoot` with another
    `kind`, `encoder` and `decoder`. It is for learners in memory: a file cannot hold it.
    """

    @property
    def kind(self) -> str:
        """The name under which it is saved."""

    @property
    def nodes_hold_sums(self) -> bool:
        """Whether rows are added up in its nodes, so that all rows must fit into one sum."""

    def column_norm(self, releases: int) -> float:
        """The longest column of C, rounded up: what one row costs.

        Args:
            releases: J, the most releases there can be.

        Returns:
            The length, in multiples of what one row costs in one sum.
        """

    def person_cost(self, releases: int, contributions: int, *, every_round: bool) -> float:
        """What one person's rounds cost over all releases, as a multiple of one row in one sum.

        Args:
            releases: J, the most releases there can be.
            contributions: in how many rounds the person takes part.
            every_round: whether every row is a batch of its own.

        Returns:
            The cost, not rounded up.
        """

    def row_norms(self, releases: int, numbers: _I64) -> _F64:
        """How long rows ``numbers`` (from 1, ascending) of the decoder are, or upper bounds.

        Rows in between are no longer than the next of these.

        Args:
            releases: J, the most releases there can be.
            numbers: of some releases, from 1, ascending, shape (n,).

        Returns:
            The deviation of each one's noise in multiples of one draw, shape (n,).
        """

    def amounts(self, held: Arrays) -> tuple[float, float] | None:
        """The noise of the release, in multiples of one draw, and the total weight of its rows.

        None where that depends on the release's number alone, and every row counts one.

        Args:
            held: what is held since that release.

        Returns:
            Both numbers, public, or None.
        """

    def heaviest(self, number: int) -> float:
        """The largest weight of any row in release ``number``.

        Args:
            number: the release's number, from 1.

        Returns:
            The weight; 1 if all rows count alike.
        """

    def batch_weights(self, releases: int) -> _F64:
        """How much a row of each batch counts in each of the first releases, shape (J, J).

        Args:
            releases: J, how many releases.

        Returns:
            A release a row, a batch a column; 0 above the diagonal.
        """

    def require_schedule(self, schedule: Schedule) -> None:
        """Refuse release times that this strategy was not made for.

        Args:
            schedule: when there is a release.

        Raises:
            ParameterError: the strategy is for another schedule.
        """

    def require_held(self, held: Arrays, number: int) -> None:
        """Check what is public in stored arrays, as far as it follows from the number of releases.

        Args:
            held: what was stored.
            number: how many releases there had been.

        Raises:
            ValueError: it cannot be so after that many releases.
        """

    def sharing(self, releases: int) -> Sharing:
        """This strategy as arguments of the compiled kernels.

        They know trees, buffers, windows and decoders written out, and nothing else.

        Args:
            releases: J, the most releases there can be.

        Returns:
            Which of these it is, with the numbers that they need.
        """

    def feedback(self, releases: int) -> Feedback | None:
        """How noise in whole numbers is made of earlier noise; None if all draws are used as is.

        Args:
            releases: J, the most releases there can be.

        Returns:
            How the noise of one release follows from that of earlier ones, or None.
        """

    def float_arrays(self, releases: int, size: int) -> Arrays:
        """What is held before the first release, in floating point: zeros.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.

        Returns:
            Arrays of zeros. Row 0 of ``totals`` is what is released.
        """

    def integer_arrays(self, releases: int, size: int, number: int) -> Arrays:
        """Room for what is held after some releases, in whole numbers: zeros.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.
            number: how many releases there have been.

        Returns:
            Arrays of zeros. Row 0 of ``totals`` is what is released.
        """

    def encoder(self, releases: int) -> _F64:
        """C written out, shape (draws, J).

        Args:
            releases: J, how many releases: few, as the matrix is written out.

        Returns:
            The matrix, a draw a row and a batch a column.
        """

    def decoder(self, releases: int) -> _F64:
        """The matrix from draws to the noise of releases, shape (J, draws).

        Args:
            releases: J, how many releases: few, as the matrix is written out.

        Returns:
            The matrix, a release a row and a draw a column.
        """


class _PlainSums:
    """What all strategies share that show sums of all rows alike."""

    def amounts(self, held: Arrays) -> None:
        """None: noise depends on the release's number alone."""
        del held

    def heaviest(self, number: int) -> float:
        """One, for every row."""
        del number
        return 1.0

    def batch_weights(self, releases: int) -> _F64:
        """One, from the release on that a batch is in."""
        return np.tril(np.ones((releases, releases)))

    def require_schedule(self, schedule: Schedule) -> None:
        """Accept any release times."""

    def require_held(self, held: Arrays, number: int) -> None:
        """Accept any arrays: nothing in them is public.

        Args:
            held: what was stored.
            number: how many releases there had been.
        """


@dataclass(frozen=True)
class Tree(_PlainSums):
    """The binary tree: a batch is in one node of each level. Paper: sec:alg-dp.

    Attributes:
        pan_private: whether a level without a finished node shows an independent draw instead, so
            that every release holds exactly m draws; otherwise such a level shows nothing, and a
            release holds at most m.
    """

    pan_private: bool = True
    kind: ClassVar[str] = "tree"
    nodes_hold_sums: ClassVar[bool] = True

    def column_norm(self, releases: int) -> float:
        """The square root of the m nodes that hold a batch.

        Args:
            releases: J, the most releases there can be.

        Returns:
            sqrt(m).
        """
        return math.sqrt(tree_depth(releases))

    def person_cost(self, releases: int, contributions: int, *, every_round: bool) -> float:
        """Less than all rounds in one batch if every row is a batch: nodes hold few rows then.

        Args:
            releases: J, the most releases there can be.
            contributions: in how many rounds the person takes part.
            every_round: whether every row is a batch of its own.

        Returns:
            The cost, not rounded up.
        """
        if every_round:
            return tree_length(depth=tree_depth(releases), contributions=contributions)
        return contributions * self.column_norm(releases)

    def row_norms(self, releases: int, numbers: _I64) -> _F64:
        """sqrt(m), or the root of the most draws that any release up to that number holds.

        Args:
            releases: J, the most releases there can be.
            numbers: of some releases, from 1, ascending, shape (n,).

        Returns:
            The deviation of each one's noise in multiples of one draw, shape (n,).
        """
        if self.pan_private:
            return np.full(len(numbers), math.sqrt(tree_depth(releases)))
        return np.sqrt([max(n.bit_length() - 1, n.bit_count()) for n in map(int, numbers)])

    def sharing(self, releases: int) -> Sharing:
        """Nodes of m levels, and idle draws if pan-private."""
        levels = tree_depth(releases)
        return Sharing(TREE, levels, self.pan_private, _NOTHING, _NOTHING, _NO_MATRIX, NO_FILTER)

    def feedback(self, releases: int) -> None:
        """None: every node has noise of its own."""

    def float_arrays(self, releases: int, size: int) -> Arrays:
        """A node and an idle draw for each level, and their running totals.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.

        Returns:
            Arrays of zeros: ``nodes`` and ``idle`` of shape (m, p), ``totals`` of shape (m + 1, p).
        """
        return self._arrays(releases, size, np.float64)

    def integer_arrays(self, releases: int, size: int, number: int) -> Arrays:
        """The same in 64-bit whole numbers, however many releases there have been.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.
            number: how many releases there have been; it makes no difference.

        Returns:
            Arrays of zeros, of the same shapes.
        """
        del number
        return self._arrays(releases, size, np.int64)

    @staticmethod
    def _arrays(releases: int, size: int, dtype: type) -> Arrays:
        levels = tree_depth(releases)
        return Arrays(*(np.zeros((rows, size), dtype) for rows in (levels, levels, levels + 1)))

    def encoder(self, releases: int) -> _F64:
        """A row for each node that some release shows, and an empty one for each idle draw."""
        return tree_matrices(releases, idle=self.pan_private)[0]

    def decoder(self, releases: int) -> _F64:
        """Which draws are in which release."""
        return tree_matrices(releases, idle=self.pan_private)[1]


_TREES = {"pan-private": Tree(pan_private=True), "covering": Tree(pan_private=False)}


def tree(form: str) -> Tree:
    """The tree of this form: 'pan-private' or 'covering'.

    Args:
        form: 'pan-private' or 'covering'.

    Returns:
        The strategy.

    Raises:
        ParameterError: it is neither.
    """
    return _TREES[checks.one_of("tree", form, tuple(_TREES))]


@dataclass(frozen=True)
class Buffered(_PlainSums):
    """A Toeplitz encoder made of a few decaying buffers: memory that does not grow.

    The coefficients follow (1 - x)^(-exponent), whose k-th is the k-th moment of a Beta variable:
    a mixture of decays, taken here at a few points evenly spaced in the logit. With exponent 1/2
    it follows the square-root factor, whose columns lengthen with the number of releases; below
    1/2 they stay bounded, however many releases there are, and noise grows instead with the
    release's number, slowly. ``exponent`` 0 has no buffers: independent noise for each batch.
    """

    exponent: float = 0.4
    spacing: float = 1.6
    kind: ClassVar[str] = "buffered"
    nodes_hold_sums: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the family's range."""
        exponent = checks.finite("exponent", self.exponent)
        spacing = checks.finite("spacing", self.spacing)
        object.__setattr__(self, "exponent", checks.within("exponent", exponent, 0.0, 0.9))
        object.__setattr__(self, "spacing", checks.within("spacing", spacing, 0.2, 5.0))

    def mixture(self, releases: int) -> tuple[_F64, _F64]:
        """(decays, weights) of the buffers: c_k = sum of weight * decay^(k-1), and c_0 = 1.

        Args:
            releases: J, the most releases there can be.

        Returns:
            Both of shape (b,), for b buffers; b grows with ln J.
        """
        if self.exponent == 0.0:
            return _NOTHING, _NOTHING
        logits = np.arange(0.0, math.log(max(2, releases)) + 1.0, self.spacing)
        decays = 1 / (1 + np.exp(-logits))
        mass = decays**self.exponent * (1 - decays) ** (1 - self.exponent)
        mass *= self.spacing / beta(self.exponent, 1 - self.exponent)
        return decays, mass * decays

    def column_norm(self, releases: int) -> float:
        """The first column, which is the longest.

        Args:
            releases: J, the most releases there can be.

        Returns:
            Its length, rounded up.
        """
        decays, weights = self.mixture(releases)
        # The sum over k of c_k^2 is a geometric series for each pair of buffers.
        pairs = np.multiply.outer(decays, decays)
        series = (1 - pairs ** (releases - 1)) / (1 - pairs)
        square = 1 + float(weights @ series @ weights)
        # What cancels in 1 - pairs loses more digits the nearer a decay is to one.
        lost = max(1e-11, 2e-16 / float(1 - decays.max(initial=0.0)))
        return math.sqrt(square) * (1 + lost)

    def person_cost(self, releases: int, contributions: int, *, every_round: bool) -> float:
        """As if all rounds were in one batch, the costliest one.

        Args:
            releases: J, the most releases there can be.
            contributions: in how many rounds the person takes part.
            every_round: whether every row is a batch of its own; it makes no difference.

        Returns:
            The cost, not rounded up.
        """
        del every_round
        return contributions * self.column_norm(releases)

    def row_norms(self, releases: int, numbers: _I64) -> _F64:
        """By running the recurrence on a single impulse.

        Args:
            releases: J, the most releases there can be.
            numbers: of some releases, from 1, ascending, shape (n,).

        Returns:
            The deviation of each one's noise in multiples of one draw, shape (n,).
        """
        return np.asarray(buffers.row_norms(*self.mixture(releases), numbers))

    def sharing(self, releases: int) -> Sharing:
        """The decays and weights of the buffers, for the compiled loop."""
        return Sharing(BUFFERS, 0, False, *self.mixture(releases), _NO_MATRIX, NO_FILTER)  # noqa: FBT003  # a tuple, by place

    def feedback(self, releases: int) -> Feedback:
        """The buffers as in `sharing`, in fixed point."""
        return BufferFeedback(*self.mixture(releases))

    def float_arrays(self, releases: int, size: int) -> Arrays:
        """The buffers, and what is released.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.

        Returns:
            Arrays of zeros: ``nodes`` of shape (b, p) for b buffers, ``totals`` of shape (1, p).
        """
        buffers = np.zeros((len(self.mixture(releases)[0]), size))
        return Arrays(nodes=buffers, idle=np.zeros((0, size)), totals=np.zeros((1, size)))

    def integer_arrays(self, releases: int, size: int, number: int) -> Arrays:
        """The buffers in whole numbers of any size, however many releases there have been.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.
            number: how many releases there have been; it makes no difference.

        Returns:
            Arrays of zeros, of the same shapes, in Python's own whole numbers.
        """
        del number
        return _unbounded(len(self.mixture(releases)[0]), size)

    def encoder(self, releases: int) -> _F64:
        """A lower triangular Toeplitz matrix."""
        decays, weights = self.mixture(releases)
        column = np.concatenate(
            [[1.0], (decays[:, None] ** np.arange(releases - 1) * weights[:, None]).sum(axis=0)]
        )
        return lower_toeplitz(column)

    def decoder(self, releases: int) -> _F64:
        """The product A C^-1, from draws to the noise of releases."""
        return decoder(self.encoder(releases))


def independent() -> Buffered:
    """Independent noise for every batch, C = I: noise grows as the root of the release's number."""
    return Buffered(exponent=0.0)


class _Written(_PlainSums):
    """A strategy given by its encoder, written out. All draws are kept."""

    nodes_hold_sums: ClassVar[bool] = False

    def _matrices(self, releases: int) -> tuple[_F64, _F64]:
        raise NotImplementedError

    def column_norm(self, releases: int) -> float:
        """The longest column of the matrix, with room for rounding."""
        return float(np.linalg.norm(self.encoder(releases), axis=0).max()) * (1 + 1e-11)

    def person_cost(self, releases: int, contributions: int, *, every_round: bool) -> float:
        """As if all rounds were in one batch, the costliest one.

        Args:
            releases: J, the most releases there can be.
            contributions: in how many rounds the person takes part.
            every_round: whether every row is a batch of its own; it makes no difference.

        Returns:
            The cost, not rounded up.
        """
        del every_round
        return contributions * self.column_norm(releases)

    def row_norms(self, releases: int, numbers: _I64) -> _F64:
        """The lengths of the decoder's rows.

        Args:
            releases: J, the most releases there can be.
            numbers: of some releases, from 1, ascending, shape (n,).

        Returns:
            The deviation of each one's noise in multiples of one draw, shape (n,).
        """
        return np.asarray(np.linalg.norm(self.decoder(releases), axis=1)[numbers - 1])

    def sharing(self, releases: int) -> Sharing:
        """The decoder written out, for the compiled loop."""
        decoder = self.decoder(releases).copy()  # a kernel's own
        return Sharing(MATRIX, 0, False, _NOTHING, _NOTHING, decoder, NO_FILTER)  # noqa: FBT003  # a tuple, by place

    def feedback(self, releases: int) -> Feedback:
        """A weighted sum of all noise so far."""
        return HistoryFeedback(self.encoder(releases))

    def float_arrays(self, releases: int, size: int) -> Arrays:
        """All draws, the noise in the last release, and what is released.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.

        Returns:
            Arrays of zeros: ``nodes`` of shape (J, p), ``idle`` and ``totals`` of shape (1, p).
        """
        return Arrays(*(np.zeros((rows, size)) for rows in (few(releases), 1, 1)))

    def integer_arrays(self, releases: int, size: int, number: int) -> Arrays:
        """The noise of every release so far, in whole numbers of any size.

        Args:
            releases: J, the most releases there can be.
            size: p, the length of a packed row.
            number: how many releases there have been.

        Returns:
            Arrays of zeros in Python's own whole numbers: ``nodes`` of shape (number, p), and
            ``totals`` of shape (1, p).
        """
        del releases
        return _unbounded(number, size)

    def encoder(self, releases: int) -> _F64:
        """The matrix C, as it is written out."""
        return self._matrices(few(releases))[0]

    def decoder(self, releases: int) -> _F64:
        """The product A C^-1, from draws to the noise of releases."""
        return self._matrices(few(releases))[1]


@dataclass(frozen=True)
class SquareRoot(_Written):
    """The square root of the matrix of ones: C = A C^-1 = A^(1/2), the classical factor.

    Fichtenberger, Henzinger & Upadhyay (2023). Both norms are about sqrt(1 + ln(J)/pi).
    """

    kind: ClassVar[str] = "square-root"

    def _matrices(self, releases: int) -> tuple[_F64, _F64]:
        column = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, releases)]))
        factor = lower_toeplitz(column)
        return factor, factor


@dataclass(frozen=True)
class Optimised(_Written):
    """The encoder with the least weighted noise variance, found numerically.

    It minimises the sum over releases of weight * variance for columns of length at most 1.
    The dual's fixed point v = diag((V^1/2 A^T W A V^1/2)^1/2), V = diag(v), gives the Gram matrix
    of C (Denisov, McMahan, Rush, Smith & Thakurta 2022).

    Attributes:
        weights: one for each release, all positive and within a factor of 10^12; as many as there
            will be releases. A step takes O(J^3) time, and `load` takes all of them.
        turns: steps of the fixed point, at most 10,000.
    """

    weights: tuple[float, ...] = field(repr=False)
    turns: int = 100
    kind: ClassVar[str] = "optimised"

    def __init__(self, weights: ArrayLike, *, turns: int = 100) -> None:
        """Check the weights."""
        values = np.asarray(weights, dtype=np.float64)
        if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
            raise ParameterError("weights", "must be a list of positive numbers, one per release")
        if values.max() > _WIDEST * values.min():
            raise ParameterError("weights", f"must be within a factor of {_WIDEST:g} of each other")
        object.__setattr__(self, "weights", tuple(float(value) for value in values))
        checks.within("turns", checks.count("turns", turns), 1, 10_000)
        object.__setattr__(self, "turns", int(turns))

    def column_norm(self, releases: int) -> float:
        """The longest column, with room for what another machine makes of the same weights."""
        return super().column_norm(releases) * (1 + 1e-7)

    def _matrices(self, releases: int) -> tuple[_F64, _F64]:
        if releases != len(self.weights):
            raise ParameterError(
                "weights",
                f"has {len(self.weights)} entries for {releases} releases; give one for each",
            )
        return optimised(self.weights, self.turns)


def _unbounded(nodes: int, size: int) -> Arrays:
    """Zeros for noise and totals in Python's own whole numbers, which cannot overflow."""
    return Arrays(
        nodes=np.full((nodes, size), 0, dtype=object),
        idle=np.empty((0, size), dtype=np.int64),
        totals=np.full((1, size), 0, dtype=object),
    )
