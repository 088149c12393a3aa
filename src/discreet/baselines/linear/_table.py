"""The table of linear baselines: other people's private linear bandits, by name.

Each row says what is protected, who has to be trusted, and where it comes from, so that nothing
unlike is compared in silence. Non-private LinUCB, linear Thompson sampling and the greedy rule are
the variant `nonprivate` with the policies `ucb`, `thompson` and `greedy`; they are not here again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from discreet import _checks as checks
from discreet.baselines.linear._core_set import CoreSetElimination
from discreet.baselines.linear._episodes import AdaCOFUL, BatchedThompson
from discreet.baselines.linear._learner import CENTRAL, LOCAL, REWARDS, ROWS, SHUFFLE, LinearRule
from discreet.baselines.linear._local import LocalLinUCB, ShuffleLinUCB
from discreet.baselines.linear._switching import RareSwitching
from discreet.privacy import Privacy
from discreet.problem import Problem


@dataclass(frozen=True, kw_only=True)
class LinearBaseline:
    """A row of the table.

    Attributes:
        name: on the command line and in reports.
        make: the rule for a problem, a horizon and a privacy target, by keyword.
        protects: 'rows' or 'rewards'.
        trust: 'central', 'shuffle' or 'local'.
        pure: whether it keeps epsilon with a delta of 0.
        fixed_sets: whether it is for one decision set that stays.
        source: who it is after.
    """

    name: str
    make: Callable[..., LinearRule]
    protects: str
    trust: str
    source: str
    pure: bool = False
    fixed_sets: bool = False


LINEAR_BASELINES: dict[str, LinearBaseline] = {
    row.name: row
    for row in (
        LinearBaseline(
            name="rare-switching",
            make=RareSwitching,
            protects=ROWS,
            trust=CENTRAL,
            source="Shariff & Sheffet 2018; Abbasi-Yadkori et al. 2011",
        ),
        LinearBaseline(
            name="batched-ts-joint",
            make=BatchedThompson,
            protects=ROWS,
            trust=CENTRAL,
            source="after Ukwatta & Riyazat 2026, with noise on the Gram matrix",
        ),
        LinearBaseline(
            name="adac-oful",
            make=AdaCOFUL,
            protects=REWARDS,
            trust=CENTRAL,
            source="Azize & Basu 2023",
        ),
        LinearBaseline(
            name="batched-ts",
            make=BatchedThompson,
            protects=REWARDS,
            trust=CENTRAL,
            source="Ukwatta & Riyazat 2026",
        ),
        LinearBaseline(
            name="core-set",
            make=CoreSetElimination,
            protects=REWARDS,
            trust=CENTRAL,
            source="Hanna et al. 2022",
            pure=True,
            fixed_sets=True,
        ),
        LinearBaseline(
            name="shuffle-linucb",
            make=ShuffleLinUCB,
            protects=ROWS,
            trust=SHUFFLE,
            source="Chowdhury & Zhou 2022",
        ),
        LinearBaseline(
            name="ldp-linucb",
            make=LocalLinUCB,
            protects=ROWS,
            trust=LOCAL,
            source="Zheng et al. 2020",
        ),
    )
}


def linear_rule(name: str, *, problem: Problem, horizon: int, privacy: Privacy) -> LinearRule:
    """The rule of this name, calibrated.

    Args:
        name: a name in `LINEAR_BASELINES`.
        problem: the stated bounds.
        horizon: the most rounds there will be.
        privacy: the target, for replacement of one round.

    Returns:
        The rule, for `LinearLearner` and `simulate_linear`.

    Raises:
        ParameterError: if there is no such baseline, or it cannot meet the target.
    """
    checks.one_of("baseline", name, tuple(LINEAR_BASELINES))
    return LINEAR_BASELINES[name].make(problem=problem, horizon=horizon, privacy=privacy)
