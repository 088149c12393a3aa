"""Many pulls times many seeds of a multi-armed bandit, through the compiled steps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import joblib
import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.baselines.arms._learner import ArmRule
from discreet.errors import ParameterError
from discreet.kernels import _random as random

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_LARGEST_GAP = 2.0


@dataclass(frozen=True)
class Arms:
    """Arms with rewards of plus or minus one, by their mean rewards. At least two."""

    means: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the means."""
        means = tuple(checks.finite("means", mean) for mean in self.means)
        if len(means) < 2:
            raise ParameterError("means", f"are {len(means)}; give at least two arms")
        if not all(-1.0 <= mean <= 1.0 for mean in means):
            raise ParameterError("means", "leave [-1, 1]; rewards are plus or minus one")
        object.__setattr__(self, "means", means)

    @classmethod
    def with_gaps(cls, gaps: Sequence[float], *, best_mean: float) -> Self:
        """The best arm first, then one for each gap: how far its mean lies below the best.

        Args:
            gaps: each in (0, 2].
            best_mean: the first arm's mean.

        Returns:
            One arm more than there are gaps.

        Raises:
            ParameterError: if a gap is outside (0, 2] or a mean outside [-1, 1].
        """
        for gap in gaps:
            if not 0.0 < checks.finite("gap", gap) <= _LARGEST_GAP:
                raise ParameterError("gap", f"is {gap:g}; give one above 0 and at most 2")
        return cls((best_mean, *(best_mean - gap for gap in gaps)))

    @property
    def gaps(self) -> F64:
        """How far each mean lies below the best, shape (n_arms,)."""
        means = np.array(self.means)
        return np.asarray(means.max() - means)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How often each arm was pulled.

    Attributes:
        arms: what was played.
        rounds: the checkpoints, shape (C,).
        pulls: shape (S, C, n_arms), for each seed.
    """

    arms: Arms
    rounds: I64
    pulls: I64

    @property
    def regrets(self) -> F64:
        """Pseudo-regret so far, shape (S, C)."""
        return np.asarray(self.pulls @ self.arms.gaps)


def simulate(
    rule: ArmRule,
    arms: Arms,
    *,
    seeds: Iterable[int],
    checkpoints: Sequence[int] | None = None,
    jobs: int = 1,
) -> Outcome:
    """Play a rule to its horizon, once for each seed.

    A seed fixes the rewards and the noise, each with a stream of its own; the number of jobs
    changes nothing.

    Args:
        rule: `UpperConfidence`, `Elimination`, or any other from `RULES`.
        arms: as many as the rule expects.
        seeds: whole numbers from 0.
        checkpoints: rounds at which pulls are recorded, growing; the horizon alone if left out.
        jobs: worker processes.

    Returns:
        How often each arm was pulled, for each seed and checkpoint.

    Raises:
        ParameterError: if there are no seeds, too many or too few arms, or checkpoints that do not
            grow or lie beyond the horizon.
    """
    wanted = [checks.count("seeds", seed, least=0) for seed in seeds]
    if not wanted:
        raise ParameterError("seeds", "is empty; give at least one seed")
    if len(arms.means) != rule.n_arms:
        raise ParameterError("arms", f"are {len(arms.means)}; the rule has {rule.n_arms}")
    rounds = _checked_rounds([rule.horizon] if checkpoints is None else checkpoints, rule.horizon)
    pool = joblib.Parallel(n_jobs=min(checks.count("jobs", jobs), len(wanted)))
    pulls = pool(joblib.delayed(run_seed)(rule, arms, seed, rounds) for seed in wanted)
    return Outcome(arms=arms, rounds=rounds, pulls=np.array(pulls))


def run_seed(rule: ArmRule, arms: Arms, seed: int, rounds: I64) -> I64:
    """One seed, start to end: the pulls of each arm at each checkpoint, shape (C, n_arms)."""
    rewards, noise = np.random.SeedSequence(seed).spawn(2)
    pulls = np.zeros((len(rounds), rule.n_arms), np.int64)
    means = np.array(arms.means)
    rule.play(means, random.seed_state(rewards), random.seed_state(noise), rounds, pulls)
    return pulls


def _checked_rounds(rounds: Sequence[int], horizon: int) -> I64:
    found = np.array([checks.count("checkpoints", at) for at in rounds], np.int64)
    if found.size == 0 or found[-1] > horizon or (np.diff(found) <= 0).any():
        raise ParameterError(
            "checkpoints", f"are not growing numbers up to the horizon of {horizon}; give such"
        )
    return found
