"""Other people's private bandits, beside which ours are measured.

*Multi-armed*: arms without features, rewards in [-1, 1], pure differential privacy. `UCB1`, `KLUCB`
and `IMED` promise nothing. The others are epsilon-differentially private; they are here because
they can be held against the paper's lower bounds (`discreet.theory`) and against `LinUCB` with one
action for each arm. Each learner has ``choose() -> arm`` and ``learn(arm, reward)``; `simulate`
plays their rules, with the same compiled steps, many times over. `RULES` is the table of all of
them.

*Linear*: `LINEAR_BASELINES` is the table, `linear_rule` calibrates a row of it, `LinearLearner`
follows the rule with ``choose(actions)`` and ``learn(decision, reward)``, and `simulate_linear`
plays it.
"""

from discreet.baselines.arms._adaptive import AdaPKLUCB, AdaPUCB
from discreet.baselines.arms._divergence import DPIMED, DPKLUCB, IMED, KLUCB
from discreet.baselines.arms._elimination import DPSE, Elimination
from discreet.baselines.arms._lazy import AnytimeLazyUCB, LazyDPTS
from discreet.baselines.arms._simulate import Arms, Outcome, simulate
from discreet.baselines.arms._table import RULES, ArmBaseline
from discreet.baselines.arms._ucb import DPUCB, UCB1, UpperConfidence
from discreet.baselines.linear._core_set import CoreSetElimination
from discreet.baselines.linear._episodes import AdaCOFUL, BatchedThompson
from discreet.baselines.linear._learner import LinearDecision, LinearLearner, LinearRule
from discreet.baselines.linear._local import LocalLinUCB, ShuffleLinUCB
from discreet.baselines.linear._simulate import LinearOutcome, simulate_linear
from discreet.baselines.linear._switching import RareSwitching
from discreet.baselines.linear._table import LINEAR_BASELINES, LinearBaseline, linear_rule

__all__ = [
    "DPIMED",
    "DPKLUCB",
    "DPSE",
    "DPUCB",
    "IMED",
    "KLUCB",
    "LINEAR_BASELINES",
    "RULES",
    "UCB1",
    "AdaCOFUL",
    "AdaPKLUCB",
    "AdaPUCB",
    "AnytimeLazyUCB",
    "ArmBaseline",
    "Arms",
    "BatchedThompson",
    "CoreSetElimination",
    "Elimination",
    "LazyDPTS",
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
