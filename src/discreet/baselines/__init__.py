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

from discreet.baselines._adaptive import AdaPKLUCB, AdaPUCB
from discreet.baselines._core_set import CoreSetElimination
from discreet.baselines._divergence import DPIMED, DPKLUCB, IMED, KLUCB
from discreet.baselines._elimination import DPSE, Elimination
from discreet.baselines._episodes import AdaCOFUL, BatchedThompson
from discreet.baselines._lazy import AnytimeLazyUCB, LazyDPTS
from discreet.baselines._linear import LinearDecision, LinearLearner, LinearRule
from discreet.baselines._linear_table import LINEAR_BASELINES, LinearBaseline, linear_rule
from discreet.baselines._local import LocalLinUCB, ShuffleLinUCB
from discreet.baselines._simulate import Arms, Outcome, simulate
from discreet.baselines._simulate_linear import LinearOutcome, simulate_linear
from discreet.baselines._switching import RareSwitching
from discreet.baselines._table import RULES, ArmBaseline
from discreet.baselines._ucb import DPUCB, UCB1, UpperConfidence

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
