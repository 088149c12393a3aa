"""How often data was beyond the stated bounds, if that is no error: for the curator alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet import _tables
from discreet.problem import Problem

_TOLERANCE = 1e-9  # what a caller's own arithmetic may have added does not count


class Clipped(NamedTuple):
    """How many actions and rewards were beyond their bounds: for the curator's eyes only.

    Attributes:
        actions: in decision sets and in what was observed.
        rewards: that were taken in.
    """

    actions: int = 0
    rewards: int = 0

    def and_of(
        self, problem: Problem, sets: Sequence[ArrayLike], rewards: Sequence[object]
    ) -> "Clipped":
        """These counts, and those of data that was admitted.

        Args:
            problem: the stated bounds.
            sets: decision sets as they were given, shape (K, d) each.
            rewards: as they were given.

        Returns:
            Both together.
        """
        longest = problem.action_norm * (1.0 + _TOLERANCE)
        actions = self.actions
        for one in sets:
            with np.errstate(over="ignore"):
                actions += int((np.linalg.norm(np.asarray(one, float), axis=1) > longest).sum())
        beyond = (
            abs(float(reward) - problem.reward_centre) > problem.reward_bound  # type: ignore[arg-type]  # checked
            for reward in rewards
        )
        return Clipped(actions, self.rewards + sum(beyond))

    def __str__(self) -> str:
        return (
            f"For the curator only, and not to be shown: {self.actions:,} actions and "
            f"{self.rewards:,} rewards were beyond the stated bounds, and clipped to them."
        )

    def _repr_html_(self) -> str:
        rows = [("actions", f"{self.actions:,}"), ("rewards", f"{self.rewards:,}")]
        return _tables.as_html((), rows, notes=[str(self)])
