"""The raw sums of a private value, and the only way for them to leave: with noise.

Formal guarantee: neighbours are two logs that differ in up to ``contributions_per_user`` rows of
one person, replaced by any others or turned into zeros (`Privacy.neighbours`); the number of rows
is public. A row becomes four whole numbers (`_calibration`), whatever other rows are; sums are
exact; discrete Gaussian noise is added once, and what was exact is dropped. All that is shown is
computed from the noisy sums by `_release`.
"""

import os
import secrets
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _checks as checks
from discreet.errors import OutOfBoundsError, ParameterError, ShapeError, WrongProcessError
from discreet.evaluation import _release as release
from discreet.evaluation._calibration import ARGUMENT, Law, calibrated, person_cost, total_trace
from discreet.evaluation._log import Chunk, Log, Subjects, Targets
from discreet.evaluation._results import Comparison, PrivateValue
from discreet.mechanism.noise import _sampler as sampler
from discreet.mechanism.noise.sources import NoiseSource, SystemNoise
from discreet.privacy import Guarantee, Privacy

I64 = NDArray[np.int64]

_MOST_ROWS = 2**37  # 2^24 steps each stay below 2^62 in a sum


class _Held(NamedTuple):
    """What was added so far. It is replaced as a whole, so an interrupt leaves all of it or none.

    Attributes:
        rows: how many rounds there are, which is public.
        sums: of all rows, a line for each policy; None once they are released.
    """

    rows: int
    sums: I64 | None


class PrivateValues:
    """Values of policies from logged rounds, released once and with privacy.

    A stream is added chunk by chunk in constant memory; with ``subjects``, to see to it that nobody
    has more rows than stated, memory grows with the number of people. What is inside before
    `release` is secret, and cannot be copied or pickled.

    The guarantee takes it that a policy's probabilities for a round, and the propensities, do not
    depend on other people's rows of this log, unless through releases with a guarantee of their
    own, which then adds up with this one. Propensities that were estimated from the log depend on
    them. The values of a policy that was learned without privacy from the same log are not covered.

    Args:
        policies: names of the policies that are evaluated side by side. They share the budget.
        low: no reward is below this. Bounds and clip must not be chosen by looking at the log.
        high: no reward is above this.
        clip: no weight counts more than this. Noise grows with it.
        privacy: the target, for everything that is released here together.
        on_violation: what to do with a reward outside the bounds, and with a person's rows beyond
            ``contributions_per_user`` if subjects are given: 'error', or 'clip' to take the bound
            and to let such rows count as zeros.
        noise_source: for tests only. Noise comes from the operating system unless one is given,
            and one that can be repeated voids the guarantee.
    """

    def __init__(
        self,
        policies: Sequence[str] = ("policy",),
        *,
        low: float,
        high: float,
        clip: float,
        privacy: Privacy,
        on_violation: str = "error",
        noise_source: NoiseSource | None = None,
    ) -> None:
        """Start without a row; nothing is drawn before `release`."""
        clip = checks.magnitude("clip", clip)
        if not isinstance(privacy, Privacy):
            raise ParameterError("privacy", "must be Privacy(epsilon=..., delta=...)")
        privacy.require_rows("a private value")
        self._log = Log.stated(policies, low=low, high=high, clip=clip, on_violation=on_violation)
        self._privacy, self._clip = privacy, clip
        self._law = calibrated(privacy, len(self._log.policies))
        self._source = SystemNoise() if noise_source is None else noise_source
        self._id = secrets.token_hex(16)
        self._held = _Held(0, np.zeros((len(self._log.policies), 4), dtype=np.int64))
        self._released: I64 | None = None
        self._counts: dict[int | str, int] | None = None
        self._lock, self._process = threading.Lock(), os.getpid()

    @property
    def rows(self) -> int:
        """How many rounds were added, which is public."""
        return self._held.rows

    @property
    def id(self) -> str:
        """What a `Budget` knows them by, 32 hexadecimal digits."""
        return self._id

    @property
    def cost(self) -> float:
        """mu: how far one person's rows move all that is released, in deviations, rounded up."""
        return person_cost(self._law, self._privacy, len(self._log.policies))

    @property
    def trace(self) -> float:
        """K: how far all draws together are from rounded Gaussian ones."""
        return total_trace(self._law, len(self._log.policies))

    @property
    def guarantee(self) -> Guarantee:
        """What holds for everything that `release` returns, and why."""
        promised = replace(
            Guarantee.meeting(self._privacy, ARGUMENT),
            record="context, action and reward",
            joint=False,
        )
        if not self._source.secret:
            return promised.voided("its noise comes from a seed and can be repeated")
        return promised

    def __repr__(self) -> str:
        state = "secret" if self._released is None else "released"
        return f"<PrivateValues of {len(self._log.policies)} policies, {self.rows:,} rows; {state}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse copies: each could be released with noise of its own, which costs again."""
        raise TypeError("PrivateValues cannot be copied or pickled: a copy could be released twice")

    def add(
        self,
        rewards: ArrayLike,
        *,
        propensities: ArrayLike,
        targets: Targets,
        actions: ArrayLike | None = None,
        subjects: ArrayLike | None = None,
    ) -> None:
        """Add a chunk of logged rounds: all of it, or nothing after an error.

        If an interrupt (Ctrl-C) comes in the middle, look at `rows` before you add the chunk again:
        a person whose rows are in twice is protected less.

        Args:
            rewards: shape (n,).
            propensities: how probable each logged action was, shape (n,) or one number for all.
            targets: as for `Values.add`.
            actions: the logged actions, as places 0 ... K - 1, shape (n,); needed with
                probabilities of all actions.
            subjects: whose rounds they are, whole numbers or texts, shape (n,), with all chunks or
                with none: nobody then counts more often than stated. Without, that is up to you.

        Raises:
            ShapeError: An array has the wrong shape or kind.
            NotFiniteError: A number is NaN or infinite.
            OutOfBoundsError: A reward or a probability is out of range, or a person has more rows
                than stated.
            ParameterError: Arguments do not fit each other, or the values are released already.
        """
        chunk = self._log.read(
            rewards, propensities=propensities, targets=targets, actions=actions, subjects=subjects
        )
        whole = whole_rows(chunk, self._clip, self._law)
        with self._lock:
            sums = self._open()
            if self.rows + chunk.rewards.size > _MOST_ROWS:
                raise ParameterError("rewards", f"are more than {_MOST_ROWS:,}; release before")
            counts = self._counted(chunk)
            if counts is not None and chunk.subjects is not None:
                whole = whole * self._within_cap(counts, chunk.subjects)
                for name, more in zip(
                    chunk.subjects.names, np.bincount(chunk.subjects.places).tolist(), strict=True
                ):
                    counts[name] = counts.get(name, 0) + more
            # People are counted first: an interrupt in between makes for fewer rows, not for more.
            self._counts = counts
            self._held = _Held(self.rows + chunk.rewards.size, sums + whole.sum(axis=2))

    def release(self, *, level: float = 0.95) -> Comparison:
        """Add noise, once, drop what is exact, and show the values.

        Later calls show the same noisy sums again, at another level if you like, and cost nothing.

        Args:
            level: of the intervals.

        Returns:
            The values by 'ips' and 'snips', for everybody's eyes.

        Raises:
            ParameterError: There is no row yet.
        """
        level = checks.probability("level", level)
        with self._lock:
            if self._released is None:
                sums = self._open()
                if not self.rows:
                    raise ParameterError("rows", "are missing; add logged rounds first")
                stds = np.tile(np.array(self._law.stds, dtype=np.int64), len(sums))
                noise = sampler.draw(self._source, stds, 1).reshape(sums.shape)
                self._released = sums + noise  # from here on it counts as released
            released = self._released
            self._held, self._counts = _Held(self.rows, None), None
        terms = release.Terms(
            low=self._log.low,
            high=self._log.high,
            clip=self._clip,
            rows=self.rows,
            contributions=self._privacy.contributions_per_user,
            guarantee=self.guarantee,
        )
        found: list[PrivateValue] = []
        for policy, (value, weight, squares, rest) in zip(
            self._log.policies, released.tolist(), strict=True
        ):
            four = (value, weight, squares, rest)
            found += release.values(policy, four, self._law, terms, level)
        return Comparison(values=tuple(found))

    def _open(self) -> I64:
        """The sums, if they are here, in this process, and have not been released."""
        if os.getpid() != self._process:
            raise WrongProcessError(
                "values", "were made in another process: a copy could be released twice"
            )
        sums = self._held.sums
        if self._released is not None or sums is None:
            raise ParameterError(
                "values",
                "are released; start new ones, with a budget of their own, for more rounds",
            )
        return sums

    def _counted(self, chunk: Chunk) -> dict[int | str, int] | None:
        """How many rows each person has so far; None without subjects."""
        if self.rows and chunk.rewards.size and (self._counts is None) != (chunk.subjects is None):
            raise ParameterError("subjects", "were given with some chunks only; give all, or none")
        if chunk.subjects is None or self._counts is None:
            return None if chunk.subjects is None else {}
        known, new = next(iter(self._counts), None), chunk.subjects.names
        if known is not None and new and isinstance(known, str) != isinstance(new[0], str):
            raise ShapeError("subjects", "are texts here and numbers there; give one kind only")
        return self._counts

    def _within_cap(self, counts: dict[int | str, int], subjects: Subjects) -> I64:
        """1 for each row that its person may have, 0 for those beyond; shape (n,)."""
        before = np.array([counts.get(name, 0) for name in subjects.names], dtype=np.int64)
        order = np.argsort(subjects.places, kind="stable")
        sizes = np.bincount(subjects.places, minlength=len(subjects.names))
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        ranks = np.empty(order.size, dtype=np.int64)
        ranks[order] = np.arange(order.size) - starts
        most = self._privacy.contributions_per_user
        allowed = ranks + before[subjects.places] < most
        if self._log.on_violation == "error" and not allowed.all():
            raise OutOfBoundsError(
                "subjects",
                f"one has more than contributions_per_user={most} rows; state more, or pass "
                "on_violation='clip' to count the first ones only",
            )
        return allowed.astype(np.int64)


def whole_rows(chunk: Chunk, clip: float, law: Law) -> I64:
    """Each row as four whole numbers (A, T, E, F) for each policy, shape (P, 4, n).

    |A| <= T <= M and |E| <= F <= M, whatever the floating-point numbers are: a product with a
    number in -1 ... 1 never rounds beyond its other factor.
    """
    rewards = 2.0 * chunk.rewards - 1.0
    shares = np.rint(np.minimum(chunk.weights, clip) / clip * law.steps)
    weights = np.minimum(shares, law.steps).astype(np.int64)
    squares = (weights * weights + law.steps // 2) >> law.bits
    values = np.rint(weights * rewards).astype(np.int64)
    square_values = np.rint(squares * rewards).astype(np.int64)
    return np.stack([values, weights, square_values, squares], axis=1)
