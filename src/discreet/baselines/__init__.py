"""Multi-armed bandits: arms without features, rewards in [-1, 1], pure differential privacy.

`UCB1` promises nothing. `DPUCB` and `DPSE` are epsilon-differentially private; they are here
because they can be held against the paper's lower bounds (`discreet.theory`). Each learner has
``choose() -> arm`` and ``learn(arm, reward)``; `simulate` plays their rules, with the same
compiled steps, many times over.

Linear ones: `LINEAR_BASELINES` is the table, `linear_rule` calibrates a row of it, `LinearLearner`
follows the rule with ``choose(actions)`` and ``learn(decision, reward)``, and `simulate_linear`
plays it.
"""

from discreet.baselines._core_set import CoreSetElimination
from discreet.baselines._elimination import DPSE, Elimination
from discreet.baselines._episodes import AdaCOFUL, BatchedThompson
from discreet.baselines._linear import LinearDecision, LinearLearner, LinearRule
from discreet.baselines._local import LocalLinUCB, ShuffleLinUCB
from discreet.baselines._simulate import Arms, Outcome, simulate
from discreet.baselines._simulate_linear import LinearOutcome, simulate_linear
from discreet.baselines._switching import RareSwitching
from discreet.baselines._ucb import DPUCB, UCB1, UpperConfidence
from discreet.baselines.linear import LINEAR_BASELINES, LinearBaseline, linear_rule

__all__ = [
    "DPSE",
    "DPUCB",
    "LINEAR_BASELINES",
    "UCB1",
    "AdaCOFUL",
    "Arms",
    "BatchedThompson",
    "CoreSetElimination",
    "Elimination",
    "LinearBaseline",
    "LinearDecision",
    "LinearLearner",
    "LinearOutcome",
    "LinearRule",
    "LocalLinUCB",
    "Outcome",
    "RareSwitching",
    "ShuffleLinUCB",
    "UpperConfidence",
    "linear_rule",
    "simulate",
    "simulate_linear",
]
