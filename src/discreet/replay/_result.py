"""What a replay found, and for whose eyes each part of it is."""

from dataclasses import dataclass
from typing import Any

from discreet.evaluation import Comparison, ExactValue
from discreet.features import FeatureMap
from discreet.learner import LinUCB
from discreet.release._diagnosis import Diagnosis, diagnosed


@dataclass(frozen=True, kw_only=True, repr=False)
class Replay:
    """A learner that was started from a log, and what policies are worth on the rest of the log.

    What the learner shows, `released` and `notes` may be shown to everybody under the guarantees
    they carry. Everything else is for the curator: `exact`, `differences`, `best_fixed` and
    `warnings` are computed from people's rewards as they are.

    Attributes:
        learner: in memory, ready to go on. Give it rewards minus ``centre``.
        features: the map that makes its actions.
        centre: the middle of the bounds of rewards, which was subtracted from them.
        actions: the ids of the actions.
        rows: how many rows the log has.
        learned: how many of them the learner took in.
        evaluated: how many of them values are estimated from.
        exact: values of all policies by 'ips', 'snips' and 'dr'. For the curator only.
        differences: the private policy minus others, by 'snips' and 'dr'. For the curator only.
        best_fixed: the action that was best in the rows for learning. For the curator only.
        released: values with privacy of policies that were learned with privacy, or not at all;
            None if they were not asked for.
        warnings: what seems to be wrong with the log. For the curator only.
        notes: what was assumed. It follows from the settings and the names of columns, but for the
            list of actions if that was taken from the log.
        seconds: how long it took.
    """

    learner: LinUCB
    features: FeatureMap
    centre: float
    actions: tuple[str, ...]
    rows: int
    learned: int
    evaluated: int
    exact: Comparison
    differences: tuple[ExactValue, ...]
    best_fixed: str
    released: Comparison | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def diagnosis(self) -> Diagnosis:
        """How much the learner's release says, for decision sets of made-up people."""
        return diagnosed(self.learner.release, self.features)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; each part says for whose eyes it is."""
        learner, release = self.learner, self.learner.release
        private = learner.guarantee.private
        return {
            "log": {
                "rows": self.rows,
                "learned": self.learned,
                "evaluated": self.evaluated,
                "left_out": self.rows - self.learned - self.evaluated,
                "actions": list(self.actions),
            },
            "learner": {
                "audience": "everybody" if private else "curator",
                "guarantee": learner.guarantee.to_json(),
                "variant": learner.mechanism.variant,
                "dim": learner.problem.dim,
                "features": self.features.digest,
                "theta_norm": learner.problem.theta_norm,
                "reward_centre": self.centre,
                "release": {"number": release.number, "rows": release.rows},
                "diagnosis": str(self.diagnosis),
            },
            "exact": {
                **self.exact.to_json(),
                "differences": [one.to_json() for one in self.differences],
                "best_fixed": self.best_fixed,
                "warnings": list(self.warnings),
            },
            "released": None if self.released is None else self.released.to_json(),
            "notes": list(self.notes),
            "rows_per_second": self.rows / self.seconds if self.seconds > 0 else None,
        }

    def __repr__(self) -> str:
        return f"<Replay of {self.rows:,} rows, {self.learned:,} of them learned from>"

    def __str__(self) -> str:
        counts = (
            f"{self.learned:,} of {self.rows:,} rows; values are from {self.evaluated:,} others"
        )
        parts = [
            f"Learned from {counts}.",
            str(self.diagnosis),
            str(self.learner.guarantee),
            "",
            str(self.exact),
            *(str(one) for one in self.differences),
            *(f"Warning: {one}" for one in self.warnings),
        ]
        if self.released is not None:
            parts += ["", str(self.released)]
        return "\n".join([*parts, *(f"Note: {one}" for one in self.notes)])
