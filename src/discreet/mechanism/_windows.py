"""The strategy of decaying windows, with or without a memory. Proofs: docs/windows.md."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _windows as windows
from discreet.kernels._sums import WINDOWS, Arrays, Sharing
from discreet.mechanism._feedback import Feedback, WindowFeedback
from discreet.mechanism._matrices import few
from discreet.mechanism.schedules import Schedule
from discreet.problem import Problem

_F64 = NDArray[np.float64]
_I64 = NDArray[np.int64]
_NOTHING = np.empty(0)
_NO_MATRIX = np.empty((0, 0))


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Sums that forget: a fresh draw for each of them, and a filter over all (docs/windows.md).

    A release shows the sum of all rows so far with weights that grow with a row's number, plus
    noise of its own. What a row costs over all releases is what it costs in one, however many
    there are. With a ``memory`` rows that are much older than that hardly count any more, so that
    the sums follow a world that changes (docs/drift.md). The filter is post-processing: its numbers
    below decide how good the estimate is, and nothing about privacy.

    Attributes:
        schedule: when there is a release.
        variance: of a reward.
        draw: the variance that one draw adds to moment - gram @ theta, on average of directions.
        share: how much information one of the first rows brings in one direction.
        full: how many rows bring that much; later ones 1/t of it, up to the memory.
        memory: how many rows are remembered: after so many more a row counts e times less. None to
            forget nothing.
    """

    schedule: Schedule
    variance: float
    draw: float
    share: float
    full: float
    memory: int | None = None
    kind: ClassVar[str] = "windows"
    nodes_hold_sums: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the filter's numbers."""
        for name in ("variance", "draw", "share", "full"):
            object.__setattr__(self, name, checks.positive(name, getattr(self, name)))
        if self.memory is not None:
            memory = checks.count("memory", self.memory, least=2)
            object.__setattr__(self, "memory", int(checks.within("memory", memory, 2, _LONGEST)))
            self.schedule.require_few(windows.SETTLED * self.memory)

    @staticmethod
    def draw_variance(problem: Problem, *, gram_std: float, moment_std: float) -> float:
        """The variance that one draw adds to moment - gram @ theta, on average of directions.

        Args:
            problem: the stated bounds; theta is as long as they allow.
            gram_std: the deviation of the Gram matrix's noise, off the diagonal.
            moment_std: that of the moment's noise.

        Returns:
            The variance.
        """
        square = problem.theta_norm**2 * (1 + 1 / problem.dim)
        return moment_std**2 + square * gram_std**2

    @classmethod
    def fitted(
        cls,
        schedule: Schedule,
        problem: Problem,
        *,
        gram_std: float,
        moment_std: float,
        memory: int | None = None,
    ) -> "Windows":
        """Windows with the filter that suits a problem and noise of these deviations.

        Args:
            schedule: when there is a release.
            problem: the stated bounds.
            gram_std: of one draw, off the diagonal; 0 if the matrix is exact.
            moment_std: of one draw.
            memory: how many rows are remembered; None to forget nothing.

        Returns:
            The strategy.
        """
        draw = cls.draw_variance(problem, gram_std=gram_std, moment_std=moment_std)
        variance, share = problem.reward_subgaussian**2, problem.action_norm**2 / problem.dim
        return cls(
            schedule=schedule,
            variance=variance,
            draw=draw,
            share=share,
            full=_FULL * draw / (variance * share),
            memory=memory,
        )

    @property
    def filter(self) -> windows.Filter:
        """The filter's numbers, for compiled code."""
        memory = windows.NEVER if self.memory is None else self.memory
        return windows.Filter(self.variance, self.draw, self.share, self.full, memory)

    def column_norm(self, releases: int) -> float:
        """One: what a row costs telescopes."""
        del releases
        return 1.0

    @staticmethod
    def cost_of(contributions: int) -> float:
        """What one person's rounds cost: as if all were in one batch, which costs one release."""
        return float(contributions)

    def person_cost(self, releases: int, contributions: int, *, every_round: bool) -> float:
        """What one person's rounds cost; it does not depend on the releases.

        Args:
            releases: J, the most releases there can be; it makes no difference.
            contributions: in how many rounds the person takes part.
            every_round: whether every row is a batch of its own; it makes no difference.

        Returns:
            The cost, ``contributions``.
        """
        del releases, every_round
        return self.cost_of(contributions)

    def row_norms(self, releases: int, numbers: _I64) -> _F64:
        """By running the filter's figures: the largest of all releases since the number before.

        Noise shrinks at first, as windows to average over become more, and grows slowly after.

        Args:
            releases: J, the most releases there can be.
            numbers: of some releases, from 1, ascending, shape (n,).

        Returns:
            The deviation of each one's noise in multiples of one draw, shape (n,).
        """
        del releases
        found = np.empty(len(numbers))
        windows.largest_spreads(self.filter, self.schedule.timing, numbers, found)
        return found

    def figures(self, numbers: _I64) -> _F64:
        """The filter's figures after releases ``numbers`` (from 1, ascending)."""
        return np.asarray(windows.figures_at(self.filter, self.schedule.timing, numbers))

    def amounts(self, held: Arrays) -> tuple[float, float]:
        """The release's noise and its rows' total weight, from the filter's figures."""
        figures = held.idle[0]
        return float(figures[windows.SPREAD]), float(figures[windows.WEIGHT])

    def heaviest(self, number: int) -> float:
        """The largest weight of any row in a release, in O(number)."""
        return float(windows.largest_weight(self.filter, self.schedule.timing, number))

    def batch_weights(self, releases: int) -> _F64:
        """What the filter makes of the windows that a batch is in."""
        return np.asarray(self.decoder(releases) @ self.encoder(releases))

    def require_schedule(self, schedule: Schedule) -> None:
        """Only the one that noise and filter were worked out for.

        Args:
            schedule: when there is a release.

        Raises:
            ParameterError: it is another than ``self.schedule``.
        """
        if schedule != self.schedule:
            raise ParameterError("strategy", "has windows for another schedule; give both the same")

    def require_held(self, held: Arrays, number: int) -> None:
        """The filter's figures are public: they can be worked out again.

        Args:
            held: what was stored.
            number: how many releases there had been.

        Raises:
            ValueError: the figures are of another release.
        """
        known = self.figures(np.array([number])) if number else np.zeros_like(held.idle)
        # With a memory some figures vanish in the end, each at its own pace.
        traces = 0.0 if self.memory is None else 1e-9 * windows.sizes(known[0])
        if not (np.abs(held.idle - known) <= 1e-6 * np.abs(known) + traces).all():
            raise ValueError("the filter's figures are of another release")

    def sharing(self, releases: int) -> Sharing:
        """The filter, for the compiled loop."""
        del releases
        return Sharing(WINDOWS, 0, False, _NOTHING, _NOTHING, _NO_MATRIX, self.filter)  # noqa: FBT003  # a tuple, by place

    def feedback(self, releases: int) -> Feedback:
        """A window in whole numbers, rounded down when it is shown."""
        return WindowFeedback(self.filter, self.schedule.timing, releases)

    def float_arrays(self, releases: int, size: int) -> Arrays:
        """The window; the filter's figures; what is released, and the filter's two estimates.

        Args:
            releases: J, the most releases there can be; it makes no difference.
            size: p, the length of a packed row.

        Returns:
            Arrays of zeros: ``nodes`` of shape (1, p), the window; ``idle``, the filter's figures;
            ``totals``, of which row 0 is released.
        """
        del releases
        return self._arrays(np.zeros((1, size)), size)

    def integer_arrays(self, releases: int, size: int, number: int) -> Arrays:
        """The same arrays, with the window in whole numbers of any size.

        Args:
            releases: J, the most releases there can be; it makes no difference.
            size: p, the length of a packed row.
            number: how many releases there have been; it makes no difference.

        Returns:
            Arrays of zeros, of the same shapes.
        """
        del releases, number
        return self._arrays(np.full((1, size), 0, dtype=object), size)

    def _arrays(self, window: NDArray[Any], size: int) -> Arrays:
        return Arrays(window, self._no_figures(), np.zeros((windows.ESTIMATES, size)))

    def _no_figures(self) -> _F64:
        return np.zeros((1, windows.FIGURES if self.memory is None else windows.FORGETTING))

    def _steps(self, releases: int) -> list[windows.Step]:
        """The times around the first releases."""
        times = [0, self.schedule.after(0)]
        while len(times) < releases + 2:
            times.append(self.schedule.after(times[-1]))
        return [windows.Step(*times[b : b + 3]) for b in range(releases)]

    def encoder(self, releases: int) -> _F64:
        """Row b is gamma_b a_(k+1) ... a_b for batches k up to b."""
        found, window = np.zeros((few(releases), few(releases))), np.zeros(few(releases))
        memory = self.filter.memory
        for b, step in enumerate(self._steps(releases)):
            window *= windows.decay(step, memory)
            window[b] = 1.0
            found[b] = window / windows.enlarged(step.rows, step.after, memory)
        return found

    def decoder(self, releases: int) -> _F64:
        """What the filter makes of the draws, by giving it one at a time."""
        shown = np.zeros((few(releases), few(releases)))
        figures, found = self._no_figures()[0], np.zeros((windows.ESTIMATES, few(releases)))
        for b, step in enumerate(self._steps(releases)):
            seen = np.zeros(releases)
            seen[b] = windows.enlarged(step.rows, step.after, self.filter.memory)
            windows.follow(self.filter, step, found, figures, seen)
            shown[b] = found[windows.SHOWN]
        return shown


_FULL = 6.0  # rows bring full information until it is this many times the noise of one draw
_LONGEST = 10**15  # rows that can be remembered
