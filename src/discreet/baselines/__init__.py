"""Multi-armed bandits: arms without features, rewards in [-1, 1], pure differential privacy.

`UCB1`, `KLUCB` and `IMED` promise nothing. The others are epsilon-differentially private; they are
here because they can be held against the paper's lower bounds (`discreet.theory`) and against
`LinUCB` with one action for each arm. Each learner has ``choose() -> arm`` and
``learn(arm, reward)``; `simulate` plays their rules, with the same compiled steps, many times over.
`RULES` is the table of all of them.
"""

from discreet.baselines._adaptive import AdaPKLUCB, AdaPUCB
from discreet.baselines._divergence import DPIMED, DPKLUCB, IMED, KLUCB
from discreet.baselines._elimination import DPSE, Elimination
from discreet.baselines._lazy import AnytimeLazyUCB, LazyDPTS
from discreet.baselines._simulate import Arms, Outcome, simulate
from discreet.baselines._table import RULES, ArmBaseline
from discreet.baselines._ucb import DPUCB, UCB1, UpperConfidence

__all__ = [
    "DPIMED",
    "DPKLUCB",
    "DPSE",
    "DPUCB",
    "IMED",
    "KLUCB",
    "RULES",
    "UCB1",
    "AdaPKLUCB",
    "AdaPUCB",
    "AnytimeLazyUCB",
    "ArmBaseline",
    "Arms",
    "Elimination",
    "LazyDPTS",
    "Outcome",
    "UpperConfidence",
    "simulate",
]
